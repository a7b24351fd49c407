"""What a closer look at the best files finds: phrases, nearness in meaning."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from metatree_routers.embeddings.static import static_embedder
from metatree_routers.evidence.signals._phrases import phrase_scores, phrases_of
from metatree_routers.evidence.signals._title_similarity import title_similarity
from metatree_routers.query.parse import Sections
from metatree_routers.query.terms import terms


def test_a_phrase_counts_where_its_words_stand_together_in_order() -> None:
    files = [
        ["the structured column fails"],
        ["column structured"],
        ["structured. The column"],
        ["structured"],
    ]
    scores = phrase_scores({("structur", "column"): 1.0}, files)
    assert [bool(score) for score in scores.scores] == [
        True,
        False,
        True,
        False,
    ]  # stop words stand between nothing
    assert scores.pairs[0] == [("structur", "column")]


def test_a_phrase_does_not_reach_from_one_text_into_the_next() -> None:
    assert phrase_scores({("red", "tree"): 1.0}, [["a red", "tree"]]).scores.tolist() == [0.0]


def test_a_phrase_of_few_files_counts_more_than_one_of_many() -> None:
    files = [["red tree"], ["red tree"], ["red tree"], ["old house"]]
    scores = phrase_scores({("red", "tree"): 1.0, ("old", "hous"): 1.0}, files).scores
    assert scores[3] > scores[0] == scores[1]


def test_phrases_of_the_title_weigh_more_and_code_lines_are_apart() -> None:
    parts = Sections(title="Red tree", prose="old\nhouse", code="first line\nsecond line", is_long=True)
    phrases = phrases_of(parts)
    assert phrases["red", "tree"] > phrases["old", "hous"] > phrases["first", "line"]
    assert ("line", "second") not in phrases


@given(st.lists(st.text(alphabet="ab_. \n", max_size=30), max_size=4), st.text(alphabet="ab_. ", max_size=30))
def test_phrases_are_those_of_neighbouring_terms(texts: list[str], title: str) -> None:
    phrases = phrases_of(Sections(title=title))
    scores = phrase_scores(phrases, [[text] for text in texts])
    for text, pairs in zip(texts, scores.pairs, strict=True):
        pieces = terms(text)
        assert set(pairs) == phrases.keys() & set(pairwise(pieces))


def test_definitions_near_in_meaning_bring_a_file_forward() -> None:
    embedder = static_embedder()
    if embedder is None:
        pytest.skip("no static embeddings here")
    files = [["parse date Parse a calendar day."], ["send mail Send a letter."], []]
    near = title_similarity("Wrong month in calendars", files, embedder)
    assert near.scores[0] > 0 > near.scores[1]
    assert near.scores[2] == 0
    assert title_similarity("", files, embedder).scores.tolist() == [0, 0, 0]
