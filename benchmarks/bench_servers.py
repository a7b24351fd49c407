"""How long an MCP server with many tools, or an OpenAPI description, takes to become a tree and to be searched.

usage: python benchmarks/bench_servers.py [NUMBER OF TOOLS]

The server is one of this file's own, started as a command (its own start is counted) and over HTTP (it runs already).
CPU time is that of this process, then that of the server where it was started; what the machine does besides adds to
the wall time.
"""

from __future__ import annotations

import json
import resource
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

RUNS = 3
SERVER = """
import sys
from mcp.server import MCPServer

server = MCPServer("Many tools")


def work(item: str, amount: int = 1) -> str:
    return item


for number in range(int(sys.argv[1])):
    verb = ("list", "get", "make", "find", "count")[number % 5]
    server.add_tool(work, name=f"{verb}_thing_{number}", description=f"Handle things of the kind {number}, one by one.")
server.run("streamable-http", port=int(sys.argv[2])) if len(sys.argv) > 2 else server.run()
"""


def description(operations: int) -> str:
    """Return a description with so many operations that share their schemas."""
    item = {"type": "object", "properties": {f"field_{n}": {"type": "string"} for n in range(10)}}
    body = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Item"}}}}
    paths: dict[str, Any] = {}
    for number in range(operations):
        said: dict[str, Any] = {
            "operationId": f"put{number}",
            "summary": f"Change thing {number}",
            "requestBody": body,
        }
        said["parameters"] = [{"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}]
        paths[f"/things{number}/{{id}}"] = {"put": {**said, "tags": [f"part {number % 20}"]}}
    return json.dumps({"openapi": "3.1.0", "paths": paths, "components": {"schemas": {"Item": item}}})


def measured(what: str, make: Callable[[], int]) -> None:
    """Print the best of several runs."""
    best = (float("inf"), float("inf"), float("inf"))
    count = 0
    for _ in range(RUNS):
        wall, cpu, children = time.perf_counter(), time.process_time(), _children()
        count = make()
        took = (time.perf_counter() - wall, time.process_time() - cpu, _children() - children)
        best = min(best, took)
    server = f", {best[2]:.2f} s of the server" if best[2] else ""
    print(f"{what:44} {count:6,} nodes {best[0]:8.2f} s, CPU {best[1]:.2f} s{server}")


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def built(location: str) -> int:
    """Build a tree from nothing and return how many nodes it has."""
    from metatree_memory_tools import build_tree

    with tempfile.TemporaryDirectory() as folder, build_tree(location, out=folder) as tree:
        (top,) = tree.children()
        if "note" in top.attributes:
            sys.exit(str(top.attributes["note"]))
        return len(tree)


def asked(location: str) -> Callable[[], int]:
    """Return a search of such a tree that calls no tool."""
    from metatree_memory_tools import build_tree

    from metatree import search

    folder = tempfile.mkdtemp()
    tree = build_tree(location, out=folder)
    search("warm up", tree=tree)
    return lambda: len(search("Which thing is of the kind 317?", tree=tree, returns="nodes").nodes)


def main() -> None:
    many = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "server.py")
        program.write_text(SERVER)
        command = f"mcp:{sys.executable} {program} {many}"
        measured(f"MCP, {many} tools, the server started for it", lambda: built(command))
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        with subprocess.Popen(
            [sys.executable, str(program), str(many), str(port)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        ) as process:
            assert process.stderr is not None
            for line in process.stderr:
                if b"running on" in line:
                    break
            address = f"mcp:http://127.0.0.1:{port}/mcp"
            measured(f"MCP, {many} tools, over HTTP", lambda: built(address))
            measured("  a search of it", asked(address))
            process.terminate()
        file = Path(folder, "api.json")
        file.write_text(description(many))
        measured(f"OpenAPI, {many} operations", lambda: built(f"openapi:{file}"))


if __name__ == "__main__":
    main()
