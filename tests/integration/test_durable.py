"""What was acknowledged to a person is on the disk: told by the system calls that SQLite makes."""

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from metatree_memory_tools import build_tree

from metatree import Blackboard, Tree, search
from metatree.notes.archive import export_memory, import_memory
from metatree.notes.feedback import flag, take_back
from metatree.notes.notes import forget, remember
from metatree.notes.permissions import Permissions
from metatree.tools.tool import tool

pytestmark = pytest.mark.integration


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "guide.md").write_text("# Guide\n\nRefunds are paid within 14 days.\n")
    build_tree(folder).close()
    return folder


@tool(kind="exploratory", changes=True)
def mail(text: str) -> str:
    """Send a mail."""
    return text


def _answered(tree: Tree) -> None:
    board = Blackboard(tree)
    board.answer(board.ask("How many?").id, "Five")


def _allowed(tree: Tree) -> None:
    Permissions(tree.memory).grant(mail)


def _disallowed(tree: Tree) -> None:
    _allowed(tree)
    assert Permissions(tree.memory).revoke(mail.id)


def _imported(tree: Tree) -> None:
    assert tree.path is not None
    archive = tree.path / "memory.zip"
    with Tree.create(":memory:") as other:
        remember(other, "The shop has a cat", evidence=False)
        export_memory(other, archive)
    assert import_memory(tree, archive)


def _updated(tree: Tree) -> None:
    made = remember(tree, "The shop has a cat", evidence=False)
    remember(tree, "The shop has two cats", update=made.node.id, evidence=False)


SAID: dict[str, Callable[[Tree], Any]] = {
    "remember": lambda tree: remember(tree, "The shop has a cat", evidence=False),
    "said again": lambda tree: [remember(tree, "The cat is black", evidence=False) for _ in range(2)],
    "update": _updated,
    "forget": lambda tree: forget(tree, remember(tree, "The shop has a cat", evidence=False).node.id),
    "answer": _answered,
    "flag": lambda tree: flag(tree, "guide.md", "When?", who="ann"),
    "take back": lambda tree: take_back(tree, flag(tree, "guide.md", "When?", who="ann").id),
    "permission": _allowed,
    "revoked": _disallowed,
    "import": _imported,
}


@pytest.mark.parametrize("what", SAID)
def test_the_last_commit_of_what_a_person_says_waits_for_the_disk(project: Path, what: str) -> None:
    with Tree.open(project) as tree:
        levels: list[int] = []

        def note(statement: str) -> None:
            if statement.startswith(("COMMIT", "INSERT", "UPDATE", "DELETE")):
                levels.append(level[0])
            if found := re.match(r"PRAGMA synchronous=(\w+)", statement):
                level[0] = {"NORMAL": 1, "FULL": 2}[found[1]]

        assert tree.memory.rows("PRAGMA synchronous") == [(1,)]
        level = [1]
        tree.memory._connection.set_trace_callback(note)
        SAID[what](tree)
        tree.memory._connection.set_trace_callback(None)
        assert levels[-1] == 2
        assert tree.memory.rows("PRAGMA synchronous") == [(1,)]


def _synced(project: Path, code: str) -> list[str]:
    """Return the files that a program waited for, in order, by strace."""
    if shutil.which("strace") is None:
        pytest.skip("there is no strace here")
    log = project.parent / "strace.txt"
    program = f"from metatree import Tree, search\nfrom metatree.notes.notes import remember\n{code}"
    done = subprocess.run(
        [
            "strace",
            "-f",
            "-y",
            "-e",
            "trace=fsync,fdatasync,openat",
            "-o",
            str(log),
            sys.executable,
            "-c",
            program,
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    if "ptrace" in done.stderr.lower():
        pytest.skip(f"strace may not trace here: {done.stderr.strip()[:200]}")
    assert done.returncode == 0, done.stderr
    lines = re.findall(r"(?:fsync|fdatasync)\(\d+<([^>]*)>|(said)", log.read_text())
    return [Path(path).name or mark for path, mark in lines]


def test_remember_returns_after_the_disk_has_it(project: Path) -> None:
    code = f"""
with Tree.open({str(project)!r}) as tree:
    tree.find("guide.md")
    open("/dev/null/begins-said", "rb") if False else None
    try: open("said-begin")
    except OSError: pass
    remember(tree, "The shop has a cat", evidence=False)
    try: open("said-end")
    except OSError: pass
"""
    calls = _synced(project, code)
    first, last = (number for number, name in enumerate(calls) if name == "said")
    assert "memory.db-wal" in calls[first:last]


def test_a_search_waits_for_no_disk(project: Path) -> None:
    with Tree.open(project) as tree:
        search("When are refunds paid?", tree=tree)
        level = tree.memory.rows("PRAGMA synchronous")
    assert level == [(1,)]
