"""Who speaks in a conversation: what people said of themselves comes before what a machine replied to it, and a speaker
goes on with a subject in the next turn of their own.

The replies of a machine repeat what a person said, at ten times the length, and are no source for it. So for a question
on the asker ("what did I …", "my budget") a machine's turn counts less; not where it asks what the machine said.

Measured on the half of a set of conversations with a machine that was looked at, R@10: replies later .558 to .580, with
the turns beside .591 (facts that changed .771 to .854, spans of time .896 to .969). Between people (half of LoCoMo) the
turns beside raise R@5 from .660 to .686 and R@10 from .763 to .771. Lost: the reply's score added to that of the turn
(.574), the turn's to that of the reply, what lies directly beside (between people .664 and .773), the session's best
(no gain), static embeddings of each sentence (+.007, and summaries .226 to .207).

What a summary is made of are exchanges, what a person said and what a machine replied: each of the two counts for both
(summaries .226 to .267, from .280 to .362 in conversations of 100,000 tokens). Lost: the reply a little before what it
replies to (.258), the reply alone (.231), a place less for each further turn of a session (.221).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from metatree.notes.wishes import MACHINES
from metatree_routers.evidence._ranking import Ranking, reordered
from metatree_routers.evidence.signals.context import MOST_NODES
from metatree_routers.index.index import IndexSnapshot

BROUGHT_UP = 0.25
"""Of the score of a turn that a machine said, where it is asked what a person brought up."""
REPLIED = 0.75
"""The same for another question on the asker."""
GOES_ON = 0.1
"""Of the scores of a speaker's turns before and after, their mean, what is added to a turn."""
_LOOKED_AT = 400
"""So many of the best are looked at."""


def is_of_talk(snapshot: IndexSnapshot) -> bool:
    """Whether there are conversations in the tree."""
    return bool(snapshot.table.of_kind({"turn"}).any())


def goes_on(snapshot: IndexSnapshot, ranking: Ranking) -> Ranking:
    """Return a ranking in which a turn has a part of the scores of those two before and after it in its session.

    With two who speak in turn these are the speaker's own. The best score stays what it was.
    """
    table = snapshot.table
    most = float(ranking.scores.max()) if len(ranking.scores) else 0.0
    if len(table) > MOST_NODES or most <= 0:
        return ranking
    beside = np.zeros_like(ranking.scores)
    for step in (table.ancestry.before, table.ancestry.after):
        second = np.where(step >= 0, step[np.maximum(step, 0)], -1)
        beside += np.where(second >= 0, ranking.scores[np.maximum(second, 0)], np.float32(0))
    gains = table.of_kind({"turn"}) & (ranking.scores > 0)
    scores = ranking.scores + np.where(gains, np.float32(GOES_ON / 2) * beside, np.float32(0))
    return reordered(table, ranking, scores * np.float32(most / float(scores.max())))


def people_first(
    snapshot: IndexSnapshot,
    ranking: Ranking,
    titles: Callable[[Sequence[int]], Sequence[str]],
    share: float = BROUGHT_UP,
) -> Ranking:
    """Return a ranking in which turns of machines have a share of their scores.

    Args:
        titles: gives the titles of nodes, which are the speakers of turns.
    """
    table = snapshot.table
    best = ranking.order[:_LOOKED_AT]
    turns = best[table.of_kind({"turn"})[best]].tolist()
    said = [turn for turn, who in zip(turns, titles(turns), strict=True) if is_machine(who)]
    scores = ranking.scores.copy()
    scores[said] *= np.float32(share)
    return reordered(table, ranking, scores)


def as_exchanges(
    snapshot: IndexSnapshot, ranking: Ranking, titles: Callable[[Sequence[int]], Sequence[str]]
) -> Ranking:
    """Return a ranking in which what a person said and what a machine replied have their scores together.

    Args:
        titles: gives the titles of nodes, which are the speakers of turns.
    """
    table = snapshot.table
    most = float(ranking.scores.max()) if len(ranking.scores) else 0.0
    if len(table) > MOST_NODES or most <= 0:
        return ranking
    best = ranking.order[:_LOOKED_AT]
    best = best[table.of_kind({"turn"})[best]]
    before, after = table.ancestry.before, table.ancestry.after
    turns = sorted({*best.tolist(), *after[best].tolist(), *before[best].tolist()} - {-1})
    who = dict(zip(turns, titles(turns), strict=True))
    scores = ranking.scores.copy()
    for reply in turns:
        said = int(before[reply])
        if said in who and is_machine(who[reply]) and not is_machine(who[said]):
            scores[[said, reply]] = ranking.scores[said] + ranking.scores[reply]
    return reordered(table, ranking, scores * np.float32(most / float(scores.max())))


def is_machine(who: str) -> bool:
    """Whether a speaker is no person."""
    return who.casefold() in MACHINES
