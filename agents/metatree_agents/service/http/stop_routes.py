"""Routes that stop a search and go on with it, and the one by which its engine hears of that."""

from __future__ import annotations

import time
from contextlib import ExitStack, aclosing
from typing import Any, Final

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from metatree_agents.service.accounts.users import Caller
from metatree_agents.service.http import bodies
from metatree_agents.service.http._description import described
from metatree_agents.service.http.bodies import Body, LeaseName, Name, Seq, TopicId
from metatree_agents.service.http.calls import disconnected, refused, submitted
from metatree_agents.service.http.routes import ANSWERING, ASKING, answered, owner_for, topic_of
from metatree_agents.service.http.wait_for import wait_for
from metatree_agents.service.queue.stopping import Ended, Stop
from metatree_agents.service.queue.waiting import first_of
from metatree_agents.service.settings import Service

router = APIRouter(prefix="/api")
FOUND_S: Final = 3.0
"""How long it is waited for what a search had found that was stopped."""


class StopQuery(Body):
    """A query whose search is stopped, or goes on."""

    Topic: TopicId
    Seq: Seq
    OnBehalfOf: Name | None = None


class Searching(Body):
    """A query that an engine searches for, and the lease under which it does."""

    Topic: TopicId
    Seq: Seq
    Lease: LeaseName


class SearchEnded(Body):
    """Why an engine need not search any more; null when it has to."""

    Ended: Ended | None


@router.post("/stop-query", response_model=bodies.Answered, **described(404, 409, 422, body=StopQuery))
async def stop_query(request: Request) -> Response:
    """Stop the search for a query; return it with what was found so far."""
    service, who, body = await submitted(request, StopQuery, *ASKING)
    user = owner_for(who, body.OnBehalfOf or who.name)
    topic = await topic_of(service, who, _given(body))
    became = await stop(service, who, topic, body.Seq, by=user)
    if became == "unknown":
        raise refused(404, f"there is no query {body.Seq} in this topic")
    if became == "ended":
        raise refused(409, "its search has ended")
    query = await service.queue.query(topic, body.Seq)
    if query is None:
        raise refused(404, f"there is no query {body.Seq} in this topic")
    return JSONResponse(answered(query))


@router.post("/continue-query", **described(404, 409, 422, body=StopQuery))
async def continue_query(request: Request) -> Response:
    """Open a query again whose search was stopped; it goes on where it was."""
    service, who, body = await submitted(request, StopQuery, *ASKING)
    owner_for(who, body.OnBehalfOf or who.name)
    topic = await topic_of(service, who, _given(body))
    if not await service.stopping.go_on(topic, body.Seq):
        raise refused(409, "this query was not stopped, or is not there")
    service.waiting.answered(topic, body.Seq)
    service.waiting.engines.notify()
    return JSONResponse({})


@router.post("/wait-for-stop", response_model=SearchEnded, **described(422, body=Searching))
async def wait_for_stop(request: Request) -> Response:
    """Wait until an engine need not search for a query any more, or for a while."""
    service, who, body = await submitted(request, Searching, *ANSWERING)
    topic, seq, lease = body.Topic, body.Seq, body.Lease
    deadline, left = time.monotonic() + service.settings.claim_timeout_s, disconnected(request)
    with service.revocation.of(who) as out, ExitStack() as stack:
        stack.callback(left.cancel)
        while True:
            async with service.waiting.answer(topic, seq, engine=True) as turn:
                ended = await service.stopping.ended(topic, seq, lease)
                wait_s = deadline - time.monotonic()
                if ended or wait_s <= 0 or left.done() or out.done():
                    return JSONResponse({"Ended": ended})
                await first_of(wait_s, turn, left, out)


async def stop(service: Service, who: Caller, topic: str, seq: int, *, by: str) -> Stop:
    """Stop a search, and wait for a moment for what it had found."""
    became = await service.stopping.stop(topic, seq, by=by)
    if became in ("searching", "queued"):
        service.waiting.answered(topic, seq)
        service.waiting.engines.notify()  # what else is open in the topic
    if became == "searching":
        await _found(service, who, topic, seq)
    return became


async def _found(service: Service, who: Caller, topic: str, seq: int) -> None:
    async with aclosing(wait_for(service, who, topic, seq, until=time.monotonic() + FOUND_S)) as states:
        async for query in states:
            if query is None or query.status != "Stopped" or query.answer is not None:
                return


def _given(body: StopQuery) -> dict[str, Any]:
    return {"Topic": body.Topic} | ({"OnBehalfOf": body.OnBehalfOf} if body.OnBehalfOf else {})
