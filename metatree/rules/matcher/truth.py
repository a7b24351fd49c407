"""Truth maintenance: a fact that only productions vouch for goes with the last of its justifications.

Source: Doyle 1979, *A Truth Maintenance System*. Justifications are counted; where productions feed each other, so that
facts could vouch for one another in a circle, a fact whose count stays above zero must also be traced back to facts
that were stated. Support through a group (`+{…}`, an aggregate) is not traced.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from metatree._util.graph import reachable
from metatree.rules.language.conditions import Assertion, Pattern, Production, Var
from metatree.rules.language.values import Fact, NotANumber, Value
from metatree.rules.matcher._emit import evaluate
from metatree.rules.matcher.tokens import Values, facts_of

Justification = tuple[str, Values]
"""A production and one of its tokens."""


class Truth:
    """Who vouches for which fact.

    Args:
        productions: those in use, by name.
        variables: name of a production -> its variables, in the order of its tokens.
    """

    def __init__(
        self, productions: Mapping[str, Production], variables: Mapping[str, tuple[str, ...]]
    ) -> None:
        self._productions = productions
        self._variables = variables
        self.support: dict[Fact, dict[Justification, None]] = {}
        self.derived: dict[Fact, None] = {}
        """Facts that hold only because they are justified."""
        self._recursive: set[str] | None = None

    def productions_changed(self) -> None:
        """Forget which productions feed each other."""
        self._recursive = None

    def conclusions(self, production: Production, values: Values, *, lasting: bool) -> list[Fact]:
        """Return the facts that a production asserts for a token; one whose arithmetic fails is left out.

        Args:
            lasting: those that stay, or those that the token justifies.
        """
        known = dict(zip(self._variables[production.name], values, strict=True))
        facts: list[Fact] = []
        for assertion in production.asserts:
            if assertion.lasting is not lasting:
                continue
            try:
                i, a, v = (evaluate(term, known) for term in assertion.terms)
            except NotANumber:
                continue
            facts.append((i, a, v))
        return facts

    def justify(self, fact: Fact, by: Justification, *, holds: bool) -> bool:
        """Note a justification; True when the fact must be asserted now."""
        self.support.setdefault(fact, {})[by] = None
        if holds:
            return False
        self.derived[fact] = None
        return True

    def withdraw(self, fact: Fact, by: Justification) -> bool:
        """Take a justification back; True when the fact must be retracted now."""
        support = self.support.get(fact)
        if support is None or by not in support:
            return False
        del support[by]
        if not support:
            del self.support[fact]
        if fact not in self.derived:
            return False
        if support and self.is_grounded(fact):
            return False
        self.forget(fact)
        return True

    def forget(self, fact: Fact) -> None:
        """Drop what is known of a derived fact that is retracted."""
        del self.derived[fact]
        self.support.pop(fact, None)

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
                [p for p in self._premises(by) if p in self.derived] for by in self.support.get(one, ())
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

    def _premises(self, by: Justification) -> list[Fact]:
        name, values = by
        known: dict[str, Value] = dict(zip(self._variables[name], values, strict=True))
        return facts_of(self._productions[name], known)

    def _recursive_productions(self) -> set[str]:
        """Return the names of the productions that can, over others, feed themselves."""
        if self._recursive is None:
            feeds = {
                name: {
                    other.name
                    for other in self._productions.values()
                    if other.asserts and any(_fits(a, p) for a in one.asserts for p in _patterns(other))
                }
                for name, one in self._productions.items()
                if one.asserts
            }
            self._recursive = {name for name in feeds if name in reachable(feeds[name], feeds.__getitem__)}
        return self._recursive


def _patterns(production: Production) -> Iterable[Pattern]:
    return (c for c in production.conditions if isinstance(c, Pattern))


def _fits(assertion: Assertion, pattern: Pattern) -> bool:
    for term, expected in zip(assertion.terms, pattern.terms, strict=True):
        if isinstance(term, str | int | float) and not isinstance(expected, Var) and term != expected:
            return False
    return True
