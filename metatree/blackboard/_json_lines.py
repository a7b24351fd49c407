"""Files with one JSON value in each line, such as questions with their answers."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

from metatree._util.named_file import read_named, typed_path
from metatree._util.secret_text import shapes_masked
from metatree.errors import UserError

_log = logging.getLogger("metatree")


def read_lines(path: str | Path, last_k: int = -1) -> list[Any]:
    """Return the values in a file; blank lines are skipped, lines that are no JSON too, with a warning in the log.

    Args:
        path: the file; one that is not there has no values.
        last_k: how many lines to read, from the end; -1 is all, 0 is none.

    Raises:
        UserError: the file cannot be read, or is not UTF-8.
    """
    file = typed_path(path)
    if not str(path) or not file.exists():
        return []
    try:
        lines = [line for line in read_named(file).decode("utf-8-sig").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as exc:
        raise UserError(f"cannot read {str(path)!r}: {exc}") from exc
    values = []
    for line in lines if last_k < 0 else lines[len(lines) - min(last_k, len(lines)) :]:
        try:
            values.append(json.loads(line))
        except ValueError:
            said = shapes_masked(line[:10_000])
            _log.warning("a line of %s is no JSON and is left out: %.100s", path, said)
    return values
