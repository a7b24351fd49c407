"""Several agents on one board: views, audiences, forks and merges, questions and answers."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from itertools import islice

import pytest

from metatree import Blackboard
from metatree.errors import Conflict, UnknownItem, UserError


def test_each_agent_sees_its_view() -> None:
    board = Blackboard()
    board.add_requests("for all")
    board.add("secrets", {"key": 1}, audience=["planner"])
    planner, coder = board.view("planner"), board.view("coder", sections=["requests", "notes"])
    mine = coder.add("notes", {"n": 1}, audience=["reviewer"])
    assert mine.agent == "coder"
    assert [i.section for i in board.items()] == ["requests", "secrets", "notes"]
    assert [i.section for i in planner.items()] == ["requests", "secrets"]
    assert [i.section for i in coder.items()] == ["requests", "notes"]
    assert [i.section for i in board.view("reviewer").items()] == ["requests", "notes"]
    with pytest.raises(UnknownItem):
        planner.get(mine.id)
    with pytest.raises(UnknownItem):
        planner.update(mine.id, {})
    with pytest.raises(UnknownItem):
        planner.remove(mine.id)
    assert planner.find("n") == [] or all(i.id != mine.id for i in planner.find("n"))
    assert all(t.item != mine.id for t in planner.triples())
    assert [i.id for i in planner.changes() if i.id == mine.id] == []
    assert "key" not in coder.render(500, shares={"secrets": 1}).text


def test_clearing_a_view_leaves_what_it_does_not_show() -> None:
    board = Blackboard()
    board.add("secrets", {"key": 1}, audience=["planner"])
    board.add_requests("r")
    board.view("coder").clear()
    assert [i.section for i in board.items()] == ["secrets"]


def test_view_of_a_view_sees_no_more() -> None:
    board = Blackboard()
    for agent in ("a", "b"):
        board.add("facts", {"by": agent}, agent=agent)
    narrow = board.view("a", by="a")
    assert narrow.view(by=["a", "b"]).count() == 1
    assert narrow.view(by="b").count() == 0
    with pytest.raises(UserError, match="cannot become"):
        narrow.view("b")


def test_fork_is_merged_back() -> None:
    board = Blackboard(agent="parent")
    kept, changed, gone = (board.add("facts", {"n": n}) for n in range(3))
    child = board.fork("child", agent="kid")
    added = child.add("facts", {"n": 3}, sources=[kept.id])
    child.update(changed.id, {"n": 10})
    child.pin(kept.id)
    child.remove(gone.id)
    assert [i.data["n"] for i in board.items()] == [0, 1, 2]
    meanwhile = board.add("facts", {"n": 9})
    merge = board.merge(child)
    assert (merge.added, set(merge.updated), merge.removed, merge.conflicts) == (
        (added.id,),
        {changed.id, kept.id},
        (gone.id,),
        (),
    )
    assert [i.data["n"] for i in board.items()] == [0, 10, 9, 3]
    assert board.get(added.id).agent == "kid"
    assert board.get(added.id).sources == (kept.id,)
    assert board.get(kept.id).pinned
    assert [i.id for i in board.changes(meanwhile.changed)] != []
    nothing = board.merge(child)
    assert nothing.added == nothing.updated == nothing.removed == nothing.conflicts == ()


def test_later_changes_of_a_fork_are_merged_by_a_second_merge() -> None:
    board = Blackboard()
    item = board.add("facts", {"n": 0})
    child = board.fork("child")
    child.update(item.id, {"n": 1})
    own = child.add("facts", {"m": 1})
    board.merge(child)
    child.update(item.id, {"n": 2})
    child.update(own.id, {"m": 2})
    merge = board.merge(child)
    assert set(merge.updated) == {item.id, own.id}
    assert [i.data for i in board.items()] == [{"n": 2}, {"m": 2}]


@pytest.mark.parametrize(("on_conflict", "value"), [("ours", 1), ("theirs", 2)])
def test_conflict_is_decided_by_the_call(on_conflict: str, value: int) -> None:
    board = Blackboard()
    item = board.add("facts", {"n": 0})
    child = board.fork("child")
    board.update(item.id, {"n": 1})
    child.update(item.id, {"n": 2})
    other = child.add("facts", {"m": 0})
    with pytest.raises(Conflict, match=item.id):
        board.merge(child)
    assert board.count() == 1  # nothing of it was kept
    merge = board.merge(child, on_conflict=on_conflict)  # type: ignore[arg-type]
    assert merge.conflicts == (item.id,)
    assert merge.added == (other.id,)
    assert board.get(item.id).data == {"n": value}
    assert board.merge(child).conflicts == ()


def test_same_change_on_both_is_no_conflict() -> None:
    board = Blackboard()
    item = board.add("facts", {"n": 0})
    child = board.fork("child")
    for each in (board, child):
        each.update(item.id, {"n": 5})
    assert board.merge(child).conflicts == ()


def test_fork_needs_a_name_of_its_own_and_merges_where_it_came_from() -> None:
    board = Blackboard()
    child = board.fork("child")
    with pytest.raises(UserError, match="already"):
        board.fork("child")
    with pytest.raises(UserError, match="no fork"):
        child.merge(board)
    with pytest.raises(UserError, match="no fork"):
        Blackboard().merge(child)


def test_fork_of_a_view_holds_what_it_shows() -> None:
    board = Blackboard()
    board.add("secrets", {"n": 1}, audience=["other"])
    board.add("facts", {"n": 2})
    assert [i.section for i in board.view("kid").fork("f").items()] == ["facts"]


def test_question_is_asked_and_answered_once() -> None:
    board = Blackboard(agent="asker")
    item = board.ask("Which account?", run="r1")
    assert [i.id for i in board.open_questions()] == [item.id]
    assert board.open_questions(run="r2") == []
    person = board.view("person") if not board._view.reader else Blackboard.view(board)
    answered = person.answer(item.id[:6], "the second")
    assert answered.data == {"question": "Which account?", "answer": "the second", "answered_by": "asker"}
    assert board.open_questions() == []
    with pytest.raises(UserError, match="an answer already: 'the second'"):
        board.answer(item.id, "the first")
    with pytest.raises(UnknownItem):
        board.answer("zzz", "x")


def test_short_id_must_be_unambiguous() -> None:
    board = Blackboard()
    for name in ("ab1", "ab2"):
        board.ask("q?", id=name)
    with pytest.raises(UserError, match="ab1, ab2"):
        board.answer("ab", "x")
    board.ask("q?", id="ab")
    assert board.answer("ab", "x").id == "ab"


def later(action: Callable[[], object], after_s: float = 0.05) -> threading.Timer:
    timer = threading.Timer(after_s, action)
    timer.start()
    return timer


def test_answer_wakes_who_waits_for_it() -> None:
    board = Blackboard()
    item = board.ask("Which?")
    timer = later(lambda: board.answer(item.id, "this"))
    assert board.wait_for_answer(item.id, timeout_s=10) == "this"
    timer.join()
    assert board.wait_for_answer(board.ask("Never?").id, timeout_s=0.01) is None


def test_wait_returns_at_a_change_and_at_its_time() -> None:
    board = Blackboard()
    board.add("facts", {})
    assert board.wait(0) == 1
    began = time.monotonic()
    assert board.wait(timeout_s=0.05) == 1
    assert time.monotonic() - began < 5
    timer = later(lambda: board.add("facts", {}))
    assert board.wait(timeout_s=10) == 2
    timer.join()


def test_subscription_tells_every_change_in_order() -> None:
    board = Blackboard()
    first = board.add("facts", {"n": 0})

    def change() -> None:
        board.add_many("facts", [{"n": 1}, {"n": 2}])
        board.remove(first.id)

    timer = later(change)
    changes = [(i.data.get("n"), i.removed) for i in islice(board.subscribe(0, timeout_s=60), 4)]
    timer.join()
    assert changes == [(0, False), (1, False), (2, False), (None, True)]


def test_changes_are_awaited_in_an_event_loop() -> None:
    board = Blackboard()

    async def scene() -> tuple[int, int]:
        asyncio.get_running_loop().call_later(0.05, lambda: board.add("facts", {"n": 1}))
        version = await board.await_change(timeout_s=10)
        asyncio.get_running_loop().call_later(0.05, lambda: board.add("facts", {"n": 2}))
        async for item in board.watch(version, timeout_s=60):
            return version, item.data["n"]
        raise AssertionError("nothing came")

    assert asyncio.run(scene()) == (1, 2)


def test_waiting_leaves_no_trace() -> None:
    board = Blackboard()
    board.wait(timeout_s=0.01)
    assert board._share.store.rows("SELECT * FROM board_waiter") == []


def test_words_of_strangers_wake_nobody() -> None:
    import socket

    board = Blackboard()
    with (
        board._share.rows.notifier.listen() as listener,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger,
    ):
        stranger.sendto(b"wake", ("127.0.0.1", listener._port))
        began = time.monotonic()
        listener.wait(0.1)
        assert time.monotonic() - began >= 0.09


def test_place_without_a_network_looks_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise OSError("no network here")

    monkeypatch.setattr("metatree.blackboard._notify._udp", refuse)
    monkeypatch.setattr("metatree.blackboard._notify.POLL_S", 0.02)
    board = Blackboard()
    timer = later(lambda: board.add("facts", {}))
    assert board.wait(timeout_s=10) == 1
    timer.join()

    async def scene() -> int:
        asyncio.get_running_loop().call_later(0.05, lambda: board.add("facts", {}))
        return await board.await_change(timeout_s=10)

    assert asyncio.run(scene()) == 2


def test_what_changed_together_is_reported_together() -> None:
    board = Blackboard()
    board.add_many("facts", [{"n": n} for n in range(5)])
    assert [i.data["n"] for i in board.changes(limit=2)] == [0, 1]
    version = board.version
    board.clear()
    assert len(board.changes(version, limit=2)) == 5


def test_closing_a_view_or_a_fork_leaves_the_board_open() -> None:
    board = Blackboard()
    with board.view("a") as view, view.fork("f") as fork:
        fork.add("facts", {})
    board.add("facts", {})
    assert board.count() == 1


def test_half_characters_in_names_are_refused() -> None:
    board = Blackboard()
    for about in ({"agent": "\ud800"}, {"id": "\udfff"}, {"run": "\ud800"}):
        with pytest.raises(UserError, match="half of a character"):
            board.add("facts", {}, **about)  # type: ignore[arg-type]
    with pytest.raises(UserError):
        board.add("\ud800", {})
    assert board.add("Größe", {"half": "\ud800"}).data == {"half": "\ud800"}
