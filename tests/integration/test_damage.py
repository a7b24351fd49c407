"""Damaged files of a tree: what can be built again is, what cannot is told with what to do."""

import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from metatree_agents.cli._main import run
from metatree_memory_tools import build_tree

from metatree.errors import BrokenStore, UserError
from metatree.node import Node
from metatree.storage.store import Store
from metatree.trees.tree import Tree

pytestmark = pytest.mark.integration


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "app"
    folder.mkdir()
    for number in range(20):
        text = "".join(f"def f{number}_{n}(x):\n    'Do {n}.'\n    return x\n" for n in range(10))
        (folder / f"m{number}.py").write_text(text)
    with build_tree(folder) as tree:
        tree.add(Node(id="note", title="note", content="mind this"))
    return folder


def spoil(path: Path, first: float, last: float) -> None:
    """Overwrite a part of a file with noise; first and last as shares of its length."""
    pages = path.stat().st_size // 4096
    with path.open("r+b") as stream:
        stream.seek(max(1, int(pages * first)) * 4096)
        stream.write(random.Random(5).randbytes(max(1, int(pages * (last - first))) * 4096))


def read_all(tree: Tree) -> int:
    return sum(len(text) + tree.child_count(node) for node, _, text in tree.texts(i for i in _ids(tree)))


def _ids(tree: Tree) -> list[str]:
    return [node.id for _, node in tree.walk()]


@pytest.mark.parametrize("part", [(0.01, 0.2), (0.2, 0.8), (0.5, 0.51), (0.97, 0.99), (0.0, 0.99)])
def test_an_index_that_is_damaged_in_the_middle_is_built_anew(
    source: Path, part: tuple[float, float]
) -> None:
    with Tree.open(source / ".metatree") as tree:
        before = _ids(tree)
    index = source / ".metatree" / "index.db"
    spoil(index, *part)
    with pytest.raises(BrokenStore, match="damaged") as caught, Store.open(index) as store:
        store.check()
    try:
        with Tree.open(source) as tree:
            read_all(tree)
            tree.stale()
    except BrokenStore as exc:
        assert f"build it again with `metatree build {source}`" in str(exc)
        assert "nothing that was added is lost" in str(exc)
    assert caught.value.path == str(index)
    with build_tree(source) as tree:
        assert _ids(tree) == before
        assert tree.content("note") == "mind this"
        assert read_all(tree) > 0
        tree.index.check()


def test_an_index_of_a_newer_version_is_built_anew(source: Path) -> None:
    with Store.open(source / ".metatree" / "index.db") as store:
        store.execute("PRAGMA user_version=99")
    with pytest.raises(BrokenStore, match=f"upgrade it, or build it again with `metatree build {source}`"):
        Tree.open(source)
    with build_tree(source) as tree:
        assert "m7.py::f7_3" in tree and "note" in tree


@pytest.mark.parametrize(
    "spoiled", [lambda p: spoil(p, 0.0, 0.99), lambda p: p.write_bytes(b"noise " * 9000)]
)
def test_a_damaged_memory_is_left_alone_and_reported(source: Path, spoiled: Callable[[Path], object]) -> None:
    memory = source / ".metatree" / "memory.db"
    spoiled(memory)
    noise = memory.read_bytes()
    for use in (Tree.open, build_tree):
        with pytest.raises(BrokenStore, match=r"put back a copy of it, or move .*memory.db") as caught:
            _ids(use(source))
        assert caught.value.path == str(memory)
    assert memory.read_bytes() == noise
    for path in memory.parent.glob("memory.db*"):
        path.rename(path.with_name("was-" + path.name))
    with Tree.open(source) as tree:
        assert "m7.py::f7_3" in tree and "note" not in tree


def _other_program(path: Path) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE t(x)")


def _lost_table(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("DROP TABLE override")


@pytest.mark.parametrize(
    ("become", "what"),
    [
        (lambda p: p.write_bytes(b""), "is empty: what it held is lost"),
        (lambda p: p.write_bytes(p.read_bytes()[:60]), "memory.db is "),
        (lambda p: p.write_bytes(p.read_bytes()[:8192]), "is damaged"),
        (lambda p: p.write_text("all is well"), "is no database of metatree"),
        (_other_program, "is a SQLite file of another program: move it away"),
        (_lost_table, "lacks a part of its schema (table override)"),
    ],
    ids=["empty", "cut in its header", "cut", "text", "another program", "without a table"],
)
def test_a_memory_that_is_something_else_is_never_taken_for_one_without_memories(
    source: Path, become: Callable[[Path], object], what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    memory = source / ".metatree" / "memory.db"
    become(memory)
    before = memory.read_bytes()
    for command in (["memories"], ["ask", "what is there?"], ["remember", "hello there"], ["find", "f1"]):
        code = run([*command, "--source", str(source)])
        output = capsys.readouterr().err
        assert code == 2, output
        assert what in output and str(memory) in output and "away" in output, output
    assert memory.read_bytes() == before


def test_an_empty_file_is_no_tree_and_stays_empty(tmp_path: Path) -> None:
    (tmp_path / "tree.db").touch()
    with pytest.raises(BrokenStore, match="empty"):
        Tree.open(tmp_path / "tree.db")
    assert (tmp_path / "tree.db").read_bytes() == b""


def test_an_index_that_is_thrown_away_is_reported(source: Path, caplog: pytest.LogCaptureFixture) -> None:
    (source / ".metatree" / "index.db").write_bytes(b"")
    with build_tree(source) as tree:
        assert tree.content("note") == "mind this"
    assert [record.getMessage() for record in caplog.records] == [
        f"{source / '.metatree' / 'index.db'} is empty: what it held is lost: built anew"
    ]


def test_a_damaged_lock_says_what_to_do(source: Path) -> None:
    (source / ".metatree" / "build.lock").write_bytes(b"noise " * 9000)
    with pytest.raises(UserError, match=r"build.lock is .*: delete it"):
        build_tree(source)
