"""Read HDDL: text to `Domain` and `Problem`, or an error with line and column."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import Any, Final

from metatree._util.named_file import read_named
from metatree.errors import UserError
from metatree_agents.planner.domain.conditions import (
    TRUE,
    Condition,
    ConditionReader,
    is_variable,
)
from metatree_agents.planner.domain.model import linear
from metatree_agents.planner.domain.syntax import Expression, Group, PlannerSyntaxError, Word, read
from metatree_agents.planner.hddl._language import (
    OBJECT,
    Action,
    Domain,
    Effect,
    Increase,
    Method,
    NumericEffect,
    Problem,
    Subtask,
    Variable,
    exact,
)

_NETWORK = frozenset(
    {"subtasks", "tasks", "ordered-subtasks", "ordered-tasks", "ordering", "order", "constraints"}
)
_REQUIREMENTS: Final = """
    strips typing equality adl ucpop action-costs conditional-effects constraints negative-preconditions
    disjunctive-preconditions quantified-preconditions existential-preconditions universal-preconditions
    derived-predicates domain-axioms fluents numeric-fluents object-fluents preferences goal-utilities time
    durative-actions duration-inequalities continuous-effects timed-initial-literals hierarchy hierachie hierarchical
    htn htn-method-prec partial-order total-order method-preconditions method-constraints
"""
"""What may be written; what of it is used and not supported is an error where it is used."""

_ARITHMETIC: Final = frozenset({"+", "-", "*", "/"})
_COMPARISONS: Final = frozenset({"<", ">", "<=", ">="})
_CHANGES: Final = frozenset({"increase", "decrease", "assign", "scale-up", "scale-down"})

_TIMES: Final = frozenset({("at", "start"), ("at", "end"), ("over", "all")})

_UNSUPPORTED: Final[Mapping[str, str]] = {
    ":durative-action": "durative actions",
    ":derived": "derived predicates",
    ":axiom": "axioms",
    ":process": "processes",
    ":event": "events",
    ":constraints": "constraints on the whole plan",
    **dict.fromkeys((":preference", "preference"), "preferences"),
    ":duration": "durations",
}

_CONNECTIVES: Final = frozenset(
    {"and", "or", "not", "imply", "forall", "exists", "when", "=", "sortof", "sort"}
)

_ORDER: Final = (
    ":requirements",
    ":types",
    ":constants",
    ":predicates",
    ":functions",
    ":task",
    ":action",
    ":method",
)
"""What sections name is declared in those before them, in whatever order they are written."""

_SECTIONS: Mapping[str, frozenset[str]] = {
    "task": frozenset({"parameters"}),
    "action": frozenset({"parameters", "precondition", "effect"}),
    "method": frozenset({"parameters", "task", "precondition"}) | _NETWORK,
    "htn": frozenset({"parameters"}) | _NETWORK,
}


def read_domain(path: str | Path) -> Domain:
    """Read a domain from a file.

    Raises:
        UserError: the file cannot be read.
        PlannerSyntaxError: it is out of form; the message has file, line and column.
    """
    return parse_domain(_text(path), str(path))


def read_problem(path: str | Path, domain: Domain) -> Problem:
    """Read a problem of a domain from a file; raises as `read_domain` does."""
    return parse_problem(_text(path), domain, str(path))


def _text(path: str | Path) -> str:
    try:
        data = read_named(Path(path))
        return data.decode("utf-8-sig")
    except OSError as exc:
        raise UserError(f"cannot read {str(path)!r}: {exc.strerror or exc}; check the path") from exc
    except UnicodeDecodeError as exc:
        before = data[: exc.start].decode("utf-8", "replace").split("\n")
        raise PlannerSyntaxError(
            "this is not UTF-8 text: convert the file first",
            line=len(before),
            column=len(before[-1]) + 1,
            source=str(path),
        ) from exc


def parse_domain(text: str, source: str = "") -> Domain:
    """Read a domain; raises PlannerSyntaxError."""
    parser = _Parser(Domain(), source)
    define = parser.define(text, "domain")
    parser.domain.name = define[0]
    rank = {name: place for place, name in enumerate(_ORDER)}
    for section in sorted(define[1], key=lambda one: rank.get(parser.head(one, "a section").text, -1)):
        parser.domain_section(section)
    parser.check_subtasks()
    return parser.domain


def parse_problem(text: str, domain: Domain, source: str = "") -> Problem:
    """Read a problem of a domain; raises PlannerSyntaxError."""
    parser = _Parser(domain, source)
    name, sections = parser.define(text, "problem")
    problem = Problem(domain, name, dict(domain.constants))
    parser.spelling = problem.spelling
    # Objects first: a section before them may name them.
    once: dict[str, Group] = {}
    places = {":objects": 0, ":metric": 2}
    for section in sorted(sections, key=lambda one: places.get(parser.head(one, "a section").text, 1)):
        head = parser.head(section, "a section")
        kind = ":htn" if head.text == ":htn-ti" else head.text
        if once.setdefault(kind, section) is not section and kind in (":htn", ":goal", ":domain", ":metric"):
            raise parser.error(head, f"a second `{head.spelling}`: a problem has one")
        parser.problem_section(problem, section)
    for name, error in domain.assumed.items():
        if name not in problem.objects:
            raise error
    if ":htn" not in once:
        raise parser.error(parser.defined, "the problem has no `:htn`: say which tasks are to be done")
    return problem


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if isfinite(number) else None


def _both(one: Condition, other: Condition) -> Condition:
    parts = [part for part in (one, other) if part != TRUE]
    return parts[0] if len(parts) == 1 else ("and", *parts)


class _Parser(ConditionReader):
    def __init__(self, domain: Domain, source: str) -> None:
        super().__init__(source)
        self.domain = domain
        self.spelling = domain.spelling
        self.later: list[tuple[Word, str, Sequence[str]]] = []
        """Subtasks to check once everything is declared."""
        self.increases: list[Increase] = []
        """Of the action that is being read."""
        self.numeric: list[NumericEffect] = []
        """Of the same."""
        self.constants: Collection[str] = domain.constants
        self.defined: Expression = Word("", 1, 1, "")

    def define(self, text: str, what: str) -> tuple[str, list[Group]]:
        """Return the name and the sections of `(define (domain NAME) …)`."""
        expressions = read(text, self.source)
        if not expressions:
            raise self.error(Word("", 1, 1, ""), f"the text is empty: expected `(define ({what} NAME) …)`")
        group = self.defined = self.group(expressions[0], f"`(define ({what} NAME) …)`")
        if self.head(group, "`define`").text != "define":
            raise self.error(group, f"expected `(define ({what} NAME) …)`")
        if len(expressions) > 1:
            raise self.error(expressions[1], f"nothing may follow the {what}")
        if len(group.items) < 2:
            raise self.error(group, f"expected `({what} NAME)`")
        title = self.group(group.items[1], f"`({what} NAME)`")
        if self.head(title, f"`{what}`").text != what or len(title.items) != 2:
            raise self.error(title, f"expected `({what} NAME)`: is this the other file?")
        name = self.word(title.items[1], "a name").spelling
        return name, [self.group(one, "a section") for one in group.items[2:]]

    # Domain -----------------------------------------------------------------------------------------------------

    def domain_section(self, section: Group) -> None:
        domain = self.domain
        head, rest = self.head(section, "a section"), section.items[1:]
        match head.text:
            case ":requirements":
                self._requirements(rest)
            case ":functions":
                self._functions(rest)
            case ":types":
                for word, parents in self.typed(rest, "a type"):
                    known = domain.types.setdefault(self._name(word), set())
                    for parent in parents:
                        known.add(self._name(parent))
                        domain.types.setdefault(parent.text, set())
            case ":constants":
                self.objects(rest, domain.constants)
            case ":predicates":
                for one in rest:
                    group = self.group(one, "a predicate")
                    word = self.head(group, "a predicate")
                    if word.text in domain.predicates:
                        raise self.error(word, f"a second predicate is called `{word.spelling}`")
                    domain.predicates[self._free(word)] = len(self._variables(group.items[1:], unique=False))
            case ":task":
                title, parts = self._parts(section, "task")
                if title.text in domain.tasks:
                    raise self.error(title, f"a second task is called `{title.spelling}`")
                domain.tasks[self._free(title)] = self._parameters(parts)
            case ":action":
                title, parts = self._parts(section, "action")
                self._action(title, parts)
            case ":method":
                title, parts = self._parts(section, "method")
                self._method(title, parts)
            case _:
                self._unsupported(head)
                raise self.error(head, f"`{head.spelling}` is no section of a domain")

    def objects(self, rest: tuple[Expression, ...], into: dict[str, tuple[str, ...]]) -> None:
        """Note objects with their types; one that is declared again has both types."""
        for word, types in self.typed(rest, "an object"):
            if is_variable(word.text):
                raise self.error(word, f"`{word.spelling}` is a variable: objects do not begin with `?`")
            kinds = tuple(self.type_of(one) for one in types) or (OBJECT,)
            before = into.get(self._name(word), ())
            into[word.text] = tuple(dict.fromkeys((*before, *kinds)))

    def _action(self, name: Word, parts: Mapping[str, Expression]) -> None:
        if name.text in self.domain.actions:
            raise self.error(name, f"a second action is called `{name.spelling}`: give it another name")
        if name.text in self.domain.tasks:
            raise self.error(name, f"`{name.spelling}` is declared as a task and as an action")
        parameters = self._parameters(parts)
        known = {variable.name for variable in parameters}
        precondition = self._condition(parts.get("precondition"), known)
        self.increases, self.numeric = [], []
        effects = tuple(self._effects(parts["effect"], known)) if "effect" in parts else ()
        self.domain.actions[self._free(name)] = Action(
            name.text, parameters, precondition, effects, tuple(self.increases), tuple(self.numeric)
        )

    def _method(self, name: Word, parts: Mapping[str, Expression]) -> None:
        if "task" not in parts:
            raise self.error(name, f"method `{name.spelling}` names no `:task`")
        done = self.group(parts["task"], "`(task term …)`")
        head = self.head(done, "a task")
        parameters = self._parameters(parts)
        known = {variable.name for variable in parameters}
        terms = self.terms(done.items[1:], known)
        subtasks, order = self._network(parts, known)
        both = (
            "and",
            self._condition(parts.get("precondition"), known),
            self._condition(parts.get("constraints"), known),
        )
        if head.text in self.domain.actions:
            raise self.error(head, f"`{head.spelling}` is an action, which has no methods")
        self.later.append((head, head.text, terms))
        number = len(self.domain.methods)
        self.domain.methods.append(
            Method(name.text, parameters, head.text, terms, both, subtasks, order, number)
        )

    def _network(
        self, parts: Mapping[str, Expression], known: Collection[str]
    ) -> tuple[tuple[Subtask, ...], frozenset[tuple[int, int]]]:
        keys = [k for k in ("ordered-subtasks", "ordered-tasks", "subtasks", "tasks") if k in parts]
        if len(keys) > 1:
            raise self.error(parts[keys[1]], f"`:{keys[0]}` and `:{keys[1]}` exclude each other")
        subtasks: list[Subtask] = []
        labels: dict[str, int] = {}
        for one in self._conjuncts(parts[keys[0]]) if keys else ():
            label, group = "", self.group(one, "a subtask")
            if len(group.items) == 2 and isinstance(group.items[1], Group):
                word = self.head(group, "a label")
                label, group = word.text, group.items[1]
                if label in labels:
                    raise self.error(word, f"two subtasks are called `{word.spelling}`")
                labels[label] = len(subtasks)
            head = self.head(group, "a task")
            terms = self.terms(group.items[1:], known)
            self.later.append((head, head.text, terms))
            subtasks.append(Subtask(label or str(len(subtasks)), head.text, terms))
        order: set[tuple[int, int]] = set()
        if keys and keys[0].startswith("ordered"):
            order |= {(index - 1, index) for index in range(1, len(subtasks))}
        written = parts.get("ordering", parts.get("order"))
        for one in self._conjuncts(written) if written is not None else ():
            pair = self.group(one, "`(< label label)`")
            if len(pair.items) != 3 or self.head(pair, "`<`").text != "<":
                raise self.error(pair, "expected `(< label label)`")
            ends = [self.word(item, "a label") for item in pair.items[1:]]
            for end in ends:
                if end.text not in labels:
                    raise self.error(end, f"no subtask is called `{end.spelling}`")
            order.add((labels[ends[0].text], labels[ends[1].text]))
        if len(linear(len(subtasks), frozenset(order))) < len(subtasks):
            raise self.error(written or parts[keys[0]], "the ordering goes in a circle")
        return tuple(subtasks), frozenset(order)

    def _conjuncts(self, at: Expression) -> tuple[Expression, ...]:
        """Return the parts of `(and …)`, of one part without it, or of `()`."""
        group = self.group(at, "`(and …)`")
        if not group.items:
            return ()
        if isinstance(group.items[0], Word) and group.items[0].text == "and":
            return group.items[1:]
        return (group,) if isinstance(group.items[0], Word) else group.items

    def _effects(self, at: Expression, known: Collection[str]) -> Iterable[Effect]:
        group = self.group(at, "an effect")
        if not group.items:
            return
        head = self.head(group, "an effect")
        self._untimed(group)
        rest = group.items[1:]
        match head.text:
            case "and":
                for one in rest:
                    yield from self._effects(one, known)
            case "not":
                if len(rest) != 1:
                    raise self.error(group, "`not` takes one effect")
                inner = self.group(rest[0], "an effect")
                word = self.head(inner, "an effect")
                if word.text in _CONNECTIVES | _CHANGES:
                    raise self.error(word, f"`not` takes one fact, not `{word.spelling}`")
                for effect in self._effects(inner, known):
                    yield Effect(effect.relation, effect.terms, False)
            case "forall" | "when":
                if len(rest) != 2:
                    raise self.error(group, f"`{head.text}` takes two arguments")
                bound: tuple[Variable, ...] = ()
                when = TRUE
                if head.text == "forall":
                    bound = self._variables(self.group(rest[0], "variables").items)
                else:
                    when = self._condition(rest[0], known)
                inside = {*known, *(variable.name for variable in bound)}
                at_all_times, numeric = len(self.increases), len(self.numeric)
                effects = list(self._effects(rest[1], inside))
                for increase in self.increases[at_all_times:]:
                    self._changed(increase.function, head, f"costs in `{head.text}`")
                self.numeric[numeric:] = [
                    replace(one, bound=bound + one.bound, when=_both(when, one.when))
                    for one in self.numeric[numeric:]
                ]
                for effect in effects:
                    yield replace(effect, bound=bound + effect.bound, when=_both(when, effect.when))
            case name if name in _CHANGES:
                if len(rest) != 2:
                    raise self.error(group, f"`{head.text}` takes a function and a number")
                function, *terms = self._function(rest[0], known)
                self.numeric.append(
                    NumericEffect(name, function, tuple(terms), self._expression(rest[1], known))
                )
                # What follows is for a metric, which may count only some of them.
                if name != "increase":
                    self._changed(function, head, f"costs that `{head.spelling}` changes")
                elif terms:
                    self._changed(function, head, "increases of a function with arguments")
                elif (amount := self._amount(rest[1], known)) is None:
                    self._changed(function, rest[1], "costs that are computed")
                else:
                    self.increases.append(Increase(function, amount))
            case name:
                if name in _CONNECTIVES:
                    raise self.error(head, f"`{head.spelling}` is no effect")
                yield Effect(name, self.atom(head, rest, known)[2], True)

    def condition(self, at: Expression, known: Collection[str] = ()) -> Condition:
        """Read a condition, comparisons of numbers included."""
        if isinstance(at, Group) and at.items and isinstance(head := at.items[0], Word):
            self._untimed(at)
            rest = at.items[1:]
            if head.text in _COMPARISONS or (
                head.text == "=" and any(isinstance(one, Group) for one in rest)
            ):
                if len(rest) != 2:
                    raise self.error(at, f"`{head.text}` takes 2 arguments, not {len(rest)}")
                return ("compare", head.text, *(self._expression(one, known) for one in rest))
        return super().condition(at, known)

    def _expression(self, at: Expression, known: Collection[str]) -> Any:
        """Read an expression over numbers, as in `conditions`."""
        if isinstance(at, Word):
            number = _number(at.text)
            if number is not None:
                return exact(number)
        elif at.items and isinstance(at.items[0], Word) and at.items[0].text in _ARITHMETIC:
            operator, parts = at.items[0], at.items[1:]
            if len(parts) < (1 if operator.text == "-" else 2) or (operator.text in "-/" and len(parts) > 2):
                raise self.error(at, f"`{operator.text}` takes two numbers, not {len(parts)}")
            return (operator.text, *(self._expression(one, known) for one in parts))
        function, *terms = self._function(at, known)
        return ("value", function, tuple(terms))

    def term(self, word: Word, known: Collection[str]) -> str:
        """Return a variable that is known here, or a constant."""
        if is_variable(word.text):
            if word.text not in known:
                raise self.error(
                    word, f"no variable is called `{word.spelling}` here: declare it in `:parameters`"
                )
        elif word.text not in self.constants:
            in_domain = self.constants is self.domain.constants
            what = "constant" if in_domain else "object"
            error = self.error(word, f"no {what} is called `{word.spelling}`: declare it in `:{what}s`")
            if not in_domain:
                raise error
            self.domain.assumed.setdefault(word.text, error)  # many domains name objects of their problems
        return word.text

    def _untimed(self, at: Group) -> None:
        match at.items:
            case (Word() as head, Word() as when, Group()) if (head.text, when.text) in _TIMES:
                raise self.error(head, f"`{head.spelling} {when.spelling}`: durations are not supported")

    def _unsupported(self, word: Word) -> None:
        what = _UNSUPPORTED.get(word.text)
        if what is not None:
            raise self.error(word, f"`{word.spelling}`: {what} are not supported")

    def _requirements(self, rest: tuple[Expression, ...]) -> None:
        for one in rest:
            word = self.word(one, "a requirement")
            if word.text.removeprefix(":") not in _REQUIREMENTS.split():
                raise self.error(word, f"`{word.spelling}` is no requirement that is known: remove it")

    def _changed(self, function: str, at: Expression, what: str) -> None:
        """Note that a function changes in a way that no metric can count; an error where one does."""
        error = self.error(
            at,
            f"{what} are not supported with `:metric`: write `(increase (total-cost) …)` with a number that is "
            "not negative, or with a function that no action changes",
        )
        self.domain.changed.setdefault(function, error)

    def _function(self, at: Expression, known: Collection[str]) -> tuple[str, ...]:
        """Read a function that is declared, with its terms."""
        word = at if isinstance(at, Word) else self.head(at, "a function")
        terms = () if isinstance(at, Word) else self.terms(at.items[1:], known)
        arity = self.domain.functions.get(word.text)
        if arity is None:
            raise self.error(word, f"no function is called `{word.spelling}`: declare it in `:functions`")
        if arity != len(terms):
            raise self.error(word, f"function `{word.spelling}` takes {arity} arguments, not {len(terms)}")
        return word.text, *terms

    def _amount(self, at: Expression, known: Collection[str]) -> float | tuple[str, ...] | None:
        """Read what a cost increases by; None for arithmetic and what is negative."""
        if isinstance(at, Word):
            number = _number(at.text)
            if number is not None:
                return number if number >= 0 else None
        elif at.items and isinstance(at.items[0], Word) and at.items[0].text in _ARITHMETIC:
            return None
        return self._function(at, known)

    def _metric(self, problem: Problem, section: Group) -> None:
        expected = "expected `(:metric minimize (total-cost))`"
        rest = section.items[1:]
        if len(rest) != 2 or not isinstance(rest[0], Word):
            raise self.error(section, expected)
        if rest[0].text != "minimize":
            raise self.error(rest[0], f"`{rest[0].spelling}` is not supported: {expected}")
        inner = rest[1]
        if isinstance(inner, Group) and inner.items and isinstance(inner.items[0], Word):
            word = inner.items[0]
            if word.text in _ARITHMETIC or word.text in ("total-time", "is-violated"):
                raise self.error(word, f"a metric of `{word.spelling}` is not supported: {expected}")
        elif isinstance(inner, Word) and inner.text == "total-time":
            raise self.error(inner, f"a metric of `{inner.spelling}` is not supported: {expected}")
        function, *terms = self._function(inner, ())
        if terms:
            raise self.error(inner, f"a metric of a function with arguments is not supported: {expected}")
        problem.metric = function
        counted = {function}
        for action in self.domain.actions.values():
            for one in action.increases:
                if one.function == function and isinstance(one.amount, tuple):
                    counted.add(one.amount[0])
        for name in counted:
            if name in self.domain.changed:
                raise self.domain.changed[name]
        for key, value in problem.values.items():
            if value < 0 and key[0] in counted - {function}:
                raise self.error(inner, f"`({' '.join(key)})` is negative: costs are not")
        for action in self.domain.actions.values():
            for one in action.increases:
                if one.function in counted - {function}:
                    raise self.error(
                        inner, f"costs by `{one.function}`, which {action.name} changes, are not supported"
                    )

    def _functions(self, rest: tuple[Expression, ...]) -> None:
        """Note functions with how many arguments they take."""
        for one in rest:
            if isinstance(one, Group):
                word = self.head(one, "a function")
                self.domain.functions[self._name(word)] = len(self._variables(one.items[1:], unique=False))
            elif one.text not in ("-", "number"):
                raise self.error(one, "functions have numbers as values: write `(name …) - number`")

    def _free(self, word: Word) -> str:
        """Return a name that conditions can mention."""
        if word.text in _CONNECTIVES or word.text in _UNSUPPORTED or word.text[:1] in "?:":
            raise self.error(word, f"nothing can be called `{word.spelling}`: that means something else")
        return self._name(word)

    def _parts(self, section: Group, kind: str) -> tuple[Word, dict[str, Expression]]:
        if len(section.items) < 2:
            raise self.error(section, f"this {kind} has no name")
        name = self.word(section.items[1], "a name")
        self._name(name)
        return name, self._keywords(section.items[2:], kind)

    def _keywords(self, items: tuple[Expression, ...], kind: str) -> dict[str, Expression]:
        parts: dict[str, Expression] = {}
        for index in range(0, len(items), 2):
            key = self.word(items[index], "a keyword such as `:parameters`")
            name = key.text.removeprefix(":")
            if key.text.startswith(":") and name not in _SECTIONS[kind]:
                self._unsupported(key)
            if not key.text.startswith(":") or name not in _SECTIONS[kind]:
                raise self.error(key, f"`{key.spelling}` is no part of a {kind}")
            if name in parts:
                raise self.error(key, f"`{key.spelling}` is there twice")
            if index + 1 >= len(items):
                raise self.error(key, f"nothing follows `{key.spelling}`")
            parts[name] = items[index + 1]
        return parts

    def _parameters(self, parts: Mapping[str, Expression]) -> tuple[Variable, ...]:
        if "parameters" not in parts:
            return ()
        return self._variables(self.group(parts["parameters"], "parameters").items)

    def _variables(self, items: tuple[Expression, ...], *, unique: bool = True) -> tuple[Variable, ...]:
        variables: list[Variable] = []
        names: set[str] = set()
        for word, types in self.typed(items, "a variable"):
            if not is_variable(word.text):
                raise self.error(word, f"`{word.spelling}` is no variable: variables begin with `?`")
            if unique and word.text in names:
                raise self.error(word, f"a second variable is called `{word.spelling}`")
            names.add(word.text)
            variables.append(Variable(word.text, tuple(self.type_of(one) for one in types) or (OBJECT,)))
        return tuple(variables)

    def type_of(self, word: Word) -> str:
        if word.text != OBJECT and word.text not in self.domain.types:
            raise self.error(word, f"no type is called `{word.spelling}`: declare it in `:types`")
        return word.text

    def _name(self, word: Word) -> str:
        self.spelling.setdefault(word.text, word.spelling)
        return word.text

    def _condition(self, at: Expression | None, known: Collection[str]) -> Condition:
        return TRUE if at is None else self.condition(at, known)

    def atom(self, head: Word, rest: tuple[Expression, ...], known: Collection[str]) -> Condition:
        if head.text == "when":
            raise self.error(head, "`when` is for effects: write `imply` in a condition")
        self._unsupported(head)
        atom = super().atom(head, rest, known)
        self._known_predicate(head, len(rest))
        return atom

    def variables(self, items: tuple[Expression, ...]) -> tuple[tuple[str, tuple[str, ...]], ...]:
        return tuple((one.name, one.types) for one in self._variables(items))

    def _known_predicate(self, at: Word, count: int) -> None:
        arity = self.domain.predicates.get(at.text)
        if arity is None:
            raise self.error(at, f"no predicate is called `{at.spelling}`: declare it in `:predicates`")
        if arity != count:
            raise self.error(at, f"predicate `{at.spelling}` takes {arity} arguments, not {count}")

    def check_subtasks(self) -> None:
        """Check the subtasks: each names a task or an action, with as many arguments as that has."""
        for word, name, terms in self.later:
            self._known_task(word, name, len(terms))

    def _known_task(self, at: Word, name: str, count: int) -> None:
        if name in self.domain.tasks:
            arity = len(self.domain.tasks[name])
        elif name in self.domain.actions:
            arity = len(self.domain.actions[name].parameters)
        else:
            raise self.error(at, f"no task or action is called `{at.spelling}`")
        if arity != count:
            raise self.error(at, f"`{at.spelling}` takes {arity} arguments, not {count}")

    # Problem ----------------------------------------------------------------------------------------------------

    def problem_section(self, problem: Problem, section: Group) -> None:
        head, rest = self.head(section, "a section"), section.items[1:]
        match head.text:
            case ":domain":
                pass  # problems of IPC 2020 name their domain otherwise than the domain does
            case ":metric":
                self._metric(problem, section)
            case ":requirements":
                self._requirements(rest)
            case ":objects":
                self.objects(rest, problem.objects)
            case ":init":
                for one in rest:
                    self._fact(problem, self.group(one, "a fact"))
            case ":htn" | ":htn-ti":
                parts = self._keywords(rest, "htn")
                problem.parameters = self._parameters(parts)
                known = {variable.name for variable in problem.parameters}
                self.constants = problem.objects
                problem.constraints = self._condition(parts.get("constraints"), known)
                problem.subtasks, problem.order = self._network(parts, known)
                self.check_subtasks()
            case ":goal":
                if len(rest) != 1:
                    raise self.error(section, "expected one goal")
                self.constants = problem.objects
                problem.goal = self._condition(rest[0], ())
            case _:
                self._unsupported(head)
                raise self.error(head, f"`{head.spelling}` is no section of a problem")

    def _fact(self, problem: Problem, group: Group) -> None:
        head = self.head(group, "a fact")
        if head.text == "=":
            if len(group.items) != 3:
                raise self.error(group, "expected `(= (function …) number)`")
            self.constants = problem.objects
            function = self._function(group.items[1], ())
            value = self.word(group.items[2], "a number")
            number = _number(value.text)
            if number is None:
                raise self.error(
                    value, f"`{value.spelling}` is no number: expected `(= (function …) number)`"
                )
            problem.values[function] = number
            return
        if head.text == "not":
            raise self.error(head, "`not` is no fact: what is not in `:init` does not hold")
        if head.text == "at" and len(group.items) == 3 and isinstance(group.items[2], Group):
            raise self.error(head, "facts that come to hold at a time are not supported")
        terms = tuple(self.word(one, "an object").text for one in group.items[1:])
        self._known_predicate(head, len(terms))
        for one, term in zip(group.items[1:], terms, strict=True):
            if term not in problem.objects:
                raise self.error(one, f"no object is called `{term}`: declare it in `:objects`")
        problem.init.add((head.text, *terms))
