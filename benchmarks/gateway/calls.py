"""What a call through the gateway costs beside the same call made directly: medians in one run."""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

SERVER = """
from mcp.server import MCPServer
from mcp.types import ToolAnnotations

server = MCPServer("echo")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def echo(text: str) -> str:
    return text


server.run()
"""


def compare(count: int) -> dict[str, float]:
    """Return the median seconds of a call: directly, through a gateway, and of an answer that is used again."""
    return asyncio.run(_compare(count))


async def _compare(count: int) -> dict[str, float]:
    from mcp import Client, StdioServerParameters, stdio_client

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "echo.py").write_text(SERVER)
        entry = {"command": sys.executable, "args": [str(folder / "echo.py")], "reuse": 3_600}
        (folder / "mcp.json").write_text(json.dumps({"mcpServers": {"echo": entry}}))
        metatree = str(Path(sys.executable).with_name("metatree"))
        gateway = StdioServerParameters(
            command=metatree,
            args=["gateway", "--servers", str(folder / "mcp.json"), "--memory", str(folder / "gateway.db")],
            env=dict(os.environ),
        )
        direct = StdioServerParameters(command=sys.executable, args=[str(folder / "echo.py")])
        async with Client(stdio_client(direct)) as near, Client(stdio_client(gateway)) as far:

            async def directly(text: str) -> Any:
                return await near.call_tool("echo", {"text": text})

            async def through(text: str) -> Any:
                result = await far.call_tool("call_tool", {"id": "echo/echo", "arguments": {"text": text}})
                assert not result.is_error, result
                return result

            for each in (directly, through):
                await each("first")
            times: dict[str, list[float]] = {"direct": [], "gateway": [], "again": []}
            for number in range(count):  # in turns, so that what else the machine does falls on all
                for way, call, text in (
                    ("direct", directly, str(number)),
                    ("gateway", through, str(number)),
                    ("again", through, "first"),
                ):
                    times[way].append(await _timed(call, text))
            return {way: statistics.median(each) for way, each in times.items()}


async def _timed(call: Callable[[str], Awaitable[Any]], text: str) -> float:
    started = time.perf_counter()
    await call(text)
    return time.perf_counter() - started
