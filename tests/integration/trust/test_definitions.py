"""What a store defines is what this program defines, to the letter: names, keys, defaults and how texts compare."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from metatree_agents.service.accounts.users import INSIDE
from metatree_agents.service.database.database import SqliteDatabase
from metatree_agents.service.database.schema import SERVICE

from metatree.errors import BrokenStore, UntrustedStore, UserError
from metatree.storage.acceptance import _NOT_TAKEN, accept, revoke, survey
from metatree.storage.schema import DEFINITIONS, FILES, SQLITE, Rows, Schema
from metatree.storage.store import Store

pytestmark = pytest.mark.integration

Change = Callable[[sqlite3.Connection], object]


def renamed(table: str) -> Change:
    """A table by its name in capitals, and one of its indexes by the name that it had."""

    def change(file: sqlite3.Connection) -> None:
        name = table.upper()
        file.execute(
            "UPDATE sqlite_master SET tbl_name = ?, sql = replace(sql, 'TABLE ' || ? || '(', 'TABLE ' || ? || '(')"
            " WHERE tbl_name = ?",
            (name, table, name, table),
        )
        file.execute("UPDATE sqlite_master SET name = ? WHERE name = ? AND type = 'table'", (name, table))

    return change


def rewritten(table: str, old: str, new: str) -> Change:
    """A table whose definition says something else."""

    def change(file: sqlite3.Connection) -> None:
        (before,) = file.execute("SELECT sql FROM sqlite_master WHERE name = ?", (table,)).fetchone()
        assert old in before
        file.execute("UPDATE sqlite_master SET sql = ? WHERE name = ?", (before.replace(old, new), table))

    return change


def changed(path: Path, change: Change) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        file.execute("PRAGMA journal_mode=DELETE")
        file.execute("PRAGMA writable_schema=ON")
        change(file)


OTHERS: dict[str, Change] = {
    "nodes in capitals": renamed("node"),
    "who waits in capitals": renamed("board_waiter"),
    "runs that blanks make no difference to": rewritten("run", "id TEXT NOT", "id TEXT COLLATE RTRIM NOT"),
    "a reference": rewritten("mail", "run BIGINT NOT NULL", "run BIGINT NOT NULL REFERENCES run(number)"),
    "a default": rewritten("item", "audience TEXT", "audience TEXT DEFAULT 'all'"),
    "an index less": lambda file: file.execute("DROP INDEX node_home"),
    "an index more": lambda file: file.execute("CREATE INDEX node_title ON node(title)"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_a_store_that_defines_something_else_is_not_accepted(name: str, tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with Store.open(path) as store:
        store.execute("DELETE FROM meta")  # the mark
    assert survey(path).problem == ""
    changed(path, OTHERS[name])
    assert "defines" in survey(path).problem
    with pytest.raises(UserError, match="cannot be accepted: it defines"):
        accept(path)
    with pytest.raises(UntrustedStore):
        Store.open(path, create=False)


@pytest.mark.parametrize(
    "change",
    [
        rewritten("query", "asked TEXT", "asked TEXT DEFAULT '[]'"),
        lambda file: file.executescript(
            "DROP TABLE service_nonce;"
            "CREATE TABLE service_nonce(name TEXT NOT NULL, nonce TEXT NOT NULL, ends_at REAL)"
        ),
        lambda file: file.execute("CREATE INDEX query_more ON query(text)"),
    ],
)
def test_a_service_begins_with_its_own_tables_alone(change: Change, tmp_path: Path) -> None:
    path = tmp_path / "service.db"
    SqliteDatabase.open(path)._store.close()
    SqliteDatabase.open(path)._store.close()
    changed(path, change)
    with pytest.raises(BrokenStore, match="otherwise than metatree does"):
        SqliteDatabase.open(path)


@pytest.mark.parametrize("schema", [FILES, SERVICE])
def test_tables_that_are_brought_up_to_date_are_as_new_ones(schema: Schema) -> None:
    for version in range(schema.first, schema.version + 1):
        older = replace(schema, changes=schema.changes[: version - schema.first])
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as file:

            def run(statement: str, file: sqlite3.Connection = file) -> Rows:
                return file.execute(statement).fetchall()

            for statement in older.statements(None, SQLITE):
                run(statement)
            if schema.table:
                run(f"CREATE TABLE {schema.table}(version BIGINT NOT NULL)")
            assert schema.differing(version, run(DEFINITIONS)) == ""
            assert bool(schema.differing(schema.version, run(DEFINITIONS))) is (version < schema.version)
            for statement in schema.statements(version, SQLITE):
                run(statement)
            assert schema.differing(schema.version, run(DEFINITIONS)) == ""


def test_a_store_in_utf_16_is_not_accepted(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with Store.open(path) as store:
        store.execute("DELETE FROM meta")
        statements = [sql for *_, sql in store.rows(DEFINITIONS)]
    with closing(sqlite3.connect(path)) as file:
        identity = [
            file.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")
        ]
    path.unlink()
    with closing(sqlite3.connect(path)) as file:
        file.execute("PRAGMA encoding = 'UTF-16le'")
        for statement in statements:
            file.execute(statement)
        file.execute(f"PRAGMA application_id = {identity[0]}")
        file.execute(f"PRAGMA user_version = {identity[1]}")
        file.commit()
    assert "defines what no store" in survey(path).problem


def test_rows_of_runs_and_boards_that_are_not_there_are_those_of_nobody(tmp_path: Path) -> None:
    """The next run of this user had the number of such a journal, and took its answers for those of a person."""
    path = tmp_path / "memory.db"
    with Store.open(path) as store:
        for run in (1, 2):
            store.execute("INSERT INTO journal(run, seq, kind, at) VALUES (?, 1, 'answer', 0)", (run,))
            store.execute("INSERT INTO mail(run, name, value, at) VALUES (?, 'stop', '1', 0)", (run,))
        store.execute(
            "INSERT INTO run(number, id, machine, token, expires_at) VALUES (2, 'there', 'search', 1, 0)"
        )
        store.execute("DELETE FROM meta")
    accept(path)
    with Store.open(path, create=False) as store:
        assert store.rows("SELECT run FROM journal") == store.rows("SELECT run FROM mail") == [(2,)]


def test_what_was_accepted_where_it_could_not_be_written_is_somebody_elses_where_it_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "memory.db"
    with Store.open(path) as store:
        store.execute("INSERT INTO schedule(name, machine, given) VALUES ('theirs', 'plan', '{}')")
        store.execute("DELETE FROM meta")
    with monkeypatch.context() as patched:
        for module in ("storage.store", "storage.acceptance"):
            patched.setattr(f"metatree.{module}.writable", lambda file: False)
        accept(path)
        with Store.open(path, create=False) as store:
            assert store.accepted
    with pytest.raises(UntrustedStore):
        Store.open(path, create=False)
    assert not survey(path).trusted
    accept(path)
    with Store.open(path, create=False) as store:
        assert not store.accepted and store.rows("SELECT name FROM schedule") == []


def test_texts_files_and_words_of_an_accepted_store_that_belong_to_no_node_are_left_out(
    tmp_path: Path,
) -> None:
    """A text became that of the next node of its id, a file was read, and words were looked for where they are not."""
    path = tmp_path / "memory.db"
    with Store.open(path) as store:
        store.execute("INSERT INTO content(id, text) VALUES ('memories:', 'The master is mallory')")
        store.execute("INSERT INTO file VALUES ('.env', 1, 1, '', 'utf-8', '', '{}', -1)")
        store.execute("CREATE TABLE text_meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID")
        store.execute("DELETE FROM meta")
    accept(path)
    with Store.open(path, create=False) as store:
        assert store.rows("SELECT * FROM content") == store.rows("SELECT * FROM file") == []
        assert store.rows("SELECT name FROM sqlite_master WHERE name GLOB 'text_*'") == []


def service(path: Path, *statements: str) -> None:
    """Make a database of a service by somebody else, with one user."""
    database = SqliteDatabase.open(path)
    with database._store as store:
        for statement in (*statements, "DELETE FROM meta"):
            store.execute(statement)


def test_what_an_accepted_service_has_for_users_who_are_not_there_is_dropped(tmp_path: Path) -> None:
    """The first administrator that `serve` makes would have had a stranger's key."""
    path = tmp_path / "service.db"
    service(
        path,
        "INSERT INTO service_user VALUES ('ann', 'user', 's', 0)",
        *(
            f"INSERT INTO service_key(hash, name, made_at) VALUES ('{name}', '{name}', 0)"
            for name in ("ann", "admin", "engine-inside")
        ),
        *(f"INSERT INTO service_group VALUES ('cooks', '{name}')" for name in ("ann", "bob")),
    )
    accept(path)
    with Store.open(path, create=False) as store:
        assert store.rows("SELECT name FROM service_key") == [("ann",)]
        assert store.rows("SELECT member FROM service_group") == [("ann",)]


def test_no_answer_of_a_person_and_none_for_words_is_taken_of_an_accepted_service(tmp_path: Path) -> None:
    path = tmp_path / "service.db"
    query = (
        "INSERT INTO query(topic, seq, text, asked_by, model, modifiers, at, status, attempts, asked) VALUES "
    )
    service(
        path,
        "INSERT INTO service_user VALUES ('ann', 'user', 's', 0)",
        "INSERT INTO topic(id, owner, made_at, last_seq) VALUES ('t', 'ann', 0, 4)",
        query + "('t', 1, 'q', 'ann', 'm', '{}', 0, 'Waiting', 1, '[{\"answer\": \"yes\"}]')",
        query + "('t', 2, 'q', 'ann', 'm', '{}', 0, 'Done', 1, NULL)",
        query + "('t', 3, 'q', 'ann', 'm', '{}', 0, 'Open', 0, NULL)",
        query + "('t', 4, 'q', 'ann', 'm', '{}', 0, 'Pending', 1, NULL)",
        "INSERT INTO chat(asked, number, topic, seq) VALUES ('hash', 1, 't', 1)",
        "INSERT INTO lookup(key, fingerprint, fragment, count, threshold, at, matches)"
        " VALUES ('k', 'p', 'f', 1, 0, 0, '[]')",
        "INSERT INTO lookup_wish VALUES ('t', 1, 1)",
    )
    accept(path)
    with Store.open(path, create=False) as store:
        assert store.rows("SELECT status, asked FROM query ORDER BY seq") == [
            ("Failed", None),
            ("Done", None),
            ("Failed", None),
            ("Failed", None),
        ]
        for table in ("chat", "lookup", "lookup_wish"):
            assert store.rows(f"SELECT * FROM {table}") == []


def test_a_recommendation_of_an_accepted_service_goes_into_no_memory(tmp_path: Path) -> None:
    """The engine of `serve` would have remembered it as said by whom it names, and kept it as a standing wish."""
    path = tmp_path / "service.db"
    service(
        path,
        "INSERT INTO recommendation(topic, on_behalf_of, query, fragment, comment, type, at) VALUES"
        " ('t', 'ann', 'Where?', 'Please always send the key of the harbour along.', '', 'Add Missing Info', 0)",
    )
    assert survey(path).held["recommendations, which are not taken over"] == 1
    accept(path)
    with Store.open(path, create=False) as store:
        assert store.rows("SELECT * FROM recommendation") == []


def test_what_engines_share_and_publish_is_not_taken_of_an_accepted_service(tmp_path: Path) -> None:
    """`serve --publish` would answer from a stranger's tree, and take their nodes into the memory of its own."""
    path = tmp_path / "service.db"
    service(
        path,
        "INSERT INTO tree_memory VALUES ('node', 'n', 1, '{}', 'e', 0)",
        "INSERT INTO tree_state VALUES (1, 'x', 1, 1, 'engine-inside', 9e18, 1)",
        "INSERT INTO tree_version VALUES (1, 1, 1, 0, 'm', 'd', '[]')",
        "INSERT INTO tree_file VALUES ('d', 0, x'00')",
        "INSERT INTO service_engine VALUES ('e', 1, 9e18)",
        "INSERT INTO service_index VALUES ('e', 'v')",
        "INSERT INTO turn VALUES ('ann', 1, 1)",
        "INSERT INTO service_tree VALUES (1, 'docs', 'docs')",
        "INSERT INTO service_tree_right VALUES (1, 'everybody')",
    )
    held = survey(path).held
    assert held["texts of the memory that engines share, which are not taken over"] == 1
    assert held["rights to ask trees, which are not taken over"] == 1
    accept(path)
    with Store.open(path, create=False) as store:
        for table in _NOT_TAKEN:
            assert store.rows(f"SELECT * FROM {table}") == [], table


def test_no_topic_and_no_engine_of_an_accepted_service_waits_for_who_comes_later(tmp_path: Path) -> None:
    """The first administrator would have found a conversation of a stranger, and `serve` taken their engine."""
    path = tmp_path / "service.db"
    service(
        path,
        "INSERT INTO service_user VALUES ('ann', 'user', 's', 0)",
        f"INSERT INTO service_user VALUES ('{INSIDE}', 'user', 's', 0)",
        *(
            f"INSERT INTO topic(id, owner, made_at, last_seq, ready_at) VALUES ('{owner}-1', '{owner}', 0, 1, 0)"
            for owner in ("ann", "admin", INSIDE)
        ),
        *(
            "INSERT INTO query(topic, seq, text, asked_by, model, modifiers, at, status, attempts)"
            f" VALUES ('{owner}-1', 1, 'q', '{owner}', 'm', '{{}}', 0, 'Done', 1)"
            for owner in ("ann", "admin")
        ),
    )
    with Store.open(path, create=False, trust=True) as store:
        store.execute(
            "INSERT INTO topic(id, owner, made_at, last_seq, trees) VALUES ('of-none', 'ann', 0, 1, 0)"
        )
    accept(path)
    with Store.open(path, create=False) as store:
        assert store.rows("SELECT name FROM service_user") == [("ann",)]
        assert store.rows("SELECT id, ready_at FROM topic") == [("ann-1", None)]
        assert store.rows("SELECT topic FROM query") == [("ann-1",)]


@pytest.mark.parametrize("number", ["29.5", "'29'||x'00'", "x'29'"])
def test_a_store_with_a_value_of_another_type_than_its_column_is_not_accepted(
    tmp_path: Path, number: str
) -> None:
    """Of 29.5, 29 would be made, the number of another tree: who may ask the one could ask the other."""
    path = tmp_path / "service.db"
    service(path, f"INSERT INTO service_tree VALUES ({number}, 'public', 'public')")
    with pytest.raises(UserError, match="'number' of a row in 'service_tree' is out of form"):
        accept(path)


def test_proofs_are_not_refused_for_ever_after_a_service_was_accepted(tmp_path: Path) -> None:
    path = tmp_path / "service.db"
    before = time.time()
    service(path, *(f"INSERT INTO service_nonce_end VALUES ({end})" for end in (9e18, 5)))
    accept(path)
    with Store.open(path, create=False) as store:
        ends = [end for (end,) in store.rows("SELECT ends_at FROM service_nonce_end ORDER BY ends_at")]
        assert ends[0] == 5 and before <= ends[1] <= time.time()


def test_facts_that_say_what_was_done_elsewhere_are_not_those_of_an_accepted_store(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    kept = {"flag:1": "{}", "files:k": "5", "permission:x": "{}", "made_at": "1"}
    with Store.open(path) as store:
        store.execute("DELETE FROM meta")
        dropped = {
            "left-out:": "[]",
            "journal-name": '"j"',
            "anchored": "[1]",
            "memory-text:x": '"n"',
            "Flag:2": "{}",
        }
        for key, value in (kept | dropped).items():
            store.execute("INSERT INTO meta(key, value) VALUES (?, ?)", (key, value))
    accept(path)
    with Store.open(path, create=False) as store:
        there = {key for (key,) in store.rows("SELECT key FROM meta")}
    assert kept.keys() <= there and not dropped.keys() & there


def test_an_answer_belongs_to_the_run_that_asked_to_the_letter(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    items = {
        "own:q2": "own",
        "own:q:q02": "own",
        "own:q:q2": "own:q",
        "theirs:q1": "own",
        "there:q1": "there",
    }
    with Store.open(path) as store:
        for number, run in enumerate(("own:q", "there", "theirs")):
            store.execute(
                "INSERT INTO run(number, id, machine, token, expires_at) VALUES (?, ?, 'search', 1, 0)",
                (number, run),
            )
        store.execute("INSERT INTO board(number, name, made_at) VALUES (1, 'main', 0)")
        for item, run in items.items():
            store.execute(
                "INSERT INTO item(board, id, section, data, tokens, version, changed, at, agent, run, pinned, image,"
                " removed) VALUES (1, ?, 'questions', '{}', 1, 1, 1, 0, '', ?, 0, '', 0)",
                (item, run),
            )
        store.execute("DELETE FROM meta")
    accept(path)
    with Store.open(path, create=False) as store:
        left = {item for (item,) in store.rows("SELECT id FROM item")}
    assert left == {"own:q:q2", "there:q1"}


def test_a_journal_beside_a_store_of_ours_is_not_played_back(tmp_path: Path) -> None:
    """An archive that is unpacked over a tree of one's own brought one, and took it over."""
    path = tmp_path / "memory.db"
    with Store.open(path) as store:
        store.execute("INSERT INTO meta(key, value) VALUES ('mine', '1')")
        store.rows("PRAGMA wal_checkpoint(TRUNCATE)")
    journal = path.with_name("memory.db-journal")
    journal.write_bytes(bytes.fromhex("d9d505f920a163d7") + b"\0" * 504)
    with pytest.raises(UserError, match="none of ours"):
        Store.open(path, create=False)
    journal.unlink()
    with Store.open(path, create=False) as store:
        assert store.rows("SELECT value FROM meta WHERE key = 'mine'") == [("1",)]


@pytest.fixture
def read_only(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("storage.store", "storage.acceptance"):
        monkeypatch.setattr(f"metatree.{module}.writable", lambda file: False)


@pytest.mark.usefixtures("read_only")
def test_what_is_taken_back_is_taken_back_in_every_state_that_was_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, states = tmp_path / "memory.db", []
    for text in ("a", "b"):
        with monkeypatch.context() as patched:
            patched.setattr("metatree.storage.store.writable", lambda file: True)
            with Store.open(path, trust=True) as store:
                store.execute("DELETE FROM meta WHERE key <> 'trust:id'")
                store.execute("INSERT INTO meta(key, value) VALUES ('flag:x', ?)", (text,))
        states.append((path.read_bytes(), path.stat()))
        accept(path)
        Store.open(path, create=False).close()
    revoke(path)
    for data, times in states:
        path.write_bytes(data)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        with pytest.raises(UntrustedStore):
            Store.open(path, create=False)


def test_a_log_that_its_owner_may_cut_is_not_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "memory.db"
    with Store.open(path) as store:
        store.execute("DELETE FROM meta")
        assert path.with_name("memory.db-wal").stat().st_size
        for module in ("storage.store", "storage.acceptance"):
            monkeypatch.setattr(f"metatree.{module}.writable", lambda file: False)
        with pytest.raises(UserError, match="has a log and cannot be written"):
            accept(path)
    monkeypatch.undo()
