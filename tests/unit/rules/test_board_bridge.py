"""The bridge between a blackboard and the control shell."""

from __future__ import annotations

from typing import Any

from metatree import Blackboard
from metatree.rules import BoardBridge, ControlShell, Firing, KnowledgeSource, WorkingMemory


def answering(answer: str) -> KnowledgeSource:
    source = KnowledgeSource(
        "answerer", '((<q> @section questions) (<q> question <t>) -{(<q> answer <a>)} -> "answer")'
    )

    @source.fires("answer")
    def fire(firing: Firing) -> None:
        token = firing.to_add[0]
        firing.commit(token)
        firing.board.board.update(token["q"], {"answer": answer})
        firing.add("answers", "given-to", token["q"])

    return source


def test_a_production_reacts_to_a_question_without_an_answer() -> None:
    board = Blackboard()
    board.add("questions", {"question": "Where?", "answer": None}, id="q1")
    board.add("questions", {"question": "When?", "answer": "now"}, id="q2")
    board.add("screenshots", {"question": "not read"}, id="s1")
    report = ControlShell([answering("here")], board=BoardBridge(board)).run(run_id="r")
    assert (report.ended, report.cycles) == ("accepted", 1)
    assert board.get("q1").data["answer"] == "here"
    assert ("q1", "answer", "here") in report.facts, "it saw its own answer come back"
    assert ("s1", "question", "not read") not in report.facts


def test_facts_tokens_and_firings_can_be_seen_on_the_board() -> None:
    board = Blackboard()
    board.add("questions", {"question": "Where?", "answer": None}, id="q1")
    ControlShell([answering("here")], board=BoardBridge(board)).run(run_id="r")
    step = board.get("r:fire:1")
    assert step.section == "trajectories"
    assert (step.data["step"], step.data["subtask"]) == (1, "answer")
    facts = [item.data for item in board.items("facts")]
    assert facts == [{"id": "answers", "attribute": "given-to", "value": "q1", "derived": False}]
    tokens = board.get("r:tokens:answer").data
    assert tokens["production"] == "answer"


def test_what_is_changed_or_removed_on_the_board_is_followed() -> None:
    board = Blackboard()
    board.add("requests", {"text": "a", "urgent": True}, id="r1")
    bridge, memory = BoardBridge(board), WorkingMemory()

    def look() -> list[tuple[str, Any]]:
        changes = bridge.look(memory)
        for sign, fact in changes:
            if sign == "+":
                memory.add(*fact, provenance={"board": True})
            else:
                memory.retract(*fact)
        return changes

    assert len(look()) == 4
    assert ("r1", "urgent", "true") in memory
    board.update("r1", {"text": "b"})
    assert look() == [("-", ("r1", "text", "a")), ("+", ("r1", "text", "b"))]
    assert look() == []
    another = BoardBridge(board)
    board.remove("r1")
    assert {sign for sign, _ in another.look(memory)} == {"-"}, (
        "a bridge in another process knows what was held"
    )
    look()
    assert len(memory) == 0
