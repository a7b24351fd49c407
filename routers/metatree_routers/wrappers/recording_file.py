"""Files of JSON lines that hold what was asked and answered: written by what records, read by what replays."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from metatree._util.named_file import read_named, typed_path
from metatree.errors import UserError


class RecordingFile:
    """Appends lines to a file, from any thread."""

    def __init__(self, path: str | Path) -> None:
        self.path = typed_path(path)
        self._lock = threading.Lock()

    def append(self, *lines: dict[str, Any]) -> None:
        """Write lines, one after the other; the folder is made where there is none."""
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        with self._lock:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(text)


class RecordedLines:
    """The lines of such a file by what was asked; what is asked again gets the next one, at last the last again.

    Args:
        path: the file.
        key_of_line: is given each line, in order, and returns the key of what was asked.

    Raises:
        UserError: there is no such file, or it is no recording.
    """

    def __init__(self, path: str | Path, key_of_line: Callable[[Any], str]) -> None:
        self.path = typed_path(path)
        self._lock = threading.Lock()
        self._lines: dict[str, list[Any]] = {}
        try:
            for line in map(json.loads, filter(None, read_named(self.path).decode().split("\n"))):
                self._lines.setdefault(key_of_line(line), []).append(line)
        except OSError as exc:
            raise UserError(f"the recording {str(path)!r} cannot be read: {exc}") from exc
        except (ValueError, KeyError, TypeError) as exc:
            raise UserError(f"{str(path)!r} is not a recording: {exc}") from exc

    def next(self, key: str) -> Any:
        """Return the next line of what is asked; None when there is none."""
        with self._lock:
            lines = self._lines.get(key)
            if not lines:
                return None
            return lines.pop(0) if len(lines) > 1 else lines[0]
