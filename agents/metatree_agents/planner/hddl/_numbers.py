"""Numbers in the functions that a problem is compiled to: read from the state, compared, changed.

A number is exact, an int or a Fraction, so that the same sums come to the same state whatever their order. It may
have no value: none in `:init`, a division by zero, changes at once that do not agree, or one past `_MOST`. What is
computed from it has none either, and no comparison with it is true.
"""

from __future__ import annotations

import operator
from collections.abc import Collection
from fractions import Fraction
from typing import Any, Final

Number = int | Fraction
_MOST: Final = 10**300
"""A number whose parts are larger has no value: squares of squares would fill the memory."""

_COMPARE: Final = {"<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge, "=": operator.eq}
_SIGNS: Final = {"assign": "=", "increase": "+", "decrease": "-", "scale-up": "*", "scale-down": "/"}


class Table(dict[tuple[int, ...], Number]):
    """A function in a state: looks like the set of its facts, arguments with the value behind them."""

    def add(self, fact: tuple[Any, ...]) -> None:
        """Give arguments a value."""
        self[fact[:-1]] = fact[-1]

    def discard(self, fact: tuple[Any, ...]) -> None:
        """Take a value away, if it is this one."""
        if fact in self:
            del self[fact[:-1]]

    def __contains__(self, fact: object) -> bool:
        return isinstance(fact, tuple) and self.get(fact[:-1]) == fact[-1]


def number(table: Table | Collection[Any], arguments: tuple[int, ...]) -> Number | None:
    """Return a function's value in a state."""
    if isinstance(table, Table):
        return table.get(arguments)
    return next((fact[-1] for fact in table if fact[:-1] == arguments), None)


def compare(sign: str, left: Number | None, right: Number | None) -> bool:
    """Say whether a comparison holds."""
    return left is not None and right is not None and bool(_COMPARE[sign](left, right))


def arithmetic(sign: str, first: Number | None, *others: Number | None) -> Number | None:
    """Return a sum, a difference, a product or a quotient."""
    if first is None:
        return None
    result: Number = -first if sign == "-" and not others else first
    for one in others:
        if one is None or (sign == "/" and one == 0):
            return None
        match sign:
            case "+":
                result += one
            case "-":
                result -= one
            case "*":
                result *= one
            case _:
                result = Fraction(result) / one
    if max(abs(result.numerator), result.denominator) > _MOST:
        return None
    return result.numerator if result.denominator == 1 else result


def change(
    new: dict[Any, Any], state: Any, place: int, arguments: tuple[int, ...], how: str, amount: Number | None
) -> None:
    """Note one change of a number; several at once agree where all of them add or take away."""
    key, sign = (place, arguments), _SIGNS[how]
    adds = sign in "+-"
    if key not in new:
        before = number(state[place], arguments)
    elif adds and new[key][0]:
        before = new[key][1]
    else:
        before = amount = None
    new[key] = adds, amount if sign == "=" else arithmetic(sign, before, amount)


def settle(new: dict[Any, Any], state: Any, add: list[Any], delete: list[Any]) -> None:
    """Add what becomes of numbers to the changes of facts."""
    for (place, arguments), (_, value) in new.items():
        before = number(state[place], arguments)
        if before == value:
            continue
        if before is not None:
            delete.append((place, (*arguments, before)))
        if value is not None:
            add.append((place, (*arguments, value)))


NUMBERS: Final[dict[str, Any]] = {
    "number": number,
    "compare": compare,
    "arithmetic": arithmetic,
    "change": change,
    "settle": settle,
}
"""Their names in compiled functions."""
