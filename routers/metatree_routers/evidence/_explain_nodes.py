"""Say why a node was found: what each signal says of it, in one short sentence.

Every clause is looked up for the one node in the index that ranked it, so it is true of that node; what did most
comes first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

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
)
from metatree_routers.evidence.signals.clause_words import Titles, has, title_of
from metatree_routers.evidence.signals.code_files import Importers
from metatree_routers.index.index import IndexSnapshot
from metatree_routers.index.node_table import NodeTable
from metatree_routers.query.parse import sections
from metatree_routers.query.wording import asking_terms, wants_amount


def reason(
    snapshot: IndexSnapshot,
    ranking: Ranking,
    questions: Sequence[str],
    node: int,
    titles: Titles,
    links: Importers | None = None,
) -> str:
    """Return a short sentence; empty when nothing speaks for the node.

    Args:
        titles: gives the titles of nodes by number.
        links: knows which files are imported.
    """
    table = snapshot.table
    if not ranking.best_below[node] > 0:
        return ""
    id_ = snapshot.ids([node])[node]
    first: list[str] = []
    if ranking.code is not None:
        first = list(
            dict.fromkeys(c for question in questions for c in code_files.name_clause(id_, question))
        )
    is_own = bool(first) or readable_mask(table)[node] or ranking.parts[node] > 0
    at = node if is_own else _best_below(table, ranking, node)
    clauses = list(_clauses(snapshot, ranking, questions, at, titles)) or ([] if first else [meaning.CLAUSE])
    if at != node:
        clauses.insert(0, f"below it {title_of(titles, at)}")
    if ranking.code is not None:
        clauses = [*first, *clauses, *code_files.file_clauses(id_, questions, links)]
    return "; ".join(clauses)


def _clauses(
    snapshot: IndexSnapshot, ranking: Ranking, questions: Sequence[str], node: int, titles: Titles
) -> Iterator[str]:
    table, parts = snapshot.table, [sections(question) for question in questions]
    spelled = {term: spelling for each in parts for term, spelling in each.spellings().items()}
    related = [
        term
        for question in questions
        for term in finance_synonyms.statement_terms(snapshot, question)
        if term not in spelled
    ]
    question_terms = [term for term in ranking.weights if term in spelled and term not in asking_terms()]
    heaviest = sorted(question_terms, key=lambda term: -ranking.weights[term])
    postings = snapshot.postings({*question_terms, *related})
    own = [term for term in heaviest if has(postings, term, node)]
    key_terms = own
    for each in parts:
        key_terms = each.telling(key_terms, numbers=True)
    yield from matching.clauses(key_terms, spelled)
    yield from linker.clauses(ranking.mention_matches.get(int(table.home[node]), []))
    yield from multi_hop.clauses(ranking.named, ranking.by_shared_name, node, titles)
    yield from input_finders.clauses(ranking.inputs, node, titles)
    elsewhere = [term for term in heaviest if term not in own]
    yield from context.clauses(table, postings, elsewhere, spelled, node, titles)
    if not key_terms:
        yield from finance_synonyms.clauses(list(dict.fromkeys(related)), postings, node)
    if any(map(wants_amount, questions)):
        yield from digit_density.clauses(table, node)


def _best_below(table: NodeTable, ranking: Ranking, node: int) -> int:
    best = readable(table, ranking.order)
    inside = best[table.nearest(best, [node]) >= 0]
    return int(inside[0]) if len(inside) else node
