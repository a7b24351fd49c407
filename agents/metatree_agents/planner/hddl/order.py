"""Which steps of a plan have to keep their order: the rest may be done at the same time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from metatree_agents.planner.conditions import Condition, atoms_of, is_variable
from metatree_agents.planner.hddl.language import Method, Problem, closure
from metatree_agents.planner.hddl.plan import HtnPlan

Atom = tuple[str, ...]


def loosened(plan: HtnPlan, problem: Problem) -> HtnPlan:
    """Return a plan with the partial order that its problem's methods and the effects of its steps leave.

    Two steps keep their order where the decomposition orders them, or where one changes a fact that the other, or the
    precondition of a method that it begins, reads or changes.
    """
    count = len(plan.steps)
    below = _below(plan)
    after = [0] * count
    """For each step the bits of the steps before it."""
    methods = problem.domain.methods
    networks = [(plan.roots, Method("", (), "", (), subtasks=problem.subtasks, order=problem.order))]
    networks += [(one.subtasks, methods[one.method]) for one in plan.decompositions]
    for ids, method in networks:
        for index, before in enumerate(closure(len(ids), method.order)):
            for other in range(len(ids)):
                if before >> other & 1:
                    for step in below[ids[index]]:
                        for earlier in below[ids[other]]:
                            after[step] |= 1 << earlier
    reads, writes = _reads_and_writes(plan, problem)
    for later in range(count):
        for earlier in range(later):
            if (
                _meet(writes[earlier], reads[later])
                or _meet(reads[earlier], writes[later])
                or writes[earlier] & writes[later]
            ):
                after[later] |= 1 << earlier
    for one in plan.decompositions:
        steps = sorted(below[one.id])
        if not steps:
            continue
        method = methods[one.method]
        values = {v.name: value for v, value in zip(method.parameters, one.values, strict=True)}
        wanted = frozenset(_read(method.precondition, values))
        for other in range(count):
            if _meet(writes[other], wanted):
                if other < steps[0]:
                    for step in steps:
                        after[step] |= 1 << other
                elif other > steps[0]:
                    after[other] |= 1 << steps[0]
    return replace(plan, order=frozenset(_reduced(after)))


def _below(plan: HtnPlan) -> Mapping[int, list[int]]:
    """Return the steps that each task leads to."""
    into = {one.id: one.subtasks for one in plan.decompositions}
    found: dict[int, list[int]] = {step.id: [step.id] for step in plan.steps}

    def of(task: int) -> list[int]:
        if task not in found:
            found[task] = [step for one in into[task] for step in of(one)]
        return found[task]

    for task in into:
        of(task)
    return found


def _reads_and_writes(plan: HtnPlan, problem: Problem) -> tuple[list[frozenset[Atom]], list[frozenset[Atom]]]:
    reads, writes = [], []
    for step in plan.steps:
        action = problem.domain.actions[step.name]
        values = {v.name: value for v, value in zip(action.parameters, step.arguments, strict=True)}
        read = set(_read(action.precondition, values))
        written: set[Atom] = set()
        for effect in action.effects:
            read |= set(_read(effect.when, values))
            written.add((effect.relation, *(values.get(term, term) for term in effect.terms)))
        reads.append(frozenset(read))
        writes.append(frozenset(written))
    return reads, writes


def _read(condition: Condition, values: Mapping[str, str]) -> Iterator[Atom]:
    for relation, terms in atoms_of(condition):
        yield (relation, *(values.get(term, term) for term in terms))


def _meet(written: frozenset[Atom], read: frozenset[Atom]) -> bool:
    """Say whether what is written may be what is read, where a variable of a quantifier may be anything."""
    if written & read:
        return True
    loose = [one for one in (*read, *written) if any(is_variable(term) for term in one[1:])]
    if not loose:
        return False
    return any(
        a[0] == b[0]
        and all(x == y or is_variable(x) or is_variable(y) for x, y in zip(a[1:], b[1:], strict=True))
        for a in written
        for b in read
    )


def _reduced(after: list[int]) -> Iterator[tuple[int, int]]:
    """Yield the pairs that no two others imply."""
    closed: list[int] = []
    for before in after:
        whole = before
        for earlier in range(len(closed)):
            if before >> earlier & 1:
                whole |= closed[earlier]
        closed.append(whole)
    for later, before in enumerate(closed):
        for earlier in range(later):
            if before >> earlier & 1 and not any(
                before >> between & 1 and closed[between] >> earlier & 1
                for between in range(earlier + 1, later)
            ):
                yield earlier, later
