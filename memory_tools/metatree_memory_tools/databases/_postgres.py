"""PostgreSQL, in read-only transactions with time limits, as a role that can only read where that is possible."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from metatree._util.secret_text import masked
from metatree.errors import MissingExtra, TransientError, UserError
from metatree_memory_tools.databases._dsn import Address, connection_arguments
from metatree_memory_tools.databases._model import (
    SAMPLE_ROWS,
    Column,
    ForeignKey,
    Rows,
    Table,
    is_secret_name,
    rows_without_secrets,
)
from metatree_memory_tools.databases._statement import checked, refuse_secrets

if TYPE_CHECKING:
    import psycopg

QUERY_S = 5.0
_CONNECT_S = 10
_SAMPLE_S = 2.0
_COUNT_S = 0.5
_HITS = '"number of texts held"'
_COUNTED_ROWS = 50_000
"""Tables of which the server believes that they have more rows are not counted."""

_TABLES = """
SELECT c.oid, n.nspname, c.relname, c.relkind::text, c.reltuples::bigint, obj_description(c.oid, 'pg_class')
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'v', 'm', 'p', 'f') AND n.nspname NOT IN ('pg_catalog', 'information_schema')
  AND n.nspname NOT LIKE 'pg\\_toast%' AND n.nspname NOT LIKE 'pg\\_temp%' AND NOT c.relispartition
  AND has_schema_privilege(n.oid, 'USAGE') AND has_any_column_privilege(c.oid, 'SELECT')
ORDER BY n.nspname, c.relname
"""
_COLUMNS = """
SELECT a.attrelid, a.attname, format_type(a.atttypid, a.atttypmod), NOT a.attnotnull, pg_get_expr(d.adbin, d.adrelid),
  col_description(a.attrelid, a.attnum), coalesce(a.attnum = ANY (i.indkey), false)
FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
LEFT JOIN pg_index i ON i.indrelid = a.attrelid AND i.indisprimary
WHERE a.attrelid = ANY (%s) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attrelid, a.attnum
"""
_FOREIGN = """
SELECT k.conrelid, n.nspname, f.relname,
  ARRAY(SELECT attname::text FROM unnest(k.conkey) WITH ORDINALITY AS u(num, at)
    JOIN pg_attribute ON attrelid = k.conrelid AND attnum = u.num ORDER BY at),
  ARRAY(SELECT attname::text FROM unnest(k.confkey) WITH ORDINALITY AS u(num, at)
    JOIN pg_attribute ON attrelid = k.confrelid AND attnum = u.num ORDER BY at)
FROM pg_constraint k JOIN pg_class f ON f.oid = k.confrelid JOIN pg_namespace n ON n.oid = f.relnamespace
WHERE k.contype = 'f' AND k.conrelid = ANY (%s) ORDER BY k.conrelid, k.conname
"""
_STATE = """
SELECT md5(string_agg(line, E'\\n' ORDER BY line)) FROM (
  SELECT concat_ws(':', c.oid, n.nspname, c.relname, c.relkind, c.reltuples,
    (SELECT string_agg(concat_ws(',', attname, atttypid, atttypmod, attnotnull, atthasdef), ';' ORDER BY attnum)
     FROM pg_attribute a WHERE a.attrelid = c.oid AND attnum > 0 AND NOT attisdropped),
    (SELECT string_agg(md5(description), ',' ORDER BY objsubid) FROM pg_description WHERE objoid = c.oid),
    (SELECT n_tup_ins + n_tup_upd + n_tup_del FROM pg_stat_user_tables s WHERE s.relid = c.oid),
    (SELECT string_agg(k.oid::text, ',' ORDER BY k.oid) FROM pg_constraint k WHERE k.conrelid = c.oid)) AS line
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE c.relkind IN ('r', 'v', 'm', 'p', 'f') AND n.nspname NOT IN ('pg_catalog', 'information_schema')
    AND n.nspname NOT LIKE 'pg\\_toast%' AND n.nspname NOT LIKE 'pg\\_temp%') AS lines
"""
_SETTINGS = (
    "-c default_transaction_read_only=on -c lock_timeout=1000 -c idle_in_transaction_session_timeout=30000"
    " -c search_path=public,pg_catalog -c row_security=on"
)


_ALL_COLUMNS = """
SELECT c.oid, c.relname, a.attnum, a.attname, c.reltype, t.typarray
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_type t ON t.oid = c.reltype
WHERE a.attnum > 0 AND NOT a.attisdropped AND c.relkind IN ('r', 'v', 'm', 'p', 'f')
  AND n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\\_toast%'
"""
_RECORD, _RECORDS = 2249, 2287
"""Types of rows without a name, and of arrays of them."""


@dataclass(frozen=True, slots=True)
class _Secrets:
    """What is known of columns that may hold secrets."""

    names: frozenset[str]
    tables: frozenset[str]
    places: frozenset[tuple[int, int]]
    """Table and number of each."""
    row_types: frozenset[int]
    """Types of whole rows that have such a column."""


class Postgres:
    """A connection to a PostgreSQL database, for reading.

    Every statement has a transaction of its own that the server holds read-only, with a time limit of the server. A
    superuser becomes `pg_read_all_data` in it, which may read tables and nothing else of the server. Statements are
    sent by the extended protocol, which takes one statement alone.
    """

    product = "PostgreSQL"
    has_schemas = True

    def __init__(
        self, connection: psycopg.Connection[Any], address: Address, *, secrets: bool = False
    ) -> None:
        """Use `open`."""
        self.title = address.database
        self._address = address
        self._connection = connection
        self._secrets = secrets
        self._role = self._lesser_role()
        self._known: _Secrets | None = None

    @classmethod
    def open(cls, address: Address, *, secrets: bool = False) -> Postgres:
        """Connect.

        Raises:
            MissingExtra: psycopg is not installed.
            TransientError: the server cannot be reached.
            UserError: it refuses.
        """
        try:
            import psycopg
        except ImportError as exc:
            raise MissingExtra("postgres", what="reading PostgreSQL") from exc
        try:
            connection = psycopg.connect(
                **connection_arguments(address),
                autocommit=True,
                connect_timeout=_CONNECT_S,
                options=_SETTINGS,
                application_name="metatree",
            )
        except psycopg.Error as exc:
            text = address.cleaned(str(exc))
            if (
                isinstance(exc, psycopg.OperationalError)
                and "password" not in text
                and "does not exist" not in text
            ):
                raise TransientError(f"{address.shown} cannot be reached: {text.splitlines()[0]}") from None
            raise UserError(
                f"{address.shown} refuses: {text}; passwords come from PGPASSWORD or ~/.pgpass"
            ) from None
        try:
            return cls(connection, address, secrets=secrets)
        except BaseException:
            connection.close()
            raise

    def close(self) -> None:
        self._connection.close()

    def _lesser_role(self) -> str | None:
        with self._transaction(QUERY_S, role=None) as cursor:
            cursor.execute(
                "SELECT current_setting('is_superuser') = 'on' AND EXISTS"
                " (SELECT FROM pg_roles WHERE rolname = 'pg_read_all_data')"
            )
            row = cursor.fetchone()
        return "pg_read_all_data" if row and row[0] else None

    @contextmanager
    def _transaction(self, seconds: float, *, role: str | None) -> Iterator[psycopg.Cursor[Any]]:
        """Open a transaction that cannot write, and turn the server's errors into ours."""
        import psycopg

        try:
            with self._connection.cursor() as cursor:
                cursor.execute("BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
                try:
                    if role is not None:
                        cursor.execute("SET LOCAL ROLE pg_read_all_data")
                    cursor.execute(
                        "SELECT set_config('statement_timeout', %s, true)", (str(int(seconds * 1000)),)
                    )
                    yield cursor
                finally:
                    with suppress(psycopg.Error):
                        self._connection.execute("ROLLBACK")
        except psycopg.errors.QueryCanceled as exc:
            raise UserError(f"the query took longer than {seconds:g} s: ask for less") from exc
        except psycopg.errors.ReadOnlySqlTransaction as exc:
            raise UserError(f"refused: {self._message(exc)}; only statements that read are run") from exc
        except psycopg.errors.InsufficientPrivilege as exc:
            raise UserError(f"refused by the database: {self._message(exc)}") from exc
        except psycopg.OperationalError as exc:
            if self._connection.closed:
                raise TransientError(
                    f"{self._address.shown} closed the connection: {self._message(exc)}"
                ) from exc
            raise UserError(f"the query failed: {self._message(exc)}") from exc
        except (psycopg.Error, UnicodeError, ValueError) as exc:
            raise UserError(f"the query failed: {self._message(exc)}") from exc

    def _message(self, exc: Exception) -> str:
        said = self._address.cleaned(str(exc).strip().split("\nLINE ")[0].replace("\n", "; "))
        return said if self._secrets else masked(said)[0]

    def fingerprint(self) -> str:
        """Return a hash of the schema, the comments, and how much was written into each table."""
        with self._transaction(QUERY_S, role=self._role) as cursor:
            cursor.execute(_STATE)
            row = cursor.fetchone()
        return str(row[0]) if row else ""

    def tables(self) -> Iterator[Table]:
        with self._transaction(30.0, role=self._role) as cursor:
            cursor.execute(_TABLES)
            tables = cursor.fetchall()
            oids = [row[0] for row in tables]
            cursor.execute(_COLUMNS, (oids,))
            columns: dict[int, list[Column]] = {}
            for oid, name, kind, nullable, default, comment, key in cursor.fetchall():
                column = Column(name, kind, nullable, default, comment or "", key)
                columns.setdefault(oid, []).append(column)
            cursor.execute(_FOREIGN, (oids,))
            foreign: dict[int, list[ForeignKey]] = {}
            for oid, schema, table, own, there in cursor.fetchall():
                foreign.setdefault(oid, []).append(ForeignKey(tuple(own), (schema, table), tuple(there)))
        for oid, schema, name, kind, estimate, comment in tables:
            view = kind in ("v", "m")
            digest, problem = self._sample_digest(schema, name)
            count, exact = self._count(schema, name, estimate, view=view)
            yield Table(
                schema,
                name,
                "view" if view else "table",
                tuple(columns.get(oid, ())),
                tuple(foreign.get(oid, ())),
                (),
                comment or "",
                count,
                exact,
                digest,
                problem,
            )

    def _count(self, schema: str, name: str, estimate: int, *, view: bool) -> tuple[int | None, bool]:
        if estimate > _COUNTED_ROWS:
            return estimate, False
        try:
            with self._transaction(_COUNT_S, role=self._role) as cursor:
                cursor.execute(_sql(f"SELECT count(*) FROM {_quoted(schema)}.{_quoted(name)}"))
                row = cursor.fetchone()
            return (int(row[0]) if row else None), True
        except UserError:
            return (estimate, False) if estimate > 0 and not view else (None, True)

    def _sample_digest(self, schema: str, name: str) -> tuple[str, str]:
        try:
            return self.sample(schema, name).digest(), ""
        except UserError as exc:
            return "", str(exc)

    def sample(self, schema: str, table: str, limit: int = SAMPLE_ROWS) -> Rows:
        self._secret_columns()
        with self._transaction(_SAMPLE_S, role=self._role) as cursor:
            return self._fetched(
                cursor, f"SELECT * FROM {_quoted(schema)}.{_quoted(table)} LIMIT {int(limit)}", limit
            )

    def find(self, schema: str, table: str, texts: Sequence[str], limit: int) -> Rows:
        self._secret_columns()
        place = f"{_quoted(schema)}.{_quoted(table)}"
        with self._transaction(QUERY_S, role=self._role) as cursor:
            cursor.execute(
                "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped"
                " AND has_column_privilege(attrelid, attnum, 'SELECT') ORDER BY attnum",
                (place,),
            )
            names = [row[0] for row in cursor.fetchall()]
            searched = [name for name in names if self._secrets or not is_secret_name(name)]
            if not searched:
                raise UserError(f"there is no table {table!r} with columns that are shown")
            # A name may hold the sign that stands for a value.
            row = f"concat_ws(E'\\n', {', '.join(_quoted(name) for name in searched)})".replace("%", "%%")
            matches = " + ".join([f"(strpos(lower({row}), lower(%s)) > 0)::int"] * len(texts))
            columns = ", ".join(map(_quoted, names)).replace("%", "%%")
            sql = (
                f"WITH counted AS (SELECT {columns}, {matches} AS {_HITS} FROM {place.replace('%', '%%')})"
                f" SELECT {columns} FROM counted WHERE {_HITS} > 0 AND {_HITS} = (SELECT max({_HITS}) FROM counted)"
            )
            return self._fetched(cursor, sql, limit, tuple(texts))

    def query(self, sql: str, limit: int) -> Rows:
        names = checked(sql)
        if not self._secrets:
            known = self._secret_columns()
            refuse_secrets(names, known.names, known.tables)
        with self._transaction(QUERY_S, role=self._role) as cursor:
            return self._fetched(cursor, sql, limit)

    def _secret_columns(self) -> _Secrets:
        if self._known is None:
            with self._transaction(QUERY_S, role=self._role) as cursor:
                cursor.execute(_ALL_COLUMNS)
                rows = [row for row in cursor.fetchall() if is_secret_name(row[3])]
            self._known = _Secrets(
                frozenset(row[3] for row in rows),
                frozenset(row[1] for row in rows),
                frozenset((row[0], row[2]) for row in rows),
                frozenset(oid for row in rows for oid in row[4:6]) | {_RECORD, _RECORDS},
            )
        return self._known

    def _fetched(
        self, cursor: psycopg.Cursor[Any], sql: str, limit: int, values: tuple[str, ...] | None = None
    ) -> Rows:
        """Run a statement by the extended protocol, which takes one alone, and read so many rows and no more."""
        rows: list[tuple[Any, ...]] = []
        more = False
        for row in cursor.stream(_sql(sql), values):
            if len(rows) == limit:
                more = True
                break
            rows.append(tuple(row))
        columns = tuple(column.name for column in cursor.description or ())
        masked = frozenset() if self._secrets else self._masked(cursor)
        visible = tuple(
            tuple(None if number in masked else value for number, value in enumerate(row)) for row in rows
        )
        if not self._secrets:
            visible = rows_without_secrets(visible)
        return Rows(columns, visible, more, masked, tuple(columns[number] for number in sorted(masked)))

    def _masked(self, cursor: psycopg.Cursor[Any]) -> frozenset[int]:
        """Return which columns of a result are columns that may hold secrets, whatever they are called there."""
        known, result = self._known, cursor.pgresult
        numbers = {
            number for number, column in enumerate(cursor.description or ()) if is_secret_name(column.name)
        }
        if known is not None and result is not None:
            for number in range(result.nfields):
                place = (result.ftable(number), result.ftablecol(number))
                if place in known.places or result.ftype(number) in known.row_types:
                    numbers.add(number)
        return frozenset(numbers)


def _sql(text: str) -> Any:
    # psycopg wants literals, so that nobody puts values into texts; here the text is what the user asked to run.
    return text


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
