"""Trees, or the parts of them that people look at, as networkx graphs and as pictures (Mermaid, Graphviz)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

from metatree.node import Node
from metatree.trees.layer import ROOT

if TYPE_CHECKING:
    import networkx

DEPTH = 3
MOST = 200
"""Nodes of a picture, unless more are asked for: what has more cannot be read."""
LABEL_CHARS = 40


class Walkable(Protocol):
    """What a drawing needs of a tree; `Tree` is one."""

    def walk(self, node: str | Node, *, depth: int | None) -> Iterator[tuple[int, Node]]:
        """Yield a node and what lies under it, each parent before its children, with the depth below the start."""
        ...

    def child_count(self, node: str | Node) -> int:
        """Return the number of children of a node."""
        ...


def to_networkx(tree: Walkable, node: str | Node = ROOT, *, depth: int | None = None) -> networkx.DiGraph:
    """Return a directed graph of a node and what lies under it, edges from parent to child.

    Nodes are ids with the attributes `title`, `description`, `kind` and `depth`, in tree order; contents are left out.
    A node takes about 1 kB, so give a depth for a large tree.

    Raises:
        UnknownNode: the node is not in the tree.

    Example:
        >>> from metatree.testing.parts import tree_of
        >>> graph = to_networkx(tree_of({"a": {"a1": "x", "a2": "y"}, "b": "z"}))
        >>> list(graph.edges), graph.nodes["a1"]["depth"]
        ([('.', 'a'), ('.', 'b'), ('a', 'a1'), ('a', 'a2')], 2)
    """
    import networkx

    graph = networkx.DiGraph()
    for level, above, current in _walk(tree, node, depth):
        graph.add_node(
            current.id, title=current.title, description=current.description, kind=current.kind, depth=level
        )
        if above is not None:
            graph.add_edge(above, current.id)
    return graph


def to_mermaid(
    tree: Walkable, node: str | Node = ROOT, *, depth: int | None = DEPTH, most: int = MOST
) -> str:
    """Return a Mermaid flowchart of a node and what lies under it.

    What is left out, by depth or because there are more than `most` nodes, is counted in a dashed box.

    Example:
        >>> from metatree.testing.parts import tree_of
        >>> print(to_mermaid(tree_of({"a": "x"})))
        flowchart LR
          n0["memory"]
          n1["a"]
          n0 --> n1
    """
    lines = ["flowchart LR"]
    for name, above, label, left_out in _boxes(tree, node, depth, most):
        lines.append(f'  {name}["{_mermaid(label)}"]{":::more" if left_out else ""}')
        if above is not None:
            lines.append(f"  {above} {'-.->' if left_out else '-->'} {name}")
    if any(line.endswith(":::more") for line in lines):
        lines.append("  classDef more stroke-dasharray: 4")
    return "\n".join(lines)


def to_graphviz(
    tree: Walkable, node: str | Node = ROOT, *, depth: int | None = DEPTH, most: int = MOST
) -> str:
    """Return a Graphviz drawing (the DOT language) of a node and what lies under it; else as `to_mermaid`.

    Example:
        >>> from metatree.testing.parts import tree_of
        >>> print(to_graphviz(tree_of({"a": "x"})))
        digraph {
          rankdir=LR; node [shape=box];
          n0 [label="memory"];
          n1 [label="a"];
          n0 -> n1;
        }
    """
    lines = ["digraph {", "  rankdir=LR; node [shape=box];"]
    for name, above, label, left_out in _boxes(tree, node, depth, most):
        dashed = ", style=dashed" if left_out else ""
        lines.append(f'  {name} [label="{_dot(label)}"{dashed}];')
        if above is not None:
            lines.append(f"  {above} -> {name}{' [style=dashed]' if left_out else ''};")
    return "\n".join([*lines, "}"])


def _walk(tree: Walkable, node: str | Node, depth: int | None) -> Iterator[tuple[int, str | None, Node]]:
    """Yield depth, parent (None for the start) and node, each parent before its children."""
    trail: list[str] = []
    for level, current in tree.walk(node, depth=depth):
        del trail[level:]
        yield level, trail[-1] if trail else None, current
        trail.append(current.id)


def _boxes(
    tree: Walkable, node: str | Node, depth: int | None, most: int
) -> Iterator[tuple[str, str | None, str, bool]]:
    """Yield name, name of the box above, label, and whether it stands for what is left out."""
    names: dict[str, str] = {}
    child_counts: dict[str, int] = {}
    parents: list[str] = []
    for _, above, current in _walk(tree, node, depth):
        if len(names) >= most:
            break
        names[current.id] = name = f"n{len(names)}"
        parents.append(current.id)
        if above is not None:
            child_counts[above] = child_counts.get(above, 0) + 1
        yield name, None if above is None else names[above], current.title or current.id, False
    for number, parent in enumerate(parents):
        left_out = tree.child_count(parent) - child_counts.get(parent, 0)
        if left_out > 0:
            yield f"m{number}", names[parent], f"{left_out} more", True


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= LABEL_CHARS else text[: LABEL_CHARS - 1] + "…"


def _mermaid(text: str) -> str:
    """Return a text as Mermaid takes it between quotes: its own marks are written as entities."""
    marks: dict[str, Any] = {'"': "#quot;", "#": "#35;", "<": "#lt;", ">": "#gt;", "`": "#96;", "\\": "#92;"}
    return "".join(marks.get(character, character) for character in _short(text))


def _dot(text: str) -> str:
    return _short(text).replace("\\", "\\\\").replace('"', '\\"')
