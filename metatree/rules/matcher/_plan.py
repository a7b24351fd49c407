"""In which order the conditions of a query are visited, once one of them has changed.

Tests, negations and existences stand as early as their variables allow, aggregates as late as possible, and of the
patterns the one comes next that has the fewest facts for what is known by then.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from metatree.rules.language.conditions import Comparison, Pattern, own_variables
from metatree.rules.matcher.scopes import CompiledQuery, View

Step = Pattern | Comparison | View
Plan = tuple[Step, ...]
"""The steps after a change, in order; the change itself is not among them."""
FanOut = Callable[[Pattern, Collection[str]], float]
"""How many facts fit a pattern for each combination of values of these variables."""


def plan(
    query: CompiledQuery,
    bound: Collection[str],
    fan_out: FanOut,
    *,
    without: Pattern | None = None,
    last: View | None = None,
) -> Plan:
    """Order the steps of a query.

    Args:
        bound: variables with a known value.
        without: the pattern whose fact changed; it needs no step.
        last: an aggregate whose value changed: it comes after every other aggregate that can do without it, so that
            what follows it, and is done for its former and for its present value, is short.
    """
    known = set(bound)
    steps: list[Step] = []
    patterns = [p for p in query.patterns if p is not without]
    aggregates = [view for view in query.views if view.function]
    checks: list[Comparison | View] = [*query.tests, *(v for v in query.views if not v.function)]

    def place_checks() -> None:
        for check in list(checks):
            needs = check.key if isinstance(check, View) else own_variables(check)
            if known.issuperset(needs):
                checks.remove(check)
                steps.append(check)

    place_checks()
    while patterns:
        best = min(patterns, key=lambda p: fan_out(p, known))
        patterns.remove(best)
        steps.append(best)
        known.update(own_variables(best))
        place_checks()
    while aggregates:
        ready = [v for v in aggregates if known.issuperset(v.key)]
        assert ready, "aggregates in a circle are refused when a production is compiled"
        best_view = next((v for v in ready if v is not last), ready[0])
        aggregates.remove(best_view)
        steps.append(best_view)
        assert best_view.variable is not None
        known.add(best_view.variable)
        place_checks()
    assert not checks, checks
    return tuple(steps)
