"""Say why a node was found: what each signal says of it, in one short sentence.

Every clause is looked up for the one node in the index that ranked it, so it is true of that node; what did most
comes first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from metatree_routers.evidence._ranking import Ranking, readable, readable_mask
from metatree_routers.evidence.signals import (
    code_files,
    context,
    digit_density,
    finance_synonyms,
    input_finders,
    linker,
    matching,
    meaning,
    multi_hop,
    wished,
)
from metatree_routers.evidence.signals.clause_words import Titles, has, title_of
from metatree_routers.evidence.signals.code_files import Importers
from metatree_routers.index.index import IndexSnapshot
from metatree_routers.index.node_table import NodeTable
from metatree_routers.query.parse import sections
from metatree_routers.query.wording import asking_terms, wants_amount


class Explainer:
    """Says of nodes why they were found; what the questions alone decide is looked up once.

    Args:
        nodes: the nodes that are asked about: their numbers and ids.
        titles: gives the titles of nodes by number.
        links: knows which files are imported.
    """

    def __init__(
        self,
        snapshot: IndexSnapshot,
        ranking: Ranking,
        questions: Sequence[str],
        nodes: Mapping[int, str],
        titles: Titles,
        links: Importers | None = None,
    ) -> None:
        self._table, self._ranking, self._nodes = snapshot.table, ranking, nodes
        self._titles = titles
        self._parts = [sections(question) for question in questions]
        self._spelled = {
            term: spelling for each in self._parts for term, spelling in each.spellings().items()
        }
        self._related = [
            term
            for question in questions
            for term in finance_synonyms.statement_terms(snapshot, question)
            if term not in self._spelled
        ]
        terms = [term for term in ranking.weights if term in self._spelled and term not in asking_terms()]
        self._heaviest = sorted(terms, key=lambda term: -ranking.weights[term])
        self._postings = snapshot.postings({*terms, *self._related})
        self._wants_amount = any(map(wants_amount, questions))
        self._code = None
        if ranking.code is not None:
            self._code = code_files.FileClauses(questions, nodes.values(), links)

    def reason(self, node: int) -> str:
        """Return a short sentence; empty when nothing speaks for the node."""
        table, ranking = self._table, self._ranking
        if not ranking.best_below[node] > 0:
            return ""
        id_ = self._nodes[node]
        first = [] if self._code is None else list(self._code.name(id_))
        is_own = bool(first) or readable_mask(table)[node] or ranking.parts[node] > 0
        at = node if is_own else _best_below(table, ranking, node)
        clauses = list(self._clauses(at)) or ([] if first else [meaning.CLAUSE])
        if at != node:
            clauses.insert(0, f"below it {title_of(self._titles, at)}")
        if self._code is not None:
            clauses = [*first, *clauses, *self._code.file(id_)]
        return "; ".join(clauses)

    def _clauses(self, node: int) -> Iterator[str]:
        table, ranking, postings = self._table, self._ranking, self._postings
        own = [term for term in self._heaviest if has(postings, term, node)]
        key_terms = own
        for each in self._parts:
            key_terms = each.telling(key_terms, numbers=True)
        if node in ranking.wished:
            yield wished.CLAUSE
        yield from matching.clauses(key_terms, self._spelled)
        yield from linker.clauses(ranking.mention_matches.get(int(table.home[node]), []))
        yield from multi_hop.clauses(ranking.named, ranking.by_shared_name, node, self._titles)
        yield from input_finders.clauses(ranking.inputs, node, self._titles)
        elsewhere = [term for term in self._heaviest if term not in own]
        yield from context.clauses(table, postings, elsewhere, self._spelled, node, self._titles)
        if not key_terms:
            yield from finance_synonyms.clauses(list(dict.fromkeys(self._related)), postings, node)
        if self._wants_amount:
            yield from digit_density.clauses(table, node)


def _best_below(table: NodeTable, ranking: Ranking, node: int) -> int:
    best = readable(table, ranking.order)
    inside = best[table.nearest(best, [node]) >= 0]
    return int(inside[0]) if len(inside) else node
