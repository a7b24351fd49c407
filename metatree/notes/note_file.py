"""A memory as a file in a folder of notes, as a person would have written it; the tree follows the folder.

A file that is there is never written to: what somebody edits meanwhile cannot be lost. The same text in the same folder
is one note, and a name that is taken gets a number.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from metatree._util.normal_form import nfc
from metatree._util.open_folder import OpenFolder, opened
from metatree._util.secret_text import masked, secrets_in
from metatree.errors import UserError
from metatree.trees.source_files import read_inside
from metatree.trees.text import encodable

_MOST_NAME_CHARS: Final = 60
_MOST_TRIES: Final = 1_000
_PLAIN: Final = re.compile(r"[^\W\d_][\w .,()/@+-]*", re.ASCII)
_TITLE_CHARS: Final = 80


@dataclass(frozen=True, slots=True)
class NoteFile:
    """A note that was kept."""

    path: Path
    known: bool
    """Whether a note of this name said the same already; then nothing was written."""
    warnings: tuple[str, ...] = ()


def keep_note(
    folder: Path,
    text: str,
    title: str | None = None,
    *,
    who: str,
    why: str | None = None,
    links: bool = True,
    now: Callable[[], float] = time.time,
) -> NoteFile:
    """Write a note into a folder: front matter with who, when and why, a heading, the text.

    Args:
        folder: an existing folder.
        title: the heading, of which the name of the file is made; the first words of the text when None.
        who: who says it.
        why: where it comes from, or what it is for.
        links: whether the path of the folder may have links in it. Who has looked where it leads follows none.

    Raises:
        UserError: there is no text or no such folder, or it cannot be written.
    """
    text = encodable(text).strip()
    if not text:
        raise UserError("there is nothing to remember: give a text")
    folder = folder.resolve() if links else folder.absolute()
    if not folder.is_dir():
        raise UserError(f"{str(folder)!r} is no folder: make it first, or name another one")
    # Names of files stand in every list, and a part of a key is not known as one: it is masked before it is cut.
    heading = " ".join((masked(title)[0] if title else _first_words(masked(text)[0])).split())
    when = datetime.fromtimestamp(now(), UTC).isoformat(timespec="seconds")
    front = {"who": who, "when": when, **({"why": why} if why else {})}
    rows = [f"{name}: {_scalar(value)}" for name, value in front.items()]
    body = text if text == heading or text.startswith("#") else f"# {heading}\n\n{text}"
    whole = "\n".join(["---", *rows, "---", "", body, ""])
    kinds = secrets_in(whole)
    warnings = (
        (f"it looks like it holds {' and '.join(kinds)}: whoever reads the folder can read it",)
        if kinds
        else ()
    )
    try:
        with opened(folder) as place:
            return _written(place, _slug(heading), whole, body, warnings)
    except OSError as exc:
        raise UserError(f"cannot write in {str(folder)!r}: {exc.strerror}") from exc


def _written(place: OpenFolder, slug: str, whole: str, body: str, warnings: tuple[str, ...]) -> NoteFile:
    part = f".note-{secrets.token_hex(8)}.tmp"
    try:
        with place.create(part) as out:
            out.write(whole.encode())
            out.flush()
            os.fsync(out.fileno())
        for number in range(1, _MOST_TRIES):
            name = f"{slug}.md" if number == 1 else f"{slug}-{number}.md"
            if _give_name(place, part, name, whole):
                return NoteFile(place.path / name, known=False, warnings=warnings)
            if _says(place.path, name, body):
                return NoteFile(place.path / name, known=True, warnings=warnings)
    finally:
        with suppress(OSError):
            os.unlink(place.name(part), dir_fd=place.descriptor)
    raise UserError(f"{str(place.path)!r} has {_MOST_TRIES:,} notes called {slug!r}: give another title")


def _give_name(place: OpenFolder, part: str, name: str, whole: str) -> bool:
    """Give what was written whole its name; False when the name is taken, also by somebody who was faster."""
    at = place.descriptor
    try:
        os.link(place.name(part), place.name(name), src_dir_fd=at, dst_dir_fd=at)
    except FileExistsError:
        return False
    except OSError:  # a file system without hard links
        try:
            with place.create(name) as out:
                out.write(whole.encode())
        except FileExistsError:
            return False
    return True


def _says(folder: Path, name: str, body: str) -> bool:
    """Whether a note says the same, whoever said it when."""
    try:
        data, _ = read_inside(folder, name, links=False)  # a pipe would be waited for
    except (OSError, UserError):
        return False
    text = data.decode("utf-8", "replace")
    return re.sub(r"\A---\n.*?\n---\n", "", text, count=1, flags=re.DOTALL).split() == body.split()


def _first_words(text: str) -> str:
    first = text.lstrip("#-* \t").split("\n", 1)[0]
    end = re.search(r"[.!?](?:\s|$)", first)
    first = first[: end.start()] if end else first
    return (
        first
        if len(first) <= _TITLE_CHARS
        else first[:_TITLE_CHARS].rpartition(" ")[0] or first[:_TITLE_CHARS]
    )


def _slug(heading: str) -> str:
    """Return the name of a file: letters and digits of any script, joined by `-`; never a hidden one or a path."""
    words = re.findall(r"\w+", nfc(heading).casefold())
    return "-".join(words)[:_MOST_NAME_CHARS].strip("-_") or "note"


def _scalar(value: str) -> str:
    """Return a text as YAML reads it: plain where that is safe, else in quotes, on one line."""
    line = " ".join(value.split())
    return (
        line
        if _PLAIN.fullmatch(line) and line.casefold() not in _WORDS
        else json.dumps(line, ensure_ascii=False)
    )


_WORDS: Final = frozenset({"true", "false", "yes", "no", "on", "off", "null"})
