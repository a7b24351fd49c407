"""A cache folder that lies in a checkout, and came with it: nothing outside of it is read, written or deleted."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import zlib
from contextlib import closing
from pathlib import Path
from threading import Thread

import diskcache
import pytest
from metatree_agents.cli._main import run
from metatree_memory_tools.documents._document_text import Extracted
from metatree_memory_tools.documents._text_cache import KeptTexts
from metatree_routers.wrappers.disk_cache import DiskCache

from metatree._util.cache_folder import cache_folder, cache_part
from tests.integration.trust.prepared import Clone, change, journal_of, state

pytestmark = pytest.mark.integration

EXPIRED = "UPDATE Cache SET filename = ?, mode = 2, value = NULL, expire_time = 1"
TRIGGER = "CREATE TRIGGER also AFTER INSERT ON Cache BEGIN DELETE FROM Cache WHERE key = 'mine'; END"


@pytest.fixture
def cache(clone: Clone, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache folder of a clone, as CI has it, with a database of diskcache in it."""
    folder = clone.folder / ".cache"
    monkeypatch.setenv("METATREE_CACHE_DIR", str(folder))
    policy = "least-recently-used"
    # As ours, so that only what a test changes is other.
    with diskcache.Cache(folder / "servers", disk=diskcache.JSONDisk, eviction_policy=policy) as made:
        made.set("x", "y")
    return folder


def used(name: str = "servers") -> DiskCache:
    """Keep and read something, and close what was opened."""
    kept = DiskCache(name=name)
    kept.set("mine", 1)
    assert kept.get("mine") == 1
    kept.close()
    return kept


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        (EXPIRED, "names files"),
        ("INSERT INTO Settings VALUES ('_directory', ?)", "has other settings"),
        ("UPDATE Settings SET value = ? WHERE key = 'sqlite_cache_size'", "has other settings"),
        ("UPDATE Settings SET value = 9 WHERE key = 'sqlite_mmap_size'", "has other settings"),
        (TRIGGER, "has other tables, indexes or triggers"),
        ("CREATE TABLE more (x)", "has other tables, indexes or triggers"),
    ],
)
@pytest.mark.parametrize("relative", [True, False])
def test_a_database_that_is_not_ours_is_made_anew(
    clone: Clone, cache: Path, caplog: pytest.LogCaptureFixture, statement: str, why: str, relative: bool
) -> None:
    target = "../../../elsewhere/diary.md" if relative else str(clone.secret)
    change(cache / "servers" / "cache.db", (statement, [target] if "?" in statement else []))
    (cache / "servers" / "other").write_text("kept")
    before = state(clone.secret.parent)
    used()
    assert state(clone.secret.parent) == before
    said = [record.message for record in caplog.records]
    assert len(said) == 1 and f"is made anew: its database {why}" in said[0]
    assert (cache / "servers" / "other").read_text() == "kept"
    used()
    assert len(caplog.records) == 1


def test_a_journal_and_links_in_a_cache_lead_nowhere(clone: Clone, cache: Path) -> None:
    before = state(clone.secret.parent)
    folder = cache / "servers"
    (folder / "cache.db-journal").write_bytes(journal_of(clone.secret))
    used()
    for name in ("cache.db", "cache.db-wal"):
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(clone.secret)
        used()
    assert state(clone.secret.parent) == before


def test_no_value_is_kept_in_a_file_or_read_from_one(clone: Clone, cache: Path) -> None:
    """The folders that diskcache would keep large values in may be links."""
    for number in range(256):
        (cache / "servers" / f"{number:02x}").symlink_to(clone.secret.parent)
    before = state(clone.secret.parent)
    kept = DiskCache(name="servers")
    large = [str(number) for number in range(100_000)]
    kept.set("large", large)
    assert kept.get("large") == large
    change(
        cache / "servers" / "cache.db",
        (EXPIRED.replace("expire_time = 1", "access_time = 1"), [clone.secret.name]),
    )
    assert kept.get("large") is None
    kept.set("large", 2)
    assert kept.get("large") == 2
    assert state(clone.secret.parent) == before


def test_a_cache_of_ours_is_kept(cache: Path, caplog: pytest.LogCaptureFixture) -> None:
    kept = DiskCache(name="servers", size_limit_bytes=1 << 24)
    assert kept.get("x") == "y"
    kept.set("mine", 1)
    kept.close()
    again = DiskCache(name="servers")
    assert again.get("mine") == 1
    again.set("more", 2)
    assert DiskCache(name="servers").get("mine") == 1
    assert not caplog.records


def test_no_cache_is_opened_where_a_variable_in_its_path_leads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """diskcache puts in `$TERM` after we have looked at the path as it is."""
    monkeypatch.setenv("TERM", "xterm")
    (tmp_path / "app-xterm").mkdir()
    kept = DiskCache(tmp_path / "app-$TERM")
    kept.set("mine", 1)
    assert kept.get("mine") is None and list(tmp_path.glob("app-xterm/*")) == []
    assert "a variable of the environment" in caplog.text


def test_texts_of_documents_are_kept_through_no_link(clone: Clone, cache: Path) -> None:
    folder = cache / "documents"
    folder.mkdir()
    text = Extracted(problem="none")
    kept = KeptTexts(folder)
    before = state(clone.secret.parent)
    for name in ("key", f"key.{os.getpid()}.part"):
        (folder / name).symlink_to(clone.secret)
    kept.put("key", text)
    assert state(clone.secret.parent) == before
    assert kept.get("key") == text
    assert not (folder / "key").is_symlink() and (folder / "key").stat().st_mode & 0o777 == 0o600


def test_a_text_that_lies_elsewhere_is_not_read(clone: Clone, cache: Path) -> None:
    folder = cache / "documents"
    KeptTexts(folder).put("key", Extracted(problem="none"))
    file = clone.secret.with_name("key")
    (folder / "key").rename(file)
    (folder / "key").symlink_to(file)
    seen = file.stat().st_mtime_ns
    assert KeptTexts(folder).get("key") is None
    assert file.stat().st_mtime_ns == seen


def test_links_count_as_links_when_room_is_made(clone: Clone, cache: Path) -> None:
    folder = cache / "documents"
    folder.mkdir()
    clone.secret.write_bytes(zlib.compress(bytes(10)) * 1_000)
    for number in range(3):
        (folder / f"link{number}").symlink_to(clone.secret)
        (folder / f"nothing{number}").symlink_to("nothing")
    kept = KeptTexts(folder, most_bytes=5_000)
    kept.put("key", Extracted(problem="none"))
    assert kept.get("key") is not None and len(list(folder.iterdir())) == 7
    assert clone.secret.exists()


@pytest.mark.parametrize("variable", ["METATREE_CACHE_DIR", "XDG_CACHE_HOME"])
@pytest.mark.parametrize("current", [".", "src", "/"])
def test_a_cache_folder_that_a_link_leads_to_is_not_used(
    clone: Clone,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    variable: str,
    current: str,
) -> None:
    monkeypatch.delenv("METATREE_CACHE_DIR", raising=False)
    (clone.folder / "src").mkdir()
    (clone.folder / "metatree").symlink_to(clone.secret.parent)
    (clone.secret.parent / "documents").mkdir()
    named = clone.folder if variable == "XDG_CACHE_HOME" else clone.folder / "metatree"
    monkeypatch.setenv(variable, str(named))
    monkeypatch.chdir(current)
    before = state(clone.secret.parent)
    KeptTexts(cache_part("documents")).put("key", Extracted(problem="none"))
    used("answers")
    assert run(["cache", "--clear"]) == 0
    assert state(clone.secret.parent) == before
    assert f"{clone.folder / 'metatree'} is a link and is not used" in caplog.text


def test_texts_are_kept_through_no_link_that_comes_while_a_process_runs(clone: Clone, cache: Path) -> None:
    kept = KeptTexts(cache_part("documents"), most_bytes=1)
    kept.put("key", Extracted(["One."]))
    answers = DiskCache(name="answers")
    shutil.rmtree(cache)
    (clone.secret.parent / "documents").mkdir()
    (clone.secret.parent / "documents" / "old.txt").write_text("old")
    before = state(clone.secret.parent)
    cache.symlink_to(clone.secret.parent)
    kept.put("other", Extracted(["Two."]))
    assert kept.get("other") is None
    (clone.secret.parent / "answers").mkdir()
    answers.set("mine", 1)
    assert answers.get("mine") is None
    assert state(clone.secret.parent) == before


@pytest.mark.parametrize("how", ["link", "journal"])
def test_each_thread_looks_at_a_cache_before_it_opens_it(clone: Clone, cache: Path, how: str) -> None:
    """diskcache opens it by its name again, and git may have put something else there by then."""
    kept, folder = DiskCache(name="servers"), cache / "servers"
    kept.set("mine", 1)
    if how == "link":
        folder.rename(cache / "away")
        folder.symlink_to(clone.secret.parent)
    else:
        for each in folder.iterdir():
            each.unlink()
        with closing(sqlite3.connect(folder / "cache.db")) as made, made:
            made.execute("CREATE TABLE t(a)")
        (folder / "cache.db-journal").write_bytes(journal_of(clone.secret))
    before = state(clone.secret.parent)
    found: list[object] = []

    def use() -> None:
        kept.set("other", 2)
        found.append(kept.get("other"))

    thread = Thread(target=use)
    thread.start()
    thread.join()
    assert found == [None] and state(clone.secret.parent) == before


def test_a_cache_in_a_home_may_be_a_link_of_its_user(clone: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    disk, home = clone.folder.parent / "disk", clone.folder.parent / "home"
    disk.mkdir()
    home.mkdir()
    (home / ".cache").symlink_to(disk)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("METATREE_CACHE_DIR", str(home / ".cache" / "metatree"))
    assert cache_folder() == home / ".cache" / "metatree"


def test_the_size_of_what_a_link_in_a_cache_leads_to_is_not_told(
    clone: Clone, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cache.mkdir(exist_ok=True)
    (cache / "documents").symlink_to(clone.secret.parent)
    assert run(["cache"]) == 2
    assert "is a link, and is not used" in capsys.readouterr().err


def test_a_kept_text_that_is_a_bomb_is_a_miss(tmp_path: Path) -> None:
    kept = KeptTexts(tmp_path)
    kept.put("a", Extracted(["tea"]))
    assert kept.get("a") == Extracted(["tea"])
    (tmp_path / "b").write_bytes(zlib.compress(json.dumps(Extracted(["a" * 100_000_000]).as_json()).encode()))
    (tmp_path / "c").write_bytes(zlib.compress(json.dumps(Extracted(["a"] * 600_000).as_json()).encode()))
    assert kept.get("b") is None
    assert (found := kept.get("c")) is not None
    assert len(found.lines) == 500_000
