"""Lookups and recommendations against a model of them, with a clock that jumps: one of a fragment is out at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from metatree_agents.service.database.database import SqliteDatabase
from metatree_agents.service.queue.lookups import LOOKUP_LEASE_S, Lookups, fingerprint
from metatree_agents.service.queue.queue import Queue
from metatree_agents.service.queue.recommendations import Recommendations

from tests.profiles import examples

T = TypeVar("T")
TOPICS, FRAGMENTS = st.sampled_from("AB"), st.sampled_from(["f", "g"])


@dataclass
class Wanted:
    """One lookup as it must be."""

    fragment: str
    count: int
    out_until: float | None = None
    matches: list[str] | None = None


class LookupMachine(RuleBasedStateMachine):
    """Random frontends and engines."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1_000.0
        self.loop = asyncio.new_event_loop()
        self.database = SqliteDatabase.open(":memory:")
        self.database.clock = lambda: self.now
        self.lookups = Lookups(self.database)
        self.queue = Queue(self.database)
        self.recommendations = Recommendations(self.database)
        self.wanted: list[Wanted] = []
        self.wishes: dict[str, list[Wanted]] = {}
        self.recommended: list[tuple[str, str]] = []

    def teardown(self) -> None:
        self.do(self.database.close())
        self.loop.close()

    def do(self, what: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(what)

    @rule(topic=TOPICS)
    def remove(self, topic: str) -> None:
        assert self.do(self.queue.remove(topic, "owner")) is (self.wishes.pop(topic, None) is not None)
        wished = [one for wishes in self.wishes.values() for one in wishes]
        self.wanted = [one for one in self.wanted if any(one is each for each in wished)]

    @rule(topic=TOPICS, fragment=FRAGMENTS, counts=st.lists(st.integers(1, 3), min_size=1, max_size=3))
    def wish(self, topic: str, fragment: str, counts: list[int]) -> None:
        for count in counts:
            self.wish_once(topic, fragment, count)

    def wish_once(self, topic: str, fragment: str, count: int) -> None:
        if topic not in self.wishes:
            self.do(self.lookups.add(topic, 1, fragment, count, 1.0))  # nobody is there to wish
            self.do(self.queue.add(topic, "owner", "q"))
            self.wishes[topic] = []
        mark, _ = self.do(self.lookups.add(topic, 1, fragment, count, 1.0))
        assert mark == fingerprint(fragment)
        found = next((one for one in self.wanted if (one.fragment, one.count) == (fragment, count)), None)
        if found is None:
            found = Wanted(fragment, count)
            self.wanted.append(found)
        if not any(found is each for each in self.wishes[topic]):
            self.wishes[topic].append(found)

    @rule(times=st.integers(1, 3))
    def claim(self, times: int) -> None:
        for _ in range(times):
            self.claim_once()

    def claim_once(self) -> None:
        out = {
            one.fragment: one
            for one in self.wanted
            if one.matches is None and (one.out_until or 0) > self.now
        }
        free = [one for one in self.wanted if one.matches is None and one.fragment not in out]
        found = self.do(self.lookups.claim("engine"))
        if not free:
            assert found is None
            return
        assert found is not None
        assert (found.fragment, found.count) == (free[0].fragment, free[0].count), (
            "the oldest, and one of a fragment"
        )
        free[0].out_until = self.now + LOOKUP_LEASE_S

    @rule(fragment=FRAGMENTS, said=st.sampled_from(["m", "n"]))
    def give(self, fragment: str, said: str) -> None:
        its = [one for one in self.wanted if one.fragment == fragment]
        waiting = [one for one in its if one.matches is None and one.out_until is not None]
        given = self.do(self.lookups.give(fingerprint(fragment), [said]))
        if not waiting:
            assert given is any(one.matches == [said] for one in its), "the same again, or for nobody"
            return
        assert given
        last = max(one.out_until or 0 for one in waiting)
        meant = [one for one in waiting if one.out_until == last]
        if len(meant) > 1:  # the clock went back between them: either may be meant
            rows = self.do(
                self.database.rows(
                    "SELECT count FROM lookup WHERE fragment = ? AND matches IS NOT NULL", fragment
                )
            )
            meant = [one for one in meant if (one.count,) in rows]
        meant[0].matches, meant[0].out_until = [said], None

    @rule(seconds=st.sampled_from([-30.0, 0.5, 59.0, 61.0, 1_000.0]))
    def time_jumps(self, seconds: float) -> None:
        self.now = max(1.0, self.now + seconds)

    @rule(fragment=FRAGMENTS, kind=st.sampled_from(["Promote Answer", "Flag as Off Topic"]))
    def recommend(self, fragment: str, kind: str) -> None:
        self.do(
            self.recommendations.add(
                topic="A", on_behalf_of="ann", query="q", fragment=fragment, comment="", kind=kind
            )
        )
        self.recommended.append((fragment, kind))

    @invariant()
    def each_topic_has_what_it_wished_for(self) -> None:
        for topic, wishes in self.wishes.items():
            (found,) = self.do(self.lookups.of_topic(topic))
            ordered = [one for one in self.wanted if any(one is each for each in wishes)]
            assert found["Fragments"] == [{one.fragment: one.matches or []} for one in ordered]

    @invariant()
    def who_reads_in_small_parts_misses_no_recommendation(self) -> None:
        found, last = [], 0
        while part := self.do(self.recommendations.after(last, limit=2))[1]:
            found += [(one.fragment, one.type) for one in part]
            last = part[-1].number
        assert found == self.recommended


LookupMachine.TestCase.settings = settings(max_examples=examples(40), stateful_step_count=20)
TestLookups = LookupMachine.TestCase


def test_one_lookup_of_a_fragment_is_out_at_a_time() -> None:
    machine = LookupMachine()
    machine.wish(topic="A", fragment="f", counts=[1, 2])
    machine.claim(times=2)
    machine.give(fragment="f", said="m")
    machine.claim(times=2)
    machine.each_topic_has_what_it_wished_for()
    assert [one.out_until is not None for one in machine.wanted] == [False, True]
    machine.teardown()
