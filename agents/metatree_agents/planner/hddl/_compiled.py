"""A problem as Python functions: for each method one that finds its instances, for each action one that applies it.

The functions are written as source, nested loops over the facts in an order planned once, and compiled: interpreting
the conditions would take ten times as long. Objects are numbers; the state is one set of argument tuples for each
relation that actions change; relations that none changes are constants with indexes.

Nothing is grounded: methods find their instances in the present state. On IPC problems of usual size the whole search
takes less time than grounding would. Lost: grounded relaxed-plan heuristics; the larger problems of Blocksworld, which
blind search does not solve, may want them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

from metatree_agents.planner.domain.conditions import Condition, flat, free_variables, is_variable
from metatree_agents.planner.domain.model import linear
from metatree_agents.planner.hddl._language import (
    Action,
    Method,
    Problem,
    Variable,
    closure,
    exact,
)
from metatree_agents.planner.hddl._numbers import NUMBERS, Number, Table
from metatree_agents.planner.hddl._outlook import Outlook, Want
from metatree_agents.planner.hddl._pullup import Literal, PullUp, literals
from metatree_agents.planner.hddl.limits import SolverLimits

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
    holds: Callable[[State, Arguments], bool]
    """Whether its precondition holds, given the values of its parameters."""
    instances: Callable[[State, Arguments], Iterator[Arguments]]
    """The values of its parameters for which it can be chosen, given its task's arguments."""
    order: tuple[int, ...]
    """Its subtasks, in an order that respects theirs."""
    subtasks: tuple[int, ...]
    """Of each subtask the task's number."""
    bind: Callable[[Arguments], tuple[Arguments, ...]]
    """The arguments of each subtask, given the values of its parameters."""
    before: tuple[int, ...]
    """For each subtask the bits of those before it."""
    steps: float
    total: bool


_LONG = 10_000
"""Values of the variables of a condition, from which on its loops look at the limits."""
_LOOPS = 15
"""Loops inside one another in one function."""


class Compiled:
    """A problem, ready to be searched.

    Args:
        problem: as `read_problem` gives it.
        limits: are looked at inside the loops that find a method's instances, too.
        pull: whether a method's instances meet the preconditions pulled up from its subtasks, too, which is right
            where a method's subtasks are done without others in between.
    """

    def __init__(self, problem: Problem, limits: SolverLimits | None = None, *, pull: bool = True) -> None:
        self.limits = limits or SolverLimits()
        self.least_cost = problem.least_cost()
        self._costs: dict[tuple[int, Arguments], float] = {}
        self._kinds: dict[tuple[str, ...], frozenset[int]] = {}
        self.problem = problem
        self.pull = pull
        self.knowledge = PullUp(problem)
        domain = problem.domain
        self.objects = list(problem.objects)
        self.number = {name: index for index, name in enumerate(self.objects)}
        changed = {effect.relation for action in domain.actions.values() for effect in action.effects}
        self.fluents = [name for name in domain.predicates if name in changed]
        """The relations that actions change."""
        self.fluent = {name: index for index, name in enumerate(self.fluents)}
        self.tasks = [*domain.actions, *domain.tasks]
        """Actions and compound tasks by their numbers."""
        self.task = {name: index for index, name in enumerate(self.tasks)}
        self.space: dict[str, Any] = {"look": self.limits.step, "product": product, **NUMBERS}
        self.names: dict[Any, str] = {}
        self.static: dict[str, set[Arguments]] = {n: set() for n in domain.predicates if n not in changed}
        self.initial: State = [set() for _ in self.fluents]
        for fact in problem.init:
            arguments = tuple(self.number[term] for term in fact[1:])
            (self.initial[self.fluent[fact[0]]] if fact[0] in changed else self.static[fact[0]]).add(
                arguments
            )
        read = problem.functions_read()
        moved = {effect.function for action in domain.actions.values() for effect in action.numeric}
        self.tables = {name: len(self.fluents) + n for n, name in enumerate(sorted(read & moved))}
        """Functions that conditions read and actions change: their places in the state, as facts with a value."""
        self.numbers: dict[str, dict[Arguments, Number]] = {name: {} for name in sorted(read - moved)}
        """Functions that conditions read and no action changes."""
        self.initial += [set() for _ in self.tables]
        for (name, *terms), value in problem.values.items():
            arguments = tuple(self.number[term] for term in terms)
            if name in self.tables:
                self.initial[self.tables[name]].add((*arguments, exact(value)))  # type: ignore[arg-type]
            elif name in self.numbers:
                self.numbers[name][arguments] = exact(value)
        self.methods: dict[int, list[CompiledMethod]] = {self.task[name]: [] for name in domain.tasks}
        for method in domain.methods:
            needs = self.knowledge.method_needs(method)
            if needs is not None:
                self.methods[self.task[method.task]].append(self._method(method, needs))
        for listed in self.methods.values():
            listed.sort(key=lambda one: (one.steps, self._recursive(one.source), one.source.number))
        least = self.knowledge.least(problem.least_costs())
        self.floor = {self.task[name]: cost for name, cost in least.items()}
        """Task -> what it costs at least, by the metric or in steps, those without effects included."""
        self.actions = {self.task[name]: self._action(action) for name, action in domain.actions.items()}
        self.top = self._method(problem.top, self.knowledge.method_needs(problem.top))
        """The initial network, as the only method of a task without arguments."""
        self.outlook = Outlook(self.knowledge.changes, self.task, self.number, self.fluent)
        self.wants = list(self._wants())
        self.wanted = frozenset(self.wants)
        self.forgone = {
            (task, method.source.number): wants
            for task, methods in self.methods.items()
            for method in methods
            if (wants := self.outlook.forgone(self.wants, task, method.subtasks))
        }
        """Task and number of a method -> what the end needs, the task may bring about and the method perhaps not."""
        body = [f"return {self._expression(problem.goal, {}, 'F')}"]
        self.goal: Callable[[State], bool] = self._function("goal", ["F"], body)

    def _wants(self) -> Iterator[Want]:
        """Yield the facts that the goal names, those that it wants not to hold included."""
        for sign, relation, terms in literals(self.problem.goal):
            if relation in self.fluent and not any(map(is_variable, terms)):
                yield sign, self.fluent[relation], tuple(self.number[term] for term in terms)

    def fresh_state(self) -> State:
        """Return the initial state, to be changed in place."""
        state: list[Any] = [set(facts) for facts in self.initial]
        for place in self.tables.values():
            state[place] = Table({fact[:-1]: fact[-1] for fact in self.initial[place]})
        return state

    def floor_of(self, method: CompiledMethod) -> float:
        """Return what a method's subtasks cost at least."""
        return sum(self.floor[task] for task in method.subtasks)

    def cost_of(self, task: int, arguments: Arguments) -> float:
        """Return what an action costs by the problem's metric; 1 without one."""
        if self.problem.metric is None:
            return 1.0
        key = (task, arguments)
        if key not in self._costs:
            named = tuple(self.objects[argument] for argument in arguments)
            self._costs[key] = self.problem.step_cost(self.tasks[task], named)
        return self._costs[key]

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
        if variable.types not in self._kinds:
            values = self.knowledge.values(variable)
            self._kinds[variable.types] = frozenset(self.number[name] for name in values)
        return self._kinds[variable.types]

    def _term(self, term: str, known: dict[str, str]) -> str:
        return known[term] if is_variable(term) else str(self.number[term])

    def _tuple(self, terms: tuple[str, ...], known: dict[str, str]) -> str:
        return "(" + "".join(self._term(term, known) + ", " for term in terms) + ")"

    def _set(self, relation: str, state: str) -> str:
        if relation in self.fluent:
            return f"{state}[{self.fluent[relation]}]"
        return self._constant("S_", self.static[relation], relation)

    def _expression(self, condition: Condition, known: dict[str, str], state: str, times: int = 1) -> str:
        """Return a condition, all of whose variables are known, as a Python expression.

        Args:
            times: how often it is looked at, for all values of the variables around it.
        """
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
            case "compare":
                left, right = (self._number(one, known, state) for one in condition[2:])
                return f"compare({condition[1]!r}, {left}, {right})"
            case "not":
                return f"(not {self._expression(condition[1], known, state, times)})"
            case "imply":
                left, right = (self._expression(one, known, state, times) for one in condition[1:])
                return f"((not {left}) or {right})"
            case "forall" | "exists":
                inner = dict(known)
                bound = [Variable(name, types) for name, types in condition[1]]
                times *= prod(len(self._values(one)) for one in bound)
                loop = self._over(bound, inner)
                function = "all" if condition[0] == "forall" else "any"
                body = self._expression(condition[2], inner, state, times)
                # A short loop costs less than to look at the clock in it; what it gives is no value.
                return f"{function}({f'(look() or {body})' if times > _LONG else body} {loop})"
            case _:
                parts = [self._expression(one, known, state, times) for one in condition[1:]]
                empty = "True" if condition[0] == "and" else "False"
                return f"({f' {condition[0]} '.join(parts)})" if parts else empty

    def _number(self, expression: Any, known: dict[str, str], state: str) -> str:
        """Return an expression over numbers as one of Python, None where it has no value."""
        if not isinstance(expression, tuple):
            return self._constant("N_", expression)
        if expression[0] != "value":
            parts = [self._number(one, known, state) for one in expression[1:]]
            return f"arithmetic({', '.join([repr(expression[0]), *parts])})"
        name, terms = expression[1:]
        if any(not is_variable(term) and term not in self.number for term in terms):
            return "None"
        if name in self.tables:
            return f"number({state}[{self.tables[name]}], {self._tuple(terms, known)})"
        return f"{self._constant('V_', self.numbers[name], name)}.get({self._tuple(terms, known)})"

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
        numeric = [effect for effect in action.numeric if effect.function in self.tables]
        if numeric:
            body.append("new = {}")
        for one in numeric:
            inner, indent = dict(known), ""
            if one.bound:
                body += [f"{self._over(one.bound, inner)}:", "    look()"]
                indent = "    "
            if one.when != ("and",):
                body.append(f"{indent}if {self._expression(one.when, inner, 'F')}:")
                indent += "    "
            place, terms = self.tables[one.function], self._tuple(one.terms, inner)
            amount = self._number(one.amount, inner, "F")
            body.append(f"{indent}change(new, F, {place}, {terms}, {one.operator!r}, {amount})")
        if numeric:
            body.append("settle(new, F, add, delete)")
        effects = self._function("effects", ["F", "a"], [*body, "return add, delete"])
        idle = not (action.effects or action.numeric)
        return CompiledAction(action.name, applicable, effects, idle)

    # Methods ----------------------------------------------------------------------------------------------------

    def _method(self, method: Method, needs: frozenset[Literal] | None) -> CompiledMethod:
        """Compile a method; without `needs` it can never be chosen."""
        names = [variable.name for variable in method.parameters]
        count = len(method.subtasks)
        before = closure(count, method.order)
        known = {name: f"a[{n}]" for n, name in enumerate(names)}
        body = [f"return {self._expression(method.precondition, known, 'F')}"]
        bound = [self._tuple(subtask.terms, known) for subtask in method.subtasks]
        return CompiledMethod(
            method,
            self._function("holds", ["F", "a"], body),
            _no_instances if needs is None else self._instances(method, needs),
            tuple(linear(count, method.order)),
            tuple(self.task[subtask.name] for subtask in method.subtasks),
            self._function("bind", ["a"], [f"return ({', '.join(bound)}{',' if bound else ''})"]),
            tuple(before),
            self.knowledge.method_steps(method),
            all(before[a] >> b & 1 or before[b] >> a & 1 for a in range(count) for b in range(a)),
        )

    def _instances(self, method: Method, needs: frozenset[Literal]) -> Any:
        """Return a generator of the values of a method's parameters."""
        if not self.pull:
            needs = frozenset(literals(method.precondition))
        values: dict[str, frozenset[int]] = {}
        for variable in method.parameters:
            here = self._values(variable)
            values[variable.name] = values.get(variable.name, here) & here
        for subtask in method.subtasks:
            for term, allowed in zip(subtask.terms, self._allowed(subtask.name), strict=True):
                if is_variable(term):
                    values[term] &= allowed
                elif self.number[term] not in allowed:
                    return _no_instances
        return _InstancesWriter(self, method, needs, values).written()

    def _allowed(self, task: str) -> list[frozenset[int]]:
        domain = self.problem.domain
        parameters = domain.actions[task].parameters if task in domain.actions else domain.tasks[task]
        return [self._values(variable) for variable in parameters]


def _no_instances(state: State, arguments: Arguments) -> Iterator[Arguments]:
    return iter(())


Join = tuple[str, tuple[str, ...]]
"""A relation and its terms: facts that agree with them are looped over."""


class _InstancesWriter:
    """Writes the generator of a method's instances: loops over facts and values, each test as early as it can be."""

    def __init__(
        self,
        compiler: Compiled,
        method: Method,
        needs: frozenset[Literal],
        values: dict[str, frozenset[int]],
    ) -> None:
        self.compiler = compiler
        self.method = method
        self.values = values
        """Variable -> what it may be."""
        self.known: dict[str, str] = {}
        """Variable -> Python expression."""
        self.functions: list[tuple[str, list[str]]] = [("F, a", [])]
        """Parameters and body of each function, the first one calls the second and so on."""
        self.indent = ""
        others = [part for part in flat(method.precondition) if not _is_literal(part)]
        self.tests: list[tuple[set[str], Condition]] = [(free_variables(part), part) for part in others]
        self.joins: list[Join] = []
        for sign, relation, terms in sorted(needs, key=repr):
            atom: Condition = ("atom", relation, terms)
            if sign:
                self.joins.append((relation, terms))
            else:
                self.tests.append((free_variables(atom), ("not", atom)))

    def written(self) -> Any:
        """Return the generator."""
        self._bind_task()
        self._write_checks()
        while unbound := [name for name in self.values if name not in self.known]:
            if self.indent:
                self._line("look()")
            if len(self.indent) >= 4 * _LOOPS:
                self._split()
            if self.joins:
                join = min(self.joins, key=self._size)
                self.joins.remove(join)
                self._loop(join)
            else:
                self._loop_over_values(min(unbound, key=lambda one: len(self.values[one])))
            self._write_checks()
        parameters = tuple(variable.name for variable in self.method.parameters)
        self._line(f"yield {self.compiler._tuple(parameters, self.known)}")
        return self._function()

    def _line(self, text: str) -> None:
        self.functions[-1][1].append(self.indent + text)

    def _leave_if(self, test: str) -> None:
        """Write a test after which this way is left."""
        self._line(f"if {test}: {'continue' if self.indent else 'return'}")

    def _bind_task(self) -> None:
        """Take the arguments of the task."""
        for n, term in enumerate(self.method.task_terms):
            if not is_variable(term):
                self._leave_if(f"a[{n}] != {self.compiler.number[term]}")
            elif term in self.known:
                self._leave_if(f"a[{n}] != {self.known[term]}")
            else:
                self.known[term] = f"a{n}"
                self._line(f"a{n} = a[{n}]")
                self._leave_if(f"a{n} not in {self.compiler._constant('T_', self.values[term])}")

    def _write_checks(self) -> None:
        """Write the tests, and the look-ups of facts, whose variables are known."""
        for test in [test for test in self.tests if test[0] <= self.known.keys()]:
            self.tests.remove(test)
            self._leave_if(f"not {self.compiler._expression(test[1], self.known, 'F')}")
        for join in [j for j in self.joins if all(t in self.known or not is_variable(t) for t in j[1])]:
            self.joins.remove(join)
            fact = self.compiler._tuple(join[1], self.known)
            self._leave_if(f"{fact} not in {self.compiler._set(join[0], 'F')}")

    def _split(self) -> None:
        """Go on in a function of its own: Python nests twenty loops at most."""
        handed = ", ".join(["F", "a", *self.known.values()])
        self._line(f"yield from rest{len(self.functions)}({handed})")
        self.functions.append((handed, []))
        self.indent = ""

    def _function(self) -> Any:
        (_, body), *others = self.functions
        if not others:
            return self.compiler._function("instances", ["F", "a"], body)
        lines = []
        for n, (handed, inner) in enumerate(self.functions):
            lines += [f"def rest{n}({handed}):", *("    " + line for line in inner)]
        return self.compiler._function("instances", ["F", "a"], [*lines, "return rest0(F, a)"])

    def _loop_over_values(self, variable: str) -> None:
        self.known[variable] = f"v{len(self.known)}_"
        values = self.values[variable]
        over = self.compiler._constant("L_", sorted(values), values)
        self._line(f"for {self.known[variable]} in {over}:")
        self.indent += "    "

    def _size(self, join: Join) -> float:
        """Estimate how many facts a loop over a relation would visit."""
        relation, terms = join
        compiler = self.compiler
        free = len({t for t in terms if is_variable(t) and t not in self.known})
        static = relation in compiler.static
        facts = len(compiler.static[relation] if static else compiler.initial[compiler.fluent[relation]])
        return (facts + 1) / (4.0 ** (len(terms) - free)) * (1 if static else 1.5)

    def _loop(self, join: Join) -> None:
        """Write a loop over the facts of a relation that agree with what is known."""
        relation, terms = join
        known, compiler = self.known, self.compiler
        given = [n for n, term in enumerate(terms) if term in known or not is_variable(term)]
        if relation in compiler.static and given:
            index: dict[Arguments, list[Arguments]] = {}
            for fact in sorted(compiler.static[relation]):
                index.setdefault(tuple(fact[n] for n in given), []).append(fact)
            key = compiler._tuple(tuple(terms[n] for n in given), known)
            over = f"{compiler._constant('I_', index, (relation, tuple(given)))}.get({key}, ())"
        elif relation in compiler.static:
            over = compiler._constant("A_", sorted(compiler.static[relation]), relation)
        else:
            over = compiler._set(relation, "F")
            if given:  # of many facts few agree, and only those are put in order
                agree = " and ".join(f"f[{n}] == {compiler._term(terms[n], known)}" for n in given)
                over = f"[f for f in {over} if {agree}]"
            over = f"sorted({over})"
        names, tests = [], []
        for n, term in enumerate(terms):
            name = f"f{len(known)}_{n}"
            names.append(name)
            if term in known:
                if terms.index(term) < n and known[term] in names:
                    tests.append(f"{name} == {known[term]}")
            elif is_variable(term):
                known[term] = name
                tests.append(f"{name} in {compiler._constant('T_', self.values[term])}")
        self._line(f"for {''.join(name + ', ' for name in names)} in {over}:")
        self.indent += "    "
        if tests:
            self._leave_if(f"not ({' and '.join(tests)})")


def _is_literal(part: Condition) -> bool:
    return bool(part[0] == "atom" or (part[0] == "not" and part[1][0] == "atom"))
