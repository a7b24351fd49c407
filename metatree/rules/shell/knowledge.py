"""Knowledge sources: productions, and the logic that fires each of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from metatree.durable import Policy
from metatree.errors import UserError
from metatree.rules._working_memory import WorkingMemory
from metatree.rules.language.conditions import Production
from metatree.rules.language.text import parse_productions
from metatree.rules.language.values import check_value, to_json
from metatree.rules.matcher.tokens import Token


@dataclass(eq=False)
class Firing:
    """One production fires: what its logic is given, and how it says what it did.

    What it does is kept until it returns, then applied as one: commits first, then facts in their order. So logic that
    raises has done nothing, and the facts it looks at are those from before. Lost: facts that logic sees at once, since
    a crash or an error half-way would leave them.
    """

    production: str
    to_add: Sequence[Token]
    """Tokens that came since the last commit, oldest first; counting them and taking the first is cheap."""
    to_remove: Sequence[Token]
    """Tokens that were committed and do not hold any more; only for logic that asks for them."""
    facts: WorkingMemory = field(kw_only=True)
    """Working memory, to look at and to query, not to change."""
    board: Any = None
    """The blackboard that the shell was given, if any."""
    cycle: int = 0
    key: str = ""
    """Idempotency key: the same when this firing is repeated after a crash."""
    attempt: int = 1
    """From 1."""
    first_id: str = "0"
    """What the ids that it makes begin with."""
    _ids: int = field(default=0, init=False)
    _changes: list[list[Any]] = field(default_factory=list, init=False)
    _adds: list[Token] = field(default_factory=list, init=False)
    _removes: list[Token] = field(default_factory=list, init=False)
    _notes: list[str] = field(default_factory=list, init=False)

    def commit(self, *tokens: Token) -> None:
        """Say that tokens are dealt with, to add or to remove."""
        for token in tokens:
            if token in self.to_add:
                self._adds.append(token)
            elif token in self.to_remove:
                self._removes.append(token)
            else:
                raise UserError(f"{token} is not a token of this firing of {self.production!r}")

    def add(self, subject: Any, attribute: Any, value: Any) -> None:
        """Assert a fact."""
        self._changes.append(["+", *(to_json(check_value(part)) for part in (subject, attribute, value))])

    def retract(self, subject: Any, attribute: Any, value: Any) -> None:
        """Retract a fact; one that is not there makes no difference."""
        self._changes.append(["-", *(to_json(check_value(part)) for part in (subject, attribute, value))])

    def note(self, text: str) -> None:
        """Say something for the trace."""
        self._notes.append(text)

    def new_id(self, prefix: str) -> str:
        """Return an id that no other firing of this run makes, such as `trip0`."""
        base, _, part = self.first_id.partition(".")
        number = (
            str(int(base) + self._ids) if not part else f"{base}.{part}" + (f".{self._ids}" * bool(self._ids))
        )
        self._ids += 1
        return f"{prefix}{number}"

    def outcome(self) -> dict[str, Any]:
        """Return what was done, as JSON."""
        return {
            "changes": self._changes,
            "add": [[to_json(v) for v in token.values_] for token in self._adds],
            "remove": [[to_json(v) for v in token.values_] for token in self._removes],
            "notes": self._notes,
            "ids": self._ids,
        }


Logic = Callable[[Firing], "Awaitable[object] | object"]
"""Fires one production; a function or a coroutine function. What it returns is ignored."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A production with its logic."""

    production: Production
    logic: Logic
    each: bool = False
    """Whether every token is a firing of its own, all at once: for logic that waits for a model or a search."""
    removals: bool = False
    """Whether it deals with tokens to remove; if not, they are dropped. Lost: always, since every source that consumes
    what it matches would have to clean up after itself before the schedule could end."""
    policy: Policy = field(default_factory=lambda: Policy(attempts=2, timeout_s=600.0))
    """How often it is tried when it raises, and for how long."""


class KnowledgeSource:
    """A part that knows something: productions that say when, and logic that says what.

    Example:
        >>> source = KnowledgeSource("greeter", '((<x> is person) -{(<x> was greeted)} -> "greet")')
        >>> @source.fires("greet")
        ... def greet(firing):
        ...     token = firing.to_add[0]
        ...     firing.commit(token)
        ...     firing.add(token["x"], "was", "greeted")
    """

    def __init__(self, name: str, productions: str | Iterable[Production] = ()) -> None:
        if not isinstance(name, str):
            raise UserError(f"the name of a knowledge source is {name!r}: give a text")
        self.name = name
        read = parse_productions(productions) if isinstance(productions, str) else list(productions)
        for production in read:
            if not isinstance(production, Production):
                raise UserError(
                    f"{production!r} is no production: give texts of productions, or Production objects"
                )
        self._productions = {production.name: production for production in read}
        self._rules: dict[str, Rule] = {}

    def fires(
        self, production: str, *, each: bool = False, removals: bool = False, policy: Policy | None = None
    ) -> Callable[[Logic], Logic]:
        """Return a decorator for the logic of a production; see `Rule` for the arguments."""
        if production not in self._productions:
            known = ", ".join(map(repr, self._productions)) or "none"
            raise UserError(f"{self.name!r} has no production {production!r}: it has {known}")

        def decorate(logic: Logic) -> Logic:
            options: dict[str, Any] = {} if policy is None else {"policy": policy}
            self._rules[production] = Rule(
                self._productions[production], logic, each=each, removals=removals, **options
            )
            return logic

        return decorate

    def rules(self) -> Mapping[str, Rule]:
        """Return its productions with their logic; one without logic commits one token each time it fires."""
        return {
            name: self._rules.get(name) or Rule(production, commit_one)
            for name, production in self._productions.items()
        }


def commit_one(firing: Firing) -> None:
    """Commit the oldest token; what the production asserts follows."""
    firing.commit((*firing.to_add, *firing.to_remove)[0])


def commit_newest(firing: Firing) -> None:
    """Commit the newest token, as a depth-first search wants it."""
    firing.commit((*firing.to_add, *firing.to_remove)[-1])


def commit_all(firing: Firing) -> None:
    """Commit all tokens at once."""
    firing.commit(*firing.to_add, *firing.to_remove)
