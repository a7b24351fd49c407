"""Rank the passages that may answer a question, and say how likely the best one does.

Two small models whose numbers are in `_model`: a ranker, which orders forty candidates (a logistic model over the list:
one of them is right), and a claim model, which turns the features of its best one into a probability. Both are fitted
by `python -m benchmarks.answers.fit`, on questions over packages that nobody tuned on.

Source: the ranker is the list-wise loss of Cao et al. 2007 ("Learning to Rank: From Pairwise Approach to Listwise
Approach") with one linear layer. Lost: adding scores by hand (half as many right ones first), boosted trees, and a
threshold on BM25, which cannot tell a question that nothing answers from one in other words.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from metatree.protocols import Passage
from metatree_routers.embeddings.static import Embedder
from metatree_routers.passages._cut import LONG_CHARS, heading_end
from metatree_routers.passages._model import BIAS, CLAIM, RANKER, TURN_BIAS
from metatree_routers.passages.asked import Asked
from metatree_routers.passages.candidates import Text, candidates_of, weigh
from metatree_routers.passages.features import FEATURES, Floats, PassageCandidate, features
from metatree_routers.passages.pieces import is_name_of_thing, piece_at
from metatree_routers.passages.statement import whole_statement
from metatree_routers.query.names import name_parts

_CLAIMED_BY = [
    number
    for number, name in enumerate(FEATURES)
    if name
    not in {
        "distinct_words", "soft_cover_of_best", "name_missing", "cover", "defines", "is_test",
        "evidence_of_best",
    }
]  # fmt: skip
"""Features that say something of whether the best candidate answers; the others only say which is the best."""
_TITLE = FEATURES.index("title_cosine")
_SPREAD = 0.05
"""Of cosines of titles, added so that small differences stay small."""
_ALONE = 2.0
"""Lead of a candidate that has no rival."""
_NAMED = 0.9
"""How likely at least a definition answers the question that is its name, and nothing else."""
_JOINED = 3
"""Of the first so many, those that go on where the first ends are part of the answer."""
_GAP = 3
"""Lines that may lie between them."""
_MOST_CHARS = 6_000
_LONG_SHARE = 0.5
"""Of how likely a longer passage answers: a text in one line has most words of any question, and shows no answer."""
_MOST_LINES = 24
"""Lines of an answer that is made of several."""


def rank_passages(
    asked: Asked, texts: Collection[Text], df: Mapping[str, int], n: int, embedder: Embedder | None
) -> list[tuple[PassageCandidate, float]]:
    """Return the candidates with how likely each answers, in [0, 1], the likeliest first.

    Args:
        texts: where to look.
        df: in how many texts of the tree each term of the question is.
        n: how many texts the tree has.
        embedder: for nearness in meaning; None for words alone.
    """
    weights = weigh(asked, df, n)
    by_node = {text.node.id: text for text in texts}
    candidates = candidates_of(asked, texts, weights, embedder)
    if not candidates:
        return []
    rows = features(asked, candidates, weights, embedder)
    scores = rows @ RANKER
    named = _named(asked, candidates, by_node)
    if named is not None:
        scores[named] = scores.max() + _ALONE
    order = np.argsort(-scores, kind="stable")
    ordered = [candidates[number] for number in order]
    is_turn = by_node[ordered[0].node].node.kind == "turn"
    best = claim_probability(claim_features(asked, ordered, rows[order], scores[order]), is_turn=is_turn)
    if named is not None:
        best = max(best, _NAMED)
    ordered[0] = joined(ordered, by_node[ordered[0].node])
    if len(ordered[0].text) > _MOST_CHARS:
        best *= _LONG_SHARE
    likelihood = best * np.exp(scores[order] - scores[order[0]])
    return list(zip(ordered, map(float, likelihood), strict=True))


def _named(asked: Asked, candidates: Sequence[PassageCandidate], texts: Mapping[str, Text]) -> int | None:
    """Return the number of the beginning of the one definition whose name the question is, None where it is no name."""
    name = ".".join(name_parts(asked.text))
    if not name:
        return None
    ids = {id_ for id_ in texts if "::" in id_ and _is_called(id_.rpartition("::")[2], name)}
    of_it = [number for number, each in enumerate(candidates) if each.node in ids]
    return min(of_it, key=lambda number: candidates[number].start) if len(ids) == 1 and of_it else None


def _is_called(qualified: str, name: str) -> bool:
    """Whether a definition has a name, or one that says more of its place: `Session.send`, `sessions.Session.send`."""
    own = qualified.removesuffix(".<class>")  # what stands in a class outside of its methods
    return f".{own}".endswith(f".{name}") or ("." in own and name.endswith(f".{own}"))


def joined(ordered: Sequence[PassageCandidate], text: Text) -> PassageCandidate:
    """Return the first candidate, with the next best where they go on or lead up to it: an answer was cut off there.

    Args:
        text: which it is of.
    """
    best = ordered[0]
    begins, ends = piece_at(text.node, text.content, best.start)
    for other in ordered[1:_JOINED]:
        first, last = min(best.first, other.first), max(best.last, other.last)
        gap = max(best.first, other.first) - min(best.last, other.last) - 1
        is_near = gap <= _GAP and last - first < _MOST_LINES
        if other.node == best.node and is_near and begins <= other.start < ends:
            start = min(best.start, other.start)
            end = max(best.start + len(best.text), other.start + len(other.text))
            best = replace(best, start=start, first=first, last=last, text=text.content[start:end])
    return best


def claim_features(asked: Asked, ordered: Sequence[PassageCandidate], rows: Floats, scores: Floats) -> Floats:
    """Return what says whether the first candidate answers: (len(CLAIM),).

    Args:
        ordered: the candidates, the best first.
        rows: their features.
        scores: what the ranker gave them.
    """
    shares = np.exp(scores - scores[0])
    shares /= shares.sum()
    lead = float(scores[0] - scores[1]) if len(scores) > 1 else _ALONE
    of_node = sum(share for share, each in zip(shares, ordered, strict=True) if each.node == ordered[0].node)
    titles = rows[:, _TITLE]
    # Against their spread: where all titles are alike, as those of papers, none is nearer and that says nothing.
    title = (titles[0] - titles.mean()) / (titles.std() + _SPREAD)
    more = [shares[0], min(lead, _ALONE), np.log1p(len(asked.weights)), of_node, title]
    return np.concatenate([rows[0, _CLAIMED_BY], more])


def claim_probability(row: Floats, *, is_turn: bool = False) -> float:
    """Return how likely a claim with these features is right.

    Args:
        is_turn: whether it is a turn of a conversation.
    """
    return float(1.0 / (1.0 + np.exp(-(row @ CLAIM + BIAS + TURN_BIAS * is_turn))))


def best_apart(
    ranked: Sequence[tuple[PassageCandidate, float]],
    k: int,
    texts: Mapping[str, Text],
    widened: dict[PassageCandidate, Passage],
) -> list[Passage]:
    """Return the first `k` that share no line with a better one, and do not say the same, as whole statements.

    Args:
        texts: where they are from, by node.
        widened: those of these texts that were made whole before; more are added. A search asks for the same ones at
            each step, and half of its time went there.
    """
    kept: dict[PassageCandidate, float] = {}
    for candidate, score in ranked:
        if len(kept) >= k:
            break
        if not any(_same_place(candidate, other) or candidate.text == other.text for other in kept):
            kept[candidate] = score
    for each in kept:
        if each not in widened:
            widened[each] = _whole(each, texts[each.node])
    return [replace(widened[each], score=score) for each, score in kept.items()]


def _whole(candidate: PassageCandidate, of: Text) -> Passage:
    """Return a passage widened to the statements that it is part of, without a heading that its node says too."""
    skipped = 0 if candidate.is_code else heading_end(candidate.text)
    end = candidate.start + len(candidate.text)
    start = candidate.start + skipped
    begins, ends = piece_at(of.node, of.content, start)
    content = of.content[:ends]
    # Of a paragraph in one line it is some sentences, and widened it were the paragraph.
    if not _is_in_long_line(content, start, end):
        start, end = whole_statement(content, start, end, is_code=candidate.is_code)
        start = max(start, begins)
    if is_name_of_thing(content[begins:start]):
        start = begins
    first = content.count("\n", 0, start) + 1
    text = content[start:end]
    lines = (first, first + text.count("\n"))
    return Passage(candidate.node, candidate.title, text, start, lines, 0.0, release=candidate.release)


def _is_in_long_line(content: str, start: int, end: int) -> bool:
    """Whether a stretch begins or ends in a line that is cut where its sentences end."""
    ends = content.find("\n", end)
    begins, stops = content.rfind("\n", 0, start) + 1, len(content) if ends < 0 else ends
    return any(len(line) > LONG_CHARS for line in content[begins:stops].split("\n"))


def _same_place(one: PassageCandidate, other: PassageCandidate) -> bool:
    return one.node == other.node and one.first <= other.last and other.first <= one.last
