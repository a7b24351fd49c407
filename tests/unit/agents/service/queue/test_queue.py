"""The queue against a model of it, with a clock that jumps: nothing lost, nothing answered twice, numbers dense."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule
from metatree_agents.service.database.database import ServiceDatabase, SqliteDatabase
from metatree_agents.service.queue.human_input import FOR_EVER, Ask, HumanInput
from metatree_agents.service.queue.queue import Claim, Query, Queue, TopicPlace, TopicTaken

from tests.profiles import examples

T = TypeVar("T")
LEASE_S, ATTEMPTS = 100.0, 3
OWNERS = {"A": "ann", "B": "ann", "C": "ben", "D": "cid"}
TOPICS = st.sampled_from("ABCD")


class QueueMachine(RuleBasedStateMachine):
    """Random callers and engines; `texts` and `answers` are what must be true of the queue."""

    claims = Bundle("claims")

    def __init__(self) -> None:
        super().__init__()
        self.now = 1_000.0
        self.loop = asyncio.new_event_loop()
        self.database = self.open_database()
        self.do(self.database.start())
        self.database.clock = lambda: self.now
        self.queue = Queue(self.database, lease_s=LEASE_S, attempts=ATTEMPTS)
        self.texts: dict[str, list[str]] = {}
        self.answers: dict[tuple[str, int], str] = {}
        self.tries: dict[tuple[str, int], int] = {}
        self.askers: dict[tuple[str, int], str] = {}
        self.line: list[str] = []
        """Who has something that can be claimed, the first first; who has nothing any more since others answered late
        keeps the place."""
        self.ready: dict[str, tuple[float, str, str]] = {}
        """topic -> (its time, topic, its asker), while it can be claimed."""
        self.last_asker: dict[str, str] = {}
        self.worked_for: dict[str, str] = {}
        """topic -> for whom it was claimed, while an engine has it."""
        self.held: dict[str, tuple[str, float]] = {}
        """topic -> (lease, when it ends), as far as engines were told."""
        self.human_input = HumanInput(self.database)
        self.waiting: dict[str, int] = {}
        """topic -> the query that waits for a person."""

    def open_database(self) -> ServiceDatabase:
        """Return an empty database."""
        return SqliteDatabase.open(":memory:")

    def teardown(self) -> None:
        self.do(self.database.close())
        self.loop.close()

    def do(self, what: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(what)

    @rule(topic=TOPICS, text=st.sampled_from(["x", "y", "z"]))
    def ask(self, topic: str, text: str) -> None:
        seq, at = self.do(self.queue.add(topic, OWNERS[topic], text))
        self.texts.setdefault(topic, []).append(text)
        self.askers[topic, seq] = OWNERS[topic]
        self.opened(topic)
        assert (seq, at) == (len(self.texts[topic]), self.now)

    @rule(topic=TOPICS)
    def a_stranger_is_refused(self, topic: str) -> None:
        if topic in self.texts:
            try:
                self.do(self.queue.add(topic, "stranger", "x"))
            except TopicTaken:
                return
            raise AssertionError("a stranger may ask")

    @rule(target=claims, engine=st.sampled_from(["one", "two"]))
    def claim(self, engine: str) -> Claim | None:
        waits = {
            topic: any(query.status in ("Open", "Pending") for query in self.thread(topic))
            for topic in self.texts
        }
        for _, topic in sorted(
            (until, topic) for topic, (_, until) in self.held.items() if until <= self.now
        ):
            del self.held[topic], self.worked_for[topic]  # a claim opens what engines let end
            self.opened(topic)
        wanted = self.next_turn()
        found = self.do(self.queue.claim(engine))
        assert (found and found.topic) == (wanted and wanted[1])
        if found is None:
            left = [t for t, waiting in waits.items() if waiting and t not in self.held]
            assert all(query.status == "Failed" for t in left for query in self.unanswered(t))
            return None
        assert found.topic not in self.held, "a live lease was broken"
        assert wanted is not None
        self.worked_for[found.topic] = wanted[0]
        self.held[found.topic] = (found.lease, found.until)
        assert found.until == self.now + LEASE_S
        assert [q.seq for q in found.queries] == sorted(q.seq for q in found.queries)
        for query in found.queries:
            key = (found.topic, query.seq)
            assert key not in self.answers, "an answered query was given out again"
            assert query.text == self.texts[found.topic][query.seq - 1]
            self.tries[key] = self.tries.get(key, 0) + 1
            assert self.tries[key] <= ATTEMPTS
        return found

    def opened(self, topic: str) -> None:
        """Let the asker of the oldest open query of a topic stand in the line, if no engine has the topic."""
        left = [query for query in self.thread(topic) if query.status == "Open"]
        left = [query for query in left if self.tries.get((topic, query.seq), 0) < ATTEMPTS]
        if left and topic not in self.held and topic not in self.ready:
            oldest = min(left, key=lambda query: (query.at, query.seq))
            asker = self.askers[topic, oldest.seq]
            self.ready[topic] = oldest.at, topic, asker
            self.last_asker[topic] = asker
            if asker not in self.line:
                self.line.append(asker)

    def next_turn(self) -> tuple[str, str] | None:
        """Take the next turn; return whose it is, and with which topic."""
        have = {each[2] for each in self.ready.values()}
        line = [asker for asker in self.line if asker in have]
        if not line:
            return None
        at_work = list(self.worked_for.values())
        asker = min(line, key=lambda each: (at_work.count(each), line.index(each)))
        _, topic, _ = min(each for each in self.ready.values() if each[2] == asker)
        del self.ready[topic]
        self.line.remove(asker)
        if any(each[2] == asker for each in self.ready.values()):
            self.line.append(asker)
        return asker, topic

    @rule(claim=claims, which=st.integers(0, 3), said=st.sampled_from(["a", "b"]), shifted=st.booleans())
    def answer(self, claim: Claim | None, which: int, said: str, shifted: bool) -> None:
        if claim is None:
            return
        query = claim.queries[which % len(claim.queries)]
        seq = query.seq + 7 if shifted else query.seq
        became, meant = self.do(
            self.queue.answer(claim.topic, query.text, seq=seq, answer=[said], engine="one")
        )
        texts = self.texts.get(claim.topic, [])
        same = [number for number, text in enumerate(texts, start=1) if text == query.text]
        wanted = seq if seq in same else same[0] if len(same) == 1 else None
        if wanted is None:
            assert became == ("conflict" if same or seq <= len(texts) else "unknown")
            return
        assert meant == wanted
        key = (claim.topic, wanted)
        if key not in self.answers:
            assert became == "accepted"
            self.answers[key] = said
            self.settle(claim.topic)
        else:
            assert became == ("again" if self.answers[key] == said else "conflict")

    @rule(claim=claims)
    def renew(self, claim: Claim | None) -> None:
        if claim is None:
            return
        holds = self.held.get(claim.topic, ("", 0))[0] == claim.lease
        assert self.do(self.queue.renew(claim.topic, claim.lease)) is holds
        if holds:
            self.held[claim.topic] = (claim.lease, self.now + LEASE_S)

    @rule(claim=claims)
    def hand_back(self, claim: Claim | None) -> None:
        if claim is None:
            return
        holds = self.held.get(claim.topic, ("", 0))[0] == claim.lease
        pending = self.pending(claim.topic)
        assert self.do(self.queue.hand_back(claim.topic, claim.lease)) is holds
        if holds:
            del self.held[claim.topic], self.worked_for[claim.topic]
            for seq in pending:
                self.tries[claim.topic, seq] -= 1
            self.opened(claim.topic)

    @rule(claim=claims, which=st.integers(0, 3))
    def a_run_asks_a_person(self, claim: Claim | None, which: int) -> None:
        if claim is None:
            return
        seq = claim.queries[which % len(claim.queries)].seq
        holds = self.held.get(claim.topic, ("", 0))[0] == claim.lease
        pending = self.pending(claim.topic)
        may = holds and seq in pending
        asks = [Ask("1", "Which lamp?", "question", 0.0)]
        assert self.do(self.human_input.park(claim.topic, seq, claim.lease, asks)) is may
        if may:
            self.held[claim.topic] = ("nobody's", FOR_EVER)
            del self.worked_for[claim.topic]
            self.waiting[claim.topic] = seq
            for each in pending:
                self.tries[claim.topic, each] -= 1

    @rule(topic=TOPICS, seq=st.integers(1, 3))
    def a_person_answers(self, topic: str, seq: int) -> None:
        waits = self.waiting.get(topic) == seq
        became = self.do(self.human_input.answer(topic, seq, "the red one", number=None, by="ann"))
        assert (became == "accepted") is waits
        if waits:
            del self.waiting[topic], self.held[topic]
            self.opened(topic)

    @rule(seconds=st.sampled_from([-50.0, 0.5, 99.0, 101.0, 5_000.0]))
    def time_jumps(self, seconds: float) -> None:
        self.now = max(1.0, self.now + seconds)

    @rule(topic=TOPICS)
    def remove(self, topic: str) -> None:
        assert not self.do(self.queue.remove(topic, "stranger"))
        assert self.do(self.queue.remove(topic, OWNERS[topic])) is (topic in self.texts)
        for of_topic in (self.texts, self.held, self.worked_for, self.waiting):
            of_topic.pop(topic, None)
        self.ready.pop(topic, None)
        asker = self.last_asker.pop(topic, "")
        if asker in self.line and all(each[2] != asker for each in self.ready.values()):
            self.line.remove(asker)
        for of_query in (self.answers, self.tries, self.askers):
            for key in [key for key in of_query if key[0] == topic]:
                del of_query[key]

    @invariant()
    def threads_are_as_they_were_asked_and_answered(self) -> None:
        for topic, texts in self.texts.items():
            thread = self.thread(topic)
            assert [query.text for query in thread] == texts
            assert [query.seq for query in thread] == list(range(1, len(texts) + 1))
            for query in thread:
                said = self.answers.get((topic, query.seq))
                assert (query.status == "Done") is (said is not None)
                assert (query.status == "Waiting") is (self.waiting.get(topic) == query.seq)
                assert query.answer == (None if said is None else [said])
                if query.status == "Pending":
                    assert self.held[topic][1] > self.now, "shown as being answered after its lease has ended"

    def thread(self, topic: str) -> list[Query]:
        return self.do(self.queue.thread(topic))

    def pending(self, topic: str) -> list[int]:
        """Return the numbers of those that are pending in their rows, whatever is shown of them."""
        sql = "SELECT seq FROM query WHERE topic = ? AND status = 'Pending' ORDER BY seq"
        return [int(row[0]) for row in self.do(self.database.rows(sql, topic))]

    def unanswered(self, topic: str) -> list[Query]:
        return [query for query in self.thread(topic) if query.status != "Done"]

    def settle(self, topic: str) -> None:
        """An answer renews the lease, or ends it when nothing of the topic is pending or waits for a person."""
        if topic in self.waiting:
            if (topic, self.waiting[topic]) not in self.answers:
                return
            del self.waiting[topic]
        if self.pending(topic):
            if topic in self.held:
                self.held[topic] = (self.held[topic][0], self.now + LEASE_S)
        else:
            self.held.pop(topic, None)
            self.worked_for.pop(topic, None)
            self.ready.pop(topic, None)  # what was handed back may be answered late
            self.opened(topic)


QueueMachine.TestCase.settings = settings(max_examples=examples(60), stateful_step_count=40)
TestQueue = QueueMachine.TestCase


class SharedMachine(QueueMachine):
    """The same where sharing is open: strangers ask in topics of others, which stay their owners'."""

    def __init__(self) -> None:
        super().__init__()
        self.queue.shared = True

    @rule(topic=TOPICS)
    def a_stranger_is_refused(self, topic: str) -> None:
        if topic in self.texts:
            seq, _ = self.do(self.queue.add(topic, "stranger", "x"))
            self.texts[topic].append("x")
            self.askers[topic, seq] = "stranger"
            self.opened(topic)
            assert seq == len(self.texts[topic])
            assert self.do(self.queue.place(topic)) == TopicPlace(OWNERS[topic], 1)
            assert topic not in self.do(self.queue.topics("stranger"))


SharedMachine.TestCase.settings = settings(max_examples=examples(30), stateful_step_count=40)
TestSharedQueue = SharedMachine.TestCase
