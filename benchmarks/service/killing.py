"""Kill and stop servers and engines at random while others ask, and check that nothing was lost or done twice."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.service.databases import opened
from benchmarks.service.processes import ROOT, ServerProcess

LEASE_S = 2.0
SETTINGS = {"lease_s": LEASE_S, "attempts": 1_000_000.0, "claim_timeout_s": 1.0, "answer_timeout_s": 0.0}
"""No query may fail here, however often its engines are killed."""
CLOCKS_S = 1.0
"""By how much the times of several servers may differ: each estimates the clock of PostgreSQL by itself."""
LINES_BYTES = 160
"""Size of the lines that an engine writes for an answer, about."""


@dataclass
class Outcome:
    """What came of a run; all of `WRONG` must be 0."""

    jobs: int
    seconds: float = 0.0
    counts: Counter[str] = field(default_factory=Counter)

    WRONG = (
        "lost",
        "unanswered",
        "answered twice",
        "taken and not kept",
        "gaps in Seq",
        "answered out of order",
        "claimed out of order",
        "proofs accepted twice",
    )
    SHOWN = ("server killed", "server stopped", "engine killed", "engine stopped", "proofs used twice")
    BESIDES = ("answers refused", "asked again")

    def wrong(self) -> dict[str, int]:
        """Return what must not be, where it was."""
        return {name: self.counts[name] for name in self.WRONG if self.counts[name]}

    def table(self) -> str:
        """Return all counts as lines."""
        names = (*self.SHOWN, *self.BESIDES, *self.WRONG)
        lines = [f"{self.jobs:,} jobs in {self.seconds:.0f} s"]
        return "\n".join(lines + [f"  {name:22} {self.counts[name]:,}" for name in names])


class Soak:
    """Servers, engines and askers on one database; the first two are disturbed."""

    def __init__(
        self, database: str, folder: Path, *, jobs: int, servers: int, engines: int, askers: int, seed: int
    ) -> None:
        self._database, self._folder = database, folder
        self._rng = random.Random(seed)
        self._seeds = itertools.count(seed * 1000)
        self.outcome = Outcome(jobs)
        self._stopped: list[tuple[float, subprocess.Popen[Any]]] = []
        """When each process that is stopped goes on."""
        self._servers = [ServerProcess(database, SETTINGS) for _ in range(servers)]
        self._ports = [str(server.port) for server in self._servers]
        self._engines = [self._engine(number) for number in range(engines)]
        shares = [jobs // askers + (number < jobs % askers) for number in range(askers)]
        self._askers = [
            self._run("soak_asker", f"asker-{number}", f"Asker_{number}", str(share))
            for number, share in enumerate(shares)
        ]

    def _run(self, module: str, log: str, *given: str) -> subprocess.Popen[bytes]:
        arguments = [str(self._folder / f"{log}.jsonl"), str(next(self._seeds)), *given, *self._ports]
        return subprocess.Popen([sys.executable, "-m", f"benchmarks.service.{module}", *arguments], cwd=ROOT)

    def _engine(self, number: int) -> subprocess.Popen[bytes]:
        return self._run("soak_engine", f"engine-{number}")

    def run(self, *, every: int, say: Callable[[str], None], limit_s: float) -> Outcome:
        """Disturb after every so many answers until all is asked and answered; then check.

        Ends before that when `limit_s` pass without an answer; what is missing is then counted.
        """
        began = last = shown = time.monotonic()
        given, next_ = 0, 0
        try:
            while not (self._asked() and not self._open()) and time.monotonic() - last < limit_s:
                time.sleep(0.05)
                self._go_on()
                if self._given() > given:
                    given, last = self._given(), time.monotonic()
                if given >= next_ and not self._asked():
                    self._disturb()
                    next_ = given + self._rng.randint(1, 2 * every)
                if time.monotonic() > shown + 10.0:
                    shown = time.monotonic()
                    say(f"{shown - began:6.0f} s: about {given:,} answers")
                if any(asker.poll() not in (None, 0) for asker in self._askers):
                    raise RuntimeError("an asker ended with an error")
            self.outcome.seconds = time.monotonic() - began
        finally:
            self.stop()
        asyncio.run(self._check())
        return self.outcome

    def _given(self) -> int:
        """Return about how many answers engines gave, without asking the database."""
        return sum(log.stat().st_size for log in self._folder.glob("engine-*")) // LINES_BYTES

    def _asked(self) -> bool:
        return all(asker.poll() == 0 for asker in self._askers)

    def stop(self) -> None:
        """End all processes."""
        for process in (*self._engines, *self._askers):
            process.kill()
            process.wait()
        for server in self._servers:
            server.stop(signal.SIGKILL)

    def _disturb(self) -> None:
        """Kill or stop one process."""
        rng, what, count = self._rng, self._rng.random(), self.outcome.counts
        server, engine = rng.randrange(len(self._servers)), rng.randrange(len(self._engines))
        if what < 0.25:
            self._servers[server].stop(signal.SIGKILL)
            self._servers[server] = ServerProcess(self._database, SETTINGS, port=int(self._ports[server]))
            count["server killed"] += 1
        elif what < 0.5:
            self._pause(self._servers[server].process, rng.uniform(0.02, 0.8))
            count["server stopped"] += 1
        elif what < 0.75:
            self._engines[engine].kill()
            self._engines[engine].wait()
            self._engines[engine] = self._engine(engine)
            count["engine killed"] += 1
        else:  # sometimes for longer than its lease
            self._pause(self._engines[engine], rng.uniform(0.1, 1.5) * LEASE_S)
            count["engine stopped"] += 1

    def _go_on(self) -> None:
        """Let those go on that have been stopped for long enough."""
        for until, process in self._stopped[:]:
            if until <= time.monotonic():
                process.send_signal(signal.SIGCONT)
                self._stopped.remove((until, process))

    def _pause(self, process: subprocess.Popen[Any], seconds: float) -> None:
        process.send_signal(signal.SIGSTOP)
        self._stopped.append((time.monotonic() + seconds, process))

    def _open(self) -> int:
        return int(asyncio.run(self._one("SELECT count(*) FROM query WHERE status <> 'Done'")))

    async def _one(self, sql: str) -> Any:
        database = opened(self._database)
        try:
            await database.start()
            async with database.transaction() as do:
                found = await do.row(sql)
            return found[0] if found else None
        finally:
            await database.close()

    async def _check(self) -> None:
        """Compare what is in the database with what askers and engines wrote down."""
        database = opened(self._database)
        await database.start()
        async with database.transaction() as do:
            rows = await do.rows(
                "SELECT topic, seq, text, status, answer, answered_at FROM query ORDER BY topic, seq"
            )
            last = dict(await do.rows("SELECT id, last_seq FROM topic"))
        await database.close()
        count = self.outcome.counts
        kept: dict[tuple[str, int], tuple[str, str | None]] = {}
        before: tuple[str, int, float] = ("", 0, 0.0)
        for topic, seq, text, status, answer, at in rows:
            number, since = (before[1] + 1, before[2]) if before[0] == topic else (1, 0.0)
            count["gaps in Seq"] += seq != number
            count["unanswered"] += status != "Done"
            count["answered out of order"] += at is not None and at < since - CLOCKS_S
            kept[topic, int(seq)] = (text, json.loads(answer)[1] if answer else None)
            before = (topic, int(seq), at or since)
        numbers = Counter(topic for topic, _ in kept)
        count["gaps in Seq"] += sum(numbers[topic] != seq for topic, seq in last.items())
        asked = 0
        taken: dict[tuple[str, int], set[str]] = {}
        when: dict[tuple[str, int], tuple[float, float]] = {}
        for said in self._logs():
            if "text" in said:
                asked += 1
                count["lost"] += kept.get((said["topic"], said["seq"]), ("",))[0] != said["text"]
            elif "twice" in said:
                count["proofs used twice"] += 1
                count["proofs accepted twice"] += said["twice"].count(200) > 1
            elif "claimed" in said:
                count["claimed out of order"] += said["seqs"] != sorted(said["seqs"])
            elif said["status"] == 200:
                place = said["topic"], said["seq"]
                taken.setdefault(place, set()).add(said["gave"])
                when[place] = said["began"], said["ended"]
            else:
                count["answers refused"] += 1
        count["lost"] += self.outcome.jobs - asked
        count["asked again"] = len(kept) - asked
        for (topic, seq), (began, _) in when.items():
            # An answer is taken at some moment between these two; one clock measures both.
            after = when.get((topic, seq + 1))
            count["answered out of order"] += after is not None and after[1] < began
        for place, marks in taken.items():
            count["answered twice"] += len(marks) > 1
            count["taken and not kept"] += kept[place][1] not in marks

    def _logs(self) -> list[dict[str, Any]]:
        found = []
        for path in sorted(self._folder.glob("*.jsonl")):
            for line in path.read_text().splitlines():
                with suppress(ValueError):  # the last line of one that was killed while it wrote
                    found.append(json.loads(line))
        return found
