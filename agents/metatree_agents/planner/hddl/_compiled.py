"""A problem as Python functions: for each method one that finds its instances, for each action one that applies it.

The functions are written as source, nested loops over the facts in an order planned once, and compiled: interpreting
the conditions would take ten times as long. Objects are numbers; the state is one set of argument tuples for each
relation that actions change; relations that none changes are constants with indexes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from metatree_agents.planner.domain.conditions import Condition, flat, free_variables, is_variable
from metatree_agents.planner.hddl._language import (
    OBJECT,
    Action,
    Method,
    Problem,
    Subtask,
    Variable,
    closure,
    linear,
)
from metatree_agents.planner.hddl._pullup import Literal, PullUp, literals
from metatree_agents.planner.hddl.limits import Limits

Arguments = tuple[int, ...]
State = list[set[Arguments]]
"""For each changing relation the arguments for which it holds."""
Change = tuple[int, Arguments]


@dataclass(slots=True)
class CompiledAction:
    """An action."""

    name: str
    applicable: Callable[[State, Arguments], bool]
    effects: Callable[[State, Arguments], tuple[list[Change], list[Change]]]
    """What it adds and deletes in a state."""
    idle: bool
    """Whether it has no effects."""


@dataclass(slots=True)
class CompiledMethod:
    """A method."""

    source: Method
    instances: Callable[[State, Arguments], Iterator[Arguments]]
    """The values of its parameters for which it can be chosen, given its task's arguments."""
    order: tuple[int, ...]
    """Its subtasks, in an order that respects theirs."""
    subtasks: tuple[tuple[int, tuple[int, ...]], ...]
    """Of each subtask the task's number, and for each argument a parameter's number or -1 minus an object."""
    before: tuple[int, ...]
    """For each subtask the bits of those before it."""
    steps: float
    total: bool


@dataclass(slots=True)
class Compiled:
    """A problem, ready to be searched."""

    problem: Problem
    objects: list[str]
    fluents: list[str]
    """The relations that actions change."""
    initial: State
    tasks: list[str]
    """Actions and compound tasks by their numbers."""
    actions: dict[int, CompiledAction]
    methods: dict[int, list[CompiledMethod]]
    top: CompiledMethod
    """The initial network, as the only method of a task without arguments."""
    goal: Callable[[State], bool]
    limits: Limits
    numbers: dict[str, int] = field(default_factory=dict)
    """Object -> number."""


TOP = "__top"

_LOOPS = 15
"""Loops inside one another in one function."""


def compile_problem(problem: Problem, limits: Limits | None = None, *, pull: bool = True) -> Compiled:
    """Compile a problem.

    Args:
        problem: as `read_problem` gives it.
        limits: are looked at inside the loops that find a method's instances, too.
        pull: whether a method's instances meet the preconditions pulled up from its subtasks, too, which is right
            where a method's subtasks are done without others in between.
    """
    method = Method(
        TOP, problem.parameters, TOP, (), problem.constraints, problem.subtasks, problem.order, -1
    )
    knowledge = PullUp(problem)
    return _Compiler(problem, knowledge, limits or Limits(), pull=pull).compile(method)


class _Compiler:
    def __init__(self, problem: Problem, knowledge: PullUp, limits: Limits, *, pull: bool) -> None:
        self.limits = limits
        self.problem = problem
        self.pull = pull
        self.knowledge = knowledge
        domain = problem.domain
        self.objects = list(problem.objects)
        self.number = {name: index for index, name in enumerate(self.objects)}
        changed = {effect.relation for action in domain.actions.values() for effect in action.effects}
        self.fluents = [name for name in domain.predicates if name in changed]
        self.fluent = {name: index for index, name in enumerate(self.fluents)}
        self.tasks = [*domain.actions, *domain.tasks]
        self.task = {name: index for index, name in enumerate(self.tasks)}
        self.space: dict[str, Any] = {"look": limits.step, "product": product}
        self.names: dict[Any, str] = {}
        self.static: dict[str, set[Arguments]] = {n: set() for n in domain.predicates if n not in changed}
        self.initial: State = [set() for _ in self.fluents]
        for fact in problem.init:
            arguments = tuple(self.number[term] for term in fact[1:])
            (self.initial[self.fluent[fact[0]]] if fact[0] in changed else self.static[fact[0]]).add(
                arguments
            )

    def compile(self, top: Method) -> Compiled:
        domain = self.problem.domain
        methods: dict[int, list[CompiledMethod]] = {self.task[name]: [] for name in domain.tasks}
        for method in domain.methods:
            compiled = self._method(method)
            if compiled is not None:
                methods[self.task[method.task]].append(compiled)
        for listed in methods.values():
            listed.sort(key=lambda one: (one.steps, self._recursive(one.source), one.source.number))
        actions = {self.task[name]: self._action(action) for name, action in domain.actions.items()}
        first = self._method(top)
        goal = self._function("goal", ["F"], [f"return {self._expression(self.problem.goal, {}, 'F')}"])
        if first is None:
            first = self._method(top, impossible=True)
            assert first is not None
        return Compiled(
            self.problem,
            self.objects,
            self.fluents,
            self.initial,
            self.tasks,
            actions,
            methods,
            first,
            goal,
            self.limits,
            self.number,
        )

    def _recursive(self, method: Method) -> bool:
        return any(subtask.name == method.task for subtask in method.subtasks)

    # Source -----------------------------------------------------------------------------------------------------

    def _function(self, name: str, parameters: list[str], body: list[str]) -> Any:
        source = f"def {name}({', '.join(parameters)}):\n" + "\n".join("    " + line for line in body)
        scope: dict[str, Any] = {}
        exec(compile(source, f"<hddl {name}>", "exec"), self.space, scope)
        return scope[name]

    def _constant(self, prefix: str, value: Any, key: Any = None) -> str:
        """Return the name under which the functions find a value; equal values under one."""
        key = (prefix, value if key is None else key)
        if key not in self.names:
            self.names[key] = f"{prefix}{len(self.names)}"
            self.space[self.names[key]] = value
        return self.names[key]

    def _values(self, variable: Variable) -> frozenset[int]:
        return frozenset(self.number[name] for name in self.knowledge.values(variable))

    def _term(self, term: str, known: dict[str, str]) -> str:
        return known[term] if is_variable(term) else str(self.number[term])

    def _tuple(self, terms: tuple[str, ...], known: dict[str, str]) -> str:
        return "(" + "".join(self._term(term, known) + ", " for term in terms) + ")"

    def _set(self, relation: str, state: str) -> str:
        if relation in self.fluent:
            return f"{state}[{self.fluent[relation]}]"
        return self._constant("S_", self.static[relation], relation)

    def _expression(self, condition: Condition, known: dict[str, str], state: str) -> str:
        """Return a condition, all of whose variables are known, as a Python expression."""
        match condition[0]:
            case "atom":
                if any(not is_variable(t) and t not in self.number for t in condition[2]):
                    return "False"
                return f"({self._tuple(condition[2], known)} in {self._set(condition[1], state)})"
            case "=":
                return f"({self._term(condition[1], known)} == {self._term(condition[2], known)})"
            case "sortof":
                kinds = Variable(condition[1], (condition[2],))
                return f"({self._term(condition[1], known)} in {self._constant('T_', self._values(kinds))})"
            case "not":
                return f"(not {self._expression(condition[1], known, state)})"
            case "imply":
                left, right = (self._expression(one, known, state) for one in condition[1:])
                return f"((not {left}) or {right})"
            case "forall" | "exists":
                inner = dict(known)
                loop = self._over([Variable(name, types or (OBJECT,)) for name, types in condition[1]], inner)
                function = "all" if condition[0] == "forall" else "any"
                return f"{function}({self._expression(condition[2], inner, state)} {loop})"
            case _:
                parts = [self._expression(one, known, state) for one in condition[1:]]
                empty = "True" if condition[0] == "and" else "False"
                return f"({f' {condition[0]} '.join(parts)})" if parts else empty

    def _over(self, variables: Sequence[Variable], known: dict[str, str]) -> str:
        """Return a loop over all values of variables, which are known in it; one, for Python nests twenty at most."""
        names: list[str] = []
        ranges: list[str] = []
        for variable in variables:
            known[variable.name] = f"q{len(known)}_{len(names)}"
            names.append(known[variable.name])
            ranges.append(self._constant("T_", self._values(variable)))
        if len(names) == 1:
            return f"for {names[0]} in {ranges[0]}"
        return f"for ({''.join(name + ', ' for name in names)}) in product({', '.join(ranges)})"

    # Actions ----------------------------------------------------------------------------------------------------

    def _action(self, action: Action) -> CompiledAction:
        known = {variable.name: f"a[{n}]" for n, variable in enumerate(action.parameters)}
        tests = [
            f"a[{n}] in {self._constant('T_', self._values(variable))}"
            for n, variable in enumerate(action.parameters)
        ]
        condition = self._expression(action.precondition, known, "F")
        applicable = self._function("applicable", ["F", "a"], [f"return {' and '.join([*tests, condition])}"])
        body = ["add, delete = [], []"]
        for effect in action.effects:
            inner, indent = dict(known), ""
            if effect.bound:
                body += [f"{self._over(effect.bound, inner)}:", "    look()"]
                indent = "    "
            if effect.when != ("and",):
                body.append(f"{indent}if {self._expression(effect.when, inner, 'F')}:")
                indent += "    "
            into = "add" if effect.adds else "delete"
            change = f"({self.fluent[effect.relation]}, {self._tuple(effect.terms, inner)})"
            body.append(f"{indent}{into}.append({change})")
        effects = self._function("effects", ["F", "a"], [*body, "return add, delete"])
        return CompiledAction(action.name, applicable, effects, not action.effects)

    # Methods ----------------------------------------------------------------------------------------------------

    def _method(self, method: Method, *, impossible: bool = False) -> CompiledMethod | None:
        needs = frozenset() if impossible else self.knowledge.method_needs(method)
        if needs is None:
            return None
        if not self.pull:
            needs = frozenset(literals(method.precondition))
        names = [variable.name for variable in method.parameters]
        before = closure(len(method.subtasks), method.order)
        count = len(method.subtasks)
        instances = self._instances(method, needs) if not impossible else lambda _, __: iter(())
        return CompiledMethod(
            method,
            instances,
            tuple(linear(count, method.order)),
            tuple(self._subtask(subtask, names) for subtask in method.subtasks),
            tuple(before),
            self.knowledge.method_steps(method),
            all(before[a] >> b & 1 or before[b] >> a & 1 for a in range(count) for b in range(a)),
        )

    def _subtask(self, subtask: Subtask, names: list[str]) -> tuple[int, tuple[int, ...]]:
        arguments = tuple(
            names.index(term) if is_variable(term) else -1 - self.number[term] for term in subtask.terms
        )
        return self.task[subtask.name], arguments

    def _instances(self, method: Method, needs: frozenset[Literal]) -> Any:
        """Write a generator of the values of a method's parameters."""
        values: dict[str, frozenset[int]] = {}
        for variable in method.parameters:
            here = self._values(variable)
            values[variable.name] = values.get(variable.name, here) & here
        for subtask in method.subtasks:
            for term, allowed in zip(subtask.terms, self._allowed(subtask.name), strict=True):
                if is_variable(term):
                    values[term] &= allowed
        known: dict[str, str] = {}
        functions: list[tuple[str, list[str]]] = [("F, a", [])]
        """Parameters and body of each function, the first one calls the second and so on."""
        body, indent = functions[0][1], ""
        for n, term in enumerate(method.task_terms):
            if not is_variable(term):
                body.append(f"if a[{n}] != {self.number[term]}: return")
            elif term in known:
                body.append(f"if a[{n}] != {known[term]}: return")
            else:
                known[term] = f"a{n}"
                body.append(f"a{n} = a[{n}]")
                body.append(f"if a{n} not in {self._constant('T_', values[term])}: return")
        others = [part for part in flat(method.precondition) if not _is_literal(part)]
        tests: list[tuple[set[str], Condition]] = [(free_variables(part), part) for part in others]
        joins: list[tuple[str, tuple[str, ...]]] = []
        for sign, relation, terms in sorted(needs, key=repr):
            atom: Condition = ("atom", relation, terms)
            if sign:
                joins.append((relation, terms))
            else:
                tests.append((free_variables(atom), ("not", atom)))

        def settle() -> None:
            """Write the tests whose variables are known."""
            for one in list(tests):
                if one[0] <= known.keys():
                    tests.remove(one)
                    body.append(f"{indent}if not {self._expression(one[1], known, 'F')}: {leave()}")

        def leave() -> str:
            return "continue" if indent else "return"

        settle()
        while True:
            for join in [j for j in joins if all(t in known or not is_variable(t) for t in j[1])]:
                joins.remove(join)
                body.append(
                    f"{indent}if {self._tuple(join[1], known)} not in {self._set(join[0], 'F')}: {leave()}"
                )
            unbound = [name for name in values if name not in known]
            if not unbound:
                break
            if indent:
                body.append(f"{indent}look()")
            if (
                len(indent) >= 4 * _LOOPS
            ):  # Python nests twenty at most: the others come in a function of their own
                handed = ", ".join(["F", "a", *known.values()])
                number = len(functions)
                body.append(f"{indent}yield from rest{number}({handed})")
                functions.append((handed, []))
                body, indent = functions[-1][1], ""
            if joins:
                join = min(joins, key=lambda j: self._size(j, known))
                joins.remove(join)
                indent = self._loop(join, known, values, body, indent)
            else:
                name = min(unbound, key=lambda one: len(values[one]))
                known[name] = f"v{len(known)}_"
                body.append(
                    f"{indent}for {known[name]} in {self._constant('L_', sorted(values[name]), values[name])}:"
                )
                indent += "    "
            settle()
        body.append(f"{indent}yield {self._tuple(tuple(v.name for v in method.parameters), known)}")
        source = [f"def rest{n}({handed}):" for n, (handed, _) in enumerate(functions)]
        lines = []
        for head, (_, inner) in zip(source, functions, strict=True):
            lines += [head, *("    " + line for line in inner)]
        if len(functions) == 1:
            return self._function("instances", ["F", "a"], body)
        return self._function("instances", ["F", "a"], [*lines, "return rest0(F, a)"])

    def _allowed(self, task: str) -> list[frozenset[int]]:
        domain = self.problem.domain
        parameters = domain.actions[task].parameters if task in domain.actions else domain.tasks[task]
        return [self._values(variable) for variable in parameters]

    def _size(self, join: tuple[str, tuple[str, ...]], known: dict[str, str]) -> float:
        """Estimate how many facts a loop over a relation would visit."""
        relation, terms = join
        free = len({t for t in terms if is_variable(t) and t not in known})
        facts = len(self.static[relation] if relation in self.static else self.initial[self.fluent[relation]])
        bound = len(terms) - free
        return (facts + 1) / (4.0**bound) * (1 if relation in self.static else 1.5)

    def _loop(
        self,
        join: tuple[str, tuple[str, ...]],
        known: dict[str, str],
        values: dict[str, frozenset[int]],
        body: list[str],
        indent: str,
    ) -> str:
        """Write a loop over the facts of a relation that agree with what is known; return the next indent."""
        relation, terms = join
        given = [n for n, term in enumerate(terms) if term in known or not is_variable(term)]
        if relation in self.static and given:
            index: dict[Arguments, list[Arguments]] = {}
            for fact in sorted(self.static[relation]):
                index.setdefault(tuple(fact[n] for n in given), []).append(fact)
            key = "(" + "".join(self._term(terms[n], known) + ", " for n in given) + ")"
            over = f"{self._constant('I_', index, (relation, tuple(given)))}.get({key}, ())"
            given = []
        elif relation in self.static:
            over = self._constant("A_", sorted(self.static[relation]), relation)
        else:
            over = f"sorted({self._set(relation, 'F')})"
        names, tests = [], []
        for n, term in enumerate(terms):
            name = f"f{len(known)}_{n}"
            names.append(name)
            if n in given:
                tests.append(f"{name} == {self._term(term, known)}")
            elif term in known:
                if terms.index(term) < n and known[term] in names:
                    tests.append(f"{name} == {known[term]}")
            elif is_variable(term):
                known[term] = name
                tests.append(f"{name} in {self._constant('T_', values[term])}")
        body.append(f"{indent}for {''.join(name + ', ' for name in names)} in {over}:")
        indent += "    "
        if tests:
            body.append(f"{indent}if not ({' and '.join(tests)}): continue")
        return indent


def _is_literal(part: Condition) -> bool:
    return bool(part[0] == "atom" or (part[0] == "not" and part[1][0] == "atom"))
