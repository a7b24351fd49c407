"""What people add to a built tree stays when the tree is built again."""

import random
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from metatree_memory_tools import build_tree

from metatree.errors import BrokenStore, UserError
from metatree.node import Node
from metatree.storage.store import Store
from metatree.trees.tree import Tree

pytestmark = pytest.mark.integration


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "app"
    (folder / "pkg" / "sub").mkdir(parents=True)
    (folder / "pkg" / "a.py").write_text("def f():\n    'Do f.'\n\n\ndef g():\n    'Do g.'\n")
    (folder / "pkg" / "sub" / "b.py").write_text(
        "class B:\n    def m(self): 'Go.'\n    def n(self): 'Stop.'\n"
    )
    (folder / "README.md").write_text("# App\n\nDoes it.\n\n## Use\n\nRun.\n\n## Test\n\nTry.\n")
    return folder


@pytest.fixture
def tree(source: Path) -> Iterator[Tree]:
    with build_tree(source) as tree:
        yield tree


def ids(nodes: Iterable[Node]) -> list[str]:
    return [node.id for node in nodes]


def check(tree: Tree) -> None:
    """Whatever happened, a tree is a tree."""
    walked = ids(node for _, node in tree.walk())
    assert len(walked) == len(set(walked)) == len(tree) == sum(tree.info()["kinds"].values())
    for node_id in walked:
        chain = [*tree.ancestors(node_id), node_id]
        assert chain[0] == "." and all(b in ids(tree.children(a)) for a, b in pairwise(chain))
    known = [each for layer in (tree.index, tree.memory) for (each,) in layer.rows("SELECT id FROM node")]
    told = {node.id: parent for node, parent, _ in tree.texts([*known, "nowhere"])}
    assert told == {node_id: tree.parent(node_id) for node_id in walked}, "and nothing that is hidden"


@pytest.mark.parametrize("has_hidden", [False, True])
def test_texts_of_a_deep_tree_are_read_in_as_many_steps_as_of_a_flat_one(
    tree: Tree, monkeypatch: pytest.MonkeyPatch, has_hidden: bool
) -> None:
    """Each node above is looked at once, not once for each below it."""
    for kind in ("flat", "deep"):
        for number in range(300):
            tree.add(Node(f"{kind}{number}", kind), f"deep{number - 1}" if kind == "deep" and number else ".")
    if has_hidden:
        tree.delete("README.md")
    steps: list[str] = []
    rows = Store.rows

    def counted(self: Store, sql: str, *given: Any) -> list[tuple[Any, ...]]:
        steps.append(sql)
        return rows(self, sql, *given)

    monkeypatch.setattr(Store, "rows", counted)
    taken = []
    for kind in ("flat", "deep"):
        steps.clear()
        assert len(list(tree.texts(f"{kind}{number}" for number in range(300)))) == 300
        taken.append(len(steps))
    assert taken[1] <= taken[0] + 5
    steps.clear()
    assert len(list(tree.texts(["deep299"]))) == 1
    assert len(steps) < 5 * 300


def test_a_note_under_a_definition_survives_a_rebuild(source: Path, tree: Tree) -> None:
    tree.add(Node("n1", "Why", "f is slow"), "pkg/a.py::f")
    tree.add(Node("n2", "More", content="text"), "n1")
    (source / "pkg" / "a.py").write_text("import os\n\n\ndef f():\n    'Do f well.'\n")
    tree.refresh()
    assert tree.ancestors("n2") == [".", "pkg", "pkg/a.py", "pkg/a.py::f", "n1"]
    assert tree.content("n2") == "text"
    assert "pkg/a.py::g" not in tree
    with Tree.open(source) as again:
        assert again.ancestors("n2") == tree.ancestors("n2")
        check(again)


def test_a_note_hangs_under_what_is_left_and_returns(source: Path, tree: Tree) -> None:
    tree.add(Node("n1", "Why"), "pkg/sub/b.py::B.m")
    text = (source / "pkg/sub/b.py").read_text()
    (source / "pkg/sub/b.py").write_text("class B:\n    def other(self): 'x'\n")
    tree.refresh()
    assert tree.ancestors("n1")[-1] == "pkg/sub/b.py::B"
    (source / "pkg/sub/b.py").unlink()
    tree.refresh()
    assert tree.ancestors("n1") == [".", "pkg"]
    check(tree)
    (source / "pkg" / "a.py").unlink()
    tree.refresh()
    assert tree.ancestors("n1") == ["."]
    check(tree)
    (source / "pkg/sub/b.py").write_text(text)
    tree.refresh()
    assert tree.ancestors("n1")[-1] == "pkg/sub/b.py::B.m"
    check(tree)


def test_another_open_tree_sees_the_rebuild_at_once(source: Path, tree: Tree) -> None:
    tree.add(Node("n1", "Why"), "pkg/a.py::g")
    with Tree.open(source) as other:
        assert other.ancestors("n1")[-1] == "pkg/a.py::g"
        (source / "pkg" / "a.py").write_text("def f(): 'x'\n")
        tree.refresh()
        assert other.ancestors("n1")[-1] == "pkg/a.py"
        assert ids(other.children("pkg/a.py")) == ["pkg/a.py::f", "n1"] or ids(
            other.children("pkg/a.py")
        ) == ["n1"]


def test_a_renamed_file_keeps_its_notes(source: Path, tree: Tree) -> None:
    tree.add(Node("n1", "on the file"), "pkg/a.py")
    tree.add(Node("n2", "on the function"), "pkg/a.py::f")
    tree.update(replace(tree.get("pkg/a.py::g"), description="Better words"))
    tree.delete("pkg/sub/b.py::B.n")
    tree.link("n1", "pkg/a.py::f", "about")
    (source / "pkg" / "a.py").rename(source / "moved.py")
    (source / "pkg" / "sub" / "b.py").rename(source / "pkg" / "c.py")
    tree.refresh()
    assert tree.ancestors("n1") == [".", "moved.py"]
    assert tree.ancestors("n2") == [".", "moved.py", "moved.py::f"]
    assert tree.get("moved.py::g").description == "Better words"
    assert tree.links("n1") == [("about", "moved.py::f")]
    assert "pkg/c.py::B.n" not in tree and "pkg/c.py::B.m" in tree
    check(tree)


def test_a_renamed_folder_keeps_its_notes(source: Path, tree: Tree) -> None:
    tree.add(Node("n1", "on the folder"), "pkg/sub")
    tree.add(Node("n2", "on the class"), "pkg/sub/b.py::B")
    (source / "pkg").rename(source / "lib")
    tree.refresh()
    assert tree.ancestors("n1") == [".", "lib", "lib/sub"]
    assert tree.ancestors("n2")[-1] == "lib/sub/b.py::B"
    check(tree)


def test_a_rename_that_is_seen_late_counts_too(source: Path, tree: Tree) -> None:
    tree.add(Node("n1", "note"), "pkg/a.py")
    tree.close()
    (source / "pkg" / "a.py").rename(source / "pkg" / "z.py")
    build_tree(source).close()
    (source / "pkg" / "z.py").rename(source / "pkg" / "y.py")
    build_tree(source).close()
    with Tree.open(source) as again:
        assert again.ancestors("n1")[-1] == "pkg/y.py"


def test_moves_deletions_and_words_survive(source: Path, tree: Tree) -> None:
    tree.move("pkg/a.py::g", "pkg/sub")
    tree.delete("README.md#use")
    tree.update(
        replace(tree.get("pkg"), title="The package", description="Everything", provenance={"by": "me"})
    )
    (source / "pkg" / "a.py").write_text("x = 1\n\n\ndef g():\n    'Do g well.'\n\n\ndef h(): 'New.'\n")
    (source / "README.md").write_text((source / "README.md").read_text() + "\n## Last\n\nEnd.\n")
    tree.refresh()
    assert tree.ancestors("pkg/a.py::g") == [".", "pkg", "pkg/sub"]
    assert tree.get("pkg/a.py::g").description == "def g() — Do g well."
    assert "Do g well" in tree.content("pkg/a.py::g")
    assert "README.md#use" not in tree and "README.md#last" in tree
    assert (tree.get("pkg").title, tree.get("pkg").description) == ("The package", "Everything")
    assert tree.get("pkg").provenance == {"by": "me"}
    check(tree)


def test_words_of_a_node_change_its_digest_and_go_back_to_the_source_when_equal(tree: Tree) -> None:
    before = tree.get("pkg/a.py::f")
    tree.update(replace(before, description="Other"))
    assert tree.get("pkg/a.py::f").digest != before.digest
    assert tree.children("pkg/a.py")[0].description == "Other"
    tree.update(before)
    assert tree.get("pkg/a.py::f") == before


def test_only_words_of_a_built_node_can_be_changed(tree: Tree) -> None:
    node = tree.get("pkg/a.py::f")
    for changed in (replace(node, content="x"), replace(node, kind="note"), replace(node, attributes={})):
        with pytest.raises(UserError, match="edit the source"):
            tree.update(changed)


def test_a_note_goes_before_a_built_node(tree: Tree) -> None:
    tree.add(Node("n1", "first"), "pkg", before="pkg/a.py")
    assert ids(tree.children("pkg")) == ["pkg/sub", "n1", "pkg/a.py"]
    for number in range(50):
        tree.add(Node(f"x{number}", "x"), "pkg", before="pkg/a.py")
    assert ids(tree.children("pkg")) == ["pkg/sub", "n1", *(f"x{n}" for n in range(50)), "pkg/a.py"]
    check(tree)


def test_a_deleted_folder_hides_notes_and_what_comes_later(source: Path, tree: Tree) -> None:
    tree.add(Node("n1", "note"), "pkg/a.py::f")
    start = tree.sequence
    tree.delete("pkg")
    assert {node_id for _, node_id, there in tree.changes(start) if not there} >= {
        "pkg", "pkg/a.py", "pkg/a.py::f", "n1", "pkg/sub/b.py::B.m",
    }  # fmt: skip
    (source / "pkg" / "new.py").write_text("x = 1\n")
    (source / "pkg" / "a.py").unlink()
    tree.refresh()
    assert "pkg/new.py" not in tree and "n1" not in tree and ids(tree.children()) == ["README.md"]
    check(tree)


def test_a_note_that_took_a_deleted_id_stays_alone(source: Path, tree: Tree) -> None:
    tree.delete("pkg/a.py")
    tree.add(Node("pkg/a.py", "mine", content="my text"), "pkg")
    (source / "pkg" / "a.py").write_text("def q(): 'x'\ndef r(): 'y'\n")
    tree.refresh()
    assert tree.content("pkg/a.py") == "my text" and tree.children("pkg/a.py") == []
    check(tree)


def test_a_file_that_comes_under_the_id_of_a_note_is_covered_by_it(source: Path, tree: Tree) -> None:
    tree.add(Node("pkg/new.py", "planned", content="to do"), "pkg")
    (source / "pkg" / "new.py").write_text("def q(): 'x'\ndef r(): 'y'\n")
    tree.refresh()
    assert tree.content("pkg/new.py") == "to do"
    check(tree)


def test_links_of_both_layers_are_one(source: Path, tree: Tree) -> None:
    (source / "pkg" / "c.py").write_text("from pkg.a import f\n")
    tree.refresh()
    tree.link("pkg/c.py", "README.md", "documents")
    assert tree.links("pkg/c.py") == [("documents", "README.md"), ("imports", "pkg/a.py")]
    assert tree.links_to("pkg/a.py") == [("imports", "pkg/c.py")]


def test_a_damaged_index_asks_for_a_build_and_loses_nothing(source: Path, tree: Tree) -> None:
    tree.add(Node("n1", "note"), "pkg/a.py::f")
    tree.close()
    index = source / ".metatree" / "index.db"
    index.write_bytes(b"garbage" * 1000)
    with pytest.raises(BrokenStore, match="metatree build"):
        Tree.open(source)
    with build_tree(source) as built:
        assert built.ancestors("n1")[-1] == "pkg/a.py::f"
        check(built)


def test_damage_inside_the_index_is_built_over(source: Path, tree: Tree) -> None:
    tree.close()
    index = source / ".metatree" / "index.db"
    data = bytearray(index.read_bytes())
    data[4096:] = b"\xff" * (len(data) - 4096)
    index.write_bytes(data)
    with pytest.raises(BrokenStore, match="metatree build"):
        Tree.open(source)
    with build_tree(source) as built:
        check(built)


def test_a_lost_index_comes_back_with_all_notes(source: Path, tree: Tree) -> None:
    tree.add(Node("n1", "note"), "pkg/a.py::f")
    tree.add(Node("n2", "note"), "pkg/sub/b.py")
    tree.close()
    for file in (source / ".metatree").glob("index.db*"):
        file.unlink()
    (source / "pkg/sub/b.py").unlink()
    with pytest.raises(UserError, match="metatree build"):
        Tree.open(source)
    with build_tree(source) as built:
        assert built.ancestors("n1")[-1] == "pkg/a.py::f"
        assert built.ancestors("n2") == [".", "pkg"]
        check(built)


def test_a_damaged_memory_is_never_built_over(source: Path, tree: Tree) -> None:
    tree.close()
    memory = source / ".metatree" / "memory.db"
    memory.write_bytes(b"garbage" * 1000)
    with pytest.raises(BrokenStore, match="copy"):
        build_tree(source)
    assert memory.read_bytes() == b"garbage" * 1000


def test_open_takes_the_folder_the_source_or_a_file(source: Path, tree: Tree, tmp_path: Path) -> None:
    for place in (source, source / ".metatree", source / ".metatree" / "index.db", str(source)):
        with Tree.open(place) as opened:
            assert opened.find("pkg/a.py") is not None
    with Tree.create(tmp_path / "one.db") as one:
        one.add(Node("a", "a"))
    with Tree.open(tmp_path / "one.db") as one:
        assert ids(one.children()) == ["a"] and one.memory is one.index
    with pytest.raises(UserError, match="exists"):
        Tree.create(tmp_path / "one.db")
    for place in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(UserError, match="metatree build"):
            Tree.open(place)


def test_resolve_takes_paths_of_the_system(source: Path, tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    assert tree.resolve(str(source / "pkg" / "a.py")) == "pkg/a.py"
    assert tree.resolve(str(source)) == "."
    monkeypatch.chdir(source / "pkg")
    for text in ("a.py", "./a.py", "../pkg/a.py", "pkg/a.py"):
        assert tree.resolve(text) == "pkg/a.py"
    assert tree.resolve("a.py::f") == "pkg/a.py::f"


def test_the_source_and_its_tree_can_be_moved_together(source: Path, tree: Tree, tmp_path: Path) -> None:
    tree.close()
    source.rename(tmp_path / "elsewhere")
    with Tree.open(tmp_path / "elsewhere") as moved:
        assert moved.content("pkg/a.py::f").startswith("def f")
        assert not moved.stale()


@pytest.mark.parametrize("seed", range(3))
def test_any_mix_of_edits_builds_and_notes_leaves_a_tree(source: Path, tree: Tree, seed: int) -> None:
    rng = random.Random(seed)
    index: dict[str, str] = {}
    token = 0
    for step in range(80):
        nodes = [node for _, node in tree.walk()]
        one, other = rng.choice(nodes).id, rng.choice(nodes).id
        action = rng.randrange(9)
        try:
            if action <= 1:
                tree.add(Node(f"note{step}", f"note {step}"), one)
            elif action == 2:
                tree.move(one, other)
            elif action == 3 and rng.random() < 0.4:
                tree.delete(one)
            elif action == 4:
                node = rng.choice(nodes)
                tree.update(replace(node, description=f"words {step}"))
            elif action == 5:
                tree.purge(3)
            else:
                files = [
                    path for path in source.rglob("*.*") if path.is_file() and ".metatree" not in path.parts
                ]
                path = rng.choice(files) if files else source / "a.py"
                if action == 6 and files:
                    path.rename(path.with_name(f"r{step}{path.suffix}"))
                elif action == 7 and rng.random() < 0.5:
                    path.unlink(missing_ok=True)
                else:
                    names = rng.sample("fghijk", 3)
                    text = "\n".join(
                        f"class {n.upper()}:\n    def {n}(self): {step}\n    x = 1" for n in names
                    )
                    (source / "pkg").mkdir(exist_ok=True)
                    (source / "pkg" / f"{rng.choice('abc')}.py").write_text(text)
                tree.refresh()
        except UserError as exc:
            assert "root" in str(exc) or "below itself" in str(exc)
        check(tree)
        if step % 7 == 0:
            for _, node_id, there in tree.changes(token):
                if there:
                    index[node_id] = tree.get(node_id).digest
                else:
                    index.pop(node_id, None)
            token = tree.sequence
            assert index == {node.id: node.digest for _, node in tree.walk()}
    with Tree.open(source) as again:
        check(again)
        assert [node for _, node in again.walk()] == [node for _, node in tree.walk()]


def test_what_was_deleted_with_a_folder_stays_deleted_when_the_folder_goes(source: Path, tree: Tree) -> None:
    tree.add(Node("n1", "note"), "pkg/a.py::f")
    tree.delete("pkg")
    shutil.rmtree(source / "pkg")
    tree.refresh()
    assert "n1" not in tree
    check(tree)


def test_a_note_in_the_place_of_a_deleted_folder_tells_indexes_what_went_with_it(tree: Tree) -> None:
    folder = next(node for node in tree.children() if node.kind == "folder")
    below = [node.id for _, node in tree.walk(folder)][1:]
    before = tree.sequence
    tree.delete(folder)
    tree.add(Node(id=folder.id, title="a note"))
    told = {node_id: there for _, node_id, there in tree.changes(before)}
    assert below and told == {folder.id: True, **dict.fromkeys(below, False)}
