"""`metatree serve`, `worker` and `users` as processes: a first start without any settings, and a graceful end."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import requests
from metatree_agents.cli._main import run
from metatree_agents.cli.commands._search import web_parts
from metatree_agents.cli.schemas import service
from metatree_agents.listening import listen
from metatree_agents.service.accounts.users import proof
from metatree_agents.tools.toolkit import Toolkit
from metatree_memory_tools import build_tree

from metatree.testing._web_server import Reply, WebServer

pytestmark = pytest.mark.integration
FACTS = "# Lamps\n\nA lamp in the hall has a bulb of nine watts.\n"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "house"
    folder.mkdir()
    (folder / "lamps.md").write_text(FACTS)
    return folder


def start(*arguments: str, **environment: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", "from metatree_agents.cli import main; main()", *arguments]
    return subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        env={**os.environ, **environment},
    )


def until(process: subprocess.Popen[str], pattern: str) -> re.Match[str]:
    """Read what a process says until a line matches."""
    said = []
    assert process.stderr is not None
    for line in process.stderr:
        said.append(line)
        if found := re.search(pattern, line):
            return found
    raise AssertionError("".join(said))


def ended(process: subprocess.Popen[str]) -> int:
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=120)
    return process.returncode


def ask(url: str, secret: str, topic: str, text: str) -> list[str]:
    def given() -> dict[str, str]:
        nonce = os.urandom(8).hex()
        return {"User": "Frontend_1", "Nonce": nonce, "Hash": proof("Frontend_1", nonce, secret)}

    body = {"Topic": topic, "User": "Ann", "Query": text}
    assert requests.post(f"{url}/api/add-query", params=given(), json=body, timeout=120).status_code == 200
    found = requests.get(
        f"{url}/api/check-query", params={**given(), "Topic": topic, "Seq": "1"}, timeout=70
    ).json()
    answer: list[str] = found["Answer"]
    return answer


def test_a_first_start_answers_and_a_worker_takes_over(
    source: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    server = start("serve", "--source", str(source), "--port", "0")
    try:
        secret = until(server, r"Frontend_1 \(frontend\): (\S+)")[1]
        url = until(server, r"listening on (http://127\.0\.0\.1:\d+)")[1]
        assert "nine watts" in " ".join(ask(url, secret, "one", "How many watts has the bulb in the hall?"))
        files = list((source / ".metatree").glob("service.db*"))
        assert {file.name for file in files} == {
            "service.db",
            "service.db-wal",
            "service.db-shm",
            "service.db-servers",
        }
        assert not any(file.stat().st_mode & 0o077 for file in files), "others may not read the secrets"
        with closing(sqlite3.connect(source / ".metatree" / "service.db")) as database:
            used = database.execute("SELECT DISTINCT name FROM service_nonce").fetchall()
        assert used == [("Frontend_1",)], "the engine in the server has an API key, and leaves no nonces"
    finally:
        assert ended(server) == 0
    assert (source / ".metatree" / "service.db").stat().st_mode & 0o077 == 0, (
        "others may not read the secrets"
    )
    assert (
        run(["service", "users", "add", "Inference_2", "--role", "engine", "--source", str(source), "--json"])
        == 0
    )
    engine = json.loads(capfd.readouterr().out)["secret"]
    server = start("serve", "--source", str(source), "--port", "0", "--no-engine")
    worker = None
    try:
        url = until(server, r"listening on (http://127\.0\.0\.1:\d+)")[1]
        worker = start(
            "service",
            "worker",
            "--server",
            url,
            "--user",
            "Inference_2",
            "--source",
            str(source),
            METATREE_SECRET=engine,
        )
        assert "nine watts" in " ".join(ask(url, secret, "two", "How many watts has the bulb in the hall?"))
    finally:
        assert worker is None or ended(worker) == 0
        assert ended(server) == 0


def test_the_options_of_a_service_and_of_its_engine(source: Path) -> None:
    """Proofs, waits and the web: what the tree does not answer is looked for there."""
    page = "<title>Ferry timetable</title><p>The last ferry to Hvar leaves at 20:30.</p>"
    with WebServer({"/ferry": page}) as web:
        hits = {"results": [{"url": f"{web.url}/ferry", "title": "Ferry", "content": ""}]}
        web.routes["/search"] = Reply(json.dumps(hits), kind="application/json")
        given = ["--no-sha1", "--newline-hash", "--answer-timeout", "0", "--web", web.url, "--attempts", "1"]
        server = start("serve", "--source", str(source), "--port", "0", *given, METATREE_WEB_ALLOW=web.host)
        try:
            secret = until(server, r"Frontend_1 \(frontend\): (\S+)")[1]
            url = until(server, r"listening on (http://127\.0\.0\.1:\d+)")[1]

            def called(method: str, route: str, algorithm: str = "sha256", end: str = "", **more: Any) -> Any:
                nonce = os.urandom(8).hex()
                proven = proof("Frontend_1", nonce, secret + end, algorithm=algorithm)
                return requests.request(
                    method,
                    f"{url}/api/{route}",
                    params={"User": "Frontend_1", "Nonce": nonce, "Hash": proven, **more.pop("params", {})},
                    timeout=60,
                    **more,
                )

            assert called("GET", "login").status_code == 200
            assert called("GET", "login", "sha1").status_code == 401
            assert called("GET", "login", end="\n").status_code == 200
            body = {"Topic": "T", "User": "Ann", "Query": "When does the last ferry to Hvar leave?"}
            assert called("POST", "add-query", json=body).status_code == 200
            found = called("GET", "check-query", params={"Topic": "T", "Seq": "1"}).json()
            assert found["Answer"] is None, "it does not wait"
            while found["Answer"] is None:
                found = called("GET", "check-query", params={"Topic": "T", "Seq": "1"}).json()
            assert "20:30" in " ".join(found["Answer"])
            assert found["Sources"][0]["Node"] == f"page:{web.url}/ferry"
        finally:
            assert ended(server) == 0


def test_mcp_looks_on_the_web_too(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with WebServer({"/ferry": "<title>Ferry</title><p>The last ferry to Hvar leaves at 20:30.</p>"}) as web:
        monkeypatch.setenv("METATREE_WEB_ALLOW", web.host)
        hits = {"results": [{"url": f"{web.url}/ferry", "title": "Ferry", "content": ""}]}
        web.routes["/search"] = Reply(json.dumps(hits), kind="application/json")
        for address, found in ((None, False), (web.url, True)):
            with build_tree(source) as tree:
                kit = Toolkit(tree, parts=web_parts(address))
                said = asyncio.run(kit.ask(["When does the last ferry to Hvar leave?"]))
                assert ("20:30" in said.answer) is found


def test_a_server_that_stops_lets_those_go_who_wait(source: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["service", "users", "add", "Inference_2", "--role", "engine", "--source", str(source)]) == 0
    secret = capfd.readouterr().out.strip()
    server = start("serve", "--source", str(source), "--port", "0", "--no-engine")
    assert until(
        server, "nobody is an administrator here: `metatree service users add admin --role admin --source "
    )
    url = until(server, r"listening on (http://127\.0\.0\.1:\d+)")[1]
    nonce = os.urandom(8).hex()
    given = {"User": "Inference_2", "Nonce": nonce, "Hash": proof("Inference_2", nonce, secret)}
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(requests.get, f"{url}/api/get-new-queries", params=given, timeout=70)
        used = "SELECT count(*) FROM service_nonce WHERE nonce = ?"
        with closing(sqlite3.connect(source / ".metatree" / "service.db")) as database:
            while database.execute(used, (nonce,)).fetchone() == (0,):
                assert not waiting.done()
        server.send_signal(signal.SIGTERM)
        assert waiting.result().json() == {"Topic": None, "Queries": None}
    said = server.communicate(timeout=120)[1]
    assert server.returncode == 0
    assert "Traceback" not in said and "Cancel" not in said


def test_users_as_json(
    source: Path, capfd: pytest.CaptureFixture[str], conforms: Callable[[Any, Any], None]
) -> None:
    run(["build", str(source)])
    capfd.readouterr()
    assert run(["service", "users", "add", "Ann", "--source", str(source), "--json"]) == 0
    conforms(json.loads(capfd.readouterr().out), service.UserAddedOutput)
    assert run(["service", "users", "list", "--source", str(source), "--json"]) == 0
    listed = json.loads(capfd.readouterr().out)
    conforms(listed, service.UsersOutput)
    assert listed["users"] == [{"name": "Ann", "role": "user"}]


def test_users_are_listed_and_removed_and_secrets_are_shown_once(
    source: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run(["build", str(source)])
    capfd.readouterr()
    where = ["--source", str(source)]
    assert run(["service", "users", "add", "Ann", *where]) == 0
    said = capfd.readouterr()
    secret = said.out.strip()
    assert len(secret) >= 22
    administrator = f"`metatree service users add admin --role admin --source {source}` makes one"
    assert administrator in said.err and "the one before" not in said.err
    assert run(["service", "users", "add", "Ann", *where]) == 0
    said = capfd.readouterr()
    assert "the one before is accepted no more" in said.err and administrator not in said.err
    assert run(["service", "users", "list", *where]) == 0
    assert capfd.readouterr().out == "Ann  user\n"
    assert run(["service", "users", "remove", "Ann", *where]) == 0
    assert run(["service", "users", "remove", "Ann", *where]) == 2
    assert "no user 'Ann'" in capfd.readouterr().err


def test_users_come_before_the_tree_and_are_where_the_service_looks(
    source: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    where = ["--source", str(source)]
    assert run(["service", "users", "list", *where]) == 2
    assert "there is no service in" in capfd.readouterr().err
    assert run(["service", "users", "add", "Ann", *where]) == 0
    assert sorted(path.name for path in source.iterdir()) == [".metatree", "lamps.md"]
    run(["build", str(source)])
    capfd.readouterr()
    assert run(["service", "users", "list", *where]) == 0
    assert capfd.readouterr().out == "Ann  user\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["service", "users", "add", "Ann", "--role", "boss"], "'boss' is no role"),
        (["service", "users", "add", "a b"], "'a b' is no name"),
        (["service", "worker", "--server", "http://127.0.0.1:1", "--user", "x"], "METATREE_SECRET"),
        (
            ["serve", "--port", "1", "--host", "203.0.113.1"],
            "cannot listen on 203.0.113.1 port 1: Cannot assign requested address; choose another --host",
        ),
        (["serve", "--database", "mysql://x/y"], "'mysql' is no kind of database"),
        (
            ["serve", "--database", "postgresql://u:s3c/ret@x/y"],
            "this is no address of a PostgreSQL database",
        ),
        (
            ["serve", "--database", "postgresql://u:s3c@ret@x/y"],
            "this is no address of a PostgreSQL database",
        ),
        (
            ["service", "users", "list", "--database", "postgresql://u:s3cret@127.0.0.1:1/y"],
            "postgresql://u@127.0.0.1:1/y",
        ),
        (["serve", "--database", "/nowhere/at/all.db"], "no folder '/nowhere/at'"),
    ],
)
def test_wrong_use_is_one_line(
    source: Path, capfd: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    run(["build", str(source)])
    capfd.readouterr()
    assert run([*arguments, "--source", str(source)]) == 2
    error = capfd.readouterr().err
    assert said in error and "Traceback" not in error
    assert "s3c" not in error and error.count("\n") == 1


def test_a_link_logs_a_user_in_once(
    source: Path, capfd: pytest.CaptureFixture[str], conforms: Callable[[Any, Any], None]
) -> None:
    server = start("serve", "--source", str(source), "--port", "0", "--no-engine")
    try:
        url = until(server, r"listening on (http://127\.0\.0\.1:\d+)")[1]
        first = until(server, r"(http://\S+)/login#code=(\S+)")
        assert first[1] == url
        assert (
            run(
                [
                    "service",
                    "users",
                    "login",
                    "admin",
                    "--source",
                    str(source),
                    "--server",
                    f"{url}/",
                    "--json",
                ]
            )
            == 0
        )
        made = json.loads(capfd.readouterr().out)
        conforms(made, service.UserLoginOutput)
        assert made["link"] == f"{url}/login#code={made['code']}" and made["seconds"] == 900
        for code in (first[2], made["code"]):
            for status in (303, 401):
                sent = requests.post(
                    f"{url}/login",
                    data={"code": code},
                    headers={"Origin": url},
                    timeout=120,
                    allow_redirects=False,
                )
                assert sent.status_code == status
    finally:
        assert ended(server) == 0
    assert run(["service", "users", "login", "Nobody", "--source", str(source)]) == 2
    assert (
        run(["service", "users", "login", "admin", "--source", str(source), "--server", "memory.example.org"])
        == 2
    )
    said = capfd.readouterr().err
    assert "no user 'Nobody'" in said and "'memory.example.org' is no address" in said


def test_a_link_leads_to_where_servers_are_at_work(source: Path, capfd: pytest.CaptureFixture[str]) -> None:
    def login() -> tuple[int, str, str]:
        code = run(["service", "users", "login", "admin", "--source", str(source)])
        said = capfd.readouterr()
        return code, said.out.partition("/login#")[0], said.err

    servers, urls = [], list[str]()
    try:
        for _ in range(2):
            servers.append(start("serve", "--source", str(source), "--port", "0", "--no-engine"))
            urls.append(until(servers[-1], r"listening on (http://127\.0\.0\.1:\d+)")[1])
        capfd.readouterr()
        code, link, said = login()
        assert (code, link) == (0, urls[1]) and f"it works at {urls[0]}, too" in said
        assert ended(servers[1]) == 0
        assert login()[:2] == (0, urls[0])
    finally:
        for server in servers:
            server.kill()  # which leaves no time to say good-bye
            server.communicate(timeout=120)
    code, link, said = login()
    assert (
        (code, link) == (2, "") and "no server is at work on this database" in said and "--server URL" in said
    )


def test_a_new_secret_keeps_the_role_and_the_last_administrator_stays(
    source: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    def users(*arguments: str) -> tuple[int, str]:
        code = run(["service", "users", *arguments, "--database", str(source / "service.db")])
        said = capfd.readouterr()
        return code, said.out + said.err

    assert users("add", "admin", "--role", "admin")[0] == 0
    assert users("add", "admin")[0] == 0
    assert users("add", "Ann")[0] == 0
    assert users("list")[1].splitlines() == ["Ann  user", "admin  admin"]
    code, said = users("remove", "admin")
    assert code == 2 and "the last administrator" in said
    assert users("add", "Ann", "--role", "admin")[0] == 0
    assert users("remove", "admin")[0] == 0
    for command in ("add", "remove"):
        code, said = users(command, "engine-inside")
        assert code == 2 and "the engine inside" in said


@pytest.mark.parametrize("proxy", ["abc", "10.0.0.0/99"])
def test_a_proxy_is_an_address(source: Path, proxy: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["serve", "--source", str(source), "--proxy", proxy]) == 2
    assert "address of a proxy" in capfd.readouterr().err


@pytest.mark.parametrize("command", ["serve", "serve-metrics", "mcp", "gateway"])
def test_a_taken_port_is_said_before_a_tree_is_built(
    source: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], command: str
) -> None:
    servers = tmp_path / "servers.json"
    servers.write_text(json.dumps({"mcpServers": {"none": {"command": "none-such"}}}))
    memory = tmp_path / "gateway.db"
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        address = f"127.0.0.1:{port}"
        arguments, option = {
            "serve": (["serve", "--source", str(source), "--port", str(port)], "--port "),
            "serve-metrics": (
                ["serve", "--source", str(source), "--port", "0", "--metrics-address", address],
                "--metrics-address 127.0.0.1:",
            ),
            "mcp": (["mcp", "--source", str(source), "--http", address], "--http 127.0.0.1:"),
            "gateway": (
                ["gateway", "--servers", str(servers), "--memory", str(memory), "--http", address],
                "--http 127.0.0.1:",
            ),
        }[command]
        assert run(arguments) == 2
    said = capfd.readouterr().err
    assert f"cannot listen on 127.0.0.1 port {port}: Address already in use" in said
    assert f"{option}0 for any free one" in said and "Traceback" not in said
    assert not (source / ".metatree").exists() and not memory.exists(), "nothing was made before"
