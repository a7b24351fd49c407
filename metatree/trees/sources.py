"""The sources of a tree: how they are kept, and which of them a node, or a key of its content, belongs to.

A tree of one folder has that folder's paths as ids. Any other tree has a node for each source below its root, the
source's *mount*, and every id and every path of content begins with it: `docs`, `docs/install.md`, `handbook.pdf#p3`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from metatree import plugins
from metatree._util.links import link_astray, real
from metatree._util.named_file import is_here, typed_path
from metatree._util.secret_files import is_link_to_secret
from metatree.errors import UserError
from metatree.storage.trust import NAMED_IN as NAMED_IN
from metatree.trees.layer import Layer
from metatree.trees.source_types import SourceRef, load_source_type, source_traits_of

FILES = ("folder", "file", "")
"""Types of sources that are read from the disk, file by file; the last is that of a tree made by hand."""

FOLDER = ".metatree"
"""Name of the folder that a tree lives in, beside its source."""

_ENDS = ("/", "::", "#")
_REMOTE = re.compile(r"\s*(?:https?|postgres(?:ql)?)://", re.IGNORECASE)


def refuse_link_out(place: Path) -> None:
    """Refuse a name that a link leads out of the folder that it is in: `build CLONE/*` names what a clone brought.

    So is one that a link leads to what is left out of a tree, as a folder of keys is: nobody has named that.

    Raises:
        UserError: the message says where it leads.
    """
    folders = {".git", FOLDER}
    hidden = folders & {*real(place).parts} - {*place.absolute().parts}
    if hidden:
        raise UserError(
            f"{str(place)!r} is a link that leads into {hidden.pop()!r}: what lies there is in no tree"
        )
    if not place.is_absolute() and link_astray(place):
        raise UserError(
            f"{str(place)!r} is a link that leads to {str(real(place))!r}: name that to have it read"
        )
    if is_link_to_secret(place):
        raise UserError(
            f"{str(place)!r} is a link to {str(real(place))!r}, which is left out: name that to have it read"
        )


def source_record(source: SourceRef, folder: Path | None) -> dict[str, Any]:
    """Return how a source is kept: relative to the folder of the tree when both can be moved together.

    That is when the tree lies in the source, or in a `.metatree` beside or above it. So is the folder in which a
    command was named, but for one above the tree: it would be another where the tree is moved.
    """
    options = dict(source.options)
    if isinstance(options.get(NAMED_IN), str):
        options[NAMED_IN] = _kept_path(Path(options[NAMED_IN]), folder, up=False)
    mount = {"mount": source.mount} if source.mount else {}
    if not is_path(source):
        return {"type": source.type, "location": source.location, "options": options, **mount}
    place = Path(source.location).absolute()  # not to follow what was put there since it was named
    return {"type": source.type, "place": _kept_path(place, folder), "options": options, **mount}


def _kept_path(place: Path, folder: Path | None, *, up: bool = True) -> str:
    if folder is not None:
        folder = folder.resolve()
        beside = folder.name == FOLDER and place.is_relative_to(folder.parent)
        if beside or (up and folder.is_relative_to(place)):
            return os.path.relpath(place, folder)
    return str(place)


def sources_of(layer: Layer, folder: Path) -> list[SourceRef]:
    """Return what a layer was built from; `folder` is where its tree is kept, by its path without links."""
    return [source_from_record(record, folder) for record in layer.fact("sources") or []]


def source_from_record(record: dict[str, Any], folder: Path) -> SourceRef:
    """Return a source as it was kept; `folder` is where its tree is kept, by its path without links."""
    place, options = record.get("place"), record["options"]
    location = record["location"] if place is None else os.path.normpath(folder / place)
    if isinstance(named_in := options.get(NAMED_IN), str):
        options = {**options, NAMED_IN: os.path.normpath(folder / named_in)}
    return SourceRef(location, options, record.get("mount", ""), record["type"])


def public_location(location: str) -> str:
    """Return a location as it may be shown: without the password, if it is an address that has one.

    Example:
        >>> public_location("postgresql://ann:secret@db.example.org/shop?password=x&sslmode=require")
        'postgresql://ann:***@db.example.org/shop?password=***&sslmode=require'
    """
    if "://" not in location:
        return location
    masked = re.sub(r"(://[^/?#@:]*):[^/?#]*@", r"\1:***@", location)
    return re.sub(r"(?i)([?&](?:\w*password|passwd|pwd|token|secret|api_?key)=)[^&#]*", r"\1***", masked)


def is_path(source: SourceRef) -> bool:
    """Whether a source is a file or folder of this machine; its location is then a path of the system."""
    return source.type in FILES or Path(source.location).is_absolute()


def real_place(source: SourceRef) -> Path:
    """Return where a source on this machine is, without links; a file that is a source by itself may be one."""
    place = Path(source.location)
    return place.parent.resolve() / place.name if source.type == "file" else place.resolve()


def check_place(source: SourceRef) -> None:
    """Refuse a source that was put in the place of the one which the tree was built from, by a link to another folder.

    Sources are kept without links, so one that is met now came later: with what git brought, for example.

    A path is kept whole. One that depends on the current folder came with a tree of somebody else.

    Raises:
        UserError: the message says where it leads.
    """
    path = source.location.removeprefix(f"{source.type}:")
    odd = source.type not in FILES and (path != path.strip() or path.lower().startswith(f"{source.type}:"))
    if odd:  # a type may take blanks off, or its name in capital letters, and then find another path
        raise UserError(
            f"{source.location!r} is not as metatree keeps a source, so it is not read: build the tree again"
        )
    if is_no_path(source.type, path):
        return
    if not is_path(source) and is_here(typed_path(path)):
        raise UserError(
            f"{source.location!r} would be looked for in whatever folder is current, so it is not read: build the"
            " tree again"
        )
    if is_path(source) and (place := real_place(source)) != Path(source.location):
        raise UserError(
            f"{source.location!r} leads to {str(place)!r} now, and did not when the tree was built: it is not read;"
            " build the tree again if that is meant"
        )


def check_kept(source: SourceRef) -> None:
    """Refuse a source that metatree kept, or shows, where it is a link by now, also the file of one: nobody named that.

    Raises:
        UserError: as `check_place`.
    """
    check_place(source)
    place = Path(source.location)
    if is_path(source) and real(place) != place:
        raise UserError(
            f"{str(place)!r} is a link to {str(real(place))!r} now: it is not read; build that by its name if it is"
            " meant"
        )


def known_source(source: SourceRef) -> SourceRef:
    """Return a source that metatree kept, or shows, as a build may be given it again. Raises as `check_kept`."""
    check_kept(source)
    if (
        not source.type
    ):  # of a tree made by hand, and read as files, whatever type a build would find for the place
        return replace(source, type="file" if Path(source.location).is_file() else "folder")
    if source.type in FILES:
        return source
    traits = source_traits_of(load_source_type(source.type))
    return replace(source, options=traits.known_options(source))


def is_no_path(kind: str, location: str) -> bool:
    """Whether a type of sources takes a location for an address, or for a command, whatever files there are here.

    A clone may have a file called `uvx server`, or a folder `https:`, in the place of what the user has named.
    """
    if kind in FILES or kind not in plugins.names(plugins.SOURCES):
        return False
    traits = source_traits_of(load_source_type(kind))
    if is_remote(location):
        return not traits.on_disk
    return traits.command and (not {"/", "\\"} & set(location) or len(location.split()) > 1)


def is_remote(location: str) -> bool:
    """Whether a location is an address of a kind that is never taken for a path."""
    return _REMOTE.match(location) is not None


def source_of(sources: Sequence[SourceRef], node_id: str) -> SourceRef | None:
    """Return the source whose ids begin like this one, None for the root above several sources."""
    for source in sources:
        rest = node_id.removeprefix(source.mount)
        if not source.mount or not rest or (len(rest) < len(node_id) and rest.startswith(_ENDS)):
            return source
    return None


def inner_path(source: SourceRef, path: str) -> str:
    """Return a path of content as the source knows it: without the mount, the file's own name for a single file."""
    if source.type == "file":
        return Path(source.location).name
    return path if not source.mount else path.removeprefix(source.mount).removeprefix("/")


def tree_path(source: SourceRef, inner: str) -> str:
    """Return the id that a path of a source has in the tree; the inverse of `inner_path`."""
    if not source.mount or source.type == "file":
        return source.mount or inner
    return source.mount if inner == "." else f"{source.mount}/{inner}"


def disk_root(source: SourceRef) -> Path | None:
    """Return the folder that a source's files are read from, and nothing outside of it; None when it has no files.

    Raises:
        UserError: something else was put in its place; see `check_place`.
    """
    if source.type not in FILES:
        return None
    check_place(source)
    place = Path(source.location)
    return place.parent if source.type == "file" else place


def check_source(sources: Sequence[SourceRef], given: Sequence[SourceRef]) -> None:
    """Refuse to take a tree for one of other sources than it was built from.

    A folder that is not there any more was renamed or moved: then the tree may follow it to another path.

    Args:
        sources: what the tree was built from.
        given: what it is taken to be of.

    Raises:
        UserError: it is the tree of other sources, and one of these is still there.
    """
    existing = [source for source in sources if not is_path(source) or Path(source.location).exists()]
    if existing and not any(_is_same(source, other) for source in existing for other in given):
        raise UserError(
            f"this tree is of {_listed(sources)}, not of {_listed(given)}: put them into one tree with"
            " `metatree build --add …`, or choose another --tree (`out` of build_tree)"
        )


def _is_same(source: SourceRef, other: SourceRef) -> bool:
    if is_path(source) and is_path(other) and Path(other.location).exists():
        return Path(source.location).samefile(other.location)
    return (source.type, source.location) == (other.type, other.location)


def _listed(sources: Sequence[SourceRef]) -> str:
    return ", ".join(repr(_source_text(source)) for source in sources)


def _source_text(source: SourceRef) -> str:
    """Return a source as it is given: with its type where its location does not say it."""
    plain = is_path(source) or "://" in source.location
    return public_location(source.location) if plain else f"{source.type}:{source.location}"
