"""What the exit codes mean, which one the end of a search has, and how Ctrl-C ends a command."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

if TYPE_CHECKING:
    from metatree.result import SearchResult

FOUND = 0
NOTHING = 1
WRONG_USE = 2
LIMIT = 3
WAITING = 4
FAILED = 5
"""Failed or cancelled."""


class Cancelled(Exception):
    """Ctrl-C was pressed; the message says what was kept and how to go on."""


def exit_code(result: SearchResult) -> int:
    """Return the exit code for the end of a search; a search that looked everywhere has 0 if it found anything."""
    match result.ended:
        case "answered":
            return FOUND
        case "exhausted":
            return FOUND if result.answers or result.nodes else NOTHING
        case "limit":
            return LIMIT
        case "waiting":
            return WAITING
        case "cancelled" | "failed":
            return FAILED
        case _:
            assert_never(result.ended)
