"""The programs in examples/rules: their traces are those beside them, their results those of CLIPS."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from metatree.rules import Program, ShellReport
from metatree.rules.language.values import Fact, value_text
from metatree.rules.shell.control import ending_lines, trace_lines

FOLDER = Path(__file__).parents[3] / "examples" / "rules"
NAMES = sorted(file.stem for file in FOLDER.glob("*.rules"))


def program_named(name: str) -> Program:
    return Program.parse((FOLDER / f"{name}.rules").read_text(encoding="utf-8"))


def run(name: str) -> tuple[ShellReport, str]:
    lines: list[str] = []
    report = (
        program_named(name)
        .shell()
        .run(program_named(name).facts, seed=1, on_entry=lambda entry: lines.extend(trace_lines(entry)))
    )
    return report, "\n".join([*lines, *ending_lines(report), "", report.memory.text()]) + "\n"


def test_they_are_there() -> None:
    assert NAMES == ["manners", "monkey", "turnstile", "waltz"]


@pytest.mark.parametrize("name", NAMES)
def test_a_program_leaves_the_trace_beside_it(name: str) -> None:
    report, trace = run(name)
    assert report.ended == "accepted"
    assert trace == (FOLDER / f"{name}.trace").read_text(encoding="utf-8")


def test_the_monkey_has_the_bananas_and_took_the_ladder_for_it() -> None:
    report, _ = run("monkey")
    assert ("monkey", "holds", "bananas") in report.memory
    fired = [entry["production"] for entry in report.trace]
    steps = [
        "walk",
        "take the ladder",
        "carry the ladder",
        "put the ladder down",
        "climb",
        "grab from the ladder",
    ]
    assert [name for name in fired if name in steps] == steps


def test_the_guests_sit_as_they_like() -> None:
    memory = run("manners")[0].memory
    (seated,) = memory.query("(seating complete <s>)")
    places = {b["g"] for b in memory.query(f"({seated['s']} path <g>)")}
    assert len(places) == 8
    for seat in memory.query("(<s> before <p>) (<s> guest <g>) (<p> guest <h>) (<g> sex <x>) (<h> sex <y>)"):
        assert seat["x"] != seat["y"]
        assert memory.query(f"({seat['g']} hobby <h>) ({seat['h']} hobby <h>)")


def test_without_a_resolver_the_turnstile_goes_the_same_way() -> None:
    """Productions that apply by themselves, by their salience, end where the control shell does."""
    for name in ("turnstile", "waltz", "monkey"):
        assert set(program_named(name).memory()) == set(run(name)[0].facts)


# CLIPS ------------------------------------------------------------------------------------------------------------


def clips_facts(name: str, *rules: str) -> set[Fact]:
    """Return what CLIPS makes of the facts of a program with the same rules, written by hand for CLIPS."""
    clips = pytest.importorskip("clips", reason="clipspy is not installed")
    environment = clips.Environment()
    environment.build("(deftemplate t (slot i) (slot a) (slot v))")
    for rule in rules:
        environment.build(rule)
    template = environment.find_template("t")
    for fact in program_named(name).facts:
        i, a, v = (clips.Symbol(part) if isinstance(part, str) else part for part in fact)
        template.assert_fact(i=i, a=a, v=v)
    environment.run()
    return {_fact(fact) for fact in template.facts()}


def _fact(fact: Any) -> Fact:
    parts = [str(fact[slot]) if not isinstance(fact[slot], int) else fact[slot] for slot in "iav"]
    return parts[0], parts[1], parts[2]


def clips_rule(name: str, conditions: str, actions: str, salience: int = 0) -> str:
    """Write `(i a v)` of a rule as the template has it."""
    pattern = re.compile(r"\((?!retract |\+ )([^()\s]+) ([^()\s]+) ([^()\s]+|\(\+ [^()]*\))\)")
    slots = r"(t (i \1) (a \2) (v \3))"
    return (
        f"(defrule {name} (declare (salience {salience})) {pattern.sub(slots, conditions)} =>"
        f" {pattern.sub(slots, actions)})"
    )


def test_waltz_agrees_with_clips() -> None:
    rule = """(defrule unsupported
        ?f <- (t (i ?c) (a at) (v ?j)) (t (i ?c) (a ?e) (v ?l)) (t (i ?e) (a joins) (v ?j)) (t (i ?l) (a fits) (v ?m))
        (t (i ?e) (a joins) (v ?k&~?j)) (not (and (t (i ?d) (a at) (v ?k)) (t (i ?d) (a ?e) (v ?m))))
        => (retract ?f))"""
    assert clips_facts("waltz", rule) == set(run("waltz")[0].facts)


def test_manners_agrees_with_clips() -> None:
    """CLIPS takes the newest of several tokens by its strategy `depth`; who sits where may differ, and how many not."""
    rules = [
        """(defrule first
            ?c <- (t (i context) (a state) (v start)) ?n <- (t (i seating) (a count) (v 0)) (t (i ?g) (a sex) (v f))
            (not (t (i ?h&:(< (str-compare ?h ?g) 0)) (a sex) (v f)))
            => (retract ?c ?n) (assert (t (i seating) (a count) (v 1))) (assert (t (i 1) (a guest) (v ?g)))
            (assert (t (i 1) (a path) (v ?g))) (assert (t (i 1) (a done) (v yes)))
            (assert (t (i context) (a state) (v assign))))""",
        clips_rule(
            "find",
            "?c <- (context state assign) ?n <- (seating count ?k) (?s done yes) (?s guest ?g) (?g sex ?x)"
            " (?g hobby ?h) (?g2 hobby ?h) (?g2 sex ~?x) (not (t (i ?s) (a path) (v ?g2)))"
            " (not (t (i ?s) (a chosen) (v ?g2)))",
            "(retract ?c ?n) (assert (seating count (+ ?k 1))) (assert (?s chosen ?g2))"
            " (assert (t (i (+ ?k 1)) (a guest) (v ?g2))) (assert (t (i (+ ?k 1)) (a before) (v ?s)))"
            " (assert (t (i (+ ?k 1)) (a path) (v ?g2))) (assert (t (i (+ ?k 1)) (a done) (v no)))"
            " (assert (context state path))",
        ),
        clips_rule(
            "path",
            "(context state path) (?s done no) (?s before ?p) (?p path ?g) (not (t (i ?s) (a path) (v ?g)))",
            "(assert (?s path ?g))",
            10,
        ),
        clips_rule(
            "made",
            "?c <- (context state path) ?d <- (?s done no)",
            "(retract ?c ?d) (assert (?s done yes)) (assert (context state check))",
        ),
        """(defrule on
            ?c <- (t (i context) (a state) (v check)) (t (i table) (a seats) (v ?n)) (t (i seating) (a count) (v ~?n))
            => (retract ?c) (assert (t (i context) (a state) (v assign))))""",
    ]
    theirs, ours = clips_facts("manners", *rules), set(run("manners")[0].facts)
    for attribute in ("path", "guest", "done", "chosen", "before"):
        assert sum(f[1] == attribute for f in theirs) == sum(f[1] == attribute for f in ours), attribute
    assert {f for f in theirs if f[1] in ("sex", "hobby")} == {f for f in ours if f[1] in ("sex", "hobby")}
    assert value_text(("seating", "count", 8)) in {value_text(f) for f in theirs & ours}
