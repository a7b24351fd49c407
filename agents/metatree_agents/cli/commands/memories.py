"""`metatree remember`, `memories` and `forget`: what people and agents add to a tree, and take back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from metatree.errors import UnknownNode, UserError
from metatree.notes.feedback import FLAG
from metatree_agents.cli import _options as options
from metatree_agents.cli import _output as output
from metatree_agents.cli._errors import FOUND, NOTHING, WRONG_USE
from metatree_agents.cli.commands._trees import TreeOptions, node_named

if TYPE_CHECKING:
    from metatree import Node, Tree
    from metatree.notes.audit import Audit
    from metatree.notes.erasure import Erased, Trace

_LISTED = 20
_MOST_WRITTEN = 60
_NOTHING_FITS = "nothing fits that was added to the tree or said in an export: see `metatree memories`"
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
    to: Annotated[
        Path | None,
        options.option(
            "--to",
            "FOLDER",
            "Write it as a Markdown file into this folder of the source.",
            parser=options.path,
        ),
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
    if to is not None:
        if under is not None or update is not None:
            raise UserError("--to writes a file: leave out --under, and edit a file that is there yourself")
        heading = None if title is None else plain(title, what="title")
        reason = None if origin is None else plain(origin, what="source")
        return _to_folder(to, content, heading, reason, who or user_name(), where, json=json)
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


def _to_folder(
    folder: Path, text: str, title: str | None, why: str | None, who: str, where: TreeOptions, *, json: bool
) -> int:
    """Write a note into a folder of the source, and bring the tree up to date."""
    from metatree.notes.note_file import keep_note

    folder = folder.resolve()  # once: another user may swap it and a link to another one meanwhile
    with where.ready() as opened:
        try:
            opened.resolve(str(folder))
        except UnknownNode as exc:
            raise UserError(
                f"{str(folder)!r} is no folder of the tree: name one in {opened.source_root or 'its source'}"
            ) from exc
        kept = keep_note(folder, text, title, who=who, why=why, links=False)
        opened.refresh()
        found = opened.get(opened.resolve(str(kept.path.absolute())))
        if json:
            said = [{"who": who, "at": str(found.attributes.get("at") or ""), "source": why}]
            node = {**_memory(opened, found), "text": text, "said": said}
            about = {"why": f"written to {kept.path}", "known": kept.known, "warnings": kept.warnings}
            output.write_json("remember", {"node": node, **about})
        else:
            what = "known already" if kept.known else "written"
            output.write([f"{output.visible(found.id)}  {what}: {output.visible(str(kept.path))}"])
    for warning in kept.warnings:
        output.note(f"warning: {warning}")
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
        str | None,
        options.argument(
            "[NODE]",
            "Id of what was added (`metatree memories` lists memories), or of a message or conversation of an export.",
        ),
    ] = None,
    by: Annotated[str | None, options.option("--by", "NAME", "All that this person or agent said.")] = None,
    origin: Annotated[
        str | None, options.option("--from", "TEXT", "All that comes from this source.")
    ] = None,
    since: Annotated[
        str | None, options.option("--since", "DATE", "All that was said from this day on.")
    ] = None,
    until: Annotated[str | None, options.option("--until", "DATE", "All that was said to this day.")] = None,
    verify: Annotated[
        bool,
        typer.Option(
            "--verify",
            help="Delete quotes in runs and boards too, make the index anew, and look for the words in all files.",
        ),
    ] = False,
    database: Annotated[
        str | None,
        options.option(
            "--database",
            "URL",
            "The postgresql:// address of a service whose machines share their runs; --verify looks there, too.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be forgotten, and forget nothing.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Forget all that fits without asking.")] = False,
    *,
    where: TreeOptions,
    json: options.Json = False,
) -> int:
    """Take back a memory, or another node that a person or a tool added, with what lies under it.

    With --by, --from, --since and --until, everything that fits all of them; what others said too stays theirs.
    Messages of exports are left out of the tree from then on, also when the export is taken again; --from is then its
    name in the tree. Other nodes that were built from a source are left alone. Nothing of it is kept in the tree; the
    command that would add one memory again is printed. The id of a flag (`metatree memories --flags`) takes
    the flag back.

    What fits is shown first, and is forgotten when you agree, or with --yes; --dry-run only shows it.

    With --verify, places that still have its words are named, copies beside the tree too, and the exit code is 1.

    \b
    Example: metatree forget memory:3f2a9c81d0
             metatree forget --by ann --dry-run
             metatree forget --by ann --verify
    """
    from metatree.notes import erasure
    from metatree.notes.notes import forget as take_back

    chosen = erasure.Said(by, origin, since or "", until or "") if by or origin or since or until else None
    if (node is None) == (chosen is None):
        raise UserError("give a NODE, or say what to forget with --by, --from, --since or --until")
    if database is not None and not verify:
        raise UserError("--database is where --verify looks, too: give both")
    if dry_run and (yes or verify or chosen is None):
        raise UserError(
            "--dry-run shows what --by, --from, --since and --until would forget: leave --yes, --verify and NODE out"
        )
    if node is not None and node.startswith(FLAG):
        return _unflag(node, where, json=json)
    wiped: list[str] = []
    left: list[erasure.Trace] = []
    by_files: list[str] = []
    undo, command = dict[str, Any](), ""
    with ExitStack() as stack:
        opened = stack.enter_context(where.existing())
        if database is not None:
            from metatree_agents.service.replication.sharing import shared_at

            opened.shared = stack.enter_context(shared_at(database))
        if chosen is not None:
            if not yes:
                planned = erasure.meant(opened, chosen)
                by_files = erasure.by_files(opened, chosen)
                if dry_run or not (planned.nodes or planned.left_to_others):
                    return _say_planned(planned, by_files, json=json)
                if not _agreed(planned):
                    output.note("nothing was forgotten")
                    return WRONG_USE
            by_files = erasure.by_files(opened, chosen)
            erased = erasure.forget_said(opened, chosen)
        else:
            removal = take_back(opened, node or "")
            undo, command = dict(removal.undo), removal.command
            erased = erasure.erased_by(removal)
        if verify and erased.texts:
            wiped = erasure.wipe(opened, erased.texts)
            _make_index_anew(opened)
            erasure.settle(opened.memory, opened.index)
            left = erasure.traces(opened, erased.texts, erased.paths)
        if verify:
            left += [erasure.Trace(each, "says so itself: delete the file") for each in by_files]
    if json:
        about = {"left_to_others": erased.left_to_others, "wiped": wiped, "traces": left, "verified": verify}
        output.write_json("forget", {"forgotten": erased.nodes, "planned": [], "undo": undo, **about})
    else:
        output.write(_forgotten_lines(erased, wiped))
        if command:
            output.note(f"to take this back: {output.visible(command)}")
        if verify and (erased.texts or left):
            _say_what_is_left(left, shared=database is not None)
        elif not verify:
            _say_by_files(by_files)
    if not erased.nodes and not erased.left_to_others:
        output.note(_NOTHING_FITS)
        return NOTHING
    return NOTHING if left else FOUND


def _say_by_files(by_files: Sequence[str]) -> None:
    for node_id in by_files:
        output.note(f"{output.visible(node_id)} stays, and says itself who wrote it: delete the file")


def _say_planned(planned: Erased, by_files: Sequence[str], *, json: bool) -> int:
    """Show what would be forgotten."""
    if json:
        about = {"left_to_others": planned.left_to_others, "wiped": [], "traces": [], "verified": False}
        output.write_json("forget", {"forgotten": [], "planned": planned.nodes, "undo": {}, **about})
    else:
        output.write(_planned_lines(planned))
        _say_by_files(by_files)
    if not planned.nodes and not planned.left_to_others:
        output.note(_NOTHING_FITS)
        return NOTHING
    if not json:
        output.note("nothing was forgotten: leave --dry-run out for that")
    return FOUND


def _planned_lines(planned: Erased) -> Iterator[str]:
    for node_id in planned.nodes:
        yield f"{output.visible(node_id)}  would be forgotten{output.visible(planned.titles.get(node_id, ''))}"
    for node_id in planned.left_to_others:
        yield f"{output.visible(node_id)}  would be left to others who said it too"


def _agreed(planned: Erased) -> bool:
    """Ask whether that is meant; nobody can take back what many memories said."""
    for line in _planned_lines(planned):
        output.note(line)
    return output.agreed(
        f"forget {output.counted(len(planned.nodes), 'node')} for good?",
        "nobody is at a terminal to ask: look with --dry-run, and forget it with --yes",
    )


def _forgotten_lines(erased: Erased, wiped: Sequence[str]) -> Iterator[str]:
    for node_id in erased.nodes:
        yield f"{output.visible(node_id)}  forgotten{output.visible(erased.titles.get(node_id, ''))}"
    for node_id in erased.left_to_others:
        yield f"{output.visible(node_id)}  left to others who said it too"
    for each in wiped:
        yield f"{output.visible(each)}  deleted: it quoted what is forgotten"


def _make_index_anew(tree: Tree) -> None:
    from metatree_routers import text_evidence

    evidence = text_evidence(tree, required=False)
    if evidence is not None and not tree.index.read_only:
        evidence.index.forget()


def _say_what_is_left(left: Sequence[Trace], *, shared: bool) -> None:
    if not left:
        output.note(
            "verified: no word of it is left in the index, the memory, boards, journals and files beside the tree"
        )
        rest = "" if shared else "; runs that several machines share (name their database with --database)"
        output.note(f"not looked at: copies elsewhere, snapshots of the disk, histories of git{rest}")
        return
    for trace in left:
        output.note(f"still there: {output.visible(trace.place)} {output.visible(trace.what)}".rstrip())


def audit(
    node: Annotated[str, options.argument("NODE", "Id of a memory, a wish, a turn, or any other node.")],
    *,
    where: TreeOptions,
    json: options.Json = False,
) -> int:
    """Say where a memory comes from and what it replaced.

    Who said it and when, each time; the turn, memory or file that it stands in; its earlier texts; its standing wishes.
    For a file or a part of one also who wrote which lines and when, in a tree that was built with --history.

    \b
    Example: metatree audit memory:3f2a9c81d0
    """
    from metatree.notes.audit import audit as history_of

    with where.existing() as opened:
        found = history_of(opened, node)
        written = _written(opened, found.node)
    if json:
        about = {"id": found.node.id, "kind": found.node.kind, "title": found.node.title}
        rest = ("text", "under", "said", "stands_in", "replaced", "wishes", "holds")
        output.write_json(
            "audit", {**about, **{name: getattr(found, name) for name in rest}, "written": written}
        )
        return FOUND
    output.write(_audit_lines(found))
    output.write(f"  {output.visible(line)}" for line in written)
    return FOUND


def _written(tree: Tree, node: Node) -> list[str]:
    """Return who wrote the lines that a node was built from, and when; nobody in a tree without history."""
    if node.path is None or tree.file_of(node) is None:
        return []
    from metatree_memory_tools.git.tools import blame

    from metatree.errors import MetatreeError

    try:
        return str(blame.function(node, tree)).splitlines()[:_MOST_WRITTEN]
    except MetatreeError:  # built without history, or a file that is not committed
        return []


def _audit_lines(found: Audit) -> Iterator[str]:
    yield f"{output.styled(output.visible(found.node.id), 'cyan')}  {output.visible(found.node.title)}"
    yield f"  {output.visible(found.node.kind)} below {output.visible(found.under)}"
    for each in found.said:
        source = f" ({output.visible(str(each['source']))})" if each.get("source") else ""
        when = f" on {output.visible(str(each['at'])[:19])}" if each["at"] else ""
        by = f"said by {output.visible(str(each['who']))}{when}{source}"
        yield f"  {output.visible(each['export'])} says: “{by}”" if each.get("export") else f"  {by}"
    if found.stands_in:
        yield f"  stands in {output.visible(found.stands_in)}"
    for each in found.replaced:
        yield f"  replaced on {output.visible(str(each['until'])[:19])}: {output.visible(str(each['text']))}"
    for wish in found.wishes:
        yield f"  states {output.visible(wish)}"
    if not found.holds:
        yield "  a later wish took it back"


def _wishes(where: TreeOptions, who: str | None, under: str | None, *, json: bool) -> int:
    from metatree.notes.wishes import standing
    from metatree_agents.cli.printing.results import wish_lines

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
        about = {"left_to_others": [], "wiped": [], "traces": [], "verified": False}
        output.write_json("forget", {"forgotten": [flag.id], "planned": [], "undo": {}, **about})
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
