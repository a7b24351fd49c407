"""What an administrator sees: what is queued, who holds what and until when, attempts, failures, users."""

from __future__ import annotations

import time

from fastapi import APIRouter, Request
from fastapi.responses import Response

from metatree_agents.service.state import Service
from metatree_agents.service.web.guard import entered
from metatree_agents.service.web.listing import counts, people
from metatree_agents.service.web.replies import PageError, page

router = APIRouter()


@router.get("/admin")
async def admin_page(request: Request) -> Response:
    """Show the queue and the users."""
    session, service = await entered(request), Service.of(request)
    if session.role != "admin":
        raise PageError(403, "This page is for administrators.")
    waiting = await service.queue.overview()
    return page(
        request,
        "admin.html",
        session=session,
        waiting=[each for each in waiting if each["status"] != "Failed"],
        failed=[each for each in waiting if each["status"] == "Failed"],
        counts=await counts(service.database),
        users=await people(service.database),
        now=time.time(),
        attempts=service.settings.attempts,
    )
