"""Say why a file was found: what each signal says of it, what says most first.

Every clause names evidence that the ranking has counted; without that evidence it is not said.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from metatree_routers.evidence._ranking import Ranking
from metatree_routers.evidence.signals import commit_scores, linker, matching, paths, rerank
from metatree_routers.evidence.signals.clause_words import MOST_SPELLED
from metatree_routers.evidence.signals.rerank import Reranked
from metatree_routers.index.index import IndexSnapshot
from metatree_routers.query.parse import Sections

_LOOKED_AT = 60
"""Words of a question that are looked for, the heaviest first."""


def reasons(
    snapshot: IndexSnapshot, ranking: Ranking, files: Sequence[int], parts: Sections
) -> dict[int, str]:
    """Return a line for each file; empty when nothing is known."""
    heaviest = sorted(ranking.weights.items(), key=lambda item: (-item[1], item[0]))[:_LOOKED_AT]
    heavy_postings = snapshot.postings([term for term, _ in heaviest])
    postings = {term: heavy_postings[term] for term, _ in heaviest if term in heavy_postings}
    weights, spellings = parts.term_weights(), parts.spellings()
    best = _best_parts(snapshot, ranking, files)
    names = snapshot.ids(best.values())
    key_terms = {*parts.telling(ranking.weights, numbers=True)}
    seen = ranking.seen or Reranked()
    explanations = {}
    for file in files:
        part = best.get(file, -1)
        in_path = parts.telling(paths.path_words(snapshot.table, postings, weights, file))
        spelled_terms = set(in_path[:MOST_SPELLED])
        clauses = [
            *linker.file_clauses(ranking.mention_matches.get(file, ())),
            *commit_scores.named_clauses(ranking.named_commits.get(file, ())),
            *paths.clauses(in_path, spellings),
            *rerank.look_clauses(seen, snapshot, file, spellings, key_terms),
            *matching.file_clauses(
                snapshot.table,
                postings,
                parts,
                file,
                (part, names.get(part, "").partition("::")[2]),
                spelled_terms,
            ),
            *commit_scores.similar_clauses(ranking.commits.get(file, ())),
            *rerank.together_clauses(seen, file),
        ]
        explanations[file] = "; ".join(clauses)
    return explanations


def _best_parts(snapshot: IndexSnapshot, ranking: Ranking, files: Sequence[int]) -> dict[int, int]:
    """Return the part of each file that speaks most for it."""
    inside = np.flatnonzero(np.isin(snapshot.table.home, np.array(files, dtype=np.int32)))
    inside = inside[(ranking.parts[inside] > 0) & (snapshot.table.home[inside] != inside)]
    inside = inside[np.argsort(ranking.parts[inside], kind="stable")]
    return {int(snapshot.table.home[node]): int(node) for node in inside}  # the best is written last
