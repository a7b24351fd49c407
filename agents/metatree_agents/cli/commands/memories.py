"""`metatree remember`, `memories` and `forget`: what people and agents add to a tree, and take back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from metatree.notes.feedback import FLAG
from metatree_agents.cli import _options as options
from metatree_agents.cli import _output as output
from metatree_agents.cli._errors import FOUND, NOTHING
from metatree_agents.cli.commands._trees import TreeOptions, node_named

if TYPE_CHECKING:
    from metatree import Node, Tree

_LISTED = 20
Who = Annotated[str | None, options.option("--who", "NAME", "Who says it; the user by default.")]


def remember(
    text: Annotated[
        str,
        typer.Argument(metavar="TEXT", help="What to remember; - reads standard input, @FILE a file."),
    ],
    title: Annotated[
        str | None, options.option("--title", "TEXT", "A few words; taken from the text else.")
    ] = None,
    origin: Annotated[
        str | None, options.option("--from", "TEXT", "Where it comes from, such as a meeting.")
    ] = None,
    under: Annotated[str | None, options.option("--under", "NODE", "Put it below this node.")] = None,
    who: Who = None,
    update: Annotated[
        str | None, options.option("--update", "NODE", "Replace the text of this memory.")
    ] = None,
    *,
    where: TreeOptions,
    json: options.Json = False,
) -> int:
    """Add a memory to the tree of the current folder, where the next search finds it.

    It goes to the file or folder that it names, beside memories on its subject, or to the branch that it is about. The
    same text is one memory, with all who said it.

    \b
    Example: metatree remember "Redirects are limited to 10 in production" --from "meeting of 3 May"
    """
    from metatree import remember as keep
    from metatree_agents.cli._inputs import plain, text_of, user_name

    content = text_of(text, what="text")
    with where.ready() as opened:
        made = keep(
            opened,
            content,
            None if title is None else plain(title, what="title"),
            None if origin is None else plain(origin, what="source"),
            who=who or user_name(),
            under=None if under is None else node_named(opened, under),
            update=update,
        )
        if json:
            about = {"why": made.why, "known": made.known, "warnings": made.warnings}
            output.write_json("remember", {"node": _memory(opened, made.node), **about})
        else:
            what = ("updated" if update else "known already") if made.known else "remembered"
            place = _place(opened, made.parent)
            output.write(
                [f"{output.visible(made.node.id)}  {what}, under {place}: {output.visible(made.why)}"]
            )
    for warning in made.warnings:
        output.note(f"warning: {warning} (metatree forget {output.word(made.node.id)})")
    return FOUND


def memories(
    who: Annotated[
        str | None, options.option("--who", "NAME", "Only what this person or agent said.")
    ] = None,
    under: Annotated[str | None, options.option("--under", "NODE", "Only what lies below this node.")] = None,
    flags: Annotated[
        bool,
        typer.Option("--flags", help="List what people have flagged instead: what counts less, and why."),
    ] = False,
    wishes: Annotated[
        bool,
        typer.Option(
            "--wishes",
            help="List what people want always instead, as they said it, without what they took back.",
        ),
    ] = False,
    *,
    where: TreeOptions,
    json: options.Json = False,
) -> int:
    """List what the tree was told to remember, the latest first. `metatree find` searches it, with all the rest.

    \b
    Example: metatree memories --who ann
    """
    if flags:
        return _flags(where, who, json=json)
    if wishes:
        return _wishes(where, who, under, json=json)
    from metatree.notes.notes import memories as listed

    with where.existing() as opened:
        nodes = listed(opened, who=who, under=None if under is None else node_named(opened, under))
        if json:
            output.write_json("memories", {"memories": [_memory(opened, node) for node in nodes]})
        elif nodes:
            output.write(line for node in nodes for line in _lines(opened, node))
        else:
            output.note(_nothing(listed(opened), who=who, under=under))
    return FOUND if nodes else NOTHING


def forget(
    node: Annotated[
        str, options.argument("NODE", "Id of what was added; `metatree memories` lists memories.")
    ],
    *,
    where: TreeOptions,
    json: options.Json = False,
) -> int:
    """Take back a memory, or another node that a person or a tool added, with what lies under it.

    Nodes that were built from the source are left alone. Nothing of it is kept in the tree; the command that would add
    it again is printed. The id of a flag (`metatree memories --flags`) takes the flag back.

    \b
    Example: metatree forget memory:3f2a9c81d0
    """
    if node.startswith(FLAG):
        return _unflag(node, where, json=json)
    from metatree import forget as take_back

    with where.existing() as opened:
        removal = take_back(opened, node)
    if json:
        forgotten = [each.id for each in removal.nodes]
        output.write_json("forget", {"forgotten": forgotten, "undo": dict(removal.undo)})
    else:
        output.write(
            f"{output.visible(each.id)}  forgotten: {output.visible(each.title)}" for each in removal.nodes
        )
        output.note(f"to take this back: {output.visible(removal.command)}")
    return FOUND


def _wishes(where: TreeOptions, who: str | None, under: str | None, *, json: bool) -> int:
    from metatree.notes.wishes import standing
    from metatree_agents.cli.printing.answers import wish_lines

    with where.existing() as opened:
        kept = standing(opened, None if under is None else node_named(opened, under))
    kept = [wish for wish in kept if who in (None, wish.who)]
    if json:
        output.write_json("memories --wishes", {"wishes": kept})
    elif kept:
        output.write(wish_lines(kept))
    else:
        output.note("nobody has said what they want always")
    return FOUND if kept else NOTHING


def _flags(where: TreeOptions, who: str | None, *, json: bool) -> int:
    from metatree.notes.feedback import flags as kept

    with where.existing() as opened:
        flags = sorted(kept(opened.memory), key=lambda each: (each.at, each.id), reverse=True)
    flags = [each for each in flags if who in (None, each.who)]
    if json:
        output.write_json("memories --flags", {"flags": flags})
    elif flags:
        output.write(
            f"{output.styled(output.visible(each.id), 'cyan')}  {output.visible(f'{each.node}: {each}')}"
            for each in flags
        )
        output.note("take one back with: metatree forget ID")
    else:
        output.note("nothing is flagged")
    return FOUND if flags else NOTHING


def _unflag(flag_id: str, where: TreeOptions, *, json: bool) -> int:
    from metatree.notes.feedback import take_back

    with where.existing() as opened:
        flag = take_back(opened, flag_id)
    if json:
        output.write_json("forget", {"forgotten": [flag.id], "undo": {}})
    else:
        output.write(
            [
                f"{output.visible(flag.id)}  forgotten: {output.visible(flag.node)} was {output.visible(str(flag))}"
            ]
        )
    return FOUND


def _nothing(nodes: Sequence[Node], *, who: str | None, under: str | None) -> str:
    """Say why no memory is listed, when there are these in the tree."""
    from metatree.notes.notes import mentions

    if not nodes:
        return "nothing was remembered: `metatree remember TEXT` adds something"
    names = sorted({str(mention["who"]) for node in nodes for mention in mentions(node)})
    if who is not None and who not in names:
        listed = ", ".join(map(output.visible, names[:_LISTED])) + (", …" if len(names) > _LISTED else "")
        return f"nobody called {output.visible(who)!r} said anything; who did: {listed}"
    by = "" if who is None else f" of {output.visible(who)}"
    return (
        f"no memory{by} lies below {output.visible(str(under))!r}: leave --under out to see those elsewhere"
    )


def _memory(tree: Tree, node: Node) -> dict[str, Any]:
    from metatree.notes.notes import mentions

    return {
        "id": node.id,
        "title": node.title,
        "text": node.content or "",
        "parent": tree.parent(node) or ".",
        "said": mentions(node),
    }


def _lines(tree: Tree, node: Node) -> Iterator[str]:
    from metatree.notes.notes import said_by

    text = " ".join((node.content or "").split())
    yield f"{output.styled(output.visible(node.id), 'cyan')}  {output.visible(node.title)}"
    yield output.styled(
        f"    {output.visible(said_by(node))}, under {_place(tree, tree.parent(node) or '.')}", "dim"
    )
    if text != node.title:
        yield f"    {output.visible(text if len(text) <= 300 else text[:299] + '…')}"


def _place(tree: Tree, node_id: str) -> str:
    title = tree.get(node_id).title
    return output.visible(node_id if title in node_id else f"{title} ({node_id})")
