"""Agents on PostgreSQL, driven by workers of procrastinate on many machines: one job, and one lock, for each agent.

A job says that an agent should be driven now. What keeps two processes from driving it, and late writers out, is the
lease of its journal; procrastinate spreads the work and wakes workers at once. Each worker also looks for agents whose
process died or was stopped, and for jobs that such a process left behind.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from metatree._util.threads import run_beside
from metatree.durable.renewal import SHARE
from metatree.errors import LeaseLost, MissingExtra, TransientError, UserError
from metatree.storage.postgres_address import RUNS, address_of
from metatree_agents.planner.agents._machine import MACHINE
from metatree_agents.planner.agents.agents import LEASE_S, Agents

_log = logging.getLogger("metatree")

QUEUE: Final = "metatree-agents"
_TASK: Final = "metatree.drive_agent"


class PostgresWorker:
    """Drives the agents of a database as a worker of procrastinate.

    Args:
        address: `postgresql://…`, that of the agents.
        agents: what is driven, and with what.
        concurrency: how many agents at once.
        lease_s: that of the agents; how long a process may be silent before its agents go on elsewhere.

    Raises:
        MissingExtra: procrastinate is not installed.
    """

    def __init__(
        self, address: str, agents: Agents, *, concurrency: int = 8, lease_s: float = LEASE_S
    ) -> None:
        try:
            import procrastinate
        except ImportError as exc:
            raise MissingExtra("postgres", what="a worker for agents on PostgreSQL") from exc
        self._procrastinate = procrastinate
        self._agents = agents
        self._concurrency = concurrency
        self._lease_s = lease_s
        self._board_version = 0
        self.app = procrastinate.App(
            connector=procrastinate.PsycopgConnector(
                conninfo=address_of(address, schema=RUNS).conninfo, min_size=1, max_size=4
            )
        )
        self._drive = self.app.task(name=_TASK, queue=QUEUE)(self._driven)

    async def prepare(self) -> None:
        """Make the tables of procrastinate where they are missing; several processes may do so at once."""
        if not await self._has_tables():
            try:
                await self.app.schema_manager.apply_schema_async()
            except Exception:  # another process was faster
                if not await self._has_tables():
                    raise

    async def _has_tables(self) -> bool:
        query = "SELECT to_regclass('procrastinate_jobs') IS NOT NULL AS there"
        return bool((await self.app.connector.execute_query_one_async(query))["there"])

    async def defer(self, agent: str, *, begun: bool = False) -> None:
        """Ask for an agent to be driven; once, however often it is asked for before that.

        No lock of procrastinate keeps two jobs of one agent apart: the lease does, and the job of a worker that was
        killed would hold the lock for as long as a lease takes to run out.

        Args:
            begun: whether somebody has begun to drive it, so that it comes before those that nobody has.
        """
        with suppress(self._procrastinate.exceptions.AlreadyEnqueued):
            await self._drive.configure(queueing_lock=agent, priority=int(begun)).defer_async(agent=agent)

    async def _driven(self, agent: str) -> None:
        try:
            # Beside this loop: a body that blocks would hold up the signs of life of the whole worker, and others would
            # end its jobs.
            await run_beside(lambda: self._agents.adrive(agent))
        except LeaseLost:
            _log.info("agent %s is driven by another process", agent)
        except (UserError, TransientError) as exc:  # asked for again as long as nobody drives it
            _log.warning("agent %s cannot be driven here: %s", agent, exc)

    async def run(self, *, poll_s: float = 0.5, stop: Callable[[], bool] | None = None) -> None:
        """Work until `stop` says so, looking for agents that nobody drives every `poll_s` seconds."""
        async with self.app.open_async():
            await self.prepare()
            worker = self._worker(poll_s)
            try:
                while stop is None or not stop():
                    if worker.done():
                        _log.warning(
                            "the worker of procrastinate ended (%s): another begins", _failure(worker)
                        )
                        worker = self._worker(poll_s)
                    try:
                        await self._look_around()
                    except Exception as exc:  # the database may be back the next time
                        _log.warning(
                            "cannot look for agents: %s: %s", type(exc).__name__, exc.__cause__ or exc
                        )
                    await asyncio.sleep(poll_s)
            finally:
                worker.cancel()
                with suppress(asyncio.CancelledError, Exception):
                    await worker

    def _worker(self, poll_s: float) -> asyncio.Task[None]:
        return asyncio.create_task(
            self.app.run_worker_async(
                queues=[QUEUE],
                concurrency=self._concurrency,
                install_signal_handlers=False,
                delete_jobs="always",
                fetch_job_polling_interval=poll_s,
                update_heartbeat_interval=self._lease_s / SHARE,
                stalled_worker_timeout=self._lease_s,
            )
        )

    async def _look_around(self) -> None:
        """Pass answers on, ask for agents that somebody should take up, and free the locks of jobs of dead workers."""
        manager = self.app.job_manager
        for job in await manager.get_stalled_jobs(seconds_since_heartbeat=self._lease_s):
            if job.id is not None:
                # Not retried: it could not go back into the queue while another job for its agent waits there.
                with suppress(Exception):  # its worker has just ended it, or another process was faster
                    await manager.finish_job_by_id_async(
                        job_id=job.id, status=self._procrastinate.jobs.Status.FAILED, delete_job=True
                    )
        self._board_version = await asyncio.to_thread(self._agents.pass_answers_on, self._board_version)
        await asyncio.to_thread(self._agents.begin_due)
        claimable = self._agents.journal.claimable
        begun = await asyncio.to_thread(claimable, MACHINE, limit=1000, begun=True)
        for agent in begun:
            await self.defer(agent, begun=True)
        for agent in await asyncio.to_thread(claimable, MACHINE, limit=1000):
            if agent not in begun:
                await self.defer(agent)


def _failure(task: asyncio.Task[None]) -> str:
    error = None if task.cancelled() else task.exception()
    return "it was cancelled" if error is None else f"{type(error).__name__}: {error.__cause__ or error}"


def work(
    address: str,
    agents: Agents,
    *,
    concurrency: int = 8,
    lease_s: float = LEASE_S,
    poll_s: float = 0.5,
    stop: Callable[[], bool] | None = None,
) -> None:
    """Drive the agents of a database in this process until `stop` says so; see `PostgresWorker`."""

    async def main() -> Any:
        await PostgresWorker(address, agents, concurrency=concurrency, lease_s=lease_s).run(
            poll_s=poll_s, stop=stop
        )

    asyncio.run(main())
