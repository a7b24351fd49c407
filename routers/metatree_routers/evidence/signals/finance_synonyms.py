"""What figures of a company are called in its financial statements, and in which statement they stand.

General knowledge of reporting: a question about the quick ratio is answered by the balance sheet, which does not say
"quick ratio". Each entry adds words to a question at part of their weight.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from metatree_routers.query.terms import term_counts

WEIGHT = 0.5
"""Of an added word, of the heaviest word of the question."""

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
