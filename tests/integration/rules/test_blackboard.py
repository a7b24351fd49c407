"""The control shell on a real blackboard."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from metatree.blackboard import Blackboard
from metatree.rules import BoardBridge, ControlShell, Firing, First, KnowledgeSource

pytestmark = pytest.mark.integration

PRODUCTIONS = """
((<q> @section questions) (<q> question <text>) -{(<q> answer <a>)} -> "answer the person")
((<r> @section requests) (<r> text <text>) -{(<q> asked-for <r>)} -> "ask back")
"""


def clerk() -> KnowledgeSource:
    source = KnowledgeSource("clerk", PRODUCTIONS)

    @source.fires("answer the person")
    def answer(firing: Firing) -> None:
        token = firing.to_add[0]
        board: Any = firing.board.board
        board.answer(token["q"], f"{token['text']} Yes.")
        firing.commit(token)

    @source.fires("ask back")
    def ask(firing: Firing) -> None:
        token = firing.to_add[0]
        board: Any = firing.board.board
        question = board.ask("Do you mean it?", id=f"about-{token['r']}")
        firing.commit(token)
        firing.add(question.id, "asked-for", token["r"])

    return source


def test_requests_and_questions_of_a_board_drive_the_shell(tmp_path: Path) -> None:
    with Blackboard(tmp_path / "board.db") as board:
        request = board.add_requests({"text": "sell everything"})
        report = ControlShell([clerk()], resolver=First(), board=BoardBridge(board)).run(run_id="r", seed=0)
        assert (report.ended, report.cycles, report.failures) == ("accepted", 2, ())
        (question,) = board.items(sections="questions")
        assert question.data["answer"] == "Do you mean it? Yes."
        fired = [i for i in board.items(sections="trajectories", run="r") if "production" in i.data or i.step]
        assert [item.step for item in fired] == [1, 1, 2, 2]
        (fact,) = board.items(sections="facts")
        assert fact.data == {
            "id": question.id,
            "attribute": "asked-for",
            "value": request.id,
            "derived": False,
        }
        tokens = {item.data["production"]: item.data for item in board.items(sections="tokens")}
        assert set(tokens) == {"answer the person", "ask back"}


def test_a_second_process_reads_the_same_board(tmp_path: Path) -> None:
    with Blackboard(tmp_path / "board.db") as board:
        board.ask("Is it late?")
        with Blackboard(tmp_path / "board.db") as other:
            shell = ControlShell([clerk()], resolver=First(), board=BoardBridge(other))
            assert shell.run(run_id="r", seed=0).ended == "accepted"
        assert not board.open_questions()
