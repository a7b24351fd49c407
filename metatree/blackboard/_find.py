"""Finding items by their words, and reading them as triples."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from metatree.blackboard._rows import Filter, Rows
from metatree.blackboard._words import Words, words_of

if TYPE_CHECKING:
    from metatree.blackboard._item import Item


_WHOLE: Final = 1.25
"""How much more a word tells that is no part of a longer one."""


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

    A rare word tells more than a frequent one, a whole one more than a part of a longer one, the words as they stand in
    the text half as much again. Words match anywhere in the item, whatever their case.
    """
    words = sorted(set(words_of(text)))
    if not words or k < 1:
        return []
    whole = " ".join(text.casefold().split())
    with rows.store.turn() as inside_transaction:
        holding, item_count = Words(rows).holding(words) if inside_transaction else rows.words.holding(words)
    if which != Filter():
        visible = rows.numbers(which)
        holding, item_count = [(any_ & visible, exact & visible) for any_, exact in holding], len(visible)
    scores: dict[int, float] = {}
    for numbers, as_a_whole in holding:
        weight = math.log(1 + item_count / max(1, len(numbers)))
        for number in numbers:
            scores[number] = scores.get(number, 0.0) + weight * (_WHOLE if number in as_a_whole else 1.0)
    with_all = set.intersection(*(numbers for numbers, _ in holding))
    if whole != words[0]:  # else all of them hold it
        best_first = sorted(with_all, key=lambda number: (scores[number], number), reverse=True)
        with_all = _holding_text(rows, best_first, whole, k)
    for number in with_all:
        scores[number] *= 1.5
    best = heapq.nlargest(k, scores, key=lambda number: (scores[number], number))
    return list(rows.by_number(best))


def _holding_text(rows: Rows, numbers: list[int], text: str, k: int) -> set[int]:
    """Return the first `k` items whose JSON holds a text."""
    holding = (item.number for item in rows.by_number(numbers) if text in item.json.casefold())
    return set(islice(holding, k))


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
