"""Routes for what a run asks a person: an engine parks its topic with the question, somebody answers in the thread."""

from __future__ import annotations

import time
from typing import Annotated, Final

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from pydantic import Field, StringConstraints

from metatree_agents.service.http._description import described
from metatree_agents.service.http.bodies import (
    Body,
    HowMany,
    LeaseName,
    Name,
    Remark,
    Seq,
    Stamped,
    Text,
    TopicId,
    stamp,
)
from metatree_agents.service.http.calls import refused, submitted
from metatree_agents.service.http.routes import ANSWERING, ASKING, owner_for, topic_of
from metatree_agents.service.queue.human_input import Ask, Became, Kind

router = APIRouter(prefix="/api")
_REFUSED: Final[dict[Became, tuple[int, str]]] = {
    "unknown": (404, "nothing is asked there"),
    "conflict": (
        409,
        "it was answered before, waits no more, or several questions are open: name one by its Id",
    ),
    "unclear": (422, "Answer: say yes or no"),
    "not yours": (403, "only an administrator may permit a tool for good: say yes or no"),
}


class AskedQuestion(Body):
    """What a run asks; `Key` is what the engine knows it by."""

    Key: Annotated[str, StringConstraints(max_length=200)]
    Question: Text
    Kind: Kind = "question"


class AskPerson(Body):
    """A topic that an engine has, and what the run of one of its queries asks before it goes on."""

    Topic: TopicId
    Seq: Seq
    Lease: LeaseName
    Questions: Annotated[list[AskedQuestion], Field(min_length=1, max_length=20)]


class AnswerQuestion(Body):
    """The answer to what a query asks; `Id` may be left out when one question is open."""

    Topic: TopicId
    Seq: Seq
    Id: HowMany | None = None
    Answer: Remark
    OnBehalfOf: Name | None = None


@router.post("/ask-person", response_model=Stamped, **described(409, 422, body=AskPerson))
async def ask_person(request: Request) -> Response:
    """Let a topic wait for a person, who is asked in its thread; the engine has it no more, and may do other work."""
    service, _, body = await submitted(request, AskPerson, *ANSWERING)
    asks = [Ask(one.Key, one.Question, one.Kind, 0.0) for one in body.Questions]
    if not await service.human_input.park(body.Topic, body.Seq, body.Lease, asks):
        raise refused(409, "this lease has ended, or the query is not being answered")
    service.waiting.answered(body.Topic, body.Seq)
    return JSONResponse({"Timestamp": stamp(time.time())})


@router.post("/answer-question", response_model=Stamped, **described(404, 409, 422, body=AnswerQuestion))
async def answer_question(request: Request) -> Response:
    """Answer what a query asks; its run goes on where it asked. An empty answer declines to say."""
    service, who, body = await submitted(request, AnswerQuestion, *ASKING)
    user = owner_for(who, body.OnBehalfOf or who.name)
    given = {"Topic": body.Topic} | ({"OnBehalfOf": body.OnBehalfOf} if body.OnBehalfOf else {})
    topic = await topic_of(service, who, given)
    became = await service.human_input.answer(
        topic, body.Seq, body.Answer, number=body.Id, by=user, admin=who.role == "admin"
    )
    if became in _REFUSED:
        raise refused(*_REFUSED[became])
    service.waiting.answered(topic, body.Seq)
    service.waiting.engines.notify()
    return JSONResponse({"Timestamp": stamp(time.time())})
