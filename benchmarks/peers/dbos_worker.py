"""DBOS on the work of `durable_agents.py`; run by the Python of a virtual environment that has it.

usage: python dbos_worker.py ADDRESS LEDGER prepare|work EXECUTOR
       python dbos_worker.py ADDRESS LEDGER enqueue COUNT
"""

from __future__ import annotations

import os
import sys
import threading
import time

from dbos import DBOS, DBOSClient  # type: ignore[import-not-found, unused-ignore]

ADDRESS, LEDGER, DOING, WHAT = sys.argv[1:5]
STEPS = 10


@DBOS.step()  # type: ignore[misc, untyped-decorator, unused-ignore]
def write(agent: str, step: int) -> int:
    """Write a line."""
    file = os.open(LEDGER, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, f"{agent} {step} {os.getpid()} {time.time()!r}\n".encode())
    os.close(file)
    return step


@DBOS.workflow(name="ten")  # type: ignore[misc, untyped-decorator, unused-ignore]
def ten(agent: str) -> None:
    """Do ten steps in order."""
    for step in range(STEPS):
        write(agent, step)


if DOING == "enqueue":
    client = DBOSClient(system_database_url=ADDRESS)
    for number in range(int(WHAT)):
        client.enqueue(
            {"queue_name": "lines", "workflow_name": "ten", "workflow_id": f"a{number}", "app_version": "1"},
            f"a{number}",
        )
else:
    config = {
        "name": "lines",
        "system_database_url": ADDRESS,
        "executor_id": WHAT,
        "application_version": "1",
        "run_admin_server": False,
        "log_level": "WARNING",
    }
    DBOS(config=config)
    DBOS.launch()
    DBOS.register_queue("lines", worker_concurrency=8, polling_interval_sec=0.5)
    if DOING == "work":
        threading.Event().wait()
