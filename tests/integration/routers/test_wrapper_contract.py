"""The contract of wrappers: whatever is wrapped in whatever, each part says of itself and does what it did without."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from metatree_routers import CachedRouter, FallbackRouter, LimitedRouter, RecordedRouter, ReplayedRouter
from metatree_routers.embedded.suite import embedded_suite
from metatree_routers.wrappers.disk_cache import MemoryCache

from metatree import (
    Answer,
    ComposeRequest,
    DescribeRequest,
    Description,
    Node,
    Option,
    Passage,
    Reading,
    ReadRequest,
    RouteDecision,
    RouteRequest,
    Suite,
    ToolRequest,
    ToolSpec,
    Traits,
)
from metatree.errors import RouterUnavailable
from metatree.parts import as_evidence, whole_suite
from metatree.protocols import Composer, Describer, Evidence, Reader, Router, Scored, ToolCaller
from metatree.testing.parts import (
    PlainComposer,
    PlainDescriber,
    ScriptedReader,
    ScriptedRouter,
    ScriptedToolCaller,
)

pytestmark = pytest.mark.integration

Wrap = Callable[[Any, Path], Router]
NODE = Node("a", "a.py", "About a", "TTL = 60")
MENU = RouteRequest(
    ("Where?",), "", Node("n", "src"), (Option("a", "a.py"), Option("b", "b.py"), Option("c", "c.py"))
)
READ = ReadRequest(NODE, "TTL = 60", ("q",))
FILL = ToolRequest(
    ToolSpec(
        "grep",
        "grep",
        "",
        "exploratory",
        {"properties": {"pattern": {"type": "string"}}, "required": ["pattern"]},
    ),
    NODE,
    ("Where is `TTL`?",),
)
COMPOSE = ComposeRequest(("q", "r"), (Answer("q", "60"), Answer("r", "a")), ())
DESCRIBE = DescribeRequest("a text", NODE)
MANY = (DESCRIBE, DescribeRequest("another text"))


WRAPPERS: dict[str, Wrap] = {
    "cached": lambda inner, folder: CachedRouter(inner, MemoryCache()),
    "limited": lambda inner, folder: LimitedRouter(inner, concurrency=2),
    "fallback": lambda inner, folder: FallbackRouter(inner, inner),
    "recorded": lambda inner, folder: RecordedRouter(inner, folder / "r.jsonl"),
    "two": lambda inner, folder: LimitedRouter(CachedRouter(inner, MemoryCache())),
    "three": lambda inner, folder: RecordedRouter(FallbackRouter(LimitedRouter(inner)), folder / "r.jsonl"),
}


class Narrow(ScriptedRouter):
    """A router with every trait that a router can have."""

    traits = Traits(
        uses_model=True,
        cache_key="narrow",
        capacity=lambda request: 2,
        follows_evidence=True,
        gives_probabilities=True,
        declines=lambda: "",
    )


class Rules(ScriptedToolCaller):
    """A tool caller that goes by rules."""

    traits = Traits(any_loop=True, by_rules=True, cache_key="rules")


class Asking(ScriptedReader):
    """A reader with every trait that a reader can have."""

    traits = Traits(uses_model=True, cache_key="model x", by_passages=True, declines=lambda: "")


class Joining(PlainComposer):
    """A composer that asks a model."""

    traits = Traits(uses_model=True, cache_key="model y")


class Many(PlainDescriber):
    """A describer that takes many at once, and leaves the second out."""

    traits = Traits(uses_model=True, cache_key="model z", describes_many=True)

    async def describe_many(self, requests: Sequence[DescribeRequest]) -> list[Description | None]:
        return [await self.describe(requests[0]), *(None for _ in requests[1:])]


def full() -> Suite:
    """A suite in which each part has all traits that it can have."""
    return Suite(
        Narrow(["b"] * 9),
        Asking({"a": {"q": "TTL = 60"}}),
        Rules({"grep": {"pattern": "x"}}),
        Joining(),
        Many(),
    )


def plain() -> Suite:
    """A suite whose parts say nothing of themselves."""
    return Suite(
        ScriptedRouter([RouteDecision(None, {"a": "no"}, "none")] * 9),
        ScriptedReader({}),
        ScriptedToolCaller({"grep": {"pattern": "y"}}),
        PlainComposer(),
        PlainDescriber(),
    )


SUITES: dict[str, Callable[[], Suite]] = {
    "full": full,
    "plain": plain,
    "embedded": embedded_suite,
    "default": lambda: whole_suite(None),
}


def traits(part: Any) -> Any:
    """Return what a part says of itself, with how much of a menu fits in place of the function that tells it."""
    said = part.traits
    fits = None if said.capacity is None else said.capacity(MENU)
    key = said.cache_key or type(part).__qualname__
    return replace(said, cache_key=key, capacity=None, declines=None), fits


def behaviours(parts: Suite) -> list[Any]:
    """Return what the five parts answer."""

    async def ask() -> list[Any]:
        return [
            await parts.router.route(MENU),
            await parts.reader.read(READ),
            await parts.tool_caller.fill(FILL),
            await parts.composer.compose(COMPOSE),
            await parts.describer.describe(DESCRIBE),
            await parts.describer.describe_many(MANY),
            parts.router.traits.capacity and parts.router.traits.capacity(MENU),
        ]

    return asyncio.run(ask())


@pytest.mark.parametrize("suite", SUITES)
@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_a_wrapped_part_says_and_does_what_it_did(wrapper: str, suite: str, tmp_path: Path) -> None:
    bare = SUITES[suite]()
    wrapped = whole_suite(WRAPPERS[wrapper](SUITES[suite](), tmp_path))
    for part in fields(Suite):
        assert traits(getattr(wrapped, part.name)) == traits(getattr(bare, part.name)), part.name
    once = behaviours(bare)
    assert behaviours(wrapped) == once
    assert behaviours(wrapped) == once, "and again, from the cache"


def test_what_is_not_worth_asking_is_asked_for_a_recording_alone(tmp_path: Path) -> None:
    poor = replace(full(), router=Narrow([]), reader=Asking({}))
    for part in (poor.router, poor.reader):
        part.traits = replace(part.traits, declines=lambda: "poor")  # type: ignore[misc]
    said = {name: whole_suite(WRAPPERS[name](poor, tmp_path)) for name in WRAPPERS}
    for name in ("cached", "limited", "fallback", "two"):
        for part in (said[name].router, said[name].reader):
            assert part.traits.declines is not None and part.traits.declines() == "poor"
    for name in ("recorded", "three"):
        assert said[name].router.traits.declines is said[name].reader.traits.declines is None
    assert FallbackRouter(poor, full()).traits.declines() == "", "the second is worth it"  # type: ignore[misc]
    assert FallbackRouter(poor, embedded_suite()).traits.declines is None


@pytest.mark.parametrize("suite", SUITES)
def test_a_replay_says_and_does_what_was_recorded(suite: str, tmp_path: Path) -> None:
    recorded = RecordedRouter(SUITES[suite](), tmp_path / "r.jsonl").suite()
    once = behaviours(recorded)
    replay = whole_suite(ReplayedRouter(tmp_path / "r.jsonl"))
    for part in fields(Suite):
        said, fits = traits(getattr(replay, part.name))
        expected, fitted = traits(getattr(recorded, part.name))
        # No model is asked, nor a client of one, and a cache around a replay may keep what it likes.
        assert said == replace(expected, uses_model=False, any_loop=True, cache_key=said.cache_key), part.name
        assert fits == fitted
    assert behaviours(replay) == once


def test_a_chain_says_what_holds_whichever_of_its_links_answers() -> None:
    narrow, rules = full(), embedded_suite()
    for chain in (FallbackRouter(narrow, rules).suite(), FallbackRouter(rules, narrow).suite()):
        said, fits = traits(chain.router)
        assert (said.uses_model, said.any_loop, said.follows_evidence, fits) == (True, False, True, 2)
        assert chain.reader.traits.uses_model and not chain.reader.traits.any_loop
        assert chain.tool_caller.traits.any_loop and chain.tool_caller.traits.by_rules
        assert sorted(chain.router.traits.cache_key.split(" | ")) == ["EmbeddedRouter", "narrow"]
    chain = FallbackRouter(rules, plain()).suite()
    assert not chain.router.traits.follows_evidence and not chain.tool_caller.traits.by_rules
    assert chain.router.traits.capacity is None


def test_a_cache_does_not_take_the_answer_of_a_fallback_for_that_of_the_first() -> None:
    cache = MemoryCache()
    down = ScriptedRouter([RouterUnavailable("down"), "a"])
    down.traits = Traits(cache_key="the first")
    chain = CachedRouter(FallbackRouter(down, ScriptedRouter(["b"])), cache)
    assert asyncio.run(chain.route(MENU)).choice == asyncio.run(chain.route(MENU)).choice == "b"
    assert asyncio.run(CachedRouter(down, cache).route(MENU)).choice == "a"


def test_every_trait_is_tried() -> None:
    """A trait that no part of this test has would be lost by a wrapper unseen."""
    of_parts = [getattr(full(), part.name).traits for part in fields(Suite)]
    for trait in fields(Traits):
        # Of evidence, which nothing wraps but the door of the search.
        if trait.name not in ("may_abstain", "gives_passages"):
            assert any(getattr(said, trait.name) != trait.default for said in of_parts), trait.name


class Weighed(Evidence):
    """Evidence with all that evidence can have."""

    traits = Traits(may_abstain=True, gives_passages=True)

    def score(self, questions: Sequence[str], **where: Any) -> list[Scored]:
        return [Scored("a", 0.01)]

    def rank(self, questions: Sequence[str], **where: Any) -> list[Scored]:
        return [Scored("a", 0.9)]

    def why(self, questions: Sequence[str], node: str, *, under: str | None = None) -> str:
        return f"{node} has it"

    def passages(self, question: str, **where: Any) -> list[Passage]:
        return [Passage("a", "A", "It is 42.", 0, (1, 1), 0.9)]

    def asked_for(self, question: str, offers: Sequence[tuple[ToolSpec, Node]]) -> list[int]:
        return [0]


class Partly:
    """The same without the base and the traits: what it has counts, the rest has the defaults."""

    score, rank, why, passages = Weighed.score, Weighed.rank, Weighed.why, Weighed.passages


def test_the_door_of_the_search_keeps_what_a_part_has() -> None:
    evidence = Weighed()
    assert as_evidence(evidence) is evidence
    partly = as_evidence(Partly())
    assert partly.rank(["q"])[0].score == 0.9
    assert partly.why(["q"], "a") == "a has it"
    assert partly.reasons(["q"], ["a", "b"]) == {"a": "a has it", "b": "b has it"}
    assert [passage.text for passage in partly.passages("q")] == ["It is 42."]
    offers = [(FILL.tool, NODE)]
    assert as_evidence(Partly()).asked_for("q", offers) == () and as_evidence(evidence).asked_for(
        "q", offers
    ) == [0]
    assert as_evidence(lambda *_, **__: []).passages("q") == []
    assert not partly.traits.may_abstain
    ranked = as_evidence(lambda questions, **where: [Scored("a", 0.5)])
    assert (ranked.rank(["q"]), ranked.why(["q"], "a")) == ([Scored("a", 0.5)], "")


def test_the_door_of_the_search_takes_functions_and_objects_with_the_one_method() -> None:
    class Bare:
        async def read(self, request: ReadRequest) -> Reading:
            return Reading((Answer("q", "60"),))

    async def choose(request: RouteRequest) -> RouteDecision:
        return RouteDecision("b")

    parts = whole_suite(
        choose,
        Bare(),
        lambda request: {"pattern": "z"},
        lambda request: "both",
        lambda request: Description("t", "d"),
    )
    kinds: tuple[Any, ...] = (Router, Reader, ToolCaller, Composer, Describer)
    for part, kind in zip(fields(Suite), kinds, strict=True):
        assert isinstance(getattr(parts, part.name), kind)
        assert traits(getattr(parts, part.name))[0] == Traits(
            cache_key=getattr(parts, part.name).traits.cache_key
        )
    assert parts.reader.traits.cache_key.endswith("Bare")
    assert behaviours(parts) == [
        RouteDecision("b"),
        Reading((Answer("q", "60"),)),
        {"pattern": "z"},
        "both",
        Description("t", "d"),
        [Description("t", "d"), Description("t", "d")],
        None,
    ]
