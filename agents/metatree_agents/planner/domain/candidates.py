"""The candidates for a goal: which are eligible, which potential, which neither, and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from metatree.errors import UserError
from metatree_agents.planner.domain.conditions import Binding, condition_text, is_variable, substitute
from metatree_agents.planner.domain.facts import Facts
from metatree_agents.planner.domain.model import Action, Goal, Library
from metatree_agents.planner.domain.network import candidate_key

MAX_CANDIDATES: Final = 10_000
"""For one goal: more than these are a precondition that leaves too much open."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A rule or task with values for its variables that match a goal."""

    action: Action
    binding: Binding
    cost: float

    @property
    def key(self) -> str:
        """What it is called among the candidates of its goal."""
        return candidate_key(self.action.name, self.binding)


@dataclass(slots=True)
class Candidates:
    """What was found for a goal."""

    eligible: list[Candidate] = field(default_factory=list)
    potential: list[Candidate] = field(default_factory=list)
    out: list[tuple[str, str]] = field(default_factory=list)
    """Actions or candidates that are neither, with the reason."""


def candidates(
    library: Library,
    goal: Goal,
    facts: Facts,
    *,
    supported: Callable[[], bool],
    excluded: tuple[str, ...] = (),
) -> Candidates:
    """Return the candidates for a goal.

    Args:
        library: where the rules and tasks are.
        goal: name and arguments.
        facts: the state that is planned in.
        supported: says whether all support goals are complete, so that dynamic relations may be read.
        excluded: candidates that have failed.
    """
    result = Candidates()
    actions = library.for_goal(goal[0])
    if not actions:
        result.out.append((goal[0], "no rule and no task is declared for this goal"))
    for action in actions:
        head = match_goal(action, goal[1:])
        if head is None:
            result.out.append((action.name, "its goal does not match"))
            continue
        kept = result.eligible
        if library.depends_on_dynamic(action.precondition) and not supported():
            kept, ways = result.potential, [Candidate(action, head, 0.0)]
        else:
            bindings = islice(facts.solutions(action.precondition, head), MAX_CANDIDATES + 1)
            ways = [Candidate(action, binding, cost_of(action, binding)) for binding in bindings]
        if len(ways) > MAX_CANDIDATES:
            raise UserError(
                f"{action.kind} {action.name!r} has over {MAX_CANDIDATES} candidates for one goal: narrow its"
                " precondition"
            )
        for candidate in ways:
            if candidate.key in excluded or action.name in excluded:
                result.out.append((candidate.key, "struck: it has failed"))
            else:
                kept.append(candidate)
        if not ways:
            missing = condition_text(substitute(action.precondition, head))
            result.out.append(
                (candidate_key(action.name, head), f"its precondition does not hold: {missing}")
            )
    return result


def match_goal(action: Action, arguments: tuple[Any, ...]) -> Binding | None:
    """Return the values that a goal's arguments give to an action's variables, None where they do not match."""
    if len(arguments) != len(action.terms):
        return None
    binding: Binding = {}
    for term, value in zip(action.terms, arguments, strict=True):
        if is_variable(term):
            if binding.setdefault(term, value) != value:
                return None
        elif term != value:
            return None
    return binding


def cost_of(action: Action, binding: Mapping[str, Any]) -> float:
    """Return the own cost of a candidate.

    Raises:
        UserError: the variable that it is taken from is no number.
    """
    cost = binding.get(action.cost, action.cost) if isinstance(action.cost, str) else action.cost
    if isinstance(cost, bool) or not isinstance(cost, int | float):
        raise UserError(
            f"{action.kind} {action.name!r}: its cost {action.cost} is {cost!r}, which is no number"
        )
    return float(cost)
