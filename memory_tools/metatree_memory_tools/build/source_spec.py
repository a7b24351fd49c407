"""What a person means by a source: a folder, a file, or a location that an installed type reads; and its mount."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from metatree import plugins
from metatree._util.links import real
from metatree._util.named_file import is_here, is_of_here, refuse_name, typed_path
from metatree.errors import UserError
from metatree.trees.source_types import SourceRef, SourceType, load_source_type, source_traits_of
from metatree.trees.sources import (
    FILES,
    FOLDER,
    is_no_path,
    is_path,
    is_remote,
    public_location,
    refuse_link_out,
)
from metatree_memory_tools.trees.source import is_tree

Given = str | Path | SourceRef | Mapping[str, Any]
"""A source as `build_tree` takes it; a table describes an MCP server, as other hosts write it."""

_INTERPRETER = re.compile(r"(?:python[\d.]*|node|npx|uvx|uv|run|sh|bash|exec|bun|deno|java)(?:\.exe)?")
_MOUNT_CHARS = 60
_ADDRESS = re.compile(r"\s*[a-z][a-z0-9+.-]*://", re.IGNORECASE)
"""How any address begins, also one of a plug-in."""


def located(given: Sequence[Given], options: dict[str, Any], kept_in: Path | None = None) -> list[SourceRef]:
    """Return the sources that are meant, each with its type, an absolute path where it is one, and a mount.

    The only source keeps an empty mount when it is a folder of files.

    Args:
        given: paths, `TYPE:LOCATION`, locations that an installed type recognises, or sources.
        options: those of folders and files; a source's own go before them.
        kept_in: where the tree is kept: given as a source, that is a folder, and not the tree of another.

    Raises:
        UserError: there is no such path, and no type knows the location.
    """
    sources: list[SourceRef] = []
    for source in (_as_kept(_typed(each, kept_in)) for each in given):
        if source.type in FILES:
            source = replace(source, options={**options, **source.options})
        if (source.type, source.location) not in {(known.type, known.location) for known in sources}:
            sources.append(source)
    if len(sources) == 1 and sources[0].type == "folder" and not sources[0].mount:
        return sources
    for source in sources:
        check_mount(source.mount)
    return sources


def mounted(sources: Sequence[SourceRef], known: Iterable[SourceRef]) -> list[SourceRef]:
    """Return the sources with a mount each, different from all others: the one that it has in `known`, if any."""
    if len(sources) == 1 and sources[0].type == "folder" and not sources[0].mount:
        return list(sources)
    before = {(source.type, source.location): source.mount for source in known if source.mount}
    wanted = [source.mount or before.get((source.type, source.location), "") for source in sources]
    taken = {mount for mount in wanted if mount}
    if len(taken) < sum(1 for mount in wanted if mount):
        raise UserError(f"two sources have the same mount, of {sorted(wanted)}: give each another one")
    result = []
    for source, mount in zip(sources, wanted, strict=True):
        name = mount
        number = 1
        while not name or (not mount and name in taken):
            base = mount_name(source)
            name = base if number == 1 else f"{base}-{number}"
            number += 1
        taken.add(name)
        result.append(replace(source, mount=name))
    return result


def mount_name(source: SourceRef) -> str:
    """Return a short name for a source, of letters, digits, `.`, `_` and `-`; never a password out of a URL.

    Example:
        >>> mount_name(SourceRef("/home/me/docs", type="folder"))
        'docs'
        >>> mount_name(SourceRef("postgresql://me:secret@db.example.org/shop", type="database"))
        'shop'
    """
    location = source.location
    if "://" in location:
        parts = urlsplit(location)
        path = parts.path.strip("/").rpartition("/")[2]
        location = path or parts.hostname or parts.scheme
    elif is_path(source):
        place = Path(location)
        location = place.parent.name if place.name == FOLDER else place.name
    else:
        location = _program(location)
    name = re.sub(r"[^\w.-]+", "-", location)[:_MOUNT_CHARS].strip("-")
    return name if name.strip(".") else (source.type or "source")


def _program(command: str) -> str:
    """Return what a command line runs: the program, or what an interpreter or a package runner is told to run.

    Example:
        >>> _program("/usr/bin/npx -y @acme/weather-server --fast")
        'weather-server'
        >>> _program("'/opt/my tools/weather' --fast")
        'weather'
    """
    try:
        words = shlex.split(command)
    except ValueError:  # a quote that is not closed
        words = command.split()
    names = [word.rpartition("/")[2] for word in words if not word.startswith("-")]
    other = (name for name in names if not _INTERPRETER.fullmatch(name))
    return next(other, names[0] if names else "")


def check_mount(mount: str) -> None:
    """Raise `UserError` for a name that cannot begin ids."""
    if mount and (re.search(r"[^\w. -]", mount) or not mount.strip(". ")):
        raise UserError(f"{mount!r} cannot be a mount: use letters, digits, '.', '_', '-'")


def _as_kept(source: SourceRef) -> SourceRef:
    """Return a source with the location and options that are written down, if its type has a say in them."""
    if source.type in FILES:
        return source
    traits = source_traits_of(load_source_type(source.type))
    options = traits.kept_options(source)
    return replace(source, location=traits.kept_location(source.location), options=options)


def _typed(given: Given, kept_in: Path | None) -> SourceRef:
    """Return a source with its type and, when it is a path, its absolute location."""
    if isinstance(given, Mapping):
        from metatree_memory_tools.mcp_server import mcp_source

        return mcp_source(given)
    source = given if isinstance(given, SourceRef) else SourceRef(str(given))
    location = source.location
    if not location.strip():
        raise UserError("a source is empty: give a folder, a file, or another location")
    if source.type:
        return _read_by(source, source.type, location)
    if is_remote(location):
        refuse_name(location, "an address")
        return _addressed(source)
    place = _path(location)
    here = is_here(place)
    if here and not _is_seen(place):  # `build *` names it too, and it may be called `mcp:PROGRAM`
        raise UserError(
            f"{location!r} is a link that leads to nothing, or cannot be looked at: give a folder or a file"
        )
    refuse_link_out(place)
    name, mark, rest = location.partition(":")
    plain = not isinstance(given, Path) and not rest.startswith("//")
    named = plain and mark and rest and not here
    kinds = {kind.lower(): kind for kind in ("folder", "file", *plugins.names(plugins.SOURCES))}
    if named and name.lower() in kinds:
        refuse_name(location, "TYPE:LOCATION")
        return _read_by(source, kinds[name.lower()], rest.strip())
    if place.is_dir():
        place = place.resolve()
        is_other_tree = place != kept_in and is_tree(place)
        return replace(source, type="tree" if is_other_tree else "folder", location=str(place))
    there = place.exists()
    # What is neither file nor folder is asked of nobody: to open a pipe is to wait for a writer.
    if place.is_file() if there else not (isinstance(given, Path) or is_of_here(location)):
        where = str(place.resolve()) if there else location
        for kind in source_types():
            if _recognises(kind, where):
                return replace(source, type=kind.name, location=where)
    if there:
        return replace(source, type="file", location=str(real(place)))
    if "://" in location:
        raise _unread(location)
    raise UserError(
        f"{public_location(location)!r} does not exist: give a folder or a file that the tree is to be built from"
    )


def _is_seen(place: Path) -> bool:
    try:
        return place.exists()
    except PermissionError:
        return False


def _addressed(source: SourceRef) -> SourceRef:
    """Return a source at an address with its type."""
    for kind in source_types():
        if _recognises(kind, source.location):
            return replace(source, type=kind.name)
    raise _unread(source.location)


def _unread(location: str) -> UserError:
    known = ", ".join(kind.name for kind in source_types()) or "none"
    return UserError(
        f"{public_location(location)!r} is an address that no installed type of sources reads (installed: {known}):"
        " save it to a folder first and build that"
    )


def _read_by(source: SourceRef, kind: str, location: str) -> SourceRef:
    named = location.removeprefix(f"{kind}:")
    if is_no_path(kind, named):
        return replace(source, type=kind, location=location)
    if is_remote(named) and kind in plugins.names(plugins.SOURCES):
        raise UserError(f"{location!r} is an address: give a file or a folder of {kind}")
    place = _path(named)
    refuse_link_out(place)
    if kind in ("folder", "file"):
        if not (place.is_dir() if kind == "folder" else place.is_file()):
            raise UserError(f"{location!r} is no {kind}: give the path of one")
        return replace(source, type=kind, location=str(place.resolve()))
    if kind not in plugins.names(plugins.SOURCES):
        known = ", ".join(plugins.names(plugins.SOURCES)) or "none"
        raise UserError(f"no type of sources {kind!r} is installed (installed: {known})")
    if not (source.mount or place.exists()):
        traits = source_traits_of(load_source_type(kind))
        if traits.on_disk:
            raise UserError(f"{location!r} does not exist: give a file or a folder of {kind}")
        if traits.file_or_address:
            raise UserError(f"{location!r} does not exist: give a file or an address of {kind}")
    where = str(place.resolve()) if place.exists() else location
    return replace(
        source, type=kind, location=shlex.quote(where) if kind == "mcp" and where != location else where
    )


def _path(location: str) -> Path:
    """Return a location as a path. Raises UserError where it is the address of a plug-in, too."""
    place = typed_path(location)
    if _ADDRESS.match(location):
        refuse_name(location, "an address")
    return place


def source_types() -> list[SourceType]:
    """Return the types of whole sources that are installed or registered; trees, which are databases too, first."""
    types = dict(plugins.instances(plugins.SOURCES))
    return sorted(types.values(), key=lambda kind: kind.name != "tree")


def _recognises(kind: SourceType, location: str) -> bool:
    try:
        return bool(kind.recognises(location))
    except Exception:  # a plug-in that fails here reads nothing, the others still do
        return False
