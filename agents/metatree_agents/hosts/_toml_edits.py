"""Edits of TOML files that people keep: all but the entry stays."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import InlineTable

from metatree._util import toml_text

_MOST_CHARS = 500_000
"""Of tables alone, which take `tomlkit` three seconds; people have a hundredth of that."""
_LF = re.compile(r"(?<!\r)\n")
_BLANK_LINE = re.compile(r"(\A|\n)\r?\n\Z")


def parsed(text: str, *, alike: bool = False) -> Any:
    """Return what a file says; TOML is read alike by all programs.

    Raises:
        ValueError: it is no TOML.
    """
    return _document(text).unwrap()


def with_entry(text: str, keys: Sequence[str], entry: Mapping[str, Any]) -> str:
    """Return the text with an entry at a place, whose tables are made where they are missing.

    Raises:
        ValueError: it is no TOML, or something other than a table is in the way.
    """
    document = _document(text)
    place: MutableMapping[str, Any] = document
    for key in keys[:-1]:
        if key not in place:
            return _with_table(text, keys, entry)
        place = place[key]
        if not isinstance(place, MutableMapping):
            raise ValueError(f"{key!r} is no table")
    there = place.get(keys[-1])
    if isinstance(there, MutableMapping):
        there.update({name: value for name, value in entry.items() if there.get(name) != value})
    elif isinstance(place, InlineTable):
        place[keys[-1]] = tomlkit.inline_table()
        place[keys[-1]].update(entry)
    else:
        return _with_table(text, keys, entry)
    return _in_newlines_of(text, tomlkit.dumps(document))


def without_entry(text: str, keys: Sequence[str]) -> str:
    """Return the text without the entry at a place; unchanged where there is none.

    Comments below its last line stay. The blank line that was put before it goes with it.

    Raises:
        ValueError: it is no TOML.
    """
    document = _document(text)
    place: Any = document
    for key in keys[:-1]:
        place = place.get(key)
        if not isinstance(place, MutableMapping):
            return text
    if keys[-1] not in place:
        return text
    del place[keys[-1]]
    rest = tomlkit.dumps(document)
    start = next((at for at, (old, new) in enumerate(zip(text, rest, strict=False)) if old != new), len(rest))
    end = start + len(text) - len(rest)
    back = start - (text.rfind("\n", 0, start) + 1)  # to the begin of the line: what follows began alike
    start, end = start - back, end - back
    if text[:start] + text[end:] != rest or not text[start:].lstrip(" \t").startswith("["):
        return rest  # no table in one piece
    lines = text[start:end].split("\n")
    count = len(lines)
    while lines and (not lines[-1].strip() or lines[-1].lstrip().startswith("#")):
        lines.pop()
    before = _BLANK_LINE.sub(r"\1", text[:start])
    if len(lines) == count:  # nothing ends the last line: nor did anything before the entry was put there
        return before.removesuffix("\n").removesuffix("\r")
    return before + text[start + len("\n".join(lines)) + 1 :]


def _with_table(text: str, keys: Sequence[str], entry: Mapping[str, Any]) -> str:
    """Return the text with a table at its end and a blank line before it, which `without_entry` knows by."""
    table: Any = dict(entry)
    for key in reversed(keys):
        table = {key: table}
    added = tomlkit.dumps(table)
    if text and not text.endswith("\n"):
        added = "\n\n" + added.rstrip("\n")
    elif text:
        added = "\n" + added
    return _in_newlines_of(text, text + added)


def _in_newlines_of(text: str, changed: str) -> str:
    """Return a changed text with the line ends that the text had, where it had CRLF alone."""
    crlf = "\r\n" in text and not _LF.search(text)
    return _LF.sub("\r\n", changed) if crlf else changed


def _document(text: str) -> tomlkit.TOMLDocument:
    if len(text) > _MOST_CHARS:
        raise ValueError(f"{len(text):,} characters are more than are read ({_MOST_CHARS:,})")
    try:
        toml_text.loads(text)  # which says better what is wrong
        return tomlkit.parse(text)
    except (tomllib.TOMLDecodeError, TOMLKitError) as exc:
        raise ValueError(f"no TOML: {toml_text.public_message(str(exc))}") from None
    except RecursionError:
        raise ValueError("it is nested too deep") from None
