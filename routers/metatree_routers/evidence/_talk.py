"""Rank the turns of conversations for a question: who speaks, what is asked for, and what was wanted always.

A question on many messages is read by its subject (`query.cover`). Then, in this order: turns count for those beside
them, replies of a machine come behind, a summary takes exchanges, and where the question is not on many messages,
turns that state a standing wish come up. Each signal says what it carries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from metatree_routers.evidence._ranking import Ranking
from metatree_routers.evidence.signals.asker import REPLIED, as_exchanges, goes_on, people_first
from metatree_routers.evidence.signals.wished import FOR_ADVICE, FOR_FACTS, with_wishes
from metatree_routers.index.index import IndexSnapshot
from metatree_routers.index.node_texts import NodeTexts
from metatree_routers.query.cover import cover_of, is_on_asker
from metatree_routers.query.wording import wants_advice


def rank_talk(
    snapshot: IndexSnapshot,
    question: str,
    by_words: Callable[[str], Ranking],
    texts: NodeTexts,
    wishes: Callable[[str], Mapping[str, float]] | None,
    under: int | None,
) -> Ranking:
    """Return the ranking for a question in a tree with conversations.

    Args:
        by_words: ranks all nodes for a text by its words and its meaning.
        wishes: says how near a question is to the standing wishes, by the nodes that state them; None where texts are
            read for an answer, which a wish is not.
        under: nodes that do not lie at or below this one get no score.
    """
    cover = cover_of(question)
    ranking = goes_on(snapshot, by_words(cover.subject if cover else question))
    if cover and cover.by_asker:
        ranking = people_first(snapshot, ranking, texts.titles)
    elif is_on_asker(question):
        ranking = people_first(snapshot, ranking, texts.titles, REPLIED)
    if cover and cover.is_summary:
        return as_exchanges(snapshot, ranking, texts.titles)
    if cover or wishes is None:
        return ranking
    share = FOR_ADVICE if wants_advice(question) else FOR_FACTS
    return with_wishes(snapshot, ranking, wishes(question), share, under)
