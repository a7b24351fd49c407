"""Ask the questions of a set: `ask` on the tree of each source, and BM25 over passages of the same texts."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from metatree_routers import TextEvidence

from benchmarks.answers.dataset import Passage, Question, QuestionSet, ready
from benchmarks.answers.scoring import Passed, Row, answered_parts, is_right
from benchmarks.retrieval.baseline import BM25
from metatree import SearchResult, Tree, search
from metatree.protocols import SURE

OURS, BASELINE = "metatree", "BM25, always"
CLOSEST = 3
_KEPT = 2_000
"""Characters of an answer that a row keeps."""


def rows(
    asked: QuestionSet, source: str, work: Path, *, wrong: bool, limit: int | None, sure: float = SURE
) -> Iterator[Row]:
    """Ask everything that is asked of one source.

    Args:
        work: where the tree is kept.
        wrong: whether those questions that another source answers are asked too.
        limit: about how many questions of the whole set; they are taken evenly.
        sure: how likely an answer must be right to be claimed; None as `ask` does without `--sure`.
    """
    step = max(1, len(asked.questions) // limit) if limit else 1
    questions = [
        (question, question.answerable and question.source == source)
        for question in asked.questions[::step]
        if question.source == source
        or (wrong and question.answerable and asked.other(question.source) == source)
    ]
    if not questions:
        return
    where = asked.sources[source]
    passages = {str(number): passage for number, passage in enumerate(where.passages())}
    index = BM25({id_: passage.text for id_, passage in passages.items()})
    with ready(where, source, work, _index) as tree:
        for question, answerable in questions:
            yield ask(asked.name, question, answerable, source, tree, sure)
            yield baseline(asked.name, question, answerable, source, index, passages)


def _index(tree: Tree) -> None:
    TextEvidence(tree).refresh()


def ask(name: str, question: Question, answerable: bool, source: str, tree: Tree, sure: float = SURE) -> Row:
    """Ask as `metatree ask` does; the run is not kept in the tree, so that questions do not depend on their order."""
    began = time.process_time()
    result = search([question.text], tree=tree, journal=":memory:", sure=sure)
    seconds = time.process_time() - began
    text = Passed(result.answer, tuple(quote.node for answer in result.answers for quote in answer.sources))
    closest = closest_of(result)
    right = is_right(question, [text])
    return Row(
        set=name,
        id=question.id,
        kind=question.kind,
        source=question.source,
        asked=source,
        system=OURS,
        question=question.text,
        answerable=answerable,
        # A claim is what `ask` prints with exit code 0.
        claimed=bool(result.answers) and result.ended in ("answered", "exhausted"),
        text=result.answer[:_KEPT],
        right=right,
        partial=not right
        and bool(result.open_questions)
        and answered_parts(question, [text]) >= max(1, len(result.answers)),
        shown=is_right(question, [text, *closest]),
        closest=len(closest),
        closest_right=is_right(question, closest),
        confidence=confidence_of(result),
        ended=result.ended,
        tool_calls=result.usage.tool_calls,
        router_calls=result.usage.router_calls,
        length=len(result.answer),
        seconds=seconds,
    )


def closest_of(result: SearchResult) -> list[Passed]:
    """Return the passages that a search shows for what it does not claim, three for each question that it asks."""
    found: dict[str, list[Passed]] = {}
    for passage in result.closest:
        found.setdefault(passage.question, []).append(Passed(passage.quote, (passage.node,)))
    return [passed for of_question in found.values() for passed in of_question[:CLOSEST]]


def confidence_of(result: SearchResult) -> float | None:
    """Return how sure a search is of all that it claims: of its least sure answer; None where it does not say."""
    said = [getattr(answer, "confidence", None) for answer in result.answers]
    known = [confidence for confidence in said if confidence is not None]
    return min(known) if known else None


def baseline(
    name: str,
    question: Question,
    answerable: bool,
    source: str,
    index: BM25,
    passages: Mapping[str, Passage],
) -> Row:
    """Claim the first passage that shares a word with the question; its score is the confidence."""
    began = time.process_time()
    ranked = [(passages[id_], score) for id_, score in index.scored(question.text, CLOSEST) if score > 0]
    seconds = time.process_time() - began
    closest = [Passed(passage.text, (passage.node,)) for passage, _ in ranked]
    first = closest[0] if closest else Passed("")
    return Row(
        set=name,
        id=question.id,
        kind=question.kind,
        source=question.source,
        asked=source,
        system=BASELINE,
        question=question.text,
        answerable=answerable,
        claimed=bool(closest),
        text=first.text[:_KEPT],
        right=is_right(question, closest[:1]),
        shown=is_right(question, closest),
        closest=len(closest),
        closest_right=is_right(question, closest),
        confidence=ranked[0][1] if ranked else None,
        ended="answered" if closest else "exhausted",
        length=len(first.text),
        seconds=seconds,
    )
