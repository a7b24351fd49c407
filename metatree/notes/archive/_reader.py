"""Read an archive with care: it may be cut off, changed, of another program, or made to do harm."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from metatree._util.named_file import typed_path
from metatree._util.zips import open_archive, open_member, oversize, read_member
from metatree.errors import BrokenStore, UserError
from metatree.notes.archive.format import (
    FORMAT,
    IMAGES,
    LONGEST_MANIFEST,
    MANIFEST,
    MAX_LINE,
    MEMBERS,
    VERSION,
    mark_of,
    row_of,
)

_LARGEST_IMAGE: Final = 100_000_000
_IMAGE_NAME: Final = re.compile(r"[0-9a-f]{32}[\w.-]{0,40}\.[a-z0-9]{1,10}")


class Archive:
    """An archive that was opened and whose manifest is right."""

    def __init__(self, archive: zipfile.ZipFile, path: str) -> None:
        self._archive = archive
        self.path = path
        if wrong := oversize(archive, path):
            raise UserError(wrong)
        self.manifest: dict[str, Any] = self._manifest()
        self.own = hmac.compare_digest(ascii(self.manifest.get("mark")), ascii(mark_of(self.manifest)))
        """Whether this user exported it, on a machine with the same key. Then a member that was changed is damage."""

    def _manifest(self) -> dict[str, Any]:
        try:
            manifest = json.loads(read_member(self._archive, MANIFEST, LONGEST_MANIFEST))
        except (
            KeyError,
            ValueError,
            RecursionError,
            zipfile.BadZipFile,
            zlib.error,
            EOFError,
            NotImplementedError,
        ) as exc:
            raise self._not_an_archive() from exc
        if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
            raise self._not_an_archive()
        version = manifest.get("version")
        if not isinstance(version, int) or version > VERSION:
            raise BrokenStore(
                f"{self.path!r} was written in version {version} of the format, this metatree knows {VERSION}:"
                " upgrade it",
                path=self.path,
                reason="newer",
            )
        return manifest

    def _not_an_archive(self) -> BrokenStore:
        return BrokenStore(
            f"{self.path!r} is no export of metatree: make one with `metatree export FILE`",
            path=self.path,
            reason="foreign",
        )

    def rows(self, name: str) -> Iterator[dict[str, Any]]:
        """Yield the rows of one member, with `UserError` for one that cannot be read."""
        assert name in MEMBERS
        number, digest = 0, hashlib.sha256()
        try:
            with open_member(self._archive, f"{name}.jsonl") as lines:
                while line := lines.readline(MAX_LINE + 1):
                    number += 1
                    digest.update(line)
                    try:
                        row = row_of(line)
                    except UserError as exc:
                        raise self.damaged(name, number, str(exc)) from exc
                    yield row
        except KeyError:
            pass  # an archive of a version that did not have it
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError) as exc:
            raise self.damaged(name, number + 1, str(exc)) from exc
        counts = self.manifest.get("counts", {})
        if not isinstance(counts, dict) or number != counts.get(name, 0):
            raise self.damaged(name, number, "there are not as many lines as the manifest says")
        if self.own and self.manifest["digests"].get(name) != digest.hexdigest():
            raise self.damaged(name, number, "somebody changed it after you exported it")

    def damaged(self, name: str, number: int, why: str) -> BrokenStore:
        """Return the error for a line that cannot be used."""
        return BrokenStore(
            f"{self.path!r} is damaged ({name}.jsonl, line {number}: {why}); nothing was imported: get another copy",
            path=self.path,
        )

    def image(self, name: object) -> bytes | None:
        """Return an image, None when the archive does not have it or its name is not one that we give."""
        if not isinstance(name, str) or not _IMAGE_NAME.fullmatch(name):
            return None
        try:
            return read_member(self._archive, IMAGES + name, _LARGEST_IMAGE)
        except KeyError:
            return None
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError) as exc:
            raise self.damaged("images", 0, f"{name}: {exc}") from exc


@contextmanager
def opened(path: str | Path) -> Iterator[Archive]:
    """Open an archive for reading.

    Raises:
        UserError: there is no such file.
        BrokenStore: it is cut off, damaged, of another program, or of a newer version.
    """
    file = typed_path(path)
    if not file.is_file():
        raise UserError(f"there is no file {str(file)!r}: name one that `metatree export` wrote")
    try:
        archive = open_archive(file)
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as exc:
        with file.open("rb") as head:
            ours = head.read(4) == b"PK\x03\x04"
        what = "is cut off or damaged" if ours else "is no export of metatree"
        raise BrokenStore(
            f"{str(file)!r} {what} ({exc}): {'get another copy' if ours else 'make one with `metatree export FILE`'}",
            path=str(file),
            reason="damaged" if ours else "foreign",
        ) from exc
    with archive:
        yield Archive(archive, str(file))
