"""Whether a user of PostgreSQL may make what a service keeps there, asked before anything is built for it."""

from __future__ import annotations

from metatree.errors import MissingExtra, UserError
from metatree_agents.service.database.postgres_address import PostgresAddress, refusal


def require_rights(address: PostgresAddress, *schemas: str) -> None:
    """Ask whether the user may use these schemas, or make those that are not there.

    Raises:
        MissingExtra: psycopg is not installed.
        UserError: the database cannot be reached, or the user may not; says what its administrator has to run.
    """
    try:
        import psycopg
    except ImportError as exc:
        raise MissingExtra("postgres", what="a PostgreSQL database") from exc
    wanted: list[str] = []
    try:
        with psycopg.connect(**address.arguments, autocommit=True) as connection:
            user, may_create = connection.execute(
                "SELECT quote_ident(current_user), has_database_privilege(current_database(), 'CREATE')"
            ).fetchone() or ("", False)
            for schema in schemas:
                found = connection.execute(
                    "SELECT has_schema_privilege(oid, 'USAGE') AND has_schema_privilege(oid, 'CREATE')"
                    " FROM pg_namespace WHERE nspname = %s",
                    (schema,),
                ).fetchone()
                if found is None and not may_create:
                    wanted.append(f'CREATE SCHEMA "{schema}" AUTHORIZATION {user};')
                elif found is not None and not found[0]:
                    wanted.append(f'GRANT USAGE, CREATE ON SCHEMA "{schema}" TO {user};')
    except psycopg.Error as exc:
        raise refusal(address, exc) from None  # the driver's error may hold the password
    if wanted:
        raise UserError(
            f"the user {user} may not make the tables of the service in the database at {address.shown}: let its"
            f" administrator run there: {' '.join(wanted)}"
        )
