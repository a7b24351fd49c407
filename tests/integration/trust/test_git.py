"""The repository of somebody else: none of its programs runs, and no file that is left out by name is told of."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from metatree_memory_tools.git import _command
from metatree_memory_tools.git._show import blame_text, changes_of_text, commit_text
from metatree_memory_tools.git.log import read_history
from metatree_memory_tools.git.state import work_tree_state

from metatree.errors import UserError
from metatree.storage._git_index import tracked
from metatree.storage.store import Store
from tests.integration.git_repository import Repository
from tests.integration.trust.prepared import state as files_of

pytestmark = pytest.mark.integration

CODE = "def area(r):\n    return 3 * r\n"
PRIVATE = "zebra tango"


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = Repository(tmp_path / "repo")
    made.commit("1", {"a.py": CODE, "in/b.py": CODE})
    return made


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A program that leaves `ran` behind."""
    file = tmp_path / "program"
    file.write_text(f"#!/bin/sh\ntouch '{tmp_path / 'ran'}'\ncat\n")
    file.chmod(0o755)
    return file


def ask_everything(root: Path) -> None:
    """Have git asked all that it is ever asked."""
    work_tree_state(root)
    read_history(root, Store.open(":memory:"))
    commit_text(root, "HEAD")
    blame_text(root, "a.py")
    changes_of_text(root, ".", "area")
    changes_of_text(root, "a.py", "area")


# programs


@pytest.mark.parametrize("key", ["clean", "process"])
def test_no_filter_of_the_repository_runs(repository: Repository, program: Path, key: str) -> None:
    (repository.root / ".gitattributes").write_text("* filter=any\n")
    repository.commit("2", {})
    repository.git("config", f"filter.any.{key}", str(program))
    repository.git("config", "filter.any.required", "true")
    (repository.root / "a.py").write_text(CODE.replace("3", "4"))
    assert work_tree_state(repository.root)[1] is True
    (repository.root / "a.py").write_text(CODE)
    assert work_tree_state(repository.root)[1] is False
    ask_everything(repository.root)
    assert not program.with_name("ran").exists()


@pytest.mark.parametrize("elsewhere", [False, True])
def test_no_filter_of_a_submodule_runs(repository: Repository, program: Path, elsewhere: bool) -> None:
    inner = Repository(repository.root / "sub")
    inner.commit("1", {"x.txt": "hi\n", ".gitattributes": "* filter=any\n"})
    (repository.root / ".gitmodules").write_text(
        '[submodule "sub"]\n\tpath = sub\n\turl = ./sub\n\tignore = none\n'
    )
    repository.commit("2", {})
    for key, value in (("url", "./sub"), ("active", "true"), ("ignore", "none")):
        repository.git("config", f"submodule.sub.{key}", value)
    inner.git("config", "filter.any.clean", str(program))
    inner.git("config", "core.fsmonitor", str(program))
    (inner.root / "x.txt").write_text("ho\n")
    if elsewhere:
        (inner.root / ".git").rename(program.with_name("elsewhere"))
        (inner.root / ".git").write_text(f"gitdir: {program.with_name('elsewhere')}\n")
    assert work_tree_state(repository.root)[1] is (None if elsewhere else False)
    ask_everything(repository.root)
    assert not program.with_name("ran").exists()


@pytest.mark.parametrize("how", ["remerge", "separate", "combined", "off"])
def test_no_merge_is_made_again(repository: Repository, program: Path, how: str) -> None:
    repository.commit("2", {".gitattributes": "* merge=any\n"})
    repository.git("checkout", "-qb", "side")
    repository.commit("side", {"a.py": CODE.replace("3", "5")})
    repository.git("checkout", "-q", "main")
    repository.commit("main", {"a.py": CODE.replace("3", "4")})
    repository.git("merge", "-q", "-X", "ours", "--no-commit", "side")
    repository.commit("merged", {"a.py": CODE.replace("3", "6")})
    before = commit_text(repository.root, "HEAD")
    assert before.files == ("a.py",) and "-    return 4 * r" in before.text
    repository.git("config", "merge.any.driver", str(program))
    repository.git("config", "log.diffMerges", how)
    assert commit_text(repository.root, "HEAD") == before
    ask_everything(repository.root)
    assert not program.with_name("ran").exists()


def test_git_sees_the_settings_of_a_repository_at_no_question_that_could_run_them(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[str, bool]] = []
    started = _command._started

    def noted(call: _command._Call, arguments: list[str], *rest: object) -> object:
        calls.append((arguments[0], call.environment.get("GIT_DIR", "").startswith(os.sep)))
        return started(call, arguments, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(_command, "_started", noted)
    ask_everything(repository.root)
    assert {name for name, own in calls if not own} == {"rev-parse", "config"}
    assert {"log", "show", "status", "blame", "cat-file"} <= {name for name, own in calls if own}


# what is compared


def touched(root: Path) -> None:
    os.utime(root / "a.py", (1.0, 1.0))


def other_text_of_the_same_size(root: Path) -> None:
    (root / "a.py").write_text(CODE.replace("3", "4"))
    touched(root)


def gone(root: Path) -> None:
    (root / "a.py").unlink()


def executable(root: Path) -> None:
    (root / "a.py").chmod(0o755)


def new_and_unknown(root: Path) -> None:
    (root / "new.py").write_text(CODE)


@pytest.mark.parametrize(
    ("change", "differs"),
    [
        (touched, False),
        (other_text_of_the_same_size, True),
        (gone, True),
        (executable, True),
        (new_and_unknown, False),
    ],
)
def test_a_work_tree_is_compared_with_its_commit(
    repository: Repository, change: Callable[[Path], None], differs: bool
) -> None:
    head = repository.git("rev-parse", "HEAD")
    assert work_tree_state(repository.root) == (head, False)
    change(repository.root)
    assert work_tree_state(repository.root) == (head, differs)
    assert work_tree_state(repository.root / "in") == (head, False)
    repository.git("add", "-u")
    assert work_tree_state(repository.root) == (head, differs)


@pytest.mark.parametrize("refs", ["refs/heads/main", "HEAD"])
def test_a_reference_that_is_a_link_tells_nothing_of_a_file(
    repository: Repository, tmp_path: Path, refs: str
) -> None:
    key = "0123456789abcdef0123456789abcdef01234567"
    (tmp_path / "key").write_text(f"{key}\n")
    repository.git("checkout", "-q", "-B", "main")
    place = repository.root / ".git" / refs
    place.unlink()
    place.symlink_to(tmp_path / "key")
    assert work_tree_state(repository.root) == (None, None)


@pytest.mark.parametrize(
    "name", ["GIT_EXEC_PATH", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "XDG_CONFIG_HOME", "HOME"]
)
def test_a_variable_of_git_that_depends_on_the_current_folder_is_not_used(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "libexec")
    assert name not in _command._environment()
    monkeypatch.setenv(name, os.devnull)
    assert _command._environment()[name] == os.devnull


def test_git_writes_no_object_through_links_of_a_repository(
    tmp_path: Path, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a sparse index that names a folder whose objects are not there, git writes what is left of it."""
    outside = tmp_path / "outside"
    outside.mkdir()
    repository.commit("2", {f"d{number}/e/a.md": f"# Kettle {number}" for number in range(3)})
    repository.git("sparse-checkout", "init", "--cone", "--sparse-index")
    repository.git("sparse-checkout", "set", "d1")
    missing = repository.git("rev-parse", "HEAD:d2").strip()
    objects = repository.root / ".git" / "objects"
    (objects / missing[:2] / missing[2:]).unlink()
    for number in range(256):
        if not (objects / f"{number:02x}").exists():
            (objects / f"{number:02x}").symlink_to(outside)
    assert work_tree_state(repository.root) == (None, None)  # of one with links nothing is said
    monkeypatch.setenv("METATREE_TRUST", str(repository.root))
    before = files_of(repository.root / ".git")
    log = repository.root / "memory.db-wal"
    log.write_bytes(b"")
    assert tracked([log]) is None
    assert work_tree_state(repository.root)[0] is not None
    with suppress(_command.GitFailed):
        ask_everything(repository.root)
    assert list(outside.iterdir()) == []
    assert files_of(repository.root / ".git") == before


def test_a_log_below_a_folder_that_a_sparse_index_names_alone_is_tracked(repository: Repository) -> None:
    log = repository.root / ".metatree" / "memory.db-wal"
    repository.commit("2", {".metatree/memory.db-wal": "x"})
    repository.git("sparse-checkout", "init", "--cone", "--sparse-index")
    repository.git("sparse-checkout", "set", "in")
    assert ".metatree/" in repository.git("ls-files", "--sparse").split("\n")
    log.parent.mkdir(exist_ok=True)
    log.write_bytes(b"y")
    before = files_of(repository.root / ".git")
    assert tracked([log]) == log
    assert files_of(repository.root / ".git") == before


def test_objects_of_a_repository_with_odd_letters_in_its_place_and_of_those_that_it_borrows_from_are_read(
    tmp_path: Path, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("METATREE_TRUST", str(tmp_path))
    odd = tmp_path / 'a:b "c" \\d'
    odd.mkdir()
    for source, target in ((repository.root, odd / "one"), (odd / "one", odd / "two")):
        repository.git("clone", "-q", "--shared", str(source), str(target))
    assert "return 3 * r" in blame_text(odd / "two", "a.py")
    assert work_tree_state(odd / "two")[1] is not None


@pytest.mark.parametrize("pipe", ["HEAD", "included"])
def test_a_pipe_in_the_settings_is_waited_for_once(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, pipe: str
) -> None:
    repository.git("config", "include.path", "included")
    (repository.root / ".git" / pipe).unlink(missing_ok=True)
    os.mkfifo(repository.root / ".git" / pipe)
    monkeypatch.setattr(_command, "_SETTINGS_S", 0.5)
    asked: list[object] = []
    run = _command._output

    def counted(*given: Any) -> bytes:
        asked.append(given)
        return run(*given)

    monkeypatch.setattr(_command, "_output", counted)
    for _ in range(3):
        assert work_tree_state(repository.root) == (None, None)
    assert len(asked) == 1


def test_what_differs_by_system_is_no_change(repository: Repository) -> None:
    repository.git("config", "core.fileMode", "false")
    repository.git("config", "core.autocrlf", "true")
    gone(repository.root)
    repository.git("checkout", "-q", "a.py")
    assert (repository.root / "a.py").read_bytes().count(b"\r\n") == 2
    executable(repository.root)
    touched(repository.root)
    assert work_tree_state(repository.root)[1] is False


def test_a_work_tree_beside_its_repository_is_compared(repository: Repository, tmp_path: Path) -> None:
    repository.git("worktree", "add", "-q", str(tmp_path / "beside"))
    assert work_tree_state(tmp_path / "beside" / "in")[1] is False
    (tmp_path / "beside" / "in" / "b.py").write_text("")
    assert work_tree_state(tmp_path / "beside" / "in")[1] is True
    assert work_tree_state(repository.root)[1] is False


def test_the_work_tree_is_where_the_folder_is_whatever_the_settings_say(
    repository: Repository, tmp_path: Path
) -> None:
    (tmp_path / "private" / "in").mkdir(parents=True)
    repository.git("config", "core.worktree", str(tmp_path / "private"))
    assert work_tree_state(repository.root)[1] is False
    assert work_tree_state(tmp_path / "private") == (None, None)


@pytest.mark.parametrize(
    ("name", "other"),
    [("xx/secret", "../secret"), ("in/xx/xx/secret", "in/../../secret"), ("xsecret", "/secret")],
)
def test_no_file_elsewhere_is_compared_with_what_an_index_says_of_it(
    repository: Repository, name: str, other: str
) -> None:
    """Whether the folder has changed would tell whether a guess of what is in the file is right."""
    (repository.root.parent / "secret").write_text("guess")
    head = repository.commit("2", {name: "guess"})
    assert work_tree_state(repository.root) == (head, False)
    index = repository.root / ".git" / "index"
    data = index.read_bytes()[:-20].replace(name.encode(), other.encode())
    index.write_bytes(data + hashlib.sha1(data).digest())
    assert work_tree_state(repository.root) == (head, None)


# names


@pytest.mark.parametrize(
    "path",
    [".env", "my app/.env", "ünder/.env", 'quo"ted/.env', "new\nline/.env", "tab\there/.ssh/config"],
)
@pytest.mark.parametrize("setting", ["diff.noprefix", "diff.mnemonicPrefix", "core.quotePath"])
def test_no_line_is_told_of_a_file_that_is_left_out_by_name(
    repository: Repository, path: str, setting: str
) -> None:
    repository.commit("2", {path: f"SERIAL={PRIVATE}\n", "my notes/a b.md": f"{PRIVATE} dances\n"})
    repository.git("config", setting, "true")
    found = changes_of_text(repository.root, ".", PRIVATE)
    assert found.splitlines()[1:] == [f"  my notes/a b.md: +{PRIVATE} dances"]
    shown = commit_text(repository.root, "HEAD").text
    assert f"+{PRIVATE} dances" in shown and "SERIAL" not in shown
    assert "SERIAL" in commit_text(repository.root, "HEAD", secrets=True).text
    assert "SERIAL" in changes_of_text(repository.root, ".", PRIVATE, secrets=True)


def test_no_line_is_told_of_what_is_no_text(repository: Repository) -> None:
    """Cells of a database are hidden by the name of their column, which no line has."""
    (repository.root / "shop.db").write_bytes(b"SQLite format 3\0" + f"password\n{PRIVATE}\n".encode())
    repository.git("add", "shop.db")
    repository.commit("2", {})
    with pytest.raises(UserError, match="'shop\\.db' is no text"):
        blame_text(repository.root, "shop.db")


@pytest.mark.parametrize(("old", "new"), [(".env", ".env.example"), ("notes.txt", ".env")])
def test_no_line_is_told_of_a_file_that_was_left_out_by_its_other_name(
    repository: Repository, old: str, new: str
) -> None:
    rest = "HOST=shop.example\nPORT=8080\nMODE=production\n"
    repository.commit("2", {old: f"{rest}SERIAL={PRIVATE}\n"})
    repository.commit("3", {old: None, new: f"{rest}SERIAL=\n"})
    shown = commit_text(repository.root, "HEAD").text
    assert f"R {new} (was {old})" in shown and "SERIAL" not in shown
    assert f"the changes of {new} may hold secrets" in shown
    assert not [
        line for line in changes_of_text(repository.root, ".", PRIVATE).split("\n") if "-SERIAL" in line
    ]


def test_no_line_is_told_of_a_folder_that_took_the_name_of_a_file(repository: Repository) -> None:
    repository.commit("2", {"settings": "one\n"})
    (repository.root / "settings").unlink()
    repository.commit("3", {"settings/.env": f"SERIAL={PRIVATE}\n", "a.py": f"{CODE}{CODE}"})
    shown = commit_text(repository.root, "HEAD").text
    assert "-one" in shown and "+def area(r):" in shown and "SERIAL" not in shown


def test_a_line_that_looks_like_a_name_is_a_line(repository: Repository) -> None:
    repository.commit(
        "2", {".env": f"++ b/notes.md\nSERIAL={PRIVATE}\n", "c.sql": f"-- b/.env\n-- {PRIVATE}\n"}
    )
    found = changes_of_text(repository.root, ".", PRIVATE)
    assert found.splitlines()[1:] == [f"  c.sql: +-- {PRIVATE}"]


# commits


@pytest.mark.parametrize("name", ["HEAD", "@", "main", "v1", "HEAD~0", "main^{commit}", "v1^0"])
def test_a_commit_is_found_by_its_names(repository: Repository, name: str) -> None:
    repository.commit("2", {"a.py": "x = 1\n"})
    repository.git("tag", "-m", "one", "v1")
    head = repository.git("rev-parse", "HEAD")
    assert commit_text(repository.root, name).hash == head
    assert commit_text(repository.root, head[:10]).hash == head
    assert commit_text(repository.root, f"{head[:10]}~1").subject == "1"
    with pytest.raises(UserError, match="there is no commit"):
        commit_text(repository.root, "HEAD@{1}")


# what commits say of themselves


@pytest.mark.parametrize("at", ["99999999999999999999", "9223372036854775807", "-99999999999", "0"])
def test_a_commit_of_any_date_is_read(repository: Repository, at: str) -> None:
    """Whoever makes a commit may say any date."""
    tree = repository.git("rev-parse", "HEAD^{tree}")
    text = f"tree {tree}\nauthor Ann <a@b> {at} +0000\ncommitter Ann <a@b> {at} +0000\n\nfirst\n"
    (repository.root / "made").write_text(text)
    made = repository.git("hash-object", "-t", "commit", "-w", "--literally", "made")
    repository.git("update-ref", "HEAD", made)
    store = Store.open(":memory:")
    assert read_history(repository.root, store) == ""
    assert store.rows("SELECT subject FROM history_commit") == [("first",)]
    assert "first" in commit_text(repository.root, "HEAD").text
    assert "first" in blame_text(repository.root, "a.py")


def test_a_token_for_the_name_of_an_author_is_masked(repository: Repository) -> None:
    token = "ghp_" + "q7Rk2LmX9vTz4WnB8sYp3JdH6fCg1AeU5oKi"
    repository.commit("2", {"a.py": CODE + "x = 1\n"})
    repository.git("commit", "-q", "--amend", "--no-edit", f"--author={token} <a@b>")
    store = Store.open(":memory:")
    assert read_history(repository.root, store) == ""
    kept = store.rows("SELECT author FROM history_commit ORDER BY number")
    assert kept == [("Ann",), ("*" * len(token),)]
    for said in (
        commit_text(repository.root, "HEAD").text,
        commit_text(repository.root, "HEAD").author,
        blame_text(repository.root, "a.py"),
        changes_of_text(repository.root, "a.py", "x = 1"),
    ):
        assert token not in said
    assert token in commit_text(repository.root, "HEAD", secrets=True).author
