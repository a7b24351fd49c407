"""Where the commands write: results on standard output, everything else on standard error."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping
from typing import Any, TextIO

_STYLES = {"bold": "1", "dim": "2", "green": "32", "yellow": "33", "red": "31", "cyan": "36"}


def prepare() -> None:
    """Let no character of a file name or a text break the output, whatever the terminal's encoding."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def coloured(stream: TextIO) -> bool:
    """Say whether to write colours: on a terminal that knows them, unless NO_COLOR is set."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return stream.isatty()


def styled(text: str, *styles: str) -> str:
    """Return the text in a style when standard output shows colours; unchanged otherwise."""
    if not text or not coloured(sys.stdout):
        return text
    return f"\x1b[{';'.join(_STYLES[style] for style in styles)}m{text}\x1b[0m"


def write(lines: Iterable[str]) -> None:
    """Write result lines to standard output; a reader that went away (`| head`) is no failure."""
    try:
        for line in lines:
            sys.stdout.write(line + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes standard output again when it exits; without a place to write to, that would complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def write_json(shape: Mapping[str, Any]) -> None:
    """Write one JSON object to standard output, in UTF-8 where the terminal has it."""
    utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    write([json.dumps(shape, indent=2, ensure_ascii=not utf8)])


def note(text: str) -> None:
    """Write a line to standard error."""
    try:
        print(text, file=sys.stderr, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def visible(text: str) -> str:
    """Return the text with control characters shown as escapes, so that a file cannot drive the terminal."""
    return "".join(c if c.isprintable() else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    return " " if character.isspace() else character.encode("unicode_escape").decode("ascii")
