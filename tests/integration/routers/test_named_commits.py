"""Commits that an issue names, by hash or by number, as evidence for the files that they touched."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
from metatree_agents import files_to_edit
from metatree_memory_tools import build_tree
from metatree_routers.evidence.signals.named_commits import MOST_NAMES, Name, named_commits, names_of_commits
from metatree_routers.index.commits import CommitIndex
from metatree_routers.query.parse import sections

from metatree.storage.store import Store

pytestmark = pytest.mark.integration

ISSUE = "It is wrong"


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


def _commit(folder: Path, message: str, **files: str) -> str:
    for name, text in files.items():
        file = folder / f"{name.replace('__', '/')}.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    _git(folder, "add", "-A")
    _git(folder, "commit", "-qm", message)
    return _git(folder, "rev-parse", "HEAD")


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    folder.mkdir()
    _git(folder, "init", "-q")
    _commit(folder, "Begin", shop__alpha="x = None\n", shop__beta="x = None\n", shop__gamma="x = None\n")
    _commit(folder, "Round sums (#6461)", shop__beta="x = True\n")
    _commit(folder, "Count to 64611, see #64612", shop__gamma="x = True\n")
    return folder


def _best(shop: Path, tmp_path: Path, issue: str) -> tuple[str, str]:
    with build_tree(shop, out=tmp_path / "tree", history=True) as tree:
        files = files_to_edit(issue, tree)
        return (files[0].path, files[0].reason) if files else ("", "")


@pytest.mark.parametrize(
    "said", ["since #6461", "since {hash}", "since {short}", "(https://example.org/me/shop/commit/{hash})"]
)
def test_what_the_named_commit_touched_comes_first_and_says_so(shop: Path, tmp_path: Path, said: str) -> None:
    hash_ = _git(shop, "rev-parse", "HEAD~1")
    path, reason = _best(shop, tmp_path, f"{ISSUE} {said.format(hash=hash_, short=hash_[:8])}")
    assert path == "shop/beta.py"
    assert f"touched by the commit that it names: {hash_[:9]} “Round sums (#6461)”" in reason


def _named(shop: Path, tmp_path: Path, *names: Name) -> list[str]:
    with build_tree(shop, out=tmp_path / "tree", history=True) as tree:
        assert isinstance(tree.index, Store)
        return [commit.subject for commit in named_commits(CommitIndex(tree.index), names)]


def test_a_number_is_that_of_a_change_and_not_part_of_another(shop: Path, tmp_path: Path) -> None:
    assert _named(shop, tmp_path, Name("#6461")) == ["Round sums (#6461)"]
    assert _named(shop, tmp_path, Name("#64611")) == []
    assert _named(shop, tmp_path, Name("#646")) == []


def test_an_address_counts_for_the_project_that_it_names(shop: Path, tmp_path: Path) -> None:
    issue = "Wrong, https://example.org/me/{}/issues/6461"
    ours, theirs = (names_of_commits(sections(issue.format(project))) for project in ("shop", "other"))
    assert _named(shop, tmp_path, *ours) == ["Round sums (#6461)"]
    assert _named(shop, tmp_path, *theirs) == []


def test_a_later_commit_is_not_found(shop: Path, tmp_path: Path) -> None:
    later = _commit(shop, "Mend it (#7000)", shop__alpha="x = True\n")
    _git(shop, "checkout", "-q", "HEAD~1")
    assert _named(shop, tmp_path, Name("#7000"), Name(later)) == []


def test_numbers_of_other_projects_and_what_is_no_hash_are_no_names() -> None:
    report = "Since 0xabcdef12 and 3543129.2, see numpy#6461, numpy/numpy#6461 and #12"
    assert names_of_commits(sections(report)) == []


@pytest.mark.parametrize(
    "looks", [pytest.param(str.isdigit, id="a number"), pytest.param(str.isalpha, id="a word")]
)
def test_a_hash_may_begin_like_a_number_or_a_word(
    shop: Path, tmp_path: Path, looks: Callable[[str], bool]
) -> None:
    _commit(shop, "Round sums again", shop__beta="x = 1\n")
    commit = _with_hash(_git(shop, "cat-file", "commit", "HEAD"), looks)
    (tmp_path / "commit").write_text(commit)
    hash_ = _git(shop, "hash-object", "-t", "commit", "-w", str(tmp_path / "commit"))
    assert looks(hash_[:7])
    _git(shop, "update-ref", "HEAD", hash_)
    path, reason = _best(shop, tmp_path, f"{ISSUE} since {hash_[:7]}")
    assert path == "shop/beta.py"
    assert f"{hash_[:9]} “Round sums again”" in reason


def _with_hash(commit: str, looks: Callable[[str], bool]) -> str:
    """Write numbers below a commit's message until the first seven characters of its hash look so."""
    numbered = (f"{commit}\n\n{number}\n" for number in count())
    return next(each for each in numbered if looks(_hash(each.encode())[:7]))


def _hash(commit: bytes) -> str:
    return hashlib.sha1(b"commit %d\0%s" % (len(commit), commit)).hexdigest()


def test_what_may_be_a_number_or_a_word_takes_the_place_of_no_other_name() -> None:
    report = f"Since {' '.join(str(1_000_000 + n) for n in range(MOST_NAMES))}, defaced by 3543129d226"
    names = [name.text for name in names_of_commits(sections(report))]
    assert names[0] == "3543129d226"
    assert len(names) == MOST_NAMES


def test_a_number_that_many_commits_name_says_nothing(shop: Path, tmp_path: Path) -> None:
    for number in range(6):
        _commit(shop, f"Step {number} of #8000", shop__alpha=f"x = {number}\n")
    assert _named(shop, tmp_path, Name("#8000")) == []
