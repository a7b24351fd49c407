"""Files that were changed together with the tests that fit an issue, or with the best files."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from metatree_agents import files_to_edit
from metatree_memory_tools import build_tree
from metatree_routers.evidence.signals._cochange import MOST_FILES, touched_with

from metatree.storage.store import Store

pytestmark = pytest.mark.integration

ISSUE = "Coupons are charged twice"


def _git(folder: Path, *arguments: str) -> None:
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *arguments]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)


def _commit(folder: Path, message: str, **files: str) -> None:
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    _git(folder, "add", "-A")
    _git(folder, "commit", "-qm", message)


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    _git(folder, "init", "-q")
    _commit(folder, "a", alpha="x = 1\n", beta="y = 1\n", test_coupons="def test_coupons_charged_once(): 1\n")
    _commit(folder, "b", beta="y = 2\n", test_coupons="def test_coupons_charged_once(): 2\n")
    _commit(folder, "c", alpha="x = 2\n")
    return folder


def test_a_file_without_a_word_of_the_issue_is_found_by_the_test_it_was_changed_with(
    shop: Path, tmp_path: Path
) -> None:
    with build_tree(shop, out=tmp_path / "tree", history=True) as tree:
        files = {file.path: file for file in files_to_edit(ISSUE, tree)}
        assert files["beta.py"].score > files["alpha.py"].score
        assert "changed together with test_coupons.py" in files["beta.py"].reason
    with build_tree(shop, out=tmp_path / "plain") as tree:
        assert {file.path for file in files_to_edit(ISSUE, tree)} == {"test_coupons.py"}


def test_what_comes_after_the_commit_that_is_checked_out_is_unknown(shop: Path, tmp_path: Path) -> None:
    def score() -> float:
        with build_tree(shop, out=tmp_path / "tree", history=True) as tree:
            assert isinstance(tree.index, Store)
            result = touched_with(tree.index, {"test_coupons.py": 1.0}, {"alpha.py"})
            return result["alpha.py"]["test_coupons.py"]

    before = score()
    both = {"alpha": "x = 3\n", "test_coupons": "def test_coupons_charged_once(): 3\n"}
    _commit(shop, "Charge coupons once", **both)
    assert score() > before
    _git(shop, "checkout", "-q", "HEAD~1")  # the later commit is still in the repository
    assert score() == before


def test_sweeping_commits_say_nothing(shop: Path, tmp_path: Path) -> None:
    many = {f"m{number}": f"z = {number}\n" for number in range(MOST_FILES)}
    _commit(shop, "d", **many, test_coupons="def test_coupons_charged_once(): 4\n")
    with build_tree(shop, out=tmp_path / "tree", history=True) as tree:
        assert isinstance(tree.index, Store)
        assert touched_with(tree.index, {"test_coupons.py": 1.0}, {"m1.py"}) == {}
        assert touched_with(tree.index, {"none.py": 1.0}, {"m1.py"}) == {}


def test_a_file_that_was_changed_with_the_best_file_comes_before_others(tmp_path: Path) -> None:
    folder = tmp_path / "till"
    folder.mkdir()
    _git(folder, "init", "-q")
    _commit(
        folder,
        "a",
        coupons="def charge_coupons(twice): 1\n",
        near="charge = 1\n",
        far="charge = 1\n",
        other="x = 1\n",
    )
    _commit(folder, "b", coupons="def charge_coupons(twice): 2\n", near="charge = 2\n", other="x = 2\n")
    _commit(folder, "c", far="charge = 2\n")
    with build_tree(folder, out=tmp_path / "tree", history=True) as tree:
        files = {file.path: file for file in files_to_edit(ISSUE, tree)}
        assert next(iter(files)) == "coupons.py"
        assert files["near.py"].score > files["far.py"].score
        assert "changed together with coupons.py" in files["near.py"].reason
        assert "other.py" not in files  # nothing of the issue is in it
