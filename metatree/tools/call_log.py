"""Tool calls that were made: found again by a hash of the tool and its arguments, so that none is made twice.

What a call of a tool that changes something is told apart by, is besides what it is made for: a run, or an intent of
an agent. There it is made once, whatever is restarted, resumed or killed; another run makes it again.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Literal, Protocol

from metatree._util.process import is_dead, this_process
from metatree.durable import InDoubt
from metatree.errors import ToolFailed
from metatree.node import Node
from metatree.storage.store import Store

POLL_S = 0.05
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
        """Whether its calls are told apart by the node that they work on, and its content."""
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
            one run only.
    """
    if tool.lifetime == "run":
        scope = f"{scope}\0{within}"
    told = dict(arguments)
    if tool.on_node:
        told["node"] = [node.id, node.digest]
    canonical = json.dumps(told, sort_keys=True, separators=(",", ":"))
    text = json.dumps([scope, tool.id, tool.version, canonical], ensure_ascii=False)
    return Call(
        hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest(), tool.id, tool.version, canonical
    )


@dataclass(frozen=True, slots=True)
class Made:
    """What a call gave, and whether it was somebody else's."""

    result: Any
    reused: bool
    at: float | None = None
    """When a call that is reused was made, seconds since 1970."""
    run_id: str = ""
    """The run that made a call that is reused."""

    def said(self) -> dict[str, Any]:
        """Return what is told of a call that is reused, as JSON."""
        when = "" if self.at is None else datetime.fromtimestamp(self.at, UTC).strftime("%Y-%m-%d %H:%M UTC")
        return {"at": when, "from_run": self.run_id}


def made_before(said: Mapping[str, Any]) -> str:
    """Return in words what `Made.said` tells; journals of earlier versions may lack any of it."""
    by = f", by run {said['from_run']}" if said.get("from_run") else ""
    on = f" on {said['at']}" if said.get("at") else ""
    return f"this call was made before{by}{on}"


class Calls(Protocol):
    """Where calls are recorded; `CallRecords` is one."""

    async def claim(
        self, call: Call, *, key: str, run_id: str, tool: RecordedTool, again: bool = False
    ) -> Made | None:
        """Return what a call gave when it was made before, or None: then make it; see `CallRecords.claim`."""
        ...

    def result_of(self, call: Call, *, key: str) -> Made | None:
        """Return what this very effect's call gave, None when that is not known."""
        ...

    def keep(self, call: Call, result: Any, *, key: str, tool: RecordedTool) -> None:
        """Record a call that succeeded. Raises ToolFailed: JSON cannot hold the result."""
        ...

    def doubt(self, call: Call, *, key: str) -> None:
        """Note that a call was given up and may have happened."""
        ...

    def drop(self, call: Call, *, key: str) -> None:
        """Forget a call that failed, so that it can be made again."""
        ...


@dataclass(frozen=True, slots=True)
class Known:
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


def judged(found: Known, *, key: str, tool: RecordedTool, again: bool) -> Made | Literal["take", "wait"]:
    """Say what becomes of a call that is recorded: its result, or whether to make it or to wait.

    Raises:
        InDoubt: it was interrupted, and the tool is not repeatable.
    """
    if found.result is not None:
        if found.valid or found.key == key:
            return Made(json.loads(found.result), found.key != key, found.at, found.run_id)
        return "take"
    if found.at_work:
        return "wait"
    if not (tool.is_repeatable or again):
        raise InDoubt("it was interrupted and may have happened")
    return "take"


def result_json(result: Any, tool: RecordedTool) -> str:
    """Return the result of a call as it is kept.

    Raises:
        ToolFailed: JSON cannot hold it.
    """
    try:
        return json.dumps(result)
    except (TypeError, ValueError, RecursionError) as exc:
        raise ToolFailed(f"{tool.id!r} returned what JSON cannot hold: {exc}") from exc


def too_long(call: Call) -> ToolFailed:
    """Return the error of a call that somebody else makes and does not end."""
    return ToolFailed(f"somebody else has been making this call of {call.tool!r} for too long")


class CallRecords:
    """The calls of one memory, in its store; processes that ask for the same call at the same moment make one."""

    def __init__(self, store: Store, *, now: Callable[[], float] = time.time) -> None:
        self._store = store
        self._now = now

    @cached_property
    def _owner(self) -> str:
        return this_process()  # three files to read, which no search needs that calls no tool

    async def claim(
        self, call: Call, *, key: str, run_id: str, tool: RecordedTool, again: bool = False
    ) -> Made | None:
        """Return what the call gave when it was made before, or None: then make it, and `keep` or `drop` it.

        Waits while somebody else makes the same call, for at most the tool's own time and a little.

        Args:
            key: the effect that asks; an effect that asks again after a crash finds what it has made itself.
            again: whether a call that was interrupted may be made again, though the tool is not repeatable.

        Raises:
            ToolFailed: somebody else took too long.
            InDoubt: the call was interrupted, and the tool is not repeatable.
        """
        deadline = self._now() + tool.timeout_s + 2 * GRACE_S
        while True:
            with self._store.transaction():
                found = self._store.row(
                    "SELECT result, key, until, owner, expires_at, at, run_id FROM call WHERE hash = ?",
                    (call.hash,),
                )
                if found is None:
                    self._take(call, key, run_id, tool)
                    return None
                result, made_by, until, owner, expires_at, at, by = found
                now = self._now()
                # Whoever asks for the same effect again holds its run now, so nobody else is at work on it.
                at_work = made_by != key and expires_at > now and owner is not None and not is_dead(owner)
                known = Known(result, made_by, until is None or until > now, at_work, at, by)
                verdict = judged(known, key=key, tool=tool, again=again)
                if isinstance(verdict, Made):
                    return verdict
                if verdict == "take":
                    self._take(call, key, run_id, tool)
                    return None
            if self._now() > deadline:
                raise too_long(call)
            await asyncio.sleep(POLL_S)

    def result_of(self, call: Call, *, key: str) -> Made | None:
        """Return what this very effect's call gave, None when that is not known."""
        found = self._store.row("SELECT result FROM call WHERE hash = ? AND key = ?", (call.hash, key))
        return None if found is None or found[0] is None else Made(json.loads(found[0]), False)

    def _take(self, call: Call, key: str, run_id: str, tool: RecordedTool) -> None:
        now = self._now()
        self._store.execute(
            "INSERT OR REPLACE INTO call(hash, tool, version, arguments, key, run_id, owner, expires_at, at)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                call.hash,
                call.tool,
                call.version,
                call.arguments,
                key,
                run_id,
                self._owner,
                now + tool.timeout_s + GRACE_S,
                now,
            ),
        )

    def keep(self, call: Call, result: Any, *, key: str, tool: RecordedTool) -> None:
        """Record a call that succeeded; one that somebody else has taken over meanwhile stays theirs.

        Raises:
            ToolFailed: JSON cannot hold the result.
        """
        text = result_json(result, tool)
        until = None if isinstance(tool.lifetime, str) else self._now() + tool.lifetime
        self._store.execute(
            "UPDATE call SET result = ?, owner = NULL, until = ? WHERE hash = ? AND key = ? AND owner = ?",
            (text, until, call.hash, key, self._owner),
        )

    def doubt(self, call: Call, *, key: str) -> None:
        """Note that a call was given up and may have happened: nobody is at work on it."""
        self._store.execute(
            "UPDATE call SET owner = NULL, expires_at = 0 WHERE hash = ? AND key = ? AND owner = ? AND result IS NULL",
            (call.hash, key, self._owner),
        )

    def drop(self, call: Call, *, key: str) -> None:
        """Forget a call that failed, so that it can be made again."""
        self._store.execute(
            "DELETE FROM call WHERE hash = ? AND key = ? AND owner = ? AND result IS NULL",
            (call.hash, key, self._owner),
        )
