"""The tool tree of web pages: find in a page, list its links, follow one, look at it in a browser."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from metatree._util.secret_text import masked
from metatree.blackboard import Blackboard
from metatree.errors import ToolFailed
from metatree.node import Node
from metatree.tools.tool import ToolGroup, tool
from metatree.trees.tree import Tree
from metatree_memory_tools.text.descriptions import first_sentence, shorten, shorten_masked
from metatree_memory_tools.web._links import Link, best_link, link_listing
from metatree_memory_tools.web._page import PAGE, page_id, read_page
from metatree_memory_tools.web.addresses import AddressRules
from metatree_memory_tools.web.fetch import ROBOTS

KINDS = (PAGE,)
_AROUND = 1
_WORD = re.compile(r"\w+")


@tool(kind="exploratory", name="find_in_page", title="Find in page", kinds=KINDS)
def find_in_page(node: Node, tree: Tree, text: str, max_passages: int = 10) -> str:
    """Find the passages of a web page that hold a text, or else those with most of its words."""
    wanted = text.casefold().strip()
    words = {word for word in _WORD.findall(wanted) if len(word) > 2} or {wanted}
    matches: list[tuple[float, int, str]] = []
    for title, lines in _texts(node, tree):
        for number, line in enumerate(lines):
            folded = line.casefold()
            score = 2.0 if wanted in folded else sum(word in folded for word in words) / len(words)
            if score > 0:
                near = "\n".join(lines[max(0, number - _AROUND) : number + _AROUND + 1])
                matches.append((score, len(matches), f"{title}:\n{near}" if title else near))
    if not matches:
        return ""
    best = max(score for score, _, _ in matches)
    chosen = sorted(matches, key=lambda each: (-each[0], each[1]))[: max(1, min(max_passages, 50))]
    return "\n\n".join(shorten_lines(passage) for score, _, passage in chosen if score >= best / 2)


@tool(
    kind="exploratory",
    name="links_of_page",
    title="List the links",
    kinds=KINDS,
    when=lambda node: bool(node.attributes.get("links")),
)
def links_of_page(node: Node, max_links: int = 100) -> str:
    """List the links of a web page, each with its text and its address."""
    return "\n".join(
        f"{link.text or '(no text)'}: {link.url}" for link in _links(node)[: max(1, min(max_links, 500))]
    )


def _links_about(node: Node, questions: Sequence[str]) -> str:
    listing = link_listing(_links(node), " ".join(questions))
    return f"Its links: {listing}." if listing else ""


def _require_own(tree: Tree, node: Node) -> None:
    """Refuse to open what a node of somebody else says, also where a caller gave these tools."""
    if tree.is_imported(node):
        raise ToolFailed(f"{node.title!r} was made elsewhere: no address that it says is opened")


@tool(
    kind="interactive",
    name="follow_link",
    title="Follow a link",
    kinds=KINDS,
    timeout_s=60.0,
    when=lambda node: bool(node.attributes.get("links")),
    about=_links_about,
    answers_outside_tree=True,
)
def follow_link(node: Node, tree: Tree, query: str) -> Node:
    """Open a page that this web page links to: name the link by its text or its address, or say what to look for."""
    _require_own(tree, node)
    link = best_link(_links(node), query)
    if link is None:
        raise ToolFailed(f"no link of {node.title!r} fits {shorten(query, 100)!r}")
    known = page_in(tree, link.url)
    if known is not None:
        return known
    options = web_options(tree, node)
    page = read_page(link.url, options, named=False)
    known = page_in(tree, page.address)  # a redirect may lead to what is there
    if known is not None:
        return known
    made = page.node()
    source = tree.source_of(node)
    # Under the source that it was reached from, so that the same rules and tools hold for what it links to.
    made_id = f"{source.mount}/{made.id}" if source is not None and source.mount else made.id
    provenance = {**made.provenance, "link": link.text, "from": str(node.attributes.get("url", ""))}
    return Node(
        made_id, made.title, made.description, made.content, made.kind, None, provenance, made.attributes
    )


def _has_browser(node: Node) -> bool:
    from metatree_memory_tools.web.chromium import (
        has_chromium,
    )  # an HTTP client, 0.1 s that few searches need

    return has_chromium()


@tool(
    kind="interactive",
    name="screenshot",
    title="Look at it in a browser",
    kinds=KINDS,
    timeout_s=90.0,
    when=_has_browser,
    answers_outside_tree=True,
)
def screenshot(node: Node, tree: Tree, board: Blackboard, full_page: bool = True) -> Node:
    """Show a web page in a browser, its scripts run, and keep a picture of it and the text that is on it then."""
    from metatree_memory_tools.web.chromium import take_screenshot

    _require_own(tree, node)
    url = str(node.attributes.get("url", ""))
    options = web_options(tree, node)
    robots = ROBOTS if options.get("robots", True) else None
    shot = take_screenshot(url, rules=AddressRules.of(options), full_page=full_page, robots=robots)
    title, text = (masked(said)[0] for said in (shorten_masked(shot.title or node.title, 100), shot.text))
    where = shot.url if shot.url == url else masked(shot.url)[0]
    result = {"url": where, "title": title, "width": shot.width, "height": shot.height, "node": node.id}
    item = board.add_image(content=shot.png, metadata=result, sources=[node.id])
    attributes = {
        **result,
        "image": "" if item is None else item.image,
        "item": "" if item is None else item.id,
    }
    if shot.refused:
        attributes["refused"] = [masked(each)[0] for each in shot.refused[:10]]
    return Node(
        "",
        f"{title}, in a browser",
        first_sentence(text) or "A picture without text.",
        text or "(no text)",
        "screenshot",
        provenance={"url": where},
        attributes=attributes,
    )


page_tools = (
    ToolGroup(
        "web_page",
        "Web page",
        "Find in this page, list or follow its links, look at it in a browser",
        (find_in_page, links_of_page, follow_link, screenshot),
    ),
)


def web_options(tree: Tree, node: Node) -> dict[str, object]:
    """Return the options of the web source that a page belongs to or was reached from; none when there is none."""
    for node_id in (node.id, *reversed(tree.ancestors(node))):
        source = tree.source_of(node_id)
        if source is not None and source.type == "web":
            return dict(source.options)
    return {}


def page_in(tree: Tree, url: str) -> Node | None:
    """Return the node of a page that is in a tree, None when it is not."""
    page = tree.find(page_id(url))
    if page is not None:
        return page
    wanted = page_id(url)
    for node_id in tree.ids([PAGE]):
        there = tree.find(node_id)
        if there is not None and page_id(str(there.attributes.get("url", ""))) == wanted:
            return there
    return None


def shorten_lines(passage: str) -> str:
    """Return a passage with long lines cut."""
    return "\n".join(line if len(line) <= 1_000 else line[:999] + "…" for line in passage.split("\n"))


def _links(node: Node) -> list[Link]:
    listed = node.attributes.get("links")
    pairs = listed if isinstance(listed, list) else []
    return [Link(str(pair[1]), str(pair[0])) for pair in pairs if isinstance(pair, list) and len(pair) == 2]


def _texts(node: Node, tree: Tree) -> Iterator[tuple[str, list[str]]]:
    """Yield title and lines of a page and of its sections, without the pages that were found from it."""
    skipped: int | None = None
    for depth, below in tree.walk(node):
        if skipped is not None and depth > skipped:
            continue
        skipped = depth if depth and below.kind in (PAGE, "screenshot") else None
        if skipped is None and below.has_content:
            yield below.title if depth else "", tree.content(below.id).split("\n")
