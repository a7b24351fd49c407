"""Trees in trees: mounted read-only, brought up to date, read through, and cut where they lead back."""

from __future__ import annotations

from pathlib import Path

import pytest
from metatree_agents.code import files_to_edit
from metatree_memory_tools import build_tree
from metatree_memory_tools.trees.source import TreeSource

from metatree import Node, Source, Tree, UserError, search
from metatree.errors import StaleSource

pytestmark = pytest.mark.integration


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for path, text in {
        "shop/pay.py": "import cart\n\n\ndef charge(card):\n    'Charge a credit card.'\n    return card\n",
        "shop/cart.py": "def total():\n    'Sum up.'\n    return 3\n",
        "wiki/rules.md": "# Rules\n\n## Refunds\n\nRefunds are paid within 14 days.\n",
    }.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_stores_of_a_tree_below_a_folder_are_no_databases_of_it(places: Path) -> None:
    with build_tree("wiki", out="shop/kb") as kb:
        kb.add(Node("door", "Door", "The code of the door is 5521."))
    with (places / "shop/kb/memory.db").open("r+b") as store:
        store.truncate(60_000_000)  # more than is read of a database
    with build_tree("shop", out="shop.tree") as tree:
        assert not [node.id for _, node in tree.walk() if node.id.startswith("kb/") and node.kind != "file"]
        left_out = {path for path, reason in tree.omissions() if "tree:FOLDER" in reason}
    assert left_out == {"kb/index.db", "kb/memory.db"}


def test_what_somebody_else_made_in_a_tree_is_a_text_where_it_is_mounted(places: Path) -> None:
    with build_tree("shop") as shop:
        made = Node(
            "/root/.bashrc",
            "alarm.py",
            content="The teapot alarm is in alarm.py",
            kind="file",
            source=Source(path="/root/.bashrc"),
            attributes={"path": "/root/.bashrc", "tool": "x"},
        )
        shop.add_imported(made, shop.root)
        with build_tree("shop/.metatree", "wiki", out="both") as tree:
            node = tree.get("shop//root/.bashrc")
            assert (node.kind, node.path, node.source, dict(node.attributes)) == ("imported", None, None, {})
            assert tree.content(node) == "The teapot alarm is in alarm.py"
            assert not [
                each.path for each in files_to_edit("teapot alarm", tree=tree) if "bashrc" in each.path
            ]


def test_a_tree_mounted_into_another(places: Path) -> None:
    with build_tree("shop") as shop:
        shop.add(Node("n", "Hint", content="Cards of Oslo bank fail on Sundays."), "pay.py::charge")
        shop.link("cart.py", "pay.py", "see also")
        with build_tree("shop/.metatree", "wiki", out="both") as tree:
            assert [node.id for node in tree.children()] == ["shop", "wiki"]
            assert tree.content("shop/pay.py::charge") == shop.content("pay.py::charge")
            assert tree.content("shop/n") == "Cards of Oslo bank fail on Sundays."
            assert tree.parent("shop/n") == "shop/pay.py::charge"
            assert tree.links("shop/pay.py") == [("imports", "shop/cart.py")]
            assert tree.links("shop/cart.py") == [("see also", "shop/pay.py")]
            assert tree.file_of("shop/pay.py::charge") == places / "shop/pay.py"
            source = tree.source_of("shop/n")
            assert source is not None and (source.type, source.mount) == ("tree", "shop")
            tree.link("wiki/rules.md", "shop/pay.py", "about")
            assert tree.links("wiki/rules.md") == [("about", "shop/pay.py")]
            found = search("When do cards of Oslo bank fail?", tree=tree)
            assert "Sundays" in found.answer and found.answers[0].sources[0].node == "shop/n"
            found = search("When are refunds paid?", tree=tree)
            assert "14 days" in found.answer
            assert not tree.stale()
            since = tree.sequence
            shop.delete("n")
            shop.unlink("cart.py", "pay.py", "see also")
            (places / "shop/cart.py").write_text("def total():\n    'Add up.'\n    return 3\n")
            shop.refresh()
            assert tree.stale()
            tree.refresh()
            changed = {node_id: there for _, node_id, there in tree.changes(since)}
            assert changed == {"shop/n": False, "shop/cart.py::total": True}
            assert tree.links("shop/cart.py") == [] and "Add up" in tree.content("shop/cart.py::total")


def test_content_that_was_read_before_is_read_again_when_its_file_changed(places: Path) -> None:
    with build_tree("wiki") as wiki, build_tree("tree:wiki", out="both") as tree:
        assert tree.content("wiki/rules.md#refunds").endswith("14 days.")
        (places / "wiki/rules.md").write_text("# Rules\n\n## Refunds\n\nRefunds are paid within 15 days.\n")
        with pytest.raises(StaleSource):
            tree.content("wiki/rules.md#refunds")
        wiki.refresh()
        tree.refresh()
        assert tree.content("wiki/rules.md#refunds").endswith("15 days.")


def test_documents_with_links_are_mounted(places: Path) -> None:
    (places / "wiki/a.html").write_text(
        '<h1>A</h1><p>See <a href="b.html">b</a>, <a href="rules.md">rules</a>.</p>'
    )
    (places / "wiki/b.html").write_text("<h1>B</h1><p>Parcels leave at noon.</p>")
    with build_tree("wiki") as wiki:
        assert wiki.get("a.html").attributes["links"]
    with build_tree("wiki/.metatree", out="both") as tree:
        assert "note" not in tree.get("wiki").attributes
        assert ("links", "wiki/b.html") in tree.links("wiki/a.html")


def test_a_tree_in_one_file_and_one_that_was_built_anew(places: Path) -> None:
    with Tree.create("notes.db") as notes:
        notes.add(Node("a", "Auth", content="Tokens last an hour."))
    with build_tree("notes.db", "tree:wiki", out="both") as tree:
        assert "no tree in" in tree.get("wiki").attributes["note"]
        build_tree("wiki").close()
        assert tree.stale()
        tree.refresh()
        assert tree.content("notes.db/a") == "Tokens last an hour."
        assert tree.content("wiki/rules.md#refunds").endswith("14 days.")
        for file in (places / "wiki/.metatree").glob("index.db*"):
            file.unlink()
        (places / "wiki/rules.md").write_text("# Rules\n\n## Refunds\n\nNo refunds.\n")
        assert not tree.stale()  # out of reach
        build_tree("wiki").close()
        assert tree.stale()
        tree.refresh()
        assert tree.content("wiki/rules.md#refunds").endswith("No refunds.")


def test_trees_that_refer_to_one_another_are_cut_where_they_lead_back(places: Path) -> None:
    sizes: list[int] = []
    for _ in range(3):
        with build_tree("shop", out="a") as one, build_tree("wiki", "tree:a", out="b") as two:
            sizes += [len(one), len(two)]
    with build_tree("shop", "tree:b", out="a") as one, build_tree("wiki", "tree:a", out="b") as two:
        for _ in range(3):
            one.refresh()
            two.refresh()
            sizes += [len(one), len(two)]
        assert len(set(sizes[6::2])) == 1 and len(set(sizes[7::2])) == 1
        assert not one.stale() and not two.stale()
        assert "b/wiki/rules.md#refunds" in one and "a/shop/pay.py::charge" in two
        assert one.children("b/a") == []
        assert "not repeated" in one.get("b/a").attributes["note"]
        assert "not repeated" in two.get("a/b").attributes["note"]
        assert "14 days" in search("When are refunds paid?", tree=one).answer


def test_a_tree_is_no_source_of_itself(places: Path) -> None:
    build_tree("shop", "wiki", out="both").close()
    with build_tree("shop", "both", out="both") as tree:
        assert tree.get("both").attributes["note"] == "cannot be read: a tree cannot be a source of itself"
        assert "shop/pay.py" in tree


def test_a_mounted_tree_that_is_damaged_harms_no_other(places: Path) -> None:
    build_tree("wiki").close()
    with build_tree("shop", "tree:wiki", out="both") as tree:
        tree.add(Node("n", "note", content="mind"), "shop/pay.py")
        before = tree.index.rows("SELECT value FROM meta WHERE key = 'generation'")
    index = places / "wiki/.metatree/index.db"
    index.write_bytes(b"noise" * 5000)
    (places / "shop/cart.py").write_text("def total():\n    'Add up.'\n    return 3\n")
    with Tree.open("both") as tree:
        assert tree.stale()
        tree.refresh()
        assert "is damaged" in tree.get("wiki").attributes["note"]
        assert "wiki/rules.md#refunds" in tree and "Add up" in tree.content("shop/cart.py::total")
        assert tree.index.rows("SELECT value FROM meta WHERE key = 'generation'") == before
        assert tree.parent("n") == "shop/pay.py"


def test_a_database_of_another_program_is_no_tree(places: Path) -> None:
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect("other.db")) as other:
        other.execute("CREATE TABLE t(x)")
        other.commit()
    assert not TreeSource().recognises(str(places / "other.db"))
    with build_tree("tree:other.db") as tree:
        assert "a SQLite file of another program" in tree.get("other.db").attributes["note"]
    with pytest.raises(UserError, match="no folder"):
        build_tree("folder:nowhere")


def test_no_file_is_told_of_a_tree_that_a_link_leads_to(places: Path) -> None:
    for name in ("wiki", "shop"):
        build_tree(name).close()
    with build_tree("tree:wiki", out="all") as tree:
        mount = tree.sources()[0].mount
        assert tree.file_of(f"{mount}/rules.md") == places / "wiki" / "rules.md"
    (places / "wiki").rename(places / "elsewhere")
    (places / "wiki").symlink_to("elsewhere")
    with Tree.open("all") as tree:
        assert tree.file_of(f"{mount}/rules.md") is None
        assert tree.file_of(mount) is None
