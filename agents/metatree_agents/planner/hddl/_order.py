"""Which steps of a plan have to keep their order: the rest may be done at the same time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from metatree_agents.planner.domain.conditions import is_variable, parts_of, values_in
from metatree_agents.planner.domain.model import linear
from metatree_agents.planner.hddl._language import Problem
from metatree_agents.planner.hddl.limits import SolverLimits
from metatree_agents.planner.hddl.plan import HtnPlan

Atom = tuple[str, ...]
_LOGIC = frozenset({"and", "or", "not", "imply", "forall", "exists", "=", "sortof"})


def relax_order(plan: HtnPlan, problem: Problem, limits: SolverLimits) -> HtnPlan:
    """Return a plan with the partial order that its problem's methods and the effects of its steps leave.

    Two steps keep their order where the decomposition orders them, or where one changes a fact that the other, or the
    precondition of a method that it begins, reads or changes. Steps are bits, so that one looks at all others at once.

    Raises:
        LimitReached: it takes too long.
    """
    below = _below(plan)
    after = [0] * len(plan.steps)
    """For each step the bits of the steps before it."""
    methods = problem.domain.methods
    networks = [(plan.roots, problem.top)]
    networks += [(one.subtasks, methods[one.method]) for one in plan.decompositions]
    for ids, method in networks:
        before = [0] * len(ids)
        behind: dict[int, list[int]] = {}
        for first, second in method.order:
            behind.setdefault(first, []).append(second)
        for index in linear(len(ids), method.order):
            limits.step()
            if before[index]:
                for later in _bits(below[ids[index]]):
                    after[later] |= before[index]
            for other in behind.get(index, ()):
                before[other] |= before[index] | below[ids[index]]
    reads, writes, numbers = _Touched(), _Touched(), problem.functions_read()
    for step in plan.steps:
        limits.step()
        action = problem.domain.actions[step.name]
        values = {v.name: value for v, value in zip(action.parameters, step.arguments, strict=True)}
        read = set(_read(action.precondition, values))
        written: set[Atom] = set()
        for effect in action.effects:
            read |= set(_read(effect.when, values))
            written.add((effect.relation, *(values.get(term, term) for term in effect.terms)))
        for change in (one for one in action.numeric if one.function in numbers):
            read |= set(_read(change.when, values)) | set(_read(change.amount, values))
            written.add(("=", change.function, *(values.get(term, term) for term in change.terms)))
        for atom in read:
            after[step.id] |= writes.meeting(atom)
        for atom in written:
            after[step.id] |= writes.meeting(atom) | reads.meeting(atom)
        for atom in read:
            reads.add(atom, step.id)
        for atom in written:
            writes.add(atom, step.id)
    for one in plan.decompositions:
        limits.step()
        steps = below[one.id]
        if not steps:
            continue
        method = methods[one.method]
        values = {v.name: value for v, value in zip(method.parameters, one.values, strict=True)}
        first = (steps & -steps).bit_length() - 1
        met = 0
        for atom in _read(method.precondition, values):
            met |= writes.meeting(atom)
        earlier = met & ((1 << first) - 1)
        if earlier:
            for later in _bits(steps):
                after[later] |= earlier
        for later in _bits(met >> (first + 1)):
            after[later + first + 1] |= 1 << first
    return replace(plan, order=frozenset(_reduced(after)))


class _Touched:
    """The steps that read or change facts, found by a relation and its arguments; a variable may be anything."""

    def __init__(self) -> None:
        self.steps: dict[tuple[object, ...], int] = {}

    def add(self, atom: Atom, step: int) -> None:
        for key in ((atom[0],), *((atom[0], n, _any(term)) for n, term in enumerate(atom[1:]))):
            self.steps[key] = self.steps.get(key, 0) | 1 << step

    def meeting(self, atom: Atom) -> int:
        """Return the steps that may touch a fact that these arguments may be."""
        steps = self.steps.get((atom[0],), 0)
        for n, term in enumerate(atom[1:]):
            if steps and not is_variable(term):
                steps &= self.steps.get((atom[0], n, term), 0) | self.steps.get((atom[0], n, None), 0)
        return steps


def _any(term: str) -> str | None:
    return None if is_variable(term) else term


def _bits(number: int) -> Iterator[int]:
    """Yield the places of the bits that are set."""
    for place, digit in enumerate(reversed(bin(number)[2:])):
        if digit == "1":
            yield place


def _below(plan: HtnPlan) -> Mapping[int, int]:
    """Return the bits of the steps that each task leads to."""
    into = {one.id: one.subtasks for one in plan.decompositions}
    below = {step.id: 1 << step.id for step in plan.steps}
    for task in into:
        waiting = [task]
        while waiting:
            one = waiting[-1]
            missing = [other for other in into[one] if other not in below] if one not in below else []
            if missing:
                waiting += missing
                continue
            waiting.pop()
            if one not in below:
                below[one] = 0
                for other in into[one]:
                    below[one] |= below[other]
    return below


def _read(condition: Any, values: Mapping[str, str]) -> Iterator[Atom]:
    """Yield the facts that a condition, or an expression over numbers, reads; numbers as facts of `=`."""
    parts = list(parts_of(condition)) if isinstance(condition, tuple) else []
    for part in parts:
        if part[0] == "atom":
            yield (part[1], *(values.get(term, term) for term in part[2]))
        elif part[0] not in _LOGIC:
            for name, terms in values_in(part):
                yield ("=", name, *(values.get(term, term) for term in terms))


def _reduced(after: list[int]) -> Iterator[tuple[int, int]]:
    """Yield the pairs that no two others imply."""
    closed: list[int] = []
    for later, before in enumerate(after):
        left = whole = before
        while left:
            last = left.bit_length() - 1
            yield last, later
            whole |= closed[last]
            left &= ~(closed[last] | 1 << last)
        closed.append(whole)
