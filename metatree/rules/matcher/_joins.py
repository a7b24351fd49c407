"""The joins of a query: in which order its patterns and views are looked up after a change, and the function for it.

Orders are chosen by the numbers of facts, and the same query is written again when there are four times as many.

Lost: an order that never changes, which made a cross product of trips and animals before it looked at the weights.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from metatree.rules.language.conditions import Aggregate, Existence, Pattern, Var
from metatree.rules.language.values import Fact
from metatree.rules.matcher._aggregates import NEUTRAL
from metatree.rules.matcher._alpha import variable_at
from metatree.rules.matcher._emit import Code, Writer
from metatree.rules.matcher._plan import Plan, plan
from metatree.rules.matcher._views import QueryNode, ViewTable, table_of
from metatree.rules.matcher.scopes import View
from metatree.rules.matcher.tokens import Agenda

_GUESS: Final = {0: 1000.0, 1: 4.0, 2: 1.0}
"""Facts for each combination of so many known places, when there are none yet to be counted."""


class Enough(Exception):
    """As many tokens as were asked for."""


class Joins:
    """Orders and writes joins over the facts of one network, into which the functions put what they find.

    Args:
        facts: all facts, with the event that each came with.
        touched: eager agendas whose tokens may have changed are added to it.
        dirty: tables with pending changes are added to it.
    """

    def __init__(self, facts: Mapping[Fact, int], touched: list[Agenda], dirty: list[ViewTable]) -> None:
        self._facts = facts
        self._touched = touched
        self._dirty = dirty

    def fact_plan(self, node: QueryNode, number: int) -> Plan:
        """Order the steps after a change of a fact that fits one pattern."""
        changed = node.query.patterns[number]
        bound = {t.name for t in changed.terms if isinstance(t, Var)}
        if changed.fact is not None:
            bound.add(changed.fact)
        return self._plan(node, bound, without=changed)

    def fact_code(self, node: QueryNode, number: int, order: Plan, *, adds: bool) -> Code:
        """Write the function for a fact that fits one pattern of a query."""
        query = node.query
        changed = query.patterns[number]
        writer = self._writer(node)
        writer.begin("f0, f1, f2, event")
        self._opening(node, writer, adds=adds)
        writer.changed_fact(changed)
        writer.steps(order, {id(p): changed for p in query.patterns[:number]})
        self._sink(node, writer, adds=adds)
        return writer.finish(self._closing(node, writer))

    def view_plan(self, node: QueryNode, table: ViewTable) -> Plan:
        """Order the steps after a change of a view."""
        view = table.view
        return self._plan(node, view.key, **({"last": view} if view.function else {"without": view}))

    def view_code(self, node: QueryNode, table: ViewTable, order: Plan, *, name: str) -> Code:
        """Write the function for a key of a view that appears, vanishes, or changes its value."""
        view = table.view
        writer = self._writer(node)
        if name == "change":
            writer.begin("key, old, new, event")
            _unpack(writer, view)
            at = order.index(view)
            writer.steps(order[:at])
            writer.both(
                view,
                order[at + 1 :],
                lambda: self._sink(node, writer, adds=False),
                lambda: self._sink(node, writer, adds=True),
            )
        else:
            adds = (name == "appear") is isinstance(view.condition, Existence)
            writer.begin("key, event")
            self._opening(node, writer, adds=adds)
            _unpack(writer, view)
            writer.steps(order)
            self._sink(node, writer, adds=adds)
        return writer.finish(self._closing(node, writer))

    def whole_code(self, node: QueryNode, limit: int | None = None) -> Code:
        """Write the function that joins everything there is, once; it raises Enough after so many tokens."""
        writer = self._writer(node)
        writer.begin("event")
        writer.steps(self._plan(node, ()))
        self._sink(node, writer, adds=True)
        if limit is not None and isinstance(node.sink, Agenda):
            to_add, enough = writer.constant(node.sink.to_add), writer.constant(Enough)
            writer.line(f"if len({to_add}) >= {limit}: raise {enough}")
        return writer.finish()

    def _writer(self, node: QueryNode) -> Writer:
        return Writer(
            self._facts,
            lambda pattern: node.alphas[pattern],
            lambda view: table_of(node.tables[id(view)]),
            lambda view: NEUTRAL[view.function] if view.function else None,
        )

    def _plan(self, node: QueryNode, bound: Collection[str], **options: Any) -> Plan:
        return plan(node.query, bound, lambda p, known: self._fan_out(node, p, known), **options)

    def _fan_out(self, node: QueryNode, pattern: Pattern, known: Collection[str]) -> float:
        alpha = node.alphas[pattern]
        places = alpha.shape.places
        bound = tuple(p for p in places if variable_at(pattern, p) in known)
        if len(bound) == len(places) or pattern.fact in known:
            return 0.0
        at = len(self._facts)
        rows = alpha.distinct(places, at=at)
        if not rows:
            return _GUESS[len(bound)]
        return rows / max(1, alpha.distinct(bound, at=at)) if bound else float(rows)

    def _sink(self, node: QueryNode, writer: Writer, *, adds: bool) -> None:
        """Write what becomes of a combination."""
        sink = node.sink
        if isinstance(sink, Agenda):
            to_add = writer.constant(sink.to_add)
            token = writer.token(sink.variables)
            if adds:
                writer.line(f"{to_add}[{token}] = event")
            else:
                writer.line(f"token = {token}")
                writer.line(
                    f"if {to_add}.pop(token, None) is None: {writer.constant(sink.withdraw)}(token, event)"
                )
            return
        pending = writer.constant(sink.pending)
        key = writer.key(sink.view.key)
        sign = 1 if adds else -1
        if not sink.view.function:
            writer.line(f"of = {key}")
            writer.line(f"{pending}[of] = {pending}.get(of, 0) + {sign}")
            return
        assert isinstance(sink.view.condition, Aggregate)
        expression = sink.view.condition.expression
        if sink.compute is not None:
            arguments = ", ".join(writer.local[n] for n in sink.names)
            writer.line(f"value = {writer.constant(sink.compute)}({arguments})")
            writer.block("if value is not None:")
            value = "value"
        elif isinstance(expression, Var):
            value = writer.local[expression.name]
        else:
            value = "0" if expression is None else writer.constant(expression)
        writer.line(f"{pending}.append(({key}, {value}, {sign}))")

    def _closing(self, node: QueryNode, writer: Writer) -> list[str]:
        if isinstance(node.sink, Agenda):
            if not node.sink.eager:
                return []
            changes = writer.constant(node.sink.to_add), writer.constant(node.sink.to_remove)
            touched, agenda = writer.constant(self._touched), writer.constant(node.sink)
            return [f"if {changes[0]} or {changes[1]}: {touched}.append({agenda})"]
        pending, dirty = writer.constant(node.sink.pending), writer.constant(self._dirty)
        return [f"if {pending}: {dirty}.append({writer.constant(node.sink)})"]

    def _opening(self, node: QueryNode, writer: Writer, *, adds: bool) -> None:
        """A production without tokens has none to lose."""
        if not adds and isinstance(node.sink, Agenda):
            names = writer.constant(node.sink.to_add), writer.constant(node.sink.committed)
            writer.line(f"if not ({names[0]} or {names[1]}): return")


def _unpack(writer: Writer, view: View) -> None:
    if len(view.key) == 1:
        writer.local[view.key[0]] = "key"
    elif view.key:
        names = [writer.name(variable) for variable in view.key]
        writer.line(f"{', '.join(names)} = key")
