"""Names that lead from one text to the next: the second hop of a question.

A question that takes two steps ("who directed the film that …") often shares its words with the first only. What one
of the best texts names leads on, in two ways. Where it has the whole title of another node in it, written as a name,
that node comes behind it; of several nodes with that title, the best. And a text that has one of its names, and words
of the question that it has not, comes behind it too: it answers the rest of the question about what was named.

The name and the rest of the question are asked for in one text, as a product. Lost: words of the best hits as further
words of the question (drifts away).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from metatree_routers.evidence.signals.clause_words import Titles, quoted, title_of
from metatree_routers.evidence.signals.context import OWN, term_coverage
from metatree_routers.index.index import IndexSnapshot
from metatree_routers.index.postings import Postings
from metatree_routers.index.title_mentions import title_terms_in
from metatree_routers.query.terms import expand, raw_tokens

Floats = npt.NDArray[np.float32]
Nodes = npt.NDArray[np.intp]

NAMING = 2
"""Of so many of the best nodes, the text is looked through for names."""
TITLE_WEIGHT = 0.6
"""Of how far a node that names another stands out, for the other."""
MOST_TITLED = 8
"""A title of more nodes than this names none of them."""
NAME_WEIGHT = 0.7
"""The same for a node that has a name in its text and all of the rest of the question."""
MOST_WITH_NAME = 3
"""So many nodes are brought up for each that names them."""
COMMON = 0.05
"""A name in more than this share of all texts leads nowhere, unless it is in fewer than `LEAST_COMMON` texts."""
LEAST_COMMON = 5
MOST_CHARS = 1_500
_NAME = re.compile(r"[A-Z][\w'’-]+(?:\s+(?:of|the|and|de|la)?\s*[A-Z][\w'’-]+)*")
_PROSE = frozenset({"document", "article", "entity", "note", "page", "section", "passage", "memory"})


class NodeContents(Protocol):
    """Gives the texts of nodes by number."""

    def titles(self, numbers: Sequence[int]) -> list[str]: ...
    def contents(self, numbers: Sequence[int]) -> list[str]: ...


@dataclass(slots=True)
class MultiHop:
    """Which nodes were brought up by which, and why."""

    named: dict[int, int] = field(default_factory=dict)
    """Node -> the node that has its title in its text."""
    by_shared_name: dict[int, tuple[int, str]] = field(default_factory=dict)
    """Node -> (the node that has a name that it has too, the name)."""


def add_multi_hop(
    snapshot: IndexSnapshot,
    scores: Floats,
    weights: Mapping[str, float],
    postings: Mapping[str, Postings],
    texts: NodeContents,
    candidates: Nodes,
    competing: npt.NDArray[np.bool_],
) -> MultiHop:
    """Bring up what the best nodes lead to, behind them, in place.

    Args:
        scores: (n,) what speaks for each node.
        weights: of the question's terms, without those of asking.
        postings: of these terms.
        candidates: the nodes with evidence.
        competing: (n,) the nodes that may be found.
    """
    if not len(candidates):
        return MultiHop()
    best = candidates[np.argsort(-scores[candidates], kind="stable")[:NAMING]].tolist()
    middle = float(np.median(scores[competing]))
    is_prose = snapshot.table.of_kind(_PROSE)
    before = scores.copy()
    named: dict[int, tuple[float, int]] = {}
    by_shared_name: dict[int, tuple[float, int, str]] = {}
    for node, title, text in zip(best, texts.titles(best), texts.contents(best), strict=True):
        stands_out = max(0.0, float(before[node]) - middle)
        for other in titled_in(snapshot, text, before, node, competing):
            if TITLE_WEIGHT * stands_out > named.get(other, (0.0, 0))[0]:
                named[other] = TITLE_WEIGHT * stands_out, node
        if is_prose[node]:
            names = names_in(text[:MOST_CHARS], {*weights, *_terms(title)})
            for other, share, name in _with_shared_name(snapshot, node, names, weights, postings, competing):
                gain = NAME_WEIGHT * stands_out * share
                if gain > by_shared_name.get(other, (0.0, 0, ""))[0]:
                    by_shared_name[other] = gain, node, name
    for other in {*named, *by_shared_name}:
        gain, node = max(named.get(other, (0.0, other)), by_shared_name.get(other, (0.0, other))[:2])
        # Behind the text that leads to it, unless it came before that one by itself.
        scores[other] = max(before[other], min(before[other] + gain, np.nextafter(before[node], -np.inf)))
    return MultiHop(
        {other: node for other, (_, node) in named.items()},
        {other: (node, name) for other, (_, node, name) in by_shared_name.items()},
    )


def titled_in(
    snapshot: IndexSnapshot, text: str, scores: Floats, node: int, competing: npt.NDArray[np.bool_]
) -> list[int]:
    """Return the nodes whose title a text has in it; of several with the same title, the one with the best score."""
    titles = []
    for postings in snapshot.postings(set(title_terms_in(text))).values():
        nodes = postings["node"]
        others = nodes[competing[nodes]]
        if len(nodes) <= MOST_TITLED and len(others) and node not in nodes:
            titles.append(int(others[np.argmax(scores[others])]))
    return titles


def names_in(text: str, known: set[str]) -> dict[str, str]:
    """Return the terms of what is written like a name, with the word that each comes from.

    Args:
        known: terms that are left out.

    Example:
        >>> names_in("The wrestler Kenji is from Hiroshima.", {"kenji"})
        {'hiroshima': 'Hiroshima'}
    """
    names: dict[str, str] = {}
    for match in _NAME.finditer(text):
        for word in raw_tokens(match.group()):
            for term in expand(word):
                if term not in known:
                    names.setdefault(term, word)
    return names


def _with_shared_name(
    snapshot: IndexSnapshot,
    node: int,
    names: Mapping[str, str],
    weights: Mapping[str, float],
    postings: Mapping[str, Postings],
    competing: npt.NDArray[np.bool_],
) -> list[tuple[int, float, str]]:
    """Return the nodes that say most of the rest of the question beside a name, with a share in [0, 1] and the name."""
    table = snapshot.table
    rest = {
        term: weight
        for term, weight in weights.items()
        if term in postings and node not in postings[term]["node"]
    }
    most = max(LEAST_COMMON, COMMON * table.n_texts)
    shared = {term: rows for term, rows in snapshot.postings(names).items() if 1 < len(rows) <= most}
    if not rest or not shared:
        return []
    nodes = np.unique(np.concatenate([rows["node"] for rows in shared.values()])).astype(np.intp)
    nodes = nodes[competing[nodes] & (nodes != node)]
    answered = np.zeros(len(nodes), dtype=np.float32)
    total = 0.0
    for weight, covered in term_coverage(table, rest, postings, nodes):
        answered += weight * covered
        total += float(weight)
    terms = list(shared)
    heaviest = max(OWN.idf(len(rows), table.n_texts) for rows in shared.values())
    said_names = np.stack(
        [
            weight * covered
            for weight, covered in term_coverage(table, dict.fromkeys(terms, 1.0), shared, nodes)
        ]
    )
    share = np.sqrt(said_names.max(axis=0) / heaviest * answered / total)
    chosen = [at for at in np.argsort(-share, kind="stable")[:MOST_WITH_NAME].tolist() if share[at] > 0]
    return [
        (int(nodes[at]), float(share[at]), names[terms[int(said_names[:, at].argmax())]]) for at in chosen
    ]


def _terms(text: str) -> list[str]:
    return [term for word in raw_tokens(text) for term in expand(word)]


def clauses(
    named: Mapping[int, int], by_shared_name: Mapping[int, tuple[int, str]], node: int, titles: Titles
) -> Iterator[str]:
    """Say which node led to this one, and by which name; see `MultiHop`."""
    if node in named:
        yield f"named in {title_of(titles, named[node])}"
    if node in by_shared_name:
        naming, name = by_shared_name[node]
        yield f"has {quoted(name)}, which is named in {title_of(titles, naming)}"
