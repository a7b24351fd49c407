"""The type of source: a server's tools and resources as nodes, and the tool tree that calls them.

Calls for which `readOnlyHint` is the only warrant are free by default, as in other hosts; `read_only="none"` is for
servers that are not trusted. Lost: asking for each call of every server (nobody reads the fiftieth question).
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

from metatree._util.secret_text import masked
from metatree.errors import UserError
from metatree.node import Node, Source
from metatree.tools.resource_pool import held
from metatree.tools.tool import Tool, ToolGroup
from metatree.trees.layer import ROOT
from metatree.trees.source_types import Progress, SourceRef
from metatree.trees.sources import NAMED_IN
from metatree.trees.tree import Tree
from metatree_memory_tools.mcp_server.address import ServerAddress
from metatree_memory_tools.mcp_server.connection import ServerConnection
from metatree_memory_tools.schema_tool import (
    SchemaTool,
    built_nodes,
    only_on,
    schema_text,
    usable_schema,
    with_origin,
)
from metatree_memory_tools.text.descriptions import cut_masked, first_sentence, shorten_masked, with_names
from metatree_memory_tools.web.addresses import AddressRules

TOOL_S = 60.0
MAX_CHARS = 20_000
KIND = "mcp tool"
_RESOURCE_CHARS = 1_000_000
_GROUPED_FROM = 8
_LEAST_IN_GROUP = 2
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")


class McpServer:
    """A server of the Model Context Protocol: `mcp:COMMAND …` or `mcp:https://…`.

    Options: `env`, `headers` and `cwd` as in the tables of other hosts; `read_only` says which tools may be called
    without permission: `hints` (the default) for those that the server says change nothing, `none`, or a list of
    names; `seconds` for one call; `allow_private` and `allow` for what its address may redirect to.
    """

    name = "mcp"
    version = "1"
    command = True

    def recognises(self, location: str) -> bool:
        """Whether a location begins with `mcp:`."""
        return location.lower().startswith("mcp:")

    def kept_options(self, source: SourceRef) -> Mapping[str, Any]:
        """Return options with the folder in which a command is started: where it was named, not where it is used.

        Else `python server.py` would be a program of whatever folder is current later, such as a clone.
        """
        options = source.options
        if ServerAddress.of(source.location, options).url:
            return options
        if folder := options.get("cwd"):
            return {**options, "cwd": os.path.abspath(os.path.expanduser(folder))}  # noqa: PTH100, PTH111
        return {NAMED_IN: str(Path.cwd()), **options}

    def known_options(self, source: SourceRef) -> Mapping[str, Any]:
        """Return options with the home for a command of which no folder is kept, or one that depends on another."""
        options, home = source.options, os.path.expanduser("~")  # noqa: PTH111
        if ServerAddress.of(source.location, options).url:
            return options
        if folder := options.get("cwd"):
            return {**options, "cwd": os.path.normpath(os.path.join(home, folder))}  # noqa: PTH118
        return {NAMED_IN: home, **options}

    def fingerprint(self, source: SourceRef) -> str | None:
        """Return None: only asking the server tells."""
        return None

    def nodes(
        self, source: SourceRef, *, progress: Progress | None = None
    ) -> Iterator[tuple[Node, str | None]]:
        """Yield the server, groups of its tools, the tools, and its resources."""
        read_only = _read_only(source)
        with _connection(source) as connection:
            listing = connection.listing()
        tools = list({tool.name: tool for tool in listing.tools}.values())
        names = [_line(tool.name, 60) for tool in tools]
        count = f"{len(tools)} tool{'' if len(tools) == 1 else 's'}, {len(listing.resources)} resources"
        description = (
            first_sentence(masked(listing.instructions.lstrip("# \n"))[0]) or f"An MCP server: {count}."
        )
        attributes: dict[str, Any] = {"tools": len(tools), "resources": len(listing.resources)}
        left_out = [f"{listing.left_out:,} further entries were left out"] if listing.left_out else []
        addresses = [str(each.uri) for each in listing.resources]
        addresses += [each.uri_template for each in listing.templates]
        if private := sum(not _is_public(each) for each in addresses):
            left_out.append(f"resources whose address holds a password were left out: {private}")
        if left_out:
            attributes["note"] = "; ".join(left_out)
        yield (
            Node(
                ROOT,
                _line(listing.name, 100) or "MCP server",
                with_names(description, "Tools", names),
                kind="mcp server",
                content=listing.instructions or None,
                attributes=attributes,
            ),
            None,
        )
        groups = grouped([tool.name for tool in tools])
        for title, members in groups.items():
            if title:
                described = with_names("", "Tools", [_line(name, 60) for name in members])
                yield Node(f"tools:{title}", f"Tools: {title} …", described, kind="group"), ROOT
        above = {name: f"tools:{title}" for title, members in groups.items() if title for name in members}
        for number, tool in enumerate(tools, start=1):
            yield _tool_node(tool, read_only), above.get(tool.name, ROOT)
            if progress is not None:
                progress(number, len(tools), tool.name)
        yield from self._resources(listing.resources, listing.templates)

    def _resources(
        self, resources: Sequence[Any], templates: Sequence[Any]
    ) -> Iterator[tuple[Node, str | None]]:
        if not resources and not templates:
            return
        unique = list({str(each.uri): each for each in resources if _is_public(str(each.uri))}.values())
        titles = [_line(each.title or each.name, 60) for each in unique]
        yield (
            Node(
                "resources",
                "Resources",
                with_names("What the server has to read.", "Among them", titles),
                kind="group",
            ),
            ROOT,
        )
        for each in unique:
            attributes = {"uri": str(each.uri), "media_type": masked(_line(each.mime_type or "", 100))[0]}
            title = _line(each.title or each.name or str(each.uri), 120)
            node = Node(
                f"resources/{each.uri}",
                title,
                shorten_masked(each.description or str(each.uri), 300),
                kind="resource",
                source=Source(type=self.name, path=str(each.uri)),
                attributes=attributes,
            )
            yield node, "resources"
        for each in templates:
            if not _is_public(each.uri_template):
                continue
            described = shorten_masked(each.description or "", 200)
            yield (
                Node(
                    f"resources/{each.uri_template}",
                    _line(each.title or each.name, 120),
                    f"{described} Address: {each.uri_template}".strip(),
                    kind="resource template",
                    attributes={"template": each.uri_template},
                ),
                "resources",
            )

    def content(self, source: SourceRef, ref: Source) -> str:
        """Return the text of a resource."""
        with _connection(source) as connection:
            text = connection.read(ref.path, seconds=_seconds(source))
        if len(text) > _RESOURCE_CHARS:
            return (
                f"{cut_masked(text, _RESOURCE_CHARS)}\n… cut: {len(text) - _RESOURCE_CHARS:,} more characters"
            )
        return text

    def tools_of(self, tree: Tree, source: SourceRef) -> Sequence[Tool | ToolGroup]:
        """Return a tool for each node of a tool; the server is not asked before one of them is called."""
        top = source.mount or ROOT
        tools = [_tool(source, node) for node in built_nodes(tree, source, KIND)]
        title = tree.get(top).title
        return [ToolGroup(f"mcp:{top}", title, f"The tools of {title}", tools)] if tools else []


def _tool(source: SourceRef, node: Node) -> Tool:
    name, free = str(node.attributes["tool"]), bool(node.attributes["read_only"])
    return SchemaTool(
        with_origin(partial(_call_free if free else _call_made, source, name), f"{source.location} {name}"),
        f"mcp:{source.mount or ROOT}:{name}",
        node.title,
        shorten_masked(node.content or node.description, 1_000),
        "exploratory" if free else "interactive",
        reuse="run",
        timeout_s=_seconds(source),
        max_chars=MAX_CHARS,
        changes=not free,
        repeatable=free or bool(node.attributes.get("repeatable")),
        schema=node.attributes["schema"],
        when=only_on(node.id),
        answers_outside_tree=True,
    )


def _call_free(source: SourceRef, name: str, arguments: dict[str, Any]) -> str:
    with _connection(source) as connection:
        return connection.call(name, arguments, seconds=_seconds(source))


def _call_made(source: SourceRef, name: str, arguments: dict[str, Any]) -> Node:
    """Call a tool that changes something; what it says becomes a node."""
    text = _call_free(source, name, arguments)
    if len(text) > MAX_CHARS:
        text = f"{cut_masked(text, MAX_CHARS)}\n… cut: {len(text) - MAX_CHARS:,} more characters"
    description = first_sentence(masked(text)[0]) or "It returned nothing."
    return Node("", f"Result of {name}", description, kind="tool result", content=text or "(nothing)")


def _connection(source: SourceRef) -> AbstractContextManager[ServerConnection]:
    address = ServerAddress.of(source.location, source.options)
    key = ("mcp", source.location, source.mount, json.dumps(dict(source.options), sort_keys=True))
    return held(key, lambda: ServerConnection(address, rules=AddressRules.of(source.options)))


def _tool_node(tool: Any, read_only: frozenset[str] | None) -> Node:
    hints = tool.annotations
    title = _line(tool.title or (hints.title if hints else None) or tool.name, 100)
    schema = usable_schema(tool.input_schema)
    hinted = hints is not None and hints.read_only_hint is True
    description = (tool.description or "").strip()
    arguments = schema_text(schema)
    parts = [description, f"Arguments:\n{arguments}" if arguments else ""]
    return Node(
        f"tools/{tool.name}",
        title,
        with_names(first_sentence(masked(description)[0]), "Arguments", list(schema.get("properties") or {})),
        kind=KIND,
        content=cut_masked("\n\n".join(part for part in parts if part), MAX_CHARS) or None,
        attributes={
            "tool": tool.name,
            "read_only": hinted if read_only is None else tool.name in read_only,
            "repeatable": hints is not None and hints.idempotent_hint is True,
            "schema": schema,
        },
    )


def grouped(names: Sequence[str]) -> dict[str, list[str]]:
    """Return names by the word that several of them begin with; '' for those without, and for all when they are few.

    Example:
        >>> grouped([f"{what}_{thing}" for what in ("list", "get") for thing in "abcd"] + ["ping"])["get"]
        ['get_a', 'get_b', 'get_c', 'get_d']
    """
    if len(names) < _GROUPED_FROM:
        return {"": list(names)}
    words = [[word.lower() for word in _WORD.findall(name)] for name in names]
    first = Counter(each[0] for each in words if each)
    # Where all begin with the server's name, the next word tells them apart.
    place = 1 if len(first) == 1 and all(len(each) > 1 for each in words) else 0
    count = Counter(each[place] for each in words if len(each) > place)
    groups: dict[str, list[str]] = {"": []}
    for name, each in zip(names, words, strict=True):
        word = each[place] if len(each) > place else ""
        groups.setdefault(word if count[word] >= _LEAST_IN_GROUP else "", []).append(name)
    return {"": list(names)} if len(groups) <= 2 else groups


def _is_public(address: str) -> bool:
    """Whether an address holds no password: it is the id of its node, and shown wherever that is."""
    return not masked(address)[1]


def _line(text: str, most: int) -> str:
    return shorten_masked("".join(char if char.isprintable() else " " for char in text), most)


def _seconds(source: SourceRef) -> float:
    seconds = source.options.get("seconds", TOOL_S)
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds <= 3_600:
        raise UserError(f"seconds={seconds!r}: give a number of seconds, at most 3600")
    return float(seconds)


def _read_only(source: SourceRef) -> frozenset[str] | None:
    """Return the tools that need no permission; None for those that the server names."""
    given = source.options.get("read_only", "hints")
    if given == "hints":
        return None
    if given == "none":
        return frozenset()
    if (
        isinstance(given, Sequence)
        and not isinstance(given, str)
        and all(isinstance(name, str) for name in given)
    ):
        return frozenset(given)
    raise UserError(f"read_only={given!r}: give 'hints', 'none' or a list of names of tools")
