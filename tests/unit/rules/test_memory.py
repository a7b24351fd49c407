"""Working memory: the life of tokens, truth maintenance, sums that do not drift."""

from __future__ import annotations

import random
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from inspect import signature
from typing import Any

import pytest

from metatree.errors import UserError
from metatree.rules import ControlShell, FactChange, FunctionFailed, RulesDoNotRest, WorkingMemory


def test_tokens_wait_until_they_are_committed() -> None:
    memory = WorkingMemory()
    agenda = memory.add_production('((<x> on <y>) -> "on")')
    memory.state("(a on b) (c on d) (e on f)")
    first, *rest = agenda.tokens()
    memory.commit("on", add=[first])
    assert [dict(agenda.token(v)) for v in agenda.to_add] == [dict(token) for token in rest]
    memory.commit("on", add=rest)
    assert not agenda.to_add
    memory.retract("a", "on", "b")
    assert list(agenda.to_remove) == [("a", "b")]
    memory.commit("on", remove=[("a", "b")])
    assert not agenda.to_remove
    assert len(agenda) == 2


def test_a_token_that_nobody_committed_leaves_no_trace() -> None:
    memory = WorkingMemory()
    agenda = memory.add_production('((<x> on <y>) -> "on")')
    memory.state("(a on b)")
    memory.retract("a", "on", "b")
    assert not agenda.to_add
    assert not agenda.to_remove


def test_a_token_derived_again_counts_as_new() -> None:
    memory = WorkingMemory()
    agenda = memory.add_production('((<x> on <y>) -> "on")')
    memory.state("(a on b)")
    memory.commit("on", add=agenda.tokens())
    memory.retract("a", "on", "b")
    memory.add("a", "on", "b")
    assert list(agenda.to_add) == [("a", "b")]
    assert list(agenda.to_remove) == [("a", "b")], "what was done for it before is still to be undone"
    memory.retract("a", "on", "b")
    assert not agenda.to_add
    assert list(agenda.to_remove) == [("a", "b")]


def test_committing_what_is_not_there_is_an_error_and_commits_nothing() -> None:
    memory = WorkingMemory()
    agenda = memory.add_production('((<x> on <y>) -> "on")')
    memory.state("(a on b)")
    with pytest.raises(UserError, match="not a token to add"):
        memory.commit("on", add=[("a", "b"), ("x", "y")])
    assert list(agenda.to_add) == [("a", "b")]


def test_a_justified_fact_goes_with_its_last_justification() -> None:
    memory = WorkingMemory()
    memory.add_production('((<x> on <y>) -> (! <y> is covered) "cover")')
    memory.state("(a on b) (c on b)")
    memory.retract("a", "on", "b")
    assert ("b", "is", "covered") in memory
    assert memory.provenance(("b", "is", "covered")) == {"justified_by": ["(x=c y=b)"]}
    memory.retract("c", "on", "b")
    assert ("b", "is", "covered") not in memory


def test_a_stated_fact_outlives_its_justifications_and_the_other_way_round() -> None:
    memory = WorkingMemory()
    memory.add_production('((<x> on <y>) -> (! <y> is covered) "cover")')
    memory.state("(a on b) (b is covered)")
    memory.retract("a", "on", "b")
    assert ("b", "is", "covered") in memory
    memory.state("(a on b)")
    memory.retract("b", "is", "covered")
    assert ("b", "is", "covered") in memory, "it is justified"
    assert not memory.retract("b", "is", "covered"), "what is only derived cannot be taken back"
    memory.retract("a", "on", "b")
    assert ("b", "is", "covered") not in memory


def test_facts_do_not_vouch_for_each_other_in_a_circle() -> None:
    """Counting alone would keep both of them for ever."""
    memory = WorkingMemory()
    memory.add_productions(
        """
        ((<x> linked <y>) -> (! <x> reaches <y>) "direct")
        ((<x> reaches <y>) (<y> linked <z>) -> (! <x> reaches <z>) "further")
        """
    )
    memory.state("(s linked a) (a linked b) (b linked c) (c linked a)")
    assert ("s", "reaches", "c") in memory
    memory.retract("s", "linked", "a")
    assert not memory.query("(s reaches <x>)")
    assert len(memory.query("(<x> reaches <y>)")) == 9


def test_reachability_agrees_with_a_search_under_random_changes() -> None:
    rng = random.Random(11)
    memory = WorkingMemory()
    memory.add_productions(
        """
        ((<x> linked <y>) -> (! <x> reaches <y>) "direct")
        ((<x> reaches <y>) (<y> linked <z>) -> (! <x> reaches <z>) "further")
        """
    )
    links: set[tuple[str, str]] = set()
    for _ in range(150):
        link = (rng.choice("abcde"), rng.choice("abcde"))
        if link in links:
            links.remove(link)
            memory.retract(link[0], "linked", link[1])
        else:
            links.add(link)
            memory.add(link[0], "linked", link[1])
        reached = set(links)
        while more := {(x, z) for x, y in reached for a, z in links if y == a} - reached:
            reached |= more
        assert {(b["x"], b["y"]) for b in memory.query("(<x> reaches <y>)")} == reached


def test_what_is_asserted_to_stay_stays() -> None:
    memory = WorkingMemory()
    memory.add_production('((<x> on <y>) -{(<y> seen -)} -> (!! <y> seen -) "see")')
    memory.state("(a on b)")
    assert ("b", "seen", "-") in memory
    memory.retract("a", "on", "b")
    assert ("b", "seen", "-") in memory
    assert memory.retract("b", "seen", "-")


def test_a_controlled_production_asserts_when_it_is_committed() -> None:
    memory = WorkingMemory()
    agenda = memory.add_production('((<x> on <y>) -> (! <y> is covered) "cover")', controlled=True)
    memory.state("(a on b)")
    assert ("b", "is", "covered") not in memory
    memory.commit("cover", add=agenda.tokens())
    assert ("b", "is", "covered") in memory
    memory.retract("a", "on", "b")
    assert ("b", "is", "covered") not in memory


def test_removing_a_production_takes_what_it_justified() -> None:
    memory = WorkingMemory()
    memory.add_production('((<x> on <y>) -> (! <y> is covered) "cover")')
    memory.state("(a on b)")
    memory.remove_production("cover")
    assert ("b", "is", "covered") not in memory
    with pytest.raises(UserError, match="no production 'cover'"):
        memory.agenda("cover")


def test_productions_without_end_are_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("metatree.rules._working_memory.MAX_INFERENCES", 200)
    memory = WorkingMemory()
    memory.add_production('((a n <x>) -> (! a n (<x> + 1)) "count up")')
    with pytest.raises(RulesDoNotRest, match="'count up'"):
        memory.add("a", "n", 1)
    memory = WorkingMemory()
    memory.add_production('((a is <x>) -{(b is <x>)} -> (! b is <x>) "undo itself")')
    with pytest.raises(RulesDoNotRest, match="'undo itself'"):
        memory.add("a", "is", 1)


def test_watchers_see_what_came_and_went() -> None:
    memory = WorkingMemory()
    memory.add_production('((<x> on <y>) -> (! <y> under <x>) "under")')
    seen: list[FactChange] = []
    stop = memory.watch(seen.append)
    memory.add("a", "on", "b")
    memory.retract("a", "on", "b")
    stop()
    memory.add("c", "on", "d")
    assert [(c.fact[1], c.asserted, c.derived) for c in seen] == [
        ("on", True, False),
        ("under", True, True),
        ("on", False, False),
        ("under", False, True),
    ]


def sum_after(values: list[Any], removed: list[Any], function: str = "sum") -> Any:
    memory = WorkingMemory()
    memory.add_production(f'((<s> <- #{function}(<v>)) from {{(<x> w <v>)}} -> "s")')
    for number, value in enumerate(values):
        memory.add(number, "w", value)
    for number in removed:
        memory.retract(number, "w", values[number])
    matches = memory.query(f"(<s> <- #{function}(<v>)) from {{(<x> w <v>)}}")
    tokens = [dict(token) for token in memory.agenda("s").tokens()]
    assert tokens == matches
    assert [type(k["s"]) for k in tokens] == [type(f["s"]) for f in matches]
    return tokens[0]["s"] if tokens else None


def test_sums_do_not_drift() -> None:
    rng = random.Random(3)
    values = [rng.choice([1e16, 1e-9, 0.1, 3.0, -7e300]) * rng.random() for _ in range(60)]
    removed = rng.sample(range(60), 57)
    left = [Fraction(v) for n, v in enumerate(values) if n not in removed]
    assert sum_after(values, removed) == float(sum(left))
    assert sum_after([0.1, 0.2, 1e300], [0, 1, 2]) == 0
    assert sum_after([Decimal("0.1")] * 3, []) == Decimal("0.3")
    assert sum_after([10**30, 0.5], [1]) == 10**30
    assert sum_after([Decimal("1.5"), 2, 0.25], []) == 3.75


def test_neutral_values_do_not_depend_on_history() -> None:
    for function, neutral in (
        ("sum", 0),
        ("count", 0),
        ("collect", ()),
        ("min", None),
        ("max", None),
        ("avg", None),
    ):
        assert sum_after([], [], function) == neutral
        assert sum_after([1, 2.5], [0, 1], function) == neutral


def test_aggregates_of_numbers_and_texts() -> None:
    values: list[Any] = [3, "pear", Decimal("1.5"), "apple", 3]
    assert sum_after(values, [], "sum") == Decimal("7.5")
    assert sum_after(values, [], "avg") == Decimal("2.5")
    assert sum_after(values, [], "min") == Decimal("1.5")
    assert sum_after(values, [], "max") == "pear"
    assert sum_after(values, [1], "max") == "apple"
    assert sum_after(values, [], "collect") == (Decimal("1.5"), 3, 3, "apple", "pear")


def test_arithmetic_on_texts_is_not_met() -> None:
    memory = WorkingMemory()
    memory.state("(a w 1) (b w x) (c w 0.5) (d w 2e0)")
    assert len(memory.query("(<x> w <a>) (<y> w <b>) ((<a> + <b>) > 0)")) == 9
    assert memory.query("(<x> w <a>) (<y> w <b>) ((<a> + <b>) = xx)") == []
    assert memory.query("(<x> w <a>) ((<a> / 0) < 1)") == []
    assert [b["x"] for b in memory.query("(<x> w <a>) ((<a> / 2) = 1)")] == ["d"]
    assert [b["x"] for b in memory.query("(<x> w <a>) ((<a> * 3) = 1.5)")] == ["c"]


def test_facts_read_back_from_their_text() -> None:
    memory = WorkingMemory()
    memory.state('(a w 1) (b w 0.5) (c says "3 apples") ((a on b) since 2020-01-01)')
    memory.add("d", "w", 0.1)
    memory.add_production('((<x> w <y>) -> (! <x> has weight) "derive")')
    again = WorkingMemory()
    again.state(memory.text())
    assert list(again) == [fact for fact in memory if not memory.is_derived(fact)]


def test_deep_and_wide_rules() -> None:
    """More conditions than Python allows nested loops."""
    memory = WorkingMemory()
    chain = " ".join(f"(<x{n}> next <x{n + 1}>)" for n in range(40))
    star = " ".join(f"(<y> has <z{n}>) (<z{n}> w <w{n}>) (<w{n}> > 0)" for n in range(25))
    total = f"(<s> <- #sum(<v>)) from {{(<x> w <v>)}} {star} ((<s> + <w0>) > 1)"
    memory.add_production(f'({chain} -> "chain")')
    memory.add_production(f'({total} -> "star")')
    for n in range(42):
        memory.add(n, "next", n + 1)
    assert len(memory.agenda("chain")) == 3
    memory.retract(20, "next", 21)
    assert len(memory.agenda("chain")) == 0
    memory.state("(a has b) (b w 3)")
    assert [token["s"] for token in memory.agenda("star").tokens()] == [3]
    memory.state("(c w 4)")
    assert [token["s"] for token in memory.agenda("star").tokens()] == [7]


def test_sums_beyond_all_floats_and_numbers_of_many_digits_are_no_raw_errors() -> None:
    assert sum_after([1e308, 1e308], []) == -sum_after([-1e308, -1e308], []) == 1.7976931348623157e308
    memory = WorkingMemory()
    memory.state("(a w 1e308) (b v 3)")
    memory.add("b", "w", 10**900)
    assert memory.query("(b v <y>) (<s> <- #sum(<v> * 1e9)) from {(a w <v>)}") == [{"y": 3, "s": 0}]
    (found,) = memory.query("(<s> <- #sum(<v> * <v>)) from {(b w <v>)}")
    assert found["s"] == 10**1800
    memory.add_production('((b w <v>) -> (! b square (<v> * <v>)) (! b half (<v> / 2)) "square")')
    assert [f[1] for f in memory if memory.is_derived(f)] == ["half"], (
        "what is too large for a fact is left out"
    )
    for number in (10**1000, Decimal("1." + "1" * 1000), Decimal("1e400")):
        with pytest.raises(UserError, match="cannot be in a fact"):
            memory.add("c", "w", number)


def test_retract_agrees_with_its_general_way() -> None:
    """`retract` of a memory is one written function; that of the class does the same for any memory, step by step."""
    rules = """
    ((<x> on <y>) -{(<z> on <x>)} -> "top")
    ((<x> on <x>) -> "itself")
    ((<n> <- #count(<y>)) from {(a on <y>)} -> "how many")
    ((<x> on <y>) (<y> on <z>) -> "two")
    """
    inferring = '((<x> on <y>) (<y> size <n>) (<n> > 1) -> (! <x> stands well) "well")'
    for seed, texts_only in [(seed, texts_only) for seed in range(6) for texts_only in (True, False)]:
        rng = random.Random(seed)
        quick, general = WorkingMemory(), WorkingMemory()
        retract = quick.retract  # held before the productions come: it knows them all the same
        for step in range(200):
            if step == 20:
                for memory in (quick, general):
                    memory.add_productions(rules)
            if step == 100 and not texts_only:
                for memory in (quick, general):
                    memory.add_production(inferring)
            fact: tuple[Any, Any, Any] = (rng.choice("abcd"), "on", rng.choice("abcd"))
            if not texts_only and rng.random() < 0.3:
                fact = (rng.choice("abcd"), "size", rng.randint(1, 3))
            if rng.random() < 0.5:
                assert quick.add(*fact) == general.add(*fact)
            else:
                assert retract(*fact) is WorkingMemory.retract(general, *fact)
            assert _state_of(quick) == _state_of(general), (seed, step, fact)


def _state_of(memory: WorkingMemory) -> tuple[Any, ...]:
    agendas = {name: memory.agenda(name) for name in memory.productions}
    tokens = {name: (agenda.to_add, agenda.to_remove, agenda.committed) for name, agenda in agendas.items()}
    return [(fact, memory.event_of(fact)) for fact in memory], tokens


class Colour(StrEnum):
    RED = "red"


@pytest.mark.parametrize("with_numbers", [False, True])
def test_retract_takes_values_as_add_does(with_numbers: bool) -> None:
    memory = WorkingMemory()
    memory.add_production('((<x> is <y>) -> "is")')
    if with_numbers:
        memory.add("a", "is", 1)
    for value in (True, Colour.RED, ["x", "on", "y"], ("x", "on", "y")):
        memory.add("a", "is", value)
        assert memory.retract("a", "is", value)
        assert not memory.retract("a", "is", value)
    assert memory.retract(subject="a", attribute="is", value=1) is with_numbers
    assert not len(memory)
    for wrong in (None, {}, float("nan"), object()):
        with pytest.raises(UserError, match=r"cannot be in a fact"):
            memory.retract("a", "is", wrong)


def test_retract_of_a_class_that_was_wrapped_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[Any] = []
    monkeypatch.setattr(WorkingMemory, "retract", lambda self, *fact: called.append(fact))
    memory = WorkingMemory()
    memory.state("(a on b)")
    memory.retract("a", "on", "b")
    assert called == [("a", "on", "b")]


def test_retract_of_a_subclass_is_its_own() -> None:
    class Logged(WorkingMemory):
        def retract(self, subject: Any, attribute: Any, value: Any) -> bool:
            retracted.append((subject, attribute, value))
            return super().retract(subject, attribute, value)

    retracted: list[Any] = []
    memory = Logged()
    memory.state("(a on b)")
    assert memory.retract("a", "on", "b")
    assert retracted == [("a", "on", "b")]
    assert "subject: 'Any', attribute: 'Any', value: 'Any'" in str(signature(WorkingMemory().retract))


def test_undo_restores_a_fact_that_was_retracted() -> None:
    memory = WorkingMemory(functions={"odd": lambda text: 1 / len(text) > 0})
    memory.state("(a on b) (b on c)")
    memory.add_production('((k is <t>) -{(a on b)} (#odd(<t>)) -> (!! bad is <t>) "bad")')
    memory.add("k", "is", "")
    event = memory.event_of(("a", "on", "b"))
    with pytest.raises(FunctionFailed):
        memory.retract("a", "on", "b")
    assert memory.event_of(("a", "on", "b")) == event
    assert next(iter(memory)) == ("a", "on", "b")


untyped_memory: Any = WorkingMemory
untyped_shell: Any = ControlShell


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: untyped_memory().query(3), "3 is no text of rules: give a str"),
        (lambda: untyped_memory().state(None), "None is no text of rules"),
        (lambda: untyped_memory().add_productions(5), "5 is no text of rules"),
        (lambda: untyped_memory().add_all(5), "5 is no list of facts"),
        (
            lambda: untyped_memory().query("(a b <c>)", limit=-1),
            "limit is -1: give a whole number from 0, or None",
        ),
        (lambda: untyped_memory().query("(a b <c>)", limit="2"), "limit is '2'"),
        (lambda: untyped_memory(functions=[1]), r"functions is \[1\]: give a dict of names and functions"),
        (lambda: untyped_shell([], inferences=3), "inferences has 3: give productions, as text or as a list"),
        (lambda: untyped_shell([], inferences=[3]), "inferences has 3"),
    ],
)
def test_wrong_arguments_are_user_errors(call: Any, says: str) -> None:
    with pytest.raises(UserError, match=says):
        call()
