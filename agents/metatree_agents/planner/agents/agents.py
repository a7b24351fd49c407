"""Durable agents: started, driven, taken over, looked into; all their state is in a store."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from metatree._util.threads import run_apart
from metatree.durable import Record, Runner, first_record, replay, take_up
from metatree.durable.sql_journal import SqlJournal
from metatree.errors import LeaseLost, TransientError, UserError
from metatree.shared import PATIENCE_S
from metatree.storage.database import Database
from metatree.storage.postgres_address import BOARDS, RUNS, is_postgres
from metatree.storage.store import Store
from metatree_agents.planner.agents._driver import Driving, Propose, missing_functions
from metatree_agents.planner.agents._events import check_signal
from metatree_agents.planner.agents._machine import MACHINE, PlannerMachine
from metatree_agents.planner.agents._on_blackboard import AgentOnBoard
from metatree_agents.planner.agents.bodies import World
from metatree_agents.planner.agents.state import AgentOptions, AgentState
from metatree_agents.planner.domain.conditions import atom_text
from metatree_agents.planner.domain.domain import Domain, goal_of
from metatree_agents.planner.domain.model import library_data
from metatree_agents.planner.domain.network import Intent
from metatree_agents.planner.planning.planning import Order

if TYPE_CHECKING:
    from metatree import Tree
    from metatree.blackboard import Blackboard
    from metatree.tools.call_log import CallLog
    from metatree.tools.tool import Tool

_log = logging.getLogger("metatree")

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


@dataclass
class _Loop:
    """What one worker loop knows."""

    running: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    board_version: int = 0


class Agents:
    """The agents in one store, and what they need to act.

    Any number of processes may work on the same store; each agent is driven by one of them at a time, under a lease
    that runs out when its process dies or is stopped, and every write carries a fencing token.

    Args:
        place: a SQLite file, made when it is not there; `postgresql://…`; a store; `:memory:`.
        domain: the functions of rules and tasks, and readers of dynamic relations.
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
        self.domain.check()
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
        facts: Iterable[Sequence[Any]] = (),
        *,
        id: str | None = None,  # noqa: A002  # what it is called everywhere else
        options: AgentOptions | None = None,
        network: Sequence[Intent] = (),
        **settings: Any,
    ) -> str:
        """Create an agent for a top-level goal and return its id; `run` or a worker drives it.

        Args:
            goal: `name(value, …)`, or name and arguments.
            facts: what holds at first: relation, then arguments.
            id: a name for it; an event that comes twice creates one agent.
            options: see `AgentOptions`; `settings` are its fields.
            network: intents, for an agent that is planned already.

        Raises:
            UserError: nothing reaches the goal, a fact does not fit, or there is an agent of this id.
        """
        top_goal = goal_of(goal)
        library = self.domain.library
        if not library.for_goal(top_goal[0]) and self.propose is None and not network:
            known = ", ".join(sorted({one.goal for one in library.actions.values()})) or "none"
            raise UserError(f"no rule and no task reaches the goal {top_goal[0]!r} (known goals: {known})")
        listed = [list(fact) for fact in facts]
        for name, *terms in listed:
            relation = library.relations.get(str(name))
            if relation is None or relation.arity != len(terms) or relation.definition is not None:
                raise UserError(f"{atom_text([name, *terms])} is no fact of the domain {library.name!r}")
        chosen = AgentOptions(**settings) if options is None else options
        given = {
            "goal": list(top_goal),
            "facts": listed,
            "library": library_data(library),
            "options": chosen.to_json(),
            "network": [one.to_json() for one in network],
        }
        agent = id or uuid.uuid4().hex[:12]
        token = self.journal.create(agent, MACHINE, first_record(PlannerMachine(), given, time.time()))
        self.journal.release(agent, token, None)
        return agent

    def event(self, agent: str, name: str, **value: Any) -> None:
        """Tell an agent of an event; see `events` for their names and values.

        Raises:
            UnknownRun: there is no such agent.
            UserError: it has ended, or could not heed the event.
        """
        if isinstance(value.get("goal"), str):
            value["goal"] = list(goal_of(value["goal"]))
        state = self._state(agent)[0]
        if state.ended is not None:
            raise UserError(f"agent {agent!r} has ended ({state.ended}): it hears no more events")
        check_signal(state, name, value)
        self.journal.post(agent, name, value)

    def cancel(self, agent: str) -> None:
        """Cancel an agent: nothing more is begun; bodies that run come to their end. Raises as `event` does."""
        self.event(agent, "cancel", goal=None)

    def answer(self, question: str, text: str) -> str:
        """Answer a question of an agent, by the question's id or its beginning; return the agent.

        Raises:
            UserError: there is no board.
            UnknownItem: there is no such question.
        """
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
        return self.show(agent)

    async def adrive(self, agent: str, on_step: OnStep | None = None) -> None:
        """Do what `arun` does, without looking at what came of it."""
        machine = PlannerMachine()
        replayed = replay(machine, self.journal.read(agent))
        if replayed.state.ended is not None and not self.journal.is_waiting(agent, MACHINE):
            return
        missing = missing_functions(replayed.state.library, self.world)
        if missing:
            raise UserError(
                f"agent {agent!r} needs functions that this process does not have: {', '.join(missing)}; drive it"
                " with the domain that they are in"
            )
        token, replayed = take_up(machine, self.journal, agent, released_as=None)
        try:
            link = None if self._board is None else AgentOnBoard(self._board, agent)
            ended = replayed.state.ended
            if ended is not None:  # its process died between its last step and letting go of it
                if link is not None:
                    link.finish(replayed.state)
                self.journal.release(agent, token, ended)
                return
            answers = link.answers(replayed.pending.values()) if link is not None else {}
        except BaseException:
            with suppress(Exception):
                self.journal.release(agent, token, None)
            raise
        driving = Driving(agent, self.world, replayed.state.library, self.order, self.propose, replayed.began)

        def stepped(state: AgentState) -> None:
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
            until_idle: return when none is left that could go on.
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
        loop = _Loop()
        try:
            while stop is None or not stop():
                loop.board_version = self.pass_answers_on(loop.board_version)
                free = at_once - len(loop.running)
                claimed = self._claimable(loop, free) if free > 0 else []
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

    def _claimable(self, loop: _Loop, count: int) -> list[str]:
        listed = self.journal.claimable(MACHINE, limit=count + len(loop.running) + len(loop.skipped))
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
            if answer is not None and ":q" in item.id and self.journal.is_waiting(item.run, MACHINE):
                self._pass_on(item.run, item.id, str(answer))
        return version

    # Looking ------------------------------------------------------------------------------------------------------

    def _state(self, agent: str) -> tuple[AgentState, list[Record]]:
        records = self.journal.read(agent)
        return replay(PlannerMachine(), records).state, records

    def all(self) -> Iterator[tuple[str, tuple[Any, ...], str, float]]:
        """Yield id, goal, status and time of the last change of every agent, the last changed first."""
        for info in self.journal.runs():
            if info.machine == MACHINE:
                began = info.ended or ("running" if info.updated_at > info.began_at else "pending")
                yield info.run_id, tuple(info.given["goal"]), began, info.updated_at

    def show(self, agent: str) -> AgentInfo:
        """Return an agent as its journal tells it. Raises UnknownRun."""
        state, records = self._state(agent)
        waits = [text for key, text in state.questions.items() if key in state.issued]
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
        )

    def explain(self, agent: str) -> list[Mapping[str, Any]]:
        """Return, for every goal, what planning thought of its candidates, and why. Raises UnknownRun."""
        state = self._state(agent)[0]
        return [entry for _, listed in sorted(state.considered.items()) for entry in listed]
