"""Routes for administrators about durable agents: what they do, what they wait for, and what a person decides."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from pydantic import Field

from metatree_agents.service.goal_agents import of_agents
from metatree_agents.service.http._description import described
from metatree_agents.service.http.bodies import Body
from metatree_agents.service.http.calls import admitted, number, refused, required, submitted

router = APIRouter(prefix="/api/admin")
LISTED = 100


class ChosenAgent(Body):
    """An agent."""

    Agent: str = Field(min_length=1, max_length=500)


class AgentAnswer(ChosenAgent):
    """An answer to a question of an agent."""

    Question: str = Field(min_length=1, max_length=500)
    Answer: str = Field(min_length=1, max_length=10_000)


class ListedAgents(Body):
    """Some of the agents, the last changed first."""

    Agents: list[dict[str, Any]]


@router.get("/agents", response_model=ListedAgents, **described(404, 422))
async def agents(request: Request) -> Response:
    """Return a hundred agents, the last changed first; `Start` leaves some out."""
    service, _, given = await admitted(request, "admin")
    start = number(given, "Start", least=0, default=0) or 0
    listed = await of_agents(service.agents, lambda each: each.listed(start, LISTED), refused)
    return JSONResponse({"Agents": list(listed)})


@router.get("/agent", **described(404, 422))
async def agent(request: Request) -> Response:
    """Return an agent: its goals as a tree, what each waits for, its questions and facts."""
    service, _, given = await admitted(request, "admin")
    name = required(given, "Agent")
    return JSONResponse(await of_agents(service.agents, lambda each: each.shown(name), refused))


@router.post("/answer-agent", **described(404, 409, 422, body=AgentAnswer))
async def answer_agent(request: Request) -> Response:
    """Answer a question of an agent."""
    service, _, body = await submitted(request, AgentAnswer, "admin")
    await of_agents(service.agents, lambda each: each.answer(body.Agent, body.Question, body.Answer), refused)
    return JSONResponse({})


@router.post("/retry-agent", **described(404, 409, 422, body=ChosenAgent))
async def retry_agent(request: Request) -> Response:
    """Let an agent that has failed go on: what failed is done again, by whoever drives it."""
    service, _, body = await submitted(request, ChosenAgent, "admin")
    await of_agents(service.agents, lambda each: each.retry(body.Agent), refused)
    return JSONResponse({})


@router.post("/cancel-agent", **described(404, 409, 422, body=ChosenAgent))
async def cancel_agent(request: Request) -> Response:
    """Cancel an agent: whoever drives it calls off what is at work and undoes what was done."""
    service, _, body = await submitted(request, ChosenAgent, "admin")
    await of_agents(service.agents, lambda each: each.cancel(body.Agent), refused)
    return JSONResponse({})
