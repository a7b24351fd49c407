"""Members of zip archives that strangers made, unpacked no further than asked.

`zipfile` unpacks of bzip2 and LZMA all that it has read of the packed bytes at once, whatever `read(n)` asks for, and
of DEFLATE too where it is asked for all; so one kilobyte may become gigabytes. Neither we nor programs that make
exports pack by anything but DEFLATE.
"""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import IO, Final

_BOUNDED: Final = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})


_MOST_TIMES: Final = 300
_ALWAYS_ALLOWED: Final = 200_000_000


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
