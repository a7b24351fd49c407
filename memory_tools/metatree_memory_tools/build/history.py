"""The history of a folder as part of its build."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from metatree.trees.layer import Layer
from metatree.trees.source_types import Progress, SourceRef
from metatree_memory_tools.build._history_nodes import lay_history
from metatree_memory_tools.git.log import drop_history, history_stale, read_history

_OMITTED = ".git"
"""Where the omissions say what is missing of a history."""


def with_history(source: SourceRef, known: Iterable[SourceRef]) -> SourceRef:
    """Return a source that says whether its history is read: as it did before when nothing is said now."""
    if source.type != "folder" or source.options.get("history") is not None:
        return source
    before = any(
        each.options.get("history") for each in known if (each.type, each.mount) == ("folder", source.mount)
    )
    return replace(source, options={**source.options, "history": before})


def bring_history(source: SourceRef, layer: Layer, progress: Progress | None) -> None:
    """Bring the history of a folder up to date, or take it out when it is not wanted."""
    if source.type != "folder":
        return
    if not source.options.get("history"):
        drop_history(layer.store, source=source.mount)
        lay_history(source, layer)
        return
    note = read_history(Path(source.location), layer.store, source=source.mount, progress=progress)
    if note:
        place = f"{source.mount}/{_OMITTED}" if source.mount else _OMITTED
        layer.store.execute("INSERT OR REPLACE INTO omission(path, reason) VALUES (?, ?)", (place, note))
    lay_history(source, layer)


def missing_history(omissions: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return those of a tree's omissions that say what is missing of a history: the folder's id and the reason."""
    return [
        (path.removesuffix(_OMITTED).rstrip("/"), reason)
        for path, reason in omissions
        if path.rpartition("/")[2] == _OMITTED
    ]


def is_history_stale(source: SourceRef, layer: Layer) -> bool:
    """Whether another commit of a folder is checked out than was read."""
    wanted = source.type == "folder" and source.options.get("history")
    return bool(wanted) and history_stale(Path(source.location), layer.store, source=source.mount)
