"""What git tracks belongs to a tree, though a rule ignores it: with real repositories of every version of the index."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from metatree_memory_tools import build_tree
from metatree_memory_tools.git.index import names_in
from metatree_memory_tools.git.place import is_repository

pytestmark = pytest.mark.integration


def git(folder: Path, *arguments: str) -> bytes:
    alone = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    who = {
        f"GIT_{role}_{what}": "x@example.org"
        for role in ("AUTHOR", "COMMITTER")
        for what in ("NAME", "EMAIL")
    }
    return subprocess.run(
        ["git", *arguments], cwd=folder, check=True, capture_output=True, env={**os.environ, **alone, **who}
    ).stdout


LONG = "l" * 200 + ".log"


def repository(folder: Path, *options: str) -> Path:
    folder.mkdir()
    git(folder, "init", "-q", *options)
    for path, text in {
        ".gitignore": "build/\n*.log\n/vendor/\n",
        "app.py": "x = 1\n",
        "build/kept.py": "def kept(): 'Kept.'\n",
        "build/made.py": "x = 1\n",
        "vendor/lib/a.py": "x = 1\n",
        "vendor/lib/b.py": "x = 1\n",
        "run.log": "words\n",
        "other.log": "words\n",
        "docs/día.md": "# Día\n\nWords.\n",
        LONG: "words\n",
    }.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    git(folder, "add", ".")
    # In version 4 what follows the long name says in two bytes how much of it goes.
    git(folder, "add", "-f", "build/kept.py", "vendor/lib/a.py", "run.log", LONG)
    git(folder, "commit", "-qm", "begin")
    return folder


WANTED = {".gitignore", "app.py", "build/kept.py", "vendor/lib/a.py", "run.log", "docs/día.md", LONG}


@pytest.mark.parametrize("options", [(), ("--object-format=sha256",)])
@pytest.mark.parametrize("version", ["2", "3", "4"])
def test_tracked_files_are_in_the_tree(tmp_path: Path, version: str, options: tuple[str, ...]) -> None:
    source = repository(tmp_path / "app", *options)
    if version == "3":  # git takes it when an entry needs it
        (source / "new.py").write_text("x = 1\n")
        git(source, "add", "-N", "new.py")
    git(source, "update-index", "--index-version", "2" if version == "3" else version)
    with build_tree(source) as tree:
        listed = git(source, "ls-files", "-z").split(b"\0")[:-1]
        data = (source / ".git" / "index").read_bytes()
        assert data[7] == int(version)
        assert sorted(names_in(data, 32 if options else 20)) == sorted(listed)
        files = {node.id for _, node in tree.walk() if node.kind == "file"}
        assert files == {name.decode() for name in listed}
        assert set(dict(tree.omissions())) == {
            "build/made.py",
            "vendor/lib/b.py",
            "other.log",
        }
        assert "build/kept.py::kept" in tree


def test_a_folder_of_a_repository_and_a_work_tree(tmp_path: Path) -> None:
    source = repository(tmp_path / "app")
    with build_tree(source / "vendor", out=tmp_path / "one") as tree:
        assert "lib/a.py" in tree
    with build_tree(source / "docs", out=tmp_path / "two") as tree:
        assert "día.md" in tree
    git(source, "worktree", "add", "-q", str(tmp_path / "second"))
    (tmp_path / "second" / "other.log").write_text("words\n")
    with build_tree(tmp_path / "second") as tree:
        files = {node.id for _, node in tree.walk() if node.kind == "file"}
        assert files == WANTED
        assert tree.omissions() == [("other.log", "ignored by .gitignore")]


def test_a_file_that_is_tracked_from_now_on_makes_the_tree_stale(tmp_path: Path) -> None:
    source = repository(tmp_path / "app")
    with build_tree(source) as tree:
        git(source, "add", "-f", "other.log")
        assert tree.stale()
        tree.refresh()
        assert "other.log" in tree
        git(source, "rm", "-q", "--cached", "other.log")
        tree.refresh()
        assert "other.log" not in tree


@pytest.mark.parametrize("damage", ["cut", "noise", "empty", "version"])
def test_a_damaged_index_is_none(tmp_path: Path, damage: str) -> None:
    source = repository(tmp_path / "app")
    index = source / ".git" / "index"
    data = index.read_bytes()
    broken = {
        "cut": data[:150],
        "noise": data[:8] + os.urandom(500),
        "empty": b"",
        "version": data[:7] + b"\x09" + data[8:],
    }
    index.write_bytes(broken[damage])
    with build_tree(source) as tree:
        assert "app.py" in tree and "vendor/lib/a.py" not in tree


_SHAPES: dict[str, str | dict[str, str]] = {
    "a repository": {"HEAD": "ref: refs/heads/main\n", "objects/": "", "refs/": ""},
    "a commit": {"HEAD": "a" * 40 + "\n", "objects/": "", "refs/": ""},
    "a head without a blank": {"HEAD": "ref:refs/heads/main", "objects/": "", "refs/": ""},
    "a head that is none": {"HEAD": "main\n", "objects/": "", "refs/": ""},
    "a head out of form": {"HEAD": "ref: heads/main\n", "objects/": "", "refs/": ""},
    "a mark before the head": {"HEAD": "\ufeffref: refs/heads/main\n", "objects/": "", "refs/": ""},
    "no head": {"objects/": "", "refs/": ""},
    "no objects": {"HEAD": "ref: refs/heads/main\n", "refs/": ""},
    "no references": {"HEAD": "ref: refs/heads/main\n", "objects/": ""},
    "shared": {"HEAD": "ref: refs/heads/main\n", "commondir": "../../.git\n"},
    "shared with nothing": {"HEAD": "ref: refs/heads/main\n", "commondir": "../none\n"},
    "empty": {},
    "a link for its head": {"HEAD->": "refs/heads/main", "objects/": "", "refs/": ""},
    "another link for its head": {"HEAD->": "../../.git/HEAD", "objects/": "", "refs/": ""},
    "a file that leads": "gitdir: ../.git\n",
    "a file that leads to nothing": "gitdir: ../none\n",
    "a file without a blank": "gitdir:../.git\n",
    "a file with a mark": "\ufeffgitdir: ../.git\n",
    "a file of something else": "x",
}


@pytest.mark.parametrize("shape", _SHAPES)
def test_a_repository_is_what_git_takes_for_one(tmp_path: Path, shape: str) -> None:
    git(tmp_path, "init", "-q")
    inner = tmp_path / "inner"
    inner.mkdir()
    held = _SHAPES[shape]
    if isinstance(held, str):
        (inner / ".git").write_text(held)
    else:
        (inner / ".git").mkdir()
        for name, text in held.items():
            if name.endswith("/"):
                (inner / ".git" / name).mkdir()
            elif name.endswith("->"):
                (inner / ".git" / name.removesuffix("->")).symlink_to(text)
            else:
                (inner / ".git" / name).write_text(text)
    asked = ["git", "rev-parse", "--show-toplevel"]
    done = subprocess.run(asked, cwd=inner, capture_output=True, text=True, check=False)
    assert is_repository(inner) == (done.stdout.strip() == str(inner)), done.stderr
