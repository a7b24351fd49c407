"""Running the git binary on somebody's repository, without running anything that the repository asks for."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from metatree.errors import MetatreeError, UserError

_KEPT = (
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_EXEC_PATH",
    "GIT_CEILING_DIRECTORIES",
)
_TIMEOUT_S = 60.0
_CHUNK = 1 << 16

# What a repository's own settings could have run: a monitor of files, hooks, a pager, a program that checks
# signatures, one that makes diffs. Its submodules and remotes are left alone too.
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


def git_bytes(root: Path, *arguments: str, timeout_s: float = _TIMEOUT_S) -> bytes:
    """Return what a git command prints, as bytes; raises as `git_text`."""
    try:
        done = subprocess.run(
            _command(arguments),
            cwd=root,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired as exc:
        raise GitFailed(f"git {arguments[0]} took longer than {timeout_s:g} s") from exc
    except OSError as exc:
        raise _not_run(exc) from exc
    if done.returncode != 0:
        raise GitFailed(_explained(root, done.stderr))
    return done.stdout


@contextmanager
def git_stream(root: Path, *arguments: str) -> Iterator[Iterator[bytes]]:
    """Run a git command and yield its output in pieces that end at NUL characters, without these.

    Leaving the block early stops git.

    Raises:
        GitFailed: as `git_text`; for an error that git reports at its end, when the block ends.
    """
    try:
        process = subprocess.Popen(
            _command(arguments),
            cwd=root,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            # A file, since a pipe that nobody reads could fill up and hold git forever.
            stderr=(errors := _temporary()),
        )
    except OSError as exc:
        raise _not_run(exc) from exc
    assert process.stdout is not None
    ended = False
    try:

        def pieces() -> Iterator[bytes]:
            nonlocal ended
            assert process.stdout is not None
            yield from _split(process.stdout)
            ended = True

        yield pieces()
        if ended and process.wait(_TIMEOUT_S) != 0:
            errors.seek(0)
            raise GitFailed(_explained(root, errors.read()))
    finally:
        with suppress(OSError):
            process.kill()
        process.stdout.close()
        process.wait()
        errors.close()


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
    import tempfile

    return tempfile.TemporaryFile()


def _split(stream: IO[bytes]) -> Iterator[bytes]:
    rest: list[bytes] = []
    while chunk := stream.read(_CHUNK):
        first, *others = chunk.split(b"\0")
        rest.append(first)
        if others:
            yield b"".join(rest)
            yield from others[:-1]
            rest = [others[-1]]
    if left := b"".join(rest):
        yield left


def _command(arguments: Sequence[str]) -> list[str]:
    settings = [part for setting in _SETTINGS for part in ("-c", setting)]
    return ["git", "--no-pager", "--literal-pathspecs", *settings, *arguments]


def _environment() -> dict[str, str]:
    found = {
        name: value for name, value in os.environ.items() if not name.startswith("GIT_") or name in _KEPT
    }
    return found | {
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
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
    lines = [
        line.removeprefix("fatal: ").removeprefix("error: ") for line in text.splitlines() if line.strip()
    ]
    return f"git: {lines[0][:300]}" if lines else "git failed and said nothing"
