"""Files keep their histories through all their names."""

from metatree_memory_tools.git._history_writer import HistoryWriter, ReadCommit

from metatree.storage.store import Store
from metatree.trees.history import all_touches, commits_of

Touched = tuple[str, str, str | None]


def written(*commits: list[Touched], at_once: bool = True) -> Store:
    store = Store.open(":memory:")
    read = [
        ReadCommit(f"{number:040x}", "", number, "Ann", str(number), "", touched)
        for number, touched in enumerate(commits)
    ]
    for batch in [read] if at_once else [[commit] for commit in read]:
        with store.transaction():
            writer = HistoryWriter(store, "")
            writer.add(batch)
            writer.finish()
    return store


def history(store: Store, path: str) -> list[str]:
    return [commit.subject for commit in commits_of(store, path)]


def test_files_that_swap_names_keep_their_histories() -> None:
    for at_once in (True, False):
        store = written(
            [("A", "a", None), ("A", "b", None)],
            [("M", "a", None)],
            [("R", "b", "a"), ("R", "a", "b")],
            [("M", "a", None)],
            at_once=at_once,
        )
        assert history(store, "b") == ["2", "1", "0"]
        assert history(store, "a") == ["3", "2", "0"]


def test_a_file_moved_over_another_has_the_history_of_both() -> None:
    for at_once in (True, False):
        store = written(
            [("A", "a", None)], [("A", "b", None)], [("R", "b", "a")], [("M", "b", None)], at_once=at_once
        )
        assert history(store, "b") == ["3", "2", "1", "0"]
        assert {path for _, path in all_touches(store)} == {"b"}


def test_a_file_that_comes_back_is_the_same_file() -> None:
    store = written([("A", "a", None)], [("D", "a", None)], [("A", "a", None)])
    assert history(store, "a") == ["2", "1", "0"]


def test_a_new_file_under_an_old_name_is_another_file() -> None:
    store = written([("A", "a", None)], [("R", "b", "a")], [("A", "a", None)], [("R", "a", "b")])
    assert history(store, "a") == ["3", "2", "1", "0"]


def test_a_rename_of_what_was_never_seen_begins_a_history() -> None:
    store = written([("R", "b", "a")], [("M", "b", None)])
    assert history(store, "b") == ["1", "0"]
