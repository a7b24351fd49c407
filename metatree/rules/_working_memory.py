"""Working memory: facts, the productions that watch them, and what follows from both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Final

from metatree.errors import MetatreeError, UserError
from metatree.rules._store_keeper import StoreKeeper
from metatree.rules.language.conditions import Condition, Production
from metatree.rules.language.text import parse_conditions, parse_facts, parse_productions
from metatree.rules.language.values import Fact, Value, check_fact, check_value, value_text
from metatree.rules.matcher.network import Network
from metatree.rules.matcher.tokens import Agenda, Token, Values
from metatree.rules.matcher.truth import Truth
from metatree.storage.store import Store

MAX_INFERENCES: Final = 100_000
"""Facts that may follow from one change."""


class RulesDoNotRest(MetatreeError):
    """Productions assert and withdraw facts without an end."""


@dataclass(frozen=True, slots=True)
class FactChange:
    """A fact that came or went."""

    fact: Fact
    asserted: bool
    derived: bool
    """Whether productions did it, not a call from outside."""


class WorkingMemory:
    """Facts as triples, productions that match them, and the facts that productions justify.

    A production with a right-hand side `(! …)` is applied as soon as it matches, unless it is added as `controlled`:
    then its facts are asserted when somebody commits its tokens. Not safe for several threads at once.

    Example:
        >>> memory = WorkingMemory()
        >>> memory.add_productions('((<x> on <y>) -{(<z> on <x>)} -> "on top")')
        >>> memory.state("(B1 on B2) (B3 on B1)")
        >>> [dict(token) for token in memory.agenda("on top").tokens()]
        [{'x': 'B3', 'y': 'B1'}]
        >>> memory.query("(<x> on <y>) (<y> on <z>)")
        [{'x': 'B3', 'y': 'B1', 'z': 'B2'}]
    """

    def __init__(self, *, keeper: StoreKeeper | None = None) -> None:
        self._network = Network()
        self._keeper = keeper
        self._productions: dict[str, Production] = {}
        self._variables: dict[str, tuple[str, ...]] = {}
        self._truth = Truth(self._productions, self._variables)
        self._provenance: dict[Fact, dict[str, Any]] = {}
        self._watchers: list[Callable[[FactChange], object]] = []

    # Facts ------------------------------------------------------------------------------------------------------

    def add(
        self, subject: Any, attribute: Any, value: Any, *, provenance: dict[str, Any] | None = None
    ) -> bool:
        """State a fact; False when it was there already.

        Args:
            provenance: where it comes from, as JSON: an agent, a run, a step, sources.

        Raises:
            UserError: a value cannot be in a fact.
            RulesDoNotRest: productions go on asserting without an end.
        """
        fact = (check_value(subject), check_value(attribute), check_value(value))
        known = fact in self._network.facts
        if known and fact not in self._truth.derived:
            return False
        if provenance is not None:
            self._provenance[fact] = provenance
        if self._keeper is not None:
            with self._keeper.batch():
                self._keeper.fact(fact, holds=True, provenance=provenance)
                return self._state(fact, known=known)
        return self._state(fact, known=known)

    def _state(self, fact: Fact, *, known: bool) -> bool:
        if known:
            del self._truth.derived[fact]  # it stays now, whatever becomes of its justifications
            return False
        self._assert(fact, derived=False)
        self._infer()
        return True

    def retract(self, subject: Any, attribute: Any, value: Any) -> bool:
        """Take a stated fact back; False when it was not stated. One that is justified besides stays."""
        fact = (check_value(subject), check_value(attribute), check_value(value))
        if fact not in self._network.facts or fact in self._truth.derived:
            return False
        self._provenance.pop(fact, None)
        with self.batch():
            if self._keeper is not None:
                self._keeper.fact(fact, holds=False, provenance=None)
            if fact in self._truth.support:
                self._truth.derived[fact] = None
                if self._truth.is_grounded(fact):
                    return True
                self._truth.forget(fact)
            self._retract(fact, derived=False)
            self._infer()
        return True

    def batch(self) -> AbstractContextManager[None]:
        """Write what changes inside to the store at once, where there is one: many facts load faster so."""
        return nullcontext() if self._keeper is None else self._keeper.batch()

    def state(self, text: str) -> None:
        """State the facts of a text, such as `(a1 species rabbit) (rabbit weight 2)`."""
        self.add_all(parse_facts(text))

    def add_all(self, facts: Iterable[Iterable[Any]]) -> None:
        """State many facts."""
        with self.batch():
            for fact in facts:
                self.add(*check_fact(fact))

    def take_in(self, facts: Iterable[tuple[Fact, dict[str, Any] | None]]) -> None:
        """Take in facts with their provenance that a keeper has already: nothing is written, nobody is notified."""
        add = self._network.add
        for fact, provenance in facts:
            add(*fact)
            if provenance is not None:
                self._provenance[fact] = provenance
        self._infer()

    def __contains__(self, fact: object) -> bool:
        return fact in self._network.facts

    def __len__(self) -> int:
        return len(self._network.facts)

    def __iter__(self) -> Iterator[Fact]:
        """Yield the facts in the order of their coming."""
        return iter(list(self._network.facts))

    def is_derived(self, fact: Fact) -> bool:
        """Say whether a fact holds only because productions justify it."""
        return fact in self._truth.derived

    def event_of(self, fact: Fact) -> int:
        """Return the number of the event that a fact came with; KeyError when it is not there."""
        return self._network.facts[fact]

    def provenance(self, fact: Fact) -> dict[str, Any] | None:
        """Return where a fact comes from: what was said when it was stated, or the tokens that justify it."""
        if fact in self._truth.derived:
            return {
                "justified_by": [str(self._token(name, values)) for name, values in self._truth.support[fact]]
            }
        return self._provenance.get(fact)

    def text(self) -> str:
        """Return all stated facts in the text form, one a line."""
        return "\n".join(value_text(fact) for fact in self if fact not in self._truth.derived)

    def watch(self, callback: Callable[[FactChange], object]) -> Callable[[], None]:
        """Have a function called after each fact that comes or goes; return a function that ends it."""
        self._watchers.append(callback)
        return lambda: self._watchers.remove(callback)

    # Productions ------------------------------------------------------------------------------------------------

    @property
    def productions(self) -> dict[str, Production]:
        """The productions in use, by name."""
        return dict(self._productions)

    def add_production(self, production: Production | str, *, controlled: bool = False) -> Agenda:
        """Add a production, as an object or as text; it sees all facts that are there.

        Raises:
            UserError: its text is malformed, its name is taken, or a variable has no value.
        """
        if isinstance(production, str):
            read = parse_productions(production)
            if len(read) != 1:
                raise UserError(f"{len(read)} productions in one text: use add_productions")
            production = read[0]
        name = production.name
        eager = bool(production.asserts) and not controlled
        agenda = self._network.add_production(production, eager=eager)
        self._productions[name], self._variables[name] = production, agenda.variables
        self._truth.productions_changed()
        if not eager:
            if self._keeper is not None:
                self._restore(agenda, self._keeper.states(production))
            if self._keeper is not None or production.asserts:
                agenda.touched = self._network.touched
        self._infer()
        return agenda

    def add_productions(self, text: str, *, controlled: bool = False) -> None:
        """Add the productions of a text, all or none."""
        added: list[str] = []
        try:
            for production in parse_productions(text):
                self.add_production(production, controlled=controlled)
                added.append(production.name)
        except UserError:
            for name in added:
                self.remove_production(name)
            raise

    def remove_production(self, name: str) -> None:
        """Remove a production; facts that only it justifies go with it. Raises UserError when there is none."""
        agenda = self._network.remove_production(name)
        production = self._productions[name]
        for values in list(agenda.committed):
            self._withdraw(production, values)
        del self._productions[name], self._variables[name]
        self._truth.productions_changed()
        if self._keeper is not None:
            self._keeper.forget(name)
        self._infer()

    def agenda(self, name: str) -> Agenda:
        """Return the tokens of a production; raises UserError when there is none of this name."""
        try:
            return self._network.agendas[name]
        except KeyError:
            known = ", ".join(map(repr, self._network.agendas)) or "none"
            raise UserError(f"there is no production {name!r}: there are {known}") from None

    def query(
        self, conditions: str | tuple[Condition, ...], *, limit: int | None = None
    ) -> list[dict[str, Value]]:
        """Return the values of the variables for each way in which conditions are met now."""
        if isinstance(conditions, str):
            conditions = parse_conditions(conditions)
        name = "query"
        while name in self._productions:
            name += "'"
        agenda = self._network.match(Production(name, conditions), limit)
        return [dict(agenda.token(values)) for values in agenda.to_add]

    # Tokens -----------------------------------------------------------------------------------------------------

    def commit(
        self, name: str, *, add: Iterable[Token | Values] = (), remove: Iterable[Token | Values] = ()
    ) -> None:
        """Say that tokens are dealt with: all, some or one of those to add or to remove.

        What a controlled production asserts is asserted for tokens to add; when a token goes, so do its facts.

        Raises:
            UserError: a token is not among those to add or to remove; nothing is committed then.
        """
        agenda = self.agenda(name)
        adds, removes = [_values(t) for t in add], [_values(t) for t in remove]
        for waiting, wanted, what in ((agenda.to_remove, removes, "remove"), (agenda.to_add, adds, "add")):
            for values, times in Counter(wanted).items():
                if values not in waiting or times > 1:
                    raise UserError(f"{agenda.token(values)} is not a token to {what} of {name!r}")
        production = self._productions[name]
        with self.batch():
            for values in removes:
                agenda.commit_remove(values)
                self._note(production, values, "withdrawn", holds=False)
            for values in adds:
                agenda.commit_add(values)
                self._note(production, values, "committed", holds=True)
            for values in adds:
                self._apply(production, values)
            self._infer()

    def _note(self, production: Production, values: Values, state: str, *, holds: bool) -> None:
        if self._keeper is not None:
            self._keeper.token(production, values, state, holds=holds)

    def _token(self, name: str, values: Values) -> Token:
        return Token(name, self._variables[name], values)

    def _restore(self, agenda: Agenda, states: dict[str, list[Values]]) -> None:
        """Put the tokens of a production into the states that they were noted in."""
        for values in states.get("committed", ()):
            if values in agenda.to_add:
                agenda.committed[values] = agenda.to_add.pop(values)
            else:
                agenda.to_remove[values] = self._network.event
        for values in states.get("withdrawn", ()):
            agenda.to_remove[values] = self._network.event
        for values in agenda.committed:
            self._apply(agenda.production, values, again=True)

    # What follows -----------------------------------------------------------------------------------------------

    def _assert(self, fact: Fact, *, derived: bool) -> None:
        self._network.add(*fact)
        for watcher in self._watchers:
            watcher(FactChange(fact, True, derived))

    def _retract(self, fact: Fact, *, derived: bool) -> None:
        self._network.remove(*fact)
        for watcher in self._watchers:
            watcher(FactChange(fact, False, derived))

    def _infer(self) -> None:
        """Apply eager productions, and withdraw what lost its justification, until nothing follows any more."""
        touched = self._network.touched
        if not touched:
            return
        budget = MAX_INFERENCES
        while touched:
            agenda = touched.pop(0)
            if not agenda.eager:
                self._lose(agenda)
                continue
            removed, added = list(agenda.to_remove), list(agenda.to_add)
            for values in removed:
                agenda.commit_remove(values)
            for values in added:
                agenda.commit_add(values)
            budget -= len(added)
            if budget < 0:
                raise RulesDoNotRest(
                    f"more than {MAX_INFERENCES:,} facts follow from one change, the last by "
                    f"{agenda.production.name!r}: look for productions that feed or undo each other, or make one of "
                    "them controlled"
                )
            again = set(added)
            for values in removed:
                if values not in again:
                    self._withdraw(agenda.production, values)
            before = set(removed)
            for values in added:
                if values not in before:
                    self._apply(agenda.production, values)

    def _lose(self, agenda: Agenda) -> None:
        """Committed tokens were withdrawn: note it, and withdraw what they asserted."""
        lost, agenda.lost = agenda.lost, []
        for values in lost:
            self._note(agenda.production, values, "committed", holds=False)
            self._note(agenda.production, values, "withdrawn", holds=True)
            self._withdraw(agenda.production, values)

    def _apply(self, production: Production, values: Values, *, again: bool = False) -> None:
        """Assert what a production asserts for a token; `again`, after a restart: what was to stay is there already."""
        lasting = [] if again else self._truth.conclusions(production, values, lasting=True)
        for fact in lasting:
            known = fact in self._network.facts
            if known and fact not in self._truth.derived:
                continue
            provenance = {"production": production.name}
            self._provenance[fact] = provenance
            if self._keeper is not None:
                self._keeper.fact(fact, holds=True, provenance=provenance)
            if known:
                del self._truth.derived[fact]
            else:
                self._assert(fact, derived=True)
        for fact in self._truth.conclusions(production, values, lasting=False):
            holds = fact in self._network.facts
            if self._truth.justify(fact, (production.name, values), holds=holds):
                self._assert(fact, derived=True)

    def _withdraw(self, production: Production, values: Values) -> None:
        for fact in self._truth.conclusions(production, values, lasting=False):
            if self._truth.withdraw(fact, (production.name, values)):
                self._retract(fact, derived=True)


def open_memory(store: Store, name: str = "main") -> WorkingMemory:
    """Return a working memory that lives in a store, with the facts that are in it.

    A call that has returned is kept, whatever happens to the process. Productions are code, not data: add them again,
    and each finds its tokens as they were, those to add and to remove, and those that were dealt with.
    """
    keeper = StoreKeeper(store, name)
    memory = WorkingMemory(keeper=keeper)
    memory.take_in(keeper.facts())
    return memory


def _values(token: Token | Values) -> Values:
    return token.values_ if isinstance(token, Token) else token
