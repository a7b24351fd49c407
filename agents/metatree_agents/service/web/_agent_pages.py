"""Durable agents: their goals as a tree, what waits and why; a person answers, tries again, cancels."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response
from metatree_memory_tools.text.descriptions import shorten

from metatree_agents.service.goal_agents import of_agents
from metatree_agents.service.http.bodies import stamp
from metatree_agents.service.web._admin_pages import Administrator
from metatree_agents.service.web._guard import Form, Here, Id, Number
from metatree_agents.service.web._replies import PageError, link, redirect
from metatree_agents.service.web._tables import (
    PAGE,
    Button,
    Cell,
    FormField,
    LinkCell,
    ListedTable,
    PageForm,
    paged,
    tables_page,
)

router = APIRouter()
_ENDED = ("complete", "failed", "cancelled", "limit")


@router.get("/agents")
async def agents_page(request: Request, session: Administrator, service: Here, start: Number = 0) -> Response:
    """List the agents, the last changed first."""
    listed = await of_agents(service.agents, lambda each: each.listed(start, PAGE + 1), PageError)
    rows: list[list[Cell]] = [
        [
            LinkCell(str(each["Agent"]), link("/agent", id=each["Agent"])),
            shorten(each["Goal"], 200),
            each["Status"],
            stamp(each["Changed"]).replace("T", " "),
        ]
        for each in listed
    ]
    shown, earlier, later = paged(rows, "/agents", start)
    columns = ("Agent", "Goal", "Status", "Changed (UTC)")
    table = ListedTable("Agents", columns, shown, "There are no agents.", earlier, later)
    return tables_page(request, session, "Agents", [table])


@router.get("/agent")
async def agent_page(
    request: Request,
    session: Administrator,
    service: Here,
    name: Id = "",
) -> Response:
    """Show an agent: its goals as a tree, and what can be decided about it."""
    shown = await of_agents(service.agents, lambda each: each.shown(name), PageError)
    return tables_page(
        request,
        session,
        shorten(shown["Goal"], 200),
        [
            ListedTable(
                "Goals", ("Goal", "By", "Status", "Waits for", "Came of it"), _goals(shown), "There are none."
            ),
            ListedTable("Facts", ("Fact",), [[one] for one in shown["Facts"]], "There are none."),
            ListedTable("Agent", ("Name", "Value"), _about(shown), ""),
        ],
        tabs=[("Agents", "/agents")],
        lead=f"{shown['Status']}{': ' if shown['Detail'] else ''}{shown['Detail']}",
        forms=[
            PageForm(
                each["Question"],
                link("/agent/answer", id=name, question=each["Id"]),
                "Answer",
                (FormField("answer", "Answer"),),
            )
            for each in shown["Questions"]
        ],
    )


def _goals(shown: dict[str, Any]) -> list[list[Cell]]:
    return [
        [
            "\N{NO-BREAK SPACE}" * 4 * min(each["Depth"], 20) + each["Goal"],
            each["By"],
            each["Status"] + (f", attempt {each['Attempt']}" if each["Attempt"] > 1 else ""),
            each["WaitsFor"] or None,
            (each["Result"] if each["Result"] is not None else each["Detail"])[:2_000] or None,
        ]
        for each in shown["Goals"]
    ]


def _about(shown: dict[str, Any]) -> list[list[Cell]]:
    name, buttons = shown["Agent"], []
    if shown["Status"] in ("failed", "limit"):
        buttons.append(Button("Try again", "/agent/retry", {"id": name}, name))
    if shown["Status"] not in _ENDED:
        buttons.append(Button("Cancel", "/agent/cancel", {"id": name}, name))
    rows: list[list[Cell]] = [["Name", name], ["Do", buttons]]
    if shown["Version"]:
        rows.append(["Version", shown["Version"]])
    if shown["Parent"]:
        rows.append(["Child of", LinkCell(shown["Parent"], link("/agent", id=shown["Parent"]))])
    return rows + [["Waits for", LinkCell(one, link("/agent", id=one))] for one in shown["Children"]]


@router.post("/agent/answer")
async def answer(_: Administrator, service: Here, given: Form, name: Id = "", question: str = "") -> Response:
    """Answer a question of an agent."""
    text = given.get("answer", "").strip()
    if not text:
        raise PageError(422, "An answer has to say something.")
    await of_agents(service.agents, lambda each: each.answer(name, question, text), PageError)
    return redirect("/agent", id=name)


@router.post("/agent/retry")
async def retry(_: Administrator, service: Here, given: Form) -> Response:
    """Let an agent that has failed go on."""
    await of_agents(service.agents, lambda each: each.retry(given.get("id", "")), PageError)
    return redirect("/agent", id=given.get("id", ""))


@router.post("/agent/cancel")
async def cancel(_: Administrator, service: Here, given: Form) -> Response:
    """Cancel an agent."""
    await of_agents(service.agents, lambda each: each.cancel(given.get("id", "")), PageError)
    return redirect("/agent", id=given.get("id", ""))
