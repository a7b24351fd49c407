"""Images of boards: kept once by their content, as files beside the store; the store holds what is known of them."""

from __future__ import annotations

import base64
import binascii
import json
import os
import re
import shutil
import tempfile
import time
import weakref
from collections.abc import Collection
from dataclasses import dataclass
from hashlib import blake2b
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from metatree._util.named_file import typed_path
from metatree._util.private import private_folder
from metatree.blackboard._image_header import ImageHeader, read_header
from metatree.errors import BadItem, UserError
from metatree.trees.source_files import digest_bytes, read_inside

if TYPE_CHECKING:
    from metatree.settings import Settings
    from metatree.storage.database import Database

_CHUNK: Final = 256 * 1024
_HEAD: Final = 64 * 1024
_DATA_URL: Final = re.compile(r"data:image/([a-z0-9.+-]{1,20});base64,")
_NAME: Final = re.compile(r"[0-9a-f]{1,64}(?:\.[a-z0-9+-]{1,20}){1,3}")
"""A digest and a type, of a thumbnail with a word between them."""
_ORPHAN_S: Final = 3600.0
_ADDED_BETWEEN_CHECKPOINTS: Final = 2


@dataclass(frozen=True, slots=True)
class Image:
    """What is known of an image."""

    name: str
    """Hash of its content, and its type: `1f…9c.png`."""
    size_bytes: int
    width: int | None
    """In pixels; None when its header does not say."""
    height: int | None
    thumbnail: str | None = None
    """Name of its thumbnail's file; None when there is none."""
    thumbnail_width: int | None = None
    thumbnail_height: int | None = None


class Images:
    """The images of a store.

    A file in `folder` is complete when it is there: it is written under another name first. A row is written after
    its file, and an item after both, so a killed process leaves at most a file that nobody asks for.
    """

    def __init__(self, store: Database, settings: Settings) -> None:
        self._store = store
        self._settings = settings
        self._temporary: str | None = None
        self._added = 0

    @property
    def folder(self) -> Path:
        """The folder that they lie in; a temporary one for a store in memory.

        Raises:
            StoreReplaced, UserError: as `Store.images_folder`.
        """
        if (folder := self._store.images_folder) is not None:
            return folder
        if self._temporary is None:
            self._temporary = tempfile.mkdtemp(prefix="metatree-images-")
            weakref.finalize(self, shutil.rmtree, self._temporary, ignore_errors=True)
        return Path(self._temporary)

    def close(self) -> None:
        """Remove the temporary folder of a store in memory."""
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)
            self._temporary = None

    def add_file(self, path: str | Path) -> str:
        """Keep the image in a file and return its name; a known image is not written again.

        Raises:
            BadItem: there is no such file, it is no image of a type that models take, or it is too large.
            MissingExtra: similar images are to be merged, and the package for it is not installed.
        """
        file = typed_path(path)
        try:
            size = file.stat().st_size
            if not file.is_file():
                raise BadItem(f"{str(path)!r} is no file: give the path of an image")
            with file.open("rb") as stream:
                head = stream.read(_HEAD)
                header = self._checked(head, size, repr(str(path)))
                digest = blake2b(head, digest_size=16)
                while chunk := stream.read(_CHUNK):
                    digest.update(chunk)
            known = self._name_of_known(f"{digest.hexdigest()}.{header.type}")
            if known is not None:
                return known
            with file.open("rb") as stream:
                return self._keep(stream, header)
        except FileNotFoundError as exc:
            raise BadItem(f"there is no image {str(path)!r}: check the path") from exc
        except OSError as exc:
            raise BadItem(f"cannot read the image {str(path)!r}: {exc.strerror or exc}") from exc

    def add_bytes(self, content: bytes) -> str:
        """Keep an image given as bytes and return its name; raises as `add_file` does."""
        header = self._checked(content[:_HEAD], len(content), "these bytes")
        return self._keep_bytes(content, header)

    def add_data_url(self, url: str) -> str | None:
        """Keep what a `data:` URL holds and return its name; None if it would not come back exactly."""
        match = _DATA_URL.match(url)
        if match is None:
            return None
        try:
            content = base64.b64decode(url[match.end() :], validate=True)
        except (ValueError, binascii.Error):
            return None
        if not content or base64.b64encode(content).decode() != url[match.end() :]:
            return None
        header = read_header(content[:_HEAD])
        kind = match[1]
        return self._keep_bytes(
            content, ImageHeader(kind, header.width if header else None, header.height if header else None)
        )

    def data_url(self, name: str) -> str:
        """Return an image as a `data:` URL; '' when its file is gone, or is none of this folder, or another image."""
        size = self._store.value("SELECT max(size) FROM image WHERE name = ? OR thumbnail = ?", (name, name))
        most = max(size or 0, self._settings.image_max_bytes)
        try:
            content, _ = read_inside(self.folder.resolve(), name, limit=most + 1)
        except (OSError, UserError):
            return ""
        if len(content) > most:  # it grew after it was kept
            return ""
        digest, _, end = name.partition(".")
        if not end.startswith("thumbnail") and digest_bytes(content) != digest:
            return ""
        return f"data:image/{name.rpartition('.')[2]};base64,{base64.b64encode(content).decode()}"

    def known(self, names: Collection[str]) -> dict[str, Image]:
        """Return what is known of images, by their names."""
        rows = self._store.rows(
            "SELECT name, size, width, height, thumbnail, thumbnail_width, thumbnail_height FROM image"
            f" WHERE name IN (SELECT value FROM {self._store.json_each('?')})",
            (json.dumps(list(names)),),
        )
        return {row[0]: Image(*row) for row in rows}

    def path(self, name: str) -> Path | None:
        """Return where an image lies; None for a name that is none of this folder, or is a link in it."""
        file = self.folder / name
        return file if _NAME.fullmatch(name) and not file.is_symlink() else None

    def sweep(self) -> int:
        """Delete images that no item of any board shows; return how many bytes that gave back.

        Files younger than an hour stay: their items may be about to be written.
        """
        freed = 0
        with self._store.transaction():
            used = {row[0] for row in self._store.rows("SELECT DISTINCT image FROM item WHERE image <> ''")}
            known = {row[0]: row[1] for row in self._store.rows("SELECT name, thumbnail FROM image")}
            keep = used | {known[name] for name in used if known.get(name)}
            for name in known.keys() - used:
                file = self.folder / name
                if not file.exists() or _age_s(file) > _ORPHAN_S:
                    self._store.execute("DELETE FROM image WHERE name = ?", (name,))
        for file in self.folder.iterdir() if self.folder.exists() else ():
            if file.name not in keep and _age_s(file) > _ORPHAN_S:
                freed += file.stat().st_size
                file.unlink(missing_ok=True)
        return freed

    def _checked(self, head: bytes, size: int, what: str) -> ImageHeader:
        if size > self._settings.image_max_bytes:
            raise BadItem(
                f"the image {what} has {size:,} bytes, more than the {self._settings.image_max_bytes:,} of "
                "`image_max_bytes`: make it smaller, or raise the setting"
            )
        header = read_header(head)
        if header is None:
            raise BadItem(f"{what} is no image of a type that models take: give PNG, JPEG, GIF or WebP")
        return header

    def _name_of_known(self, name: str) -> str | None:
        """Return the name when this image is kept; its file counts as new, so that `sweep` leaves it for an hour."""
        if not self._store.row("SELECT 1 FROM image WHERE name = ?", (name,)):
            return None
        file = self.folder / name
        if file.is_symlink():
            return None
        try:
            os.utime(file)
        except OSError:
            return None
        return name

    def _keep_bytes(self, content: bytes, header: ImageHeader) -> str:
        known = self._name_of_known(f"{blake2b(content, digest_size=16).hexdigest()}.{header.type}")
        if known is not None:
            return known
        return self._keep(BytesIO(content), header)

    def _keep(self, stream: BinaryIO, header: ImageHeader) -> str:
        """Write an image piece by piece, then its row; return its name, or that of one that looks alike."""
        folder = self.folder
        private_folder(folder)
        digest = blake2b(digest_size=16)
        size = 0
        number, temporary = tempfile.mkstemp(prefix=".", suffix=".part", dir=folder)
        try:
            with os.fdopen(number, "wb") as out:
                while piece := stream.read(_CHUNK):
                    digest.update(piece)
                    size += len(piece)
                    out.write(piece)
            name = f"{digest.hexdigest()}.{header.type}"
            hash64, alike = self._similar_image(Path(temporary))
            if alike is not None:
                return alike
            Path(temporary).replace(folder / name)
        finally:
            Path(temporary).unlink(missing_ok=True)
        thumbnail = self._thumbnail(folder / name)
        self._store.execute(
            "INSERT INTO image(name, size, width, height, look, thumbnail, thumbnail_width,"
            " thumbnail_height) VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT(name) DO UPDATE SET size = excluded.size,"
            " width = excluded.width, height = excluded.height, look = excluded.look, thumbnail = excluded.thumbnail,"
            " thumbnail_width = excluded.thumbnail_width, thumbnail_height = excluded.thumbnail_height",
            (name, size, header.width, header.height, hash64, *thumbnail),
        )
        return name

    def _similar_image(self, file: Path) -> tuple[str | None, str | None]:
        """Return the perceptual hash of an image when it is asked for, and the name of a kept one that looks alike."""
        most = self._settings.similar_images
        if most <= 0:
            return None, None
        from metatree.blackboard._thumbnails import perceptual_hash

        mine = perceptual_hash(file)
        for name, other in self._store.rows("SELECT name, look FROM image WHERE look IS NOT NULL"):
            if (mine ^ int(other, 16)).bit_count() <= most and (self.folder / name).exists():
                return None, name
        return f"{mine:016x}", None

    def _thumbnail(self, file: Path) -> tuple[str | None, int | None, int | None]:
        if self._settings.thumbnail_px <= 0:
            return None, None, None
        from metatree.blackboard._thumbnails import make_thumbnail

        return make_thumbnail(file, self._settings.thumbnail_px) or (None, None, None)

    def settle(self) -> None:
        """Move what was written from the log into the store, now and then.

        Each small commit puts whole pages into the write-ahead log; between images, which may come by the hundred
        without other writes, that would be most of what they cost on the disk.
        """
        self._added += 1
        if self._store.path is not None and self._added % _ADDED_BETWEEN_CHECKPOINTS == 1:
            self._store.rows("PRAGMA wal_checkpoint(PASSIVE)")


def _age_s(file: Path) -> float:
    try:
        return time.time() - file.stat().st_mtime
    except OSError:
        return 0.0
