"""A PostgreSQL server of Debian's, as an unprivileged user, in a folder of its own, on a socket there."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PLACES = "usr/lib/postgresql/*/bin/initdb"
USER = "owner"
_UNPRIVILEGED = "nobody"


@dataclass(frozen=True)
class Server:
    """A running server; its socket lies in `folder`."""

    folder: Path

    def address(self, database: str = "postgres", user: str = USER) -> str:
        """Return where a database is."""
        return f"postgresql://{user}@/{database}?host={self.folder}"


@contextmanager
def serving() -> Iterator[Server]:
    """Start a server and stop it in the end."""
    programs = sorted(Path("/").glob(PLACES))
    if not programs:
        raise RuntimeError("there is no PostgreSQL: run `make test-real`")
    bin_ = programs[-1].parent
    # Debian's folders of tests are closed to the user that the server runs as, and names of sockets must be short.
    folder = Path(tempfile.mkdtemp(prefix="mt-pg-", dir="/tmp"))
    as_user: dict[str, Any] = {}
    if os.getuid() == 0:
        shutil.chown(folder, _UNPRIVILEGED)
        as_user = {"user": _UNPRIVILEGED, "extra_groups": []}
    data = folder / "data"
    log = folder / "log"
    server: subprocess.Popen[bytes] | None = None
    try:
        command = f"{bin_}/initdb -D {data} -U {USER} -A trust -E UTF8 --locale=C.UTF-8 -N"
        subprocess.run(command.split(), check=True, capture_output=True, cwd=folder, **as_user)
        settings = ["-c", "listen_addresses=", "-c", "fsync=off", "-c", "max_connections=20"]
        with log.open("wb") as stream:
            server = subprocess.Popen(
                [bin_ / "postgres", "-D", data, "-k", folder, *settings],
                stdout=stream,
                stderr=subprocess.STDOUT,
                cwd=folder,
                **as_user,
            )
        ready = f"{bin_}/pg_isready -h {folder} -U {USER} -t 1".split()
        for _ in range(100):
            if server.poll() is not None:
                raise RuntimeError(f"the server ended: {log.read_text()[-2000:]}")
            if subprocess.run(ready, capture_output=True, check=False).returncode == 0:
                break
            # pg_isready answers at once while there is no socket yet.
            signal.sigtimedwait([], 0.1)
        yield Server(folder)
    finally:
        if server is not None:
            server.send_signal(signal.SIGINT)  # a fast shutdown
            server.wait(30)
        shutil.rmtree(folder, ignore_errors=True)
