"""What comes from users' code, checked where it comes in: values, goals, facts, arguments of definitions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from metatree_agents.planner.domain.conditions import (
    Condition,
    condition_of,
    condition_text,
    group_of,
    is_variable,
    parts_of,
)
from metatree_agents.planner.domain.model import BadDefinition, Goal
from metatree_agents.planner.domain.syntax import PlannerSyntaxError, read

MOST_DIGITS: Final = 1_000
_TOO_LARGE: Final = 10**MOST_DIGITS
MOST_SUBGOALS: Final = 100_000

_SHAPES: Final[dict[type, str]] = {
    str: "a text",
    bool: "True or False",
    int: "a whole number",
    float: "a finite number",
    Mapping: "a dictionary",
}
_CONDITIONS: Final = ("atom", "=", "sortof", "and", "or", "not", "imply", "forall", "exists")
_BODIES: Final = {
    "function": (),
    "search": ("into",),
    "tool": ("arguments", "into"),
    "ask": (),
    "sleep": (),
    "until": (),
    "receive": (),
    "agent": ("facts",),
}
"""What the body of a task may be, and what may stand beside it."""


def shown(value: Any) -> str:
    """Return a value as a message shows it, cut where it is long."""
    try:
        text = repr(value)
    except Exception:  # of a class of the user's
        text = f"<{type(value).__name__}>"
    return text if len(text) <= 80 else text[:77] + "…"


def checked(where: str, name: str, value: Any, *kinds: type | None) -> None:
    """Check the type of an argument; a whole number is a number, and no number is a truth value.

    Raises:
        BadDefinition: it is of none of these types; a number that is not finite is none.
    """
    for kind in kinds:
        if kind is None:
            if value is None:
                return
        elif kind is float:
            if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
                return
        elif isinstance(value, kind) and (kind is bool or not isinstance(value, bool)):
            return
    expected = " or ".join("None" if kind is None else _SHAPES[kind] for kind in kinds)
    raise BadDefinition(f"{where}: {name}={shown(value)}: give {expected}")


def checked_value(value: Any, where: str) -> Any:
    """Return a value of a fact or a goal: what its journal keeps, and finds again when it is compared.

    Raises:
        BadDefinition: it is no text, finite number, truth value or None, nor a tuple of such.
    """
    if isinstance(value, tuple):
        return tuple(checked_value(one, where) for one in value)
    why = ""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            why = "it holds half of a character"
    elif isinstance(value, float):
        why = "" if math.isfinite(value) else "it is no finite number"
    elif isinstance(value, int):
        why = "" if abs(value) < _TOO_LARGE else f"it has more than {MOST_DIGITS} digits"
    elif value is not None:
        why = "use a text, a number, True, False or None"
    if why:
        raise BadDefinition(f"{where}: the value {shown(value)} cannot be kept: {why}")
    return value


def goal_of(text: str | Sequence[Any]) -> Goal:
    """Return a goal from `name(value, …)` or a sequence; raises UserError where it is none, or names a variable."""
    name, terms = _group(text, "a goal", "go(market)", ("go", "market"))
    for term in terms:
        if is_variable(term):
            raise BadDefinition(f"goal {name!r}: {term} is a variable; a goal has values")
    return (name, *terms)


def subgoal_of(given: Any, where: str) -> Goal:
    """Return a sub-goal of a rule, which may name variables; raises UserError."""
    name, terms = _group(given, f"{where}: a sub-goal", "go(?to)", ("go", "?to"))
    return (name, *terms)


def facts_given(facts: Any) -> list[list[Any]]:
    """Return facts, each `at(home)` or relation and arguments; raises UserError where one is none."""
    if isinstance(facts, str | bytes | Mapping) or not isinstance(facts, Iterable):
        raise BadDefinition(f"facts={shown(facts)}: give a list of them, such as [('at', 'home')]")
    listed = []
    for fact in facts:
        name, terms = _group(fact, "a fact", "at(home)", ("at", "home"))
        for term in terms:
            if is_variable(term):
                raise BadDefinition(f"fact {name!r}: {shown(term)} is a variable; a fact has values")
        listed.append([name, *terms])
    return listed


def _group(given: Any, what: str, as_text: str, as_tuple: tuple[str, ...]) -> tuple[str, tuple[Any, ...]]:
    if isinstance(given, str):
        name, terms = group_of(given)
    elif isinstance(given, list | tuple) and given and isinstance(given[0], str) and given[0]:
        name, terms = given[0], tuple(given[1:])
    else:
        raise BadDefinition(f"{what} cannot be {shown(given)}: write {as_text!r} or {as_tuple!r}")
    return name, tuple(checked_value(term, f"{what} {shown(name)}") for term in terms)


def condition_given(given: Any, where: str) -> Condition:
    """Return a condition from its text, or from data that has one; raises UserError."""
    if isinstance(given, str):
        return condition_of(given, where)
    try:
        read(condition_text(given))
        unknown = [part[0] for part in parts_of(given) if part[0] not in _CONDITIONS]
    except PlannerSyntaxError as exc:
        raise BadDefinition(f"{where}: {shown(given)} is no condition: {exc}") from exc
    except (TypeError, ValueError, LookupError, AttributeError, RecursionError):
        unknown = [given]
    if unknown:
        raise BadDefinition(
            f"{where}: {shown(unknown[0])} is no condition: write it as a text, such as '(at ?x)'"
        )
    return tuple(given)


def body_given(does: Any, where: str) -> dict[str, Any]:
    """Return what the body of a task is, checked; see `bodies`.

    Raises:
        BadDefinition: it is no body that there is, or JSON cannot hold it.
    """
    checked(where, "does", does, Mapping)
    kinds = [key for key in does if key in _BODIES]
    known = ", ".join(repr(key) for key in _BODIES if key != "function")
    if does and len(kinds) != 1:
        raise BadDefinition(f"{where}: does={shown(dict(does))}: give one of {known}")
    for key, value in does.items():
        if key not in kinds and key not in _BODIES[kinds[0]]:
            raise BadDefinition(f"{where}: does={shown(dict(does))}: nothing is called {key!r} there")
        if key in ("search", "tool", "ask", "receive", "agent", "until", "into"):
            checked(where, f"does: {key}", value, str)
        elif key == "sleep":
            checked(where, f"does: {key}", value, float, str)
        elif key == "arguments":
            checked(where, f"does: {key}", value, Mapping)
    if "facts" in does:
        facts_given(does["facts"])
    return dict(does)


def order_given(order: Any, count: int, where: str) -> tuple[tuple[int, int], ...]:
    """Return pairs of sub-goals, the first before the second; raises BadDefinition."""
    if isinstance(order, bool):
        return tuple((index - 1, index) for index in range(1, count)) if order else ()
    try:
        pairs = [tuple(pair) for pair in order]
    except TypeError:
        pairs = [()]
    if not all(len(pair) == 2 and all(type(one) is int for one in pair) for pair in pairs):
        raise BadDefinition(
            f"{where}: order={shown(order)}: give True, False, or pairs of sub-goals such as [(0, 1), (0, 2)]"
        )
    return tuple((first, second) for first, second in pairs)
