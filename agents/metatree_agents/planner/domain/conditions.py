"""Conditions over facts: plain data, how they are written, and what makes them true.

A condition is a nested tuple:

    ("atom", relation, terms)   ("=", term, term)   ("sortof", term, type)
    ("and", …)   ("or", …)   ("not", c)   ("imply", c, c)   ("forall", variables, c)   ("exists", variables, c)
    ("compare", operator, expression, expression)

An expression is a number, ("value", function, terms) or (operator, expression, …).
A term is a text; one that begins with `?` is a variable. `variables` are pairs of a variable and its types.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
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

_ARGUMENTS: Final = {"not": 1, "imply": 2, "forall": 2, "exists": 2, "=": 2}


def is_variable(term: Any) -> bool:
    """Say whether a term is a variable."""
    return isinstance(term, str) and term[:1] == "?"


class ConditionReader(ExpressionReader):
    """Reads conditions; a language that declares its names checks them in `term`, `variables`, `type_of`, `atom`."""

    def condition(self, at: Expression, known: Collection[str] = ()) -> Condition:
        """Read a condition; `()` is always true.

        Args:
            at: as `syntax.read` gives it.
            known: the variables that may occur, in a language that declares them.

        Raises:
            PlannerSyntaxError: it is out of form.
        """
        group = self.group(at, "a condition")
        if not group.items:
            return TRUE
        head, rest = self.head(group, "a condition"), group.items[1:]
        count = _ARGUMENTS.get(head.text, len(rest))
        if len(rest) != count:
            noun = "argument" if count == 1 else "arguments"
            raise self.error(group, f"`{head.text}` takes {count} {noun}, not {len(rest)}")
        match head.text:
            case "and" | "or" | "not" | "imply":
                return (head.text, *(self.condition(one, known) for one in rest))
            case "forall" | "exists":
                bound = self.variables(self.group(rest[0], "variables").items)
                return (head.text, bound, self.condition(rest[1], {*known, *(name for name, _ in bound)}))
            case "=":
                for one in rest:
                    if isinstance(one, Group):
                        raise self.error(
                            one, "`=` compares variables and constants: numbers are not supported"
                        )
                return ("=", *self.terms(rest, known))
            case "sortof" | "sort":
                listed = self.typed(rest, "a variable")
                if len(listed) != 1 or len(listed[0][1]) != 1:
                    raise self.error(group, "expected `(sortof ?variable - type)`")
                ((word, (kind,)),) = listed
                return ("sortof", self.term(word, known), self.type_of(kind))
            case _:
                if head.text in NUMERIC:
                    raise self.error(head, f"`{head.spelling}`: numbers are not supported in conditions")
                return self.atom(head, rest, known)

    def atom(self, head: Word, rest: tuple[Expression, ...], known: Collection[str]) -> Condition:
        """Read a relation and its terms."""
        return ("atom", head.text, self.terms(rest, known))

    def terms(self, items: Iterable[Expression], known: Collection[str]) -> tuple[Any, ...]:
        """Read variables and constants."""
        return tuple(self.term(self.word(one, "a variable or a constant"), known) for one in items)

    def term(self, word: Word, known: Collection[str]) -> Any:
        """Return a word as a term: variables lower-cased, numbers as numbers, other words as they are spelt."""
        return exact_term(word)

    def variables(self, items: tuple[Expression, ...]) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Read variables with their types."""
        listed = self.typed(items, "a variable")
        for word, _ in listed:
            if not is_variable(word.text):
                raise self.error(word, f"`{word.spelling}` is no variable: variables begin with `?`")
        return tuple((word.text, tuple(self.type_of(one) for one in types)) for word, types in listed)

    def type_of(self, word: Word) -> str:
        """Return a word as the name of a type."""
        return word.text


def condition_of(text: str, source: str = "") -> Condition:
    """Read one condition from a text.

    Example:
        >>> condition_of("(and (at ?x ?y) (not (broken ?x)))")
        ('and', ('atom', 'at', ('?x', '?y')), ('not', ('atom', 'broken', ('?x',))))
    """
    reader = ConditionReader(source)
    expressions = read(text, source)
    if not expressions:
        return TRUE
    if len(expressions) > 1:
        raise reader.error(expressions[1], "expected one condition: put several into `(and …)`")
    return reader.condition(expressions[0])


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


def parts_of(condition: Condition) -> Iterator[Condition]:
    """Yield a condition and all conditions inside it, in the order of the text."""
    waiting = [condition]
    while waiting:
        one = waiting.pop()
        yield one
        match one[0]:
            case "forall" | "exists":
                waiting.append(one[2])
            case "and" | "or" | "not" | "imply":
                waiting += one[:0:-1]


def atoms_of(condition: Condition) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Yield every atom that a condition mentions, negated ones too."""
    return ((one[1], one[2]) for one in parts_of(condition) if one[0] == "atom")


def ranges_of(condition: Condition) -> Iterator[str]:
    """Yield the relations that quantifiers range over, and those that `sortof` asks for."""
    for one in parts_of(condition):
        if one[0] == "sortof":
            yield one[2]
        elif one[0] in ("forall", "exists"):
            for _, types in one[1]:
                yield from types


def values_in(expression: Any) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the functions that an expression over numbers, or a comparison, reads, with their terms."""
    waiting = [expression]
    while waiting:
        one = waiting.pop()
        if isinstance(one, tuple):
            if one[0] == "value":
                yield one[1], one[2]
            else:
                waiting += one[:0:-1]


def free_variables(condition: Condition) -> set[str]:
    """Return the variables of a condition that no quantifier inside binds."""
    match condition[0]:
        case "atom":
            return {term for term in condition[2] if is_variable(term)}
        case "=":
            return {term for term in condition[1:] if is_variable(term)}
        case "sortof":
            return {condition[1]} if is_variable(condition[1]) else set()
        case "compare":
            return {term for _, terms in values_in(condition) for term in terms if is_variable(term)}
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
