"""Members of zip archives that strangers made, unpacked no further than asked.

`zipfile` unpacks of bzip2 and LZMA all that it has read of the packed bytes at once, whatever `read(n)` asks for, and
of DEFLATE too where it is asked for all; so one kilobyte may become gigabytes. Neither we nor programs that make
exports pack by anything but DEFLATE.
"""

from __future__ import annotations

import io
import struct
import zipfile
from pathlib import Path
from typing import IO, BinaryIO, Final

_BOUNDED: Final = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})


_MOST_TIMES: Final = 300
_ALWAYS_ALLOWED: Final = 200_000_000


_MOST_LIST_BYTES: Final = 24_000_000
"""Of the list of members, some 250,000 of them, for which `zipfile` takes ten times as much."""
_END: Final = b"PK\x05\x06"
_LOCATOR: Final = b"PK\x06\x07"
_LONGEST_END: Final = 65_557 + 20 + 56


class TooManyMembers(zipfile.BadZipFile):
    """The list of the members of an archive alone would fill the memory."""


def open_archive(file: str | Path | BinaryIO) -> zipfile.ZipFile:
    """Open an archive for reading, as `zipfile.ZipFile` does.

    Raises:
        TooManyMembers: it has a list of more than 24 MB.
        zipfile.BadZipFile: it is no archive, or damaged.
    """
    if isinstance(file, str | Path):
        with Path(file).open("rb") as stream:
            _check_list(stream)
    else:
        _check_list(file)
        file.seek(0)
    return zipfile.ZipFile(file)


def _check_list(stream: BinaryIO) -> None:
    size = stream.seek(0, io.SEEK_END)
    stream.seek(max(0, size - _LONGEST_END))
    tail = stream.read()
    at = tail.rfind(_END)
    if at < 0 or len(tail) < at + 16:
        return
    (listed,) = struct.unpack_from("<I", tail, at + 12)
    if tail[max(0, at - 20) : at].startswith(_LOCATOR):  # of a large archive, whose end before it counts
        (listed,) = struct.unpack_from("<Q", tail, at - 36) if at >= 76 else (size,)
    if min(listed, size) > _MOST_LIST_BYTES:
        raise TooManyMembers("it lists more files than are read")


def oversize(archive: zipfile.ZipFile, path: str) -> str:
    """Say of an archive that is made to fill a disk (200 MB and 300 times its own size) so; empty of any other."""
    size = Path(path).stat().st_size
    unpacked = sum(info.file_size for info in archive.infolist())
    if unpacked > _ALWAYS_ALLOWED and unpacked > _MOST_TIMES * size:
        return f"{path!r} unpacks to {unpacked:,} bytes from {size:,}: nothing real does; not read"
    return ""


def open_member(archive: zipfile.ZipFile, member: str | zipfile.ZipInfo) -> IO[bytes]:
    """Open a member so that `read(n)` unpacks about `n` bytes; ask for no more than fits into memory.

    Raises:
        KeyError: there is no such member.
        zipfile.BadZipFile: it is damaged, or packed in a way that cannot be unpacked in parts.
    """
    info = archive.getinfo(member) if isinstance(member, str) else member
    if info.compress_type not in _BOUNDED:
        raise zipfile.BadZipFile(f"{info.filename!r} is packed by another method than DEFLATE")
    try:
        return archive.open(info)
    except (RuntimeError, NotImplementedError) as exc:  # it asks for a password
        raise zipfile.BadZipFile(str(exc)) from exc


def read_member(archive: zipfile.ZipFile, name: str, most: int) -> bytes:
    """Read a member of at most so many bytes.

    Raises:
        KeyError: there is no such member.
        zipfile.BadZipFile: it is larger, damaged, or packed in a way that cannot be unpacked in parts.
    """
    with open_member(archive, name) as stream:
        data = stream.read(most + 1)
    if len(data) > most:
        raise zipfile.BadZipFile(f"{name!r} unpacks to more than {most:,} bytes")
    return data
