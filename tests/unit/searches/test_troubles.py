"""A part that does not work is named in the result; it must not look like a tree that says nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from metatree import Limits, Reading, ReadRequest, RouteDecision, RouteRequest, UserError, search
from metatree.testing.parts import FunctionRouter, ScriptedReader, tree_of

TREE = {"a": {"a1": "x", "a2": "y"}, "b": {"b1": "z"}}


class DeadReader:
    async def read(self, request: ReadRequest) -> Reading:
        raise ValueError("the key is wrong")


class DeadRouter:
    async def route(self, request: RouteRequest) -> RouteDecision:
        raise ValueError("the key is wrong")


def first(request: RouteRequest) -> str:
    return request.options[0].id


def test_a_reader_that_never_reads_ends_the_run_as_failed() -> None:
    result = search(
        "q", tree=tree_of(TREE), router=FunctionRouter(first), reader=DeadReader(), evidence=False
    )
    assert result.ended == "failed"
    assert "the reader failed at 3 of 3 requests" in result.detail and "the key is wrong" in result.detail


def test_a_dead_router_is_named_though_the_order_by_evidence_answers() -> None:
    reader = ScriptedReader({"b1": {"q": "z"}})
    result = search("q", tree=tree_of(TREE), router=DeadRouter(), reader=reader, evidence=False)
    assert result.ended == "answered"
    assert "the router failed at" in result.detail and "the key is wrong" in result.detail


DEEP = {f"a{n}": {f"a{n}{m}": f"text {n}{m}" for m in range(4)} for n in range(8)}


def broken(request: RouteRequest) -> RouteDecision:
    raise ValueError("out of luck")


def test_a_router_that_fails_three_times_in_a_row_is_replaced_and_named_with_its_error() -> None:
    reader = ScriptedReader({"a73": {"Where is a73?": "z"}})
    result = search("Where is a73?", tree=tree_of(DEEP), router=broken, reader=reader, evidence=False)
    assert result.ended == "answered" and result.usage.failed_attempts == 9
    assert result.detail == (
        "the router 'broken' failed at 3 requests in a row (ValueError: out of luck): "
        "the embedded router chose the way from there"
    )
    assert sum("the router failed" in entry.reason for entry in result.trace) == 3


def test_what_failed_is_said_at_a_limit_too_and_the_order_of_the_tree_is_not_called_evidence() -> None:
    limits = Limits(router_calls=6)
    result = search("q", tree=tree_of(DEEP), router=broken, evidence=False, limits=limits)
    assert result.ended == "limit"
    assert result.detail.startswith(
        "router_calls; the router failed at 2 of 2 requests; the order of the tree"
    )
    routed = [entry for entry in result.trace if entry.event == "route" and "offered" in entry.data]
    assert {(entry.data["by"], entry.reason) for entry in routed} == {("tree", "order of the tree")}


@pytest.mark.parametrize("said", [None, "a", {"choice": "a"}, RouteDecision])
def test_a_function_that_returns_no_decision_ends_the_run_at_once_and_is_named(said: Any) -> None:
    def forgot(request: RouteRequest) -> Any:
        return said

    result = search("q", tree=tree_of(DEEP), router=forgot, evidence=False)
    assert (result.ended, result.usage.router_calls) == ("failed", 1)
    assert "forgot' must return a RouteDecision, not " in result.detail
    assert f"not {type(said).__name__}: RouteDecision(option.id)" in result.detail


def test_a_run_in_which_all_went_well_has_no_detail() -> None:
    reader = ScriptedReader({"b1": {"q": "z"}})
    result = search("q", tree=tree_of(TREE), router=FunctionRouter(first), reader=reader, evidence=False)
    assert (result.ended, result.detail) == ("answered", "")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"router": object()}, "router must have a method 'route'"),
        ({"router": DeadRouter}, r"router is the class DeadRouter: give an object of it, DeadRouter\(…\)"),
        ({"router": "nosuch"}, "no router 'nosuch' is installed; there are .*embedded"),
        ({"reader": 3}, "reader must have a method 'read'"),
        ({"fallbacks": [3]}, r"fallbacks\[0\] is 3: give a function, or ask_person"),
        ({"tree": "/some/path"}, r"give a Tree, from Tree.open\(path\) or build_tree\(path\)"),
        ({"limits": {"router_calls": 1}}, "give Limits"),
        ({"evidence": object()}, "evidence must have a method 'score'"),
    ],
)
def test_what_is_no_part_is_refused_at_once(given: dict[str, Any], message: str) -> None:
    options: dict[str, Any] = {"tree": tree_of(TREE), "evidence": False} | given
    with pytest.raises(UserError, match=message):
        search("q", **options)


def test_a_source_that_changed_is_named_in_the_detail(tmp_path: Path) -> None:
    from metatree_memory_tools import build_tree

    (tmp_path / "a.md").write_text("The zebra is striped.\n")
    (tmp_path / "b.md").write_text("The horse is not.\n")
    with build_tree(tmp_path) as tree:
        (tmp_path / "a.md").write_text("Other words stand here now, and more of them.\n")
        (tmp_path / "b.md").unlink()
        result = search("Is the zebra striped?", tree=tree, router=FunctionRouter(first), reader=DeadReader())
    assert "2 nodes could not be read" in result.detail and "refresh the tree" in result.detail
