"""Which servers are at work on a database, and where: each keeps a row while it runs, for commands that name it."""

from __future__ import annotations

import asyncio
import secrets
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final
from urllib.parse import urlsplit

from metatree.errors import MetatreeError
from metatree_agents.service.database.database import ServiceDatabase

BEAT_S: Final = 20.0
GONE_S: Final = 60.0
"""After how long without a word of it a server is not at work any more."""


async def servers_of(database: ServiceDatabase) -> list[tuple[str, str]]:
    """Return (address, machine) of each server that is at work, those of this machine first, the latest first."""
    rows = await database.rows(
        "SELECT address, machine FROM service_server WHERE seen_at > ? ORDER BY started_at DESC, id",
        database.clock() - GONE_S,
    )
    here = machine_name()
    servers = [(address, machine) for address, machine in rows if machine != here or _answers(address)]
    return sorted(servers, key=lambda row: row[1] != here)


def _answers(address: str) -> bool:
    """Say whether anything listens at an address of this machine: a server that was killed leaves its row."""
    parts = urlsplit(address)
    try:
        with socket.create_connection((parts.hostname, parts.port), timeout=1.0):
            return True
    except OSError:
        return False


def machine_name() -> str:
    """Return what this machine is called."""
    return socket.gethostname()


@asynccontextmanager
async def announced(database: ServiceDatabase, address: str) -> AsyncIterator[None]:
    """Let it be known that a server is at work at this address, while the block runs."""
    mark, now = secrets.token_hex(8), database.clock()
    await database.execute("DELETE FROM service_server WHERE seen_at <= ?", now - GONE_S)
    await database.execute(
        "INSERT INTO service_server(id, address, machine, started_at, seen_at) VALUES (?, ?, ?, ?, ?)",
        *(mark, address, machine_name(), now, now),
    )

    async def beat() -> None:
        while True:
            await asyncio.sleep(BEAT_S)
            with suppress(MetatreeError):  # a database that is away for a moment
                await database.execute(
                    "UPDATE service_server SET seen_at = ? WHERE id = ?", database.clock(), mark
                )

    beating = asyncio.ensure_future(beat())
    try:
        yield
    finally:
        beating.cancel()
        await asyncio.gather(beating, return_exceptions=True)
        with suppress(MetatreeError):
            await database.execute("DELETE FROM service_server WHERE id = ?", mark)
