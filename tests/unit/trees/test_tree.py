"""A tree made by hand, in memory."""

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from metatree.errors import UnknownNode, UserError
from metatree.node import Node, Source, digest_of
from metatree.trees.tree import Tree


@pytest.fixture
def tree() -> Iterator[Tree]:
    with Tree.create(title="things") as tree:
        tree.add(Node("a", "Auth", "Login and tokens", kind="folder"))
        tree.add(Node("a1", "tokens.py", content="TTL = 60"), "a")
        tree.add(Node("a2", "login.py", content="def login(): ..."), "a")
        tree.add(Node("b", "Billing", kind="folder"))
        yield tree


def ids(nodes: Iterable[Node]) -> list[str]:
    return [node.id for node in nodes]


def test_children_come_in_order_without_their_text_but_say_that_they_have_some(tree: Tree) -> None:
    first = tree.children("a")[0]
    assert ids(tree.children("a")) == ["a1", "a2"]
    assert first.content is None and first.has_content and first.content_kept
    assert not tree.children()[0].has_content
    assert tree.get("a1").content == tree.content("a1") == tree.content(first) == "TTL = 60"


def test_before_puts_a_node_in_front_however_often(tree: Tree) -> None:
    for number in range(100):
        tree.add(Node(f"x{number}", "x"), "a", before="a2")
    assert ids(tree.children("a")) == ["a1", *(f"x{n}" for n in range(100)), "a2"]
    tree.move("a2", "a", before="a1")
    assert ids(tree.children("a"))[:2] == ["a2", "a1"]
    with pytest.raises(UnknownNode):
        tree.add(Node("y", "y"), "a", before="b")


def test_a_node_knows_the_way_from_the_root(tree: Tree) -> None:
    assert tree.ancestors("a1") == [".", "a"]
    assert tree.ancestors(".") == []
    assert tree.parent("a1") == "a" and tree.parent(".") is None
    assert [(d, n.id) for d, n in tree.walk()] == [(0, "."), (1, "a"), (2, "a1"), (2, "a2"), (1, "b")]
    assert [(d, n.id) for d, n in tree.walk("a", depth=0)] == [(0, "a")]
    assert all(node.content is None for _, node in tree.walk("a1"))


def test_what_is_deleted_is_gone_with_all_below_and_its_ids_can_be_used_again(tree: Tree) -> None:
    tree.delete("a")
    assert tree.find("a1") is None and "a" not in tree and len(tree) == 2
    for call in (tree.get, tree.children, tree.ancestors, tree.content, tree.links, tree.delete):
        with pytest.raises(UnknownNode):
            call("a1")
    tree.add(Node("a", "Another"))
    assert tree.children("a") == []
    tree.add(Node("a1", "another"), "b")
    assert tree.ancestors("a1") == [".", "b"] and tree.get("a1").content is None
    tree.purge()
    assert sorted(node.id for _, node in tree.walk()) == [".", "a", "a1", "b"]
    assert tree.memory.rows("SELECT id FROM node ORDER BY id") == [(".",), ("a",), ("a1",), ("b",)]


def test_purging_is_bounded_and_reclaims_everything_in_the_end(tree: Tree) -> None:
    tree.add_many((Node(f"n{n}", "n", content="x"), "a" if n < 10 else f"n{n - 10}") for n in range(100))
    tree.delete("a")
    assert tree.purge(7) == 7
    while tree.purge(7):
        pass
    assert tree.memory.rows("SELECT count(*) FROM node") == [(2,)]
    assert tree.memory.rows("SELECT count(*) FROM content") == [(0,)]


def test_a_node_cannot_be_moved_below_itself(tree: Tree) -> None:
    for target in ("a", "a1"):
        with pytest.raises(UserError, match="below itself"):
            tree.move("a", target)
    tree.move("b", "a1")
    assert tree.ancestors("b") == [".", "a", "a1"]
    with pytest.raises(UserError, match="below itself"):
        tree.move("a1", "b")


def test_the_root_stays(tree: Tree) -> None:
    for call in (lambda: tree.delete("."), lambda: tree.move(".", "a"), lambda: tree.add(Node(".", "x"))):
        with pytest.raises(UserError):
            call()
    assert tree.update(Node(".", "other", "words", kind="folder")).title == "other"
    assert tree.get(tree.root).description == "words"


def test_an_id_in_use_is_refused_and_nothing_is_half_done(tree: Tree) -> None:
    with pytest.raises(UserError, match="exists"):
        tree.add(Node("a1", "again"), "b")
    before = tree.sequence
    with pytest.raises(UserError, match="exists"):
        tree.add_many([(Node("n1", "n"), "b"), (Node("a1", "again"), "b")])
    with pytest.raises(UserError, match="twice"):
        tree.add_many([(Node("n1", "n"), "b"), (Node("n1", "n"), "b")])
    with pytest.raises(UnknownNode):
        tree.add_many([(Node("n1", "n"), "b"), (Node("n2", "n"), "nowhere")])
    assert tree.sequence == before and "n1" not in tree


def test_update_changes_the_digest_and_keeps_text_that_a_listing_left_out(tree: Tree) -> None:
    listed = tree.children("a")[0]
    old = listed.digest
    node = Node(**{**{f: getattr(listed, f) for f in listed.__slots__}, "title": "keys.py"})
    assert tree.update(node).digest != old
    assert tree.get("a1").title == "keys.py" and tree.content("a1") == "TTL = 60"
    tree.update(Node("a1", "keys.py"))
    assert not tree.get("a1").has_content
    with pytest.raises(UserError, match="no content"):
        tree.content("a1")
    with pytest.raises(UnknownNode):
        tree.update(Node("nowhere", "x"))


def test_all_fields_come_back(tree: Tree) -> None:
    given = Node("n", "t", "d", "c", "note", None, {"tool": "grep", "args": [1]}, {"lines": 3, "é": None})
    added = tree.add(given, "b")
    assert added.digest == digest_of(given)
    assert tree.get("n") == Node(
        "n", "t", "d", "c", "note", None, given.provenance, given.attributes, added.digest, True
    )


def test_what_cannot_be_kept_is_refused(tree: Tree) -> None:
    with pytest.raises(UserError, match="JSON"):
        tree.add(Node("n", "t", attributes={"x": object()}))
    with pytest.raises(UserError, match="JSON"):
        tree.add(Node("n", "t", digest="given", provenance={"x": {1, 2}}))
    with pytest.raises(UserError, match="id"):
        tree.add(Node("", "t"))
    with pytest.raises(UserError, match="surrogate"):
        tree.add(Node("\udc80", "t"))
    assert "n" not in tree


def test_an_unknown_id_comes_with_suggestions(tree: Tree) -> None:
    tree.add(Node("src/tokens.py", "tokens.py"), "a")
    tree.add(Node("src/tokens.py::Token.check", "Token.check"), "a")
    with pytest.raises(UnknownNode) as caught:
        tree.get("tokens.py")
    assert caught.value.suggestions[0] == "src/tokens.py"
    with pytest.raises(UnknownNode) as caught:
        tree.get("src/tokns.py")
    assert "src/tokens.py" in caught.value.suggestions
    assert len(caught.value.suggestions) <= 3
    tree.delete("src/tokens.py")
    with pytest.raises(UnknownNode) as caught:
        tree.get("tokens.py")
    assert "src/tokens.py" not in caught.value.suggestions


def test_suggestions_survive_any_text(tree: Tree) -> None:
    for text in ("%", "_", "\\", "", "/", "::", "#", "'", "\x00", "a" * 10_000):
        with pytest.raises(UnknownNode):
            tree.get(text)


def test_resolve_takes_what_people_write(tree: Tree) -> None:
    tree.add(Node("src", "src"))
    for text in ("src", "./src", "src/", " ./src/ ", "././src//"):
        assert tree.resolve(text) == "src"
    assert tree.resolve(".") == "." and tree.resolve("./") == "."
    with pytest.raises(UnknownNode):
        tree.resolve("scr/x")


def test_links_go_both_ways_and_end_with_their_nodes(tree: Tree) -> None:
    tree.link("a1", "a2", "imports")
    tree.link("a1", "a2", "imports")
    tree.link("a1", "b", "mentions")
    assert tree.links("a1") == [("imports", "a2"), ("mentions", "b")]
    assert tree.links("a1", "imports") == [("imports", "a2")]
    assert tree.links_to("a2") == [("imports", "a1")]
    tree.delete("a2")
    assert tree.links("a1") == [("mentions", "b")]
    tree.unlink("a1", "b", "mentions")
    assert tree.links("a1") == []
    with pytest.raises(UnknownNode):
        tree.link("a1", "a2", "imports")


def test_changes_tell_an_index_what_to_do(tree: Tree) -> None:
    start = tree.sequence
    assert list(tree.changes(start)) == []
    tree.delete("a")
    tree.add(Node("c", "c"))
    changes = list(tree.changes(start))
    assert {(node_id, there) for _, node_id, there in changes} == {
        ("a", False), ("a1", False), ("a2", False), ("c", True),
    }  # fmt: skip
    assert [number for number, _, _ in changes] == sorted(number for number, _, _ in changes)
    assert changes[-1][0] == tree.sequence
    assert list(tree.changes(changes[-1][0])) == []


def test_changes_may_be_taken_up_in_the_middle(tree: Tree) -> None:
    tree.add_many((Node(f"n{n}", "n"), "b") for n in range(2500))
    everything = list(tree.changes(0))
    assert len(everything) == 2500 + 5
    middle = everything[1234][0]
    assert list(tree.changes(middle)) == everything[1235:]


def test_counts(tree: Tree) -> None:
    assert len(tree) == 5 and tree.child_count() == 2 and tree.child_count("a") == 2
    assert tree.info()["kinds"] == {"folder": 3, "note": 2}
    tree.delete("a")
    assert tree.info()["kinds"] == {"folder": 2} and tree.info()["nodes"] == 2
    assert tree.source_root is None and tree.omissions() == [] and not tree.stale()
    with pytest.raises(UserError, match="not built"):
        tree.refresh()


def test_an_open_walk_survives_changes(tree: Tree) -> None:
    walk = tree.walk()
    next(walk)
    assert next(walk)[1].id == "a"
    tree.delete("a")
    assert [node.id for _, node in walk][-1] == "b"


def test_what_others_wrote_is_looked_for_once_within_synced_and_only_in_its_thread(tmp_path: Path) -> None:
    with Tree.create(tmp_path / "one.tree") as first, Tree.open(tmp_path / "one.tree") as second:
        first.add(Node("a", "Auth"))
        first.add(Node("b", "Billing"))
        assert len(list(first.nodes("ab"))) == 2
        with first.synced(), first.synced():
            second.delete("a")
            assert "a" in first and "b" in first, "there are no deletions here as long as nobody looks"
            with ThreadPoolExecutor() as other:
                assert other.submit(second.__contains__, "a").result() is False
        assert "a" not in first and "b" in first
        with first.synced():
            assert "a" not in first


@pytest.mark.parametrize("path", ["/root/.bashrc", "../other", "a/../../b", ""])
def test_a_path_that_leads_out_of_any_source_is_none(path: str) -> None:
    assert Node("n", "n", source=Source(type="text", path=path)).path is None
    assert Node("n", "n", attributes={"path": path}).path is None
    assert Node("n", "n", source=Source(type="text", path="a/b..c")).path == "a/b..c"
