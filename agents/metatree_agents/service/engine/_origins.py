"""Where a memory is from: what the answer quoted that somebody promoted, given with it while the sources still say so.

Otherwise an answer with a file and lines would become hearsay by being called helpful.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from metatree_memory_tools.text.document_place import document_place

from metatree import Node, Tree
from metatree.errors import MetatreeError
from metatree.trees.text import line_in_file

_ATTRIBUTE: Final = "from"
_MOST: Final = 5
_QUOTE_CHARS: Final = 4_000


def keep_origins(tree: Tree, memory: str, sources: Sequence[Mapping[str, Any]]) -> None:
    """Keep with a memory what the sources of an answer quote, each with the id of its node."""
    node = tree.get(memory)
    found = list(_origins(node))
    for source in sources:
        quote, its = (
            str(source.get("Quote") or "").strip()[:_QUOTE_CHARS],
            tree.find(source.get("Node") or ""),
        )
        # What another memory said is from where that one is from, which stands beside it among the sources.
        if quote and its is not None and its.id != memory and "who" not in its.provenance:
            found.append({"node": its.id, "quote": quote})
    kept = [each for number, each in enumerate(found) if each not in found[:number]][:_MOST]
    if kept != _origins(node):
        tree.update(replace(node, attributes={**node.attributes, _ATTRIBUTE: kept}))


def with_origins(tree: Tree, sources: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the sources of an answer with those that its memories are from.

    The first of them takes the number of its memory, so that the `[1]` of the answer leads to the file; the memory, and
    what else it is from, are counted on.
    """
    last = max((int(each.get("Number") or 0) for each in sources), default=0)
    there = {each.get("Node") for each in sources}
    given: list[dict[str, Any]] = []
    for source in sources:
        memory = tree.find(source.get("Node") or "")
        origins = [] if memory is None else [row for each in _origins(memory) if (row := _source(tree, each))]
        for number, origin in enumerate(each for each in origins if each["Node"] not in there):
            first = number == 0 and source.get("Number")
            last += not first
            given.append({**origin, "Number": source["Number"] if first else last})
            if first:
                last += 1
                source = {**source, "Number": last}
        given.append(source)
    return given


def place_in(tree: Tree, node: Node, quote: str) -> tuple[str, list[int]] | None:
    """Return the place of a quote in a node and its first and last line, None when the node does not say it now."""
    try:
        content = tree.content(node)
    except (MetatreeError, OSError):
        return None
    at = content.find(quote.strip())
    if at < 0 or not quote.strip():
        return None
    first = content.count("\n", 0, at) + 1
    lines = [first, first + quote.strip().count("\n")]
    if node.source is not None and node.source.type == "text":
        return node.source.path, [line_in_file(node.source, line) for line in lines]
    return node.path or node.id, lines


def _origins(node: Node) -> list[dict[str, str]]:
    kept = node.attributes.get(_ATTRIBUTE)
    rows = kept if isinstance(kept, list | tuple) else []
    return [
        {"node": str(each["node"]), "quote": str(each["quote"])}
        for each in rows
        if isinstance(each, dict) and {"node", "quote"} <= each.keys()
    ][:_MOST]


def _source(tree: Tree, origin: Mapping[str, str]) -> dict[str, Any] | None:
    node = tree.find(origin["node"])
    place = None if node is None else place_in(tree, node, origin["quote"])
    if node is None or place is None:
        return None
    where, lines = place
    document = document_place(node)
    pages = None if document is None else document[1]
    return {
        "Node": node.id,
        "Title": node.title,
        "Quote": origin["quote"],
        "Path": node.path,
        "SaidBy": "",
        "Place": where,
        "Lines": lines if document is None else None,
        "Pages": None if pages is None else list(pages),
    }
