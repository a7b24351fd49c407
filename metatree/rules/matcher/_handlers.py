"""Handlers: the functions that bring one query up to date after one kind of change."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from metatree.rules.matcher._emit import Code
from metatree.rules.matcher._joins import Joins
from metatree.rules.matcher._plan import Plan
from metatree.rules.matcher._views import Node, Table


class Handler(ABC):
    """A function for one kind of change of one query: written ahead, compiled when first called."""

    __slots__ = ("code", "joins", "node", "order")

    def __init__(self, joins: Joins, node: Node) -> None:
        self.joins = joins
        self.node = node
        self.order = self._order()
        self.code = self._code()

    def replan(self) -> None:
        """Write the function again if another order of steps is better now."""
        order = self._order()
        if order != self.order:
            self.order = order
            self.code = self._code()
            self._put(self._first)

    def _first(self, *arguments: Any) -> None:
        made = self.code.compiled()
        self._put(made)
        made(*arguments)

    @abstractmethod
    def _order(self) -> Plan: ...

    @abstractmethod
    def _code(self) -> Code: ...

    @abstractmethod
    def _put(self, function: Callable[..., None]) -> None: ...

    @abstractmethod
    def remove(self) -> None:
        """Take the function out of use."""


class FactHandler(Handler):
    """For facts that fit one pattern."""

    __slots__ = ("adds", "current", "handlers", "number")

    def __init__(self, joins: Joins, node: Node, number: int, handlers: list[Any], *, adds: bool) -> None:
        self.number = number
        self.handlers = handlers
        self.adds = adds
        super().__init__(joins, node)
        self.current: Callable[..., None] = self._first
        handlers.append(self.current)

    def _order(self) -> Plan:
        return self.joins.fact_plan(self.node, self.number)

    def _code(self) -> Code:
        return self.joins.fact_code(self.node, self.number, self.order, adds=self.adds)

    def _put(self, function: Callable[..., None]) -> None:
        self.handlers[self.handlers.index(self.current)] = function
        self.current = function

    def remove(self) -> None:
        self.handlers.remove(self.current)


class ViewHandler(Handler):
    """For keys of one view."""

    __slots__ = ("name", "table")

    def __init__(self, joins: Joins, node: Node, table: Table, name: str) -> None:
        self.table = table
        self.name = name
        super().__init__(joins, node)
        self._put(self._first)

    def _order(self) -> Plan:
        return self.joins.view_plan(self.node, self.table)

    def _code(self) -> Code:
        return self.joins.view_code(self.node, self.table, self.order, self.name)

    def _put(self, function: Callable[..., None]) -> None:
        setattr(self.table, self.name, function)

    def remove(self) -> None:
        """Do nothing: the table, which alone calls the function, goes with its query."""
