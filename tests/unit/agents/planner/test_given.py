"""Whatever user code gives to domains and agents: it works, or is an error of the user that says what is wrong."""

from __future__ import annotations

import re
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from metatree_agents.planner import Agents, Domain, Done
from metatree_agents.planner.domain.files import facts_of, read_file
from metatree_agents.planner.domain.model import library_data, library_from

from metatree import UserError
from metatree.errors import MetatreeError
from tests.profiles import examples

SOON_MS = 30_000
"""Where it would never come to an end."""

plain = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.floats(),
    st.sampled_from(
        ["", "h", "?x", "?", "go", "go(z)", "at(h)", "go(", "(at ?x)", "(not (at h))", "a b", ")", "\ud800"]
    ),
    st.text(max_size=5),
    st.binary(max_size=2),
    st.just(10**3000),
    st.builds(object),
    st.just(len),
)
anything = st.recursive(
    plain,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(
            st.sampled_from(["sleep", "ask", "agent", "facts", "tool", "goal", "at", "add"]),
            inner,
            max_size=2,
        )
    ),
    max_leaves=5,
)
likely = st.sampled_from(
    ["go(z)", "x()", "(at ?h)", "(at ?z)", ["go(z)"], [["at", "h"]], {"ask": "May I?"}, 1, True]
)
values = st.one_of(likely, anything)

TASK = (
    *("when", "effect", "cost", "does", "name", "title", "repeatable"),
    *("attempts", "backoff_s", "timeout_s", "heartbeat_s", "undo"),
)
RULE = ["when", "subgoals", "order", "cost", "name", "title"]
START = (
    *("seed", "least_cost", "replan", "on_stuck", "concurrency", "depth", "nodes"),
    *("plan_s", "timeout_s", "deadline", "id", "facts", "colour"),
)


def _domain() -> Domain:
    domain = Domain("home")
    domain.relation("at", 1)
    domain.relation("p", 2, dynamic=True)
    domain.task("go(?to)", when="(at ?h)", effect="(and (not (at ?h)) (at ?to))")
    domain.task("wait()", does={"receive": "go"})
    domain.rule("later(?to)", subgoals=["wait()", "go(?to)"])
    return domain


@settings(max_examples=examples(300), deadline=SOON_MS)
@given(
    st.sampled_from(["task", "rule"]),
    st.one_of(st.just("x()"), values),
    st.dictionaries(st.sampled_from([*TASK, *RULE]), values, max_size=2),
)
def test_a_definition_is_taken_or_refused(kind: str, goal: Any, arguments: dict[str, Any]) -> None:
    domain = _domain()
    known = {"task": TASK, "rule": RULE}[kind]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of goals that nothing reaches
        try:
            getattr(domain, kind)(goal, **{name: value for name, value in arguments.items() if name in known})
            domain.check()
        except UserError as exc:
            assert str(exc)
            return
        library_from(library_data(domain.library))
        does = [one.does for one in domain.library.actions.values()]
        if any("sleep" in one or "until" in one for one in does):
            return
        with Agents(":memory:", domain) as agents:
            agents.run(
                agents.start("x()", [("at", "h")], plan_s=2.0, nodes=1_000)
            ) if domain.library.for_goal("x") else None


@settings(max_examples=examples(200), deadline=SOON_MS)
@given(st.one_of(st.just("go(z)"), values), st.dictionaries(st.sampled_from(START), values, max_size=2))
def test_an_agent_is_begun_or_refused(goal: Any, arguments: dict[str, Any]) -> None:
    with Agents(":memory:", _domain()) as agents:
        try:
            agent = agents.start(goal, **{"facts": [("at", "h")], **arguments})
        except UserError as exc:
            assert str(exc)
        else:
            first = agents.run(agent)
            assert agents.show(agent).facts == first.facts, "its journal tells the same"


@settings(max_examples=examples(200), deadline=SOON_MS)
@given(
    st.one_of(st.sampled_from(["facts", "assert", "cancel", "fail", "send", "child"]), values),
    st.dictionaries(st.sampled_from(["add", "remove", "goal", "why", "name", "value"]), values, max_size=2),
)
def test_an_event_is_heard_or_refused(name: Any, arguments: dict[str, Any]) -> None:
    with Agents(":memory:", _domain()) as agents:
        agent = agents.run(agents.start("later(z)", [("at", "h")])).id
        try:
            agents.event(agent, name, **arguments)
        except MetatreeError as exc:
            assert str(exc)
        agents.run(agent)


@settings(max_examples=examples(150), deadline=SOON_MS)
@given(
    values,
    values,
    values,
    st.dictionaries(st.sampled_from(["zone", "missed", "overlap", "seed"]), values, max_size=1),
)
def test_a_schedule_is_kept_or_refused(name: Any, goal: Any, facts: Any, more: dict[str, Any]) -> None:
    pytest.importorskip("cronsim")
    with Agents(":memory:", _domain()) as agents:
        for arguments in (
            (name, "* * * * *", "go(z)"),
            ("n", goal, "go(z)"),
            ("n", "* * * * *", goal, facts),
        ):
            try:
                agents.schedule(*arguments, **more)
            except UserError as exc:
                assert str(exc)
        assert len(agents.schedules()) <= 2


@settings(max_examples=examples(150), deadline=SOON_MS)
@given(values, values)
def test_what_bodies_and_rules_return_ends_the_agent_soon(returned: Any, facts: Any) -> None:
    domain = _domain()
    domain.task("x()")(lambda: Done(returned, facts=facts))
    domain.rule("y()")(lambda: returned)
    with Agents(":memory:", domain) as agents:
        for goal in ("x()", "y()"):
            info = agents.run(agents.start(goal, [("at", "h")]))
            assert info.status in ("complete", "failed", "waiting")


REFUSED: list[tuple[Callable[[Any], Any], str]] = [
    (lambda d: d.task("x()", does={"serach": "q"}), "give one of 'search', "),
    (lambda d: d.task("x()", does={"sleep": 1, "ask": "?"}), "give one of"),
    (lambda d: d.task("x()", does={"sleep": 1, "into": "p"}), "nothing is called 'into' there"),
    (lambda d: d.task("x()", cost="dear"), "cost 'dear' is neither a number nor a variable"),
    (lambda d: d.task("x()", cost=float("nan")), "cost=nan: give a finite number or a text"),
    (lambda d: d.task("x()", attempts="3"), "attempts='3': give a whole number"),
    (lambda d: d.task("x()", attempts=2, backoff_s=-1), "backoff_s=-1: use seconds, 0 or more"),
    (lambda d: d.task("x()", repeatable="no"), "repeatable='no': give True or False"),
    (lambda d: d.rule("x()", subgoals="go(a)"), "subgoals='go(a)': give a list such as"),
    (lambda d: d.rule("x()", subgoals=[5]), "a sub-goal cannot be 5: write"),
    (lambda d: d.rule("x()", subgoals=["go(a)"], order=[["a", "b"]]), "give True, False, or pairs"),
    (lambda d: d.task("x()", when=("nope", 1)), "is no condition: write it as a text"),
    (lambda d: d.relation("q", "two"), "arity='two': give a whole number"),
    (lambda d: d.task("x()")(5), "5 is no function"),
]


@pytest.mark.parametrize(("define", "says"), REFUSED)
def test_errors_say_what_to_write(define: Callable[[Any], Any], says: str) -> None:
    domain = _domain()
    with pytest.raises(UserError, match=re.escape(says)):
        define(domain)
        domain.check()


@pytest.mark.parametrize(
    ("facts", "says"),
    [
        ("at(h)", "give a list of them"),
        ([[]], r"a fact cannot be \[\]: write 'at\(home\)'"),
        ([("at", [1])], r"the value \[1\] cannot be kept"),
        ([("at", float("nan"))], "no finite number"),
        ([("at", "?x")], "is a variable"),
        ([("at", 1, 2)], "is no fact of the domain 'home'"),
        ([("at", 10**2000)], "more than 1000 digits"),
        ([("at", "\ud800")], "half of a character"),
    ],
)
def test_facts_that_cannot_be_kept_are_refused(facts: Any, says: str) -> None:
    with Agents(":memory:", _domain()) as agents, pytest.raises(UserError, match=says):
        agents.start("go(z)", facts)


def test_facts_are_written_as_texts_or_sequences() -> None:
    with Agents(":memory:", _domain()) as agents:
        for facts in (["at(h)"], [("at", "h")], [["at", "h"]], iter(["(at h)"])):
            assert agents.run(agents.start("go(z)", facts)).status == "complete"


def test_facts_of_ten_megabytes_and_a_hundred_thousand_of_them_are_kept() -> None:
    domain = _domain()
    domain.task("x()", when="(and (at 77) (not (at 100000)))", effect="(at home)")
    with Agents(":memory:", domain) as agents:
        large = agents.run(agents.start("go(z)", [("at", "x" * 10_000_000)]))
        assert large.status == "complete"
        many = agents.run(agents.start("x()", [("at", n) for n in range(100_000)]))
        assert many.status == "complete"
        assert len(many.facts) == 100_001


def test_a_rule_that_returns_goals_without_end_fails_and_says_so() -> None:
    domain = _domain()
    domain.rule("x()")(lambda: (("go", n) for n in iter(int, 1)))
    with Agents(":memory:", domain) as agents:
        info = agents.run(agents.start("x()"))
        assert (info.status, "more than 100,000 goals" in info.detail) == ("failed", True)


@pytest.mark.parametrize(
    ("returned", "says"),
    [
        (lambda *_: 5, "the reader of relation 'p' failed: TypeError: 'int' object is not iterable"),
        (lambda *_: 1 / 0, "the reader of relation 'p' failed: ZeroDivisionError"),
        (lambda *_: [([1], 2)], r"the reader of relation 'p': the value \[1\] cannot be kept"),
        (lambda *_: ((n, n) for n in iter(int, 1)), "returned more than 1,000 facts"),
    ],
)
def test_a_reader_that_fails_fails_the_goal_and_is_named(
    returned: Callable[..., Any], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("metatree_agents.planner.domain.facts.MOST_ROWS", 1_000)
    domain = _domain()
    domain.reader("p")(returned)
    domain.task("x()", when="(and (p ?a ?b) (not (p ?b ?a)))")
    with Agents(":memory:", domain) as agents:
        info = agents.run(agents.start("x()"))
    assert info.status == "failed"
    assert re.search(says, info.detail), info.detail


def test_a_body_that_returns_what_is_no_fact_fails_and_the_agent_with_it() -> None:
    domain = _domain()
    domain.task("x()")(lambda: Done(1, facts=[("p", [1], {})]))
    with Agents(":memory:", domain) as agents:
        info = agents.run(agents.start("x()"))
        assert (info.status, "cannot be kept" in info.detail) == ("failed", True)
        assert agents.show(info.id).status == "failed"


SHOP = """\
facts = ["at(depot)"]

[relations]
at = 1
near = { parameters = ["?a", "?b"], definition = "(= ?a ?b)" }

[goals.deliver]
timeout_s = 3600

[[tasks]]
goal = "go(?to)"
when = "(at ?here)"
effect = "(and (not (at ?here)) (at ?to))"
cost = 1

[[rules]]
goal = "deliver(?to)"
subgoals = [
  "go(depot)",
  "go(?to)",
]
order = [[0, 1]]
"""

PLACES = [
    ('when = "(at ?here)"', 'when = "(at ?here"', "12:9: task 1: this `(` is never closed"),
    ('when = "(at ?here)"', 'when = "(in ?here)"', "10:1: task 'go': no relation is called 'in'"),
    ("cost = 1", "cost = []", "14:1: tasks 1, cost: "),
    ("cost = 1", "cost = ", "14:8: Invalid value"),
    ("cost = 1", "colour = 1", "14:1: tasks 1, colour: unknown key"),
    ('  "go(?to)",', '  "go(?to",', "20:4: rule 1: 'go(?to' does not end with `)`"),
    ("order = [[0, 1]]", "order = [[0, 7]]", "16:1: rule 'deliver': its order names a sub-goal"),
    ("at = 1", "at = 'x'", "4:1: relations, at: expected a table"),
    ("timeout_s = 3600", "timeout_s = -1", "7:1: goal 'deliver': "),
    ("[[rules]]", "[[rule]]", "16:1: rule: unknown key"),
    ('"at(depot)"', '"at("', "1:11: fact 1: 'at(' does not end with `)`"),
]


@pytest.mark.parametrize(("right", "wrong", "says"), PLACES)
def test_errors_of_files_have_line_and_column(tmp_path: Path, right: str, wrong: str, says: str) -> None:
    file = tmp_path / "shop.toml"
    assert right in SHOP
    file.write_text(SHOP.replace(right, wrong, 1))
    with pytest.raises(UserError) as caught:
        Domain.from_file(file)
        facts_of(read_file(file)["facts"], str(file))
    assert str(caught.value).startswith(f"{file}:{says}")


def test_errors_of_yaml_have_line_and_column(tmp_path: Path) -> None:
    pytest.importorskip("yaml")
    file = tmp_path / "shop.yaml"
    for text, says in (
        ("tasks:\n  - goal: go()\n    when: (at ?x\n", "3:11: task 1: this `(` is never closed"),
        ("tasks:\n  - goal: go()\n    cost: []\n", "3:11: tasks 1, cost: "),
        ("tasks:\n  - goal: go()\n    when: (at ?x)\n", "2:5: task 'go': no relation is called 'at'"),
        ("tasks: [1\nrules: 2\n", "2:6: while parsing"),
    ):
        file.write_text(text)
        with pytest.raises(UserError) as caught:
            Domain.from_file(file)
        assert str(caught.value).startswith(f"{file}:{says}"), str(caught.value)


tokens = re.findall(r"\w+|\s+|.", SHOP)


@settings(max_examples=examples(250), deadline=SOON_MS)
@given(st.data())
def test_a_file_with_a_few_words_changed_is_read_or_refused_with_its_place(data: st.DataObject) -> None:
    words = list(tokens)
    for _ in range(data.draw(st.integers(1, 3))):
        if not words:
            break
        place = data.draw(st.integers(0, len(words) - 1))
        match data.draw(st.sampled_from(["drop", "double", "replace", "cut"])):
            case "drop":
                del words[place]
            case "double":
                words.insert(place, words[place])
            case "cut":
                words[place:] = words[place : place + 1]
            case _:
                words[place] = data.draw(
                    st.sampled_from([*tokens, "\x00", "é", "{", "'''", "-1", "1e999", "?x"])
                )
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of goals that nothing reaches
        file = Path(folder) / "shop.toml"
        file.write_text("".join(words))
        try:
            domain = Domain.from_file(file)
            facts = facts_of(read_file(file).get("facts", []), str(file))
        except UserError as exc:
            assert re.match(re.escape(str(file)) + r":\d+:\d+: .", str(exc)), str(exc)
            return
        if domain.library.for_goal("deliver"):
            with Agents(":memory:", domain) as agents:
                try:
                    agent = agents.start("deliver(x)", facts, plan_s=2.0)
                except UserError:
                    return
                agents.run(agent)
