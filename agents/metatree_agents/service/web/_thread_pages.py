"""Topics and their threads: asking, watching a search, reading answers with their sources, recommending."""

from __future__ import annotations

import re
import secrets
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response, StreamingResponse
from pydantic import ValidationError
from starlette.exceptions import HTTPException

from metatree_agents.service.accounts.tree_rights import UNNAMED, NamedTree
from metatree_agents.service.http import bodies, events, stop_routes
from metatree_agents.service.http.tree_access import (
    may_read,
    named_trees,
    tree_to_remember,
    trees_of,
    trees_to_ask,
)
from metatree_agents.service.queue.human_input import Became
from metatree_agents.service.queue.queue import Query, TopicTaken
from metatree_agents.service.queue.recommendations import CORRECTION, IMPROVEMENT, MISSING, TYPES
from metatree_agents.service.queue.statuses import UNSETTLED
from metatree_agents.service.settings import Service
from metatree_agents.service.web._exports import TYPES as TYPES_OF_FILES
from metatree_agents.service.web._exports import Form as FileForm
from metatree_agents.service.web._exports import exported, file_name
from metatree_agents.service.web._guard import Entered, Form, Here, Number, number_of
from metatree_agents.service.web._listing import TOPICS, hidden_topics, topics_of
from metatree_agents.service.web._questions import headline, question_of, search_path_so_far
from metatree_agents.service.web._replies import HEADERS, PRIVATE, PageError, page, redirect
from metatree_agents.service.web._state import Web
from metatree_agents.service.web.sessions import Session

router = APIRouter()
SAID: Final = {
    "recommended": "Thank you. It is remembered within half a minute, and searches find it then.",
    "flagged": "Thank you. What this answer quotes counts for less in questions like this one.",
    "deleted": "The topic was deleted.",
    "undone": "That was taken back. An engine forgets it within half a minute.",
}
_NOT_TAKEN: Final[dict[Became, tuple[int, str]]] = {
    "unknown": (404, "Nothing is asked there."),
    "conflict": (409, "This was answered before, or the search does not wait for it any more."),
    "unclear": (422, "Say yes or no."),
    "not yours": (403, "Only an administrator may permit a tool for good: say yes or no."),
}
_MODIFIERS: Final = ("Category", "Region")
_TREE: Final = "tree-"
"""What the name of a box begins with that chooses a tree."""


@router.get("/topics")
async def topics(request: Request, session: Entered) -> Response:
    """List the topics of a person, with a box to ask in."""
    return await _topics_page(request, session)


async def _topics_page(
    request: Request,
    session: Session,
    *,
    wrong: str = "",
    given: dict[str, str] | None = None,
    asked_trees: list[str] | None = None,
    status: int = 200,
) -> Response:
    service = Service.of(request)
    params = request.query_params
    of = params.get("of", session.name) if session.sees_all else session.name
    start = number_of(params.get("start", "0"))
    words = params.get("q", "").replace("\0", "").strip()[:200]
    others = params.get("others") == "1" and (service.queue.shared or session.sees_all)
    of = session.name if others else of
    may = await trees_of(service, session.caller, of if session.sees_all and not others else None)
    listed, more = await topics_of(service.database, of, others=others, start=start, words=words, trees=may)
    trees = await named_trees(service, session.caller)
    return page(
        request,
        "topics.html",
        session=session,
        status=status,
        of=of,
        others=others,
        may_see_others=service.queue.shared or session.sees_all,
        hidden=0 if others else await hidden_topics(service.database, of, may),
        topics=listed,
        words=words,
        start=start,
        later=start + TOPICS if more else None,
        earlier=max(0, start - TOPICS) if start else None,
        said=SAID.get(params.get("said", ""), ""),
        wrong=wrong,
        given=given or {},
        trees=trees,
        asked_trees=asked_trees if asked_trees is not None else [tree.name for tree in trees],
        shut_out=not trees and await service.tree_rights.named(),
    )


@router.post("/ask")
async def ask(request: Request, session: Entered, service: Here, given: Form) -> Response:
    """Put a question, in a topic or in one of its own."""
    topic, text = given.get("topic", "").strip(), given.get("question", "").strip()
    place = await service.queue.place(topic) if topic else None
    owner = None if place is None else place.owner
    wanted = [name.removeprefix(_TREE) for name in given if name.startswith(_TREE)]
    try:
        body = bodies.AddQuery(
            Topic=topic or topic_for(text),
            User=session.name,
            Query=text,
            Modifiers=modifiers_of(given),
            Model=given.get("model", "").strip() or "default",
        )
    except ValidationError as exc:
        wrong = _wrong(exc)
        if owner is not None and given.get("back") == "thread":
            return await _thread_page(request, session, topic, wrong=wrong, given=given, status=422)
        return await _topics_page(
            request, session, wrong=wrong, given=given, asked_trees=wanted or None, status=422
        )
    # As over the API, a frontend or an administrator asks in another's topic on behalf of its owner.
    user = owner if owner is not None and session.sees_all and not service.queue.shared else session.name
    try:
        trees = await trees_to_ask(service, session.caller, user, topic or None, wanted or None)
    except HTTPException as exc:
        wrong = f"{exc.detail[:1].upper()}{exc.detail[1:]}."
        return await _topics_page(
            request, session, wrong=wrong, given=given, asked_trees=wanted or None, status=exc.status_code
        )
    try:
        service.limits.admit_open(
            session.caller, await service.queue.open_of(user) if session.role == "user" else 0
        )
        seq, _ = await service.queue.add(
            body.Topic, user, body.Query, model=body.Model, modifiers=body.Modifiers, trees=trees
        )
    except HTTPException:
        wrong = "Many of your questions are not answered yet: wait for some of the answers first."
        return await _topics_page(
            request, session, wrong=wrong, given=given, asked_trees=wanted or None, status=429
        )
    except TopicTaken:
        wrong = "A topic of this name belongs to somebody else: choose another name."
        return await _topics_page(
            request, session, wrong=wrong, given=given, asked_trees=wanted or None, status=403
        )
    service.waiting.engines.notify()
    return redirect("/thread", anchor=f"q{seq}" if seq > 1 else "", topic=body.Topic)


@router.get("/thread")
async def thread(
    request: Request, session: Entered, service: Here, topic: str = "", edit: Number = 0
) -> Response:
    """Show the questions of a topic with their answers; one may be put into the box, to be asked in other words."""
    given = {"question": (await question_in(service, session, topic, edit)).text} if edit else None
    return await _thread_page(request, session, topic, given=given)


@router.get("/thread/export")
async def export(
    request: Request, session: Entered, service: Here, topic: str = "", form: FileForm = "md"
) -> Response:
    """Give a topic as a file."""
    await owner_of(service, session, topic)
    queries = await service.queue.thread(topic)
    named = await service.queue.title(topic)
    title = named or (headline(queries[0].text)[0] if queries else topic)
    said = {query.seq: await service.recommendations.about(topic, query.text) for query in queries}
    text = await Web.of(request).readers.read(exported, topic, title, queries, said, form)
    begun = queries[0].at if named and queries else None
    name = file_name(named or topic, form, begun)
    disposition = {"Content-Disposition": f'attachment; filename="{name}"'}
    # A lone surrogate, which JSON may have in it, is no reason to give nothing.
    data = text.encode("utf-8", "replace")
    return Response(data, media_type=TYPES_OF_FILES[form], headers={**PRIVATE, **disposition})


async def _asked(service: Here, session: Entered, topic: str = "", seq: Number = 0) -> Query:
    return await question_in(service, session, topic, seq)


Asked = Annotated[Query, Depends(_asked)]
"""The question that the address names, as a parameter of an endpoint."""


async def _thread_page(
    request: Request,
    session: Session,
    topic: str,
    *,
    wrong: str = "",
    given: dict[str, str] | None = None,
    status: int = 200,
) -> Response:
    service = Service.of(request)
    owner = await owner_of(service, session, topic)
    queries = await service.queue.thread(topic)
    trees = await named_in(service, topic)
    may = await named_trees(service, session.caller)
    return await Web.of(request).readers.read(
        page,
        request,
        "thread.html",
        session=session,
        status=status,
        topic=topic,
        owner=owner,
        questions=[await question_of(service, session, query) for query in queries],
        said=SAID.get(request.query_params.get("said", ""), ""),
        said_of=number_of(request.query_params.get("of", "0")),
        undo=number_of(request.query_params.get("undo", "0")),
        trees=trees,
        more_trees=any(tree not in trees for tree in may),
        shared=service.queue.shared,
        title=await service.queue.title(topic),
        wrong=wrong,
        given=given or {},
        kinds=TYPES,
        live=any(query.status in UNSETTLED for query in queries),
    )


@router.get("/thread/question")
async def one_question(request: Request, session: Entered, service: Here, query: Asked) -> Response:
    """Give one question with its answer, for a page that is open already."""
    return await Web.of(request).readers.read(
        page,
        request,
        "question.html",
        session=session,
        topic=query.topic,
        question=await question_of(service, session, query),
        kinds=TYPES,
        said="",
        said_of=0,
        undo=0,
    )


@router.get("/thread/walk")
async def one_walk(
    request: Request, session: Entered, service: Here, query: Asked, after: Number = 0
) -> Response:
    """Give the path of a search so far, for a page that is open already."""
    walk, latest = await search_path_so_far(service, query.topic, query.seq)
    return page(request, "walk.html", session=session, walk=walk, latest=latest, after=after)


@router.get("/thread/events")
async def thread_events(
    request: Request, session: Entered, service: Here, query: Asked, after: str = "0"
) -> Response:
    """Stream the steps of a search to a page that is open already, from where it was cut off."""
    last = request.headers.get("last-event-id") or after
    return StreamingResponse(
        events.stream(request, service, session.caller, query.topic, query.seq, events.number_of_step(last)),
        media_type="text/event-stream",
        headers={**HEADERS, **events.HEADERS},
    )


@router.post("/answer")
async def answer(session: Entered, service: Here, given: Form) -> Response:
    """Take what a person says to a run that waits for it; the run goes on."""
    topic, seq = given.get("topic", ""), number_of(given.get("seq", ""))
    await owner_of(service, session, topic)
    text = given.get("said", "")
    if len(text) > bodies.MAX_TEXT:
        raise PageError(422, f"The answer is too long: at most {bodies.MAX_TEXT:,} characters.")
    became = await service.human_input.answer(
        topic,
        seq,
        text,
        number=number_of(given.get("number", "")),
        by=session.name,
        admin=session.role == "admin",
    )
    if became in _NOT_TAKEN:
        raise PageError(*_NOT_TAKEN[became])
    service.waiting.answered(topic, seq)
    service.waiting.engines.notify()
    return redirect("/thread", anchor=f"q{seq}", topic=topic)


@router.post("/stop")
async def stop(session: Entered, service: Here, given: Form) -> Response:
    """Stop the search for a question; what it has found is kept."""
    query = await question_in(service, session, given.get("topic", ""), number_of(given.get("seq", "")))
    await stop_routes.stop(service, session.caller, query.topic, query.seq, by=session.name)
    return redirect("/thread", anchor=f"q{query.seq}", topic=query.topic)


@router.post("/continue")
async def go_on(session: Entered, service: Here, given: Form) -> Response:
    """Go on with a search that was stopped."""
    query = await question_in(service, session, given.get("topic", ""), number_of(given.get("seq", "")))
    if await service.stopping.go_on(query.topic, query.seq):
        service.waiting.answered(query.topic, query.seq)
        service.waiting.engines.notify()
    return redirect("/thread", anchor=f"q{query.seq}", topic=query.topic)


@router.post("/recommend")
async def recommend(request: Request, session: Entered, service: Here, given: Form) -> Response:
    """Keep what a person says of an answer."""
    topic, seq = given.get("topic", ""), number_of(given.get("seq", ""))
    query = await question_in(service, session, topic, seq)
    owner = await owner_of(service, session, topic)
    behalf = owner if session.role == "frontend" else session.name
    kind = given.get("type", "")
    text = given.get("fragment", "\n\n".join(query.answer or ())[: bodies.MAX_TEXT])
    if (
        kind == MISSING and "missing" in given
    ):  # the box beside an answer, which has the answer in the other one
        text = given["missing"]
    try:
        body = bodies.Recommend.model_validate(
            {
                "Topic": topic,
                "OnBehalfOf": behalf,
                "Query": query.text,
                "Fragment": text.strip(),
                "Comment": given.get("comment", "").strip(),
                "Type": kind,
            }
        )
    except ValidationError as exc:
        return await _thread_page(request, session, topic, wrong=_wrong(exc), status=422)
    if (
        kind in (CORRECTION, IMPROVEMENT)
        and not body.Comment
        and body.Fragment.split() == "\n\n".join(query.answer or ()).split()
    ):
        wrong = "Nothing was changed: write your words into the text, or into the comment below it."
        return await _thread_page(request, session, topic, wrong=wrong, status=422)
    place = await service.queue.place(topic)
    try:
        tree = await tree_to_remember(service, session.caller, behalf, query, place, given.get("tree"))
    except HTTPException as exc:
        raise PageError(exc.status_code, f"{exc.detail}.") from None
    number, _ = await service.recommendations.add(
        topic=body.Topic,
        on_behalf_of=body.OnBehalfOf,
        query=body.Query,
        fragment=body.Fragment,
        comment=body.Comment,
        kind=body.Type,
        tree=tree,
    )
    status = "flagged" if body.Type == "Flag as Off Topic" else "recommended"
    return redirect("/thread", anchor=f"q{seq}", topic=topic, said=status, of=seq, undo=number)


@router.post("/topic/rename")
async def rename(session: Entered, service: Here, given: Form) -> Response:
    """Give a topic a title."""
    topic, title = given.get("topic", ""), given.get("title", "")
    if len(title) > bodies.MAX_TITLE:
        raise PageError(422, f"The title is too long: at most {bodies.MAX_TITLE} characters.")
    await service.queue.rename(topic, await _own(service, session, topic), title)
    return redirect("/thread", topic=topic)


@router.post("/topic/delete")
async def delete(session: Entered, service: Here, given: Form) -> Response:
    """Delete a topic."""
    topic = given.get("topic", "")
    await service.queue.remove(topic, await _own(service, session, topic))
    service.waiting.removed(topic)
    return redirect("/topics", said="deleted")


# what they share


async def owner_of(service: Service, session: Session, topic: str) -> str:
    """Return whose topic it is, when this person may see it; what is not there and what is not theirs look alike."""
    place = await service.queue.place(topic)
    if (
        place is None
        or not (service.queue.shared or session.sees_all or place.owner == session.name)
        or not await may_read(service, session.caller, place)
    ):
        raise PageError(404, "There is no such topic, or it is not yours.")
    return place.owner


async def named_in(service: Service, topic: str) -> list[NamedTree]:
    """Return the trees that a topic searches, where they have names."""
    place = await service.queue.place(topic)
    if place is None or place.trees == UNNAMED:
        return []
    return [tree for tree in await service.tree_rights.all() if tree.bit & place.trees]


async def _own(service: Service, session: Session, topic: str) -> str:
    """Return whose topic it is, when this person may change it."""
    owner = await owner_of(service, session, topic)
    if owner != session.name and not session.sees_all:
        raise PageError(403, "This topic belongs to somebody else.")
    return owner


async def question_in(service: Service, session: Session, topic: str, seq: int) -> Query:
    """Return a question of a topic, when this person may see it."""
    await owner_of(service, session, topic)
    query = await service.queue.query(topic, seq)
    if query is None:
        raise PageError(404, "There is no such question in this topic.")
    return query


def topic_for(text: str) -> str:
    """Return a name for the topic of a question: words to know it by, and something that no other has."""
    words = re.findall(r"\w+", text.lower())[:6]
    return "-".join([*words, secrets.token_hex(4)])[-100:]


def modifiers_of(given: dict[str, str]) -> dict[str, Any]:
    """Return the modifiers of a form: several values of one are parted by commas."""
    modifiers: dict[str, Any] = {}
    for name in _MODIFIERS:
        values = [value.strip() for value in given.get(name.lower(), "").split(",") if value.strip()]
        if values:
            modifiers[name] = values[0] if len(values) == 1 else values
    return modifiers


_FIELDS: Final = {
    "Query": "The question",
    "Topic": "The name of the topic",
    "Model": "The name of the model",
    "Fragment": "The text",
    "Comment": "The comment",
    "Type": "The kind",
}


def _wrong(exc: ValidationError) -> str:
    first = exc.errors(include_url=False, include_input=False, include_context=True)[0]
    name = _FIELDS.get(str(first["loc"][0]) if first["loc"] else "", "A field")
    limit = (first.get("ctx") or {}).get("max_length")
    match first["type"]:
        case "string_too_short":
            return f"{name} is empty."
        case "string_too_long":
            return f"{name} is too long: at most {limit:,} characters."
        case _ if name == "The kind":
            return f"The kind must be one of: {', '.join(TYPES)}."
        case _:
            return f"{name}: {first['msg']}."
