"""Texts out of form: each is an error with line and column, whatever is wrong with it, and soon."""

from __future__ import annotations

import pickle
import re
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metatree.errors import UserError
from metatree.rules import (
    FunctionFailed,
    Program,
    RulesDoNotRest,
    RuleSyntaxError,
    WorkingMemory,
    parse_facts,
    parse_productions,
)
from metatree.rules.language.conditions import Production
from metatree.rules.language.lexemes import RuleError
from metatree.rules.language.text import parse_conditions
from metatree.rules.language.values import MAX_DEPTH
from metatree.rules.matcher._emit import holds
from metatree.rules.shell._automaton import MAX_STATES, Chain, Choice, Repeat, Symbol, minimal
from metatree.rules.shell.schedule import Schedule
from tests.profiles import examples

PLACE = re.compile(r"line \d+, column \d+: ")
SOON_MS = 30_000
"""A text that is refused, or read, takes milliseconds; this is where it would never come to an end."""

WORDS = """a b on <x> <y> <v> 1 2.5 1e3 -3 "t" "\\"" - + * / = <> < > <= >= -> <- as from ! !! ( ) ( ) { } -{ +{
#sum( #count( #like( #own( |{ | salience -( := == != ?x ^w => (not (or # ; \\ " #
schedule resolver seed all first priority main = | ? {1,2} {3 , } a=0; é"""
words = st.sampled_from([*WORDS.split(), "\n", "\t", "\x00"])
soup = st.lists(words, max_size=40).map(" ".join)

terms = st.sampled_from(["a", "b", "<x>", "<y>", "<z>", "1", "2.5", '"t"', "(a on b)", ""])
expressions = st.recursive(
    terms,
    lambda inner: (
        st.builds("({} {} {})".format, inner, st.sampled_from(["+", "-", "*", "/", "?", ""]), inner)
        | st.builds("#{}({} {})".format, st.sampled_from(["like", "join", "mod", "own", "no"]), inner, inner)
        | st.builds("#{}({})".format, st.sampled_from(["length", "own", "fails", "text", "sum"]), inner)
    ),
    max_leaves=6,
)
patterns = st.builds(
    "({} {} {}){}".format, terms, terms, terms, st.sampled_from(["", "", " as <f>", " as f"])
)
tests = st.builds(
    "({} {} {})".format, expressions, st.sampled_from(["=", "<>", "<", ">", "<=", ">=", "=="]), expressions
)
conditions = st.recursive(
    patterns | tests,
    lambda inner: (
        st.builds("{}{}{}".format, st.sampled_from(["-{", "+{", "{"]), inner, st.sampled_from(["}", ""]))
        | st.builds(
            "(<{}> <- #{}({})) from {{{}}}".format,
            st.sampled_from("vx"),
            st.sampled_from(["sum", "count", "min", "collect", "total"]),
            expressions,
            inner,
        )
        | st.builds("{} {}".format, inner, inner)
        | st.builds("|{{ {} | {} }}".format, inner, inner)
        | st.builds("(#{}({}))".format, st.sampled_from(["own", "fails", "length"]), expressions)
        | st.builds("({} {})".format, st.sampled_from(["not", "or", "exists", "test"]), inner)
    ),
    max_leaves=6,
)
assertions = (
    st.builds(
        "({} {} {} {})".format,
        st.sampled_from(["!", "!!", "!!", "-", ":=", "?", "assert"]),
        expressions,
        expressions,
        expressions,
    )
    | st.just("(- <f>)")
    | st.just("(- <x>)")
)
rules = st.builds(
    "({} {} {} {} {})".format,
    conditions,
    st.sampled_from(["->", "->", "->", "->", "=>", ""]),
    st.lists(assertions, max_size=2).map(" ".join),
    st.sampled_from(['"n"', '"m"', '"o"', "n", ""]),
    st.sampled_from(["", "", "salience 3", "salience -1", "salience x", "salience 99999999"]),
)


def failing(value: Any) -> Any:
    raise ValueError(value)


OWN = {"own": lambda *values: len(values) == 1, "fails": failing}

regexes = st.recursive(
    st.sampled_from(["a", "b", '"n"', '"other"', "c", "7", ""]),
    lambda inner: (
        st.builds("({})".format, inner)
        | st.builds(
            "{}{}".format,
            inner,
            st.sampled_from(["*", "+", "?", "{2}", "{1,}", "{,3}", "{4,2}", "{,}", "{x}"]),
        )
        | st.builds("{} {}".format, inner, inner)
        | st.builds("{} | {}".format, inner, inner)
    ),
    max_leaves=8,
)
schedules = st.builds("schedule {{\n a = 0; b = 1;\n main = {};\n}}".format, regexes)
lines = (
    rules
    | schedules
    | st.sampled_from(
        [
            "(a on b)",
            "(a on (b on c))",
            "resolver first",
            'resolver priority "n"',
            "resolver fast",
            "seed 7",
            'all "q"',
            "",
        ]
    )
)
programs = st.lists(lines, max_size=5).map("\n".join)


@settings(max_examples=examples(400), deadline=SOON_MS)
@given(soup | programs | st.text(max_size=60))
def test_a_text_is_read_or_refused_with_its_place(text: str) -> None:
    try:
        program = Program.parse(text, functions=OWN)
    except UserError as exc:
        assert PLACE.match(str(exc)), str(exc)
        assert isinstance(exc, RuleError)
        assert 1 <= exc.line <= text.count("\n") + 1
        assert exc.column >= 1
        return
    for production in program.productions:
        (again,) = parse_productions(str(production))
        assert again == production
    memory = WorkingMemory(functions=OWN, max_inferences=200)
    with suppress(FunctionFailed):
        memory.add_all(program.facts)
        for production in program.productions:
            memory.add_production(production, controlled=True)
    if program.schedule is not None or program.resolver is not None:
        program.shell()


known = st.sampled_from(["<x>", "<y>", "a", "on", "1", "2.5", "t"])
computed = st.recursive(
    known,
    lambda inner: (
        st.builds("(<y> {} <y>)".format, st.sampled_from("+-*/"))
        | st.builds("#{}({})".format, st.sampled_from(["length", "own", "text", "join"]), inner)
    ),
    max_leaves=2,
)
well_formed = st.recursive(
    st.builds("({} {} {})".format, known, st.sampled_from(["on", "w", "<x>", "<z>"]), known)
    | st.builds("({} {} {})".format, computed, st.sampled_from(["=", "<>", "<", ">="]), computed)
    | st.sampled_from(['(#like(<x> "a*"))', "(#own(<y>))", "(#fails(<z>))", "(<z> w <y>)"]),
    lambda inner: (
        st.builds("{}{}}}".format, st.sampled_from(["-{", "+{"]), inner)
        | st.builds("|{{ {} | {} }}".format, inner, inner)
        | st.builds(
            "(<n> <- #{}(<y>)) from {{(<x> w <y>) {}}}".format, st.sampled_from(["sum", "collect"]), inner
        )
        | st.builds("{} {}".format, inner, inner)
    ),
    max_leaves=4,
)
acting = st.sampled_from(["(- <f>)", "(- <y>)"]) | st.builds(
    "({} {} {} {})".format,
    st.sampled_from(["!", "!!", "-", ":="]),
    known,
    st.sampled_from(["on", "w"]),
    computed,
)
sound_rules = st.builds(
    '((<x> <a> <y>) as <f> {} -> {} "{}" salience {})'.format,
    st.just("") | well_formed,
    st.lists(acting, min_size=1, max_size=3).map(" ".join),
    st.sampled_from("nmo"),
    st.integers(-1, 1),
)

given_facts = st.lists(
    st.tuples(*[st.sampled_from(["a", "b", "on", 1, 2.5, "t", ("a", "on", "b")])] * 3), max_size=6
)


@settings(max_examples=examples(300), deadline=SOON_MS)
@given(st.lists(sound_rules, min_size=1, max_size=4), given_facts)
def test_rules_that_are_read_rest_or_are_undone(texts: list[str], facts: list[Any]) -> None:
    """Whatever they do to facts: what fails is an error of ours, and leaves the memory as it was."""
    memory = WorkingMemory(functions=OWN, max_inferences=200)
    for text in texts:
        before = list(memory.productions)
        try:
            memory.add_production(text)
        except (UserError, RulesDoNotRest, FunctionFailed):
            assert list(memory.productions) == before
    for fact in facts:
        held = list(memory)
        try:
            if fact in memory:
                memory.retract(*fact)
            else:
                memory.add(*fact)
        except (UserError, RulesDoNotRest, FunctionFailed):
            assert list(memory) == held
        for name in memory.productions:
            agenda = memory.agenda(name)
            assert not memory.productions[name].actions or not (agenda.to_add or agenda.to_remove)
            found = (
                memory.query(agenda.production.conditions) if "#fails" not in str(agenda.production) else None
            )
            if found is not None:
                assert {tuple(b.values()) for b in found} == {t.values_ for t in agenda.tokens()}
    again = WorkingMemory()
    again.state(memory.text())
    assert list(again) == [fact for fact in memory if not memory.is_derived(fact)]


@settings(max_examples=examples(100), deadline=SOON_MS)
@given(soup | conditions | rules)
def test_the_other_ways_in_refuse_with_the_place_too(text: str) -> None:
    for read in (parse_facts, parse_productions, parse_conditions):
        try:
            read(text)
        except UserError as exc:
            assert PLACE.match(str(exc)), str(exc)


@pytest.mark.parametrize(
    "condition",
    [
        "(<x> <- #sum(<x>)) from {(b 1 a)}",
        "(<x> <- #count()) from {(b 1 <y>) (<y> > <x>)}",
        "(<x> <- #count()) from {(b 1 <y>) -{(<y> on <x>)}}",
        "-{(<x> <- #sum(<x>)) from {(b 1 a)}}",
        "(<v> <- #count()) from {(a b c) (<w> <- #sum(<v>)) from {(d e f)}}",
    ],
)
def test_an_aggregate_that_needs_its_own_value_is_refused(condition: str) -> None:
    with pytest.raises(RuleError, match=r"^line 1, column 1: this aggregate needs its own value <[xv]>"):
        parse_productions(f'({condition} -> "n")')


DEEP = 3000


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("(" * DEEP, MAX_DEPTH + 4),
        ("(" * DEEP + "a on b" + ")" * DEEP, MAX_DEPTH + 2),
        ("(a on " * DEEP, 6 * MAX_DEPTH + 2),
        ("((<x> on <y>) (" + "(" * DEEP + "<y>" + " + 1)" * DEEP + ' > 2) -> "n")', MAX_DEPTH + 17),
        ("((<x> on <y>) " + "-{" * DEEP + "(<x> w <y>)" + "}" * DEEP + ' -> "n")', 2 * MAX_DEPTH + 17),
        ("((<x> on <y>) " + "(<v> <- #count()) from {" * DEEP, 24 * MAX_DEPTH + 39),
        ("((<x> on <y>) -> (! <x> total " + "(" * DEEP + "1" + " + 1)" * DEEP + "))", MAX_DEPTH + 32),
    ],
)
def test_brackets_nested_too_deep_are_an_error_with_its_place(text: str, column: int) -> None:
    with pytest.raises(RuleError, match=f"nested more than {MAX_DEPTH} deep") as caught:
        Program.parse("\n" + text)
    assert (caught.value.line, caught.value.column) == (2, column)


def test_brackets_nested_as_deep_as_may_be_are_read() -> None:
    deep = MAX_DEPTH - 1
    memory = WorkingMemory()
    memory.state("(" * deep + "a on b" + ") on b" * (deep - 1) + ")")
    memory.add_production("((<x> on <y>) (" + "(" * deep + "<y>" + " + 1)" * deep + ' > 2) -> "sums")')
    memory.add_production("((<x> on <y>) " + "-{(<x> on <y>) " * deep + "}" * deep + ' -> "groups")')
    memory.state("(a on 5)")
    assert len(memory.agenda("sums")) == 1
    assert parse_facts(memory.text())
    assert parse_productions(str(memory.productions["sums"])) == [memory.productions["sums"]]


@pytest.mark.parametrize(
    "expression",
    [
        "(" * DEEP + "a" + ")" * DEEP,
        "a{" + "9" * 5000 + "}",
        "a{99999999999}",
        "(((a{99}){99}){99}){99}",
        "(a?){9999}",
        "a" + "+" * DEEP,
    ],
)
def test_a_schedule_that_is_too_deep_or_too_large_is_an_error_with_its_place(expression: str) -> None:
    text = f'((<x> on <y>) -> "n")\nschedule {{\n a = 0;\n main = {expression};\n}}'
    with pytest.raises(RuleError, match=r"^line 4, column \d+: schedule: "):
        Program.parse(text)


def test_a_schedule_of_symbols_made_of_symbols_is_an_error_when_it_is_too_deep() -> None:
    text = "a0 = 0;" + "".join(f"a{n + 1} = a{n} | a{n}+;" for n in range(1500)) + "main = a1500;"
    with pytest.raises(RuleError, match="line 1"):
        Schedule.parse(text, ["n"])


def test_numbers_of_too_many_digits_are_refused() -> None:
    with pytest.raises(RuleError, match=r"line 1, column 7: .* at most 1,000 digits"):
        parse_facts(f"(a is {'9' * 5000})")
    with pytest.raises(RuleError, match="digits"):
        Program.parse(f"seed {'9' * 5000}")


def test_many_openings_of_a_schedule_without_an_end_are_refused_soon() -> None:
    with pytest.raises(RuleSyntaxError, match="line 1, column 1"):
        Program.parse("schedule {\n" * 30_000)


@settings(deadline=SOON_MS)
@given(
    st.recursive(
        st.sampled_from("abc").map(Symbol),
        lambda inner: (
            st.lists(inner, min_size=1, max_size=3).map(lambda parts: Chain(tuple(parts)))
            | st.lists(inner, min_size=1, max_size=3).map(lambda parts: Choice(tuple(parts)))
            | st.builds(Repeat, inner, st.integers(0, 2), st.none() | st.integers(2, 3))
        ),
        max_leaves=5,
    ),
    st.lists(st.lists(st.sampled_from("abc"), max_size=6), max_size=10),
)
def test_the_automaton_accepts_what_the_regular_expression_of_python_does(
    regex: Any, told: list[list[str]]
) -> None:
    automaton = minimal(regex)
    pattern = re.compile(_python(regex))
    for word in told:
        assert automaton.accepts(word) is bool(pattern.fullmatch("".join(word)))
    shortest = {state: _words_from(automaton, state) for state in automaton.arrows}
    assert len(set(shortest.values())) == len(shortest), "a word tells any two states apart"


def _python(regex: Any) -> str:
    match regex:
        case Symbol(name):
            return str(name)
        case Chain(parts):
            return "".join(f"(?:{_python(p)})" for p in parts)
        case Choice(parts):
            return "|".join(f"(?:{_python(p)})" for p in parts)
        case _:
            most = "" if regex.most is None else regex.most
            return f"(?:{_python(regex.part)}){{{regex.least},{most}}}"


def _words_from(automaton: Any, state: int) -> frozenset[str]:
    """Return the words up to as many symbols as there are states that lead from a state to an end; few states only."""
    depth = min(len(automaton.arrows), 6)
    words, now = set(), {("", state)}
    for _ in range(depth + 1):
        words |= {word for word, at in now if at in automaton.accepting}
        now = {(word + s, t) for word, at in now for s, t in automaton.arrows[at].items()}
    return frozenset(words) if len(automaton.arrows) <= 6 else frozenset({str(state)})


def test_a_schedule_of_thousands_of_states_is_compiled() -> None:
    automaton = Schedule.parse("a = 0; main = a{9000};", ["n"]).automaton
    assert len(automaton.arrows) == 9001 < MAX_STATES


def test_errors_survive_pickling() -> None:
    with pytest.raises(RuleSyntaxError) as caught:
        parse_facts("(a on")
    back = pickle.loads(pickle.dumps(caught.value))
    assert (back.line, back.column, back.found, str(back)) == (
        1,
        6,
        caught.value.found,
        str(caught.value),
    )


# Arithmetic, against the plain evaluation ------------------------------------------------------------------------

numbers = st.sampled_from(["1", "2", "0", "2.5", "1e1", "-3", "<x>", "<y>"])
sums = st.recursive(
    numbers, lambda inner: st.builds("({} {} {})".format, inner, st.sampled_from("+-*/"), inner), max_leaves=5
)
values = st.sampled_from(["aa", "a", "2", 0, 1, 2, -3, 2.5, ("a", "on", "b")])


@settings(max_examples=examples(200), deadline=SOON_MS)
@given(
    sums,
    st.sampled_from(["=", "<>", "<", ">", "<=", ">="]),
    sums | st.sampled_from(['"aa"', "a"]),
    values,
    values,
)
def test_tests_are_met_as_the_plain_evaluation_says(
    left: str, operator: str, right: str, x: Any, y: Any
) -> None:
    """Whatever a variable holds: no text is repeated by a number, nor joined with another."""
    (production,) = parse_productions(f'((k is <x>) (l is <y>) ({left} {operator} {right}) -> "n")')
    assert isinstance(production, Production)
    test: Any = production.conditions[-1]
    memory = WorkingMemory()
    memory.add("k", "is", x)
    memory.add("l", "is", y)
    memory.add_production(production)
    assert len(memory.agenda("n")) == int(holds(test, {"x": x, "y": y}))


@pytest.mark.parametrize(
    ("rule", "column", "what"),
    [
        ('(<x> w <y>) ((2 * "a") = "aa")', 19, "'\"a\"'"),
        ('(<x> w <y>) ((<y> * two) = "aa")', 21, "'two'"),
        ("(<x> w <y>) ((<y> + (1 - x)) > 2)", 26, "'x'"),
        ('(<x> w <y>) -{(<x> v <z>) (<z> > ("1" + 1))}', 35, "'\"1\"'"),
        ('(<s> <- #sum(<w> * "2")) from {(<x> w <w>)}', 20, "'\"2\"'"),
        ("(<x> w <y>) (((a on b) + 1) > 2)", 15, "'('"),
    ],
)
def test_arithmetic_with_a_text_is_an_error_where_it_stands(rule: str, column: int, what: str) -> None:
    with pytest.raises(UserError) as caught:
        Program.parse(f'({rule} -> "n")')
    assert str(caught.value).startswith(
        f"line 1, column {column + 1}: found {what}, expected a number or a variable"
    )


def test_arithmetic_with_a_text_in_a_production_made_by_hand_is_an_error() -> None:
    from metatree.rules.language.conditions import Binary

    with pytest.raises(UserError, match="'a' is no number"):
        Binary(2, "*", "a")
