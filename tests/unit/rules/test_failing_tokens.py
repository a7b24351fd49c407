"""A token whose logic raises is set aside alone, and a run with failures is never accepted."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from metatree.durable import MemoryJournal, Policy
from metatree.rules import ControlShell, Firing, First, KnowledgeSource, StopWhen
from metatree.rules.shell.control import ending_lines, trace_lines
from tests.profiles import examples

MARK = '((<x> is raw) -{(<x> was cooked)} -> "cook")'
ONCE = Policy(attempts=1)


def facts(count: int) -> list[tuple[str, str, str]]:
    return [(f"t{n}", "is", "raw") for n in range(count)]


def cook_all(bad: set[str], sizes: list[int] | None = None) -> KnowledgeSource:
    """Logic that deals with all tokens of its batch, and raises at the bad ones."""
    source = KnowledgeSource("kitchen", MARK)

    @source.fires("cook", policy=ONCE)
    def cook(firing: Firing) -> None:
        if sizes is not None:
            sizes.append(len(firing.to_add))
        for token in firing.to_add:
            if token["x"] in bad:
                raise ValueError(f"{token['x']} is burnt")
            firing.add(token["x"], "was", "cooked")
            firing.commit(token)

    return source


def cooked(report: Any) -> set[str]:
    return {fact[0] for fact in report.facts if fact[1] == "was"}


def test_one_token_whose_logic_raises_does_not_take_the_others_along() -> None:
    report = ControlShell([cook_all({"t2"})], schedule="c = 0; main = c;").run(facts(5), seed=0)
    assert cooked(report) == {"t0", "t1", "t3", "t4"}
    (failure,) = report.failures
    assert (failure["what"], failure["tokens"]) == ("cook", ["(x=t2)"])
    assert failure["error"] == "ValueError: t2 is burnt"
    assert report.ended == "failed", "it is in an accepting state, and something failed"
    assert report.detail == 'a firing of "cook" failed for (x=t2): ValueError: t2 is burnt'
    assert report.cycles == 1, "all of it is one firing of the schedule"
    assert "Failed: (x=t2): ValueError: t2 is burnt" in trace_lines(report.trace[0])
    assert report.detail in "\n".join(ending_lines(report))
    json.dumps(report.trace)


@settings(max_examples=examples(60))
@given(st.integers(1, 24), st.sets(st.integers(0, 23)), st.booleans())
def test_all_but_the_bad_tokens_are_dealt_with(count: int, bad: set[int], each: bool) -> None:
    names = {f"t{n}" for n in bad if n < count}
    sizes: list[int] = []
    source = cook_all(names, sizes)
    if each:
        logic = source.rules()["cook"].logic
        source.fires("cook", each=True, policy=ONCE)(logic)
    report = ControlShell([source]).run(facts(count), seed=0)
    assert cooked(report) == {f"t{n}" for n in range(count)} - names
    assert [one["tokens"] for one in report.failures] == [
        [f"(x={name})"] for name in sorted(names, key=_number)
    ]
    assert report.ended == ("failed" if names else "accepted")
    assert len(sizes) <= (count if each else 1 + 12 * (len(names) + 1)), (
        "a token that fails is found by halving"
    )


def _number(name: str) -> int:
    return int(name[1:])


def test_a_batch_of_which_all_fail_costs_two_firings_a_token() -> None:
    sizes: list[int] = []
    report = ControlShell([cook_all({f"t{n}" for n in range(40)}, sizes)]).run(facts(40), seed=0)
    assert (len(report.failures), report.ended) == (40, "failed")
    assert len(sizes) <= 80


def test_logic_that_takes_one_of_its_tokens_still_fires_once_in_a_cycle() -> None:
    source = KnowledgeSource("kitchen", MARK)

    @source.fires("cook", policy=ONCE)
    def cook(firing: Firing) -> None:
        token = firing.to_add[0]
        if token["x"] == "t0":
            raise ValueError("burnt")
        firing.add(token["x"], "was", "cooked")
        firing.commit(token)

    report = ControlShell([source], schedule="c = 0; main = c c;").run(facts(5), seed=0)
    assert cooked(report) == {"t1", "t2"}
    assert (report.cycles, report.ended) == (2, "failed")


def test_what_may_not_happen_twice_is_not_tried_in_parts() -> None:
    source = KnowledgeSource("kitchen", MARK)
    seen: list[int] = []

    @source.fires("cook", policy=Policy(repeatable=False))
    def cook(firing: Firing) -> None:
        seen.append(len(firing.to_add))
        raise ValueError("burnt")

    report = ControlShell([source]).run(facts(3), seed=0)
    assert (seen, report.ended) == ([3], "failed")
    assert report.failures[0]["tokens"] == ["(x=t0)", "(x=t1)", "(x=t2)"]


def test_a_resolver_that_stops_a_run_with_failures_does_not_accept_it() -> None:
    shell = ControlShell(
        [cook_all({"t0"})], resolver=StopWhen(lambda c: bool(c.memory.query("(<x> was cooked)")), First())
    )
    source = shell.rules["cook"]
    assert source is not None
    report = shell.run([*facts(3), ("t9", "is", "raw")], seed=0)
    assert report.ended == "failed"


def test_a_board_that_cannot_be_looked_at_is_no_success() -> None:
    class Gone:
        def look(self, memory: Any) -> list[Any]:
            raise OSError("the board is gone")

        def fired(self, run_id: str, entry: Any) -> None: ...

        def settled(self, run_id: str, memory: Any) -> None: ...

    board: Any = Gone()
    report = ControlShell([cook_all(set())], board=board).run(facts(1), seed=0)
    assert (report.ended, cooked(report)) == ("failed", {"t0"})
    assert "the board is gone" in report.detail


def test_a_run_with_failures_cut_anywhere_ends_the_same() -> None:
    journal = MemoryJournal()
    shell = ControlShell([cook_all({"t1", "t4"})], resolver=First())
    whole = shell.run(facts(7), seed=4, run_id="r", journal=journal)
    records = [r for r in journal.read("r") if r.kind != "stop"]
    assert len(records) > 8
    for cut in range(1, len(records)):
        again = MemoryJournal()
        token = again.create("r", "shell", records[0])
        for number, record in enumerate(records[1:cut], start=1):
            again.append("r", token, number, record)
        again.release("r", token, None)
        report = shell.resume("r", journal=again)
        assert (report.ended, report.facts, report.trace, report.failures) == (
            whole.ended,
            whole.facts,
            whole.trace,
            whole.failures,
        )
