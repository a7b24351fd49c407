"""The files of a repository at one commit after the other, from a bare git directory."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path


def is_test(path: str) -> bool:
    """Say whether a path is a test: in a folder test, tests or testing, or a file test.py, test_*.py, conftest.py …

    Example:
        >>> is_test("tests/api.py"), is_test("src/test_api.py"), is_test("src/latest.py")
        (True, True, False)
    """
    *folders, name = path.split("/")
    return (
        any(folder in ("test", "tests", "testing") for folder in folders)
        or name in ("conftest.py", "test.py", "tests.py")
        or name.startswith("test_")
        or name.endswith("_test.py")
    )


def is_python_source(path: str) -> bool:
    """Say whether a path is that of a Python file that is no test."""
    return path.endswith(".py") and not is_test(path)


class Checkout:
    """A work tree that moves from commit to commit; only what differs is written.

    Its `.git` leads to a small git directory beside it that borrows all objects of the mirror, so that git reads a
    history up to the commit that is checked out there, and nothing is written to the mirror.
    """

    def __init__(self, mirror: Path, work: Path) -> None:
        self.folder = work / "files"
        self._git_folder = work / "git"
        self.folder.mkdir(parents=True, exist_ok=True)
        for below in ("objects/info", "refs"):
            (self._git_folder / below).mkdir(parents=True, exist_ok=True)
        (self._git_folder / "objects/info/alternates").write_text(f"{(mirror / 'objects').resolve()}\n")
        (self._git_folder / "config").write_text("[core]\nrepositoryformatversion = 0\nsymlinks = false\n")
        (self.folder / ".git").write_text(f"gitdir: {self._git_folder.resolve()}\n")

    def git(self, *arguments: str, check: bool = True) -> str:
        """Run git and return what it printed.

        Raises:
            subprocess.CalledProcessError: it failed, and `check` is set.
        """
        done = subprocess.run(
            ["git", *arguments], cwd=self.folder, capture_output=True, check=check, env={**os.environ}
        )
        return os.fsdecode(done.stdout)

    def move_to(self, commit: str, is_candidate: Callable[[str], bool]) -> dict[str, str]:
        """Write the files of a commit; return the blob id of each file whose path is a candidate's."""
        (self._git_folder / "HEAD").write_text(f"{commit}\n")
        before = self.git("ls-files", "-z").split("\0")
        self.git("read-tree", "--reset", commit)
        for name in set(before) - set(self.git("ls-files", "-z").split("\0")):
            with suppress(OSError):
                (self.folder / name).unlink()
        # Goes on past what a mirror lacks, such as large data files; `read-tree -u` would not.
        self.git("checkout-index", "--all", "--force", "--index", "--quiet", check=False)
        blobs = {}
        for entry in self.git("ls-tree", "-r", "-z", commit).split("\0"):
            if entry:
                (mode, kind, blob), path = entry.partition("\t")[0].split(), entry.partition("\t")[2]
                if kind == "blob" and mode != "120000" and is_candidate(path):
                    blobs[path] = blob
        return blobs

    def dates(self, commits: Iterable[str]) -> dict[str, int]:
        """Return the time of each commit."""
        wanted = list(dict.fromkeys(commits))
        (self._git_folder / "HEAD").write_text(f"{wanted[0]}\n")
        listed = self.git("show", "-s", "--format=%H %ct", *wanted)
        return {line.split()[0]: int(line.split()[1]) for line in listed.splitlines() if line}

    def text(self, path: str) -> str:
        """Return the text of a file."""
        return (self.folder / path).read_bytes().decode("utf-8", "replace")
