"""The embedded reader on tables: a row answers with the names of its columns, and other rows do not."""

from __future__ import annotations

import asyncio

import pytest
from metatree_routers.embedded._table_rows import is_table
from metatree_routers.embedded.reader import EmbeddedReader

from metatree import Node
from metatree.protocols import Reading, ReadRequest

TABLE = "id | name | city | password\n1 | Ann | Oslo | ***\n2 | Bob | Bergen | ***\n3 | Cid | Lom | ***"


def read(question: str, content: str = TABLE, kind: str = "rows") -> Reading:
    node = Node("t", "customer: sample rows", "The first rows of customer", kind=kind)
    return asyncio.run(EmbeddedReader().read(ReadRequest(node, content, (question,))))


@pytest.mark.parametrize(
    ("question", "row"),
    [
        ("Which customer lives in Bergen?", "2 | Bob | Bergen | ***"),
        ("In which city does the customer Ann live?", "1 | Ann | Oslo | ***"),
    ],
)
def test_the_row_is_quoted_and_shown_with_its_columns(question: str, row: str) -> None:
    (answer,) = read(question).answers
    assert answer.quote == row
    assert answer.answer == f"id | name | city | password\n{row}"


@pytest.mark.parametrize("question", ["Which customer lives in Tromsø?", "Which city has a password?"])
def test_a_table_without_such_a_row_answers_nothing(question: str) -> None:
    assert not read(question).answers


def test_prose_and_code_with_bars_are_no_tables() -> None:
    assert not is_table("a = b | c\nreturn a")
    assert not is_table("One line | of prose.")
    assert not is_table("Some text.\n\nname | city\nAnn | Oslo")
