"""Handlers: the functions that bring one query up to date after one kind of change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from metatree.rules.matcher._emit import Code
from metatree.rules.matcher._plan import Plan
from metatree.rules.matcher.scopes import CompiledQuery

Put = Callable[[Callable[..., None] | None], None]
"""Puts a function in the place of the one that was put last; None takes it out of use."""


class Handler:
    """A function for one kind of change of one query: written ahead, compiled when first called.

    Args:
        query: what is brought up to date.
        plan: gives the order of steps that is best now.
        write: writes the function for an order.
        put: puts the function where it is called.
    """

    __slots__ = ("_plan", "_put", "_write", "code", "order", "query")

    def __init__(
        self, query: CompiledQuery, plan: Callable[[], Plan], write: Callable[[Plan], Code], put: Put
    ) -> None:
        self.query = query
        self._plan, self._write, self._put = plan, write, put
        self.order = plan()
        self.code = write(self.order)
        put(self._first)

    def replan(self) -> None:
        """Write the function again if another order of steps is better now."""
        order = self._plan()
        if order != self.order:
            self.order = order
            self.code = self._write(order)
            self._put(self._first)

    def remove(self) -> None:
        """Take the function out of use."""
        self._put(None)

    def _first(self, *arguments: Any) -> None:
        function = self.code.compiled()
        self._put(function)
        function(*arguments)


def place_in(functions: list[Any]) -> Put:
    """Return what puts one function into a list of them."""
    current: Callable[..., None] | None = None

    def put(function: Callable[..., None] | None) -> None:
        nonlocal current
        if current is None:
            functions.append(function)
        elif function is None:
            functions.remove(current)
        else:
            functions[functions.index(current)] = function
        current = function

    return put
