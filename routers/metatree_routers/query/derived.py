"""Words that name who or what does a thing, and the thing that is done: `pager` and `page`, `printer` and `print`.

The stemmer keeps them apart, and has to in texts: most words in -er are not derived so (`number`, `letter`). Headings
are other: they name a thing (`Pager Support`), and a question says what is done with it (`How do I page long output?`).
"""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from typing import Final

from metatree_routers.query.terms import expand, raw_tokens

_LEAST_CHARS: Final = 4
_MOST_CHARS: Final = 40


@lru_cache(maxsize=64)
def derived_terms(question: str) -> dict[str, str]:
    """Return the terms of words that are derived from those of a question, or that these are from, with its own.

    Example:
        >>> derived_terms("How do I page what the parser prints?")
        {'pager': 'page', 'pars': 'parser', 'par': 'parser', 'printer': 'print'}
    """
    own = {term for raw in raw_tokens(question) for term in expand(raw)}
    found: dict[str, str] = {}
    for raw in raw_tokens(question):
        word, terms = raw.lower(), expand(raw)
        if len(terms) != 1 or not _LEAST_CHARS <= len(word) <= _MOST_CHARS or not word.isalpha():
            continue
        for other in _derived(word, terms[0]):
            for term in expand(other):
                if term not in own:
                    found.setdefault(term, terms[0])
    return found


def with_originals(terms: Collection[str], derived: dict[str, str]) -> set[str]:
    """Return the terms of a heading, and those of the question that its words are derived from."""
    return {*terms, *(derived[term] for term in terms if term in derived)}


def _derived(word: str, stem: str) -> list[str]:
    if word.endswith("er"):
        return [word[:-1], word[:-2]]
    base = word if word == stem or word.endswith("e") else stem
    return [base + "r" if base.endswith("e") else base + "er"]
