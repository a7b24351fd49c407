"""A repository that somebody prepared: its settings, links and pipes read no file of the machine, and run nothing."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from metatree_memory_tools import build_tree
from metatree_memory_tools.git._show import blame_text, changes_of_text, commit_text
from metatree_memory_tools.git.log import read_history
from metatree_memory_tools.git.state import work_tree_state

from metatree.errors import MetatreeError
from metatree.storage.store import Store
from tests.integration.git_repository import Repository

pytestmark = pytest.mark.integration

PRIVATE = "PRIVATE-LINE"


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = Repository(tmp_path / "repo")
    made.commit("1", {"a.py": "x = 1\ny = 2\n", "b.py": "z = 1\n"})
    made.commit("2", {"a.py": "x = 1\ny = 3\n"})
    return made


@pytest.fixture
def private(tmp_path: Path) -> Path:
    """A file of the machine that reads like several of git's own: a list of commits, attributes, people, rules."""
    file = tmp_path / "private"
    file.write_text(f"{PRIVATE} <ann@example.org>\n{PRIVATE}:x:0:0\n")
    return file


def said(root: Path) -> list[str]:
    """All that the reading of histories says, with its errors."""
    asked: list[Callable[[], object]] = [
        lambda: read_history(root, Store.open(":memory:")),
        lambda: commit_text(root, "HEAD").text,
        lambda: blame_text(root, "a.py"),
        lambda: changes_of_text(root, "a.py", "y = 3"),
    ]
    found = []
    for ask in asked:
        try:
            found.append(str(ask()))
        except MetatreeError as exc:
            found.append(f"failed: {exc}")
    return found


@pytest.mark.parametrize(
    "key",
    [
        "blame.ignoreRevsFile",
        "mailmap.file",
        "core.attributesFile",
        "core.excludesFile",
        "diff.orderFile",
        "commit.template",
        "include.path",
        "log.mailmap",
        "gpg.ssh.allowedSignersFile",
        "core.notesRef",
    ],
)
def test_a_setting_that_names_a_file_has_no_effect(repository: Repository, private: Path, key: str) -> None:
    before = said(repository.root)
    assert not any(text.startswith("failed") for text in before)
    if key == "mailmap.file":
        repository.git("config", "log.mailmap", "true")
    repository.git("config", key, str(private) if key != "log.mailmap" else "true")
    now = said(repository.root)
    assert PRIVATE not in "".join(now)
    if key != "include.path":  # which git reads before anything can be said to it, and without quoting it
        assert now == before


def test_submodules_are_not_looked_into(repository: Repository, tmp_path: Path) -> None:
    inner = Repository(tmp_path / "inner")
    commit = inner.commit(PRIVATE, {"c.py": "c = 1\n"})
    again = inner.commit(f"{PRIVATE} again", {"c.py": "c = 2\n"})
    for each in (commit, again):
        repository.git("update-index", "--add", "--cacheinfo", f"160000,{each},sub")
        repository.minute += 1
        repository.git("commit", "-qm", "sub")
    (repository.root / "sub").mkdir()
    (repository.root / "sub" / ".git").write_text(f"gitdir: {inner.root / '.git'}\n")
    for key, value in (
        ("diff.submodule", "log"),
        ("submodule.sub.ignore", "none"),
        ("submodule.sub.path", "sub"),
        ("submodule.sub.active", "true"),
    ):
        repository.git("config", key, value)
    assert PRIVATE not in "".join(said(repository.root))


@pytest.mark.parametrize(
    "place",
    [
        "shallow",
        "packed-refs",
        "objects/info/alternates",
        "info/attributes",
        "info/grafts",
        "HEAD",
        "commondir",
        "config",
    ],
)
@pytest.mark.parametrize(
    "text",
    ["", f"{PRIVATE} one\na/{PRIVATE}\n", f"[core]\n\tworktree = ../{PRIVATE}\n", f"ref: refs/{PRIVATE}\n"],
)
def test_links_of_the_git_folder_are_not_quoted(
    repository: Repository, private: Path, place: str, text: str
) -> None:
    if text:
        private.write_text(text)
    file = repository.root / ".git" / place
    file.parent.mkdir(exist_ok=True)
    file.unlink(missing_ok=True)
    file.symlink_to(private)
    repository.git("--version")
    assert PRIVATE not in "".join(said(repository.root))
    (repository.root / ".git" / "refs" / "heads" / "main").write_text("0" * 39 + "1\n")
    assert PRIVATE not in "".join(said(repository.root))


@pytest.mark.parametrize("key", ["core.compression", "core.bigFileThreshold"])
def test_a_value_of_settings_that_are_a_link_is_not_quoted(
    repository: Repository, private: Path, key: str
) -> None:
    section, name = key.split(".")
    private.write_text(f"[{section}]\n\t{name} = {PRIVATE}\n")
    (repository.root / ".git" / "config").unlink()
    (repository.root / ".git" / "config").symlink_to(private)
    now = said(repository.root)
    assert any("git: bad numeric config" in text for text in now)
    assert PRIVATE not in "".join(now)


def test_a_file_that_became_a_link_out_of_the_folder_is_not_blamed(
    repository: Repository, private: Path
) -> None:
    (repository.root / "a.py").unlink()
    (repository.root / "a.py").symlink_to(private)
    assert PRIVATE not in "".join(said(repository.root))


@pytest.mark.parametrize("options", [(), ("--object-format=sha256",)])
def test_blame_is_right_in_a_folder_of_a_work_tree_of_a_shallow_clone(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    made = tmp_path / "made"
    made.mkdir()
    origin = Repository(made / "origin")
    (origin.root / ".git").rename(made / "gone")
    origin.git("init", "-q", "-b", "main", *options)
    for number in "123":
        origin.commit(number, {"in/day é.py": "".join(f"x = {each}\n" for each in range(int(number)))})
    clone = Repository(tmp_path / "clone")
    clone.git("clone", "-q", "--depth=2", "--bare", origin.root.as_uri(), str(tmp_path / "bare.git"))
    clone.git("--git-dir", str(tmp_path / "bare.git"), "worktree", "add", "-q", str(tmp_path / "work"))
    told = blame_text(tmp_path / "work" / "in", "day é.py")
    assert [line.rpartition(": ")[2] for line in told.split("\n")] == ["2", "x = 0", "x = 1", "3", "x = 2"]


@pytest.mark.parametrize("place", ["index", "info/exclude", "shallow"])
def test_a_pipe_in_the_git_folder_keeps_nobody_waiting(repository: Repository, place: str) -> None:
    (repository.root / ".gitignore").write_text("b.py\n")
    file = repository.root / ".git" / place
    file.unlink(missing_ok=True)
    os.mkfifo(file)
    with build_tree(repository.root) as tree:
        assert "a.py" in tree


def test_a_pipe_among_the_objects_is_waited_for_once(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("metatree_memory_tools.git.state._LIMIT_S", 0.3)
    monkeypatch.setattr("metatree_memory_tools.git.state._late", {})
    head = work_tree_state(repository.root)[0]
    assert head is not None
    place = repository.root / ".git" / "objects" / head[:2] / head[2:]
    place.unlink()
    os.mkfifo(place)
    assert work_tree_state(repository.root) == (None, None)
    monkeypatch.setattr("metatree_memory_tools.git.state.objects_of", None)
    assert work_tree_state(repository.root) == (None, None), "git is not asked again"
