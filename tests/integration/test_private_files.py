"""What is kept of sources and memory is for one's own user: rights of files and folders, whatever the umask says."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from metatree_agents.service.replication.publisher import write_snapshot
from metatree_memory_tools import build_tree

from metatree import Blackboard, Node, Tree, search
from metatree.testing.parts import ScriptedReader, ScriptedRouter

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(os.name == "nt", reason="Windows has no rights of this kind"),
]


@pytest.fixture(autouse=True)
def generous() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def rights(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_tree_beside_its_source_is_for_its_owner_alone(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# Tea\n\nGreen.\n")
    with build_tree(tmp_path) as tree:
        tree.add(Node(id="note", title="A note", content="private"), parent=tree.root)
        found = {file.name: rights(file) for file in (tmp_path / ".metatree").iterdir()}
        write_snapshot(tree.index, tmp_path / "copy.db")
    assert rights(tmp_path / ".metatree") == 0o700
    assert {"index.db", "index.db-wal", "index.db-shm", "memory.db", "memory.db-wal"} <= found.keys()
    assert {name: oct(mode) for name, mode in found.items() if name.startswith(("index", "memory"))} == {
        name: oct(0o600) for name in found if name.startswith(("index", "memory"))
    }
    assert rights(tmp_path / "copy.db") == 0o600


def test_folders_above_the_key_and_the_caches_are_for_their_owner_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who may write in one of them puts another folder there, with settings that start something."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for variable in ("METATREE_CONFIG_DIR", "METATREE_CACHE_DIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "a.md").write_text("# Tea\n\nGreen.\n")
    with build_tree(tmp_path / "source") as tree:
        search("Which tea?", tree=tree)
    made = [path for path in (tmp_path / "home").rglob("*") if path.is_dir()]
    assert (tmp_path / "home" / ".config" / "metatree") in made
    assert {str(path): oct(rights(path)) for path in made if rights(path) != 0o700} == {}


def test_trees_journals_and_boards_in_one_file_are_too(tmp_path: Path) -> None:
    with Tree.create(tmp_path / "tree.db") as tree:
        tree.add(Node(id="a", title="A", content="text"), parent=tree.root)
        search(
            ["?"],
            tree=tree,
            router=ScriptedRouter(["a"]),
            reader=ScriptedReader({}),
            journal=tmp_path / "runs.db",
            run_id="r",
        )
    Blackboard(tmp_path / "board.db").close()
    assert {
        name: oct(rights(tmp_path / name)) for name in ("tree.db", "runs.db", "board.db")
    } == dict.fromkeys(("tree.db", "runs.db", "board.db"), oct(0o600))


def test_rights_that_somebody_gave_stay(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# Tea\n\nGreen.\n")
    build_tree(tmp_path).close()
    for path, mode in ((tmp_path / ".metatree", 0o755), (tmp_path / ".metatree" / "index.db", 0o644)):
        path.chmod(mode)
    (tmp_path / "b.md").write_text("# More\n\nTea.\n")
    build_tree(tmp_path).close()
    assert (rights(tmp_path / ".metatree"), rights(tmp_path / ".metatree" / "index.db")) == (0o755, 0o644)
