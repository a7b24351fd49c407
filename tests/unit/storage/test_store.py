"""One SQLite file: schema, transactions, threads, and errors that say what to do."""

import threading

import pytest

from metatree.errors import MetatreeError, UserError
from metatree.storage.schema import FILES, _statements
from metatree.storage.store import APPLICATION_ID, Store


def test_a_fresh_store_has_the_latest_schema() -> None:
    store = Store.open(":memory:")
    assert store.rows("PRAGMA user_version") == [(FILES.version,)]
    assert store.rows("PRAGMA application_id") == [(APPLICATION_ID,)]


def test_a_transaction_keeps_all_or_nothing() -> None:
    store = Store.open(":memory:")
    with pytest.raises(RuntimeError), store.transaction():
        store.execute("INSERT INTO meta VALUES ('a', '1')")
        with store.transaction():
            store.execute("INSERT INTO meta VALUES ('b', '2')")
        raise RuntimeError
    assert store.rows("SELECT * FROM meta") == []
    with store.transaction():
        store.execute("INSERT INTO meta VALUES ('c', '3')")
    assert store.rows("SELECT key FROM meta") == [("c",)]


def test_an_error_inside_an_inner_block_takes_the_outer_one_back_only_when_it_leaves_it() -> None:
    store = Store.open(":memory:")
    with store.transaction():
        store.execute("INSERT INTO meta VALUES ('a', '1')")
        with pytest.raises(ValueError), store.transaction():
            raise ValueError
    assert store.rows("SELECT key FROM meta") == [("a",)]


def test_threads_take_turns_and_never_see_half_a_transaction() -> None:
    store = Store.open(":memory:")
    with store.transaction():
        store.execute("INSERT INTO meta VALUES ('n', '0')")
    seen: list[int] = []

    def work() -> None:
        for _ in range(50):
            with store.transaction():
                before = int(store.rows("SELECT value FROM meta WHERE key = 'n'")[0][0])
                store.execute("UPDATE meta SET value = '-1' WHERE key = 'n'")
                store.execute("UPDATE meta SET value = ? WHERE key = 'n'", (str(before + 1),))
            seen.append(int(store.rows("SELECT value FROM meta WHERE key = 'n'")[0][0]))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.rows("SELECT value FROM meta WHERE key = 'n'") == [("200",)]
    assert -1 not in seen


def test_a_closed_store_says_so() -> None:
    store = Store.open(":memory:")
    store.close()
    store.close()
    with pytest.raises(UserError, match="closed"):
        store.rows("SELECT 1")


def test_text_that_sqlite_cannot_hold_is_an_error_of_ours() -> None:
    store = Store.open(":memory:")
    with pytest.raises(MetatreeError, match="surrogate"):
        store.execute("INSERT INTO meta VALUES ('x', ?)", ("\ud800",))


def test_statements_are_cut_at_their_ends_only() -> None:
    script = (
        "-- one; two\nCREATE TABLE a(x);\nCREATE TRIGGER t AFTER INSERT ON a BEGIN\n DELETE FROM a;\nEND;\n"
    )
    assert len(list(_statements(script))) == 2
