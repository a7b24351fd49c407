"""What the web page shows of the tree: one node, a page of children, the way down to a node, what a search box finds.

All of it reads the tree, within `synced`, in a thread (`_readers.py`): it mostly takes some milliseconds.

Children are read by number, since the page says which of how many they are, as the ARIA tree wants, and opens the
tree at any node: a hundred of 100,000, from the middle, take 21 ms of CPU, and 0.2 s where something was remembered
over a built tree. Lost: a cursor, and `children`, which takes 0.6 and 0.8 s.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from metatree_memory_tools.text.descriptions import shorten
from metatree_memory_tools.text.document_place import document_place
from metatree_memory_tools.text.readable import markup_of, readable

from metatree import Node, Tree
from metatree.errors import MetatreeError

CHILDREN: Final = 100
LINES: Final = 400
AROUND: Final = 3
"""Messages before and after one that are shown with it."""
LINE_CHARS: Final = 2_000
LEAD_LINES: Final = 20
"""Of a text, those that its description may repeat."""
LINKS: Final = 30
WORD_CHARS: Final = 6
"""By how many characters a word is told in a line, whatever its ending."""
FOUND: Final = 30
LEAST_SHARE: Final = 0.4
"""Of the score of the best: what fits less is not listed."""
MARKUP_CHARS: Final = 20_000
"""How much of a text is looked at for its markup."""
DEEPEST: Final = 30
"""How many levels of the tree are shown above a node; a link leads to those above."""


@dataclass(frozen=True, slots=True)
class ChildRow:
    """A node as it is listed under its parent."""

    id: str
    title: str
    description: str
    kind: str
    count: int
    """How many children it has itself."""
    page: ChildPage | None = None
    """Its children, when it is shown open."""


@dataclass(frozen=True, slots=True)
class ChildPage:
    """Some of the children of a node."""

    parent: str
    start: int
    children: list[ChildRow]
    total: int

    @property
    def earlier(self) -> int | None:
        """Where the page before begins, None when this is the first."""
        return None if self.start == 0 else max(0, self.start - CHILDREN)

    @property
    def later(self) -> int | None:
        """Where the page after begins, None when this is the last."""
        end = self.start + len(self.children)
        return end if end < self.total and self.children else None


@dataclass(frozen=True, slots=True)
class ContentLine:
    """A line of the content of a node."""

    number: int
    text: str
    marked: bool


@dataclass(frozen=True, slots=True)
class NodeView:
    """A node as its page shows it."""

    node: Node
    trail: list[tuple[str, str]]
    """(id, title) from the root down to the parent."""
    page: ChildPage
    lines: list[ContentLine] = field(default_factory=list)
    first: int = 1
    """Number of the first line shown, counted from 1 within the content."""
    of: int = 0
    """How many lines the content has."""
    trouble: str = ""
    """Why there is no content to show, when there should be."""
    prose: bool = False
    """Whether the text is words, whose lines may be broken, and no code."""
    links: list[tuple[str, str, str, bool]] = field(default_factory=list)
    """(kind, id, title, whether it leaves this node)."""
    around: list[Node] = field(default_factory=list)
    """Of a message, itself and those before and after it."""

    @property
    def lead(self) -> str:
        """What is said of the node above its text; empty where the text begins with it."""
        said = " ".join(self.node.description.split())
        begins = " ".join(line.text for line in self.lines[:LEAD_LINES])
        return "" if " ".join(begins.split()).startswith(said.rstrip("… ")) else self.node.description

    @property
    def earlier(self) -> int | None:
        """Where the lines before these begin, None when these are the first."""
        return None if self.first <= 1 else max(1, self.first - LINES)

    @property
    def later(self) -> int | None:
        """Where the lines after these begin, None when these are the last."""
        return self.first + len(self.lines) if self.first + len(self.lines) <= self.of else None


def pdf_page_of(node: Node) -> int | None:
    """Return the page of a PDF on which a node begins; None for a node of no PDF."""
    first = node.attributes.get("first_page")
    is_pdf = (node.path or "").lower().endswith(".pdf")
    return (first if isinstance(first, int) else 1) if is_pdf else None


def children_of(tree: Tree, node: str, start: int = 0) -> ChildPage:
    """Return a page of the children of a node; raises `UnknownNode`."""
    total = tree.child_count(node)
    start = max(0, min(start, total))
    listed = tree.child_page(node, start=start, count=CHILDREN)
    counts = tree.child_counts([child.id for child in listed])
    return ChildPage(node, start, [_child(child, counts[child.id]) for child in listed], total)


def opened(tree: Tree, node: str, start: int | None = None) -> ChildRow:
    """Return the root with everything open on the way down to a node, and that node open; raises `UnknownNode`.

    Under each node of the way there is one page of children, the one with the next node of the way in it. Of a very
    long way, only the end is shown.

    Args:
        start: where the page of the node's own children begins.
    """
    way = [*tree.ancestors(node), node][-DEEPEST:]
    row = _opened_child(tree.get(node), children_of(tree, node, start or 0))
    for parent, child in zip(reversed(way[:-1]), reversed(way[1:]), strict=True):
        at = tree.child_number(child)
        page = children_of(tree, parent, at - at % CHILDREN)
        children = [row if each.id == child else each for each in page.children]
        row = _opened_child(tree.get(parent), ChildPage(parent, page.start, children, page.total))
    return row


def above(tree: Tree, top: ChildRow) -> tuple[str, int] | None:
    """Return the node above the top of what is shown, and how deep that top lies; None when it is the root."""
    way = tree.ancestors(top.id)
    return (way[-1], len(way)) if way else None


def shown(
    tree: Tree, node_id: str, *, quotes: Sequence[str] = (), first: int | None = None, start: int = 0
) -> NodeView:
    """Return what the page of a node shows; raises `UnknownNode`.

    Args:
        quotes: words of its content that are marked.
        first: number of the first line shown; None begins a little before the first that is marked.
        start: where the page of its children begins.
    """
    node = tree.get(node_id)
    above = tree.ancestors(node_id)
    known = titles(tree, above)
    trail = [(each, known.get(each, each)) for each in above]
    page, links = children_of(tree, node_id, start), _links(tree, node_id)
    around = _around(tree, node)
    if not node.has_content:
        return NodeView(node, trail, page, links=links, around=around)
    try:
        text = tree.content(node)
    except (MetatreeError, OSError) as error:
        return NodeView(node, trail, page, trouble=str(error), links=links, around=around)
    lines, marked = text.splitlines(), marked_lines(text, quotes)
    if first is None:
        first = max(1, min(marked) - 5) if marked else 1
    first = max(1, min(first, len(lines) or 1))
    offset = 0
    if node.source is not None and not node.source.parts and document_place(node) is None:
        offset = (node.source.start_line or 1) - 1
    window = [
        ContentLine(
            offset + number, line[:LINE_CHARS] + ("…" if len(line) > LINE_CHARS else ""), number in marked
        )
        for number, line in enumerate(lines[first - 1 : first - 1 + LINES], start=first)
    ]
    prose = _is_prose(node, text)
    return NodeView(node, trail, page, window, first, len(lines), prose=prose, links=links, around=around)


def _around(tree: Tree, node: Node) -> list[Node]:
    """Return a message of a conversation with some before and after it; nothing for other nodes."""
    parent = tree.parent(node.id) if node.kind == "turn" else None
    if parent is None:
        return []
    at = tree.child_number(node.id)
    first = max(0, at - AROUND)
    return list(tree.child_page(parent, start=first, count=at + AROUND + 1 - first))


def _is_prose(node: Node, text: str) -> bool:
    """Say whether a text is words: it has the markup of words, or it is of no file, or of one of plain text."""
    path = node.path or ""
    plain = not path or path.lower().endswith((".txt", ".pdf", ".docx", ".pptx", ".xlsx", ".epub", ".odt"))
    return plain or markup_of(text[:MARKUP_CHARS], path) in ("markdown", "rst", "html")


def marked_lines(text: str, quotes: Sequence[str]) -> set[int]:
    """Return the numbers of the lines of a text that the quotes are on, counted from 1.

    Quotes are the words of the text; where only the spaces differ, they are found too.

    Example:
        >>> sorted(marked_lines("a\\nb c\\nd\\n", ["b  c\\nd"]))
        [2, 3]
    """
    marked: set[int] = set()
    starts, squeezed = [], []
    for number, line in enumerate(text.splitlines(), start=1):
        for word in line.split():
            starts.append(number)
            squeezed.append(word)
    joined = "\0".join(squeezed)
    for quote in quotes:
        words = "\0".join(quote.split())
        at = joined.find(words) if words else -1
        if at >= 0:
            before, count = joined.count("\0", 0, at), words.count("\0") + 1
            marked.update(starts[before : before + count])
    if not marked:
        return marked
    # Empty lines within a quote belong to it.
    lines = text.splitlines()
    for number in range(min(marked), max(marked)):
        if not lines[number - 1].strip() and number - 1 in marked:
            marked.add(number)
    return marked


def find(tree: Tree, text: str) -> list[tuple[ChildRow, list[str], float, str]]:
    """Return (node, titles above it, score, best line) of the nodes that fit a text best.

    A node is left out whose part is listed before it: a file below its section.
    """
    from metatree_routers import text_evidence

    scores = _evidence(tree, text_evidence).rank([text], k=FOUND)
    scores = [each for each in scores if each.score >= LEAST_SHARE * scores[0].score]
    nodes = {node.id: node for node in tree.nodes([each.node_id for each in scores])}
    above = tree.ways(nodes)
    ranked: list[tuple[Node, Any]] = []
    ways: list[Sequence[str]] = []
    passed = set[str]()
    for scored in scores:
        node = nodes.get(scored.node_id)
        if node is None or node.id in passed or node.id not in above:
            continue
        ways.append(above[node.id][1:])
        passed.update(ways[-1])
        ranked.append((node, scored))
    counts = tree.child_counts([node.id for node, _ in ranked])
    known = titles(tree, sorted({each for way in ways for each in way}))
    return [
        (
            _child(node, counts[node.id]),
            [known[each] for each in way],
            float(scored.score),
            _line_of(tree, node, scored.line, text),
        )
        for (node, scored), way in zip(ranked, ways, strict=True)
    ]


def _line_of(tree: Tree, node: Node, line: str, text: str) -> str:
    """Return the line of a node to show: where the best one is its heading, which stands above it, one of its text."""
    # The line may be cut within a mark.
    shown = _ROLE.sub("", readable(line, node.path or "")).strip()
    if shown and not _is_heading(node, line) and not _is_heading(node, shown):
        return shown
    try:
        lines = [each.strip() for each in tree.content(node).splitlines()[:LINES]] if node.has_content else []
    except (MetatreeError, OSError):
        lines = []
    words = [word.casefold()[:WORD_CHARS] for word in text.split() if len(word) > 2]
    plain = readable("\n".join(each for each in lines if not _is_heading(node, each)), node.path or "")
    said = [each for each in plain.split("\n") if not _is_heading(node, each)]
    best = max(said, key=lambda each: sum(word in each.casefold() for word in words), default="")
    return best[:LINE_CHARS]


_ROLE: Final = re.compile(r":[\w:+.-]{1,60}:`[~!]?")


def _is_heading(node: Node, line: str) -> bool:
    bare = line.strip().strip("#=- ")
    return not bare or line.lstrip().startswith("#") or bare == node.title.strip()


def named(tree: Tree, text: str) -> str | None:
    """Return the id that a text names exactly, None when it names none."""
    return tree.resolved(text)


def titles(tree: Tree, ids: Sequence[str]) -> Mapping[str, str]:
    """Return the titles of those of the nodes that are there."""
    return {node.id: node.title for node in tree.nodes(ids)}


def _evidence(tree: Tree, make: Any) -> Any:
    """Return the index of a tree, kept with the tree: reading it takes a while."""
    evidence = tree.scratch.get("web-evidence")
    if evidence is None:
        evidence = tree.scratch["web-evidence"] = make(tree)
    return evidence


def _child(node: Node, count: int, page: ChildPage | None = None) -> ChildRow:
    return ChildRow(node.id, node.title, shorten(node.description, 300), node.kind, count, page)


def _opened_child(node: Node, page: ChildPage) -> ChildRow:
    return _child(node, page.total, page)


def _links(tree: Tree, node: str) -> list[tuple[str, str, str, bool]]:
    leaving = [(kind, other, True) for kind, other in tree.links(node)[:LINKS]]
    arriving = [(kind, other, False) for kind, other in tree.links_to(node)[:LINKS]]
    known = titles(tree, [other for _, other, _ in (*leaving, *arriving)])
    return [(kind, other, known.get(other, other), out) for kind, other, out in (*leaving, *arriving)]
