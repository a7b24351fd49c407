"""A search on a blackboard: context from it, steps on it, questions through it."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Any

import pytest

from metatree import (
    Blackboard,
    Evidence,
    Limits,
    Reading,
    ReadRequest,
    RouteRequest,
    SearchResult,
    Settings,
    Tree,
    UserError,
    ask_person,
    resume,
    search,
)
from metatree.durable import MemoryJournal
from metatree.durable._journal import Record
from metatree.protocols import Passage, Scored
from metatree.testing.parts import FunctionRouter, PlainComposer, ScriptedReader, tree_of


def small_tree() -> Tree:
    return tree_of({"a": {"a1": "one", "a2": "two"}, "b": "three"})


def parts(**other: Any) -> dict[str, Any]:
    return {
        "router": FunctionRouter(lambda request: request.options[0].id),
        "reader": ScriptedReader({}),
        "composer": PlainComposer(),
        "evidence": False,
        **other,
    }


def steps(board: Blackboard, run: str = "r1") -> list[tuple[int | None, str]]:
    return [(i.step, i.get_value("action_representation")) for i in board.items("trajectories", run=run)]


def test_trajectory_is_written_step_by_step() -> None:
    board = Blackboard(agent="finder")
    seen: list[int] = []

    def choose(request: RouteRequest) -> str:
        seen.append(board.count("trajectories"))
        return request.options[0].id

    result = search(
        "q", tree=small_tree(), run_id="r1", blackboard=board, **parts(router=FunctionRouter(choose))
    )
    assert result.ended == "exhausted"
    assert seen == sorted(set(seen))
    assert seen[0] == 1
    written = steps(board)
    assert [step for step, _ in written] == sorted(step for step, _ in written)  # type: ignore[type-var]
    assert written[0][1] == "began at ."
    assert written[-1][1] == "end: exhausted"
    assert any(said.startswith("at . chose a") for _, said in written)
    item = board.items("trajectories")[1]
    assert (item.agent, item.run, item.round) == ("finder", "r1", 1)
    assert set(item.data) == {"step", "subtask", "action_representation"}


def test_request_and_its_result_are_one_round() -> None:
    board = Blackboard()
    reader = ScriptedReader({"a1": {"q": "the answer"}})
    search("q", tree=small_tree(), run_id="r1", blackboard=board, **parts(reader=reader))
    (request,) = board.requests.list_content
    assert request == {"request": "q", "result": "the answer", "ended": "answered"}
    search("again", tree=small_tree(), run_id="r2", blackboard=board, **parts())
    assert [(r.number, len(r.requests)) for r in board.rounds()] == [(1, 1), (2, 1)]
    assert {i.run for i in board.rounds()[0].results} == {"r1"}


class _Near(Evidence):
    """Evidence that knows one passage, and nothing else."""

    def score(self, questions: Sequence[str], **where: Any) -> list[Scored]:
        return []

    def passages(self, question: str, **where: Any) -> list[Passage]:
        return [Passage("a1", "A 1", "one " * 200, 0, (1, 1), 0.1)]


def test_what_stays_open_is_noted_with_what_comes_closest_until_it_is_answered() -> None:
    board, tree, journal = Blackboard(), small_tree(), MemoryJournal()
    given = parts(evidence=_Near())
    result = search("q", tree=tree, run_id="r1", blackboard=board, journal=journal, **given)
    assert result.ended == "exhausted"
    (request,) = board.requests.list_content
    ((passage,),) = [each["closest"] for each in request["open"]]
    assert (passage["node"], passage["lines"]) == ("a1", [1, 1])
    assert passage["quote"].startswith("one one") and passage["quote"].endswith("…")
    assert len(passage["quote"]) <= 300


def test_what_was_open_at_a_limit_is_no_longer_noted_when_it_was_answered() -> None:
    board, tree, journal = Blackboard(), small_tree(), MemoryJournal()
    given = parts(reader=ScriptedReader({"b": {"q": "the answer"}}))
    short = Limits(reads=1)
    search("q", tree=tree, run_id="r1", blackboard=board, journal=journal, limits=short, **given)
    (request,) = board.requests.list_content
    assert (request["ended"], request["open"]) == ("limit", [{"question": "q"}])
    resume("r1", tree=tree, blackboard=board, journal=journal, limits=Limits(), **given)
    assert board.requests.list_content == [{"request": "q", "result": "the answer", "ended": "answered"}]


def test_context_comes_from_the_board_within_its_limit_and_is_journaled() -> None:
    board = Blackboard(settings=Settings(context_tokens=300))
    board.add_questions({"question": "who am I?", "answer": "the owner"})
    board.add_many("trajectories", [{"step": n, "did": "click " * 20} for n in range(100)])
    contexts: list[str] = []

    def choose(request: RouteRequest) -> str:
        contexts.append(request.context)
        return request.options[0].id

    journal = MemoryJournal()
    given = parts(router=FunctionRouter(choose))
    search("q", tree=small_tree(), run_id="r1", context="I said", blackboard=board, journal=journal, **given)
    assert contexts[0].startswith("I said\n\n[Blackboard:]")
    assert "the owner" in contexts[0]
    assert "earlier left out)" in contexts[0]
    assert len(contexts[0]) < 3 * 300 + 20
    assert journal.read("r1")[0].body["given"]["context"] == contexts[0]
    assert len(set(contexts)) == 1  # what the run writes itself is not told again


def test_empty_board_says_nothing() -> None:
    contexts: list[str] = []

    def choose(request: RouteRequest) -> str:
        contexts.append(request.context)
        return request.options[0].id

    search("q", tree=small_tree(), blackboard=Blackboard(), **parts(router=FunctionRouter(choose)))
    assert set(contexts) == {""}


class CutJournal(MemoryJournal):
    """Dies at a record, as a killed process does."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self.at = at

    def append(self, run_id: str, token: int, seq: int, record: Record) -> int:
        if seq == self.at:
            raise KeyboardInterrupt
        return super().append(run_id, token, seq, record)

    def release(self, run_id: str, token: int, ended: str | None, *, wake_at: float | None = None) -> None:
        super().release(run_id, token, ended, wake_at=wake_at)


def test_run_that_is_cut_anywhere_writes_each_step_once() -> None:
    whole = Blackboard()
    search("q", tree=small_tree(), run_id="r1", blackboard=whole, **parts())
    count = 0
    for at in range(1, 100):
        board, journal, tree = Blackboard(), CutJournal(at), small_tree()
        try:
            search("q", tree=tree, run_id="r1", blackboard=board, journal=journal, **parts())
        except KeyboardInterrupt:
            count += 1
            journal.at = -1
            journal._runs["r1"].leased = False
            resume("r1", tree=tree, blackboard=board, journal=journal, **parts())
        assert [(i.id, i.data) for i in board.items()] == [(i.id, i.data) for i in whole.items()]
        if journal.at > 0:
            break
    assert count > 10


def test_steps_that_the_board_missed_are_written_at_the_resume() -> None:
    board, tree = Blackboard(), small_tree()
    search("q", tree=tree, run_id="r1", blackboard=board, limits=Limits(router_calls=1), **parts())
    known = steps(board)
    for item in board.items("trajectories")[2:]:
        board._share.store.execute("DELETE FROM item WHERE number = ?", (item.number,))
    resume("r1", tree=tree, blackboard=board, limits=Limits(), **parts())
    assert steps(board)[: len(known) - 1] == known[:-1] or steps(board)[: len(known)] == known
    assert steps(board)[-1][1] == "end: exhausted"


def run_search(board: Blackboard, tree: Tree, **given: Any) -> SearchResult:
    return search("q", tree=tree, run_id="r1", blackboard=board, fallbacks=[ask_person], **parts(), **given)


def test_question_for_the_person_is_on_the_board_and_its_answer_is_taken_at_the_resume() -> None:
    board, tree = Blackboard(), small_tree()
    assert run_search(board, tree).ended == "waiting"
    (question,) = board.open_questions(run="r1")
    assert question.data == {"question": "q", "answer": None}
    still = resume("r1", tree=tree, blackboard=board, fallbacks=[ask_person], **parts())
    assert still.ended == "waiting"
    assert len(board.questions) == 1
    board.answer(question.id, "forty-two")
    done = resume("r1", tree=tree, blackboard=board, fallbacks=[ask_person], **parts())
    assert (done.ended, done.answer) == ("answered", "forty-two")
    assert board.requests.list_content[0]["result"] == "forty-two"


def test_run_in_this_process_goes_on_when_the_answer_comes() -> None:
    board, tree = Blackboard(), small_tree()

    def person() -> None:
        while not board.open_questions():
            board.wait(board.version, 0.05)
        board.answer(board.open_questions()[0].id, "forty-two")

    thread = threading.Thread(target=person)
    thread.start()
    result = run_search(board, tree, wait=True)
    thread.join()
    assert (result.ended, result.answer) == ("answered", "forty-two")


def test_answer_that_comes_while_the_run_looks_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    board, tree = Blackboard(), small_tree()
    look = Blackboard.open_questions

    def answered_just_before(self: Blackboard, **which: Any) -> Any:
        for question in look(board):
            board.answer(question.id, "forty-two")
        return look(self, **which)

    monkeypatch.setattr(Blackboard, "open_questions", answered_just_before)
    result = run_search(board, tree, wait=20.0)
    assert (result.ended, result.answer) == ("answered", "forty-two")


def test_every_question_is_waited_for() -> None:
    board, tree = Blackboard(), small_tree()

    def person() -> None:
        for _ in range(2):
            while not board.open_questions():
                board.wait(board.version, 0.05)
            question = board.open_questions()[-1]
            board.answer(question.id, f"answer to {question.get_value('question')}")

    thread = threading.Thread(target=person)
    thread.start()
    result = search(["p", "q"], tree=tree, blackboard=board, fallbacks=[ask_person], wait=20.0, **parts())
    thread.join()
    assert {a.answer for a in result.answers} == {"answer to p", "answer to q"}


def test_run_that_another_process_takes_up_gives_its_end_here_too() -> None:
    board, tree, journal = Blackboard(), small_tree(), MemoryJournal()

    def person() -> None:
        while not board.open_questions() or not journal.runs()[0].ended:
            time.sleep(0.01)
        journal._runs["r1"].leased = True  # as the other process does before the answer is seen here
        board.answer(board.open_questions()[0].id, "forty-two")
        time.sleep(0.2)
        journal._runs["r1"].leased = False
        resume("r1", tree=tree, journal=journal, blackboard=board, fallbacks=[ask_person], **parts())

    thread = threading.Thread(target=person)
    thread.start()
    result = run_search(board, tree, journal=journal, wait=30.0)
    thread.join()
    assert (result.ended, result.answer) == ("answered", "forty-two")


def test_waiting_ends_with_its_time() -> None:
    began = time.monotonic()
    assert run_search(Blackboard(), small_tree(), wait=0.05).ended == "waiting"
    assert time.monotonic() - began < 5


def test_answer_given_to_resume_closes_the_question_on_the_board() -> None:
    board, tree = Blackboard(), small_tree()
    run_search(board, tree)
    resume("r1", tree=tree, blackboard=board, answers={"q": "yes"}, fallbacks=[ask_person], **parts())
    assert board.open_questions() == []
    assert board.questions.list_content == [{"question": "q", "answer": "yes"}]


def test_replay_does_not_need_the_board() -> None:
    board, tree, journal = Blackboard(), small_tree(), MemoryJournal()
    run_search(board, tree, journal=journal)
    board.answer(board.open_questions()[0].id, "forty-two")
    done = resume("r1", tree=tree, journal=journal, blackboard=board, fallbacks=[ask_person], **parts())
    again = resume("r1", tree=tree, journal=journal, **parts())
    assert (again.answer, again.trace) == (done.answer, done.trace)


def test_nested_questions_are_named_in_their_steps() -> None:
    class Asking:
        async def read(self, request: ReadRequest) -> Reading:
            return Reading(new_questions=("what first?",)) if "q" in request.questions else Reading()

    board = Blackboard()
    search("q", tree=small_tree(), blackboard=board, **parts(reader=Asking()))
    assert {i.get_value("subtask") for i in board.trajectories} == {"q", "what first?"}


def test_board_that_fails_does_not_stop_the_search(caplog: pytest.LogCaptureFixture) -> None:
    board = Blackboard()
    calls = 0

    def choose(request: RouteRequest) -> str:
        nonlocal calls
        calls += 1
        if calls == 1:
            board._share.store.execute("ALTER TABLE item RENAME TO elsewhere")
        else:
            board._share.store.execute("ALTER TABLE elsewhere RENAME TO item")
            calls = -100
        return request.options[0].id

    tree = tree_of({"a": {"a1": "one", "a2": "two"}, "b": {"b1": "x", "b2": "y"}})
    result = search("q", tree=tree, run_id="r1", blackboard=board, **parts(router=FunctionRouter(choose)))
    assert result.ended in ("exhausted", "failed")
    assert "could not write to its board" in caplog.text


def test_wrong_run_is_refused_before_anything_is_written() -> None:
    board, tree = Blackboard(), small_tree()
    run_search(board, tree)
    before = board.version
    with pytest.raises(UserError, match="exists"):
        run_search(board, tree)
    assert board.version == before


def test_agent_with_a_narrow_view_gets_only_what_it_sees_and_still_leaves_its_trace() -> None:
    board = Blackboard()
    board.add_questions({"question": "a secret?", "answer": "yes"})
    board.add("notes", {"note": "a hint"})
    contexts: list[str] = []

    def choose(request: RouteRequest) -> str:
        contexts.append(request.context)
        return request.options[0].id

    view = board.view("finder", sections=["notes", "trajectories"])
    tree = small_tree()
    given = parts(router=FunctionRouter(choose))
    search("q", tree=tree, run_id="r1", blackboard=view, limits=Limits(router_calls=1), **given)
    resume("r1", tree=tree, blackboard=view, limits=Limits(), **given)
    assert "secret" not in contexts[0]
    assert len(steps(board)) == len({i.id for i in board.trajectories}) > 5
    assert board.requests.list_content == [
        {"request": "q", "ended": "exhausted", "open": [{"question": "q"}]}
    ]
