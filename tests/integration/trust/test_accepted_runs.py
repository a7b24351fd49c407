"""Of runs, boards and agents in an accepted store, nothing goes on by itself or with a person's yes."""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
from pathlib import Path
from typing import Any

import pytest
from metatree_agents.cli._main import run
from metatree_agents.planner import Agents, Domain
from metatree_agents.service.database.database import SqliteDatabase
from metatree_agents.service.database.servers import servers_of
from metatree_memory_tools import build_tree

from metatree import Blackboard, Tree, ask_person, resume, search
from metatree.errors import UserError
from metatree.notes.archive import export_memory, import_memory
from metatree.notes.permissions import Permissions
from metatree.storage.acceptance import accept, survey
from metatree.testing.parts import FunctionRouter
from metatree.tools.tool import Tool, tool
from tests.integration.trust.prepared import (
    Clone,
    as_user,
    brings_a_service_with_an_administrator,
    change,
)

pytestmark = pytest.mark.integration


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
    # Nor after an export of one's own, which is taken with what was permitted.
    with build_tree(clone.folder) as tree:
        export_memory(tree, other / "own.metatree")
    with build_tree(other, out=other / "third") as tree:
        report = import_memory(tree, other / "own.metatree", permissions=True)
        assert report.added["runs"] == 1
        resume("r1", tree=tree, **parts)
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
        change(
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
    change(
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


@pytest.mark.parametrize(
    "begins", ["a schedule", "an agent", "one that waits for a time", "one beside a fact of no run"]
)
def test_nothing_of_a_store_that_was_accepted_runs_by_itself(clone: Clone, begins: str) -> None:
    paid: list[str] = []
    domain = Domain("shop")

    @domain.task("pay(?to)")
    def pay(to: str) -> str:
        paid.append(to)
        return "paid"

    domain.task("wait()", does={"receive": "go"})
    agents = clone.metatree / "agents.db"
    with as_user(clone.attacker), Agents(agents, domain, board=False) as theirs:
        if begins == "a schedule":
            theirs.schedule("nightly", "* * * * *", "pay(mallory)")
        else:
            theirs.start("pay(mallory)", id="begun")
            theirs.start("pay(mallory)", id="own.1")  # as if it were a child of one's own
    if begins == "a schedule":
        change(agents, ("UPDATE schedule SET next_at = 1700000000.0", ()))
    elif begins == "one beside a fact of no run":
        change(agents, ("INSERT INTO meta VALUES ('imported-run:', 'true')", ()))
    elif begins != "an agent":
        change(agents, ("UPDATE run SET ended = 'waiting', wake_at = 1700000000.0", ()))
    held = survey(agents)
    assert held.runs or "schedules of agents, which are not taken over" in held.held
    assert run(["trust", "--yes"]) == 0
    with Agents(agents, domain, board=False) as ours:
        ours.work(until_idle=True)
        assert not paid
        ours.start("wait()", id="own")
        ours.run("own")
        assert not paid
        ours.start("pay(ann)", id="other")
        ours.work(until_idle=True)
        assert paid == ["ann"]
        if begins == "an agent":  # as it is asked for by name
            ours.run("begun")
            assert paid == ["ann", "mallory"]


@pytest.mark.parametrize("permitted", [False, True])
def test_a_run_of_somebody_else_calls_no_tool_with_what_it_has_filled_in(
    clone: Clone, permitted: bool
) -> None:
    """Its journal may end behind arguments that a stranger wrote."""
    called: list[str] = []

    @tool(kind="exploratory")
    def fetch_page(address: str = "home") -> str:
        """Fetch a page: where the moon is."""
        called.append(address)
        return "The moon rises at nine."

    parts: dict[str, Any] = {
        "tools": [fetch_page],
        "own_tools": False,
        "router": FunctionRouter(
            lambda request: next((o.id for o in request.options if "fetch" in o.id), None)
        ),
    }
    with as_user(clone.attacker), Tree.open(clone.folder) as tree:
        search("When does the moon rise?", tree=tree, run_id="r1", **parts)
        assert called == ["home"]
        rows = tree.memory.rows("SELECT seq, body FROM journal WHERE kind = 'outcome' ORDER BY seq")
        (filled,) = [(seq, text) for seq, text in rows if '"arguments"' in text and "fetch" not in text]
        tree.memory.execute("DELETE FROM journal WHERE seq > ?", (filled[0],))
        tree.memory.execute(
            "UPDATE journal SET body = ? WHERE seq = ?", (filled[1].replace("home", "evil"), filled[0])
        )
        tree.memory.execute("UPDATE run SET ended = NULL")
        tree.memory.execute("DELETE FROM call")
        called.clear()
    memory = clone.metatree / "memory.db"
    accept(memory)
    accept(clone.metatree / "index.db")
    build_tree(clone.folder).close()
    with Tree.open(clone.folder) as tree:
        resume("r1", tree=tree, permit=(lambda *_: True) if permitted else None, **parts)
    assert ("evil" in called) == permitted and (permitted or called == [])


@pytest.mark.parametrize("way", ["own", "import", "accept", "later"])
def test_what_a_run_will_ask_a_person_is_answered_by_nobody_before(
    clone: Clone, tmp_path: Path, way: str
) -> None:
    """The id of a question is the same wherever a run of that name asks it."""
    sent: list[str] = []

    @tool(kind="exploratory", changes=True)
    def send_mail(to: str = "all") -> str:
        """Send a mail."""
        sent.append(to)
        return f"sent to {to}"

    parts: dict[str, Any] = {
        "router": FunctionRouter(
            lambda request: next((o.id for o in request.options if "mail" in o.id), None)
        ),
        "tools": [send_mail],
        "permit": ask_person,
    }

    def asked(tree: Tree, run_id: str = "nightly") -> str:
        with Blackboard(tree) as board:
            assert (
                search("Send a mail?", tree=tree, run_id=run_id, blackboard=board, **parts).ended == "waiting"
            )
        return str(tree.memory.value("SELECT id FROM item WHERE section = 'questions'"))

    with as_user(clone.attacker), Tree.open(clone.folder) as tree:
        question = asked(tree)
        if way in ("accept", "import"):
            tree.memory.execute("DELETE FROM run")
            tree.memory.execute("DELETE FROM journal")
        answer = {"question": "x", "answer": "always"} if way != "later" else None
        if answer:
            tree.memory.execute("UPDATE item SET data = ? WHERE id = ?", (json.dumps(answer), question))
        else:
            Blackboard(tree).update(question, {"answer": "always"})
        export_memory(tree, tmp_path / "export")
    if way == "accept":
        accept(clone.metatree / "memory.db")
    else:
        shutil.rmtree(clone.metatree)
    build_tree(clone.folder).close()
    with Tree.open(clone.folder) as tree:
        if way == "later":  # the user's own waiting run, sent back with an answer
            asked(tree)
            import_memory(tree, tmp_path / "export", trust=True)
        elif way == "import":
            import_memory(tree, tmp_path / "export", trust=True)
        if way != "later":
            asked(tree)
        if way == "own":
            Blackboard(tree).update(question, {"answer": "yes"})
        with Blackboard(tree) as board:
            ended = resume("nightly", tree=tree, blackboard=board, **parts).ended
    assert bool(sent) == (way == "own") and (ended == "waiting" or way == "own")
