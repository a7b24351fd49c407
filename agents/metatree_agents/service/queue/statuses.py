"""How far a query is, as people and programs are shown it.

A query is `Pending` in its row until an engine calls after the lease of its topic has ended; whoever looks before that
is shown it as what it is by then: open. One that has no attempts left fails when an engine calls.

Lost: a process that writes the end of a lease; who looks at the database alone, as `metatree service queue status`,
would still see the old status.
"""

from __future__ import annotations

from typing import Final

UNSETTLED: Final = ("Open", "Pending", "Waiting")
"""The statuses of queries that may still be answered by themselves; the others are `Done`, `Failed` and `Stopped`."""
SAID: Final = {
    "Open": "waiting for an engine",
    "Pending": "being answered",
    "Waiting": "waiting for a person",
    "Done": "answered",
    "Failed": "failed",
    "Stopped": "stopped",
}
"""What people read of each status."""
RUNS: Final = {
    "answered": ("answered", "done"),
    "exhausted": ("not answered", "unanswered"),
    "limit": ("not answered: it reached a limit", "unanswered"),
    "cancelled": ("stopped", "unanswered"),
    "waiting": ("waiting for a person", "busy"),
    "failed": ("failed", "failed"),
    "unfinished": ("not finished", "busy"),
}
"""What people read of how a run ended, and how it looks."""
LISTED: Final = "query.status IN ('Open', 'Pending', 'Failed', 'Waiting')"
"""What every statement says that looks for queries by such a status among all: SQLite uses an index of some rows only
for a condition that is written as the index has it, and reads all queries otherwise."""
ENDED: Final = "query.status = 'Pending' AND topic.lease_until <= ?"
"""Whether a query joined with its topic is shown as open although its row says otherwise; the value is the time."""
SHOWN: Final = f"CASE WHEN {ENDED} THEN 'Open' ELSE query.status END"
"""The status of a query joined with its topic; the value is the time."""
