"""Phrases: two words of a report that stand next to each other in a file as well.

Words alone say what a text is about; two in a row are quoted, named or coined: the text of a message, a line of code,
the name that people have for a thing. A phrase counts the more the fewer of the looked-at files have it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from metatree_routers.index.vocabulary import Vocabulary
from metatree_routers.query.parse import PROSE, WEIGHTS, Sections
from metatree_routers.query.terms import terms

Numbers = npt.NDArray[np.int64]
_SHIFT = 32


def phrases_of(parts: Sections) -> dict[tuple[str, str], float]:
    """Return the pairs of neighbouring terms of a report, each with the weight of its best section.

    Example:
        >>> phrases_of(Sections(title="Cookies of the session"))
        {('cooki', 'session'): 3.0}
    """
    phrases: dict[tuple[str, str], float] = {}
    for section, text in parts.texts().items():
        for line in [text] if section == PROSE else text.split("\n"):
            line_terms = terms(line)
            for pair in pairwise(line_terms):
                phrases[pair] = max(phrases.get(pair, 0.0), WEIGHTS[section])
    return phrases


@dataclass(frozen=True, slots=True)
class PhraseScores:
    """What phrases say for some files."""

    scores: npt.NDArray[np.float64]
    """(files,) not normalised."""
    pairs: Sequence[Sequence[tuple[str, str]]]
    """The phrases of each file, the heaviest first."""


def phrase_scores(phrases: Mapping[tuple[str, str], float], files: Sequence[Iterable[str]]) -> PhraseScores:
    """Score files by the phrases of a report that they have; each counts once.

    Args:
        phrases: with their weights, see `phrases_of`.
        files: the texts of each file; a phrase does not reach from one into the next.
    """
    words = Vocabulary()
    keys = [words.number(a) << _SHIFT | words.number(b) for a, b in phrases]
    phrase_words = {number for pair in phrases for number in map(words.number, pair)}
    encoded = [[np.fromiter(words.encode(text), dtype=np.int64) for text in texts] for texts in files]
    expand = _Expansions(*words.expand_all())
    wanted = np.zeros(len(words) + 1, dtype=bool)
    wanted[list(phrase_words)] = True
    order = np.argsort(np.array(keys, dtype=np.int64))
    ordered = np.array(keys, dtype=np.int64)[order]
    has = np.zeros((len(files), len(keys)), dtype=bool)
    for row, texts in enumerate(encoded):
        for chunks in texts:
            word_numbers = expand(chunks)
            if len(word_numbers) < 2 or not len(ordered):
                continue
            both = wanted[word_numbers[:-1]] & wanted[word_numbers[1:]]
            pairs = np.unique(word_numbers[:-1][both] << _SHIFT | word_numbers[1:][both])
            at = np.searchsorted(ordered, pairs)
            at[at == len(ordered)] = 0
            has[row, order[at[ordered[at] == pairs]]] = True
    holders = has.sum(axis=0)
    weights = np.fromiter(phrases.values(), dtype=np.float64, count=len(phrases))
    weights = weights * np.log(1.0 + len(files) / (holders + 0.5))
    names = list(phrases)
    pairs_of_files = [
        [names[i] for i in sorted(np.flatnonzero(row).tolist(), key=lambda i: -weights[i])] for row in has
    ]
    return PhraseScores(has @ weights, pairs_of_files)


class _Expansions:
    """The terms of chunks, as arrays."""

    def __init__(self, flat: Sequence[int], counts: Sequence[int]) -> None:
        self._counts: Numbers = np.array(counts, dtype=np.int64)
        self._starts: Numbers = np.cumsum(self._counts) - self._counts
        self._flat: Numbers = np.array(flat, dtype=np.int64)

    def __call__(self, chunks: Numbers) -> Numbers:
        """Return the numbers of the terms of these chunks, one after the other."""
        counts = self._counts[chunks]
        before = np.cumsum(counts) - counts
        places = np.repeat(self._starts[chunks] - before, counts) + np.arange(int(counts.sum()))
        numbers: Numbers = self._flat[places]
        return numbers
