"""What agents ask of a journal besides what every run does."""

from __future__ import annotations

from typing import Protocol

from metatree.durable import Journal


class AgentJournal(Journal, Protocol):
    """A journal whose runs are taken up by whoever is free; `SqliteJournal` and `PostgresJournal` are such."""

    def claimable(self, machine: str, *, limit: int = 100) -> list[str]:
        """Return runs that somebody should take up: without a living holder, or waiting and with mail."""
        ...

    def is_waiting(self, run_id: str, machine: str) -> bool:
        """Say whether there is such a run and it has not ended."""
        ...

    def refused(self, run_id: str) -> int:
        """Return how many writes to a run came after another process had taken it over."""
        ...

    def reopen(self, run_id: str) -> None:
        """Let somebody take up a run that stopped before its end."""
        ...
