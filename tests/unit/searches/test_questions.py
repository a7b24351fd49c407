"""Several questions in one text are asked one by one; what is asked about together stays together."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metatree import search
from metatree.searches._questions import split_questions
from metatree.testing.parts import PlainComposer, ScriptedReader, tree_of


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("What does X do? And what is Y?", ["What does X do?", "And what is Y?"]),
        (
            "What does ChoiceLoader do and when was it added?",
            ["What does ChoiceLoader do?", "And when was it (ChoiceLoader) added?"],
        ),
        (
            "Who wrote click and under which license is it?",
            ["Who wrote click?", "And under which license is it (click)?"],
        ),
        (
            "Where is the cache, and how do I clear it?",
            ["Where is the cache?", "And how do I clear it (cache)?"],
        ),
        (
            "What is a context in click, how are callbacks called, how do I chain commands and what does f_x return?",
            [
                "What is a context in click?",
                "How are callbacks called?",
                "How do I chain commands?",
                "And what does f_x return?",
            ],
        ),
        ("I use themes. How do I switch? Thanks!", None),
        ("Who wrote the parser? who tests it?", ["Who wrote the parser?", "who tests it (parser)?"]),
        ("Was macht X? Und wie groß ist Y?", ["Was macht X?", "Und wie groß ist Y?"]),
        (
            'What is the version of "a and who is b?" and who maintains the list?',
            ['What is the version of "a and who is b?"?', "And who maintains the list?"],
        ),
    ],
)
def test_each_question_is_a_part(text: str, parts: list[str] | None) -> None:
    assert split_questions(text) == (parts or [text])


@pytest.mark.parametrize(
    "text",
    [
        "What is the difference between A and B?",
        "What is the difference between what A does and what B does?",
        "How do I read and write files?",
        "Does it print in black and white?",
        "When and where was Bach born?",
        "How many and which options are there?",
        "How do I know who asked and when it changed?",
        "Which command lists and which removes tokens?",
        "Which files say what is allowed and what is not?",
        "Where do I set the timeout and how?",
        "What does the ? operator do?",
        "What does `a? B` mean?",
        "Why? How?",
        "Compare how A is built and how is B built?",
        "search and replace",
        "When the cache is full, what does it do?",
        "When the cache is full, what does it do, how is it emptied and who is told?",
        "If it fails, how do I know?",
        "What is the order of name, which files, and what not?",
        "Where is the cache, how do I clear it?",
        "It fails.\n\nWhat is wrong? And who knows?",
        "",
    ],
)
def test_what_is_one_question_stays_one(text: str) -> None:
    assert split_questions(text) == [text]


_WORDS = st.sampled_from(
    [
        "what",
        "who",
        "when",
        "how",
        "does",
        "is",
        "it",
        "and",
        "the",
        "parser",
        "X",
        "`a",
        "b`",
        '"c',
        "and",
        "who",
        "is",
        'd"',
        "read_file?",
        "between",
        "old,",
        "new.",
        "(and",
        "what",
        "is",
        "e)",
        "why?",
        "under",
        "which",
        "And",
    ]
)


@given(st.lists(_WORDS, max_size=24).map(" ".join) | st.text(max_size=200))
def test_every_word_is_in_some_part(text: str) -> None:
    parts = split_questions(text)
    given_words, kept = (sorted(re.findall(r"\w+", each.casefold())) for each in (text, " ".join(parts)))
    for word in set(given_words):
        assert kept.count(word) >= given_words.count(word)
    assert len(parts) == 1 or all(part.strip(" ?") for part in parts)


def test_a_part_that_nothing_answers_stays_open_and_the_others_are_answered() -> None:
    tree = tree_of({"a": "text a"})
    reader = ScriptedReader({"a": {"What is A?": "the first letter"}})
    result = search(
        "What is A? And who wrote B?", tree=tree, reader=reader, composer=PlainComposer(), evidence=False
    )
    assert [(each.question, each.answer) for each in result.answers] == [("What is A?", "the first letter")]
    assert result.open_questions == ("And who wrote B?",)
    whole = search("What is A? And who wrote B?", tree=tree, returns="nodes", evidence=False)
    assert whole.nodes or whole.open_questions == ("What is A? And who wrote B?",)
