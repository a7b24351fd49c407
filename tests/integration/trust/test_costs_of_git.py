"""What git keeps and says, made to take gigabytes or hours, does not."""

from __future__ import annotations

import os
import subprocess
from hashlib import sha1
from pathlib import Path
from types import ModuleType

import pytest
from metatree_memory_tools import build_tree
from metatree_memory_tools.git import _command, log
from metatree_memory_tools.git._show import commit_text
from metatree_memory_tools.git.index import tracked_below

from metatree.storage import _git_index
from metatree.storage.store_files import check_files
from tests.integration.trust.prepared import Clone
from tests.integration.trust.test_costs import at_most

pytestmark = pytest.mark.integration


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is measured, not time: hundreds of megabytes of names take git seconds, and more beside other work."""
    monkeypatch.setattr(_git_index, "_GIT_S", 120.0)


def index_of_long_names(length: int, count: int) -> bytes:
    """Return an index of git, version 4, in which each name is the one before and a letter."""
    entry = b"\0" * 24 + (0o100644).to_bytes(4, "big") + b"\0" * 12 + b"\x11" * 20 + b"\x0f\xff\0"
    names = [b"a" * length, *[b"b"] * count]
    data = b"DIRC" + (4).to_bytes(4, "big") + len(names).to_bytes(4, "big")
    data += b"".join(entry + name + b"\0" for name in names)
    return data + sha1(data).digest()


def repository(folder: Path) -> None:
    subprocess.run(["git", "init", "-q", str(folder)], check=True)


def commit_of_many_files(folder: Path, levels: int) -> None:
    """Commit a tree that holds ten times itself, so many levels deep: 10 ** levels files in as many objects."""
    who = {f"GIT_{role}_{what}": "a" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}

    def git(*arguments: str, given: str = "") -> str:
        done = subprocess.run(
            ["git", *arguments],
            cwd=folder,
            input=given,
            text=True,
            check=True,
            capture_output=True,
            env={**os.environ, **who},
        )
        return done.stdout.strip()

    what = f"100644 blob {git('hash-object', '-w', '--stdin', given='x')}"
    for _ in range(levels):
        entries = "".join(f"{what}\t{number}\n" for number in range(10))
        what = f"040000 tree {git('mktree', given=entries)}"
    git("update-ref", "HEAD", git("commit-tree", what.split()[2], "-m", "all of it"))


def test_names_in_an_index_of_git_take_no_gigabytes(clone: Clone) -> None:
    repository(clone.folder)
    (clone.folder / ".gitignore").write_text("a.log\n")
    (clone.folder / "a.log").write_text("x")
    (clone.folder / ".git" / "index").write_bytes(index_of_long_names(100_000, 3_000))
    with at_most(100), build_tree(clone.folder) as tree:
        assert "a.md" in tree


@pytest.mark.parametrize("folder", ["", "aa/"])
def test_names_in_an_index_of_git_are_not_kept_twice(clone: Clone, folder: str) -> None:
    """Those of a folder in the repository were copied without the path of that folder."""
    entry = b"\0" * 60 + b"\x0f\xff"
    first = b"aa/" + b"a" * 3_989 + b"%08d"
    names = [b"\0" + first % 0, *(b"\x08%08d" % number for number in range(1, 20_000))]
    data = b"DIRC" + (4).to_bytes(4, "big") + len(names).to_bytes(4, "big")
    data += b"".join(entry + name + b"\0" for name in names)
    repository(clone.folder)
    (clone.folder / ".git" / "index").write_bytes(data)
    assert len(data) < 1_500_000
    with at_most(75):
        tracked_below(clone.folder / ".git", folder)


def test_what_git_says_of_such_an_index_takes_no_gigabytes(clone: Clone) -> None:
    repository(clone.folder)
    (clone.folder / ".git" / "index").write_bytes(index_of_long_names(100_000, 3_000))
    (clone.metatree / "index.db-wal").write_bytes(b"x")
    with at_most(50):
        check_files(clone.metatree / "index.db")
    assert (clone.metatree / "index.db-wal").read_bytes() == b"x"


def test_a_file_of_settings_of_git_is_not_read_whole(clone: Clone) -> None:
    repository(clone.folder)
    (clone.folder / ".gitignore").write_text("a.log\n")
    (clone.folder / "a.log").write_text("x")
    subprocess.run(["git", "add", "a.md"], cwd=clone.folder, check=True)
    os.truncate(clone.folder / ".git" / "config", 300_000_000)
    with at_most(50), build_tree(clone.folder) as tree:
        assert "a.md" in tree


def test_a_repository_elsewhere_whose_name_is_none_ends_no_build(clone: Clone) -> None:
    (clone.folder / ".git").write_bytes(b"gitdir: a\0b\n")
    with build_tree(clone.folder) as tree:
        assert tree.find("a.md") is not None


def test_a_commit_of_endless_files_is_cut(clone: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "_MOST_FILES", 1_000, raising=False)
    repository(clone.folder)
    commit_of_many_files(clone.folder, 4)
    with build_tree(clone.folder, history=True) as tree:
        assert tree.index.rows("SELECT count(*) FROM history_touch")[0][0] <= 1_000


@pytest.mark.parametrize(
    ("module", "bound", "most", "levels", "says"),
    [
        (log, "_MOST_NAMES", 1_000, 4, ": its files had more than 1,000 names"),
        pytest.param(
            _command,
            "_MOST_MEMORY",
            60_000_000,
            6,
            "",
            marks=pytest.mark.skipif(
                not hasattr(os, "pidfd_open"), reason="memory of another process is bounded on Linux"
            ),
        ),
    ],
    ids=["names", "memory of git"],
)
def test_a_history_that_takes_gigabytes_is_not_read(
    clone: Clone,
    monkeypatch: pytest.MonkeyPatch,
    module: ModuleType,
    bound: str,
    most: int,
    levels: int,
    says: str,
) -> None:
    monkeypatch.setattr(module, bound, most)
    repository(clone.folder)
    commit_of_many_files(clone.folder, levels)
    with build_tree(clone.folder, history=True) as tree:
        assert f"the history was not read{says}" in str(tree.omissions())


def test_git_is_ended_when_it_says_nothing(clone: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_command, "_SILENCE_S", 0.5, raising=False)
    monkeypatch.setattr(_command, "_command", lambda *_: ["sleep", "60"])
    with (
        pytest.raises(_command.GitFailed, match="said nothing"),
        _command._stream(_command._Call(clone.folder, {}), ["log"]) as it,
    ):
        list(it)


def test_a_long_message_is_cut_while_it_is_read(clone: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_command, "_command", lambda *_: ["head", "-c", "20000000", "/dev/zero"])
    monkeypatch.setattr(_command, "_CHUNK", 50_000)
    with _command._stream(_command._Call(clone.folder, {}), ["log"]) as it:
        assert not any(it)
    monkeypatch.setattr(_command, "_command", lambda *_: ["sh", "-c", "yes | head -c 20000000"])
    with at_most(20), _command._stream(_command._Call(clone.folder, {}), ["log"]) as it:
        assert sum(map(len, it)) < 5_000_000


def test_a_change_of_a_file_of_many_megabytes_is_not_compared_line_by_line(clone: Clone) -> None:
    """One of 48 MB took git 1.9 GB."""
    repository(clone.folder)
    who = {f"GIT_{role}_{what}": "a" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    for times, day in ((1_000_000, "Monday"), (1_100_000, "Friday")):
        (clone.folder / "days.csv").write_text("harbour\n" + f"{day},tea\n" * times)
        (clone.folder / "tea.md").write_text(f"It is {day}.\n")
        for command in (["add", "days.csv", "tea.md"], ["commit", "-qm", "The days"]):
            subprocess.run(["git", *command], cwd=clone.folder, check=True, env={**os.environ, **who})
    changed = commit_text(clone.folder, "HEAD").text
    assert "+It is Friday." in changed and "Binary files a/days.csv and b/days.csv differ" in changed
    assert "Friday,tea" not in changed
