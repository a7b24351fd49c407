"""The search machine on small trees, with scripted parts."""

from __future__ import annotations

from metatree import Node, RouteDecision, RouteRequest, Traits, Tree, search
from metatree.searches._tree_steps import MOST_LEVELS
from metatree.testing.parts import FunctionRouter, ScriptedReader, ScriptedRouter


def small_tree() -> Tree:
    tree = Tree.create(":memory:")
    for branch in "ab":
        tree.add(Node(id=branch, title=branch.upper(), description=f"branch {branch}"), parent=tree.root)
        for leaf in "123":
            name = branch + leaf
            tree.add(
                Node(id=name, title=name, description=f"leaf {name}", content=f"text of {name}"),
                parent=branch,
            )
    return tree


def test_a_right_router_finds_the_leaf_in_depth_calls() -> None:
    router = ScriptedRouter(["b", "b2"])
    result = search(
        "q",
        tree=small_tree(),
        router=router,
        reader=ScriptedReader({"b2": {"q": "text of b2"}}),
        evidence=False,
    )
    assert (result.ended, result.answer) == ("answered", "text of b2")
    assert result.usage.router_calls == 2
    assert [o.id for o in router.requests[1].options] == ["b1", "b2", "b3"]
    assert result.answers[0].sources[0].quote == "text of b2"


def test_it_backtracks_and_never_offers_a_marked_node() -> None:
    reader = ScriptedReader({"b3": {"q": "yes"}})
    router = ScriptedRouter(["a", RouteDecision("a1", {"a2": "no"}), "b1", RouteDecision("b3")])
    result = search("q", tree=small_tree(), router=router, reader=reader, evidence=False)
    assert result.ended == "answered"
    assert [[o.id for o in r.options] for r in router.requests] == [
        ["a", "b"],
        ["a1", "a2", "a3"],
        ["b1", "b2", "b3"],
        ["b2", "b3"],
    ]
    assert [r.node.id for r in reader.requests] == ["a1", "a3", "b1", "b3"]


def test_an_empty_decision_rules_out_everything_and_a_second_look_brings_it_back() -> None:
    def choose(request: RouteRequest) -> str | None:
        return request.options[0].id if len(router.requests) > 1 else None

    router = FunctionRouter(choose)
    result = search(
        "q", tree=small_tree(), router=router, reader=ScriptedReader({"a1": {"q": "yes"}}), evidence=False
    )
    assert result.ended == "answered"
    assert any(e.event == "second_look" for e in result.trace)


class Wide(FunctionRouter):
    """Takes menus of any length, so that two levels are offered."""

    traits = Traits(capacity=lambda request: len(request.options))


def test_a_second_look_brings_back_what_was_ruled_out_beside_the_branch_it_lies_in() -> None:
    """Branch `a` is left with nothing to offer, since its leaves were ruled out in the menu of the root."""

    def choose(request: RouteRequest) -> RouteDecision:
        ids = [option.id for option in request.options]
        if ids[0] == "a" and "b" in ids and len(router.requests) == 1:
            return RouteDecision("b", {"a1": "no", "a2": "no", "a3": "no"})
        return RouteDecision(ids[0])

    router = Wide(choose)
    reader = ScriptedReader({"a2": {"q": "yes"}})
    result = search("q", tree=small_tree(), router=router, reader=reader, evidence=False)
    assert len(router.requests[0].options) == 8
    assert (result.ended, result.answer) == ("answered", "yes")


def test_nodes_are_collected_up_to_k() -> None:
    router = FunctionRouter(lambda request: request.options[-1].id)
    result = search("q", tree=small_tree(), router=router, returns="nodes", k=4, evidence=False)
    assert [n.id for n in result.nodes] == ["b3", "b2", "b1", "a3"]
    assert result.ended == "answered"


def test_the_start_node_is_explored_first_then_its_surroundings() -> None:
    reader = ScriptedReader({"a2": {"q": "yes"}})
    result = search(
        "q",
        "b",
        tree=small_tree(),
        router=FunctionRouter(lambda request: request.options[0].id),
        reader=reader,
        evidence=False,
    )
    assert [r.node.id for r in reader.requests] == ["b1", "b2", "b3", "a1", "a2"]
    assert result.ended == "answered"


class NarrowRouter(FunctionRouter):
    """A router whose prompt holds four options."""

    traits = Traits(capacity=lambda request: 4)


def test_a_menu_that_does_not_fit_is_routed_as_a_knock_out() -> None:
    tree = Tree.create(":memory:")
    for number in range(30):
        tree.add(Node(id=f"n{number:02}", title=f"node {number}", content="text"), parent=tree.root)

    def choose(request: RouteRequest) -> str | None:
        ids = [o.id for o in request.options]
        return "n17" if "n17" in ids else ids[0] if "n04" in ids else None

    router = NarrowRouter(choose)
    reader = ScriptedReader({"n17": {"q": "yes"}})
    result = search("q", tree=tree, router=router, reader=reader, evidence=False)
    assert result.ended == "answered"
    assert max(len(r.options) for r in router.requests) <= 4
    assert len(router.requests) == 9  # eight groups, and the two winners
    assert result.usage.router_calls == 9
    assert [r.node.id for r in reader.requests] == ["n17"]


def test_two_levels_are_shown_when_they_fit() -> None:
    class Wide(FunctionRouter):
        traits = Traits(capacity=lambda request: 100)

    router = Wide(lambda request: "b2")
    reader = ScriptedReader({"b2": {"q": "yes"}})
    result = search("q", tree=small_tree(), router=router, reader=reader, evidence=False)
    assert result.usage.router_calls == 1
    assert [(o.id, o.parent) for o in router.requests[0].options][:3] == [
        ("a", None),
        ("a1", "A"),
        ("a2", "A"),
    ]


class Sure(FunctionRouter):
    """Says how likely each option is."""

    traits = Traits(gives_probabilities=True)


def test_a_search_goes_up_when_more_is_likely_above_than_is_left_below() -> None:
    """Branch `a` has .6, of which .5 is in what does not answer: what is left of it has .3, and branch `b` .4."""
    shares = {"a": 0.6, "b": 0.4, "a1": 0.5, "a2": 0.3, "a3": 0.2, "b1": 0.1, "b2": 0.8, "b3": 0.1}

    def choose(request: RouteRequest) -> RouteDecision:
        offered = {option.id: shares[option.id] for option in request.options}
        return RouteDecision(max(offered, key=offered.__getitem__), probabilities=offered)

    for answers, read in (("b2", ["a1", "b2"]), ("a3", ["a1", "b2", "b1", "b3", "a2", "a3"])):
        reader = ScriptedReader({answers: {"q": "yes"}})
        result = search("q", tree=small_tree(), router=Sure(choose), reader=reader, evidence=False)
        assert result.ended == "answered"
        assert [request.node.id for request in reader.requests] == read


def test_a_chain_is_walked_down_to_a_bound() -> None:
    """What the only option leads to is entered without asking, whatever the limits of a search."""
    tree = Tree.create(":memory:")
    parent = tree.root
    for number in range(MOST_LEVELS + 1):
        parent = tree.add(Node(id=f"n{number}", title="step"), parent=parent).id
    reader = ScriptedReader({f"n{MOST_LEVELS}": {"q": "yes"}})
    result = search("q", tree=tree, router=ScriptedRouter([]), reader=reader, evidence=False)
    marked = {event.node for event in result.trace if event.reason == f"it lies {MOST_LEVELS:,} levels deep"}
    assert result.ended == "exhausted" and marked == {f"n{MOST_LEVELS - 1}"}
