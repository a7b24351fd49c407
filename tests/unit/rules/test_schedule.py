"""Schedules: the grammar, the automaton, its picture, and what is refused."""

from __future__ import annotations

import random
from itertools import product
from typing import Any

import pytest

from metatree.errors import UserError
from metatree.rules import Schedule
from metatree.rules.shell._automaton import Automaton, Chain, Choice, Regex, Repeat, Symbol, minimal

NAMES = ["gather", "decide", "weigh"]


def words(schedule: Schedule, length: int) -> set[str]:
    return {
        "".join(word)
        for n in range(length + 1)
        for word in product("abc", repeat=n)
        if schedule.automaton.accepts([NAMES["abc".index(c)] for c in word])
    }


@pytest.mark.parametrize(
    ("expression", "accepted"),
    [
        ("a b", {"ab"}),
        ("a | b c", {"a", "bc"}),
        ("a? b", {"b", "ab"}),
        ("a{2}", {"aa"}),
        ("a{2,}", {"aa", "aaa", "aaaa"}),
        ("a{,2}", {"", "a", "aa"}),
        ("a{1,3}", {"a", "aa", "aaa"}),
        ("(a b)* c?", {"", "c", "ab", "abc", "abab"}),
        ("(a | b){2} c+", {"aac", "abc", "bac", "bbc", "aacc", "abcc", "bacc", "bbcc"}),
        ("a{0} b", {"b"}),
        ("a*+?", {"", "a", "aa", "aaa", "aaaa"}),
    ],
)
def test_operators(expression: str, accepted: set[str]) -> None:
    unused = "".join(f" | {c}" for c in "abc" if c not in expression)
    schedule = Schedule.parse(f"a = 0; b = 1; c = 2; main = ({expression}){unused};", NAMES)
    assert words(schedule, 4) == accepted | {c for c in "abc" if c not in expression}


def test_named_parts_and_comments() -> None:
    text = 'a = "gather"; # the first\npair = a b?;\nmain = pair{2};'
    with pytest.raises(UserError, match="'b' is unknown"):
        Schedule.parse(text, NAMES)
    schedule = Schedule.parse('a = "gather"; b = 1; # one\npair = a b?;\nmain = pair{2} | "weigh";', NAMES)
    assert words(schedule, 4) == {"aa", "aba", "aab", "abab", "c"}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a = 0; main = a b;", "column 17: schedule: the symbol 'b' is unknown"),
        ("a = 0; b = 1; main = a;", "the symbol 'b' is not used"),
        ("a = 7; main = a;", "no production number 7: there are 3"),
        ('a = "dig"; main = a;', "no production 'dig'"),
        ("a = 0;", "no `main"),
        ("a = 0; a = 1; main = a;", "'a' is defined twice"),
        ("a = 0; main = a{3,2};", "cannot be met"),
        ("a = 0; main = a{,};", "says nothing"),
        ("a = 0; main = (a;", r"line 1, column 17: found ';', expected '\)'"),
        ("a = 0\nmain = a;", "line 2, column 1: found 'main', expected ';'"),
        ("a = 0; main = a | ;", "expected a symbol"),
        ("a = 0; main = a & a;", "line 1, column 17: found '&'"),
        ("a = 0; main = ((a{100}){100}){100};", "more than 10,000 states"),
    ],
)
def test_what_is_refused(text: str, says: str) -> None:
    with pytest.raises(UserError, match=says):
        Schedule.parse(text, NAMES)


def random_regex(rng: random.Random, depth: int) -> Regex:
    if depth == 0:
        return Symbol(rng.choice("abc"))
    parts = tuple(random_regex(rng, depth - 1) for _ in range(rng.randint(1, 3)))
    match rng.randrange(3):
        case 0:
            return Chain(parts)
        case 1:
            return Choice(parts)
        case _:
            least = rng.randint(0, 2)
            return Repeat(parts[0], least, rng.choice([None, least + rng.randint(0, 2)]))


def as_text(regex: Regex) -> str:
    match regex:
        case Symbol(name):
            return name
        case Chain(parts):
            return "(" + "".join(map(as_text, parts)) + ")"
        case Choice(parts):
            return "(" + "|".join(map(as_text, parts)) + ")"
        case Repeat(part, least, most):
            inner = as_text(part)
            optional = "".join(f"({inner}" for _ in range(0 if most is None else most - least))
            close = ")?" * (0 if most is None else most - least)
            return f"({inner * least}{f'({inner})*' if most is None else optional + close})"


def test_the_automaton_is_the_minimal_one_of_automata_lib() -> None:
    """A second opinion on what is accepted and on the number of states."""
    dfa = pytest.importorskip("automata.fa.dfa").DFA
    nfa = pytest.importorskip("automata.fa.nfa").NFA
    for seed in range(60):
        regex = random_regex(random.Random(seed), 3)
        mine = minimal(regex)
        theirs = dfa.from_nfa(nfa.from_regex(as_text(regex), input_symbols=set("abc"))).minify()
        alive = _alive(theirs)
        assert len(mine.arrows) == max(1, len(alive)), as_text(regex)
        rng = random.Random(seed)
        for _ in range(200):
            word = [rng.choice("abc") for _ in range(rng.randrange(9))]
            assert mine.accepts(word) == theirs.accepts_input(word), (as_text(regex), word)


def _alive(dfa: Any) -> set[Any]:
    """Return the states from which an accepting one can be reached; ours leaves out the others."""
    alive = set(dfa.final_states)
    while more := {s for s, arrows in dfa.transitions.items() if set(arrows.values()) & alive} - alive:
        alive |= more
    return alive


def test_pictures() -> None:
    schedule = Schedule.parse("a = 0; b = 1; main = a+ b;", NAMES)
    assert schedule.mermaid().splitlines() == [
        "stateDiagram-v2",
        "  direction LR",
        "  [*] --> 1",
        "  1 --> 2: gather",
        "  2 --> 2: gather",
        "  2 --> 3: decide",
        "  3 --> [*]",
    ]
    assert '  2 -> 3 [label="decide"];' in schedule.graphviz()
    assert "  3 [shape=doublecircle];" in schedule.graphviz()
    graph = schedule.automaton.graph()
    assert sorted(graph.edges(data="symbol")) == [(1, 2, "gather"), (2, 2, "gather"), (2, 3, "decide")]
    assert schedule.automaton.arrows == {1: {"gather": 2}, 2: {"gather": 2, "decide": 3}, 3: {}}


def test_every_state_leads_to_an_end() -> None:
    for seed in range(40):
        automaton: Automaton = minimal(random_regex(random.Random(seed), 3))
        ends = set(automaton.accepting)
        while more := {s for s, arrows in automaton.arrows.items() if set(arrows.values()) & ends} - ends:
            ends |= more
        assert ends == set(automaton.arrows)
