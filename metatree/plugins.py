"""Parts that other packages bring, found by entry point and loaded when they are first used.

A program may bring parts of its own without a package around them: `register`.
"""

from __future__ import annotations

import logging
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from metatree._util.process import import_path
from metatree.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from importlib.metadata import EntryPoint

ROUTERS = "metatree.routers"
EVIDENCE = "metatree.evidence"
MEMORY_TYPES = "metatree.memory_types"
SOURCES = "metatree.sources"
TOOLS = "metatree.tools"

PARTS = {
    MEMORY_TYPES: ("name", "version", "source_type", "recognises", "outline", "content"),
    SOURCES: ("name", "version", "recognises", "fingerprint", "nodes", "content"),
}
"""What the objects of a group must have; one that lacks a part would fail in the middle of a build."""

_registered: dict[str, dict[str, Any]] = {}
_instances: dict[tuple[str, str], Any] = {}
_available: dict[tuple[tuple[str, int], ...], dict[str, dict[str, EntryPoint]]] = {}
_seen: dict[str, tuple[int, int]] = {}
_folder = lru_cache(maxsize=256)(Path)  # making one takes longer than the rest of the look at a folder
_log = logging.getLogger("metatree")


def available(group: str) -> dict[str, EntryPoint]:
    """Return the entry points of a group by name."""
    # Looking through what is installed takes milliseconds, and a search asks for several groups.
    paths = import_path()
    place = tuple((path, _installed(path)) for path in paths)
    points = _available.get(place)
    if points is None:
        from importlib.metadata import (
            distributions,
        )  # loads email and zipfile, 15 ms that no import should cost

        points = {}
        for distribution in distributions(path=paths):
            for entry in distribution.entry_points:
                if entry.group.startswith("metatree."):
                    points.setdefault(entry.group, {}).setdefault(entry.name, entry)
        _available.clear()
        _available[place] = points
    return dict(points.get(group, {}))


def _installed(path: str) -> int:
    """Return when something was last installed into a folder that Python imports from, 0 when nothing ever was.

    A folder where a program writes its results changes all the time, and says nothing about packages.
    """
    try:
        folder = _folder(path or ".")
        time = folder.stat().st_mtime_ns
        known = _seen.get(path)
        if known is None or known[0] != time:
            holds = any(each.suffix in (".dist-info", ".egg-info") for each in folder.iterdir())
            known = _seen[path] = (time, time if holds else 0)
    except OSError:  # a zip file, or nothing at all
        return 0
    return known[1]


def register(group: str, name: str, part: Any) -> None:
    """Bring a part for as long as this process lives; it goes before an installed one of the same name."""
    _registered.setdefault(group, {})[name] = part
    _instances.clear()


def unregister(group: str, name: str) -> None:
    """Take back what `register` brought; one that is not there is no error."""
    _registered.get(group, {}).pop(name, None)
    _instances.clear()


def has_registered(group: str) -> bool:
    """Whether a part of a group lives in this process alone, brought by `register`."""
    return bool(_registered.get(group))


def names(group: str) -> list[str]:
    """Return the names of the parts of a group, registered ones first."""
    return [name for name, _ in loaders(group)]


def loaders(group: str) -> list[tuple[str, Callable[[], Any]]]:
    """Return the names of the parts of a group, registered ones first, each with a function that does what `load` does.

    It looks only once at what is installed.
    """
    own, points = _registered.get(group, {}), available(group)
    return [(name, partial(_loaded, group, name, points)) for name in dict.fromkeys([*own, *points])]


def load(group: str, name: str) -> Any:
    """Import and return one plug-in.

    Raises:
        UserError: there is none of this name, or it cannot be imported.
    """
    return _loaded(group, name, available(group))


def _loaded(group: str, name: str, points: dict[str, EntryPoint]) -> Any:
    own = _registered.get(group, {})
    if name in own:
        return own[name]
    if name not in points:
        known = ", ".join(sorted({*own, *points})) or "none"
        raise UserError(
            f"no plug-in {name!r} in {group!r} (installed: {known}); reinstall metatree-memory or name another"
        )
    try:
        return points[name].load()
    except (Exception, SystemExit) as exc:  # a module that ends the program must not end this one
        raise UserError(
            f"the plug-in {name!r} of {group!r} cannot be imported: {type(exc).__name__}: {exc}"
        ) from exc


def instance(group: str, name: str) -> Any:
    """Return the object that a plug-in makes, the same one each time; a plug-in is a class or a function without
    arguments, or, when it was registered, the object itself.

    Raises:
        UserError: as `load`, or it cannot be made.
    """
    if (group, name) not in _instances:
        part = load(group, name)
        if isinstance(part, type) or name not in _registered.get(group, {}):
            try:
                part = part()
            except (Exception, SystemExit) as exc:
                raise UserError(
                    f"the plug-in {name!r} of {group!r} cannot be made: {type(exc).__name__}: {exc}"
                ) from exc
        missing = [each for each in PARTS.get(group, ()) if not hasattr(part, each)]
        if missing:
            raise UserError(f"the plug-in {name!r} of {group!r} lacks {', '.join(map(repr, missing))}")
        if group in PARTS and part.name != name:
            raise UserError(
                f"the plug-in {name!r} of {group!r} has the name {part.name!r}: make both the same"
            )
        _instances[group, name] = part
    return _instances[group, name]


def instances(group: str) -> Iterator[tuple[str, Any]]:
    """Yield the name and the object of every plug-in of a group that can be made; the others are logged."""
    for name in names(group):
        try:
            part = instance(group, name)
        except UserError as exc:
            _log.warning("%s", exc)
            continue
        yield name, part
