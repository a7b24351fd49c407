"""A PostgreSQL server of Debian's, as an unprivileged user, in a folder of its own, on a socket there."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PLACES = "usr/lib/postgresql/*/bin/initdb"
USER = "owner"
_UNPRIVILEGED = "nobody"


class Server:
    """A server in a folder of its own, in which its socket lies, too."""

    def __init__(self, folder: Path, *settings: str) -> None:
        programs = sorted(Path("/").glob(PLACES))
        if not programs:
            raise RuntimeError("there is no PostgreSQL: run `make test-real`")
        self.folder = folder
        self._bin = programs[-1].parent
        self._settings = [part for each in settings for part in ("-c", each)]
        self._as_user: dict[str, Any] = {}
        if os.getuid() == 0:
            shutil.chown(folder, _UNPRIVILEGED)
            self._as_user = {"user": _UNPRIVILEGED, "extra_groups": []}
        command = f"{self._bin}/initdb -D {folder}/data -U {USER} -A trust -E UTF8 --locale=C.UTF-8 -N"
        subprocess.run(command.split(), check=True, capture_output=True, cwd=folder, **self._as_user)
        self._process: subprocess.Popen[bytes] | None = None

    def address(self, database: str = "postgres", user: str = USER) -> str:
        """Return where a database is."""
        return f"postgresql://{user}@/{database}?host={self.folder}"

    def start(self) -> None:
        """Start it and wait until it answers."""
        log = self.folder / "log"
        with log.open("ab") as stream:
            self._process = process = subprocess.Popen(
                [self._bin / "postgres", "-D", self.folder / "data", "-k", self.folder, *self._settings],
                stdout=stream,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                **self._as_user,
            )
        ready = f"{self._bin}/pg_isready -h {self.folder} -U {USER} -t 1".split()
        for _ in range(100):
            if process.poll() is not None:
                raise RuntimeError(f"the server ended: {log.read_text()[-2000:]}")
            if subprocess.run(ready, capture_output=True, check=False).returncode == 0:
                return
            # pg_isready answers at once while there is no socket yet.
            signal.sigtimedwait([], 0.1)

    def stop(self) -> None:
        """Stop it: transactions that run are rolled back, connections are closed."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:  # it writes to a client whose machine is gone
                self._process.send_signal(signal.SIGQUIT)
                self._process.wait(30)
            self._process = None


@contextmanager
def serving(*settings: str) -> Iterator[Server]:
    """Start a server and stop it in the end.

    Args:
        settings: such as `max_connections=100`, beside those that make it quick.
    """
    # Debian's folders of tests are closed to the user that the server runs as, and names of sockets must be short.
    folder = Path(tempfile.mkdtemp(prefix="mt-pg-", dir="/tmp"))
    try:
        server = Server(folder, "listen_addresses=", "fsync=off", "max_connections=100", *settings)
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
