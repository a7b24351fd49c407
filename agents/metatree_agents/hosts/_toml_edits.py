"""Edits of TOML files that people keep: all but the entry stays."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import InlineTable

from metatree._util import toml_text


def parsed(text: str) -> Any:
    """Return what a file says.

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
            place[key] = tomlkit.table(is_super_table=True)
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
        table = tomlkit.table()
        table.update(entry)
        table.add(tomlkit.nl())
        place[keys[-1]] = table
        return tomlkit.dumps(document).rstrip("\n") + "\n"
    return tomlkit.dumps(document)


def without_entry(text: str, keys: Sequence[str]) -> str:
    """Return the text without the entry at a place; unchanged where there is none.

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
    return tomlkit.dumps(document)


def _document(text: str) -> tomlkit.TOMLDocument:
    try:
        toml_text.loads(text)  # which says better what is wrong
        return tomlkit.parse(text)
    except (tomllib.TOMLDecodeError, TOMLKitError) as exc:
        raise ValueError(f"no TOML: {exc}") from None
    except RecursionError:
        raise ValueError("it is nested too deep") from None
