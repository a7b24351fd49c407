"""What an administrator sees and does: the queue, engines, limits, backups; users are in `_user_pages`."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Final

from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response, StreamingResponse
from metatree_memory_tools.text.descriptions import shorten

from metatree import Tree
from metatree.errors import MetatreeError
from metatree_agents.service.database.backup import back_up
from metatree_agents.service.database.database import ServiceDatabase
from metatree_agents.service.http.bodies import stamp
from metatree_agents.service.queue.statuses import SAID
from metatree_agents.service.settings import Service
from metatree_agents.service.web._guard import Entered, Form, Here, Number, number_of
from metatree_agents.service.web._listing import answered, unanswered
from metatree_agents.service.web._memory_pages import reading
from metatree_agents.service.web._replies import PRIVATE, PageError, back_to, link, redirect
from metatree_agents.service.web._state import Web
from metatree_agents.service.web._tables import (
    PAGE,
    Button,
    Cell,
    LinkCell,
    ListedTable,
    PageForm,
    paged,
    tables_page,
)
from metatree_agents.service.web.sessions import Session

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


async def _troubles(request: Request, service: Service, free: int) -> str:
    """Return what keeps questions from being answered as they should be; empty for nothing.

    Args:
        free: how many searches can begin at this server now.
    """
    said = list[str]()
    if not await service.admin.has_engines(waiting=free):
        named, address = await service.tree_rights.all(), f"{request.url.scheme}://{request.url.netloc}"
        what = f"{named[0].name}=FOLDER" if named else "--source FOLDER"
        line = f"metatree service worker --server {address} --user NAME {what}"
        said.append(
            f"Nobody is searching: no engine is connected. `METATREE_SECRET=… {line}` starts one, with the name and the"
            " secret of a user of the role engine (Users), where the folder is."
        )
        if (await service.trees.current()).version:
            said.append("Without `--source` it searches a copy of the tree that this server publishes.")
    said += [
        f"The router of {name} fails since {spaced(since)} (UTC), and its searches go on without it. Its error: {error}"
        for name, since, error in await service.admin.routers_failing()
    ]
    return " ".join(said)


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
        wrong=await _troubles(request, service, free),
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
        spaced(row["Asked"]),
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
        spaced(row["Since"]),
        spaced(row["Until"]) + (" (ended)" if row["Ended"] else ""),
        None
        if row["Ended"]
        else [Button("Take away", "/admin/release", {"topic": row["Topic"]}, shorten(row["Topic"], 60))],
    ]


def spaced(at: str | None) -> str:
    return "–" if at is None else at.replace("T", " ")


for _form in ("requeue", "release"):
    router.add_api_route(f"/admin/{_form}", back_to("/admin"), response_class=Response)


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
            spaced(each["LastSeen"]),
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
        wrong=await _troubles(request, service, free),
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


def _memory_of(tree: Tree) -> Path | None:
    """Return the file of a tree's memory, which is opened again by its name."""
    tree.memory.check_place()
    return tree.memory.path


@router.post("/admin/backups/make")
async def make_backup(request: Request, _: Administrator, service: Here, given: Form) -> Response:
    """Make a backup and give it as a file; nothing of it stays here."""
    memories = dict[str, Path]()
    name = f"metatree-{stamp(service.database.clock()).replace(':', '')}.backup"
    try:
        for tree in Web.of(request).memories:
            path = await reading(request, tree, _memory_of)
            if path is not None:
                memories[tree] = path
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
