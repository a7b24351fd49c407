"""Limits end a run with the best partial answer, and larger ones take it up again."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import Any

import pytest

from metatree import (
    Answer,
    Limits,
    Reading,
    ReadRequest,
    RouteDecision,
    RouteRequest,
    Traits,
    load_run,
    resume,
    search,
)
from metatree.durable import report_usage
from metatree.testing.parts import FunctionRouter, PlainComposer, tree_of

SHAPE: Any = {b: {b + n: f"text {b}{n}" for n in "1234"} for b in "abcd"}


class Model:
    """A router and a reader that cost something."""

    traits = Traits(uses_model=True)

    async def route(self, request: RouteRequest) -> RouteDecision:
        report_usage(tokens_in=100, tokens_out=10, cost_usd=Decimal("0.01"))
        return RouteDecision(request.options[0].id)

    async def read(self, request: ReadRequest) -> Reading:
        report_usage(tokens_in=50, tokens_out=5, cost_usd=0.005)
        if request.node.id == "a1":
            return Reading((Answer("q", "part", complete=False),))
        return Reading((Answer("q", "whole"),)) if request.node.id == "d4" else Reading()


def parts() -> dict[str, Any]:
    model = Model()
    return {"router": model, "reader": model, "composer": PlainComposer(), "evidence": False}


@pytest.mark.parametrize(
    ("limits", "detail"),
    [
        (Limits(router_calls=3), "router_calls"),
        (Limits(reads=2), "reads"),
        (Limits(model_calls=5), "model_calls"),
        (Limits(tokens=600), "tokens"),
        (Limits(cost_usd=Decimal("0.03")), "cost_usd"),
    ],
)
def test_a_limit_ends_with_the_best_partial_answer_and_can_be_resumed(limits: Limits, detail: str) -> None:
    tree = tree_of(SHAPE)
    result = search("q", tree=tree, limits=limits, run_id="r", **parts())
    assert (result.ended, result.detail, result.answer) == ("limit", detail, "part")
    assert result.open_questions == ("q",)
    assert not result.answers[0].complete
    again = resume("r", tree=tree, **parts())  # the limits stay what they were
    assert (again.ended, again.detail, again.trace) == ("limit", detail, result.trace)
    done = resume("r", tree=tree, limits=Limits(), **parts())
    assert (done.ended, done.answer) == ("answered", "whole")
    whole = search("q", tree=tree_of(SHAPE), limits=Limits(), **parts())
    assert done.trace == whole.trace
    assert done.usage.model_calls == whole.usage.model_calls  # nothing was paid for twice
    assert (done.usage.tokens_in, done.usage.cost_usd) == (whole.usage.tokens_in, whole.usage.cost_usd)


def test_counters_are_kept_to_the_call() -> None:
    result = search("q", tree=tree_of(SHAPE), limits=Limits(router_calls=3, reads=2), **parts())
    assert (result.usage.router_calls, result.usage.reads) == (3, 2)
    result = search("q", tree=tree_of(SHAPE), limits=Limits(router_calls=0), **parts())
    assert (result.usage.router_calls, result.ended) == (0, "limit")


def test_usage_is_what_the_parts_report() -> None:
    result = search("q", tree=tree_of(SHAPE), **parts())
    used = result.usage
    assert used.model_calls == used.router_calls + used.reads
    assert used.tokens_in == 100 * used.router_calls + 50 * used.reads
    assert used.cost_usd == Decimal("0.01") * used.router_calls + Decimal("0.005") * used.reads


def test_time_runs_out_also_in_the_middle_of_a_call() -> None:
    class Slow:
        async def route(self, request: RouteRequest) -> RouteDecision:
            report_usage(tokens_in=7)
            await asyncio.sleep(30)
            raise AssertionError

    tree = tree_of(SHAPE)
    result = search(
        "q", tree=tree, run_id="r", router=Slow(), reader=Model(), evidence=False, limits=Limits(seconds=0.05)
    )
    assert (result.ended, result.detail) == ("limit", "seconds")
    assert result.usage.seconds < 25
    assert (result.usage.router_calls, result.usage.tokens_in) == (1, 7)
    stored = load_run("r", tree=tree)
    assert (stored.usage.router_calls, stored.usage.tokens_in) == (
        1,
        7,
    )  # what a cut call used is in the journal
    assert resume("r", tree=tree, limits=Limits(), **parts()).answer == "whole"


@pytest.mark.parametrize("concurrency", [1, 4])
def test_time_runs_out_with_effects_in_parallel(concurrency: int) -> None:
    class Slow:
        async def route(self, request: RouteRequest) -> RouteDecision:
            await asyncio.sleep(30)
            raise AssertionError

    result = search(
        ["q", "r", "s"],
        tree=tree_of(SHAPE),
        router=Slow(),
        reader=Model(),
        evidence=False,
        concurrency=concurrency,
        limits=Limits(seconds=0.05),
    )
    assert (result.ended, result.detail, result.usage.router_calls) == (
        "limit",
        "seconds",
        min(3, concurrency),
    )


def test_a_slow_part_is_given_up_and_evidence_decides() -> None:
    class Slow:
        async def route(self, request: RouteRequest) -> RouteDecision:
            await asyncio.sleep(30)
            raise AssertionError

    limits = Limits(effect_seconds=0.01)
    result = search(
        "q", tree=tree_of({"a": "x", "b": "y"}), router=Slow(), reader=Model(), evidence=False, limits=limits
    )
    assert result.ended == "exhausted"
    assert result.usage.failed_attempts == 3
    assert "no answer within 0.01 s" in next(e.reason for e in result.trace if e.event == "route")


def test_failed_attempts_count_as_calls() -> None:
    router = FunctionRouter(lambda request: ValueError("broken"))
    limits = Limits(router_calls=5)
    result = search("q", tree=tree_of(SHAPE), router=router, reader=Model(), evidence=False, limits=limits)
    assert result.ended == "limit" and result.detail.startswith("router_calls; the router failed at 1 of 1")
    assert (len(router.requests), result.usage.router_calls, result.usage.failed_attempts) == (5, 5, 5)
