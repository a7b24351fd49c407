"""Progress on standard error: a bar while a tree is built, a line while a search goes on; only on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from metatree_agents.cli._output import is_quiet, visible

if TYPE_CHECKING:
    from rich.status import Status

    from metatree.result import TraceEntry

_SHOWN = {
    "route": "choosing below",
    "enter": "entering",
    "read": "reading",
    "collect": "collected",
    "tool": "calling a tool at",
    "create": "created",
    "fallback": "fallback at",
}


_showing: list[Status] = []
"""The lines on the terminal: one, while a search goes on."""


class BuildProgress(Protocol):
    """Called for each file: how many are done, of how many, and which one it is."""

    def __call__(self, done: int, total: int, path: str) -> None: ...


class SearchProgress(Protocol):
    """Called for each decision of a search."""

    def __call__(self, entry: TraceEntry) -> None: ...


@contextmanager
def build_bar(title: str) -> Iterator[BuildProgress | None]:
    """Show a bar while a tree is built; yield None when standard error is not a terminal, or --quiet was given."""
    if is_quiet() or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[path]}", style="dim", markup=False),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(title, total=None, path="")

        def report(done: int, total: int, path: str) -> None:
            progress.live.transient = False  # a bar that has shown something stays
            progress.update(task, completed=done, total=total or None, path=_short(path))

        yield report


@contextmanager
def search_line() -> Iterator[SearchProgress | None]:
    """Show what a search does in one line that changes; yield None without a terminal, or with --quiet."""
    if is_quiet() or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True).status("searching") as status:
        _showing.append(status)

        def report(entry: TraceEntry) -> None:
            doing = _SHOWN.get(entry.event)
            if doing is not None and entry.node is not None:
                status.update(Text(f"{doing} {_short(entry.node)}"))

        try:
            yield report
        finally:
            _showing.remove(status)


@contextmanager
def paused() -> Iterator[None]:
    """Take the line away while the person is asked something."""
    for status in _showing:
        status.stop()
    try:
        yield
    finally:
        for status in _showing:
            status.start()


def _short(path: str, width: int = 50) -> str:
    path = visible(path)
    return path if len(path) <= width else "…" + path[1 - width :]
