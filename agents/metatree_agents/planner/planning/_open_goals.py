"""The goals that are still to be planned, and which of them can be: counts that are kept up as goals are planned.

    settled   it has its intent, and all below it have theirs
    clear     settled, as is all that precedes it
    ready     open, and all its predecessors among its siblings are clear

Each count changes by what has changed, so planning a goal costs its depth and its order constraints, however many
goals there are.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace

from metatree._util.graph import reachable
from metatree_agents.planner.domain.model import Goal
from metatree_agents.planner.domain.network import SETTLED, Intent, Network, is_planned, lineage
from metatree_agents.planner.planning._trail import Trail


class OpenGoals:
    """A network of goals while it is planned; the trail takes changes back.

    Args:
        network: goals that are deferred are open again.
        trail: keeps what is changed.
    """

    def __init__(self, network: Network, trail: Trail) -> None:
        self.trail = trail
        self.on_clear: Callable[[int], None] = lambda _: None
        """Is called with each goal that becomes clear, those below it first."""
        self.network = {
            key: replace(one, status="open") if one.status == "deferred" else one
            for key, one in network.items()
        }
        self.below: dict[int | None, Sequence[int]] = {}
        self.followers: dict[int, Sequence[int]] = {}
        """Goal -> siblings that name it as a predecessor."""
        self.unplanned = dict.fromkeys(self.network, 0)
        """Goal -> how many goals without an intent there are in it, itself included."""
        self.blocked = {key: len(set(one.after)) for key, one in self.network.items()}
        """Goal -> how many of its predecessors are not clear."""
        self.waiting: dict[int, int] = {}
        """Goal without an intent -> its place; of two that are ready the one with the higher place is next."""
        self.ready: list[tuple[int, int]] = []
        """Place and goal of those that are ready, sorted."""
        self._same: dict[tuple[int | None, Goal], Sequence[int]] = {}
        """Parent and goal -> the sub-goals that are this goal."""
        self._line: dict[int, tuple[int, int]] = {}
        """Goal -> the first of siblings of which each follows the one before, and its place among them."""
        self.counts = {"open": 0, "places": 0, "rest": 0}
        """`rest` tells the goals without an intent from others, mostly."""
        self.finished: set[int] = set()
        """Goals that are complete with all that precedes them, since before the planning."""
        self._followers_deferred: dict[int, bool] = {}
        """Goals whose followers are deferred."""

    def begin(self) -> None:
        """Count what the network has at the beginning."""
        network = self.network
        levels: list[list[int]] = []
        for one in network.values():
            level = sum(1 for _ in lineage(network, one)) - 1
            levels += [[] for _ in range(level + 1 - len(levels))]
            levels[level].append(one.id)
        self._relate(network.values())
        for key in sorted((key for key, one in network.items() if not is_planned(one)), reverse=True):
            self._opened(network[key])
            for above in lineage(network, network[key]):
                self.unplanned[above.id] += 1
        left = dict(self.blocked)
        done = [key for key, one in network.items() if not left[key] and one.status in SETTLED]
        while done:
            key = done.pop()
            self.finished.add(key)
            for other in self.followers.get(key, ()):
                left[other] -= 1
                if not left[other] and network[other].status in SETTLED:
                    done.append(other)
        for listed in reversed(levels):
            for key in [key for key in listed if not self.unplanned[key] and not self.blocked[key]]:
                self._clear(key)

    # What is looked at ----------------------------------------------------------------------------------------------

    def next(self) -> Iterator[Intent]:
        """Yield the goals that are ready, as are those above them, the next first."""
        for index in range(len(self.ready) - 1, -1, -1):  # whoever goes on has taken changes back
            goal = self.network[self.ready[index][1]]
            if not any(self.blocked[above.id] for above in lineage(self.network, goal)):
                yield goal

    def supported(self, goal: Intent) -> bool:
        """Say whether all support goals of a goal are complete."""
        return all(before in self.finished for one in lineage(self.network, goal) for before in one.after)

    def is_asked_before(self, goal: Intent) -> bool:
        """Say whether one of the support goals of a goal is the same goal."""
        return any(
            self._precedes(key, one)
            for one in lineage(self.network, goal)
            if one.after
            for key in self._same.get((one.parent, goal.goal), ())
        )

    def _precedes(self, key: int, goal: Intent) -> bool:
        """Say whether a sibling of a goal precedes it."""
        if self._line[key][0] == self._line[goal.id][0]:
            return self._line[key][1] < self._line[goal.id][1]
        return key in self.before(goal)

    def before(self, goal: Intent) -> set[int]:
        """Return the siblings that precede a goal."""
        return reachable(goal.after, lambda before: self.network[before].after)

    # What changes ---------------------------------------------------------------------------------------------------

    def plan(self, intent: Intent, subgoals: Sequence[Intent] = ()) -> None:
        """Give a goal its intent, and the sub-goals that come with it."""
        put, network = self.trail.put, self.network
        goal = network[intent.id]
        self._closed(goal)
        self.trail.drop(self.waiting, goal.id)
        put(self.counts, "rest", self.counts["rest"] - _weight(goal))
        put(network, intent.id, intent)
        for one in subgoals:
            put(network, one.id, one)
            put(self.unplanned, one.id, 1)
            put(self.blocked, one.id, len(set(one.after)))
        self._relate(subgoals)
        for one in reversed(subgoals):
            self._opened(one)
        for above in list(lineage(network, intent)):
            put(self.unplanned, above.id, self.unplanned[above.id] + len(subgoals) - 1)
            if not self.unplanned[above.id] and not self.blocked[above.id]:
                self._clear(above.id)

    def defer(self, goal: Intent) -> None:
        """Defer a goal, and all that follows it or one above it."""
        self._deferred(goal)
        for above in list(lineage(self.network, goal)):
            if self._followers_deferred.get(above.id):
                return
            waiting = [above.id]
            while waiting:
                key = waiting.pop()
                if not self._followers_deferred.get(key):
                    self.trail.put(self._followers_deferred, key, True)
                    followers = self.followers.get(key, ())
                    waiting += followers
                    for one in followers:
                        self._deferred_below(one)

    def _deferred_below(self, key: int) -> None:
        waiting = [key]
        while waiting:
            goal = self.network[waiting.pop()]
            if goal.status == "open":
                self._deferred(goal)
            elif self.unplanned[goal.id]:
                waiting += self.below.get(goal.id, ())

    def _deferred(self, goal: Intent) -> None:
        later = replace(goal, status="deferred")
        self._closed(goal)
        self.trail.put(self.counts, "rest", self.counts["rest"] - _weight(goal) + _weight(later))
        self.trail.put(self.network, goal.id, later)

    def _closed(self, goal: Intent) -> None:
        self.trail.put(self.counts, "open", self.counts["open"] - 1)
        if not self.blocked[goal.id]:
            self.trail.remove(self.ready, (self.waiting[goal.id], goal.id))

    def _opened(self, goal: Intent) -> None:
        put, counts = self.trail.put, self.counts
        place = counts["places"] + 1
        put(counts, "places", place)
        put(counts, "open", counts["open"] + 1)
        put(counts, "rest", counts["rest"] + _weight(goal))
        put(self.waiting, goal.id, place)
        if not self.blocked[goal.id]:
            self.trail.insert(self.ready, (place, goal.id))

    def _relate(self, goals: Collection[Intent]) -> None:
        """Note who is whose sub-goal and who follows whom; goals of one rule come together."""
        below: dict[int | None, list[int]] = {}
        followers: dict[int, list[int]] = {}
        same: dict[tuple[int | None, Goal], list[int]] = {}
        for one in goals:
            below.setdefault(one.parent, []).append(one.id)
            same.setdefault((one.parent, one.goal), []).append(one.id)
            for before in set(one.after):
                followers.setdefault(before, []).append(one.id)
        last: dict[int, int] = {}
        for one in goals:
            first, place = self._line.get(one.after[0], (0, 0)) if len(one.after) == 1 else (0, 0)
            line = (first, place + 1) if place and last.get(first) == place else (one.id, 1)
            last[line[0]] = line[1]
            self.trail.put(self._line, one.id, line)
        for into, additions in ((self.below, below), (self.followers, followers), (self._same, same)):
            for key, listed in additions.items():
                self.trail.put(into, key, listed)

    def _clear(self, key: int) -> None:
        """Note that a goal is clear, and what that makes ready or clear."""
        cleared = [key]
        while cleared:
            key = cleared.pop()
            self.on_clear(key)
            for other in self.followers.get(key, ()):
                self.trail.put(self.blocked, other, self.blocked[other] - 1)
                if self.blocked[other]:
                    continue
                if self.network[other].status == "open":
                    self.trail.insert(self.ready, (self.waiting[other], other))
                elif not self.unplanned[other]:
                    cleared.append(other)


def _weight(goal: Intent) -> int:
    return hash((goal.goal, goal.status))
