"""The index of `find`: it finds what looking at every item finds, whatever has happened to the board."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metatree import Blackboard
from metatree.blackboard import _words
from tests.profiles import examples
from tests.unit.blackboard.scan import scan

TEXTS = st.lists(
    st.sampled_from(
        ["pay", "the", "invoice", "INVOICES", "Übersicht", "straße", "b12", "b1", "-", "\n", "x.y", "ﬁ"]
    ),
    max_size=5,
).map(" ".join)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.sampled_from(["facts", "notes"]), TEXTS),
        st.tuples(st.just("update"), st.integers(0, 20), TEXTS),
        st.tuples(st.just("remove"), st.integers(0, 20), st.just("")),
        st.tuples(st.just("clear"), st.sampled_from(["facts", "notes"]), st.just("")),
        st.tuples(st.just("forget"), st.just(0), st.just("")),
        st.tuples(st.just("find"), st.integers(1, 5), TEXTS),
    ),
    max_size=25,
)


@given(STEPS)
@settings(max_examples=examples(150))
def test_the_index_finds_what_looking_at_every_item_finds(steps: list[tuple[str, Any, str]]) -> None:
    with Blackboard() as board:
        other = board.view("reader", sections="facts")
        for n, (kind, which, text) in enumerate([*steps, ("find", 20, "pay the invoice b1")]):
            items = board.items()
            if kind == "add":
                board.add(which, {"text": text, "n": n}, audience=["reader"] if n % 3 else ["nobody"])
            elif kind == "clear":
                board.remove_all(which)
            elif kind == "forget":
                board.forget_removed()
            elif kind == "find":
                assert board.find(text, k=which) == scan(board, text, which)
                assert other.find(text, k=which) == scan(other, text, which)
            elif items:
                item = items[which % len(items)]
                board.update(item.id, {"text": text}) if kind == "update" else board.remove(item.id)


def test_a_whole_word_comes_before_a_part_of_a_longer_one() -> None:
    board = Blackboard()
    whole = board.add("facts", {"text": "invoice777 is due"})
    board.add_many("facts", [{"text": f"invoice777{n} is due"} for n in range(10)])
    assert board.find("Invoice777", k=3)[0] == whole
    assert len(board.find("invoice777", k=20)) == 11


def test_items_that_changed_are_read_again_and_the_rest_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    board = Blackboard()
    items = board.add_many("facts", [{"text": f"word{n}"} for n in range(3_000)])
    assert board.find("word2999")[0].id == items[-1].id
    read: list[str] = []
    words_of = _words.words_of

    def recorded(text: str) -> list[str]:
        read.append(text)
        return words_of(text)

    monkeypatch.setattr(_words, "words_of", recorded)
    assert board.find("word17")[0].id == items[17].id
    board.update(items[3].id, {"text": "other"})
    assert board.find("word3") == scan(board, "word3")
    assert board.find("other") == scan(board, "other")
    assert read == ['{"text": "other"}']


def test_stale_places_do_not_pile_up() -> None:
    board = Blackboard()
    item = board.add("facts", {"n": 0})
    for n in range(1, 2_100):
        board.update(item.id, {"n": n})
        if n % 100 == 0:
            assert [found.id for found in board.find(str(n))] == [item.id]
            assert board.find(str(n - 1)) == []
    words = board._share.rows.words
    words_held = len(words._places)
    for n in range(3_000, 4_200):
        board.update(item.id, {"n": n})
        board.find("n")
    assert len(words._places) < words_held + 1_200


def test_what_a_transaction_does_not_keep_is_not_found_afterwards() -> None:
    board = Blackboard()
    board.add("facts", {"text": "kept"})
    with pytest.raises(RuntimeError), board._share.store.transaction():
        board.add("facts", {"text": "lost"})
        assert len(board.find("lost")) == 1
        raise RuntimeError
    assert board.find("lost") == []
    later = board.add("facts", {"text": "later"})
    assert board.find("later") == [later]


def test_more_items_are_found_than_one_statement_reads() -> None:
    board = Blackboard()
    board.add_many("facts", [{"text": "same"}] * 2_500)
    assert board.find("same", k=40_000) == board.items(newest=True)


def test_threads_find_while_others_write() -> None:
    board = Blackboard()
    failures: list[BaseException] = []

    def work(thread: int) -> None:
        try:
            for n in range(60):
                item = board.add("facts", {"text": f"word{thread}x{n}"})
                assert board.find(f"word{thread}x{n}")[0] == item
        except BaseException as exc:
            failures.append(exc)

    threads = [threading.Thread(target=work, args=(thread,)) for thread in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert board.find("word") == scan(board, "word")
