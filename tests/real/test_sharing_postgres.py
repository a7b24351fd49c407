"""Journals, tool calls and boards on a real PostgreSQL: what one machine has done, another does not do again."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from metatree_agents.cli import _main as cli
from metatree_agents.service.replication.sharing import shared_at
from metatree_memory_tools import build_tree

from metatree import Blackboard, Node, Tree, load_run, remember, search, tool
from metatree._util.process import this_process
from metatree.durable import InDoubt, Record
from metatree.durable.sql_journal import SqlJournal
from metatree.errors import BrokenStore, LeaseLost, TransientError, UserError
from metatree.shared import Shared
from metatree.storage.postgres_store import PostgresStore
from metatree.storage.store import Store
from metatree.tools.call_log import Call, CallLog, call_of
from metatree.tools.tool import Tool
from tests.profiles import examples
from tests.real.postgres import Server, serving
from tests.real.sharing_worker import PAGES, carry_on, make_tree, parts, until

pytestmark = pytest.mark.real
HERE = Path(__file__).parent
LEASE_S = 1.0


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving() as running:
        yield running


@pytest.fixture
def address(server: Server) -> str:
    """A database of its own for each test."""
    import psycopg

    name = f"t{time.time_ns()}"
    with psycopg.connect(server.address(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return server.address(name)


def machine(
    address: str, folder: Path, name: str, ledger: Path, runs: list[str], *, nap_s: float = 0.02
) -> subprocess.Popen[bytes]:
    """Start a process that stands for a machine: its name says that nobody here can know whether it is dead."""
    home = folder / "home"
    home.mkdir(parents=True)
    env = {**os.environ, "HOME": str(home), "METATREE_CACHE_DIR": str(home / "cache")}
    env["NAP_S"] = str(nap_s)
    command: list[str | Path] = [sys.executable, HERE / "sharing_worker.py", address, folder]
    command += [f"{name} x/1/1", str(LEASE_S), ledger]
    return subprocess.Popen([*command, *runs], env=env, cwd=HERE.parents[1])


def test_machines_that_ask_for_the_same_call_at_the_same_moment_make_it_once(
    address: str, tmp_path: Path
) -> None:
    runs = [f"{group}-w{page}" for group in "abcd" for page in range(PAGES)]
    ledger = tmp_path / "ledger"
    machines = [machine(address, tmp_path / name, name, ledger, runs) for name in ("m1", "m2", "m3")]
    try:
        assert [one.wait(120) for one in machines] == [0, 0, 0]
    finally:
        for one in machines:
            one.kill()
            one.wait()
    made = Counter(line for line in ledger.read_text().splitlines() if line.endswith("begin"))
    assert made == {f"{what} w{page} begin": 1 for what in ("look", "pay") for page in range(PAGES)}
    with Shared(address) as shared:
        for run_id in runs:
            assert load_run(run_id, journal=shared.journal).answer == "yes"


def test_a_run_of_a_machine_that_dies_goes_on_on_another_and_repeats_nothing(
    address: str, tmp_path: Path
) -> None:
    """Kill machines at random moments, and put new ones, with nothing of theirs, in their places."""
    rng = Random(7)
    runs = [f"{group}-w{page}" for group in "abc" for page in range(PAGES)]
    ledger, kills, started = tmp_path / "ledger", 0, 0
    machines: list[subprocess.Popen[bytes]] = []
    try:
        while True:
            while len(machines) < 2:
                started += 1
                machines.append(machine(address, tmp_path / f"m{started}", f"m{started}", ledger, runs))
            threading.Event().wait(rng.uniform(1.0, 3.0))
            if any(one.poll() == 0 for one in machines):
                break
            assert started < 60
            if kills < 5:
                victim = machines.pop(rng.randrange(2))
                victim.kill()
                victim.wait()
                kills += 1
    finally:
        for one in machines:
            one.kill()
            one.wait()
    lines = Counter(ledger.read_text().splitlines())
    for page in range(PAGES):
        assert lines[f"pay w{page} begin"] <= 1, "what may not happen twice happened twice"
        assert lines[f"look w{page} begin"] <= lines[f"look w{page} end"] + kills
        assert lines[f"look w{page} end"] <= 1 + kills
    with Shared(address) as shared, make_tree(tmp_path / "last") as tree:
        tree.shared = shared
        before = ledger.read_text()
        for run_id in runs:
            assert carry_on(tree, run_id, parts(ledger))
            found = load_run(run_id, tree=tree)
            # Interrupted in `pay`, it may have happened: then the run asks a person, and nothing is paid twice.
            asked = found.ended == "waiting" and "may have happened" in found.detail
            assert found.answer == "yes" or asked
        assert ledger.read_text() == before, "a run that had ended did something again"


def test_a_machine_that_was_asleep_writes_too_late_and_takes_the_others_result(
    address: str, tmp_path: Path
) -> None:
    ledger = tmp_path / "ledger"
    asleep = machine(address, tmp_path / "m1", "m1", ledger, ["a-w0"], nap_s=0.5)
    awake = None
    try:
        until(lambda: ledger.exists() and "look w0 begin" in ledger.read_text())
        asleep.send_signal(signal.SIGSTOP)
        awake = machine(address, tmp_path / "m2", "m2", ledger, ["a-w0"], nap_s=0.5)
        assert awake.wait(60) == 0
        asleep.send_signal(signal.SIGCONT)
        assert asleep.wait(60) == 0
    finally:
        for one in (asleep, awake):
            if one is not None:
                one.kill()
                one.wait()
    with Shared(address) as shared:
        assert load_run("a-w0", journal=shared.journal).answer == "yes"
        assert shared.journal.refused("a-w0") > 0, "the late write was refused"
        records = shared.journal.read("a-w0")
    assert [record.kind for record in records].count("resume") == 1
    assert Counter(ledger.read_text().splitlines())["pay w0 begin"] == 1


def a_call(number: int) -> tuple[Call, Tool]:
    @tool(kind="exploratory", repeatable=False)
    def once(number: int) -> str:
        """Do something once."""
        return "done"

    return call_of(once, {"number": number}, Node("n", "n")), once


def test_a_call_whose_maker_died_follows_the_rule_of_the_local_records(address: str) -> None:
    call, once = a_call(1)
    again = replace(once, repeatable=True)
    dead, other = (CallLog(PostgresStore(address), owner=f"{name} x/1/1") for name in ("m1", "m2"))

    async def tried(calls: CallLog, what: Tool, key: str) -> Any:
        return await calls.claim(call, key=key, run_id="r", tool=what)

    assert asyncio.run(tried(dead, once, "r:1")) is None
    waiting = asyncio.run(_still_waits(other, call, once))
    assert waiting, "somebody may be at work on it: the other waits"
    _expire(dead, call)
    with pytest.raises(InDoubt):
        asyncio.run(tried(other, once, "s:1"))
    assert asyncio.run(tried(other, again, "s:1")) is None
    dead.keep(call, {"text": "late"}, key="r:1", tool=once)
    dead.drop(call, key="r:1")
    assert other.result_of(call, key="s:1") is None, "a late result is not taken"
    other.keep(call, {"text": "done"}, key="s:1", tool=again)
    made = asyncio.run(tried(dead, once, "t:1"))
    assert (made.result, made.reused) == ({"text": "done"}, True)
    dead.close()
    other.close()


ASKED = st.tuples(
    st.sampled_from("rs"),  # the run
    st.sampled_from("ab"),  # what is mailed
    st.sampled_from(["", "fails", "dies before", "dies after"]),
    st.booleans(),  # whether a person wants a call that is in doubt made again
)


@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(["changes", "changes, for ever", "reads"]), st.lists(ASKED, max_size=8))
def test_as_many_effects_as_scopes_and_calls_as_in_the_local_records(
    address: str, kind: str, asked: list[tuple[str, str, str, bool]]
) -> None:
    """The same runs with the same kills, on both; what the model says of their effects holds for both."""
    options: dict[str, Any] = {"changes": {"changes": True}, "reads": {}}.get(
        kind, {"changes": True, "reuse": "forever"}
    )

    @tool(kind="exploratory", **options)
    def mail(to: str) -> str:
        """Send a letter."""
        return "sent"

    space = f"s{time.time_ns()}"
    here = this_process().rsplit("/", 2)[0]
    dead = f"{here}/{10**9 - 1}/1"  # a process of this machine that is not there any more
    local, shared = (
        CallLog(Store.open(":memory:"), owner=dead),
        CallLog(PostgresStore(address, schema=space), owner=dead),
    )

    try:
        told = [[_done(calls, mail, one) for one in asked] for calls in (local, shared)]
    finally:
        shared.close()
    assert told[0] == told[1]
    made: set[Any] = set()
    doubtful: set[Any] = set()
    for (run, to, how, again), said in zip(asked, told[1], strict=True):
        scope = (to,) if mail.lifetime == "forever" else (run, to)
        if scope in made:
            assert said == "reused"
        elif scope in doubtful and not mail.is_repeatable and not again:
            assert said == "in doubt"
        else:
            assert said == "called"
            doubtful.discard(scope)
            if not how:
                made.add(scope)
            elif how.startswith("dies"):
                doubtful.add(scope)


def _done(calls: Any, mail: Tool, asked: tuple[str, str, str, bool]) -> str:
    run, to, how, again = asked
    call = call_of(mail, {"to": to}, Node("", ""), within=run)
    given: dict[str, Any] = {"key": f"{run}:{to}", "tool": mail}
    try:
        found = asyncio.run(calls.claim(call, run_id=run, again=again, **given))
    except InDoubt:
        return "in doubt"
    if found is not None:
        assert found.result == {"text": "sent"} and found.run_id in "rs"
        return "reused"
    if not how:
        calls.keep(call, {"text": "sent"}, **given)
    elif how == "fails":
        calls.drop(call, key=given["key"])
    return "called"


async def _still_waits(calls: CallLog, call: Call, what: Tool) -> bool:
    try:
        async with asyncio.timeout(0.3):
            await calls.claim(call, key="s:1", run_id="s", tool=what)
    except TimeoutError:
        return True
    return False


def _expire(calls: CallLog, call: Call) -> None:
    calls._database.execute("UPDATE call SET expires_at = 0 WHERE hash = ?", (call.hash,))


def test_a_journal_and_its_calls_outlast_a_database_that_drops_its_connections(
    server: Server, address: str
) -> None:
    import psycopg

    with Shared(address, owner="m1 x/1/1") as shared:
        token = shared.journal.create("r", "m", Record("begin", 1.0, body={"given": None}))
        call, once = a_call(2)
        for number in range(1, 4):
            with psycopg.connect(server.address(), autocommit=True) as admin:
                admin.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
                    " AND datname = %s",
                    (address.partition("?")[0].rpartition("/")[2],),
                )
            shared.journal.append("r", token, number, Record("outcome", 1.0, number, {"=": 1}))
        assert asyncio.run(shared.calls.claim(call, key="r:1", run_id="r", tool=once)) is None
        assert [record.kind for record in shared.journal.read("r")] == ["begin", *["outcome"] * 3]


def test_a_write_whose_answer_was_lost_is_not_made_twice(address: str) -> None:
    """The database did it, and the connection broke before it could say so."""

    from psycopg import OperationalError

    class Deaf(SqlJournal):
        broken = 0

        def _insert(self, *given: Any) -> int | None:
            flags = super()._insert(*given)
            if self.broken:
                self.broken -= 1
                raise OperationalError("the answer was lost")
            return flags

    journal = Deaf(PostgresStore(address, patience_s=10), owner="m1 x/1/1")
    token = journal.create("r", "m", Record("begin", 1.0, body={"given": None}))
    journal.broken = 1
    assert journal.append("r", token, 1, Record("outcome", 2.0, 1, {"=": "ü"}, {"calls": 1.0})) == 0
    with pytest.raises(LeaseLost):
        journal.append("r", token, 1, Record("outcome", 2.0, 1, {"=": "another"}))
    assert [record.kind for record in journal.read("r")] == ["begin", "outcome"]
    journal.close()


def test_a_database_that_is_away_for_too_long_is_an_error_that_says_so(address: str) -> None:
    journal = SqlJournal(PostgresStore(address), owner="m1 x/1/1")
    store: Any = journal.database
    store.address.arguments["host"] = "/nowhere"
    store._connection.close()
    with pytest.raises(TransientError, match="nowhere"):
        journal.runs()
    journal.close()


def test_tables_of_another_version_are_left_alone(address: str) -> None:
    import psycopg

    PostgresStore(address).close()
    with psycopg.connect(address, autocommit=True) as admin:
        admin.execute("SET search_path TO metatree_boards")
        admin.execute("UPDATE metatree_schema SET version = 99")
        with pytest.raises(BrokenStore, match="has schema 99, this version of metatree knows 9: upgrade it"):
            PostgresStore(address)
        admin.execute("UPDATE metatree_schema SET version = 7")
        with pytest.raises(BrokenStore, match="has schema 7, this version of metatree knows 8 and later"):
            PostgresStore(address)
        admin.execute("DROP TABLE metatree_schema")
        with pytest.raises(BrokenStore, match=r"the schema metatree_boards .* rename it") as caught:
            PostgresStore(address)
        assert caught.value.reason == "foreign"
        admin.execute("ALTER SCHEMA metatree_boards RENAME TO before")
        PostgresStore(address).close()


def test_a_user_who_may_not_make_the_tables_is_told_what_to_run(server: Server, address: str) -> None:
    import psycopg

    with psycopg.connect(address, autocommit=True) as admin:
        admin.execute("CREATE ROLE reader LOGIN")
    database = address.partition("?")[0].rpartition("/")[2]
    with pytest.raises(UserError, match=r"permission denied.* run there: CREATE SCHEMA") as caught:
        PostgresStore(server.address(database, user="reader"))
    assert '"metatree_boards" AUTHORIZATION "reader"' in str(caught.value)


def test_boards_on_postgresql_pass_the_tests_of_boards(address: str, tmp_path: Path) -> None:
    (tmp_path / "on_postgres.py").write_text(ON_POSTGRES)
    sqlite_alone = (
        "test_listings_read_items_in_their_order_without_sorting_the_board",
        "test_words_of_strangers_wake_nobody",
    )
    chosen = " and ".join(f"not {name}" for name in sqlite_alone)
    pytest_ = (sys.executable, "-m", "pytest", "-q", "-p", "on_postgres", "-p", "no:cacheprovider")
    done = subprocess.run(
        [*pytest_, "tests/unit/blackboard", "-k", chosen],
        cwd=HERE.parents[1],
        env={**os.environ, "ON_POSTGRES": address, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]


ON_POSTGRES = """
import os
import psycopg
from hypothesis import settings
from metatree.blackboard import _board as board
from metatree.storage.postgres_store import PostgresStore

real, made = board._open_store, []

def opened(place):
    if place is not None and str(place) != ":memory:":
        return real(place)
    while made:
        made.pop().close()
    with psycopg.connect(os.environ["ON_POSTGRES"], autocommit=True) as connection:
        connection.execute("SET client_min_messages = warning; DROP SCHEMA IF EXISTS metatree_boards CASCADE")
    made.append(PostgresStore(os.environ["ON_POSTGRES"]))
    return made[-1], True

board._open_store = opened


def pytest_configure(config):
    # What is looked for here is where the databases differ; the rest is tried on SQLite, and each board takes its time.
    settings.register_profile("on postgres", max_examples=15, deadline=None)
    settings.load_profile("on postgres")
"""


def test_two_machines_write_one_board_and_see_each_other(address: str) -> None:
    with Blackboard(address, agent="ann") as mine, Blackboard(address, agent="bob") as other:
        question = mine.ask("Which colour?")

        def write(board: Blackboard) -> None:
            for number in range(40):
                board.add_trajectories({"step": number, "subtask": board.agent})

        threads = [threading.Thread(target=write, args=(board,)) for board in (mine, other)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        versions = [item.changed for item in mine.changes()]
        assert versions == list(range(1, 82)), "each change has a version of its own, in order"
        answering = threading.Thread(target=lambda: other.answer(question.id, "green"))
        answering.start()
        assert mine.wait_for_answer(question.id, 20) == "green"
        answering.join()
        assert other.get(question.id).data["answered_by"] == "bob"


def test_a_run_waits_on_one_machine_and_goes_on_on_another_with_its_board(
    address: str, tmp_path: Path
) -> None:
    from metatree import ask_person, resume, search
    from metatree.testing.parts import PlainComposer, ScriptedReader, ScriptedRouter

    given: dict[str, Any] = {"router": ScriptedRouter(), "reader": ScriptedReader({}), "evidence": False}
    given |= {"composer": PlainComposer(), "fallbacks": [ask_person]}
    with make_tree(tmp_path / "m1") as tree, Shared(address, owner="m1 x/1/1") as shared:
        tree.shared = shared
        board = Blackboard(tree)
        assert board.shared and board.path is None
        waiting = search("Who decides?", tree=tree, run_id="r", blackboard=board, **given)
        assert waiting.ended == "waiting"
    with make_tree(tmp_path / "m2") as tree, Shared(address, owner="m2 x/1/1") as shared:
        tree.shared = shared
        board = Blackboard(tree)
        (question,) = board.open_questions()
        board.answer(question.id, "Ann does")
        found = resume("r", tree=tree, **given)
        assert found.ended == "answered" and "Ann does" in found.answer
        assert board.get("r:request").get_value("ended") == "answered"


def test_killed_workers_are_seen_at_once_on_their_own_machine(address: str, tmp_path: Path) -> None:
    """A process of the same machine that is gone loses its hold before the lease ends."""
    script = (
        "import os, sys; from metatree.durable import Record;"
        "from metatree.durable.sql_journal import SqlJournal;"
        "from metatree.storage.postgres_store import PostgresStore;"
        "j = SqlJournal(PostgresStore(sys.argv[1]), lease_s=600); j.create('r', 'm', Record('begin', 1.0)); os._exit(1)"
    )
    subprocess.run([sys.executable, "-c", script, address], check=False)
    journal = SqlJournal(PostgresStore(address), lease_s=600)
    until(lambda: journal.claimable("m") == ["r"])
    assert journal.acquire("r") == 2
    journal.close()


def test_the_proof_that_nothing_is_left_names_what_machines_share(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run, a call and a board on the server quote what was forgotten on this machine."""
    secret = "The zebra vault opens with the quagmire password at dawn."
    (tmp_path / "readme.md").write_text("# Boats\n")
    build_tree(tmp_path).close()
    monkeypatch.chdir(tmp_path)
    with Tree.open(tmp_path) as tree, shared_at(address) as shared:
        remember(tree, secret, who="ann")
        tree.shared = shared
        found = search("What opens the zebra vault?", tree=tree, blackboard=Blackboard(shared.boards))
        assert "quagmire" in found.answer
    assert cli.run(["forget", "--by", "ann", "--yes", "--verify", "--database", address, "--json"]) == 1
    said = json.loads(capsys.readouterr().out)
    places = {trace["place"].rpartition(": ")[2] for trace in said["traces"]}
    assert "journal" in places and found.run_id in {trace["what"] for trace in said["traces"]}
    assert not any("postgres" not in trace["place"] for trace in said["traces"])
    assert cli.run(["forget", "--by", "ann", "--yes", "--database", address]) == 2
