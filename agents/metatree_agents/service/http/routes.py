"""The documented routes, byte for byte, with the safe behaviour behind them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import ExitStack, aclosing, suppress
from typing import Any, Final

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from metatree._util.process import this_process
from metatree.errors import TransientError
from metatree_agents.service.accounts.users import INSIDE, Caller
from metatree_agents.service.http import bodies
from metatree_agents.service.http._description import described
from metatree_agents.service.http.bodies import stamp
from metatree_agents.service.http.calls import (
    admitted,
    disconnected,
    drain_events,
    number,
    parameters_of,
    refused,
    required,
    still_authorized,
    submitted,
)
from metatree_agents.service.http.tree_access import (
    may_read,
    named_trees,
    set_served,
    tree_to_remember,
    trees_of,
    trees_to_ask,
)
from metatree_agents.service.http.wait_for import wait_for
from metatree_agents.service.queue.human_input import on_wire
from metatree_agents.service.queue.models import REMEMBERED, Ending
from metatree_agents.service.queue.queue import Claim, Query, TopicPlace, TopicTaken
from metatree_agents.service.queue.waiting import first_of
from metatree_agents.service.settings import Service

_NO_TOPIC: Final = "there is no such topic, or it is not yours"
ASKING = ("frontend", "user", "admin")
ANSWERING = ("engine",)
MAX_INDEX = 200

router = APIRouter(prefix="/api")


# for frontends and users


@router.get("/login", response_model=bodies.LoggedIn, **described())
async def login(request: Request) -> Response:
    """Say whether these credentials are right, and whose they are."""
    _, who, _ = await admitted(request)
    return JSONResponse({"User": who.name, "Role": who.role})


@router.get("/user-topics", response_model=dict[str, str], **described(404, 422, params=("OnBehalfOf",)))
async def user_topics(request: Request) -> Response:
    """List the topics of a user, each with its first query."""
    service, who, given = await admitted(request, *ASKING)
    owner = owner_for(who, required(given, "OnBehalfOf"))
    topics = await service.queue.topics(owner, trees=await trees_of(service, who, owner))
    if not topics:
        raise refused(404, "this user has no topics")
    return JSONResponse(topics)


@router.get("/trees", response_model=list[bodies.AskableTree], **described())
async def trees(request: Request) -> Response:
    """List the trees that have names and that one may ask; none where the service has one tree without a name."""
    service, who, given = await admitted(request, *ASKING, *ANSWERING)
    if who.role == "engine":
        known = await service.tree_rights.all()
    else:
        known = await named_trees(service, who, owner_for(who, given.get("OnBehalfOf") or who.name))
    return JSONResponse([{"Name": tree.name, "Title": tree.title} for tree in known])


@router.delete("/topic", **described(422, params=("OnBehalfOf", "Topic")))
async def remove_topic(request: Request) -> Response:
    """Delete a topic with its queries and answers."""
    service, who, given = await admitted(request, *ASKING)
    owner = owner_for(who, required(given, "OnBehalfOf"))
    for topic in _spellings(required(given, "Topic")):
        if await service.queue.remove(topic, owner):
            service.waiting.removed(topic)
            return JSONResponse({})
    raise refused(403, "this user has no such topic")


@router.post("/add-query", response_model=bodies.Added, **described(409, 422, body=bodies.AddQuery))
async def add_query(request: Request) -> Response:
    """Ask a question in a topic; the first one makes the topic."""
    service, who, body = await submitted(request, bodies.AddQuery, *ASKING)
    user = owner_for(who, body.User)
    service.limits.admit_open(who, await service.queue.open_of(user) if who.role == "user" else 0)
    trees = await trees_to_ask(service, who, user, body.Topic, body.Trees)
    try:
        seq, at = await service.queue.add(
            body.Topic, user, body.Query, model=body.Model, modifiers=body.Modifiers, trees=trees
        )
    except TopicTaken:
        raise refused(403, "this topic belongs to another user") from None
    added: dict[str, Any] = {"Topic": body.Topic, "Seq": seq, "Timestamp": stamp(at)}
    if "Searching" in parameters_of(request):  # who does not ask for it gets what was always there
        here = service.waiting.engines.with_trees(trees)
        with suppress(TransientError):  # the question is kept, whatever is known of engines
            added["Searching"] = await service.admin.has_engines(waiting=here, trees=trees)
    service.waiting.engines.notify()
    return JSONResponse(added)


@router.get("/check-query", response_model=bodies.Answered, **described(404, 422, params=("Topic", "Seq")))
async def check_query(request: Request) -> Response:
    """Return the answer to a query; wait for it for a while when there is none yet."""
    service, who, given = await admitted(request, *ASKING)
    topic, seq = await topic_of(service, who, given), number(given, "Seq")
    deadline, left = time.monotonic() + service.settings.answer_timeout_s, disconnected(request)
    ending, query = ["Done", "Failed", "Stopped"], None
    with service.revocation.of(who) as out, ExitStack() as stack:
        stack.callback(left.cancel)
        async with aclosing(wait_for(service, who, topic, seq, left, out, until=deadline)) as states:
            async for query in states:
                if query is None or query.status in ending:
                    break
                # What begins to wait for a person is reported at once; a caller that knows it already waits on, or one
                # that asks again and again would never rest.
                if query.status != "Waiting" and "Waiting" not in ending:
                    ending.append("Waiting")
        if query is None:
            raise refused(404, f"there is no query {seq} in this topic")
        if out.done() and query.status not in ending:
            raise refused(401, f"{who.name} is no {who.role} any more")
    return JSONResponse(answered(query))


@router.get(
    "/get-topic-thread", response_model=list[bodies.Answered], **described(404, 422, params=("Topic",))
)
async def get_topic_thread(request: Request) -> Response:
    """Return all queries of a topic with their answers, in order, at once."""
    service, who, given = await admitted(request, *ASKING, *ANSWERING)
    topic = await topic_of(service, who, given)
    return JSONResponse([answered(query) for query in await service.queue.thread(topic)])


@router.post("/add-lookup", response_model=bodies.LookupAdded, **described(404, 422, body=bodies.AddLookup))
async def add_lookup(request: Request) -> Response:
    """Ask for the fragments of memory that are nearest to a text; the distance is 1 - cosine similarity."""
    service, who, body = await submitted(request, bodies.AddLookup, *ASKING)
    topic = await topic_of(service, who, {"Topic": body.Topic})
    if await service.queue.query(topic, body.Seq) is None:
        raise refused(404, f"there is no query {body.Seq} in this topic")
    mark, at = await service.lookups.add(topic, body.Seq, body.Fragment, body.Count, body.Threshold)
    return JSONResponse({"Fingerprint": mark, "Timestamp": stamp(at)})


@router.get("/get-lookups", response_model=bodies.LookupsOf, **described(404, 422, params=("Topic",)))
async def get_lookups(request: Request) -> Response:
    """Return the lookups of a topic with what was found, by query."""
    service, who, given = await admitted(request, *ASKING)
    topic = await topic_of(service, who, given)
    return JSONResponse({"Topic": topic, "Lookups": await service.lookups.of_topic(topic)})


@router.post("/recommend", response_model=bodies.Recommended, **described(422, body=bodies.Recommend))
async def recommend(request: Request) -> Response:
    """Recommend a text, or flag it; it becomes part of the memory."""
    service, who, body = await submitted(request, bodies.Recommend, *ASKING)
    user, query = owner_for(who, body.OnBehalfOf), None
    if (place := await service.queue.place(body.Topic)) is not None:
        await _require_sight(service, who, place)
        if place.trees & (place.trees - 1):  # of several trees it has to be known where the answer is from
            thread = await service.queue.thread(body.Topic)
            query = next((each for each in reversed(thread) if each.text == body.Query), None)
    tree = await tree_to_remember(service, who, user, query, place, body.Tree)
    number, at = await service.recommendations.add(
        topic=body.Topic,
        on_behalf_of=user,
        query=body.Query,
        fragment=body.Fragment,
        comment=body.Comment,
        kind=body.Type,
        tree=tree,
    )
    return JSONResponse({"Timestamp": stamp(at), "Number": number})


@router.post("/withdraw-recommendation", **described(404, 422, body=bodies.Withdraw))
async def withdraw_recommendation(request: Request) -> Response:
    """Take a recommendation back; engines that have learned it forget it."""
    service, who, body = await submitted(request, bodies.Withdraw, *ASKING)
    by = owner_for(who, body.OnBehalfOf)
    if not await service.recommendations.withdraw(body.Number, by=by):
        raise refused(404, "this user has no such recommendation")
    return JSONResponse({})


@router.post("/rename-topic", **described(422, body=bodies.Rename))
async def rename_topic(request: Request) -> Response:
    """Give a topic a title, for people; its name stays what it is. An empty one takes it away."""
    service, who, body = await submitted(request, bodies.Rename, *ASKING)
    owner, place = owner_for(who, body.OnBehalfOf), await service.queue.place(body.Topic)
    if place is not None and place.owner == owner:
        await _require_sight(service, who, place, owner)
    if not await service.queue.rename(body.Topic, owner, body.Title):
        raise refused(403, "this user has no such topic")
    return JSONResponse({})


# for engines


@router.get("/get-new-queries", response_model=bodies.NewQueries, **described(422, params=("Trees",)))
async def get_new_queries(request: Request) -> Response:
    """Claim the open queries of a topic; wait for one for a while when there is none.

    `Trees` are those that the engine has: it gets topics that search no other.
    """
    service, who, given = await admitted(request, *ANSWERING)
    served = await set_served(service, given)
    await service.admin.note_engine(who.name, served)
    deadline, left = time.monotonic() + service.settings.claim_timeout_s, disconnected(request)
    notifier = service.waiting.engines
    with service.revocation.of(who) as out, ExitStack() as stack:
        stack.callback(left.cancel)
        while not left.done():
            async with notifier.waiter(served) as turn:
                await drain_events()
                if left.done():
                    break
                claim = await service.queue.claim(
                    who.name, process=this_process() if who.name == INSIDE else "", trees=served
                )
                if claim is not None and left.done():
                    await service.queue.hand_back(claim.topic, claim.lease)
                    notifier.notify()
                    break
                if claim is not None:
                    service.metrics.attempts.inc(len(claim.queries))
                    for query in claim.queries:
                        service.waiting.answered(claim.topic, query.seq)
                    told = await service.recommendations.told_by_askers(claim.topic)
                    named = await service.tree_rights.names_in(claim.trees)
                    return JSONResponse(_batch(claim, service.settings.lease_s, named, told))
                wait_s = deadline - time.monotonic()
                if wait_s <= 0:
                    break
                await first_of(wait_s, turn, left, out)
                if not left.done() and (out.done() or not await still_authorized(service, who)):
                    notifier.notify()  # the next one may have what this one was woken for
                    raise refused(401, f"{who.name} is no {who.role} any more")
        if left.done():
            notifier.notify()  # a wake-up that this client may have taken with it
    return JSONResponse({"Topic": None, "Queries": None})


@router.post(
    "/give-new-answer", response_model=bodies.Stamped, **described(404, 409, 422, body=bodies.GiveAnswer)
)
async def give_new_answer(request: Request) -> Response:
    """Give the answer to a query; the first one wins."""
    service, who, body = await submitted(request, bodies.GiveAnswer, *ANSWERING)
    became, seq = await service.queue.answer(
        body.Topic,
        body.Query,
        seq=body.Seq,
        answer=body.Answer,
        think=body.Think,
        sources=body.Sources,
        ending=Ending(body.End, body.Open, [each.on_wire() for each in body.Closest], notes=body.Notes),
        engine=who.name,
    )
    if became == "unknown":
        raise refused(404, "there is no such query in this topic")
    if became == "conflict":
        raise refused(
            409, "another answer was given before, or it is not clear to which query this one belongs"
        )
    if became == "accepted":
        service.metrics.answers.inc()
        service.waiting.answered(body.Topic, seq)
        service.waiting.engines.notify()  # the topic may have queries that came meanwhile
    return JSONResponse({"Timestamp": stamp(time.time())})


@router.get("/get-new-lookup", response_model=bodies.WantedLookup, **described(404, 422, params=("Trees",)))
async def get_new_lookup(request: Request) -> Response:
    """Claim one lookup; `Index` is the state of the engine's index, so that lookups are made again when it changes."""
    service, who, given = await admitted(request, *ANSWERING)
    index = given.get("Index")
    if index is not None and len(index) > MAX_INDEX:
        raise refused(422, f"Index has more than {MAX_INDEX} characters")
    served = await set_served(service, given)
    lookup = await service.lookups.claim(who.name, index=index, trees=served)
    if lookup is None:
        raise refused(404, "no lookup is wanted")
    return JSONResponse(
        {
            "Fragment": lookup.fragment,
            "Fingerprint": lookup.fingerprint,
            "Count": lookup.count,
            "Threshold": lookup.threshold,
            **_named(await service.tree_rights.names_in(lookup.trees)),
        }
    )


@router.post(
    "/give-new-matches", response_model=bodies.Stamped, **described(404, 422, body=bodies.GiveMatches)
)
async def give_new_matches(request: Request) -> Response:
    """Give what a lookup found."""
    service, _, body = await submitted(request, bodies.GiveMatches, *ANSWERING)
    if not await service.lookups.give(body.Fingerprint, body.Matches):
        raise refused(404, "no lookup with this fingerprint waits for matches")
    return JSONResponse({"Timestamp": stamp(time.time())})


# what they share


def owner_for(who: Caller, user: str) -> str:
    """Return for whom a caller acts: a frontend for anybody, a user for nobody else."""
    if who.role == "user" and user != who.name:
        raise refused(403, f"{who.name} may not act for another user")
    return user


def _spellings(topic: str) -> tuple[str, ...]:
    """Return what a topic of an address may mean: as it is, or with spaces that were written as `+`."""
    return (topic, topic.replace("+", " ")) if "+" in topic else (topic,)


async def topic_of(service: Service, who: Caller, given: dict[str, str]) -> str:
    """Return the topic that a request is about: 404 when there is none, or it is not the caller's to see."""
    user = given.get("OnBehalfOf")
    for topic in _spellings(required(given, "Topic")):
        place = await service.queue.place(topic)
        if place is None:
            continue
        await _require_sight(service, who, place, user)
        return topic
    raise refused(404, _NO_TOPIC)


async def _require_sight(service: Service, who: Caller, place: TopicPlace, user: str | None = None) -> None:
    """Raise 404, as for none, when a topic is not the caller's to see, or not that of the user it says to act for.

    Names are made of the words of questions, so nobody may try which there are. Whose it is hears, by 403, that it
    searches a tree that they may not ask any more.
    """
    own = place.owner == who.name if who.role == "user" else user in (None, place.owner)
    if not own and not service.queue.shared:
        raise refused(404, _NO_TOPIC)
    if not await may_read(service, who, place, user):
        if not own:
            raise refused(404, _NO_TOPIC)
        raise refused(403, f"this topic searches a tree that {user or who.name} may not ask")


def answered(query: Query) -> dict[str, Any]:
    """Return a query as the wire has it."""
    return {
        "Query": query.text,
        "Topic": query.topic,
        "Seq": query.seq,
        "Answer": query.answer,
        "Think": query.think,
        "Status": query.status,
        "Sources": query.sources,
        "Asked": on_wire(query.asked),
        "End": query.ending.end,
        "Open": query.ending.open,
        "Closest": query.ending.closest,
        "Notes": query.ending.notes,
    }


def _named(trees: list[str]) -> dict[str, Any]:
    """Return the trees that something is for, where they have names."""
    return {"Trees": trees} if trees else {}


def _batch(
    claim: Claim, lease_s: float, trees: list[str], told: Mapping[int, list[tuple[str, str]]]
) -> dict[str, Any]:
    return {
        **_named(trees),
        "Topic": claim.topic,
        "Queries": [{str(query.seq): query.text} for query in claim.queries],
        "Lease": claim.lease,
        "LeaseSeconds": lease_s,
        "Model": {str(query.seq): query.model for query in claim.queries},
        "Modifiers": {str(query.seq): query.modifiers for query in claim.queries},
        "Asked": {
            str(query.seq): [
                {"Key": ask.key, "Question": ask.question, "Kind": ask.kind, "Answer": ask.answer}
                for ask in query.asked
            ]
            + [
                {"Key": REMEMBERED, "Question": question, "Kind": "question", "Answer": answer}
                for question, answer in told.get(query.seq, ())
                if question not in [ask.question for ask in query.asked]
            ]
            for query in claim.queries
            if query.asked or query.seq in told
        },
        "Runs": {str(query.seq): query.run for query in claim.queries if query.run is not None},
    }
