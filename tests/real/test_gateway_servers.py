"""Seven MCP servers of others behind one gateway, called by the official client: they run without any network."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from mcp import Client, StdioServerParameters, stdio_client
from mcp.types import ElicitRequestParams, ElicitResult

from tests.real.conftest import FOLDER

pytestmark = pytest.mark.real

METATREE = str(Path(sys.executable).with_name("metatree"))
LONG = "".join(f"{number} bottles of beer on the wall\n" for number in range(2_000))


class Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<html><body><h1>Tides</h1><p>High water is at noon.</p></body></html>")

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def page() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Page)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/tides"
    server.shutdown()
    server.server_close()


@pytest.fixture
def servers(tmp_path: Path) -> Path:
    """A servers file as hosts have it, over a folder, a repository and a database of this test."""
    python, npm = FOLDER / "mcp-servers/bin", FOLDER / "mcp-servers-npm/node_modules/.bin"
    old = FOLDER / "mcp-servers-1/bin"
    if not (python.is_dir() and npm.is_dir() and old.is_dir()):
        pytest.fail("the servers are not there: run `make test-real`")
    files, repository = tmp_path / "files", tmp_path / "shop"
    files.mkdir()
    (files / "song.txt").write_text(LONG)
    repository.mkdir()
    (repository / "cart.py").write_text("MAX_ITEMS = 50\n")
    who = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org"]
    for words in (["init", "-q"], ["add", "."], [*who, "commit", "-q", "-m", "Limit the cart"]):
        subprocess.run(
            ["git", *words], cwd=repository, check=True, env={**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null"}
        )
    with sqlite3.connect(tmp_path / "shop.db") as database:
        database.execute("CREATE TABLE orders(id INTEGER PRIMARY KEY, item TEXT)")
        database.execute("INSERT INTO orders(item) VALUES ('kettle')")
    database.close()
    table = {
        "git": {"command": str(python / "mcp-server-git")},
        "time": {"command": str(python / "mcp-server-time"), "args": ["--local-timezone", "UTC"]},
        "fetch": {
            "command": str(python / "mcp-server-fetch"),
            "args": ["--ignore-robots-txt", "--allow-private-ips"],
        },
        "sqlite": {
            "command": str(old / "mcp-server-sqlite"),
            "args": ["--db-path", str(tmp_path / "shop.db")],
        },
        "files": {"command": str(npm / "mcp-server-filesystem"), "args": [str(files)]},
        "memory": {
            "command": str(npm / "mcp-server-memory"),
            "env": {"MEMORY_FILE_PATH": str(tmp_path / "memory.jsonl")},
        },
        "thinking": {"command": str(npm / "mcp-server-sequential-thinking")},
    }
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": table}))
    return file


def text(result: Any) -> str:
    return "\n".join(part.text for part in result.content if part.type == "text")


def test_seven_servers_behind_one_door(servers: Path, page: str, tmp_path: Path) -> None:
    questions: list[str] = []

    async def asked(context: Any, params: ElicitRequestParams) -> ElicitResult:
        questions.append(params.message)
        return ElicitResult(action="accept", content={"answer": "once"})

    async def main() -> None:
        started = StdioServerParameters(
            command=METATREE,
            args=["gateway", "--servers", str(servers), "--max-tokens", "1500"],
            env={**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")},
        )
        async with Client(stdio_client(started), elicitation_callback=asked) as client:

            async def call(tool: str, **arguments: Any) -> Any:
                return await client.call_tool("call_tool", {"id": tool, "arguments": arguments})

            listed = text(await client.call_tool("browse_tools", {}))
            assert all(
                f"{name} (" in listed for name in ("git", "time", "fetch", "sqlite", "files", "memory")
            ), listed

            wanted = {
                "show the logs of the commits": "git/git_log",
                "what time is it in Tokyo": "time/get_current_time",
                "get the contents of a web page": "fetch/fetch",
                "run a SELECT query on the database": "sqlite/read_query",
                "list the files in a directory": "files/list_directory",
                "remember new entities in the knowledge graph": "memory/create_entities",
            }
            for request, tool in wanted.items():
                found = text(await client.call_tool("find_tools", {"request": request, "k": 5}))
                assert re.search(rf"^{tool}\b", found, re.MULTILINE), f"{request}: {found}"

            log = await call("git/git_log", repo_path=str(tmp_path / "shop"))
            assert not log.is_error and "Limit the cart" in text(log)
            now = await call(
                "time/convert_time", source_timezone="UTC", time="12:00", target_timezone="Asia/Tokyo"
            )
            assert "21:00" in text(now)
            fetched = await call("fetch/fetch", url=page)
            assert "High water is at noon." in text(fetched), text(fetched)
            rows = await call("sqlite/read_query", query="SELECT item FROM orders")
            assert "kettle" in text(rows)
            song = await call("files/read_text_file", path=str(tmp_path / "files/song.txt"))
            assert "browse_tools(node=" in text(song) and len(text(song)) < 5_000
            node, offset = re.findall(r'node="([^"]+)", offset=(\d+)', text(song))[0]
            more = await client.call_tool("browse_tools", {"node": node, "offset": int(offset)})
            whole = text(song).partition("\n…")[0] + text(more).partition("\n…")[0]
            assert LONG.startswith(whole) and len(whole) > int(offset)
            wrong = await call("files/read_text_file", file="x")
            assert wrong.is_error and "path (string, required)" in text(wrong)
            outside = await call("files/read_text_file", path="/etc/hostname")
            assert outside.is_error, "the server's own error is passed on"
            thought = await call(
                "thinking/sequentialthinking",
                thought="First.",
                nextThoughtNeeded=False,
                thoughtNumber=1,
                totalThoughts=1,
            )
            assert not thought.is_error, text(thought)

            entity = {"name": "Ann", "entityType": "person", "observations": ["drinks tea"]}
            made = await call("memory/create_entities", entities=[entity])
            assert not made.is_error and "memory/create_entities" in questions[-1]
            graph = await call("memory/read_graph")
            assert "drinks tea" in text(graph)
            arguments = {
                "id": "files/write_file",
                "arguments": {"path": str(tmp_path / "files/new.txt"), "content": "x"},
            }
            for _ in range(2):
                written = await client.call_tool("call_tool", {**arguments, "key": "new file"})
                assert not written.is_error, text(written)
            assert "and not again" in text(written) and (tmp_path / "files/new.txt").read_text() == "x"

    asyncio.run(asyncio.wait_for(main(), 300))
