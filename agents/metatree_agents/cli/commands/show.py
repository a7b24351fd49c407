"""`metatree show`: what is in the tree, and what was left out of it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from metatree_agents.cli import _options as options
from metatree_agents.cli import _output as output
from metatree_agents.cli._errors import FOUND, NOTHING
from metatree_agents.cli.commands._trees import TreeOptions, node_named

if TYPE_CHECKING:
    from metatree import Node, Tree

_LISTED = 12


def show(
    node: Annotated[
        str, options.argument("NODE", "Id of a node, or the end of one; the root by default.")
    ] = ".",
    depth: Annotated[int, typer.Option("--depth", min=0, metavar="N", help="How many levels below it.")] = 2,
    content: Annotated[
        bool, typer.Option("--content", help="Print the text of the node instead; with --json, add it.")
    ] = False,
    omitted: Annotated[
        bool, typer.Option("--omitted", help="List what was left out of the tree, and why, instead.")
    ] = False,
    *,
    where: TreeOptions,
    json: options.Json = False,
) -> int:
    """Print a node and what lies below it.

    \b
    Example: metatree show src/requests --depth 1 --source ~/src/requests
    """
    with where.existing() as opened:
        if omitted:
            return _show_omitted(opened, json=json)
        target = opened.get(node_named(opened, node))
        if json:
            made = _as_output(opened, target, depth)
            if content:
                made["content"] = opened.content(target)
            made["links"], made["linked_from"] = _links(opened, target)
            output.write_object(made)
        elif content:
            output.write(output.visible(line.expandtabs(4)) for line in opened.content(target).splitlines())
        else:
            _print_below(opened, target, depth)
            _print_links(opened, target)
    return FOUND


def _links(tree: Tree, node: Node) -> tuple[list[str], list[str]]:
    """Return the ids of what a node links to, and of what links to it, in order."""
    leads, led = tree.links(node), tree.links_to(node)
    return sorted({other for _, other in leads}), sorted({other for _, other in led})


def _print_links(tree: Tree, node: Node) -> None:
    for words, others in zip(("links to", "linked from"), _links(tree, node), strict=True):
        if others:
            rest = f", … ({len(others)})" if len(others) > _LISTED else ""
            output.write([f"{words} {', '.join(map(output.visible, others[:_LISTED]))}{rest}"])


def _show_omitted(tree: Tree, *, json: bool) -> int:
    omissions = tree.omissions()
    if json:
        rows = [{"path": path, "reason": reason} for path, reason in omissions]
        output.write_json("show --omitted", {"omitted": rows})
    elif omissions:
        output.write(f"{output.visible(path)}: {output.visible(reason)}" for path, reason in omissions)
    else:
        output.note("nothing was left out")
    return FOUND if omissions else NOTHING


def _print_below(tree: Tree, node: Node, depth: int) -> None:
    """Print guide lines and one line a node on a terminal, indented and whole lines otherwise."""
    if not sys.stdout.isatty():
        output.write(
            "  ".join(part for part in ("  " * level + title, text) if part)
            for level, (title, text) in _below(tree, node, depth)
        )
        return
    from rich.console import Console
    from rich.text import Text
    from rich.tree import Tree as Drawing

    colours = output.coloured(sys.stdout)

    def line(title: str, text: str) -> Text:
        styles = ("cyan", "dim") if colours else ("", "")
        return Text.assemble((title, styles[0]), "  " if text else "", (text, styles[1]))

    open_at: list[Drawing] = []
    for level, (title, text) in _below(tree, node, depth):
        del open_at[level:]
        drawing = open_at[-1].add(line(title, text)) if open_at else Drawing(line(title, text))
        open_at.append(drawing)
    Console().print(open_at[0], no_wrap=True, overflow="ellipsis", crop=True)


def _below(tree: Tree, node: Node, depth: int) -> Iterator[tuple[int, tuple[str, str]]]:
    """Yield each node with its level, as its title with line numbers and its description."""
    for level, each in tree.walk(node, depth=depth):
        title = output.visible(each.title)
        if each.source is not None and each.source.type == "text" and each.source.start_line is not None:
            title += f":{each.source.start_line}-{each.source.end_line}"
        yield level, (title, output.visible(" ".join(each.description.split())))


def _as_output(tree: Tree, node: Node, depth: int) -> dict[str, Any]:
    """Return what `NodeOutput` says, node by node: models of 200,000 would take a gigabyte."""
    from metatree_agents.cli.schemas.search import NodeOutput

    children = tree.children(node)
    source = node.source
    made = NodeOutput(
        id=node.id,
        title=node.title,
        description=node.description,
        kind=node.kind,
        path=node.path,
        start_line=source.start_line if source else None,
        end_line=source.end_line if source else None,
        children=None,
    ).as_json()
    if depth > 0 or not children:
        made["children"] = [_as_output(tree, child, depth - 1) for child in children]
    return made
