"""Names of files as text."""

from __future__ import annotations

import os
from pathlib import Path


def path_text(raw: bytes) -> str:
    """Return a path as text; bytes that are not UTF-8 become `\\xe9`."""
    text = raw.decode("utf-8", "backslashreplace")
    return text.replace(os.sep, "/") if os.sep != "/" else text


def name_text(path: Path) -> str:
    """Return the name of a file or folder as text, the whole path where it has none."""
    return path_text(os.fsencode(path.name or str(path)))
