"""A store, a log or a journal that somebody else put there is not used, and costs neither time nor memory."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import struct
import subprocess
from collections.abc import Callable
from contextlib import closing, nullcontext
from pathlib import Path

import pytest
from metatree_agents.cli._main import run
from metatree_agents.service.replication.publisher import _write_index
from metatree_memory_tools import build_tree
from metatree_memory_tools.build.build import ignore_all

from metatree import Tree
from metatree._util.private import keep_private
from metatree.errors import BrokenStore, UntrustedStore, UserError
from metatree.notes.notes import remember
from metatree.notes.permissions import Permissions
from metatree.storage import store, store_files, trust
from metatree.storage.acceptance import survey
from metatree.storage.store import APPLICATION_ID, Store
from metatree.storage.store_files import FIRST_NAME, check_files
from tests.integration.trust.prepared import Clone, as_user, journal_of, send_mail_tool

pytestmark = pytest.mark.integration


def test_one_log_that_git_tracks_changes_no_memory_of_ours(clone: Clone) -> None:
    shutil.rmtree(clone.metatree)
    build_tree(clone.folder).close()
    with Tree.open(clone.folder) as tree:
        remember(tree, "Mine", who="victim")
    log = clone.metatree / "memory.db-wal"
    with as_user(clone.attacker):
        made = clone.folder.parent / "made.db"
        with Store.open(made) as store:
            store.execute("INSERT INTO meta VALUES ('permission:x', '{}')")
            shutil.copy(made.with_name("made.db-wal"), log)
    for command in (["init", "-q"], ["add", "-f", str(log)]):
        subprocess.run(["git", *command], cwd=clone.folder, check=True)
    with pytest.raises(UserError, match="git tracks"):
        Tree.open(clone.folder)
    log.unlink()
    with Tree.open(clone.folder) as tree:
        assert Permissions(tree.memory).all() == []


def test_a_log_of_ours_gives_no_mark_to_another_store(
    clone: Clone, capfd: pytest.CaptureFixture[str]
) -> None:
    """What git does to a store while a program uses it: the log has our mark, the other pages are of somebody else."""
    shutil.rmtree(clone.metatree)
    build_tree(clone.folder).close()
    memory = clone.metatree / "memory.db"
    kept = clone.folder.parent / "kept"
    kept.mkdir()
    with Tree.open(clone.folder) as tree:
        remember(tree, "Mine", who="victim")
    with Tree.open(clone.folder) as tree:
        Permissions(tree.memory).grant(send_mail_tool(), who="victim")  # a page alone, with our mark
        Tree.open(clone.folder).close()  # where nothing was replaced, others see it
        shutil.copy(memory.with_name("memory.db-wal"), kept)
    with as_user(clone.attacker):
        shutil.copytree(clone.folder, clone.folder.parent / "other", ignore=lambda *_: [".metatree"])
        build_tree(clone.folder.parent / "other").close()
        with Tree.open(clone.folder.parent / "other") as tree:
            remember(tree, "The harbour is at PASSPHRASE", who="victim")
    memory.unlink()
    shutil.copy(clone.folder.parent / "other" / ".metatree" / "memory.db", memory)
    shutil.copy(kept / "memory.db-wal", clone.metatree)
    for _ in range(2):  # the first one does not write the log into the file
        assert run(["memories"]) == 1
        output = capfd.readouterr()
        assert "PASSPHRASE" not in output.out + output.err
        assert "was not made by you" in output.err


def test_one_log_that_git_tracks_by_another_name_of_the_disk_changes_no_memory_of_ours(clone: Clone) -> None:
    """Where the disk tells no case of letters apart; links stand for its other names here."""
    shutil.rmtree(clone.metatree)
    build_tree(clone.folder).close()
    log, other = clone.metatree / "memory.db-wal", clone.folder / ".METATREE"
    log.write_bytes(b"\0" * 100)
    other.mkdir()
    (other / "Memory.DB-WAL").write_bytes(b"\0" * 100)
    for command in (["init", "-q"], ["add", "-f", str(other)]):
        subprocess.run(["git", *command], cwd=clone.folder, check=True)
    Tree.open(clone.folder).close()  # the disk tells them apart
    shutil.rmtree(other)
    other.symlink_to(clone.metatree)
    log.write_bytes(b"\0" * 100)
    os.link(log, clone.metatree / "Memory.DB-WAL")
    with pytest.raises(UserError, match="git tracks"):
        Tree.open(clone.folder)


def test_nothing_is_lost_beside_a_program_whose_shared_memory_git_replaced(
    clone: Clone, capfd: pytest.CaptureFixture[str]
) -> None:
    """What others wrote was said to be kept, and was gone."""
    shutil.rmtree(clone.metatree)
    build_tree(clone.folder).close()
    shared = clone.metatree / "memory.db-shm"
    with Tree.open(clone.folder) as tree:
        remember(tree, "One, of the program that runs", who="victim")
        shared.unlink()
        shared.write_bytes(b"\0" * 32768)
        for command in (["init", "-q"], ["add", "-f", str(shared)]):
            subprocess.run(["git", *command], cwd=clone.folder, check=True)
        assert run(["remember", "Two, of another"]) == 2
        assert "git tracks" in capfd.readouterr().err
        remember(tree, "Three, of the program that runs", who="victim")
    shared.unlink(missing_ok=True)
    assert run(["memories"]) == 0
    output = capfd.readouterr().out
    assert "One" in output and "Three" in output


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs two users")
@pytest.mark.parametrize("end", ["-wal", "-shm", "-journal"])
def test_a_log_of_another_user_changes_no_memory_of_ours(clone: Clone, end: str) -> None:
    """Who may write the folder and not the store can lay one beside it: pages of one schema are at known places."""
    shutil.rmtree(clone.metatree)
    build_tree(clone.folder).close()
    memory, log = clone.metatree / "memory.db", clone.metatree / f"memory.db{end}"
    log.write_bytes(b"\0" * 100)
    os.chown(log, 65534, 65534)
    os.chown(memory, 65533, 65533)
    with pytest.raises(UserError, match="belongs to another user"):
        Tree.open(clone.folder)
    with pytest.raises(UserError, match="belongs to another user"):
        survey(memory)
    for owner, mode in (
        (65534, 0o600),
        (65533, 0o660),
    ):  # of the same owner, and open to others as its owner wants it
        os.chown(memory, owner, owner)
        memory.chmod(mode)
        with pytest.raises(UserError, match="none of ours") if end == "-journal" else nullcontext():
            survey(memory)


def test_the_name_under_which_a_store_was_made_is_taken_away_when_its_process_was_killed_just_then(
    clone: Clone,
) -> None:
    made = clone.folder / "runs.db"
    Store.open(made).close()
    first = made.with_name(FIRST_NAME.format(name=made.name, digits="0a1b2c3d"))
    other = made.with_name(FIRST_NAME.format(name=made.name, digits="11111111"))
    other.write_bytes(b"of another process")
    os.link(made, first)
    os.truncate(made, 0)
    check_files(made)
    assert not first.exists() and made.exists() and other.exists()
    os.link(made, made.with_name("elsewhere.db"))
    with pytest.raises(UserError, match="a hard link"):
        check_files(made)


def test_a_journal_that_is_none_of_ours_is_refused(clone: Clone) -> None:
    made = clone.folder / "runs.db"
    Store.open(made).close()
    made.with_name(made.name + "-journal").write_bytes(b"of somebody else")
    with pytest.raises(UserError, match="none of ours"):
        check_files(made)


def test_another_name_of_ones_own_store_is_not_used(clone: Clone, capfd: pytest.CaptureFixture[str]) -> None:
    """A hard link, as some programs take it from an archive."""
    shutil.rmtree(clone.metatree)
    build_tree(clone.folder).close()
    build_tree(clone.secret.parent).close()
    own = clone.secret.parent / ".metatree" / "memory.db"
    with Tree.open(clone.secret.parent) as tree:
        remember(tree, "The harbour is at PASSPHRASE", who="victim")
    (clone.metatree / "memory.db").unlink()
    os.link(own, clone.metatree / "memory.db")
    before = own.read_bytes()
    assert run(["memories"]) == 1
    for command in (
        ["export", "shop.metatree"],
        ["remember", "The harbour lies in the north"],
        ["trust", "--yes"],
    ):
        assert run(command) == 2
    output = capfd.readouterr()
    assert "a hard link" in output.err
    assert "PASSPHRASE" not in output.out + output.err
    assert own.read_bytes() == before
    with Tree.open(clone.secret.parent) as tree:
        assert not tree.memory.read_only


@pytest.mark.parametrize("name", ["build.lock", "index.db", "memory.db", "service.db", "agents.db"])
@pytest.mark.parametrize("end", ["-journal", "-wal", "-shm", ""])
def test_nothing_is_written_through_a_hard_link(clone: Clone, name: str, end: str) -> None:
    """Whatever lies beside it: SQLite plays a journal back at the first look, before any mark is read."""
    shutil.rmtree(clone.metatree)
    build_tree(clone.folder).close()
    linked = clone.metatree / f"{name}{end}"
    linked.unlink(missing_ok=True)
    os.link(clone.secret, linked)
    clone.secret.chmod(0o644)
    for data in (b"", b"0" * 32768, b"# The harbour"):
        clone.secret.write_bytes(data)
        for command in COMMANDS:
            run(command)
            assert (clone.secret.read_bytes(), clone.secret.stat().st_mode & 0o777) == (data, 0o644)


@pytest.mark.parametrize("name", ["build.lock", "index.db", "memory.db", "service.db", "agents.db"])
def test_no_journal_or_log_is_played_into_another_file(clone: Clone, name: str) -> None:
    shutil.rmtree(clone.metatree)
    build_tree(clone.folder).close()
    linked = clone.metatree / name
    linked.unlink(missing_ok=True)
    os.link(clone.secret, linked)
    before = clone.secret.read_bytes()
    log = _journal_that_writes(b"PWNED".ljust(512))
    made = clone.folder.parent / "made.db"
    with as_user(clone.attacker), Store.open(made) as store:
        store.execute("INSERT INTO meta VALUES ('a', 'PWNED')")
        pages = Path(f"{made}-wal").read_bytes()
    for end, data in (("-journal", log), ("-wal", pages)):
        other = linked.with_name(name + end)
        for command in COMMANDS:
            other.write_bytes(data)
            run(command)
            assert clone.secret.read_bytes() == before
        other.unlink(missing_ok=True)


@pytest.mark.parametrize("end", ["-wal", "-shm"])
@pytest.mark.parametrize("link", ["hard", "symbolic"])
def test_nothing_is_written_through_a_link_beside_a_database_of_others(
    clone: Clone, end: str, link: str
) -> None:
    """A source `database:FILE` is read with its log, and SQLite maps what is called `-shm` to write into it."""
    made, read = clone.folder.parent / "made.db", clone.folder / "a.db"
    with closing(sqlite3.connect(made)) as one:
        one.execute("PRAGMA journal_mode=WAL")
        one.execute("CREATE TABLE harbour(name TEXT)")
        one.commit()
        for name in ("", "-wal"):
            shutil.copy(f"{made}{name}", f"{read}{name}")
    linked = Path(f"{read}{end}")
    linked.unlink(missing_ok=True)
    clone.secret.write_bytes(b"x" * 32768)
    os.link(clone.secret, linked) if link == "hard" else linked.symlink_to(clone.secret)
    run(["build", f"database:{read}", "--tree", str(clone.folder.parent / "tree")])
    assert clone.secret.read_bytes() == b"x" * 32768
    linked.unlink()
    assert run(["build", f"database:{read}", "--tree", str(clone.folder.parent / "other")]) == 0


COMMANDS = (
    ["find", "harbour"],
    ["remember", "The harbour lies in the north"],
    ["build", "."],
    ["trust", "--yes"],
    ["service", "users", "list"],
    ["service", "check"],
    ["goals", "list"],
    ["doctor"],
)


def _journal_that_writes(page: bytes) -> bytes:
    """Return a rollback journal whose first page is put into the file beside it."""
    nonce = 7
    header = bytes.fromhex("d9d505f920a163d7") + struct.pack(">IIIII", 1, nonce, 1, 512, 512)
    checksum = nonce + sum(page[at] for at in range(512 - 200, 0, -200))
    return header.ljust(512, b"\0") + struct.pack(">I", 1) + page + struct.pack(">I", checksum)


@pytest.mark.parametrize("end", ["-wal", "-journal"])
def test_a_log_without_its_store_puts_nothing_into_a_new_one(clone: Clone, end: str) -> None:
    """What an archive brings; git tracks nothing of it."""
    shutil.rmtree(clone.metatree)
    clone.metatree.mkdir()
    made, log = clone.folder.parent / "made.db", clone.metatree / f"memory.db{end}"
    with as_user(clone.attacker):
        Store.open(made).close()
        with Store.open(made) as store:
            store.execute("INSERT INTO run(id, machine, token, expires_at) VALUES ('r1', 'search', 1, 0)")
            shutil.copy(made.with_name("made.db-wal"), log)
    for _ in range(2):
        with pytest.raises(UserError, match="belongs to no file"):
            build_tree(clone.folder)
    log.unlink()
    with build_tree(clone.folder) as tree:
        assert tree.memory.rows("SELECT id FROM run") == []


def test_a_journal_that_names_another_file_does_not_delete_it(clone: Clone) -> None:
    shutil.rmtree(clone.metatree)
    build_tree(clone.folder).close()
    for file in ("index.db", "memory.db", "build.lock"):
        (clone.metatree / f"{file}-journal").write_bytes(journal_of(clone.secret))
    with pytest.raises(UserError, match="names other files"):
        Tree.open(clone.folder)
    with pytest.raises(UserError, match="names other files"):
        build_tree(clone.folder)
    assert clone.secret.exists()


def names_sources_that_are_no_text(clone: Clone) -> str:
    return "INSERT OR REPLACE INTO meta VALUES ('sources', x'fffe')"


def names_an_id_of_many_bytes(clone: Clone) -> str:
    return "INSERT OR REPLACE INTO meta VALUES ('trust:id', hex(zeroblob(6000000)))"


def names_a_text_of_no_encoding(clone: Clone) -> str:
    return "INSERT OR REPLACE INTO meta VALUES ('sources', CAST(x'ff41' AS TEXT))"


def changes_the_sources_when_it_is_signed(clone: Clone) -> str:
    record = {"type": "mcp", "location": clone.command, "options": {}, "mount": "tools"}
    text = json.dumps([record]).replace("'", "''")
    return (
        "DELETE FROM meta WHERE key LIKE 'trust:%'; CREATE TRIGGER t AFTER INSERT ON meta WHEN new.key = 'trust:id'"
        f" BEGIN UPDATE meta SET value = '{text}' WHERE key = 'sources'; END"
    )


def computes_a_column(clone: Clone) -> str:
    return "DROP TABLE run; CREATE TABLE run(id, slow AS (hex(zeroblob(4000000))))"


def defines_more_than_memory_holds(clone: Clone) -> str:
    inner = ",".join("1" * 1_000_000)
    return f"CREATE VIEW many AS SELECT 1 IN ({inner})"


def defines_a_trigger_that_says_it_is_a_table(clone: Clone) -> str:
    return (
        "CREATE TRIGGER t AFTER INSERT ON meta BEGIN DELETE FROM meta; END; PRAGMA writable_schema = ON;"
        "UPDATE sqlite_master SET type = 'table' WHERE name = 't'"
    )


DAMAGES = (
    names_sources_that_are_no_text,
    names_an_id_of_many_bytes,
    names_a_text_of_no_encoding,
    changes_the_sources_when_it_is_signed,
    computes_a_column,
    defines_more_than_memory_holds,
    defines_a_trigger_that_says_it_is_a_table,
)


@pytest.mark.parametrize("damage", DAMAGES)
def test_no_store_that_is_none_of_ours_can_be_accepted(
    clone: Clone, damage: Callable[[Clone], str], capfd: pytest.CaptureFixture[str]
) -> None:
    with closing(sqlite3.connect(clone.metatree / "index.db")) as made:
        made.executescript(damage(clone) + ";")
    before = (clone.metatree / "index.db").read_bytes()
    for command in (["trust", "--show"], ["trust", "--yes"], ["trust", "--revoke"], ["show"]):
        code = run(command)
        output = capfd.readouterr()
        assert code in ((0, 1) if "--show" in command or "--revoke" in command else (2,)), output.err
        assert "Error" not in output.err
        if "--show" in command:
            assert "cannot be accepted" in output.out
    assert (clone.metatree / "index.db").read_bytes() == before
    damaged = damage in (names_a_text_of_no_encoding, defines_a_trigger_that_says_it_is_a_table)
    assert run(["ask", "Where is the harbour?"]) == (2 if damaged else 0)
    assert run(["build", "."]) == 0
    assert run(["ask", "Where is the harbour?"]) == 0
    assert not clone.started.exists()


@pytest.mark.parametrize("application", [0, APPLICATION_ID])
def test_a_list_of_tables_without_an_end_is_given_up(
    clone: Clone, application: int, capfd: pytest.CaptureFixture[str]
) -> None:
    for name in ("index.db", "memory.db", "service.db", "agents.db"):
        (clone.metatree / name).write_bytes(_endless(clone.metatree / "made.db", application))
    for command in (
        ["show"],
        ["service", "users", "list"],
        ["goals", "list"],
        ["trust", "--show"],
        ["remember", "x"],
    ):
        assert run(command) == (0 if application and command[0] == "trust" else 2), command
    assert "Error" not in capfd.readouterr().err


def _endless(scratch: Path, application: int) -> bytes:
    """Return a SQLite file whose list of tables has the same page below itself again and again."""
    with closing(sqlite3.connect(scratch)) as made:
        made.executescript(f"PRAGMA application_id = {application}; CREATE TABLE t(a UNIQUE);")
    data = scratch.read_bytes()
    scratch.unlink()
    size = 4096
    pages = [bytearray(data[at : at + size]) for at in range(0, len(data), size)]

    def inner(children: list[int], head: bytes = b"") -> bytearray:
        page = bytearray(size)
        page[: len(head)] = head
        at, end = len(head), size
        page[at], page[at + 3 : at + 5] = 5, (len(children) - 1).to_bytes(2, "big")
        page[at + 8 : at + 12] = children[-1].to_bytes(4, "big")
        for number, child in enumerate(children[:-1]):
            end -= 5
            page[end : end + 5] = child.to_bytes(4, "big") + b"\2"
            page[at + 12 + 2 * number : at + 14 + 2 * number] = end.to_bytes(2, "big")
        page[at + 5 : at + 7] = end.to_bytes(2, "big")
        return page

    first, where = pages[0], int.from_bytes(pages[0][110:112], "big")
    row = first[where : where + first[where] + 2]
    assert b"sqlite_autoindex" in row
    leaf = bytearray(size)
    leaf[0], leaf[3:5], leaf[5:7] = 13, (1).to_bytes(2, "big"), (size - len(row)).to_bytes(2, "big")
    leaf[8:10], leaf[size - len(row) :] = (size - len(row)).to_bytes(2, "big"), row
    real = bytearray(first)
    real[:12] = first[100:112]  # what is behind the head of the file in the first page
    pages += [real, leaf]
    for _ in range(9):
        pages.append(inner([len(pages)] * 300))
    pages[0] = inner([len(data) // size + 1, *[len(pages)] * 100], bytes(first[:100]))
    pages[0][28:32] = len(pages).to_bytes(4, "big")
    return b"".join(pages)


def test_pages_that_a_new_store_would_give_out_twice_are_not_used(clone: Clone) -> None:
    memory = clone.metatree / "memory.db"
    memory.unlink()
    with closing(sqlite3.connect(memory)) as made:
        made.executescript(
            f"PRAGMA application_id = {APPLICATION_ID}; CREATE TABLE t(a); INSERT INTO t VALUES (hex(zeroblob(9000)));"
            "DROP TABLE t;"
        )
    build_tree(clone.folder).close()
    with Tree.open(clone.folder) as tree, pytest.raises(UserError, match="metatree trust"):
        remember(tree, "Mine", who="victim")


@pytest.mark.parametrize(
    "definition",
    [
        "CREATE TRIGGER more AFTER INSERT ON meta BEGIN DELETE FROM node; END",
        "CREATE VIEW more AS SELECT * FROM meta",
    ],
)
def test_a_store_from_a_place_that_is_trusted_defines_nothing_that_runs(
    clone: Clone, definition: str
) -> None:
    """Such as the index that a service sends to its engines."""
    with closing(sqlite3.connect(clone.metatree / "index.db")) as store:
        store.execute(definition)
    with pytest.raises(BrokenStore, match="defines what no store"):
        Store.open(clone.metatree / "index.db", create=False, trust=True)


needs_owners = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="files belong to nobody")


@needs_owners
def test_a_metatree_of_another_user_is_not_written_to(clone: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(clone.metatree)
    clone.metatree.mkdir()
    monkeypatch.setattr(store_files, "is_of_another", lambda state: True)
    with pytest.raises(UserError, match="belongs to another user"):
        build_tree(clone.folder)
    with pytest.raises(UserError, match="belongs to another user"):
        Store.open(clone.metatree / "service.db")
    assert list(clone.metatree.iterdir()) == []
    monkeypatch.setenv("METATREE_TRUST", str(clone.folder))
    build_tree(clone.folder).close()


@needs_owners
def test_a_store_that_belongs_to_another_user_is_not_ones_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Store.open(tmp_path / "memory.db").close()
    Store.open(tmp_path / "memory.db").close()
    monkeypatch.setattr(trust, "is_of_another", lambda state: True)
    with pytest.raises(UntrustedStore):
        Store.open(tmp_path / "memory.db")


def test_a_file_that_is_exchanged_while_a_store_is_made_gets_no_mark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = tmp_path / "others.db"

    def exchanged(file: Path) -> str:
        if file.suffix == ".new":
            file.rename(tmp_path / "away")
            others.touch(0o666)
            return str(others)
        return str(file)

    monkeypatch.setattr(store, "whole", exchanged)
    with pytest.raises(UserError, match="another user exchanges files"):
        Store.open(tmp_path / "memory.db")
    assert b"trust:" not in others.read_bytes()
    assert not (tmp_path / "memory.db").exists()


def test_no_gitignore_is_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / ".gitignore").write_text("secrets/\n")
    (tmp_path / ".metatree").symlink_to("own")
    with pytest.raises(OSError, match=r"Not a directory|symbolic links"):
        ignore_all(tmp_path / ".metatree")
    assert (tmp_path / "own" / ".gitignore").read_text() == "secrets/\n"


def test_rights_are_taken_through_no_link(tmp_path: Path) -> None:
    for name in ("tool", "twice", "service.db"):
        (tmp_path / name).touch()
        (tmp_path / name).chmod(0o755)
    (tmp_path / "link").symlink_to("tool")
    (tmp_path / "hard").hardlink_to(tmp_path / "twice")
    for name in ("link", "hard", "service.db", "missing"):
        keep_private(tmp_path / name)
    rights = {name: (tmp_path / name).stat().st_mode & 0o777 for name in ("tool", "twice", "service.db")}
    assert rights == {"tool": 0o755, "twice": 0o755, "service.db": 0o600}


@pytest.mark.parametrize("current", ["/", "/tmp", "."])
def test_a_tree_that_was_moved_reads_no_other_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, current: str
) -> None:
    """It keeps its source as a way up, and who may move its folder would choose where that leads."""
    monkeypatch.chdir(current)
    for path in ("diary.md", "shared/a.md", "shared/a/b/b.md"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(f"# {path}\n")
    build_tree(tmp_path / "shared", out=tmp_path / "shared/a/b/.metatree").close()
    (tmp_path / "shared/a/b").rename(tmp_path / "shared/b")
    with pytest.raises(UntrustedStore):
        Tree.open(tmp_path / "shared/b")
    build_tree(tmp_path / "shared/a").close()
    (tmp_path / "shared/a").rename(tmp_path / "shared/c")
    Tree.open(tmp_path / "shared/c").close()


def test_a_store_of_another_name_beside_a_tree_is_named_itself(clone: Clone) -> None:
    """`metatree trust FOLDER` would show, and accept, the tree of the folder."""
    with as_user(clone.attacker), build_tree(clone.folder) as tree:
        remember(tree, "The kettle is blue.")
        Store.open(clone.folder / "gw.db").close()
    with pytest.raises(UntrustedStore, match=r"metatree trust \S*gw\.db`"):
        Store.open(clone.folder / "gw.db")
    with pytest.raises(UntrustedStore, match=r"metatree trust \S*\.metatree`"):
        Store.open(clone.folder / ".metatree" / "memory.db")


def test_a_journal_beside_any_store_is_refused(clone: Clone) -> None:
    """Also beside one that is not in the mode of ours, as a restore leaves it for a moment."""
    shutil.rmtree(clone.metatree)
    build_tree(clone.folder).close()
    memory = clone.metatree / "memory.db"
    with closing(sqlite3.connect(memory)) as connection:
        connection.execute("PRAGMA journal_mode=DELETE")
    memory.with_name("memory.db-journal").write_bytes(b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + bytes(1000))
    with pytest.raises(UserError, match="is none of ours"):
        Tree.open(clone.folder)


def test_what_is_published_has_no_mark(clone: Clone, tmp_path: Path) -> None:
    shutil.rmtree(clone.metatree)
    with build_tree(clone.folder) as tree:
        marks = [value for key, value in tree.index.rows("SELECT key, value FROM meta") if "trust:" in key]
        _write_index(tree, tmp_path / "published.db")
    assert len(marks) == 2
    published = (tmp_path / "published.db").read_bytes()
    assert b"trust:" not in published
    assert not any(json.loads(mark)["seal"].encode() in published for mark in marks if "seal" in mark)


def test_a_journal_is_not_played_into_a_store_that_is_trusted(clone: Clone) -> None:
    for file in (clone.metatree / "index.db", clone.metatree / "memory.db"):
        file.with_name(f"{file.name}-journal").write_bytes(journal_of(clone.secret))
    with pytest.raises(UserError, match="names other files"):
        Tree.open(clone.folder, trust=True)
    assert clone.secret.exists()
