"""Graphs and pictures of trees."""

from __future__ import annotations

from metatree import Node
from metatree.testing.parts import tree_of
from metatree.trees._drawing import to_graphviz, to_mermaid, to_networkx


def test_a_graph_has_every_node_once_in_tree_order() -> None:
    import networkx

    tree = tree_of({"a": {"a1": "x", "a2": {"deep": "y"}}, "b": "z"})
    graph = to_networkx(tree)
    assert list(graph) == [".", "a", "a1", "a2", "deep", "b"]
    assert networkx.is_arborescence(graph)
    assert list(tree.to_networkx("a", depth=1).edges) == [("a", "a1"), ("a", "a2")]
    assert graph.nodes["deep"] == {
        "title": "deep",
        "description": "what deep holds",
        "kind": "note",
        "depth": 3,
    }


def test_marks_in_titles_do_not_break_a_picture() -> None:
    tree = tree_of({})
    tree.add(Node("x", 'say "hi" <b>\\ #1\nand a `title` of many words, too long for a box'))
    assert '  n1["say #quot;hi#quot; #lt;b#gt;#92; #35;1 and a #96;title#96; of many …"]' in to_mermaid(tree)
    assert '  n1 [label="say \\"hi\\" <b>\\\\ #1 and a `title` of many …"];' in to_graphviz(tree)


def test_what_is_left_out_is_counted() -> None:
    tree = tree_of({"a": {"a1": {"deep": "x", "deeper": "y"}}, "b": "z", "c": "z"})
    picture = to_mermaid(tree, depth=2)
    assert '  m2["2 more"]:::more' in picture
    assert "  n2 -.-> m2" in picture
    assert "classDef more" in picture
    picture = to_graphviz(tree, most=2)
    assert picture.count(" more") == 2
    assert '  m0 [label="2 more", style=dashed];' in picture  # b and c
    assert '  m1 [label="1 more", style=dashed];' in picture  # a1
