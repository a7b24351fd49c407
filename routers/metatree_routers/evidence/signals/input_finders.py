"""Inputs of tools: one that takes the id of a thing comes with one that finds the thing by its name.

A request says "Titanic", the tool that answers it takes a `movie_id`, and nothing in the request speaks of searching.
Where a request names something, what finds such things comes behind the best tools that take their id.

The names of tools and inputs tell it: results of tools have no schema in most interfaces, so what a tool returns is
not known.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from metatree_routers.evidence.signals.clause_words import Titles, quoted, title_of
from metatree_routers.index.fields import TOOL_KINDS
from metatree_routers.index.index import IndexSnapshot
from metatree_routers.index.node_table import NodeTable
from metatree_routers.index.postings import Postings
from metatree_routers.query.key_terms import NAME, key_terms_of
from metatree_routers.query.terms import expand

Floats = npt.NDArray[np.float32]
Nodes = npt.NDArray[np.intp]

WEIGHT = 0.8
"""Of how far the tool that takes an id stands out, for the one that finds it."""
TAKING = 3
"""Of so many of the best tools, the inputs are looked at."""
MOST_FINDING = 3
"""When more tools than this find a kind of thing, none of them is meant."""
LEVELS = 2
"""What finds a thing lies in the same group, or so many levels up in the same interface."""
MOST_CHARS = 4_000

_FINDING = ("search", "find", "lookup", "query", "resolve", "suggest", "autocomplete")
_INPUT = re.compile(r"\b([A-Za-z]+(?:[_-][A-Za-z]+)*?)(?:[_-](?:ids?|keys?|code|slug|uuid|symbol)|Ids?|ID)\b")
_SAYS_ID = re.compile(r"\bids?\b", re.IGNORECASE)


def names_something(question: str) -> bool:
    """Say whether a request names a thing and does not give its id.

    Example:
        >>> names_something("Who directed Titanic?"), names_something("Which movies are popular?")
        (True, False)
    """
    return not _SAYS_ID.search(question) and any(word.weight >= NAME for word in key_terms_of(question))


def inputs_of(text: str) -> list[tuple[str, str]]:
    """Return what a tool takes the id of, and the input's name, by the names of its inputs.

    Example:
        >>> inputs_of("GET /movie/{movie_id}/credits"), inputs_of("Parameters: trackId, page")
        ([('movie', 'movie_id')], [('track', 'trackId')])
    """
    inputs = {
        match.group(0): re.split(r"[_-]", match.group(1).lower())[-1] for match in _INPUT.finditer(text)
    }
    return [(thing, name) for name, thing in inputs.items()]


def add_finders(
    snapshot: IndexSnapshot,
    scores: Floats,
    question: str,
    texts: Callable[[Sequence[int]], Sequence[str]],
    candidates: Nodes,
    competing: npt.NDArray[np.bool_],
) -> dict[int, tuple[int, str]]:
    """Bring up the tools that find what the best ones take, in place.

    Args:
        texts: gives title and content of nodes by number.

    Returns:
        Tool -> (the tool whose input it finds, the name of the input).
    """
    table = snapshot.table
    tools = candidates[table.of_kind(TOOL_KINDS)[candidates]]
    best = tools[np.argsort(-scores[tools], kind="stable")[:TAKING]]
    found = finders(snapshot, best.tolist(), question, texts, competing)
    if not found:
        return {}
    middle = float(np.median(scores[competing]))
    gains = {tool: WEIGHT * max(0.0, float(scores[tool]) - middle) for tool in best.tolist()}
    for finder, (taking, _) in found.items():
        scores[finder] = max(float(scores[finder]), 0.0) + gains[taking]
    return found


def finders(
    snapshot: IndexSnapshot,
    best: Sequence[int],
    question: str,
    texts: Callable[[Sequence[int]], Sequence[str]],
    competing: npt.NDArray[np.bool_],
) -> dict[int, tuple[int, str]]:
    """Return the tools that find by name what these take the id of; nothing where the request names nothing.

    Args:
        best: tools by number, the best first.
        texts: gives title and content of nodes by number.

    Returns:
        Tool -> (the first tool whose input it finds, the name of the input).
    """
    if not best or not names_something(question):
        return {}
    table = snapshot.table
    finding = _titled(snapshot.postings({term for verb in _FINDING for term in expand(verb)}), len(table))
    finding &= table.of_kind(TOOL_KINDS) & competing
    found: dict[int, tuple[int, str]] = {}
    for tool, text in zip(best, texts(best), strict=True):
        for thing, name in inputs_of(text[:MOST_CHARS]):
            for other in _finders(snapshot, tool, thing, name, finding):
                found.setdefault(other, (tool, name))
    return found


def _finders(
    snapshot: IndexSnapshot, tool: int, thing: str, name: str, finding: npt.NDArray[np.bool_]
) -> Iterator[int]:
    """Yield the tools nearby that find such a thing and do not take its id themselves."""
    table = snapshot.table
    stem, whole = expand(thing), expand(name)[-1:]
    postings = snapshot.postings({*stem, *whole})
    tools = finding & _titled({term: postings[term] for term in stem if term in postings}, len(table))
    for term in whole:
        if term in postings:
            tools[postings[term]["node"]] = False
    near = _nearest(table, tool, np.flatnonzero(tools).astype(np.int32))
    if len(near) <= MOST_FINDING:
        yield from near.tolist()


def _titled(postings: Mapping[str, Postings], count: int) -> npt.NDArray[np.bool_]:
    """Say of every node whether its title has any of these terms: (count,)."""
    mask = np.zeros(count, dtype=bool)
    for rows in postings.values():
        mask[rows["node"][rows["title"] > 0]] = True
    return mask


def _nearest(table: NodeTable, tool: int, others: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Keep those below the nearest node above the tool that has any of them below it."""
    above = tool
    for _ in range(LEVELS):
        above = int(table.parent[above])
        if above < 0:
            break
        near = others[table.nearest(others, [above]) >= 0]
        if len(near):
            return near
    return others[:0]


def clauses(inputs: Mapping[int, tuple[int, str]], tool: int, titles: Titles) -> Iterator[str]:
    """Say which tool takes what this one finds."""
    if tool in inputs:
        taking, name = inputs[tool]
        yield f"finds the {quoted(name)} that {title_of(titles, taking)} takes"
