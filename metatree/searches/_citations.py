"""Numbers for sources: `[1]` stands behind what a source supports, in the order in which the text uses them.

A source is found in a text by the words of its answer or its quote as they stand; where a model wrote the text anew,
behind the sentence that shares most words with it. A source that nothing shown rests on gets no number, and is not
listed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

from metatree.searches._state import Part

_LEAST_SHARED = 0.4
"""Of the words of a sentence, or of an answer, that rests on a source."""
_SENTENCE = re.compile(r"[^\n]+?(?:[.!?…](?=\s|$)|$|(?=\n))")
_TO_END = re.compile(r"[^\n]*?(?:[.!?…](?=\s|$)|(?=\n|$))")
_WORD = re.compile(r"\w+")
_INDENTED = re.compile(r" {4}|\t")

Span = tuple[int, int]


def support_of(text: str, part: Part, *, is_own: bool) -> Span | None:
    """Return where a text rests on a source; None where it does not.

    Args:
        is_own: whether the text was written with this source as the one that answers.
    """
    for words in (part.answer.strip(), part.quote.strip()):
        at = text.find(words) if words else -1
        if at >= 0:
            end = at + len(words)
            rest = None if words[-1] in ".!?…" else _TO_END.match(text, end)
            # An answer may say those before it once more; its own words are those that it quotes.
            own = max(at, text.find(part.quote.strip(), at, end))
            return own, end if rest is None else rest.end()
    said = set(_words(f"{part.answer} {part.quote}"))
    best, where = 0.0, (0, len(text.rstrip()))
    for sentence in _SENTENCE.finditer(text):
        words_there = set(_words(sentence[0]))
        share = len(words_there & said) / len(words_there) if words_there else 0.0
        if share > best:
            best, where = share, (sentence.start(), sentence.end())
    return where if is_own or best >= _LEAST_SHARED else None


def cited(text: str, spans: Iterable[tuple[Span, int]]) -> str:
    """Return a text with the numbers of its sources behind what rests on them.

    Example:
        >>> cited("It is red. It is round.", [((0, 10), 1), ((11, 23), 2)])
        'It is red. [1] It is round. [2]'
    """
    at: dict[int, list[int]] = {}
    begins: dict[int, int] = {}
    for (start, end), number in spans:
        if number not in at.setdefault(end, []):
            at[end].append(number)
        begins[end] = min(start, begins.get(end, start))
    cuts = [0, *sorted(at), len(text)]
    pieces = []
    for start, end in pairwise(cuts):
        pieces.append(text[start:end])
        if end in at:
            numbers = "".join(f"[{number}]" for number in sorted(at.pop(end)))
            # In a line of code it would be a part of it.
            last = text.rfind("\n", begins[end], end)
            is_code = last >= 0 and _INDENTED.match(text, last + 1, end)
            pieces.append(f"\n{numbers}" if is_code else f" {numbers}")
    return "".join(pieces)


def numbers_of(spans: Sequence[tuple[Span, tuple[str, str]]]) -> dict[tuple[str, str], int]:
    """Number sources in the order in which a text uses them; a source is a node and its quote."""
    ordered = sorted(spans, key=lambda pair: pair[0])
    return {source: number for number, source in enumerate(dict.fromkeys(s for _, s in ordered), start=1)}


def _words(text: str) -> list[str]:
    return [word for word in _WORD.findall(text.casefold()) if len(word) > 2 or word.isdecimal()]
