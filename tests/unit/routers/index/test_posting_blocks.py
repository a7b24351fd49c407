"""Posting lists in blocks: what is packed comes back, and every term is in the block that its place says."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from metatree_routers.index._posting_blocks import (
    MOST_BYTES,
    MOST_TERMS,
    lists_in,
    pack,
    pack_joined,
    places,
    unpack,
)

LISTS = st.dictionaries(st.text(st.characters(), max_size=5), st.binary(max_size=20), max_size=200)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(LISTS, st.sets(st.text(max_size=3), max_size=5))
def test_what_is_packed_comes_back_and_is_found(lists: dict[str, bytes], others: set[str]) -> None:
    blocks = list(pack(sorted(lists.items())))
    assert [entry for _, block in blocks for entry in unpack(block)] == sorted(lists.items())
    assert all(len(list(unpack(block))) <= MOST_TERMS for _, block in blocks)
    where = places([first for first, _ in blocks], {*lists, *others})
    result = {term: data for at, terms in where.items() for term, data in lists_in(blocks[at][1], terms)}
    assert result == lists


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(LISTS, st.integers(0, 3))
def test_lists_that_lie_one_behind_the_other_are_packed_the_same(lists: dict[str, bytes], long: int) -> None:
    lists |= {f"{number}long": bytes([number]) * MOST_BYTES for number in range(long)}
    terms = sorted(lists)
    ends = np.cumsum([len(lists[term]) for term in terms], dtype=np.int64)
    data = memoryview(b"".join(lists[term] for term in terms))
    blocks = list(pack_joined(terms, data, ends))
    assert [entry for _, block in blocks for entry in unpack(block)] == sorted(lists.items())
    assert [first for first, _ in blocks] == [next(unpack(block))[0] for _, block in blocks]
    assert blocks == list(pack(sorted(lists.items())))


def test_a_long_list_is_a_block_of_its_own() -> None:
    lists = [("a", b"1"), ("b", b"2" * 2 * MOST_BYTES), ("c", b"3"), ("d", b"4")]
    assert [first for first, _ in pack(lists)] == ["a", "b", "c"]


def test_a_term_before_the_first_block_is_nowhere() -> None:
    assert places(["b", "d"], ["a", "b", "c", "e"]) == {0: {"b", "c"}, 1: {"e"}}
    assert places([], ["a"]) == {}
