"""What an accepted store holds of a moment, a machine or a person's yes is not taken over with it."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from metatree_agents.cli._main import run
from metatree_agents.service.database.database import SqliteDatabase
from metatree_agents.service.database.servers import servers_of
from metatree_memory_tools import build_tree
from metatree_memory_tools.build._scan import scan

from metatree import Blackboard, Tree, ask_person, resume, search
from metatree.errors import UserError
from metatree.notes.notes import remember
from metatree.notes.permissions import Permissions
from metatree.storage.acceptance import accept, survey
from metatree.testing.parts import FunctionRouter
from metatree.tools.tool import Tool, tool
from tests.integration.trust.prepared import Clone, as_user, brings_a_service_with_an_administrator

pytestmark = pytest.mark.integration


def _change(file: Path, *statements: tuple[str, Sequence[Any]]) -> None:
    with closing(sqlite3.connect(file)) as store, store:
        for statement in statements:
            store.execute(*statement)


@pytest.mark.parametrize("place", ["{elsewhere}", "postgresql://127.0.0.1:{port}/x?connect_timeout=2"])
def test_a_run_that_was_accepted_has_no_board_elsewhere(clone: Clone, place: str) -> None:
    """Neither one that waits, nor one that has ended, whose board is brought up to date."""
    build_tree(clone.secret.parent).close()
    clone.listener.listen()
    own = clone.secret.parent / ".metatree" / "memory.db"
    named = place.format(elsewhere=own, port=clone.listener.getsockname()[1])
    Path(named).mkdir(parents=True, exist_ok=True) if "://" in place else None
    with as_user(clone.attacker), Tree.open(clone.folder) as tree:
        search("Where is the harbour?", tree=tree, run_id="ended")
        search("When does the moon rise?", tree=tree, run_id="waits", fallbacks=[ask_person])
        for number, text in tree.memory.rows("SELECT run, body FROM journal WHERE seq = 0"):
            body = json.loads(text)
            body["given"]["board"] = {"path": named, "name": "main", "agent": "mallory", "shared": False}
            tree.memory.execute(
                "UPDATE journal SET body = ? WHERE run = ? AND seq = 0", (json.dumps(body), number)
            )
    assert run(["trust", "--yes"]) == 0
    with Tree.open(clone.folder) as tree:
        assert resume("ended", tree=tree).ended == "answered"
        assert resume("waits", tree=tree, fallbacks=[ask_person]).ended == "waiting"
        with pytest.raises(UserError, match="begun by somebody else"):
            resume("waits", journal=clone.metatree / "memory.db")
    assert not clone.has_acted()
    with Tree.open(clone.secret.parent) as tree:
        assert tree.memory.rows("SELECT agent FROM item") == []


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_persons_yes_in_a_run_that_was_accepted_does_not_count(clone: Clone, elsewhere: bool) -> None:
    """Also when it is taken up with a tree of one's own, whose memory has never heard of it."""
    sent: list[str] = []

    @tool(kind="exploratory", changes=True)
    def send_mail(to: str = "all") -> str:
        """Send a mail."""
        sent.append(to)
        return f"sent to {to}"

    assert isinstance(send_mail, Tool)
    parts: dict[str, Any] = {
        "router": FunctionRouter(
            lambda request: next((o.id for o in request.options if "send_mail" in o.id), None)
        ),
        "tools": [send_mail],
        "permit": ask_person,
    }
    with as_user(clone.attacker), Tree.open(clone.folder) as tree:
        assert search("Send a mail?", tree=tree, run_id="r1", **parts).ended == "waiting"
        tree.memory.execute(
            "INSERT INTO journal(run, seq, kind, at, effect, body)"
            " SELECT run, max(seq) + 1, 'outcome', max(at), max(effect) + 1, ? FROM journal",
            ('{"=": {"answer": "always"}}',),
        )
    memory = clone.metatree / "memory.db"
    assert survey(memory).runs == 1
    accept(memory)
    other = clone.folder.parent / "other"
    other.mkdir()
    (other / "a.md").write_text("# The harbour\n\nThe harbour is in the south.\n")
    with build_tree(other if elsewhere else clone.folder) as tree:
        resume("r1", tree=tree, journal=memory, **parts)
        assert sent == [] and Permissions(tree.memory).all() == []


def test_what_is_accepted_of_runs_is_said(clone: Clone, capfd: pytest.CaptureFixture[str]) -> None:
    with as_user(clone.attacker), Tree.open(clone.folder) as tree:
        search("Where is the harbour?", tree=tree, run_id="r1")
        tree.memory.execute("INSERT INTO mail(run, name, value, at) VALUES (1, 'answer', '{}', 0)")
    assert run(["trust", "--show"]) == 0
    shown = capfd.readouterr().out
    assert "1 run that could be resumed, without what was permitted in them" in shown
    assert "holds signals for runs: 1" in shown


def test_nobody_waits_for_a_board_that_was_accepted(clone: Clone) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as waiter:
        waiter.bind(("127.0.0.1", 0))
        waiter.setblocking(False)
        with as_user(clone.attacker), Tree.open(clone.folder) as tree:
            Blackboard(tree).add_requests({"request": "x"})
        row = (waiter.getsockname()[1], "GET /x", 9e15)
        _change(
            clone.metatree / "memory.db",
            (
                "INSERT INTO board_waiter(port, token, board, expires_at) SELECT ?, ?, number, ? FROM board",
                row,
            ),
        )
        assert run(["trust", "--yes"]) == 0
        with Tree.open(clone.folder) as tree:
            Blackboard(tree).add_requests({"request": "y"})
        with pytest.raises(BlockingIOError):
            waiter.recv(64)


def test_no_server_is_at_work_on_a_service_that_was_accepted(clone: Clone) -> None:
    """A link to log in would be printed with its address, and the code in it."""
    brings_a_service_with_an_administrator(clone)
    file = clone.metatree / "service.db"
    _change(
        file,
        ("INSERT INTO service_server VALUES ('x', 'http://mallory.example', 'far', 9e9, 9e12)", ()),
        ("INSERT INTO service_session VALUES ('hash', 'mallory', 'csrf', 9e12)", ()),
    )
    accept(file)

    async def servers() -> list[tuple[str, str]]:
        database = SqliteDatabase.open(file)
        try:
            assert await database.rows("SELECT * FROM service_session") == []
            return await servers_of(database)
        finally:
            await database.close()

    assert asyncio.run(servers()) == []


@pytest.mark.parametrize("log", [False, True])
def test_a_store_that_cannot_be_written_is_accepted_with_its_content(
    clone: Clone, log: bool, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Who owns the disk sets the size and the time of a file; a log beside it needs neither."""
    with as_user(clone.attacker), Tree.open(clone.folder) as tree:
        remember(tree, "Backups are in the cellar", who="ann")
    for module in ("storage.store", "storage.acceptance", "trees.tree"):
        monkeypatch.setattr(f"metatree.{module}.writable", lambda file: False)
    monkeypatch.setattr("metatree_agents.cli.commands._trees.writable", lambda file: False)
    assert run(["trust", "--yes"]) == 0
    assert run(["memories"]) == 0
    assert "cellar" in capfd.readouterr().out
    memory = clone.metatree / "memory.db"
    before = memory.stat()
    change = ("UPDATE node SET title = replace(title, 'cellar', 'attik!')", ())
    if log:
        other = clone.folder.parent / "memory.db"
        shutil.copy(memory, other)
        with closing(sqlite3.connect(other, isolation_level=None)) as changed:
            changed.execute(*change)
            shutil.copy(f"{other}-wal", f"{memory}-wal")
    else:
        memory.write_bytes(memory.read_bytes().replace(b"cellar", b"attik!"))
        os.utime(memory, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert not survey(memory).trusted
    assert run(["memories"]) == 1  # the index is as it was
    assert "attik" not in capfd.readouterr().out


def test_ones_own_stores_are_no_nodes_by_another_name_of_the_disk(clone: Clone) -> None:
    """Where the disk tells no case apart; a link stands for its other names here."""
    for name in (".Metatree", ".GIT", "kept"):
        (clone.folder / name).mkdir()
        (clone.folder / name / "b.md").write_text("# The memory\n\nThe PASSPHRASE.\n")
    (clone.folder / "other").symlink_to(clone.folder / "kept")
    assert set(scan(clone.folder, exclude="other").files) == {"a.md"}


def test_git_passes_over_a_tree_whatever_the_clone_says_of_it(clone: Clone) -> None:
    file, other = clone.metatree / ".gitignore", clone.folder.parent / "notes"
    other.write_text("*\n!memory.db\n")
    file.unlink()
    os.link(other, file)
    build_tree(clone.folder).close()
    assert file.read_text() == "*\n"
    assert other.read_text() == "*\n!memory.db\n"
