"""Server-sent events of a query that is being answered, from where a client was cut off.

Each step has the number of its row as id, so a browser that reconnects sends it as `Last-Event-ID` and misses nothing
(WHATWG HTML, section 9.2).
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack, aclosing
from typing import Annotated, Any, Final

from fastapi import APIRouter, Header, Request
from fastapi.responses import Response, StreamingResponse

from metatree_agents.service.accounts.users import Caller
from metatree_agents.service.http._description import described
from metatree_agents.service.http.calls import admitted, disconnected, number, refused, still_authorized
from metatree_agents.service.http.routes import ASKING, answered, topic_of
from metatree_agents.service.http.stop_routes import FOUND_S
from metatree_agents.service.http.wait_for import has_engines, wait_for
from metatree_agents.service.queue.human_input import on_wire
from metatree_agents.service.queue.statuses import UNSETTLED
from metatree_agents.service.settings import Service

router = APIRouter(prefix="/api")
HEADERS: Final = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
_STREAM: Final[dict[str, Any]] = {"text/event-stream": {}}
BEAT_S: Final = 15.0
"""How often a comment is sent while nothing happens, so that proxies keep the connection."""


@router.get(
    "/events",
    response_class=StreamingResponse,
    **described(404, 422, params=("Topic", "Seq"), description="The steps, then the answer", content=_STREAM),
)
async def events(
    request: Request, last_event_id: Annotated[str, Header(description="The last step that came")] = "0"
) -> Response:
    """Stream the steps of a query, its state, what it asks a person (each again when it changes), and its answer."""
    service, who, given = await admitted(request, *ASKING)
    topic, seq = await topic_of(service, who, given), number(given, "Seq")
    if await service.queue.query(topic, seq) is None:
        raise refused(404, f"there is no query {seq} in this topic")
    after = number_of_step(last_event_id)
    return StreamingResponse(
        stream(request, service, who, topic, seq, after), media_type="text/event-stream", headers=HEADERS
    )


def number_of_step(text: str) -> int:
    """Return the number of the last step that a client has, 0 when what it says is none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0


async def stream(
    request: Request, service: Service, who: Caller, topic: str, seq: int, after: int
) -> AsyncIterator[str]:
    """Yield the steps of a query that came after a number, and its answer at last, as events.

    It ends, too, when the one who watches is no user with this role any more, and after a long time: a query that
    nobody answers is watched in another stream then.
    """
    deadline, left = time.monotonic() + service.settings.stream_s, disconnected(request)
    sent: dict[int, dict[str, Any]] = {}
    late, state = False, dict[str, Any]()
    yield "retry: 2000\n\n"
    with service.revocation.of(who) as out, ExitStack() as ending:
        ending.callback(left.cancel)
        watched = wait_for(
            service, who, topic, seq, left, out, until=deadline, beat=lambda: FOUND_S if late else BEAT_S
        )
        first = True
        async with aclosing(watched) as states:
            async for query in states:
                if query is None:
                    yield "event: gone\ndata: {}\n\n"
                    return
                if left.done() or out.done() or not (first or await still_authorized(service, who)):
                    return
                # The query was read first: steps that come before its answer are surely among those read now.
                quiet, first = not first, False
                for step, data in await service.progress.after(topic, seq, after):
                    after, quiet = step, False
                    yield f"id: {step}\nevent: step\ndata: {data}\n\n"
                if query.status in UNSETTLED:
                    there = query.status != "Open" or await has_engines(service, query)
                    now = {"Status": query.status, "Engines": there, "Attempts": query.attempts}
                    if now != state:
                        state, quiet = now, False
                        yield f"event: state\ndata: {json.dumps(now)}\n\n"
                for ask in on_wire(query.asked):
                    if sent.get(ask["Id"]) != ask:
                        sent[ask["Id"]], quiet = ask, False
                        yield f"event: question\ndata: {json.dumps(ask)}\n\n"
                if query.status == "Stopped" and query.answer is None and query.attempts and not late:
                    late = True  # its engine may give what it had found
                elif query.status not in UNSETTLED:
                    yield f"event: answer\ndata: {json.dumps(answered(query))}\n\n"
                    return
                elif quiet:
                    yield ": still at work\n\n"
