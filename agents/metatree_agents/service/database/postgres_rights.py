"""Whether a user of PostgreSQL may make what a service keeps there, asked before anything is built for it."""

from __future__ import annotations

from metatree.errors import UserError
from metatree.storage.postgres_address import PostgresAddress


def require_rights(address: PostgresAddress, *schemas: str) -> None:
    """Ask whether the user may use these schemas, or make those that are not there.

    Raises:
        MissingExtra: psycopg is not installed.
        UserError: the database cannot be reached, or the user may not; says what its administrator has to run.
    """
    from metatree.storage.postgres import psycopg, refusal  # an extra, which a service on SQLite needs not

    grants: list[str] = []
    try:
        with psycopg.connect(**address.arguments, autocommit=True) as connection:
            user, may_create = connection.execute(
                "SELECT quote_ident(current_user), has_database_privilege(current_database(), 'CREATE')"
            ).fetchone() or ("", False)
            for schema in schemas:
                row = connection.execute(
                    "SELECT has_schema_privilege(oid, 'USAGE') AND has_schema_privilege(oid, 'CREATE')"
                    " FROM pg_namespace WHERE nspname = %s",
                    (schema,),
                ).fetchone()
                if row is None and not may_create:
                    grants.append(f'CREATE SCHEMA "{schema}" AUTHORIZATION {user};')
                elif row is not None and not row[0]:
                    grants.append(f'GRANT USAGE, CREATE ON SCHEMA "{schema}" TO {user};')
    except psycopg.Error as exc:
        raise refusal(address, exc) from None  # the driver's error may hold the password
    if grants:
        raise UserError(
            f"the user {user} may not make the tables of the service in the database at {address.shown}: let its"
            f" administrator run there: {' '.join(grants)}"
        )
