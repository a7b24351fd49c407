"""Pure functions that rules call by name, `#name(<x> …)`: those that are always there, and those that a caller brings.

A function gets values of facts and returns one; `true` and `false` are symbols, so a test may be `(#like(<s> "a*"))`.
It must be pure, since the matcher calls it again when a fact goes: the same values must give the same result.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from fnmatch import translate
from functools import lru_cache
from math import floor
from typing import Any, Final, TypeAlias

from metatree.errors import MetatreeError, UserError
from metatree.rules.language.conditions import FunctionCall, Production, parts_of
from metatree.rules.language.values import (
    NUMERIC,
    NotANumber,
    Number,
    Value,
    check_value,
    number_of,
    value_text,
)

Function: TypeAlias = Callable[..., Any]
NAME: Final = re.compile(r"[^\W\d][\w-]*\Z")
_LONGEST: Final = 10_000_000
"""Characters of a text that a function makes."""


class FunctionFailed(MetatreeError):
    """A function that rules call raised, or returned what cannot be in a fact; the change that led to it is undone."""


def _text(value: Value) -> str:
    if not isinstance(value, str):
        raise NotANumber
    return value


def _number(value: Value) -> Any:
    if type(value) not in NUMERIC:
        raise NotANumber
    return value


def _joined(*values: Value) -> str:
    if sum(len(value) if isinstance(value, str) else 1 for value in values) > _LONGEST:
        raise NotANumber
    return "".join(value if isinstance(value, str) else value_text(value) for value in values)


def _modulo(number: Value, divisor: Value) -> Number:
    a, b = _number(number), _number(divisor)
    if float in (type(a), type(b)):
        a, b = float(a), float(b)
    result: Number = a - b * floor(a / b) if isinstance(a, Decimal) or isinstance(b, Decimal) else a % b
    return result


def _as_number(value: Value) -> Value:
    number = number_of(value) if isinstance(value, str) else value
    if type(number) not in NUMERIC:
        raise NotANumber
    return number  # type: ignore[return-value]


@lru_cache(maxsize=256)
def _wildcards(pattern: str) -> re.Pattern[str]:
    return re.compile(translate(pattern))


BUILT_IN: Final[Mapping[str, tuple[Function, str]]] = {
    "starts-with": (lambda text, part: _text(text).startswith(_text(part)), "text part"),
    "ends-with": (lambda text, part: _text(text).endswith(_text(part)), "text part"),
    "contains": (lambda text, part: _text(part) in _text(text), "text part"),
    # Wildcards, not regular expressions: those can take for ever.
    "like": (lambda text, pattern: bool(_wildcards(_text(pattern)).match(_text(text))), "text pattern"),
    "length": (lambda text: len(_text(text)), "text"),
    "lower": (lambda text: _text(text).lower(), "text"),
    "upper": (lambda text: _text(text).upper(), "text"),
    "join": (_joined, "value …"),
    "text": (_joined, "value"),
    "number": (_as_number, "text"),
    "abs": (lambda number: abs(_number(number)), "number"),
    "mod": (_modulo, "number divisor"),
}
"""Name -> the function and its arguments; given a value of another kind it has no result, so a test is not met."""


class Functions:
    """The functions that the rules of one working memory may call.

    Args:
        own: name -> a pure function of values, besides those that are always there.

    Raises:
        UserError: a name is no name, or is taken; what it names cannot be called.
    """

    def __init__(self, own: Mapping[str, Function] | None = None) -> None:
        self._own: dict[str, Function] = {}
        self.failures: list[str] = []
        """What went wrong in functions since somebody asked."""
        if own is not None and not isinstance(own, Mapping):
            raise UserError(f"functions is {own!r}: give a dict of names and functions")
        for name, function in (own or {}).items():
            if not isinstance(name, str) or not NAME.match(name):
                raise UserError(f"{name!r} is no name for a function: use letters, digits, '-' and '_'")
            if name in BUILT_IN or name in AGGREGATES:
                raise UserError(f"#{name} is there already: give your function another name")
            if not callable(function):
                raise UserError(f"{function!r} cannot be called: give a function for #{name}")
            self._own[name] = function

    @property
    def own(self) -> Mapping[str, Function]:
        """Those that a caller brought."""
        return dict(self._own)

    def __contains__(self, name: object) -> bool:
        return name in BUILT_IN or name in self._own

    def named(self) -> str:
        """Return all names, for errors."""
        return ", ".join(f"#{name}" for name in (*BUILT_IN, *self._own))

    def put_into(self, production: Production) -> Production:
        """Return a production whose calls know what they call; raises UserError when there is no such function."""
        if not any(isinstance(part, FunctionCall) for part in parts_of(production)):
            return production
        return _with_functions(production, self._resolved)  # type: ignore[no-any-return]

    def _resolved(self, name: str) -> Function:
        if name in BUILT_IN:
            return _built_in(BUILT_IN[name][0])
        if name not in self._own:
            raise UserError(f"there is no function #{name}: there are {self.named()}")
        return self._guarded(name, self._own[name])

    def _guarded(self, name: str, function: Function) -> Function:
        """Return a function that has no result where the caller's one fails, and notes that it did.

        It may not raise: the matcher is in the middle of a change.
        """

        def call(*values: Value) -> Value:
            try:
                return check_value(function(*values))
            except NotANumber:
                raise
            except Exception as exc:
                shown = " ".join(value_text(value)[:200] for value in values)
                self.failures.append(f"#{name}({shown}) failed: {type(exc).__name__}: {exc}")
                raise NotANumber from exc

        return call


def _built_in(function: Function) -> Function:
    def call(*values: Value) -> Value:
        try:
            return check_value(function(*values))
        except (TypeError, ValueError, ArithmeticError, UserError) as exc:
            raise NotANumber from exc

    return call


AGGREGATES: Final = ("sum", "count", "min", "max", "avg", "collect")


def _with_functions(part: Any, resolved: Callable[[str], Function]) -> Any:
    from dataclasses import fields, is_dataclass, replace

    if isinstance(part, FunctionCall):
        arguments = tuple(_with_functions(one, resolved) for one in part.arguments)
        return replace(part, arguments=arguments, function=resolved(part.name))
    if isinstance(part, tuple):
        return tuple(_with_functions(one, resolved) for one in part)
    if is_dataclass(part) and not isinstance(part, type):
        return replace(
            part, **{f.name: _with_functions(getattr(part, f.name), resolved) for f in fields(part)}
        )
    return part
