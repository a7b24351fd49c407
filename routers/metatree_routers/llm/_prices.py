"""What models cost, as far as it is known."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType

_MILLION = Decimal(1_000_000)
_DATED = re.compile(r"-\d{4}-\d{2}-\d{2}$")


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars for a million tokens.

    Example:
        >>> Price("0.15", "0.60", cached="0.075").of(2_000, 100, cached=1_000)
        Decimal('0.000285')
    """

    input: Decimal | str
    output: Decimal | str
    cached: Decimal | str | None = None
    """For the part of the prompt that came from the provider's cache; None when that is not cheaper."""

    def of(self, tokens_in: int, tokens_out: int, *, cached: int = 0) -> Decimal:
        """Return what a call cost; `cached` is the part of `tokens_in` that came from the provider's cache."""
        cheaper = self.input if self.cached is None else self.cached
        fresh = max(0, tokens_in - cached) * Decimal(self.input)
        return (fresh + cached * Decimal(cheaper) + tokens_out * Decimal(self.output)) / _MILLION


PRICES: Mapping[str, Price] = MappingProxyType(
    {
        "gpt-4o": Price("2.50", "10.00", "1.25"),
        "gpt-4o-mini": Price("0.15", "0.60", "0.075"),
        "gpt-4.1": Price("2.00", "8.00", "0.50"),
        "gpt-4.1-mini": Price("0.40", "1.60", "0.10"),
        "gpt-4.1-nano": Price("0.10", "0.40", "0.025"),
        "gpt-5": Price("1.25", "10.00", "0.125"),
        "gpt-5-mini": Price("0.25", "2.00", "0.025"),
        "gpt-5-nano": Price("0.05", "0.40", "0.005"),
        "o3": Price("2.00", "8.00", "0.50"),
        "o4-mini": Price("1.10", "4.40", "0.275"),
    }
)
"""List prices of OpenAI; they change, so give your own with `prices=` where the cost matters."""


def price_of(model: str, prices: Mapping[str, Price] | None = None) -> Price | None:
    """Return the price of a model: the user's, else the list's, with or without the date at the end of its name."""
    for table in (prices or {}, PRICES):
        for name in (model, _DATED.sub("", model)):
            if name in table:
                return table[name]
    return None
