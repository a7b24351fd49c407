"""Handlers: the functions that bring one query up to date after one kind of change."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from metatree.rules.matcher._alpha import Alpha
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
        needs: memories without which it finds nothing: it is put there when each has had a fact.

    Source: what is not put there while a memory is empty is the right unlinking of Doorenbos 1995; here nothing is taken
    out again, since a memory that is filled and emptied in turns would cost more than it saves.
    """

    __slots__ = ("_function", "_needs", "_plan", "_put", "_write", "code", "order", "query")

    def __init__(
        self,
        query: CompiledQuery,
        plan: Callable[[], Plan],
        write: Callable[[Plan], Code],
        put: Put,
        needs: Iterable[Alpha] = (),
    ) -> None:
        self.query = query
        self._plan, self._write, self._put = plan, write, put
        self.order = plan()
        self.code = write(self.order)
        self._function: Callable[..., None] | None = self._first
        self._needs: list[Alpha] | None = list(needs)
        self._link()

    def _link(self) -> None:
        """Put the function where it is called, or wait for one of the memories that are empty."""
        if self._needs is None or self._function is None:
            return
        while self._needs:
            if self._needs[-1].empty:
                self._needs[-1].waiting.append(self._link)
                return
            self._needs.pop()
        self._needs = None
        self._put(self._function)

    def _change(self, function: Callable[..., None] | None) -> None:
        self._function = function
        if self._needs is None:
            self._put(function)

    def replan(self) -> None:
        """Write the function again if another order of steps is better now."""
        order = self._plan()
        if order != self.order:
            self.order = order
            self.code = self._write(order)
            self._change(self._first)

    def remove(self) -> None:
        """Take the function out of use."""
        if self._needs:
            self._needs[-1].waiting.remove(self._link)
        self._change(None)

    def _first(self, *arguments: Any) -> None:
        function = self.code.compiled()
        self._change(function)
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
