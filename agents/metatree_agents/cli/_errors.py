"""Reporting of failures: exit codes, errors as one line, and warnings of the library."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from errno import EDQUOT, ENOSPC
from pathlib import Path
from typing import TYPE_CHECKING, Final, assert_never

from metatree.errors import MetatreeError, RunExists, UserError
from metatree.storage.errors import full
from metatree_agents.cli import _output as output

if TYPE_CHECKING:
    from metatree.result import SearchResult

FOUND = 0
NOTHING = 1
WRONG_USE = 2
LIMIT = 3
WAITING = 4
FAILED = 5
"""Failed or cancelled."""

_DEFERRED: Final = "deferred"
_FAILED: Final = "run %s failed"
"""What the library says of a run that failed; a command that ends with this run says it then, with what it cost."""


class Cancelled(Exception):
    """Ctrl-C was pressed; the message says what was kept and how to go on."""


def exit_code(result: SearchResult) -> int:
    """Return the exit code for the end of a search; a search that looked everywhere has 0 if it found anything.

    An answer whose words are in no source is nothing found.
    """
    invented = bool(result.answers) and not any(answer.verified for answer in result.answers)
    match result.ended:
        case "answered" | "exhausted" if invented:
            return NOTHING
        case "answered":
            return FOUND
        # Open questions or not. Lost: a code for partial answers, which scripts would have to know; `open_questions` in
        # the JSON tells the rest.
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


def report(error: BaseException) -> int:
    """Say in one line what ended a command, and return its exit code."""
    match error:
        case KeyboardInterrupt():
            output.note("metatree: cancelled; what was done before is kept: run it again to go on")
            return FAILED
        case RunExists():
            run = output.visible(error.run_id)
            output.note(
                f"metatree: run {run!r} exists: go on with `metatree resume {run}`, or give --run another name"
            )
            return WRONG_USE
        case UserError():
            output.note(f"metatree: {_told(str(error))}")
            return WRONG_USE
        case Cancelled() | MetatreeError():
            output.note(f"metatree: {_told(str(error))}")
            return FAILED
        case PermissionError():
            output.note(f"metatree: {_told(denied(error))}")
            return WRONG_USE
        case OSError():
            output.drop_output()
            if error.errno in (ENOSPC, EDQUOT) and error.filename:
                output.note(f"metatree: {output.visible(str(full(Path(error.filename), error)))}")
                return FAILED
            what = error.strerror or str(error)
            where = (
                f"{error.filename}: " if error.filename else "cannot write: " if error.errno == ENOSPC else ""
            )
            output.note(f"metatree: {_told(where + what)}; fix it there and run the command again")
            return FAILED
        case _:
            what = f"{type(error).__name__}: {error}"
            output.note(f"metatree: failed: {_told(what)}; run it again with --debug for the traceback")
            return FAILED


def _told(text: str) -> str:
    """Return a message as it may be shown: a file that is out of form may have a key where a name should be."""
    from metatree._util.secret_text import shapes_masked

    return output.visible(shapes_masked(text))


def denied(error: PermissionError) -> str:
    """Return what to do about a file or folder that may not be read or written."""
    what = f"{error.filename}: {error.strerror}" if error.filename else str(error)
    return f"{what}; change its rights, or say with --tree where else the tree may live"


_OF_LIBRARIES: Final = (
    (re.compile(r"^Missing (argument|option) '(.+)'"), r"the \1 \2 is missing"),
    (re.compile(r"Input should be a valid integer\b[^;]*"), "not a whole number"),
    (re.compile(r"Input should be a valid number\b[^;]*"), "not a number"),
    (re.compile(r"Input should be (greater|less) than or equal to (\S+)"), lambda m: _bound(m[1], m[2])),
)
"""What Typer and pydantic say of values, and how it is said here."""


def _bound(side: str, number: str) -> str:
    return f"must be at {'least' if side == 'greater' else 'most'} {number}"


def usage_message(error: Exception) -> str:
    """Return what is wrong with a command line, and the command that says more."""
    message = str(error.format_message()) if hasattr(error, "format_message") else str(error)
    for shape, ours in _OF_LIBRARIES:
        message = shape.sub(ours, message)
    context = getattr(error, "ctx", None)
    command = getattr(context, "command_path", "metatree")
    return f"{' '.join(message.split()).rstrip('.')}; `{command} --help` says more"


@contextmanager
def show_warnings(*, traceback: bool) -> Iterator[None]:
    """Show each different warning once while a command runs, or `each_time` when its record says so.

    Args:
        traceback: whether the traceback of a warning is shown too.
    """
    handler = _Lines(traceback)
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)


@contextmanager
def defer_failure_warning() -> Iterator[None]:
    """Leave the warning that a run has failed to the command, which tells it as the last line."""

    def mark(record: logging.LogRecord) -> bool:
        if record.msg == _FAILED:
            setattr(record, _DEFERRED, True)
        return True

    logger = logging.getLogger("metatree")
    logger.addFilter(mark)
    try:
        yield
    finally:
        logger.removeFilter(mark)


def note_lines(trace: str) -> None:
    """Write a traceback: none of its styles is ours, so each is shown as an escape."""
    from metatree._util.secret_text import shapes_masked

    lines = shapes_masked(trace).rstrip().split("\n")
    output.note("\n".join(map(output.visible, lines)))


class _Lines(logging.Handler):
    def __init__(self, traceback: bool) -> None:
        super().__init__(logging.WARNING)
        self._traceback = traceback
        self._lines_shown: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        if getattr(record, _DEFERRED, False) and not self._traceback:
            return
        line = f"metatree: warning: {_told(record.getMessage())}"
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            line += f" ({_told(f'{type(error).__name__}: {error}')}"
            line += ")" if self._traceback else "; --debug shows the traceback)"
        if line in self._lines_shown and not getattr(record, "each_time", False):
            return
        self._lines_shown.add(line)
        output.note(line)
        if error is not None and self._traceback and record.exc_info:
            note_lines(logging.Formatter().formatException(record.exc_info))
