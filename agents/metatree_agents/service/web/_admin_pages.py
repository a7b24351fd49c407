"""What an administrator sees and does: what is queued, who holds what since when, attempts, failures, users."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response

from metatree_agents.service.web._guard import Entered, Form, Here, number_of
from metatree_agents.service.web._listing import answered, topics_by_owner
from metatree_agents.service.web._replies import PageError, page, redirect
from metatree_agents.service.web.sessions import Session

router = APIRouter()


async def administrator(session: Entered) -> Session:
    """Return the session of an administrator, or answer that this page is for them."""
    if session.role != "admin":
        raise PageError(403, "This page is for administrators.")
    return session


Administrator = Annotated[Session, Depends(administrator)]


@router.get("/admin")
async def admin_page(request: Request, session: Administrator, service: Here) -> Response:
    """Show the queue, the leases and the users, as `GET /api/admin/overview` has them."""
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
        engines_here=len(service.waiting.engines),
        engines=await service.admin.has_engines(waiting=len(service.waiting.engines)),
    )


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
