"""One decision of what a model says of a menu and what the evidence says of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from metatree.protocols import Option, RouteDecision, RouteRequest
from metatree_routers.weighing._experts import (
    ERRS_BY_NONE,
    RULED_OUT,
    STRONG,
    Case,
    Weighed,
    cases_of,
    weigh,
)
from metatree_routers.weighing.trust import Trust

NOTHING_LEADS = "no option leads to an answer, by the model and by the evidence"


def decided(request: RouteRequest, said: RouteDecision, trust: Trust) -> RouteDecision:
    """Return what a model's words come to beside the evidence; learn from them how far the model can be trusted.

    Its choice counts as much as it was right so far; so does what it rules out, which is ruled out where the evidence
    does not speak for it; that nothing leads to an answer is a vote. Where the evidence says nothing, its words stand.
    """
    said = replace(said, unviable={i: why for i, why in said.unviable.items() if i != said.choice})
    cases = cases_of(request.options)
    if len(cases) < 2:
        return said
    above = _anchors(request.options)
    accuracy = trust.accuracy
    choice = None if said.choice is None else above.get(said.choice)
    none_right = trust.none_right(request.questions, cases)
    trust.chose(cases, choice, none_right)
    shares, none = _as_shares(cases, choice, {above[i] for i in said.unviable if above.get(i) == i}, accuracy)
    return settled(request, said, weigh(cases, shares, none, none_right), above)


def decided_by_shares(
    request: RouteRequest, shares: Mapping[str, float], none: float, unviable: Mapping[str, str], trust: Trust
) -> RouteDecision:
    """Return what the probabilities of a model come to beside the evidence; learn from them what they are worth.

    Args:
        shares: option -> how likely it leads to an answer, as the model says.
        none: how likely none does, as the model says.
        unviable: options that the model would rule out, with why.
    """
    cases, above = cases_of(request.options), _anchors(request.options)
    if len(cases) < 2:
        return _by_shares_alone(shares, none, unviable)
    totals: dict[str, float] = {}
    for option, share in shares.items():  # a model parts its share among a branch and what lies in it
        case = next((case for case in cases if above.get(option) in case.ids), None)
        if case is not None:
            totals[case.ids[0]] = totals.get(case.ids[0], 0.0) + share
    none_right = trust.none_right(request.questions, cases)
    trust.gave([(case.prior, totals.get(case.ids[0], 0.0)) for case in cases], none, none_right)
    worth, even = trust.accuracy, 1 / (len(cases) + 1)
    by_error = (1 - worth) * ((1 - none) * even + none * ERRS_BY_NONE)
    mixed = {i: worth * totals.get(case.ids[0], 0.0) + by_error for case in cases for i in case.ids}
    weighed = weigh(cases, mixed, worth * none + (1 - worth) * even, none_right)
    top = max(weighed.probabilities.values())
    within = [i for i in shares if weighed.probabilities.get(above.get(i, ""), 0.0) >= top]
    choice = max(within, key=lambda i: (shares[i], i != above.get(i)))
    reason = f"{shares[choice]:.2f} by the model, {top:.2f} with the evidence"
    return settled(request, RouteDecision(choice, unviable, reason), weighed, above)


def _by_shares_alone(shares: Mapping[str, float], none: float, unviable: Mapping[str, str]) -> RouteDecision:
    choice = max(shares, key=shares.__getitem__)
    if none > shares[choice]:
        reason = f"none of them, with {none:.2f} by the model"
        return RouteDecision(None, dict.fromkeys(shares, reason), reason, shares)
    low = {i: why for i, why in unviable.items() if shares.get(i, 0.0) < RULED_OUT}
    return RouteDecision(choice, low, f"{shares[choice]:.2f} by the model", shares)


def settled(
    request: RouteRequest, said: RouteDecision, weighed: Weighed, above: Mapping[str, str]
) -> RouteDecision:
    """Return the decision that follows from what both experts make of a menu."""
    likely = weighed.probabilities
    top = max(likely.values())
    if weighed.none > top:
        everything = {option.id: said.unviable.get(option.id, said.reason) for option in request.options}
        return RouteDecision(None, everything, said.reason or NOTHING_LEADS, likely)
    scores = {i: case.score for case in weighed.cases for i in case.ids}
    strong = STRONG * max(scores.values())
    unviable = {
        i: why
        for i, why in said.unviable.items()
        if likely.get(above.get(i, i), 0.0) < RULED_OUT and scores.get(i, 0.0) < strong
    }
    mine = None if said.choice is None else above.get(said.choice)
    if mine is not None and likely[mine] >= top:
        return RouteDecision(said.choice, unviable, said.reason, likely)
    best = weighed.best()
    titles = {option.id: option.title for option in request.options}
    instead = "no option" if said.choice is None else repr(titles.get(said.choice, ""))
    reason = f"the evidence weighs more than the model, which chose {instead}: {said.reason}"
    return RouteDecision(best, {i: why for i, why in unviable.items() if i != best}, reason, likely)


def _anchors(options: Sequence[Option]) -> dict[str, str]:
    """Return option -> the option with a score that it is, or lies under."""
    above: dict[str, str] = {}
    for option in options:
        if option.score is not None:
            last = above[option.id] = option.id
        elif option.parent is not None and above:
            above[option.id] = last
    return above


def _as_shares(
    cases: Sequence[Case], choice: str | None, ruled_out: set[str], accuracy: float
) -> tuple[dict[str, float], float]:
    """Return the share of each option, and of none, for a model that names one and is right so often."""
    rest = (1 - accuracy) * (ERRS_BY_NONE if choice is None else 1 / len(cases))
    shares: dict[str, float] = {}
    for case in cases:
        chosen = choice in case.ids
        out = not chosen and ruled_out.issuperset(case.ids)
        for i in case.ids:
            shares[i] = accuracy if chosen else rest * (1 - accuracy) if out else rest
    return shares, accuracy if choice is None else rest
