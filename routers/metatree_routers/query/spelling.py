"""Words that are in no text, one or two edits from words that are: what may be meant by a slip of the keyboard.

The distance is Damerau's, as optimal string alignment: an insertion, a deletion, another letter, or two letters that
have changed places. Terms are stems and lie in order, so that a word is compared with the few that begin as it does.
Lost: an index of deletions (SymSpell), which takes as much as the vocabulary and has to follow every change of the
tree; and a library (rapidfuzz), for a comparison of some hundred words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from metatree_routers.query.terms import STOP_WORDS

LEAST_LETTERS = 4
"""Shorter words are one edit from many."""
TWO_EDITS = 9
"""Letters of a word that two edits may be in."""
_OFTEN = 3
"""Texts that have what a word of the fewest letters is taken for."""
_LONGEST = 24
_PLAIN = re.compile(r"[^\W\d_]+")
_ENDING = 4
"""Letters that a stem may lack of its word."""
_MOST_STEMS = 40
_QUESTION_WORDS = frozenset({"which", "what", "when", "where", "there", "does", "about", "should"})


def distance(one: str, other: str, most: int) -> int:
    """Return how many edits lead from a word to another, `most + 1` for more.

    Example:
        >>> distance("recursoin", "recursion", 2), distance("conect", "connect", 2), distance("price", "parser", 2)
        (1, 1, 3)
    """
    if abs(len(one) - len(other)) > most:
        return most + 1
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, start=1):
        earlier, before, row = before, row, [i]
        for j, b in enumerate(other, start=1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == other[j - 2] and one[i - 2] == b:
                cost = min(cost, earlier[j - 2] + 1)
            row.append(cost)
        if min(row) > most:
            return most + 1
    return row[-1]


def may_be_misspelt(word: str) -> bool:
    """Whether a word is one that may be corrected: letters alone, and neither short nor an acronym.

    Example:
        >>> [may_be_misspelt(word) for word in ("recursoin", "left_recursion", "utf8", "MTU", "ned")]
        [True, False, False, False, False]
    """
    return (
        LEAST_LETTERS <= len(word) <= _LONGEST and _PLAIN.fullmatch(word) is not None and not word.isupper()
    )


def most_edits(word: str, *, named: bool) -> int:
    """Return how many edits a word may be away from what is meant; names are nearer to each other than words."""
    return 2 if len(word) >= TWO_EDITS and not named else 1


def beginnings(word: str) -> tuple[str, ...]:
    """Return the letters with which what is meant may begin: a slip is rarely another first letter."""
    return tuple(dict.fromkeys((word[0], word[1])))


def near_stems(word: str, stems: Iterable[str], most: int) -> list[str]:
    """Return the stems of which a word may be a misspelt form, the nearest first.

    Args:
        stems: those that begin as the word may; a stem may lack the ending of its word.
    """
    letters = set(word)
    near: list[tuple[int, int, str]] = []
    for stem in stems:
        if (
            not 3 <= len(stem) <= len(word) + most
            or len(stem) < len(word) - most - _ENDING
            or not stem.isalpha()
        ):
            continue
        own = set(stem)
        if len(own - letters) > most:
            continue
        cuts = {word[: len(stem) + more] for more in range(-most, most + 1)} | {word}
        # An edit brings in one letter, or takes one out.
        near_cuts = [cut for cut in cuts if cut and len(set(cut) - own) <= most >= len(own - set(cut))]
        edits = min((distance(cut, stem, most) for cut in near_cuts), default=most + 1)
        if edits <= most:
            near.append((edits, abs(len(word) - len(stem)), stem))
    return [stem for _, _, stem in sorted(near)[:_MOST_STEMS]]


def meant(word: str, forms: Mapping[str, int], most: int) -> str | None:
    """Return the nearest of some words to a word, the most frequent of equally near ones; None when none is near.

    A letter that was left out or typed twice, and two that changed places, are likelier than another letter: `vlid` is
    `valid` and not `void`.

    Args:
        word: in lower case.
        forms: words as they are written, with how many texts have each.
    """
    best = min(
        (
            (
                distance(word, form.lower(), most),
                len(form) == len(word) and sorted(form.lower()) != sorted(word),
                form[0].lower() != word[0],
                -times,
                form,
            )
            for form, times in forms.items()
            if not word.startswith(form.lower())  # `dealt` is no slip of `deal`
            and (len(word) > LEAST_LETTERS or (times >= _OFTEN and form[0].lower() == word[0]))
        ),
        default=None,
    )
    return None if best is None or best[0] > most else best[-1]


def little_word(word: str) -> str | None:
    """Return the question word that a word is one edit from: `wich`.

    Example:
        >>> little_word("wich"), little_word("rich")
        ('which', None)
    """
    near = (
        other
        for other in sorted(_QUESTION_WORDS)
        if distance(word, other, 1) == 1 and set(word) <= set(other) and word not in STOP_WORDS
    )
    return next(near, None)


def replaced(question: str, found: Mapping[str, str]) -> str:
    """Return a question with words in the place of others, in the same capitals.

    Example:
        >>> replaced("Does Modgramar suport it?", {"Modgramar": "modgrammar", "suport": "support"})
        'Does Modgrammar support it?'
    """

    def put(match: re.Match[str]) -> str:
        new = found.get(match.group(), match.group())
        return new[:1].upper() + new[1:] if match.group()[:1].isupper() else new

    return re.sub(r"\w+", put, question)
