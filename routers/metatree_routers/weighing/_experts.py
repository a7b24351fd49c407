"""Two experts for one menu: what the evidence says of its options, and what a model says of them.

Each gives a share to every option; the product of both, made to sum to 1, is how likely each option leads to an answer.
A leaf that is offered beside the branch it lies in has the score of that branch, and both are right or neither: options
of the same score are one case.

Source: Hinton, "Products of Experts", ICANN 1999, with the model's exponent replaced by how often it was right: a model
that is right as often as chance has equal shares for all options, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from metatree.protocols import ABSTAINED, Option

SHARPNESS = 4.0
"""Power of the scores that makes shares of them; chosen by hand, not fitted."""
LEAST_SCORE = 0.05
NONE_RIGHT = 0.1
"""How likely it is, before anything is known of a menu, that none of its options leads to an answer."""
NONE_RIGHT_ELSEWHERE = 0.5
"""The same where the evidence has seen something better in another menu of the same search."""
ERRS_BY_NONE = 0.3
"""How many of a model's errors are that no option leads to an answer, whatever the menu; chosen by hand. Taken for one
error among as many as there are options, a model that always says so seemed right more often than by chance."""
RULED_OUT = 0.02
"""An option below this share is ruled out, where both experts speak against it."""
STRONG = 0.5
"""An option with this share of the best score is never ruled out by one word of a model."""


@dataclass(frozen=True, slots=True)
class Case:
    """Options of which all are right, or none is."""

    ids: tuple[str, ...]
    prior: float
    """Its share by evidence alone."""
    score: float


@dataclass(frozen=True, slots=True)
class Weighed:
    """What both experts make of a menu."""

    probabilities: Mapping[str, float]
    """Option -> how likely it leads to an answer."""
    none: float
    """How likely none of them does."""
    cases: Sequence[Case]

    def best(self) -> str:
        """Return the likeliest option, the last of equals: a leaf that is offered beside its branch."""
        return max(reversed([*self.probabilities]), key=self.probabilities.__getitem__)


def cases_of(options: Sequence[Option]) -> list[Case]:
    """Return what the evidence says of a menu; nothing when it says nothing, or the same of all options.

    Example:
        >>> menu = [Option("a", "A", score=1.0), Option("b", "B", score=0.5), Option("a/1", "A 1", score=1.0)]
        >>> [(case.ids, round(case.prior, 2)) for case in cases_of(menu)]
        [(('a', 'a/1'), 0.94), (('b',), 0.06)]
    """
    scored = [option for option in options if option.score is not None]
    top = max((option.score or 0.0 for option in scored), default=0.0)
    if top <= ABSTAINED or len({option.score for option in scored}) < 2:
        return []
    ids: dict[float, list[str]] = {}
    for option in scored:
        score = option.score or 0.0
        # Options without any evidence have nothing else in common.
        ids.setdefault(score if score > 0 else -len(ids) - 1.0, []).append(option.id)
    weights = {score: max(LEAST_SCORE, score / top) ** SHARPNESS for score in ids}
    total = sum(weights.values())
    return [Case(tuple(each), weights[score] / total, max(0.0, score)) for score, each in ids.items()]


def weigh(
    cases: Sequence[Case], said: Mapping[str, float], none: float, none_right: float = NONE_RIGHT
) -> Weighed:
    """Return the product of both experts.

    Args:
        cases: what the evidence says.
        said: option -> the share that the model gives to it, as far as it can be trusted.
        none: the share that the model gives to none of them.
        none_right: how likely that is before the model has said anything.
    """
    joint = {case: (1 - none_right) * case.prior * max(said.get(i, 0.0) for i in case.ids) for case in cases}
    without = none_right * none
    total = sum(joint.values()) + without
    if total <= 0:
        return Weighed({i: case.prior for case in cases for i in case.ids}, 0.0, cases)
    shares = {i: joint[case] / total for case in cases for i in case.ids}
    return Weighed(shares, without / total, cases)
