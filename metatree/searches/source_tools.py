"""The tools that a search offers besides those it was given: the tool trees of a tree's memory types, and plug-ins."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from metatree import plugins
from metatree.errors import UserError
from metatree.node import Node
from metatree.tools.tool import Tool, ToolGroup, ToolTree
from metatree.trees.layer import Layer
from metatree.trees.source_types import answers_outside_tree, load_memory_type, load_source_type, traits_of
from metatree.trees.sources import FILES, check_place
from metatree.trees.tree import Tree

Entry = Tool | ToolGroup
_log = logging.getLogger("metatree")


def with_own(tree: Tree, given: Sequence[Entry], own: bool | None, *, filled: bool) -> list[Entry]:
    """Return the tools of a search: the given ones, then those of the tree's types, then plug-ins.

    An entry with the id of an earlier one is left out, so a caller can put another tool in the place of a type's.

    Args:
        tree: the tree that is searched.
        given: the caller's.
        own: whether types and plug-ins are asked; None asks those of files only when `filled`, since every line of a
            file is in a node already, or when the type says that its tools tell more. On ten questions about this
            repository, offering them to rules made no call of a tool, and 224 calls of the router either way.
        filled: whether arguments are filled in otherwise than by the rules of the embedded tool caller.
    """
    if own is False:
        return list(given)
    entries = list(given)
    used_ids = {entry_id for entry in given for entry_id in _ids(entry)}
    files = filled if own is None else own
    # What a node of somebody else says leads elsewhere: a link of a page, the path of a file that was left out.
    here = [partial(_is_of_here, tree)]
    for entry in (*_of_types(tree, files=files), *_of_plugins(tree)):
        try:
            ToolTree([entry])
        except UserError as exc:
            _log.warning("the tools of %r are left out: %s", entry.id, exc)
            continue
        ids = set(_ids(entry))
        if not ids & used_ids:
            used_ids |= ids
            entries.append(_limited(entry, here))
    return entries


def _is_of_here(tree: Tree, node: Node) -> bool:
    return not tree.is_imported(node)


def _of_types(tree: Tree, *, files: bool) -> list[Entry]:
    """Return the tools of the types that a tree was built with, each limited to the nodes of its type."""
    entries: list[Entry] = []
    limits: list[list[Callable[[Node], bool]]] = []
    for kind, when in _types(tree, files=files):
        for entry in (*traits_of(kind).tools, *_of_sources(tree, kind)):
            if not isinstance(entry, Tool | ToolGroup):
                _log.warning(
                    "the type %r has %r among its tools: decorate it with @tool(kind=…)", kind.name, entry
                )
                continue
            same = next((i for i, known in enumerate(entries) if known is entry), None)
            if same is None:
                entries.append(entry)
                limits.append([when])
            else:  # several types share it
                limits[same].append(when)
    return [_limited(entry, whens) for entry, whens in zip(entries, limits, strict=True)]


def _of_sources(tree: Tree, kind: Any) -> Iterator[Any]:
    """Yield the tools that a type has for each of its sources in a tree; of one that fails, none, with a warning."""
    for source in tree.sources():
        if source.type == kind.name:
            try:
                check_place(source)
                yield from traits_of(kind).tools_of(tree, source)
            except Exception as exc:
                _log.warning("the tools of %r are left out: %s", source.location, exc)


def _types(tree: Tree, *, files: bool) -> Iterator[tuple[Any, Callable[[Node], bool]]]:
    """Yield the types of a tree's sources and files that are installed, each with what tells its nodes."""
    # An index of somebody else that cannot be written says what they wrote of servers: none of those is asked.
    sources = [] if tree.index.accepted else tree.sources()
    for name in dict.fromkeys(source.type for source in sources):
        if name not in FILES:
            try:
                yield load_source_type(name), partial(_is_of_source, tree, name)
            except UserError as exc:
                _log.warning("%s", exc)
    for name in _file_types(tree):
        try:
            kind = load_memory_type(name)
        except UserError as exc:
            _log.warning("%s", exc)
            continue
        if files or answers_outside_tree(kind):
            yield kind, partial(_is_of_file, tree, name)


def _file_types(tree: Tree) -> list[str]:
    """Return the names of the memory types that read the files of a tree."""
    if all(source.type not in FILES for source in tree.sources()):
        return []
    layer = Layer(tree.index)
    key = (layer.fact("generation"), layer.last_seq())
    cached = tree.scratch.get("file types")
    if cached is None or cached[0] != key:
        rows = tree.index.rows("SELECT DISTINCT reader FROM file")
        names = {row[0].rpartition(" ")[0] for row in rows if " " in row[0]} - {"huge"}
        cached = tree.scratch["file types"] = (key, sorted(names))
    names_in_order: list[str] = cached[1]
    return names_in_order


def _is_of_source(tree: Tree, name: str, node: Node) -> bool:
    source = tree.source_of(node) if node in tree else None
    return source is not None and source.type == name


def _is_of_file(tree: Tree, name: str, node: Node) -> bool:
    if node.kind == "folder":
        return node.path is not None
    reader = tree.index.value("SELECT reader FROM file WHERE path = ?", (node.path or "",))
    return str(reader or "").rpartition(" ")[0] == name


def _limited(entry: Entry, whens: Sequence[Callable[[Node], bool]]) -> Entry:
    if isinstance(entry, ToolGroup):
        return replace(entry, tools=tuple(_limited(inner, whens) for inner in entry.tools))
    own = entry.when

    def when(node: Node) -> bool:
        return (own is None or own(node)) and any(limit(node) for limit in whens)

    return replace(entry, when=when)


def _of_plugins(tree: Tree) -> Iterator[Entry]:
    """Yield the tools of the group `metatree.tools`: a tool, a group, several of them, or a function for such.

    The function may take the tree, to say which tools it has for this one.
    """
    for name, load in plugins.loaders(plugins.TOOLS):
        try:
            part = load()
            if not isinstance(part, Tool | ToolGroup) and callable(part):
                part = part(tree) if inspect.signature(part).parameters else part()
            entries = (part,) if isinstance(part, Tool | ToolGroup) else tuple(part)
        except (Exception, SystemExit) as exc:
            _log.warning("the plug-in %r of %r is left out: %s", name, plugins.TOOLS, exc)
            continue
        for entry in entries:
            if isinstance(entry, Tool | ToolGroup):
                yield entry
            else:
                _log.warning("the plug-in %r of %r gives %r, which is no tool", name, plugins.TOOLS, entry)


def _ids(entry: Entry) -> Iterator[str]:
    yield entry.id
    for inner in entry.tools if isinstance(entry, ToolGroup) else ():
        yield from _ids(inner)
