"""Warnings of the library on standard error: one line each, the traceback only for those who ask for it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from metatree_agents.cli import _output as output

_TOLD: Final = "told_at_the_end"
_FAILED: Final = "run %s failed"
"""What the library says of a run that failed; a command that ends with this run says it then, with what it cost."""


@contextmanager
def warnings_shown(*, traceback: bool) -> Iterator[None]:
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
def failure_told_at_the_end() -> Iterator[None]:
    """Leave the warning that a run has failed to the command, which tells it as the last line."""

    def mark(record: logging.LogRecord) -> bool:
        if record.msg == _FAILED:
            setattr(record, _TOLD, True)
        return True

    logger = logging.getLogger("metatree")
    logger.addFilter(mark)
    try:
        yield
    finally:
        logger.removeFilter(mark)


class _Lines(logging.Handler):
    def __init__(self, traceback: bool) -> None:
        super().__init__(logging.WARNING)
        self._traceback = traceback
        self._shown: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        if getattr(record, _TOLD, False) and not self._traceback:
            return
        line = f"metatree: warning: {output.visible(record.getMessage())}"
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            line += f" ({output.visible(f'{type(error).__name__}: {error}')}"
            line += ")" if self._traceback else "; --debug shows the traceback)"
        if line in self._shown and not getattr(record, "each_time", False):
            return
        self._shown.add(line)
        output.note(line)
        if error is not None and self._traceback and record.exc_info:
            output.note(logging.Formatter().formatException(record.exc_info))
