"""Right-hand sides that take facts back and change them, salience, alternatives, functions, and undoing what fails."""

from __future__ import annotations

import random
from typing import Any

import pytest

from metatree.errors import UserError
from metatree.rules import (
    FactChange,
    FunctionFailed,
    Program,
    RulesDoNotRest,
    WorkingMemory,
    parse_productions,
)
from metatree.rules.language.lexemes import RuleError


def memory_of(rules: str, facts: str = "", **options: Any) -> WorkingMemory:
    memory = WorkingMemory(**options)
    memory.add_productions(rules)
    memory.state(facts)
    return memory


# What right-hand sides do -----------------------------------------------------------------------------------------


def test_a_production_takes_facts_back() -> None:
    memory = memory_of('((<x> is done) (<x> owner <o>) as <f> -> (- <f>) (- <x> at desk) "clear")')
    memory.state("(a owner ann) (a at desk) (b owner bob) (a is done)")
    assert list(memory) == [("b", "owner", "bob"), ("a", "is", "done")]


def test_a_production_changes_a_value_and_leaves_one() -> None:
    memory = memory_of(
        '((<x> next <s>) -> (:= <x> state <s>) "go")', "(m state off) (m state old) (n state off)"
    )
    memory.state("(m next on)")
    assert memory.query("(m state <s>)") == [{"s": "on"}]
    assert memory.query("(n state <s>)") == [{"s": "off"}]
    memory.retract("m", "next", "on")
    assert ("m", "state", "on") in memory, "what is set stays"
    assert memory.provenance(("m", "state", "on")) == {"production": "go"}


def test_what_is_justified_is_not_taken_back_by_hand_nor_by_rules() -> None:
    memory = memory_of(
        '((<x> on <y>) -> (! <y> is covered) "cover")\n((<x> wiped -) -> (- <x> is covered) "wipe")'
    )
    memory.state("(a on b) (b wiped -)")
    assert ("b", "is", "covered") in memory


def test_of_two_tokens_the_one_that_the_other_undid_does_nothing() -> None:
    memory = memory_of('((<x> wants key) -{(key taken -)} -> (!! key taken -) (!! <x> has key) "take")')
    memory.state("(a wants key) (b wants key)")
    assert memory.query("(<x> has key)") == [{"x": "a"}]


def test_a_production_that_takes_back_its_own_ground_must_assert_to_stay() -> None:
    with pytest.raises(
        RuleError, match=r"line 1, column 1: .*takes back what its token stands on.*write '!!'"
    ):
        parse_productions('((<x> on <y>) as <f> -> (- <f>) (! <x> off <y>) "move")')
    with pytest.raises(RuleError, match="write '!!'"):
        parse_productions('((<x> on <y>) -> (- <x> on <y>) (! <x> off <y>) "move")')
    parse_productions('((<x> on <y>) (<x> is z) -> (- <y> is z) (! <x> off <y>) "move")')


def test_the_highest_salience_goes_first_and_again_after_each_token() -> None:
    told: list[str] = []
    memory = memory_of(
        """
        ((<x> todo <n>) as <f> -> (- <f>) (!! <x> half <n>) "begin")
        ((<x> half <n>) as <f> -> (- <f>) (!! <x> done <n>) "finish" salience 5)
        ((<x> todo <n>) -> (!! log saw <n>) "log" salience -1)
        """
    )

    def note(change: FactChange) -> None:
        if change.asserted and change.derived:
            told.append(f"{change.fact[1]} {change.fact[2]}")

    memory.watch(note)
    memory.state("(a todo 1) (a todo 2)")
    assert told == ["half 1", "done 1", "half 2", "done 2"]


def test_productions_are_written_as_they_are_read() -> None:
    text = """
    ((<x> on <y>) as <f> |{ (<x> is a) | (<y> is b) -{(<x> is c)} } (#like(<x> "a*")) ((#length(<y>) + 1) > 2)
     -> (- <f>) (- <x> is a) (:= <x> state (<y> + 1)) (!! <x> n #join("?x" <y>)) "r \\\\ \\"s\\"" salience -3)
    """
    (production,) = parse_productions(text)
    assert (production.name, production.salience, len(production.actions)) == ('r \\ "s"', -3, 4)
    assert parse_productions(str(production)) == [production]


# Alternatives -----------------------------------------------------------------------------------------------------


def test_one_of_several_groups_is_met_once() -> None:
    memory = WorkingMemory()
    agenda = memory.add_production('((<x> is thing) |{ (<x> is red) | (<x> is round) } -> "red or round")')
    memory.state("(a is thing) (a is red) (a is round) (b is thing)")
    assert [dict(token) for token in agenda.tokens()] == [{"x": "a"}]
    memory.retract("a", "is", "red")
    assert len(agenda) == 1
    memory.retract("a", "is", "round")
    assert len(agenda) == 0


def test_facts_do_not_vouch_for_each_other_through_alternatives() -> None:
    """Against a search, under random changes: what a token stands on is known for each of its groups."""
    rng = random.Random(3)
    memory = memory_of(
        '(|{ (<x> is start) | (<y> linked <x>) (<y> is reached) } -> (! <x> is reached) "reach")',
        "(a is start)",
    )
    links: set[tuple[str, str]] = set()
    for _ in range(150):
        link = (rng.choice("abcde"), rng.choice("abcde"))
        (links.remove if link in links else links.add)(link)
        (memory.add if link in links else memory.retract)(link[0], "linked", link[1])
        reached = {"a"}
        while more := {y for x, y in links if x in reached} - reached:
            reached |= more
        assert {b["x"] for b in memory.query("(<x> is reached)")} == reached


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        ("|{ (<x> is a) }", "one alternative only"),
        ("|{ (<x> is a) | (<y> is b) } (<x> > 2)", "the test (<x> > 2) uses <x>"),
        ("(<n> <- #count()) from { |{ (<x> is a) | (<x> is b) } }", "inside of an aggregate"),
        (" ".join(["|{ (<x> is a) | (<x> is b) }"] * 7), "more than 64 ways"),
        ("|{ (<x> is a) | }", "a condition"),
    ],
)
def test_alternatives_that_make_no_sense_are_refused(rule: str, says: str) -> None:
    with pytest.raises(RuleError, match=r"^line 1, column \d+: ") as caught:
        parse_productions(f'({rule} -> "r")')
    assert says in str(caught.value)


# Functions --------------------------------------------------------------------------------------------------------


def test_texts_are_tested() -> None:
    memory = memory_of("", '(a name "Ann Lee") (b name bob) (c name 12)')
    for test, found in [
        ('#starts-with(<n> "Ann")', "a"),
        ('#ends-with(<n> "b")', "b"),
        ('#contains(<n> " ")', "a"),
        ('#like(<n> "b?b")', "b"),
    ]:
        assert [b["x"] for b in memory.query(f"(<x> name <n>) ({test})")] == [found]
    assert [b["x"] for b in memory.query('(<x> name <n>) (#like(<n> "A*") = false)')] == ["b"]
    assert [b["x"] for b in memory.query("(<x> name <n>) ((#length(<n>) + 1) = 4)")] == ["b"]
    assert [b["x"] for b in memory.query("(<x> name <n>) (#upper(<n>) = BOB)")] == ["b"]
    assert [b["x"] for b in memory.query("(<x> name <n>) (#mod(<n> 5) = 2)")] == ["c"]
    assert memory.query("(<n> <- #max(#length(<m>))) from {(<x> name <m>)}") == [{"n": 7}]


def test_functions_of_ones_own() -> None:
    def is_prime(n: Any) -> bool:
        return isinstance(n, int) and n > 1 and all(n % d for d in range(2, n))

    memory = memory_of(
        '((<x> n <v>) (#is-prime(<v>)) -> (! <x> next #after(<v>)) "prime")',
        functions={"is-prime": is_prime, "after": lambda n: n + 1},
    )
    memory.state("(a n 7) (b n 8) (c n x)")
    assert memory.query("(<x> next <v>)") == [{"x": "a", "v": 8}]
    memory.retract("a", "n", 7)
    assert memory.query("(<x> next <v>)") == []


def test_a_function_that_is_not_there_is_an_error_with_its_place() -> None:
    with pytest.raises(
        RuleError, match=r"line 2, column 16: there is no function #prime: there are #starts-with"
    ):
        WorkingMemory().add_productions('\n((<x> is <y>) (#prime(<y>)) -> "n")')
    with pytest.raises(RuleError, match=r"#sum is computed over facts"):
        WorkingMemory().add_productions('((<x> is <y>) (#sum(<y>) > 2) -> "n")')


@pytest.mark.parametrize(
    ("functions", "says"),
    [
        ({"like": len}, "#like is there already"),
        ({"sum": len}, "#sum is there already"),
        ({"a b": len}, "no name for a function"),
        ({"f": 3}, "cannot be called"),
    ],
)
def test_functions_that_cannot_be_registered(functions: Any, says: str) -> None:
    with pytest.raises(UserError, match=says):
        WorkingMemory(functions=functions)


def test_a_function_that_fails_undoes_the_change_and_says_so() -> None:
    memory = memory_of(
        '((<x> n <v>) (#inverse(<v>) > 0) -> (! <x> is fine) "r")\n((<x> n <v>) -> (! <x> has n) "s")',
        functions={"inverse": lambda v: 1 / v},
    )
    memory.state("(a n 2)")
    before = list(memory)
    with pytest.raises(FunctionFailed, match=r"#inverse\(0\) failed: ZeroDivisionError: division by zero"):
        memory.add("b", "n", 0)
    assert list(memory) == before
    with pytest.raises(FunctionFailed, match="inverse"):
        memory.query("(a n <v>) (#inverse((<v> - 2)) > 0)")
    assert memory.add("b", "n", 4)


def test_a_function_that_is_not_pure_does_not_break_the_memory() -> None:
    answers = iter([False, True, True])
    memory = memory_of('((<x> n <v>) (#odd(<v>)) -> "r")', functions={"odd": lambda v: next(answers, False)})
    memory.add("a", "n", 1)
    assert memory.retract("a", "n", 1)


# What fails is undone ---------------------------------------------------------------------------------------------


def snapshot(memory: WorkingMemory) -> Any:
    agendas = {
        name: (dict(a.to_add), set(a.to_remove), set(a.committed))
        for name, a in ((n, memory.agenda(n)) for n in memory.productions)
    }
    return list(memory), [memory.event_of(f) for f in memory], agendas, [memory.provenance(f) for f in memory]


ENDLESS = """
((a n <x>) -> (! b n <x>) "copy")
((go on <y>) (b n <x>) -> (! b n (<x> + 1)) "count up")
((<x> n <v>) (<v> > 50) (here is <z>) as <f> -> (- <f>) (:= there is <z>) "leave")
((<x> n 1) -> "watch")
((here is <z>) -> (! <z> was here) "here")
"""


def test_a_change_that_comes_to_no_rest_is_undone_as_a_whole() -> None:
    memory = memory_of(ENDLESS, "(a n 1) (here is x) (there is y)", max_inferences=500)
    memory.commit("watch", add=memory.agenda("watch").tokens()[:1])
    before, told = snapshot(memory), list[FactChange]()
    memory.watch(told.append)
    with pytest.raises(RulesDoNotRest, match=r"'count up'.*the change is undone"):
        memory.add("go", "on", 1)
    assert snapshot(memory) == before
    came = [c.fact for c in told if c.asserted]
    assert sorted(map(str, came)) == sorted(str(c.fact) for c in told if not c.asserted)
    assert ("b", "n", 400) in came
    with pytest.raises(RulesDoNotRest):
        memory.state("(c d e) (go on 2)")
    assert snapshot(memory) == before, "of many facts all or none"
    memory.retract("a", "n", 1)
    assert memory.add("go", "on", 1), "it goes on as if nothing had been"


def test_a_production_that_comes_to_no_rest_is_not_added() -> None:
    memory = memory_of("", "(a n 1)", max_inferences=200)
    with pytest.raises(RulesDoNotRest):
        memory.add_production('((<x> n <v>) -> (!! <x> n (<v> + 1)) "count")')
    assert list(memory.productions) == []
    assert list(memory) == [("a", "n", 1)]
    with pytest.raises(RulesDoNotRest):
        memory.add_productions('((<x> n <v>) -> (! <x> m <v>) "m") ((<x> m <v>) -> (! <x> m (<v> + 1)) "up")')
    assert list(memory) == [("a", "n", 1)]


def test_a_commit_and_a_removal_that_come_to_no_rest_are_undone() -> None:
    memory = WorkingMemory(max_inferences=200)
    memory.add_productions('((<x> is on) -> (!! run <x> 1) "start")', controlled=True)
    memory.add_productions(
        '((run <x> <v>) -> (! run <x> (<v> + 1)) "count")\n((s is <y>) -> (! stop it -) "stop")'
    )
    memory.state("(a is on)")
    before = snapshot(memory)
    with pytest.raises(RulesDoNotRest):
        memory.commit("start", add=memory.agenda("start").tokens())
    assert snapshot(memory) == before
    memory.remove_production("count")
    memory.add_productions('((run <x> <v>) -{(stop it -)} -> (! run <x> (<v> + 1)) "count on")')
    memory.state("(s is set)")
    memory.commit("start", add=memory.agenda("start").tokens())
    before = snapshot(memory)
    with pytest.raises(RulesDoNotRest):
        memory.remove_production("stop")
    assert snapshot(memory) == before


@pytest.mark.parametrize(
    "rule",
    [
        "(<x> n <v>) -> (! <x> n (<v> * <v>))",
        "(<x> n <v>) as <f> -> (! <f> n <v>)",
        "(<x> n <v>) as <f> -> (! <f> in <f>) (! <f> n <f>)",
        "(a n <w>) (<l> <- #collect(<v>)) from {(<x> n <v>)} -> (! all n <l>)",
        "(<x> n <v>) -> (! <x> n #join(<v> <v>))",
        "(<x> n <v>) as <f> -> (- <f>) (!! <x> n (<v> + 1))",
        "(<x> n <v>) -> (:= <x> n (<v> + 1))",
    ],
)
def test_rules_that_grow_without_end_end_soon_and_are_undone(rule: str) -> None:
    memory = memory_of(f'({rule} "grow")', max_inferences=3000)
    for value in (7, "ab"):
        try:
            memory.add("a", "n", value)
        except (RulesDoNotRest, UserError) as exc:
            assert "'grow'" in str(exc)
            assert len(memory) == 0
        else:
            assert len(memory) < 3000
            memory = memory_of(f'({rule} "grow")', max_inferences=3000)


def test_random_changes_that_fail_leave_what_a_fresh_memory_has() -> None:
    """After each change, failed or not, tokens and facts are those of a memory that got only what was kept."""
    rules = """
    ((<x> linked <y>) -> (! <x> reaches <y>) "direct")
    ((<x> reaches <y>) (<y> linked <z>) -> (! <x> reaches <z>) "further")
    ((<x> reaches <x>) (loops are counted) (<x> n <v>) -> (! <x> n (<v> + 1)) "endless")
    (|{ (<x> linked <y>) | (<y> linked <x>) } -{(<x> reaches <x>)} -> "seen")
    """
    rng, failed = random.Random(5), 0
    memory = memory_of(rules, max_inferences=120)
    kept: dict[tuple[Any, Any, Any], None] = {}
    names = "abcd"
    facts = [(x, "linked", y) for x in names for y in names] + [(x, "n", 1) for x in names]
    facts.append(("loops", "are", "counted"))
    for _ in range(80):
        fact = rng.choice(facts)
        try:
            if fact in kept:
                memory.retract(*fact)
                del kept[fact]
            else:
                memory.add(*fact)
                kept[fact] = None
        except RulesDoNotRest:
            failed += 1
        fresh = memory_of(rules, max_inferences=120)
        fresh.add_all(kept)
        assert set(memory) == set(fresh)
        for name in memory.productions:
            assert set(map(str, memory.agenda(name).tokens())) == set(map(str, fresh.agenda(name).tokens()))
    assert failed > 2


# Programs ---------------------------------------------------------------------------------------------------------

TOML = """
facts = ["(a1 species rabbit) (a2 species wolf)", '(rabbit says "a \\"b\\"")']
schedule = "g = 0; main = g+;"
resolver = ["priority", "gather"]
seed = 7
all = ["gather"]

[[rules]]
name = "gather"
when = "(<x> species <s>) -{(species <s> -)}  # whose"
then = "(!! species <s> -)"
salience = 10

[[rules]]
name = "long names"
when = "(species <s> -) (#is-long(<s>))"
then = "(! <s> is long)"
"""


def test_a_program_as_toml() -> None:
    program = Program.from_toml(TOML, functions={"is-long": lambda s: len(s) > 4})
    assert (program.seed, [p.salience for p in program.productions]) == (7, [10, 0])
    report = program.shell().run(program.facts, seed=program.seed)
    assert report.ended == "accepted"
    assert report.memory.query("(<s> is long)") == [{"s": "rabbit"}]
    assert program.memory().query("(<s> is long)") == [{"s": "rabbit"}]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("facts = [", "no TOML"),
        ("facts = 3", "facts of the file is 3, and not a list"),
        ("fact = []", "key 'fact': there are facts, rules"),
        ("facts = ['(a b)']", "fact 1: line 1, column 5"),
        ("[[rules]]\nname = 'r'", "rule 1 has no 'when'"),
        ("[[rules]]\nname = 'r'\nwhen = '(<x> == 2)'", "rule 1, 'r': line 1, column 6: found '==': write ="),
        ("[[rules]]\nname = 'r'\nwhen = '(#f(<x>))'", "no function #f"),
        ("[[rules]]\nname = 'r'\nwhen = '(a b c)'\nthen = '(! a b c)) ((a b c) -> '", "rule 1"),
        ("resolver = 'fast'", "no resolver 'fast'"),
        ("all = ['x']", "names 'x', and there is no such rule"),
        ("seed = 'x'", "not a int"),
        ("schedule = 'main = a;'", "schedule: "),
        ("rules = [1]", "rule 1 is 1"),
    ],
)
def test_errors_of_programs_as_toml(text: str, says: str) -> None:
    with pytest.raises(UserError) as caught:
        Program.from_toml(text)
    assert says in str(caught.value)


def test_what_was_inferred_is_shown_and_the_text_can_be_stated_again() -> None:
    memory = memory_of('((<x> on <y>) -> (! <y> under <x>) "turn around")', "(a on b)")
    assert memory.text() == '(a on b)\n# (b under a)  by "turn around" (x=a y=b)'
    again = WorkingMemory()
    again.state(memory.text())
    assert list(again) == [("a", "on", "b")]
    assert [str(t) for t in memory.justifications(("b", "under", "a"))] == ["(x=a y=b)"]
