"""The tools of documents: finding a text, and reading a page."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

from pydantic import Field

from metatree.errors import UserError
from metatree.node import Node
from metatree.tools.tool import ToolGroup, tool
from metatree.trees.tree import Tree
from metatree_memory_tools.text.lines import node_at, path_of, text_of

KINDS = ("file", "section", "page")
_WIDTH = 300
_MOST_PAGES = 5
_MOST_LINES = 3
_EMPTY = "(no text: a picture, a scan, or an empty page)"


@tool(kind="exploratory", title="find in the text", kinds=KINDS, reuse="run", timeout_s=120.0)
def find_in_text(
    node: Node,
    tree: Tree,
    text: Annotated[
        str, Field(description="A word or a few words, as they stand in the text.", min_length=1)
    ],
    max_lines: Annotated[int, Field(ge=1, le=200)] = 30,
) -> str:
    """Find every line of the whole document that has a text, with its page and section, and count them."""
    content = text_of(tree, path_of(tree, node))
    wanted = " ".join(text.casefold().split())
    rows: list[str] = []
    count = 0
    # What ends one line and begins the next one is in the first of them.
    folded = [" ".join(line.casefold().split()) for line in content.lines]
    for number, folded_line in enumerate(folded, start=1):
        below = folded[number] if number < len(folded) else ""
        across = wanted not in below and wanted in f"{folded_line} {below}" if below else False
        if wanted not in folded_line and not across:
            continue
        count += 1
        if len(rows) < max_lines:
            page = f"page {content.page_of(number)}, " if content.pages else ""
            inside, line = node_at(tree, content.path, number), content.lines[number - 1].strip()
            rows.append(f"{page}line {number} in {inside}: {line[:_WIDTH]}")
    if not count:
        raise UserError(f"{text!r} is nowhere in {content.path}")  # a text would be read for an answer
    more = [f"(and {count - len(rows)} more)"] if count > len(rows) else []
    return "\n".join([f"{text!r} is in {count} line(s) of {content.path}:", *rows, *more])


@tool(
    kind="exploratory",
    title="read a page",
    kinds=KINDS,
    when=lambda node: bool(node.attributes.get("pages") or node.attributes.get("first_page")),
    reuse="run",
    timeout_s=120.0,
)
def read_page(
    node: Node,
    tree: Tree,
    page: Annotated[int, Field(ge=1, description="Counted from 1, whatever is printed on it.")],
    last_page: Annotated[int, Field(ge=0, description="The last page to read; 0 for this one alone.")] = 0,
) -> str:
    """Read a page of the document as a whole, or up to five in a row."""
    content = text_of(tree, path_of(tree, node))
    if not content.pages:
        raise UserError(f"{content.path!r} has no pages: read its sections")
    last_page = max(page, last_page)
    if page > len(content.pages):
        raise UserError(f"page {page} is not in {content.path!r}, which has {len(content.pages)} pages")
    rows = []
    for number in range(page, min(last_page, len(content.pages), page + _MOST_PAGES - 1) + 1):
        end = content.pages[number] - 1 if number < len(content.pages) else len(content.lines)
        lines = content.lines[content.pages[number - 1] - 1 : end]
        rows += [
            f"Page {number} of {len(content.pages)}:",
            *(lines or ["(no text: a picture, a scan, or an empty page)"]),
        ]
    return "\n".join(rows)


@tool(
    kind="exploratory",
    title="linked notes",
    kinds=("file",),
    when=lambda node: node.attributes.get("language") == "markdown",
    reuse="run",
)
def linked_notes(node: Node, tree: Tree, max_notes: Annotated[int, Field(ge=1, le=200)] = 30) -> str:
    """List the notes that this note links to, and the notes that link to it, each with the lines where they do."""
    path = path_of(tree, node)
    leads, led = (
        [other for _, other in found] for found in (tree.links(path, "links"), tree.links_to(path, "links"))
    )
    if not leads and not led:
        raise UserError(f"{path!r} links to no other file, and none links to it")
    names = _names(tree.get(path))
    rows: list[str] = []
    for other in leads[:max_notes]:
        rows += [f"links to {_called(tree, other)}", *_where(tree, path, _names(tree.get(other)))]
    for other in led[:max_notes]:
        rows += [f"linked from {_called(tree, other)}", *_where(tree, other, names)]
    if max(len(leads), len(led)) > max_notes:
        rows.append(f"(of {len(leads)} that it links to, and {len(led)} that link to it)")
    return "\n".join(rows)


def _called(tree: Tree, path: str) -> str:
    note = tree.get(path)
    title = note.attributes.get("title")
    return f"{path} ({title})" if title else path


def _names(note: Node) -> list[str]:
    """Return what a link may call a note or a heading of one, as it stands behind `[[` or `(`."""
    if note.kind == "section":
        return [f"#{note.title}".casefold(), "#" + note.id.partition("#")[2]]
    last = note.id.rpartition("/")[2]
    stem = last.rpartition(".")[0] or last
    names = [last, stem, *(note.attributes.get("aliases") or ()), quote(last)]
    return [str(name).casefold() for name in dict.fromkeys(names)]


def _where(tree: Tree, path: str, names: list[str]) -> list[str]:
    """Return the lines of a note with a link to another one."""
    try:
        lines = text_of(tree, path).lines
    except UserError:
        return []
    found = []
    for number, line in enumerate(lines, start=1):
        folded = line.casefold()
        if ("[[" in folded or "](" in folded) and any(name in folded for name in names):
            found.append(f"  line {number}: {line.strip()[:_WIDTH]}")
    return found[:_MOST_LINES]


DOCUMENT_TOOLS = (
    ToolGroup(
        "document",
        "look through the document",
        "Find and count the lines with a text, or read a page as a whole.",
        (find_in_text, read_page, linked_notes),
    ),
)
"""The tool tree of documents."""
