"""Handlers: the functions that bring one query up to date after one kind of change."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from metatree.rules.matcher._alpha import Alpha
from metatree.rules.matcher._code import Code
from metatree.rules.matcher._plan import Plan
from metatree.rules.matcher.scopes import CompiledQuery

Put = Callable[[Code | None], None]
"""Puts a function in the place of the one that was put last; None takes it out of use."""


class Handler:
    """A function for one kind of change of one query, written when it may find something.

    Args:
        query: what is brought up to date.
        plan: gives the order of steps that is best now.
        write: writes the function for an order.
        put: puts the function where it is called.
        needs: memories without which it finds nothing: it is put there when each has had a fact.

    Source: Doorenbos 1995 unlinks joins from memories while another is empty. Here nothing is taken out again: for a
    memory that is filled and emptied in turns that would cost more than it saves.
    """

    __slots__ = ("_needs", "_plan", "_put", "_write", "code", "order", "query")

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
        self._needs = list(needs)
        self.order: Plan | None = None
        """None while the function waits to be written."""
        self.code: Code | None = None
        self._link()

    def _link(self) -> None:
        """Write the function and put it where it is called, or wait for one of the memories that are empty."""
        while self._needs:
            if self._needs[-1].empty:
                self._needs[-1].waiting.append(self._link)
                return
            self._needs.pop()
        self._written(self._plan())

    def _written(self, order: Plan) -> None:
        self.order, self.code = order, self._write(order)
        self._put(self.code)

    def replan(self) -> None:
        """Write the function again if another order of steps is better now."""
        if self.order is not None and (order := self._plan()) != self.order:
            self._written(order)

    def remove(self) -> None:
        """Take the function out of use."""
        if self._needs:
            self._needs[-1].waiting.remove(self._link)
        else:
            self._put(None)


def place_in(codes: list[Code], changed: Callable[[], None]) -> Put:
    """Return what puts one function into a list of them, and says so."""
    current: Code | None = None

    def put(code: Code | None) -> None:
        nonlocal current
        if current is None:
            assert code is not None
            codes.append(code)
        elif code is None:
            codes.remove(current)
        else:
            codes[codes.index(current)] = code
        current = code
        changed()

    return put


def attribute_of(owner: object, name: str) -> Put:
    """Return what makes a function an attribute; it stays when it is taken out of use, since its owner goes then."""

    def put(code: Code | None) -> None:
        if code is not None:
            code.put_lazily(partial(setattr, owner, name))

    return put
