"""Rules that somebody proposes for a goal that no candidate reaches: checked, tried in a dry run, kept if they work."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from dataclasses import replace

from metatree.errors import UserError
from metatree_agents.planner.domain.model import Action, Goal, Library
from metatree_agents.planner.planning.planning import Planned


def goals_without_candidate(failed: Planned) -> Iterator[tuple[Goal, str]]:
    """Yield the goals of a failed planning for which nothing was eligible or potential, with the reason."""
    by_goal: dict[Goal, list[str]] = {}
    hopeful = set()
    for one in failed.considered:
        if one.verdict in ("eligible", "potential", "chosen"):
            hopeful.add(one.goal)
        by_goal.setdefault(one.goal, []).append(f"{one.candidate}: {one.why}")
    for goal, reasons in by_goal.items():
        if goal not in hopeful:
            yield goal, "; ".join(reasons)


def library_with(library: Library, action: Action, goal: Goal) -> Library | str:
    """Return a library with a proposed rule in it, or why it cannot be one.

    A proposal is a rule for this goal, made of sub-goals that the library reaches, with facts and variables that it
    knows. Anything else is refused: a proposal never brings a body of its own.
    """
    if action.kind != "rule" or action.does:
        return "it is no rule of sub-goals"
    if action.goal != goal[0]:
        return f"it is for {action.goal!r}, not for {goal[0]!r}"
    if library.primitive(action.goal):
        return f"{action.goal!r} is reached by tasks, so it has no rules"
    unknown = [one[0] for one in action.subgoals if not library.for_goal(one[0])]
    if unknown:
        return f"nothing reaches its sub-goal {unknown[0]!r}"
    made = Library(
        library.name,
        dict(library.relations),
        again=library.again,
        version=library.version,
        timeouts=library.timeouts,
    )
    try:
        for one in library.actions.values():
            made.add(one)
        provenance = {"proposed_for": list(goal), "at": time.time(), **action.provenance}
        made.add(replace(action, provenance=provenance))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made.check()
    except UserError as exc:
        return str(exc)
    return made
