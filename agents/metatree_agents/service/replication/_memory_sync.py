"""Keeps the memory layer of a tree in sync with that of a service: what is added here goes there, and back.

Each row goes by itself, and the last word counts. Lost: a log of changes, in which what is forgotten would stay.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Sequence
from typing import Any, Final

from metatree import Tree
from metatree.notes.archive.format import SHARED_FACTS
from metatree.notes.feedback import flag_ids
from metatree.notes.replication import RowChange, apply_changes, changes_since, flag_changes
from metatree.trees.layer import Layer
from metatree_agents.service.engine.client import ServiceClient, ServiceRefused, patiently

MOST_BYTES: Final = 1_000_000
"""Of one request; the service takes twice as much."""
MOST_CHANGES: Final = 500
_log = logging.getLogger("metatree.engine")


class MemorySync:
    """One tree's memory and that of a service.

    Every row is as whoever changed it last left it, on all machines. What was sent and received is noted in the memory
    itself, so a process that is killed sends or applies at most the same again, which changes nothing.

    Args:
        client: the service, as an engine.
        tree: whose memory layer is kept in step; trees that share it need one of these only.
        name: that of the service's tree.
    """

    def __init__(self, client: ServiceClient, tree: Tree, name: str) -> None:
        self._client = client
        self._tree = tree
        self._fact = SHARED_FACTS + name
        self._turn = asyncio.Lock()

    def use(self, tree: Tree) -> None:
        """Go on with another tree over the same memory, such as a newer version of the built layer."""
        self._tree = tree

    @property
    def number(self) -> int:
        """The number of the latest change that was received."""
        return int(self._state()["number"])

    def pending(self) -> bool:
        """Say whether something was changed here that was not sent yet; quick."""
        layer = Layer(self._tree.memory)
        return layer.last_seq() != self._state()["sent"] or self._flags() != list(flag_ids(layer.store))

    def _flags(self) -> list[str]:
        """Return the ids of the flags that were sent or received."""
        return list(Layer(self._tree.memory).fact(self._fact + ":flags") or ())

    def _note_flags(self, ids: Sequence[str]) -> None:
        if self._flags() != list(ids):
            Layer(self._tree.memory).set_fact(self._fact + ":flags", list(ids))

    def _state(self) -> dict[str, Any]:
        """Return the numbers of the latest change received, of the latest here that was sent, and the highest seen."""
        return Layer(self._tree.memory).fact(self._fact) or {"number": 0, "sent": 0, "seen": 0}

    def _note(self, **state: int) -> None:
        Layer(self._tree.memory).set_fact(self._fact, self._state() | state)

    async def push(self, *, everything: bool = False) -> None:
        """Send what was changed here; waits while the service cannot be reached.

        Args:
            everything: send all there is: rows that have other names now count as no change of theirs.
        """
        async with self._turn:
            if everything:
                self._note(sent=-1)
            await self._push()

    async def _push(self) -> None:
        while self.pending():
            everything = self._state()["sent"] < 0
            changes, last = await asyncio.to_thread(changes_since, self._tree, max(0, self._state()["sent"]))
            flags = flag_ids(self._tree.memory)
            changes += flag_changes(self._tree, () if everything else self._flags())
            for batch in _batches(changes):
                try:
                    reply = await patiently(self._client, "POST", "give-memory", body={"Changes": batch})
                    self._note(seen=int(reply["Latest"]))
                except ServiceRefused as exc:
                    if exc.status not in (413, 422):
                        raise
                    named = ", ".join(one["Id"] for one in batch[:3])
                    _log.warning("%s stays on this machine alone: %s", named, exc)
            with self._tree.memory.transaction():
                self._note(sent=last)
                self._note_flags(flags)

    async def pull(self, latest: int | None = None) -> int:
        """Take in what was changed elsewhere; return how many rows changed here.

        Args:
            latest: the number of the latest change there is, when that is known.
        """
        async with self._turn:
            done = 0
            if latest is not None and latest < self._state()["seen"]:  # an earlier state was put back there
                self._note(number=0, sent=-1, seen=latest)
            while latest is None or self.number < latest:
                reply = await patiently(self._client, "GET", "get-memory", After=self.number)
                if not reply["Changes"]:
                    break
                changes = [RowChange(one["What"], one["Id"], one["Body"]) for one in reply["Changes"]]
                number = int(reply["Changes"][-1]["Number"])
                while (applied := await asyncio.to_thread(self._applied, changes, number)) is None:
                    await self._push()  # what was changed here meanwhile goes first, and so counts as earlier
                done += applied
                latest = int(reply["Latest"])
            return done

    def _applied(self, changes: list[RowChange], number: int) -> int | None:
        """Apply changes, unless something here was not sent yet: it could not be told from them afterwards."""
        with self._tree.memory.transaction():
            if self.pending():
                return None
            done = apply_changes(self._tree, changes)
            self._note(number=number, sent=Layer(self._tree.memory).last_seq())
            self._note_flags(flag_ids(self._tree.memory))
            if number > self._state()["seen"]:
                self._note(seen=number)
            return done


def _batches(changes: list[RowChange]) -> list[list[dict[str, Any]]]:
    """Return changes as the wire has them, in requests of a size that is taken."""
    batches: list[list[dict[str, Any]]] = [[]]
    size = 0
    for change in changes:
        row = {"What": change.what, "Id": change.id, "Body": change.body}
        length = len(json.dumps(row))
        if batches[-1] and (size + length > MOST_BYTES or len(batches[-1]) >= MOST_CHANGES):
            batches.append([])
            size = 0
        batches[-1].append(row)
        size += length
    return [batch for batch in batches if batch]
