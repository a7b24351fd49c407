"""Say why a node was found: which words it has, which are in the titles above it or in the texts beside it, and more.

Every clause is looked up for the one node in the index that ranked it, so it is true of that node; what did most comes
first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from metatree_routers.evidence._ranking import Ranking, readable, readable_mask
from metatree_routers.evidence.signals.context import MOST_NODES
from metatree_routers.evidence.signals.finance_synonyms import related_terms
from metatree_routers.index.index import Reader
from metatree_routers.index.node_table import Records
from metatree_routers.index.postings import Postings
from metatree_routers.query.parse import Sections, sections
from metatree_routers.query.wording import asking_terms, wants_amount

MOST_WORDS = 5
_FIGURES = 40
"""Share of figures, as `figures.share_of_figures` gives it, from which a text is said to be rich in them: 8 %."""

Titles = Callable[[Sequence[int]], Mapping[int, str]]


def reason(reader: Reader, ranking: Ranking, questions: Sequence[str], node: int, titles: Titles) -> str:
    """Return a short sentence; empty when nothing speaks for the node.

    Args:
        titles: gives the titles of nodes by number.
    """
    records = reader.records
    if not ranking.reached[node] > 0:
        return ""
    at = node if readable_mask(records)[node] else _best_below(records, ranking, node)
    spelled: dict[str, str] = {}
    for question in questions:
        spelled.update(sections(question).spellings())
    related = {
        term: term for question in questions for term in related_terms(question) if term not in spelled
    }
    asked = [term for term in ranking.weights if term in spelled and term not in asking_terms()]
    telling = [sections(question) for question in questions]
    postings = reader.postings({*asked, *related})
    clauses = list(_clauses(records, ranking, postings, asked, spelled, related, at, titles, telling))
    if any(map(wants_amount, questions)) and records.figures[at] >= _FIGURES:
        clauses.append("many figures")
    if not clauses:
        clauses.append("near in meaning")
    if at != node:
        clauses.insert(0, f"below it {_quoted(titles([at]).get(at, ''))}")
    return "; ".join(clauses)


def _clauses(
    records: Records,
    ranking: Ranking,
    postings: Mapping[str, Postings],
    asked: Sequence[str],
    spelled: Mapping[str, str],
    related: Mapping[str, str],
    node: int,
    titles: Titles,
    questions: Sequence[Sections],
) -> Iterator[str]:
    heaviest = sorted(asked, key=lambda term: -ranking.weights[term])
    said = [term for term in heaviest if _has(postings, term, node)]
    known = set(said)
    for question in questions:
        said = question.telling(said, numbers=True)
    if said:
        yield f"says {_words(said, spelled)}"
    pointers = ranking.pointers.get(int(records.home[node]), [])
    if pointers:
        yield f"the question names {_quoted(pointers[0].clue.text)}"
    naming = ranking.named.get(node)
    if naming is not None:
        yield f"named in {_quoted(titles([naming]).get(naming, ''))}"
    if node in ranking.bridged:
        naming, name = ranking.bridged[node]
        yield f"has {_quoted(name)}, which is named in {_quoted(titles([naming]).get(naming, ''))}"
    if node in ranking.inputs:
        taking, name = ranking.inputs[node]
        yield f"finds the {_quoted(name)} that {_quoted(titles([taking]).get(taking, ''))} takes"
    if len(records) > MOST_NODES:
        return
    levels = records.levels
    for above in levels.above:
        group = int(above[node])
        here = [term for term in heaviest if term not in known and group >= 0 and _has(postings, term, group)]
        if here:
            known.update(here)
            yield f"in {_quoted(titles([group]).get(group, ''))}, which says {_words(here, spelled)}"
    beside = [int(places[node]) for places in (levels.before, levels.after) if places[node] >= 0]
    near = [term for term in heaviest if term not in known and any(_has(postings, term, b) for b in beside)]
    if near:
        yield f"next to a text that says {_words(near, spelled)}"
    if not said:
        others = [term for term in related if _has(postings, term, node)]
        if others:
            yield f"has what statements call it ({', '.join(others[:MOST_WORDS])})"


def _best_below(records: Records, ranking: Ranking, node: int) -> int:
    best = readable(records, ranking.order)
    inside = best[records.nearest(best, [node]) >= 0]
    return int(inside[0]) if len(inside) else node


def _has(postings: Mapping[str, Postings], term: str, node: int) -> bool:
    found = postings.get(term)
    return found is not None and bool(np.any(found["node"] == node))


def _words(terms: Sequence[str], spelled: Mapping[str, str]) -> str:
    return ", ".join(dict.fromkeys(_quoted(spelled[term]) for term in terms[:MOST_WORDS]))


def _quoted(text: str) -> str:
    return f"“{' '.join(text.split())[:60]}”"
