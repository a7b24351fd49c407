"""What an administrator sees and does: what is queued, who holds what since when, attempts, failures, users."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import Response

from metatree_agents.service.settings import Service
from metatree_agents.service.web._guard import entered, posted
from metatree_agents.service.web._listing import answered, topics_by_owner
from metatree_agents.service.web._replies import PageError, gone_to, page
from metatree_agents.service.web._thread_pages import number_of
from metatree_agents.service.web.sessions import Session

router = APIRouter()


async def administrator(request: Request) -> Session:
    """Return the session of an administrator, or answer that this page is for them."""
    session = await entered(request)
    if session.role != "admin":
        raise PageError(403, "This page is for administrators.")
    return session


@router.get("/admin")
async def admin_page(request: Request) -> Response:
    """Show the queue, the leases and the users, as `GET /api/admin/overview` has them."""
    session, service = await administrator(request), Service.of(request)
    overview = await service.admin.overview()
    return page(
        request,
        "admin.html",
        session=session,
        waiting=[each for each in overview["Queries"] if each["Status"] != "Failed"],
        failed=[each for each in overview["Queries"] if each["Status"] == "Failed"],
        leases=overview["Leases"],
        users=overview["Users"],
        topics=await topics_by_owner(service.database),
        counts={**overview, "Done": await answered(service.database)},
        attempts=service.settings.attempts,
    )


@router.post("/admin/requeue")
async def requeue(request: Request) -> Response:
    """Open a failed query again."""
    session, service = await administrator(request), Service.of(request)
    given = await posted(request, session)
    if not await service.admin.requeue(given.get("topic", ""), number_of(given.get("seq", ""))):
        raise PageError(404, "There is no such failed question.")
    service.waiting.engines.ring()
    return gone_to("/admin")


@router.post("/admin/release")
async def release(request: Request) -> Response:
    """Take a topic from the engine that has it."""
    session, service = await administrator(request), Service.of(request)
    given = await posted(request, session)
    if not await service.admin.release(given.get("topic", "")):
        raise PageError(404, "No engine has this topic.")
    service.waiting.engines.ring()
    return gone_to("/admin")
