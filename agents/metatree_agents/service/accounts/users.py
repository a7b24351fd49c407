"""Who may call the service, and how a caller proves it: a hash of name, nonce and shared secret, never the secret.

The wire form is `hash("User Nonce Token")` in hexadecimal, without an end of line; 40 digits are SHA-1, 64 are SHA-256.

A caller's secret is remembered, and asked for again in the statement that keeps the nonce: one trip to the database
instead of two, and a secret that was changed or taken out elsewhere is refused at once. Lost: a cache that is told of
changes, which would be wrong whenever it was not told.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, get_args

from metatree.errors import UserError
from metatree_agents.service.accounts.former_users import Choice, NameWasUsed, delete_left, left_under
from metatree_agents.service.accounts.nonces import FORGET_S, end_of, forget, in_time
from metatree_agents.service.database.database import ServiceDatabase, Statements, Transaction
from metatree_agents.service.database.servers import servers_of

Role = Literal["frontend", "engine", "user", "admin"]
ROLES: Final[tuple[str, ...]] = get_args(Role)

SECRET_BYTES: Final = 24
INSIDE: Final = "engine-inside"
"""Name of the engines that run in servers' own processes."""
MIN_SECRET_CHARS: Final = 22
"""128 bits, at 6 bits a character."""
SEEN_S: Final = 60.0
NONCE_CHARS: Final = range(8, 129)
FOR_EVER: Final = 1e18
_USE_UP: Final = (
    "INSERT INTO service_nonce(name, nonce, ends_at) SELECT name, ?, CAST(? AS DOUBLE PRECISION) FROM service_user"
    " WHERE name = ? AND role = ? AND secret = ?"
    " AND ? > (SELECT coalesce(max(ends_at), 0) FROM service_nonce_end) ON CONFLICT DO NOTHING"
)
_NAME = re.compile(r"[A-Za-z0-9_.@-]{1,64}")
_NOBODY: Final = secrets.token_urlsafe(SECRET_BYTES)
"""What the hash of an unknown user is compared with, so that it takes as long."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who proved to have a user's secret."""

    name: str
    role: Role
    secret_mark: str = field(default="", repr=False)
    """Which secret was proved (`mark_of`); empty for who came without one, as by an API key."""

    def is_still(self, role: str | None, secret: str | None) -> bool:
        """Say whether a user with this role and secret is the one who called."""
        if secret is None or role != self.role:
            return False
        return not self.secret_mark or self.secret_mark == mark_of(secret)


def mark_of(secret: str) -> str:
    """Return what tells a secret from another, and nothing else of it."""
    return hashlib.sha256(f"mark {secret}".encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Proofs:
    """Which proofs are accepted.

    Args:
        sha1: whether hashes of 40 digits are.
        newline: whether a hash of the text with an end of line is, as an old example of the wire format had it.
    """

    sha1: bool = True
    newline: bool = False


def proof(name: str, nonce: str, secret: str, *, algorithm: str = "sha256") -> str:
    """Return the hash that proves a secret.

    Example:
        >>> proof("Inference_1", "PSjUAS82NcDKgwXq", "7b18d017f89f61cf17d", algorithm="sha1")
        'd3dd6832c72b5c8f4cf194bcb85e67d81e5dcd93'
    """
    return hashlib.new(algorithm, f"{name} {nonce} {secret}".encode()).hexdigest()


async def _log_out(do: Transaction, name: str) -> None:
    """End what a user's old secret opened: sessions of the web page, and codes for them."""
    await do.execute("DELETE FROM service_session WHERE name = ?", name)
    await do.execute("DELETE FROM service_login WHERE name = ?", name)


async def note_use(do: Statements, name: str, now: float) -> None:
    """Note when a user was last here."""
    await do.execute(
        "INSERT INTO service_use(name, at) VALUES (?, ?)"
        " ON CONFLICT(name) DO UPDATE SET at = excluded.at, left_at = NULL",
        *(name, now),
    )


class Users:
    """The table of users, and the nonces that they used."""

    def __init__(self, database: ServiceDatabase, proofs: Proofs | None = None) -> None:
        self._database = database
        self._forgot_at = 0.0
        self._proofs = proofs or Proofs()
        self._seen: dict[str, float] = {}
        self._known: dict[str, tuple[Role, str]] = {}
        """Role and secret of those who called."""

    async def add(
        self, name: str, role: str, *, secret: str | None = None, topics: Choice | None = None
    ) -> str:
        """Add a user, or give one a new secret and role; return the secret.

        Nonces of an earlier secret are forgotten, so that secret must not come back.

        Args:
            topics: what becomes of what somebody of this name asked and recommended before, who is no user now.

        Raises:
            NameWasUsed: there is such, and `topics` does not say.
            UserError: the name or role is none, the name differs from another in capitals alone, or the secret is too
                short to be safe.
        """
        if not _NAME.fullmatch(name):
            raise UserError(f"{name!r} is no name: use 1 to 64 letters, digits and `_ . @ -`")
        if role not in ROLES:
            raise UserError(f"{role!r} is no role: use one of {', '.join(ROLES)}")
        if secret is not None and len(secret) < MIN_SECRET_CHARS:
            raise UserError(
                f"a secret needs {MIN_SECRET_CHARS} characters or more: leave it out to have one made"
            )
        secret = secret or secrets.token_urlsafe(SECRET_BYTES)
        async with self._database.transaction() as do:
            sql = "SELECT secret FROM service_user WHERE name = ?"
            replaced = await do.row(sql + self._database.for_update, name)
            if replaced is None:
                other = await do.row("SELECT name FROM service_user WHERE lower(name) = lower(?)", name)
                if other is not None:
                    raise UserError(
                        f"there is a user {other[0]} already, which people would take for the same: choose another name"
                    )
            if replaced is None and topics != "keep" and (left := await left_under(do, name)):
                if topics is None:
                    raise NameWasUsed(left)
                await delete_left(do, name)
            await do.execute(
                "INSERT INTO service_user(name, role, secret, made_at) VALUES (?, ?, ?, ?)"
                " ON CONFLICT(name) DO UPDATE SET role = excluded.role, secret = excluded.secret",
                *(name, role, secret, self._database.clock()),
            )
            await _log_out(do, name)
            # Proofs by the old secret are wrong from here on, so nobody can send one again.
            if replaced is not None and replaced[0] != secret:
                await do.execute("DELETE FROM service_nonce WHERE name = ?", name)
        return secret

    async def change_role(self, name: str, role: str) -> None:
        """Give a user another role; the secret and the keys stay theirs.

        Raises:
            UserError: there is no such user, or no such role.
        """
        if role not in ROLES:
            raise UserError(f"{role!r} is no role: use one of {', '.join(ROLES)}")
        if not await self._database.execute("UPDATE service_user SET role = ? WHERE name = ?", role, name):
            raise UserError(f"no user {name!r}: `metatree service users list` lists them")

    async def first(self, names: Mapping[str, Role]) -> dict[str, str]:
        """Add the first users, where there are none; return their secrets.

        Of several servers that start at the same time, one adds them, and the others return nothing.
        """
        made = {name: secrets.token_urlsafe(SECRET_BYTES) for name in names}
        async with self._database.transaction() as do:
            await do.alone("first users")
            if await do.row("SELECT 1 FROM service_user LIMIT 1") is not None:
                return {}
            for name, role in names.items():
                await do.execute(
                    "INSERT INTO service_user(name, role, secret, made_at) VALUES (?, ?, ?, ?)",
                    *(name, role, made[name], self._database.clock()),
                )
        return made

    async def own(self, name: str, role: Role) -> str:
        """Return the secret of a user of the service itself, the same for all its servers; the first makes it."""
        row = await self._database.row(
            "INSERT INTO service_user(name, role, secret, made_at) VALUES (?, ?, ?, ?)"
            " ON CONFLICT(name) DO UPDATE SET role = excluded.role RETURNING secret",
            *(name, role, secrets.token_urlsafe(SECRET_BYTES), self._database.clock()),
        )
        assert row is not None
        return str(row[0])

    async def remove(self, name: str) -> None:
        """Take a user out; what was asked and answered stays.

        Raises:
            UserError: there is no such user.
        """
        async with self._database.transaction() as do:
            if not await do.execute("DELETE FROM service_user WHERE name = ?", name):
                raise UserError(f"no user {name!r}: `metatree service users list` lists them")
            await _log_out(do, name)
            for table in ("service_key", "service_use", "service_engine"):
                await do.execute(f"DELETE FROM {table} WHERE name = ?", name)
            # Somebody else of that name, later, may ask no more than a new user.
            await do.execute("DELETE FROM service_tree_right WHERE who = ?", f"user:{name}")
            await do.execute("DELETE FROM service_group WHERE member = ?", name)

    async def list(self) -> list[tuple[str, str, float]]:
        """Return (name, role, when it was added) of each user."""
        rows = await self._database.rows("SELECT name, role, made_at FROM service_user ORDER BY name")
        return [(name, role, made_at) for name, role, made_at in rows]

    async def verified(self, name: str, nonce: str, digest: str) -> Caller | None:
        """Return who this is, None when the proof is wrong or its nonce was used before.

        A nonce is used up only by a right hash, so that nobody can burn another's; an unknown user takes as long as
        a wrong hash.
        """
        known = self._known.get(name)
        if (
            known is not None
            and self._matches(name, nonce, known[1], digest)
            and await self._use_up(name, nonce, known)
        ):
            # In one statement, which asks whether this is still their role and secret.
            return Caller(name, known[0], mark_of(known[1]))
        row = await self._database.row("SELECT role, secret FROM service_user WHERE name = ?", name)
        stored: tuple[Role, str] | None = None if row is None else (row[0], row[1])
        if stored is not None and stored == known:
            return None
        right = self._matches(name, nonce, _NOBODY if stored is None else stored[1], digest)
        if stored is None or not right or not await self._use_up(name, nonce, stored):
            return None
        self._known[name] = stored
        return Caller(name, stored[0], mark_of(stored[1]))

    async def _use_up(self, name: str, nonce: str, known: tuple[Role, str]) -> bool:
        """Keep a nonce; False when it is none, was used before, or the user has another role or secret by now."""
        end, now = end_of(nonce), self._database.clock()
        if len(nonce) not in NONCE_CHARS or (end is not None and not in_time(end, now)):
            return False
        if not await self._database.execute(
            _USE_UP, nonce, end, name, *known, FOR_EVER if end is None else end
        ):
            return False
        if abs(now - self._forgot_at) >= FORGET_S:
            self._forgot_at = now
            await forget(self._database, now)
        await self.seen(name)
        return True

    async def seen(self, name: str) -> None:
        """Note that a user was here, once a minute at most."""
        now = self._database.clock()
        if abs(now - self._seen.get(name, 0.0)) < SEEN_S:
            return
        self._seen[name] = now
        await note_use(self._database, name, now)

    async def engine_left(self, name: str) -> None:
        """Note that an engine goes: it counts as connected no more until it is heard of again.

        That of another server goes by the same name where it is inside; then nothing is noted.
        """
        self._seen.pop(name, None)
        if name == INSIDE and await servers_of(self._database):
            return
        async with self._database.transaction() as do:
            now = self._database.clock()
            await do.execute("UPDATE service_use SET left_at = ? WHERE name = ?", now, name)
            await do.execute("DELETE FROM service_engine WHERE name = ?", name)

    async def right_secret(self, name: str, secret: str) -> Caller | None:
        """Return who this is by the secret itself, for the login of the web page."""
        row = await self._database.row("SELECT role, secret FROM service_user WHERE name = ?", name)
        right = hmac.compare_digest((row[1] if row else _NOBODY).encode(), secret.encode())
        return Caller(name, row[0]) if right and row else None

    def _matches(self, name: str, nonce: str, secret: str, digest: str) -> bool:
        algorithm = "sha1" if len(digest) == 40 else "sha256"
        message = f"{name} {nonce} {secret}".encode(errors="replace")
        given = digest.lower().encode(errors="replace")
        right = hmac.compare_digest(hashlib.new(algorithm, message).hexdigest().encode(), given)
        if self._proofs.newline:
            right |= hmac.compare_digest(hashlib.new(algorithm, message + b"\n").hexdigest().encode(), given)
        return right and (self._proofs.sha1 or algorithm != "sha1")
