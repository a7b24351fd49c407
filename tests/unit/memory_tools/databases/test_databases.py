"""What may be asked of a database is told from the words of a statement; names say which values are secrets."""

from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from metatree_memory_tools.databases._dsn import Address, address_of, password_of, without_password
from metatree_memory_tools.databases._model import Rows, is_secret_name, key_of, names_of
from metatree_memory_tools.databases._postgres import Postgres
from metatree_memory_tools.databases._show import cell, rows_text
from metatree_memory_tools.databases._statement import checked, refuse_secrets
from metatree_memory_tools.databases.source import DatabaseSource

from metatree.errors import UserError
from metatree.trees.source_types import SourceRef


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1",
        "select count(*) from t where a = 'it''s; fine' ;",
        "with a as (select 1) select * from a",
        "values (1), (2)",
        "table t",
        "explain select 1",
        "select $tag$ ; drop table t $tag$, $$;$$",
        "select 1 -- ; drop table t\n",
        "select /* ; /* nested ; */ */ 1",
        "select E'a\\'; drop table t; --'",
        "show server_version",
        'select "copy that" from t',
    ],
)
def test_statements_that_read_are_run(sql: str) -> None:
    assert checked(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "",
        "   -- nothing",
        "delete from t",
        "select 1; delete from t",
        "select 1;;select 2",
        "select 'a'; drop table t",
        "/* */ drop table t",
        "(delete from t)",
        "copy t to program 'sh'",
        "copy (select 1) to '/tmp/x'",
        "do $$ begin end $$",
        "set role postgres",
        "begin",
        "commit",
        "vacuum",
        "listen x",
        "explain analyze delete from t",
        "select pg_read_file('/etc/passwd')",
        "select PG_READ_BINARY_FILE('/etc/passwd')",
        "select \"pg_read_file\"('/etc/passwd')",
        "select U&\"\\0070g_read_file\"('/etc/passwd')",
        "select pg_catalog.pg_ls_dir('/')",
        "select lo_export(1, '/tmp/x'), lo_import('/etc/passwd')",
        "select dblink('host=x', 'select 1')",
        "select dblink_connect('host=x')",
        "select query_to_xml('delete from t', true, true, '')",
        "select set_config('transaction_read_only', 'off', true)",
        "select nextval('s')",
        "select pg_terminate_backend(1)",
        "select pg_advisory_lock(1)",
        "select * from pg_authid",
        "select 'open",
        "select /* open",
        "select $a$ open",
        'select "open',
    ],
)
def test_everything_else_is_refused(sql: str) -> None:
    with pytest.raises(UserError):
        checked(sql)


@given(st.text(max_size=60))
def test_any_text_is_refused_or_begins_with_a_word_that_reads(sql: str) -> None:
    try:
        names = checked(sql)
    except UserError:
        return
    assert names[0] in {"select", "with", "values", "table", "explain", "show"}


@given(st.text(min_size=1, max_size=30))
def test_what_stands_in_a_text_is_no_statement(text: str) -> None:
    quoted = "'" + text.replace("'", "''") + "'"
    assert checked(f"SELECT {quoted}") == ["select"]


def test_columns_that_may_hold_secrets_are_refused_by_name_and_as_whole_rows() -> None:
    refuse_secrets(checked("select name from users"), {"password"}, {"users"})
    for sql in (
        "select password as p from users",
        "select row_to_json(u) from users u",
        "select u::text from users u",
    ):
        with pytest.raises(UserError, match="may hold secrets"):
            refuse_secrets(checked(sql), {"password"}, {"users"})
    refuse_secrets(checked("select row_to_json(o) from orders o"), {"password"}, {"users"})


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("password", True),
        ("PasswordHash", True),
        ("user_token", True),
        ("apiKey", True),
        ("refresh_token_expires", True),
        ("salt", True),
        ("card_number", True),
        ("passenger", False),
        ("tokenizer", False),
        ("compass", False),
        ("author", False),
        ("keyword", False),
        ("primary_key", False),
        ("name", False),
    ],
)
def test_names_say_what_may_be_secret(name: str, secret: bool) -> None:
    assert is_secret_name(name) is secret


@given(st.lists(st.text(max_size=10), min_size=1, max_size=3))
def test_names_come_back_from_a_key(names: list[str]) -> None:
    key = key_of(*names)
    assert names_of(key) == names
    assert "#" not in key
    assert "::" not in key


@pytest.mark.parametrize(
    "address", ["postgresql:///shop", "postgresql:///shop?user=me", "postgres://", "postgresql://db"]
)
def test_an_address_without_a_host_or_a_name_stays_one(address: str) -> None:
    assert without_password(address) == address
    assert address_of(address).shown == address


def test_a_password_leaves_the_address_and_is_remembered_by_this_process() -> None:
    public = without_password(
        "postgresql://ann:s%40c%2Fret@db.example.org:5433/shop?sslmode=require&password=other"
    )
    assert public == "postgresql://ann@db.example.org:5433/shop?sslmode=require"
    assert password_of(public) == "other"
    public = without_password("postgresql://ann:s%40c%2Fret@db.example.org/shop")
    assert password_of(public) == "s@c/ret"
    assert address_of(public).cleaned("fatal: s@c/ret and s%40c%2Fret") == "fatal: *** and ***"
    assert address_of("postgres://localhost").database == "postgres"


@pytest.mark.parametrize("extra", ["service=x", "options=-c%20x=y", "sslkey=/etc/x", "host=a&krbsrvname=x"])
def test_an_address_sets_nothing_but_where_and_who(extra: str) -> None:
    try:
        public = address_of(f"postgresql://ann@host/shop?{extra}").shown
    except UserError:
        return
    assert "sslkey" not in public


def test_rows_are_shown_on_bounded_lines() -> None:
    text = rows_text(Rows(("a", "b"), ((None, "x\ny" * 300), (b"\0" * 40, 1.5)), more=True))
    assert text.splitlines()[0] == "a | b"
    assert text.splitlines()[2:] == ["40 bytes | 1.5", "… there are more rows"]
    assert len(cell("x" * 10_000)) == 200
    assert rows_text(Rows(("a",), ())) == "no rows; the columns are a"
    many = rows_text(Rows(("a",), tuple(("x" * 150,) for _ in range(1000))))
    assert len(many) < 21_000
    assert "more rows were read" in many


def test_a_connection_over_which_nothing_can_be_asked_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = []

    class Refusing:
        closed = False

        def cursor(self) -> None:
            raise psycopg.OperationalError("too many")

        def close(self) -> None:
            closed.append(self)

    monkeypatch.setattr(psycopg, "connect", lambda **_: Refusing())
    with pytest.raises(UserError, match="too many"):
        Postgres.open(Address("postgresql://host/shop", "shop"))
    assert len(closed) == 1


def test_the_certificate_that_an_address_names_is_none_of_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    location = "postgresql://ann:s3cret@db/shop?sslmode=verify-full&sslrootcert=ca.pem"
    kept = DatabaseSource().kept_location(location)
    assert f"sslrootcert={quote(str(tmp_path / 'ca.pem'), safe='')}" in kept and "s3cret" not in kept
    assert password_of(kept) == "s3cret" and address_of(kept).shown == kept
    with pytest.raises(UserError, match="whatever folder is current"):
        address_of(location)
    system = "postgresql://db/shop?sslrootcert=system"
    assert address_of(DatabaseSource().kept_location(system)).shown == system


def test_the_certificate_of_a_source_that_a_tree_has_is_none_of_the_current_folder() -> None:
    kept = SourceRef("postgresql://db/shop?sslrootcert=ca.pem", {}, "shop", "database")
    with pytest.raises(UserError, match="whatever folder is current"):
        DatabaseSource().known_options(kept)
