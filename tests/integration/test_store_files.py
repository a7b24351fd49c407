"""Store files on disk: other programs' files, damage, newer versions, several processes."""

import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from metatree.errors import BrokenStore, MetatreeError, TransientError, UserError
from metatree.storage import store
from metatree.storage.schema import FILES
from metatree.storage.store import Store

pytestmark = pytest.mark.integration


def test_a_file_is_in_wal_mode_and_keeps_what_was_written(tmp_path: Path) -> None:
    with Store.open(tmp_path / "a.db") as first:
        first.execute("INSERT INTO meta VALUES ('a', '1')")
        assert first.rows("PRAGMA journal_mode") == [("wal",)]
    with Store.open(tmp_path / "a.db") as second:
        assert second.rows("SELECT * FROM meta WHERE key = 'a'") == [("a", "1")]


def test_a_missing_folder_is_reported(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="folder exists"):
        Store.open(tmp_path / "no" / "a.db")
    with pytest.raises(UserError, match="no file"):
        Store.open(tmp_path / "a.db", create=False)
    assert not (tmp_path / "a.db").exists()


def test_a_text_file_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "a.db").write_text("hello " * 1000)
    with pytest.raises(BrokenStore, match="no database of metatree") as caught:
        Store.open(tmp_path / "a.db")
    assert caught.value.reason == "damaged"


def test_a_file_of_another_program_is_left_alone(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "a.db") as connection:
        connection.execute("CREATE TABLE t(x)")
    connection.close()
    before = (tmp_path / "a.db").read_bytes()
    with pytest.raises(BrokenStore, match="another program") as caught:
        Store.open(tmp_path / "a.db")
    assert caught.value.reason == "foreign"
    assert (tmp_path / "a.db").read_bytes() == before


def test_a_newer_schema_asks_for_an_upgrade(tmp_path: Path) -> None:
    with Store.open(tmp_path / "a.db") as opened:
        opened.execute("PRAGMA user_version=99")
    with pytest.raises(BrokenStore, match="upgrade") as caught:
        Store.open(tmp_path / "a.db")
    assert caught.value.reason == "newer"


def test_damage_in_the_middle_is_reported_when_it_is_met(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with Store.open(path) as opened, opened.transaction():
        opened.execute_many("INSERT INTO meta VALUES (?, ?)", ((f"k{n}", "x" * 500) for n in range(500)))
    data = bytearray(path.read_bytes())
    for page in range(50, len(data) // 4096):  # behind the schema
        data[page * 4096 : page * 4096 + 200] = b"\xff" * 200
    path.write_bytes(data)
    with pytest.raises(BrokenStore, match="damaged"), Store.open(path) as opened:
        opened.rows("SELECT count(value), max(value) FROM meta")


def test_an_older_file_is_migrated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Store.open(tmp_path / "a.db") as opened:
        opened.execute("INSERT INTO meta VALUES ('a', '1')")
    more = "CREATE TABLE extra(x);\nINSERT INTO extra VALUES (7);"
    monkeypatch.setattr(store, "FILES", replace(FILES, changes=(*FILES.changes, more)))
    with Store.open(tmp_path / "a.db") as opened:
        assert opened.rows("SELECT x FROM extra") == [(7,)]
        assert opened.rows("SELECT value FROM meta WHERE key = 'a'") == [("1",)]
    with Store.open(tmp_path / "a.db") as again:
        assert again.rows("SELECT x FROM extra") == [(7,)]


def test_a_migration_that_fails_leaves_the_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Store.open(tmp_path / "a.db").close()
    wrong = "CREATE TABLE extra(x);\nINSERT INTO nowhere VALUES (7);"
    monkeypatch.setattr(store, "FILES", replace(FILES, changes=(*FILES.changes, wrong)))
    with pytest.raises(MetatreeError, match="no such table: nowhere"):
        Store.open(tmp_path / "a.db")
    monkeypatch.setattr(store, "FILES", FILES)
    with Store.open(tmp_path / "a.db") as opened:
        assert opened.rows("SELECT name FROM sqlite_master WHERE name = 'extra'") == []


def test_a_writer_that_waits_too_long_may_try_again(tmp_path: Path) -> None:
    with Store.open(tmp_path / "a.db") as first, Store.open(tmp_path / "a.db", busy_timeout_s=0.05) as second:
        with first.transaction():
            first.execute("INSERT INTO meta VALUES ('a', '1')")
            assert second.rows("SELECT * FROM meta WHERE key = 'a'") == []
            with pytest.raises(TransientError, match="another process"), second.transaction():
                pass
        assert second.rows("SELECT * FROM meta WHERE key = 'a'") == [("a", "1")]


def test_many_processes_may_open_a_new_file_at_once(tmp_path: Path) -> None:
    code = (
        "import sys; from metatree.storage.store import Store\n"
        "with Store.open(sys.argv[1]) as s:\n"
        "    s.execute('INSERT INTO meta VALUES (?, ?)', (sys.argv[2], '1'))\n"
    )
    path = str(tmp_path / "a.db")
    running = [subprocess.Popen([sys.executable, "-c", code, path, str(n)]) for n in range(6)]
    assert [process.wait(60) for process in running] == [0] * 6
    with Store.open(path) as opened:
        assert opened.rows("SELECT count(*) FROM meta WHERE key < 'trust:'") == [(6,)]


def test_a_second_look_at_a_file_leaves_the_locks_of_the_first_alone(tmp_path: Path) -> None:
    """What is opened and closed besides SQLite takes its locks away, and another process deletes the log in use."""
    path = str(tmp_path / "a.db")
    code = (
        "import sys; from metatree.storage.store import Store\n"
        "with Store.open(sys.argv[1]) as s: print(s.rows('SELECT key FROM meta WHERE key < ?', ('b',)))\n"
    )

    def another() -> str:
        return subprocess.run(
            [sys.executable, "-c", code, path], check=True, capture_output=True, text=True, timeout=60
        ).stdout.strip()

    with Store.open(path) as first:
        first.execute("INSERT INTO meta VALUES ('a1', '1')")
        Store.open(path).close()
        assert another() == "[('a1',)]"
        first.execute("INSERT INTO meta VALUES ('a2', '1')")
        assert another() == "[('a1',), ('a2',)]"
