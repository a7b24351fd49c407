"""Rank the nodes of a tree of code for a question: files by `signals.code_files`, what is in a file by its words."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from metatree_routers.evidence._ranking import CodeLook, Ranking, confidence, in_order, readable_mask
from metatree_routers.evidence.signals.code_files import Importers, file_scores, named_nodes
from metatree_routers.evidence.signals.linker import Linker, by_home
from metatree_routers.evidence.signals.matching import best_of, match, share_of_best
from metatree_routers.index.index import IndexSnapshot
from metatree_routers.index.node_table import Ints
from metatree_routers.index.roles import factors
from metatree_routers.query.mentions import find_mentions
from metatree_routers.query.names import name_parts, names_asked, squashed
from metatree_routers.query.parse import sections
from metatree_routers.query.wording import without_asking

BEHIND_NAMED = 0.9
"""What all other scores are multiplied with where the question is the name of a definition: its class is behind it."""
NAMED_PART = 0.5
"""What a definition gains within its file for being named, of what the best definition of all has."""


def rank_code(
    snapshot: IndexSnapshot, question: str, links: Importers | None, inside: npt.NDArray[np.bool_]
) -> Ranking:
    """Rank the nodes for a question.

    Args:
        links: knows which files are imported; None to do without.
        inside: (n,) the nodes that compete.
    """
    table, parts = snapshot.table, sections(question)
    weights = without_asking(parts.term_weights())
    asked = names_asked(question)
    named = {term[1:]: rows for term, rows in snapshot.postings([f":{name}" for name in asked]).items()}
    heaviest = max(weights.values(), default=1.0)
    for name in named:
        if len(asked[name]) > 1:  # it is one term of the text, where the question has several
            joined = {name, "_".join(asked[name]).lower()} - weights.keys()
            weights.update(dict.fromkeys(joined, heaviest))
    matches = match(snapshot, weights, snapshot.postings(weights))
    matches.parts[~inside] = 0
    surely = named_nodes(table, named) * inside
    role_factors = factors(parts.heading, of="code")[table.role]
    rows, scores = table.home_row, np.zeros(len(table), dtype=np.float32)
    # Notes and whatever else lies outside files compete with these by their words.
    plain = ((rows < 0) | table.of_kind({"memory"})) & inside & readable_mask(table)
    said = matches.parts * role_factors
    scores[plain] = share_of_best(said * (plain | (rows >= 0)))[plain]
    if len(table.homes):
        whole = file_scores(snapshot, matches, weights, asked, surely, role_factors[table.homes], links)
        gain = np.float32(NAMED_PART * float(matches.parts.max()))
        own = np.asarray(matches.parts + gain * surely, dtype=np.float32)
        own[table.homes] = 0
        if scores.any():
            # A note that has more of the question, or says it more, than any part of a file comes before files.
            parts_of = (rows >= 0) & ~plain
            own_best = (said[parts_of].max(initial=0), matches.covered[parts_of].max(initial=0))
            noted = (said[plain].max(), matches.covered[plain].max())
            whole *= np.float32(min(1.0, *(a / b for a, b in zip(own_best, noted, strict=True) if b > 0)))
        below = np.flatnonzero((rows >= 0) & (own > 0) & ~plain)
        best = best_of(rows[below], own[below], len(table.homes))
        scores[below] = whole[rows[below]] * own[below] / best[rows[below]]
        scores[table.homes] = whole
    scores[~inside] = 0
    scores = share_of_best(scores) * np.float32(confidence(table, matches, scores))
    if len(defined := _definitions(snapshot, question, inside)):
        own = share_of_best(scores[defined])
        scores *= np.float32(BEHIND_NAMED)
        scores[defined] = BEHIND_NAMED + (1.0 - BEHIND_NAMED) * (own if own.any() else 1.0)
    mentioned = by_home(snapshot, Linker(snapshot, find_mentions(parts)).matches())
    about = {home for home, found in mentioned.items() if any(each.node == home for each in found)}
    if (nodes := named.get(squashed(question))) is not None:
        about.update(np.intersect1d(nodes["node"], table.homes).tolist())
    return Ranking(
        scores,
        table.best_below(scores),
        mentioned,
        matches.parts,
        matches.weights,
        in_order(scores),
        code=CodeLook(surely, matches.covered, matches.covered_whole, frozenset(about)),
    )


def _definitions(snapshot: IndexSnapshot, question: str, inside: npt.NDArray[np.bool_]) -> Ints:
    """Return the definitions whose name a question is, or of the longest end of a qualified one that something has."""
    parts = name_parts(question)
    # The last part of a qualified name alone is any member's.
    terms = ["=" + ".".join(parts[start:]) for start in range(len(parts) - (len(parts) > 1))]
    postings = snapshot.postings(terms)
    found = (postings[term]["node"] for term in terms if term in postings)
    return next((nodes for each in found if len(nodes := each[inside[each]])), np.zeros(0, dtype=np.int32))
