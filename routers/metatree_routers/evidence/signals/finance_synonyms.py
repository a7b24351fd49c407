"""What figures of a company are called in its financial statements, and in which statement they stand.

General knowledge of reporting: a question about the quick ratio is answered by the balance sheet, which does not say
"quick ratio". Each entry adds words to a question at part of their weight, where some texts of the tree look like
statements; elsewhere "technical debt" is no debt of a balance sheet.

Fifteen entries of general terms make a filing's tables found by what people call them. Lost: a larger vocabulary,
which would begin to know the questions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from metatree_routers.evidence.signals.clause_words import MOST_WORDS, has
from metatree_routers.index.digit_density import RICH
from metatree_routers.index.index import IndexSnapshot
from metatree_routers.index.postings import Postings
from metatree_routers.query.terms import term_counts

WEIGHT = 0.5
"""Of an added word, of the heaviest word of the question."""

LEAST_MARKS = 4
"""So many marks of statements, and many figures, make a text look like one. Of 4,696 texts of filings 616 do; of code,
papers, conversations, encyclopedia articles and tools none of 23,800 does."""
LEAST_STATEMENTS = 3
"""So many texts that look like statements, as even a short filing has, turn the signal on."""
_MARKS = "assets liabilities equity income tax earnings dividends revenue net total share cash"

_INCOME = "statement of operations, statement of income, statement of earnings"
_BALANCE = "balance sheet, statement of financial position"
_ENTRIES = tuple(
    (re.compile(pattern, re.IGNORECASE), words)
    for pattern, words in (
        (r"income statement|p&l|profit and loss|statements? of (?:income|operations|earnings)", _INCOME),
        (r"balance sheet|statements? of financial position", _BALANCE),
        (r"cash flow", "statement of cash flows"),
        (r"\bcapex\b|capital expenditure|capital.intensive", "purchases of property plant equipment"),
        (r"\bpp&e\b|fixed asset", "property plant and equipment"),
        (r"\bcogs\b|cost of goods", "cost of sales, cost of revenue, cost of goods sold"),
        (r"gross (?:margin|profit)", f"cost of sales, cost of revenue, net sales, gross profit, {_INCOME}"),
        (r"operating (?:margin|income)|\bebit(?:da)?\b", f"operating income, {_INCOME}"),
        (r"\brevenues?\b|top.?line\b|\bnet sales\b", f"net sales, total revenue, {_INCOME}"),
        (r"net income|tax rate|retention ratio|\beps\b|per share", f"net income, income taxes, {_INCOME}"),
        (
            r"(?:quick|current) ratio|working capital|liquidity",
            f"total current assets, total current liabilities, {_BALANCE}",
        ),
        (
            r"return on assets|\broa\b|asset turnover|total assets|inventory|accounts (?:payable|receivable)"
            r"|\b(?:dpo|dso|dio|ccc)\b|total liabilities|\bdebt\b",
            f"total assets, total liabilities, {_BALANCE}",
        ),
        (r"dividends?\b|buyback|repurchase", "dividends paid, statement of cash flows"),
        (r"legal (?:battle|case)|lawsuit|litigation", "legal proceedings, litigation, contingencies"),
        (r"\bm&a\b|acquisition", "acquisitions, business combinations"),
    )
)


def related_terms(question: str) -> Iterator[str]:
    """Yield the terms that a statement uses for what the question names.

    Example:
        >>> sorted(set(related_terms("What is the CAPEX?")))
        ['equip', 'plant', 'properti', 'purchas']
    """
    for pattern, words in _ENTRIES:
        if pattern.search(question):
            yield from term_counts(words)


def statement_terms(snapshot: IndexSnapshot, question: str) -> list[str]:
    """Return the related terms of a question, where the tree has financial statements; else none."""
    related = list(dict.fromkeys(related_terms(question)))
    return related if related and _has_statements(snapshot) else []


def _has_statements(snapshot: IndexSnapshot) -> bool:
    table = snapshot.table
    marks = np.zeros(len(table), dtype=np.uint8)
    for rows in snapshot.postings(term_counts(_MARKS)).values():
        marks[rows["node"][rows["content"] > 0]] += 1
    looks = (marks >= LEAST_MARKS) & (table.digit_density >= RICH) & table.alive
    return int(np.count_nonzero(looks)) >= LEAST_STATEMENTS


def clauses(related: Sequence[str], postings: Mapping[str, Postings], node: int) -> Iterator[str]:
    """Say which of the related terms a node has."""
    matched = [term for term in related if has(postings, term, node)]
    if matched:
        yield f"has what statements call it ({', '.join(matched[:MOST_WORDS])})"
