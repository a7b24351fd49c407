"""`metatree plan` and `metatree goals`, end to end."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import typer
from metatree_agents.cli._main import app, run
from metatree_agents.cli.schemas import planner as shapes
from metatree_agents.planner.hddl._language import Problem
from metatree_agents.planner.hddl.limits import SolverLimits
from metatree_agents.planner.hddl.plan import HtnPlan
from metatree_agents.planner.hddl.verify import verify_plan

from benchmarks.planning import transport
from tests.unit.agents.planner.hddl_texts import DELIVERY, TWO_PARCELS, tiny

pytestmark = pytest.mark.integration

HOUSE = """
name = "house"
facts = ["at(hall)"]

[relations]
at = 1
open = { arity = 1, dynamic = true }
said = { arity = 2, dynamic = true }

[[tasks]]
goal = "go(?to)"
when = "(at ?here)"
effect = "(and (not (at ?here)) (at ?to))"

[[tasks]]
goal = "enter(?room)"
when = "(open ?room)"

[[tasks]]
goal = "ask(?room)"
does = { ask = "May I see the ?room?" }
effect = "(said ?room ?result)"

[[rules]]
goal = "visit(?room)"
subgoals = ["go(?room)", "enter(?room)"]

[[rules]]
goal = "tour(?room)"
subgoals = ["ask(?room)", "go(?room)"]
"""


@dataclass
class Done:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Command = Callable[..., Done]


@pytest.fixture
def metatree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Return a function that runs a command in a folder with two HDDL files and a domain in TOML."""
    monkeypatch.chdir(tmp_path)
    for name, text in (("d.hddl", DELIVERY), ("p.hddl", TWO_PARCELS), ("house.toml", HOUSE)):
        Path(name).write_text(text)

    def call(*arguments: str) -> Done:
        code = run(arguments)
        out, err = capsys.readouterr()
        return Done(code, out, err)

    return call


@pytest.mark.parametrize("goal", ["visit(", "visit(kitchen", "visit(kitchen) now"])
def test_a_goal_without_its_end_is_refused(metatree: Command, goal: str) -> None:
    done = metatree("goals", "start", "house.toml", goal)
    assert (done.code, done.out) == (2, "")
    assert done.err.count("\n") == 1
    assert f"{goal!r} does not end with `)`: write `name(term, …)`" in done.err


def test_a_plan_is_printed_in_the_format_of_ipc(
    metatree: Command, conforms: Callable[[Any, Any], None]
) -> None:
    done = metatree("plan", "d.hddl", "p.hddl")
    assert done.code == 0
    lines = done.out.splitlines()
    assert lines[0] == "; 0 first"
    assert "==>" in lines
    assert lines[-1] == "<=="
    shape = metatree("plan", "d.hddl", "p.hddl", "--json").json
    conforms(shape, shapes.PlanOutput)
    assert shape["text"].splitlines() == lines
    assert shape["ended"] == "solved"


def test_cheaper_plans_are_looked_for_and_told_of(metatree: Command) -> None:
    done = metatree("plan", "d.hddl", "p.hddl", "--json", "--improve-for", "0.5")
    costs = [one["cost"] for one in done.json["found"]]
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] == done.json["cost"] == len(done.json["steps"])
    assert f"a plan of {costs[0]:g} steps after " in done.err
    assert "Ctrl-C takes the best so far" in done.err
    first = metatree("plan", "d.hddl", "p.hddl", "--json", "--first")
    assert len(first.json["found"]) == 1
    assert first.err == ""
    both = metatree("plan", "d.hddl", "p.hddl", "--first", "--improve-for", "1")
    assert (both.code, both.err) == (
        2,
        "metatree: --first and --improve-for exclude each other: leave one out\n",
    )


def test_a_plan_is_carried_out_as_an_agent(metatree: Command, conforms: Callable[[Any, Any], None]) -> None:
    done = metatree("plan", "d.hddl", "p.hddl", "--run", "--json")
    assert (done.code, done.json["status"]) == (0, "complete")
    shown = metatree("goals", "show", done.json["agent"][:6], "--json").json
    conforms(shown, shapes.AgentOutput)
    assert "at(b, park)" in shown["facts"]
    assert {one["status"] for one in shown["intents"]} == {"complete"}


def test_no_plan_and_the_limit_have_their_exit_codes(metatree: Command) -> None:
    domain, problem = tiny("(:task t)")
    Path("d.hddl").write_text(domain)
    Path("p.hddl").write_text(problem)
    none = metatree("plan", "d.hddl", "p.hddl")
    assert (none.code, none.out) == (1, "")
    assert "there is no plan" in none.err
    domain, problem = tiny(
        "(:task t) (:method m :task (t) :ordered-subtasks (and (t) (a))) (:method n :task (t))"
        " (:action a :effect (p a))",
        goal="(q)",
    )
    Path("d.hddl").write_text(domain)
    Path("p.hddl").write_text(problem)
    limit = metatree("plan", "d.hddl", "p.hddl", "--seconds", "0.2")
    assert limit.code == 3
    assert "limit reached: no plan was found in 0.2 s: raise --seconds" in limit.err


def test_one_condition_takes_no_longer_than_the_limit(metatree: Command) -> None:
    """Relations that are derived from each other, and one for all of twelve objects: by the 60th and 12th power."""
    twice = "\n".join(
        f'r{n} = {{ arity = 1, definition = "(or (r{n + 1} ?a) (r{n + 1} ?a))", parameters = ["?a"] }}'
        for n in range(60)
    )
    Path("d.toml").write_text(
        f'[relations]\n{twice}\nr60 = 1\n[[tasks]]\ngoal = "go(?a)"\nwhen = "(r0 ?a)"\n'
    )
    limit = metatree("plan", "d.toml", "go(x)", "--seconds", "0.2")
    assert (limit.code, limit.out) == (3, "") and "no plan was found in 0.2 s: raise --seconds" in limit.err
    variables = " ".join(f"?v{n}" for n in range(12))
    every = "".join(f" (not (p ?v{n}))" for n in range(12))
    Path("q.hddl").write_text(
        "(define (domain d) (:types t) (:predicates (p ?a - t)) (:task go :parameters (?a - t))"
        " (:method m :parameters (?a - t) :task (go ?a) :subtasks (act ?a)) (:action act :parameters (?a - t)"
        f" :precondition (forall ({variables} - t) (or{every})) :effect (p ?a)))"
    )
    objects = " ".join(f"o{n}" for n in range(100))
    Path("p.hddl").write_text(
        f"(define (problem q) (:domain d) (:objects {objects} - t)"
        " (:htn :parameters () :subtasks (go o0)) (:init (p o1)))"
    )
    limit = metatree("plan", "q.hddl", "p.hddl", "--seconds", "0.2")
    assert (limit.code, limit.out) == (3, "") and "no plan was found in 0.2 s: raise --seconds" in limit.err


def test_limits_of_memory_and_of_checking_are_distinguished(
    metatree: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("d.hddl").write_text(transport.DOMAIN)
    Path("p.hddl").write_text(transport.problem(60, ordered=False))
    grown = count(0, 2_000_000)  # not what the process has: tests before this one may have left it room
    with monkeypatch.context() as patched:
        patched.setattr("metatree_agents.planner.hddl.limits.resident_bytes", lambda: next(grown))
        full = metatree("plan", "d.hddl", "p.hddl", "--memory", "1")
    assert (full.code, full.out) == (3, "")
    assert "limit reached: no plan was found in 1 MB: raise --memory" in full.err

    def late(made: HtnPlan, problem: Problem, limits: SolverLimits | None = None) -> None:
        if limits is not None:
            limits.deadline = 0.0
        verify_plan(made, problem, limits)

    monkeypatch.setattr("metatree_agents.planner.hddl.verify.verify_plan", late)
    unchecked = metatree("plan", "d.hddl", "p.hddl")
    assert (unchecked.code, unchecked.out) == (3, "")
    assert "a plan was found, but it could not be checked in 60 s: raise --seconds" in unchecked.err


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("d.hddl", b"", "d.hddl:1:1: the text is empty"),
        ("d.hddl", b"(define (domain d)\n ; \xff)", "d.hddl:2:4: this is not UTF-8 text"),
        ("d.hddl", b"(" * 3000 + b")" * 3000, "d.hddl:1:60: this is inside 60 other parentheses"),
        ("d.toml", b"a = " + b"[" * 3000, "too many brackets are inside one another"),
        (
            "d.toml",
            b"[relations]\np = 0\n[[tasks]]\ngoal = 'go()'\nwhen = '"
            + b"(not " * 3000
            + b"(p)"
            + b")" * 3000
            + b"'",
            "inside 60 other parentheses",
        ),
        *(
            ("d.toml", f"[relations]\np = 1\n[[tasks]]\ngoal = 'go()'\nwhen = '{when}'\n".encode(), said)
            for when, said in (
                ("(not)", "d.toml:5:9: task 1: `not` takes 1 argument, not 0"),
                ("(>= (p) 3)", "d.toml:5:10: task 1: `>=`: numbers are not supported in conditions"),
            )
        ),
    ],
)
def test_files_that_cannot_be_read_are_reported_with_the_place(
    metatree: Command, name: str, data: bytes, said: str
) -> None:
    Path(name).write_bytes(data)
    done = metatree("plan", name, "go()")
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert done.err.count("\n") == 1


def test_a_goal_of_a_toml_domain_is_planned_and_run(metatree: Command) -> None:
    planned = metatree("plan", "house.toml", "go(kitchen)")
    assert (planned.code, planned.out) == (0, "· go(kitchen)\n")
    failed = metatree("plan", "house.toml", "enter(kitchen)")
    assert failed.code == 1
    assert "does not hold: (open kitchen)" in failed.err
    ran = metatree("plan", "house.toml", "go(kitchen)", "--run", "--json")
    assert (ran.code, ran.json["status"], ran.json["facts"]) == (0, "complete", ["at(kitchen)"])


def test_agents_are_started_signalled_explained_and_listed(
    metatree: Command, conforms: Callable[[Any, Any], None]
) -> None:
    waits = metatree("goals", "start", "house.toml", "visit(kitchen)", "--id", "guest", "--wait")
    assert waits.code == 4
    assert "… enter(kitchen): deferred" in waits.out
    done = metatree("goals", "signal", "guest", "facts", "--add", "open(kitchen)")
    assert done.code == 0, done.err
    assert "guest  visit(kitchen): complete" in done.out
    listed = metatree("goals", "list", "--json").json
    conforms(listed, shapes.AgentsOutput)
    assert [(one["agent"], one["status"]) for one in listed["agents"]] == [("guest", "complete")]
    explained = metatree("goals", "explain", "guest", "--json").json
    conforms(explained, shapes.ExplainOutput)
    assert {one["verdict"] for one in explained["considered"]} == {"chosen"}
    assert "visit(kitchen)" in metatree("goals", "explain", "guest").out


def test_an_agent_asks_and_goes_on_with_the_answer(metatree: Command) -> None:
    asks = metatree("goals", "start", "house.toml", "tour(cellar)", "--id", "guest")
    assert asks.code == 4
    assert "? May I see the cellar?" in asks.out
    done = metatree("goals", "answer", "guest", "yes", "--json")
    assert (done.code, done.json["facts"]) == (0, ["at(cellar)", "said(cellar, yes)"])


def test_an_agent_is_cancelled(metatree: Command) -> None:
    metatree("goals", "start", "house.toml", "tour(cellar)", "--id", "guest")
    assert metatree("goals", "cancel", "guest", "--json").json["status"] == "cancelled"
    assert "has ended" in metatree("goals", "cancel", "guest").err


def test_a_created_agent_is_driven_later(metatree: Command) -> None:
    made = metatree("goals", "start", "house.toml", "go(attic)", "--id", "a", "--no-run", "--json")
    assert made.json["status"] == "pending"
    assert "a  complete   go(attic)" in metatree("goals", "run").out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("plan", "d.hddl", "nix.hddl"), "cannot read 'nix.hddl'"),
        (("plan", "p.hddl", "d.hddl"), "p.hddl:2:9: expected `(domain NAME)`"),
        (("plan", "house.toml", "fly(moon)"), "known goals: ask, enter, go, tour, visit"),
        (("plan", "house.toml", "go(?x)"), "?x is a variable"),
        (("plan", "house.toml", "go(a"), "write `name(term, …)`"),
        (("goals", "list"), "there are no agents"),
        (("goals", "start", "nix.toml", "go(a)"), "cannot read 'nix.toml'"),
        (("goals", "start", "nix", "go(a)"), "give MODULE:NAME"),
        (("goals", "start", "house.toml", "go(a)", "--fact", "at(a, b)"), "is no fact of the domain"),
    ],
)
def test_wrong_use_is_one_line_that_helps(metatree: Command, arguments: tuple[str, ...], said: str) -> None:
    done = metatree(*arguments)
    if done.code == 0:  # a forgiving reading is fine, too
        return
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert done.err.count("\n") == 1


def test_the_help_names_each_command_under_a_heading_on_one_screen(metatree: Command) -> None:
    shown = metatree("--help").out.splitlines()
    assert len(shown) <= 60 and max(map(len, shown)) <= 80
    headings = [line for line in shown if line.endswith(":") and not line.startswith(" ")]
    assert headings == ["Options:", "Ask:", "Remember:", "Look back, go on:", "Plan:", "Serve:", "Set up:"]
    commands = typer.main.get_command(app()).commands  # type: ignore[attr-defined]
    for name, command in commands.items():
        assert [line for line in shown if line.split()[:1] == [name]] == [
            f"  {name:10}  {command.short_help}"
        ]


def test_a_group_without_a_command_shows_its_help(metatree: Command) -> None:
    done = metatree("goals")
    assert (done.code, done.out) == (2, "")
    assert any(line.split()[:1] == ["explain"] for line in done.err.splitlines())


def test_unknown_agents_and_events_are_named(metatree: Command) -> None:
    metatree("goals", "start", "house.toml", "tour(cellar)", "--id", "guest")
    for arguments, said in (
        (("show", "nobody"), "no agent called 'nobody'"),
        (("signal", "guest", "shout"), "no event is called 'shout'"),
        (("signal", "guest", "assert"), "which goal?"),
        (("signal", "guest", "facts", "--add", "at(x)"), "is static"),
    ):
        done = metatree("goals", *arguments)
        assert done.code == 2, done
        assert said in done.err


BROKEN = [
    ('relations = { at = "one" }', "relations, at: expected a table"),
    ("[[tasks]]\nname = 'x'", "tasks 1, goal: it is missing"),
    ("[[tasks]]\ngoal = 'go()'\ncolour = 1", "tasks 1, colour: unknown key"),
    ("[[tasks]]\ngoal = 'go()'\ncost = []", "tasks 1, cost: input should be a valid number, or"),
    ("[[rules]]\ngoal = 'go()'\norder = [[0]]", "at least 2 items"),
    (
        "[[tasks]]\ngoal = 'go()'\nwhen = '(exists (?x - not) (at ?x))'\n[relations]\nat = 1",
        "relation is called 'not'",
    ),
    ("facts = ['at(']", "does not end with `)`"),
    ("[[tasks]]\ngoal = 'go()'\nwhen = '(at'", "never closed"),
    ("[[tasks]]\ngoal = 'go()'\n[[rules]]\ngoal = 'go()'", "primitive and compound"),
    ("tasks = 1", "tasks: expected a list"),
    ("= 1", "Invalid"),
]


@pytest.mark.parametrize(("text", "said"), BROKEN)
def test_a_broken_domain_file_is_refused(metatree: Command, text: str, said: str) -> None:
    Path("broken.toml").write_text(text)
    done = metatree("plan", "broken.toml", "go()")
    assert done.code == 2
    assert said in done.err
    assert "broken.toml" in done.err


def test_a_domain_in_yaml(metatree: Command) -> None:
    Path("house.yaml").write_text("tasks:\n  - goal: greet(?who)\n    description: says hello\n")
    assert metatree("plan", "house.yaml", "greet(ann)").code == 0
    Path("house.yaml").write_text("tasks: [")
    assert metatree("plan", "house.yaml", "greet(ann)").code == 2


WAITING = """
name = "shop"

[relations]

[goals]
nap = { timeout_s = 3600 }

[[tasks]]
goal = "pay(?n)"
does = { receive = "paid ?n" }

[[tasks]]
goal = "nap()"
does = { sleep = 0 }

[[tasks]]
goal = "late()"
when = "(open)"

[relations.open]
arity = 0
dynamic = true

[[rules]]
goal = "sell(?n)"
subgoals = ["nap()", "pay(?n)"]
"""


def test_a_message_is_sent_and_what_failed_is_tried_again(metatree: Command) -> None:
    Path("shop.toml").write_text(WAITING.replace("[relations]\n", "", 1))
    waits = metatree("goals", "start", "shop.toml", "sell(17)", "--id", "a", "--json")
    assert (waits.code, waits.json["waits"]) == (4, {"3": "a message 'paid 17'"})
    assert "waits for a message 'paid 17'" in metatree("goals", "show", "a").out
    assert metatree("goals", "signal", "a", "send").code == 2
    done = metatree("goals", "signal", "a", "send", "--name", "paid 17", "--value", '{"euros": 3}', "--json")
    assert (done.code, done.json["intents"][-1]["result"]) == (0, {"euros": 3})
    assert metatree("goals", "start", "shop.toml", "late()", "--id", "b").code == 5
    assert "no candidate" in metatree("goals", "show", "b").out
    again = metatree("goals", "retry", "b", "--json")
    assert (again.code, again.json["status"]) == (5, "failed")
    refused = metatree("goals", "retry", "a")
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert "it has ended (complete)" in refused.err


def test_schedules_are_kept_listed_and_forgotten(metatree: Command) -> None:
    Path("shop.toml").write_text(WAITING.replace("[relations]\n", "", 1))
    options = ("--cron", "30 6 * * 1-5", "--name", "mornings", "--zone", "Europe/Berlin")
    made = metatree("goals", "schedule", "shop.toml", "nap()", *options, "--json")
    assert (made.code, made.json["schedules"][0]["goal"]) == (0, "nap()")
    assert "mornings  30 6 * * 1-5  Europe/Berlin  nap(), next 20" in metatree("goals", "schedules").out
    for wrong, says in (
        (("--cron", "x", "--name", "a"), "no cron expression"),
        (("--cron", "0 6 * * *", "--name", "a", "--zone", "Nowhere"), "no time zone"),
        (("--cron", "0 6 * * *", "--name", "a", "--missed", "few"), "use one of"),
    ):
        refused = metatree("goals", "schedule", "shop.toml", "nap()", *wrong)
        assert refused.code == 2
        assert says in refused.err
    assert metatree("goals", "unschedule", "mornings").code == 0
    assert metatree("goals", "unschedule", "mornings").code == 2
    assert metatree("goals", "schedules").code == 1
