"""Groups of values of which one can be added or taken away, and whose sum never drifts.

A running float sum keeps the rounding of everything that ever passed through it. Here a float is added as the exact
integer that it is in units of 2**-1074, so what is left does not depend on what was there.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from heapq import heapify, heappop, heappush
from typing import Any, ClassVar, Final, Protocol

from metatree.rules.language.conditions import Function
from metatree.rules.language.values import Value, rank

_UNITS: Final = 1074
"""Every finite float is a whole number of 2**-1074."""
_ONE: Final = 1 << _UNITS
_DIGITS: Final = 28


class Group(Protocol):
    """The values of one group."""

    size: int
    """How many values it holds."""

    def add(self, value: Value) -> None:
        """Put a value in."""
        ...

    def remove(self, value: Value) -> None:
        """Take one out that was put in."""
        ...

    def result(self) -> Value | None:
        """Return the aggregate; None when it has no value."""
        ...


class Count:
    """How many there are."""

    __slots__ = ("size",)

    def __init__(self) -> None:
        self.size = 0

    def add(self, value: Value) -> None:
        self.size += 1

    def remove(self, value: Value) -> None:
        self.size -= 1

    def result(self) -> Value | None:
        return self.size


class Sum:
    """The sum of the numbers, rounded once; exact for ints and decimals, 28 digits when a result needs more."""

    __slots__ = ("decimals", "floats", "fraction", "numbers", "size", "total", "units")

    def __init__(self) -> None:
        self.size = 0
        self.numbers = 0
        self.total = 0
        self.floats = 0
        self.units = 0
        self.decimals = 0
        self.fraction = Fraction()

    def add(self, value: Value) -> None:
        self.size += 1
        self._change(value, 1)

    def remove(self, value: Value) -> None:
        self.size -= 1
        self._change(value, -1)

    def _change(self, value: Value, sign: int) -> None:
        kind = type(value)
        if kind is int:
            self.numbers += sign
            self.total += sign * value  # type: ignore[assignment, operator]
        elif kind is float:
            numerator, denominator = value.as_integer_ratio()  # type: ignore[union-attr]
            self.numbers += sign
            self.floats += sign
            self.units += sign * (numerator << (_UNITS + 1 - denominator.bit_length()))
        elif kind is Decimal:
            self.numbers += sign
            self.decimals += sign
            self.fraction += sign * Fraction(value)  # type: ignore[arg-type]

    def result(self) -> Value | None:
        if not self.floats and not self.decimals:
            return self.total
        if not self.decimals:
            return _quotient(self.total * _ONE + self.units, _ONE)
        return _rounded(self._exact(), to_float=bool(self.floats))

    def _exact(self) -> Fraction:
        return self.total + Fraction(self.units, _ONE) + self.fraction


class Average(Sum):
    """The mean of the numbers; none when there are no numbers."""

    __slots__ = ()

    def result(self) -> Value | None:
        if not self.numbers:
            return None
        mean = self._exact() / self.numbers
        if not self.floats and mean.denominator == 1 and not self.decimals:
            return mean.numerator
        return _rounded(mean, to_float=not self.decimals or bool(self.floats))


def _rounded(number: Fraction, *, to_float: bool) -> Value:
    if to_float:
        return _quotient(number.numerator, number.denominator)
    with localcontext() as context:
        context.prec = max(_DIGITS, len(str(abs(number.numerator))) + 1)
        exact = Decimal(number.numerator) / Decimal(number.denominator)
        if Fraction(exact) == number:
            return exact
        context.prec = _DIGITS
        return Decimal(number.numerator) / Decimal(number.denominator)


def _quotient(numerator: int, denominator: int) -> float:
    """Divide to the nearest float; what is beyond all floats is the largest of them."""
    try:
        return numerator / denominator
    except OverflowError:
        return sys.float_info.max if numerator > 0 else -sys.float_info.max


class _Extreme:
    """The first of the values in some order: a heap from which what was removed is thrown away when it comes up."""

    __slots__ = ("counts", "heap", "size")
    entry: ClassVar[type[_Ascending]]

    def __init__(self) -> None:
        self.size = 0
        self.counts: dict[Value, int] = {}
        self.heap: list[Any] = []

    def add(self, value: Value) -> None:
        self.size += 1
        count = self.counts.get(value, 0)
        self.counts[value] = count + 1
        if not count:
            heappush(self.heap, self.entry(value))

    def remove(self, value: Value) -> None:
        self.size -= 1
        count = self.counts[value] - 1
        if count:
            self.counts[value] = count
        else:
            del self.counts[value]
            if len(self.heap) > 2 * len(self.counts) + 16:
                self.heap = [self.entry(v) for v in self.counts]
                heapify(self.heap)

    def result(self) -> Value | None:
        heap = self.heap
        while heap:
            value: Value = heap[0].value
            if value in self.counts:
                return value
            heappop(heap)
        return None


class _Ascending:
    __slots__ = ("key", "value")

    def __init__(self, value: Value) -> None:
        self.value = value
        self.key = rank(value)

    def __lt__(self, other: _Ascending) -> bool:
        return self.key < other.key


class _Descending(_Ascending):
    __slots__ = ()

    def __lt__(self, other: _Ascending) -> bool:
        return self.key > other.key


class Min(_Extreme):
    """The least; numbers come before texts, texts before facts."""

    __slots__ = ()
    entry = _Ascending


class Max(_Extreme):
    """The greatest."""

    __slots__ = ()
    entry = _Descending


class Collection:
    """All values, sorted, each as often as it occurs."""

    __slots__ = ("counts", "size")

    def __init__(self) -> None:
        self.size = 0
        self.counts: dict[Value, int] = {}

    def add(self, value: Value) -> None:
        self.size += 1
        self.counts[value] = self.counts.get(value, 0) + 1

    def remove(self, value: Value) -> None:
        self.size -= 1
        count = self.counts[value] - 1
        if count:
            self.counts[value] = count
        else:
            del self.counts[value]

    def result(self) -> Value | None:
        return tuple(value for value in sorted(self.counts, key=rank) for _ in range(self.counts[value]))


GROUPS: Final[dict[Function, Callable[[], Group]]] = {
    "count": Count,
    "sum": Sum,
    "avg": Average,
    "min": Min,
    "max": Max,
    "collect": Collection,
}

NEUTRAL: Final[dict[Function, Value | None]] = {
    "count": 0,
    "sum": 0,
    "avg": None,
    "min": None,
    "max": None,
    "collect": (),
}
"""The aggregate of nothing; None: it has no value, and nothing matches."""
