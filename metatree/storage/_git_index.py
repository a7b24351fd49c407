"""Whether git tracks a file of a store, or has it in its objects, so that others may have exchanged it."""

from __future__ import annotations

import contextlib
import hashlib
import mmap
import os
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Final, TypeVar

from metatree._util.git_objects import borrow
from metatree._util.process import absolute_libraries, absolute_path, environment_for_git, program
from metatree.errors import UserError

_GIT_S: Final = 10.0
_GIT_MEMORY: Final = 1_000_000_000
_LONGEST_NAME: Final = 4096
_MOST_FOLDERS: Final = 10_000
_MOST_ERRORS: Final = 1 << 16
# What the settings of a repository could have run, fetched, or said of where it is.
_GIT: Final = (
    "--no-optional-locks",
    *("-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}", "-c", "protocol.allow=never"),
    *("-c", "core.multiPackIndex=false", "-c", "safe.bareRepository=explicit", "-c", "safe.directory=*"),
)
_GIT_ENVIRONMENT: Final = {
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_OPTIONAL_LOCKS": "0",
    "LC_ALL": "C",
}
_ALL: Final = ("ls-files", "-z", "--", ":(top)")
"""Not only the name that is looked for, since a disk may have several for one file, such as `memory.db-WAL`."""
_ENTRY: Final = re.compile(
    rb"\d{6} [0-9a-f]{40,64} (\d)\t([^\0]{0,4096})\0  ctime: \d{1,20}:\d{1,20}\n  mtime: (\d{1,20}):(\d{1,20})\n"
)
"""Stage, name and time of one entry of the index, as git lists it."""
_LONGEST_ENTRY: Final = _LONGEST_NAME + 500
_LARGE_INDEX: Final = 100_000_000
"""Bytes; git itself, whose memory is bounded, is asked about a larger one."""
_LARGEST_OBJECT: Final = 2_000_000_000
"""Bytes of a file that is compared with objects: a second each gigabyte. Nobody commits a larger one."""
T = TypeVar("T")


class _TooMuch(UserError):
    """git would take too long, or too much memory, to list what it has; its user has both when it puts files there."""


def tracked(files: list[Path]) -> Path | None:
    """Return one of these files of a folder that git has in its index; asked where there are logs.

    git can put them there: a `-wal` with texts of others, or a `-shm` in the place of one that is in use, so that two
    programs do not know of each other and what one of them writes is lost.

    Raises:
        UserError: git cannot say; a `.metatree` may also be made to look like a repository.
    """
    here = files[0].absolute().parent
    found = (_listed_by(folder, files) for folder in (here, *work_trees(files[0])[1:]))
    return next((first for first in found if first is not None), None)


def _listed_by(folder: Path, files: list[Path]) -> Path | None:
    asked = [folder / ".git"]
    with _borrowed(asked) as objects:
        if objects is None:
            return None
        return _said_by_git(asked, objects, _ALL, lambda stream: _first_match(files, folder, _names(stream)))


def put_by_git(file: Path) -> bool:
    """Whether a file is as git has put it there, or in a conflict that git wrote; False where it cannot read its index.

    True where it takes too long: who made the repository may have seen to that.

    What one committed oneself comes back by `git pull` to the same place, as others have changed it, with one's mark in
    it. By its time, as git itself tells what was changed since: what git keeps may be in another encoding.
    """
    # Asked at each root: the folder of the file may be made to look like another repository.
    return any(_is_put_by(root, file) for root in work_trees(file) if _may_list(root, file))


def _is_put_by(root: Path, file: Path) -> bool:
    asked, listed = [root / ".git"], ("ls-files", "-z", "--stage", "--debug", "--", ":(top)")
    try:
        with _borrowed(asked) as objects:
            if objects is None:
                return False
            return bool(
                _said_by_git(asked, objects, listed, lambda stream: _is_as_listed(file, root, stream))
            )
    except _TooMuch:
        return True
    except UserError:  # who cannot read the index puts nothing in the place of a file
        return False


def is_object(file: Path) -> bool:
    """Whether a repository around a file has its very bytes among its objects, or it would take too long to say.

    So it has those of a file that it has put there and does not list any more, of any commit.
    """
    roots = work_trees(file)
    try:
        if not roots or file.stat().st_size > _LARGEST_OBJECT:
            return False
        names = _names_of_object(file)
    except OSError:
        return False
    return any(_has_object(root, names) for root in roots)


def _has_object(root: Path, names: Iterable[str]) -> bool:
    try:
        with _borrowed([root / ".git"]) as objects:
            if objects is None:
                return False
            for name in names:
                asked = ("rev-parse", "--verify", "--quiet", f"{name}^{{blob}}")
                try:
                    if _said_by_git([root / ".git"], objects, asked, lambda stream: stream.read(100)):
                        return True
                except _TooMuch:
                    return True
                except UserError:  # it says nothing of one that is not there
                    continue
    except _TooMuch:
        return True
    except (UserError, OSError):
        pass
    return False


def _names_of_object(file: Path) -> list[str]:
    """Return what git would call a file with these bytes, in repositories of either kind."""
    digests = [hashlib.sha1(usedforsecurity=False), hashlib.sha256()]
    with file.open("rb") as stream:
        head = b"blob %d\0" % os.fstat(stream.fileno()).st_size
        for piece in (head, *iter(lambda: stream.read(1 << 20), b"")):
            for digest in digests:
                digest.update(piece)
    return [digest.hexdigest() for digest in digests]


def _is_as_listed(file: Path, root: Path, stream: IO[bytes]) -> bool:
    seconds, rest = divmod(file.stat().st_mtime_ns, 1_000_000_000)
    left = b""
    while chunk := stream.read(1 << 16):
        left, end = left + chunk, 0
        for entry in _ENTRY.finditer(left):
            end = entry.end()
            stage, name, of_entry, rest_of_entry = entry.groups()
            if _is_same(root / os.fsdecode(name), file):
                return stage != b"0" or (int(of_entry) == seconds and int(rest_of_entry) in (rest, 0))
        left = left[end:][-_LONGEST_ENTRY:]  # not what is longer than a path can be
    return False


def work_trees(file: Path) -> list[Path]:
    """Return the folders around a file with a `.git`, the nearest first.

    All of them: the one that has put a file there may lie above another one, or above what is no repository.
    """
    folder = Path(os.path.realpath(file.parent))
    return [each for each in (folder, *folder.parents) if (each / ".git").exists()]


def _may_list(above: Path, file: Path) -> bool:
    """Whether the name of a file may be in the index of a work tree, said without git, which takes 40 ms.

    Only what names are written out in is looked through: no index that shares their beginnings or its entries.
    """
    place = above / ".git"
    try:
        if place.is_file():  # of a work tree beside, or of a module
            with place.open("rb") as stream:
                said = stream.read(_LONGEST_NAME).partition(b"gitdir: ")[2]
            place = above / os.fsdecode(said.rstrip(b"\n"))
        if any(place.glob("sharedindex.*")):
            return True
        index = place / "index"
        if not index.is_file():  # a pipe would be waited for
            return False
        with (
            index.open("rb") as stream,
            mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as whole,
        ):
            written_out = whole[:8] in (b"DIRC\0\0\0\2", b"DIRC\0\0\0\3")
            if len(whole) > _LARGE_INDEX:
                return True
            # A disk may tell no case apart, and an index may name a folder in the place of its files.
            said = whole[:].lower()
            return not written_out or any(each in said for each in (os.fsencode(file.name).lower(), b"sdir"))
    except FileNotFoundError:
        return False
    except (OSError, ValueError):
        return True


@contextlib.contextmanager
def _borrowed(files: list[Path]) -> Iterator[str | None]:
    """Give a folder that git writes its objects to, with those of the repository of some files; None without one."""
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="metatree-git-") as objects:
        # They are read where an index is sparse: it names a folder in the place of its files.
        asked = ("rev-parse", "--git-common-dir")
        try:
            shared = _said_by_git(files, objects, asked, lambda stream: stream.read(_LONGEST_NAME))
        except _TooMuch as exc:  # a pipe as its settings, say: no git has put anything there
            raise UserError(str(exc)) from exc
        if shared is None:
            yield None
            return
        place = files[0].absolute().parent / os.fsdecode(shared.removesuffix(b"\n"))
        borrow(Path(objects), place / "objects")
        yield objects


def _said_by_git(
    files: list[Path], objects: str, arguments: Sequence[str], read: Callable[[IO[bytes]], T | None]
) -> T | None:
    """Return what a function makes of what git says in the folder of some files, None where there is no git.

    Args:
        objects: where git writes what it makes: it does where an index is sparse, through links in the folder's own.

    Raises:
        UserError: git cannot say.
    """
    import subprocess  # 10 ms that hardly any process needs
    from tempfile import TemporaryFile

    with TemporaryFile() as errors:
        try:
            process = subprocess.Popen(
                [program("git"), *_GIT, *arguments],
                cwd=files[0].parent,
                env=environment_for_git()
                | {**_GIT_ENVIRONMENT, "PATH": absolute_path(), **absolute_libraries()}
                | {"GIT_OBJECT_DIRECTORY": objects},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
            )
        except OSError:
            return None  # without git nothing was put there by it
        if sys.platform == "linux":
            import resource

            with contextlib.suppress(OSError, ValueError):  # it may be over already
                resource.prlimit(process.pid, resource.RLIMIT_DATA, (_GIT_MEMORY, _GIT_MEMORY))
        timer = threading.Timer(_GIT_S, process.kill)
        timer.start()
        try:
            with process:
                assert process.stdout is not None
                if found := read(process.stdout):
                    process.kill()
                    return found
            late = not timer.is_alive()
        finally:
            timer.cancel()
        if process.returncode == 0:
            return None
        errors.seek(0)
        lines = errors.read(_MOST_ERRORS).decode("utf-8", "replace").splitlines()
    # What follows may be a line or a value of a file of the machine that a link in `.git` leads to.
    fatal = [
        re.split(r""": | ?['"`]| value '""", line[7:])[0] for line in lines if line.startswith("fatal: ")
    ]
    message = f"it took longer than {_GIT_S:g} s" if late else "; ".join(fatal)[:300]
    if message.startswith("not a git repository"):
        return None
    # git says that there is not enough memory in words of its own.
    too_much = late or process.returncode < 0 or any("memory" in line or "mmap" in line for line in lines)
    raise (_TooMuch if too_much else UserError)(
        f"git cannot say whether it tracks {str(files[0])!r} ({message}): mend the repository,"
        " or delete that file and what was not yet written from it is lost"
    )


def _names(stream: IO[bytes]) -> Iterator[bytes]:
    """Yield what NUL ends in a stream; not what is longer than a path can be, which an index can be made to hold."""
    rest = b""
    too_long = False
    while chunk := stream.read1(1 << 16):  # type: ignore[attr-defined]  # of a buffered reader, as a pipe is
        *names, rest = (rest + chunk).split(b"\0")
        for name in names:
            if not too_long and len(name) <= _LONGEST_NAME:
                yield name
            too_long = False
        if len(rest) > _LONGEST_NAME:
            rest, too_long = b"", True


def _first_match(files: list[Path], at: Path, names: Iterable[bytes]) -> Path | None:
    """Return the first of the files of a folder that one of the names leads to.

    Args:
        at: the folder that the names begin at.
    """
    folder = files[0].absolute().parent
    same: dict[bytes, bool] = {}
    for name in names:
        above = name.rpartition(b"/")[0]
        if above not in same:
            if len(same) >= _MOST_FOLDERS:
                same.clear()
            same[above] = _is_same(at / os.fsdecode(above), folder)
        if not same[above]:
            continue
        if first := next((file for file in files if _is_same(at / os.fsdecode(name), file)), None):
            return first
    return None


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False
