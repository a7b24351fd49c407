"""Running the git binary on somebody's repository, without running anything that the repository asks for.

Its settings are overruled one by one and its environment is made anew; `log` reads no contents but for renames,
`blame` looks at what is committed and compares lines itself, since git would run the repository's filters on the file.
Lost: dulwich (a dependency, slower, and the user's git is there anyway).
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from metatree._util.process import absolute_path, program
from metatree.errors import MetatreeError, UserError

_VARIABLES = (
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_EXEC_PATH",
    "GIT_CEILING_DIRECTORIES",
)
_TIMEOUT_S = 60.0
_SILENCE_S = 120.0
_CHUNK = 1 << 16
_LONGEST_PIECE = 1_000_000
_MOST_BYTES = 64_000_000
_MOST_ERRORS = 1 << 16
_MOST_MEMORY = 1_500_000_000
"""Of git's own data; the packs that it maps do not count."""

# What a repository's own settings could have run: a monitor of files, hooks, a pager, a program that checks
# signatures, one that makes diffs. Its submodules and remotes are left alone too. And what they could have read from
# anywhere on the machine, to be said in place of names, or in an error: commits to pass over, people, attributes.
_SETTINGS = (
    "core.fsmonitor=",
    f"core.hooksPath={os.devnull}",
    "core.pager=cat",
    "core.askPass=",
    "credential.helper=",
    "gpg.program=false",
    "log.showSignature=false",
    "log.mailmap=false",
    "diff.external=",
    "diff.ignoreSubmodules=all",
    "diff.submodule=short",
    f"diff.orderFile={os.devnull}",
    f"mailmap.file={os.devnull}",
    "mailmap.blob=",
    f"core.attributesFile={os.devnull}",
    f"core.excludesFile={os.devnull}",
    "submodule.recurse=false",
    "maintenance.auto=false",
    "gc.auto=0",
    "protocol.allow=never",
    "diff.renameLimit=400",
)


class GitFailed(MetatreeError):
    """git said no; the message says what it said, and what to do."""


def git_text(root: Path, *arguments: str, timeout_s: float = _TIMEOUT_S) -> str:
    """Return what a git command prints, in a folder, without the end of the last line.

    Raises:
        GitFailed: there is no git binary, no repository, or git reports an error.
    """
    return git_bytes(root, *arguments, timeout_s=timeout_s).decode("utf-8", "replace").removesuffix("\n")


def git_bytes(
    root: Path, *arguments: str, timeout_s: float = _TIMEOUT_S, variables: Mapping[str, str] | None = None
) -> bytes:
    """Return what a git command prints, as bytes; with more variables in its environment; raises as `git_text`."""
    with _temporary() as errors:
        process = _started(root, arguments, errors, variables)
        timer = threading.Timer(timeout_s, process.kill)
        timer.start()
        try:
            assert process.stdout is not None
            data = process.stdout.read(_MOST_BYTES + 1)
            if len(data) > _MOST_BYTES:
                raise GitFailed(f"git {arguments[0]} says more than {_MOST_BYTES / 1e6:g} MB")
            failed = process.wait() != 0
            if failed and not timer.is_alive():
                raise GitFailed(f"git {arguments[0]} took longer than {timeout_s:g} s")
        finally:
            timer.cancel()
            _end(process)
        if failed:
            errors.seek(0)
            raise GitFailed(_explained(root, errors.read(_MOST_ERRORS)))
    return data


@contextmanager
def without_settings(root: Path) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Give what a git command needs to see the objects of a repository, and none of its settings.

    For what no option turns off, such as the file that `blame.ignoreRevsFile` names.

    Returns:
        The hash of what is checked out, the path of the folder in the repository with `/` at its end unless it is
        empty, and variables of the environment, with which paths count from the top of the repository.
    """
    from tempfile import TemporaryDirectory

    query = (
        "--show-prefix",
        "--show-object-format",
        "--git-path",
        "objects",
        "--git-path",
        "shallow",
        "HEAD",
    )
    prefix, form, objects, shallow, head = git_text(root, "rev-parse", *query).split("\n")
    with TemporaryDirectory(prefix="metatree-git-") as made:
        place = Path(made)
        (place / "HEAD").write_text(head)
        for folder in ("objects", "refs"):
            (place / folder).mkdir()
        extension = f"[extensions]\n\tobjectformat = {form}\n"
        (place / "config").write_text(f"[core]\n\trepositoryformatversion = 1\n{extension}")
        variables = {"GIT_DIR": made, "GIT_WORK_TREE": made, "GIT_OBJECT_DIRECTORY": str(root / objects)}
        if (root / shallow).is_file():
            variables["GIT_SHALLOW_FILE"] = str(root / shallow)
        yield head, prefix, variables


@contextmanager
def git_stream(root: Path, *arguments: str) -> Iterator[Iterator[bytes]]:
    """Run a git command and yield its output in pieces that end at NUL characters, without these.

    Leaving the block early stops git.

    Raises:
        GitFailed: as `git_text`; for an error that git reports at its end, when the block ends.
    """
    with _temporary() as errors:
        process = _started(root, arguments, errors)
        assert process.stdout is not None
        reading = _Watched(process.stdout, process.kill)
        ended = False
        try:

            def pieces() -> Iterator[bytes]:
                nonlocal ended
                yield from _split(reading)
                ended = True

            yield pieces()
            if reading.late:
                raise GitFailed(f"git {arguments[0]} said nothing for {_SILENCE_S:g} s")
            if ended and process.wait(_TIMEOUT_S) != 0:
                errors.seek(0)
                raise GitFailed(_explained(root, errors.read(_MOST_ERRORS)))
        finally:
            reading.close()
            _end(process)


class _Watched:
    """What a process says, until it says nothing for too long: then it is ended."""

    def __init__(self, stream: IO[bytes], stop: Callable[[], None]) -> None:
        self._stream = stream
        self._stop = stop
        self._since: float | None = None
        self._closed = threading.Event()
        self.late = False
        threading.Thread(target=self._watch, daemon=True).start()

    def read(self, size: int) -> bytes:
        self._since = time.monotonic()
        try:
            return self._stream.read(size)
        finally:
            self._since = None

    def close(self) -> None:
        self._closed.set()

    def _watch(self) -> None:
        while not self._closed.wait(1.0):
            since = self._since
            if since is not None and time.monotonic() - since > _SILENCE_S:
                self.late = True
                self._stop()
                return


def _started(
    root: Path, arguments: Sequence[str], errors: IO[bytes], variables: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Start git, with a bound on its memory where the system has one: a few objects may name a billion files."""
    try:
        process = subprocess.Popen(
            _command(arguments),
            cwd=root,
            env={**_environment(), **(variables or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            # A file, since a pipe that nobody reads could fill up and hold git forever.
            stderr=errors,
        )
    except OSError as exc:
        raise _not_run(exc) from exc
    if sys.platform == "linux":
        import resource

        with suppress(OSError, ValueError):  # it may be over already
            resource.prlimit(process.pid, resource.RLIMIT_DATA, (_MOST_MEMORY, _MOST_MEMORY))
    return process


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(OSError):
        process.kill()
    if process.stdout is not None:
        process.stdout.close()
    process.wait()


def repository_prefix(root: Path) -> str:
    """Return the path of a folder inside of the repository that it lies in, with `/` at its end unless it is empty.

    Raises:
        GitFailed: it lies in no repository, or git refuses it.
    """
    if git_text(root, "rev-parse", "--is-bare-repository") == "true":
        raise GitFailed(f"{str(root)!r} is a bare repository, without files: clone it and build the clone")
    return git_text(root, "rev-parse", "--show-prefix")


def checked_revision(text: str) -> str:
    """Return a name of a commit that git cannot take for an option, a range or a path.

    Raises:
        UserError: it is none.
    """
    name = text.strip()
    if (
        not name
        or name.startswith("-")
        or len(name) > 200
        or not all(c.isalnum() or c in "._/~^@{}-+" for c in name)
    ):
        raise UserError(f"{text!r} is no commit: give its hash, a tag or a branch")
    if ".." in name:
        raise UserError(f"{text!r} is a range: give one commit")
    return name


def _temporary() -> IO[bytes]:
    from tempfile import TemporaryFile

    return TemporaryFile()


def _split(stream: _Watched) -> Iterator[bytes]:
    """Yield what NUL ends, each piece up to a bound: a message of a gigabyte packs into a megabyte."""
    rest: list[bytes] = []
    size = 0
    while chunk := stream.read(_CHUNK):
        first, *others = chunk.split(b"\0")
        if size < _LONGEST_PIECE:
            rest.append(first)
            size += len(first)
        if others:
            yield b"".join(rest)
            yield from others[:-1]
            rest, size = [others[-1]], len(others[-1])
    if left := b"".join(rest):
        yield left


def _command(arguments: Sequence[str]) -> list[str]:
    settings = [part for setting in _SETTINGS for part in ("-c", setting)]
    return [program("git"), "--no-pager", "--literal-pathspecs", *settings, *arguments]


def _environment() -> dict[str, str]:
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("GIT_") or name in _VARIABLES
    }
    return environment | {
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "PATH": absolute_path(),
        # A partial clone would fetch what it lacks, by programs that its settings name.
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_PAGER": "cat",
        "LC_ALL": "C.UTF-8",
    }


def _not_run(exc: OSError) -> GitFailed:
    if isinstance(exc, FileNotFoundError):
        return GitFailed("there is no git binary: install git to read histories")
    return GitFailed(f"git cannot be run: {exc.strerror}")


def _explained(root: Path, errors: bytes) -> str:
    text = errors.decode("utf-8", "replace").strip()
    if "dubious ownership" in text:
        return (
            f"git refuses the repository of {str(root)!r}, which belongs to another user: allow it with"
            " `git config --global --add safe.directory PATH`"
        )
    if "not a git repository" in text:
        return f"{str(root)!r} lies in no git repository"
    # What follows may be a line or a value of a file of the machine that a link in `.git` leads to.
    fatal = [re.split(": | value '", line)[1] for line in text.splitlines() if line.startswith("fatal: ")]
    if not fatal:
        return "git failed with a message that is not repeated" if text else "git failed and said nothing"
    return f"git: {'; '.join(fatal)[:300]}"
