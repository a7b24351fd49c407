"""What `ask` prints for people."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from metatree_memory_tools.text.readable import markup_of, readable, readable_code
from metatree_routers.passages.candidates import is_code_text
from metatree_routers.query.entry import entry_text

from metatree._util.numbers import whole_number
from metatree.notes.notes import said_by
from metatree_agents.cli._output import styled, visible
from metatree_agents.cli.printing.results import first_line, nothing, quoted_lines, wish_lines
from metatree_agents.tools.closest import of_question, telling
from metatree_agents.tools.locations import (
    NOT_IN_SOURCE,
    code_lines,
    earlier_lines,
    passage_place,
    readable_answer,
    source_place,
)

if TYPE_CHECKING:
    from metatree import ClosestPassage, SearchResult, Tree
    from metatree.result import QuestionAnswer, Quote

_LIKE_OURS: Final = re.compile(r"\((?:said by|imported from|made by) ")
_QUOTE_LINES = 12
_MOST_CODE_LINES = 40
"""A longer definition stays cut, also where all is asked for: a class level of a hundred lines hides its answer."""
_PASSAGE_LINES = 6
_PASSAGE_CHARS = 800
_SILENT = "The sources do not say, as far as this search can tell"


def with_sources(result: SearchResult, k: int | None) -> SearchResult:
    """Return the result with at most `k` sources for each answer, and passages for each question; None for all."""
    answers = tuple(replace(answer, sources=answer.sources[:k]) for answer in result.answers)
    kept = {source.number for answer in answers for source in answer.sources}
    left_out = {s.number for answer in result.answers for s in answer.sources if s.number not in kept}

    def without(text: str) -> str:
        return (
            re.sub(r"\[(\d+)\]", lambda m: "" if whole_number(m[1]) in left_out else m[0], text)
            if left_out
            else text
        )

    answers = tuple(replace(answer, cited=without(answer.cited)) for answer in answers)
    questions = dict.fromkeys(passage.question for passage in result.closest)
    closest = tuple(p for question in questions for p in of_question(result.closest, question)[:k])
    return replace(result, answers=answers, cited=without(result.cited), closest=closest)


def answer_lines(result: SearchResult, tree: Tree, *, verbose: bool = False) -> Iterator[str]:
    """Yield the answers, their sources with quotes, and what stays open with the passages that come closest.

    Args:
        verbose: whether all of each passage and each definition is shown, and the scores.
    """
    for note in result.sentences:
        yield styled(visible(note), "dim")
    code: set[int] = set()
    if result.answer and all(each.answer in result.answer for each in result.answers):
        alone = len(result.answers) == 1 and not result.open_questions
        for number, answer in enumerate(result.answers):
            if number:
                yield ""
            if not alone:
                yield styled(visible(first_line(answer.question)), "bold")
            yield from _one_answer(answer, tree, code, verbose=verbose)
        if not result.answers:
            yield from _text_lines(result.answer)
    elif result.answer:  # composed in words of its own
        yield from _text_lines(readable(result.cited or result.answer))
        for answer in result.answers:
            yield from (styled(visible(line), "dim") for line in earlier_lines(answer))
            if not answer.verified:
                yield styled(f"({NOT_IN_SOURCE}: {visible(first_line(answer.question))})", "bold")
    elif result.ended != "exhausted" or not result.open_questions:
        yield nothing(result, "no answer was found")
    sources = list(dict.fromkeys(source for answer in result.answers for source in answer.sources))
    if sources:
        yield ""
        yield styled("Sources", "bold")
    for source in sorted(sources, key=lambda source: source.number):
        yield from _source_lines(source, tree, is_shown=_is_shown(source, result, code), verbose=verbose)
    alone = len(result.open_questions) == 1 and not result.answer
    if result.open_questions and not alone and (result.answer or result.ended != "exhausted"):
        yield ""
    yield from open_question_lines(result, tree, verbose=verbose, alone=alone)
    yield from wish_lines(result.wishes)


def _one_answer(answer: QuestionAnswer, tree: Tree, code: set[int], *, verbose: bool) -> Iterator[str]:
    """Yield an answer: code with the numbers of its lines, everything else as a person reads it.

    Args:
        code: takes up the numbers of the sources that are shown as code.
    """
    source = next((each for each in answer.sources if each.node), None)
    lines = None if source is None else _code_lines(answer.answer, source, tree, verbose=verbose)
    if source is not None and lines:
        code.add(source.number)
        yield from lines
        yield styled("".join(f"[{each.number}]" for each in answer.sources if each.number), "cyan")
    else:
        yield from _text_lines(_entry_lines(answer) if not verbose else readable_answer(answer))
    for line in earlier_lines(answer, most=len(answer.earlier) if verbose else 1):
        yield styled(visible(line), "dim")
    if not answer.verified:
        yield styled(f"({NOT_IN_SOURCE})", "bold")


def _entry_lines(answer: QuestionAnswer) -> str:
    """Return an answer that is quoted of a page of a document as the entry in it that answers; else all of it."""
    text = readable_answer(answer)
    if not any(each.pages for each in answer.sources) or len(answer.sources) != 1:
        return text
    mark = "".join(f"[{each.number}]" for each in answer.sources if each.number)
    return entry_text(answer.question, text, mark)


def _code_lines(text: str, source: Quote, tree: Tree, *, verbose: bool) -> list[str] | None:
    """Return lines of code with their numbers, with `verbose` all of the definition; None for what is no code."""
    node = tree.find(source.node)
    is_document = markup_of("", source.place) in ("markdown", "rst", "html")
    if node is None or not source.quote or is_document or not is_code_text(node, source.quote):
        return None
    numbers = code_lines(tree, node.id, text)
    if not numbers:
        return None
    if verbose and (whole := tree.content(node)).count("\n") < _MOST_CODE_LINES:
        text, numbers = whole, code_lines(tree, node.id, whole) or {}
    width = max(len(str(number)) for number in numbers.values())
    shown: list[str] = []
    for at, line in readable_code(text, source.place):
        if not line.strip() and (not shown or not shown[-1]):
            continue
        number = numbers.get(at, "")
        shown.append(f"{number:>{width}}  {visible(line.expandtabs(4))}".rstrip() if line.strip() else "")
    return shown


def _is_shown(source: Quote, result: SearchResult, code: Collection[int]) -> bool:
    """Whether an answer is in the words of its source, so that it needs no quote to prove it."""
    return source.number in code or source.quote.strip() in result.answer


def _source_lines(source: Quote, tree: Tree, *, is_shown: bool, verbose: bool) -> Iterator[str]:
    number = f"[{source.number}] " if source.number else ""
    if not source.node:  # a person said it
        yield f"  {number}{styled(visible(source.title), 'cyan')}"
        return
    titled = _titled(tree, source.node, source.title)
    yield f"  {number}{styled(visible(source_place(tree, source)), 'cyan')}  {titled}"
    quote = [] if is_shown else readable(source.quote.strip("\n"), source.place).splitlines()
    most = len(quote) if verbose else _QUOTE_LINES
    yield from quoted_lines(quote[:most])
    if len(quote) > most:
        yield styled(f"  | … {len(quote) - most} more lines", "dim")


def open_question_lines(
    result: SearchResult, tree: Tree, *, verbose: bool = False, alone: bool = False
) -> Iterator[str]:
    """Yield each question that stays open and the passages that come closest to it, with an empty line between them.

    Args:
        verbose: whether all of a passage is shown, and its score.
        alone: whether the question goes without saying.
    """
    for number, question in enumerate(result.open_questions):
        closest = of_question(result.closest, question)
        if number:
            yield ""
        if not alone:
            yield f"{styled('Still open:', 'bold')} {visible(first_line(question))}"
        if result.ended == "exhausted":
            yield f"{_SILENT}. Closest passages:" if closest else _nothing_close(result)
        elif closest:
            yield "Closest passages:"
        for passage in closest:
            yield from _passage_lines(passage, tree, verbose=verbose)


def _passage_lines(passage: ClosestPassage, tree: Tree, *, verbose: bool) -> Iterator[str]:
    place = visible(passage_place(tree, passage))
    score = f"  {passage.score:.2f}" if verbose else ""
    yield f"  {styled(place, 'cyan')}  {_titled(tree, passage.node, passage.title)}{score}"
    whole = readable(passage.quote.strip("\n"), passage.place).splitlines()
    most = {"lines": _PASSAGE_LINES, "chars": _PASSAGE_CHARS}
    yield from quoted_lines(whole if verbose else telling(passage.question, whole, **most))


def _titled(tree: Tree, node_id: str, title: str) -> str:
    """Return a title with who said it; one that ends as if it had such words of ours stands in quotes."""
    node = tree.find(node_id)
    author = "" if node is None else said_by(node)
    said = (
        f"“{visible(title)}”" if title.rstrip().endswith(")") and _LIKE_OURS.search(title) else visible(title)
    )
    return f"{said} ({visible(author)})" if author else said


def _text_lines(text: str) -> Iterator[str]:
    for line in text.strip("\n").splitlines():
        yield visible(line.expandtabs(4))


def _nothing_close(result: SearchResult) -> str:
    return nothing(result, f"{_SILENT}, and no passage comes close")
