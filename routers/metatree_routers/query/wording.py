"""What of a question only says that somebody asks, and what kind of answer is wanted."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from metatree_routers.query.terms import expand, raw_tokens, terms

ASKING_WEIGHT = 0.15
"""Of a word of asking, of what its place in the question would give it."""

MOST_STEPS = 12
"""Of a request, the first so many are compared by themselves."""
_LEAST_WORDS = 2
"""Of a step: one word alone is near to anything."""
_BETWEEN = re.compile(r"(?<=[.!?;])\s+|,?\s+(?:and|then|also|finally)\s+", re.IGNORECASE)

_PERSON = re.compile(
    r"\b[A-Z][a-z]+ (?:[A-Z]\.? )?[A-Z][A-Za-z-]+(?=['’]s\b)|\b(?:by|with) [A-Z][a-z]+ (?:[A-Z]\.? )?[A-Z][a-z]+"
)

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
_ADVICE = re.compile(
    r"\b(?:should I|(?:can|could|would|will) (?:you|I)|what are (?:some|the best|good)|what(?:['’]s| is) the best"
    r"|what (?:kind|type)s? of|any (?:tips|advice|suggestions|ideas)|recommend|suggest|advice|tips|help me"
    r"|I['’]?m (?:looking|trying|planning|thinking|considering)|how (?:do|can|could|to|should))\b",
    re.IGNORECASE,
)
_ON_THE_PAST = re.compile(
    r"^(?:when|where|who|how (?:many|much|long|often|old))\b|\bdid (?:I|you|we)\b|\bhave I\b|\bremind me\b",
    re.IGNORECASE,
)


@cache
def asking_terms() -> frozenset[str]:
    """Return the terms that say only that somebody asks."""
    return frozenset(terms(_ASKING))


def without_asking(weights: Mapping[str, float]) -> dict[str, float]:
    """Weigh down the words of asking; all of them stay when there are no others.

    Example:
        >>> from metatree_routers.query.parse import sections
        >>> weights = without_asking(sections("Could you please give me the weather?").term_weights())
        >>> round(weights["weather"], 2), round(weights["give"], 2)
        (3.0, 0.45)
    """
    question_words = asking_terms()
    if question_words.issuperset(weights):
        return dict(weights)
    return {
        term: weight * (ASKING_WEIGHT if term in question_words else 1.0) for term, weight in weights.items()
    }


def request_words(question: str) -> str:
    """Return the words of a question that are neither stop words nor words of asking; all of it when there are none.

    Example:
        >>> request_words("Could you please give me the weather in Oslo?")
        'weather Oslo'
    """
    return " ".join(_content_words(question)) or question


def request_steps(question: str) -> list[str]:
    """Return the words of each step that a request takes, as `request_words` does; empty when it is one step.

    Example:
        >>> request_steps("Please find flights to Rome. Then draw a chart and save the chart as a picture.")
        ['find flights Rome', 'draw chart', 'save chart picture']
        >>> request_steps("Could you please find flights to Rome?")
        []
    """
    steps = [words for part in _BETWEEN.split(question) if len(words := _content_words(part)) >= _LEAST_WORDS]
    return [" ".join(words) for words in steps[:MOST_STEPS]] if len(steps) > 1 else []


def _content_words(text: str) -> list[str]:
    question_words = asking_terms()
    return [
        word
        for word in raw_tokens(text)
        if (expanded := expand(word)) and not question_words.issuperset(expanded)
    ]


def names_person(question: str) -> bool:
    """Say whether a question names a person who has, does or goes along: two names with `'s`, `by` or `with`.

    Example:
        >>> names_person("Cate Blanchett's latest film"), names_person("a show directed by Catherine Hardwicke")
        (True, True)
        >>> names_person("the genre of Black Mirror"), names_person("the weather by hour")
        (False, False)
    """
    return bool(_PERSON.search(question))


def wants_amount(question: str) -> bool:
    """Say whether a question asks for a number.

    Example:
        >>> wants_amount("How many stores are there?"), wants_amount("Who opened the store?")
        (True, False)
    """
    return bool(_AMOUNT.search(question))


def wants_advice(question: str) -> bool:
    """Say whether a question asks for advice or help, and not for something that was said or has happened.

    Example:
        >>> wants_advice("Can you suggest some good books?"), wants_advice("When should I be there?")
        (True, False)
    """
    return _ADVICE.search(question) is not None and _ON_THE_PAST.search(question) is None
