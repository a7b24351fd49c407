"""Tools that a request needs, among hundreds or thousands (MetaTool, StableToolBench, LiveMCPBench, RestBench)."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.retrieval.collection import Collection
from benchmarks.retrieval.dataset import Corpus, Options, Query, rows
from metatree import Node


def _queries(file: Path) -> list[Query]:
    return [Query(row["id"], row["query"], frozenset(row["gold"])) for row in rows(file)]


def _plain(*fields: str | None) -> str:
    """Join fields for the baseline, names with underscores cut apart."""
    return " ".join(field or "" for field in fields).replace("_", " ")


def _tool(row: dict[str, Any], name: str, description: str | None, parameters: list[str]) -> Node:
    content = f"Parameters: {', '.join(parameters)}" if parameters else None
    return Node(id=row["id"], title=name, description=description or "", content=content, kind="tool")


def _plugins(options: Options, queries: str) -> Corpus:
    """A flat list of plug-ins with a name, a description, and at times instructions for a model."""
    folder = options.data / "tools"
    corpus = Corpus([], {}, _queries(folder / f"metatool_{queries}.jsonl"), accept=("tool",))
    for row in rows(folder / "metatool_corpus.jsonl"):
        about = row["description"] or ""
        node = Node(
            id=row["id"],
            title=row["name"],
            description=about,
            content=row["description_for_model"] or None,
            kind="tool",
        )
        corpus.nodes.append((node, "."))
        corpus.texts[row["id"]] = f"{row['name']} {about}"
    return corpus


def _apis(options: Options) -> Corpus:
    """Categories, the tools in them, the calls of each tool."""
    folder = options.data / "tools"
    corpus = Corpus([], {}, _queries(folder / "stabletoolbench.jsonl"), accept=("tool",))
    known: set[str] = set()
    for row in rows(folder / "stabletoolbench_corpus.jsonl"):
        category, group = row["category"], f"{row['category']}/{row['tool']}"
        if category not in known:
            corpus.nodes.append((Node(id=category, title=category, kind="group"), "."))
        if group not in known:
            about = row["tool_description"] or ""
            corpus.nodes.append(
                (Node(id=group, title=row["tool"], description=about, kind="group"), category)
            )
        known |= {category, group}
        corpus.nodes.append(
            (_tool(row, row["api"], row["description"], row["required"] + row["optional"]), group)
        )
        corpus.texts[row["id"]] = _plain(row["tool"], row["api"], row["description"])
    return corpus


def _servers(options: Options) -> Corpus:
    """The tools of many MCP servers."""
    folder = options.data / "tools"
    corpus = Corpus([], {}, _queries(folder / "livemcpbench.jsonl"), accept=("tool",))
    known: set[str] = set()
    for row in rows(folder / "livemcpbench_corpus.jsonl"):
        server = row["server"]
        if server not in known:
            about = row["server_description"] or ""
            corpus.nodes.append((Node(id=server, title=server, description=about, kind="group"), "."))
            known.add(server)
        corpus.nodes.append((_tool(row, row["tool"], row["description"], row["params"]), server))
        corpus.texts[row["id"]] = _plain(server, row["server_description"], row["tool"], row["description"])
    return corpus


def _routes(options: Options) -> Corpus:
    """The routes of one HTTP interface, grouped by the first part of their path."""
    folder = options.data / "tools"
    corpus = Corpus([], {}, _queries(folder / "restbench_tmdb.jsonl"), accept=("tool",))
    known: set[str] = set()
    for row in rows(folder / "restbench_tmdb_corpus.jsonl"):
        group = "/" + row["path"].split("/")[1]
        if group not in known:
            corpus.nodes.append((Node(id=group, title=group, kind="group"), "."))
            known.add(group)
        about = f"{row['summary'] or ''}. {row['description'] or ''}"
        corpus.nodes.append((_tool(row, row["id"], about, row["params"]), group))
        corpus.texts[row["id"]] = _plain(row["path"], row["summary"], row["description"])
    return corpus


METATOOL_SINGLE = Collection(
    "metatool-single",
    "the one plug-in that is needed",
    partial(_plugins, queries="single"),
    ("Hit@1", "R@5"),
    {"Hit@1": 0.60},
)
METATOOL_MULTI = Collection(
    "metatool-multi",
    "both plug-ins that are needed",
    partial(_plugins, queries="multi"),
    ("R@5", "R@10"),
    {"R@5": 0.60},
)
STABLETOOLBENCH = Collection(
    "stabletoolbench", "the calls of 2,490 that are needed", _apis, ("R@5", "R@10"), {"R@5": 0.75}
)
LIVEMCPBENCH = Collection(
    "livemcpbench", "the tools of 70 servers that are needed", _servers, ("R@5", "R@10"), {"R@5": 0.65}
)
TMDB = Collection("tmdb", "the routes that are needed", _routes, ("R@5", "R@10"), {"R@5": 0.60})
