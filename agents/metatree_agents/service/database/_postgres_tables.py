"""The tables of the service in PostgreSQL: in a schema of their own, with triggers that tell what changes."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from typing import Any, Final

from metatree.errors import UserError
from metatree.storage.postgres import prepared
from metatree.storage.postgres_address import PostgresAddress
from metatree_agents.service.database.schema import SERVICE

# Told inside the transaction that makes the change, so nobody who listens misses what was kept, and nothing is told of
# what was not. Equal notices of one transaction are told once. Triggers tell, not the statements of the service: no
# statement can forget it, and none costs a trip to the server.
_TELLING: Final = """
CREATE OR REPLACE FUNCTION tell_topic() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify(TG_TABLE_SCHEMA, '');
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION tell_query() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- A notice has less than 8,000 bytes; `?` has those who listen look by themselves.
    PERFORM pg_notify(TG_TABLE_SCHEMA, CASE WHEN octet_length(NEW.topic) < 7000
        THEN NEW.seq || ' ' || NEW.topic ELSE '?' END);
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER topic_made AFTER INSERT ON topic FOR EACH ROW
    WHEN (NEW.ready_at IS NOT NULL AND NEW.lease IS NULL) EXECUTE FUNCTION tell_topic();

CREATE OR REPLACE TRIGGER topic_opened AFTER UPDATE ON topic FOR EACH ROW
    WHEN (NEW.ready_at IS NOT NULL AND NEW.lease IS NULL AND (OLD.ready_at IS NULL OR OLD.lease IS NOT NULL))
    EXECUTE FUNCTION tell_topic();

CREATE OR REPLACE TRIGGER query_settled AFTER UPDATE ON query FOR EACH ROW
    WHEN (NEW.status IS DISTINCT FROM OLD.status AND NEW.status NOT IN ('Open', 'Pending'))
    EXECUTE FUNCTION tell_query();

CREATE OR REPLACE FUNCTION tell_removed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify(TG_TABLE_SCHEMA, CASE WHEN octet_length(OLD.topic) < 7000
        THEN OLD.seq || ' ' || OLD.topic ELSE '?' END);
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER query_removed AFTER DELETE ON query FOR EACH ROW EXECUTE FUNCTION tell_removed();

CREATE OR REPLACE TRIGGER progress_made AFTER INSERT ON progress FOR EACH ROW EXECUTE FUNCTION tell_query()
"""


async def make_tables(connection: Any, address: PostgresAddress, *, create: bool = True) -> None:
    """Bring the tables to this version; several servers that start at once take turns.

    Args:
        connection: in autocommit mode, with the schema as its search path.
        address: where the tables are to be.
        create: whether they are made where there are none.

    Raises:
        UserError: there are none and none are to be made, or the server or the database cannot keep them.
        BrokenStore: they are of another version.
    """
    cursor = await connection.execute("SELECT to_regclass('service_schema') IS NULL")
    if not create and (await cursor.fetchone())[0]:
        raise UserError(
            f"there is no service in the schema {address.schema} of {address.shown}: name the --database that"
            " `metatree serve` has"
        )
    async with connection.transaction():
        steps = prepared(address, SERVICE)
        with suppress(StopIteration):
            statement = next(steps)
            while True:
                cursor = await connection.execute(statement)
                statement = steps.send(await cursor.fetchall() if cursor.description else [])
        # Triggers are made again when another version told otherwise; that takes the tables for a moment.
        mark = hashlib.sha256(_TELLING.encode()).hexdigest()
        cursor = await connection.execute("SELECT obj_description(to_regproc('tell_query'), 'pg_proc')")
        if await cursor.fetchone() != (mark,):
            await connection.execute(_TELLING, prepare=False)
            await connection.execute(f"COMMENT ON FUNCTION tell_query() IS '{mark}'")
