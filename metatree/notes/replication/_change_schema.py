"""The form of a change of the memory layer, checked before anything of it is written: others send changes."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Final, Literal

from metatree.notes.feedback import Flag


@dataclass(frozen=True, slots=True)
class RowChange:
    """What became of one row, or of one flag."""

    what: Literal["node", "override", "flag"]
    id: str
    body: str | None
    """Canonical JSON of all that the row says; None when it is gone."""


def is_well_formed(change: RowChange) -> bool:
    """Say whether the body of a change says all that such a row says, each in its type.

    Example:
        >>> is_well_formed(RowChange("node", "a", "{}")), is_well_formed(RowChange("node", "a", None))
        (False, True)
    """
    if not _is_text(change.id):
        return False
    if change.body is None:
        return True
    try:
        body = json.loads(change.body)
    except (ValueError, RecursionError):
        return False
    form = _FORMS[change.what]
    if not isinstance(body, dict) or not body.keys() >= form.keys():
        return False
    if change.what == "flag" and len(body) > len(form):  # it is kept as it came, and no flag has more
        return False
    return all(form[name](body[name]) for name in form)


_MOST: Final = 2**63
"""What an integer of SQLite is below."""


def _is_text(value: Any) -> bool:
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:  # half a pair of surrogates, which JSON can say and no database keeps
        return False
    return True


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and -_MOST <= value < _MOST


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _is_packed(value: Any) -> bool:
    """Say whether this is the JSON of an object, as a column of the layer has it."""
    try:
        return _is_text(value) and _is_object(json.loads(value))
    except (ValueError, RecursionError):
        return False


def _or_none(check: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or check(value)


def _are_links(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(link, list) and len(link) == 3 and all(map(_is_text, link)) for link in value
    )


def _is_source(value: Any) -> bool:
    if not isinstance(value, list) or len(value) != 5:
        return False
    kind, path, first, last, parts = value
    return (
        _is_text(kind)
        and _is_text(path)
        and all(each is None or _is_number(each) for each in (first, last))
        and isinstance(parts, list)
        and all(isinstance(part, list) and len(part) == 2 and all(map(_is_number, part)) for part in parts)
    )


_FORMS: Final[dict[str, dict[str, Callable[[Any], bool]]]] = {
    "node": {
        "parent": _is_text,
        "position": _is_number,
        "kind": _is_text,
        "title": _is_text,
        "description": _is_text,
        "content": _or_none(_is_text),
        "source": _or_none(_is_source),
        "provenance": _is_object,
        "attributes": _is_object,
        "links": _are_links,
    },
    "override": {
        "parent": _or_none(_is_text),
        "position": _or_none(_is_number),
        "hidden": _is_number,
        "title": _or_none(_is_text),
        "description": _or_none(_is_text),
        "provenance": _or_none(_is_packed),
        "basis": _or_none(_is_text),
    },
    "flag": {field.name: _is_text for field in fields(Flag)},
}
