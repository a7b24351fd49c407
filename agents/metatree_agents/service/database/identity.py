"""What tells one database from all others, so that who follows it knows where they were, whatever its address is.

A tree remembers up to which recommendation of a service it has learned. The address says little: the same database may
be reached by another one, and another database by the same. So a database has a name of its own, made with its tables.
A restore gives it another name, and keeps the earlier ones with the last recommendation that came under them: what the
database counts from there on need not be what it counted before, and two restores of one backup go apart.

A tree goes on at the lower of what it had learned and where the earlier name ended.

Lost: the address, a name that a restore carries on (what is counted afterwards would be passed over), a new name alone
(all recommendations again, and what was forgotten with them).
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from metatree_agents.service.database.database import ServiceDatabase, Statements
from metatree_agents.service.database.schema import ADDRESS


@dataclass(frozen=True, slots=True)
class Earlier:
    """A name that a database had.

    Args:
        id: the name; `address` for a database of an older version, which was known by its address.
        until: the number of the last recommendation that came while it had this name.
    """

    id: str
    until: int


@dataclass(frozen=True, slots=True)
class Identity:
    """What a database is called, and was called before, the latest name first."""

    id: str
    before: tuple[Earlier, ...] = ()

    def position(self, known: Mapping[str, int]) -> int:
        """Return the number after which recommendations are unknown to somebody.

        Args:
            known: up to which one it followed the database, by the names that it had then.
        """
        if self.id in known:
            return known[self.id]
        until: int | None = None
        for earlier in self.before:
            until = earlier.until if until is None else min(until, earlier.until)
            if earlier.id in known:
                return min(known[earlier.id], until)
        return 0


async def identity_of(database: ServiceDatabase) -> Identity:
    """Return what a database is called."""
    rows: Sequence[tuple[Any, ...]] = await database.rows(
        "SELECT id, after FROM service_identity ORDER BY number DESC"
    )
    names = [str(row[0]) for row in rows]
    return Identity(
        names[0], tuple(Earlier(name, int(row[1])) for name, row in zip(names[1:], rows, strict=False))
    )


async def rename(do: Statements) -> None:
    """Give a database that holds a backup now another name, within the transaction that restores it."""
    row = await do.row("SELECT coalesce(max(number), 0) FROM recommendation")
    last = int(row[0]) if row else 0
    if last and await do.row("SELECT 1 FROM service_identity LIMIT 1") is None:
        # The backup is of a version that knew its database by the address.
        await do.execute("INSERT INTO service_identity(id, after) VALUES (?, 0)", ADDRESS)
    await do.execute("INSERT INTO service_identity(id, after) VALUES (?, ?)", secrets.token_hex(16), last)
