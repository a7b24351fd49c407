"""What is plugged in: every entry point of metatree, its package, what it provides, or why it cannot be used."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from metatree import plugins
from metatree.errors import UserError
from metatree.tools.tool import Tool, ToolGroup, ToolTree
from metatree.trees.source_types import traits_of

GROUPS: Final = (
    plugins.MEMORY_TYPES,
    plugins.SOURCES,
    plugins.TOOLS,
    plugins.ROUTERS,
    plugins.EVIDENCE,
    "metatree.builders",
)
_SHOWN: Final = 8


@dataclass(frozen=True, slots=True)
class Plugin:
    """One entry point."""

    group: str
    name: str
    object: str
    """`MODULE:NAME`; empty for what a program registered."""
    package: str
    version: str
    """Of the package."""
    provides: str
    """What it is, in a few words; empty when it cannot be loaded."""
    tools: tuple[str, ...] = ()
    """Ids of the tools that it brings."""
    error: str = ""
    """Why it cannot be used; the rest works without it."""


def catalogue() -> list[Plugin]:
    """Return every plug-in, each one imported and made as a build or a search would do it. Nothing is raised."""
    return [plugin for group in GROUPS for plugin in _of_group(group)]


def _of_group(group: str) -> Iterator[Plugin]:
    entries = plugins.available(group)
    for name in sorted(plugins.names(group)):
        entry = entries.get(name)
        package = version = target = ""
        if entry is not None:
            target = entry.value
            package = entry.dist.name if entry.dist is not None else ""
            version = entry.dist.version if entry.dist is not None else ""
        about = (group, name, target, package or "this program", version)
        try:
            provides, tools = _provides(group, name)
        except UserError as exc:
            yield Plugin(*about, "", error=str(exc))
        except Exception as exc:  # whatever somebody else's code raises
            yield Plugin(*about, "", error=f"{type(exc).__name__}: {exc}")
        else:
            yield Plugin(*about, provides, tools)


def _provides(group: str, name: str) -> tuple[str, tuple[str, ...]]:
    """Return what a plug-in is, and its tools.

    Raises:
        UserError: it cannot be imported or made, or is not what its group asks for.
    """
    if group == plugins.TOOLS:
        part = plugins.load(group, name)
        if not isinstance(part, Tool | ToolGroup) and callable(part) and inspect.signature(part).parameters:
            return f"tools that depend on the tree: {_words(part)}", ()
        entries = tools_of(name)
        ToolTree(entries)
        tools = tuple(tool.id for entry in entries for tool in _tools(entry))
        return _listed(tools) if tools else "no tools", tools
    if group not in plugins.PARTS:
        return _words(plugins.load(group, name)), ()
    kind = plugins.instance(group, name)
    ToolTree(traits_of(kind).tools)
    tools = tuple(tool.id for entry in traits_of(kind).tools for tool in _tools(entry))
    words = _words(type(kind))
    return f"{words}; {_listed(tools)}" if tools else words, tools


def tools_of(name: str) -> Sequence[Tool | ToolGroup]:
    """Return the tools of a plug-in of `metatree.tools`, which is a tool, a group, several, or a function for such.

    Raises:
        UserError: it cannot be imported, or gives something else.
    """
    part = plugins.load(plugins.TOOLS, name)
    try:
        if not isinstance(part, Tool | ToolGroup) and callable(part):
            part = part()
        entries = (part,) if isinstance(part, Tool | ToolGroup) else tuple(part)
    except Exception as exc:
        raise UserError(
            f"the plug-in {name!r} of {plugins.TOOLS!r} cannot be used: {type(exc).__name__}: {exc}"
        ) from exc
    for entry in entries:
        if not isinstance(entry, Tool | ToolGroup):
            raise UserError(
                f"the plug-in {name!r} of {plugins.TOOLS!r} gives {entry!r}, which is no tool: decorate it with @tool"
            )
    return entries


def _tools(entry: Any) -> Iterator[Tool]:
    if isinstance(entry, Tool):
        yield entry
    elif isinstance(entry, ToolGroup):
        for inner in entry.tools:
            yield from _tools(inner)


def _listed(names: Sequence[str]) -> str:
    listed = ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
    return f"{len(names)} tool{'' if len(names) == 1 else 's'}: {listed}"


def _words(part: Any) -> str:
    """Return the first sentence of a docstring."""
    paragraph = (getattr(part, "__doc__", None) or "").strip().partition("\n\n")[0]
    line = " ".join(paragraph.split())
    first = line.partition(". ")[0].rstrip(".")
    return first or type(part).__name__
