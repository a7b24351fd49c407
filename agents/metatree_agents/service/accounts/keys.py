"""API keys: sent as they are with each request, as programs that know nothing of proofs do; kept as hashes alone.

A key is made of random bits and not chosen by a person, so a plain hash of it is safe to keep: there is nothing to
guess from (NIST SP 800-63B, section 5.1.2.2 asks for salt and stretching below 112 bits).

The secrets of the proofs are no keys: they are kept readable, since proofs need them, and a bearer key travels with
each request. Lost: keys chosen by people; the proof's secret as bearer key, which would end its point.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from itertools import count
from typing import Final

from metatree.errors import TransientError, UserError
from metatree_agents.service.accounts.users import INSIDE, Caller, note_use
from metatree_agents.service.database.database import ServiceDatabase

PREFIX: Final = "mtk-"
"""What keys begin with, so that people, and programs that look for leaked secrets, know one when they see it."""
KEY_BYTES: Final = 32
ID_CHARS: Final = 12
MAX_LABEL: Final = 60
_USED_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class KnownKey:
    """What is known of a key; `id` is the beginning of its hash."""

    id: str
    name: str
    made_at: float
    used_at: float | None
    label: str = ""
    """What its owner calls it."""

    @property
    def named(self) -> str:
        """What it is called; empty for one without a name."""
        return "of the service itself" if self.name == INSIDE else self.label

    @property
    def shown_name(self) -> str:
        """How lists name it: what its owner calls it, or else the day when it was made (UTC)."""
        return self.named or f"unnamed, made on {datetime.fromtimestamp(self.made_at, UTC):%Y-%m-%d}"


def next_label(keys: Sequence[KnownKey]) -> str:
    """Return a name for one more key of somebody who has these.

    Example:
        >>> next_label([KnownKey("3f9a1c0b7d52", "Ann", 0.0, None, label="key 2")])
        'key 3'
    """
    taken = {key.label for key in keys}
    return next(name for number in count(len(keys) + 1) if (name := f"key {number}") not in taken)


class Keys:
    """The API keys of all users."""

    def __init__(self, database: ServiceDatabase) -> None:
        self._database = database

    async def add(self, name: str, *, label: str = "") -> str:
        """Make one more key for a user and return it; it cannot be read again.

        Args:
            label: what its owner calls it.

        Raises:
            UserError: there is no such user, they have a key of this label, or it is too long.
        """
        key = PREFIX + secrets.token_urlsafe(KEY_BYTES)
        async with self._database.transaction() as do:
            if await do.row("SELECT 1 FROM service_user WHERE name = ?", name) is None:
                raise UserError(f"no user {name!r}: `metatree service users list` lists them")
            label = " ".join(label.split())
            if len(label) > MAX_LABEL:
                raise UserError(f"the name of a key has at most {MAX_LABEL} characters: choose a shorter one")
            taken = "SELECT 1 FROM service_key WHERE name = ? AND label = ?"
            if label and await do.row(taken, name, label) is not None:
                raise UserError(f"{name} has a key named {label!r} already: choose another name")
            await do.execute(
                "INSERT INTO service_key(hash, name, made_at, label) VALUES (?, ?, ?, ?)",
                *(_hash(key), name, self._database.clock(), label),
            )
        return key

    async def own(self, name: str, secret: str) -> str:
        """Return the key of a user of the service itself, the same for all its servers: its secret says which."""
        key = PREFIX + secret
        await self._database.execute(
            "INSERT INTO service_key(hash, name, made_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
            *(_hash(key), name, self._database.clock()),
        )
        return key

    async def list(self, name: str | None = None) -> list[KnownKey]:
        """Return the keys of a user, or all, oldest first."""
        rows = await self._database.rows(
            "SELECT hash, name, made_at, used_at, label FROM service_key ORDER BY name, made_at, hash"
        )
        return [KnownKey(row[0][:ID_CHARS], *row[1:]) for row in rows if name in (None, row[1])]

    async def remove(self, key_id: str) -> str:
        """Take a key out by its id and return whose it was.

        Raises:
            UserError: there is no such key.
        """
        async with self._database.transaction() as do:
            row = await do.row(
                "DELETE FROM service_key WHERE substr(hash, 1, ?) = ? RETURNING name", ID_CHARS, key_id
            )
        if row is None:
            raise UserError(f"no key {key_id!r}: `metatree service keys list` lists them by their ids")
        return str(row[0])

    async def verified(self, key: str) -> Caller | None:
        """Return whose key this is, None when it is nobody's."""
        row = await self._database.row(
            "SELECT service_user.name, service_user.role, service_key.used_at, service_use.left_at FROM service_key"
            " JOIN service_user ON service_user.name = service_key.name"
            " LEFT JOIN service_use ON service_use.name = service_key.name WHERE service_key.hash = ?",
            digest := _hash(key),
        )
        if row is None:
            return None
        now = self._database.clock()
        if row[2] is None or abs(now - row[2]) > _USED_S or row[3] is not None:
            with suppress(TransientError):  # when it was used is noted by the next call then
                await self._note_use(row[0], digest, now)
        return Caller(row[0], row[1])

    async def _note_use(self, name: str, digest: str, now: float) -> None:
        async with self._database.transaction() as do:
            if not await do.execute("UPDATE service_key SET used_at = ? WHERE hash = ?", now, digest):
                return  # it was taken out meanwhile
            await note_use(do, name, now)


def _hash(key: str) -> str:
    return sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
