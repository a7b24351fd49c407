"""What a production matches, and what of it has not been dealt with yet.

A token is one combination of facts that meets the conditions, as the tuple of the values of the production's
variables: two combinations never have the same values, so a token needs no count. Each is met exactly once, since
patterns before the changed one leave the changed fact out, and views change one key at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, overload

from metatree.rules.language.conditions import Condition, Pattern, Production, Var
from metatree.rules.language.values import Fact, Value, value_text

Values = tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Token(Mapping[str, Value]):
    """One combination of facts that meets the conditions of a production: variable -> value.

    Example:
        >>> token = Token("on", ("x", "y"), ("B1", "B2"))
        >>> token["x"], dict(token)
        ('B1', {'x': 'B1', 'y': 'B2'})
    """

    production: str
    variables: tuple[str, ...]
    values_: Values

    def __getitem__(self, variable: str) -> Value:
        try:
            return self.values_[self.variables.index(variable)]
        except ValueError:
            raise KeyError(variable) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self.variables)

    def __len__(self) -> int:
        return len(self.variables)

    def __str__(self) -> str:
        return "(" + " ".join(f"{name}={value_text(value)}" for name, value in self.items()) + ")"


class Tokens(Sequence[Token]):
    """Some tokens of an agenda as a sequence, oldest first; made one by one as they are asked for.

    It shows what the agenda holds now; take a `tuple` of it before tokens are committed.
    """

    def __init__(
        self, agenda: Agenda, values: Mapping[Values, int], without: Collection[Values] = ()
    ) -> None:
        self._agenda = agenda
        self._values = values
        self._without = {v for v in without if v in values}

    def __iter__(self) -> Iterator[Token]:
        return (self._agenda.token(v) for v in self._values if v not in self._without)

    def __len__(self) -> int:
        return len(self._values) - len(self._without)

    def __contains__(self, token: object) -> bool:
        return (
            isinstance(token, Token) and token.values_ in self._values and token.values_ not in self._without
        )

    @overload
    def __getitem__(self, index: int) -> Token: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Token, ...]: ...
    def __getitem__(self, index: int | slice) -> Token | tuple[Token, ...]:
        if isinstance(index, slice):
            return tuple(self)[index]
        if not -len(self) <= index < len(self):
            raise IndexError(index)
        return next(islice(self, index % len(self), None))


class Agenda:
    """The tokens of one production: those to add and to remove since they were last committed.

    A token that is withdrawn before anybody committed it leaves no trace. One that was committed waits to be removed,
    also when it comes back: then it is to be added again besides.
    """

    __slots__ = (
        "committed",
        "eager",
        "lost",
        "production",
        "to_add",
        "to_remove",
        "touched",
        "variables",
        "ways",
        "weakened",
    )

    def __init__(self, production: Production, variables: tuple[str, ...], *, eager: bool = False) -> None:
        self.production = production
        self.eager = eager
        """Whether somebody deals with its tokens after each event: the network says so in `touched`."""
        self.variables = variables
        self.to_add: dict[Values, int] = {}
        """Values -> the event they came with; in the order of their coming."""
        self.to_remove: dict[Values, int] = {}
        self.committed: dict[Values, int] = {}
        """Those that were committed and still hold."""
        self.lost: list[Values] = []
        self.weakened: list[Values] = []
        """Tokens that hold, in fewer ways than before; those of productions with alternatives that justify facts."""
        self.touched: dict[Agenda, None] | None = None
        """Where to say that committed tokens were lost; None when nobody wants to know."""
        self.ways: Callable[[Values], Iterator[list[Fact]]] = self._only_way
        """Returns, for a token that holds, the facts that it stands on, once for each way in which it is met."""

    def __len__(self) -> int:
        """Return how many tokens hold."""
        return len(self.to_add) + len(self.committed)

    def withdraw(self, values: Values, event: int) -> None:
        """Take back a token that is not among those to add."""
        if self.committed.pop(values, None) is None:
            return  # a function that is not pure said yes only now: there never was this token
        self.to_remove[values] = event
        if self.touched is not None:
            self.lost.append(values)
            self.touched[self] = None

    def _only_way(self, values: Values) -> Iterator[list[Fact]]:
        yield facts_of(self.production.conditions, self.token(values))

    def commit_add(self, values: Values) -> None:
        """Take a token off the ones to add."""
        self.committed[values] = self.to_add.pop(values)

    def commit_remove(self, values: Values) -> None:
        """Take a token off the ones to remove."""
        del self.to_remove[values]

    def token(self, values: Values) -> Token:
        """Return values as a token."""
        return Token(self.production.name, self.variables, values)

    def tokens(self) -> list[Token]:
        """Return all tokens that hold, those not committed last."""
        return [self.token(values) for values in (*self.committed, *self.to_add)]

    def newest(self) -> int:
        """Return the event of the token that came last among those to add or to remove; 0 when there is none."""
        latest = 0
        for tokens in (self.to_add, self.to_remove):
            if tokens:
                latest = max(latest, next(reversed(tokens.values())))
        return latest


def facts_of(conditions: Sequence[Condition], token: Mapping[str, Value]) -> list[Fact]:
    """Return the facts that a token stands on: those of the patterns outside of groups, in the order of the text."""
    facts = []
    for condition in conditions:
        if isinstance(condition, Pattern):
            parts: Any = tuple(token[t.name] if isinstance(t, Var) else t for t in condition.terms)
            facts.append(parts)
    return facts
