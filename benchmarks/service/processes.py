"""Servers of the service as processes, each of which a measurement may stop, kill and ask what it used."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from benchmarks.service.caller import Caller, plain

ROOT = Path(__file__).parents[2]


class ServerProcess:
    """One process of the service on one database; `port` is where it listens, soon where it was given."""

    def __init__(
        self, database: str, settings: Mapping[str, float], *, port: int = 0, tree: Path | None = None
    ) -> None:
        given = [f"{name}={value}" for name, value in settings.items()]
        given += [f"tree={tree}"] if tree is not None else []
        self.process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.service.server", database, str(port), *given],
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        self.port = port or self._told(database)

    def _told(self, database: str) -> int:
        """Return the port that the process says when it listens."""
        assert self.process.stdout is not None
        said = self.process.stdout.readline()
        if not said:
            raise RuntimeError(
                f"the server on {database} ended with {self.process.wait()} before it listened"
            )
        return int(said)

    def cpu_s(self) -> float:
        """Return the seconds of processor time that the process has used, of its own and of the system for it."""
        caller = Caller(self.port, "frontend")
        _, used = caller.exchange(plain("GET", "/bench/usage"))
        caller.close()
        return float(used)

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """End the process and wait until it has ended."""
        if self.process.poll() is None:
            self.process.send_signal(how)
            if how != signal.SIGKILL:
                self.process.send_signal(signal.SIGCONT)
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


@contextmanager
def servers(database: str, settings: Mapping[str, float], number: int = 1) -> Iterator[list[ServerProcess]]:
    """Run some servers on one database, and end them."""
    running: list[ServerProcess] = []
    try:
        for _ in range(number):
            running.append(ServerProcess(database, settings))
        yield running
    finally:
        for server in running:
            server.stop()


def many_files() -> None:
    """Let this process and those that it starts open as many files as they may."""
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
