"""The kernel with a tiny machine that knows nothing of trees: chores that are done in waves, and added up."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from metatree.durable import (
    Attempt,
    Effect,
    Event,
    Finish,
    InDoubt,
    MemoryJournal,
    Outcome,
    Policy,
    Record,
    Replayed,
    Runner,
    Signal,
    first_record,
    replay,
    report_usage,
)
from metatree.durable._journal import STOP
from metatree.errors import BadModelAnswer, BrokenStore, LeaseLost, RouterUnavailable, ToolFailed, UserError


@dataclass
class Chores:
    """Waves of chores that are still to be done, and what came of those that were."""

    waves: list[list[str]]
    doing: dict[int, str] = field(default_factory=dict)
    done: list[str] = field(default_factory=list)
    next_id: int = 0


class ChoreMachine:
    """Does all chores of a wave at once, in any order, then those of the next."""

    name = "chores"
    version = 1

    def begin(self, given: Any, now: float) -> tuple[Chores, Sequence[Effect]]:
        state = Chores([list(wave) for wave in given])
        return state, self._wave(state)

    def step(self, state: Chores, event: Event) -> Sequence[Effect]:
        if isinstance(event, Signal):
            state.waves.append([event.value])
            return []
        assert isinstance(event, Outcome)
        chore = state.doing.pop(event.effect)
        state.done.append(
            f"{chore}={event.value if event.error is None else f'{event.error_kind}: {event.error}'}"
        )
        return [] if state.doing else self._wave(state)

    def ended(self, state: Chores) -> str | None:
        return None if state.doing or state.waves else "done"

    def _wave(self, state: Chores) -> list[Effect]:
        effects = []
        for chore in state.waves.pop(0) if state.waves else ():
            effects.append(Effect(state.next_id, chore.split(":")[0], {"chore": chore}))
            state.doing[state.next_id] = chore
            state.next_id += 1
        return effects


class World:
    """Carries chores out, and counts them by key."""

    def __init__(self, **handlers: Any) -> None:
        self.calls: list[str] = []
        self.handlers = {"work": self.work, **handlers}

    def work(self, effect: Effect, attempt: Attempt) -> str:
        self.calls.append(attempt.key)
        return str(effect.payload["chore"]).upper()


def begin(
    journal: MemoryJournal, given: Any, world: World, run_id: str = "r", **options: Any
) -> tuple[Runner[Chores], Replayed[Chores]]:
    machine = ChoreMachine()
    first = first_record(machine, given, 0.0)
    token = journal.create(run_id, machine.name, first)
    options.setdefault("policies", {})
    return Runner(machine, journal, run_id, token, handlers=world.handlers, **options), replay(
        machine, [first]
    )


def run(given: Any, world: World, journal: MemoryJournal | None = None, **options: Any) -> Finish[Chores]:
    runner, replayed = begin(journal or MemoryJournal(), given, world, **options)
    return asyncio.run(runner.drive(replayed))


def go_on(records: list[Record], world: World, answers: Any = None, **options: Any) -> Finish[Chores]:
    """Take a run up in another journal, as another process would."""
    journal = MemoryJournal()
    machine = ChoreMachine()
    journal.create("r", machine.name, records[0])
    for seq, record in enumerate(records[1:], start=1):
        journal.append("r", 1, seq, record)
    options.setdefault("policies", {})
    runner = Runner(machine, journal, "r", 1, handlers=world.handlers, **options)
    return asyncio.run(runner.drive(replay(machine, records), answers=answers))


def json_round_trip(records: Sequence[Record]) -> list[Record]:
    return [
        Record(*json.loads(json.dumps([record.kind, record.at, record.effect, record.body, record.used])))
        for record in records
    ]


def test_waves_are_done_in_order_and_the_journal_tells_the_same() -> None:
    journal = MemoryJournal()
    world = World()
    finish = run([["work:a", "work:b"], ["work:c"]], world, journal)
    assert (finish.ended, finish.state.done) == ("done", ["work:a=WORK:A", "work:b=WORK:B", "work:c=WORK:C"])
    assert world.calls == ["r:0", "r:1", "r:2"]
    records = journal.read("r")
    assert [r.kind for r in records] == ["begin", "outcome", "outcome", "outcome", "stop"]
    assert replay(ChoreMachine(), json_round_trip(records)).state == finish.state


def test_a_journal_cut_anywhere_goes_on_to_the_same_end_and_repeats_no_outcome() -> None:
    journal = MemoryJournal()
    given = [["work:a", "work:b"], ["work:c"], ["work:d", "work:e"]]
    whole = run(given, World(), journal)
    records = journal.read("r")
    for cut in range(1, len(records)):
        world = World()
        finish = go_on(json_round_trip(records[:cut]), world)
        assert finish.state == whole.state
        known = {f"r:{record.effect}" for record in records[:cut] if record.kind == "outcome"}
        assert known.isdisjoint(world.calls)
        assert len(known) + len(world.calls) == 5


def test_effects_are_in_flight_together_up_to_the_concurrency() -> None:
    at_once = most = 0

    async def work(effect: Effect, attempt: Attempt) -> int:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0.001)
        at_once -= 1
        return effect.id

    for concurrency, expected in ((1, 1), (3, 3), (99, 6)):
        most = 0
        finish = run([[f"work:{i}" for i in range(6)]], World(work=work), concurrency=concurrency)
        assert (most, finish.ended) == (expected, "done")


def test_what_fails_is_tried_again_with_the_errors_shown_and_then_it_is_an_outcome() -> None:
    seen: list[Any] = []

    def work(effect: Effect, attempt: Attempt) -> str:
        seen.append((attempt.number, attempt.errors, attempt.key))
        raise BadModelAnswer(f"bad {attempt.number}")

    policies = {"work": Policy(attempts=3, counts=("calls",))}
    finish = run([["work:a"]], World(work=work), policies=policies)
    assert seen == [(1, (), "r:0"), (2, ("bad 1",), "r:0"), (3, ("bad 1", "bad 2"), "r:0")]
    assert finish.state.done == ["work:a=BadModelAnswer: bad 3"]
    assert (finish.used["calls"], finish.used["failed_attempts"]) == (3, 3)


@pytest.mark.parametrize("error", [UserError("wrong"), ToolFailed("no")])
def test_what_another_try_cannot_mend_is_not_tried_again(error: Exception) -> None:
    calls: list[int] = []

    def work(effect: Effect, attempt: Attempt) -> str:
        calls.append(attempt.number)
        raise error

    run([["work:a"]], World(work=work), policies={"work": Policy(attempts=3)})
    assert calls == [1]


def test_what_is_out_of_reach_is_waited_for() -> None:
    def work(effect: Effect, attempt: Attempt) -> int:
        if attempt.number < 3:
            raise RouterUnavailable("gone", retry_after_s=0.01)
        return attempt.number

    finish = run([["work:a"]], World(work=work), policies={"work": Policy(attempts=3)})
    assert finish.state.done == ["work:a=3"]


def test_a_pause_ends_when_the_run_is_stopped_or_out_of_time() -> None:
    def work(effect: Effect, attempt: Attempt) -> int:
        raise RouterUnavailable("gone", retry_after_s=25)

    policies = {"work": Policy(attempts=9)}
    finish = run([["work:a"]], World(work=work), policies=policies, limits={"seconds": 0.05})
    assert (finish.ended, finish.detail) == ("limit", "seconds")
    assert finish.used["seconds"] < 20

    runner, replayed = begin(MemoryJournal(), [["work:a"]], World(work=work), policies=policies)

    async def stopped() -> Finish[Chores]:
        asyncio.get_running_loop().call_later(0.02, runner.stop)
        return await runner.drive(replayed)

    assert asyncio.run(stopped()).ended == "cancelled"


def test_an_attempt_has_its_time() -> None:
    async def work(effect: Effect, attempt: Attempt) -> str:
        await asyncio.sleep(30)
        return "late"

    finish = run([["work:a"]], World(work=work), policies={"work": Policy(attempts=2, timeout_s=0.01)})
    assert finish.state.done == ["work:a=timeout: no answer within 0.01 s"]


def test_usage_is_counted_once_whatever_way_it_is_counted() -> None:
    def work(effect: Effect, attempt: Attempt) -> str:
        report_usage(tokens_in=10, calls=-1)  # nobody was called after all
        return "x"

    journal = MemoryJournal()
    finish = run(
        [["work:a", "work:b"]], World(work=work), journal, policies={"work": Policy(counts=("calls",))}
    )
    assert (finish.used["calls"], finish.used["tokens_in"]) == (0, 20)
    usage = replay(ChoreMachine(), journal.read("r")).used
    assert (usage["calls"], usage["tokens_in"]) == (0, 20)


def test_limits_are_kept_to_the_call_and_the_rest_stays_to_be_done() -> None:
    journal = MemoryJournal()
    policies = {"work": Policy(counts=("calls",))}
    finish = run([["work:a", "work:b", "work:c"]], World(), journal, policies=policies, limits={"calls": 2})
    assert (finish.ended, finish.detail, len(finish.state.done)) == ("limit", "calls", 2)
    assert go_on(journal.read("r"), World(), policies=policies).state.done[2] == "work:c=WORK:C"


def test_outcomes_from_outside_are_waited_for_and_given() -> None:
    journal = MemoryJournal()
    policies = {"ask": Policy(external=True)}
    finish = run([["work:a", "ask:b"], ["work:c"]], World(), journal, policies=policies)
    assert (finish.ended, [e.id for e in finish.waiting]) == ("waiting", [1])
    done = go_on(journal.read("r"), World(), {1: "said"}, policies=policies)
    assert (done.ended, done.state.done[1]) == ("done", "ask:b=said")


def test_the_journal_may_ask_a_run_to_stop() -> None:
    journal = MemoryJournal()

    def work(effect: Effect, attempt: Attempt) -> str:
        journal.cancel("r")
        return "x"

    finish = run([["work:a"], ["work:b"]], World(work=work), journal)
    assert (finish.ended, finish.state.done) == ("cancelled", ["work:a=x"])
    assert journal.runs()[0].ended == "cancelled"


def test_a_cancelled_drive_notes_where_it_stopped_and_what_was_used() -> None:
    async def work(effect: Effect, attempt: Attempt) -> str:
        report_usage(tokens_in=5)
        await asyncio.sleep(30)
        return "x"

    for concurrency in (1, 2):
        journal = MemoryJournal()
        world = World(work=work)
        runner, replayed = begin(journal, [["work:a", "work:b"]], world, concurrency=concurrency)

        async def cancelled(runner: Runner[Chores] = runner, replayed: Replayed[Chores] = replayed) -> None:
            task = asyncio.ensure_future(runner.drive(replayed))
            await asyncio.sleep(0.02)
            task.cancel()
            await task

        with pytest.raises(asyncio.CancelledError):
            asyncio.run(cancelled())
        records = journal.read("r")
        assert records[-1].body["ended"] == "cancelled"
        assert replay(ChoreMachine(), records).used["tokens_in"] == 5 * concurrency
        assert go_on(records, World()).ended == "done"


def test_an_effect_that_may_not_happen_twice_is_in_doubt_after_a_crash() -> None:
    policies = {"once": Policy(repeatable=False)}
    journal = MemoryJournal()
    world = World()
    world.handlers["once"] = world.work
    whole = run([["once:a"]], world, journal, policies=policies)
    assert whole.state.done == ["once:a=ONCE:A"]
    records = journal.read("r")
    assert [r.kind for r in records] == ["begin", "start", "outcome", "stop"]
    world = World(once=world.work)
    assert go_on(records[:1], world, policies=policies).state.done == ["once:a=ONCE:A"]  # it had not begun
    doubt = go_on(records[:2], World(once=None), policies=policies)
    assert doubt.state.done == ["once:a=in_doubt: it was interrupted and may have happened"]
    assert go_on(records[:3], World(once=None), policies=policies).state.done == ["once:a=ONCE:A"]


def test_what_came_of_an_effect_in_doubt_may_be_known_elsewhere() -> None:
    journal = MemoryJournal()
    world = World()
    world.handlers["once"] = world.work
    run([["once:a"]], world, journal, policies={"once": Policy(repeatable=False)})
    began = journal.read("r")[:2]
    known = Policy(repeatable=False, recover=lambda effect, attempt: f"known as {attempt.key}")
    assert go_on(began, World(once=None), policies={"once": known}).state.done == ["once:a=known as r:0"]

    def unknown(effect: Effect, attempt: Attempt) -> Any:
        raise InDoubt("nobody knows")

    finish = go_on(began, World(once=None), policies={"once": Policy(repeatable=False, recover=unknown)})
    assert finish.state.done == ["once:a=in_doubt: nobody knows"]


def test_some_effects_of_a_kind_may_be_repeatable_and_others_not() -> None:
    journal = MemoryJournal()
    policy = Policy(repeatable=lambda effect: effect.payload["chore"] != "work:b")
    run([["work:a"], ["work:b"]], World(), journal, policies={"work": policy})
    assert [r.kind for r in journal.read("r")] == ["begin", "outcome", "start", "outcome", "stop"]


def test_a_fatal_error_stops_the_run_and_its_effect_is_tried_anew_when_it_is_taken_up() -> None:
    class DiskGone(Exception):
        pass

    def work(effect: Effect, attempt: Attempt) -> str:
        if attempt.number == 1:
            raise BadModelAnswer("bad form")
        raise DiskGone("no disk")

    journal = MemoryJournal()
    policies = {"work": Policy(attempts=5, fatal=(DiskGone,))}
    with pytest.raises(DiskGone):
        run([["work:a"]], World(work=work), journal, policies=policies)
    assert journal.runs()[0].ended == "failed"
    assert [r.kind for r in journal.read("r")] == ["begin", "attempt", "cut"]
    seen: list[int] = []

    def mended(effect: Effect, attempt: Attempt) -> str:
        seen.append(attempt.number)
        return "x"

    assert go_on(journal.read("r"), World(work=mended), policies=policies).state.done == ["work:a=x"]
    assert seen == [1]


def test_the_time_of_a_run_that_failed_is_known() -> None:
    def work(effect: Effect, attempt: Attempt) -> str:
        clock[0] += 7.5
        raise OSError("fatal")

    clock = [10.0]
    policies = {"work": Policy(fatal=(OSError,))}
    runner, replayed = begin(
        MemoryJournal(), [["work:a"]], World(work=work), policies=policies, now=lambda: clock[0]
    )
    with pytest.raises(OSError, match="fatal"):
        asyncio.run(runner.drive(replayed))
    assert replayed.used["seconds"] == 7.5


def test_an_error_in_one_of_several_effects_gives_the_others_up() -> None:
    async def work(effect: Effect, attempt: Attempt) -> str:
        if effect.id == 1:
            raise OSError("fatal")
        await asyncio.sleep(30)
        return "x"

    journal = MemoryJournal()
    with pytest.raises(OSError, match="fatal"):
        run(
            [["work:a", "work:b", "work:c"]],
            World(work=work),
            journal,
            policies={"work": Policy(fatal=(OSError,))},
            concurrency=3,
        )
    assert [r.kind for r in journal.read("r")] == ["begin", "cut", "cut", "cut"]


def test_a_journal_that_fails_stops_the_run_with_all_before_it_kept() -> None:
    class Full(MemoryJournal):
        room = 2

        def append(self, run_id: str, token: int, seq: int, record: Record) -> int:
            if seq > self.room:
                raise OSError("disk full")
            return super().append(run_id, token, seq, record)

    journal = Full()
    with pytest.raises(OSError, match="disk full"):
        run([["work:a"], ["work:b"], ["work:c"]], World(), journal)
    assert [r.kind for r in journal.read("r")] == ["begin", "outcome", "outcome"]
    world = World()
    assert go_on(journal.read("r"), world).ended == "done"
    assert world.calls == ["r:2"]


def test_a_run_that_was_taken_over_writes_nothing_more() -> None:
    journal = MemoryJournal()

    def work(effect: Effect, attempt: Attempt) -> str:
        journal.release("r", 1, None)
        journal.acquire("r")
        return "late"

    with pytest.raises(LeaseLost, match="another process is at work on run 'r'"):
        run([["work:a"]], World(work=work), journal)
    assert [r.kind for r in journal.read("r")] == ["begin"]


def test_a_long_effect_renews_the_hold_and_is_given_up_when_it_is_lost() -> None:
    class Leased(MemoryJournal):
        renew_every_s = 0.01
        renewed = 0

        def renew(self, run_id: str, token: int) -> int:
            self.renewed += 1
            if self.renewed == 3:
                raise LeaseLost(run_id)
            return super().renew(run_id, token)

    async def work(effect: Effect, attempt: Attempt) -> str:
        await asyncio.sleep(30)
        return "x"

    journal = Leased()
    with pytest.raises(LeaseLost):
        run([["work:a"]], World(work=work), journal)
    assert journal.renewed == 3


def test_an_effect_that_blocks_the_event_loop_keeps_its_hold() -> None:
    renewed = threading.Event()

    class Leased(MemoryJournal):
        renew_every_s = 0.01

        def renew(self, run_id: str, token: int) -> int:
            renewed.set()
            return super().renew(run_id, token)

    async def work(effect: Effect, attempt: Attempt) -> bool:
        return renewed.wait(20)  # the loop stands still meanwhile

    finish = run([["work:a"]], World(work=work), Leased())
    assert finish.state.done == ["work:a=True"]


def test_a_run_is_stopped_by_what_a_renewal_hears() -> None:
    class Leased(MemoryJournal):
        renew_every_s = 0.01
        renewed = 0

        def renew(self, run_id: str, token: int) -> int:
            self.renewed += 1
            return STOP

    async def work(effect: Effect, attempt: Attempt) -> str:
        while journal.renewed < 2:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0)  # what the first one heard is on this loop by now
        return "x"

    journal = Leased()
    finish = run([["work:a"], ["work:b"]], World(work=work), journal)
    assert (finish.ended, finish.state.done) == ("cancelled", ["work:a=x"])


def test_a_signal_is_applied_and_replayed() -> None:
    machine = ChoreMachine()
    first = first_record(machine, [["work:a"]], 0.0)
    records = [first, Record("signal", 1.0, body={"name": "more", "value": "work:z"})]
    assert go_on(records, World()).state.done == ["work:a=WORK:A", "work:z=WORK:Z"]


def test_a_journal_of_another_machine_or_version_is_refused() -> None:
    class Newer(ChoreMachine):
        version = 2

    class Other(ChoreMachine):
        name = "errands"

    records = [first_record(ChoreMachine(), [["work:a"]], 0.0)]
    for machine in (Newer(), Other()):
        with pytest.raises(UserError, match="begun by version 1 of the chores machine"):
            replay(machine, records)


def test_a_record_that_does_not_fit_is_named() -> None:
    records = [
        first_record(ChoreMachine(), [["work:a"]], 0.0),
        Record("outcome", 1.0, 0, {"=": "x"}),
        Record("outcome", 2.0, 7, {"=": "y"}),
    ]
    with pytest.raises(BrokenStore, match="record 2 of the journal does not fit"):
        replay(ChoreMachine(), records)


def test_time_between_processes_does_not_count() -> None:
    records = [
        first_record(ChoreMachine(), [["work:a", "work:b"]], 100.0),
        Record("outcome", 103.0, 0, {"=": "x"}),
        Record("resume", 5000.0),
        Record("outcome", 5002.0, 1, {"=": "x"}),
    ]
    assert replay(ChoreMachine(), records).used["seconds"] == 5.0
