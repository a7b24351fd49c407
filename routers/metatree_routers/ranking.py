"""Rank all nodes of a tree for one question, without a model.

Scores are added, each a share of the best one: BM25 over a whole file (or page, or conversation: what is read as one
text), the best three of its parts by BM25 summed, and what the question names outright; for a report also the words
in the path, and the past commits like it. A part is ranked by its own score and by that of the whole it belongs to.
For a question of a sentence, static embeddings are added to the parts' scores: z-scores of the two are summed, over
the nodes that share words with the question.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from metatree_routers.bm25 import BM25
from metatree_routers.close_look import CloseLook, Seen
from metatree_routers.clues import Pointer, Resolver, by_home, find_clues
from metatree_routers.commit_index import MOST_FILES, SimilarCommit, nearest, votes
from metatree_routers.index import Reader
from metatree_routers.named_commits import shares
from metatree_routers.paths import path_scores
from metatree_routers.postings import Postings
from metatree_routers.records import Ints, Records
from metatree_routers.roles import Role, factors
from metatree_routers.sections import sections
from metatree_routers.text import term_counts

Floats = npt.NDArray[np.float32]

MAX_TERMS = 1_000
"""Of a question, those of the greatest weight."""

WHOLE = BM25(k1=2.0, b=0.85)
PART = BM25(k1=1.5, b=0.75)

WHOLE_TITLE_WEIGHT = 1.0
PART_WEIGHTS = (2.0, 1.0, 1.0)
"""Of title, about and content of a part."""
BEST_PARTS = 3
CLUE_WEIGHT = 0.2
PATH_WEIGHT = 0.5
"""Of the words of a report in the path of a file."""
TITLE_WEIGHT = 0.2
"""Of the title of a report alone, looked for in whole files: what the rest says cannot drown it."""
HISTORY_WEIGHT = 0.2
"""Of past commits like a report that touched a file, together."""
NEAREST_WEIGHT = 0.2
"""Of the one most like the report alone."""
NAMED_WEIGHT = 0.4
"""Of a past commit that the report names and that touched this file alone."""
MOST_CLUES = 4
"""Clues of a file that count, the strongest whole, each further one half as much."""
UNSAID = 0.1
"""How sure it is of the best file when no text has a word of the report, but a path or a commit has."""


@dataclass(slots=True)
class Ranking:
    """How much speaks for each node; index by node number."""

    scores: Floats
    """(n,) in [0, 1]."""
    reached: Floats
    """(n,) the best score at or below each node."""
    pointers: dict[int, list[Pointer]]
    """What the question names in each file, strongest first."""
    parts: Floats
    """(n,) what speaks for each part alone, in a unit of its own."""
    weights: dict[str, float]
    """Weight of each term of the question that some node has."""
    order: Ints
    """Nodes with evidence, best first."""
    named: dict[int, int] = field(default_factory=dict)
    """Node -> the node that names it, where that brought it up."""
    bridged: dict[int, tuple[int, str]] = field(default_factory=dict)
    """Node -> (the node with a name that it has too, the name), where that brought it up."""
    inputs: dict[int, tuple[int, str]] = field(default_factory=dict)
    """Tool -> (the tool whose input it finds, the name of the input), where that brought it up."""
    commits: dict[int, list[SimilarCommit]] = field(default_factory=dict)
    """Past commits like the question that touched a file, the most similar first; where a history was read."""
    named_commits: dict[int, list[SimilarCommit]] = field(default_factory=dict)
    """Past commits that the question names and that touched a file."""
    seen: Seen | None = None
    """What a closer look at the best files has found."""
    _speakers: Ints | None = None

    def speakers(self, records: Records, nodes: Sequence[int]) -> list[int]:
        """Return the node whose line says why, for each node: itself, or the best part of what is read as one text."""
        if self._speakers is None:
            speakers = np.arange(len(records), dtype=np.int32)
            parts = readable(records, self.order)
            parts = parts[(records.home_row[parts] >= 0) & ~readable_mask(records)[records.home[parts]]]
            speakers[records.home[parts[::-1]]] = parts[::-1]  # the best is written last
            self._speakers = speakers
        return [int(self._speakers[node]) for node in nodes]


@dataclass(slots=True)
class Matches:
    """What the posting lists say about all nodes."""

    whole: Floats
    """(h,) BM25 of each home."""
    parts: Floats
    """(n,) BM25 of each node's own text."""
    covered: Floats
    """(n,) summed weight of the question's terms that the node itself has."""
    covered_whole: Floats
    """(h,) the same for each home."""
    total: float
    """Summed weight of all terms of the question."""
    weights: dict[str, float]
    """Weight of each term that some node has: its own, times its inverse document frequency."""


def match(reader: Reader, weights: dict[str, float], postings: dict[str, Postings] | None = None) -> Matches:
    """Score every node and every home for weighted terms by BM25."""
    records = reader.records
    if len(weights) > MAX_TERMS:
        weights = dict(sorted(weights.items(), key=lambda item: -item[1])[:MAX_TERMS])
    if postings is None:
        postings = reader.postings(weights)
    n, n_homes = len(records), len(records.homes)
    out = Matches(
        np.zeros(n_homes, np.float32),
        np.zeros(n, np.float32),
        np.zeros(n, np.float32),
        np.zeros(n_homes, np.float32),
        0.0,
        {},
    )
    part_norms = _part_norms(records)
    home_norms, is_home = _home_norms(records), np.zeros(n, dtype=bool)
    is_home[records.homes] = True
    title, about, content = (np.float32(weight) for weight in PART_WEIGHTS)
    for term, weight in weights.items():
        found = postings.get(term)
        if found is None:
            out.total += weight * PART.idf(0, records.n_texts)
            continue
        nodes = found["node"]
        idf = PART.idf(len(nodes), records.n_texts)
        out.total += weight * idf
        out.weights[term] = weight * idf
        tf = np.asarray(
            title * found["title"] + about * found["about"] + content * found["content"], dtype=np.float32
        )
        out.parts[nodes] += np.float32(weight * idf) * PART.saturate(tf, part_norms[nodes])
        out.covered[nodes] += np.float32(weight * idf)
        if n_homes:
            _match_homes(out, records, found, is_home, home_norms, weight, idf)
    return out


def _match_homes(
    out: Matches,
    records: Records,
    found: Postings,
    is_home: npt.NDArray[np.bool_],
    norms: Floats,
    weight: float,
    idf: float,
) -> None:
    nodes = found["node"]
    rows = records.home_row[nodes]
    tf = found["content"] + np.where(
        is_home[nodes], np.float32(WHOLE_TITLE_WEIGHT) * found["title"], np.float32(0)
    )
    inside = (rows >= 0) & (tf > 0)
    if not inside.any():
        return
    sums = np.bincount(rows[inside], weights=tf[inside], minlength=len(records.homes)).astype(np.float32)
    holding = np.flatnonzero(sums)
    whole_idf = WHOLE.idf(len(holding), len(records.homes))
    out.whole[holding] += np.float32(weight * whole_idf) * WHOLE.saturate(sums[holding], norms[holding])
    out.covered_whole[holding] += np.float32(weight * idf)


def _part_norms(records: Records) -> Floats:
    lengths = np.asarray(records.lengths @ np.array(PART_WEIGHTS, dtype=np.float32), dtype=np.float32)
    with_content = records.alive & (records.lengths[:, 2] > 0)
    counted = lengths[with_content] if with_content.any() else lengths[records.alive]
    return PART.norms(lengths, float(counted.mean()) if len(counted) else 0.0)


def _home_norms(records: Records) -> Floats:
    inside = records.home_row >= 0
    lengths = np.bincount(
        records.home_row[inside], weights=records.lengths[inside, 2], minlength=len(records.homes)
    ).astype(np.float32)
    lengths += np.float32(WHOLE_TITLE_WEIGHT) * records.lengths[records.homes, 0]
    return WHOLE.norms(lengths, float(lengths.mean()) if len(lengths) else 0.0)


def best_parts(records: Records, parts: Floats) -> Floats:
    """Sum the best parts of each home: (h,)."""
    nodes = np.flatnonzero((parts > 0) & (records.home_row >= 0))
    nodes = nodes[np.argsort(-parts[nodes], kind="stable")]
    rows = records.home_row[nodes]
    by_row = np.argsort(rows, kind="stable")
    sorted_rows = rows[by_row]
    first = np.ones(len(rows), dtype=bool)
    first[1:] = sorted_rows[1:] != sorted_rows[:-1]
    position = np.arange(len(rows))
    rank = position - np.maximum.accumulate(np.where(first, position, 0)) if len(rows) else position
    kept = nodes[by_row[rank < BEST_PARTS]]
    return np.bincount(records.home_row[kept], weights=parts[kept], minlength=len(records.homes)).astype(
        np.float32
    )


def clue_scores(records: Records, pointers: dict[int, list[Pointer]]) -> Floats:
    """Score each home by what the question names in it: (h,); each thing counts once."""
    scores = np.zeros(len(records.homes), dtype=np.float32)
    for home, found in pointers.items():
        row = records.home_row[home]
        if row < 0:
            continue
        seen: set[str] = set()
        for pointer in found:
            if pointer.clue.text not in seen and len(seen) < MOST_CLUES:
                scores[row] += pointer.strength * pointer.clue.weight * 0.5 ** len(seen)
                seen.add(pointer.clue.text)
    return scores


def rank(
    reader: Reader,
    report: str,
    *,
    similar: Sequence[SimilarCommit] = (),
    named: Sequence[SimilarCommit] = (),
    look: CloseLook | None = None,
) -> Ranking:
    """Rank all nodes for a report; a question of a sentence or a few goes through `questions.rank_question`.

    Args:
        reader: one moment of an index.
        report: what is to be mended.
        similar: past commits like the report; what they touched is evidence.
        named: past commits that the report names.
        look: takes a closer look at the best files; None to go by words and commits alone.
    """
    records = reader.records
    parts = sections(report)
    weights = parts.term_weights()
    postings = reader.postings(weights)
    matches = match(reader, weights, postings)
    pointers = by_home(reader, Resolver(reader, find_clues(parts)).pointers())
    role_factors = factors(term_counts(parts.heading), is_report=True)[records.role]
    extra = np.float32(PATH_WEIGHT) * share_of_best(path_scores(records, postings, weights))
    if parts.is_long:
        title = {term: 1.0 + math.log(times) for term, times in term_counts(parts.title).items()}
        extra = extra + np.float32(TITLE_WEIGHT) * share_of_best(match(reader, title, postings).whole)
    commits = _by_file(reader, similar)
    if commits:
        extra = extra + np.float32(HISTORY_WEIGHT) * share_of_best(commit_scores(reader, similar, commits))
        extra = extra + np.float32(NEAREST_WEIGHT) * nearest_scores(reader, similar, commits)
    by_name = _by_file(reader, named)
    if by_name:
        extra = extra + np.float32(NAMED_WEIGHT) * named_scores(reader, named, by_name)
    seen = None
    if look is not None and len(records.homes):
        sums = whole_scores(records, matches, pointers, extra)
        seen = look(reader, parts, sums, role_factors[records.homes])
        extra = extra + seen.total(sums)
    scores = combine(records, matches, pointers, role_factors, by_whole=True, extra=extra)
    least = UNSAID if extra.any() else 0.0
    scores *= np.float32(max(least, confidence(records, matches, scores)))
    return Ranking(
        scores,
        records.best_below(scores),
        pointers,
        matches.parts,
        matches.weights,
        in_order(scores),
        commits=commits,
        named_commits=by_name,
        seen=seen,
    )


def _by_file(reader: Reader, similar: Sequence[SimilarCommit]) -> dict[int, list[SimilarCommit]]:
    """Sort commits by the files of the tree that they touched."""
    found: dict[int, list[SimilarCommit]] = {}
    numbers = reader.numbers({file for commit in similar for file in commit.files})
    for commit in similar:
        if len(commit.files) <= MOST_FILES:
            for file in commit.files:
                if file in numbers:
                    found.setdefault(numbers[file], []).append(commit)
    return found


def nearest_scores(reader: Reader, similar: Sequence[SimilarCommit], commits: Collection[int]) -> Floats:
    """Score each home by the one past commit most like the question that touched it: (h,)."""
    return _for_source(reader, commits, lambda ids: nearest(similar, ids))


def named_scores(reader: Reader, named: Sequence[SimilarCommit], files: Collection[int]) -> Floats:
    """Score each home by the past commits that the question names: (h,)."""
    return _for_source(reader, files, lambda ids: shares(named, ids))


def _for_source(
    reader: Reader, files: Collection[int], say: Callable[[Collection[str]], Mapping[str, float]]
) -> Floats:
    """Give homes the scores that are said for the ids of these files, if they are source: (h,)."""
    records = reader.records
    source = [file for file in files if records.role[file] == Role.SOURCE and records.home_row[file] >= 0]
    ids = reader.ids(source)
    said = say(ids.values())
    scores = np.zeros(len(records.homes), dtype=np.float32)
    for number in source:
        scores[records.home_row[number]] = said.get(ids[number], 0.0)
    return scores


def commit_scores(
    reader: Reader, similar: Sequence[SimilarCommit], commits: dict[int, list[SimilarCommit]]
) -> Floats:
    """Score each home by the past commits like the question that touched it: (h,), not normalised.

    Tests and change logs are touched by every commit, so they take no share of its votes.
    """
    records = reader.records
    ids = reader.ids(commits)
    source = [ids[number] for number in commits if records.role[number] == Role.SOURCE]
    said = votes(similar, source)
    scores = np.zeros(len(records.homes), dtype=np.float32)
    for number in commits:
        if records.home_row[number] >= 0:
            scores[records.home_row[number]] = said.get(ids[number], 0.0)
    return scores


def together(rankings: Sequence[Ranking]) -> Ranking:
    """Join the rankings of several questions: a node is as good as the best of them says."""
    if len(rankings) == 1:
        return rankings[0]
    scores = np.maximum.reduce([ranking.scores for ranking in rankings])
    weights: dict[str, float] = {}
    pointers: dict[int, list[Pointer]] = {}
    for ranking in rankings:
        for term, weight in ranking.weights.items():
            weights[term] = max(weight, weights.get(term, 0.0))
        for home, found in ranking.pointers.items():
            pointers.setdefault(home, []).extend(found)
    return Ranking(
        scores=scores,
        reached=np.maximum.reduce([ranking.reached for ranking in rankings]),
        pointers=pointers,
        parts=np.maximum.reduce([share_of_best(ranking.parts) for ranking in rankings]),
        weights=weights,
        order=in_order(scores),
        named={node: naming for ranking in rankings for node, naming in ranking.named.items()},
        bridged={node: by for ranking in rankings for node, by in ranking.bridged.items()},
        inputs={node: by for ranking in rankings for node, by in ranking.inputs.items()},
    )


def in_order(scores: Floats) -> Ints:
    """Give the nodes with a score, best first."""
    order = np.flatnonzero(scores > 0)
    return order[np.argsort(-scores[order], kind="stable")].astype(np.int32)


def readable(records: Records, nodes: Ints) -> Ints:
    """Keep what has text of its own, or nothing below it."""
    kept: Ints = nodes[readable_mask(records)[nodes]]
    return kept


def readable_mask(records: Records) -> npt.NDArray[np.bool_]:
    """Say of every node whether it has text of its own, or nothing below it: (n,)."""
    mask: npt.NDArray[np.bool_] = (records.lengths[:, 2] > 0) | records.is_leaf
    return mask


def whole_scores(
    records: Records, matches: Matches, pointers: dict[int, list[Pointer]], extra: Floats | None = None
) -> Floats:
    """Add up what speaks for each home: (h,), without the factors of their roles.

    Args:
        extra: (h,) what else speaks for each home.
    """
    whole = share_of_best(matches.whole) + share_of_best(best_parts(records, matches.parts))
    whole += np.float32(CLUE_WEIGHT) * clue_scores(records, pointers)
    return whole if extra is None else whole + extra


def combine(
    records: Records,
    matches: Matches,
    pointers: dict[int, list[Pointer]],
    role_factors: Floats,
    *,
    by_whole: bool,
    extra: Floats | None = None,
) -> Floats:
    """Add up what speaks for each node, as a share of what speaks for the best one.

    Args:
        role_factors: (n,) what each score is multiplied with, for the role of the file.
        by_whole: whether files decide, and parts come behind their file (a long report is about a file); else parts
            decide, and a file is as good as its best part (a question is answered by a part).
        extra: (h,) what else speaks for each home.
    """
    own = share_of_best(matches.parts * role_factors)
    if not len(records.homes):
        return own
    whole = whole_scores(records, matches, pointers, extra)
    whole = share_of_best(whole * role_factors[records.homes])
    inside = records.home_row >= 0
    rows = records.home_row[inside]
    best_in_home = best_of(rows, matches.parts[inside], len(records.homes))
    share = matches.parts[inside] / np.maximum(best_in_home[rows], np.float32(1e-9))
    scores = own.copy()
    scores[records.homes] = 0
    if by_whole:
        scores[inside] = np.float32(0.99) * whole[rows] * share
        scores[records.homes] = whole
    else:
        scores[inside] = np.float32(0.5) * own[inside] + np.float32(0.5) * whole[rows] * share
        scores[records.homes] = best_of(rows, scores[inside], len(records.homes))
    return share_of_best(scores)


def best_of(rows: Ints, values: Floats, count: int) -> Floats:
    """Give the greatest value of each row: (count,)."""
    best = np.zeros(count, dtype=np.float32)
    np.maximum.at(best, rows, values)
    return best


def share_of_best(scores: Floats) -> Floats:
    """Divide by the greatest score; zeros stay zeros."""
    best = float(scores.max()) if len(scores) else 0.0
    return scores / np.float32(best) if best > 0 else np.zeros_like(scores)


def confidence(records: Records, matches: Matches, scores: Floats) -> float:
    """Say how much of the question the best node covers, in [0, 1], so that scores can be compared across questions.

    The share of the question's weight (term weights times inverse document frequency; a word that no node has
    counts as the rarest) that is in the text of the best node, or of the file that it is in.
    """
    if matches.total <= 0 or not len(scores):
        return 0.0
    best = int(np.argmax(scores))
    covered = float(matches.covered[best])
    if records.home_row[best] >= 0:
        covered = max(covered, float(matches.covered_whole[records.home_row[best]]))
    return math.sqrt(min(1.0, covered / matches.total))
