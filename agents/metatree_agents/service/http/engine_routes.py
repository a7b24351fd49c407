"""Routes for engines beside the documented ones: keeping a lease, handing work back, telling how far they are."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from pydantic import Field

from metatree_agents.service.database.identity import identity_of
from metatree_agents.service.http._description import described
from metatree_agents.service.http.bodies import MOST_ERROR, Body, JsonObject, LeaseName, NameNow, Seq, TopicId
from metatree_agents.service.http.calls import admitted, number, refused, submitted
from metatree_agents.service.http.logs import redacted
from metatree_agents.service.http.routes import ANSWERING
from metatree_agents.service.http.tree_access import set_served
from metatree_agents.service.queue.recommendations import Recommendation

router = APIRouter(prefix="/api")
MAX_STEPS = 200


class LeasedTopic(Body):
    """A topic, and the lease under which an engine has it."""

    Topic: TopicId
    Lease: LeaseName


class Steps(Body):
    """What happened while a query was being answered."""

    Topic: TopicId
    Seq: Seq
    Steps: Annotated[list[JsonObject], Field(max_length=MAX_STEPS)]


class RouterError(Body):
    """The last error of the router of an engine; empty when it works."""

    Error: Annotated[str, Field(max_length=MOST_ERROR)]


@router.post("/renew-lease", **described(409, 422, body=LeasedTopic))
async def renew_lease(request: Request) -> Response:
    """Keep a topic for longer; 409 when it was given to another engine meanwhile."""
    service, _, topic = await submitted(request, LeasedTopic, *ANSWERING)
    if not await service.queue.renew(topic.Topic, topic.Lease):
        raise refused(409, "this lease has ended")
    return JSONResponse({})


@router.post("/hand-back", **described(409, 422, body=LeasedTopic))
async def hand_back(request: Request) -> Response:
    """Give a topic back that is not answered in full; the attempt does not count."""
    service, _, topic = await submitted(request, LeasedTopic, *ANSWERING)
    if not await service.queue.hand_back(topic.Topic, topic.Lease):
        raise refused(409, "this lease has ended")
    service.waiting.engines.notify()
    return JSONResponse({})


@router.post("/give-router-state", **described(422, body=RouterError))
async def give_router_state(request: Request) -> Response:
    """Say that the router of an engine fails, for administrators alone, or that it works again."""
    service, who, state = await submitted(request, RouterError, *ANSWERING)
    service.admin.note_router(who.name, redacted(state.Error))
    return JSONResponse({})


@router.post("/leave", **described())
async def leave(request: Request) -> Response:
    """Say that an engine goes: nobody is told any more that it searches, until it is heard of again."""
    service, who, _ = await admitted(request, *ANSWERING)
    await service.users.engine_left(who.name)
    service.admin.forget_engine(who.name)
    service.waiting.look_again()
    return JSONResponse({})


@router.post("/give-progress", **described(404, 422, body=Steps))
async def give_progress(request: Request) -> Response:
    """Tell those who wait for an answer how far it is."""
    service, _, steps = await submitted(request, Steps, *ANSWERING)
    if not await service.progress.add(steps.Topic, steps.Seq, steps.Steps):
        raise refused(404, "there is no such query")
    service.waiting.answered(steps.Topic, steps.Seq)
    return JSONResponse({})


@router.get(
    "/get-recommendations",
    response_model=list[Recommendation],
    **described(409, 422, params=("After", "Of", "Tree")),
)
async def get_recommendations(request: Request) -> Response:
    """Return what people recommended after a number, oldest first, so that an engine can remember it.

    `Of` is the name of the database that the number is of: 409 when it has another one by now. `Tree` is the name of
    the tree that is to remember it, where trees have names.
    """
    service, _, given = await admitted(request, *ANSWERING)
    after = number(given, "After", least=0, default=0)
    tree = await set_served(service, {"Trees": given.get("Tree", "")})
    name, recommendations = await service.recommendations.after(after, tree=tree)
    if (given.get("Of") or name) != name:
        raise refused(409, "the database has another name by now: ask for it with get-identity")
    return JSONResponse([asdict(one) for one in recommendations])


@router.get("/get-identity", response_model=NameNow, **described())
async def get_identity(request: Request) -> Response:
    """Return the name of the service's database, and those it had before it was restored, the latest first."""
    service, _, _ = await admitted(request, *ANSWERING)
    identity = await identity_of(service.database)
    before = [{"Id": one.id, "Until": one.until} for one in identity.before]
    return JSONResponse({"Id": identity.id, "Before": before})
