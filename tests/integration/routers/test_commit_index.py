"""Past commits as evidence for the files that an issue wants edited."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from metatree_agents import files_to_edit
from metatree_memory_tools import build_tree
from metatree_routers import TextEvidence
from metatree_routers.index.commits import CommitIndex, SimilarCommit, nearest, votes

from metatree.storage.store import Store

pytestmark = pytest.mark.integration

ISSUE = "Coupons are charged twice at the till"


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
    _commit(folder, "Begin", alpha="def one():\n    return 1\n", beta="def two():\n    return 2\n")
    _commit(folder, "Let the till charge coupons once", beta="def two():\n    return 3\n")
    _commit(folder, "Round sums up", alpha="def one():\n    return 4\n")
    return folder


def test_a_file_that_a_commit_like_the_issue_touched_is_found_and_says_so(shop: Path, tmp_path: Path) -> None:
    with build_tree(shop, out=tmp_path / "tree", history=True) as tree:
        files = files_to_edit(ISSUE, tree)
        assert [file.path for file in files] == ["beta.py"]
        assert "Let the till charge coupons once" in files[0].reason
        assert files_to_edit(ISSUE, tree, evidence=TextEvidence(tree, history=False)) == []


def test_without_history_no_commit_is_looked_at(shop: Path, tmp_path: Path) -> None:
    with build_tree(shop, out=tmp_path / "tree") as tree:
        assert files_to_edit(ISSUE, tree) == []


def test_commits_that_come_later_are_indexed_and_rewritten_ones_forgotten(shop: Path, tmp_path: Path) -> None:
    def subjects() -> list[str]:
        with build_tree(shop, out=tmp_path / "tree", history=True) as tree:
            assert isinstance(tree.index, Store)
            similar = CommitIndex(tree.index).similar({"coupon": 1.0, "till": 1.0})
            return [commit.subject for commit in similar]

    assert subjects() == ["Let the till charge coupons once"]
    _commit(shop, "Print coupons", alpha="def one():\n    return 5\n")
    assert subjects() == ["Let the till charge coupons once", "Print coupons"]
    _git(shop, "reset", "-q", "--hard", "HEAD~3")
    _commit(shop, "Colour the till", alpha="def one():\n    return 6\n")
    assert subjects() == ["Colour the till"]


def test_where_nothing_can_be_written_what_is_indexed_is_used(shop: Path, tmp_path: Path) -> None:
    with build_tree(shop, out=tmp_path / "tree", history=True) as tree:
        assert isinstance(tree.index, Store)
        tree.index.read_only = True
        assert CommitIndex(tree.index).similar({"coupon": 1.0}) == []
        tree.index.read_only = False
        TextEvidence(tree).refresh()  # as `metatree build` does
        tree.index.read_only = True
        assert [commit.subject for commit in CommitIndex(tree.index).similar({"coupon": 1.0})] == [
            "Let the till charge coupons once"
        ]


def test_a_file_is_found_under_its_present_name(shop: Path, tmp_path: Path) -> None:
    (shop / "beta.py").rename(shop / "gamma.py")
    _commit(shop, "Rename")
    with build_tree(shop, out=tmp_path / "tree", history=True) as tree:
        assert [file.path for file in files_to_edit(ISSUE, tree)] == ["gamma.py"]


def test_only_what_led_to_the_commit_that_is_checked_out_counts(shop: Path, tmp_path: Path) -> None:
    _git(shop, "checkout", "-q", "HEAD~2")
    with build_tree(shop, out=tmp_path / "tree", history=True) as tree:
        assert files_to_edit(ISSUE, tree) == []


def test_files_share_the_votes_of_a_commit_and_sweeping_ones_have_none() -> None:
    alone = SimilarCommit(1, "a", "a", 2.0, ("x",))
    shared = SimilarCommit(2, "b", "b", 1.0, ("x", "y", "z", "w"))
    sweeping = SimilarCommit(3, "c", "c", 2.0, tuple(map(str, range(100))))
    assert votes([alone, shared, sweeping]) == {"x": 1.125, "y": 0.125, "z": 0.125, "w": 0.125}
    assert votes([alone, shared], ["y"]) == {"y": 0.25}


def test_the_most_similar_commit_of_a_file_counts_for_itself() -> None:
    first = SimilarCommit(1, "a", "a", 4.0, ("x",))
    second = SimilarCommit(2, "b", "b", 2.0, tuple(map(str, range(16))))
    sweeping = SimilarCommit(3, "c", "c", 2.0, tuple(map(str, range(100))))
    files = ["x", *map(str, range(16)), "99"]
    assert nearest([first, second, sweeping], files) == {"x": 1.0, **dict.fromkeys(map(str, range(16)), 0.25)}
    assert nearest([first, second, sweeping], ["1"]) == {"1": 0.5}


def test_going_back_to_an_older_commit_forgets_what_came_later(shop: Path, tmp_path: Path) -> None:
    with build_tree(shop, out=tmp_path / "tree", history=True) as tree:
        assert [file.path for file in files_to_edit(ISSUE, tree)] == ["beta.py"]
    _git(shop, "checkout", "-q", "HEAD~2")  # the fix is still among the objects of the repository
    with build_tree(shop, out=tmp_path / "tree", history=True) as tree:
        assert files_to_edit(ISSUE, tree) == []


def test_an_index_of_an_earlier_version_is_made_anew(shop: Path, tmp_path: Path) -> None:
    with build_tree(shop, out=tmp_path / "tree", history=True) as tree:
        assert isinstance(tree.index, Store)
        CommitIndex(tree.index).refresh()
        tree.index.execute(  # as the first version kept it, of the very same commits
            "UPDATE meta SET value = json_set(value, '$.version', 1) WHERE key = 'commit-text'"
        )
        tree.index.execute("ALTER TABLE commit_length DROP COLUMN firsts")
        similar = CommitIndex(tree.index).similar({"coupon": 1.0})
        assert [commit.subject for commit in similar] == ["Let the till charge coupons once"]
