"""The library as an action tree, routers that order candidates, and who proposes rules."""

from __future__ import annotations

import warnings
from typing import Any

from metatree_agents.planner import Agents, Domain
from metatree_agents.planner.agents._library import (
    library_tree,
    model_proposals,
    person_proposals,
    router_order,
)

from metatree import RouteDecision, RouteRequest, ToolRequest


def _home() -> Domain:
    domain = Domain("home")
    domain.relation("at", 1)
    domain.task(
        "go(?to)", when="(at ?from)", effect="(and (not (at ?from)) (at ?to))", description="Walk there."
    )
    domain.task("buy(?what)", when="(at shop)")
    return domain


class Choosing:
    """Chooses the option with a word, and rules out those with another."""

    def __init__(self, word: str, out: str = "") -> None:
        self.word, self.out = word, out
        self.requests: list[RouteRequest] = []

    async def route(self, request: RouteRequest) -> RouteDecision:
        self.requests.append(request)
        choice = next((one.id for one in request.options if self.word in one.title), None)
        bad = {one.id: "no" for one in request.options if self.out and self.out in one.title}
        return RouteDecision(choice, bad)


class Filling:
    """Answers with what it was given, one after the other."""

    def __init__(self, *said: dict[str, Any]) -> None:
        self.said = list(said)
        self.requests: list[ToolRequest] = []

    async def fill(self, request: ToolRequest) -> dict[str, Any]:
        self.requests.append(request)
        return self.said.pop(0)


def test_the_library_is_a_tree_of_action_nodes() -> None:
    domain = _home()
    domain.rule("shop(?what)", subgoals=["go(shop)", "buy(?what)"], title="Go shopping")
    tree = library_tree(domain.library)
    assert [node.id for node in tree.children(tree.root)] == ["go", "buy", "shop"]
    (node,) = tree.children("shop")
    assert (node.title, node.kind) == ("Go shopping", "rule")
    assert "sub-goal: go(shop)" in tree.content(node.id)
    assert tree.get("go/go").description == "Walk there."


def test_a_router_orders_candidates_of_equal_cost() -> None:
    domain = Domain()
    for name in ("bus", "train", "car"):
        domain.task("travel()", name=name)
    router = Choosing("train", out="bus")
    with Agents(":memory:", domain, order=router_order(router)) as agents:
        info = agents.run(agents.start("travel()"))
    assert [one.action for one in info.intents] == ["train"]
    assert len(router.requests[0].options) == 3


def test_a_router_that_fails_leaves_the_drawn_order() -> None:
    class Broken:
        async def route(self, request: RouteRequest) -> RouteDecision:
            raise RuntimeError("no")

    domain = Domain()
    domain.task("travel()", name="bus")
    domain.task("travel()", name="train")
    with Agents(":memory:", domain, order=router_order(Broken())) as agents:
        assert agents.run(agents.start("travel()")).status == "complete"


def test_a_model_proposes_a_rule_and_gets_the_errors() -> None:
    good = {
        "possible": True,
        "when": "",
        "subgoals": ["go(shop)", "buy(?arg1)"],
        "title": "Shop",
        "why": "obvious",
    }
    caller = Filling({**good, "subgoals": "go"}, {**good, "when": "(at"}, good)
    with Agents(":memory:", _home(), propose=model_proposals(caller)) as agents:
        info = agents.run(agents.start("fetch(bread)", facts=[("at", "home")]))
        assert info.status == "complete", info.detail
        assert [one.goal for one in info.intents if one.kind == "task"] == [("go", "shop"), ("buy", "bread")]
    assert "list of texts" in caller.requests[1].errors[0]
    assert "never closed" in caller.requests[2].errors[1]
    assert "go(?to) by task go" in caller.requests[0].context


def test_a_model_that_sees_no_way_proposes_nothing() -> None:
    caller = Filling({"possible": False, "when": "", "subgoals": [], "title": "", "why": "no"})
    with Agents(":memory:", _home(), propose=model_proposals(caller)) as agents:
        info = agents.run(agents.start("fly(moon)", facts=[("at", "home")]))
    assert info.status == "failed"
    assert "no rule and no task is declared" in info.detail


def test_a_person_proposes_a_rule_for_a_sub_goal() -> None:
    domain = _home()
    domain.rule("evening()", subgoals=["go(shop)", "dine(soup)"])
    questions: list[str] = []

    def ask(question: str) -> str:
        questions.append(question)
        return "buy(?arg1) ; go(home)"

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        agents = Agents(":memory:", domain, propose=person_proposals(ask))
    with agents:
        info = agents.run(agents.start("evening()", facts=[("at", "home")]))
        assert info.status == "complete", info.detail
        assert [one.goal for one in info.intents if one.kind == "task"][-1] == ("go", "home")
    assert "Nothing reaches dine(soup)" in questions[0]
