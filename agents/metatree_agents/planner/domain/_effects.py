"""Effects of tasks, as they are written."""

from __future__ import annotations

from typing import Any

from metatree_agents.planner.domain.conditions import exact_term
from metatree_agents.planner.domain.syntax import Expression, ExpressionReader, read

Effects = tuple[tuple[bool, str, tuple[Any, ...]], ...]


def effects_of(text: str, source: str = "") -> Effects:
    """Read effects: facts, `(not fact)`, and `(and …)` of such; an empty text is none.

    Raises:
        PlannerSyntaxError: it is out of form.

    Example:
        >>> effects_of("(and (not (at ?here)) (at ?to))")
        ((False, 'at', ('?here',)), (True, 'at', ('?to',)))
    """
    reader = ExpressionReader(source)
    effects: list[tuple[bool, str, tuple[Any, ...]]] = []

    def take(at: Expression, adds: bool) -> None:
        group = reader.group(at, "an effect")
        if not group.items:
            return
        head, rest = reader.head(group, "an effect"), group.items[1:]
        if head.text == "and":
            for one in rest:
                take(one, adds)
        elif head.text == "not":
            if len(rest) != 1 or not adds:
                raise reader.error(group, "expected `(not (relation term …))`")
            take(rest[0], False)
        elif head.text in ("when", "forall"):
            raise reader.error(
                head, f"effects with `{head.text}` are for HDDL domains: declare a task for each case"
            )
        else:
            effects.append((adds, head.text, tuple(exact_term(reader.word(one, "a term")) for one in rest)))

    for expression in read(text, source):
        take(expression, True)
    return tuple(effects)
