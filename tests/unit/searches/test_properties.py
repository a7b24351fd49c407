"""What must always hold, whatever the router, the reader and the tree do."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metatree import (
    Answer,
    FallbackRequest,
    FallbackResult,
    Limits,
    Node,
    Option,
    Reading,
    ReadRequest,
    RouteDecision,
    RouteRequest,
    Scored,
    SearchResult,
    Traits,
    Tree,
    ask_person,
    load_run,
    resume,
    search,
    tool,
)
from metatree.durable import MemoryJournal, Record, replay
from metatree.errors import BadModelAnswer, UnknownNode
from metatree.searches._machine import SearchMachine
from metatree.searches._step_bound import most_steps
from metatree.testing.parts import FunctionRouter, PlainComposer, PlainDescriber, ScriptedToolCaller, tree_of
from tests.profiles import examples

ENDS = ("answered", "exhausted", "failed")
"""How a run with a router and a reader that say anything may end: "failed" where all of few reads happen to raise."""
few = settings(max_examples=examples(20))


def make_tree(rng: random.Random, *, most: int = 25) -> Tree:
    """Return a random tree; about half of its inner nodes have content too."""
    tree = Tree.create(":memory:")
    ids = [tree.root]
    for number in range(rng.randrange(1, most)):
        content = f"text {number}" if rng.random() < 0.6 else None
        tree.add(Node(f"n{number}", f"node {number}", content=content), parent=rng.choice(ids))
        ids.append(f"n{number}")
    return tree


def _raised(error: Exception) -> Any:
    raise error


Decision = Callable[[random.Random, list[str]], Any]


class Fuzzer:
    """A router, reader and tool caller that do anything at all, each time the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.requests: list[RouteRequest] = []

    async def route(self, request: RouteRequest) -> Any:
        self.requests.append(request)
        ids = [option.id for option in request.options]
        rng = self.rng
        return self.decisions[rng.randrange(len(self.decisions))](rng, ids)

    decisions: tuple[Decision, ...] = (
        lambda rng, ids: RouteDecision(rng.choice(ids)),
        lambda rng, ids: RouteDecision(rng.choice(ids), {rng.choice(ids): "no"}),
        lambda rng, ids: RouteDecision(None, dict.fromkeys(ids, "all")),
        lambda rng, ids: RouteDecision(),
        lambda rng, ids: RouteDecision("never offered", {"nor this": "x"}),
        lambda rng, ids: RouteDecision(None, {rng.choice(ids): "half \ud800"}, "reason \udfff"),
        lambda rng, ids: RouteDecision(rng.choice(ids), [rng.choice(ids)]),  # type: ignore[arg-type]
        lambda rng, ids: RouteDecision(7, {8: 9}),  # type: ignore[arg-type,dict-item]
        lambda rng, ids: _raised(
            rng.choice([ValueError("v"), BadModelAnswer("b"), TimeoutError(), RecursionError()])
        ),
    )

    async def read(self, request: ReadRequest) -> Any:
        rng = self.rng
        questions = list(request.questions)
        replies: list[Callable[[], Any]] = [
            lambda: Reading(),
            lambda: Reading(useful=False, notes="no"),
            lambda: Reading(notes=f"note {rng.randrange(4)} on node {rng.randrange(9)}"),
            lambda: Reading(new_questions=(f"why {rng.randrange(6)}", f"why {rng.randrange(6)}")),
            lambda: Reading(new_questions=(questions[0].upper(),)),
            lambda: Reading((Answer(questions[0], "part", complete=False),)),
            lambda: Reading((Answer(questions[-1], "whole"),) if rng.random() < 0.2 else ()),
            lambda: Reading(answers=5),  # type: ignore[arg-type]
            lambda: rng.choice([None, 5, "x"]),
            lambda: _raised(ValueError("r")),
        ]
        return rng.choice(replies)()

    async def fill(self, request: Any) -> Any:
        return self.rng.choice([{}, {"word": "x"}, {"word": 5}, None, {"other": 1}])


@tool(kind="exploratory", kinds=["note"])
def look(node: Node, word: str = "y") -> str:
    if word == "x":
        raise OSError("no")
    return f"looked at {node.id}"


@tool(kind="interactive", kinds=["note"])
def fetch(node: Node) -> Node:
    return Node(id="", title=f"below {node.id}", content=f"page of {node.id}", kind="page")


def found_elsewhere(request: FallbackRequest) -> FallbackResult:
    return FallbackResult(nodes=[Node("elsewhere", "elsewhere", content="found elsewhere")])


LIMITS = Limits(
    router_calls=None, reads=None, tool_calls=None, model_calls=None, questions=3, depth=2, nodes_created=3
)


def fuzz(seed: int, tree: Tree, **options: Any) -> SearchResult:
    fuzzer = options.pop("fuzzer", None) or Fuzzer(seed)
    options.setdefault("limits", LIMITS)
    options.setdefault("evidence", False)
    return search(
        ["q", "r"],
        tree=tree,
        router=fuzzer,
        reader=fuzzer,
        tool_caller=fuzzer,
        composer=PlainComposer(),
        describer=PlainDescriber(),
        tools=[look, fetch],
        fallbacks=[found_elsewhere],
        **options,
    )


@few
@given(st.integers(0, 10**9))
def test_every_run_ends_within_the_bound_that_the_machine_states(seed: int) -> None:
    tree = make_tree(random.Random(seed))
    journal = MemoryJournal()
    result = fuzz(seed, tree, journal=journal, run_id="r")
    assert result.ended in ENDS
    steps = sum(record.kind == "outcome" for record in journal.read("r"))
    assert steps <= most_steps(nodes=len(tree), tools=2, questions=2, limits=LIMITS, fallbacks=1)


@few
@given(st.integers(0, 10**9))
def test_every_collecting_run_ends_within_the_bound(seed: int) -> None:
    tree = make_tree(random.Random(seed))
    journal = MemoryJournal()
    result = fuzz(seed, tree, journal=journal, run_id="r", returns="nodes", k=4)
    assert result.ended in ENDS
    assert len(result.nodes) == len({node.id for node in result.nodes}) <= 4
    steps = sum(record.kind == "outcome" for record in journal.read("r"))
    assert steps <= most_steps(nodes=len(tree), tools=2, questions=2, limits=LIMITS, fallbacks=1)


@pytest.mark.parametrize("returns", ["answer", "nodes"])
@pytest.mark.parametrize(
    "constant",
    [
        lambda r: r.options[0].id,
        lambda r: r.options[-1].id,
        lambda r: None,
        lambda r: "n1",
        lambda r: RouteDecision(r.options[0].id, dict.fromkeys([o.id for o in r.options], "no")),
        lambda r: RouteDecision(None, {r.options[0].id: "no"}),
        lambda r: ValueError("always"),
    ],
)
def test_every_run_ends_for_a_router_that_never_changes_its_mind(constant: Any, returns: Any) -> None:
    for seed in range(5):
        tree = make_tree(random.Random(seed))
        journal = MemoryJournal()
        router = FunctionRouter(constant)
        fuzz(seed, tree, fuzzer=None, journal=journal, run_id="f")
        result = search(
            "q",
            tree=tree,
            router=router,
            reader=Fuzzer(seed),
            composer=PlainComposer(),
            returns=returns,
            k=99,
            evidence=False,
            limits=LIMITS,
            journal=journal,
            run_id="r",
        )
        assert result.ended in ENDS
        steps = sum(record.kind == "outcome" for record in journal.read("r"))
        assert steps <= most_steps(nodes=len(tree), tools=0, questions=2, limits=LIMITS, fallbacks=0)


def test_an_endlessly_slow_router_costs_its_time_limit_and_no_more() -> None:
    class Slow:
        async def route(self, request: RouteRequest) -> Any:
            await asyncio.sleep(3600)

    tree = tree_of({"a": {"a1": "x", "a2": "y"}, "b": "z"})
    fuzzer = Fuzzer(1)
    limits = Limits(effect_seconds=0.01)
    result = search("q", tree=tree, router=Slow(), reader=fuzzer, evidence=False, limits=limits)
    assert result.ended in ENDS
    assert result.usage.seconds < 60


class Narrow(Fuzzer):
    """States a capacity, another one each time."""

    @property
    def traits(self) -> Traits:
        return Traits(capacity=lambda request: self.rng.choice([0, 1, 2, 3, 5, 100]))


class Lots:
    """Evidence by lot."""

    def __init__(self, tree: Tree, seed: int) -> None:
        self.tree, self.seed = tree, seed

    def score(
        self,
        questions: Sequence[str],
        *,
        under: str | None = None,
        among: Collection[str] | None = None,
        k: int = 10,
    ) -> list[Scored]:
        rng = random.Random(f"{self.seed}{questions}")
        drawn = [Scored(node.id, rng.random(), f"line of {node.id}") for _, node in self.tree.walk()]
        scored_nodes = [
            scored
            for scored in drawn
            if scored.score < 0.5
            and (under is None or scored.node_id == under or under in self.tree.ancestors(scored.node_id))
        ]
        return sorted(scored_nodes, key=lambda scored: -scored.score)[:k]


@few
@given(st.integers(0, 10**9), st.sampled_from(["answer", "nodes"]), st.sampled_from([Fuzzer, Narrow]))
def test_a_marked_node_is_never_offered_again_in_the_same_frame_start(
    seed: int, returns: Any, kind: type[Fuzzer]
) -> None:
    rng = random.Random(seed)
    tree = make_tree(rng)
    start = rng.choice([node.id for _, node in tree.walk()])
    result = fuzz(
        seed,
        tree,
        fuzzer=kind(seed),
        evidence=Lots(tree, seed) if kind is Narrow else False,
        start_node=start,
        concurrency=rng.choice([1, 3]),
        returns=returns,
        k=9,
    )
    assert result.ended in ENDS
    marked: dict[int, set[str]] = {}
    for entry in result.trace:
        marks = marked.setdefault(entry.frame, set())
        if entry.event == "restart":
            marks.clear()
        elif entry.event == "second_look":
            assert set(entry.data["cleared"]) <= marks
            marks -= set(entry.data["cleared"])
        elif entry.event == "create":
            marks -= set(entry.data.get("opened", ()))
        elif entry.event == "mark":
            assert entry.node is not None
            assert entry.node not in marks or entry.data["mark"] == "visited"
            marks.add(entry.node)
        elif entry.event in ("enter", "collect"):
            assert entry.node not in marks, entry
        elif entry.event == "route" and "offered" in entry.data and entry.data["by"] == "router":
            assert frames_tools(entry) or not set(entry.data["offered"]) & marks, entry


def frames_tools(entry: Any) -> bool:
    """Say whether tools were offered, which have marks of their own."""
    return set(entry.data["offered"]) <= {"look", "fetch"}


def rounds(records: list[Record]) -> list[Record]:
    return [Record(*json.loads(json.dumps([r.kind, r.at, r.effect, r.body, r.used]))) for r in records]


@few
@given(st.integers(0, 10**9))
def test_the_journal_alone_gives_the_same_trace_whatever_the_tree_is_today(seed: int) -> None:
    journal = MemoryJournal()
    tree = make_tree(random.Random(seed))
    result = fuzz(seed, tree, journal=journal, run_id="r")
    for node in list(tree.children()):
        tree.delete(node.id)
    again = load_run("r", journal=journal)
    assert (again.trace, again.answers, again.ended) == (result.trace, result.answers, result.ended)
    state = replay(SearchMachine(), rounds(journal.read("r"))).state
    assert json.loads(json.dumps(asdict(state)))["ended"] == result.ended


class Steady:
    """Parts whose answers depend on the request alone, so that a run may be cut and taken up by others."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def rng(self, *values: Any) -> random.Random:
        return random.Random(f"{self.seed}{values}")

    async def route(self, request: RouteRequest) -> Any:
        ids = [option.id for option in request.options]
        rng = self.rng(ids, request.questions, request.errors, len(request.context))
        return rng.choice(Fuzzer.decisions[:8])(rng, ids)

    async def read(self, request: ReadRequest) -> Any:
        fuzzer = Fuzzer(0)
        fuzzer.rng = self.rng(
            request.node.id, request.questions, request.errors, request.context, request.content
        )
        return await fuzzer.read(request)

    async def fill(self, request: Any) -> Any:
        return self.rng(request.node.id, request.errors).choice([{}, {"word": "x"}, {"other": 1}])


def parts(steady: Steady) -> dict[str, Any]:
    return {
        "router": steady,
        "reader": steady,
        "tool_caller": steady,
        "composer": PlainComposer(),
        "describer": PlainDescriber(),
        "evidence": False,
        "tools": [look],
        "fallbacks": [ask_person],
    }


@settings(max_examples=examples(8))
@given(st.integers(0, 10**9))
def test_a_run_that_is_cut_anywhere_goes_on_to_the_same_end_with_the_same_trace(seed: int) -> None:
    steady = Steady(seed)
    journal = MemoryJournal()
    tree = make_tree(random.Random(seed), most=12)
    whole = search(
        "q",
        tree=tree,
        limits=LIMITS,
        journal=journal,
        run_id="r",
        **parts(steady),
    )
    records = rounds([r for r in journal.read("r") if r.kind != "stop"])
    for cut in range(1, len(records) + 1):
        other = MemoryJournal()
        other.create("r", "search", records[0])
        for seq, record in enumerate(records[1:cut], start=1):
            other.append("r", 1, seq, record)
        other.release("r", 1, None)
        again = resume("r", tree=tree, journal=other, **parts(steady))
        assert again.trace == whole.trace
        assert (again.ended, again.detail, again.answers) == (whole.ended, whole.detail, whole.answers)
        assert again.usage.reads == whole.usage.reads
        assert again.usage.router_calls == whole.usage.router_calls


@few
@given(st.integers(0, 10**9))
def test_edits_of_the_tree_during_a_run_never_crash_or_loop_it(seed: int) -> None:
    rng = random.Random(seed)
    tree = make_tree(rng)
    fuzzer = Fuzzer(seed)
    edits = 0

    def edit(entry: Any) -> None:
        nonlocal edits
        ids = [node.id for _, node in tree.walk()]
        edits += 1
        try:
            match rng.randrange(4):
                case 0 if edits < 200:
                    tree.add(Node(f"e{edits}", f"edit {edits}", content="new"), parent=rng.choice(ids))
                case 1:
                    tree.delete(rng.choice(ids))
                case 2:
                    tree.move(rng.choice(ids), rng.choice(ids))
                case _:
                    tree.update(Node(rng.choice(ids), "other words", content=rng.choice([None, "other"])))
        except Exception as exc:  # the root, or below itself
            assert "root" in str(exc) or "below itself" in str(exc) or isinstance(exc, UnknownNode)

    result = fuzz(seed, tree, fuzzer=fuzzer, on_event=edit)
    assert result.ended in ENDS
    result = fuzz(seed, tree, fuzzer=fuzzer, on_event=edit, returns="nodes", k=5)
    assert result.ended in ENDS


@settings(max_examples=examples(20))
@given(st.integers(0, 10**9))
def test_questions_in_parallel_have_the_answers_that_they_have_alone(seed: int) -> None:
    rng = random.Random(seed)
    tree = make_tree(rng)
    nodes = [node.id for _, node in tree.walk() if node.has_content]
    knows = {f"question {i}?": rng.choice(nodes) for i in range(5)} if nodes else {"question": "none"}

    class Knows:
        async def route(self, request: RouteRequest) -> RouteDecision:
            options: tuple[Option, ...] = request.options
            return RouteDecision(random.Random(f"{seed}{request.questions}").choice(options).id)

        async def read(self, request: ReadRequest) -> Reading:
            await asyncio.sleep(0)
            return Reading(
                tuple(Answer(q, request.content) for q in request.questions if knows[q] == request.node.id)
            )

    def ask(concurrency: int) -> SearchResult:
        return search(
            list(knows),
            tree=tree,
            router=Knows(),
            reader=Knows(),
            composer=PlainComposer(),
            evidence=False,
            concurrency=concurrency,
        )

    one, four = ask(1), ask(4)
    assert (one.answer, one.ended) == (four.answer, four.ended)
    assert [(a.question, a.answer) for a in one.answers] == [(a.question, a.answer) for a in four.answers]


def test_a_tool_caller_that_is_scripted_gets_the_error() -> None:
    caller = ScriptedToolCaller({"look": [{"word": 5}, {}]})
    result = search(
        "q",
        tree=tree_of({"a": "text"}),
        router=Steady(0),
        reader=Steady(0),
        tool_caller=caller,
        evidence=False,
        tools=[look],
    )
    assert result.usage.failed_attempts >= 1
    assert "valid string" in caller.requests[1].errors[0]
