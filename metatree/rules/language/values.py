"""The values that facts are made of: texts, numbers, and facts themselves.

A symbol is a text that can be written without quotes, so `rabbit` and `"rabbit"` are one value; `"12"` is a text and
`12` a number. Lost: a type for symbols, which every caller in Python would have to wrap. Numbers
compare as numbers, whatever their type: 1, 1.0 and Decimal("1.0") are one value.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from math import isfinite
from typing import Any, Final, TypeAlias

from metatree.errors import UserError

Number: TypeAlias = int | float | Decimal
Value: TypeAlias = "str | int | float | Decimal | tuple[Value, ...]"
"""A tuple of three is a fact; other tuples come only from `#collect`."""
Fact: TypeAlias = tuple[Value, Value, Value]
"""Id, attribute, value."""

_NUMBER = re.compile(r"[+-]?(\d+|\d*\.\d+|\d+\.)([eE][+-]?\d+)?\Z")
_SYMBOL = re.compile(r"(?:[^\s()<>{}\"#;-]++|-(?!>))++\Z")
_RESERVED = frozenset(
    {"->", "<-", "as", "from", "=", "<>", "<", ">", "<=", ">=", "-{", "+{", "|{", "!", "!!", ":=", "|"}
)
MAX_DIGITS: Final = 1000
"""Of a whole number."""
MAX_DEPTH: Final = 64
"""How deep facts may be nested, and brackets in a text."""
MAX_PARTS: Final = 10_000
"""Values in one fact, those in the facts inside of it too."""
_LARGEST: Final = 10**MAX_DIGITS - 1
_FOREIGN: Final = {
    "==": "= for equal values",
    "===": "= for equal values",
    "!=": "<> for different values",
    "=>": "-> between conditions and actions",
    "-->": "-> between conditions and actions",
    "&&": "one condition after the other",
    "||": "|{ conditions | conditions }",
    "~": "a test such as (<x> <> 1)",
}
_FOREIGN_VARIABLE: Final = re.compile(r"~?(?:\$\?|\?|\$)([^\W\d][\w-]*)([&|:~].*)?\Z", re.DOTALL)
_FOREIGN_NEGATION: Final = re.compile(r"~[\w.-]+\Z")
_FOREIGN_ALTERNATIVES: Final = re.compile(r"[\w.-]++(\|[\w.-]++)++\Z")
_FOREIGN_ATTRIBUTE: Final = re.compile(r"\^[^\W\d][\w.-]*\Z")


def foreign(word: str) -> str | None:
    """Say what to write instead of a word as CLIPS, Drools or Soar have it; None for any other word."""
    if variable := _FOREIGN_VARIABLE.match(word):
        name = variable.group(1)
        test = f", and a test such as (<{name}> <> 1)" if variable.group(2) else ""
        return f"<{name}> for a variable{test}"
    if _FOREIGN_ATTRIBUTE.match(word):
        return f"(id {word[1:]} value), one pattern for each attribute"
    if _FOREIGN_NEGATION.match(word):
        return f"<x> and a test, (<x> <> {word[1:]})"
    if _FOREIGN_ALTERNATIVES.match(word):
        return f"<x> and |{{ {' | '.join(f'(<x> = {one})' for one in word.split('|'))} }}"
    return _FOREIGN.get(word)


def is_numeral(text: str) -> bool:
    """Say whether a text spells a number."""
    return _NUMBER.match(text) is not None


def number_of(text: str) -> Number | None:
    """Return the number that a text spells: int, Decimal for `1.5`, float with an exponent; None when it is none."""
    if not _NUMBER.match(text):
        return None
    if "e" in text or "E" in text:
        number = float(text)
        return number if isfinite(number) else None
    return Decimal(text) if "." in text else int(text)


def check_value(value: Any) -> Value:
    """Return a value as facts hold it: booleans become the symbols `true` and `false`.

    Raises:
        UserError: it is no text, finite number or fact, or larger than a value may be.
    """
    kind = type(value)
    if kind is str:
        return value  # type: ignore[no-any-return]
    if kind is int:
        if -_LARGEST <= value <= _LARGEST:
            return value  # type: ignore[no-any-return]
        raise UserError(
            f"a number of more than {MAX_DIGITS:,} digits cannot be in a fact: use a float or a text"
        )
    if kind is bool:
        return "true" if value else "false"
    if kind is float or kind is Decimal:
        if not isfinite(value):
            raise UserError(
                f"{value!r} cannot be in a fact: numbers must be finite, and decimals no larger than floats"
            )
        if kind is float or fits(value):
            return value  # type: ignore[no-any-return]
        raise UserError(
            f"a number of more than {MAX_DIGITS:,} digits cannot be in a fact: use a float or a text"
        )
    if isinstance(value, list | tuple):
        _check_size(value)
        return tuple(check_value(part) for part in value)
    if isinstance(value, str):  # also members of a StrEnum
        return str(value)
    raise UserError(
        f"{value!r} cannot be in a fact: use a text, an int, a float, a Decimal, or a fact as a tuple of three"
    )


def fits(value: Value) -> bool:
    """Say whether a number is finite and of few enough digits for a fact; what is no number fits."""
    if type(value) is int:
        return -_LARGEST <= value <= _LARGEST
    if type(value) is float:
        return isfinite(value)
    if type(value) is Decimal:
        _, digits, exponent = value.as_tuple()
        return isinstance(exponent, int) and len(digits) + abs(exponent) <= MAX_DIGITS and isfinite(value)
    return True


def _check_size(value: Any) -> None:
    """Raise UserError for a fact that is nested too deep, or of too many values; it may hold one part many times."""
    parts, level = len(value), [value]
    for _ in range(MAX_DEPTH - 1):
        level = [part for one in level for part in one if isinstance(part, list | tuple)]
        parts += sum(map(len, level))
        if not level or parts > MAX_PARTS:
            break
    if parts > MAX_PARTS:
        raise UserError(f"a fact of more than {MAX_PARTS:,} values: divide it into several facts")
    if level:
        raise UserError(f"facts are nested more than {MAX_DEPTH} deep: divide them into several facts")


def check_fact(fact: Iterable[Any]) -> Fact:
    """Return a fact of checked values; raises UserError when it has not three."""
    if isinstance(fact, str) or not isinstance(fact, Iterable):
        raise UserError(f"{fact!r} is no fact: a fact is (id, attribute, value)")
    parts = tuple(check_value(part) for part in fact)
    if len(parts) != 3:
        raise UserError(f"{parts!r} is no fact: a fact is (id, attribute, value)")
    return parts


def is_number(value: object) -> bool:
    """Say whether a value is a number."""
    return type(value) in NUMERIC


NUMERIC: Final = frozenset({int, float, Decimal})


def rank(value: Value) -> tuple[int, Any]:
    """Return a sort key under which any two values can be compared: numbers, then texts, then facts."""
    if isinstance(value, str):
        return 1, value
    if isinstance(value, tuple):
        return 2, tuple(rank(part) for part in value)
    return 0, value


def value_text(value: Value) -> str:
    """Return a value in the text form; `check_value` and the parser give it back.

    Example:
        >>> value_text("rabbit"), value_text("3 apples"), value_text("12"), value_text(12), value_text(("a", "on", "b"))
        ('rabbit', '"3 apples"', '"12"', '12', '(a on b)')
    """
    if isinstance(value, tuple):
        return f"({' '.join(map(value_text, value))})"
    if not isinstance(value, str):
        return _number_text(value)
    if (
        value not in _RESERVED
        and _SYMBOL.match(value)
        and number_of(value) is None
        and foreign(value) is None
    ):
        return value
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'


def _number_text(number: Number) -> str:
    if isinstance(number, Decimal):
        text = format(number, "f")
        return text if "." in text else text + ".0"
    if isinstance(number, float):
        text = repr(number)
        # `1.5` is read as a decimal, which is the same number; `0.1` would not be.
        return text if "e" in text or Decimal(text) == number else text + "e0"
    return str(number)


def to_json(value: Value) -> Any:
    """Return a value as JSON that `from_json` turns back, types included."""
    if isinstance(value, Decimal):
        return {"decimal": str(value)}
    if isinstance(value, tuple):
        return [to_json(part) for part in value]
    return value


def from_json(value: Any) -> Value:
    """Return the value that `to_json` wrote."""
    if isinstance(value, dict):
        return Decimal(value["decimal"])
    if isinstance(value, list):
        return tuple(from_json(part) for part in value)
    return check_value(value)


class NotANumber(ArithmeticError):
    """Arithmetic met a text, or a division by zero; the test it stands in is not met."""


def arithmetic(sign: str, left: Value, right: Value) -> Number:
    """Apply `+ - * /`; ints stay exact, an int quotient that is whole is an int, a float makes the result a float.

    Raises:
        NotANumber: an operand is no number, or the divisor is zero.
    """
    if not (is_number(left) and is_number(right)):
        raise NotANumber
    a: Any = left
    b: Any = right
    try:
        if type(a) is not type(b) and float in (type(a), type(b)):
            a, b = float(a), float(b)
        result: Number = _ARITHMETIC[sign](a, b)
    except ArithmeticError as exc:
        raise NotANumber from exc
    return result


def compare(comparison: str, left: Value, right: Value) -> bool:
    """Apply `= <> < > <= >=`; an order between a number and a text is never met."""
    try:
        return bool(_COMPARISONS[comparison](left, right))
    except TypeError:
        return False


def _divided(a: Any, b: Any) -> Any:
    return a // b if type(a) is int and type(b) is int and b and a % b == 0 else a / b


_ARITHMETIC: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _divided,
}
_COMPARISONS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
}
