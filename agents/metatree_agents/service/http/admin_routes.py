"""Routes for administrators: an overview, what can be done about it, and figures for Prometheus.

An administrator proves itself as everybody does, or with an API key.
"""

from __future__ import annotations

from typing import Any, Final

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from starlette.applications import Starlette
from starlette.routing import Route

from metatree.errors import TransientError, UserError
from metatree_agents.service.http._description import described, errors
from metatree_agents.service.http.bodies import Body, Name, TopicId
from metatree_agents.service.http.bodies import Seq as AnySeq
from metatree_agents.service.http.calls import admitted, refused, submitted
from metatree_agents.service.http.metrics import CONTENT_TYPE
from metatree_agents.service.settings import Service

router = APIRouter(prefix="/api/admin")
figures_router = APIRouter()
FORWARDED: Final = ("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip")
LOOPBACK: Final = ("127.0.0.1", "::1")


class Requeued(Body):
    """Failed queries to be opened again; all of the topic without `Seq`."""

    Topic: TopicId
    Seq: AnySeq | None = None


class Released(Body):
    """A topic to be taken from the engine that has it."""

    Topic: TopicId


class Removed(Body):
    """A user to be taken out."""

    Name: Name


class Overview(Body):
    """What an administrator sees; `Connected` are those who wait at this server now."""

    At: str
    Open: int
    Pending: int
    Waiting: int
    Failed: int

    OldestOpenSeconds: float
    Queries: list[dict[str, Any]]
    Leases: list[dict[str, Any]]
    Users: list[dict[str, Any]]
    Connected: dict[str, int]


@router.get("/overview", response_model=Overview, **described())
async def overview(request: Request) -> Response:
    """Return what is queued, who holds what since when, attempts, failures, and when each user was last seen."""
    service, _, _ = await admitted(request, "admin")
    waiting = {"Engines": len(service.waiting.engines), "Callers": service.waiting.callers()}
    return JSONResponse({**await service.admin.overview(), "Connected": waiting})


@router.post("/requeue", **described(404, 422, body=Requeued))
async def requeue(request: Request) -> Response:
    """Open failed queries again."""
    service, _, body = await submitted(request, Requeued, "admin")
    count = await service.admin.requeue(body.Topic, body.Seq)
    if not count:
        raise refused(404, "there is no such failed query")
    service.waiting.engines.notify()
    return JSONResponse({"Requeued": count})


@router.post("/release", **described(404, 422, body=Released))
async def release(request: Request) -> Response:
    """Take a topic from the engine that has it, for others to claim."""
    service, _, body = await submitted(request, Released, "admin")
    if not await service.admin.release(body.Topic):
        raise refused(404, "no engine has this topic")
    service.waiting.engines.notify()
    return JSONResponse({})


@router.post("/remove-user", **described(404, 422, body=Removed))
async def remove_user(request: Request) -> Response:
    """Take a user out, with its API keys and sessions; what was asked and answered stays."""
    service, who, body = await submitted(request, Removed, "admin")
    if body.Name == who.name:
        raise refused(422, "an administrator cannot take itself out: `metatree service users remove` can")
    try:
        await service.users.remove(body.Name)
    except UserError:
        raise refused(404, "there is no such user") from None
    await service.revocation.check()
    return JSONResponse({})


@figures_router.get("/metrics", responses=errors(), response_class=Response)
async def metrics(request: Request) -> Response:
    """Return figures as Prometheus reads them, to this machine itself and to administrators."""
    if not _from_here(request):
        await admitted(request, "admin")
    return await metrics_response(Service.of(request))


async def metrics_response(service: Service) -> Response:
    """Return the figures; without those of the queue when the database is away."""
    connected = 0
    try:
        figures = await service.admin.figures()
        connected = sum(each["Connected"] for each in await service.admin.engines())
    except TransientError:
        service.metrics.database_errors.inc()
        figures = None
    text = service.metrics.text(
        figures, connected=connected, engines=len(service.waiting.engines), callers=service.waiting.callers()
    )
    return Response(text, media_type=CONTENT_TYPE)


def metrics_app(service: Service) -> Starlette:
    """Return an application that serves the figures alone, to whoever can reach it."""

    async def figures(_: Request) -> Response:
        return await metrics_response(service)

    return Starlette(routes=[Route("/metrics", figures)])


def _from_here(request: Request) -> bool:
    """Say whether a request comes from this machine itself, and not through a proxy on it."""
    return (
        request.client is not None
        and request.client.host in LOOPBACK
        and not any(name in request.headers for name in FORWARDED)
    )
