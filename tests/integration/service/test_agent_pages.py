"""Durable agents on the page and over the API: shown as they are, answered, tried again, cancelled."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from metatree_agents.planner import Agents, Domain
from metatree_agents.planner.agents.views import AgentViews

from .conftest import Served
from .test_pages import buttons
from .test_web import entered

pytestmark = pytest.mark.integration
HOSTILE = "<script>alert(1)</script>"


def shop() -> Domain:
    domain = Domain("shop", version="1")
    domain.relation("open", 0, dynamic=True)
    domain.task("ask(?what)", does={"ask": "May ?what be sold?"})
    domain.task("late()", when="(open)")
    domain.task("nap()", does={"sleep": 3600})
    domain.rule("sell(?what)", subgoals=["ask(?what)", "nap()"])
    return domain


@pytest.fixture
def agents(tmp_path: Path) -> Iterator[Agents]:
    """Agents that wait for a person and one that has failed, in a file."""
    with Agents(tmp_path / "agents.db", shop()) as driven:
        driven.start(("sell", HOSTILE), id="sells")
        driven.start("late()", id="late")
        driven.work(until_idle=True)
        yield driven


@pytest.fixture
def service(serve: Callable[..., Served], agents: Agents, tmp_path: Path) -> Iterator[Served]:
    with Agents(tmp_path / "agents.db") as shown:
        yield serve(agents=AgentViews(shown))


def test_an_agent_is_shown_as_a_tree_with_what_it_waits_for(service: Served) -> None:
    browser = entered(service, "Admin_1")
    listed = browser.get("/agents")
    assert "script-src 'self'" in listed.headers["Content-Security-Policy"]
    assert "unsafe" not in listed.headers["Content-Security-Policy"]
    assert 'href="/agent?id=sells"' in listed.text and HOSTILE not in listed.text
    assert html.escape(HOSTILE) in listed.text
    page = browser.get("/agent?id=sells").text
    assert HOSTILE not in page
    text = html.unescape(page)
    assert f"an answer: May {HOSTILE} be sold?" in text
    assert "\N{NO-BREAK SPACE}" * 4 + "nap()" in text
    assert 'href="/agents"' in browser.get("/topics").text


def test_a_person_answers_without_scripts(service: Served, agents: Agents) -> None:
    browser = entered(service, "Admin_1")
    page = browser.get("/agent?id=sells").text
    (question,) = service.admin.get("admin/agent", Agent="sells").json()["Questions"]
    action = f"/agent/answer?id=sells&question={question['Id'].replace(':', '%3A')}"
    assert html.escape(action) in page
    assert browser.send(action, answer=" ").status_code == 422
    assert browser.send(action, answer="yes").status_code == 303
    agents.work(until_idle=True)
    assert "its time" in agents.show("sells").waits[3]
    assert browser.send(action, answer="no").status_code == 409, "it does not ask any more"


def test_a_person_tries_again_and_cancels(service: Served, agents: Agents) -> None:
    browser = entered(service, "Admin_1")
    (retry,) = buttons(browser.get("/agent?id=late").text, "/agent/retry")
    agents.domain.reader("open")(lambda: [()])
    assert browser.post("/agent/retry", retry).status_code == 303
    agents.work(until_idle=True)
    assert agents.show("late").status == "complete"
    assert browser.post("/agent/retry", retry).status_code == 409
    (cancel,) = buttons(browser.get("/agent?id=sells").text, "/agent/cancel")
    assert browser.post("/agent/cancel", {**cancel, "csrf": "x"}).status_code == 403
    assert browser.post("/agent/cancel", cancel).status_code == 303
    agents.work(until_idle=True)
    assert agents.show("sells").status == "cancelled"
    assert buttons(browser.get("/agent?id=sells").text, "/agent/cancel") == []


def test_programs_of_administrators_do_the_same(service: Served, agents: Agents) -> None:
    admin = service.admin
    assert [one["Agent"] for one in admin.get("admin/agents").json()["Agents"]] == ["late", "sells"]
    assert admin.get("admin/agents", Start=1).json()["Agents"][0]["Agent"] == "sells"
    shown = admin.get("admin/agent", Agent="sells").json()
    assert [(one["Depth"], one["Status"]) for one in shown["Goals"]] == [
        (0, "active"),
        (1, "active"),
        (1, "pending"),
    ]
    answer = {"Agent": "sells", "Question": shown["Questions"][0]["Id"], "Answer": "yes"}
    assert admin.call("POST", "admin/answer-agent", json={**answer, "Answer": ""}).status_code == 422
    assert admin.call("POST", "admin/answer-agent", json=answer).status_code == 200
    assert admin.call("POST", "admin/cancel-agent", json={"Agent": "late"}).status_code == 409
    assert admin.call("POST", "admin/retry-agent", json={"Agent": "nobody"}).status_code == 404
    assert admin.call("POST", "admin/retry-agent", json={"Agent": "late"}).status_code == 200
    assert admin.call("POST", "admin/cancel-agent", json={"Agent": "late"}).status_code == 200
    agents.work(until_idle=True)
    assert (agents.show("late").status, agents.show("sells").intents[1].result) == ("cancelled", "yes")


def test_agents_are_for_administrators(service: Served) -> None:
    browser = entered(service, "User_1")
    assert "/agents" not in browser.get("/topics").text
    assert browser.get("/agents").status_code == 403
    assert browser.get("/agent?id=sells").status_code == 403
    assert browser.send("/agent/cancel", id="sells").status_code == 403


def test_a_server_without_agents_says_so(serve: Callable[..., Served]) -> None:
    browser = entered(serve(), "Admin_1")
    assert "/agents" not in browser.get("/topics").text
    said = browser.get("/agents")
    assert said.status_code == 404
    assert "metatree serve --agents FILE" in said.text
