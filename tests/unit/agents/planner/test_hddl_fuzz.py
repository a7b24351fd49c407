"""HDDL that is out of form: each text gives a plan, no plan, a limit, or an error with file, line and column."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from metatree_agents.planner.domain.syntax import PlannerSyntaxError, words_of
from metatree_agents.planner.hddl.as_agent import as_agent
from metatree_agents.planner.hddl.limits import LimitReached, SolverLimits
from metatree_agents.planner.hddl.parse import parse_domain, parse_problem
from metatree_agents.planner.hddl.solve import solve
from metatree_agents.planner.hddl.verify import verify_plan

from benchmarks.planning import transport
from tests.profiles import examples
from tests.unit.agents.planner.hddl_texts import DELIVERY, TWO_PARCELS, tiny


class Steps(SolverLimits):
    """SolverLimits that end after a number of steps, on any machine the same."""

    def __init__(self, left: int) -> None:
        super().__init__()
        self.left = left

    def step(self, weight: int = 1) -> None:
        self.left -= weight
        if self.left < 0:
            raise LimitReached("time")


RICH = tiny(
    "(:functions (total-cost) (n ?x) (k) - number) (:task t) (:task u :parameters (?x))"
    " (:method m :parameters (?x ?y) :task (t) :precondition (and (p ?x) (not (= ?x ?y)))"
    " :subtasks (and (one (u ?x)) (two (do ?y))) :ordering (and (< one two))"
    " :constraints (and (not (= ?x b)) (<= (k) (+ (n ?x) 2))))"
    " (:method n :parameters (?x) :task (u ?x) :precondition (or (q) (exists (?z) (imply (p ?z) (= ?z ?x)))))"
    " (:action do :parameters (?x) :precondition (forall (?y) (imply (p ?y) (sortof ?y - object)))"
    " :effect (and (q) (when (q) (not (p ?x))) (forall (?z) (p ?z)) (increase (total-cost) 1)"
    " (increase (k) (* 2 (n ?x))) (when (> (k) 0) (scale-up (n ?x) 2)) (forall (?z) (assign (n ?z) 1))))",
    init="(p a) (= (total-cost) 0) (= (k) 1) (= (n a) 0.5)",
    goal="(and (q) (p b))",
)

SEEDS = [RICH, (DELIVERY, TWO_PARCELS), (transport.DOMAIN, transport.problem(3, ordered=False))]


ENDS = {"error", "none", "solved", "limit"}


def _tried(domain: str, problem: str) -> str:
    """Read, plan, check and make an agent; return how that ended."""
    try:
        read = parse_problem(problem, parse_domain(domain, "d.hddl"), "p.hddl")
    except PlannerSyntaxError as exc:
        assert re.match(r"[dp]\.hddl:\d+:\d+: .", str(exc)), str(exc)
        return "error"
    result = solve(read, Steps(20_000), improve_for_s=1.0)
    if result.plan is not None:
        try:
            verify_plan(result.plan, read, Steps(100_000))
        except LimitReached:
            return "limit"
        if not read.functions_read():
            as_agent(result.plan, read)
    return result.ended


def _tokens(text: str) -> list[str]:
    return [word.spelling for word in words_of(text)]


@st.composite
def _mutated(draw: st.DrawFn) -> tuple[str, str]:
    """Texts of which some words were dropped, doubled, exchanged, or replaced by those of other places."""
    pair = draw(st.sampled_from(SEEDS))
    which = draw(st.sampled_from([0, 0, 1]))
    tokens = _tokens(pair[which])
    others = sorted({*_tokens(pair[0]), *_tokens(pair[1]), *STRANGE})
    for _ in range(draw(st.integers(1, 4))):
        if not tokens:
            break
        place = draw(st.integers(0, len(tokens) - 1))
        match draw(
            st.sampled_from(["drop", "double", "swap", "replace", "insert", "drop group", "double group"])
        ):
            case "drop":
                del tokens[place]
            case "double":
                tokens.insert(place, tokens[place])
            case "swap":
                other = draw(st.integers(0, len(tokens) - 1))
                tokens[place], tokens[other] = tokens[other], tokens[place]
            case "replace":
                tokens[place] = draw(st.sampled_from(others))
            case "insert":
                tokens.insert(place, draw(st.sampled_from(others)))
            case kind:
                end = _end(tokens, place)
                if kind == "drop group":
                    del tokens[place:end]
                else:
                    tokens[place:place] = tokens[place:end]
    text = " ".join(tokens)
    return (text, pair[1]) if which == 0 else (pair[0], text)


STRANGE = [
    "?x",
    "?",
    "-",
    ":",
    "=",
    "<",
    ">=",
    "0",
    "()",
    "(not",
    "either",
    "when",
    "increase",
    ":duration",
    "é",
    "\x00",
    '"',
]


def _end(tokens: list[str], place: int) -> int:
    """Return where the group ends that begins at a place, or the word there."""
    depth = 0
    for index in range(place, len(tokens)):
        depth += {"(": 1, ")": -1}.get(tokens[index], 0)
        if depth <= 0:
            return index + 1
    return len(tokens)


@settings(max_examples=examples(300))
@given(texts=_mutated())
def test_texts_with_a_few_words_changed(texts: tuple[str, str]) -> None:
    assert _tried(*texts) in ENDS


_NAME = st.sampled_from(["a", "b", "p", "q", "r", "t", "u", "and", "not", "object", "x"])
_VAR = st.sampled_from(["?x", "?y", "?z"])
_TERM = st.one_of(_VAR, st.sampled_from(["a", "b"]))


def _joined(*parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(*parts).map(" ".join)


def _many(part: st.SearchStrategy[str], most: int = 3) -> st.SearchStrategy[str]:
    return st.lists(part, max_size=most).map(" ".join)


_ATOM = st.one_of(
    st.just("(q)"),
    _TERM.map("(p {})".format),
    _joined(_TERM, _TERM).map("(r {})".format),
    _TERM.map("(q {})".format),
)
_NUMBER = st.recursive(
    st.one_of(
        st.sampled_from(["0", "1", "-2", "0.5", "1e200", "(k)", "(n a)", "(n b)", "(m)", "(n)"]),
        _TERM.map("(n {})".format),
    ),
    lambda inner: st.tuples(st.sampled_from("+-*/"), inner, inner).map(lambda one: f"({' '.join(one)})"),
    max_leaves=3,
)
_COMPARISON = st.tuples(st.sampled_from(["<", ">", "<=", ">=", "="]), _NUMBER, _NUMBER).map(
    lambda one: f"({' '.join(one)})"
)
_CHANGE = st.tuples(
    st.sampled_from(["increase", "decrease", "assign", "scale-up", "scale-down"]),
    st.one_of(st.just("(k)"), _TERM.map("(n {})".format)),
    _NUMBER,
).map(lambda one: f"({' '.join(one)})")
_CONDITION = st.recursive(
    st.one_of(_ATOM, _COMPARISON, _joined(_TERM, _TERM).map("(= {})".format), st.just("()")),
    lambda inner: st.one_of(
        _many(inner).map("(and {})".format),
        _many(inner).map("(or {})".format),
        inner.map("(not {})".format),
        _joined(inner, inner).map("(imply {})".format),
        st.tuples(st.sampled_from(["forall", "exists"]), _many(_VAR, 2), inner).map(
            lambda one: f"({one[0]} ({one[1]}) {one[2]})"
        ),
    ),
    max_leaves=5,
)
_EFFECT = st.recursive(
    st.one_of(_ATOM, _CHANGE),
    lambda inner: st.one_of(
        _many(inner).map("(and {})".format),
        inner.map("(not {})".format),
        _joined(_CONDITION, inner).map("(when {})".format),
        st.tuples(_VAR, inner).map(lambda one: f"(forall ({one[0]}) {one[1]})"),
    ),
    max_leaves=4,
)
_SUBTASK = st.one_of(
    st.sampled_from(["(t)", "(go)", "(u a)"]), _TERM.map("(u {})".format), _TERM.map("(do {})".format)
)


@st.composite
def _written(draw: st.DrawFn) -> tuple[str, str]:
    """Texts made by the grammar, most of them in form."""
    body = ["(:functions (k) (n ?x)) (:task t) (:task u :parameters (?x)) (:action go)"]
    for number in range(draw(st.integers(0, 2))):
        name = "do" if number == 0 else f"do{number}"
        body.append(
            f"(:action {name} :parameters (?x ?y) :precondition {draw(_CONDITION)} :effect {draw(_EFFECT)})"
            if draw(st.booleans())
            else f"(:action {name} :parameters (?x) :precondition {draw(_CONDITION)} :effect {draw(_EFFECT)})"
        )
    for number in range(draw(st.integers(0, 4))):
        task = draw(st.sampled_from(["(t)", "(u ?x)", "(u a)", "(t)"]))
        key = draw(st.sampled_from([":subtasks", ":ordered-subtasks", ":tasks"]))
        body.append(
            f"(:method m{number} :parameters (?x ?y ?z) :task {task} :precondition {draw(_CONDITION)}"
            f" {key} (and {draw(_many(_SUBTASK))}))"
        )
    domain, problem = tiny(
        " ".join(body),
        predicates="(p ?x) (q) (r ?x ?y)",
        network=f"(and {draw(_many(_SUBTASK))})",
        init=draw(_many(st.sampled_from(["(p a)", "(p b)", "(q)", "(r a b)", "(= (k) 1)", "(= (n a) 3)"]))),
        goal=draw(_CONDITION),
    )
    return domain, problem


@settings(max_examples=examples(200))
@given(texts=_written())
def test_texts_by_the_grammar(texts: tuple[str, str]) -> None:
    assert _tried(*texts) in ENDS


@settings(max_examples=examples(100))
@given(text=st.text(alphabet="()?-:; \n\tandefiort<=é\x00", max_size=60))
def test_any_text(text: str) -> None:
    assert _tried(text, TWO_PARCELS) == "error"
    assert _tried(DELIVERY, text) == "error"


@pytest.mark.parametrize("pair", SEEDS)
def test_what_is_changed_is_in_form_before(pair: tuple[str, str]) -> None:
    assert _tried(*pair) == "solved"
