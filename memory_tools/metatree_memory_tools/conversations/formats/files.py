"""The files of an export, wherever it lies: one file, an archive, or a folder of both."""

from __future__ import annotations

import io
import os
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, BinaryIO, cast

from metatree._util.zips import TooManyMembers, open_archive, open_member
from metatree.errors import UserError
from metatree.trees.source_files import open_inside
from metatree_memory_tools.conversations.formats._captions import Captions
from metatree_memory_tools.conversations.formats._claude import Claude
from metatree_memory_tools.conversations.formats._discord import Discord
from metatree_memory_tools.conversations.formats._matrix import Matrix
from metatree_memory_tools.conversations.formats._slack import Slack
from metatree_memory_tools.conversations.formats._telegram import Telegram
from metatree_memory_tools.conversations.formats._whatsapp import WhatsApp
from metatree_memory_tools.conversations.formats.chatgpt import ChatGpt
from metatree_memory_tools.conversations.formats.mail import Letters
from metatree_memory_tools.conversations.formats.message import CutOff, ExportFile, Format

FORMATS: tuple[Format, ...] = (
    ChatGpt(),
    Claude(),
    Slack(),
    Discord(),
    Telegram(),
    Matrix(),
    Captions(),
    WhatsApp(),
    Letters(),
)
"""In the order in which they are asked."""

_MEDIA = frozenset(
    re.findall(
        r"\.\w+",
        """.jpg .jpeg .png .gif .webp .heic .bmp .svg .mp4 .mov .m4a .m4v .webm .mkv .3gp .mp3 .ogg .oga .opus .wav .aac
        .pdf .docx .xlsx .pptx .tgs .vcf .html .css .js .db .md .py""",
    )
)
_DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, RuntimeError)
_MOST_FILES = 1_000_000
_MOST_DEPTH = 12
_PATH = re.compile(r"[^\x00-\x1f]{1,1000}")
"""In an archive, where a name may have 65,535 characters; those of its chats come from it."""
_PLAIN_BYTES = 200_000_000
_MOST_RATIO = 250
"""Archives of texts are a thirtieth of them; one that unpacks to more than this, and is large, is a bomb."""


@dataclass
class Export:
    """The files of one export, and what could not be read of it."""

    files: Iterator[ExportFile]
    problems: dict[str, str] = field(default_factory=dict)
    """Reasons, by path."""


def format_of(file: ExportFile) -> Format | None:
    """Return the format of a file, None when no format knows it."""
    return next((each for each in FORMATS if each.recognises(file)), None)


@contextmanager
def opened(place: Path) -> Iterator[Export]:
    """Open an export: its files come one by one, those that are no export too.

    Raises:
        UserError: it cannot be read.
    """
    with ExitStack() as stack:
        export = Export(iter(()))
        try:
            if place.is_dir():
                export.files = _of_folder(place, export, stack)
            else:
                file = _on_disk(place.parent, place.name)
                packed = _archive(file, stack) if file.packed else None
                export.files = iter([file]) if packed is None else packed
        except OSError as exc:
            raise UserError(f"{str(place)!r} cannot be read: {exc.strerror or exc}") from exc
        yield export


def _on_disk(root: Path, path: str) -> ExportFile:
    def beside(other: str) -> ExportFile | None:
        return _on_disk(root, other) if (root / other).is_file() else None

    return ExportFile(path, lambda: os.fdopen(open_inside(root, path, links=False), "rb"), beside)


def _of_folder(root: Path, export: Export, stack: ExitStack) -> Iterator[ExportFile]:
    """Yield the files below a folder; each archive in it is opened. Links are not followed."""
    shared: dict[str, object] = {}
    for path in paths_below(root):
        file = _on_disk(root, path)
        file.shared = shared
        try:
            if file.packed:
                with ExitStack() as inner:
                    yield from _archive(file, inner)
                continue
        except (UserError, OSError) as exc:
            export.problems[path] = str(exc)
            continue
        yield file


def paths_below(root: Path) -> Iterator[str]:
    """Yield the paths of the files below a folder that may be of an export, in order."""
    count = 0

    def walk(folder: Path, depth: int) -> Iterator[str]:
        nonlocal count
        with os.scandir(folder) as entries:
            listed = sorted(entries, key=lambda entry: entry.name)
        for entry in listed:
            if entry.name.startswith(".") and not _is_mail_folder(entry):
                continue
            if entry.is_dir(follow_symlinks=False):
                if depth < _MOST_DEPTH:
                    yield from walk(Path(entry.path), depth + 1)
            elif entry.is_file(follow_symlinks=False) and _may_be_text(entry.name):
                count += 1
                if count > _MOST_FILES:
                    raise UserError(f"{str(root)!r} has more than {_MOST_FILES:,} files: name a part of it")
                yield Path(entry.path).relative_to(root).as_posix()

    yield from walk(root, 0)


def _is_mail_folder(entry: os.DirEntry[str]) -> bool:
    """Whether it is a folder inside a maildir, whose names begin with a dot."""
    return entry.is_dir(follow_symlinks=False) and (Path(entry.path) / "cur").is_dir()


def _may_be_text(name: str) -> bool:
    return Path(name.lower()).suffix not in _MEDIA


def _archive(file: ExportFile, stack: ExitStack) -> Iterator[ExportFile]:
    stream = stack.enter_context(file.open())
    try:
        packed = stack.enter_context(open_archive(stream))
    except TooManyMembers:
        raise UserError(
            f"{file.name!r} lists more files than are read: unpack it, and name a folder of it"
        ) from None
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as exc:
        raise UserError(
            f"{file.name!r} is no zip archive, or is cut off ({exc}): take the export again"
        ) from exc
    return _members(packed, file)


def _members(packed: zipfile.ZipFile, archive: ExportFile) -> Iterator[ExportFile]:
    known = {
        member.filename: member
        for member in packed.infolist()
        if not member.is_dir() and _PATH.fullmatch(member.filename)
    }
    shared: dict[str, object] = {"archive": archive.name}

    def unpacked(name: str) -> BinaryIO:
        return cast(BinaryIO, _Unpacked(packed, known[name]))

    def member_file(name: str) -> ExportFile:
        return ExportFile(name, lambda: unpacked(name), beside, shared, archive.path)

    def beside(path: str) -> ExportFile | None:
        return member_file(path) if path in known else None

    for name in sorted(known):
        if _may_be_text(name) and not name.rpartition("/")[2].startswith("."):
            yield member_file(name)


class _Unpacked(io.RawIOBase):
    """A file of an archive while it is unpacked, up to what a text can unpack to.

    What is damaged ends there, as a file that is cut off.
    """

    def __init__(self, packed: zipfile.ZipFile, member: zipfile.ZipInfo) -> None:
        self._most = max(_PLAIN_BYTES, member.compress_size * _MOST_RATIO)
        self._given = 0
        self._stream: IO[bytes] | None = None  # when the file cannot be opened
        try:
            self._stream = open_member(packed, member)
        except _DAMAGED as exc:
            raise CutOff(f"it cannot be unpacked: {exc}") from exc

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1) -> bytes:
        assert self._stream is not None
        return self._counted(self._stream.read, size)

    def readline(self, size: int | None = -1) -> bytes:
        assert self._stream is not None
        return self._counted(self._stream.readline, size)

    def _counted(self, read: Callable[[int], bytes], size: int | None) -> bytes:
        try:
            left = self._most - self._given + 1
            data = read(left if size is None or size < 0 else min(size, left))
        except _DAMAGED as exc:
            raise CutOff(f"it is damaged: {exc}") from exc
        self._given += len(data)
        if self._given > self._most:
            raise CutOff(f"it unpacks to more than {self._most / 1e6:,.0f} MB, as a zip bomb does")
        return data

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()
        super().close()
