"""Links on the way to a file or folder, and where they lead."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path


def real(place: Path) -> Path:
    """Return where a path leads; links that lead to each other, at which `Path.resolve` raises, to one of them."""
    return Path(os.path.realpath(place))


def links(place: Path) -> Iterator[Path]:
    """Yield the links among a path and what is above it.

    In `new/../link/tree`, `new` may be made by whoever makes the tree: what is not there is left by its name.
    """
    way = Path()
    for part in place.parts:
        way = way.parent if part == ".." and not os.path.lexists(way) else way / part
        if os.path.islink(way):  # noqa: PTH114  # raises nothing where a name is too long
            yield way


def former_places(place: Path) -> set[str]:
    """Return where a path may have led before a part of it became a link: each beginning followed, the rest by name."""
    parts = Path(os.path.normpath(place.absolute())).parts
    return {
        os.path.join(os.path.realpath(Path(*parts[:end])), *parts[end:])  # noqa: PTH118  # as it was recorded
        for end in range(1, len(parts) + 1)
    }


def link_astray(place: Path) -> Path | None:
    """Return the first link on the way that leads out of where its maker may have put it, None for a sound way.

    That is out of the current folder, or, of a path below that, out of the folder that the link is in: a clone there
    is a stranger's.
    """
    if link := link_out(place, Path()):
        return link
    below = not place.is_absolute() and ".." not in place.parts
    return next((link for link in links(place) if not _stays(link)), None) if below else None


def _stays(link: Path) -> bool:
    return real(link).is_relative_to(real(link.parent))


def link_out(place: Path, folder: Path) -> Path | None:
    """Return the first link in a folder that leads out of it on the way to a path, whoever has named that, and how.

    Args:
        place: the path; a relative one is below the folder.
    """
    for link in links(folder / place):
        inside = real(folder)
        if real(link.parent).is_relative_to(inside) and not real(link).is_relative_to(inside):
            return link
    return None
