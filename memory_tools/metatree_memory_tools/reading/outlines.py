"""Outlines as JSON values, as they come from the process that reads what strangers made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from metatree.trees.source_types import Outline, OutlinePart


def outline_json(outline: Outline) -> dict[str, Any]:
    """Return an outline as JSON values, without imports and references, which only programs have."""
    return {
        "description": outline.description,
        "parts": list(map(_part_json, outline.parts)),
        "attributes": dict(outline.attributes),
        "summary": outline.summary,
        "problem": outline.problem,
        "empty": outline.empty,
    }


def outline_of(given: Mapping[str, Any]) -> Outline:
    """Return the outline that `outline_json` gave."""
    return Outline(**{**given, "parts": tuple(map(_part, given["parts"]))})


def _part_json(part: OutlinePart) -> list[Any]:
    below = list(map(_part_json, part.parts))
    place = [part.start_line, part.end_line, part.ranges]
    return [
        part.id,
        part.title,
        part.description,
        part.kind,
        *place,
        below,
        dict(part.attributes),
        part.digest,
    ]


def _part(given: Sequence[Any]) -> OutlinePart:
    part_id, title, description, kind, start, end, ranges, below, attributes, digest = given
    return OutlinePart(
        id=part_id,
        title=title,
        description=description,
        kind=kind,
        start_line=start,
        end_line=end,
        ranges=tuple((first, last) for first, last in ranges),
        parts=tuple(map(_part, below)),
        attributes=attributes,
        digest=digest,
    )
