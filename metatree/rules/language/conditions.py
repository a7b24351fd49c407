"""Productions and their conditions, as plain data.

The text form (`metatree.rules.language.text`) is read into these classes, and they may be made by hand:

    Production("heavy", (Pattern(Var("x"), "weighs", Var("y")), Comparison(Var("y"), ">", 2)))
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, assert_never

from metatree.errors import UserError
from metatree.rules.language.values import Value, value_text

Operator = Literal["+", "-", "*", "/"]
Comparator = Literal["=", "<>", "<", ">", "<=", ">="]
GROUP_WORDS = frozenset({"and", "exists", "forall", "not", "or", "test"})
"""What groups begin with in CLIPS and Drools."""
Function = Literal["sum", "count", "min", "max", "avg", "collect"]


@dataclass(frozen=True, slots=True)
class Var:
    """A variable, written `<name>`; wherever it occurs in a production outside of a group, it is the same value."""

    name: str

    def __str__(self) -> str:
        return f"<{self.name}>"


@dataclass(frozen=True, slots=True)
class Binary:
    """Arithmetic on two expressions."""

    left: Expression
    operator: Operator
    right: Expression

    def __post_init__(self) -> None:
        for operand in (self.left, self.right):
            if not is_operand(operand):
                raise UserError(f"{operand!r} is no number: {self.operator} takes numbers and variables")

    def __str__(self) -> str:
        return f"({term_text(self.left)} {self.operator} {term_text(self.right)})"


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A pure function of some expressions, by its name, written `#name(<x> …)`."""

    name: str
    arguments: tuple[Expression, ...]
    function: Callable[..., Value] | None = field(default=None, compare=False, repr=False)
    """What is called; a working memory puts it in by its name."""

    def __str__(self) -> str:
        return f"#{self.name}({' '.join(map(term_text, self.arguments))})"


Term: TypeAlias = "Var | Value"
Expression: TypeAlias = "Var | Binary | FunctionCall | Value"


@dataclass(frozen=True, slots=True)
class Pattern:
    """A fact with variables in some of its places."""

    id: Term
    attribute: Term
    value: Term
    fact: str | None = None
    """Name of a variable that is the fact itself (`as <name>`)."""

    @property
    def terms(self) -> tuple[Term, Term, Term]:
        """The three places."""
        return self.id, self.attribute, self.value

    def __str__(self) -> str:
        first, *others = map(term_text, self.terms)
        if first in GROUP_WORDS:  # bare, it would be taken for a group of another language
            first = f'"{first}"'
        text = f"({' '.join((first, *others))})"
        return text if self.fact is None else f"{text} as <{self.fact}>"


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison of two expressions."""

    left: Expression
    comparison: Comparator
    right: Expression

    def __str__(self) -> str:
        return f"({term_text(self.left)} {self.comparison} {term_text(self.right)})"


@dataclass(frozen=True, slots=True)
class Negation:
    """No combination of facts meets all of these conditions."""

    conditions: tuple[Condition, ...]

    def __str__(self) -> str:
        return f"-{{{' '.join(map(str, self.conditions))}}}"


@dataclass(frozen=True, slots=True)
class Existence:
    """Some combination of facts meets all of these conditions; how many do makes no difference."""

    conditions: tuple[Condition, ...]

    def __str__(self) -> str:
        return f"+{{{' '.join(map(str, self.conditions))}}}"


@dataclass(frozen=True, slots=True)
class Either:
    """One at least of several groups of conditions is met, written `|{ conditions | conditions }`.

    It gives a value to the variables that every one of its groups does; others are the group's own. What is met in
    several ways is met once.
    """

    branches: tuple[tuple[Condition, ...], ...]

    def __str__(self) -> str:
        return f"|{{{' | '.join(' '.join(map(str, branch)) for branch in self.branches)}}}"


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A value computed over all combinations of facts that meet the conditions.

    Of nothing, a sum and a count are 0 and a collection is empty; `min`, `max` and `avg` have no value, so nothing
    matches. `sum` and `avg` take numbers only; what is none is left out.
    """

    variable: str
    function: Function
    expression: Expression | None
    """What is added up or collected; None only for `count`."""
    conditions: tuple[Condition, ...]

    def __str__(self) -> str:
        inner = "" if self.expression is None else term_text(self.expression)
        conditions = " ".join(map(str, self.conditions))
        return f"(<{self.variable}> <- #{self.function}({inner})) from {{{conditions}}}"


Condition: TypeAlias = "Pattern | Comparison | Negation | Existence | Either | Aggregate"


@dataclass(frozen=True, slots=True)
class Assertion:
    """A fact that a production asserts for each of its tokens."""

    id: Expression
    attribute: Expression
    value: Expression
    lasting: bool = False
    """False, written `!`: it is justified by the token, and goes with the last that justifies it. True, written `!!`:
    it stays until somebody retracts it; so does what a production asserts that its own negation forbids, which would
    withdraw itself with `!`."""

    @property
    def terms(self) -> tuple[Expression, Expression, Expression]:
        """The three places."""
        return self.id, self.attribute, self.value

    def __str__(self) -> str:
        return f"({'!!' if self.lasting else '!'} {' '.join(map(term_text, self.terms))})"


@dataclass(frozen=True, slots=True)
class Retraction:
    """A fact that a production takes back, written `(- <f>)` or `(- id attribute value)`."""

    terms: tuple[Expression, ...]
    """The three places, or one: a variable that holds a fact (`as <f>`)."""

    def __str__(self) -> str:
        return f"(- {' '.join(map(term_text, self.terms))})"


@dataclass(frozen=True, slots=True)
class Replacement:
    """A value that a production replaces, written `(:= id attribute value)`.

    Facts with this id and attribute and another value are taken back; the one with this value stays until somebody
    takes it back.
    """

    id: Expression
    attribute: Expression
    value: Expression

    @property
    def terms(self) -> tuple[Expression, Expression, Expression]:
        """The three places."""
        return self.id, self.attribute, self.value

    def __str__(self) -> str:
        return f"(:= {' '.join(map(term_text, self.terms))})"


Action: TypeAlias = Assertion | Retraction | Replacement


@dataclass(frozen=True, slots=True)
class Production:
    """A named set of conditions, and what follows from them."""

    name: str
    conditions: tuple[Condition, ...]
    actions: tuple[Action, ...] = ()
    """Done in this order."""
    salience: int = 0
    """Of productions that may act, the one with the highest goes first."""

    @property
    def acts(self) -> bool:
        """Whether it changes facts beyond those that its tokens justify, so that one token can undo another."""
        return any(not isinstance(action, Assertion) or action.lasting for action in self.actions)

    @property
    def justifies(self) -> bool:
        """Whether its tokens justify facts."""
        return any(isinstance(action, Assertion) and not action.lasting for action in self.actions)

    def __str__(self) -> str:
        name = self.name.replace("\\", "\\\\").replace('"', '\\"')
        right = " ".join([*map(str, self.actions), f'"{name}"'])
        salience = f" salience {self.salience}" if self.salience else ""
        return f"({' '.join(map(str, self.conditions))} -> {right}{salience})"


def is_operand(expression: Expression) -> bool:
    """Say whether there can be arithmetic on an expression: not on a text, nor on a fact."""
    return not isinstance(expression, str | tuple)


def term_text(term: Expression) -> str:
    """Return a term in the text form."""
    return str(term) if isinstance(term, Var | Binary | FunctionCall) else value_text(term)


def variables_of(expression: Expression | None) -> Iterator[str]:
    """Yield the names of the variables of an expression, with repetitions."""
    if isinstance(expression, Var):
        yield expression.name
    elif isinstance(expression, Binary):
        yield from variables_of(expression.left)
        yield from variables_of(expression.right)
    elif isinstance(expression, FunctionCall):
        for argument in expression.arguments:
            yield from variables_of(argument)


def own_variables(condition: Condition) -> Iterator[str]:
    """Yield the variables of a condition itself, without those inside of a group."""
    match condition:
        case Pattern():
            for term in condition.terms:
                yield from variables_of(term)
            if condition.fact is not None:
                yield condition.fact
        case Comparison():
            yield from variables_of(condition.left)
            yield from variables_of(condition.right)
        case Aggregate():
            yield condition.variable
        case Negation() | Existence() | Either():
            return
        case _:
            assert_never(condition)


def all_variables(condition: Condition) -> Iterator[str]:
    """Yield all variables of a condition, those inside of groups too, with repetitions."""
    yield from own_variables(condition)
    if isinstance(condition, Negation | Existence | Aggregate):
        for inner in condition.conditions:
            yield from all_variables(inner)
        if isinstance(condition, Aggregate):
            yield from variables_of(condition.expression)
    elif isinstance(condition, Either):
        for branch in condition.branches:
            for inner in branch:
                yield from all_variables(inner)


def bound_by(condition: Condition) -> Iterator[str]:
    """Yield the variables that a condition gives a value to."""
    if isinstance(condition, Pattern):
        yield from own_variables(condition)
    elif isinstance(condition, Aggregate):
        yield condition.variable
    elif isinstance(condition, Either):
        first, *others = ({n: None for c in branch for n in bound_by(c)} for branch in condition.branches)
        yield from (name for name in first if all(name in other for other in others))


def parts_of(part: Any) -> Iterator[Any]:
    """Yield a condition, an action or an expression, and all that it is made of; a group comes before what it holds."""
    yield part
    match part:
        case Pattern() | Assertion() | Retraction() | Replacement():
            inner: tuple[Any, ...] = part.terms
        case Comparison() | Binary():
            inner = (part.left, part.right)
        case FunctionCall():
            inner = part.arguments
        case Negation() | Existence():
            inner = part.conditions
        case Either():
            inner = tuple(c for branch in part.branches for c in branch)
        case Aggregate():
            inner = (part.expression, *part.conditions)
        case Production():
            inner = (*part.conditions, *part.actions)
        case _:
            return
    for one in inner:
        yield from parts_of(one)
