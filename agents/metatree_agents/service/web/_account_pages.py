"""What a person has here: what they recommended and said, to be taken back, and their API keys."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from fastapi import APIRouter, Request
from fastapi.responses import Response
from metatree_memory_tools.text.descriptions import shorten

from metatree import Tree
from metatree.errors import UserError
from metatree.notes.erasure import Said, forget_said
from metatree.notes.notes import forget as forget_node
from metatree.notes.notes import memories, mentions
from metatree_agents.service.accounts.keys import KnownKey, next_label
from metatree_agents.service.http.tree_access import trees_of
from metatree_agents.service.queue.recommendations import CORRECTION, PLAIN, TYPES, Recommendation
from metatree_agents.service.settings import Service
from metatree_agents.service.web._guard import Entered, Form, Here, Number, number_of
from metatree_agents.service.web._memory_pages import reading, tree_named, trees_here
from metatree_agents.service.web._replies import PageError, back_to, link, redirect, sentence
from metatree_agents.service.web._state import Web
from metatree_agents.service.web._tables import (
    PAGE,
    Button,
    Cell,
    FormField,
    GoneCell,
    LinkCell,
    ListedTable,
    PageForm,
    ShownOnce,
    TimeCell,
    paged,
    tables_page,
)
from metatree_agents.service.web.sessions import Session

router = APIRouter()
_SAID = {
    "undone": "That was taken back. An engine forgets it within half a minute.",
    "forgotten": "That is forgotten.",
}


for _form, _page in (
    ("/memories/undo", "/memories"),
    ("/memories/forget", "/memories"),
    ("/account/key", "/account"),
    ("/account/key/end", "/account"),
):
    router.add_api_route(_form, back_to(_page), response_class=Response)


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
            LinkCell(shorten(_said(each), 160), link("/thread", topic=each.topic)),
            PLAIN.get(each.type, each.type),
            shorten(each.query, 120),
            each.on_behalf_of,
            TimeCell(each.at),
            [Button("Undo", "/memories/undo", {"number": each.number}, shorten(each.fragment, 60))],
        ]
        for each in given
    ]
    listed, earlier, later = paged(rows, "/memories", start)
    columns = ("What", "Kind", "For the question", "By", "When", "")
    tables = [
        ListedTable("Recommendations", columns, listed, "There are no recommendations.", earlier, later),
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
        told = await reading(request, name, _told)
        stand = await service.recommendations.made_from(
            {source[1] for each in told for _, source in each.sources if source is not None}
        )
        shown = [row for each in told if (row := _row(each, stand, session, name)) is not None]
        above = len(told) - len(shown)
        hint = (
            f"{above:,} more {'is' if above == 1 else 'are'} from the recommendations above." if above else ""
        )
        empty = "There are no other memories." if above else "There are no memories."
        tables.append(ListedTable(heading, ("What", "Said by", "When", ""), shown, empty, hint=hint))
    return tables_page(
        request,
        session,
        "Recommendations and memories",
        tables,
        lead="Undo takes back what was said of an answer, with all that an engine made of it: the memory, and what"
        " counts less since then. Forget takes out a memory that was told otherwise.",
        notice=_SAID.get(said, ""),
    )


def _said(one: Recommendation) -> str:
    """Return what a recommendation says: of a correction the right words, where they stand in its comment."""
    words = one.comment or one.fragment if one.type == CORRECTION else one.fragment or one.comment
    return " ".join(words.split()) or one.query


@dataclass(frozen=True, slots=True)
class _Told:
    """A memory as it is listed."""

    id: str
    text: str
    at: float | None
    sources: list[tuple[str, tuple[str, str] | None]]
    """Who said it, each time, and as which kind of recommendation in which topic; None for what was told otherwise."""


_HEADING: Final = re.compile(r"^#{1,6}\s+", re.MULTILINE)
_SOURCE: Final = re.compile(rf"({'|'.join(map(re.escape, TYPES))}), topic (.+[^…])")


def _told(tree: Tree) -> list[_Told]:
    rows = []
    for node in memories(tree)[:PAGE]:
        said = mentions(node)
        found = [(each["who"], _SOURCE.fullmatch(each["source"] or "")) for each in said]
        sources = [(who, None if source is None else (source[1], source[2])) for who, source in found]
        text = shorten(_HEADING.sub("", node.content or node.title or node.id), 160)
        rows.append(_Told(node.id, text, _time(said[-1]["at"]) if said else None, sources))
    return rows


def _time(at: object) -> float | None:
    try:
        return datetime.fromisoformat(str(at)).timestamp()
    except ValueError:
        return None


def _row(
    told: _Told, stand: Mapping[tuple[str, str, str], bool], session: Session, tree: str
) -> list[Cell] | None:
    """Return the row of a memory; None for one that all is above as a recommendation."""
    made = [None if source is None else stand.get((who, *source)) for who, source in told.sources]
    own = session.role == "admin" or any(who == session.name for who, _ in told.sources)
    listed = session.sees_all or all(who == session.name for who, _ in told.sources)
    if made and all(made) and listed:
        return None
    text: Cell = LinkCell(told.text, link("/node", id=told.id, tree=tree or None))
    does: Cell = (
        [Button("Forget", "/memories/forget", {"id": told.id, "tree": tree}, shorten(told.text, 60))]
        if own
        else None
    )
    if made and all(each is False for each in made):
        text, does = (
            GoneCell(told.text, "taken back: forgotten within half a minute of a connected engine"),
            None,
        )
    who = ", ".join(dict.fromkeys(who for who, _ in told.sources))
    return [text, who, None if told.at is None else TimeCell(told.at), does]


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
    request: Request,
    session: Session,
    service: Service,
    *,
    shown: ShownOnce | None = None,
    notice: str = "",
    wrong: str = "",
    label: str | None = None,
) -> Response:
    keys = await service.keys.list(session.name)
    name = next_label(keys) if label is None else label
    return tables_page(
        request,
        session,
        "API keys",
        [
            keys_table(
                [
                    [
                        each.shown_name,
                        each.id,
                        TimeCell(each.made_at),
                        None if each.used_at is None else TimeCell(each.used_at),
                        [end_key_button(each, "/account/key/end")],
                    ]
                    for each in keys
                ]
            )
        ],
        lead="A key is sent with each request of a program (Authorization: Bearer …) and does what you may do.",
        forms=[PageForm("Another key", "/account/key", "Make a key", (key_name_field(name),))],
        shown=[shown] if shown else (),
        notice=notice,
        wrong=wrong,
        status=422 if wrong else 200,
    )


def key_name_field(name: str) -> FormField:
    """Return the field for the name of a key, with one that it has unless another is written; empty for a number."""
    hint = "(what it is for, such as: my laptop)" if name else "(such as: my laptop; a number if empty)"
    return FormField("label", "Name", value=name, required=bool(name), hint=hint)


def keys_table(rows: list[list[Cell]], *, whose: bool = False) -> ListedTable:
    """Return the table of API keys; with whose they are where they are of several."""
    columns = ("Name", "Id", *(("User",) if whose else ()), "Made", "Last used", "")
    return ListedTable("Keys", columns, rows, "There are no API keys.")


def end_key_button(key: KnownKey, action: str) -> Button:
    """Return the button that ends a key, which asks before."""
    asks = "Programs that send this key are refused from then on. Nothing brings it back."
    return Button("End", action, {"id": key.id}, _about(key), asks=asks)


def _about(key: KnownKey) -> str:
    return f"the key {key.label!r}" if key.label else f"the key {key.id} ({key.shown_name})"


def use_of(request: Request, key: str) -> str:
    """Return how a program uses a key at this server, as lines to copy."""
    address = f"{request.url.scheme}://{request.url.netloc}"
    return (
        f"export OPENAI_BASE_URL={address}/v1\nexport OPENAI_API_KEY={key}   # with the model metatree\n"
        f'curl -H "Authorization: Bearer {key}" {address}/api/login\n'
        f'curl -H "Authorization: Bearer {key}" -H "Content-Type: application/json" {address}/v1/chat/completions \\\n'
        """  -d '{"model": "metatree", "messages": [{"role": "user", "content": "Your question?"}]}'"""
    )


@router.post("/account/key")
async def make_key(request: Request, session: Entered, service: Here, given: Form) -> Response:
    """Make a key for this person, and show it this once."""
    label = given.get("label", "").strip() or next_label(await service.keys.list(session.name))
    try:
        key = await service.keys.add(session.name, label=label)
    except UserError as exc:
        return await _account_page(request, session, service, wrong=sentence(exc), label=label)
    shown = ShownOnce(f"Your new API key ({label}). It is shown this once:", key, use_of(request, key))
    return await _account_page(request, session, service, shown=shown)


@router.post("/account/key/end")
async def end_key(request: Request, session: Entered, service: Here, given: Form) -> Response:
    """End a key of this person."""
    if given.get("id") not in [each.id for each in await service.keys.list(session.name)]:
        raise PageError(404, "You have no such key.")
    await service.keys.remove(given["id"])
    return await _account_page(request, session, service, notice="The key has ended.")
