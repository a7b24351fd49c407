"""The control shell: knowledge sources around one working memory, fired by a schedule and a resolver.

shell = ControlShell([source, …], schedule="a = 0; b = 1; main = a+ b;", resolver=First())
report = shell.run(facts="(a1 species rabbit)")
"""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, cast

from metatree._util.threads import run_apart
from metatree.durable import (
    Attempt,
    Effect,
    Handler,
    Journal,
    MemoryJournal,
    Policy,
    Replayed,
    Runner,
    first_record,
    replay,
    take_up,
)
from metatree.errors import UserError
from metatree.rules._working_memory import WorkingMemory
from metatree.rules.language.conditions import Production
from metatree.rules.language.functions import Functions
from metatree.rules.language.text import parse_facts, parse_productions
from metatree.rules.language.values import Fact, check_fact
from metatree.rules.matcher.explain import Explanation, why_not
from metatree.rules.shell._machine import ShellMachine, ShellState, facts_json
from metatree.rules.shell.knowledge import Firing, KnowledgeSource, Rule
from metatree.rules.shell.on_blackboard import BoardBridge
from metatree.rules.shell.resolvers import AskingResolver, Resolver, SelfTransition
from metatree.rules.shell.schedule import Schedule

ShellEnded = Literal["accepted", "stuck", "stopped", "limit", "waiting", "cancelled", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellLimits:
    """Bounds of one run; None is no bound."""

    cycles: int | None = 1000
    firings: int | None = 10_000
    """Calls of logic, failed attempts included."""
    tokens: int | None = 1_000_000
    """Prompt and completion tokens together, of models that knowledge sources ask."""
    cost_usd: float | None = None
    seconds: float | None = 600.0

    def __post_init__(self) -> None:
        for name, bound in asdict(self).items():
            number = isinstance(bound, int | float) and not isinstance(bound, bool)
            if bound is not None and (not number or not bound >= 0):
                raise UserError(f"the limit {name} is {bound!r}: give a number from 0, or None for no bound")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellReport:
    """How a run of the control shell went."""

    ended: ShellEnded
    """`accepted`: nothing is left to do, or the resolver stopped, in an accepting state, and nothing failed. `stuck`:
    nothing can fire, and the schedule expected more. `stopped`: by the resolver, elsewhere. `failed`: something failed
    on the way, see `failures`; all that could be done beside it is done."""
    detail: str
    state: int
    """Of the schedule."""
    cycles: int
    trace: tuple[dict[str, Any], ...]
    """One entry for each cycle; JSON."""
    expected: tuple[Explanation, ...] = ()
    """When stuck: what each production that may come next is waiting for."""
    failures: tuple[dict[str, Any], ...] = ()
    """Firings that failed after all attempts, with the tokens that are set aside for it."""
    facts: tuple[Fact, ...] = ()
    used: Mapping[str, float] = field(default_factory=dict)
    run_id: str = ""
    memory: WorkingMemory


OnEntry = Callable[[dict[str, Any]], object]


class ControlShell:
    """Knowledge sources, a schedule and a resolver, ready to run.

    Args:
        sources: their productions are numbered for the schedule in this order.
        inferences: productions with a right-hand side that apply at any time, by themselves.
        schedule: which production may fire when; None allows all of them always.
        resolver: picks among those that may; `SelfTransition` when None.
        board: a blackboard to react to and to write the trace to; see `BoardBridge`.
        concurrency: how many tokens of one firing may be at work at once, for logic that is fired for `each`.
        order: names of productions, by the numbers in the schedule; None for those of the sources, one after the other.
        functions: name -> a pure function that productions may call, `#name(<x> …)`.

    Raises:
        UserError: two productions have one name, the schedule makes no sense for them, or an argument is of the wrong
            type.
    """

    def __init__(
        self,
        sources: Iterable[KnowledgeSource],
        *,
        inferences: str | Iterable[Production] = (),
        schedule: str | None = None,
        resolver: Resolver | None = None,
        board: BoardBridge | None = None,
        concurrency: int = 8,
        order: Sequence[str] | None = None,
        functions: Mapping[str, Callable[..., Any]] | None = None,
    ) -> None:
        self.rules: dict[str, Rule] = {}
        sources = list(sources) if isinstance(sources, Iterable) else [sources]
        for source in sources:
            if not isinstance(source, KnowledgeSource):
                raise UserError(f"{source!r} is no knowledge source: give a list of KnowledgeSource objects")
        if type(concurrency) is not int or concurrency < 1:
            raise UserError(f"concurrency is {concurrency!r}: give a whole number from 1")
        if board is not None and not callable(getattr(board, "look", None)):
            raise UserError(f"{board!r} is no bridge: give BoardBridge(board)")
        if resolver is not None and not callable(getattr(resolver, "choose", None)):
            raise UserError(
                f"{resolver!r} is no resolver: give one such as First(), or a class with a method `choose`"
            )
        for source in sources:
            for name, rule in source.rules().items():
                if name in self.rules:
                    raise UserError(f"two knowledge sources have a production {name!r}: rename one of them")
                self.rules[name] = rule
        known = Functions(functions)
        if isinstance(inferences, str):
            inferences = parse_productions(inferences, known)
        self.inferences = list(inferences) if isinstance(inferences, Iterable) else [inferences]
        for production in self.inferences:
            if not isinstance(production, Production):
                raise UserError(f"inferences has {production!r}: give productions, as text or as a list")
        twice = Counter([*self.rules, *(production.name for production in self.inferences)])
        for name, times in twice.items():
            if times > 1:
                raise UserError(f"two productions are called {name!r}: rename one of them")
        for production in (*(rule.production for rule in self.rules.values()), *self.inferences):
            known.put_into(production)
        names = list(self.rules)
        self._order = list(order) if order is not None else names
        self.schedule = (
            Schedule.parse(schedule, self._order) if schedule is not None else Schedule.free(names)
        )
        self.resolver = resolver or SelfTransition()
        self.board = board
        self.concurrency = concurrency
        self._schedule_text = schedule
        self.machine = ShellMachine(
            self.resolver,
            each=[name for name, rule in self.rules.items() if rule.each],
            removals=[name for name, rule in self.rules.items() if rule.removals],
            once=[name for name, rule in self.rules.items() if rule.policy.repeatable is not True],
            functions=known.own,
        )

    def given(
        self, facts: str | Iterable[Iterable[Any]], *, seed: int, limits: ShellLimits
    ) -> dict[str, Any]:
        """Return the input of a run, as its journal keeps it."""
        read = parse_facts(facts) if isinstance(facts, str) else [check_fact(fact) for fact in facts]
        controlled = [{"text": str(rule.production), "controlled": True} for rule in self.rules.values()]
        return {
            "facts": facts_json(read),
            "productions": [{"text": str(p), "controlled": False} for p in self.inferences] + controlled,
            "schedule": self._schedule_text,
            "order": self._order,
            "seed": seed,
            "limits": {"cycles": limits.cycles},
            "board": self.board is not None,
        }

    async def arun(
        self,
        facts: str | Iterable[Iterable[Any]] = (),
        *,
        seed: int | None = None,
        limits: ShellLimits | None = None,
        run_id: str | None = None,
        journal: str | Path | Journal | None = None,
        on_entry: OnEntry | None = None,
    ) -> ShellReport:
        """Run until no allowed production has tokens, the resolver stops, or a limit is reached.

        Args:
            facts: what is known at first, as text or as triples.
            seed: of resolvers that draw at random; recorded, so that a run can be repeated. A random one when None.
            run_id: a name to resume by; a random one when None.
            journal: a file or a journal; None keeps the run in this process.
            on_entry: called with each entry of the trace as it is made.

        Raises:
            RunExists: this run id was used before.
        """
        limits = limits or ShellLimits()
        run_id = run_id or uuid.uuid4().hex[:12]
        seed = seed if seed is not None else uuid.uuid4().int % 2**32
        given = self.given(facts, seed=seed, limits=limits)
        with _open_journal(journal) as open_journal:
            first = first_record(self.machine, given, time.time())
            # Before anything is written: a mistake in the input ends here.
            replayed = replay(self.machine, [first])
            token = open_journal.create(run_id, self.machine.name, first)
            return await self._drive(open_journal, run_id, token, replayed, limits, on_entry, told=0)

    async def aresume(
        self,
        run_id: str,
        *,
        journal: str | Path | Journal,
        limits: ShellLimits | None = None,
        on_entry: OnEntry | None = None,
    ) -> ShellReport:
        """Take a run up again after a crash or a limit; firings that are in the journal are not repeated.

        The shell must have the productions, the schedule and the resolver that the run began with.

        Raises:
            UnknownRun: the journal does not know it.
            LeaseLost: another process is at work on it.
            UserError: the run began with other productions or another schedule.
        """
        with _open_journal(journal) as open_journal:
            records = open_journal.read(run_id)
            self._check_same(run_id, records[0].body["given"])
            replayed = replay(self.machine, records)
            ended = self.machine.ended(replayed.state)
            if ended is not None and (ended != "limit" or limits is None):
                return self._report(replayed.state, ended, "", replayed.used, run_id)
            signals = [] if limits is None else [("limits", {"cycles": limits.cycles})]
            token, replayed = take_up(self.machine, open_journal, run_id, *signals)
            return await self._drive(open_journal, run_id, token, replayed, limits or ShellLimits(), on_entry)

    def run(
        self,
        facts: str | Iterable[Iterable[Any]] = (),
        *,
        seed: int | None = None,
        limits: ShellLimits | None = None,
        run_id: str | None = None,
        journal: str | Path | Journal | None = None,
        on_entry: OnEntry | None = None,
    ) -> ShellReport:
        """Do what `arun` does, and wait for it; works inside a running event loop too."""
        return run_apart(
            lambda: self.arun(
                facts, seed=seed, limits=limits, run_id=run_id, journal=journal, on_entry=on_entry
            )
        )

    def resume(
        self,
        run_id: str,
        *,
        journal: str | Path | Journal,
        limits: ShellLimits | None = None,
        on_entry: OnEntry | None = None,
    ) -> ShellReport:
        """Do what `aresume` does, and wait for it."""
        return run_apart(lambda: self.aresume(run_id, journal=journal, limits=limits, on_entry=on_entry))

    def _check_same(self, run_id: str, given: Mapping[str, Any]) -> None:
        mine = self.given((), seed=0, limits=ShellLimits())
        for what in ("productions", "schedule"):
            if mine[what] != given[what]:
                raise UserError(
                    f"run {run_id!r} began with another set of {what}: give the shell the {what} that it began with"
                )

    async def _drive(
        self,
        journal: Journal,
        run_id: str,
        token: int,
        replayed: Replayed[ShellState],
        limits: ShellLimits,
        on_entry: OnEntry | None,
        *,
        told: int | None = None,
    ) -> ShellReport:
        reported = len(replayed.state.trace) if told is None else told

        def on_step(state: ShellState) -> None:
            nonlocal reported
            for entry in state.trace[reported:]:
                reported += 1
                if self.board is not None:
                    self.board.fired(run_id, entry)
                    self.board.settled(run_id, state.memory)
                if on_entry is not None:
                    on_entry(entry)

        runner = Runner(
            self.machine,
            journal,
            run_id,
            token,
            handlers=self._handlers(run_id),
            policies=self._policies(),
            limits={n: bound for n, bound in asdict(limits).items() if bound is not None and n != "cycles"},
            concurrency=self.concurrency,
            on_step=on_step,
        )
        finish = await runner.drive(replayed)
        return self._report(finish.state, finish.ended, finish.detail, finish.used, run_id)

    def _handlers(self, run_id: str) -> dict[str, Handler]:
        handlers: dict[str, Handler] = {"look": self._look, "resolve": self._resolve}
        for name, rule in self.rules.items():
            handlers[f"fire {name}"] = partial(self._fire, rule)
        return handlers

    def _policies(self) -> dict[str, Policy]:
        policies = {"look": Policy(attempts=3), "resolve": Policy(attempts=3, timeout_s=120.0)}
        for name, rule in self.rules.items():
            counts = dict.fromkeys(("firings", *rule.policy.counts))
            policies[f"fire {name}"] = replace(rule.policy, counts=tuple(counts))
        return policies

    def _fire(self, rule: Rule, effect: Effect, attempt: Attempt) -> Any:
        firing = Firing(**effect.payload, board=self.board, key=attempt.key, attempt=attempt.number)
        result = rule.logic(firing)
        return _outcome_after(result, firing) if isinstance(result, Awaitable) else firing.outcome()

    def _look(self, effect: Effect, attempt: Attempt) -> Any:
        assert self.board is not None
        changes = self.board.look(effect.payload["memory"])
        return {"changes": [[sign, *facts_json([fact])[0]] for sign, fact in changes]}

    async def _resolve(self, effect: Effect, attempt: Attempt) -> Any:
        assert isinstance(self.resolver, AskingResolver)
        chosen = await self.resolver.ask(effect.payload["conflict"], attempt.errors)
        return {"production": chosen} if isinstance(chosen, str) else {"stop": True}

    def _report(
        self, state: ShellState, ended: str, detail: str, used: Mapping[str, float], run_id: str
    ) -> ShellReport:
        allowed = state.schedule.allowed(state.position)
        stuck = ended == "stuck" or (ended == "failed" and not state.accepting)
        return ShellReport(
            ended=cast(ShellEnded, ended),
            detail=detail or state.detail,
            state=state.position,
            cycles=state.cycle,
            trace=tuple(state.trace),
            expected=tuple(why_not(state.memory, name) for name in allowed) if stuck else (),
            failures=tuple(state.failures),
            facts=tuple(state.memory),
            used=dict(used),
            run_id=run_id,
            memory=state.memory,
        )


async def _outcome_after(result: Awaitable[object], firing: Firing) -> dict[str, Any]:
    await result
    return firing.outcome()


@contextmanager
def _open_journal(journal: str | Path | Journal | None) -> Iterator[Journal]:
    if not isinstance(journal, str | Path):
        yield MemoryJournal() if journal is None else journal
        return
    from metatree.durable.sql_journal import SqlJournal
    from metatree.storage.store import Store

    with Store.open(journal) as store:
        yield SqlJournal(store)


def trace_lines(entry: Mapping[str, Any]) -> list[str]:
    """Return an entry of the trace as lines of text."""
    if entry["event"] == "board":
        said = [fact for fact in entry["asserted"] if fact not in entry.get("inferred", {})]
        return [
            f"The board says: {' '.join(said) or 'nothing new'}",
            *(f"Inferred {fact} by {why}" for fact, why in entry.get("inferred", {}).items()),
        ]
    inferred = [f"Inferred {fact} by {why}" for fact, why in entry.get("inferred", {}).items()]
    if entry["event"] == "inferred":
        return inferred
    if entry["event"] == "stop":
        return [str(entry["remark"]).capitalize()]
    names = ",".join(f'"{c["production"]}"' for c in entry["candidates"])
    waiting = [
        f"{verb}: {entry[count]}"
        for verb, count in (("add", "to_add"), ("remove", "to_remove"))
        if entry[count]
    ]
    lines = [f"Transitions can fire: {names}", f'Production "{entry["production"]}" can {", ".join(waiting)}']
    stated = [fact for fact in entry["asserted"] if fact not in entry.get("inferred", {})]
    lines += entry["notes"] or [
        *(f"Retracted {fact}" for fact in entry["retracted"]),
        *(f"Asserted {fact}" for fact in stated),
    ]
    lines += inferred
    lines += [f"Failed: {error}" for error in entry["errors"]]
    return [*lines, f"Transitioned to state {entry['state_after']}"]


def ending_lines(report: ShellReport) -> Sequence[str]:
    """Return how a run ended as lines of text."""
    match report.ended:
        case "accepted" if not report.detail:
            return ["No allowed transitions can fire", "No further transitions, reached accepting state"]
        case "stuck" | "failed":
            failed = [report.detail] if report.ended == "failed" else []
            return [
                "No allowed transitions can fire",
                f"The run {'is stuck' if report.ended == 'stuck' else 'has failed'} in state {report.state}",
                *failed,
                *map(str, report.expected),
            ]
        case _:
            return [f"The run ended: {report.ended}" + (f" ({report.detail})" if report.detail else "")]
