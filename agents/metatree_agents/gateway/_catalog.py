"""The tools of all servers as a tree: server, group, tool; found by the search, looked at page by page."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial
from typing import Any, Final

from metatree_memory_tools.mcp_server.source import KIND, grouped
from metatree_memory_tools.schema_tool import SchemaTool, schema_text, with_origin
from metatree_memory_tools.text.descriptions import first_sentence, shorten, with_names

from metatree import Limits, Node, Tree, asearch
from metatree._util.threads import in_thread
from metatree.errors import BadModelAnswer, UserError
from metatree.protocols import Evidence
from metatree_agents.gateway._names import plain_text, unique_names
from metatree_agents.gateway._upstreams import Definition, ToolList
from metatree_agents.gateway.servers_file import ServerEntry

MAX_DESCRIPTION: Final = 20_000
_FIRST_CHARS: Final = 2_000
"""Of a description that is the one of its node; the rest is content."""
_GROUPED_FROM: Final = 500
"""A server with fewer tools has them all below it: what they can do together counts when they are ranked. Lost: groups
by verb from 60 on (of the 199 tools of MetaTool, Hit@1 .46 for .49, two tools R@5 .67 for .73)."""
_SHOWN_CHARS: Final = 200
_SCHEMA_CHARS: Final = 1_200
"""Of one tool in a list; all of it is at the tool itself."""
_WORDY: Final = ("title", "examples", "$schema", "additionalProperties")
_ONLY: Final = 60
"""Characters of what is said of an argument, where a schema is cut."""
MOMENT_S: Final = 1.0
"""How long an answer may be used again that nobody said may: several agents that ask the same at the same moment."""


class GatewayTool(SchemaTool):
    """A tool of a server. Its arguments go there as they are given: the server knows its defaults."""

    def validated(self, arguments: object) -> dict[str, Any]:
        """Return arguments that fit the schema.

        Raises:
            BadModelAnswer: they do not; the message says which and lists what there is.
        """
        if not isinstance(arguments, Mapping):
            raise BadModelAnswer(f"arguments must be an object, not {type(arguments).__name__}")
        try:
            given: dict[str, Any] = json.loads(json.dumps(dict(arguments)))
        except (TypeError, ValueError, RecursionError) as exc:
            raise BadModelAnswer(f"arguments must be JSON: {exc}") from exc
        wrong = self._wrong(given)
        if wrong:
            lines = _argument_lines(self.schema) or "none"
            raise BadModelAnswer(f"{'; '.join(wrong)}. Its arguments are:\n{plain_text(lines)[:3_000]}")
        return given


def _argument_lines(schema: Mapping[str, Any]) -> str:
    """Return the arguments of a tool a line each, and those within them: `body.item`, `entities[].name`."""
    lines = [schema_text(schema)]
    for name, about in (schema.get("properties") or {}).items():
        inner = _referred(about, schema)
        if isinstance(inner, Mapping) and isinstance(inner.get("items"), Mapping):
            name, inner = f"{name}[]", _referred(inner["items"], schema)
        if isinstance(inner, Mapping) and isinstance(inner.get("properties"), Mapping):
            needed = inner.get("required")
            within = {
                "properties": {f"{name}.{key}": value for key, value in inner["properties"].items()},
                "required": [f"{name}.{key}" for key in needed] if isinstance(needed, list) else [],
            }
            lines.append(schema_text(within))
    return "\n".join(line for line in lines if line)


def _referred(about: Any, schema: Mapping[str, Any]) -> Any:
    """Return what a part of a schema refers to by name, else the part itself."""
    name = about.get("$ref") if isinstance(about, Mapping) else None
    kinds = schema.get("$defs")
    if not isinstance(name, str) or not isinstance(kinds, Mapping):
        return about
    return kinds.get(name.removeprefix("#/$defs/"), about)


@dataclass(frozen=True, slots=True)
class Mounted:
    """A tool in its place."""

    server: str
    definition: Definition
    tool: GatewayTool
    twice: bool = False
    """Whether the server lists several tools of this name, so that nobody knows which one is called."""

    @property
    def id(self) -> str:
        return self.tool.id


class Catalog:
    """The tools that are mounted.

    Args:
        parts: router and so on, as `search` takes them; the embedded ones when empty.
    """

    def __init__(self, parts: Mapping[str, Any] | None = None) -> None:
        self.tree = Tree.create(":memory:", title="Tools")
        self._parts = dict(parts or {})
        self._evidence: Evidence | None = None
        self._tools: dict[str, dict[str, Mounted]] = {}
        self._lock = asyncio.Lock()

    def close(self) -> None:
        self.tree.close()

    def __len__(self) -> int:
        return sum(map(len, self._tools.values()))

    def tools_of(self, server: str) -> list[Mounted]:
        """Return the tools of a server, in its order."""
        return list(self._tools.get(server, {}).values())

    def get(self, tool_id: str) -> Mounted:
        """Return a tool by its id, or by its name where one server alone has it.

        Raises:
            UserError: there is none; the message has those that come closest.
        """
        server, _, _ = tool_id.strip().partition("/")
        mounted = self._tools.get(server, {}).get(tool_id.strip())
        if mounted is not None:
            return mounted
        named = [
            each
            for tools in self._tools.values()
            for each in tools.values()
            if each.definition.name == tool_id
        ]
        if len(named) == 1:
            return named[0]
        ids = [each for tools in self._tools.values() for each in tools]
        close = [each.id for each in named] or get_close_matches(tool_id, ids, 3, 0.5)
        hint = (
            f"; did you mean {', '.join(map(repr, close[:5]))}?"
            if close
            else "; look for it with `find_tools`"
        )
        raise UserError(f"there is no tool {tool_id!r}{hint}")

    async def mount(self, entry: ServerEntry, listing: ToolList) -> None:
        """Put the tools of a server into the tree, in the place of those it had."""
        mounted = _mounted(entry, listing)
        async with self._lock:
            self._tools[entry.name] = {each.id: each for each in mounted}
            await in_thread(partial(self._put, entry, listing, mounted))

    async def mount_nothing(self, entry: ServerEntry, problem: str) -> None:
        """Show a server whose tools are not known, unless it is there."""
        if entry.name not in self._tools:
            self._tools[entry.name] = {}
            async with self._lock:
                node = Node(entry.name, entry.name, f"It cannot be used: {problem}"[:300], kind="mcp server")
                await in_thread(partial(self.tree.add, node, "."))

    def _put(self, entry: ServerEntry, listing: ToolList, mounted: Sequence[Mounted]) -> None:
        wanted = {node.id: (node, parent) for node, parent in _nodes(entry, listing, mounted)}
        there = {node.id: node for _, node in self.tree.walk(entry.name)} if entry.name in self.tree else {}
        for node_id in there.keys() - wanted.keys():
            if node_id in self.tree:  # it may have gone with the group that it was in
                self.tree.delete(node_id)
        new = []
        for node_id, (node, parent) in wanted.items():
            if node_id not in self.tree:
                new.append((node, parent))
            elif _said(there[node_id]) != _said(node):
                self.tree.update(node)
        self.tree.add_many(new)

    async def find(self, request: str, k: int) -> list[Mounted]:
        """Return the tools that a request needs, the likeliest first; a request may have several steps, one a line."""
        steps = [line.strip(" -*\t") for line in request.splitlines()]
        steps = [step for step in steps if step]
        ranked = [await self._search(step, k) for step in steps[:10]]
        found: dict[str, Mounted] = {}
        for place in range(k):  # the best of each step, then the second of each
            for tools in ranked:
                if place < len(tools):
                    found.setdefault(tools[place].id, tools[place])
        return list(found.values())[: max(k, len(steps))]

    async def _search(self, request: str, k: int) -> list[Mounted]:
        async with self._lock:
            if self._evidence is None and self._parts.get("evidence") is None:
                from metatree_agents.gateway._ranking import ToolEvidence

                self._evidence = ToolEvidence(self.tree)
            result = await asearch(
                request,
                tree=self.tree,
                returns="nodes",
                k=k,
                accept=(KIND,),
                journal=":memory:",
                own_tools=False,
                limits=Limits(router_calls=200, seconds=60),
                **{"evidence": self._evidence, **self._parts},
            )
            found = [node.id for node in result.nodes]
            if (
                not found and self._evidence is not None
            ):  # a search follows words; meaning alone leads it nowhere
                found = [each.node_id for each in self._evidence.rank([request], k=k)]
        tools = (self._tools.get(node_id.partition("/")[0], {}).get(node_id) for node_id in found)
        return [each for each in tools if each is not None]


def shown(mounted: Mounted, *, whole: bool = False) -> str:
    """Return a tool as a model reads it: its id, what the server says of it, and its arguments."""
    definition = mounted.definition
    description = plain_text(definition.description)
    if not whole:
        description = shorten(" ".join(description.split()), _SHOWN_CHARS)
    marks = [] if definition.read_only else ["may change something"]
    if mounted.twice:
        marks.append("its server lists several tools of this name")
    head = f"{mounted.id} ({', '.join(marks)})" if marks else mounted.id
    schema = json.dumps(definition.schema, ensure_ascii=False, separators=(",", ":"))
    if not whole:
        schema = short_schema(definition.schema)
    return f"{head}\n  {json.dumps(description, ensure_ascii=False)}\n  {plain_text(schema)}"


def short_schema(schema: Mapping[str, Any], most: int = _SCHEMA_CHARS) -> str:
    """Return the properties and what is required of a schema as short JSON, cut to so many characters.

    Example:
        >>> short_schema({"type": "object", "title": "A", "properties": {"n": {"type": "integer", "title": "N"}}})
        '{"properties":{"n":{"type":"integer"}}}'
    """

    def text(value: object) -> str:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

    bare = {key: value for key, value in schema.items() if key not in ("type", *_WORDY)}
    for chars in (_SHOWN_CHARS, _ONLY, 0):
        made = text(_bare(bare, chars))
        if len(made) <= most:
            return made
    properties = schema.get("properties")
    names = {
        name: about.get("type", "any") if isinstance(about, Mapping) else "any"
        for name, about in (properties.items() if isinstance(properties, Mapping) else ())
    }
    made = text({"properties": names, "required": schema.get("required", [])})
    return f"{made[:most]}… (cut: browse_tools shows all of it)" if len(made) > most else made


def _bare(value: Any, chars: int, *, names: bool = False) -> Any:
    """Return a schema without words that tell a caller nothing, and descriptions of so many characters at most."""
    if isinstance(value, list):
        return [_bare(each, chars) for each in value]
    if not isinstance(value, Mapping):
        return value
    result = {}
    for key, each in value.items():
        if not names and key in _WORDY:
            continue
        if not names and key == "description" and isinstance(each, str):
            if not chars:
                continue
            each = shorten(" ".join(each.split()), chars)
        result[key] = _bare(each, chars, names=not names and key in ("properties", "$defs", "definitions"))
    return result


def _mounted(entry: ServerEntry, listing: ToolList) -> list[Mounted]:
    tools = list({each.version: each for each in listing.tools}.values())  # the very same one again is one
    counts = Counter(each.name for each in tools)
    result = []
    for shown_name, definition in zip(unique_names([each.name for each in tools]), tools, strict=True):
        twice = counts[definition.name] > 1
        if twice:  # which one is called, the server alone knows
            definition = replace(definition, read_only=False, repeatable=False)
        tool = GatewayTool(
            with_origin(partial(_not_here, entry.name), f"{entry.origin} {definition.name}"),
            f"{entry.name}/{shown_name}",
            definition.title or shown_name,
            definition.description[:MAX_DESCRIPTION],
            "exploratory" if definition.read_only else "interactive",
            definition.version,
            reuse="run" if not definition.read_only else entry.reuse or MOMENT_S,
            timeout_s=entry.seconds,
            changes=not definition.read_only,
            repeatable=definition.read_only or definition.repeatable,
            schema=definition.schema,
        )
        result.append(Mounted(entry.name, definition, tool, twice))
    return result


def _not_here(server: str, arguments: dict[str, Any]) -> None:
    raise AssertionError(f"the tools of {server!r} are called by the gateway")


def _nodes(entry: ServerEntry, listing: ToolList, mounted: Sequence[Mounted]) -> list[tuple[Node, str]]:
    names = [each.id.partition("/")[2] for each in mounted]
    about = first_sentence(plain_text(listing.instructions).lstrip("# \n")) or plain_text(listing.title)
    nodes = [
        (
            Node(
                entry.name,
                entry.name,
                shorten(about, 300) or with_names("", "Tools", names),
                kind="mcp server",
            ),
            ".",
        )
    ]
    groups = grouped(names) if len(names) >= _GROUPED_FROM else {"": names}
    above = {}
    for title, members in groups.items():
        if title:
            group = f"{entry.name}:{title}"
            nodes.append((Node(group, title, with_names("", "Tools", members), kind="group"), entry.name))
            above.update(dict.fromkeys(members, group))
    for each, name in zip(mounted, names, strict=True):
        first, rest = _described(each.definition)
        nodes.append((Node(each.id, name, first, rest or None, kind=KIND), above.get(name, entry.name)))
    return nodes


def _described(definition: Definition) -> tuple[str, str]:
    """Return the description of a node of a tool, and its content: together, all that its server says of it.

    Lost: the description cut to its first sentence, and the types of the arguments among the words, as they stand in
    the trees of `mcp:` sources (StableToolBench R@5 .70 and .69 for .72; for LiveMCPBench, with 38
    requests, nothing can be said).
    """
    first, _, rest = plain_text(definition.description).strip().partition("\n\n")
    first = " ".join(first.split())
    properties = definition.schema.get("properties")
    arguments = (
        {plain_text(name): about for name, about in properties.items()}
        if isinstance(properties, Mapping)
        else {}
    )
    lines = [definition.title, first[_FIRST_CHARS:], rest]
    if arguments:
        lines.append(f"Parameters: {plain_text(', '.join(arguments))}")
    for name, about in arguments.items():
        said = about.get("description") if isinstance(about, Mapping) else None
        if isinstance(said, str) and said:
            lines.append(plain_text(f"{name}: {said}"))
    return first[:_FIRST_CHARS], "\n\n".join(line for line in lines if line)[:MAX_DESCRIPTION]


def _said(node: Node) -> tuple[object, ...]:
    return (node.title, node.description, node.content, node.kind)
