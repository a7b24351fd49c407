"""Looks at the files of a tree for tools: lines that match, outlines, references."""

from __future__ import annotations

from contextlib import suppress

from metatree import Tool, Tree, UserError
from metatree_agents.nothing_found import left_out

MOST_LINES = 200
"""That `grep` and each part of `references` list."""
_WIDTH = 200
_MOST_ROWS = 2_000


def grep(tree: Tree, place: str, pattern: str, *, ignore_case: bool) -> tuple[list[str], str]:
    """Return the lines that match as `path:line: text`, and what was left out.

    Raises:
        UserError: it is no regular expression, or one that takes too long.
    """
    from metatree_memory_tools.text.lines import files_below, path_of, texts_of
    from metatree_memory_tools.text.pattern import matching_lines

    path = place if place == tree.root else path_of(tree, tree.get(place))
    texts = ((text.path, text.lines) for text in texts_of(tree, files_below(tree, path)))
    found = matching_lines(pattern, texts, ignore_case=ignore_case, most=MOST_LINES + 1)
    rows = [f"{name}:{number}: {line.strip()[:_WIDTH]}" for name, number, line in found[:MOST_LINES]]
    cut = f"cut: more than {MOST_LINES} lines match; narrow `pattern` or `under`"
    return rows, cut if len(found) > MOST_LINES else ""


def no_lines(tree: Tree, place: str, pattern: str) -> str:
    """Say what was looked through when no line matched."""
    from metatree_memory_tools.text.lines import files_below, without_lines

    others = without_lines(tree, place)
    count = len(files_below(tree, place)) - others
    more = f"; {others} of a database, letters or conversations have no lines" if others else ""
    return (
        f"no line of {count} file(s) below {place} matches {pattern!r}{more}{left_out(tree)}; try ignore_case, or"
        " `search`"
    )


def outline(tree: Tree, place: str, depth: int) -> list[str]:
    """Return what is in a file or folder, indented, with lines."""
    rows = []
    for level, node in tree.walk(place, depth=depth):
        start = node.attributes.get("start_line") or (node.source.start_line if node.source else None)
        end = node.attributes.get("end_line") or (node.source.end_line if node.source else None)
        where = f" {start}-{end}" if start else ""
        rows.append(f"{'  ' * level}{node.title or node.id}{where}  {node.description[:120]}".rstrip())
        if len(rows) >= _MOST_ROWS:
            break
    return rows


def references(tree: Tree, name: str) -> list[str]:
    """Return the definitions of a name, the lines that call it, and the files that import what defines it."""
    from metatree_memory_tools.code.python import PythonCode

    code_tools = {
        tool.title: tool.function
        for group in PythonCode().tools
        for tool in group.tools
        if isinstance(tool, Tool)
    }
    who_calls, who_imports = code_tools["who calls this"], code_tools["who imports this"]

    wanted = name.strip()
    ids = [id_ for id_ in tree.ids(["definition", "file"]) if _is_named(id_, wanted)]
    if wanted in tree:
        ids = [wanted]
    if not ids:
        return []
    rows = []
    for id_ in sorted(ids)[:20]:
        node = tree.get(id_)
        start, end = node.attributes.get("start_line"), node.attributes.get("end_line")
        if node.source is not None and node.source.start_line is not None:
            start, end = node.source.start_line, node.source.end_line
        lines = f":{start}-{end}" if start else ""
        rows.append(f"defined: {node.path or id_}{lines} {node.title} [{id_}]")
    node = tree.get(sorted(ids)[0])
    if node.kind == "definition":
        with suppress(UserError):  # nobody does
            called = who_calls(node, tree, name=str(node.title), max_lines=MOST_LINES).split("\n")
            rows += [f"call: {row}" for row in called if ":" in row]
    for path in sorted({tree.get(id_).path or id_ for id_ in ids})[:5]:
        with suppress(UserError):
            imported = who_imports(tree.get(path), tree).split("\n") if path in tree else []
            rows += [f"import of {path}: {row}" for row in imported[1:]]
    return rows


def _is_named(id_: str, name: str) -> bool:
    if id_ == name:
        return True
    inner = id_.partition("::")[2]
    return (inner == name or inner.endswith(f".{name}")) if inner else id_.endswith(f"/{name}")
