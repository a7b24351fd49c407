"""SQLite databases as nodes, and queries that can only read, whatever they say."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from metatree_memory_tools import build_tree
from metatree_memory_tools.databases import _sqlite
from metatree_memory_tools.databases._sqlite import SQLite
from metatree_memory_tools.databases._sqlite_apart import SQLiteApart
from metatree_memory_tools.databases._tools import find_rows, look_up, query_database, save_query
from metatree_memory_tools.databases.file_type import SQLiteFile

from metatree import search
from metatree.errors import UserError
from metatree.node import Source
from metatree.trees.source_types import SourceFile, SourceRef
from metatree.trees.tree import Tree

pytestmark = pytest.mark.integration

SCRIPT = """
CREATE TABLE customer(id INTEGER PRIMARY KEY, name TEXT NOT NULL, city TEXT DEFAULT 'Bern', password_hash TEXT);
CREATE TABLE "order/s"(id INT, customer_id INT REFERENCES customer(id), total REAL, note TEXT);
CREATE VIEW totals AS SELECT name, sum(total) AS total FROM customer JOIN "order/s" o ON o.customer_id = customer.id
    GROUP BY name;
CREATE VIEW broken AS SELECT * FROM nowhere;
CREATE VIEW leak AS SELECT password_hash AS harmless FROM customer;
CREATE VIRTUAL TABLE pages USING fts5(body);
INSERT INTO pages VALUES ('a page on winter tyres');
INSERT INTO customer VALUES (1, 'Ann', 'Bern', 's3cret'), (2, 'Bob', 'Basel', 't0psecret');
INSERT INTO "order/s" VALUES (1, 1, 10.5, 'x'), (2, 1, 4.5, NULL), (3, 2, 2, 'z');
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    path = tmp_path / "shop.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(SCRIPT)
    return path


def test_tables_columns_and_rows_become_nodes(shop: Path, tmp_path: Path) -> None:
    with build_tree(shop, out=tmp_path / "tree") as tree:
        assert [node.title for node in tree.children("shop.db")] == [
            *("broken", "customer", "leak", "order/s", "pages", "totals")
        ]
        assert tree.get("shop.db/customer").description == "Table of 2 rows: id, name, city, password_hash"
        assert tree.content("shop.db/customer/city") == "customer.city: TEXT, default 'Bern'"
        assert (
            tree.content("shop.db/order%2Fs/customer_id") == "order/s.customer_id: INT, refers to customer.id"
        )
        assert tree.links("shop.db/order%2Fs") == [("refers_to", "shop.db/customer")]
        assert tree.content("shop.db/totals#rows").splitlines() == ["name | total", "Ann | 15.0", "Bob | 2.0"]
        assert "nowhere" in tree.get("shop.db/broken").attributes["note"]
        assert "s3cret" not in tree.content("shop.db/customer#rows") + tree.content("shop.db/leak#rows")


def test_a_changed_database_is_stale_and_only_what_changed_is_written_again(
    shop: Path, tmp_path: Path
) -> None:
    with build_tree(shop, out=tmp_path / "tree") as tree:
        assert not tree.stale()
        before = tree.sequence
        with closing(sqlite3.connect(shop)) as connection:
            connection.execute("INSERT INTO customer(name) VALUES ('Eve')")
            connection.execute('DROP TABLE "order/s"')
            connection.commit()
        assert tree.stale()
        tree.refresh()
        changed = {node_id for _, node_id, _ in tree.changes(before)}
        assert "shop.db/customer#rows" in changed
        assert "shop.db/customer/name" not in changed
        assert "shop.db/order%2Fs" not in tree
        assert tree.get("shop.db/customer").attributes["rows"] == 3


def test_a_database_among_files_becomes_the_same_nodes(shop: Path, tmp_path: Path) -> None:
    folder = tmp_path / "project"
    (folder / "data").mkdir(parents=True)
    shutil.copy(shop, folder / "data" / "shop.sqlite")
    (folder / "data" / "half.db").write_bytes(shop.read_bytes()[:5000])
    with build_tree(folder) as tree:
        customer = tree.get("data/shop.sqlite#customer")
        assert customer.kind == "table"
        assert tree.content("data/shop.sqlite#customer/name") == "customer.name: TEXT, not null"
        assert "Ann | Bern | ***" in tree.content("data/shop.sqlite#customer/rows#")
        assert "cannot be read" in tree.get("data/half.db").description
        assert "15.0" in ask(tree, customer.id, 'SELECT sum(total) FROM "order/s" WHERE customer_id = 1')


def ask(tree: Tree, node: str, sql: str) -> str:
    found = query_database.function(node=tree.get(node), tree=tree, sql=sql)
    assert isinstance(found, str)
    return found


def test_the_tools_of_a_database_query_find_and_keep(shop: Path, tmp_path: Path) -> None:
    with build_tree(shop, out=tmp_path / "tree") as tree:
        node = tree.get("shop.db/customer")
        assert ask(tree, node.id, "SELECT count(*) AS n FROM customer") == "n\n2"
        assert "Bob | Basel" in find_rows.function(node=node, tree=tree, text="basel")
        with pytest.raises(UserError, match="no row"):
            find_rows.function(node=node, tree=tree, text="t0psecret")
        made = save_query.function(node=node, tree=tree, sql="SELECT name FROM customer", title="All names")
        tree.add(made, node.id)
        assert tree.content(made.id) == "SELECT name FROM customer\n\nname\nAnn\nBob"


def test_what_a_column_of_passwords_holds_by_default_is_not_told(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "notes.db")) as connection:
        connection.execute(
            "CREATE TABLE kettle(name TEXT DEFAULT 'blue', password2 TEXT DEFAULT 'hunter19Zq7Kettle')"
        )
        connection.execute("INSERT INTO kettle DEFAULT VALUES")
        connection.commit()
    with build_tree(tmp_path / "notes.db", out=tmp_path / "tree") as tree:
        assert "default 'blue'" in tree.content("notes.db/kettle/name")
        shown = [str(node) + (node.content or "") for _, node in tree.walk()]
        shown += [
            ask(tree, "notes.db/kettle", sql)
            for sql in ("SELECT * FROM kettle", "SELECT sql FROM sqlite_master")
        ]
        assert not [text for text in shown if "hunter19" in text]
    assert b"hunter19" not in (tmp_path / "tree" / "index.db").read_bytes()


def test_what_tools_show_of_cells_is_masked_as_texts_of_files_are(tmp_path: Path) -> None:
    # Of made-up letters, and put together here so that nobody takes this file for one with secrets.
    begin, end = (f"-----{word} RSA PRIVATE KEY-----" for word in ("BEGIN", "END"))
    body = [f"MIIEpQIBAAKCAQEA{number}q7Rk2LmX9vTz4WnB8sYp3JdH6fCg1AeU5oKiZx0Q" for number in range(3)]
    secrets = {"hunter19Zq7Kettle", *body, "AKIA" + "Q7RK2LMX9VTZ4WNB"}
    texts = ["\n".join([begin, *body, end]), "password=hunter19Zq7Kettle", f"id {'AKIA'}Q7RK2LMX9VTZ4WNB"]
    (tmp_path / "f").mkdir()
    for path in (tmp_path / "f" / "notes.db", tmp_path / "alone.db"):
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("CREATE TABLE kettle(name TEXT, note TEXT)")
            connection.executemany("INSERT INTO kettle VALUES ('blue', ?)", [(text,) for text in texts])
            connection.commit()
    for source, node_id in (
        (tmp_path / "f", "notes.db#kettle"),
        (tmp_path / "alone.db", "alone.db/kettle"),
    ):
        for shown in (False, True):
            with build_tree(source, out=tmp_path / f"{source.name} {shown}", include_secrets=shown) as tree:
                node = tree.get(node_id)
                said = [
                    find_rows.function(node=node, tree=tree, text="blue"),
                    look_up.function(node=node, tree=tree, question="what is the note of blue?"),
                    ask(tree, node.id, "SELECT note FROM kettle"),
                    save_query.function(node=node, tree=tree, sql="SELECT note FROM kettle").content,
                ]
                for text in said:
                    assert "note" in text
                    assert ("hunter19Zq7Kettle" in text) is (shown and source.is_dir())
                    assert shown or not [secret for secret in secrets if secret in text]


@pytest.mark.parametrize("shown", [False, True])
def test_a_name_of_a_table_that_is_a_key_is_in_no_id(tmp_path: Path, shown: bool) -> None:
    key = "ghp_" + "aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5"  # in two parts so that nobody takes it for one
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection:
        connection.execute(f"CREATE TABLE {key}(kettle TEXT PRIMARY KEY, {key} TEXT)")
        connection.execute(f"CREATE TABLE lid(kettle TEXT REFERENCES {key}(kettle))")
        connection.execute(f"INSERT INTO {key} VALUES ('blue', 'round')")
        connection.commit()
    source = SourceRef(str(tmp_path / "shop.db"), {"secrets": shown})
    with build_tree(source, out=tmp_path / "tree") as tree:
        rows = next(node for _, node in tree.walk("shop.db") if node.kind == "rows")
        assert "blue | round" in tree.content(rows)
        assert tree.links("shop.db/lid") == [("refers_to", tree.parent(rows))]
    assert (key.encode() in (tmp_path / "tree" / "index.db").read_bytes()) is shown


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM customer",
        "SELECT 1; DELETE FROM customer",
        "WITH a AS (SELECT 1) INSERT INTO customer(name) SELECT 'x'",
        "PRAGMA query_only = OFF",
        "PRAGMA writable_schema = ON",
        "SELECT * FROM pragma_query_only",
        "ATTACH '/tmp/other.db' AS other",
        "VACUUM INTO '/tmp/copy.db'",
        "SELECT load_extension('/tmp/x')",
        "SELECT writefile('/tmp/x', 'y')",
        "SELECT readfile('/etc/passwd')",
        "SELECT fts3_tokenizer('x', x'00')",
        "CREATE TEMP TABLE x(a)",
        "BEGIN",
        "DROP VIEW totals",
        "INSERT INTO pages(pages) VALUES ('optimize')",
        "UPDATE customer SET name = 'x' RETURNING name",
        "REINDEX",
        "",
    ],
)
def test_nothing_but_reading_is_possible(shop: Path, sql: str) -> None:
    before = shop.read_bytes()
    for database in (SQLite.open_file(shop), SQLite.open_bytes(before, "copy")):
        with closing(database), pytest.raises(UserError):
            database.query(sql, 10)
        with closing(SQLite.open_file(shop)) as again:
            assert again.query("SELECT count(*) FROM customer", 1).rows == ((2,),)
    assert shop.read_bytes() == before
    assert sorted(path.name for path in shop.parent.iterdir()) == ["shop.db"]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM customer",
        "SELECT password_hash AS x FROM customer",
        "SELECT password_hash || '!' FROM customer",
        "SELECT max(substr(password_hash, 1)) FROM customer",
        "SELECT group_concat(password_hash) FROM customer",
        "SELECT json_object('a', password_hash) FROM customer",
        "SELECT * FROM leak",
        "SELECT x FROM (SELECT password_hash AS x FROM customer)",
        "SELECT c FROM (SELECT 1 AS c UNION SELECT password_hash FROM customer)",
        "SELECT name FROM customer ORDER BY password_hash LIKE 's3%'",
    ],
)
def test_secrets_do_not_come_out_by_any_name(shop: Path, sql: str) -> None:
    with closing(SQLite.open_file(shop)) as database:
        found = database.query(sql, 10)
        assert "secret" not in repr(found.rows)
        assert "s3" not in repr(found.rows)
        assert found.hidden == ("password_hash",)
    with closing(SQLite.open_file(shop, secrets=True)) as database:
        assert database.query("SELECT password_hash FROM customer", 1).rows == (("s3cret",),)


def test_a_query_that_takes_too_long_or_too_much_is_stopped(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("metatree_memory_tools.databases._sqlite.QUERY_S", 0.05)
    endless = "WITH RECURSIVE a(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM a)"
    with closing(SQLite.open_file(shop)) as database:
        with pytest.raises(UserError, match="took longer"):
            database.query(f"{endless} SELECT count(*) FROM a", 1)
        assert database.query(f"{endless} SELECT x FROM a", 3).more
        for sql in ("SELECT zeroblob(1000000000)", "SELECT hex(randomblob(4000000))"):
            with pytest.raises(UserError, match="larger than"):
                database.query(sql, 1)


def test_full_text_tables_are_read_without_their_inner_ones(shop: Path) -> None:
    with closing(SQLite.open_file(shop)) as database:
        assert "pages_data" not in [table.name for table in database.tables()]
        assert database.query("SELECT body FROM pages WHERE pages MATCH 'winter'", 5).rows == (
            ("a page on winter tyres",),
        )


def test_a_database_with_a_log_is_read_with_what_is_in_it(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("PRAGMA journal_mode=WAL")
        writer.execute("CREATE TABLE t(a)")
        writer.execute("INSERT INTO t VALUES (1)")
        with closing(SQLite.open_file(path)) as database:
            assert database.query("SELECT * FROM t", 5).rows == ((1,),)
        writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        with closing(SQLite.open_bytes(path.read_bytes(), "copy")) as database:
            assert database.query("SELECT * FROM t", 5).rows == ((1,),)


def test_what_is_no_database_says_so(tmp_path: Path) -> None:
    path = tmp_path / "no.db"
    path.write_bytes(b"SQLite format 3\0" + b"x" * 5000)
    with pytest.raises(UserError, match="cannot be read as a SQLite database"):
        SQLite.open_file(path)
    with build_tree(path, tmp_path, out=tmp_path / "tree") as tree:
        assert "cannot be read" in tree.get("no.db").attributes["note"]


def test_a_row_beyond_the_samples_is_found_beside_other_sources(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "crm.db")) as connection:
        connection.execute("CREATE TABLE customer(id INTEGER PRIMARY KEY, name TEXT, city TEXT)")
        connection.executemany(
            "INSERT INTO customer(name, city) VALUES (?, ?)",
            [*((f"Customer {i}", "Bern") for i in range(50)), ("Jan Suter", "Chur")],
        )
        connection.commit()
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "boats.md").write_text("# Boats\n\nThe ferry to the city leaves at noon.\n")
    (notes / "tea.md").write_text("# Tea\n\nA kettle boils one litre in three minutes.\n")
    with build_tree(notes, tmp_path / "crm.db", out=tmp_path / "tree") as tree:
        result = search('In which city does the customer "Jan Suter" live?', tree=tree)
        assert "Jan Suter | Chur" in str(result.answer)
        assert [source.node for source in result.answers[0].sources] == ["crm.db/customer"]
        assert search("Which moons does Jupiter have?", tree=tree).ended == "exhausted"


def test_a_table_with_a_name_without_end_is_left_out(tmp_path: Path) -> None:
    """Each of its columns has the name in its id: 300,000 letters and 2,000 columns took gigabytes."""
    with closing(sqlite3.connect(tmp_path / "a.db")) as made, made:
        made.execute(f"CREATE TABLE {'a' * 1_001} (b)")
        made.execute(f"CREATE TABLE {'c' * 1_000} (d)")
    with build_tree(tmp_path) as tree:
        assert [node.title for _, node in tree.walk() if node.kind == "table"] == ["c" * 1_000]


def test_columns_and_tables_without_an_end_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Views of a table of 2,000 columns have as many each, and 190,000 took 640 MB."""
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path)) as made, made:
        made.execute(f"CREATE TABLE t ({', '.join(f'c{number}' for number in range(1_500))})")
        for number in range(25):
            made.execute(f"CREATE VIEW v{number:02} AS SELECT * FROM t")
    data = path.read_bytes()
    with closing(SQLite.open_bytes(data, "a.db")) as database:
        tables = list(database.tables())
    assert len(tables) == 26 and sum(len(table.columns) for table in tables) == 30_000
    assert tables[19].columns and not tables[20].columns and "30,000 columns" in tables[25].problem
    for name, most in (("_MOST_TABLES", 25), ("_MOST_DEFINITIONS", 5_000)):
        with monkeypatch.context() as patch:
            patch.setattr(_sqlite, name, most)
            with pytest.raises(UserError, match=r"has 26 tables and views, with definitions of 0\.0 million"):
                SQLite.open_bytes(data, "a.db")
            with pytest.raises(UserError, match="26 tables"):
                SQLite.open_file(path)


def test_a_file_of_many_tables_is_looked_at_as_a_whole_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To tell a file of 40 MB from others takes a quarter of a second, and was done for the rows of each table."""
    path = tmp_path / "shop.db"
    with closing(sqlite3.connect(path)) as connection:
        for number in range(9):
            connection.execute(f"CREATE TABLE t{number}(a)")
            connection.execute(f"INSERT INTO t{number} VALUES ('kettle {number}')")
        connection.commit()
    opened: list[str] = []
    open_bytes = SQLiteApart.open_bytes

    def counted(data: bytes, title: str, *, secrets: bool = False) -> SQLiteApart:
        opened.append(title)
        return open_bytes(data, title, secrets=secrets)

    monkeypatch.setattr(SQLiteApart, "open_bytes", counted)
    kind, file = SQLiteFile(), SourceFile("shop.db", path.read_bytes())
    for number in range(9):
        text = kind.content(file, Source(type="sqlite", path="shop.db", start_line=2 * number + 2))
        assert f"kettle {number}" in text
    assert len(opened) == 1
