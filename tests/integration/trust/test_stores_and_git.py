"""Stores and logs that git tracks, and what git is asked about them."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing, suppress
from pathlib import Path

import pytest
from metatree_memory_tools import build_tree

from metatree import Tree
from metatree.errors import UntrustedStore, UserError
from metatree.notes.notes import remember
from metatree.storage import _git_index
from metatree.storage._git_index import is_object, put_by_git, tracked
from metatree.storage.acceptance import accept
from metatree.storage.store import Store
from tests.integration.git_repository import Repository
from tests.integration.trust.prepared import Clone

pytestmark = pytest.mark.integration


def _repository_that_runs(command: Path, folder: Path) -> None:
    """Make a repository whose index lacks a folder that is fetched by a program which its settings name."""

    def git(*arguments: str) -> str:
        done = subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *arguments],
            cwd=folder,
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout.strip()

    (folder / ".metatree" / "far").mkdir(parents=True, exist_ok=True)
    (folder / ".metatree" / "far" / "b").write_text("b")
    (folder / ".metatree" / "a").write_text("a")
    git("init", "-q")
    git("add", "-f", ".metatree/far/b", ".metatree/a")
    git("commit", "-q", "-m", "first")
    git("sparse-checkout", "init", "--cone", "--sparse-index")
    git("sparse-checkout", "set", ".metatree/near")
    missing = git("rev-parse", "HEAD:.metatree/far")
    (folder / ".git" / "objects" / missing[:2] / missing[2:]).unlink()
    for name, value in {
        "core.repositoryFormatVersion": "1",
        "extensions.partialClone": "origin",
        "remote.origin.promisor": "true",
        "remote.origin.url": str(folder),
        "remote.origin.uploadpack": f"touch {command}; false",
    }.items():
        git("config", name, value)


def test_no_repository_runs_anything_when_it_is_asked_for_a_log(clone: Clone) -> None:
    shutil.rmtree(clone.metatree)
    _repository_that_runs(clone.started, clone.folder)
    build_tree(clone.folder).close()
    (clone.metatree / "memory.db-wal").write_bytes(b"\0" * 100)
    with suppress(UserError):
        Tree.open(clone.folder).close()
    assert not clone.started.exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[core]\n\tcompression = PRIVATE-LINE\n", "bad numeric config"),
        ("[core]\n\trepositoryFormatVersion = 1\n[extensions]\n\tPRIVATE-LINE = a\n", "unknown repository"),
    ],
)
def test_no_line_of_a_file_is_repeated_that_git_quotes(clone: Clone, text: str, said: str) -> None:
    """The settings of a repository may be a link to another file of the machine."""
    shutil.rmtree(clone.metatree)
    build_tree(clone.folder).close()
    (clone.metatree / "memory.db-wal").write_bytes(b"\0" * 100)
    clone.secret.write_text(text)
    subprocess.run(["git", "init", "-q"], cwd=clone.folder, check=True)
    (clone.folder / ".git" / "config").unlink()
    (clone.folder / ".git" / "config").symlink_to(clone.secret)
    result = subprocess.run(
        ["git", "ls-files"], cwd=clone.folder, capture_output=True, text=True, check=False
    )
    assert "private-line" in result.stderr.lower()
    with pytest.raises(UserError, match="git cannot say") as refused:
        Tree.open(clone.folder)
    assert said in str(refused.value)
    assert "private-line" not in str(refused.value).lower()


def test_a_tree_that_looks_like_a_repository_hides_no_log_that_git_tracks(clone: Clone) -> None:
    shutil.rmtree(clone.metatree)
    build_tree(clone.folder).close()
    log = clone.metatree / "memory.db-wal"
    log.write_bytes(b"\0" * 100)
    subprocess.run(["git", "init", "-q", "--bare", str(clone.metatree)], check=True)
    for name, value in {"core.bare": "false", "core.worktree": "/", "core.fsmonitor": clone.command}.items():
        subprocess.run(["git", "config", "-f", str(clone.metatree / "config"), name, value], check=True)
    for command in (["init", "-q"], ["add", "-f", str(log)]):
        subprocess.run(["git", *command], cwd=clone.folder, check=True)
    with pytest.raises(UserError, match="git cannot say"):
        Tree.open(clone.folder)
    assert not clone.started.exists()


def test_a_store_that_one_committed_is_not_ones_own_any_more(clone: Clone) -> None:
    """Others change it in their clones, and `git pull` puts it where the mark is for."""
    repository = Repository(clone.folder.parent / "shop")
    repository.commit("first", {"a.md": "# The shop\n"})
    with build_tree(repository.root) as tree:
        remember(tree, "Mine", who="victim")
    Tree.open(repository.root).close()
    repository.git("add", "-f", ".metatree/memory.db", ".metatree/index.db")
    for version in ("2", "4"):
        repository.git("update-index", "--index-version", version)
        with pytest.raises(UserError, match=r"git has put '.*index\.db' there with your mark"):
            Tree.open(repository.root)
    repository.git("rm", "-q", "--cached", ".metatree/index.db")
    with pytest.raises(UserError, match=r"git has put '.*memory\.db' there with your mark"):
        Store.open(repository.root / ".metatree" / "memory.db")
    repository.git("rm", "-q", "--cached", ".metatree/memory.db")
    with pytest.raises(UntrustedStore):  # others may have changed it by then
        Store.open(repository.root / ".metatree" / "memory.db")
    build_tree(repository.root).close()
    accept(repository.root / ".metatree" / "memory.db")
    with Tree.open(repository.root) as tree:
        assert "Mine" in [node.title for _, node in tree.walk()]


@pytest.mark.parametrize("how", ["beside a log", "a conflict", "another encoding"])
def test_a_store_that_git_put_there_in_another_form_is_not_ones_own(tmp_path: Path, how: str) -> None:
    shop = Repository(tmp_path / "shop")
    shop.commit("first", {"a.md": "# The shop\n"})
    with build_tree(shop.root) as tree:
        remember(tree, "Mine", who="victim")
    memory = shop.root / ".metatree" / "memory.db"
    log = memory.with_name("memory.db-wal")
    with closing(sqlite3.connect(memory)) as connection:  # of a process that will be killed
        connection.execute("UPDATE node SET title = 'Mine'")
        connection.commit()
        left = log.read_bytes()
    shop.git("add", "-f", str(memory))
    shop.commit("second", {})
    shop.git("checkout", "-q", "-b", "theirs")
    with closing(sqlite3.connect(memory)) as connection, connection:
        connection.execute("UPDATE node SET title = 'Theirs'")
    if how == "another encoding":
        (shop.root / ".gitattributes").write_text(".metatree/memory.db -text working-tree-encoding=IBM037\n")
        shop.git("add", ".gitattributes")
        shop.git("update-index", "--force-remove", ".metatree/memory.db")
    shop.git("add", "-f", str(memory))
    shop.git("commit", "-q", "-m", "theirs")
    changed = memory.read_bytes()
    shop.git("checkout", "-q", "main")
    if how != "beside a log":
        shop.git("rm", "-q", str(memory))
        shop.git("commit", "-q", "-m", "taken out")
    with suppress(subprocess.CalledProcessError):  # of a conflict
        shop.git("merge", "-q", "theirs")
    assert memory.read_bytes() == changed
    if how == "beside a log":
        log.write_bytes(left)
    for _ in range(2):
        with pytest.raises(UserError, match="git has put"):
            Store.open(memory)
    shop.git("rm", "-q", "-f", "--cached", str(memory))
    with pytest.raises(UntrustedStore, match="was put there by git, and is unchanged since"):
        Store.open(memory)
    if how != "beside a log":
        accept(memory)
        Store.open(memory).close()


@pytest.fixture
def pulled(tmp_path: Path) -> Repository:
    """A repository with a memory of one's own, which others have changed; nothing of metatree ran since the pull."""
    shop = Repository(tmp_path / "shop")
    shop.commit("first", {"a.md": "# The shop\n"})
    with build_tree(shop.root) as tree:
        remember(tree, "Mine", who="victim")
    memory = shop.root / ".metatree" / "memory.db"
    shop.git("add", "-f", str(memory))
    shop.git("commit", "-q", "-m", "second")
    shop.git("checkout", "-q", "-b", "theirs")
    with closing(sqlite3.connect(memory)) as connection, connection:
        connection.execute("UPDATE node SET title = 'Theirs'")
    shop.git("commit", "-q", "-a", "-m", "theirs")
    shop.git("checkout", "-q", "main")
    shop.git("merge", "-q", "theirs")
    return shop


@pytest.mark.parametrize(
    "commands",
    [
        [["rm", "-r", "-q", "--cached", ".metatree"]],
        [["rm", "-r", "-q", "--cached", ".metatree"], ["commit", "-q", "-m", "taken out"]],
        [["reset", "-q", "HEAD~2"]],
    ],
)
def test_a_store_that_git_put_there_is_known_when_it_is_taken_out_before_it_was_used(
    pulled: Repository, commands: list[list[str]]
) -> None:
    memory = pulled.root / ".metatree" / "memory.db"
    for command in commands:
        pulled.git(*command)
    for _ in range(2):
        with pytest.raises(UntrustedStore, match="was put there by git, and is unchanged since"):
            Store.open(memory)
    accept(memory)
    Store.open(memory).close()


def test_nothing_is_written_from_a_log_into_a_store_that_git_put_there(pulled: Repository) -> None:
    """It would not be as git put it there any more, and so pass for one's own."""
    memory = pulled.root / ".metatree" / "memory.db"
    memory.with_name("memory.db-wal").write_bytes(_log_of_a_killed_process(memory))
    with pytest.raises(UserError, match="git has put"):
        Store.open(memory)
    pulled.git("rm", "-q", "--cached", str(memory))
    before = memory.read_bytes()
    for _ in range(2):
        with pytest.raises(UntrustedStore):
            Store.open(memory)
    assert memory.read_bytes() == before


def _log_of_a_killed_process(memory: Path) -> bytes:
    """Return a log as a process leaves it that wrote into a copy of a store and was killed."""
    copy = memory.with_name("copy")
    shutil.copy(memory, copy)
    with closing(sqlite3.connect(copy)) as connection:
        connection.execute("UPDATE node SET title = 'Mine'")
        connection.commit()
        return copy.with_name("copy-wal").read_bytes()


def test_no_number_of_files_beside_a_store_hides_it(pulled: Repository) -> None:
    memory = pulled.root / ".metatree" / "memory.db"
    for number in range(50):
        (memory.parent / f"d{number}.db").touch()
    with closing(sqlite3.connect(memory.with_name("index.db"))) as connection, connection:
        connection.execute("INSERT INTO meta VALUES ('x', '1')")
    pulled.git("add", "-f", ".metatree")
    with pytest.raises(UserError, match=r"git has put '.*index\.db'"):
        Tree.open(pulled.root)
    pulled.git("rm", "-q", "-r", "--cached", ".metatree")
    shutil.rmtree(pulled.root / ".git")  # nothing tells any more what was put there
    with pytest.raises(UntrustedStore):
        Store.open(memory)


def test_a_store_of_a_repository_that_git_never_had_is_ones_own_after_a_kill(tmp_path: Path) -> None:
    shop = Repository(tmp_path / "shop")
    shop.commit("first", {"a.md": "# The shop\n"})
    build_tree(shop.root).close()
    memory = shop.root / ".metatree" / "memory.db"
    with closing(sqlite3.connect(memory)) as connection, connection:  # as if none had said how it left it
        connection.execute("INSERT INTO meta VALUES ('x', '1')")
    with Store.open(memory) as store:
        assert store.value("SELECT value FROM meta WHERE key = 'x'") == "1" and not store.read_only


@pytest.mark.parametrize("way", ["trust", "variable"])
def test_a_store_that_git_put_there_stays_so_though_it_is_used_by_who_passes_over_marks(
    pulled: Repository, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    memory = pulled.root / ".metatree" / "memory.db"
    with pytest.raises(UserError, match="git has put"):
        Store.open(memory)
    if way == "variable":
        monkeypatch.setenv("METATREE_TRUST", str(pulled.root))
    with Store.open(memory, trust=way == "trust") as store:
        store.execute("INSERT INTO meta VALUES ('x', '1')")
    monkeypatch.delenv("METATREE_TRUST", raising=False)
    pulled.git("rm", "-q", "-r", "--cached", ".metatree")
    for _ in range(2):
        with pytest.raises(UntrustedStore, match="was put there by git"):
            Store.open(memory)
    accept(memory)
    Store.open(memory).close()


@pytest.mark.skipif(sys.platform == "win32", reason="the program is a script")
@pytest.mark.parametrize(
    "answer", ["exec sleep 60", "echo 'fatal: Out of memory, malloc failed' >&2; exit 128"]
)
def test_a_store_of_which_git_would_say_too_late_what_it_is_is_not_ones_own(
    pulled: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    """Who made the repository has put very many files into its index, which the `git pull` of its user has time for."""
    memory = pulled.root / ".metatree" / "memory.db"
    git = tmp_path / "git"
    git.write_text(f'#!/bin/sh\ncase "$*" in *--git-common-dir) echo .git;; *) {answer};; esac\n')
    git.chmod(0o755)
    monkeypatch.setattr(_git_index, "program", lambda name: str(git))
    monkeypatch.setattr(_git_index, "_GIT_S", 0.5)
    assert put_by_git(memory) and is_object(memory)
    with pytest.raises(UserError):
        Store.open(memory)


@pytest.mark.parametrize("kind", ["a file", "an empty folder", "a repository"])
def test_what_lies_beside_a_store_and_looks_like_a_repository_hides_none_above(
    tmp_path: Path, kind: str
) -> None:
    """An archive can bring it, and git cannot."""
    repository = Repository(tmp_path / "shop")
    docs = repository.root / "docs"
    docs.mkdir()
    repository.commit("kept", {"docs/memory.db": "a store"})
    if kind == "a file":
        (docs / ".git").write_text("x")
    elif kind == "a repository":
        subprocess.run(["git", "init", "-q", str(docs)], check=True)
    else:
        (docs / ".git").mkdir()
    assert is_object(docs / "memory.db") and put_by_git(docs / "memory.db")
    if kind == "a file":
        with pytest.raises(UserError, match="git cannot say"):
            tracked([docs / "memory.db"])
    else:
        assert tracked([docs / "memory.db"]) == docs / "memory.db"
