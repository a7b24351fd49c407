"""Conditions over facts: plain data, how they are written, and what makes them true.

A condition is a nested tuple:

    ("atom", relation, terms)   ("=", term, term)   ("sortof", term, type)
    ("and", …)   ("or", …)   ("not", c)   ("imply", c, c)   ("forall", variables, c)   ("exists", variables, c)

A term is a text; one that begins with `?` is a variable. `variables` are pairs of a variable and its types.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from functools import cache
from typing import Any, Final

from metatree_agents.planner.domain.syntax import Expression, ExpressionReader, Group, Word, read

Condition = tuple[Any, ...]
Binding = dict[str, Any]
Atom = tuple[Any, ...]
"""Relation, then its arguments."""

NUMERIC: Final = frozenset({"<", ">", "<=", ">=", "+", "-", "*", "/", "increase", "decrease", "assign"})
"""What PDDL compares and changes numbers with."""

TRUE: Final[Condition] = ("and",)
FALSE: Final[Condition] = ("or",)


def is_variable(term: Any) -> bool:
    """Say whether a term is a variable."""
    return isinstance(term, str) and term[:1] == "?"


def parse_condition(
    at: Expression, reader: ExpressionReader, *, term: Callable[[Word], Any] | None = None
) -> Condition:
    """Read a condition; `()` is always true.

    Args:
        at: as `syntax.read` gives it.
        reader: names the source in errors.
        term: makes a term of a word; by default its lower-cased text.

    Raises:
        PlannerSyntaxError: it is out of form.
    """
    name = term or (lambda word: word.text)
    group = reader.group(at, "a condition")
    if not group.items:
        return TRUE
    head, rest = reader.head(group, "a condition"), group.items[1:]

    def inner(one: Expression) -> Condition:
        return parse_condition(one, reader, term=term)

    def needs(count: int) -> None:
        if len(rest) != count:
            raise reader.error(group, f"`{head.text}` takes {count} arguments, not {len(rest)}")

    match head.text:
        case "and" | "or":
            return (head.text, *(inner(one) for one in rest))
        case "not":
            needs(1)
            return ("not", inner(rest[0]))
        case "imply":
            needs(2)
            return ("imply", inner(rest[0]), inner(rest[1]))
        case "forall" | "exists":
            needs(2)
            listed = reader.typed(reader.group(rest[0], "variables").items, "a variable")
            bound = tuple((word.text, tuple(t.text for t in types)) for word, types in listed)
            for word, _ in listed:
                if not is_variable(word.text):
                    raise reader.error(word, f"`{word.spelling}` is no variable: variables begin with `?`")
            return (head.text, bound, inner(rest[1]))
        case "=":
            needs(2)
            for one in rest:
                if isinstance(one, Group):
                    raise reader.error(one, "`=` compares variables and constants: numbers are not supported")
            left, right = (name(reader.word(one, "a variable or a constant")) for one in rest)
            return ("=", left, right)
        case "sortof" | "sort":
            listed = reader.typed(rest, "a variable")
            if len(listed) != 1 or len(listed[0][1]) != 1:
                raise reader.error(group, "expected `(sortof ?variable - type)`")
            return ("sortof", listed[0][0].text, listed[0][1][0].text)
        case _:
            if head.text in NUMERIC:
                raise reader.error(head, f"`{head.spelling}`: numbers are not supported in conditions")
            terms = tuple(name(reader.word(one, "a variable or a constant")) for one in rest)
            return ("atom", head.text, terms)


def condition_of(text: str, source: str = "") -> Condition:
    """Read one condition from a text.

    Example:
        >>> condition_of("(and (at ?x ?y) (not (broken ?x)))")
        ('and', ('atom', 'at', ('?x', '?y')), ('not', ('atom', 'broken', ('?x',))))
    """
    reader = ExpressionReader(source)
    expressions = read(text, source)
    if not expressions:
        return TRUE
    if len(expressions) > 1:
        raise reader.error(expressions[1], "expected one condition: put several into `(and …)`")
    return parse_condition(expressions[0], reader, term=exact_term)


def exact_term(word: Word) -> Any:
    """Return a word as a term: variables lower-cased, numbers as numbers, other words as they are spelt."""
    if word.text.startswith("?"):
        return word.text
    for kind in (int, float):
        try:
            return kind(word.text)
        except ValueError:
            continue
    return word.spelling.strip('"')


def atoms_of(condition: Condition) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Yield every atom that a condition mentions, negated ones too."""
    match condition[0]:
        case "atom":
            yield condition[1], condition[2]
        case "and" | "or" | "not" | "imply":
            for inner in condition[1:]:
                yield from atoms_of(inner)
        case "forall" | "exists":
            yield from atoms_of(condition[2])


def ranges_of(condition: Condition) -> Iterator[str]:
    """Yield the relations that quantifiers range over, and those that `sortof` asks for."""
    match condition[0]:
        case "forall" | "exists":
            for _, types in condition[1]:
                yield from types
            yield from ranges_of(condition[2])
        case "sortof":
            yield condition[2]
        case "and" | "or" | "not" | "imply":
            for inner in condition[1:]:
                yield from ranges_of(inner)


def free_variables(condition: Condition) -> set[str]:
    """Return the variables of a condition that no quantifier inside binds."""
    match condition[0]:
        case "atom":
            return {term for term in condition[2] if is_variable(term)}
        case "=":
            return {term for term in condition[1:] if is_variable(term)}
        case "sortof":
            return {condition[1]} if is_variable(condition[1]) else set()
        case "forall" | "exists":
            return free_variables(condition[2]) - {name for name, _ in condition[1]}
        case _:
            return set().union(*(free_variables(inner) for inner in condition[1:]))


def substitute(condition: Condition, binding: Mapping[str, Any]) -> Condition:
    """Return a condition with values in the place of variables."""
    match condition[0]:
        case "atom":
            return ("atom", condition[1], tuple(binding.get(t, t) for t in condition[2]))
        case "=":
            return ("=", binding.get(condition[1], condition[1]), binding.get(condition[2], condition[2]))
        case "sortof":
            return ("sortof", binding.get(condition[1], condition[1]), condition[2])
        case "forall" | "exists":
            hidden = {name for name, _ in condition[1]}
            outer = {k: v for k, v in binding.items() if k not in hidden}
            return (condition[0], condition[1], substitute(condition[2], outer))
        case _:
            return (condition[0], *(substitute(inner, binding) for inner in condition[1:]))


def flat(condition: Condition) -> list[Condition]:
    """Return the parts of a conjunction, conjunctions inside it taken apart."""
    if condition[0] == "and":
        return [part for inner in condition[1:] for part in flat(inner)]
    return [condition]


def as_data(thing: Any) -> dict[str, Any]:
    """Return the fields of a dataclass that have not their defaults; tuples become lists in the JSON of it."""
    # Not asdict, which copies deeply: an agent writes each of its intents down.
    return {
        name: value
        for name, default in _fields(thing.__class__)
        if (value := getattr(thing, name)) != default
    }


@cache
def _fields(kind: Any) -> tuple[tuple[str, Any], ...]:
    """Return the fields of a dataclass with their defaults."""
    return tuple(
        (one.name, one.default if one.default_factory is MISSING else one.default_factory())
        for one in fields(kind)
    )


def from_json(value: Any) -> Any:
    """Return a value with tuples in the place of lists."""
    return tuple(from_json(part) for part in value) if isinstance(value, list) else value


def condition_text(condition: Condition) -> str:
    """Return a condition as text."""
    match condition[0]:
        case "atom":
            return f"({' '.join([condition[1], *map(str, condition[2])])})"
        case "forall" | "exists":
            bound = " ".join(
                name + (f" - {' '.join(types)}" if types else "") for name, types in condition[1]
            )
            return f"({condition[0]} ({bound}) {condition_text(condition[2])})"
        case "=" | "sortof":
            return f"({' '.join(map(str, condition))})"
        case _:
            return f"({' '.join([condition[0], *map(condition_text, condition[1:])])})"


def atom_text(atom: Sequence[Any]) -> str:
    """Return a fact or a goal as text, `at(truck, depot)`."""
    return f"{atom[0]}({', '.join(map(str, atom[1:]))})"


def group_of(text: str, source: str = "") -> tuple[str, tuple[Any, ...]]:
    """Read `(name term …)` or `name(term, …)`; return the name, as it is spelt, and the terms."""
    text = text.strip()
    if not text.startswith("("):
        name, bracket, rest = text.partition("(")
        if bracket and not rest.endswith(")"):
            wrong = Word("", 1, 1, text)
            raise ExpressionReader(source).error(
                wrong, f"{text!r} does not end with `)`: write `name(term, …)`"
            )
        text = f"({name} {rest.removesuffix(')').replace(',', ' ')})" if bracket else f"({text})"
    reader = ExpressionReader(source)
    expressions = read(text, source)
    if len(expressions) != 1 or not isinstance(expressions[0], Group):
        raise reader.error(
            expressions[1] if len(expressions) > 1 else Word("", 1, 1, text), "expected `(name term …)`"
        )
    head = reader.head(expressions[0], "a name")
    return head.spelling, tuple(exact_term(reader.word(one, "a term")) for one in expressions[0].items[1:])
