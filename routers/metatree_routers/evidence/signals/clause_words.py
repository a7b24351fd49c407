"""What the clauses of reasons are made of: which terms a node has, and how they are spelled and quoted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from metatree_routers.index.postings import Postings

MOST_WORDS = 5
MOST_SPELLED = 4

Titles = Callable[[Sequence[int]], Mapping[int, str]]
"""Gives the titles of nodes by number."""


def has(postings: Mapping[str, Postings], term: str, node: int) -> bool:
    """Say whether a node has a term."""
    rows = postings.get(term)
    return rows is not None and bool(np.any(rows["node"] == node))


def words(terms: Sequence[str], spelled: Mapping[str, str]) -> str:
    """Return the first terms as the question spells them, each once."""
    return ", ".join(dict.fromkeys(quoted(spelled[term]) for term in terms[:MOST_WORDS]))


def spelled(terms: Iterable[str], spellings: Mapping[str, str]) -> str:
    """Return the first terms as a report spells them, each once, without quotes."""
    return ", ".join(list(dict.fromkeys(spellings.get(term, term) for term in terms))[:MOST_SPELLED])


def quoted(text: str) -> str:
    """Return the beginning of a text in quotes."""
    return f"“{' '.join(text.split())[:60]}”"


def title_of(titles: Titles, node: int) -> str:
    """Return the title of a node in quotes."""
    return quoted(titles([node]).get(node, ""))
