"""The bridge between a blackboard and the control shell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from metatree.errors import UserError
from metatree.rules import BoardBridge, ControlShell, Firing, KnowledgeSource, WorkingMemory


@dataclass
class Item:
    id: str
    section: str
    data: dict[str, Any]
    agent: str
    changed: int
    removed: bool = False


class SmallBoard:
    """What the bridge needs of a blackboard, and no more."""

    def __init__(self) -> None:
        self.items: dict[str, Item] = {}
        self.version = 0

    def put(self, section: str, data: dict[str, Any], id: str, agent: str = "user") -> None:  # noqa: A002
        assert id not in self.items or self.items[id].data == data, "another item has this id"
        if id not in self.items or self.items[id].removed:
            self.version += 1
            self.items[id] = Item(id, section, data, agent, self.version)

    def add(self, section: str, data: Any, **about: Any) -> None:
        self.put(section, data, about["id"], about["agent"])

    def add_trajectories(self, trajectories: Any, **about: Any) -> None:
        self.add("trajectories", trajectories, **about)

    def update(self, item_id: str, data: Any) -> None:
        if item_id not in self.items:
            raise UserError(f"no item {item_id!r}")
        self.version += 1
        self.items[item_id].data |= data
        self.items[item_id].changed = self.version

    def remove(self, item_id: str) -> None:
        self.version += 1
        self.items[item_id].removed = True
        self.items[item_id].changed = self.version

    def changes(self, since: int = 0, *, sections: Sequence[str]) -> list[Item]:
        found = [i for i in self.items.values() if i.changed > since and i.section in sections]
        return sorted(found, key=lambda item: item.changed)

    def triples(self, item: str) -> Iterator[tuple[str, str, Any]]:
        yield item, "@section", self.items[item].section
        for relation, value in self.items[item].data.items():
            yield item, relation, value


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
    board = SmallBoard()
    board.put("questions", {"question": "Where?", "answer": None}, "q1")
    board.put("questions", {"question": "When?", "answer": "now"}, "q2")
    board.put("screenshots", {"question": "not read"}, "s1")
    report = ControlShell([answering("here")], board=BoardBridge(board)).run(run_id="r")
    assert (report.ended, report.cycles) == ("accepted", 1)
    assert board.items["q1"].data["answer"] == "here"
    assert ("q1", "answer", "here") in report.facts, "it saw its own answer come back"
    assert ("s1", "question", "not read") not in report.facts


def test_facts_tokens_and_firings_can_be_seen_on_the_board() -> None:
    board = SmallBoard()
    board.put("questions", {"question": "Where?", "answer": None}, "q1")
    ControlShell([answering("here")], board=BoardBridge(board)).run(run_id="r")
    step = board.items["r:fire:1"]
    assert step.section == "trajectories"
    assert (step.data["step"], step.data["subtask"]) == (1, "answer")
    facts = [i.data for i in board.items.values() if i.section == "facts"]
    assert facts == [{"id": "answers", "attribute": "given-to", "value": "q1", "derived": False}]
    tokens = board.items["r:tokens:answer"].data
    assert tokens["production"] == "answer"


def test_what_is_changed_or_removed_on_the_board_is_followed() -> None:
    board = SmallBoard()
    board.put("requests", {"text": "a", "urgent": True}, "r1")
    bridge, memory = BoardBridge(board), WorkingMemory()

    def look() -> list[tuple[str, Any]]:
        changes = bridge.look(memory)
        for sign, fact in changes:
            if sign == "+":
                memory.add(*fact, provenance={"board": True})
            else:
                memory.retract(*fact)
        return changes

    assert len(look()) == 3
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
