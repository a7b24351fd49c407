"""Sources are numbered in the order in which a text uses them, and what supports nothing shown is not listed."""

from __future__ import annotations

from typing import Any

import pytest

from metatree import Answer, Node, Reading, SearchResult, Source, Tree, search
from metatree.protocols import ComposeRequest
from metatree.searches._citations import cited
from metatree.searches._world import _place_of
from metatree.testing.parts import FunctionRouter, PlainComposer, ScriptedReader, tree_of


def run(tree: Tree, questions: list[str], reader: Any, **given: Any) -> SearchResult:
    router = FunctionRouter(lambda request: request.options[0].id)
    given.setdefault("composer", PlainComposer())
    return search(questions, tree=tree, router=router, reader=reader, evidence=False, **given)


def test_an_answer_has_the_number_of_its_source() -> None:
    answer = Answer("q", "It is red.", "red", complete=True)
    result = run(tree_of({"a": "a\nb is red"}), ["q"], ScriptedReader({"a": Reading((answer,))}))
    (source,) = result.answers[0].sources
    assert (result.answer, result.cited, result.answers[0].cited) == ("It is red.", *["It is red. [1]"] * 2)
    assert (source.number, source.place, source.lines, source.pages) == (1, "a", (2, 2), None)


def test_numbers_go_on_over_several_answers_and_one_source_has_one_number() -> None:
    red, round_ = Answer("p", "It is red.", "red"), Answer("q", "It is round.", "round")
    again = Answer("r", "So red.", "red")
    reader = ScriptedReader({"a": Reading((red, again)), "b": Reading((round_,))})
    result = run(tree_of({"a": "red", "b": "round"}), ["q", "p", "r"], reader)
    assert [(each.question, each.cited) for each in result.answers] == [
        ("q", "It is round. [1]"),
        ("p", "It is red. [2]"),
        ("r", "So red. [2]"),
    ]
    assert [source.number for each in result.answers for source in each.sources] == [1, 2, 2]


def test_the_first_source_is_that_of_the_first_sentence_and_one_of_nothing_shown_is_not_listed() -> None:
    tree = tree_of({"a": "cold winters", "b": "the pool is warm", "c": "and deep"})
    warm, deep = (
        Answer("q", "The pool is warm.", "warm", complete=False),
        "The pool is deep. The pool is warm.",
    )
    cold = Answer("q", "Winters are cold.", "cold", complete=False)
    reader = ScriptedReader(
        {"a": Reading((cold,)), "b": Reading((warm,)), "c": Reading((Answer("q", deep, "deep"),))}
    )
    (answer,) = run(tree, ["q"], reader).answers
    assert [(source.node, source.number) for source in answer.sources] == [("c", 1), ("b", 2)]
    assert answer.cited == "The pool is deep. The pool is warm. [1][2]"


class Rewriting:
    async def compose(self, request: ComposeRequest) -> str:
        return "The ball weighs two kilograms. Its colour is a dark red."


def test_a_text_that_was_composed_anew_has_the_numbers_behind_the_sentences_that_rest_on_them() -> None:
    reader = ScriptedReader(
        {
            "a": Reading((Answer("p", "The colour is dark red.", "dark red"),)),
            "b": Reading((Answer("q", "two kilograms", "weighs two kilograms"),)),
        }
    )
    tree = tree_of({"a": "a dark red ball", "b": "it weighs two kilograms"})
    result = run(tree, ["p", "q"], reader, composer=Rewriting())
    assert result.answer == "The ball weighs two kilograms. Its colour is a dark red."
    assert result.cited == "The ball weighs two kilograms. [1] Its colour is a dark red. [2]"
    assert [answer.sources[0].number for answer in result.answers] == [2, 1]


def test_a_number_is_no_part_of_a_line_of_code() -> None:
    assert cited("def f():\n    return x", [((0, 21), 1)]) == "def f():\n    return x\n[1]"
    assert cited("- one\n- two", [((0, 11), 1)]) == "- one\n- two [1]"


FILE = Node("f", "f", source=Source(path="src/f.py", start_line=10, end_line=14))
CONTENT = "def f():\n    a = 1\n\n    return a\n"


@pytest.mark.parametrize(
    ("quote", "lines"),
    [
        ("return a", [13, 13]),
        ("\n    return a", [13, 13]),
        ("a = 1\n\n    return a", [11, 13]),
        ("not there", None),
        ("", None),
    ],
)
def test_place_of_a_quote_is_its_lines_in_the_file(quote: str, lines: list[int] | None) -> None:
    assert _place_of(quote, CONTENT, FILE) == {"place": "src/f.py", "lines": lines, "pages": None}


def test_place_of_a_quote_skips_the_lines_that_belong_to_others() -> None:
    source = Source(path="src/f.py", start_line=1, end_line=20, parts=((1, 2), (18, 20)))
    where = _place_of("X = 1", "import a\nimport b\n\nX = 1\nY = 2\n", Node("f", "f", source=source))
    assert where["lines"] == [19, 19]


def test_place_in_a_document_with_pages_is_the_page() -> None:
    source = Source(path="a.pdf", start_line=40, end_line=60, type="pdf")
    node = Node("a.pdf#x", "x", source=source, attributes={"first_page": 3, "last_page": 3})
    assert _place_of("tea", "some tea", node) == {"place": "a.pdf", "lines": None, "pages": [3, 3]}
