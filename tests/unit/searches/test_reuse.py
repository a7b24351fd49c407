"""What is reused of tool calls: a change is made once in each run, and a reused result says so."""

from __future__ import annotations

import asyncio
from math import inf, nan
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metatree import Answer, Node, Reading, SearchResult, Tree, UserError, asearch, resume, search, tool
from metatree._util.process import this_process
from metatree.durable import Record
from metatree.durable.sql_journal import SqlJournal
from metatree.storage.store import Store
from metatree.testing.parts import (
    FunctionRouter,
    PlainComposer,
    PlainDescriber,
    ScriptedReader,
    ScriptedToolCaller,
    tree_of,
)
from metatree.tools.call_log import Call, CallLog, CallResult, RecordedTool
from metatree.tools.tool import Tool
from tests.profiles import examples

QUESTION = "Was it sent?"


class Reads(ScriptedReader):
    """Learns something at the node, so that each frame starts again, and answers from what the tool said."""

    def __init__(self, *, restarts: bool = True) -> None:
        super().__init__({})
        self._restarts = restarts

    async def read(self, request: Any) -> Reading:
        self.requests.append(request)
        if "sent to" in request.content and not self._restarts:
            return Reading((Answer(QUESTION, "yes", "sent to"),))
        return Reading(notes="learned") if self._restarts else Reading(useful=False)


def parts(to: str, *, restarts: bool = False) -> dict[str, Any]:
    return {
        "router": FunctionRouter(lambda request: request.options[0].id),
        "tool_caller": ScriptedToolCaller({"mail": {"to": to}}),
        "reader": Reads(restarts=restarts),
        "composer": PlainComposer(),
        "describer": PlainDescriber(),
        "evidence": False,
        "permit": lambda *_: True,
    }


def mailer(sent: list[str], **options: Any) -> Tool:
    @tool(kind="exploratory", **{"changes": True, "kinds": ["note"], **options})
    def mail(to: str) -> str:
        """Send a letter."""
        sent.append(to)
        return f"sent to {to}"

    return mail


def run(tree: Tree, mail: Tool, to: str = "ann", *, restarts: bool = False, **given: Any) -> SearchResult:
    return search(QUESTION, tree=tree, tools=[mail], **{**parts(to, restarts=restarts), **given})


def test_a_tool_that_changes_something_is_called_once_in_each_run() -> None:
    sent: list[str] = []
    tree = tree_of({"a": "text"})
    for number in (1, 2, 3):
        result = run(tree, mailer(sent), restarts=True)
        assert len([e for e in result.trace if e.event == "restart"]) == 1, "it came by the tool twice"
        assert sent == ["ann"] * number


def test_runs_of_one_name_in_two_journals_are_two_runs() -> None:
    sent: list[str] = []
    tree = tree_of({"a": "text"})
    for _ in range(2):
        journal = SqlJournal(Store.open(":memory:"))
        assert run(tree, mailer(sent), run_id="daily", journal=journal).answer == "yes"
    assert sent == ["ann", "ann"]


def test_a_tool_that_changes_nothing_is_reused_by_other_runs() -> None:
    sent: list[str] = []
    tree = tree_of({"a": "text"})
    for _ in range(3):
        assert run(tree, mailer(sent, changes=False)).answer == "yes"
    assert sent == ["ann"]


def test_whoever_wants_a_change_once_for_ever_says_so() -> None:
    sent: list[str] = []
    tree = tree_of({"a": "text"})
    for _ in range(3):
        assert run(tree, mailer(sent, reuse="forever")).answer == "yes"
    assert sent == ["ann"]


def test_a_tool_that_changes_something_and_makes_nodes_is_called_once_in_each_run() -> None:
    sent: list[str] = []

    @tool(kind="interactive", changes=True, kinds=["note"])
    def mail(to: str) -> Node:
        sent.append(to)
        return Node("", "A letter", "What was sent.", content=f"sent to {to}", kind="letter")

    tree = tree_of({"a": "text"})
    run(tree, mail, start_node="a", restarts=True)
    run(tree, mail, start_node="a", restarts=True)
    assert sent == ["ann", "ann"]
    assert len(tree.children("a")) == 2


@pytest.mark.parametrize("wrong", ["for ever", "", "once", 0, -1, nan, inf, True, ["run"]])
def test_what_is_no_value_of_reuse_is_refused_where_the_tool_is_made(wrong: Any) -> None:
    with pytest.raises(UserError, match="'forever', 'run' or a number of seconds") as caught:
        mailer([], reuse=wrong)
    assert repr(wrong) in str(caught.value) and "'mail'" in str(caught.value)
    with pytest.raises(UserError):
        Tool(print, "mail", "mail", "", "exploratory", reuse=wrong)


def test_a_reused_result_says_so_in_the_trace_on_the_board_and_to_the_reader() -> None:
    from metatree import Blackboard

    sent: list[str] = []
    tree = tree_of({"a": "text"})
    look = mailer(sent, changes=False)
    first = run(tree, look, run_id="first")
    assert [e.data.get("reused") for e in first.trace if e.event == "tool"] == [None]
    board = Blackboard(":memory:")
    given = parts("ann")
    again = search(QUESTION, tree=tree, tools=[look], run_id="again", blackboard=board, **given)
    (entry,) = [e for e in again.trace if e.event == "missed_node"]
    assert entry.data["reused"] is True
    assert entry.data["from_run"] == "first"
    assert entry.data["at"].endswith("UTC")
    words = f"this call was made before, by run first on {entry.data['at']}"
    assert entry.reason == words
    assert any(words in str(item.data) for item in board.items(sections="trajectories"))
    (request,) = [r for r in given["reader"].requests if "sent to" in r.content]
    assert f"mail was not called again: {words}" in request.context
    assert (sent, again.usage.tool_calls) == (["ann"], 0)


def test_a_result_of_the_same_run_is_not_reported_as_somebody_elses() -> None:
    tree = tree_of({"a": "text"})
    given = parts("ann", restarts=True)
    result = search(QUESTION, tree=tree, tools=[mailer([])], run_id="r", **given)
    reused = [e for e in result.trace if e.event == "missed_node"]
    assert [(e.data["reused"], e.data["from_run"]) for e in reused] == [(True, "r")]
    assert all("not called again" not in r.context for r in given["reader"].requests)


def test_a_change_whose_result_is_of_no_use_has_happened_all_the_same() -> None:
    sent: list[str] = []

    @tool(kind="interactive", changes=True, kinds=["note"])
    def mail(to: str) -> Any:
        sent.append(to)
        return "no node"

    result = run(tree_of({"a": "text"}), mail, restarts=True)
    assert sent == ["ann"]
    reasons = [e.reason for e in result.trace if e.event == "tool"]
    assert reasons == ["it failed: 'mail' must return a Node to add, and returned str"] * 2
    assert result.ended == "exhausted"


# Kills, against a model ------------------------------------------------------------------------------------------


class Killed(BaseException):
    """The process is gone; nothing that it would have done afterwards happens."""


class Life:
    """One process: it dies at a point of a call, and then writes nothing any more."""

    def __init__(self, store: Store, dies: str, number: int) -> None:
        self.dies = dies
        self.dead = False
        here = this_process().rsplit("/", 2)[0]
        self.records = CallLog(store, owner=f"{here}/{10**9 - 1 - number}/1")  # no such process
        self.journal = Journal(self, store)
        self.calls = Calls(self)

    def die(self, at: str) -> None:
        if self.dies and self.dies == at:
            self.dead = True
        if self.dead:
            raise Killed


class Journal(SqlJournal):
    def __init__(self, life: Life, store: Store) -> None:
        super().__init__(store, lease_s=0.0)
        self._life = life

    def append(self, run_id: str, token: int, seq: int, record: Record) -> int:
        self._life.die("anything")
        return super().append(run_id, token, seq, record)

    def release(self, *given: Any, wake_at: float | None = None) -> None:
        self._life.die("anything")
        super().release(*given, wake_at=wake_at)


class Calls:
    """Records that a dead process does not reach any more."""

    def __init__(self, life: Life) -> None:
        self._life = life

    async def claim(
        self, call: Call, *, key: str, run_id: str, tool: RecordedTool, again: bool = False
    ) -> CallResult | None:
        return await self._life.records.claim(call, key=key, run_id=run_id, tool=tool, again=again)

    def result_of(self, call: Call, *, key: str) -> CallResult | None:
        return self._life.records.result_of(call, key=key)

    def keep(self, call: Call, result: Any, *, key: str, tool: RecordedTool) -> None:
        self._life.die("after the call")
        self._life.records.keep(call, result, key=key, tool=tool)
        self._life.die("after the record")

    make: Any = CallLog.make

    def unconfirmed(self, call: Call, *, key: str) -> None:
        self._life.die("anything")
        self._life.records.unconfirmed(call, key=key)

    def drop(self, call: Call, *, key: str) -> None:
        self._life.die("anything")
        self._life.records.drop(call, key=key)


POINTS = ("", "before the call", "after the call", "after the record")
OPTIONS: dict[str, dict[str, Any]] = {
    "changes": {},
    "changes, for ever": {"reuse": "forever"},
    "changes, may be repeated": {"repeatable": True},
    "reads": {"changes": False},
    "reads, in a run": {"changes": False, "reuse": "run"},
}
orders = st.tuples(st.sampled_from("ab"), st.sampled_from(POINTS), st.booleans(), st.booleans())


@settings(max_examples=examples(120))
@given(st.sampled_from(sorted(OPTIONS)), st.lists(orders, min_size=1, max_size=6))
def test_as_many_effects_as_scopes_and_calls(kind: str, told: list[tuple[str, str, bool, bool]]) -> None:
    """Runs one after another; each may be killed at one point of its call, is taken up, and asks when in doubt."""
    options = OPTIONS[kind]
    sent: list[str] = []
    lives: list[Life] = []
    store = Store.open(":memory:")
    tree = tree_of({"a": "text"})

    def function(to: str) -> str:
        """Send a letter."""
        lives[-1].die("before the call")
        sent.append(to)
        return f"sent to {to}"

    mail = tool(kind="exploratory", name="mail", kinds=["note"], **{"changes": True, **options})(function)

    def living(dies: str) -> None:
        lives.append(Life(store, dies, len(lives)))
        shared: Any = SimpleNamespace(journal=lives[-1].journal, calls=lives[-1].calls, boards=None)
        tree.shared = shared

    made: set[Any] = set()
    doubtful: set[Any] = set()
    effects = 0
    for number, (to, point, yes, restarts) in enumerate(told):
        scope = to if mail.lifetime == "forever" else (number, to)
        dies = "" if scope in made | doubtful else point
        living(dies)
        try:
            result = asyncio.run(_asked(mail, tree, to, f"r{number}", restarts))
        except Killed:
            living("")
            result = resume(f"r{number}", tree=tree, tools=[mail], **parts(to, restarts=restarts))
        unknown = dies in ("before the call", "after the call") or scope in doubtful
        if scope not in made | doubtful:
            effects += dies != "before the call"
        if unknown and not mail.is_repeatable:
            assert result.ended == "waiting" and "may have happened" in result.detail
            assert len(sent) == effects, "nothing is repeated before somebody says so"
            answers = {result.detail: "yes" if yes else "no"}
            for _ in range(3):  # a frame that starts again comes by it again
                if result.ended == "waiting":
                    result = resume(f"r{number}", tree=tree, tools=[mail], answers=answers, **parts(to))
            effects += yes
            (made if yes else doubtful).add(scope)
        else:
            effects += unknown
            made.add(scope)
        doubtful -= made
        assert result.ended in ("answered", "exhausted")
        assert len(sent) == effects


async def _asked(mail: Tool, tree: Tree, to: str, run_id: str, restarts: bool) -> SearchResult:
    return await asearch(QUESTION, tree=tree, tools=[mail], run_id=run_id, **parts(to, restarts=restarts))


@settings(max_examples=examples(30))
@given(st.booleans(), st.lists(st.sampled_from("ab"), min_size=1, max_size=5))
def test_runs_at_the_same_time_make_as_many_calls_as_one_after_another(
    changes: bool, told: list[str]
) -> None:
    sent: list[str] = []
    tree = tree_of({"a": "text"})

    @tool(kind="exploratory", kinds=["note"], changes=changes)
    async def mail(to: str) -> str:
        await asyncio.sleep(0)
        sent.append(to)
        return f"sent to {to}"

    async def all_of_them() -> None:
        await asyncio.gather(*(_asked(mail, tree, to, f"r{n}", False) for n, to in enumerate(told)))

    asyncio.run(all_of_them())
    assert sorted(sent) == sorted(told if changes else set(told))


def test_a_change_that_was_cut_off_is_not_repeated_unasked() -> None:
    assert not mailer([]).is_repeatable
    assert mailer([], repeatable=True).is_repeatable
    assert mailer([], changes=False).is_repeatable
