"""Searches in real processes: killed, stopped, interrupted, beside each other, on a full disk, with damaged files."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from metatree import Answer, Reading, ReadRequest, RouteRequest, Tree, cancel, load_run, resume, runs, search
from metatree.durable.sql_journal import SqlJournal
from metatree.errors import BrokenStore, LeaseLost
from metatree.storage.store import Store
from metatree.testing.parts import FunctionRouter, tree_of

pytestmark = pytest.mark.integration

PARTS = """
import asyncio, json, os, sys, time
from metatree import *
from metatree.durable.sql_journal import SqlJournal
from metatree.storage.store import Store
from metatree.testing.parts import *

folder = sys.argv[1]
log = os.open(folder + "/log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

def say(*words):
    os.write(log, (" ".join(map(str, words)) + "\\n").encode())

first = FunctionRouter(lambda request: request.options[0].id)

class Slow:
    def __init__(self, nap_s):
        self.nap_s = nap_s
    async def read(self, request):
        say("read", request.node.id)
        await asyncio.sleep(self.nap_s)
        return Reading((Answer("q", "here"),)) if request.node.id == "z" else Reading()
"""


def start(folder: Path, script: str) -> subprocess.Popen[str]:
    """Start a process with the common parts."""
    return subprocess.Popen(
        [sys.executable, "-c", PARTS + textwrap.dedent(script), str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str], *, fails: bool = False) -> str:
    out, err = process.communicate(timeout=60)
    assert bool(process.returncode) == fails, err
    return out + err


def log_lines(folder: Path) -> list[str]:
    log = folder / "log"
    return log.read_text().splitlines() if log.exists() else []


def wait_until(true: Callable[[], bool], timeout_s: float = 60.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not true():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.005)


class Knows:
    async def read(self, request: ReadRequest) -> Reading:
        return Reading((Answer("q", "here"),)) if request.node.id == "z" else Reading()


def parts() -> dict[str, Any]:
    return {"router": FunctionRouter(first), "reader": Knows(), "evidence": False}


def first(request: RouteRequest) -> str:
    return request.options[0].id


@pytest.fixture
def tree(tmp_path: Path) -> Any:
    with Tree.create(tmp_path / "tree.db") as made:
        yield tree_of({"a": {"a1": "x1", "a2": "x2"}, "b": "x3", "c": "x4", "z": "x5"}, made)


def test_kills_at_random_moments_change_nothing() -> None:
    soak = Path(__file__).parents[2] / "soak_kill.py"
    done = subprocess.run(
        [sys.executable, str(soak), "--kills", "25"], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    assert "25 kills" in done.stdout


SEARCH = """
with Tree.open(folder + "/tree.db") as tree:
    found = search("q", tree=tree, router=first, reader=Slow({nap_s}), evidence=False, run_id="r")
    print(found.ended, found.detail)
"""


def test_a_process_that_was_stopped_past_its_hold_writes_nothing_more(tmp_path: Path, tree: Tree) -> None:
    child = start(
        tmp_path,
        """
        with Tree.open(folder + "/tree.db") as tree, Store.open(folder + "/runs.db") as store:
            journal = SqlJournal(store, lease_s=2.0)
            search("q", tree=tree, router=first, reader=Slow(0.5), evidence=False, run_id="r", journal=journal)
        """,
    )
    wait_until(lambda: len(log_lines(tmp_path)) >= 2)
    with pytest.raises(LeaseLost, match="another process is at work on run 'r'"):
        resume("r", journal=tmp_path / "runs.db", tree=tree, **parts())
    child.send_signal(signal.SIGSTOP)
    time.sleep(2.1)
    done = resume("r", journal=tmp_path / "runs.db", tree=tree, **parts())
    assert (done.ended, done.answer) == ("answered", "here")
    with Store.open(tmp_path / "runs.db") as store:
        before = SqlJournal(store).read("r")
        child.send_signal(signal.SIGCONT)
        assert "LeaseLost: another process is at work on run 'r'" in finish(child, fails=True)
        assert SqlJournal(store).read("r") == before


def test_a_long_effect_does_not_lose_the_hold(tmp_path: Path, tree: Tree) -> None:
    child = start(
        tmp_path,
        """
        with Tree.open(folder + "/tree.db") as tree, Store.open(folder + "/runs.db") as store:
            journal = SqlJournal(store, lease_s=1.0)
            print(search("q", "z", tree=tree, reader=Slow(3.5), router=first, evidence=False, run_id="r",
                         journal=journal).ended)
        """,
    )
    wait_until(lambda: len(log_lines(tmp_path)) == 1)
    time.sleep(2.0)
    with pytest.raises(LeaseLost):
        resume("r", journal=tmp_path / "runs.db", tree=tree, **parts())
    assert finish(child).strip() == "answered"


def test_a_dead_process_loses_its_run_at_once(tmp_path: Path, tree: Tree) -> None:
    child = start(tmp_path, SEARCH.format(nap_s=0.5))
    wait_until(lambda: len(log_lines(tmp_path)) >= 3)
    child.kill()
    child.communicate()
    reads = len(log_lines(tmp_path))
    reader = Knows()
    done = resume("r", tree=tree, router=FunctionRouter(first), reader=reader, evidence=False)
    assert (done.ended, done.answer) == ("answered", "here")
    assert done.usage.reads <= 6  # the five nodes, and at most the read in flight once more
    assert reads >= 3


def test_ctrl_c_leaves_a_run_that_can_be_taken_up(tmp_path: Path, tree: Tree) -> None:
    child = start(tmp_path, SEARCH.format(nap_s=20))
    wait_until(lambda: len(log_lines(tmp_path)) >= 1)
    began = time.monotonic()
    child.send_signal(signal.SIGINT)
    assert "KeyboardInterrupt" in finish(child, fails=True)
    assert time.monotonic() - began < 15
    (info,) = runs(tree=tree)
    assert (info.run_id, info.ended) == ("r", "cancelled")
    assert load_run("r", tree=tree).ended == "cancelled"
    assert resume("r", tree=tree, **parts()).answer == "here"


def test_a_run_is_cancelled_from_another_process(tmp_path: Path, tree: Tree) -> None:
    child = start(tmp_path, SEARCH.format(nap_s=1.0))
    wait_until(lambda: len(log_lines(tmp_path)) >= 1)
    assert runs(tree=tree)[0].ended is None
    cancel("r", tree=tree)
    assert finish(child).strip() == "cancelled"
    assert len(log_lines(tmp_path)) < 5
    assert resume("r", tree=tree, **parts()).answer == "here"


def test_a_person_is_waited_for_across_processes(tmp_path: Path, tree: Tree) -> None:
    script = """
        with Tree.open(folder + "/tree.db") as tree:
            given = dict(tree=tree, router=first, reader=ScriptedReader({}), fallbacks=[ask_person], evidence=False)
            found = WHAT
            print(json.dumps([found.ended, found.detail, found.answer]))
    """
    result = finish(start(tmp_path, script.replace("WHAT", 'search("Which colour?", run_id="r", **given)')))
    assert json.loads(result) == ["waiting", "Which colour?", ""]
    assert load_run("r", tree=tree).detail == "Which colour?"
    done = finish(
        start(tmp_path, script.replace("WHAT", 'resume("r", answers={"which colour?": "blue"}, **given)'))
    )
    assert json.loads(done) == ["answered", "", "blue"]


TOOL = """
@tool(kind="exploratory", kinds=["note"], {options})
def look(node: Node) -> str:
    say("called")
    time.sleep({nap_s})
    return "forty-two"

class Reads:
    async def read(self, request):
        return Reading((Answer("q", "42"),)) if "forty" in request.content else Reading()

with Tree.open(folder + "/tree.db") as tree:
    found = search("q", "z", tree=tree, router=first, reader=Reads(), tools=[look], evidence=False,
                   tool_caller=ScriptedToolCaller({{"look": {{}}}}))
    print(found.ended, found.answer, found.usage.tool_calls, found.detail)
"""


def test_processes_that_ask_for_a_call_at_the_same_moment_make_one(tmp_path: Path, tree: Tree) -> None:
    children = [start(tmp_path, TOOL.format(nap_s=0.5, options="")) for _ in range(3)]
    replies = sorted(finish(child).split() for child in children)
    assert log_lines(tmp_path) == ["called"]
    assert replies == [["answered", "42", "0"], ["answered", "42", "0"], ["answered", "42", "1"]]


def test_a_call_whose_process_died_is_made_by_who_waits_for_it(tmp_path: Path, tree: Tree) -> None:
    dies = start(tmp_path, TOOL.format(nap_s=30, options=""))
    wait_until(lambda: len(log_lines(tmp_path)) == 1)
    waits = start(tmp_path, TOOL.format(nap_s=0, options=""))
    time.sleep(0.3)
    dies.kill()
    dies.communicate()
    assert finish(waits).split() == ["answered", "42", "1"]
    assert log_lines(tmp_path) == ["called", "called"]


def test_a_call_that_may_not_be_repeated_is_put_to_a_person_when_its_process_died(
    tmp_path: Path, tree: Tree
) -> None:
    dies = start(tmp_path, TOOL.format(nap_s=30, options="repeatable=False"))
    wait_until(lambda: len(log_lines(tmp_path)) == 1)
    dies.kill()
    dies.communicate()
    other = finish(start(tmp_path, TOOL.format(nap_s=0, options="repeatable=False")))
    assert other.startswith("waiting  0 A call of look with {} was interrupted and may have happened.") or (
        other.startswith("waiting") and "may have happened. Call it again? (yes/no)" in other
    )
    assert log_lines(tmp_path) == ["called"]


def test_a_full_disk_ends_a_run_as_failed_with_nothing_lost(tmp_path: Path, tree: Tree) -> None:
    whole = search("q", tree=tree, run_id="whole", **parts())
    with Store.open(tmp_path / "runs.db") as store:
        journal = SqlJournal(store)
        pages = store.rows("PRAGMA page_count")[0][0]
        store.rows(f"PRAGMA max_page_count={pages + 1}")
        result = search(
            "q" + " " * 3000, tree=tree, run_id="r", journal=journal, context="c" * 2500, **parts()
        )
        assert result.ended == "failed"
        assert "no space to write" in result.detail
        assert "a limit on its size" in result.detail
        record_count = len(journal.read("r"))
        assert record_count >= 1
        store.rows("PRAGMA max_page_count=100000")
        done = resume("r", tree=tree, journal=journal, **parts())
        assert (done.ended, done.answer) == ("answered", "here")
        assert done.trace == whole.trace


def test_a_full_disk_under_the_tree_does_not_mark_what_could_not_be_kept(tmp_path: Path) -> None:
    from metatree import FallbackRequest, FallbackResult, Node

    with Tree.create(tmp_path / "small.db") as tree:
        tree_of({"a": "x"}, tree)

        def web(request: FallbackRequest) -> FallbackResult:
            return FallbackResult(nodes=[Node("z", "z", content="long " * 4000)])

        pages = tree.memory.rows("PRAGMA page_count")[0][0]
        tree.memory.rows(f"PRAGMA max_page_count={pages}")
        result = search("q", tree=tree, run_id="r", journal=tmp_path / "runs.db", fallbacks=[web], **parts())
        assert result.ended == "failed"
        assert "no space to write" in result.detail
        tree.memory.rows("PRAGMA max_page_count=100000")
        done = resume("r", tree=tree, journal=tmp_path / "runs.db", fallbacks=[web], **parts())
        assert (done.ended, done.answer) == ("answered", "here")


@pytest.mark.parametrize(
    ("damage", "what"),
    [
        ("UPDATE journal SET body = '{broken' WHERE seq = 3", "record 3 of run 'r' in .* is damaged"),
        ("DELETE FROM journal WHERE seq = 2", "record 2 of run 'r' in .* is damaged .it is missing."),
        ("UPDATE journal SET effect = 99 WHERE seq = 4", "record 4 of the journal does not fit"),
        ("UPDATE journal SET body = '7' WHERE seq = 1", "record 1 of the journal does not fit"),
        ("UPDATE journal SET body = '7' WHERE seq = 0", "record 0"),
        ("DELETE FROM journal", "record 0 of run 'r' in .* is damaged"),
    ],
)
def test_a_damaged_journal_is_a_clear_error(tmp_path: Path, tree: Tree, damage: str, what: str) -> None:
    from metatree import Limits

    search("q", tree=tree, run_id="r", journal=tmp_path / "runs.db", limits=Limits(reads=2), **parts())
    with Store.open(tmp_path / "runs.db") as store:
        store.execute(damage)
    with pytest.raises(BrokenStore, match=what):
        resume("r", tree=tree, journal=tmp_path / "runs.db", **parts())
    with pytest.raises(BrokenStore, match=what):
        load_run("r", journal=tmp_path / "runs.db")


def test_half_characters_of_a_router_are_question_marks_in_the_trace(tmp_path: Path, tree: Tree) -> None:
    from metatree import Limits, RouteDecision

    router = FunctionRouter(lambda request: RouteDecision(request.options[0].id, {}, "half \ud83d of it"))
    given: dict[str, Any] = {"tree": tree, "router": router, "reader": Knows(), "evidence": False}
    result = search("q", run_id="r", journal=tmp_path / "runs.db", limits=Limits(reads=2), **given)
    assert result.ended == "limit"
    stored = load_run("r", journal=tmp_path / "runs.db")
    assert stored.trace == result.trace
    assert any(entry.reason == "half ? of it" for entry in stored.trace)


def test_a_journal_that_is_not_there_is_not_made(tmp_path: Path, tree: Tree) -> None:
    from metatree import UserError

    for use in (
        lambda **given: resume("r", tree=tree, **given),
        runs,
        lambda **given: load_run("r", **given),
    ):
        with pytest.raises(UserError, match="there is no file"):
            use(journal=tmp_path / "typo.db")
    assert not (tmp_path / "typo.db").exists()
