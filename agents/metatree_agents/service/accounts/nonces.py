"""Nonces that carry the time at which they were made, so that they need not be kept for ever.

`metatree.SECONDS.RANDOM`: seconds since 1970, and 16 to 100 of the letters, digits, `-` and `_`. One is good for
`WINDOW_S` before and after its time, so clocks may differ by that much, and is kept until that is over: then it is
refused for its time. Should the clock go back meanwhile, it still is: up to when they were forgotten is kept. Any other
nonce carries no time and is kept for ever.
"""

from __future__ import annotations

import re
import secrets
from typing import Final

from metatree_agents.service.database.database import ServiceDatabase

WINDOW_S: Final = 300.0
FORGET_S: Final = 60.0
"""How long after its end a nonce is kept, for statements that are slow, and how often old ones are looked for."""
_TIMED: Final = re.compile(r"metatree\.([0-9]{9,12})\.[A-Za-z0-9_-]{16,100}")


def timed_nonce(now: float) -> str:
    """Return a nonce that is made now."""
    return f"metatree.{int(now)}.{secrets.token_urlsafe(18)}"


def end_of(nonce: str) -> float | None:
    """Return when a nonce ends; None for one that carries no time.

    Example:
        >>> end_of("metatree.1732272000.0123456789abcdef"), end_of("PSjUAS82NcDKgwXq")
        (1732272300.0, None)
    """
    match = _TIMED.fullmatch(nonce)
    return None if match is None else int(match[1]) + WINDOW_S


def in_time(end: float, now: float) -> bool:
    """Say whether a nonce with this end is within its time."""
    return now <= end <= now + 2 * WINDOW_S


async def forget(database: ServiceDatabase, now: float) -> None:
    """Delete the nonces that have ended, and note up to when."""
    until = now - FORGET_S
    async with database.transaction() as do:
        await do.alone("forget nonces")
        row = await do.row("SELECT coalesce(max(ends_at), 0) FROM service_nonce_end")
        if row is not None and row[0] >= until:
            return
        await do.execute("DELETE FROM service_nonce_end")
        await do.execute("INSERT INTO service_nonce_end(ends_at) VALUES (?)", until)
        await do.execute("DELETE FROM service_nonce WHERE ends_at <= ?", until)
