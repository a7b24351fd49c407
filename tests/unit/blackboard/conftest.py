"""Images made on the spot."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest


def png(width: int, height: int, *, shade: int = 0, padding: int = 0) -> bytes:
    """Return a grey PNG image, made longer by bytes that no decoder shows."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = (b"\x00" + bytes([shade]) * width) * height
    extra = chunk(b"pADd", bytes(padding)) if padding else b""
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + extra + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


@pytest.fixture
def make_png() -> Callable[..., bytes]:
    return png


@pytest.fixture
def shot(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes an image and returns its path."""

    def write(
        name: str = "shot.png", width: int = 64, height: int = 64, shade: int = 0, padding: int = 0
    ) -> Path:
        path = tmp_path / name
        path.write_bytes(png(width, height, shade=shade, padding=padding))
        return path

    return write
