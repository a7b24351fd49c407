"""Directives that say nothing by themselves are no quote, and no best line."""

from __future__ import annotations

import asyncio

import pytest
from metatree_routers.embedded.reader import EmbeddedReader
from metatree_routers.query.best_line import best_line
from metatree_routers.query.directives import without_bare_ends

from metatree import Node
from metatree.protocols import ReadRequest

TESTING = """.. currentmodule:: click.testing

For basic testing, Click provides the :mod:`click.testing` module, which invokes an application.

.. autofunction:: click.testing.invoke
"""


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (".. contents::\n   :local:\n\nIt is.\n", "It is."),
        (".. note:: It is.\n", ".. note:: It is.\n"),
        ("\n  It is.\n", "\n  It is.\n"),
        (".. _label:\n\nIt is.\n.. highlight:: c\nAnd so on.", "It is.\n.. highlight:: c\nAnd so on."),
        (".. module:: a\n", ""),
        ("    :param a: the lamp", "    :param a: the lamp"),
    ],
)
def test_a_text_begins_and_ends_with_what_it_says(text: str, kept: str) -> None:
    assert without_bare_ends(text) == kept


def test_a_directive_is_no_best_line_where_another_one_has_a_word() -> None:
    weights = {"click": 2.0, "test": 1.0, "testing": 1.0}
    assert best_line(TESTING, weights).startswith("For basic testing")
    assert best_line(".. module:: click", weights) == ".. module:: click"


def test_a_quote_has_no_directive_at_its_ends_and_stands_in_the_text() -> None:
    node = Node("testing", "Testing Click Applications", attributes={"path": "testing.rst"}, content=TESTING)
    request = ReadRequest(
        node, TESTING, ("Which module does Click provide for basic testing?",), "", (), (), 0.0
    )
    (answer,) = asyncio.run(EmbeddedReader(embeddings=False).read(request)).answers
    assert answer.quote == TESTING.split("\n")[2] and answer.answer == answer.quote
