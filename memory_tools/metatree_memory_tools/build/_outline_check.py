"""Whether what a memory type says of a file is an outline that a tree can keep; types come from anywhere."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

from metatree.trees.source_types import Outline, OutlinePart
from metatree.trees.text import encodable

MOST_PARTS = 200_000
"""An outline with more parts is refused: one file would be most of the tree."""

MOST_CHARS = 5_000
"""Of a title, a description or a summary, more is left out."""

_MOST_DEPTH = 100
_MAX_OUTLINE_CHARS = 10_000_000
"""So many characters of attributes, imports and references one file may have, written as JSON."""


class NoOutline(Exception):
    """What a type gave cannot be kept; the message says why."""


def checked(outline: object) -> Outline:
    """Return an outline with its texts, parts and values as a tree can keep them.

    Raises:
        NoOutline: it is something else, or too much.
        Exception: whatever its parts raise while they are counted.
    """
    _is(outline, Outline, "outline")
    assert isinstance(outline, Outline)
    return replace(
        outline,
        description=_text(outline.description, "description"),
        summary=_text(outline.summary, "summary"),
        problem=_text(outline.problem, "problem"),
        parts=_Parts().checked(outline.parts, 1),
        attributes=_attributes(outline.attributes),
        imports=_values(outline.imports, "imports"),
        references=_values(outline.references, "references"),
        declares=_values(outline.declares, "declares"),
        empty=bool(outline.empty),
    )


class _Parts:
    def __init__(self) -> None:
        self.ids: set[str] = set()

    def checked(self, parts: object, depth: int) -> tuple[OutlinePart, ...]:
        if not isinstance(parts, Iterable) or isinstance(parts, str | bytes | Mapping):
            raise NoOutline(f"parts are {type(parts).__name__}, not a sequence of OutlinePart")
        if depth > _MOST_DEPTH:
            raise NoOutline(f"it has parts more than {_MOST_DEPTH} deep")
        # One more than may come, so that parts without end are seen to be too many.
        return tuple(self._part(part, depth) for part in islice(parts, MOST_PARTS - len(self.ids) + 1))

    def _part(self, part: object, depth: int) -> OutlinePart:
        _is(part, OutlinePart, "part")
        assert isinstance(part, OutlinePart)
        _is(part.id, str, "id of a part")
        if not part.id.startswith(("#", "::", "/")) or encodable(part.id) != part.id:
            raise NoOutline(f"the id of a part is {part.id[:80]!r}: it must begin with '#', '::' or '/'")
        if part.id in self.ids:
            raise NoOutline(f"two parts have the id {part.id[:80]!r}")
        if len(self.ids) >= MOST_PARTS:
            raise NoOutline(f"it has more than {MOST_PARTS:,} parts")
        self.ids.add(part.id)
        for line in (part.start_line, part.end_line, *(line for pair in part.ranges for line in pair)):
            if type(line) is not int or not 0 <= line < 1 << 40:
                raise NoOutline(f"the part {part.id[:80]!r} has the line {line!r}")
        fields: dict[str, Any] = {
            "title": _text(part.title, "title"),
            "description": _text(part.description, "description"),
            "kind": _text(part.kind, "kind"),
            "digest": _text(part.digest, "digest"),
            "ranges": tuple((int(first), int(last)) for first, last in part.ranges),
            "attributes": _attributes(part.attributes),
            "parts": self.checked(part.parts, depth + 1) if part.parts else (),
        }
        if type(part) is OutlinePart and all(getattr(part, name) is value for name, value in fields.items()):
            return part  # as nearly all are: to make one anew costs more than to look at it
        return replace(part, **fields)


def _is(value: object, kind: type, what: str) -> None:
    if not isinstance(value, kind):
        raise NoOutline(f"its {what} is {type(value).__name__}, not {kind.__name__}")


def _text(value: object, what: str) -> str:
    _is(value, str, what)
    return encodable(str(value)[:MOST_CHARS])


def _attributes(value: object) -> Mapping[str, Any]:
    _is(value, Mapping, "attributes")
    assert isinstance(value, Mapping)
    if value:
        _size(dict(value), "attributes")
    return value


def _values(value: object, what: str) -> Any:
    """Return values as JSON has them, which is how they are kept and read again."""
    if not isinstance(value, tuple | list):
        raise NoOutline(f"its {what} are {type(value).__name__}, not a tuple")
    if not value:
        return ()
    _size(value, what)
    return value


def _size(value: object, what: str) -> None:
    try:
        size = len(json.dumps(value))
    except (TypeError, ValueError) as exc:
        raise NoOutline(f"its {what} are no JSON values ({exc})") from exc
    if size > _MAX_OUTLINE_CHARS:
        raise NoOutline(f"its {what} take {size / 1e6:.0f} MB")
