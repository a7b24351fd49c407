"""The text form: what is read, what is written back, and what errors say."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metatree.errors import UserError
from metatree.rules import Program, RuleSyntaxError, WorkingMemory, parse_facts, parse_productions
from metatree.rules.language.values import Value, from_json, to_json, value_text

SEED = """
((<x> species <s>) -{(species <s> -)} -> "ks1 gather species")   # a comment
(
 (trip <t> -)
 (<wt> <- #sum(<w>)) from {(<t> includes <aa>) (<aa> species <ss>) (<ss> weight <w>)}
 -{(trip <t2> -) +{(<t2> includes <b>)} (<t2> <> <t>)}
 (animal <b> -) as <f>
 ((<wt> + (2 * <wt>)) <= 99.5)
 -> (! <b> left-of "x ) y") (!! <b> total (<wt> + 1)) "all of it"
)
"""


def test_productions_are_written_as_they_are_read() -> None:
    productions = parse_productions(SEED)
    assert [p.name for p in productions] == ["ks1 gather species", "all of it"]
    assert parse_productions("\n".join(map(str, productions))) == productions


@pytest.mark.parametrize(
    ("text", "line", "column", "found", "expected"),
    [
        ('((<x> on <y>) "name")', 1, 15, "'\"name\"'", "'->'"),
        ('((<x> on) -> "name")', 1, 9, "')'", "a variable"),
        ('(\n(<x> on <y>)\n-{(<z> on <x>)\n-> "name")', 4, 1, "'->'", "a condition"),
        ('((<x> weighs <y>) ((<y> + 2) 3) -> "n")', 1, 30, "'3'", "a comparison"),
        ('((<t> <- #total(<w>)) from {(<x> w <w>)} -> "n")', 1, 10, "'#total'", "a function: #sum"),
        ('((<t> <- #sum()) from {(<x> w <w>)} -> "n")', 1, 15, "')'", "what #sum is over"),
        ('((<t> <- #sum(<w>)) of {(<x> w <w>)} -> "n")', 1, 21, "'of'", "'from'"),
        ("((<x> on <y>) -> (<x> on <z>))", 1, 19, "'<x>'", "'!'"),
        ('((<x> on "y) -> "n")', 1, 19, "'\")'", 'a closing "'),
        ("((<x> on <y>) ->", 1, 17, "the end of the text", "name of the production"),
    ],
)
def test_errors_say_where_what_and_what_else(
    text: str, line: int, column: int, found: str, expected: str
) -> None:
    with pytest.raises(RuleSyntaxError) as caught:
        parse_productions(text)
    error = caught.value
    assert (error.line, error.column) == (line, column)
    assert found in error.found
    assert expected in error.expected
    assert str(error).startswith(f"line {line}, column {column}: found ")


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        ("(<x> on <y>) (<z> > 2)", "the test (<z> > 2) uses <z>"),
        ("(<x> on <y>) -{(<x> w <z>) (<q> > 2)}", "<q>"),
        ("(<s> <- #sum(<z>)) from {(<x> w <y>)}", "#sum is over <z>"),
        (
            "(<a> <- #count()) from {(<x> w <y>) (<y> > <b>)} (<b> <- #count()) from {(<x> w <y>) (<y> > <a>)}",
            "depend on each other",
        ),
    ],
)
def test_a_variable_without_a_value_is_an_error(rule: str, says: str) -> None:
    with pytest.raises(UserError, match=r"production 'rule'|aggregates") as caught:
        WorkingMemory().add_production(f'({rule} -> "rule")')
    assert says in str(caught.value)


def test_a_right_hand_side_needs_its_variables() -> None:
    with pytest.raises(UserError, match="right-hand side uses <z>"):
        WorkingMemory().add_production('((<x> on <y>) -{(<z> on <x>)} -> (! <z> on <y>) "r")')


values = st.recursive(
    st.text(max_size=8)
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.decimals(allow_nan=False, allow_infinity=False, places=3),
    lambda inner: st.tuples(inner, inner, inner),
    max_leaves=4,
)


@given(values)
def test_any_value_can_be_written_and_read(value: Value) -> None:
    assert parse_facts(f"({value_text(value)} is {value_text(value)})") == [(value, "is", value)]


@given(values)
def test_any_value_survives_json(value: Value) -> None:
    back = from_json(to_json(value))
    assert back == value
    assert type(back) is type(value)


@pytest.mark.parametrize("bad", [None, float("nan"), float("inf"), object(), {"a": 1}])
def test_what_cannot_be_in_a_fact_is_refused(bad: object) -> None:
    with pytest.raises(UserError, match="cannot be in a fact"):
        WorkingMemory().add("a", "is", bad)


def test_a_program_has_facts_rules_schedule_and_resolver() -> None:
    program = Program.parse(
        """
        (a on b)  # a fact
        ((<x> on <y>) -{(<y> seen -)} -> (!! <y> seen -) "see")
        ((<y> seen -) -> (! <y> known -) "know")
        schedule {
            s = "see";
            main = s{1,2};
        }
        resolver first
        seed 5
        """
    )
    assert program.facts == [("a", "on", "b")]
    assert [p.name for p in program.controlled] == ["see"]
    assert [p.name for p in program.uncontrolled] == ["know"]
    report = program.shell().run(program.facts, seed=program.seed)
    assert report.ended == "accepted"
    assert ("b", "known", "-") in report.memory


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("schedule {\n a = 0;\n main = a; }\n", "alone on the line"),
        ("(a on b)\nresolver fastest\n", "no resolver 'fastest'"),
        ('resolver priority "x"\n', "no production 'x'"),
        ("hello", "line 1, column 1"),
        ('((<x> on <y>) -> "a")\n((<x> in <y>) -> "a")', "two productions are called 'a'"),
        (
            '((<x> on <y>) -> "a")\nschedule {\n b = 1;\n main = b;\n}\n',
            "line 3, column 6: schedule: there is no production number 1",
        ),
    ],
)
def test_errors_of_programs(text: str, says: str) -> None:
    with pytest.raises(UserError) as caught:
        Program.parse(text)
    assert says in str(caught.value)


@pytest.mark.parametrize("text", ["x" * 1_000_000, "x y" * 333_333, 'x "y" ' * 100_000, "a-b" * 333_333])
def test_a_long_text_takes_little_more_memory_than_its_length(text: str) -> None:
    tracemalloc.start()
    try:
        assert parse_facts(f"(a says {value_text(text)})") == [("a", "says", text)]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 20 * len(text)
