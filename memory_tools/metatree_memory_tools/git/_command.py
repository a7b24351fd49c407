"""Running the git binary on somebody's repository, without running anything that the repository asks for.

Its settings name programs in ways that no option turns off: filters and merge drivers have any name, a submodule has
settings of its own, and a release of git brings more. So git sees them at one question alone, which runs no program:
where the repository keeps things (`rev-parse`). All others are asked of its objects, in a repository of our own that
has no settings, hooks, attributes or references.

Lost: overruling the settings one by one; what a repository replaces objects by (`git replace`) and names of commits in
its log of references (`main@{1}`); dulwich (a dependency, slower, and the user's git is there anyway).
"""

from __future__ import annotations

import os
import re
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from metatree._util.git_objects import borrow
from metatree._util.process import absolute_libraries, absolute_path, environment_for_git, program
from metatree.errors import MetatreeError, UserError
from metatree_memory_tools.git.place import Place, bare_place, check_objects, place_of

_VARIABLES = (
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_EXEC_PATH",
    "GIT_CEILING_DIRECTORIES",
)
_TIMEOUT_S = 60.0
_SETTINGS_S = 10.0
"""For what reads settings alone, which takes milliseconds where none of them is a pipe."""
_stuck: set[Path] = set()
"""Folders in which that took longer; this process does not wait for them again."""
_SILENCE_S = 120.0
_CHUNK = 1 << 16
_LONGEST_PIECE = 1_000_000
_MOST_BYTES = 64_000_000
_MOST_ERRORS = 1 << 16
_MOST_MEMORY = 1_500_000_000
"""Of git's own data; the packs that it maps do not count."""

_SETTINGS = (
    # People under other names than those of a commit come from a file of the work tree.
    "log.mailmap=false",
    # What a commit did to a submodule is the business of that repository.
    "diff.ignoreSubmodules=all",
    "diff.renameLimit=400",
    # Larger files are compared as binary ones are: comparing lines takes forty times their size of memory.
    "core.bigFileThreshold=10m",
    # Names of files as they are; those with a quote, a backslash or a control character are quoted nevertheless.
    "core.quotePath=false",
)
_HASH = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_BY_SYSTEM = re.compile(
    r"(?i)core\.(?:autocrlf|eol|filemode|ignorecase|precomposeunicode|symlinks|trustctime)=(?:true|false|input|lf|crlf|native)"
)
"""Settings by which a file in the work tree is what is committed: they differ by system and disk, and name nothing."""


class GitFailed(MetatreeError):
    """git said no; the message says what it said, and what to do."""


class GitLate(GitFailed):
    """git said nothing in time."""


def rev_parse(root: Path, *arguments: str, timeout_s: float = _TIMEOUT_S) -> str:
    """Return what `git rev-parse` says in a folder, with the settings of its repository, which it runs nothing of.

    Give it names of references, never of what they lead to: for an object that a partial clone lacks, git would start
    the programs by which it is fetched.

    Raises:
        GitFailed: there is no git binary, no repository, git reports an error, or its settings cannot be read in time.
    """
    if root in _stuck:
        raise GitLate("git took too long to read the settings of the repository: look for a pipe in .git")
    try:
        said = _output(_Call(root, _environment()), ("rev-parse", *arguments), min(timeout_s, _SETTINGS_S))
        return os.fsdecode(said).removesuffix("\n")
    except GitLate:
        _stuck.add(root)
        raise


@dataclass(frozen=True, slots=True)
class Repository:
    """The repository that a folder lies in."""

    place: Place
    prefix: str
    """The path of the folder in it, with `/` at its end unless it is empty."""
    form: str
    """By what its objects are named: `sha1` or `sha256`."""
    head: str
    """The hash of what is checked out; empty where nothing has been committed."""


def repository_of(root: Path, *, timeout_s: float = _TIMEOUT_S) -> Repository:
    """Return the repository that a folder lies in, if it is that folder's own, with its objects; see `place_of`.

    Raises:
        GitFailed: as `rev_parse`; for a repository elsewhere that does not lead back, too.
    """
    # Between paths, which may have line breaks in them: what git does not know it says again.
    mark = f"--{secrets.token_hex(16)}"
    asked = ("--absolute-git-dir", mark, "--git-common-dir", mark, "--show-object-format", mark)
    try:
        said = rev_parse(root, *asked, "HEAD", timeout_s=timeout_s)
    except GitLate:
        raise
    except GitFailed:  # also where nothing has been committed
        said = rev_parse(root, *asked, timeout_s=timeout_s) + "\n"
    own, shared, form, head = said.split(f"\n{mark}\n", 3)
    folder = Path(os.path.realpath(root))
    try:
        place = _place(folder, Path(os.path.realpath(own)))
        if place.shared != Path(os.path.realpath(folder / shared)):
            raise UserError(f"the repository of {str(root)!r} is another one for git")
        check_objects(place)
    except (UserError, OSError) as exc:
        raise GitFailed(str(exc)) from exc
    if form not in ("sha1", "sha256") or (head and not _HASH.fullmatch(head)):
        raise GitFailed(f"git says of {str(root)!r} what is no commit")
    parts = () if place.bare else folder.relative_to(place.top).parts
    return Repository(place, "".join(f"{part}/" for part in parts), form, head)


def _place(folder: Path, own: Path) -> Place:
    """Return the place of the repository that git has found for a folder."""
    for top in (folder, *folder.parents):
        if top == own:
            return bare_place(top)
        if os.path.lexists(top / ".git") and (place := place_of(top)).own == own:
            return place
    raise UserError(f"{str(folder)!r} lies in no repository of its own")


@dataclass(frozen=True, slots=True)
class Objects:
    """The objects of a repository, without anything else of it; see `objects_of`.

    Every method raises `GitFailed` as `rev_parse` does.
    """

    head: str
    """The hash of what is checked out."""
    prefix: str
    """The path of the folder in the repository, with `/` at its end unless it is empty: paths count from the top."""
    _call: _Call

    @property
    def top(self) -> Path:
        """The folder that paths count from, where the work tree is there."""
        return self._call.folder

    @property
    def relative(self) -> tuple[str, ...]:
        """The option by which paths in the output begin at the folder."""
        return (f"--relative={self.prefix}",) if self.prefix else ()

    @property
    def below(self) -> tuple[str, str]:
        """The arguments for what is in the folder alone."""
        return "--", self.prefix or "."

    def text(self, *arguments: str, timeout_s: float = _TIMEOUT_S) -> str:
        """Return what a command prints, without the end of the last line."""
        return _text(self.output(*arguments, timeout_s=timeout_s))

    def output(self, *arguments: str, timeout_s: float = _TIMEOUT_S) -> bytes:
        """Return what a command prints."""
        return _output(self._call, arguments, timeout_s)

    def stream(self, *arguments: str) -> AbstractContextManager[Iterator[bytes]]:
        """Run a command and yield its output in pieces that end at NUL characters, without these.

        Leaving the block early stops git. What it reports at its end is raised when the block ends.
        """
        return _stream(self._call, arguments)


@contextmanager
def objects_of(root: Path, *, work_tree: bool = False, timeout_s: float = _TIMEOUT_S) -> Iterator[Objects]:
    """Give the objects of the repository that a folder lies in, none of its settings, and no references but HEAD.

    Args:
        work_tree: whether its files and its index are there, too; filters are not, so a file whose contents one makes
            differs when its time or size does.

    Raises:
        GitFailed: as `rev_parse`; for a repository without commits, too.
    """
    from tempfile import TemporaryDirectory

    found = repository_of(root, timeout_s=timeout_s)
    if not found.head:
        raise GitFailed(f"nothing has been committed in the repository of {str(root)!r}")
    place, prefix = found.place, found.prefix
    with TemporaryDirectory(prefix="metatree-git-") as made:
        own, top = Path(made), Path(made)
        (own / "HEAD").write_text(found.head)
        (own / "refs").mkdir()
        borrow(own / "objects", place.shared / "objects")
        extension = f"[extensions]\n\tobjectformat = {found.form}\n"
        # Without a list of packs, which may name some of another repository.
        core = "[core]\n\trepositoryformatversion = 1\n\tmultiPackIndex = false\n"
        (own / "config").write_text(core + extension)
        variables = {
            # The user's settings may name filters, too, and what is printed should not depend on them.
            "HOME": made,
            "XDG_CONFIG_HOME": made,
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_ATTR_NOSYSTEM": "1",
        }
        if (shallow := place.shared / "shallow").is_file():
            variables["GIT_SHALLOW_FILE"] = str(shallow)
        settings: tuple[str, ...] = _SETTINGS
        if work_tree:
            # Not what `core.worktree` says, which may be a folder elsewhere.
            top = place.top
            variables["GIT_INDEX_FILE"] = str(place.own / "index")
            settings += _settings_by_system(root, timeout_s)
        variables |= {"GIT_DIR": made, "GIT_WORK_TREE": str(top)}
        yield Objects(found.head, prefix, _Call(top, _environment() | variables, settings))


def _settings_by_system(root: Path, timeout_s: float) -> tuple[str, ...]:
    try:
        data = _output(_Call(root, _environment()), ("config", "-z", "--get-regexp", r"^core\."), timeout_s)
    except GitFailed:  # there are none
        return ()
    found = (piece.replace("\n", "=", 1) for piece in data.decode("utf-8", "replace").split("\0"))
    return tuple(filter(_BY_SYSTEM.fullmatch, found))


@dataclass(frozen=True, slots=True)
class _Call:
    """Where git runs, and with what."""

    folder: Path
    environment: dict[str, str]
    settings: tuple[str, ...] = ()


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace").removesuffix("\n")


def _output(call: _Call, arguments: Sequence[str], timeout_s: float) -> bytes:
    with _temporary() as errors:
        process = _started(call, arguments, errors)
        timer = threading.Timer(timeout_s, process.kill)
        timer.start()
        try:
            assert process.stdout is not None
            data = process.stdout.read(_MOST_BYTES + 1)
            if len(data) > _MOST_BYTES:
                raise GitFailed(f"git {arguments[0]} says more than {_MOST_BYTES / 1e6:g} MB")
            failed = process.wait() != 0
            if failed and not timer.is_alive():
                raise GitLate(f"git {arguments[0]} took longer than {timeout_s:g} s")
        finally:
            timer.cancel()
            _end(process)
        if failed:
            errors.seek(0)
            raise GitFailed(_explained(call.folder, errors.read(_MOST_ERRORS)))
    return data


@contextmanager
def _stream(call: _Call, arguments: Sequence[str]) -> Iterator[Iterator[bytes]]:
    with _temporary() as errors:
        process = _started(call, arguments, errors)
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
                raise GitFailed(_explained(call.folder, errors.read(_MOST_ERRORS)))
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


def _started(call: _Call, arguments: Sequence[str], errors: IO[bytes]) -> subprocess.Popen[bytes]:
    """Start git, with a bound on its memory where the system has one: a few objects may name a billion files."""
    try:
        process = subprocess.Popen(
            _command(call.settings, arguments),
            cwd=call.folder,
            env=call.environment,
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


def _command(settings: Sequence[str], arguments: Sequence[str]) -> list[str]:
    options = [part for setting in settings for part in ("-c", setting)]
    return [program("git"), "--no-pager", "--literal-pathspecs", *options, *arguments]


def _environment() -> dict[str, str]:
    environment = environment_for_git()
    # A relative one would be below the folder that is read.
    environment |= {
        name: value
        for name in _VARIABLES
        if (value := os.environ.get(name)) and (name == "GIT_CONFIG_NOSYSTEM" or Path(value).is_absolute())
    }
    return environment | {
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "PATH": absolute_path(),
        **absolute_libraries(),
        # A partial clone would fetch what it lacks, by programs that its settings name.
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": "none",
        "LC_ALL": "C.UTF-8",
    }


def _not_run(exc: OSError) -> GitFailed:
    if isinstance(exc, FileNotFoundError):
        return GitFailed("there is no git binary: install git to read histories")
    return GitFailed(f"git cannot be run: {exc.strerror}")


def _said(line: str) -> str:
    """Return what a message of git says, without what it quotes."""
    return re.split(r""": | ?['"`]| value '""", line.removeprefix("fatal: "))[0]


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
    fatal = [_said(line) for line in text.splitlines() if line.startswith("fatal: ")]
    # Nor is a hash one of the repository itself where a reference leads elsewhere.
    fatal = [_HASH.sub("…", each) for each in fatal]
    if not fatal:
        return "git failed with a message that is not repeated" if text else "git failed and said nothing"
    return f"git: {'; '.join(fatal)[:300]}"
