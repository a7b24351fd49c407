"""What of a question only says that somebody asks, and what kind of answer is wanted."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from metatree_routers.text import expand, raw_tokens, terms

ASKING_WEIGHT = 0.15
"""Of a word of asking, of what its place in the question would give it."""

_ASKING = (
    "please could provide give tell show need want like help know look looking interested also additionally let get "
    "answer question state explain round decimal place define calculate compute base judgment use using useful "
    "something thing way able wonder curious sure possible follow one specific detail information primarily clearly "
    "outline utilize"
)

_AMOUNT = re.compile(
    r"\bhow (?:much|many|big|large|long|old|often)\b|\b(?:ratio|margin|percent\w*|rate|amount|total|growth|turnover)\b"
    r"|%|\bnumber of\b|year.over.year|\bFY ?\d",
    re.IGNORECASE,
)


@cache
def asking_terms() -> frozenset[str]:
    """Return the terms that say only that somebody asks."""
    return frozenset(terms(_ASKING))


def without_asking(weights: Mapping[str, float]) -> dict[str, float]:
    """Weigh down the words of asking; all of them stay when there are no others.

    Example:
        >>> from metatree_routers.sections import sections
        >>> weights = without_asking(sections("Could you please give me the weather?").term_weights())
        >>> round(weights["weather"], 2), round(weights["give"], 2)
        (3.0, 0.45)
    """
    asking = asking_terms()
    if asking.issuperset(weights):
        return dict(weights)
    return {term: weight * (ASKING_WEIGHT if term in asking else 1.0) for term, weight in weights.items()}


def words_asked(question: str) -> str:
    """Return the words of a question that are neither stop words nor words of asking; all of it when there are none.

    Example:
        >>> words_asked("Could you please give me the weather in Oslo?")
        'weather Oslo'
    """
    asking = asking_terms()
    said = [word for word in raw_tokens(question) if (found := expand(word)) and not asking.issuperset(found)]
    return " ".join(said) or question


def wants_amount(question: str) -> bool:
    """Say whether a question asks for a number.

    Example:
        >>> wants_amount("How many stores are there?"), wants_amount("Who opened the store?")
        (True, False)
    """
    return bool(_AMOUNT.search(question))
