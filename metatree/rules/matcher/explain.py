"""Why a production has no token: the first of its conditions that nothing meets together with those before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from metatree.rules._working_memory import WorkingMemory
from metatree.rules.language.conditions import (
    Aggregate,
    Comparison,
    Condition,
    Either,
    Existence,
    Negation,
    Pattern,
    Production,
    all_variables,
    bound_by,
)
from metatree.rules.language.values import Value, value_text


@dataclass(frozen=True, slots=True)
class Explanation:
    """What holds a production back."""

    production: str
    to_add: int
    to_remove: int
    committed: int
    met: tuple[str, ...] = ()
    """Conditions that are met together."""
    unmet: str = ""
    """The condition that nothing meets together with those; empty when the production has tokens."""
    reason: str = ""
    nearest: str = ""
    """Values with which the others are met: the nearest miss."""

    def __str__(self) -> str:
        """Return it as a sentence or two."""
        name = f'"{self.production}"'
        if not self.unmet:
            if self.to_add or self.to_remove:
                return f"{name} can fire: {self.to_add} to add, {self.to_remove} to remove"
            return f"{name} has {self.committed} tokens, and all of them were dealt with"
        text = f"{name} cannot fire: {self.reason}: {self.unmet}"
        return f"{text}; the other conditions are met by {self.nearest}" if self.nearest else text


def why_not(memory: WorkingMemory, name: str) -> Explanation:
    """Say why a production has no tokens, or that it has some.

    Raises:
        UserError: there is no such production.
    """
    agenda = memory.agenda(name)
    counts = (len(agenda.to_add), len(agenda.to_remove), len(agenda.committed))
    if len(agenda) or counts[1]:
        return Explanation(name, *counts)
    met, unmet, sample = _first_unmet(memory, agenda.production)
    reason = _reason(memory, unmet, bool(met))
    nearest = " ".join(f"<{k}>={value_text(v)}" for k, v in sample.items())
    return Explanation(name, *counts, tuple(map(str, met)), str(unmet), reason, nearest)


def _first_unmet(
    memory: WorkingMemory, production: Production
) -> tuple[list[Condition], Condition, dict[str, Value]]:
    met: list[Condition] = []
    sample: dict[str, Value] = {}
    order = _ordered(production.conditions)
    for condition in order:
        matches = memory.query((*met, condition), limit=1)
        if not matches:
            return met, condition, sample
        met.append(condition)
        sample = matches[0]
    raise AssertionError("a production whose conditions are all met has a token")


def _ordered(conditions: Sequence[Condition]) -> list[Condition]:
    """Return the conditions in the order of the text, each after those that give values to what it uses.

    A group uses those variables that conditions outside of it give values to.
    """
    outside = {name for c in conditions for name in bound_by(c)}
    known: set[str] = set()
    remaining = list(conditions)
    ordered: list[Condition] = []
    while remaining:
        ready = next((c for c in remaining if known.issuperset(_uses(c, outside))), remaining[0])
        remaining.remove(ready)
        ordered.append(ready)
        known.update(bound_by(ready))
    return ordered


def _uses(condition: Condition, outside: set[str]) -> set[str]:
    return (set(all_variables(condition)) & outside) - set(bound_by(condition))


def _reason(memory: WorkingMemory, condition: Condition, others: bool) -> str:
    match condition:
        case Pattern():
            if not others or not memory.query((condition,), limit=1):
                return "no fact fits"
            return "facts fit this condition, but none together with the conditions before it"
        case Comparison():
            return "no values meet the test"
        case Negation():
            return "always some facts meet what must not be"
        case Existence():
            return "no facts meet what must be"
        case Either():
            return "no facts meet one of these groups"
        case Aggregate():
            return "there is nothing to compute the value of, or it is another one than asked for"
