"""Truth maintenance: a fact that only productions vouch for goes with the last of its justifications.

Source: Doyle 1979, *A Truth Maintenance System*. Justifications are counted; where productions feed each other, so that
facts could vouch for one another in a circle, a fact whose count stays above zero must also be traced back to facts
that were stated. Support through a group (`+{…}`, an aggregate) is not traced.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from metatree._util.graph import reachable
from metatree.errors import UserError
from metatree.rules.language.conditions import Action, Assertion, Either, Pattern, Production, Var
from metatree.rules.language.values import Fact, NotANumber, Value, check_value, fits
from metatree.rules.matcher._emit import evaluate
from metatree.rules.matcher.tokens import Agenda, Values

Justification = tuple[str, Values]
"""A production and one of its tokens."""


class Truth:
    """Who vouches for which fact.

    Args:
        agendas: those of the productions in use, by name.
        undo: what takes the last changes back, in their order; each a function and its arguments.
    """

    def __init__(self, agendas: Mapping[str, Agenda], undo: list[tuple[Any, ...]]) -> None:
        self._agendas = agendas
        self._undo = undo
        self.support: dict[Fact, dict[Justification, None]] = {}
        self.derived: dict[Fact, None] = {}
        """Facts that hold only because they are justified."""
        self._recursive: set[str] | None = None

    def productions_changed(self) -> None:
        """Forget which productions feed each other."""
        self._recursive = None

    def justify(self, fact: Fact, by: Justification, *, holds: bool) -> bool:
        """Note a justification; True when the fact must be asserted now."""
        support = self.support.setdefault(fact, {})
        if by not in support:
            support[by] = None
            self._undo.append((self._drop, fact, by))
        if holds:
            return False
        self.mark_derived(fact)
        return True

    def withdraw(self, fact: Fact, by: Justification) -> bool:
        """Take a justification back; True when the fact must be retracted now."""
        support = self.support.get(fact)
        if support is None or by not in support:
            return False
        self._undo.append((self._put, fact, (by,)))
        self._drop(fact, by)
        if fact not in self.derived:
            return False
        if support and self.is_grounded(fact):
            return False
        self.forget(fact)
        return True

    def mark_derived(self, fact: Fact) -> None:
        """Note that a fact holds only because it is justified."""
        self.derived[fact] = None
        self._undo.append((self.derived.pop, fact))

    def mark_stated(self, fact: Fact) -> None:
        """Note that a fact stays, whatever becomes of its justifications."""
        del self.derived[fact]
        self._undo.append((self.derived.setdefault, fact))

    def forget(self, fact: Fact) -> None:
        """Drop what is known of a derived fact that is retracted."""
        self.mark_stated(fact)
        support = self.support.pop(fact, None)
        if support:
            self._undo.append((self._put, fact, tuple(support)))

    def _drop(self, fact: Fact, by: Justification) -> None:
        support = self.support[fact]
        del support[by]
        if not support:
            del self.support[fact]

    def _put(self, fact: Fact, justifications: Iterable[Justification]) -> None:
        self.support.setdefault(fact, {}).update(dict.fromkeys(justifications))

    def is_grounded(self, fact: Fact) -> bool:
        """Say whether a derived fact with justifications can be traced back to stated ones."""
        recursive = self._recursive_productions()
        if not any(name in recursive for name, _ in self.support[fact]):
            return True
        premises: dict[Fact, list[list[Fact]]] = {}
        todo = [fact]
        while todo:
            one = todo.pop()
            if one in premises:
                continue
            premises[one] = [
                [p for p in facts if p in self.derived]
                for name, values in self.support.get(one, ())
                for facts in self._agendas[name].ways(values)
            ]
            for way in premises[one]:
                todo += way
        grounded: set[Fact] = set()
        grew = True
        while grew and fact not in grounded:
            more = {
                one
                for one, ways in premises.items()
                if one not in grounded and any(grounded.issuperset(way) for way in ways)
            }
            grounded |= more
            grew = bool(more)
        return fact in grounded

    def _recursive_productions(self) -> set[str]:
        """Return the names of the productions that can, over others, feed themselves."""
        if self._recursive is None:
            productions = [agenda.production for agenda in self._agendas.values()]
            feeds = {
                one.name: {
                    other.name
                    for other in productions
                    if other.justifies and any(_fits(a, p) for a in _justified(one) for p in _patterns(other))
                }
                for one in productions
                if one.justifies
            }
            self._recursive = {name for name in feeds if name in reachable(feeds[name], feeds.__getitem__)}
        return self._recursive


def conclusions(
    production: Production, actions: Iterable[Action], known: Mapping[str, Value]
) -> list[tuple[Action, Any]]:
    """Return actions with the values of their places.

    One whose arithmetic fails, or gives a number too large for a fact, is left out.

    Raises:
        UserError: a value is larger than a fact may hold.
    """
    found: list[tuple[Action, Any]] = []
    for action in actions:
        try:
            values = tuple(evaluate(term, known) for term in action.terms)
        except NotANumber:
            continue
        if not all(map(fits, values)):
            continue
        if any(type(value) is tuple for value in values):
            try:
                values = tuple(map(check_value, values))
                if len(values) == 3:
                    check_value(values)
            except UserError as exc:
                raise UserError(f"production {production.name!r}: {exc}") from exc
        found.append((action, values))
    return found


def _justified(production: Production) -> Iterable[Assertion]:
    return (a for a in production.actions if isinstance(a, Assertion) and not a.lasting)


def _patterns(production: Production) -> Iterator[Pattern]:
    """Yield the patterns that a token may stand on."""
    todo = list(production.conditions)
    while todo:
        condition = todo.pop()
        if isinstance(condition, Pattern):
            yield condition
        elif isinstance(condition, Either):
            todo += [one for branch in condition.branches for one in branch]


def _fits(assertion: Assertion, pattern: Pattern) -> bool:
    for term, expected in zip(assertion.terms, pattern.terms, strict=True):
        if isinstance(term, str | int | float) and not isinstance(expected, Var) and term != expected:
            return False
    return True
