"""How often a model is right, learned from the menus on which the evidence has an opinion.

Nobody says which option was right. But how likely each is by evidence is known, and a model that is right with a
probability of `a` chooses one that has the prior `e` with a probability of `a e + (1 - a) (1 - e) / (n - 1)`. So each
choice says a little of `a`: much where the evidence is sharp, nothing where it is flat. What is believed of `a` is a
share for each of some values, which each choice multiplies.

Source: Dawid and Skene, "Maximum Likelihood Estimation of Observer Error-Rates Using the EM Algorithm", 1979, for two
observers of whom the shares of one are known.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence

from metatree_routers.weighing._experts import ERRS_BY_NONE, NONE_RIGHT, NONE_RIGHT_ELSEWHERE, Case
from metatree_routers.wrappers.disk_cache import Cache

_DOUBT = 0.2
_VALUES = tuple((step + 0.5) / 25 for step in range(25))
_CHOOSES = (1.0, 1.6)
"""Of a beta distribution: before anything is known, a model is taken to be right in 2 of 5 menus."""
JUDGES = (1.8, 0.2)
"""Of what gives a probability of one thing alone, it is taken for what it says in 9 of 10 cases."""
READS = (1.5, 0.5)
"""Of what a chat model says of a text, 3 of 4: where the passages have an opinion it has to earn more."""
_FORGETS = 0.99
"""What was learned counts so much less with each choice, so that a model that was exchanged is known after some 100."""
_RESTS = 0.98
"""What was learned counts so much less each time that a poor model is not asked."""
POOR = 0.15
"""A model that chooses rightly less often is not asked: it would change hardly anything."""
HEARD = 0.5
"""How often a model says rightly whether a text answers, from which on it is heard."""
AS_GOOD = 0.9
"""A menu whose best score is a smaller share of what another menu of the search had is not where the evidence leads."""
_MOST_SEARCHES = 256
_KEPT_S = 90 * 86_400.0


class Trust:
    """What is known of one model; safe to share between searches and threads.

    Args:
        cache: where it is kept for later runs; None keeps it in this object alone.
        key: names the model and its server there.
        prior: what is believed of the model before anything is known, as a beta distribution.
    """

    def __init__(
        self, cache: Cache | None = None, key: str = "", *, prior: tuple[float, float] = _CHOOSES
    ) -> None:
        self._cache, self._key = cache, f"trust {key}"
        first, second = prior
        self._prior = [(first - 1) * math.log(v) + (second - 1) * math.log(1 - v) for v in _VALUES]
        self._lock = threading.Lock()
        self._best: dict[tuple[str, ...], float] = {}
        """Questions -> the best score that a menu had for them."""
        self._logs = self._known() or [0.0] * len(_VALUES)

    @property
    def accuracy(self) -> float:
        """How often the model is right, as far as is known, in [0, 1]."""
        return sum(share * value for share, value in zip(self._shares(), _VALUES, strict=True))

    @property
    def earned(self) -> float:
        """How often it is right at the least, with a probability of 4 in 5: a model has to earn it."""
        return self._at(_DOUBT)

    @property
    def at_best(self) -> float:
        """How often it is right at the most, with a probability of 4 in 5."""
        return self._at(1 - _DOUBT)

    def _at(self, quantile: float) -> float:
        below = 0.0
        for share, value in zip(self._shares(), _VALUES, strict=True):
            below += share
            if below >= quantile:
                return value
        return _VALUES[-1]

    def _shares(self) -> list[float]:
        logs = [known + before for known, before in zip(self._logs, self._prior, strict=True)]
        top = max(logs)
        shares = [math.exp(log - top) for log in logs]
        return [share / sum(shares) for share in shares]

    def none_right(self, questions: Sequence[str], cases: Sequence[Case]) -> float:
        """Return how likely no option of a menu leads to an answer, by what other menus of the search had."""
        top = max(case.score for case in cases)
        with self._lock:
            best = max(top, self._best.pop(tuple(questions), 0.0))
            self._best[tuple(questions)] = best
            while len(self._best) > _MOST_SEARCHES:
                del self._best[next(iter(self._best))]
        return NONE_RIGHT if top >= AS_GOOD * best else NONE_RIGHT_ELSEWHERE

    def chose(self, cases: Sequence[Case], choice: str | None, none_right: float = NONE_RIGHT) -> None:
        """Learn from one choice; None is that none of the options leads to an answer."""
        if len(cases) < 2:
            return
        prior, by_error = none_right, ERRS_BY_NONE
        if choice is not None:
            priors = [case.prior for case in cases if choice in case.ids]
            if not priors:
                return
            prior, by_error = (1 - none_right) * priors[0], 1 / len(cases)
        self._learn([value * prior + (1 - value) * (1 - prior) * by_error for value in _VALUES])

    def gave(self, cases: Sequence[tuple[float, float]], none: float, none_right: float = NONE_RIGHT) -> None:
        """Learn from the probabilities that a model gave.

        Args:
            cases: of each case how likely it is by evidence, and how likely by the model.
            none: how likely none of them is, by the model.
            none_right: how likely that is before the model has said anything.
        """
        agreed = none_right * none + (1 - none_right) * sum(prior * share for prior, share in cases)
        even, by_error = 1 / (len(cases) + 1), (1 - none_right) * ERRS_BY_NONE
        by_chance = (1 - none) * even + none * by_error
        self._learn([value * agreed + (1 - value) * by_chance for value in _VALUES])

    def yes_or_no(self, prior: float, said: float) -> float:
        """Return how likely something is that has a prior and that the model finds so likely; learn from both."""
        likely = self.weighed(prior, said)
        self.learn(prior, said)
        return likely

    def weighed(self, prior: float, said: float, *, right: float | None = None) -> float:
        """Return how likely something is that has a prior and that the model finds so likely.

        Args:
            right: how often the model is taken to be right; None for `accuracy`.
        """
        # A model that is mostly wrong says nothing, not the contrary.
        worth = max(0.5, self.accuracy if right is None else right)
        likely = worth * said + (1 - worth) * (1 - said)
        return prior * likely / (prior * likely + (1 - prior) * (1 - likely))

    def learn(self, prior: float, said: float) -> None:
        """Learn from what the model said of something that has a prior."""
        agreed = prior * said + (1 - prior) * (1 - said)
        self._learn([value * agreed + (1 - value) * (1 - agreed) for value in _VALUES])

    def too_poor(self, least: float, right_in: str) -> str:
        """Return why a model is not worth asking that is right less often than `least`; '' where it is worth it.

        A few unlucky answers are no reason: it has to be that poor with a probability of 4 in 5. Each time it is
        refused what is known counts a little less, so that it is tried again some day.
        """
        accuracy = self.accuracy
        if self.at_best >= least:
            return ""
        with self._lock:
            self._logs = [_RESTS * log for log in self._logs]
        return (
            f"the model was right in about {100 * accuracy:.0f} % of the {right_in} so far, too few to ask it"
        )

    def _learn(self, likelihoods: Sequence[float]) -> None:
        with self._lock:
            self._logs = [
                _FORGETS * log + math.log(each) for log, each in zip(self._logs, likelihoods, strict=True)
            ]
            logs = list(self._logs)
        if self._cache is not None:
            self._cache.set(self._key, logs, seconds=_KEPT_S)

    def _known(self) -> list[float] | None:
        kept = None if self._cache is None else self._cache.get(self._key)
        if not isinstance(kept, list) or len(kept) != len(_VALUES):
            return None
        return [float(log) for log in kept] if all(_is_log(log) for log in kept) else None


def _is_log(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and -1e6 < value <= 1e6
