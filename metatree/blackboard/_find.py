"""Finding items by their words, and reading them as triples."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from metatree.blackboard._rows import Filter, Rows

if TYPE_CHECKING:
    from metatree.blackboard._item import Item

_WORD: Final = re.compile(r"\w+")
_PAGE: Final = 1_000


class Triple(NamedTuple):
    """What an item says under one key: item, relation, value."""

    item: str
    """Id of the item."""
    relation: str
    """The key, with a point before each inner key; what the board knows of the item begins with `@`: `@section`,
    `@agent`, `@run`, `@step`, `@round`, `@at`, `@source`."""
    value: Any
    """A text, a number, a truth value or None."""


def find(rows: Rows, which: Filter, text: str, k: int) -> list[Item]:
    """Return the items that hold the most telling words of a text, best first, the newer first among equals.

    A rare word tells more than a frequent one. Words match anywhere in the item, whatever their case. All items that
    the filter lets through are looked at: about 6 ms for a thousand.
    """
    # Lost: a full-text index, for which each write would pay about 20 us.
    words = sorted(set(_WORD.findall(text.casefold())))
    if not words or k < 1:
        return []
    whole = " ".join(text.casefold().split())
    hits: list[tuple[int, str, list[bool], bool]] = []
    item_count = 0
    before: int | None = None
    while page := rows.select(which, limit=_PAGE, newest=True, before=before):
        before = page[-1].number
        item_count += len(page)
        for item in page:
            text_of = item.json.casefold()
            matches = [word in text_of for word in words]
            if any(matches):
                hits.append((item.number, item.id, matches, whole in text_of))
    weights = [
        math.log(1 + item_count / max(1, sum(matches[i] for _, _, matches, _ in hits)))
        for i in range(len(words))
    ]
    scored = sorted(
        hits,
        key=lambda hit: (
            sum(w for w, there in zip(weights, hit[2], strict=True) if there) * (1.5 if hit[3] else 1.0),
            hit[0],
        ),
        reverse=True,
    )
    ids = [item_id for _, item_id, _, _ in scored[:k]]
    items = {item.id: item for item in rows.select(which.within(Filter(ids=tuple(ids))))}
    return [items[item_id] for item_id in ids if item_id in items]


def triples_of(item: Item) -> Iterator[Triple]:
    """Yield what an item says, and what the board knows of it, as triples; a list gives one for each element."""
    yield Triple(item.id, "@section", item.section)
    yield Triple(item.id, "@at", item.at)
    for relation, value in (("@agent", item.agent), ("@run", item.run)):
        if value:
            yield Triple(item.id, relation, value)
    for relation, number in (("@step", item.step), ("@round", item.round)):
        if number is not None:
            yield Triple(item.id, relation, number)
    for source in item.sources:
        yield Triple(item.id, "@source", source)
    for key, inner in item.data.items():
        yield from _flatten(item.id, key, inner)


def _flatten(item: str, relation: str, value: Any) -> Iterator[Triple]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _flatten(item, f"{relation}.{key}", inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _flatten(item, relation, inner)
    else:
        yield Triple(item, relation, value)


def all_triples(
    rows: Rows, which: Filter, relation: str | None, value: Any, any_value: bool
) -> Iterator[Triple]:
    """Yield the triples of the items that a filter lets through, oldest first, with this relation and value."""
    items: list[Item] = rows.select(which)
    for item in items:
        for triple in triples_of(item):
            if relation is not None and triple.relation != relation:
                continue
            if any_value or (
                triple.value == value and isinstance(triple.value, bool) == isinstance(value, bool)
            ):
                yield triple
