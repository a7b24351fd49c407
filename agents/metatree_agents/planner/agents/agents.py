"""Durable agents: started, driven, taken over, looked into; all their state is in a store."""

from __future__ import annotations

import asyncio
import logging
import re
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from metatree._util.threads import run_apart
from metatree.durable import Record, Runner, replay, take_up
from metatree.durable.sql_journal import SqlJournal
from metatree.errors import LeaseLost, RunExists, TransientError, UnknownRun, UserError
from metatree.shared import PATIENCE_S
from metatree.storage.database import Database
from metatree.storage.postgres_address import BOARDS, RUNS, is_postgres
from metatree.storage.store import Store
from metatree_agents.planner.agents._driver import (
    Driving,
    Propose,
    begin_agent,
    missing_functions,
    needs_functions,
)
from metatree_agents.planner.agents._events import check_signal
from metatree_agents.planner.agents._machine import MACHINE, PlannerMachine, why_not_again, why_not_with
from metatree_agents.planner.agents._on_blackboard import AgentOnBoard
from metatree_agents.planner.agents._waits import waits_of
from metatree_agents.planner.agents.bodies import World
from metatree_agents.planner.agents.schedules import CronSchedule, Schedules
from metatree_agents.planner.agents.state import AgentOptions, AgentState, options_of
from metatree_agents.planner.domain.conditions import atom_text
from metatree_agents.planner.domain.domain import Domain
from metatree_agents.planner.domain.given import facts_given, goal_of, shown
from metatree_agents.planner.domain.model import library_data, library_from
from metatree_agents.planner.domain.network import TOP, Intent
from metatree_agents.planner.planning.planning import Order

if TYPE_CHECKING:
    from metatree import Tree
    from metatree.blackboard import Blackboard
    from metatree.tools.call_log import CallLog
    from metatree.tools.tool import Tool

_log = logging.getLogger("metatree")

_LOOK_S = 0.5
"""How often an agent that waits for a time is looked at."""
_LONGEST_ID = 500
LEASE_S = 10.0
"""How long an agent stays held after its process's last sign of life."""

OnStep = Callable[[str, AgentState], None]


@dataclass(frozen=True, slots=True)
class AgentInfo:
    """An agent, as its journal tells it."""

    id: str
    goal: tuple[Any, ...]
    status: str
    """`complete`, `failed`, `cancelled`, `limit`; `waiting` (for a person or an event), `running`, `pending`."""
    detail: str
    intents: tuple[Intent, ...]
    facts: tuple[tuple[Any, ...], ...]
    questions: tuple[str, ...]
    """Questions that it waits for."""
    trace: tuple[Mapping[str, Any], ...]
    considered: Mapping[int, Sequence[Mapping[str, Any]]]
    refused: int
    """Writes of processes that had lost it."""
    result: Any = None
    """Of the top-level intent."""
    waits: Mapping[int, str] = field(default_factory=dict)
    """Intent that has not ended -> what it waits for."""
    version: str = ""
    """Of the library that it goes by."""
    parent: str = ""
    """The agent whose child it is."""
    children: tuple[str, ...] = ()
    """Agents that it waits for."""


@dataclass
class _Loop:
    """What one worker loop knows."""

    running: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    board_version: int = 0


class UnknownAgent(UnknownRun):
    """There is no agent with this id."""

    def __init__(self, run_id: str) -> None:
        UserError.__init__(
            self, f"no agent is called {run_id!r}: `metatree goals list` lists them", run_id=run_id
        )


class AgentExists(RunExists):
    """There is an agent with this id already."""

    def __init__(self, run_id: str) -> None:
        UserError.__init__(
            self,
            f"there is an agent {run_id!r} already: go on with it, `run({run_id!r})`, or give another id",
            run_id=run_id,
        )


class Agents:
    """The agents in one store, and what they need to act.

    Any number of processes may work on the same store; each agent is driven by one of them at a time, under a lease
    that runs out when its process dies or is stopped, and every write carries a fencing token.

    Args:
        place: a SQLite file, made when it is not there; `postgresql://…`; a store; `:memory:`.
        domain: the functions of rules and tasks, and readers of dynamic relations.
        older: the same domain in other versions, for agents that were begun with them; what none of them has, and the
            domain does not take over, is left to other processes.
        tree: searched by tasks that are searches.
        search_options: arguments of `asearch` for them, such as `router`.
        tools: for tasks that are tool calls.
        permit: decides on tools that change something.
        order: puts candidates of equal cost into an order; `router_order` makes one of a router.
        propose: the fallback for goals that no candidate reaches; see `proposals`.
        board: where agents write and ask; None for the board of the store, which `Blackboard(place)` opens elsewhere,
            False for none.
        lease_s: how long an agent stays held without a sign of life.
        synchronous: `FULL` for files that survive a power failure, at some milliseconds a step.

    Example:
        >>> from metatree_agents.planner import Domain
        >>> home = Domain("home")
        >>> @home.task("greet(?who)")
        ... def greet(who: str) -> str:
        ...     return f"hello {who}"
        >>> with Agents(":memory:", home) as agents:
        ...     agents.run(agents.start("greet(world)")).result
        'hello world'
    """

    def __init__(
        self,
        place: str | Path | Store,
        domain: Domain | None = None,
        *,
        older: Sequence[Domain] = (),
        tree: Tree | None = None,
        search_options: Mapping[str, Any] | None = None,
        tools: Sequence[Tool] = (),
        permit: Any = None,
        order: Order | None = None,
        propose: Propose | None = None,
        board: Blackboard | bool | None = None,
        lease_s: float = LEASE_S,
        synchronous: str = "NORMAL",
    ) -> None:
        self.domain = domain or Domain()
        for each in (self.domain, *older):
            each.check()
        self.order, self.propose = order, propose
        self._board: Blackboard | None = None if isinstance(board, bool) else board
        with ExitStack() as self._opened:  # closed at once when a later part cannot be opened
            store = None if is_postgres(place) else self._store(place, synchronous)
            runs = store or self._on_postgres(str(place), RUNS, lock_s=lease_s)
            self.journal = SqlJournal(runs, lease_s=lease_s)
            if self._board is None and board is not False:
                from metatree.blackboard import Blackboard

                self._board = Blackboard(
                    store or self._on_postgres(str(place), BOARDS, patience_s=PATIENCE_S)
                )
            calls = self._calls(place, store, tree)
            self.world = World(self.domain, tree, dict(search_options or {}), tuple(tools), calls, permit)
            self._older = {
                each.library.version: replace(self.world, domain=each)
                for each in older
                if each.library.version != self.domain.library.version
            }
            self._schedules = Schedules(self.journal, MACHINE)
            self._opened = self._opened.pop_all()

    def _store(self, place: str | Path | Store, synchronous: str) -> Store:
        if isinstance(place, Store):
            return place
        if synchronous not in ("NORMAL", "FULL"):
            raise UserError(f"synchronous={synchronous!r}: use 'NORMAL' or 'FULL'")
        store = Store.open(place, synchronous=synchronous)  # type: ignore[arg-type]  # checked above
        self._opened.callback(store.close)
        return store

    def _calls(self, place: str | Path | Store, store: Store | None, tree: Tree | None) -> CallLog | None:
        """Return where tool calls are recorded: with the agents, where all processes that drive them look."""
        from metatree.tools.call_log import CallLog

        if tree is not None and tree.shared is not None:
            return tree.shared.calls
        if store is None:
            return CallLog(self._on_postgres(str(place), RUNS, patience_s=PATIENCE_S))
        return CallLog(store if tree is None else tree.memory)

    def _on_postgres(self, address: str, schema: str, **options: float) -> Database:
        """Return a connection that is closed with the agents."""
        from metatree.storage.postgres_store import PostgresStore

        store = PostgresStore(address, schema=schema, **options)
        self._opened.callback(store.close)
        return store

    def close(self) -> None:
        """Close what was opened here."""
        self._opened.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def board(self) -> Blackboard | None:
        """The blackboard that agents write to."""
        return self._board

    # Beginning and events -----------------------------------------------------------------------------------------

    def start(
        self,
        goal: str | Sequence[Any],
        facts: Iterable[str | Sequence[Any]] = (),
        *,
        id: str | None = None,  # noqa: A002  # what it is called everywhere else
        options: AgentOptions | None = None,
        network: Sequence[Intent] = (),
        **settings: Any,
    ) -> str:
        """Create an agent for a top-level goal and return its id; `run` or a worker drives it.

        Args:
            goal: `name(value, …)`, or name and arguments.
            facts: what holds at first: `at(home)`, or relation and arguments.
            id: a name for it; an event that comes twice creates one agent.
            options: see `AgentOptions`; `settings` are its fields.
            network: intents, for an agent that is planned already.

        Raises:
            UserError: nothing reaches the goal, a fact does not fit, or there is an agent of this id.
        """
        top_goal = goal_of(goal)
        library = self.domain.library
        if (why := library.why_unreached(top_goal)) and self.propose is None and not network:
            raise UserError(why)
        listed = self._facts_given(facts)
        chosen = options_of(settings) if options is None else options
        if not isinstance(chosen, AgentOptions):
            raise UserError(f"options={shown(chosen)}: give AgentOptions")
        if id is not None and not (isinstance(id, str) and id.isprintable() and len(id) <= _LONGEST_ID):
            raise UserError(
                f"id={shown(id)}: give a text of {_LONGEST_ID} characters at most, all of them visible"
            )
        agent = id or uuid.uuid4().hex[:12]
        given = {
            "goal": list(top_goal),
            "facts": listed,
            "library": library_data(library),
            "options": chosen.to_json(),
            "network": [one.to_json() for one in network],
            "id": agent,
        }
        if not begin_agent(self.journal, agent, given):
            raise AgentExists(agent)
        return agent

    def _facts_given(self, facts: Iterable[str | Sequence[Any]]) -> list[list[Any]]:
        """Return facts of the domain; raises UserError where one is none."""
        library = self.domain.library
        listed = facts_given(facts)
        for name, *terms in listed:
            relation = library.relations.get(name)
            if relation is None or relation.arity != len(terms) or relation.definition is not None:
                raise UserError(
                    f"{shown(atom_text([name, *terms]))} is no fact of the domain {library.name!r}"
                )
        return listed

    def schedule(
        self,
        name: str,
        cron: str,
        goal: str | Sequence[Any],
        facts: Iterable[str | Sequence[Any]] = (),
        *,
        zone: str = "UTC",
        missed: Literal["last", "all", "none"] = "last",
        overlap: Literal["skip", "start"] = "skip",
        **settings: Any,
    ) -> CronSchedule:
        """Begin an agent for a goal again and again; whoever drives the agents of this store does so.

        Args:
            name: the agents are called `NAME@2026-12-01T06:30Z`; a schedule of this name is replaced.
            cron: minute, hour, day of the month, month, day of the week: `30 6 * * 1-5`.
            zone: the time zone that these are in, such as `Europe/Berlin`. A time that is left out when clocks go
                forward comes right after; one that happens twice when they go back comes once.
            missed: which agents are begun for times at which no process was at work.
            overlap: whether one is begun while the one before it has not ended.
            settings: fields of `AgentOptions`.

        Raises:
            UserError: the expression, the zone or the goal is none.
            MissingExtra: cronsim is not installed.
        """
        if not isinstance(name, str) or not re.fullmatch(r"[\w.-]{1,100}", name):
            raise UserError(
                f"a schedule cannot be called {shown(name)}: use letters, digits, `-`, `_` and `.`"
            )
        for what, text in (("cron", cron), ("zone", zone)):
            if not isinstance(text, str):
                raise UserError(f"{what}={shown(text)}: give a text")
        top_goal = goal_of(goal)
        library = self.domain.library
        if why := library.why_unreached(top_goal):
            raise UserError(why)
        made = CronSchedule(
            name,
            cron,
            zone,
            top_goal,
            tuple(tuple(fact) for fact in self._facts_given(facts)),
            options_of(settings).to_json(),
            library.name,
            library_data(library),
            missed,
            overlap,
        )
        made = replace(made, next_at=made.after(time.time()))
        if made.next_at is None:
            raise UserError(f"{cron!r} never comes")
        self._schedules.put(made)
        return made

    def schedules(self) -> list[CronSchedule]:
        """Return the schedules by name."""
        return self._schedules.all()

    def unschedule(self, name: str) -> None:
        """Forget a schedule; the agents that it has begun go on. Raises UserError when there is none."""
        if not self._schedules.remove(name):
            known = ", ".join(one.name for one in self.schedules()) or "none"
            raise UserError(f"no schedule is called {name!r} (known: {known})")

    def begin_due(self) -> list[str]:
        """Begin the agents whose times have come; return their ids. Workers do this by themselves."""
        return self._schedules.fire(self._begin_scheduled, time.time())

    def _begin_scheduled(self, agent: str, schedule: CronSchedule) -> bool:
        library = self.domain.library
        own = library.name == schedule.domain and bool(library.for_goal(str(schedule.goal[0])))
        stored = library_data(library) if own else dict(schedule.library)
        given = {
            "goal": list(schedule.goal),
            "facts": [list(fact) for fact in schedule.facts],
            "library": stored,
            "options": dict(schedule.options),
            "network": [],
            "id": agent,
        }
        if not own and missing_functions(library_from(stored), self.world):
            return False
        begin_agent(self.journal, agent, given)
        return True

    def event(self, agent: str, name: str, /, **value: Any) -> None:
        """Tell an agent of an event; see `events` for their names and values.

        Raises:
            UnknownRun: there is no such agent.
            UserError: it has ended, or could not heed the event.
        """
        if isinstance(value.get("goal"), str | list | tuple):
            value["goal"] = list(goal_of(value["goal"]))
        state = self._state(agent)[0]
        if state.ended is not None:
            raise UserError(f"agent {agent!r} has ended ({state.ended}): it hears no more events")
        check_signal(state, name, value)
        self.journal.post(agent, name, value)

    def send(self, agent: str, name: str, value: Any = None) -> None:
        """Send an agent a message, for a task that waits for one of this name; one that nobody waits for yet is kept.

        Args:
            value: JSON; the result of the task.

        Raises:
            UnknownRun: there is no such agent.
            UserError: it has ended, or the value is no JSON.
        """
        self.event(agent, "send", name=name, value=value)

    def cancel(self, agent: str) -> None:
        """Cancel an agent; raises as `event` does.

        Nothing more is begun, bodies and children at work are cancelled, and what it did is undone, the last first.
        """
        self.event(agent, "cancel", goal=None)

    def retry(self, agent: str) -> None:
        """Let an agent that has failed go on: what failed is done again, what is complete is kept.

        Raises:
            UnknownRun: there is no such agent.
            UserError: it has not failed, or what it did was undone.
            LeaseLost: another process is at work on it.
        """
        state = self._state(agent)[0]
        if state.ended is None:
            raise UserError(f"agent {agent!r} has not ended: there is nothing to try again")
        if why := why_not_again(state):
            raise UserError(f"agent {agent!r} cannot be tried again: {why}")
        token, _ = take_up(PlannerMachine(), self.journal, agent, ("retry", {}), released_as=state.ended)
        self.journal.release(agent, token, None)

    def answer(self, question: str, text: str) -> str:
        """Answer a question of an agent, by the question's id or its beginning; return the agent.

        Raises:
            UserError: there is no board.
            UnknownItem: there is no such question.
        """
        for what, said in (("question", question), ("text", text)):
            if not isinstance(said, str):
                raise UserError(f"{what}={shown(said)}: give a text")
        if self._board is None:
            raise UserError("these agents have no board: answer where they ask")
        item = self._board.answer(question, text)
        self._pass_on(item.run, item.id, text)
        return item.run

    def _pass_on(self, agent: str, question: str, text: str) -> None:
        self.journal.post(agent, "answer", {"effect": int(question.rpartition(":q")[2]), "answer": text})

    # Driving ------------------------------------------------------------------------------------------------------

    def run(self, agent: str, *, on_step: OnStep | None = None) -> AgentInfo:
        """Drive an agent until it ends or waits, and return what it has come to; works inside a running loop too.

        Raises:
            UnknownRun: there is no such agent.
            LeaseLost: another process is at work on it.
            UserError: this process lacks functions that its tasks need.
        """
        return run_apart(lambda: self.arun(agent, on_step=on_step))

    async def arun(self, agent: str, *, on_step: OnStep | None = None) -> AgentInfo:
        """Do what `run` does, on this loop."""
        await self.adrive(agent, on_step)
        # Children, and times that come: they belong to what was asked for.
        while self.journal.is_waiting(agent, MACHINE) and self._goes_on(agent):
            await self._work(agent, until_idle=True, on_step=on_step)
            wakes_s = self.journal.wakes_in(MACHINE, agent)
            if wakes_s is None:
                break
            await asyncio.sleep(min(max(wakes_s, 0.0), _LOOK_S))
        return self.show(agent)

    def _goes_on(self, agent: str) -> bool:
        """Say whether an agent, or a child of it, waits for nothing but a time or what can be driven here."""
        state = self._state(agent)[0]
        if state.ended is not None or any(purpose == "timer" for purpose, _ in state.issued.values()):
            return state.ended is None
        return bool(self.journal.claimable(MACHINE, family=agent)) or any(
            self._goes_on(child) for child in state.children.values()
        )

    async def adrive(self, agent: str, on_step: OnStep | None = None) -> None:
        """Do what `arun` does, without looking at what came of it."""
        machine = PlannerMachine()
        replayed = replay(machine, self._records(agent))
        if replayed.state.ended is not None and not self.journal.is_waiting(agent, MACHINE):
            return
        world, moves = self._world_for(agent, replayed.state)
        token, replayed = take_up(machine, self.journal, agent, *moves, released_as=None)
        try:
            link = None if self._board is None else AgentOnBoard(self._board, agent)
            ended = replayed.state.ended
            if ended is not None:  # its process died between its last step and letting go of it
                if link is not None:
                    link.finish(replayed.state)
                self._tell_parent(replayed.state)
                self.journal.release(agent, token, ended)
                return
            answers = link.answers(replayed.pending.values()) if link is not None else {}
        except BaseException:
            with suppress(Exception):
                self.journal.release(agent, token, None)
            raise
        driving = Driving(
            agent, world, replayed.state.library, self.order, self.propose, replayed.began, self.journal
        )

        def stepped(state: AgentState) -> None:
            driving.call_off(state)
            if state.ended is not None:
                self._tell_parent(state)
            if link is not None:
                link.write(state)
            if on_step is not None:
                on_step(agent, state)

        if link is not None:
            link.write(replayed.state)
        runner = Runner(
            machine,
            self.journal,
            agent,
            token,
            handlers=driving.handlers,
            policies=driving.policies,
            concurrency=replayed.state.options.concurrency,
            on_step=stepped,
        )
        try:
            finish = await runner.drive(replayed, answers=answers)
        except asyncio.CancelledError:
            with suppress(Exception):  # taken up again by whoever comes next
                self.journal.reopen(agent)
            raise
        if link is not None:
            link.finish(finish.state)

    def _world_for(self, agent: str, state: AgentState) -> tuple[World, tuple[tuple[str, Any], ...]]:
        """Return what drives an agent, and what it is told first, by the version of its library.

        Raises:
            UserError: this process has not what it needs.
        """
        library, own = state.library, self.domain.library
        world, moves = self.world, ()
        if library.version != own.version and library.version in self._older:
            world = self._older[library.version]
        elif library.version != own.version and library.version in self.domain.takes_over:
            if why := why_not_with(state, own):
                raise UserError(
                    f"agent {agent!r} cannot move from version {library.version!r} of its library to {own.version!r}:"
                    f" {why}; drive it with the version that it began with"
                )
            return world, (("library", library_data(own)),)
        missing = missing_functions(library, world)
        if not missing and library.version != world.domain.library.version and needs_functions(library):
            missing = [f"version {library.version!r} of {library.name!r}"]
        if missing:
            raise UserError(
                f"agent {agent!r} needs functions that this process does not have: {', '.join(missing)}; drive it"
                " with the domain that they are in"
            )
        return world, moves

    def _tell_parent(self, state: AgentState) -> None:
        """Tell the agent that waits for this one what came of it; again when a process dies in between."""
        if state.parent is None:
            return
        parent, intent = state.parent
        top = state.network.get(TOP)
        value = {
            "id": state.id,
            "intent": intent,
            "ended": state.ended,
            "detail": state.detail,
            "result": None if top is None else top.result,
        }
        with suppress(UnknownRun):
            self.journal.post(parent, "child", value)

    def work(
        self,
        *,
        until_idle: bool = False,
        at_once: int = 8,
        poll_s: float = 0.5,
        stop: Callable[[], bool] | None = None,
        on_step: OnStep | None = None,
    ) -> None:
        """Drive agents that nobody drives, also those of processes that died, as they come.

        Args:
            until_idle: return when none is left that could go on now; those that wait for a time are left.
            at_once: how many agents are driven at the same time.
            poll_s: how often the store is looked at.
            stop: asked each time; True ends the work once what is in flight is settled.
        """
        run_apart(
            lambda: self.awork(
                until_idle=until_idle, at_once=at_once, poll_s=poll_s, stop=stop, on_step=on_step
            )
        )

    async def awork(
        self,
        *,
        until_idle: bool = False,
        at_once: int = 8,
        poll_s: float = 0.5,
        stop: Callable[[], bool] | None = None,
        on_step: OnStep | None = None,
    ) -> None:
        """Do what `work` does, on this loop."""
        await self._work(
            None, until_idle=until_idle, at_once=at_once, poll_s=poll_s, stop=stop, on_step=on_step
        )

    async def _work(
        self,
        family: str | None,
        *,
        until_idle: bool = False,
        at_once: int = 8,
        poll_s: float = 0.5,
        stop: Callable[[], bool] | None = None,
        on_step: OnStep | None = None,
    ) -> None:
        """Drive agents as they come, all of them or one with its children."""
        loop = _Loop()
        try:
            while stop is None or not stop():
                loop.board_version = self.pass_answers_on(loop.board_version)
                if family is None:
                    self.begin_due()
                free = at_once - len(loop.running)
                claimed = self._claimable(loop, free, family) if free > 0 else []
                for agent in claimed:
                    loop.running[agent] = asyncio.create_task(self._driven(loop, agent, on_step))
                if loop.running:
                    await asyncio.wait(
                        loop.running.values(), timeout=poll_s, return_when=asyncio.FIRST_COMPLETED
                    )
                    loop.running = {key: task for key, task in loop.running.items() if not task.done()}
                elif until_idle and not claimed:
                    return
                elif not claimed:
                    await asyncio.sleep(poll_s)
        finally:
            for task in loop.running.values():
                task.cancel()
            await asyncio.gather(*loop.running.values(), return_exceptions=True)

    def _claimable(self, loop: _Loop, count: int, family: str | None) -> list[str]:
        most = count + len(loop.running) + len(loop.skipped)
        listed = self.journal.claimable(MACHINE, limit=most, family=family)
        return [one for one in listed if one not in loop.running and one not in loop.skipped][:count]

    async def _driven(self, loop: _Loop, agent: str, on_step: OnStep | None) -> None:
        try:
            await self.adrive(agent, on_step)
        except LeaseLost:
            _log.info("agent %s is driven by another process", agent)
        except TransientError as exc:
            _log.warning("agent %s could not be driven, it is tried again: %s", agent, exc)
        except UserError as exc:
            _log.warning("agent %s cannot be driven here: %s", agent, exc)
            loop.skipped[agent] = str(exc)
        except Exception:
            _log.exception("agent %s could not be driven", agent)
            loop.skipped[agent] = "failed"

    def pass_answers_on(self, since: int = 0) -> int:
        """Pass the answers on to agents that somebody wrote on the board; return the version that it has now.

        Args:
            since: the version up to which it was done before.
        """
        if self._board is None or (version := self._board.version) == since:
            return since
        for item in self._board.changes(since, sections="questions"):
            version = max(version, item.changed)
            answer = None if item.removed else item.get_value("answer")
            # And it is no item that says so of another agent.
            asked = item.id.removeprefix(f"{item.run}:q")
            if answer is not None and asked.isdecimal() and self.journal.is_waiting(item.run, MACHINE):
                self._pass_on(item.run, item.id, str(answer))
        return version

    # Looking ------------------------------------------------------------------------------------------------------

    def _state(self, agent: str) -> tuple[AgentState, list[Record]]:
        records = self._records(agent)
        return replay(PlannerMachine(), records).state, records

    def _records(self, agent: str) -> list[Record]:
        try:
            return self.journal.read(agent)
        except UnknownRun:
            raise UnknownAgent(agent) from None

    def all(self) -> Iterator[tuple[str, tuple[Any, ...], str, float]]:
        """Yield id, goal, status and time of the last change of every agent, the last changed first."""
        for info in self.journal.runs():
            if info.machine == MACHINE:
                began = info.ended or ("running" if info.updated_at > info.began_at else "pending")
                yield info.run_id, tuple(info.given["goal"]), began, info.updated_at

    def show(self, agent: str) -> AgentInfo:
        """Return an agent as its journal tells it. Raises UnknownRun."""
        state, records = self._state(agent)
        waits = list(state.open_questions().values())
        stopped = records[-1].kind == "stop" and records[-1].body["ended"]
        status = state.ended or (
            "waiting" if stopped == "waiting" else "running" if len(records) > 1 else "pending"
        )
        facts = sorted(((name, *row) for name, rows in state.facts.items() for row in rows), key=repr)
        top = state.network.get(1)
        return AgentInfo(
            agent,
            state.goal,
            status,
            state.detail,
            tuple(sorted(state.network.values(), key=lambda one: one.id)),
            tuple(facts),
            tuple(waits),
            tuple(state.trace),
            state.considered,
            self.journal.refused(agent),
            None if top is None else top.result,
            waits_of(state),
            state.library.version,
            "" if state.parent is None else state.parent[0],
            tuple(state.children.values()),
        )

    def explain(self, agent: str) -> list[Mapping[str, Any]]:
        """Return, for every goal, what planning thought of its candidates, and why. Raises UnknownRun."""
        state = self._state(agent)[0]
        return [entry for _, listed in sorted(state.considered.items()) for entry in listed]
