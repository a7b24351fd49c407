"""A model that gives no usable answers is dropped, and the search finds what it would find without it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from metatree_routers.llm import LLMRouter

from metatree import Limits, Node, RouteDecision, RouteRequest, Tree, resume, search
from metatree.testing._model_server import EMPTY, REFUSAL, ModelServer, Reply, truncated

pytestmark = pytest.mark.integration
Serve = Callable[..., ModelServer]
RouterFor = Callable[..., LLMRouter]
QUESTION = "How many minutes until a session token expires?"


@pytest.fixture
def tree() -> Iterator[Tree]:
    """Six branches of six leaves, one of which answers."""
    with Tree.create(":memory:") as made:
        for branch in ("auth", "billing", "mail", "search", "storage", "reports"):
            made.add(Node(branch, branch.title(), f"All about {branch}"))
            for number in range(6):
                text = f"Part {number} of {branch} has queue {number} and retries."
                made.add(Node(f"{branch}/{number}", f"{branch} {number}", content=text), branch)
        text = "A session token is signed.\nA session token expires after 60 minutes."
        made.add(Node("auth/token", "Session tokens", content=text), "auth")
        yield made


BROKEN = {
    "prose": Reply("I would look at the first one, I think."),
    "cut off": truncated(),
    "refused": REFUSAL,
    "empty": EMPTY,
    "wrong labels": Reply('{"choice": "ZZ", "answers": 7}'),
    "thoughts alone": Reply("<think>Let me think about the options again and again."),
    "long": Reply("{" * 200_000),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_useless_model_is_dropped_and_finds_what_is_found_without(
    serve: Serve, router_for: RouterFor, tree: Tree, kind: str
) -> None:
    alone = search(QUESTION, tree=tree)
    assert alone.answers, "the example is to be found without a model"
    server = serve(lambda request: BROKEN[kind])
    found = search(QUESTION, tree=tree, router=router_for(server))
    assert len(server.requests) <= 20
    assert found.usage.model_calls == len(server.requests)
    assert found.ended == alone.ended == "answered"
    assert found.answers[0].sources[0].node == alone.answers[0].sources[0].node
    events = [entry for entry in found.trace if entry.event == "without_model"]
    assert events, "the trace says nothing"
    assert "without it" in found.detail or "the model could not" in events[0].reason


@pytest.mark.parametrize("kind", ["prose", "wrong labels"])
def test_nodes_are_found_without_a_useless_model_too(
    serve: Serve, router_for: RouterFor, tree: Tree, kind: str
) -> None:
    server = serve(lambda request: BROKEN[kind])
    alone = search(QUESTION, tree=tree, returns="nodes", k=8)
    found = search(QUESTION, tree=tree, router=router_for(server), returns="nodes", k=8)
    assert len(server.requests) <= 9
    assert "without it" in found.detail
    assert {node.id for node in found.nodes[:1]} == {node.id for node in alone.nodes[:1]}
    assert len(found.nodes) == len(alone.nodes)


def test_an_answer_in_between_counts_from_one_again(serve: Serve, router_for: RouterFor, tree: Tree) -> None:
    numbers = iter(range(10_000))

    def model(request: Any) -> Any:
        return '{"choice": "A", "reason": "the first"}' if next(numbers) % 7 == 6 else "no JSON"

    found = search(QUESTION, tree=tree, router=router_for(serve(model)), returns="nodes", k=4)
    assert "without_model" not in [entry.event for entry in found.trace]


def test_a_run_without_its_model_goes_on_without_it(serve: Serve, router_for: RouterFor, tree: Tree) -> None:
    server = serve(lambda request: BROKEN["prose"])
    router = router_for(server)
    question = "Which queue has part 5 of reports?"
    options: dict[str, Any] = {"tree": tree, "router": router, "returns": "nodes"}
    first = search(question, **options, k=12, run_id="r", limits=Limits(router_calls=10))
    assert first.ended == "limit" and len(server.requests) == 9
    last = resume("r", tree=tree, router=router, limits=Limits())
    assert len(server.requests) == 9
    assert last.ended == "answered" and last.usage.model_calls == 9


def test_a_router_of_ones_own_is_still_asked_when_the_model_that_reads_is_dropped(
    serve: Serve, router_for: RouterFor, tree: Tree
) -> None:
    asked = []

    def route(request: RouteRequest) -> RouteDecision:
        asked.append(request.node.id)
        return RouteDecision(request.options[-1].id)

    reader = router_for(serve(lambda request: BROKEN["prose"])).suite().reader
    found = search("Which dogs bark?", tree=tree, router=route, reader=reader)
    assert "without_model" in [entry.event for entry in found.trace]
    assert len(asked) > 20 and found.usage.router_calls == len(asked)


def test_a_router_of_ones_own_that_fails_is_replaced_too(tree: Tree) -> None:
    asked = []

    def route(request: RouteRequest) -> RouteDecision:
        asked.append(request)
        raise ValueError("no")

    alone = search(QUESTION, tree=tree)
    found = search(QUESTION, tree=tree, router=route)
    assert len(asked) <= 9
    assert "without_model" not in [entry.event for entry in found.trace]
    assert found.answers[0].sources[0].node == alone.answers[0].sources[0].node


def poor_model(quality: str) -> Any:
    """A model that chooses and reads wrongly, in form."""

    def model(request: Any) -> Any:
        if "choice" in request.system:
            wrong = next(label for label, text in reversed(request.options.items()) if "oken" not in text)
            return {"reason": "surely", "choice": wrong if "routes" in quality else "A", "ruled_out": []}
        if "answers" in request.system:
            answers = "expires" not in request.user.rpartition("The text:")[2]
            said = {"question": "Q1", "answer": "never", "quote": "queue", "complete": True}
            return {"answers": [said] if answers else [], "new_questions": [], "notes": ""}
        return "{}"

    return model


@pytest.mark.parametrize("quality", ["reads wrongly", "routes and reads wrongly"])
def test_a_model_that_is_wrong_is_dropped_and_finds_what_is_found_without(
    serve: Serve, router_for: RouterFor, tree: Tree, quality: str
) -> None:
    alone = search(QUESTION, tree=tree)
    server = serve(poor_model(quality))
    router = router_for(server)
    for _ in range(8):
        found = search(QUESTION, tree=tree, router=router)
        if "without it" in found.detail and not found.usage.model_calls:
            break
    assert "too few to ask it: the search went on without it" in found.detail
    assert len(server.requests) <= 20
    assert found.answers == alone.answers
    assert found.usage.router_calls == alone.usage.router_calls
    [event] = [entry for entry in found.trace if entry.event == "without_model"]
    assert "the model was right in about" in event.reason
    nodes = search(QUESTION, tree=tree, router=router, returns="nodes", k=3)
    assert [node.id for node in nodes.nodes][:1] == ["auth/token"]


def test_a_model_that_finds_nothing_is_not_asked_for_ever(
    serve: Serve, router_for: RouterFor, tree: Tree
) -> None:
    """However much it is trusted: it reads what the evidence chooses, and the rest is looked through without it."""

    def model(request: Any) -> Any:
        if "choice" in request.system:
            return {"reason": "perhaps", "choice": "A", "ruled_out": []}
        return {"answers": [], "new_questions": [], "notes": ""} if "answers" in request.system else {}

    server = serve(model)
    router = router_for(server)
    for trust in (router.connection.trust, router.connection.trust_in_reading):
        trust.__dict__["_prior"] = [-999.0] * 24 + [0.0]  # taken to be right in 49 of 50
    question = "Which part of mail or search has zebras and retries?"
    found = search(question, tree=tree, router=router)
    assert found.usage.model_calls == len(server.requests) <= 16
    by_model = [each for each in found.trace if each.event == "route" and each.data.get("by") == "router"]
    assert len(by_model) <= 8
    assert "requests to the model led to nothing: the" in found.detail
    assert found.ended == search(question, tree=tree).ended
    freely = search(question, tree=tree, router=router, evidence=False)
    assert freely.usage.model_calls > 20, "without evidence there is nothing else"


def test_without_evidence_a_model_is_asked_whatever_it_was_worth(
    serve: Serve, router_for: RouterFor, tree: Tree
) -> None:
    server = serve(poor_model("routes and reads wrongly"))
    router = router_for(server)
    for _ in range(6):
        search(QUESTION, tree=tree, router=router)
    asked = len(server.requests)
    found = search(QUESTION, tree=tree, router=router, evidence=False, limits=Limits(model_calls=4))
    assert len(server.requests) == asked + found.usage.model_calls > asked


def test_what_likely_answers_is_read_where_the_model_ruled_it_out(
    serve: Serve, router_for: RouterFor, tree: Tree
) -> None:
    """A model that is led elsewhere, and closes the branch, loses nothing that is found without it."""

    def model(request: Any) -> Any:
        if "choice" in request.system:
            return {"reason": "none of them", "choice": "none", "ruled_out": list(request.options)}
        return {"answers": [], "new_questions": [], "notes": ""}

    alone = search(QUESTION, tree=tree)
    trusted = router_for(serve(model))
    trusted.connection.trust.__dict__["_prior"] = [-99.0] * 24 + [0.0]  # taken to be right in 49 of 50 menus
    found = search(QUESTION, tree=tree, router=trusted)
    assert [a.sources[0].node for a in found.answers] == [a.sources[0].node for a in alone.answers]
    assert (found.ended, found.closest, found.open_questions) == ("answered", (), ())
    [last] = [entry for entry in found.trace if entry.reason == "no model has read what likely answers"]
    assert last.node == "auth/token"
    assert found.usage.model_calls < 5
