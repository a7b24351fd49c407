"""Interference: which unordered intents must still not be carried out in any order.

Who reads and who changes what is kept in sets of bits, one bit for each intent, so that those that are ordered anyway
are left out all at once. Of intents that wait for each other only the last is named, for an intent waits, through a
cancelled one too, for all that this one waits for. Lost: naming all of them, which is quadratic where a thousand
deliveries share one truck.

Source: Weld 1994, "An introduction to least commitment planning" (threats between steps).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from metatree_agents.planner.domain.conditions import is_variable
from metatree_agents.planner.domain.model import Library
from metatree_agents.planner.domain.network import Intent, lineage
from metatree_agents.planner.planning._open_goals import OpenGoals
from metatree_agents.planner.planning._trail import Trail

Effects = tuple[tuple[bool, str, tuple[Any, ...]], ...]
"""What an action changes: whether it adds, the relation, and the terms."""

Reads = frozenset[tuple[str, tuple[Any, ...]]]

_ADDS: Final = "adds"
_DELETES: Final = "deletes"
_READS: Final = "reads"
_CHOSEN_BY: Final = "chosen by"
_ANY: Final = object()
"""In the place of a value: any."""


class Interference:
    """What the intents of a network read and change, and which of them are done before which.

    Args:
        library: tells what a condition reads.
        open_goals: the network.
        trail: takes back what is noted of intents that are undone.
    """

    def __init__(self, library: Library, open_goals: OpenGoals, trail: Trail) -> None:
        self.library = library
        self.open_goals = open_goals
        self.trail = trail
        self.network = open_goals.network
        self._ids: dict[int, int] = {}
        """Bit -> intent."""
        self._bits: dict[int, int] = {}
        self._reads: dict[int, Reads] = {}
        self._who: dict[tuple[Any, ...], int] = {}
        """Kind, relation, number of terms, place and value -> the intents that read or change such a fact."""
        self._done: dict[int, int] = {}
        """Intent -> those that are done before it begins."""
        self._started: dict[int, int] = {}
        """Intent -> rules that have started before it begins."""
        self._within: dict[int, int] = {}
        """A clear rule -> the intents in it."""
        self._behind: dict[int, int] = {}
        """A clear goal -> the intents in it and in all that precedes it."""
        in_progress = (
            one for one in self.network.values() if one.status in ("pending", "active") and one.number
        )
        for one in sorted(in_progress, key=lambda one: one.number):
            done = started = 0
            for other in (*one.after_end, *one.after_start, *(() if one.parent is None else (one.parent,))):
                done |= self._done.get(other, 0) | (self._bit(other) if other in one.after_end else 0)
                started |= self._started.get(other, 0) | (0 if other in one.after_end else self._bit(other))
            self._note(one, self.library.reads(one.precondition), done, started)
        self._given_bits = (1 << len(self._ids)) - 1
        """Intents that were there before the planning."""
        self._behind_given: dict[int, list[int]] = {}
        """Intent -> those of them that wait for it."""
        for key in self._bits:
            for other in (*self.network[key].after_end, *self.network[key].after_start):
                self._behind_given.setdefault(other, []).append(key)
        open_goals.on_clear = self._cleared

    def plan(self, intent: Intent, subgoals: Sequence[Intent] = ()) -> None:
        """Plan a goal: its intent comes behind the unordered ones before it with which it interferes.

        It waits for the end of tasks that change what it reads, read what it changes, or change the same (`after_end`);
        where it changes what a rule was chosen by, for the start of that rule (`after_start`).
        """
        reads, writes = self.library.reads(intent.precondition), intent.effects
        done, started = self._before(intent)
        after_end, after_start = [], []
        met = 0
        for relation, terms in reads:
            met |= self._meeting(_ADDS, relation, terms) | self._meeting(_DELETES, relation, terms)
        for adds, relation, terms in writes:
            met |= self._meeting(_READS, relation, terms)
            met |= self._meeting(_DELETES if adds else _ADDS, relation, terms)
        later = self._later(intent) if met & self._given_bits & ~done else frozenset()
        while met := met & ~done:
            last = met.bit_length() - 1
            other = self.network[self._ids[last]]
            if other.id not in later and (
                _disturbs(other.effects, reads)
                or _disturbs(writes, self._reads[other.id])
                or _conflicts(other.effects, writes)
            ):
                after_end.append(other.id)
                done |= self._done[other.id]
                started |= self._started[other.id]
            met ^= 1 << last
        for key in after_end:
            done |= self._bit(key)
        for _, relation, terms in writes:
            met |= self._meeting(_CHOSEN_BY, relation, terms)
        later = later or (self._later(intent) if met & self._given_bits & ~(done | started) else frozenset())
        while met := met & ~(done | started):
            last = met.bit_length() - 1
            other = self.network[self._ids[last]]
            if other.id not in later and _disturbs(writes, self._reads[other.id]):
                after_start.append(other.id)
                done |= self._done[other.id]
                started |= self._started[other.id]
            met ^= 1 << last
        for key in after_start:
            started |= self._bit(key)
        intent = replace(intent, after_end=tuple(sorted(after_end)), after_start=tuple(sorted(after_start)))
        if intent.kind != "nothing":
            self._note(intent, reads, done, started)
        self.open_goals.plan(intent, subgoals)

    def _bit(self, key: int) -> int:
        return 1 << self._bits[key] if key in self._bits else 0

    def _before(self, intent: Intent) -> tuple[int, int]:
        """Return the intents that the order of goals puts before an intent, and the rules that begin before it."""
        done, started = 0, 0
        for one in lineage(self.network, intent):
            for before in one.after:
                done = _union(done, self._behind.get(before, 0))
            if one.parent is not None:
                done = _union(done, self._done.get(one.parent, 0))
                started = _union(started, self._started.get(one.parent, 0)) | self._bit(one.parent)
                if not self._bit(one.parent) & self._given_bits:  # it has what is before those above it
                    break
        return done, started

    def _later(self, intent: Intent) -> frozenset[int]:
        """Return what waits for a goal that was planned again, or for something above it, and so comes after it."""
        waiting = [one.id for one in lineage(self.network, intent)]
        after: set[int] = set()
        while waiting:
            key = waiting.pop()
            more = {*self.open_goals.followers.get(key, ()), *self._behind_given.get(key, ())}
            if key in after:
                more.update(self.open_goals.below.get(key, ()))
            waiting += more - after
            after |= more
        return frozenset(after)

    def _note(self, intent: Intent, reads: Reads, done: int, started: int) -> None:
        put, bit = self.trail.put, len(self._ids)
        put(self._ids, bit, intent.id)
        put(self._bits, intent.id, bit)
        put(self._reads, intent.id, reads)
        put(self._done, intent.id, done)
        put(self._started, intent.id, started)
        for relation, terms in reads:
            self._noted(_READS if intent.kind == "task" else _CHOSEN_BY, relation, terms, bit)
        for adds, relation, terms in intent.effects:
            self._noted(_ADDS if adds else _DELETES, relation, terms, bit)

    def _noted(self, kind: str, relation: str, terms: tuple[Any, ...], bit: int) -> None:
        self.trail.set_bit(self._who, (kind, relation, len(terms)), bit)
        for place, term in enumerate(terms):
            value = _ANY if is_variable(term) else term
            self.trail.set_bit(self._who, (kind, relation, len(terms), place, value), bit)

    def _meeting(self, kind: str, relation: str, terms: tuple[Any, ...]) -> int:
        """Return the intents that may read or change what these terms may be."""
        key = (kind, relation, len(terms))
        bits = self._who.get(key, 0)
        for place, term in enumerate(terms):
            if bits and not is_variable(term):
                bits &= self._who.get((*key, place, term), 0) | self._who.get((*key, place, _ANY), 0)
        return bits

    def _cleared(self, key: int) -> None:
        """Gather what is in a goal, and in all that precedes it, once that is planned."""
        within = self._bit(key)
        below = self.open_goals.below.get(key, ())
        for one in below:
            within |= self._within[one] if self.open_goals.below.get(one) else self._bit(one)
        if below:
            self.trail.put(self._within, key, within)
        for before in self.network[key].after:
            within |= self._behind[before]
        self.trail.put(self._behind, key, within)


def _union(one: int, other: int) -> int:
    """Return what is in either; the same number where the other one is empty, since these are long."""
    return one | other if one and other else one or other


def _disturbs(effects: Effects, reads: frozenset[tuple[str, tuple[Any, ...]]]) -> bool:
    """Say whether effects may change what is read."""
    return any(
        changed == relation and _alike(terms, read)
        for _, changed, terms in effects
        for relation, read in reads
    )


def _conflicts(one: Effects, other: Effects) -> bool:
    """Say whether one adds what the other deletes."""
    return any(a != b and x == y and _alike(s, t) for a, x, s in one for b, y, t in other)


def _alike(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    return len(one) == len(other) and all(
        a == b or is_variable(a) or is_variable(b) for a, b in zip(one, other, strict=True)
    )
