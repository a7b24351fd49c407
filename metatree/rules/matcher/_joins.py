"""The joins of a query: in which order its patterns and views are looked up after a change, and the function for it.

Orders are chosen by the numbers of facts, and the same query is written again when there are four times as many.

Lost: an order that never changes, which made a cross product of trips and animals before it looked at the weights.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from metatree.rules.language.conditions import Aggregate, Binary, FunctionCall, Pattern, Var
from metatree.rules.language.values import Fact
from metatree.rules.matcher._alpha import variable_at
from metatree.rules.matcher._code import CHANGE, Code
from metatree.rules.matcher._emit import Writer, names_of, value_function
from metatree.rules.matcher._gates import Gate
from metatree.rules.matcher._plan import Plan, plan
from metatree.rules.matcher.scopes import CompiledQuery, Union, View
from metatree.rules.matcher.tokens import Agenda

_GUESS: Final = {0: 1000.0, 1: 4.0, 2: 1.0}
"""Facts for each combination of so many known places, when there are none yet to be counted."""


class Enough(Exception):
    """As many tokens as were asked for."""


class Joins:
    """Orders and writes joins over the facts of one network, into which the functions put what they find.

    Args:
        facts: all facts, with the event that each came with.
        touched: eager agendas whose tokens may have changed are put into it.
        dirty: tables with pending changes are added to it.
    """

    def __init__(
        self, facts: Mapping[Fact, int], touched: dict[Agenda, None], dirty: list[View | Union]
    ) -> None:
        self._facts = facts
        self._touched = touched
        self._dirty = dirty
        self.looking: list[bool] = []
        """Not empty when a function for a fact that goes looks facts up: it must find that one too."""

    def fact_plan(self, query: CompiledQuery, number: int) -> Plan:
        """Order the steps after a change of a fact that fits one pattern."""
        changed = query.patterns[number]
        bound = {t.name for t in changed.terms if isinstance(t, Var)}
        if changed.fact is not None:
            bound.add(changed.fact)
        return self._plan(query, bound, without=changed)

    def fact_code(self, query: CompiledQuery, number: int, order: Plan, *, adds: bool) -> Code:
        """Write the function for a fact that fits one pattern of a query."""
        changed = query.patterns[number]
        writer = Writer(self._facts, query)
        writer.begin(CHANGE)
        _watch_gate(query, writer)
        if not adds and (has_tokens := _has_tokens(query, writer)):
            writer.block(f"if {has_tokens}:")
        writer.changed_fact(changed)
        if adds or not _is_token(query, writer):
            writer.steps(order, {id(p): changed for p in query.patterns[:number]})
        self._sink(query, writer, adds=adds)
        code = writer.finish(self._closing(query, writer))
        if not adds and " in facts:" in code.body + code.parts:
            self.looking[:] = [True]
        return code

    def view_plan(self, query: CompiledQuery, view: View) -> Plan:
        """Order the steps after a change of a view."""
        return self._plan(query, view.key, last=view)

    def view_code(self, query: CompiledQuery, view: View, order: Plan) -> Code:
        """Write the function for a key of a view whose entry appears, vanishes, or changes."""
        writer = Writer(self._facts, query)
        writer.begin("key, old, new, event")
        _watch_gate(query, writer)
        _unpack(writer, view)
        at = order.index(view)
        writer.steps(order[:at])
        writer.both(
            view,
            order[at + 1 :],
            lambda: self._sink(query, writer, adds=False),
            lambda: self._sink(query, writer, adds=True),
            old_if=_has_tokens(query, writer),
        )
        return writer.finish(self._closing(query, writer))

    def whole_plan(self, query: CompiledQuery) -> Plan:
        """Order the steps of a join of everything there is."""
        return self._plan(query, ())

    def whole_code(self, query: CompiledQuery, order: Plan, limit: int | None = None) -> Code:
        """Write the function that joins everything there is; it raises Enough after so many tokens."""
        writer = Writer(self._facts, query)
        writer.begin("event")
        writer.steps(order)
        self._sink(query, writer, adds=True)
        if limit is not None and isinstance(query.sink, Agenda):
            to_add, enough = writer.constant(query.sink.to_add), writer.constant(Enough)
            writer.line(f"if len({to_add}) >= {limit}: raise {enough}")
        return writer.finish()

    def _plan(self, query: CompiledQuery, bound: Collection[str], **options: Any) -> Plan:
        return plan(query, {*bound, *query.known}, lambda p, known: self._fan_out(query, p, known), **options)

    def _fan_out(self, query: CompiledQuery, pattern: Pattern, known: Collection[str]) -> float:
        alpha = query.alphas[pattern]
        places = alpha.shape.places
        bound = tuple(p for p in places if variable_at(pattern, p) in known)
        if len(bound) == len(places) or pattern.fact in known:
            return 0.0
        at = len(self._facts)
        rows = alpha.distinct(places, at=at)
        if not rows:
            return _GUESS[len(bound)]
        return rows / max(1, alpha.distinct(bound, at=at)) if bound else float(rows)

    def _sink(self, query: CompiledQuery, writer: Writer, *, adds: bool) -> None:
        """Write what becomes of a combination."""
        sink = query.sink
        if isinstance(sink, Agenda | Gate):
            agenda = _agenda(sink)
            to_add = writer.constant(agenda.to_add)
            token = writer.token(agenda.variables)
            opened = writer.constant(sink.opened) if isinstance(sink, Gate) else ""
            held = writer.constant(sink.held) if isinstance(sink, Gate) else ""
            if adds:
                into = f"({to_add} if {opened} else {held})" if opened else to_add
                writer.line(f"{into}[{token}] = event")
                return
            writer.line(f"token = {token}")
            withdraw = (
                f"if {to_add}.pop(token, None) is None: {writer.constant(agenda.withdraw)}(token, event)"
            )
            if opened:
                writer.line(f"if not {opened}: {held}.pop(token, None)")
            writer.line(f"el{withdraw}" if opened else withdraw)
            return
        assert sink is not None
        pending = writer.constant(sink.pending)
        sign = 1 if adds else -1
        if isinstance(sink, Union):
            token, whole = writer.token(sink.agenda.variables), writer.token(query.variables)
            writer.line(f"{pending}.append(({token}, ({sink.queries.index(query)}, {whole}), {sign}))")
            return
        key = writer.key(sink.key)
        if not isinstance(sink.condition, Aggregate):
            writer.line(f"of = {key}")
            writer.line(f"{pending}[of] = {pending}.get(of, 0) + {sign}")
            return
        expression = sink.condition.expression
        if isinstance(expression, Var):
            value = writer.local[expression.name]
        elif isinstance(expression, Binary | FunctionCall):
            names = names_of(expression)
            compute = writer.constant(value_function(expression, names))
            writer.line(f"value = {compute}({', '.join(writer.local[n] for n in names)})")
            writer.block("if value is not None:")
            value = "value"
        else:
            value = "0" if expression is None else writer.constant(expression)
        writer.line(f"{pending}.append(({key}, {value}, {sign}))")

    def _closing(self, query: CompiledQuery, writer: Writer) -> list[str]:
        sink = query.sink
        assert sink is not None
        if isinstance(sink, Agenda | Gate):
            agenda = _agenda(sink)
            if not agenda.eager:
                return []
            changes = writer.constant(agenda.to_add), writer.constant(agenda.to_remove)
            touched, name = writer.constant(self._touched), writer.constant(agenda)
            return [f"if {changes[0]} or {changes[1]}: {touched}[{name}] = None"]
        pending, dirty = writer.constant(sink.pending), writer.constant(self._dirty)
        return [f"if {pending}: {dirty}.append({writer.constant(sink)})"]


def _has_tokens(query: CompiledQuery, writer: Writer) -> str:
    """Return the test whether a production has tokens to lose; empty inside of a view."""
    sink = query.sink
    if not isinstance(sink, Agenda | Gate):
        return ""
    agenda = _agenda(sink)
    held = f" or {writer.constant(sink.held)}" if isinstance(sink, Gate) else ""
    return f"{writer.constant(agenda.to_add)} or {writer.constant(agenda.committed)}{held}"


def _is_token(query: CompiledQuery, writer: Writer) -> bool:
    """Say whether what is known is a whole token: once its fact goes it holds no more, whatever else there is."""
    sink = query.sink
    return isinstance(sink, Agenda | Gate) and writer.local.keys() >= set(_agenda(sink).variables)


def _agenda(sink: Agenda | Gate) -> Agenda:
    return sink.agenda if isinstance(sink, Gate) else sink


def _watch_gate(query: CompiledQuery, writer: Writer) -> None:
    """Write the test that leaves all out while a gate is shut and its tokens are not kept."""
    gate = query.sink
    if isinstance(gate, Gate):
        opened, warm, spend = map(writer.constant, (gate.opened, gate.warm, gate.spend))
        writer.block(f"if {opened} or {warm} and {spend}():")


def _unpack(writer: Writer, view: View) -> None:
    if len(view.key) == 1:
        writer.local[view.key[0]] = "key"
    elif view.key:
        names = [writer.name(variable) for variable in view.key]
        writer.line(f"{', '.join(names)} = key")
