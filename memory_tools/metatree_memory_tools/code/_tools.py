"""The tools of code: looking for a pattern, who imports and who calls, reading lines, leaving a note.

They read files when they are asked: an index of calls would be wrong as soon as a file changes, and right only for
languages with types.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from hashlib import blake2b
from typing import Annotated

from pydantic import Field

from metatree.errors import UserError
from metatree.node import Node
from metatree.tools.tool import ToolGroup, tool
from metatree.trees.tree import Tree
from metatree_memory_tools.text.lines import FileText, files_below, node_at, path_of, text_of, texts_of
from metatree_memory_tools.text.pattern import matching_lines

KINDS = ("folder", "file", "definition", "section")
_MOST_LINES = 400
_MOST_BYTES = 60_000_000
_LOOK_S = 20.0
_WIDTH = 240
_DEFINES = "def|func|function|fn|fun|sub|class|struct|interface"


@tool(kind="exploratory", title="grep", kinds=KINDS, timeout_s=60.0, reuse="run")
def grep(
    node: Node,
    tree: Tree,
    pattern: Annotated[str, Field(description="A regular expression, as Python has them.", max_length=500)],
    ignore_case: bool = False,
    max_lines: Annotated[int, Field(ge=1, le=200)] = 50,
) -> str:
    """Find the lines that match a regular expression, in this file or in all files of this folder."""
    path = path_of(tree, node)
    texts = ((text.path, text.lines) for text in _bounded(texts_of(tree, files_below(tree, path))))
    matches = matching_lines(pattern, texts, ignore_case=ignore_case, most=max_lines + 1)
    if not matches:
        raise UserError(f"no line of {path} matches {pattern!r}")  # a text would be read for an answer
    rows = [f"{name}:{number}: {line.strip()[:_WIDTH]}" for name, number, line in matches[:max_lines]]
    if len(matches) > max_lines:
        rows.append(f"(more than {max_lines} lines match)")
    return "\n".join(rows)


@tool(kind="exploratory", title="outline", kinds=KINDS, reuse="run")
def outline(node: Node, tree: Tree, depth: Annotated[int, Field(ge=1, le=5)] = 2) -> str:
    """List what is defined in this file or lies in this folder, with lines, to some depth."""
    rows: list[str] = []
    start = path_of(tree, node)
    for level, part in tree.walk(start, depth=depth):
        lines = part.attributes.get("start_line"), part.attributes.get("end_line")
        where = f":{lines[0]}-{lines[1]}" if lines[0] else ""
        rows.append(f"{'  ' * level}{part.title}{where}  {part.description[:120]}".rstrip())
        if len(rows) >= _MOST_LINES:
            rows.append(f"(only the first {_MOST_LINES})")
            break
    return "\n".join(rows)


@tool(kind="exploratory", title="who imports this", kinds=KINDS, reuse="run")
def who_imports(node: Node, tree: Tree) -> str:
    """List the files that import this file or a file of this folder, and what they import of it."""
    path = path_of(tree, node)
    inside = set(files_below(tree, path))
    places = [path] if path in inside else [path, *sorted(inside)]
    if path in inside and "/" in path:
        places.append(path.rpartition("/")[0])  # where a folder is a package, that is what is imported
    importers: dict[str, list[str]] = {}
    for place in places:
        if place not in tree:
            continue
        for _, importer in tree.links_to(place, "imports"):
            if importer not in inside:
                importers.setdefault(importer, []).append(place)
    if not importers:
        raise UserError(f"no file of this tree imports {path}")
    rows = []
    for importer in sorted(importers)[:_MOST_LINES]:
        what = [place for place in importers[importer] if place != path]
        rows.append(importer + (f" (imports {', '.join(what)})" if what else ""))
    return f"{len(importers)} file(s) import {path}:\n" + "\n".join(rows)


@tool(kind="exploratory", title="who calls this", kinds=KINDS, timeout_s=60.0, reuse="run")
def who_calls(
    node: Node,
    tree: Tree,
    name: Annotated[str, Field(description="A function, method or class; empty for this node's own.")] = "",
    max_lines: Annotated[int, Field(ge=1, le=200)] = 50,
) -> str:
    """List the lines of the whole source that call a function, method or class, each with what it lies in."""
    wanted = (name or str(node.attributes.get("name") or "")).rpartition(".")[2].strip("() ")
    if not re.fullmatch(r"[\w$?!]+", wanted):
        raise UserError(f"give the name of what is called: {name or node.title!r} is none")
    call = re.compile(rf"(?<![\w$]){re.escape(wanted)}\s*(?:<[^<>()]*>)?\s*\(")
    defines = re.compile(rf"\b(?:{_DEFINES})\s+(?:\([^)]*\)\s*)?[\w.:]*\b{re.escape(wanted)}\b")
    source = tree.source_of(node)
    start = source.mount if source is not None and source.mount else tree.root
    rows: list[str] = []
    for text in _bounded(texts_of(tree, files_below(tree, start))):
        for number, line in enumerate(text.lines, start=1):
            if wanted in line and call.search(line[:2_000]) and not defines.search(line[:2_000]):
                inside = node_at(tree, text.path, number)
                if inside == node.id and line.strip() == (node.content or "").split("\n", 1)[0].strip():
                    continue
                rows.append(f"{text.path}:{number} in {inside}: {line.strip()[:_WIDTH]}")
        if len(rows) > max_lines:
            break
    if not rows:
        raise UserError(f"no line of this source calls {wanted}")
    more = [f"(more than {max_lines} lines call it)"] if len(rows) > max_lines else []
    return "\n".join([*rows[:max_lines], *more])


@tool(kind="exploratory", title="read lines", kinds=("file", "definition", "section"), reuse="run")
def read_lines(
    node: Node,
    tree: Tree,
    first: Annotated[int, Field(ge=1, description="First line, counted from 1 in the file.")],
    last: Annotated[int, Field(ge=1, description="Last line, included; 400 lines at most.")],
) -> str:
    """Read some lines of the file that this node is from, with their numbers."""
    text = text_of(tree, path_of(tree, node))
    if first > len(text.lines) or last < first:
        raise UserError(f"lines {first}-{last} are not in {text.path!r}, which has {len(text.lines)} lines")
    last = min(last, len(text.lines), first + _MOST_LINES - 1)
    return "\n".join(f"{number}: {text.lines[number - 1][:2_000]}" for number in range(first, last + 1))


@tool(kind="interactive", title="add a note", kinds=KINDS)
def add_note(
    node: Node,
    text: Annotated[
        str, Field(description="What is to be remembered of this node.", min_length=1, max_length=5_000)
    ],
    title: Annotated[
        str, Field(description="A few words; empty for the beginning of the text.", max_length=120)
    ] = "",
) -> Node:
    """Leave a note under this node, for those who come here later."""
    note = " ".join(text.split())
    key = blake2b(text.encode("utf-8", "replace"), digest_size=6).hexdigest()
    return Node(
        id=f"{node.id}#note-{key}",
        title=title or (note if len(note) <= 60 else note[:59] + "…"),
        description=f"A note on {node.title}: {note[:200]}",
        content=text,
        kind="note",
    )


def _bounded(texts: Iterator[FileText]) -> Iterator[FileText]:
    """Yield texts until there is too much of them, or too much time has gone."""
    until, left = time.monotonic() + _LOOK_S, _MOST_BYTES
    for text in texts:
        yield text
        left -= sum(map(len, text.lines))
        if left < 0 or time.monotonic() > until:
            return


CODE_TOOLS = (
    ToolGroup(
        "code",
        "look through the code",
        "Find a pattern, see what is defined, who imports or calls it, read lines of a file, leave a note.",
        (grep, outline, who_imports, who_calls, read_lines, add_note),
    ),
)
"""The tool tree of code in any language."""
