"""`returns="nodes"`: what is chosen is collected, nothing is read."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import pytest

from metatree import (
    Limits,
    Node,
    RouteDecision,
    RouteRequest,
    Scored,
    SearchResult,
    Traits,
    Tree,
    UserError,
    resume,
    search,
)
from metatree.testing.parts import FunctionRouter, ScriptedRouter, tree_of


class NoReader:
    async def read(self, request: Any) -> Any:
        raise AssertionError("nothing is read when nodes are wanted")


def run(tree: Tree, *args: Any, **given: Any) -> SearchResult:
    given.setdefault("router", FunctionRouter(lambda request: request.options[0].id))
    given.setdefault("evidence", False)
    return search("q", *args, tree=tree, returns="nodes", reader=NoReader(), **given)


class Words:
    """Evidence by table: node -> score."""

    def __init__(self, tree: Tree, scores: dict[str, float]) -> None:
        self.tree, self.scores = tree, scores

    def score(
        self,
        questions: Sequence[str],
        *,
        under: str | None = None,
        among: Collection[str] | None = None,
        k: int = 10,
    ) -> list[Scored]:
        scored_nodes = [
            Scored(node, score, f"line of {node}")
            for node, score in sorted(self.scores.items(), key=lambda pair: -pair[1])
            if (among is None or node in among)
            and (under is None or node == under or under in self.tree.ancestors(node))
        ]
        return scored_nodes[:k]


SHAPE: Any = {"a": {"a1": "text", "a2": "text"}, "b": {"b1": "text", "b2": "text"}}


def test_it_goes_on_until_k_are_collected_in_the_order_of_choice() -> None:
    result = run(tree_of(SHAPE), k=3)
    assert ([n.id for n in result.nodes], result.ended, result.usage.reads) == (
        ["a1", "a2", "b1"],
        "answered",
        0,
    )
    result = run(tree_of(SHAPE), k=99)
    assert ([n.id for n in result.nodes], result.ended) == (["a1", "a2", "b1", "b2"], "answered")


def test_a_limit_keeps_what_was_collected() -> None:
    tree = tree_of(SHAPE)
    result = run(tree, k=99, limits=Limits(router_calls=3), run_id="r")
    assert (len(result.nodes), result.ended) == (2, "limit")
    given: Any = {"router": FunctionRouter(lambda r: r.options[0].id), "evidence": False, "limits": Limits()}
    assert [n.id for n in resume("r", tree=tree, **given).nodes] == ["a1", "a2", "b1", "b2"]


def test_a_single_option_that_could_be_collected_is_put_to_the_router() -> None:
    router = FunctionRouter(lambda request: None)
    result = run(tree_of({"a": {"only": "text"}}), router=router)
    assert [[o.id for o in r.options] for r in router.requests] == [
        ["only"],
        ["only"],
    ]  # and in the second look
    assert (result.nodes, result.ended) == ((), "exhausted")


def test_only_accepted_nodes_are_collected() -> None:
    tree = Tree.create(":memory:")
    tree.add(Node("f", "f.py", kind="file"))
    tree.add(Node("d", "run", kind="definition", content="def run()"), parent="f")
    assert [n.id for n in run(tree, accept="definition").nodes] == ["d"]
    assert [n.id for n in run(tree, accept=["file"]).nodes] == ["f"]
    assert [n.id for n in run(tree, accept=lambda node: node.title == "run").nodes] == ["d"]
    assert [n.id for n in run(tree, accept=["table"]).nodes] == []


def test_tools_that_say_what_they_do_in_a_line_are_collected() -> None:
    tree = Tree.create(":memory:")
    tree.add(Node("mail", "mail", kind="folder"))
    tree.add(Node("send", "send_mail", "Send a letter.", kind="tool"), parent="mail")
    assert [n.id for n in run(tree).nodes] == ["send"]


def code_tree() -> Tree:
    tree = Tree.create(":memory:")
    for file in ("f", "g"):
        tree.add(Node(f"{file}.py", f"{file}.py", kind="file"))
        for name in ("one", "two"):
            tree.add(Node(f"{file}.py::{name}", name, kind="definition", content="def"), parent=f"{file}.py")
    return tree


def best_leaf(request: RouteRequest) -> str:
    return max(request.options, key=lambda option: (option.score or 0, option.parent is not None)).id


def test_a_file_that_was_collected_leaves_what_is_below_it_open() -> None:
    result = run(code_tree(), k=9)
    assert [n.id for n in result.nodes] == [
        *("f.py", "f.py::one", "f.py::two"),
        *("g.py", "g.py::one", "g.py::two"),
    ]
    evidence = Words(tree := code_tree(), {"f.py": 0.9, "f.py::two": 0.8, "g.py": 0.7})
    router = FunctionRouter(best_leaf)
    assert [n.id for n in run(tree, router=router, k=3, evidence=evidence).nodes] == [
        *("f.py", "f.py::two", "g.py")
    ]


def test_nothing_below_is_looked_for_when_nothing_there_could_be_collected() -> None:
    router = FunctionRouter(lambda request: request.options[0].id)
    assert [n.id for n in run(code_tree(), router=router, k=2, accept="file").nodes] == ["f.py", "g.py"]
    assert len(router.requests) == 2


class ByEvidence(FunctionRouter):
    """A router that adds nothing to what the evidence says."""

    traits = Traits(follows_evidence=True)


def test_a_router_that_follows_evidence_is_asked_once_for_all() -> None:
    scores = {"f.py::two": 0.9, "g.py": 0.8, "g.py::one": 0.7, "f.py::one": 0.2}

    def found(router: FunctionRouter, k: int) -> tuple[list[tuple[str, float]], int]:
        result = run(tree := code_tree(), router=router, k=k, evidence=Words(tree, scores))
        collects = [entry.node for entry in result.trace if entry.event == "collect"]
        assert collects == [n.id for n in result.nodes]
        return [(n.id, n.score) for n in result.nodes], result.usage.router_calls

    for k in (1, 2, 3, 4):
        at_once, calls = found(ByEvidence(best_leaf), k)
        one_by_one, more_calls = found(FunctionRouter(best_leaf), k)
        assert at_once == one_by_one == list(scores.items())[:k]
        assert calls == 1 <= more_calls


def test_a_tree_in_the_place_of_the_start_node_is_wrong_use() -> None:
    tree = tree_of(SHAPE)
    with pytest.raises(UserError, match="a tree is given as tree="):
        search("which?", tree, tree=tree)  # type: ignore[arg-type]


@pytest.mark.parametrize("accept", [5, [], [5], {"file": 1}.values()])
def test_a_wrong_accept_is_wrong_use(accept: Any) -> None:
    with pytest.raises(UserError, match="give kinds of nodes"):
        run(tree_of(SHAPE), accept=accept)


def test_accepted_kinds_hold_when_the_run_is_resumed_and_a_function_is_asked_for() -> None:
    tree = Tree.create(":memory:")
    for i in range(4):
        tree.add(Node(f"f{i}", f"f{i}", kind="file" if i % 2 else "note", content="x"))
    router: Any = {"router": FunctionRouter(lambda r: r.options[-1].id), "evidence": False}
    run(tree, accept="file", limits=Limits(router_calls=1), run_id="kinds")
    assert [n.id for n in resume("kinds", tree=tree, limits=Limits(), **router).nodes] == ["f3", "f1"]
    run(tree, accept=lambda node: node.kind == "file", limits=Limits(router_calls=1), run_id="function")
    with pytest.raises(UserError, match="begun with an accept function"):
        resume("function", tree=tree, limits=Limits(), **router)


def test_the_start_node_itself_may_be_what_is_looked_for() -> None:
    tree = tree_of({"a": ("own text", {"a1": "text"})})
    router = ScriptedRouter(["a"])
    assert [n.id for n in run(tree, "a", router=router, k=1).nodes] == ["a"]
    declines = FunctionRouter(lambda r: None if r.options[0].id == "a" else r.options[0].id)
    assert [
        n.id for n in run(tree_of({"a": ("own text", {"a1": "text"})}), "a", router=declines, k=1).nodes
    ] == ["a1"]


def test_evidence_gives_scores_hints_and_leaves_beside_the_branches() -> None:
    tree = tree_of(SHAPE)
    router = ScriptedRouter(["b2"])
    result = run(tree, router=router, k=1, evidence=Words(tree, {"b2": 0.9, "a1": 0.2}))
    assert [(o.id, o.parent, o.score, o.hints) for o in router.requests[0].options] == [
        ("a", None, 0.2, ("a1: line of a1",)),
        ("b", None, 0.9, ("b2: line of b2",)),
        ("b2", "b", 0.9, ("line of b2",)),
    ]
    assert [(n.id, n.score) for n in result.nodes] == [("b2", 0.9)]
    assert result.usage.router_calls == 1


def test_a_router_that_fails_leaves_the_order_to_evidence() -> None:
    tree = tree_of(SHAPE)
    router = FunctionRouter(lambda request: ValueError("broken"))
    result = run(tree, router=router, k=2, evidence=Words(tree, {"b2": 0.9, "b1": 0.5, "a1": 0.4}))
    assert [n.id for n in result.nodes] == ["b2", "b1"]
    assert {e.data["by"] for e in result.trace if e.event == "route"} == {"nobody", "evidence"}


def test_evidence_that_raises_is_done_without() -> None:
    class Broken:
        def score(self, questions: Any, **given: Any) -> Any:
            raise KeyError("index")

    result = run(tree_of(SHAPE), k=2, evidence=Broken())
    assert ([n.id for n in result.nodes], result.usage.failed_attempts) == (["a1", "a2"], 0)


class Narrow(FunctionRouter):
    """A router whose prompt holds two options."""

    traits = Traits(capacity=lambda request: 2)


def test_a_knock_out_ends_though_evidence_offers_leaves_beside_its_groups() -> None:
    tree = tree_of(SHAPE)
    router = Narrow(lambda request: request.options[-1].id)
    result = run(tree, router=router, k=1, evidence=Words(tree, {"a1": 0.9, "a2": 0.8, "b1": 0.7}))
    assert len(result.nodes) == 1
    assert max(len(r.options) for r in router.requests) == 2
    assert len(router.requests) <= 4


def test_a_router_that_fails_in_a_knock_out_leaves_that_group_to_evidence() -> None:
    tree = tree_of({f"n{i}": "text" for i in range(6)})

    def choose(request: RouteRequest) -> Any:
        if request.options[0].id == "n2":
            return ValueError("broken")
        return "n5" if request.options[-1].id == "n5" else RouteDecision(None, {request.options[0].id: "no"})

    router = Narrow(choose)
    result = run(tree, router=router, k=1, evidence=Words(tree, {"n3": 0.9}))
    groups = [e for e in result.trace if e.event == "route" and e.data.get("group")]
    assert [(e.data["offered"], e.data["choice"], e.data["by"]) for e in groups] == [
        (["n0", "n1"], None, "router"),
        (["n2", "n3"], "n3", "evidence"),
        (["n4", "n5"], "n5", "router"),
    ]
    assert [n.id for n in result.nodes] == ["n5"]
