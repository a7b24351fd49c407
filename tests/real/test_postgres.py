"""A real PostgreSQL: its schemas as nodes, and queries that can only read, even for a superuser."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from metatree_memory_tools import build_tree
from metatree_memory_tools.databases._dsn import address_of
from metatree_memory_tools.databases._postgres import Postgres
from metatree_memory_tools.databases._tools import find_rows, query_database, save_query

from metatree import search
from metatree.errors import MetatreeError, TransientError, UserError
from tests.real.postgres import Server, serving

pytestmark = pytest.mark.real

SCRIPT = """
CREATE TABLE customer(id serial PRIMARY KEY, name text NOT NULL, city text DEFAULT 'Bern', password_hash text);
COMMENT ON TABLE customer IS 'People who buy';
COMMENT ON COLUMN customer.city IS 'Where the invoice goes';
CREATE SCHEMA shop;
CREATE TABLE shop."order/s"(id int PRIMARY KEY, customer_id int REFERENCES customer(id), total numeric(9, 2));
CREATE VIEW shop.totals AS SELECT name, sum(total) AS total FROM customer JOIN shop."order/s" o
    ON o.customer_id = customer.id GROUP BY name;
CREATE SEQUENCE counter;
CREATE FUNCTION sneak() RETURNS int LANGUAGE plpgsql AS $$ BEGIN DELETE FROM customer; RETURN 1; END $$;
CREATE FUNCTION peek() RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN pg_read_file('PG_VERSION'); END $$;
CREATE FUNCTION slow() RETURNS int LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(60); RETURN 1; END $$;
INSERT INTO customer(name, city, password_hash) VALUES ('Ann', 'Bern', 's3cret'), ('Bob', 'Basel', NULL);
INSERT INTO shop."order/s" VALUES (1, 1, 10.5), (2, 1, 4.5), (3, 2, 2);
CREATE ROLE reader LOGIN;
GRANT SELECT (id, name) ON customer TO reader;
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving() as running:
        with psycopg.connect(running.address(), autocommit=True) as connection:
            for statement in SCRIPT.strip().split(";\n"):
                connection.execute(statement.encode())
        yield running


@pytest.fixture
def database(server: Server) -> Iterator[Postgres]:
    with closing(Postgres.open(address_of(server.address()))) as opened:
        yield opened


def count(server: Server) -> int:
    with psycopg.connect(server.address()) as connection:
        row = connection.execute("SELECT count(*) FROM customer").fetchone()
    assert row is not None
    return int(row[0])


def test_schemas_tables_columns_and_rows_become_nodes(server: Server, tmp_path: Path) -> None:
    address = server.address().replace("owner@", "owner:hunter2@")
    with build_tree(address, out=tmp_path / "tree") as tree:
        assert [node.title for node in tree.children("postgres")] == ["public", "shop"]
        customer = tree.get("postgres/public/customer")
        assert customer.description == "People who buy. Table of 2 rows: id, name, city, password_hash"
        assert tree.content("postgres/public/customer/city") == (
            "customer.city: text, default 'Bern'::text — Where the invoice goes"
        )
        assert tree.links("postgres/shop/order%2Fs") == [("refers_to", "postgres/public/customer")]
        assert "Ann | 15.00" in tree.content("postgres/shop/totals#rows")
        assert "s3cret" not in tree.content("postgres/public/customer#rows")
        assert not tree.stale()
        with psycopg.connect(server.address(), autocommit=True) as connection:
            connection.execute("COMMENT ON TABLE customer IS 'People who bought'")
        assert tree.stale()
        tree.refresh()
        assert "bought" in tree.get(customer.id).description
        with psycopg.connect(server.address(), autocommit=True) as connection:
            connection.execute("COMMENT ON TABLE customer IS 'People who buy'")
    written = b"".join(path.read_bytes() for path in (tmp_path / "tree").iterdir())
    assert b"hunter2" not in written


def test_the_tools_query_find_and_keep(server: Server, tmp_path: Path) -> None:
    with build_tree(server.address(), out=tmp_path / "tree") as tree:
        node = tree.get("postgres/public/customer")
        sql = 'SELECT sum(total) FROM shop."order/s" WHERE customer_id = 1'
        assert query_database.function(node=node, tree=tree, sql=sql) == "sum\n15.00"
        assert "Bob | Basel | ***" in find_rows.function(node=node, tree=tree, text="BASEL")
        with pytest.raises(UserError, match="no row"):
            find_rows.function(node=node, tree=tree, text="s3cret")
        made = save_query.function(node=node, tree=tree, sql="SELECT name FROM customer ORDER BY 1")
        assert made.content == "SELECT name FROM customer ORDER BY 1\n\nname\nAnn\nBob"


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM customer",
        "SELECT 1; DELETE FROM customer",
        "WITH gone AS (DELETE FROM customer RETURNING 1) SELECT * FROM gone",
        "SELECT sneak()",
        "SELECT peek()",
        "SELECT pg_read_file('PG_VERSION')",
        "SELECT U&\"\\0070g_read_file\"('PG_VERSION')",
        "SELECT lo_import('/etc/passwd')",
        "SELECT nextval('counter')",
        "SELECT * FROM customer FOR UPDATE",
        "SELECT * INTO copy FROM customer",
        "EXPLAIN ANALYZE DELETE FROM customer",
        "EXPLAIN ANALYZE SELECT sneak()",
        "COPY customer TO PROGRAM 'cat'",
        "COPY (SELECT 1) TO '/tmp/x'",
        "SELECT set_config('role', 'owner', true)",
        "SELECT set_config('transaction_read_only', 'off', true)",
        "SELECT query_to_xml('DELETE FROM customer', true, true, '')",
        "SELECT * FROM pg_authid",
        "SHOW data_directory",
        "SELECT password_hash AS x FROM customer",
        "SELECT c::text FROM customer c",
        "SELECT row_to_json(c) FROM customer c",
        "SELECT * FROM nowhere",
        "SELECT 1 / 0",
    ],
)
def test_nothing_but_reading_is_possible(server: Server, database: Postgres, sql: str) -> None:
    with pytest.raises(UserError):
        database.query(sql, 10)
    assert count(server) == 2
    assert database.query("SELECT 1", 1).rows == ((1,),)


def test_an_error_of_the_database_repeats_no_secret(server: Server, database: Postgres) -> None:
    key = "AKIA" + "IOSFODNN7EXAMPLE"
    with pytest.raises(UserError, match="invalid input syntax") as caught:
        database.query(f"SELECT CAST('{key}' AS integer)", 10)
    assert key[:8] not in str(caught.value) and "****" in str(caught.value)


@pytest.mark.parametrize(
    "sql", ["SELECT sneak()", "SELECT peek()", "WITH a AS (DELETE FROM customer RETURNING 1) TABLE a"]
)
def test_the_server_itself_refuses_what_the_words_do_not_tell(database: Postgres, sql: str) -> None:
    with pytest.raises(UserError, match="refused"):
        database.query(sql, 10)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM customer",
        "SELECT c FROM customer c",
        "SELECT d FROM customer AS t(a, b, c, d)",
        "SELECT x FROM (SELECT * FROM customer) AS t(a, b, c, x)",
        "SELECT row(c.*) FROM customer c",
    ],
)
def test_secrets_do_not_come_out_by_another_name(database: Postgres, sql: str) -> None:
    found = database.query(sql, 10)
    assert found.masked
    assert "s3cret" not in repr(found.rows)


def test_a_query_that_takes_too_long_is_stopped_by_the_server(
    database: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("metatree_memory_tools.databases._postgres.QUERY_S", 0.2)
    for sql in ("SELECT slow()", "SELECT count(*) FROM generate_series(1, 10000000000)"):
        with pytest.raises(UserError, match="took longer"):
            database.query(sql, 1)


def test_as_many_rows_are_read_as_were_asked_for(database: Postgres) -> None:
    found = database.query("SELECT * FROM generate_series(1, 100000)", 3)
    assert found.rows == ((1,), (2,), (3,))
    assert found.more
    assert database.query("SELECT '%' || name FROM customer ORDER BY 1", 5).rows == (("%Ann",), ("%Bob",))


def test_a_user_sees_what_it_may_read(server: Server, tmp_path: Path) -> None:
    with build_tree(server.address(user="reader"), out=tmp_path / "tree") as tree:
        assert [node.title for node in tree.children("postgres")] == ["public"]
        assert "cannot be read" in tree.get("postgres/public/customer").description
        node = tree.get("postgres/public/customer")
        assert (
            query_database.function(node=node, tree=tree, sql="SELECT name FROM customer ORDER BY 1")
            == "name\nAnn\nBob"
        )


@pytest.mark.parametrize(
    ("user", "database_name", "error"), [("nobody", "postgres", UserError), ("owner", "nowhere", UserError)]
)
def test_a_refusal_is_told_without_the_password(
    server: Server, user: str, database_name: str, error: type[MetatreeError]
) -> None:
    address = server.address(database_name, f"{user}:hunter2")
    with pytest.raises(error) as caught:
        Postgres.open(address_of(address))
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_server_that_is_not_there_keeps_the_nodes_and_says_so(tmp_path: Path) -> None:
    with pytest.raises(TransientError, match="cannot be reached"):
        Postgres.open(address_of(f"postgresql://owner:hunter2@/postgres?host={tmp_path}"))
    with build_tree(f"postgresql://owner:hunter2@/postgres?host={tmp_path}", out=tmp_path / "tree") as tree:
        note = tree.get("postgres").attributes["note"]
    assert "cannot be reached" in note
    assert "hunter2" not in note


def test_a_question_that_only_the_database_answers(server: Server, tmp_path: Path) -> None:
    with psycopg.connect(server.address(), autocommit=True) as connection:
        connection.execute("CREATE SCHEMA people")
        connection.execute(
            "CREATE TABLE people.customer AS SELECT n AS id, 'Ann ' || n AS name, 'Bern' AS city"
            " FROM generate_series(1, 50) AS n"
        )
        connection.execute("INSERT INTO people.customer VALUES (51, 'Jan Suter', 'Lugano')")
    try:
        with build_tree(server.address(), out=tmp_path / "tree") as tree:
            question = 'In which city does the customer "Jan Suter" live?'
            assert search([question], tree=tree, own_tools=False).ended == "exhausted"
            result = search([question], tree=tree)
            assert result.answer.endswith("id | name | city\n51 | Jan Suter | Lugano")
            calls = [
                entry.data["tool"] for entry in result.trace if entry.event == "tool" and "call" in entry.data
            ]
            assert calls[-1] == "find_rows"
    finally:
        with psycopg.connect(server.address(), autocommit=True) as connection:
            connection.execute("DROP SCHEMA people CASCADE")
