"""What an engine is asked, and what it gives back, as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class EngineQuery:
    """A query as an engine got it."""

    topic: str
    seq: int
    text: str
    modifiers: Mapping[str, Any]
    earlier: Sequence[Mapping[str, Any]] = ()
    """The queries of the topic with their answers, as the wire has them."""
    told: Sequence[Mapping[str, Any]] = ()
    """What its run asked a person, with the answers, as the wire has it."""
    run: str | None = None
    """By what name its run goes, as the service says; None when it does not."""


@dataclass(frozen=True, slots=True)
class EngineAnswer:
    """What an engine gives back."""

    answer: list[str]
    think: list[str]
    sources: list[dict[str, Any]]
    ended: str
    detail: str = ""
    asks: list[dict[str, str]] = field(default_factory=list)
    """What a person is asked before the run goes on, as the wire has it; there is no answer yet then."""
