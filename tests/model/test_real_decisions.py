"""Decision models that are real: the protocol holds, probabilities are some, the trace shows them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from metatree_routers.decisions import Choice, DecisionRouter, Score, YesNo
from metatree_routers.decisions._model import expected_level
from metatree_routers.decisions._router import model_named

from metatree import Node, Option, RouteRequest, Tree, search
from metatree.errors import BadModelAnswer

pytestmark = [pytest.mark.model, pytest.mark.integration]
QUESTION = "How long do tokens live?"
MENU = RouteRequest(
    (QUESTION,),
    "",
    Node("src", "src"),
    (
        Option("tokens", "tokens.py", "How long tokens live", None, 0.9, ("TTL = 3600",)),
        Option("login", "login.py", "The login form", None, 0.2),
        Option("circle", "circle.py", "Draw a circle", None, 0.1),
    ),
)


def test_all_types_of_questions_are_answered(decision_url: str) -> None:
    model = model_named(f"systemone/sparrow@{decision_url}")
    said = asyncio.run(
        model.decide(
            "User: I was charged twice for one order.",
            {
                "tool": Choice("Which tool fits?", {"A": "refund a payment", "B": "forecasts for a city"}),
                "upset": YesNo("The user is upset."),
                "urgent": Score("How urgent is this?", ("can wait", "today", "now")),
            },
        )
    )
    assert sum(said["tool"].values()) == pytest.approx(1)
    assert 0 <= said["upset"]["yes"] <= 1
    assert 0 <= expected_level(said["urgent"]) <= 2


def test_the_router_gives_probabilities(decision_url: str) -> None:
    decision = asyncio.run(DecisionRouter("systemone/sparrow", base_url=decision_url).route(MENU))
    assert decision.choice in {option.id for option in MENU.options}
    assert set(decision.probabilities) == {option.id for option in MENU.options}


def test_a_whole_search_by_decisions(decision_url: str, tree: Tree) -> None:
    router = DecisionRouter("systemone/sparrow", base_url=decision_url)
    found = search(QUESTION, tree=tree, router=router)
    assert found.ended in ("answered", "exhausted")
    assert found.usage.model_calls > 0
    routes = [entry for entry in found.trace if entry.event == "route" and entry.data["by"] == "router"]
    assert routes and all(entry.data["probabilities"] for entry in routes)
    assert all(answer.confidence is not None and answer.confidence >= 0.5 for answer in found.answers)


def test_letters_of_a_chat_model_are_read_as_decisions(model_url: str) -> None:
    router = DecisionRouter("logits/smollm2", base_url=model_url, timeout_s=120)
    try:
        decision = asyncio.run(router.route(MENU))
    except BadModelAnswer as error:  # so small a model may begin its answer otherwise
        assert "letters" in str(error)
    else:
        assert decision.choice in {None, *(option.id for option in MENU.options)}


def test_ask_on_the_command_line(decision_url: str, metatree: Callable[..., Any], tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "tokens.py").write_text("TTL = 3600  # tokens live for one hour\n")
    (source / "draw.py").write_text("def circle(): ...\n")
    named = f"systemone/sparrow@{decision_url}"
    done = metatree("ask", QUESTION, "--source", str(source), "--router", named, "--json")
    assert done.returncode in (0, 1), done.stderr
    assert json.loads(done.stdout)["usage"]["model_calls"] > 0
    assert "Traceback" not in done.stderr
    trace = metatree("trace", "--source", str(source))
    assert trace.returncode == 0 and "by the model" in trace.stdout
