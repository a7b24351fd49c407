"""`metatree gateway`, called by the official client: over stdio and HTTP, in both protocol eras, asking people."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters, stdio_client
from mcp.types import ElicitRequestParams, ElicitResult
from mcp.types.version import LATEST_MODERN_VERSION
from metatree_agents.cli._main import run as command
from metatree_agents.context import token_counter

from metatree import Blackboard, Tree
from tests.integration.agents.gateway.gateway_bench import odd

pytestmark = pytest.mark.integration

METATREE = str(Path(sys.executable).with_name("metatree"))
MODES = ("legacy", LATEST_MODERN_VERSION)
Run = Callable[[Coroutine[Any, Any, None]], None]


@pytest.fixture
def arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The command line of a gateway over two servers."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    file = tmp_path / "mcp.json"
    log = {"LOG": str(tmp_path / "log")}
    file.write_text(json.dumps({"mcpServers": {"office": odd(env=log), "archive": odd("many=100")}}))
    return ["gateway", "--servers", str(file)]


@contextmanager
def reached(transport: str, arguments: list[str]) -> Iterator[Callable[[], Any]]:
    """Give what makes the way to a gateway, for one client each."""
    if transport == "stdio":
        started = StdioServerParameters(command=METATREE, args=arguments, env=dict(os.environ))
        yield lambda: stdio_client(started)
        return
    process = subprocess.Popen([METATREE, *arguments, "--http", "0"], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        line = process.stderr.readline()
        assert line.startswith("listening on "), line
        url = line.removeprefix("listening on ").strip()
        yield lambda: url
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0, process.stderr.read()
        process.stderr.close()


def text(result: Any) -> str:
    return "\n".join(part.text for part in result.content if part.type == "text")


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_three_tools_stand_for_all(arguments: list[str], run: Run, transport: str) -> None:
    async def main(way: Any, mode: str) -> None:
        async with Client(way, mode=mode) as client:
            listing = await client.list_tools()
            assert [tool.name for tool in listing.tools] == ["find_tools", "call_tool", "browse_tools"]
            shown = listing.model_dump_json(by_alias=True, exclude_none=True, include={"tools"})
            count, _ = token_counter()
            assert count(shown + (client.instructions or "")) <= 600
            found = await client.call_tool("find_tools", {"request": "say a text again", "k": 3})
            assert text(found).startswith("office/echo\n")
            called = await client.call_tool(
                "call_tool", {"id": "office/echo", "arguments": {"text": "hello"}}
            )
            assert text(called).splitlines()[0] == "hello" and not called.is_error
            wrong = await client.call_tool("call_tool", {"id": "office/echo", "arguments": {"txt": 1}})
            assert wrong.is_error and "text (string, required)" in text(wrong)
            servers = await client.call_tool("browse_tools", {})
            assert "archive (" in text(servers) and "office (" in text(servers)
            nothing = await client.call_tool("browse_tools", {"node": "nowhere"})
            assert nothing.is_error and "there is no node 'nowhere'" in text(nothing)

    with reached(transport, arguments) as way:
        for mode in MODES:
            run(main(way(), mode))


@pytest.mark.parametrize("mode", MODES)
def test_a_person_is_asked_at_the_host(arguments: list[str], run: Run, tmp_path: Path, mode: str) -> None:
    questions: list[str] = []
    answers = iter(["no", "always"])

    async def asked(context: Any, params: ElicitRequestParams) -> ElicitResult:
        questions.append(params.message)
        return ElicitResult(action="accept", content={"answer": next(answers)})

    async def main(way: Any) -> None:
        call = {"id": "office/write", "arguments": {"line": "x"}}
        async with Client(way, mode=mode) as client:  # it cannot ask
            refused = await client.call_tool("call_tool", call)
            assert refused.is_error and "--permit office/write" in text(refused)
        async with Client(way_again(), mode=mode, elicitation_callback=asked) as client:
            refused = await client.call_tool("call_tool", call)
            assert refused.is_error and "said no" in text(refused)
            for _ in range(2):
                made = await client.call_tool("call_tool", call)
                assert not made.is_error, text(made)

    with reached("stdio", arguments) as way_again:
        run(main(way_again()))
    assert len(questions) == 2 and "office/write" in questions[0]
    assert (tmp_path / "log").read_text().count("write {") == 2
    with Tree.open(tmp_path / "state/metatree/gateway/gateway.db") as memory:
        states = [item.data["status"] for item in Blackboard(memory, name="gateway").items("tool_calls")]
    assert states.count("done") == 2


def test_the_command_line_lists_and_permits(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert command([*arguments, "--list"]) == 0
    listed = capsys.readouterr().out
    assert "office/write  asks, Write a line." in listed and "archive/handle_99" in listed
    assert command([*arguments, "--permit", "office/wri*"]) == 0
    assert "permitted  office/write  " in capsys.readouterr().out
    assert command([*arguments, "--list", "--json"]) == 0
    servers = {row["name"]: row for row in json.loads(capsys.readouterr().out)["servers"]}
    assert {tool["id"]: tool["permitted"] for tool in servers["office"]["tools"]}["office/write"] is True
    assert command([*arguments, "--permit", "office/nothing"]) == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "cannot be read"),
        ('{"name": "x"}', "lists no servers"),
        ('{"mcpServers": {}}', "no server is listed"),
        ('{"mcpServers": {"a": {}}}', "give `command`"),
        ('{"mcpServers": {"a": {"command": "x", "args": "y"}}}', "give a list of texts"),
        ('{"mcpServers": {"a": {"command": "x", "reuse": "always"}}}', "or 'forever'"),
        ('{"mcpServers": {"a": {"command": "x", "seconds": 0}}}', "give seconds"),
        ('{"mcpServers": {"a": {"command": "${NOT_SET_HERE}"}}}', "needs the variable 'NOT_SET_HERE'"),
    ],
)
def test_wrong_files_are_told(
    tmp_path: Path, content: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mcp.json"
    file.write_text(content)
    assert command(["gateway", "--servers", str(file), "--list"]) == 2
    assert message in capsys.readouterr().err


def test_a_server_that_cannot_start_is_told_and_the_others_work(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mcp.json"
    file.write_text(
        json.dumps({"mcpServers": {"office": odd(), "gone": {"command": "no-such-program-here"}}})
    )
    assert command([*arguments, "--list"]) == 5
    shown = capsys.readouterr()
    assert "office/echo" in shown.out and "'gone' cannot be used" in shown.err
