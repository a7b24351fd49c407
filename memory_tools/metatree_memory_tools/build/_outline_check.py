"""Whether what a memory type says of a file is an outline that a tree can keep; types come from anywhere."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import chain, islice
from operator import is_
from typing import Any

from metatree.trees.source_types import Outline, OutlinePart
from metatree.trees.text import encodable
from metatree_memory_tools.text.descriptions import cut_masked

MOST_PARTS = 150_000
"""An outline with more parts is refused: one file would be most of the tree."""

MOST_CHARS = 5_000
"""Of a title, a description or a summary, more is left out."""

_MOST_DEPTH = 100
_FEW = 100
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
        for line in (part.start_line, part.end_line, *chain.from_iterable(part.ranges)):
            if type(line) is not int or not 0 <= line < 1 << 40:
                raise NoOutline(f"the part {part.id[:80]!r} has the line {line!r}")
        title, description = _text(part.title, "title"), _text(part.description, "description")
        kind, digest = _text(part.kind, "kind"), _text(part.digest, "digest")
        attributes = _attributes(part.attributes)
        ranges = tuple((int(first), int(last)) for first, last in part.ranges) if part.ranges else ()
        parts = self.checked(part.parts, depth + 1) if part.parts else ()
        # As nearly all are: to make one anew costs more than to look at it.
        if (
            type(part) is OutlinePart
            and title is part.title
            and description is part.description
            and kind is part.kind
            and digest is part.digest
            and not ranges
            and type(part.parts) is tuple
            and len(parts) == len(part.parts)
            and all(map(is_, parts, part.parts))
        ):
            return part
        return replace(
            part,
            title=title,
            description=description,
            kind=kind,
            digest=digest,
            ranges=ranges,
            attributes=attributes,
            parts=parts,
        )


def _is(value: object, kind: type, what: str) -> None:
    if not isinstance(value, kind):
        raise NoOutline(f"its {what} is {type(value).__name__}, not {kind.__name__}")


def _text(value: object, what: str) -> str:
    if type(value) is str and len(value) <= MOST_CHARS and value.isascii():
        return value
    _is(value, str, what)
    return encodable(cut_masked(str(value), MOST_CHARS))


def _attributes(value: object) -> Mapping[str, Any]:
    _is(value, Mapping, "attributes")
    assert isinstance(value, Mapping)
    if value and not (
        len(value) <= _FEW and all(map(_is_short, value)) and all(map(_is_short, value.values()))
    ):
        _size(dict(value), "attributes")
    return value


def _is_short(value: object) -> bool:
    """Whether a value is one of JSON, and so short that a few of them need not be written to be measured."""
    return len(value) <= MOST_CHARS if type(value) is str else type(value) is int and 0 <= value < 1 << 40


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
