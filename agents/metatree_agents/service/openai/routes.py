"""`/v1`: the routes of OpenAI's API that a chat page needs, so that any of them can sit in front of a memory.

A request becomes a query of a topic (`conversations`), and any engine answers it. While it waits, a stream carries the
steps of the search as `reasoning_content`, which chat pages show and official clients leave alone, and comments.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import ExitStack, aclosing, suppress
from hashlib import sha256
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse
from fastapi.routing import APIRoute
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.background import BackgroundTask

from metatree.errors import MetatreeError, TransientError
from metatree_agents.service.accounts.users import Caller
from metatree_agents.service.http.bodies import Body, inlined
from metatree_agents.service.http.calls import authenticate, disconnected, unauthorized
from metatree_agents.service.http.error_responses import openai_error
from metatree_agents.service.http.tree_access import named_trees, trees_to_ask
from metatree_agents.service.http.wait_for import has_engines, questions_before, wait_for
from metatree_agents.service.openai._inert import inert_step
from metatree_agents.service.openai._models import (
    MODEL,
    Chunks,
    completion,
    event,
    model_shape,
    thinking_of,
)
from metatree_agents.service.openai.bodies import ChatRequest, Wrong, chat_request, conversation_of
from metatree_agents.service.openai.conversations import ChatQuery, Conversation
from metatree_agents.service.queue.human_input import forms
from metatree_agents.service.queue.queue import Query, TopicTaken
from metatree_agents.service.settings import Service

ASKING: Final = ("frontend", "user", "admin")
OF_TREE: Final = f"{MODEL}/"
"""What the name of a model begins with that asks one tree; several are joined by `+`."""
MAX_USER: Final = 64
"""Characters of the name of whom a topic belongs to; OpenAI's API takes 512."""
_HASH_CHARS: Final = 24
BEAT_S: Final = 10.0
"""How often a comment is sent in a stream while nothing happens, so that proxies keep the connection."""
QUEUED_S: Final = 1.0
"""After how long a stream says that its query is in the queue; most are taken sooner."""
FAILED: Final = "no engine answered this query: ask it again, or ask the administrator of the service"
CLIENT_LEFT: Final = "its client, which went away"
_leaving: Final[set[asyncio.Future[None]]] = set()
"""What is done for clients that went away."""
GONE: Final = "the topic of this query was deleted"


class Failure(Body):
    """An error in OpenAI's form."""

    error: dict[str, str | None]


_MEANING: Final = {
    400: "A request that cannot be answered",
    401: "No API key, or a wrong one",
    403: "A key whose user may not ask, or a topic of another user",
    404: "No such model, or the topic was deleted",
    409: "The topic that is named searches other trees",
    413: "More than 2 MB",
    429: "Too many requests; Retry-After says when to come again",
    500: "No engine could answer",
    503: "No answer yet, or the database is away; the same request later finds the same query",
}


def _described(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {status: {"model": Failure, "description": _MEANING[status]} for status in statuses}


router = APIRouter(prefix="/v1")
_OBJECT = {"type": "object"}
_Key = Annotated[
    HTTPAuthorizationCredentials | None, Depends(HTTPBearer(auto_error=False, scheme_name="API key"))
]


async def _asker(request: Request, _: _Key) -> Caller:
    """Return whose API key a request carries.

    Raises:
        Wrong: 401 for no right key, 403 for a user who may not ask.
    """
    who = await authenticate(request, {})
    if who is None:
        text = unauthorized(request)
        raise Wrong(text[:1].upper() + text[1:], status=401, code="invalid_api_key")
    if who.role not in ASKING:
        raise Wrong(f"{who.name} is of role {who.role} and may not ask", status=403)
    return who


Asker = Annotated[Caller, Depends(_asker)]


@router.get("/models", responses=_described(401, 403, 429, 503))
async def models(request: Request, who: Asker) -> Response:
    """List the models: `metatree`, `metatree/NAME` for each tree that one may ask, and those it was told of."""
    service = Service.of(request)
    names = [*_models(service), *(f"{OF_TREE}{tree.name}" for tree in await named_trees(service, who))]
    data = [model_shape(name, service.started_at) for name in names]
    return JSONResponse({"object": "list", "data": data})


@router.get("/models/{name:path}", responses=_described(401, 403, 404, 429, 503))
async def model(request: Request, name: str, who: Asker) -> Response:
    """Return one model."""
    service = Service.of(request)
    await _wire_model(service, name, who, who.name)
    return JSONResponse(model_shape(name, service.started_at))


@router.post(
    "/chat/completions",
    responses={
        **_described(400, 401, 403, 404, 409, 413, 429, 500, 503),
        200: {
            "description": "The answer, or a stream of its parts",
            "content": {
                "application/json": {"schema": _OBJECT},
                "text/event-stream": {"schema": {"type": "string"}},
            },
        },
    },
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": inlined(ChatRequest.model_json_schema())}},
        }
    },
)
async def chat_completions(request: Request, who: Asker) -> Response:
    """Answer the last message of a conversation from the memory."""
    service = Service.of(request)
    chat = chat_request(await request.body())
    owner = owner_of(chat.user or who.name) if who.role in ("frontend", "admin") else who.name
    wire_model, trees = await _wire_model(service, chat.model, who, owner)
    conversation, instructions = conversation_of(chat, model=wire_model)
    place = await _placed(request, service, who, owner, conversation, instructions, trees)
    text = "\n".join(
        [
            instructions,
            *(f"{turn.question}\n{turn.answer}" for turn in conversation.turns),
            conversation.question,
        ]
    )
    if chat.stream:
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(
            _stream(request, service, who, place, chat, text),
            media_type="text/event-stream",
            headers=headers,
        )
    query = await _answer(request, service, who, place)
    if query is None:
        return Response(status_code=499)  # the client went away; its retry finds the query
    done = BackgroundTask(service.conversations.delivered, place)
    made = completion(place.id, chat.model, query, text, thinks=chat.thinks, base=str(request.base_url))
    return JSONResponse(made, background=done)


OFFERED: Final = ", ".join(
    f"{' '.join(route.methods or ())} {route.path_format}"
    for route in router.routes
    if isinstance(route, APIRoute)
)
"""The routes of OpenAI's API that are here."""


async def _placed(
    request: Request,
    service: Service,
    who: Caller,
    owner: str,
    conversation: Conversation,
    instructions: str,
    trees: Sequence[str] | None,
) -> ChatQuery:
    """Return the query of a request, added now or before."""
    searched = await trees_to_ask(service, who, owner, conversation.topic, trees)
    service.limits.admit_open(who, await service.queue.open_of(owner) if who.role == "user" else 0)
    tries = request.headers.get("x-stainless-retry-count", "0")
    try:
        place = await service.conversations.place(
            owner,
            conversation,
            retry=request.headers.get("idempotency-key", "")[:200] or None,
            again=tries.isascii() and tries.isdigit() and tries.strip("0") != "",
            modifiers={"Instructions": instructions} if instructions else None,
            trees=searched,
        )
    except TopicTaken:
        raise Wrong("this topic belongs to another user", status=403, param="metadata.topic") from None
    if place.replies:
        asks = await service.queue.query(place.topic, place.seq)
        open_ones = forms(place.topic, place.seq, asks.asked) if asks is not None else []
        if open_ones:  # one at a time; what is no answer to it is asked again
            number = open_ones[0].number
            await service.human_input.answer(
                place.topic, place.seq, conversation.question, number=number, by=owner
            )
            service.waiting.answered(place.topic, place.seq)
    if not place.joined or place.replies:
        service.waiting.engines.notify()
    return place


def owner_of(user: str) -> str:
    """Return the name of a user whom a frontend names; one that is too long ends in a hash of all of it."""
    if len(user) <= MAX_USER and "\0" not in user:
        return user
    digest = sha256(user.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_CHARS]
    return f"{user.replace(chr(0), '')[: MAX_USER - _HASH_CHARS - 1]}-{digest}"


async def _answer(request: Request, service: Service, who: Caller, place: ChatQuery) -> Query | None:
    """Wait for an answer; return None when the client went away.

    Raises:
        Wrong: there will be none, or is none yet.
    """
    deadline, left = time.monotonic() + service.settings.chat_wait_s, disconnected(request)
    query: Query | None = None
    with service.revocation.of(who) as out, ExitStack() as ending:
        ending.callback(left.cancel)
        waiting = wait_for(service, who, place.topic, place.seq, left, out, until=deadline)
        async with aclosing(waiting) as states:
            async for query in states:
                if query is None:
                    raise Wrong(GONE, status=404)
                if left.done():
                    break
                if query.status == "Failed":
                    raise Wrong(FAILED, status=500)
                if not await _taken_up(service, query) and query.status in ("Done", "Waiting", "Stopped"):
                    return query
        if service.waiting.ended:
            raise Wrong("the server stops: try again", status=503)
        if left.done():
            await _leave(service, place)
            return None
        if out.done():
            raise Wrong(_no_more(who), status=401)
        assert query is not None
        raise Wrong(_not_yet(query), status=503)


async def _leave(service: Service, place: ChatQuery) -> None:
    """Stop the search for a client that went away, when nobody else waits for its answer; its retry goes on with it."""
    if service.waiting.ended or service.waiting.callers_of(place.topic, place.seq):
        return
    with suppress(MetatreeError):  # a database that is away: the search goes on
        # A client that has read that a person is asked closes its connection, and comes back with the answer.
        became = await service.stopping.stop(place.topic, place.seq, by=CLIENT_LEFT, parked=False)
        if became in ("searching", "queued"):
            service.waiting.answered(place.topic, place.seq)
            service.waiting.engines.notify()


async def _taken_up(service: Service, query: Query) -> bool:
    """Go on with a search that was stopped for a client that went away: one is here that waits for it."""
    if query.status != "Stopped" or query.ending.by != CLIENT_LEFT:
        return False
    if await service.stopping.go_on(query.topic, query.seq):
        service.waiting.engines.notify()
    return True


def _no_more(who: Caller) -> str:
    return f"{who.name} is no user with the role {who.role} any more"


def _not_yet(query: Query) -> str:
    asks = [ask.question for ask in query.asked if ask.answer is None]
    if query.status == "Waiting" and asks:
        return f"it waits for a person to answer in its thread (docs/service.md): {' '.join(asks)}"
    return "there is no answer yet: the same request later finds it"


async def _stream(
    request: Request, service: Service, who: Caller, place: ChatQuery, chat: ChatRequest, text: str
) -> AsyncIterator[str]:
    try:
        async with aclosing(_parts(request, service, who, place, chat, text)) as parts:
            async for part in parts:
                yield part
    except (asyncio.CancelledError, GeneratorExit):  # the client went away while something was sent
        leaving = asyncio.ensure_future(_leave(service, place))
        _leaving.add(leaving)
        leaving.add_done_callback(_leaving.discard)
        raise


async def _parts(
    request: Request, service: Service, who: Caller, place: ChatQuery, chat: ChatRequest, text: str
) -> AsyncGenerator[str]:
    usage = chat.stream_options is not None and chat.stream_options.include_usage
    chunks = Chunks(place.id, chat.model, usage=usage, base=str(request.base_url))
    left, after, reasoning, queued = disconnected(request), 0, "", ""
    deadline = time.monotonic() + service.settings.stream_s
    query: Query | None = None
    with service.revocation.of(who) as out, ExitStack() as ending:
        ending.callback(left.cancel)
        yield chunks.delta(role="assistant", content="", refusal=None)
        waiting = wait_for(
            *(service, who, place.topic, place.seq, left, out),
            until=deadline,
            beat=lambda: BEAT_S if queued or (query and query.status != "Open") else QUEUED_S,
            patient=True,
        )
        first, done = True, False
        async with aclosing(waiting) as states:
            async for query in states:
                if left.done():
                    break
                if out.done():
                    yield event(openai_error(401, _no_more(who)))
                    return
                # The query was read first: steps that come before its answer are surely among those read now.
                quiet, first = not first, False
                for number, data in await _steps(service, place, after) if query else []:
                    after, quiet = number, False
                    step = inert_step(f"{json.loads(data).get('Text') or ''}\n")
                    if chat.thinks and step.strip():
                        reasoning += step
                        yield chunks.delta(reasoning_content=step)
                if query is None or query.status == "Failed":
                    status, why = (404, GONE) if query is None else (500, FAILED)
                    yield event(openai_error(status, why))
                    return
                taken_up = await _taken_up(service, query)
                done = not taken_up and query.status in ("Done", "Waiting", "Stopped")
                if done:
                    break
                if quiet and query.status == "Open":
                    queued, said = await _queued(service, query), queued
                    news = chat.thinks and queued != said
                    yield chunks.delta(reasoning_content=f"{queued}\n") if news else f": {queued}\n\n"
                elif quiet:
                    yield ": still at work\n\n"
        if left.done() and not done:
            await _leave(service, place)
            return
        assert query is not None
        if not done:
            yield event(openai_error(503, _not_yet(query)))
            return
        if chat.thinks and not reasoning and (reasoning := thinking_of(query)):
            yield chunks.delta(reasoning_content=reasoning)
        for chunk in chunks.answer(query):
            yield chunk
        yield chunks.end(text, query, reasoning)
        await service.conversations.delivered(place)


async def _queued(service: Service, query: Query) -> str:
    """Return what is said of a query that no engine has taken yet."""
    with suppress(TransientError):  # the database is away for a moment
        if not await has_engines(service, query):
            return "No engine is connected: the question is kept, and is answered as soon as one is."
        before, _ = await questions_before(service, query)
        return f"Waiting in the queue, {before:,} question{'' if before == 1 else 's'} before yours."
    return "Waiting in the queue."


async def _steps(service: Service, place: ChatQuery, after: int) -> list[tuple[int, str]]:
    """Return the steps after a number; none while the database is away: they come with the next ones."""
    try:
        return await service.progress.after(place.topic, place.seq, after)
    except TransientError:
        return []


def _models(service: Service) -> tuple[str, ...]:
    return (MODEL, *(name for name in service.settings.models if name != MODEL))


async def _wire_model(service: Service, name: str, who: Caller, owner: str) -> tuple[str, list[str] | None]:
    """Return what engines are asked for by the name of a model, and the trees that it names, None for no names.

    Raises:
        Wrong: 404, there is no such model, or it names a tree that is not theirs to ask.
    """
    trees = name.removeprefix(OF_TREE).split("+") if name.startswith(OF_TREE) else None
    if name in _models(service):
        return ("default" if name == MODEL else name), None
    if trees is None or not {*trees} <= {tree.name for tree in await named_trees(service, who, owner)}:
        raise Wrong(
            f"The model `{name[:80]}` does not exist: `/v1/models` lists them",
            status=404,
            param="model",
            code="model_not_found",
        )
    return "default", trees
