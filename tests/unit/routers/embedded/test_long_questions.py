"""What a long question costs a reader, in steps: as much as a short one for each text, and its length once."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
from metatree_routers.embedded import _table_rows as table_rows
from metatree_routers.embedded._table_rows import best_row
from metatree_routers.passages import _cut, _exact, asked, candidates, features, ranking
from metatree_routers.passages.asked import read_question
from metatree_routers.passages.candidates import Text
from metatree_routers.passages.ranking import rank_passages

from metatree import Node

CODE = "\n".join(f"def step_{i}(value):\n    return turn(value, lamp_{i % 7}, {i})\n" for i in range(300))
PROSE = " ".join(f"The lamp number {i} turns the value of step {i % 9} to green." for i in range(300))
TABLE = "step | lamp | value\n" + "\n".join(f"step_{i} | lamp_{i % 7} | green" for i in range(300))


def question(chars: int, after: str) -> str:
    """Return a question of many words, a third of which are in the texts."""
    words = (f"step_{i} lamp_{i % 7} w{i:x}q" for i in range(chars))
    return f"Which lamp?{after}" + " ".join(word for _, word in zip(range(chars // 18), words, strict=False))


def ranked(text: str, question: str) -> object:
    texts = [Text(Node(id="n", title="n", kind="definition" if text is CODE else "section"), text)]
    return rank_passages(read_question(question), texts, {}, 1, None) or None


def read_code(question: str) -> object:
    return ranked(CODE, question)


def read_prose(question: str) -> object:
    return ranked(PROSE, question)


def read_table(asked: str) -> object:
    return best_row(TABLE, asked, called="lamps")


def steps(what: Callable[[str], object], question: str) -> int:
    """Return how many lines of the modules that read are run."""
    files, count = (
        {part.__file__ for part in (_cut, _exact, asked, candidates, features, ranking, table_rows)},
        0,
    )

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        if frame.f_code.co_filename not in files:
            return None
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        assert what(question) is not None
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("after", ["\n\n", " "])
@pytest.mark.parametrize("read", [read_code, read_prose, read_table])
def test_the_length_of_a_question_counts_once_and_not_for_each_line_of_a_text(
    read: Callable[[str], object], after: str
) -> None:
    short, long, longest = (steps(read, question(chars, after)) for chars in (1_000, 20_000, 99_000))
    terms = 4 * 20_000 // 18
    # Once for each passage that is looked at closely.
    assert max(long, longest) <= 3 * short + candidates.KEPT * terms, (short, long, longest)


def test_one_line_of_any_length_costs_what_the_part_of_it_does_that_is_looked_at() -> None:
    """All of its words are different, so nothing that is kept of a word is used twice."""

    def read(chars: int) -> Callable[[str], object]:
        line = " ".join(f"w{i:x}q" for i in range(chars // 6))[:chars]
        text = Text(Node(id="n", title="n", kind="section"), line)
        return lambda question: rank_passages(read_question(question), [text], {}, 1, None) or "nothing"

    asked = "What is w1f4q, and who wrote w3e8q?"
    assert steps(read(10 * _cut.MAX_CHARS), asked) <= 1.1 * steps(read(_cut.MAX_CHARS), asked)
