"""What needs the pixels of an image: thumbnails and perceptual hashes, with Pillow (`metatree-memory[images]`)."""

from __future__ import annotations

import logging
import os
import secrets
from importlib import import_module
from pathlib import Path
from typing import Any

from metatree.errors import BadItem, MissingExtra

_log = logging.getLogger("metatree")

_FORMATS = ("PNG", "JPEG", "GIF", "WEBP")
"""What may be decoded, as in `read_header`: for others, such as PostScript, Pillow starts a program."""


_MOST_PIXELS = 40_000_000
"""An image with more is not decoded, with up to eight bytes each: a PNG of 700 kB may have 180 million."""


def _check_pixels(image: Any) -> None:
    if image.width * image.height > _MOST_PIXELS:
        raise ValueError(f"it has more than {_MOST_PIXELS / 1e6:g} million pixels")


def _pillow() -> Any:
    try:
        return import_module("PIL.Image")
    except ImportError:
        return None


def make_thumbnail(file: Path, longer_side_px: int) -> tuple[str, int, int] | None:
    """Write a smaller copy of an image beside it; return its name, width and height.

    None when Pillow is not installed, when the image is small already, and when it cannot be decoded: prompts then
    show the image itself.
    """
    pillow = _pillow()
    if pillow is None:
        return None
    thumbnail = file.with_name(f"{file.name.partition('.')[0]}.thumbnail.webp")
    part = file.with_name(f".{secrets.token_hex(8)}.part")  # never through a link that lies at its place
    try:
        with pillow.open(file, formats=_FORMATS) as image:
            if max(image.size) <= longer_side_px:
                return None
            image.draft("RGB", (longer_side_px, longer_side_px))  # a JPEG is decoded smaller
            _check_pixels(image)
            image.thumbnail((longer_side_px, longer_side_px))
            small = image if image.mode in ("RGB", "RGBA") else image.convert("RGB")
            with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
                small.save(out, "WEBP", quality=80)
            width, height = small.size
        part.replace(thumbnail)
    except Exception as exc:  # a decoder may raise anything on a broken file
        _log.info("no thumbnail of %s: %s", file.name, exc)
        part.unlink(missing_ok=True)
        return None
    return thumbnail.name, width, height


def perceptual_hash(file: Path) -> int:
    """Return 64 bits that differ little between images that look alike.

    Source: Neal Krawetz 2013, "Kind of Like That" (dHash): brightness of neighbours in a row, at 9 by 8 pixels.

    Raises:
        MissingExtra: Pillow is not installed.
        BadItem: the image cannot be decoded.
    """
    pillow = _pillow()
    if pillow is None:
        raise MissingExtra("images", what="merging images that look alike (`similar_images`)")
    try:
        with pillow.open(file, formats=_FORMATS) as image:
            _check_pixels(image)
            pixels = image.convert("L").resize((9, 8)).tobytes()
    except Exception as exc:
        raise BadItem(f"the image cannot be decoded: {exc}") from exc
    bits = 0
    for row in range(8):
        for column in range(8):
            bits = bits << 1 | (pixels[row * 9 + column] < pixels[row * 9 + column + 1])
    return bits
