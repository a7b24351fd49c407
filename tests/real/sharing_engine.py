"""An engine of `test_several_machines.py`, with tools that write down each call: what happens in the world.

usage: METATREE_SECRET=… python sharing_engine.py DATABASE SERVER USER LEDGER FOLDER
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from metatree_agents.service.engine.client import ServiceClient
from metatree_agents.service.engine.engine import Engine
from metatree_agents.service.replication.copies import TreeCopy
from metatree_agents.service.replication.sharing import shared_at

from metatree._util.process import this_process
from tests.real.sharing_worker import parts

LEASE_S = 2.0


async def work(database: str, server: str, user: str, ledger: Path, folder: Path) -> None:
    """Answer until this is killed."""
    thinking = parts(ledger, 0.3, kind="file")
    with shared_at(database, lease_s=LEASE_S) as shared:
        async with (
            ServiceClient(server, user, os.environ["METATREE_SECRET"]) as client,
            TreeCopy(client, folder, shared=shared, say=lambda said: print(said, flush=True)) as copy,
        ):
            print(f"at work as {this_process()};", flush=True)
            await Engine(client, copy, parts=lambda _: thinking, concurrency=2).run()


if __name__ == "__main__":
    database, server, user, ledger, folder = sys.argv[1:]
    asyncio.run(work(database, server, user, Path(ledger), Path(folder)))
