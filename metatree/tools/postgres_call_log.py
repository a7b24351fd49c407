"""Tool calls that were made, in a PostgreSQL database: what one machine has called, another does not call again."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any, Final

from metatree._util.process import is_dead, this_process
from metatree.storage.postgres import NOW, PostgresConnection
from metatree.tools.call_log import (
    GRACE_S,
    POLL_S,
    Call,
    Known,
    Made,
    RecordedTool,
    judged,
    result_json,
    too_long,
)

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS metatree_call(
    hash TEXT PRIMARY KEY,
    tool TEXT NOT NULL,
    version TEXT NOT NULL,
    arguments TEXT NOT NULL,
    key TEXT NOT NULL,
    run_id TEXT NOT NULL,
    owner TEXT,
    expires_at DOUBLE PRECISION NOT NULL,
    at DOUBLE PRECISION NOT NULL,
    until DOUBLE PRECISION,
    result TEXT
)
"""
_TAKE: Final = f"""
INSERT INTO metatree_call(hash, tool, version, arguments, key, run_id, owner, expires_at, at)
VALUES (%s, %s, %s, %s, %s, %s, %s, {NOW} + %s, {NOW})
"""
_ANEW: Final = """
 DO UPDATE SET key = excluded.key, run_id = excluded.run_id, owner = excluded.owner, expires_at = excluded.expires_at,
 at = excluded.at, until = NULL, result = NULL
"""
_POLL_MOST_S: Final = 1.0


class PostgresCalls:
    """Implements `metatree.tools.call_log.Calls` in a table of its own of a PostgreSQL database.

    The rules are those of `CallRecords`; leases run by the clock of the database.

    Args:
        address: `postgresql://…`.
        owner: a name for this process.
        space: the schema of the database that they are in; None for the default.
        patience_s: for how long a statement is tried again while the server cannot be reached.

    Raises:
        MissingExtra: psycopg is not installed.
        UserError: the database cannot be reached.
    """

    def __init__(
        self, address: str, *, owner: str | None = None, patience_s: float = 0.0, space: str | None = None
    ) -> None:
        self._database = PostgresConnection(
            address, schema=_SCHEMA, what="tool calls in PostgreSQL", patience_s=patience_s, space=space
        )
        self._owner = owner or this_process()

    def close(self) -> None:
        """Close the connection."""
        self._database.close()

    async def claim(
        self, call: Call, *, key: str, run_id: str, tool: RecordedTool, again: bool = False
    ) -> Made | None:
        deadline = time.monotonic() + tool.timeout_s + 2 * GRACE_S
        pause = POLL_S
        while True:
            verdict = self._claimed(call, key, run_id, tool, again)
            if verdict != "wait":
                return verdict if isinstance(verdict, Made) else None
            if time.monotonic() > deadline:
                raise too_long(call)
            await asyncio.sleep(pause)
            pause = min(pause * 1.2, _POLL_MOST_S)

    def _claimed(self, call: Call, key: str, run_id: str, tool: RecordedTool, again: bool) -> Made | str:
        database = self._database
        made = (call.hash, call.tool, call.version, call.arguments, key, run_id, self._owner)
        row = (*made, tool.timeout_s + GRACE_S)

        def work(repeated: bool) -> Made | str:
            if database.rows(f"{_TAKE} ON CONFLICT (hash) DO NOTHING RETURNING 1", row):
                return "take"
            with database.raw.transaction():
                found = database.rows(
                    f"SELECT result, key, until IS NULL OR until > {NOW}, owner, expires_at > {NOW}, at, run_id"
                    " FROM metatree_call WHERE hash = %s FOR UPDATE",
                    (call.hash,),
                )
                if found:
                    result, made_by, valid, owner, held, at, by = found[0]
                    if repeated and made_by == key and owner == self._owner and result is None:
                        return "take"  # by the attempt whose answer was lost
                    at_work = (
                        made_by != key and held and owner is not None and not is_dead(owner, shared=True)
                    )
                    known = Known(result, made_by, valid, at_work, at, by)
                    verdict = judged(known, key=key, tool=tool, again=again)
                    if verdict != "take":
                        return verdict
                    database.rows(f"{_TAKE} ON CONFLICT (hash) {_ANEW}", row)
                    return "take"
            return "wait"  # it was dropped between the two statements

        return database.run(work)

    def result_of(self, call: Call, *, key: str) -> Made | None:
        found = self._database.run(
            lambda _: self._database.rows(
                "SELECT result FROM metatree_call WHERE hash = %s AND key = %s AND result IS NOT NULL",
                (call.hash, key),
            )
        )
        return Made(json.loads(found[0][0]), False) if found else None

    def keep(self, call: Call, result: Any, *, key: str, tool: RecordedTool) -> None:
        text = result_json(result, tool)
        lasts_s = None if isinstance(tool.lifetime, str) else float(tool.lifetime)
        self._write(
            f"UPDATE metatree_call SET result = %s, until = {NOW} + %s, owner = NULL",
            call,
            key,
            text,
            lasts_s,
        )

    def doubt(self, call: Call, *, key: str) -> None:
        self._write("UPDATE metatree_call SET owner = NULL, expires_at = 0", call, key)

    def drop(self, call: Call, *, key: str) -> None:
        self._write("DELETE FROM metatree_call", call, key)

    def _write(self, sql: str, call: Call, key: str, *values: Any) -> None:
        """Change the record of a call that this process makes; one that somebody else has taken over stays theirs."""
        whose = f"{sql} WHERE hash = %s AND key = %s AND owner = %s AND result IS NULL"
        self._database.run(lambda _: self._database.rows(whose, (*values, call.hash, key, self._owner)))
