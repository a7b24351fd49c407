"""Who is logged in to the web page: sessions by a cookie, begun with a secret or with a code that works once.

Neither a cookie nor a code is kept, only their hashes: who reads the database cannot log in with what is there.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from metatree.errors import UserError
from metatree_agents.service.accounts.users import Caller, Role
from metatree_agents.service.database.database import ServiceDatabase

TOKEN_BYTES: Final = 32
SESSION_S: Final = 7 * 24 * 3600.0
CODE_S: Final = 15 * 60.0
PEOPLE: Final = ("user", "frontend", "admin")
"""Roles that may use the web page: an engine has nothing to look for there."""


@dataclass(frozen=True, slots=True)
class Session:
    """One log-in of one person."""

    key: str
    """Hash of the cookie."""
    name: str
    role: Role
    csrf: str
    """What every form of this session carries, and no other site knows."""
    expires_at: float

    @property
    def caller(self) -> Caller:
        """Who this is to the limits and the queue."""
        return Caller(self.name, self.role)

    @property
    def sees_all(self) -> bool:
        """Whether topics of everybody are shown to this person, as the API shows them to the same role."""
        return self.role in ("frontend", "admin")


class Sessions:
    """The sessions and one-time codes of a service.

    Args:
        database: where they are kept.
    """

    def __init__(self, database: ServiceDatabase) -> None:
        self._database = database

    async def begin(self, name: str) -> str:
        """Begin a session of a user and return its cookie, 256 random bits."""
        cookie, now = secrets.token_urlsafe(TOKEN_BYTES), self._database.clock()
        async with self._database.transaction() as do:
            await do.execute("DELETE FROM service_session WHERE expires_at <= ?", now)
            await do.execute(
                "INSERT INTO service_session(cookie, name, csrf, expires_at) VALUES (?, ?, ?, ?)",
                *(hashed(cookie), name, secrets.token_urlsafe(TOKEN_BYTES), now + SESSION_S),
            )
        return cookie

    async def find(self, cookie: str) -> Session | None:
        """Return the session of a cookie, None when there is none, it has expired, or its user may not be here."""
        key = hashed(cookie)
        row = await self._database.row(
            "SELECT service_user.name, service_user.role, csrf, expires_at FROM service_session"
            " JOIN service_user ON service_user.name = service_session.name WHERE cookie = ? AND expires_at > ?",
            *(key, self._database.clock()),
        )
        if row is None or row[1] not in PEOPLE:
            return None
        return Session(key, *row)

    async def end(self, session: Session) -> None:
        """Log out of one session."""
        async with self._database.transaction() as do:
            await do.execute("DELETE FROM service_session WHERE cookie = ?", session.key)

    async def end_all(self, name: str) -> int:
        """Log a user out everywhere; return how many sessions that ended."""
        async with self._database.transaction() as do:
            return await do.execute("DELETE FROM service_session WHERE name = ?", name)

    async def make_code(self, name: str) -> str:
        """Return a code that logs a user in once, within 15 minutes.

        Raises:
            UserError: there is no such user, or it is an engine.
        """
        code, now = secrets.token_urlsafe(TOKEN_BYTES), self._database.clock()
        async with self._database.transaction() as do:
            row = await do.row("SELECT role FROM service_user WHERE name = ?", name)
            if row is None:
                raise UserError(f"no user {name!r}: `metatree service users list` lists them")
            if row[0] not in PEOPLE:
                raise UserError(f"{name!r} is an {row[0]}, and the web page is for {', '.join(PEOPLE)}")
            await do.execute("DELETE FROM service_login WHERE expires_at <= ?", now)
            await do.execute(
                "INSERT INTO service_login(code, name, expires_at) VALUES (?, ?, ?)",
                *(hashed(code), name, now + CODE_S),
            )
        return code

    async def take_code(self, code: str) -> Caller | None:
        """Return whom a code logs in, and use it up; None when it is wrong, was used, or is too old."""
        async with self._database.transaction() as do:
            # One statement takes it, so of two who come with it at the same time one gets in.
            row = await do.row(
                "DELETE FROM service_login WHERE code = ? RETURNING name, expires_at", hashed(code)
            )
            if row is None or row[1] <= self._database.clock():
                return None
            user = await do.row("SELECT name, role FROM service_user WHERE name = ?", row[0])
        return None if user is None else Caller(user[0], user[1])


def hashed(token: str) -> str:
    """Return what is kept of a cookie or code. A fast hash will do: there is nothing to guess in 256 random bits."""
    return sha256(token.encode("utf-8", "replace")).hexdigest()


def login_link(address: str, code: str) -> str:
    """Return a link that logs somebody in.

    The code is behind a `#`: browsers send that to no server, so no log of a proxy has it.
    """
    return f"{address.rstrip('/')}/login#code={code}"
