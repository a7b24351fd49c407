"""Cases with known answers: what these rules match is agreed, whichever engine does it."""

from __future__ import annotations

import asyncio
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from metatree.rules import Token, WorkingMemory, parse_facts
from metatree.testing.parts import ScriptedToolCaller

ROOT = Path(__file__).parents[3]


def matched(rule: str, events: str, *, late: bool = False) -> list[list[dict[str, Any]]]:
    """Return the tokens of a rule after each event, `+(a b c)` or `-(a b c)`."""
    memory = WorkingMemory()
    if not late:
        memory.add_production(f'({rule} -> "rule")')
    tokens = []
    for event in events.replace(" +", "\n+").replace(" -(", "\n-(").splitlines():
        (fact,) = parse_facts(event[1:])
        (memory.add if event[0] == "+" else memory.retract)(*fact)
        if not late:
            tokens.append([dict(token) for token in memory.agenda("rule").tokens()])
    if late:
        memory.add_production(f'({rule} -> "rule")')
        tokens.append([dict(token) for token in memory.agenda("rule").tokens()])
    return tokens


def counts(rule: str, events: str, *, late: bool = False) -> list[int]:
    return [len(tokens) for tokens in matched(rule, events, late=late)]


def test_one_pattern() -> None:
    assert counts("(<x> on <y>)", "+(B1 on B2) +(B1 on B3)") == [1, 2]
    assert counts("(<x> on <y>)", "+(B1 on B2) +(B1 on B3)", late=True) == [2]


def test_repeated_variable_means_equality() -> None:
    assert counts("(<x> on <x>)", "+(B1 on B2) +(B1 on B3) +(B1 on B1) +(B1 color red)")[-1] == 1


@pytest.mark.parametrize("late", [False, True])
def test_join_in_both_orders(late: bool) -> None:
    events = "+(B1 on B2) +(B1 on B3) +(B2 left-of B3)"
    for rule in ("(<x> on <y>) (<y> left-of <z>)", "(<y> left-of <z>) (<x> on <y>)"):
        assert matched(rule, events, late=late)[-1] == [{"x": "B1", "y": "B2", "z": "B3"}]


def test_comparison() -> None:
    assert counts("(<x> weighs <y>) (<y> > 2)", "+(B1 weighs 1) +(B2 weighs 3) -(B2 weighs 3)") == [0, 1, 0]


def test_negation_comes_and_goes() -> None:
    assert matched("(<x> on <y>) -{(<z> on <x>)}", "+(B1 on B2) +(B3 on B1) -(B3 on B1)") == [
        [{"x": "B1", "y": "B2"}],
        [{"x": "B3", "y": "B1"}],
        [{"x": "B1", "y": "B2"}],
    ]


def test_existence_comes_and_goes() -> None:
    assert counts("(<x> on <y>) +{(<z> on <x>)}", "+(B1 on B2) +(B3 on B1) -(B3 on B1)") == [0, 1, 0]


def test_count_is_one_token_each_time() -> None:
    tokens = matched(
        "(<c> <- #count(<y>)) from {(<x> color <y>)}", "+(a color red) +(b color blue) +(c color red)"
    )
    assert tokens == [[{"c": 1}], [{"c": 2}], [{"c": 3}]]


def test_sum_is_one_token_each_time() -> None:
    rule = "(<c> is customer) (<s> <- #sum(<v>)) from {(<o> by <c>) (<o> total <v>)}"
    events = "+(bob is customer) +(o1 by bob) +(o2 by bob) +(o3 by bob)"
    events += " +(o1 total 1200) +(o2 total 800) +(o3 total 500)"
    assert matched(rule, events)[-3:] == [[{"c": "bob", "s": total}] for total in (1200, 2000, 2500)]


def test_negated_conjunction_over_one_fact_leaves_no_ghost() -> None:
    rule = "(<x> on <y>) -{(<y> on <z>) (<z> on <x>)} (<x> w <q>)"
    assert counts(rule, "+(n1 on n1) +(n1 w 1) -(n1 on n1)") == [0, 0, 0]


def test_nested_negation_gives_its_token_once() -> None:
    rule = "(<x> on <y>) -{(<z> on <x>) -{(<y> on n3)}}"
    tokens = matched(rule, "+(n2 on n1) +(n2 on n3) +(n3 on n2) -(n2 on n3)")
    assert tokens[-1] == [{"x": "n3", "y": "n2"}]


def test_late_rule_sees_what_is_there() -> None:
    assert counts("(<x> w <y>) (<y> < 5)", "+(a w 1) +(b w 9)", late=True) == [1]


def test_dates_and_texts_with_numbers_in_them_are_distinct() -> None:
    memory = WorkingMemory()
    memory.state('(a d 2024-01-01) (a d 2024-12-31) (b has "3 apples") (b has "3 pears") (c n 3) (c n "3")')
    assert len(memory) == 6
    memory.add("c", "n", 3.0)
    assert len(memory) == 6, "3 and 3.0 are one number"


@pytest.fixture(scope="module")
def river() -> ModuleType:
    path = ROOT / "examples" / "river_crossing" / "river.py"
    spec = importlib.util.spec_from_file_location("river", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["river"] = module
    spec.loader.exec_module(module)
    return module


def test_river_crossing_goes_as_its_page_says(river: ModuleType) -> None:
    shell = river.crossing()
    automaton = shell.schedule.automaton
    assert sorted(automaton.arrows) == [1, 2, 3, 4, 5]
    assert automaton.accepting == {5}
    report = shell.run(river.FACTS, seed=3)
    assert (report.ended, report.state, report.cycles) == ("accepted", 5, 11)
    assert [entry["to_add"] for entry in report.trace] == [4, 2, 1, 3, 3, 2, 1, 4, 1, 2, 1]
    trips: dict[Any, set[Any]] = {}
    for trip, attribute, animal in report.facts:
        if attribute == "includes":
            trips.setdefault(trip, set()).add(animal)
    assert trips == {"gensym0": {"a1", "a2"}, "gensym1": {"a3", "a4"}}


def test_a_model_knows_animals(river: ModuleType) -> None:
    replies: dict[str, Any] = {
        "answer": [
            {"eats": [{"eater": "wolf", "eaten": "rabbit"}, {"eater": "wolf", "eaten": "pizza"}]},
            {"kilograms": 40},
        ]
    }
    expert = river.ModelExpert(ScriptedToolCaller(replies))
    assert asyncio.run(expert.food_chain(["wolf", "rabbit"])) == {"wolf": ["rabbit"]}
    assert asyncio.run(expert.weight("wolf")) == 40


def test_river_crossing_prints_the_trace_of_its_page(
    river: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    assert river.main() == 0
    output = capsys.readouterr().out
    for line in (
        'Production "ks1 gather species" can add: 4',
        "Added species: rabbit",
        "Retrieving food chain for: rabbit,wolf,snake",
        "Added: snake weight 1.5",
        'Transitions can fire: "ks2 determine average weight","start trip"',
        "Added trip gensym0 with a1",
        "To trip gensym1 we added a4",
        "No further transitions, reached accepting state",
        "(snake weight 1.5)",
    ):
        assert line in output


GENEALOGY = """
(adam parent-of cain) (adam parent-of abel) (adam parent-of seth) (eve parent-of cain) (eve parent-of abel)
(eve parent-of seth) (cain parent-of enoch) (seth parent-of enosh) (enosh parent-of kenan)
(eve sex f) (adam sex m) (cain sex m) (abel sex m) (seth sex m) (enoch sex m) (enosh sex m) (kenan sex m)
"""


def test_genealogy() -> None:
    memory = WorkingMemory()
    memory.add_productions(
        """
        ((<x> parent-of <y>) -> (! <x> ancestor-of <y>) "parents are ancestors")
        ((<x> parent-of <y>) (<y> ancestor-of <z>) -> (! <x> ancestor-of <z>) "so are theirs")
        ((<p> parent-of <x>) (<p> parent-of <y>) (<x> <> <y>) (<x> sex m) -> "brother")
        ((<x> sex m) -{(<x> parent-of <y>)} -> "childless")
        ((<g> sex <s>) (<n> <- #count(<z>)) from {(<g> ancestor-of <z>)} (<n> > 5) -> "many descendants")
        """
    )
    memory.state(GENEALOGY)
    assert {token["y"] for token in memory.agenda("brother").tokens() if token["x"] == "abel"} == {
        "cain",
        "seth",
    }
    assert {token["x"] for token in memory.agenda("childless").tokens()} == {"abel", "enoch", "kenan"}
    assert memory.query("(eve ancestor-of <x>) (<x> sex m) -{(eve parent-of <x>)}") == [
        {"x": "enoch"},
        {"x": "enosh"},
        {"x": "kenan"},
    ]
    assert {token["g"] for token in memory.agenda("many descendants").tokens()} == {"adam", "eve"}
    memory.retract("seth", "parent-of", "enosh")
    assert ("adam", "ancestor-of", "kenan") not in memory
    assert len(memory.agenda("many descendants")) == 0


def test_reified_relations() -> None:
    """A fact can be the subject of another fact."""
    memory = WorkingMemory()
    memory.state("(tom loves ann) (ann loves jim) ((tom loves ann) since 2020) ((ann loves jim) since 1999)")
    matches = memory.query("(<x> loves <y>) as <f> (<f> since <n>) (<n> > 2000)")
    assert matches == [{"x": "tom", "y": "ann", "f": ("tom", "loves", "ann"), "n": 2020}]
    assert len(memory.query("(<x> loves <y>) as <f> -{(<f> doubted-by <z>)}")) == 2
    memory.add(("tom", "loves", "ann"), "doubted-by", "jim")
    assert [b["x"] for b in memory.query("(<x> loves <y>) as <f> -{(<f> doubted-by <z>)}")] == ["ann"]


def test_queries_of_one_to_three_variables() -> None:
    memory = WorkingMemory()
    memory.state("(a on b) (b on c) (a w 1)")
    assert memory.query("(a on <y>)") == [{"y": "b"}]
    assert memory.query("(<x> on <y>)") == [{"x": "a", "y": "b"}, {"x": "b", "y": "c"}]
    assert memory.query("(<x> <r> <y>) (<r> <> on)") == [{"x": "a", "r": "w", "y": 1}]
    assert memory.query("(a on b)") == [{}]
    assert memory.query("(a on c)") == []
    assert len(memory.query("(<x> <r> <y>)")) == 3
    assert len(memory.query("(<x> <r> <y>)", limit=2)) == 2


def test_a_token_is_a_mapping() -> None:
    token = Token("on", ("x",), ("3 apples",))
    assert dict(token) == {"x": "3 apples"}
    assert str(token) == '(x="3 apples")'
    with pytest.raises(KeyError):
        token["y"]
