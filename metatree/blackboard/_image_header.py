"""What the first bytes of an image tell: its type, its size in pixels, and so what it costs in a prompt."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import Final

UNKNOWN_TOKENS: Final = 1_105
"""What an image of unknown size is taken to cost: the most that a square one can."""


@dataclass(frozen=True, slots=True)
class ImageHeader:
    """Type and size of an image."""

    type: str
    """As in `image/…`."""
    width: int | None
    height: int | None


def read_header(head: bytes) -> ImageHeader | None:
    """Return what the first bytes of an image tell, None when it is no PNG, JPEG, GIF or WebP."""
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return ImageHeader("png", *_size(">II", head, 16 if head[12:16] == b"IHDR" else len(head)))
    if head.startswith(b"\xff\xd8\xff"):
        return ImageHeader("jpeg", *_jpeg(head))
    if head[:6] in (b"GIF87a", b"GIF89a"):
        return ImageHeader("gif", *_size("<HH", head, 6))
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return ImageHeader("webp", *_webp(head))
    return None


def image_tokens(width: int | None, height: int | None) -> int:
    """Return what an image costs in a prompt, in tokens: 85, and 170 for each tile of 512 pixels.

    It is first made to fit 2,048 by 2,048 pixels, then to a shorter side of 768.

    Source: OpenAI, Images and vision, "Calculating costs" for models that count tiles; other providers charge about
    the same for a screenshot, or less.
    """
    if not width or not height:
        return UNKNOWN_TOKENS
    scale = min(1.0, 2048 / max(width, height))
    scale = min(scale, 768 / min(width, height)) if min(width, height) * scale > 768 else scale
    return 85 + 170 * math.ceil(width * scale / 512) * math.ceil(height * scale / 512)


def _size(form: str, head: bytes, at: int) -> tuple[int | None, int | None]:
    """Return the two numbers at a place, as `struct` reads them; None for both where the bytes end before."""
    try:
        first, second = struct.unpack_from(form, head, at)
    except struct.error:
        return None, None
    return first, second


def _jpeg(head: bytes) -> tuple[int | None, int | None]:
    """Walk the segments to the frame header."""
    at = 2
    while at + 9 <= len(head) and head[at] == 0xFF:
        marker = head[at + 1]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = _size(">HH", head, at + 5)
            return width, height
        if marker == 0xFF:
            at += 1
        elif marker == 0x01 or 0xD0 <= marker <= 0xD8:
            at += 2
        else:
            at += 2 + int.from_bytes(head[at + 2 : at + 4], "big")
    return None, None


def _webp(head: bytes) -> tuple[int | None, int | None]:
    chunk = head[12:16]
    if chunk == b"VP8X" and len(head) >= 30:
        return 1 + int.from_bytes(head[24:27], "little"), 1 + int.from_bytes(head[27:30], "little")
    if chunk == b"VP8 " and len(head) >= 30:
        width, height = struct.unpack_from("<HH", head, 26)
        return width & 0x3FFF, height & 0x3FFF
    if chunk == b"VP8L" and len(head) >= 25:
        bits = int.from_bytes(head[21:25], "little")
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    return None, None
