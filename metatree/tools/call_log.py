"""Tool calls that were made: found again by a hash of the tool and its arguments, so that none is made twice.

A call of a tool that changes something is also distinguished by what it is made for: a run, or an intent of an
agent. There it is made once, whatever is restarted, resumed or killed; another run makes it again.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Literal, Protocol

from metatree._util.process import is_dead, this_process
from metatree.durable import InDoubt
from metatree.errors import ToolFailed
from metatree.node import Node
from metatree.storage.database import Database

POLL_S = 0.05
_POLL_MOST_S = 1.0
"""How often a call that another process makes is asked for, at first, and at most seldom on a server."""
GRACE_S = 5.0
"""What a call may take beyond its tool's own time before another process takes it over."""


class RecordedTool(Protocol):
    """What must be known of a tool whose calls are recorded; `Tool` is one."""

    @property
    def id(self) -> str:
        """Tells it from the other tools."""
        ...

    @property
    def version(self) -> str:
        """Calls of another version are not reused."""
        ...

    @property
    def lifetime(self) -> str | float:
        """How long a result may be reused: `forever`, within one `run`, or for so many seconds."""
        ...

    @property
    def timeout_s(self) -> float:
        """How long a call may take."""
        ...

    @property
    def is_repeatable(self) -> bool:
        """Whether a call that was interrupted may be made again unasked."""
        ...

    @property
    def on_node(self) -> bool:
        """Whether the node that they work on, and its content, distinguish its calls."""
        ...


@dataclass(frozen=True, slots=True)
class Call:
    """One call, as its hash tells it from all others."""

    hash: str
    """sha256 of the canonical JSON of scope, tool id, version and arguments."""
    tool: str
    version: str
    arguments: str
    """Canonical JSON."""


def call_of(
    tool: RecordedTool, arguments: Mapping[str, Any], node: Node, *, scope: str = "", within: str = ""
) -> Call:
    """Return the call of a tool with validated arguments.

    A tool that works on a node counts the node's id and digest among its arguments, so that a changed node is
    called for again. Calls of different scopes (permissions) never meet.

    Args:
        within: the run or the intent that it is made for; it tells calls apart when the tool's results may be reused in
            one run only, as those of a tool that changes something. Lost for these: once for ever (three agents mail
            the same, one mail goes out, three say `sent`), and a key of the caller's (one that everybody has to think
            of).
    """
    if tool.lifetime == "run":
        scope = f"{scope}\0{within}"
    identity = dict(arguments)
    if tool.on_node:
        identity["node"] = [node.id, node.digest]
    canonical = json.dumps(identity, sort_keys=True, separators=(",", ":"))
    text = json.dumps([scope, tool.id, tool.version, canonical], ensure_ascii=False)
    return Call(
        hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest(), tool.id, tool.version, canonical
    )


@dataclass(frozen=True, slots=True)
class CallResult:
    """What a call gave, and whether it was somebody else's."""

    result: Any
    reused: bool
    at: float | None = None
    """When a call that is reused was made, seconds since 1970."""
    run_id: str = ""
    """The run that made a call that is reused."""

    def origin(self) -> dict[str, Any]:
        """Return what is reported of a call that is reused, as JSON."""
        when = "" if self.at is None else datetime.fromtimestamp(self.at, UTC).strftime("%Y-%m-%d %H:%M UTC")
        return {"at": when, "from_run": self.run_id}


def made_before(origin: Mapping[str, Any]) -> str:
    """Return in words what `CallResult.origin` tells; journals of earlier versions may lack any of it."""
    by = f", by run {origin['from_run']}" if origin.get("from_run") else ""
    on = f" on {origin['at']}" if origin.get("at") else ""
    return f"this call was made before{by}{on}"


@dataclass(frozen=True, slots=True)
class CallRecord:
    """What is recorded of a call."""

    result: str | None
    """JSON; None while it is being made, and when it was given up."""
    key: str
    """The effect that makes it or made it."""
    valid: bool
    """Whether the result may still be used by others."""
    at_work: bool
    """Whether somebody may still be making it."""
    at: float | None = None
    """When it was made, seconds since 1970."""
    run_id: str = ""
    """The run that made it."""


def resolve_claim(
    record: CallRecord, *, key: str, tool: RecordedTool, again: bool
) -> CallResult | Literal["take", "wait"]:
    """Say what becomes of a call that is recorded: its result, or whether to make it or to wait.

    Raises:
        InDoubt: it was interrupted, and the tool is not repeatable.
    """
    if record.result is not None:
        if record.valid or record.key == key:
            return CallResult(json.loads(record.result), record.key != key, record.at, record.run_id)
        return "take"
    if record.at_work:
        return "wait"
    if not (tool.is_repeatable or again):
        raise InDoubt("it was interrupted and may have happened")
    return "take"


class CallLog:
    """The calls of one memory; processes that ask for the same call at the same moment make one.

    Leases run by the clock of the database.

    Args:
        database: where they are recorded.
        owner: a name for this process; None for host, pid and when it started.
    """

    def __init__(self, database: Database, *, owner: str | None = None) -> None:
        self._database = database
        self._given_owner = owner

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    @cached_property
    def _owner(self) -> str:
        return (
            self._given_owner or this_process()
        )  # three files to read, which no search needs without a tool

    async def claim(
        self, call: Call, *, key: str, run_id: str, tool: RecordedTool, again: bool = False
    ) -> CallResult | None:
        """Return what the call gave when it was made before, or None: then `make` it.

        Waits while somebody else makes the same call, for at most the tool's own time and a little.

        Args:
            key: the effect that asks; an effect that asks again after a crash finds what it has made itself.
            again: whether a call that was interrupted may be made again, though the tool is not repeatable.

        Raises:
            ToolFailed: somebody else took too long.
            InDoubt: the call was interrupted, and the tool is not repeatable.
        """
        deadline = time.monotonic() + tool.timeout_s + 2 * GRACE_S
        pause, most = POLL_S, _POLL_MOST_S if self._database.shared else POLL_S
        while True:
            outcome = self._claimed(call, key, run_id, tool, again)
            if outcome != "wait":
                return outcome if isinstance(outcome, CallResult) else None
            if time.monotonic() > deadline:
                raise ToolFailed(f"somebody else has been making this call of {call.tool!r} for too long")
            await asyncio.sleep(pause)
            pause = min(pause * 1.2, most)

    def _claimed(
        self, call: Call, key: str, run_id: str, tool: RecordedTool, again: bool
    ) -> CallResult | Literal["take", "wait"]:
        database = self._database
        columns = (call.hash, call.tool, call.version, call.arguments, key, run_id, self._owner)
        insert = (
            "INSERT INTO call(hash, tool, version, arguments, key, run_id, owner, expires_at, at)"
            f" VALUES (?, ?, ?, ?, ?, ?, ?, {database.now} + ?, {database.now}) ON CONFLICT(hash) DO"
        )
        row = (*columns, tool.timeout_s + GRACE_S)

        def work(repeated: bool) -> CallResult | Literal["take", "wait"]:
            if database.rows(f"{insert} NOTHING RETURNING 1", row):
                return "take"
            with database.transaction(alone=False):
                stored = database.row(
                    f"SELECT result, key, until IS NULL OR until > {database.now}, owner,"
                    f" expires_at > {database.now}, at, run_id FROM call WHERE hash = ?{database.for_update}",
                    (call.hash,),
                )
                if stored is None:
                    return "wait"  # it was dropped between the two statements
                result, made_by, valid, owner, leased, at, by = stored
                if repeated and made_by == key and owner == self._owner and result is None:
                    return "take"  # by the attempt whose answer was lost
                # Whoever asks for the same effect again holds its run now, so nobody else is at work on it.
                at_work = made_by != key and leased and owner is not None
                at_work = at_work and not is_dead(owner, shared=database.shared)
                record = CallRecord(result, made_by, bool(valid), at_work, at, by)
                verdict = resolve_claim(record, key=key, tool=tool, again=again)
                if verdict == "take":
                    database.rows(
                        f"{insert} UPDATE SET key = excluded.key, run_id = excluded.run_id, owner = excluded.owner,"
                        " expires_at = excluded.expires_at, at = excluded.at, until = NULL, result = NULL",
                        row,
                    )
                return verdict

        return database.attempt(work)

    def result_of(self, call: Call, *, key: str) -> CallResult | None:
        """Return what this very effect's call gave, None when that is not known."""
        text = self._database.value("SELECT result FROM call WHERE hash = ? AND key = ?", (call.hash, key))
        return None if text is None else CallResult(json.loads(text), False)

    def known(self, call: Call) -> CallResult | None:
        """Return what a call gave that was made before and may be used again, whoever made it; claim nothing."""
        rows = self._database.rows(
            "SELECT result, at, run_id FROM call WHERE hash = ? AND result IS NOT NULL"
            f" AND (until IS NULL OR until > {self._database.now})",
            (call.hash,),
        )
        return CallResult(json.loads(rows[0][0]), True, rows[0][1], rows[0][2]) if rows else None

    def check(self, call: Call, *, tool: RecordedTool) -> None:
        """Claim nothing, and say now what `claim` would say of a call that was interrupted.

        Raises:
            InDoubt: it was, and the tool is not repeatable.
        """
        rows = self._database.rows(
            f"SELECT key, owner, expires_at > {self._database.now} FROM call WHERE hash = ? AND result IS NULL",
            (call.hash,),
        )
        for made_by, owner, leased in rows:
            at_work = leased and owner is not None and not is_dead(owner, shared=self._database.shared)
            resolve_claim(CallRecord(None, made_by, False, bool(at_work)), key="", tool=tool, again=False)

    def keep(self, call: Call, result: Any, *, key: str, tool: RecordedTool) -> None:
        """Record a call that succeeded; one that somebody else has taken over meanwhile stays theirs.

        Raises:
            ToolFailed: JSON cannot hold the result.
        """
        try:
            text = json.dumps(result)
        except (TypeError, ValueError, RecursionError) as exc:
            raise ToolFailed(f"{tool.id!r} returned what JSON cannot hold: {exc}") from exc
        lasts_s = None if isinstance(tool.lifetime, str) else float(tool.lifetime)
        self._write(
            f"UPDATE call SET result = ?, until = {self._database.now} + ?, owner = NULL",
            call,
            key,
            text,
            lasts_s,
        )

    async def make(
        self, call: Call, made: Callable[[], Awaitable[Any]], *, key: str, tool: RecordedTool
    ) -> CallResult:
        """Make a call that was claimed, and record what comes of it; one that failed can be made again.

        Raises:
            Exception: what `made` raises. One that was cut off and may have happened is made again by nobody unasked.
        """
        try:
            result = await made()
            self.keep(call, result, key=key, tool=tool)
        except BaseException as exc:
            cut_off = isinstance(exc, InDoubt) or not isinstance(exc, Exception)
            (self.unconfirmed if cut_off and not tool.is_repeatable else self.drop)(call, key=key)
            raise
        return CallResult(result, False)

    def unconfirmed(self, call: Call, *, key: str) -> None:
        """Note that a call was given up and may have happened: nobody is at work on it."""
        self._write("UPDATE call SET owner = NULL, expires_at = 0", call, key)

    def drop(self, call: Call, *, key: str) -> None:
        """Forget a call that failed, so that it can be made again."""
        self._write("DELETE FROM call", call, key)

    def forget(self, call: Call) -> None:
        """Forget what a call gave, whoever made it, so that it is made again; one that is in progress goes on."""
        self._database.attempt(
            lambda _: self._database.execute(
                "DELETE FROM call WHERE hash = ? AND result IS NOT NULL", (call.hash,)
            )
        )

    def _write(self, sql: str, call: Call, key: str, *values: Any) -> None:
        """Change the record of a call that this process makes; one that somebody else has taken over stays theirs."""
        whose = f"{sql} WHERE hash = ? AND key = ? AND owner = ? AND result IS NULL"
        self._database.attempt(
            lambda _: self._database.execute(whose, (*values, call.hash, key, self._owner))
        )
