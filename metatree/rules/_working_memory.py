"""Working memory: facts, the productions that watch them, and what follows from both."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import islice
from operator import itemgetter
from typing import Any, Final

from metatree.errors import MetatreeError, UserError
from metatree.rules._store_keeper import StoreKeeper
from metatree.rules.language.conditions import (
    Action,
    Assertion,
    Condition,
    Production,
    Replacement,
    Retraction,
)
from metatree.rules.language.functions import FunctionFailed, Functions
from metatree.rules.language.text import parse_conditions, parse_facts, parse_productions
from metatree.rules.language.values import Fact, Value, check_fact, check_value, value_text
from metatree.rules.matcher.network import Network
from metatree.rules.matcher.tokens import Agenda, Token, Values
from metatree.rules.matcher.truth import Truth, conclusions
from metatree.storage.store import Store

MAX_INFERENCES: Final = 100_000
"""Facts that may follow from one change."""
_SHOWN: Final = 3
"""How many tokens that vouch for a fact are named."""


class RulesDoNotRest(MetatreeError):
    """Productions assert and withdraw facts without an end; the change that led to it is undone."""


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
    then it is applied when somebody commits its tokens. Of several, the one with the highest salience goes first. A
    change whose consequences fail, or come to no rest, is undone with all of them. Not safe for several threads.

    Args:
        functions: name -> a pure Python function that conditions and right-hand sides may call, `#name(<x> …)`.
        max_inferences: how many facts may follow from one change.

    Raises:
        UserError: a function has no name that can be written, or cannot be called.

    Example:
        >>> memory = WorkingMemory()
        >>> memory.add_productions('((<x> on <y>) -{(<z> on <x>)} -> "on top")')
        >>> memory.state("(B1 on B2) (B3 on B1)")
        >>> [dict(token) for token in memory.agenda("on top").tokens()]
        [{'x': 'B3', 'y': 'B1'}]
        >>> memory.query("(<x> on <y>) (<y> on <z>)")
        [{'x': 'B3', 'y': 'B1', 'z': 'B2'}]
    """

    def __init__(
        self,
        *,
        functions: Mapping[str, Callable[..., Any]] | None = None,
        max_inferences: int | None = None,
        keeper: StoreKeeper | None = None,
    ) -> None:
        self._functions = Functions(functions)
        self._max_inferences = MAX_INFERENCES if max_inferences is None else max_inferences
        if type(self._max_inferences) is not int or self._max_inferences < 1:
            raise UserError(f"max_inferences is {max_inferences!r}: give a whole number from 1")
        self._network = Network()
        self._keeper = keeper
        self._productions: dict[str, Production] = {}
        self._agendas: dict[str, Agenda] = {}
        self._undo: list[tuple[Any, ...]] = []
        """What takes the change in progress back, first things first: functions with their arguments."""
        self._truth = Truth(self._agendas, self._undo)
        # The same objects for good: a short way to them is worth a tenth of an assert.
        self._support, self._touched = self._truth.support, self._network.touched
        self._failures = self._functions.failures
        self._provenance: dict[Fact, dict[str, Any]] = {}
        self._watchers: list[Callable[[FactChange], object]] = []
        self._special = [True] if self._functions.own else []
        """Not empty once a fact was not of texts alone, or known to others than the caller, or something may follow:
        `retract` looks then."""
        self._holding = False
        """Whether facts are being added that count as one change."""
        self._salient = False
        """Whether some production has another salience than others."""
        if keeper is None and type(self).retract is _RETRACT:  # not of a subclass, nor wrapped
            self.retract = self._retract_quickly()  # type: ignore[assignment, method-assign]

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
        if type(subject) is not str:
            subject = self._special_value(subject)
        if type(attribute) is not str:
            attribute = self._special_value(attribute)
        if type(value) is not str:
            value = self._special_value(value)
        if provenance is not None or self._watchers or self._holding or self._keeper is not None:
            with self.batch():
                return self._state((subject, attribute, value), provenance)
        # The way of most facts: nothing follows, so nothing has to be taken back, and no record of it is made.
        add = self._network.add  # a function that is an attribute is called faster by a name of its own
        if not add(subject, attribute, value):
            return self._state((subject, attribute, value), None)
        if self._touched or self._failures:
            self._undo.append((self._unassert, (subject, attribute, value), False))
            self._infer(self._network.event - 1)
        return True

    def _special_value(self, value: Any) -> Value:
        if not self._special:
            self._special.append(True)
        return check_value(value)

    def _state(self, fact: Fact, provenance: dict[str, Any] | None) -> bool:
        known = fact in self._network.facts
        if known and fact not in self._truth.derived:
            return False
        if provenance is not None or not all(type(value) is str for value in fact):
            self._special[:] = [True]
        if provenance is not None:
            self._provenance[fact] = provenance
            self._undo.append((self._provenance.pop, fact, None))
        if self._keeper is not None:
            self._keeper.fact(fact, holds=True, provenance=provenance)
        if known:
            self._truth.mark_stated(fact)  # it stays now, whatever becomes of its justifications
            if not self._holding:
                self._undo.clear()
            return False
        event = self._network.event
        self._assert(fact, derived=False)
        if not self._holding:
            self._infer(event)
        return True

    def retract(self, subject: Any, attribute: Any, value: Any) -> bool:
        """Take a stated fact back; False when it was not stated. One that is justified besides stays.

        Raises:
            RulesDoNotRest: productions go on asserting without an end; it is still stated then.
        """
        fact = (check_value(subject), check_value(attribute), check_value(value))
        if fact in self._truth.derived or fact not in self._network.facts:
            return False
        event = self._network.event
        with self.batch():
            self._take_back(fact)
            self._infer(event)
        return True

    def _retract_quickly(self) -> Callable[[Any, Any, Any], bool]:
        """Return `retract` as one function, for facts that nobody but the caller knows anything of: most are."""

        def follow(fact: Fact, since: int) -> None:
            self._undo.append((self._unretract, fact, False, since))
            self._infer(self._network.event - 1)

        written = self._network.retracting(
            check=check_value,
            support=self._support,
            provenance=self._provenance,
            watchers=self._watchers,
            retract_any=self.retract,
            special=self._special,
            failures=self._failures,
            follow=follow,
        )
        return functools.update_wrapper(written, self.retract)

    def _take_back(self, fact: Fact) -> None:
        """Take a stated fact back; what follows from that is up to the caller."""
        if self._provenance and fact in self._provenance:
            self._undo.append((self._provenance.__setitem__, fact, self._provenance.pop(fact)))
        if self._keeper is not None:
            self._keeper.fact(fact, holds=False, provenance=None)
        if fact in self._truth.support:
            self._truth.mark_derived(fact)
            if self._truth.is_grounded(fact):
                return
            self._truth.forget(fact)
        self._retract(fact, derived=False)

    def batch(self) -> AbstractContextManager[None]:
        """Write what changes inside to the store at once, where there is one: many facts load faster so."""
        return nullcontext() if self._keeper is None else self._keeper.batch()

    def state(self, text: str) -> None:
        """State the facts of a text, such as `(a1 species rabbit) (rabbit weight 2)`."""
        self.add_all(parse_facts(text))

    def add_all(self, facts: Iterable[Iterable[Any]]) -> None:
        """State many facts as one change: all or none, and what follows from them follows from all of them.

        Raises:
            UserError: one of them is no fact.
            RulesDoNotRest: productions go on asserting without an end.
        """
        if not isinstance(facts, Iterable):
            raise UserError(f"{facts!r} is no list of facts")
        checked = [check_fact(fact) for fact in facts]
        event = self._network.event
        with self.batch():
            self._holding = True
            try:
                for fact in checked:
                    self._state(fact, None)
            except BaseException:
                self._roll_back(event)
                raise
            finally:
                self._holding = False
            self._infer(event)

    def take_in(self, facts: Iterable[tuple[Fact, dict[str, Any] | None]]) -> None:
        """Take in facts with their provenance that a keeper has already: nothing is written, nobody is notified."""
        self._special[:] = [True]
        add = self._network.add
        for fact, provenance in facts:
            add(*fact)
            if provenance is not None:
                self._provenance[fact] = provenance
        self._infer(self._network.event)

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
            return {"justified_by": [str(token) for token in self.justifications(fact)]}
        return self._provenance.get(fact)

    def justifications(self, fact: Fact) -> list[Token]:
        """Return the tokens that vouch for a fact, each with its production; none for one that is only stated."""
        return [self._agendas[name].token(values) for name, values in self._truth.support.get(fact, ())]

    def text(self) -> str:
        """Return all facts in the text form, one a line.

        What was inferred is a comment that says by what, so that the text can be stated again.
        """
        return "\n".join(
            f"# {value_text(fact)}  by {self.inferred_by(fact)}"
            if fact in self._truth.derived
            else value_text(fact)
            for fact in self
        )

    def inferred_by(self, fact: Fact) -> str:
        """Return in a few words which productions vouch for a fact, and for which tokens."""
        tokens = self.justifications(fact)
        shown = ", ".join(f'"{token.production}" {token}' for token in tokens[:_SHOWN])
        return shown + (f" and {len(tokens) - _SHOWN:,} more" if len(tokens) > _SHOWN else "")

    def watch(self, callback: Callable[[FactChange], object]) -> Callable[[], None]:
        """Have a function called after each fact that comes or goes; return a function that ends it."""
        self._special[:] = [True]
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
            read = parse_productions(production, self._functions)
            if len(read) != 1:
                raise UserError(f"{len(read)} productions in one text: use add_productions")
            production = read[0]
        elif not isinstance(production, Production):
            raise UserError(f"{production!r} is no production: give a Production, or its text")
        production = self._functions.put_into(production)
        if production.actions:
            self._special[:] = [True]
        name = production.name
        eager = bool(production.actions) and not controlled
        event = self._network.event
        agenda = self._network.add_production(production, eager=eager)
        self._productions[name], self._agendas[name] = production, agenda
        self._productions_changed()
        try:
            if not eager:
                if self._keeper is not None:
                    self._restore(agenda, self._keeper.states(production))
                if self._keeper is not None or production.actions:
                    agenda.touched = self._network.touched
            with self.batch():
                self._infer(event)
        except BaseException:
            self._network.remove_production(name)
            self._forget_production(name)
            raise
        return agenda

    def _productions_changed(self) -> None:
        self._truth.productions_changed()
        self._salient = len({production.salience for production in self._productions.values()}) > 1

    def _forget_production(self, name: str) -> None:
        del self._productions[name], self._agendas[name]
        self._productions_changed()

    def add_productions(self, text: str, *, controlled: bool = False) -> None:
        """Add the productions of a text, all or none."""
        added: list[str] = []
        try:
            for production in parse_productions(text, self._functions):
                self.add_production(production, controlled=controlled)
                added.append(production.name)
        except MetatreeError:
            for name in added:
                self.remove_production(name)
            raise

    def remove_production(self, name: str) -> None:
        """Remove a production; facts that only it justifies go with it.

        Raises:
            UserError: there is none of this name.
            RulesDoNotRest: others go on asserting without an end once those facts are gone; it stays.
        """
        event = self._network.event
        production, agenda = self.agenda(name).production, self.agenda(name)
        with self.batch():
            # What it justifies goes first, while it can still be found; its conditions go last.
            agenda.eager, eager = False, agenda.eager
            try:
                self._network.touched.pop(agenda, None)
                for values in list(agenda.committed):
                    self._withdraw(production, values)
                self._infer(event)
            except BaseException:
                agenda.eager = eager
                raise
            if self._keeper is not None:
                self._keeper.forget(name)
        self._network.remove_production(name)
        self._network.touched.clear()
        self._forget_production(name)

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
        """Return the values of the variables for each way in which conditions are met now, `limit` of them at most.

        Raises:
            UserError: the conditions are malformed, or the limit is no whole number from 0.
        """
        if limit is not None and (type(limit) is not int or limit < 0):
            raise UserError(f"limit is {limit!r}: give a whole number from 0, or None")
        if not isinstance(conditions, tuple):
            conditions = parse_conditions(conditions, self._functions)
        name = "query"
        while name in self._productions:
            name += "'"
        agenda = self._network.match(self._functions.put_into(Production(name, conditions)), limit)
        self._check_functions()
        return [dict(agenda.token(values)) for values in islice(agenda.to_add, limit)]

    # Tokens -----------------------------------------------------------------------------------------------------

    def commit(
        self, name: str, *, add: Iterable[Token | Values] = (), remove: Iterable[Token | Values] = ()
    ) -> None:
        """Say that tokens are dealt with: all, some or one of those to add or to remove.

        A controlled production does what its right-hand side says for tokens to add, one after the other: one that an
        earlier one undid does nothing. When a token goes, so do the facts that it justified.

        Raises:
            UserError: a token is not among those to add or to remove; nothing is committed then.
        """
        agenda = self.agenda(name)
        adds, removes = [_values(t) for t in add], [_values(t) for t in remove]
        for waiting, wanted, what in ((agenda.to_remove, removes, "remove"), (agenda.to_add, adds, "add")):
            for values, times in Counter(wanted).items():
                if values not in waiting or times > 1:
                    shown = agenda.token(values) if len(values) == len(agenda.variables) else repr(values)
                    raise UserError(f"{shown} is not a token to {what} of {name!r}")
        production, event = self._productions[name], self._network.event
        with self.batch():
            for values in removes:
                self._undo.append((agenda.to_remove.__setitem__, values, agenda.to_remove[values]))
                agenda.commit_remove(values)
                self._note(production, values, "withdrawn", holds=False)
            for values in adds:
                self._undo.append((_uncommit, agenda, values, agenda.to_add[values]))
                agenda.commit_add(values)
                self._note(production, values, "committed", holds=True)
            self._infer(event, (agenda, adds))

    def _note(self, production: Production, values: Values, state: str, *, holds: bool) -> None:
        if self._keeper is not None:
            self._keeper.token(production, values, state, holds=holds)

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
            self._apply(agenda, values, again=True)

    # What follows -----------------------------------------------------------------------------------------------

    def _assert(self, fact: Fact, *, derived: bool) -> None:
        self._network.add(*fact)
        self._undo.append((self._unassert, fact, derived))
        for watcher in self._watchers:
            watcher(FactChange(fact, True, derived))

    def _retract(self, fact: Fact, *, derived: bool) -> None:
        event = self._network.facts[fact]
        self._network.remove(*fact)
        self._undo.append((self._unretract, fact, derived, event))
        for watcher in self._watchers:
            watcher(FactChange(fact, False, derived))

    def _infer(self, event: int, applied: tuple[Agenda, list[Values]] | None = None) -> None:
        """Finish a change: apply eager productions, and withdraw what lost its justification, until nothing follows.

        Where that fails, all that was done since the change began is undone.

        Args:
            event: the last one before the change.
            applied: a controlled production, and tokens of it whose right-hand side is due.
        """
        if self._network.touched or applied or self._functions.failures:
            try:
                if applied is not None:
                    agenda, due = applied
                    for values in due:
                        if values in agenda.committed:
                            self._apply(agenda, values)
                self._run()
                self._check_functions()
            except BaseException:
                self._roll_back(event)
                raise
        self._undo.clear()

    def _run(self) -> None:
        touched = self._network.touched
        budget = self._max_inferences
        while touched:
            agenda = self._next(touched)
            if agenda.weakened:
                self._weaken(agenda)
            if not agenda.eager:
                self._lose(agenda)
                continue
            removed, added = list(agenda.to_remove), list(agenda.to_add)
            for values in removed:
                agenda.commit_remove(values)
            if agenda.production.acts:
                for values in removed:
                    self._withdraw(agenda.production, values)
                budget -= self._act(agenda, added)
            else:
                for values in added:
                    agenda.commit_add(values)
                budget -= len(added)
                again, before = set(added), set(removed)
                for values in removed:
                    if values not in again:
                        self._withdraw(agenda.production, values)
                for values in added:
                    if values not in before:
                        self._apply(agenda, values)
            if budget < 0:
                raise RulesDoNotRest(
                    f"more than {self._max_inferences:,} facts follow from one change, the last by "
                    f"{agenda.production.name!r}: look for productions that feed or undo each other, or make one of "
                    "them controlled; the change is undone"
                )

    def _next(self, touched: dict[Agenda, None]) -> Agenda:
        """Take the agenda that is dealt with next: what lost tokens, then the highest salience, then the first."""
        best = next(iter(touched))
        if self._salient:
            best = max(touched, key=lambda agenda: (not agenda.eager, agenda.production.salience))
        del touched[best]
        return best

    def _weaken(self, agenda: Agenda) -> None:
        """Retract what tokens with fewer ways than before justify no more, but in a circle."""
        weakened, agenda.weakened = agenda.weakened, []
        for values in weakened:
            if values in agenda.committed:
                for fact in self._justified(agenda.production, values):
                    if fact in self._truth.derived and not self._truth.is_grounded(fact):
                        self._truth.forget(fact)
                        self._retract(fact, derived=True)

    def _act(self, agenda: Agenda, added: list[Values]) -> int:
        """Apply a production to one token after the other, as long as they hold and none more salient is due."""
        done = 0
        for values in added:
            if values not in agenda.to_add:
                continue  # what was done for another one undid it
            agenda.commit_add(values)
            self._apply(agenda, values)
            done += 1
            touched = self._network.touched
            if self._salient and any(
                other.production.salience > agenda.production.salience for other in touched if other.eager
            ):
                break
        if agenda.to_add or agenda.to_remove:
            self._network.touched[agenda] = None
        return done

    def _check_functions(self) -> None:
        failures = self._functions.failures
        if failures:
            first, more = failures[0], len(failures) - 1
            failures.clear()
            raise FunctionFailed(first + (f" (and {more:,} more)" if more else ""))

    def _roll_back(self, event: int) -> None:
        """Take back all that was done since the change began."""
        undo = self._undo[:]
        self._undo.clear()
        for function, *arguments in reversed(undo):
            function(*arguments)
        self._undo.clear()
        self._functions.failures.clear()
        for agenda in self._agendas.values():
            agenda.lost.clear()
            agenda.weakened.clear()
            if agenda.eager:  # before a change all of its tokens are dealt with
                agenda.committed.update(agenda.to_add)
                agenda.to_add.clear()
                agenda.to_remove.clear()
                continue
            for values in [v for v, since in agenda.to_remove.items() if since > event]:
                del agenda.to_remove[values]
                if values in agenda.to_add:
                    agenda.committed[values] = agenda.to_add.pop(values)
        self._network.touched.clear()
        in_order = sorted(self._network.facts.items(), key=itemgetter(1))
        self._network.facts.clear()
        self._network.facts.update(in_order)

    def _unassert(self, fact: Fact, derived: bool) -> None:
        self._network.remove(*fact)
        for watcher in self._watchers:
            watcher(FactChange(fact, False, derived))

    def _unretract(self, fact: Fact, derived: bool, event: int) -> None:
        self._network.add(*fact)
        self._network.facts[fact] = event
        for watcher in self._watchers:
            watcher(FactChange(fact, True, derived))

    def _lose(self, agenda: Agenda) -> None:
        """Committed tokens were withdrawn: note it, and withdraw what they asserted."""
        lost, agenda.lost = agenda.lost, []
        for values in lost:
            self._note(agenda.production, values, "committed", holds=False)
            self._note(agenda.production, values, "withdrawn", holds=True)
            self._withdraw(agenda.production, values)

    def _apply(self, agenda: Agenda, values: Values, *, again: bool = False) -> None:
        """Do what a production says for a token; `again`, after a restart: what was to stay is done already."""
        self._special[:] = [True]
        production = agenda.production
        known = dict(zip(agenda.variables, values, strict=True))
        for action, places in conclusions(production, production.actions, known):
            if isinstance(action, Assertion) and not action.lasting:
                holds = places in self._network.facts
                if values not in agenda.committed:
                    continue  # an action before this one undid the token
                if self._truth.justify(places, (production.name, values), holds=holds):
                    self._assert(places, derived=True)
            elif not again:
                self._change(production, action, places)

    def _change(self, production: Production, action: Action, places: Any) -> None:
        """State a fact, take one back, or both."""
        facts = self._network.facts
        if isinstance(action, Retraction):
            fact = places[0] if len(places) == 1 else places
            if isinstance(fact, tuple) and fact in facts and fact not in self._truth.derived:
                self._take_back(fact)
            return
        if isinstance(action, Replacement):
            others = self._network.values_of(places[0], places[1])
            for other in others:
                fact = (places[0], places[1], other)
                if other != places[2] and fact not in self._truth.derived:
                    self._take_back(fact)
        known = places in facts
        if known and places not in self._truth.derived:
            return
        provenance = {"production": production.name}
        self._undo.append((self._provenance.pop, places, None))
        self._provenance[places] = provenance
        if self._keeper is not None:
            self._keeper.fact(places, holds=True, provenance=provenance)
        if known:
            self._truth.mark_stated(places)
        else:
            self._assert(places, derived=True)

    def _justified(self, production: Production, values: Values) -> list[Fact]:
        known = dict(zip(self._agendas[production.name].variables, values, strict=True))
        actions = [a for a in production.actions if isinstance(a, Assertion) and not a.lasting]
        return [fact for _, fact in conclusions(production, actions, known)]

    def _withdraw(self, production: Production, values: Values) -> None:
        if not production.justifies:
            return
        for fact in self._justified(production, values):
            if self._truth.withdraw(fact, (production.name, values)):
                self._retract(fact, derived=True)


_RETRACT: Final = WorkingMemory.retract


def open_memory(
    store: Store, name: str = "main", *, functions: Mapping[str, Callable[..., Any]] | None = None
) -> WorkingMemory:
    """Return a working memory that lives in a store, with the facts that are in it.

    A call that has returned is kept, whatever happens to the process. Productions are code, not data: add them again,
    and each finds its tokens as they were, those to add and to remove, and those that were dealt with.
    """
    keeper = StoreKeeper(store, name)
    memory = WorkingMemory(keeper=keeper, functions=functions)
    memory.take_in(keeper.facts())
    return memory


def _values(token: Token | Values) -> Values:
    return token.values_ if isinstance(token, Token) else token


def _uncommit(agenda: Agenda, values: Values, event: int) -> None:
    agenda.committed.pop(values, None)
    if agenda.to_remove.get(values, 0) > event:
        del agenda.to_remove[values]
    agenda.to_add[values] = event
