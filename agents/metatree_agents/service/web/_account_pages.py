"""What a person has here: what they recommended and said, to be taken back, and their API keys."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import Response

from metatree import Tree
from metatree.errors import UserError
from metatree.notes.erasure import Said, forget_said
from metatree.notes.notes import forget as forget_node
from metatree.notes.notes import memories, mentions
from metatree_agents.service.http.bodies import stamp
from metatree_agents.service.http.tree_access import trees_of
from metatree_agents.service.settings import Service
from metatree_agents.service.web._guard import Entered, Form, Here, Number, number_of
from metatree_agents.service.web._memory_pages import reading, tree_named, trees_here
from metatree_agents.service.web._replies import PageError, link, redirect
from metatree_agents.service.web._state import Web
from metatree_agents.service.web._tables import (
    PAGE,
    Button,
    Cell,
    LinkCell,
    ListedTable,
    PageForm,
    ShownOnce,
    paged,
    tables_page,
)
from metatree_agents.service.web.sessions import Session

router = APIRouter()
_SAID = {
    "undone": "That was taken back. An engine forgets it within half a minute.",
    "forgotten": "That is forgotten.",
}


@router.get("/memories")
async def memories_page(
    request: Request, session: Entered, service: Here, start: Number = 0, said: str = "", tree: str = ""
) -> Response:
    """List what people recommended, and what the memory was told, each with a way back."""
    by = None if session.sees_all else session.name
    may = await trees_of(service, session.caller)
    given = await service.recommendations.standing(by=by, start=start, limit=PAGE + 1, trees=may)
    rows: list[list[Cell]] = [
        [
            LinkCell(each.fragment[:160], link("/thread", topic=each.topic))
            if each.fragment
            else each.comment[:160],
            each.type,
            each.query[:120],
            each.on_behalf_of,
            stamp(each.at).replace("T", " "),
            [Button("Undo", "/memories/undo", {"number": each.number}, each.fragment[:60])],
        ]
        for each in given
    ]
    listed, earlier, later = paged(rows, "/memories", start)
    columns = ("What", "Kind", "For the question", "By", "When (UTC)", "")
    tables = [
        ListedTable("Recommendations", columns, listed, "Nobody recommended anything yet.", earlier, later),
    ]
    here, memories_of = Web.of(request).memories, list[tuple[str, str]]()
    if "" in here:
        memories_of = [("", "Memories")]
    elif here:
        memories_of = [
            (each.name, f"Memories of {each.title}")
            for each in await trees_here(request, session)
            if tree in ("", each.name)
        ]
    for name, heading in memories_of:
        told = await reading(request, name, _told, session, name)
        tables.append(
            ListedTable(
                heading, ("What", "Said by", "When (UTC)", ""), told, "The memory was told nothing yet."
            )
        )
    return tables_page(
        request,
        session,
        "Recommendations and memories",
        tables,
        lead="What people said of answers, and what the memory was told, by them and otherwise."
        " What is taken back, above or below, is found no more.",
        notice=_SAID.get(said, ""),
    )


def _told(tree: Tree, session: Session, name: str) -> list[list[Cell]]:
    rows: list[list[Cell]] = []
    for node in memories(tree)[:PAGE]:
        said = mentions(node)
        may = session.role == "admin" or any(each["who"] == session.name for each in said)
        rows.append(
            [
                LinkCell(
                    " ".join((node.content or node.title or node.id).split())[:160],
                    link("/node", id=node.id, tree=name or None),
                ),
                ", ".join(dict.fromkeys(each["who"] for each in said)),
                str(said[-1]["at"])[:19].replace("T", " ") if said else None,
                [Button("Forget", "/memories/forget", {"id": node.id, "tree": name}, node.title[:60])]
                if may
                else None,
            ]
        )
    return rows


@router.post("/memories/undo")
async def undo(session: Entered, service: Here, given: Form) -> Response:
    """Take back a recommendation; engines forget what they made of it."""
    number = number_of(given.get("number", ""))
    if not await service.recommendations.withdraw(number, by=None if session.sees_all else session.name):
        raise PageError(
            404, "There is no such recommendation, or it is not yours, or it was taken back before."
        )
    if topic := given.get("topic"):
        seq = number_of(given.get("seq", ""))
        return redirect("/thread", anchor=f"q{seq}", topic=topic, said="undone", of=seq)
    return redirect("/memories", said="undone")


@router.post("/memories/forget")
async def forget(request: Request, session: Entered, given: Form) -> Response:
    """Forget a memory: all of it for an administrator, what they said themselves for anybody else."""
    tree = await tree_named(request, session, given.get("tree", ""))
    await reading(request, tree, _forget, session, given.get("id", ""))
    return redirect("/memories", said="forgotten")


def _forget(tree: Tree, session: Session, node_id: str) -> None:
    node = tree.get(node_id)
    if session.role == "admin":
        forget_node(tree, node)
        return
    if all(each["who"] != session.name for each in mentions(node)):
        raise UserError("Somebody else said this.")
    forget_said(tree, Said(who=session.name, node=node.id))


@router.get("/account")
async def account(request: Request, session: Entered, service: Here) -> Response:
    """Show a person's API keys."""
    return await _account_page(request, session, service)


async def _account_page(
    request: Request, session: Session, service: Service, *, shown: ShownOnce | None = None, notice: str = ""
) -> Response:
    keys = await service.keys.list(session.name)
    return tables_page(
        request,
        session,
        "API keys",
        [
            keys_table(
                [
                    [each.id, stamp(each.made_at).replace("T", " "), _used(each.used_at), _end(each.id)]
                    for each in keys
                ]
            )
        ],
        lead="A key is sent with each request of a program (Authorization: Bearer …) and does what you may do.",
        forms=[PageForm("Another key", "/account/key", "Make a key")],
        shown=[shown] if shown else (),
        notice=notice,
    )


def keys_table(rows: list[list[Cell]], *, whose: bool = False) -> ListedTable:
    """Return the table of API keys; with whose they are where they are of several."""
    columns = ("Id", *(("User",) if whose else ()), "Made (UTC)", "Last used (UTC)", "")
    return ListedTable("Keys", columns, rows, "There are no API keys.")


def _used(at: float | None) -> str | None:
    return None if at is None else stamp(at).replace("T", " ")


def _end(key_id: str) -> list[Button]:
    return [Button("End", "/account/key/end", {"id": key_id}, f"key {key_id}")]


@router.post("/account/key")
async def make_key(request: Request, session: Entered, service: Here, _: Form) -> Response:
    """Make a key for this person, and show it this once."""
    key = await service.keys.add(session.name)
    shown = ShownOnce("Your new API key. It is shown this once:", key)
    return await _account_page(request, session, service, shown=shown)


@router.post("/account/key/end")
async def end_key(request: Request, session: Entered, service: Here, given: Form) -> Response:
    """End a key of this person."""
    if given.get("id") not in [each.id for each in await service.keys.list(session.name)]:
        raise PageError(404, "You have no such key.")
    await service.keys.remove(given["id"])
    return await _account_page(request, session, service, notice="The key has ended.")
