"""What all connections to PostgreSQL have in common: how they begin, how tables are made, what errors mean."""

from __future__ import annotations

from collections.abc import Generator
from functools import cache
from typing import Final

from metatree.errors import BrokenStore, MetatreeError, MissingExtra, TransientError, UserError
from metatree.storage.postgres_address import PostgresAddress
from metatree.storage.schema import POSTGRES, Rows, Schema

try:
    import psycopg as psycopg  # whoever takes it from here gets the error that names the extra
except ImportError as exc:
    raise MissingExtra("postgres", what="a PostgreSQL database") from exc

OLDEST: Final = 14
"""The oldest version of PostgreSQL."""
LOST: Final = (
    psycopg.OperationalError,
    psycopg.InterfaceError,
    psycopg.errors.IdleInTransactionSessionTimeout,
    psycopg.errors.ReadOnlySqlTransaction,  # a server that became a standby
)
"""What the server could not do now; the same may work later, over another connection."""


def session_settings(
    address: PostgresAddress, *, lock_s: float, idle_s: float, statement_s: float = 0.0
) -> str:
    """Return the statements that a connection begins with.

    Args:
        address: where its tables are.
        lock_s: how long a statement waits for a lock.
        idle_s: how long a transaction may stand still: a process that is stopped inside one must not keep others out
            for ever.
        statement_s: how long a statement may take; 0 for any time.
    """
    limits = {
        "lock_timeout": max(1, round(lock_s * 1000)),
        "idle_in_transaction_session_timeout": max(1, round(idle_s * 1000)),
        "statement_timeout": round(statement_s * 1000),
    }
    return (
        f"SET search_path TO \"{address.schema}\"; SET default_transaction_isolation TO 'read committed'; "
        + "; ".join(f"SET {name} TO {limit}" for name, limit in limits.items())
    )


@cache
def numbered(sql: str) -> bytes:
    """Return a statement with `$1`, `$2` and so on for each `?`.

    Example:
        >>> numbered("SELECT seq FROM query WHERE topic = ? AND seq > ?")
        b'SELECT seq FROM query WHERE topic = $1 AND seq > $2'
    """
    first, *rest = sql.split("?")
    return "".join([first, *(f"${number}{part}" for number, part in enumerate(rest, 1))]).encode()


def prepared(address: PostgresAddress, schema: Schema) -> Generator[str, Rows, None]:
    """Yield the statements that make tables or bring them up to date, and be sent the rows of each.

    They belong in one transaction; processes that do so at once take turns.

    Raises:
        UserError: the server or the database cannot keep them.
        BrokenStore: the tables are of another version, or those of somebody else.
    """
    ((encoding,),) = yield "SHOW server_encoding"
    if encoding != "UTF8":
        raise UserError(f"the database at {address.shown} is in {encoding}: make one with the encoding UTF8")
    ((number,),) = yield "SHOW server_version_num"
    if int(number) // 10_000 < OLDEST:
        raise UserError(
            f"the server of {address.shown} is PostgreSQL {int(number) // 10_000}: use {OLDEST} or later"
        )
    yield f"SELECT pg_advisory_xact_lock(hashtextextended('metatree {address.schema}', 0))"
    # Asked for first, since the right to make a schema is needed for `IF NOT EXISTS`, too.
    if not (yield f"SELECT 1 FROM pg_namespace WHERE nspname = '{address.schema}'"):
        yield f'CREATE SCHEMA "{address.schema}"'
    elif not (yield POSTGRES.is_there.format(schema.table)):
        inside = f"'\"{address.schema}\"'::regnamespace"
        if (yield f"SELECT 1 FROM pg_class WHERE relkind = 'r' AND relnamespace = {inside} LIMIT 1"):
            raise BrokenStore(
                f"the schema {address.schema} of {address.shown} has tables of another program, or of a version of"
                " metatree before the first release: rename it, or name another one with `schema=` in the address",
                path=address.shown,
                reason="foreign",
            )
    yield from schema.bring_up_to_date(POSTGRES, f"{address.shown} {address.schema}")


def storage_error(address: PostgresAddress, exc: psycopg.Error) -> MetatreeError:
    """Return the error that says what became of a statement."""
    message = f"PostgreSQL at {address.shown}: {address.cleaned(exc)}"
    if isinstance(exc, LOST):
        return TransientError(message, retry_after_s=1.0)
    if isinstance(exc, psycopg.DataError):
        return UserError(f"the database cannot keep a value: {address.cleaned(exc)}")
    return MetatreeError(message)


def refusal(address: PostgresAddress, exc: Exception) -> UserError:
    """Return what to tell a person of a database that could not be used at the start."""
    # The driver knows no code of what is refused before there is a session, and the server's words may be in any
    # language.
    connection = getattr(exc, "pgconn", None)
    password = connection is not None and (connection.needs_password or connection.used_password)
    hint = "check the address, that the server runs, and that it has this database and lets this user in"
    if isinstance(exc, psycopg.errors.InsufficientPrivilege):
        user = address.arguments.get("user", "USER")
        hint = (
            f"the user may not make a schema, or lacks rights on {address.schema} and what is in it: let the"
            f' database\'s administrator run there: CREATE SCHEMA "{address.schema}" AUTHORIZATION "{user}";'
        )
    elif isinstance(exc, psycopg.errors.ReadOnlySqlTransaction):
        hint = "name the server that can be written"
    elif getattr(exc, "sqlstate", None) is None and password:
        hint = "give the password in PGPASSWORD or ~/.pgpass"
    return UserError(f"the database at {address.shown} cannot be used: {address.cleaned(exc)}; {hint}")
