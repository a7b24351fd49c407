"""`metatree service check` before a start, and a restore into a folder that is not there yet."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
import requests
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from metatree_agents.cli._main import run
from metatree_agents.service.accounts.keys import Keys
from metatree_agents.service.accounts.users import INSIDE, Users

from .conftest import Served, opened

pytestmark = pytest.mark.integration
Serve = Callable[..., Served]


def looked(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, tuple[bool, str]]]:
    """Return the exit code, and what was found by the names of the checks."""
    capsys.readouterr()
    code = run(["service", "check", *arguments, "--json"])
    said = json.loads(capsys.readouterr().out)
    assert said["ok"] == (code == 0)
    return code, {each["name"]: (each["ok"], each["detail"]) for each in said["checks"]}


def with_users(file: Path, *roles: str) -> Path:
    async def add() -> None:
        database = opened(file)
        await database.start()
        for number, role in enumerate(roles):
            await Users(database).add(f"user_{number}", role)
        await database.close()

    asyncio.run(add())
    return file


def test_before_the_first_start_nothing_is_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "service.db"
    code, found = looked(capsys, "--database", str(file))
    assert code == 0 and found["database"][1].startswith("none at") and list(tmp_path.iterdir()) == []
    code, found = looked(capsys, "--database", str(tmp_path / "no" / "service.db"))
    assert code == 5 and "there is no folder" in found["database"][1]


def test_what_would_stop_a_server_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = with_users(tmp_path / "good.db", "admin", "user")
    assert looked(capsys, "--database", str(good))[1]["database"] == (True, "2 users")
    lonely = with_users(tmp_path / "lonely.db", "user")
    code, found = looked(capsys, "--database", str(lonely))
    assert code == 5 and "nobody is an administrator" in found["database"][1]
    text = tmp_path / "text.db"
    text.write_text("no database" * 100)
    assert "is no database of a service" in looked(capsys, "--database", str(text))[1]["database"][1]
    newer = with_users(tmp_path / "newer.db", "admin")
    with closing(sqlite3.connect(newer)) as connection, connection:
        connection.execute("UPDATE service_schema SET version = 999")
    assert "schema 999" in looked(capsys, "--database", str(newer))[1]["database"][1]
    lines = run(["service", "check", "--database", str(good)]), capsys.readouterr().out
    assert lines[0] == 0 and lines[1].count("ok") == 3 and "FAIL" not in lines[1]


def certificate(folder: Path) -> Path:
    """Write a certificate for 127.0.0.1 that nobody but itself has signed, with its key."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "memory")])
    address = x509.IPAddress(ip_address("127.0.0.1"))
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), 1, now, now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .sign(key, hashes.SHA256())
    )
    form = (Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    file = folder / "memory.pem"
    file.write_bytes(made.public_bytes(Encoding.PEM) + key.private_bytes(*form))
    return file


@contextmanager
def proxy(upstream: str, *, pem: Path | None = None, **headers: str) -> Iterator[str]:
    """A proxy that passes a request on with headers of its own."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            given = {**dict(self.headers), **{key.replace("_", "-"): value for key, value in headers.items()}}
            answer = requests.get(upstream + self.path, headers=given, timeout=60)
            self.send_response(answer.status_code)
            self.send_header("Date", answer.headers["Date"])
            self.end_headers()
            self.wfile.write(answer.content)

        def log_message(self, *_: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if pem is not None:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(pem)
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http{'s' * (pem is not None)}://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_what_a_proxy_does_not_pass_on_is_said(
    service: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ("--database", str(with_users(tmp_path / "other.db", "admin")))
    with proxy(service.url) as right:
        assert looked(capsys, *where, "--server", right)[1]["proxy"][0] is True
    with proxy(service.url, Host="inner:8080") as wrong:
        code, found = looked(capsys, *where, "--server", wrong)
        assert (
            code == 5 and "proxy_set_header Host" in found["proxy"][1] and "inner:8080" in found["proxy"][1]
        )
    with proxy(service.url, Host="127.0.0.1") as wrong:
        said = looked(capsys, *where, "--server", wrong)[1]["proxy"][1]
        assert "Host comes without its port, as '127.0.0.1'" in said and "Host $http_host;`" in said
    with proxy(service.url, X_Forwarded_Proto="https") as wrong:
        assert "X-Forwarded-Proto" in looked(capsys, *where, "--server", wrong)[1]["proxy"][1]
    assert "does not answer" in looked(capsys, *where, "--server", "http://127.0.0.1:9")[1]["proxy"][1]
    assert run(["service", "check", *where, "--server", "memory.example.org"]) == 2
    direct = looked(capsys, *where, "--server", service.url)[1]["proxy"]
    assert direct[0] and "from 127.0.0.1: no proxy between" in direct[1] and "203.0" not in direct[1]


def test_a_certificate_that_is_not_trusted_is_named(
    service: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    where = ("--database", str(with_users(tmp_path / "other.db", "admin")))
    pem = certificate(tmp_path)
    with proxy(service.url, pem=pem, X_Forwarded_Proto="https") as secure:
        code, found = looked(capsys, *where, "--server", secure)
        said = found["proxy"][1]
        assert code == 5 and said.startswith(f"the certificate of {secure} is not trusted here (self"), said
        assert "SSL_CERT_FILE" in said
        monkeypatch.setenv("SSL_CERT_FILE", str(pem))
        assert looked(capsys, *where, "--server", secure)[1]["proxy"][0]


def test_a_folder_that_the_first_start_makes_is_no_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "recipes").mkdir()
    monkeypatch.chdir(tmp_path)
    for where in (("--source", "recipes"), ("--tree", "new/tree")):
        code, found = looked(capsys, *where)
        assert code == 0 and "the first start makes it" in found["database"][1], found
    assert [path.name for path in tmp_path.iterdir()] == ["recipes"]


def test_the_queue_and_the_keys_say_who_is_there(
    service: Served, place: Path | str, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["--database", str(place)]
    assert run(["service", "queue", "status", *where]) == 0
    assert "nobody is searching: no engine is connected" in capsys.readouterr().out
    service.engine.get("get-new-queries")
    assert run(["service", "queue", "status", *where]) == 0
    assert "connected: Inference_1" in capsys.readouterr().out
    assert run(["service", "keys", "add", "User_1", "--label", "my  laptop", *where]) == 0
    capsys.readouterr()
    assert run(["service", "keys", "list", *where]) == 0
    assert "User_1  my laptop  made" in capsys.readouterr().out

    async def add_own() -> None:
        database = opened(place)
        await database.start()
        await Keys(database).own(INSIDE, await Users(database).own(INSIDE, "engine"))
        await database.close()

    asyncio.run(add_own())
    assert run(["service", "keys", "list", *where]) == 0
    assert f"{INSIDE}  of the service itself  made" in capsys.readouterr().out


def test_a_database_that_cannot_be_used_says_so_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    away = "postgresql://ann@127.0.0.1:1/metatree"
    assert run(["service", "check", "--database", away]) in (2, 5)
    said = capsys.readouterr()
    assert (said.out + said.err).count("127.0.0.1") <= 2
    text = tmp_path / "text.db"
    text.write_text("no database" * 100)
    assert run(["service", "users", "list", "--database", str(text)]) != 0
    assert "name another file with --database" in capsys.readouterr().err


def test_a_restore_makes_its_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = with_users(tmp_path / "service.db", "admin")
    assert run(["service", "backup", str(tmp_path / "b"), "--database", str(file), "--no-memory"]) == 0
    new = tmp_path / "new" / "place" / "service.db"
    assert run(["service", "restore", str(tmp_path / "b"), "--database", str(new), "--no-memory"]) == 0
    assert new.parent.stat().st_mode & 0o077 == 0, "secrets are in it"
    assert looked(capsys, "--database", str(new))[0] == 0
    assert run(["service", "queue", "status", "--database", str(tmp_path / "other" / "service.db")]) == 2
    assert not (tmp_path / "other").exists()


def test_a_backup_has_the_memories_of_trees_with_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    where = ["--database", str(tmp_path / "service.db")]
    with_users(tmp_path / "service.db", "admin")
    for name in ("handbook", "recipes"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "page.md").write_text(f"# The {name}\n")
        assert run(["remember", f"This is said of the {name}", "--source", str(tmp_path / name)]) == 0
        assert run(["service", "trees", "add", name, *where]) == 0
    folders = [f"{name}={tmp_path / name}" for name in ("handbook", "recipes")]
    backup, all_of = tmp_path / "b", tmp_path / "c"
    capsys.readouterr()
    assert run(["service", "backup", str(backup), folders[0], *where]) == 0
    said = capsys.readouterr()
    assert "the memory of handbook" in said.out
    assert "warning: what people said to recipes is not in it" in said.err and "recipes=FOLDER" in said.err
    assert run(["service", "backup", str(all_of), *folders, *where]) == 0
    assert "warning" not in capsys.readouterr().err
    assert run(["service", "backup", str(tmp_path / "d"), f"soups={tmp_path / 'recipes'}", *where]) == 2
    other = ["--database", str(tmp_path / "new" / "service.db")]
    assert run(["service", "restore", str(all_of), *other]) == 2
    assert "handbook=FOLDER recipes=FOLDER" in capsys.readouterr().err
    back = []
    for name in ("handbook", "recipes"):
        (tmp_path / "new" / name).mkdir(parents=True)
        (tmp_path / "new" / name / "page.md").write_text(f"# The {name}\n")
        back.append(f"{name}={tmp_path / 'new' / name}")
    assert run(["service", "restore", str(all_of), *back, *other]) == 0
    for name in ("handbook", "recipes"):
        memory = tmp_path / "new" / name / ".metatree" / "memory.db"
        assert memory.stat().st_mode & 0o077 == 0 and memory.parent.stat().st_mode & 0o077 == 0
        capsys.readouterr()
        assert run(["build", str(tmp_path / "new" / name)]) == 0
        assert run(["memories", "--source", str(tmp_path / "new" / name)]) == 0
        said_there = capsys.readouterr().out
        assert f"This is said of the {name}" in said_there


@pytest.mark.real
def test_rights_clock_and_tables_of_postgresql_are_looked_at(
    postgres: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    address = f"{postgres.address()}&schema=checked"
    code, found = looked(capsys, "--database", address)
    assert code == 0 and "the first start makes the tables" in found["database"][1]
    assert found["rights"][0] and "clocks" in found["database"][1]

    async def add() -> None:
        database = opened(address)
        await database.start()
        await Users(database).add("ann", "admin")
        await database.close()

    asyncio.run(add())
    assert looked(capsys, "--database", address)[1]["database"][1].endswith("1 user")
    assert looked(capsys, "--database", "postgresql://nobody@127.0.0.1:9/none")[0] == 5
