"""What an administrator sees and does: the queue, users with their keys and links, engines, limits, backups."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Final

from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response, StreamingResponse
from metatree_memory_tools.text.descriptions import shorten

from metatree.errors import MetatreeError, UserError
from metatree_agents.service.accounts.former_users import Choice, NameWasUsed, delete_left, left_by_all
from metatree_agents.service.accounts.keys import next_label
from metatree_agents.service.accounts.tree_rights import UNNAMED
from metatree_agents.service.accounts.users import INSIDE, ROLES
from metatree_agents.service.database.backup import back_up
from metatree_agents.service.database.database import ServiceDatabase
from metatree_agents.service.http.bodies import stamp
from metatree_agents.service.queue.statuses import SAID
from metatree_agents.service.settings import Service
from metatree_agents.service.web._account_pages import end_key_button, key_name_field, keys_table, use_of
from metatree_agents.service.web._guard import Entered, Form, Here, Number, number_of, sessions_of
from metatree_agents.service.web._listing import answered, topics_by_owner, unanswered
from metatree_agents.service.web._memory_pages import reading
from metatree_agents.service.web._replies import PRIVATE, PageError, back_to, link, redirect, sentence
from metatree_agents.service.web._state import Web
from metatree_agents.service.web._tables import (
    PAGE,
    Button,
    Cell,
    FormField,
    LinkCell,
    ListedTable,
    PageForm,
    ShownOnce,
    TimeCell,
    paged,
    tables_page,
)
from metatree_agents.service.web.sessions import Session, login_link

router = APIRouter()
TABS: Final = (
    ("Queue", "/admin"),
    ("Users", "/admin/users"),
    ("Keys", "/admin/keys"),
    ("Trees", "/admin/trees"),
    ("Engines", "/admin/engines"),
    ("Limits", "/admin/limits"),
    ("Backups", "/admin/backups"),
)
_FIGURES: Final = ("Open", "Pending", "Waiting", "Failed")
_OLD: Final[dict[str, Choice]] = {"delete it": "delete", "show it to the new user": "keep"}
"""What may become of what somebody of a name left, for people."""
_LIMITS: Final = {
    "address_rate": "requests a second from one address",
    "address_burst": "requests from one address at once, before its rate counts",
    "user_rate": "requests a second of one user",
    "user_burst": "requests of one user at once, before the rate counts",
    "connections": "requests of one user in progress, those that wait among them",
    "program_connections": "the same of a frontend, an engine or an administrator",
    "open_queries": "unanswered questions of one user",
}
_FREE: Final = "searches can begin here now"
"""An engine waits once for each search that it does at a time (`--concurrency`)."""
_CHUNK: Final = 1 << 20
_AGAIN_S: Final = 20
"""How often an open page of the queue, or of the engines, is brought up to date."""
_NOBODY: Final = (
    "Nobody is searching: no engine is connected. `metatree service worker` starts one on any machine;"
    " docs/several-machines.md has the whole line."
)


async def administrator(session: Entered) -> Session:
    """Return the session of an administrator, or answer that this page is for them."""
    if session.role != "admin":
        raise PageError(403, "This page is for administrators.")
    return session


Administrator = Annotated[Session, Depends(administrator)]


@router.get("/admin")
async def admin_page(
    request: Request, session: Administrator, service: Here, start: Number = 0, failed: Number = 0
) -> Response:
    """Show the queue, what failed, and who holds what."""
    figures, free = await service.admin.figures(), len(service.waiting.engines)
    without, all_ended = await _unanswered(request, service), await answered(service.database)
    attempts = service.settings.attempts
    tables = []
    for ended, heading, empty in (
        (False, "Queue", "Nothing waits for an engine."),
        (True, "Failures", "Nothing has failed."),
    ):
        at = failed if ended else start
        queries = await service.admin.queries(failed=ended, start=at, limit=PAGE + 1)
        rows, earlier, later = paged([_query(each, attempts, again=ended) for each in queries], "/admin", 0)
        name, other = ("failed", {"start": start or None}) if ended else ("start", {"failed": failed or None})
        earlier = link("/admin", **other, **{name: max(0, at - PAGE)}) if at else None
        later = link("/admin", **other, **{name: at + PAGE}) if later else None
        columns = ("Question", "Of", "Status", "Asked (UTC)", "Engine", "Attempts", *([""] if ended else []))
        tables.append(ListedTable(heading, columns, rows, empty, earlier, later))
    columns = ("Engine", "Topic", "Since (UTC)", "Until (UTC)", "")
    leases = [_lease(each) for each in await service.admin.leases(limit=PAGE)]
    tables.insert(1, ListedTable("Who holds what", columns, leases, "No engine holds a topic."))
    return tables_page(
        request,
        session,
        "Queue",
        tables,
        tabs=TABS,
        figures=[
            *((f"{figures.queries[status]:,}", SAID[status]) for status in _FIGURES),
            (f"{max(0, all_ended - without):,}", "answered"),
            (f"{without:,}", "not answered"),
            (f"{free:,}", _FREE),
        ],
        wrong="" if await service.admin.has_engines(waiting=free) else _NOBODY,
        again=_AGAIN_S,
    )


async def _unanswered(request: Request, service: Service) -> int:
    """Return how many questions nothing answered, as it was a moment ago: with many topics it takes a while."""
    web, now = Web.of(request), time.monotonic()
    if web.unanswered is None or now - web.unanswered[0] > web.unanswered[2]:
        count = await unanswered(service.database)
        took_s = time.monotonic() - now
        web.unanswered = (now, count, min(_AGAIN_S, 100 * took_s))
    return web.unanswered[1]


def _query(row: dict[str, Any], attempts: int, *, again: bool) -> list[Cell]:
    cells: list[Cell] = [
        LinkCell(shorten(row["Query"], 100), link("/thread", topic=row["Topic"]) + f"#q{row['Seq']}"),
        row["Owner"],
        SAID[row["Status"]],
        _spaced(row["Asked"]),
        row["Engine"],
        f"{row['Attempts']} of {attempts}",
    ]
    which = {"topic": row["Topic"], "seq": row["Seq"]}
    return (
        [*cells, [Button("Try again", "/admin/requeue", which, shorten(row["Query"], 60))]]
        if again
        else cells
    )


def _lease(row: dict[str, Any]) -> list[Cell]:
    return [
        row["Engine"],
        LinkCell(shorten(row["Topic"], 60), link("/thread", topic=row["Topic"])),
        _spaced(row["Since"]),
        _spaced(row["Until"]) + (" (ended)" if row["Ended"] else ""),
        None
        if row["Ended"]
        else [Button("Take away", "/admin/release", {"topic": row["Topic"]}, shorten(row["Topic"], 60))],
    ]


def _spaced(at: str | None) -> str:
    return "–" if at is None else at.replace("T", " ")


for _page, _forms in (
    ("/admin/users", ("add", "secret", "link", "role", "remove", "delete-left")),
    ("/admin/keys", ("add", "end")),
    ("/admin", ("requeue", "release")),
):
    for _form in _forms:
        router.add_api_route(f"{_page}/{_form}", back_to(_page), response_class=Response)


@router.post("/admin/requeue")
async def requeue(_: Administrator, service: Here, given: Form) -> Response:
    """Open a failed query again."""
    if not await service.admin.requeue(given.get("topic", ""), number_of(given.get("seq", ""))):
        raise PageError(404, "There is no such failed question.")
    service.waiting.engines.notify()
    return redirect("/admin")


@router.post("/admin/release")
async def release(_: Administrator, service: Here, given: Form) -> Response:
    """Take a topic from the engine that has it."""
    if not await service.admin.release(given.get("topic", "")):
        raise PageError(404, "No engine has this topic.")
    service.waiting.engines.notify()
    return redirect("/admin")


# users


@router.get("/admin/users")
async def users_page(
    request: Request, session: Administrator, service: Here, start: Number = 0, left: Number = 0
) -> Response:
    """List the users, with what can be done about each."""
    return await _users(request, session, service, start=start, left=left)


async def _users(
    request: Request,
    session: Session,
    service: Service,
    *,
    start: int = 0,
    left: int = 0,
    shown: Sequence[ShownOnce] = (),
    notice: str = "",
    wrong: str = "",
    given: Mapping[str, str] | None = None,
    status: int = 200,
) -> Response:
    topics = await topics_by_owner(service.database)
    rows: list[list[Cell]] = []
    for each in await service.admin.users(start=start, limit=PAGE + 1):
        name, role = each["Name"], each["Role"]
        count = topics.get(name, 0)
        rows.append(
            [
                name,
                LinkCell(f"{count:,}", link("/topics", of=name)) if count else None,
                LinkCell(f"{each['Keys']:,}", link("/admin/keys", of=name)) if each["Keys"] else None,
                _spaced(each["Added"]),
                None if each["LastSeen"] is None else _spaced(each["LastSeen"]),
                *_doings(name, role, own=name == session.name),
            ]
        )
    columns = ("Name", "Topics", "Keys", "Added (UTC)", "Last seen (UTC)", "Role", "")
    listed, earlier, later = paged(rows, "/admin/users", start)
    given = given or {}
    inputs = [
        FormField(
            "name",
            "Name",
            pattern="[A-Za-z0-9_.@\\-]{1,64}",
            value=given.get("name", ""),
            hint="(up to 64 letters without accents, digits and _ . @ -)",
        ),
        FormField(
            "role", "Role", choices=("user", "frontend", "engine", "admin"), value=given.get("role", "user")
        ),
    ]
    if given:
        inputs.append(FormField("old", "What was left", choices=[*_OLD], value=next(iter(_OLD))))
    add = PageForm(
        "Add somebody",
        "/admin/users/add",
        "Add",
        inputs,
        "A user asks for themselves, a frontend for anybody, an engine answers, an administrator may do all this.",
    )
    return tables_page(
        request,
        session,
        "Users",
        [
            ListedTable("Users", columns, listed, "There is nobody.", earlier, later),
            *await _left(service, start, left),
        ],
        tabs=TABS,
        forms=[add],
        shown=shown,
        notice=notice,
        wrong=wrong,
        status=status,
    )


def _doings(name: str, role: str, *, own: bool) -> tuple[Cell, Cell]:
    """Return the cells of a user's role and of what can be done; nobody takes themselves out, or the engine inside."""
    if name == INSIDE:
        return role, None
    which = {"name": name}
    link_ = () if role == "engine" else (Button("Log-in link", "/admin/users/link", which, name),)
    doings = [
        *link_,
        Button(
            "New secret",
            "/admin/users/secret",
            which,
            f"for {name}",
            asks=f"The secret that {name} has ends, and so does every log-in of theirs.",
        ),
        Button("New key", "/admin/keys/add", which, name),
    ]
    if own:
        return role, doings
    change = Button("Change", "/admin/users/role", which, f"the role of {name}", choices=ROLES, chosen=role)
    remove = Button(
        "Remove",
        "/admin/users/remove",
        which,
        name,
        asks=f"Take {name} out? Secret, keys and log-ins end, and nothing brings them back. What they asked stays.",
    )
    return [change], [*doings, remove]


async def _left(service: Service, start: int, before: int) -> list[ListedTable]:
    """Return the table of names that no user has and that own topics; none when there is none.

    Args:
        start: where the page of users begins.
        before: how many of these names are on pages before.
    """
    async with service.database.snapshot() as do:
        left = await left_by_all(do, start=before, limit=PAGE + 1)
    rows: list[list[Cell]] = [
        [
            each.name,
            LinkCell(f"{each.topics:,}", link("/topics", of=each.name)),
            [
                Button(
                    "Delete",
                    "/admin/users/delete-left",
                    {"name": each.name},
                    f"what {each.name} asked",
                    asks=f"Delete what {each.name} asked, with the answers? Nothing brings it back.",
                )
            ],
        ]
        for each in left[:PAGE]
    ]
    earlier = link("/admin/users", start=start or None, left=max(0, before - PAGE)) if before else None
    later = link("/admin/users", start=start or None, left=before + PAGE) if len(left) > PAGE else None
    hint = (
        "They were taken out, or a frontend asked for them. A new user of such a name sees these topics only where you"
        " say so."
    )
    heading = "Topics of people who are no users"
    columns = ("Name", "Topics", "")
    return [ListedTable(heading, columns, rows, "", earlier, later, hint=hint)] if rows else []


def _of_others(session: Session, given: dict[str, str]) -> str:
    """Return the user that a form names, who is neither this person nor the engine inside."""
    name = given.get("name", "").strip()
    if name == session.name:
        raise PageError(422, "Another administrator has to do this: you would lock yourself out.")
    return _outside(name)


def _outside(name: str) -> str:
    if name == INSIDE:
        raise PageError(422, f"{name} is the engine inside this server, which knows its secret.")
    return name


@router.post("/admin/users/add")
async def add_user(request: Request, session: Administrator, service: Here, given: Form) -> Response:
    """Add a user, and show the secret and a link this once."""
    name, role = given.get("name", "").strip(), given.get("role", "user")
    if name in [known for known, _, _ in await service.users.list()]:
        wrong = f"There is a user {name} already: give them a new secret, or choose another name."
        return await _users(request, session, service, wrong=wrong, status=409)
    try:
        secret = await service.users.add(name, role, topics=_OLD.get(given.get("old", "")))
    except NameWasUsed as exc:
        wrong = f"{name} was here before and left {exc.left}: say below what becomes of it, or choose another name."
        return await _users(
            request, session, service, wrong=wrong, given={"name": name, "role": role}, status=409
        )
    except UserError as exc:
        return await _users(
            request, session, service, wrong=sentence(exc), given={"name": name, "role": role}, status=422
        )
    shown = [ShownOnce(f"The secret of {name}. It is shown this once:", secret)]
    if role != "engine":
        shown.append(await _link_of(request, name))
    trees = [tree.name for tree in await service.tree_rights.all()]
    sees_none = role == "user" and trees and not await service.tree_rights.of(name) & ~UNNAMED
    notice = f"{name} may ask no tree yet: give them access on the page Trees." if sees_none else ""
    return await _users(request, session, service, shown=shown, notice=notice)


@router.post("/admin/users/secret")
async def new_secret(request: Request, session: Administrator, service: Here, given: Form) -> Response:
    """Give a user a new secret; the one before and all sessions end."""
    name = _outside(given.get("name", ""))
    role = await _role_of(service, name)
    shown = ShownOnce(
        f"The new secret of {name}. It is shown this once:", await service.users.add(name, role)
    )
    await service.revocation.check()
    if name == session.name:  # this session has ended with the others: one more page, and then the log-in
        return tables_page(request, session, "Your new secret", shown=[shown], notice="Log in with it again.")
    return await _users(request, session, service, shown=(shown,))


@router.post("/admin/users/link")
async def new_link(request: Request, session: Administrator, service: Here, given: Form) -> Response:
    """Make a link that logs somebody in once."""
    name = given.get("name", "")
    await _role_of(service, name)
    try:
        return await _users(request, session, service, shown=(await _link_of(request, name),))
    except UserError as exc:
        raise PageError(422, str(exc)) from None


async def _link_of(request: Request, name: str) -> ShownOnce:
    address = f"{request.url.scheme}://{request.url.netloc}"
    code = await sessions_of(request).make_code(name)
    return ShownOnce(f"This link logs {name} in, once, within 15 minutes:", login_link(address, code))


@router.post("/admin/users/role")
async def new_role(request: Request, session: Administrator, service: Here, given: Form) -> Response:
    """Give a user another role."""
    name, role = _of_others(session, given), given.get("choice", "")
    try:
        await service.users.change_role(name, role)
    except UserError as exc:
        raise PageError(422, str(exc)) from None
    await service.revocation.check()
    return await _users(request, session, service, notice=f"{name} is of role {role} now.")


@router.post("/admin/users/remove")
async def remove_user(request: Request, session: Administrator, service: Here, given: Form) -> Response:
    """Take a user out, with keys and sessions; what was asked and answered stays."""
    name = _of_others(session, given)
    await _role_of(service, name)
    await service.users.remove(name)
    await service.revocation.check()
    return await _users(request, session, service, notice=f"{name} is a user no more. What they asked stays.")


@router.post("/admin/users/delete-left")
async def delete_topics_left(
    request: Request, session: Administrator, service: Here, given: Form
) -> Response:
    """Delete what somebody left who is no user."""
    name = given.get("name", "")
    try:
        async with service.database.transaction() as do:
            left = await delete_left(do, name)
    except UserError as exc:
        raise PageError(422, str(exc)) from None
    if not left:
        raise PageError(404, "There is nothing left of anybody of this name.")
    said = f"{left} of {name}: deleted."
    return await _users(request, session, service, notice=said)


async def _role_of(service: Service, name: str) -> str:
    for known, role, _ in await service.users.list():
        if known == name:
            return role
    raise PageError(404, "There is no such user.")


# keys


@router.get("/admin/keys")
async def keys_page(request: Request, session: Administrator, service: Here, of: str = "") -> Response:
    """List the API keys of a user, or all."""
    return await _keys(request, session, service, of=of)


async def _keys(
    request: Request,
    session: Session,
    service: Service,
    *,
    of: str = "",
    shown: Sequence[ShownOnce] = (),
    notice: str = "",
    wrong: str = "",
    given: Mapping[str, str] | None = None,
) -> Response:
    """Return the page of the keys.

    Args:
        wrong: why no key was made, where the form has what was given.
    """
    given = given or {}
    keys = await service.keys.list(of or None)
    rows: list[list[Cell]] = [
        [
            "of the service itself" if each.name == INSIDE else each.shown_name,
            each.id,
            each.name,
            TimeCell(each.made_at),
            None if each.used_at is None else TimeCell(each.used_at),
            None if each.name == INSIDE else [end_key_button(each, "/admin/keys/end")],
        ]
        for each in keys
    ]
    name = key_name_field(given.get("label", next_label(keys) if of else ""))
    return tables_page(
        request,
        session,
        f"Keys of {of}" if of else "Keys",
        [keys_table(rows, whose=True)],
        tabs=TABS,
        shown=shown,
        notice=notice,
        wrong=wrong,
        status=422 if wrong else 200,
        forms=[
            PageForm(
                "Another key",
                "/admin/keys/add",
                "Make a key",
                (FormField("name", "For", value=given.get("name", of)), name),
            )
        ],
    )


@router.post("/admin/keys/add")
async def add_key(request: Request, session: Administrator, service: Here, given: Form) -> Response:
    """Make a key for a user, and show it this once."""
    name = _outside(given.get("name", "").strip())
    label = given.get("label", "").strip() or next_label(await service.keys.list(name))
    try:
        key = await service.keys.add(name, label=label)
    except UserError as exc:
        return await _keys(request, session, service, wrong=sentence(exc), given=given)
    shown = ShownOnce(
        f"The new API key of {name} ({label}). It is shown this once:", key, use_of(request, key)
    )
    return await _keys(request, session, service, shown=(shown,))


@router.post("/admin/keys/end")
async def end_key(request: Request, session: Administrator, service: Here, given: Form) -> Response:
    """End a key."""
    which = given.get("id", "")
    if which not in [each.id for each in await service.keys.list() if each.name != INSIDE]:
        raise PageError(404, "There is no such key.")
    owner = await service.keys.remove(which)
    return await _keys(request, session, service, notice=f"A key of {owner} has ended.")


# engines, limits, backups


@router.get("/admin/engines")
async def engines_page(request: Request, session: Administrator, service: Here) -> Response:
    """List the engines: which are there, and what each has."""
    free = len(service.waiting.engines)
    trees = {
        name: [await service.tree_rights.names_in(each) for each in sets]
        for name, sets in (await service.admin.engine_trees()).items()
    }
    rows: list[list[Cell]] = [
        [
            each["Name"],
            *(["; ".join([", ".join(its) for its in trees.get(each["Name"], [])])] if trees else []),
            f"{each['Topics']:,}",
            _spaced(each["LastSeen"]),
            "yes" if each["Connected"] else "no",
        ]
        for each in await service.admin.engines()
    ]
    return tables_page(
        request,
        session,
        "Engines",
        [
            ListedTable(
                "Engines",
                ("Name", *(["Trees"] if trees else []), "Topics held", "Last seen (UTC)", "Connected"),
                rows,
                "There is no engine.",
            )
        ],
        tabs=TABS,
        figures=[(f"{free:,}", _FREE)],
        lead="An engine is connected when it has a topic, or was heard of in the last two minutes. It does as many"
        " searches at a time as its --concurrency says.",
        wrong="" if await service.admin.has_engines(waiting=free) else _NOBODY,
        again=_AGAIN_S,
    )


@router.get("/admin/limits")
async def limits_page(request: Request, session: Administrator, service: Here) -> Response:
    """Show the limits, and how long things wait here."""
    rates, settings = service.limits.rates, service.settings
    limits: list[list[Cell]] = [
        [
            each.name.replace("_", "-"),
            f"{getattr(rates, each.name):,.0f}" if getattr(rates, each.name) else "none",
            _LIMITS[each.name],
        ]
        for each in fields(rates)
    ]
    others: list[list[Cell]] = [
        [
            "lease",
            f"{settings.lease_s:,.0f} s",
            "after how long without a word an engine loses a topic to another one",
        ],
        ["attempts", f"{settings.attempts:,}", "how many engines try a question before it fails"],
        [
            "claim-timeout",
            f"{settings.claim_timeout_s:,.0f} s",
            "how long one request of an engine for a question may wait",
        ],
        [
            "answer-timeout",
            f"{settings.answer_timeout_s:,.0f} s",
            "how long one request for an answer may wait",
        ],
        [
            "shared",
            "yes" if settings.shared else "no",
            "whether users read the topics of others and ask in them; only an owner renames or deletes",
        ],
        ["no-sha1", "no" if settings.proofs.sha1 else "yes", "whether proofs made with SHA-1 are refused"],
    ]
    columns = ("Name", "Value", "What it is")
    return tables_page(
        request,
        session,
        "Limits",
        [
            ListedTable("Limits (--limit NAME=N)", columns, limits, ""),
            ListedTable("Options", columns, others, ""),
        ],
        tabs=TABS,
        lead="They are set when a server is started, and each server counts by itself.",
    )


@router.get("/admin/backups")
async def backups_page(request: Request, session: Administrator) -> Response:
    """Offer a backup."""
    return tables_page(
        request,
        session,
        "Backups",
        tabs=TABS,
        lead="A backup is one file with all users, topics and answers, and the memories of the trees shown here.",
        forms=[
            PageForm(
                "A backup of now",
                "/admin/backups/make",
                "Make and download",
                hint="The secrets of all users are in it: keep it where only you can read it. "
                "metatree service check FILE reads it, metatree service restore FILE puts it back.",
            )
        ],
    )


@router.post("/admin/backups/make")
async def make_backup(request: Request, _: Administrator, service: Here, given: Form) -> Response:
    """Make a backup and give it as a file; nothing of it stays here."""
    memories = dict[str, Path]()
    for tree in Web.of(request).memories:
        path = await reading(request, tree, lambda opened: opened.memory.path)
        if path is not None:
            memories[tree] = path
    name = f"metatree-{stamp(service.database.clock()).replace(':', '')}.backup"
    try:
        # In a thread, over connections of its own: others are not kept waiting.
        made = await asyncio.to_thread(_backed_up, service.database, memories)
    except MetatreeError as exc:
        raise PageError(503, f"The backup was not made: {exc}") from None
    disposition = {"Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingResponse(
        _chunks(made), media_type="application/octet-stream", headers={**PRIVATE, **disposition}
    )


def _chunks(file: BinaryIO) -> Iterator[bytes]:
    with file:
        yield from iter(lambda: file.read(_CHUNK), b"")


def _backed_up(database: ServiceDatabase, memories: Mapping[str, Path]) -> BinaryIO:
    """Return a backup as an open file that is in no folder any more: nothing of it is left, whatever happens."""

    async def write(file: Path) -> None:
        own = database.opened_again()
        try:
            await own.start()
            await back_up(own, file, memory=memories)
        finally:
            await own.close()

    with tempfile.TemporaryDirectory(prefix="metatree-backup-") as folder:
        asyncio.run(write(file := Path(folder) / "service.backup"))
        return file.open("rb")
