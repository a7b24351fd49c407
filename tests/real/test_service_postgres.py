"""Several servers of the service as processes on one PostgreSQL, which is stopped and started under them."""

from __future__ import annotations

import re
import secrets
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg
import pytest
import requests
from metatree_agents.cli._main import run

from tests.integration.agents.test_cli_serving import ask, ended, start, until
from tests.integration.service.conftest import Client, proof
from tests.real.postgres import Server, serving

pytestmark = pytest.mark.real
LISTENING = r"listening on (http://127\.0\.0\.1:\d+)"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving() as running:
        yield running


@pytest.fixture
def place(server: Server) -> str:
    """A schema of its own."""
    return f"{server.address()}&schema=t_{secrets.token_hex(8)}"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "house"
    folder.mkdir()
    (folder / "lamps.md").write_text("# Lamps\n\nA lamp in the hall has a bulb of nine watts.\n")
    assert run(["build", str(folder)]) == 0
    return folder


Serve = Callable[..., list[str]]


@pytest.fixture
def serve(place: str, source: Path) -> Iterator[Serve]:
    """Return a function that starts two server processes at the same time and returns their addresses."""
    with ExitStack() as stack:

        def begin(*options: str) -> list[str]:
            command = ["serve", "--source", str(source), "--database", place, "--port", "0", *options]
            processes = [start(*command), start(*command)]
            for process in processes:
                stack.callback(ended, process)
            return [until(process, LISTENING)[1] for process in processes]

        yield begin


@pytest.fixture
def clients(place: str, capfd: pytest.CaptureFixture[str]) -> Callable[[str], tuple[Client, Client]]:
    """Return a function that returns a frontend and an engine of a server."""
    made: dict[str, str] = {}
    for name, role in (("Asks", "frontend"), ("Answers", "engine")):
        assert run(["service", "users", "add", name, "--role", role, "--database", place]) == 0
        made[name] = capfd.readouterr().out.strip().splitlines()[-1]
    return lambda url: (Client(url, "Asks", made["Asks"]), Client(url, "Answers", made["Answers"]))


def test_a_first_start_of_two_servers_at_once(place: str, source: Path) -> None:
    command = ["serve", "--source", str(source), "--database", place, "--port", "0"]
    processes = [start(*command), start(*command)]
    said = []
    try:
        for process in processes:
            assert process.stderr is not None
            lines = []
            for line in process.stderr:
                lines.append(line)
                if re.search(LISTENING, line):
                    break
            said.append("".join(lines))
        secret = re.findall(r"Frontend_1 \(frontend\): (\S+)", "".join(said))
        assert len(secret) == 1, "made once"
        for number, text in enumerate(said):
            found = re.search(LISTENING, text)
            assert found
            assert "nine watts" in " ".join(
                ask(found[1], secret[0], str(number), "How many watts has the bulb in the hall?")
            )
    finally:
        for process in processes:
            assert ended(process) == 0


def test_two_servers_wake_each_other_and_take_a_nonce_once(
    serve: Serve, clients: Callable[[str], tuple[Client, Client]]
) -> None:
    (one, engine), (two, other_engine) = map(clients, serve("--no-engine"))
    fresh = proof("Asks", one.secret)
    assert requests.get(f"{one.url}/api/login", params=fresh, timeout=120).status_code == 200
    assert requests.get(f"{two.url}/api/login", params=fresh, timeout=120).status_code == 401
    with ThreadPoolExecutor(2) as threads:
        for number in range(5):
            topic = f"T{number}"
            claiming = threads.submit(lambda: other_engine.call("GET", "get-new-queries").json())
            assert one.ask("q", topic=topic).status_code == 200
            assert claiming.result()["Topic"] == topic
            checking = threads.submit(two.get, "check-query", Topic=topic, Seq=1)
            assert engine.answer("q", "yes", topic=topic).status_code == 200
            assert checking.result().json()["Answer"] == ["yes"]


def test_sixteen_writers_and_engines_on_two_servers(
    serve: Serve, clients: Callable[[str], tuple[Client, Client]]
) -> None:
    urls = serve("--no-engine")
    left = threading.Semaphore(0)
    given: Counter[tuple[str, int]] = Counter()
    answered: list[int] = []

    def write(number: int) -> list[tuple[str, int]]:
        frontend = clients(urls[number % 2])[0]
        seqs = []
        for each in range(12):
            topic = f"T{each % 4}"
            seqs.append((topic, frontend.ask(f"{number} {each}", topic=topic).json()["Seq"]))
        left.release()
        return seqs

    def work(number: int) -> None:
        engine = clients(urls[number % 2])[1]
        while len(answered) < 192:
            batch = engine.get("get-new-queries").json()
            for item in batch["Queries"] or ():
                ((seq, text),) = item.items()
                given[batch["Topic"], int(seq)] += 1
                assert engine.answer(text, "yes", topic=batch["Topic"], seq=int(seq)).status_code == 200
                answered.append(1)
            if len(answered) >= 192:
                # Wakes those who wait still.
                clients(urls[0])[0].ask("end", topic="E")

    with ThreadPoolExecutor(32) as threads:
        working = [threads.submit(work, number) for number in range(8)]
        seqs = [pair for pairs in threads.map(write, range(16)) for pair in pairs]
        for number in range(8):
            clients(urls[0])[0].ask("end", topic=f"E{number}")
        for each in working:
            each.result()
    assert sorted(seqs) == [(f"T{topic}", seq) for topic in range(4) for seq in range(1, 49)]
    assert {pair: given[pair] for pair in seqs} == dict.fromkeys(seqs, 1), "each was given to one engine"


def patiently(engine: Client) -> dict[str, Any]:
    """Claim, and try again as engines do when the service says that it is busy."""
    while (said := engine.get("get-new-queries")).status_code == 503:
        assert said.headers["Retry-After"] == "1"
    claim: dict[str, Any] = said.json()
    return claim


def test_servers_go_on_when_the_database_was_away(
    serve: Serve, clients: Callable[[str], tuple[Client, Client]], server: Server
) -> None:
    (one, _), (two, other_engine) = map(clients, serve("--no-engine"))
    with ThreadPoolExecutor(2) as threads:
        claiming = threads.submit(lambda: other_engine.get("get-new-queries").json())
        assert one.ask("q", topic="before").status_code == 200
        assert claiming.result()["Topic"] == "before"
        claiming = threads.submit(patiently, other_engine)
        server.stop()
        assert requests.get(f"{one.url}/healthz", timeout=120).status_code == 503
        away = one.ask("q", topic="away")
        assert (away.status_code, away.headers["Retry-After"]) == (503, "1")
        assert "postgres" not in away.text.lower()
        server.start()
        assert requests.get(f"{two.url}/healthz", timeout=120).status_code == 200
        assert one.ask("q", topic="after").status_code == 200
        assert claiming.result()["Topic"] == "after"
    with psycopg.connect(server.address(), autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = 'metatree'"
        )
    for client in (one, two) * 3:
        assert client.ask("q", topic="again").status_code == 200


def test_the_command_line_shows_no_secret(
    place: str, source: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    address = place.replace("owner@", "owner:s3cret@")
    process = start("serve", "--source", str(source), "--database", address, "--port", "0", "--no-engine")
    try:
        assert process.stderr is not None
        said = ""
        for line in process.stderr:
            said += line
            if re.search(LISTENING, line):
                break
    finally:
        assert ended(process) == 0
    assert "s3cret" not in said
    hint = re.search(r"`metatree service users add NAME --database '([^']+)'`", said)
    assert hint and hint[1] == place
    assert run(["service", "users", "list", "--database", hint[1]]) == 0
    assert "Frontend_1  frontend" in capfd.readouterr().out
