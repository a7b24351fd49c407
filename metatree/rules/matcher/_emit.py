"""From a plan to a Python function: nested loops over indexes, written out for one query and one kind of change.

Written-out code is what makes the matcher fast: a join that an interpreter of plans does in a microsecond takes a
tenth of one. A function is written when its plan is made, so that its indexes exist (`_code`).

Lost: an interpreter of plans, about ten times slower.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import Any, Final

from metatree.rules.language.conditions import (
    Aggregate,
    Binary,
    Comparison,
    Expression,
    FunctionCall,
    Negation,
    Pattern,
    Var,
    own_variables,
    parts_of,
    variables_of,
)
from metatree.rules.language.values import NUMERIC, NotANumber, Value, arithmetic, compare
from metatree.rules.matcher._aggregates import NEUTRAL
from metatree.rules.matcher._alpha import Alpha, Places, variable_at
from metatree.rules.matcher._code import Code, fresh
from metatree.rules.matcher._plan import Step
from metatree.rules.matcher.scopes import CompiledQuery, View

_PYTHON: Final[Mapping[str, str]] = {"=": "==", "<>": "!="}
_MAX_LOOPS = 12
"""Python allows twenty nested blocks."""
_MAX_INDENT = 60
_NOTHING: Final[dict[Any, Any]] = {}


def evaluate(expression: Expression, values: Mapping[str, Value]) -> Value:
    """Compute an expression; raises NotANumber."""
    if isinstance(expression, Var):
        return values[expression.name]
    if isinstance(expression, Binary):
        return arithmetic(
            expression.operator, evaluate(expression.left, values), evaluate(expression.right, values)
        )
    if isinstance(expression, FunctionCall):
        assert expression.function is not None, "a working memory puts functions in"
        return expression.function(*(evaluate(argument, values) for argument in expression.arguments))
    return expression


def holds(test: Comparison, values: Mapping[str, Value]) -> bool:
    """Say whether a test is met; arithmetic on what is no number is not."""
    try:
        return compare(test.comparison, evaluate(test.left, values), evaluate(test.right, values))
    except NotANumber:
        return False


class Writer:
    """Writes one function.

    Args:
        facts: all facts, for conditions whose places are all known.
        query: its memories and views are looked up.
    """

    def __init__(self, facts: Mapping[Any, Any], query: CompiledQuery) -> None:
        self._query = query
        self.names: dict[str, Any] = {
            "facts": facts,
            "E": _NOTHING,
            "ERRORS": (TypeError, ArithmeticError),
            "NUMERIC": NUMERIC,
        }
        self._lines: list[str] = []
        self._main = self._lines
        self._parts: list[list[str]] = []
        self._indexes: set[tuple[Alpha, Places]] = set()
        self._indent = 1
        self._loops = 0
        self._all_arguments = self._arguments = ""
        self.local: dict[str, str] = {}
        """Variable -> Python expression."""
        for variable, fact in query.known.items():
            self.local[variable] = self.constant(fact)

    # Names and lines --------------------------------------------------------------------------------------------

    def constant(self, value: Any) -> str:
        """Return the name under which the function knows an object."""
        if type(value) is int or type(value) is str:
            return repr(value)
        name = fresh()
        self.names[name] = value
        return name

    def line(self, text: str) -> None:
        """Write a line at the present depth."""
        self._lines.append(" " * self._indent + text)

    def block(self, opening: str) -> None:
        """Open a block; everything that follows lies in it."""
        self.line(opening)
        self._indent += 1
        if opening.startswith("for"):
            self._loops += 1
        if self._loops >= _MAX_LOOPS or self._indent >= _MAX_INDENT:
            self._split()

    def _split(self) -> None:
        """Go on in a function of its own, with everything that is known as arguments."""
        names = dict.fromkeys(
            name for name in (*self._arguments.split(", "), *self.local.values()) if name.isidentifier()
        )
        inside = ", ".join(names)
        name = fresh()
        self.line(f"{name}({inside})")
        self._parts.append(self._lines)
        self._lines = [f"def {name}({inside}):"]
        self._indent, self._loops = 1, 0
        self._arguments = inside

    def begin(self, arguments: str) -> None:
        """Begin the function."""
        self._arguments = self._all_arguments = arguments
        self._lines = self._main = []

    def finish(self, closing: Sequence[str] = ()) -> Code:
        """Return what was written; `closing` are lines that the function always ends with."""
        self._main.extend(f" {text}" for text in closing)
        parts = "\n".join(
            line for part in (*self._parts, self._lines) if part is not self._main for line in part
        )
        return Code(self._all_arguments, "\n".join(self._main), self.names, frozenset(self._indexes), parts)

    def key(self, variables: Sequence[str]) -> str:
        """Return the expression for a key: a bare value for one variable, a tuple otherwise."""
        parts = [self.local[v] for v in variables]
        return parts[0] if len(parts) == 1 else f"({', '.join(parts)})"

    def token(self, variables: Sequence[str]) -> str:
        """Return the expression for a tuple of values."""
        return "(" + "".join(f"{self.local[v]}, " for v in variables) + ")"

    def name(self, variable: str) -> str:
        """Give a variable a local name."""
        self.local[variable] = f"v{len(self.local)}"
        return self.local[variable]

    # Steps ------------------------------------------------------------------------------------------------------

    def changed_fact(self, pattern: Pattern) -> None:
        """Take the values of the fact that changed: the function's arguments f0, f1, f2."""
        for place, term in enumerate(pattern.terms):
            if isinstance(term, Var):
                if term.name in self.local:
                    self.block(f"if f{place} == {self.local[term.name]}:")
                else:
                    self.local[term.name] = f"f{place}"
        self._bind_fact(pattern, "(f0, f1, f2)")

    def steps(self, steps: Sequence[Step], exclude: Mapping[int, Pattern] | None = None) -> None:
        """Write steps.

        Args:
            exclude: id(pattern) -> the pattern whose fact changed, for patterns that must not use that same fact:
                those before it in the query. So a combination that holds the fact twice is met once.
        """
        for step in steps:
            if isinstance(step, Pattern):
                self._pattern(step, (exclude or {}).get(id(step)))
            elif isinstance(step, Comparison):
                self.test(step)
            else:
                self.view(step)

    def _pattern(self, pattern: Pattern, changed: Pattern | None) -> None:
        if pattern.fact is not None and pattern.fact in self.local:
            self._known_fact(pattern)
        else:
            self._look_up(pattern)
        if changed is not None:
            self._exclude(pattern, changed)

    def _look_up(self, pattern: Pattern) -> None:
        alpha = self._query.alphas[pattern]
        places = alpha.shape.places
        bound = tuple(p for p in places if variable_at(pattern, p) in self.local)
        if len(bound) == len(places):
            self.block(f"if {self._fact(pattern)} in facts:")
        else:
            rest = tuple(p for p in places if p not in bound)
            if not bound and len(places) > 1:
                index = self._index(alpha, places[:1])
                outer, rest = self.name(variable_at(pattern, places[0])), places[1:]
                self.block(f"for {outer}, others in {index}.items():")
                source = "others"
            else:
                index = self._index(alpha, bound)
                source = f"{index}.get({self.key([variable_at(pattern, p) for p in bound])}, E)"
            targets = ", ".join([self.name(variable_at(pattern, p)) for p in rest])
            self.block(f"for {targets} in {source}:")
        self._bind_fact(pattern, self._fact(pattern))

    def _index(self, alpha: Alpha, by: Places) -> str:
        self._indexes.add((alpha, by))
        return self.constant(alpha.index(by))

    def _known_fact(self, pattern: Pattern) -> None:
        """A variable holds the fact already: take it apart."""
        assert pattern.fact is not None
        fact = self.local[pattern.fact]
        self.block(f"if {fact} in facts:")
        for place, term in enumerate(pattern.terms):
            if isinstance(term, Var) and term.name not in self.local:
                self.line(f"{self.name(term.name)} = {fact}[{place}]")
            else:
                known = self.local[term.name] if isinstance(term, Var) else self.constant(term)
                self.block(f"if {fact}[{place}] == {known}:")

    def _bind_fact(self, pattern: Pattern, fact: str) -> None:
        if pattern.fact is None:
            return
        if pattern.fact in self.local:
            self.block(f"if {self.local[pattern.fact]} == {fact}:")
        else:
            self.line(f"{self.name(pattern.fact)} = {fact}")

    def _exclude(self, pattern: Pattern, changed: Pattern) -> None:
        differs = []
        for place, (term, other) in enumerate(zip(pattern.terms, changed.terms, strict=True)):
            if not isinstance(term, Var):
                if not isinstance(other, Var):
                    if term != other:
                        return  # no fact fits both
                else:
                    differs.append(f"f{place} != {self.constant(term)}")
            elif self.local[term.name] != f"f{place}":
                differs.append(f"{self.local[term.name]} != f{place}")
        self.block(f"if {' or '.join(differs) or 'False'}:")

    def _fact(self, pattern: Pattern) -> str:
        parts = [self.local[t.name] if isinstance(t, Var) else self.constant(t) for t in pattern.terms]
        return f"({', '.join(parts)})"

    def test(self, test: Comparison) -> None:
        """Write a test; where Python differs from the rules (texts, decimals with floats), `holds` decides."""
        names = list(dict.fromkeys(own_variables(test)))
        comparison = _PYTHON.get(test.comparison, test.comparison)
        simple = not isinstance(test.left, Binary | FunctionCall) and not isinstance(
            test.right, Binary | FunctionCall
        )
        if any(isinstance(part, FunctionCall) for part in parts_of(test)):
            interpreted = self.constant(_interpreted(test, names))
            self.block(f"if {interpreted}({', '.join(self.local[n] for n in names)}):")
            return
        text = f"{self._expression(test.left)} {comparison} {self._expression(test.right)}"
        if simple and comparison in ("==", "!="):
            self.block(f"if {text}:")
            return
        slowly = "False"
        if not simple:
            function = self.constant(_interpreted(test, names))
            slowly = f"{function}({', '.join(self.local[n] for n in names)})"
            numeric = " and ".join(f"type({self.local[n]}) in NUMERIC" for n in names) or "True"
            text = f"({text}) if {numeric} else {slowly}"
            if _divides(test):
                text = slowly
        self.line("try:")
        self.line(f" met = {text}")
        self.line("except ERRORS:")
        self.line(f" met = {slowly}")
        self.block("if met:")

    def _expression(self, expression: Expression) -> str:
        if isinstance(expression, Var):
            return self.local[expression.name]
        if isinstance(expression, Binary):
            left, right = self._expression(expression.left), self._expression(expression.right)
            return f"({left} {expression.operator} {right})"
        return self.constant(expression)

    def view(self, view: View) -> None:
        """Look a view up: whether it has the key, or which value it has."""
        table = self.constant(view.table)
        key = self.key(view.key)
        if not isinstance(view.condition, Aggregate):
            inside = "not in" if isinstance(view.condition, Negation) else "in"
            self.block(f"if {key} {inside} {table}:")
            return
        self.value(view, f"{table}.get({key}, {self.constant(_neutral(view))})")

    def value(self, view: View, expression: str) -> None:
        """Give the variable of an aggregate its value, or compare it when a pattern has given it one."""
        assert view.variable is not None
        if view.variable in self.local:
            self.block(f"if {expression} == {self.local[view.variable]}:")
            return
        name = self.name(view.variable)
        self.line(f"{name} = {expression}")
        if _neutral(view) is None:
            self.block(f"if {name} is not None:")

    def both(
        self,
        view: View,
        steps: Sequence[Step],
        old: Callable[[], None],
        new: Callable[[], None],
        *,
        old_if: str,
    ) -> None:
        """Write what follows a view twice: for its former entry `old`, and for its present entry `new`.

        Args:
            old_if: a test without which the former entry makes no difference; empty for none.
        """
        if self._loops > 0 or self._indent > 20:
            self._split()  # what follows starts at little depth both times
        indent, local, loops = self._indent, dict(self.local), self._loops
        parts = len(self._parts)
        for name, sink, test in (("old", old, old_if), ("new", new, "")):
            if len(self._parts) != parts:  # the first half was split: the second goes on where both began
                self._parts.append(self._lines)
                self._lines = self._parts.pop(parts)
            self._indent, self.local, self._loops = indent, dict(local), loops
            if test:
                self.block(f"if {test}:")
            if view.function:
                self.block(f"if {name} is not None:")
                self.value(view, name)
            else:
                self.block(f"if not {name}:" if isinstance(view.condition, Negation) else f"if {name}:")
            self.steps(steps)
            sink()


def _neutral(view: View) -> Value | None:
    return NEUTRAL[view.function] if view.function else None


def _interpreted(test: Comparison, names: Sequence[str]) -> Callable[..., bool]:
    def interpret(*values: Value) -> bool:
        return holds(test, dict(zip(names, values, strict=True)))

    return interpret


def _divides(expression: Expression | Comparison) -> bool:
    if isinstance(expression, Comparison):
        return _divides(expression.left) or _divides(expression.right)
    if isinstance(expression, Binary):
        return expression.operator == "/" or _divides(expression.left) or _divides(expression.right)
    return False


def value_function(expression: Expression, names: Sequence[str]) -> Callable[..., Value | None]:
    """Return a function of the values of some variables; its result is None where arithmetic fails."""

    def compute(*values: Value) -> Value | None:
        try:
            value = evaluate(expression, dict(zip(names, values, strict=True)))
        except NotANumber:
            return None
        return value if isinstance(value, str | tuple | int) or isfinite(value) else None

    return compute


def names_of(expression: Expression | None) -> list[str]:
    """Return the variables of an expression, each once."""
    return list(dict.fromkeys(variables_of(expression)))
