"""Tool calls that were made: found again by a hash of the tool and its arguments, so that none is made twice."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from metatree.errors import ToolFailed
from metatree.node import Node
from metatree.process import is_dead, this_process
from metatree.store import Store
from metatree.tool import Tool

POLL_S = 0.05


@dataclass(frozen=True, slots=True)
class Call:
    """One call, as its hash tells it from all others."""

    hash: str
    """sha256 of the canonical JSON of scope, tool id, version and arguments."""
    tool: str
    version: str
    arguments: str
    """Canonical JSON."""


def call_of(tool: Tool, arguments: Mapping[str, Any], node: Node, *, scope: str = "") -> Call:
    """Return the call of a tool with validated arguments.

    A tool that works on a node counts the node's id and digest among its arguments, so that a changed node is
    called for again. Calls of different scopes (memories, permissions) never meet.
    """
    told = dict(arguments)
    if tool.on_node:
        told["node"] = [node.id, node.digest]
    canonical = json.dumps(told, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    text = json.dumps([scope, tool.id, tool.version, canonical], ensure_ascii=False)
    return Call(
        hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest(), tool.id, tool.version, canonical
    )


@dataclass(frozen=True, slots=True)
class Made:
    """What a call gave, and whether it was somebody else's."""

    result: Any
    reused: bool


class CallRecords:
    """The calls of one memory, in its store; processes that ask for the same call at the same moment make one."""

    def __init__(self, store: Store, *, now: Callable[[], float] = time.time) -> None:
        self._store = store
        self._now = now
        self._owner = this_process()

    async def claim(self, call: Call, *, key: str, run_id: str, tool: Tool) -> Made | None:
        """Return what the call gave when it was made before, or None: then make it, and `keep` or `drop` it.

        Waits while another process makes the same call, for at most the tool's own time and a little.

        Raises:
            ToolFailed: the other process took too long.
        """
        deadline = self._now() + tool.timeout_s + 5.0
        while True:
            with self._store.transaction():
                found = self._store.row(
                    "SELECT result, key, run_id, until, owner, expires_at FROM call WHERE hash = ?",
                    (call.hash,),
                )
                if found is not None:
                    result, made_by, made_in, until, owner, expires_at = found
                    if result is not None and (until is None or until > self._now() or made_by == key):
                        if tool.reuse != "run" or made_in == run_id:
                            return Made(json.loads(result), made_by != key)
                    elif (
                        result is None and made_by != key and expires_at > self._now() and not is_dead(owner)
                    ):
                        found = ()
                if found != ():
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
                            self._now() + tool.timeout_s + 5.0,
                            self._now(),
                        ),
                    )
                    return None
            if self._now() > deadline:
                raise ToolFailed(f"another process has been making this call of {call.tool!r} for too long")
            await asyncio.sleep(POLL_S)

    def keep(self, call: Call, result: Any, *, tool: Tool) -> None:
        """Record a call that succeeded."""
        until = None if isinstance(tool.reuse, str) else self._now() + tool.reuse
        self._store.execute(
            "UPDATE call SET result = ?, owner = NULL, until = ? WHERE hash = ?",
            (json.dumps(result, ensure_ascii=False), until, call.hash),
        )

    def drop(self, call: Call) -> None:
        """Forget a call that failed, so that it can be made again."""
        self._store.execute("DELETE FROM call WHERE hash = ? AND result IS NULL", (call.hash,))
