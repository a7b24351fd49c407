"""An answer in pieces: what it quotes of its sources, word for word, and what is said around that.

Code that was quoted is shown exactly as it stands there: as Markdown, `__init__` would be a bold *init*, and lines
would run into one another.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any, Final, Literal

_LEFT_OUT: Final = "…"
"""A line that stands for what is left out of a quote."""


@dataclass(frozen=True, slots=True)
class AnswerSegment:
    """A part of an answer.

    Args:
        kind: `said` by whoever answered, or quoted: `words` or `code`.
    """

    kind: Literal["said", "words", "code"]
    text: str
    quote: int | None = field(default=None, compare=False)
    """Place of the quote that it is from, in the order of the quotes."""


def answer_segments(paragraphs: Sequence[str], quotes: Sequence[str]) -> Iterator[AnswerSegment]:
    """Yield the pieces of an answer in their order; paragraphs that belong together are one.

    A paragraph is quoted when it is one of the quotes, or a part of one. Beside quoted code, what looks like code is of
    the same source: a signature, lines around `…`. So is a `…` below what is quoted.
    """
    held: AnswerSegment | None = None
    for piece in _segments(paragraphs, quotes):
        goes_on = piece.kind == "code" or (piece.kind == "words" and piece.text == _LEFT_OUT)
        if held is not None and goes_on and (held.kind, held.quote) == (piece.kind, piece.quote):
            held = replace(held, text=f"{held.text}\n\n{piece.text}")
            continue
        if held is not None:
            yield held if held.kind == "said" else replace(held, text=textwrap.dedent(held.text))
        held = piece
    if held is not None:
        yield held if held.kind == "said" else replace(held, text=textwrap.dedent(held.text))


def _segments(paragraphs: Sequence[str], quotes: Sequence[str]) -> Iterator[AnswerSegment]:
    """Yield the pieces, code as it is indented, one for each of its paragraphs."""
    own: list[str] = []
    code = next((number for number, quote in enumerate(quotes) if _is_code(quote)), None)
    place: tuple[str, int, int] | None = None
    last: AnswerSegment | None = None
    for paragraph in paragraphs:
        if place is not None and (end := _end_of(paragraph, place)) is not None:
            place = (place[0], place[1], end)
            continue
        match = _place(paragraph, quotes)
        if place is not None:
            yield (last := _exactly(place, quotes))
        place = match
        if match is None and last is not None and not own and paragraph.strip() == _LEFT_OUT:
            yield replace(last, text=paragraph if last.kind == "code" else _LEFT_OUT)
            continue
        is_code = match is None and code is not None and "```" not in paragraph and _is_code(paragraph)
        if match is None and not is_code:
            own.append(paragraph)
        elif own:
            yield AnswerSegment("said", "\n\n".join(own))
            own.clear()
        if is_code:
            yield (last := AnswerSegment("code", paragraph, code))
    if place is not None:
        yield _exactly(place, quotes)
    if own:
        yield AnswerSegment("said", "\n\n".join(own))


def with_marks(
    pieces: Iterable[AnswerSegment], numbers: Sequence[int]
) -> Iterator[tuple[AnswerSegment, int | None]]:
    """Yield the pieces of an answer, each with the `[1]` that stands behind it: the number of its quote, once in a row.

    Args:
        numbers: those of the quotes, in their order.
    """
    pieces = list(pieces)
    for piece, after in zip_longest(pieces, pieces[1:]):
        number = numbers[piece.quote] if piece.quote is not None and piece.quote < len(numbers) else 0
        goes_on = after is not None and after.quote == piece.quote
        yield piece, None if goes_on or not number else number


def quoted_sources(sources: Sequence[Mapping[str, Any]] | None) -> list[Mapping[str, Any]]:
    """Return the sources that an answer quotes, in the order of their numbers."""
    return sorted((one for one in sources or () if one.get("Quote")), key=lambda one: one.get("Number") or 0)


def quotes_of(sources: Sequence[Mapping[str, Any]] | None) -> list[str]:
    """Return what the sources of an answer quote, as the wire has them."""
    return [str(source["Quote"]) for source in quoted_sources(sources)]


def numbers_of(sources: Sequence[Mapping[str, Any]] | None) -> list[int]:
    """Return the numbers of what `quotes_of` returns; 0 for what has none."""
    return [int(source.get("Number") or 0) for source in quoted_sources(sources)]


def _end_of(paragraph: str, place: tuple[str, int, int]) -> int | None:
    """Return where a paragraph ends in a quote when it goes on where a place in it ended; else None."""
    quote, _, end = place
    text, rest = paragraph.strip(), quote[end:]
    begin = end + len(rest) - len(rest.lstrip())
    return begin + len(text) if text and quote.startswith(text, begin) else None


def _place(paragraph: str, quotes: Sequence[str]) -> tuple[str, int, int] | None:
    """Return the quote that has a paragraph in it, and from where to where; None when none has."""
    text = paragraph.strip()
    for quote in quotes:
        at = quote.find(text) if text else -1
        # A heading such as `docs:` may be in a quote by coincidence.
        if at >= 0 and (not text.endswith(":") or _is_whole_lines(quote, at, at + len(text))):
            return quote, at, at + len(text)
    return None


def _is_whole_lines(text: str, start: int, end: int) -> bool:
    before, after = text[:start].rpartition("\n")[2], text[end:].partition("\n")[0]
    return not before.strip() and not after.strip()


def _exactly(place: tuple[str, int, int], quotes: Sequence[str]) -> AnswerSegment:
    """Return a part of a quote as it is, indented as it is there."""
    quote, start, end = place
    line = quote.rfind("\n", 0, start) + 1
    text = quote[line if not quote[line:start].strip() else start : end]
    return AnswerSegment("code" if _is_code(text) else "words", text, quotes.index(quote))


_DOCUMENT: Final = re.compile(r"^(?:::[ \t]*$|\.\. [\w:-]+::|\S[^\n]*\n([-=~^])\1{3,}[ \t]*$)", re.MULTILINE)
"""What a document has beside the code in it: a mark or directive of reStructuredText, an underlined heading."""


def _is_code(text: str) -> bool:
    if _DOCUMENT.search(text):
        return False
    lines = text.splitlines()
    indented = sum(line.startswith(("  ", "\t")) for line in lines)
    marks = sum(line.rstrip().endswith(("{", "}", ";", "):", "(", ")", ",")) for line in lines)
    return indented * 3 >= len(lines) > 1 or marks * 2 > len(lines)
