"""What a decision model is: a state and named questions go in, a probability for every option comes out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from metatree.errors import BadModelAnswer

YES = "yes"
_LEAST_SUM, _MOST_SUM = 0.9, 1.1
"""Sums of probabilities that rounding explains; they are made to sum to one."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Which of these?"""

    instructions: str
    options: Mapping[str, str]
    """Label -> description; at least two."""


@dataclass(frozen=True, slots=True)
class YesNo:
    """Is this so?"""

    instructions: str


@dataclass(frozen=True, slots=True)
class Score:
    """How much, on these levels?"""

    instructions: str
    levels: Sequence[str]
    """From the least to the most."""


Question = Choice | YesNo | Score
Likelihoods = Mapping[str, float]
"""Option -> its probability, in [0, 1]: of a choice its labels, of yes or no `yes` alone, of a score the numbers of its
levels from "0"."""


class DecisionModel(Protocol):
    """Answers questions about a text with probabilities."""

    name: str
    """Of the model, for people and caches."""
    max_options: int
    """Of one choice."""
    max_questions: int
    """Of one request."""

    async def decide(self, state: str, questions: Mapping[str, Question]) -> Mapping[str, Likelihoods]:
        """Answer questions about a text in one request; one that was declined or left out is not there.

        Raises:
            BadModelAnswer: what came are no probabilities of the options.
            TransientError: the same request may work later.
            UserError: no request will work before the settings are fixed.
        """
        ...


def of_choice(question: Choice, said: Mapping[str, object]) -> Likelihoods:
    """Return the probabilities of a choice, each offered, finite and in [0, 1], summing to one.

    Raises:
        BadModelAnswer: they are none.
    """
    return _shares(tuple(question.options), said)


def of_score(question: Score, said: Mapping[str, object]) -> Likelihoods:
    """Return the probabilities of levels; raises as `of_choice` does."""
    return _shares(tuple(str(number) for number in range(len(question.levels))), said)


def of_yes(said: object) -> Likelihoods:
    """Return the probability of yes; raises as `of_choice` does."""
    return {YES: _probability(YES, said)}


def expected_level(likelihoods: Likelihoods) -> float:
    """Return the level that a score is on average, from 0."""
    return sum(int(level) * share for level, share in likelihoods.items())


def _shares(offered: Sequence[str], said: Mapping[str, object]) -> Likelihoods:
    unknown = next((label for label in said if label not in offered), None)
    if unknown is not None:
        raise BadModelAnswer(f"a probability is for {str(unknown)[:60]!r}, which was not offered")
    shares = {label: _probability(label, said.get(label, 0.0)) for label in offered}
    total = sum(shares.values())
    if not _LEAST_SUM <= total <= _MOST_SUM:
        raise BadModelAnswer(f"the probabilities of {len(shares)} options sum to {total:.3g}, not to 1")
    return {label: share / total for label, share in shares.items()}


def _probability(label: str, said: object) -> float:
    if isinstance(said, bool) or not isinstance(said, int | float) or not math.isfinite(said):
        raise BadModelAnswer(f"the probability of {label!r} is no number: {str(said)[:40]!r}")
    if not -1e-6 <= said <= 1 + 1e-6:
        raise BadModelAnswer(f"the probability of {label!r} is {said:.3g}, not in [0, 1]")
    return min(1.0, max(0.0, float(said)))
