"""Servers and engines on machines of their own, one PostgreSQL: one tree, one memory, runs that outlive machines."""

from __future__ import annotations

import hashlib
import secrets
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from typing import Any

import psycopg
import pytest
import requests

from tests.real.hosts import Host, Network, folders, namespaces, why_no_namespaces
from tests.real.postgres import serving
from tests.real.sharing_worker import until

pytestmark = pytest.mark.real
ROOT = Path(__file__).parents[2]
PAGES = 6
KILLS = 3


class Lan:
    """A network with a database, and what is asked of it from here."""

    def __init__(self, network: Network, database: str, ledger: Path) -> None:
        self.network, self.database, self.ledger = network, database, ledger
        self.secrets: dict[str, str] = {}
        self._engines = 0

    def add_user(self, name: str, role: str) -> None:
        """Add a user from here, on the command line."""
        command: list[str | Path] = [Path(sys.executable).with_name("metatree"), "service", "users"]
        command += ["add", name, "--role", role, "--database", self.database]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        self.secrets[name] = done.stdout.strip()

    def server(self, name: str, *options: str | Path) -> tuple[Host, str]:
        """Start a server on a host of its own; return it with its address."""
        host, port = self.network.host(name), self.network.port()
        url = f"http://{host.address}:{port}"
        fixed = ("--host", host.address, "--port", str(port), "--database", self.database, "--lease", "3")
        host.metatree("serve", *fixed, "--no-engine", *options)

        def answers() -> bool:
            try:
                return requests.get(f"{url}/healthz", timeout=5).status_code == 200
            except (requests.ConnectionError, requests.Timeout):
                return False

        until(answers)
        return host, url

    def engine(self, url: str) -> Host:
        """Start an engine on a host of its own, with nothing but what it is told."""
        self._engines += 1
        host = self.network.host(f"e{self._engines}")
        user = f"Engine_{self._engines}"
        self.add_user(user, "engine")
        script = (ROOT / "tests/real/sharing_engine.py", self.database, url, user, self.ledger)
        host.run(
            sys.executable,
            *script,
            host.folder / "copy",
            env={"METATREE_SECRET": self.secrets[user], "PYTHONPATH": str(ROOT)},
        )
        until(lambda: "at work" in host.said())
        return host

    def at_work(self, engines: list[Host]) -> Host:
        """Return an engine that has a run under way, as soon as there is one."""
        sql = "SELECT owner FROM metatree_service_runs.run WHERE ended IS NULL AND owner IS NOT NULL"
        found: list[Host] = []

        def busy() -> bool:
            with psycopg.connect(self.database) as connection:
                owners = [row[0] for row in connection.execute(sql).fetchall()]
            found[:] = [
                each for each in engines if any(f"at work as {owner};" in each.said() for owner in owners)
            ]
            return bool(found)

        until(busy)
        return found[0]

    def call(self, url: str, method: str, route: str, *, body: Any = None, **given: Any) -> Any:
        """Make one call as the frontend."""
        nonce = secrets.token_hex(8)
        said = f"Frontend_9 {nonce} {self.secrets['Frontend_9']}"
        proof = {"User": "Frontend_9", "Nonce": nonce, "Hash": hashlib.sha256(said.encode()).hexdigest()}
        answer = requests.request(
            method, f"{url}/api/{route}", params={**proof, **given}, json=body, timeout=80
        )
        assert answer.status_code == 200, answer.text
        return answer.json()

    def ask(self, url: str, topic: str, question: str) -> None:
        """Ask a question, the first of its topic."""
        body = {"Topic": topic, "User": "ann", "Query": question, "Modifiers": {}, "Model": "default"}
        self.call(url, "POST", "add-query", body=body)

    def answer(self, url: str, topic: str) -> dict[str, Any]:
        """Wait for the answer to the first question of a topic, or for what its run asks the person."""
        deadline = time.monotonic() + 120
        while True:
            found: dict[str, Any] = self.call(url, "GET", "check-query", Topic=topic, Seq=1)
            if found["Answer"] is not None or found["Status"] == "Waiting":
                return found
            assert time.monotonic() < deadline, f"no answer to {topic}: {found}"


@contextmanager
def lan_in(folder: Path) -> Iterator[Lan]:
    """Give hosts with network namespaces of their own where the system allows it, or else with folders of their own."""
    apart = not why_no_namespaces()
    with ExitStack() as stack:
        make = namespaces if apart else folders
        network = stack.enter_context(make(folder / "hosts"))
        if not apart:
            postgres = stack.enter_context(serving())
            address = postgres.address()
        else:
            postgres = stack.enter_context(serving(f"listen_addresses={network.here}"))
            with (postgres.folder / "data" / "pg_hba.conf").open("a") as rights:
                rights.write(f"host all all {network.here}/24 trust\n")
            with psycopg.connect(postgres.address(), autocommit=True) as connection:
                connection.execute("SELECT pg_reload_conf()")
            address = f"postgresql://owner@{network.here}/postgres"
        yield Lan(network, address, folder / "ledger")


def test_machines_share_a_tree_its_memory_its_runs_and_its_tool_calls(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for page in range(PAGES):
        (source / f"w{page}.txt").write_text(f"links of page {page}\n")
    with lan_in(tmp_path) as lan:
        first, url1 = lan.server("web1", "--source", source)
        until(lambda: "published version 1" in first.said())
        _, url2 = lan.server("web2", "--no-publish")
        lan.add_user("Frontend_9", "frontend")
        engines = [lan.engine(url1), lan.engine(url2)]
        assert not list(engines[1].folder.rglob("w0.txt")), "an engine has no file of the source"

        # The same page is asked for in two topics at the same moment: it is paid for once.
        for group in "ab":
            for page in range(2):
                lan.ask(url2, f"{group}{page}", f"Is w{page}.txt paid?")
        for group in "ab":
            for page in range(2):
                said = lan.answer(url1, f"{group}{page}")
                assert said["Answer"] == ["yes [1]"], first.said()
                assert said["Think"][0] == "searched version 1 of the memory"
                assert said["Sources"][0]["Path"] == f"w{page}.txt"

        # A file comes: the next question, to another server, is answered from the tree that has it.
        (source / "w99.txt").write_text("links of a page that was not there\n")
        done = subprocess.run(
            [Path(sys.executable).with_name("metatree"), "build", str(source)],
            capture_output=True,
            check=True,
        )
        assert done.returncode == 0
        until(lambda: "published version 2" in first.said())
        lan.ask(url2, "new", "Is w99.txt paid?")
        said = lan.answer(url2, "new")
        assert (said["Answer"], said["Think"][0]) == (["yes [1]"], "searched version 2 of the memory")

        # Machines die at random moments, the publishing server too; in the end one comes with nothing of theirs.
        rng, killed = Random(11), 0
        engines += [lan.engine(url2) for _ in range(KILLS - 1)]
        for number in range(KILLS):
            for page in range(number, PAGES, KILLS):
                for group in "cd":
                    lan.ask(url2, f"{group}{page}", f"Is w{page}.txt paid?")
            threading.Event().wait(rng.uniform(0.0, 0.3))
            victim = lan.at_work(engines)
            victim.die()
            engines.remove(victim)
            killed += 1
            if killed == 2:
                first.die()
        engines.append(lan.engine(url2))
        answers = {}
        for page in range(PAGES):
            for group in "cd":
                answers[f"{group}{page}"] = lan.answer(url2, f"{group}{page}")
        lines = Counter(lan.ledger.read_text().splitlines())
        doubtful, unpaid = 0, set[int]()
        for page in range(PAGES):
            name = f"w{page}.txt"
            assert lines[f"pay {name} begin"] <= 1, "what may not happen twice happened twice"
            assert lines[f"look {name} begin"] <= 1 + killed
            for group in "cd":
                # Cut off while it paid, a run asks whether to do what may have happened; nobody pays again.
                said = answers[f"{group}{page}"]
                if said["Answer"] != ["yes [1]"]:
                    (asked,) = said["Asked"]
                    assert "was interrupted and may have happened" in asked["Question"]
                    if not lines[f"pay {name} begin"]:
                        unpaid.add(page)  # killed between the record of the call and its first line
                    doubtful += 1
        assert doubtful <= 2 * killed * 2
        with psycopg.connect(lan.database) as connection:
            sql = "SELECT count(*) FROM metatree_service_runs.journal WHERE kind = 'resume'"
            found = connection.execute(sql).fetchone()
        assert found is not None and found[0] > 0, "no run went on on another machine"
        assert sum(lines[f"pay w{page}.txt begin"] for page in range(PAGES)) == PAGES - len(unpaid)
        assert len(unpaid) <= killed
