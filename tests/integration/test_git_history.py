"""The history of a source: read from real repositories that git made, brought up to date, and never more than asked."""

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from metatree_memory_tools import build_tree
from metatree_memory_tools.git._command import GitFailed, checked_revision, rev_parse
from metatree_memory_tools.git.log import read_history

from metatree.errors import UserError
from metatree.storage.store import Store
from metatree.trees.history import (
    all_touches,
    commits,
    commits_below,
    commits_of,
    find_commits,
    history_state,
    names_of,
    touches,
)
from tests.integration.git_repository import Repository

pytestmark = pytest.mark.integration

LINES = "".join(f"line {number} of a file that git can tell from others\n" for number in range(20))


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "repo")


def subjects(store: Store, path: str | None = None) -> list[str]:
    found = commits(store) if path is None else commits_of(store, path)
    return [commit.subject for commit in found]


def dump(store: Store) -> list[object]:
    """All that is known of a history, without the numbers."""
    return [
        (
            replace(c, number=0),
            [replace(touch, number=0) for touch in touches(store, [c.number]).get(c.number, ())],
        )
        for c in commits(store)
    ]


def read(root: Path, store: Store | None = None) -> Store:
    store = store or Store.open(":memory:")
    assert read_history(root, store) == ""
    return store


def test_commits_say_who_when_what_and_which_files(repository: Repository) -> None:
    first = repository.commit("Add a\n\nFirst of all.\n\nSee #1.", {"src/a.py": LINES, "b c.txt": "b"})
    second = repository.commit("Change a", {"src/a.py": LINES + "x = 1\n", "b c.txt": None})
    store = read(repository.root)
    newest, oldest = commits(store)
    assert (oldest.hash, oldest.parents, oldest.author, oldest.at) == (first, (), "Ann", 1_600_000_060)
    assert (oldest.subject, oldest.body, oldest.files) == ("Add a", "First of all.\n\nSee #1.", 2)
    assert (newest.hash, newest.parents) == (second, (first,))
    assert [(t.status, t.path) for t in touches(store, [newest.number])[newest.number]] == [
        ("D", "b c.txt"),
        ("M", "src/a.py"),
    ]
    assert subjects(store, "src/a.py") == ["Change a", "Add a"]
    assert [c.subject for c in commits_below(store, "src")] == ["Change a", "Add a"]
    assert find_commits(store, first[:7]) == [oldest]
    assert find_commits(store, "%") == []
    state = history_state(store)
    assert state is not None
    assert (state.head, state.commits, state.note) == (second, 2, "")


def test_a_file_is_followed_through_its_names(repository: Repository) -> None:
    repository.commit("Add", {"old/a.py": LINES})
    repository.commit("Change", {"old/a.py": LINES + "1"})
    repository.commit("Move", {"old/a.py": None, "new/b.py": LINES + "1"})
    repository.commit("Add another under the old name", {"old/a.py": "other\n"})
    repository.commit("Change again", {"new/b.py": LINES + "2"})
    store = read(repository.root)
    assert subjects(store, "new/b.py") == ["Change again", "Move", "Change", "Add"]
    assert subjects(store, "old/a.py") == ["Add another under the old name"]
    assert names_of(store, "new/b.py") == ["new/b.py", "old/a.py"]
    assert [path for _, path in all_touches(store)] == ["new/b.py"] * 3 + ["old/a.py", "new/b.py"]


def test_names_on_several_lines_of_development_meet(repository: Repository) -> None:
    repository.commit("Add", {"a.py": LINES})
    repository.git("checkout", "-q", "-b", "side")
    repository.commit("Rename", {"a.py": None, "b.py": LINES})
    repository.git("checkout", "-q", "main")
    repository.commit("Change under the old name", {"a.py": LINES + "1"})
    repository.git("merge", "-q", "--no-edit", "side")
    repository.commit("Change", {"b.py": LINES + "2"})
    store = read(repository.root)
    assert subjects(store, "b.py") == ["Change", "Change under the old name", "Rename", "Add"]
    assert "Merge" not in " ".join(subjects(store))


def test_a_line_of_development_that_left_no_trace_is_known_too(repository: Repository) -> None:
    repository.commit("Add", {"a.py": LINES})
    repository.git("checkout", "-q", "-b", "side")
    repository.commit("Try", {"a.py": LINES + "1"})
    repository.commit("Take back", {"a.py": LINES})
    repository.git("checkout", "-q", "main")
    repository.commit("Go on", {"b.py": "b"})
    repository.git("merge", "-q", "--no-edit", "side")
    assert subjects(read(repository.root), "a.py") == ["Take back", "Try", "Add"]


def test_reading_on_gives_what_reading_anew_gives(repository: Repository) -> None:
    store = Store.open(":memory:")
    repository.commit("1", {"a": LINES, "keep": "1"})
    read(repository.root, store)
    repository.commit("2", {"a": None, "b": LINES})
    repository.commit("3", {"b": LINES + "3"})
    read(repository.root, store)
    before = [c.number for c in commits(store)]
    repository.commit("4", {"b": None, "c/d": LINES + "3"})
    read(repository.root, store)
    assert [c.number for c in commits(store)][1:] == before
    assert dump(store) == dump(read(repository.root))
    state = history_state(store)
    assert state is not None
    assert state.epoch == 0


def test_only_what_led_to_the_checked_out_commit_is_known(repository: Repository) -> None:
    old = repository.commit("1", {"a": "1"})
    repository.commit("2", {"a": "2"})
    repository.git("tag", "later")
    store = read(repository.root)
    repository.git("checkout", "-q", old)
    read(repository.root, store)
    assert subjects(store) == ["1"]
    repository.git("checkout", "-q", "main")
    read(repository.root, store)
    assert subjects(store) == ["2", "1"]


def test_a_rebased_history_takes_the_place_of_the_old_one(repository: Repository) -> None:
    repository.commit("1", {"a": LINES})
    repository.commit("2", {"a": LINES + "2"})
    repository.commit("3", {"a": None, "b": LINES + "2"})
    store = read(repository.root)
    repository.git("reset", "-q", "--hard", "HEAD~2")
    repository.commit("2 anew", {"a": LINES + "x"})
    read(repository.root, store)
    assert subjects(store) == ["2 anew", "1"]
    assert subjects(store, "b") == []
    assert dump(store) == dump(read(repository.root))
    state = history_state(store)
    assert state is not None
    assert state.epoch > 0
    repository.git("commit", "-q", "--amend", "-m", "2 amended")
    repository.git("reflog", "expire", "--expire=now", "--all")
    repository.git("gc", "-q", "--prune=now")
    read(repository.root, store)
    assert subjects(store) == ["2 amended", "1"]
    assert dump(store) == dump(read(repository.root))


def test_a_shallow_clone_says_so_and_invents_nothing(repository: Repository, tmp_path: Path) -> None:
    for number in range(4):
        repository.commit(str(number), {"a": str(number), f"f{number}": "x"})
    subprocess.run(
        ["git", "clone", "-q", "--depth", "2", repository.root.as_uri(), str(tmp_path / "clone")], check=True
    )
    store = Store.open(":memory:")
    assert "shallow" in read_history(tmp_path / "clone", store)
    assert subjects(store) == ["3", "2"]
    assert subjects(store, "f0") == []  # it looks as if the oldest commit had added everything
    assert subjects(store, "f3") == ["3"]
    subprocess.run(["git", "-C", str(tmp_path / "clone"), "fetch", "-q", "--unshallow"], check=True)
    assert read_history(tmp_path / "clone", store) == ""
    assert dump(store) == dump(read(repository.root))


def test_a_folder_of_a_repository_has_its_own_part(repository: Repository) -> None:
    repository.commit("outside", {"x": "1"})
    repository.commit("inside", {"pkg/a.py": "1"})
    store = read(repository.root / "pkg")
    assert subjects(store) == ["inside"]
    assert subjects(store, "a.py") == ["inside"]


def test_a_limit_keeps_the_newest_and_says_so(repository: Repository) -> None:
    for number in range(5):
        repository.commit(str(number), {"a": str(number)})
    store = Store.open(":memory:")
    assert "newest 3 commits" in read_history(repository.root, store, limit=3)
    assert subjects(store) == ["4", "3", "2"]
    assert read_history(repository.root, store) == ""
    assert subjects(store) == ["4", "3", "2", "1", "0"]


def test_odd_names_and_messages_are_read(repository: Repository) -> None:
    names = ["a\nb", "M", "tab\there", '"quoted"', "übung", "-dash", "*"]
    repository.commit("\x1e odd\tmessage\n\nM\nx\n\nR100", dict.fromkeys(names, LINES))
    (repository.root / os.fsdecode(b"latin-\xe9")).write_text("x")
    repository.commit("bytes", {})
    store = read(repository.root)
    assert {path for _, path in all_touches(store)} == {*names, "latin-\\xe9"}
    assert [c.body for c in commits(store)] == ["", "M\nx\n\nR100"]


def test_what_cannot_be_read_becomes_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store.open(":memory:")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    plain = tmp_path / "plain"
    plain.mkdir()
    assert "lies in no git repository" in read_history(plain, store)
    empty = Repository(tmp_path / "empty")
    assert "nothing has been committed" in read_history(empty.root, store)
    inner = empty.root / "inner"
    inner.mkdir()
    empty.commit("elsewhere", {"x": "1"})
    assert "no commit" in read_history(inner, Store.open(":memory:"))
    (empty.root / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (empty.root / ".git" / "refs" / "heads" / "main").write_text("0" * 39 + "1\n")
    assert "the history was not read" in read_history(empty.root, store)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "install git" in read_history(empty.root, store)
    state = history_state(store)
    assert state is not None
    assert "install git" in state.note


def test_nothing_that_a_repository_configures_is_run(repository: Repository, tmp_path: Path) -> None:
    trace = tmp_path / "ran"
    script = tmp_path / "evil"
    script.write_text(f"#!/bin/sh\necho \"$0 $*\" >> '{trace}'\n")
    script.chmod(0o755)
    (repository.root / ".gitattributes").write_text("* diff=evil filter=evil\n")
    repository.commit("1", {"a": "1"})
    for key in (
        "core.fsmonitor",
        "core.pager",
        "pager.log",
        "diff.external",
        "diff.evil.command",
        "diff.evil.textconv",
        "filter.evil.clean",
        "filter.evil.smudge",
        "gpg.program",
        "core.sshCommand",
        "credential.helper",
        "alias.log",
        "alias.rev-parse",
    ):
        repository.git("config", key, f"!{script}" if key.startswith("alias") else str(script))
    repository.git("config", "log.showSignature", "true")
    for hook in ("post-index-change", "reference-transaction", "post-checkout"):
        (repository.root / ".git" / "hooks" / hook).write_text(script.read_text())
        (repository.root / ".git" / "hooks" / hook).chmod(0o755)
    trace.unlink(missing_ok=True)
    assert subjects(read(repository.root)) == ["1"]
    assert not trace.exists(), trace.read_text()


def test_a_clone_without_contents_is_read_without_fetching(repository: Repository, tmp_path: Path) -> None:
    repository.commit("1", {"a": LINES})
    repository.commit("2", {"a": None, "b": LINES + "2"})
    repository.git("config", "uploadpack.allowFilter", "true")
    clone = tmp_path / "clone"
    subprocess.run(
        ["git", "clone", "-q", "--filter=blob:none", "--no-checkout", repository.root.as_uri(), str(clone)],
        check=True,
    )
    objects = [*clone.glob(".git/objects/*/*")]
    store = Store.open(":memory:")
    read_history(clone, store)
    assert subjects(store) == ["2", "1"]
    assert subjects(store, "b") == ["2"]  # whether it is the same file cannot be told without its contents
    assert [*clone.glob(".git/objects/*/*")] == objects


@pytest.mark.parametrize(
    "name", ["--output=/tmp/x", "-p", "", "a..b", "a b", "HEAD:secret", "x" * 300, ":/fix"]
)
def test_a_revision_is_never_an_option_or_a_range(name: str) -> None:
    with pytest.raises(UserError):
        checked_revision(name)
    assert checked_revision(" HEAD~2 ") == "HEAD~2"


def test_errors_of_git_are_one_clear_line(repository: Repository) -> None:
    repository.commit("1", {"a": "1"})
    with pytest.raises(GitFailed, match=r"^git: .*revision") as caught:
        rev_parse(repository.root, "--verify", "nonsense")
    assert "\n" not in str(caught.value)


def test_a_tree_is_built_with_its_history_and_keeps_it(repository: Repository) -> None:
    repository.commit("1", {"a.py": "x = 1\n"})
    build_tree(repository.root).close()
    with build_tree(repository.root, history=True) as tree:
        assert subjects(tree.index) == ["1"]
        assert not tree.stale()
        repository.commit("2 without a change of a file in the tree", {})
        assert tree.stale()
        tree.refresh()
        assert not tree.stale()
        repository.commit("3", {"a.py": "x = 2\n"})
        tree.refresh()
        assert subjects(tree.index, "a.py") == ["3", "1"]
    with build_tree(repository.root) as tree:
        assert subjects(tree.index) == ["3", "1"]
    with build_tree(repository.root, history=False) as tree:
        assert history_state(tree.index) is None
        assert subjects(tree.index) == []


def test_a_folder_without_a_repository_is_built_and_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    source = tmp_path / "plain"
    source.mkdir()
    (source / "a.py").write_text("x = 1\n")
    with build_tree(source, history=True) as tree:
        assert "a.py" in tree
        assert [reason for path, reason in tree.omissions() if path == ".git"] == [
            f"the history was not read: {str(source)!r} lies in no git repository"
        ]
        assert not tree.stale()


def test_paths_of_thousands_of_characters_are_in_no_history(repository: Repository) -> None:
    """Trees in trees make them of a few bytes, and each commit has them anew."""
    long = "/".join(["d" * 220] * 5)
    repository.commit("1", {"a.py": "x = 1\n", f"{long}/b.py": LINES})
    repository.commit("2", {f"{long}/b.py": None, f"{long}/c.py": LINES})
    store = read(repository.root)
    assert subjects(store) == ["2", "1"]
    assert store.rows("SELECT DISTINCT path FROM history_touch") == [("a.py",)]
    assert store.rows("SELECT path FROM history_name") == [("a.py",)]
