"""`metatree serve` for operators, API keys, `metatree service`, `backup` and `restore`, as a person uses them."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import openai
import pytest
import requests
from metatree_agents.cli._main import run
from metatree_agents.cli.schemas import service
from metatree_agents.service.database.database import SqliteDatabase
from metatree_agents.service.queue.queue import Queue

pytestmark = pytest.mark.integration


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "house"
    folder.mkdir()
    (folder / "lamps.md").write_text("# Lamps\n\nA lamp in the hall has a bulb of nine watts.\n")
    return folder


@contextmanager
def serving(*arguments: str, log: Path) -> Iterator[tuple[str, Path]]:
    """Run `metatree serve`; yields its address and the file of its log."""
    program = [sys.executable, "-c", "from metatree_agents.cli import main; main()"]
    with log.open("w") as stream, log.with_suffix(".out").open("w") as out:
        server = subprocess.Popen([*program, "serve", "--port", "0", *arguments], stderr=stream, stdout=out)
        try:
            while not (found := re.search(r"listening on (http://[\d.:]+)", log.read_text())):
                assert server.poll() is None, log.read_text()
                time.sleep(0.05)
            yield found[1], log
        finally:
            server.send_signal(signal.SIGTERM)
            assert server.wait(30) == 0


def test_the_name_of_a_tree_hides_nothing_in_the_log(source: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").symlink_to(source)
    where = [f"secret={tmp_path / 'secret'}", "--database", str(tmp_path / "service.db")]
    with serving(*where, "--log", "json", log=tmp_path / "log") as (_, log):
        said = [json.loads(line)["message"] for line in log.read_text().splitlines() if line.startswith("{")]
    assert any(
        line.startswith("only administrators may ask secret, until `metatree service") for line in said
    )
    assert any(re.match(r"built the tree of .*secret in [\d.]+ s: \d+ nodes?$", line) for line in said), said
    assert not any("[hidden]" in line for line in said)


def chat(url: str, key: str, text: str) -> str:
    with openai.OpenAI(base_url=f"{url}/v1", api_key=key, timeout=60) as client:
        said = client.chat.completions.create(model="metatree", messages=[{"role": "user", "content": text}])
    return said.choices[0].message.content or ""


def test_a_chat_a_log_figures_and_a_backup_that_is_served_elsewhere(
    source: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    where = ["--source", str(source)]
    free = "127.0.0.1:0"
    file = tmp_path / "service.backup"
    with serving(*where, "--log", "json", "--metrics-address", free, log=tmp_path / "one.log") as (url, log):
        assert run(["service", "users", "add", "Ann", *where]) == 0
        capfd.readouterr()
        assert run(["service", "keys", "add", "Ann", *where]) == 0
        key = capfd.readouterr().out.strip()
        assert "nine watts" in chat(url, key, "How many watts has the bulb in the hall?")
        at = re.search(r"metrics at (http://[\d.:]+/metrics)", log.read_text())
        assert at is not None
        assert 'route="/v1/chat/completions",status="200"} 1.0' in requests.get(at[1], timeout=120).text
        assert run(["service", "backup", str(file), *where]) == 0
        assert "3 users" not in (said := capfd.readouterr().out) and "1 topic, 1 query" in said
    records = [json.loads(line) for line in log.read_text().splitlines()]
    assert any(one.get("route") == "/v1/chat/completions" and one["user"] == "Ann" for one in records)
    first = log.with_suffix(".out").read_text()
    shown = re.findall(r"\((?:admin|frontend)\): (\S+)", first)
    assert len(shown) == 2, "the first secrets go to people, not into the log"
    assert not any(secret in log.read_text() for secret in (*shown, key))

    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "lamps.md").write_bytes((source / "lamps.md").read_bytes())
    assert run(["service", "restore", str(file), "--source", str(elsewhere)]) == 0
    assert "restored" in capfd.readouterr().out
    assert (elsewhere / ".metatree" / "memory.db").exists()
    assert (elsewhere / ".metatree" / "service.db").stat().st_mode & 0o077 == 0
    with serving("--source", str(elsewhere), log=tmp_path / "two.log") as (url, log):
        assert "nine watts" in chat(url, key, "And how many watts has the bulb?")
    assert re.search(r"\d\d:\d\d:\d\d POST /v1/chat/completions 200 [\d.]+ ms Ann \[\w+\]", log.read_text())
    assert run(["service", "restore", str(file), "--no-memory", "--database", str(tmp_path / "only.db")]) == 0
    assert capfd.readouterr().out.endswith("no memory\n")
    assert run(["service", "restore", str(file), "--source", str(elsewhere)]) == 2
    assert "--force" in capfd.readouterr().err


def test_a_restore_says_where_the_memory_went_and_puts_none_where_no_tree_is(
    source: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file, bare = tmp_path / "service.backup", tmp_path / "bare"
    bare.mkdir()
    assert run(["build", str(source)]) == 0
    assert run(["service", "users", "add", "Ann", "--source", str(source)]) == 0
    assert run(["service", "backup", str(file), "--source", str(source)]) == 0
    monkeypatch.chdir(bare)
    capfd.readouterr()
    assert run(["service", "restore", str(file), "--database", str(tmp_path / "other.db")]) == 2
    assert "no tree is in the current folder" in capfd.readouterr().err
    assert not list(bare.iterdir()) and not (tmp_path / "other.db").exists()
    assert run(["service", "restore", str(file), "--source", str(source), "--force"]) == 0
    assert str(source / ".metatree" / "memory.db") in capfd.readouterr().err


def test_several_trees_are_served_and_asked_by_who_may(
    source: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    conforms: Callable[[Any, Any], None],
) -> None:
    recipes = tmp_path / "recipes"
    recipes.mkdir()
    (recipes / "soup.md").write_text("# Soup\n\nThe secret of the soup is one spoon of smoked paprika.\n")
    where = ["--database", str(tmp_path / "service.db")]

    def said(*arguments: str) -> tuple[int, str, str]:
        code = run([*arguments])
        return code, *capfd.readouterr()

    log = tmp_path / "log"
    with serving(f"house={source}", f"recipes={recipes}", *where, log=log) as (url, _):
        assert "only administrators may ask recipes" in log.read_text()
        assert said("service", "users", "add", "Ann", *where)[0] == 0
        monkeypatch.setenv("METATREE_SECRET", said("service", "keys", "add", "Ann", *where)[1].strip())
        asking = ["ask", "What is the secret of the soup?", "--service", url, "--user", "Ann"]
        code, _, err = said(*asking)
        assert code == 2 and "an administrator lets people in" in err
        assert said("service", "trees", "allow", "house", "everybody", *where)[0] == 0
        assert said("service", "trees", "join", "cooks", "Ann", *where)[0] == 0
        assert said("service", "trees", "allow", "recipes", "group:cooks", *where)[0] == 0
        code, out, _ = said("service", "trees", "list", "--json", *where)
        conforms(json.loads(out), service.TreesOutput)
        assert json.loads(out)["groups"] == {"cooks": ["Ann"]}
        code, out, _ = said(*asking)
        assert code == 0 and "smoked paprika" in out and "recipes: soup.md, line 3" in out
        code, out, _ = said(*asking, "--trees", "house", "--json")
        conforms(json.loads(out), service.ServiceAnswerOutput)
        assert code == 1 and "paprika" not in out
        assert said("service", "trees", "leave", "cooks", "Ann", *where)[0] == 0
        code, _, err = said(*asking, "--trees", "recipes")
        assert code == 2 and "no tree 'recipes' that Ann may ask; there are house" in err
    for arguments, message in (
        (["serve", "house"], "NAME=FOLDER"),
        (["serve", f"House={source}"], "no name of a tree"),
        (["serve", f"a={source}", f"a={recipes}"], "two trees"),
        (["serve", f"a={tmp_path / 'none'}"], "no folder"),
        (["serve", f"a={source}", "--source", str(source)], "without --source"),
        (["service", "trees", "allow", "none", "Ann", *where], "no tree 'none'"),
        (["service", "trees", "join", "cooks", "Nobody", *where], "no user 'Nobody'"),
        (["ask", "q", "--user", "Ann"], "--service URL"),
        (["ask", "q", "--service", "http://127.0.0.1:9", "--user", "Ann", "--source", "."], "neither"),
    ):
        code, _, err = said(*arguments)
        assert code == 2 and message in err, err


def test_keys_are_made_listed_and_ended(
    source: Path, capfd: pytest.CaptureFixture[str], conforms: Callable[[Any, Any], None]
) -> None:
    where = ["--source", str(source)]
    run(["service", "users", "add", "Ann", *where])
    capfd.readouterr()
    assert run(["service", "keys", "add", "Ann", "--label", "cron", "--json", *where]) == 0
    made = json.loads(capfd.readouterr().out)
    conforms(made, service.KeyAddedOutput)
    assert run(["service", "keys", "list", "--json", *where]) == 0
    listed = json.loads(capfd.readouterr().out)
    conforms(listed, service.KeysOutput)
    assert made["key"] not in json.dumps(listed)
    assert run(["service", "keys", "list", *where]) == 0
    line = capfd.readouterr().out
    assert line.startswith(listed["keys"][0]["id"]) and "Ann  cron  made" in line and "never used" in line
    run(["service", "keys", "add", "Ann", *where])
    capfd.readouterr()
    run(["service", "keys", "list", *where])
    assert "Ann  unnamed  made" in capfd.readouterr().out
    assert run(["service", "keys", "revoke", listed["keys"][0]["id"], *where]) == 0
    assert run(["service", "keys", "revoke", listed["keys"][0]["id"], *where]) == 2
    assert "no key" in capfd.readouterr().err
    assert run(["service", "keys", "add", "Bob", *where]) == 2
    assert "no user 'Bob'" in capfd.readouterr().err


def test_the_queue_is_shown_and_repaired(
    source: Path, capfd: pytest.CaptureFixture[str], conforms: Callable[[Any, Any], None]
) -> None:
    where = ["--source", str(source)]
    run(["service", "users", "add", "Ann", *where])

    async def fill() -> None:
        database = SqliteDatabase.open(source / ".metatree" / "service.db")
        queue = Queue(database, attempts=1)
        await queue.add("T\x1b[2J", "Ann", "Held?")
        await queue.claim("Inference_1")
        await queue.add("other", "Ann", "Open?\n" + "x" * 100)
        await database.close()

    asyncio.run(fill())
    capfd.readouterr()
    assert run(["service", "queue", "status", *where]) == 0
    said = capfd.readouterr().out
    assert re.match(
        r"1 waiting for an engine, the oldest for \d+ s; 1 being answered; 0 waiting for a person; 0 failed\n",
        said,
    )
    assert "being answered by Inference_1, 1 attempt: T\\x1b[2J 1 of Ann, asked 20" in said
    assert "Inference_1 has T\\x1b[2J since 20" in said and "Ann (user): never seen" in said
    assert run(["service", "queue", "status", "--json", *where]) == 0
    conforms(json.loads(capfd.readouterr().out), service.ServiceOutput)
    assert run(["service", "queue", "release", "T\x1b[2J", *where]) == 0
    assert run(["service", "queue", "release", "T\x1b[2J", *where]) == 1
    assert run(["service", "queue", "requeue", "T\x1b[2J", *where]) == 1, (
        "other engines may try it: it did not fail"
    )
    assert "there is no such failed query" in capfd.readouterr().err

    async def fail() -> None:
        database = SqliteDatabase.open(source / ".metatree" / "service.db")
        async with database.transaction() as do:
            await do.execute("UPDATE query SET status = 'Failed'")
        await database.close()

    asyncio.run(fail())
    assert run(["service", "queue", "requeue", "other", "--seq", "1", *where]) == 0
    assert "opened 1 query again" in capfd.readouterr().err
    assert run(["service", "queue", "status", *where]) == 0
    assert "1 waiting for an engine" in capfd.readouterr().out
    assert run(["service", "queue", "stop", "other", "--seq", "1", *where]) == 0
    assert "stopped 1 query" in capfd.readouterr().err
    assert run(["service", "queue", "stop", "other", *where]) == 1
    assert "nothing is searched or queued there" in capfd.readouterr().err
    assert run(["service", "queue", "status", *where]) == 0
    assert "0 waiting for an engine" in capfd.readouterr().out


def test_a_backup_as_json_and_checked(
    source: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], conforms: Callable[[Any, Any], None]
) -> None:
    where = ["--source", str(source)]
    run(["service", "users", "add", "Ann", *where])
    capfd.readouterr()
    file = tmp_path / "a.backup"
    for arguments in (["service", "backup", str(file), *where], ["service", "check", str(file)]):
        assert run([*arguments, "--json"]) == 0
        said = json.loads(capfd.readouterr().out)
        conforms(said, service.BackupOutput)
        assert said["tables"]["service_user"] == 1 and said["memory_bytes"] is None
    assert run(["service", "backup", str(file), *where]) == 2
    assert "there already" in capfd.readouterr().err
    file.write_bytes(file.read_bytes()[:-100])
    empty = tmp_path / "empty"
    empty.mkdir()
    assert run(["service", "restore", str(file), "--source", str(empty)]) == 2
    assert "damaged" in capfd.readouterr().err
    assert list(empty.iterdir()) == [], "nothing is made for a backup that is none"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--limit", "speed=5"], "'speed' is no limit: use one of address-rate"),
        (["--limit", "user-rate=fast"], "'fast' is no value of user-rate"),
        (["--limit", "user-rate=-1"], "is no value of user-rate"),
        (["--log", "xml"], "'xml' is no form of the log"),
        (["--metrics-address", "9090"], "'9090' is no address"),
        (["--metrics-address", "host:port"], "is no address"),
        (["--metrics-address", "203.0.113.1:1", "--port", "0"], "choose another --metrics-address"),
    ],
)
def test_wrong_options_are_one_line(
    source: Path, capfd: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    run(["build", str(source)])
    capfd.readouterr()
    assert run(["serve", *arguments, "--source", str(source)]) == 2
    error = capfd.readouterr().err
    assert said in error and "Traceback" not in error
