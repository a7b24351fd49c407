"""Names, ids and values of thousands of digits end nothing."""

from __future__ import annotations

import pytest
import typer
from metatree_agents.cli._options import count_or_auto
from metatree_agents.planner.hddl.verify import InvalidPlan, _read
from metatree_agents.service.database.postgres import change_of
from metatree_memory_tools.conversations._exports import _numbered as sessions_of
from metatree_memory_tools.documents._docx import _level
from metatree_routers.llm._parts import _question
from metatree_routers.passages.later import _turn

from metatree import Node
from metatree._util.numbers import whole_number
from metatree.searches._result import _numbered

DIGITS = "1" * 4_500


def test_what_has_more_digits_than_fit_is_no_number() -> None:
    assert whole_number("1" * 18) == int("1" * 18)
    assert [whole_number(text) for text in ("1" * 19, DIGITS, "²", "1 ", "+1", "")] == [None] * 6


def test_ids_that_end_in_thousands_of_digits() -> None:
    assert _numbered(f"a{DIGITS}b2") == [(0, "a"), (0, DIGITS), (0, "b"), (2, ""), (0, "")]
    assert sorted([f"a{DIGITS}", "a10", "a9"], key=_numbered) == [f"a{DIGITS}", "a9", "a10"]
    above = [(Node("chat", "chat", ""), ""), (Node("chat/1", "day", ""), "")]
    assert _turn(Node(f"chat/1/{DIGITS}", "said", "", kind="turn"), above) == ("chat/1", 0)


def test_keys_and_attributes_of_thousands_of_digits() -> None:
    said = [{"speaker": "Ann", "text": "tea"}]
    assert len(sessions_of({f"session_{DIGITS}": said, "session_2": said})) == 1
    assert [_level({"val": value}) for value in ("0", "8", "9", DIGITS, "x", "")] == [1, 9, 0, 0, 0, 0]


def test_labels_of_models_messages_and_plans() -> None:
    assert _question(f"q{DIGITS}", ("a", "b")) is None and _question("q2", ("a", "b")) == "b"
    assert change_of(f"{DIGITS} topic") is None and change_of("3 topic") is not None
    with pytest.raises(InvalidPlan, match="no number of a task"):
        _read(f"==>\n{DIGITS} drive a\nroot 1\n<==\n")
    with pytest.raises(typer.BadParameter):
        count_or_auto(DIGITS)
