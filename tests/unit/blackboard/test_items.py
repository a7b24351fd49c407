"""Items: what a board takes, what it refuses, and what it knows of each."""

from __future__ import annotations

import json
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metatree import Blackboard
from metatree.blackboard import MemoryItem
from metatree.errors import BadItem, Conflict, UnknownItem, UserError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), JSON, max_size=4))
def test_whatever_json_holds_comes_back_unchanged(data: dict[str, Any]) -> None:
    with Blackboard() as board:
        item = board.add("facts", data)
        assert board.get(item.id).data == data
        assert board.section("facts").list_content == [data]
        assert json.loads(board.section("facts").to_json()) == [data]


def test_items_do_not_see_the_keys_of_each_other() -> None:
    first, second = MemoryItem(), MemoryItem()
    first.set_value("a", 1)
    second.add_values_from_dict({"b": 2})
    assert (first.attributes, second.attributes) == (["a"], ["b"])
    board = Blackboard()
    for item in (first, second):
        board.add_questions(item)
    assert board.questions.list_content == [{"a": 1}, {"b": 2}]


def test_key_called_to_dict_breaks_nothing() -> None:
    item = MemoryItem({"to_dict": "x", "filter": "y", "_values": "z"})
    assert item.to_dict() == {"to_dict": "x", "filter": "y", "_values": "z"}
    assert item.get_values(["to_dict", "none"]) == {"to_dict": "x", "none": None}
    assert item.filter(["filter"]) == {"filter": "y"}
    board = Blackboard()
    board.add_trajectories(item)
    assert board.trajectories.list_content == [item.to_dict()]


def test_memory_item_survives_pickling_and_reads_values_as_attributes() -> None:
    item = pickle.loads(pickle.dumps(MemoryItem({"subtask": "s"})))
    assert item.subtask == "s"
    assert item == MemoryItem({"subtask": "s"})
    with pytest.raises(AttributeError, match="no value 'other'"):
        _ = item.other


@dataclass
class Step:
    step: int
    parts: tuple[int, ...]


class Model:
    def model_dump(self, *, mode: str) -> dict[str, Any]:
        return {"mode": mode}


def test_dataclasses_and_pydantic_models_are_accepted() -> None:
    board = Blackboard()
    board.add("facts", Step(1, (2, 3)))
    board.add("facts", Model())
    assert board.section("facts").list_content == [{"step": 1, "parts": [2, 3]}, {"mode": "json"}]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (7, "not int"),
        (None, "not NoneType"),
        (["a"], "not list"),
        ({"a": {"b": [1, {2}]}}, "'a.b\\[1\\]' is set"),
        ({"a": float("nan")}, "'a' is nan"),
        ({1: "x"}, "key 1"),
        ({"a": [{2: "x"}]}, "key 2 at 'a\\[0\\]'"),
        ({"a": b"bytes"}, "'a' is bytes"),
        ({"a": Path("x")}, "convert it"),
    ],
)
def test_what_json_cannot_hold_is_an_error_at_the_call(data: Any, words: str) -> None:
    board = Blackboard()
    for add in (board.add_questions, board.add_requests, board.add_trajectories):
        with pytest.raises(BadItem, match=words):
            add(data)
    with pytest.raises(BadItem, match=words):
        board.add_many("facts", [{"good": 1}, data])
    with pytest.raises(BadItem, match=words):
        board.blackboard_from_dict({"questions": [{"good": 1}], "trajectories": [data]})
    assert board.is_empty()
    assert board.version == 0


def test_nesting_without_end_is_an_error() -> None:
    data: dict[str, Any] = {}
    data["self"] = data
    with pytest.raises(BadItem):
        Blackboard().add("facts", data)


def test_item_is_a_copy() -> None:
    board = Blackboard()
    data = {"list": [1]}
    item = board.add("facts", data)
    data["list"].append(2)
    item.data["list"].append(3)
    assert board.get(item.id).data == {"list": [1]}


def test_every_item_has_id_time_agent_run_step_and_sources() -> None:
    board = Blackboard(agent="planner", now=lambda: 12.5)
    first = board.add_questions("q")
    second = board.add_requests("r", run="r1", step=3, sources=["call:1", first.id], agent="host")
    assert (first.at, first.agent, first.run, first.step, first.sources) == (12.5, "planner", "", None, ())
    assert (second.agent, second.run, second.step, second.sources) == ("host", "r1", 3, ("call:1", first.id))
    assert first.id != second.id
    assert first.number < second.number
    assert [board.get(each.id) for each in (first, second)] == [first, second]


def test_same_id_adds_once_and_other_content_is_a_conflict() -> None:
    board = Blackboard()
    item = board.add("facts", {"a": 1}, id="x")
    assert board.add("facts", {"a": 1}, id="x") == item
    assert board.count() == 1
    with pytest.raises(Conflict, match="says something else"):
        board.add("facts", {"a": 2}, id="x")
    board.remove("x")
    with pytest.raises(Conflict, match="used before"):
        board.add("facts", {"a": 1}, id="x")


@pytest.mark.parametrize(
    "about", [{"id": ""}, {"step": "1"}, {"round": 2**64}, {"sources": [1]}, {"run": None}, {"runn": "r"}]
)
def test_wrong_words_about_an_item_are_refused(about: dict[str, Any]) -> None:
    board = Blackboard()
    with pytest.raises(UserError):
        board.add("facts", {}, **about)
    assert board.is_empty()


def test_update_is_conditional_on_the_version_that_was_read() -> None:
    board = Blackboard()
    item = board.add("facts", {"count": 1, "unit": "kg"})
    changed = board.update(item.id, {"count": 2}, if_version=item.version)
    assert (changed.version, changed.data) == (2, {"count": 2, "unit": "kg"})
    with pytest.raises(Conflict, match="is at version 2, not 1") as lost:
        board.update(item.id, {"count": 3}, if_version=item.version)
    assert (lost.value.expected, lost.value.found) == (1, 2)
    with pytest.raises(Conflict):
        board.remove(item.id, if_version=1)
    assert board.update(item.id, lambda data: {"only": data["count"] + 1}).data == {"only": 3}
    with pytest.raises(BadItem):
        board.update(item.id, {"bad": {1, 2}})
    assert board.get(item.id).data == {"only": 3}


def test_adding_is_conditional_on_the_version_of_the_board() -> None:
    board = Blackboard()
    seen = board.version
    board.add("facts", {"by": "other"})
    with pytest.raises(Conflict, match="at version 1, not 0"):
        board.add("facts", {"by": "me"}, if_version=seen)
    with pytest.raises(Conflict):
        board.add_many("facts", [{}, {}], if_version=seen)
    assert board.count() == 1
    board.add("facts", {"by": "me"}, if_version=board.version)
    assert board.count() == 2


def test_change_that_changes_nothing_is_none() -> None:
    board = Blackboard()
    item = board.add("facts", {"a": 1})
    assert board.update(item.id, {"a": 1}) == item
    assert board.pin(item.id, False) == item
    assert board.version == 1


def test_removed_item_is_gone_and_its_removal_is_reported() -> None:
    board = Blackboard()
    item = board.add("facts", {"a": 1})
    board.remove(item.id)
    with pytest.raises(UnknownItem):
        board.get(item.id)
    with pytest.raises(UnknownItem):
        board.update("never there", {})
    (change,) = board.changes(item.changed)
    assert (change.id, change.removed, change.data, change.changed) == (item.id, True, {}, 2)


def test_forgotten_removals_never_turn_versions_back() -> None:
    board = Blackboard()
    for _ in range(3):
        board.add("facts", {})
    board.clear()
    version = board.version
    assert board.forget_removed() == 2
    assert board.version == version
    assert board.add("facts", {}).changed == version + 1


def test_rounds_hold_requests_and_what_they_led_to() -> None:
    board = Blackboard()
    first = board.add_requests("book a table")
    more = board.add_requests("for four", round=1)
    second = board.add_requests("cancel it")
    board.add_trajectories("called", round=1)
    board.add("results", {"answer": "booked"}, sources=[first.id])
    board.add("results", {"answer": "cancelled"}, sources=[second.id])
    board.add("facts", {"unrelated": 1})
    rounds = board.rounds()
    assert [(r.number, [i.id for i in r.requests]) for r in rounds] == [
        (1, [first.id, more.id]),
        (2, [second.id]),
    ]
    assert [[i.data for i in r.results] for r in rounds] == [
        [{"text": "called"}, {"answer": "booked"}],
        [{"answer": "cancelled"}],
    ]


def test_search_finds_by_words_and_filters() -> None:
    board = Blackboard()
    board.add_trajectories({"step": 1, "subtask": "open the Übersicht"}, run="r1", agent="a")
    both = board.add_trajectories(
        {"step": 2, "subtask": "pay the invoice in the übersicht"}, run="r2", agent="b"
    )
    board.add_requests("pay the invoice")
    assert board.find("übersicht INVOICE")[0].id == both.id
    assert len(board.find("übersicht")) == 2
    assert [i.id for i in board.find("übersicht", run="r2")] == [both.id]
    assert [i.section for i in board.find("invoice", sections="requests")] == ["requests"]
    assert len(board.find("the", k=2)) == 2
    assert board.find("absent") == board.find("  ") == []
    assert [i.id for i in board.items(by="b")] == [both.id]
    assert board.count("trajectories", run=["r1", "r2"]) == 2


def test_items_are_filtered_by_time() -> None:
    clock = iter(range(10))
    board = Blackboard(now=lambda: float(next(clock)))
    for _ in range(4):
        board.add("facts", {})
    assert [i.at for i in board.items(added_since=1, added_until=3)] == [1.0, 2.0]


def test_items_are_read_as_triples() -> None:
    board = Blackboard(agent="a")
    item = board.add(
        "facts", {"is": True, "n": 1, "at": {"x": 3}, "kinds": ["k", "l"]}, step=4, sources=["s"]
    )
    triples = {(t.relation, t.value) for t in board.triples(item.id) if t.relation != "@at"}
    assert triples == {
        ("@section", "facts"),
        ("@agent", "a"),
        ("@step", 4),
        ("@source", "s"),
        ("is", True),
        ("n", 1),
        ("at.x", 3),
        ("kinds", "k"),
        ("kinds", "l"),
    }
    assert [t.relation for t in board.triples(value=1)] == ["n"]
    assert [t.value for t in board.triples(relation="kinds")] == ["k", "l"]
    assert list(board.triples("nothing")) == []


def test_unknown_filter_is_refused() -> None:
    with pytest.raises(UserError, match="'runn'"):
        Blackboard().items(runn="r")  # type: ignore[call-arg]


def test_listings_read_items_in_their_order_without_sorting_the_board(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    board = Blackboard()
    board.add_many("facts", [{"n": n} for n in range(50)])
    store = board._share.store
    statements: list[tuple[str, Any]] = []
    rows = store.rows

    def recorded(sql: str, values: Any = ()) -> list[tuple[Any, ...]]:
        statements.append((sql, values))
        return rows(sql, values)

    with monkeypatch.context() as patched:
        patched.setattr(store, "rows", recorded)
        board.items(limit=1, newest=True)
        board.items("facts", limit=1, newest=True)
        board.items("facts", limit=1, newest=True, pinned=False)
        board.items(sections=["facts", "requests"], limit=1)
        board.find("3")
        board.changes(limit=1)
    listings = [(sql, values) for sql, values in statements if "ORDER BY" in sql]
    assert len(listings) >= 7
    for sql, values in listings:
        plan = str(rows(f"EXPLAIN QUERY PLAN {sql}", values))
        assert "TEMP B-TREE" not in plan or "AND id " in sql, (sql, plan)
