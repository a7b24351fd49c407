"""How long it takes from nothing to the first useful answer inside a host of coding agents, in commands and seconds.

usage: python benchmarks/bench_first_answer.py FOLDER QUESTION

Each command is run as a person runs it, in an environment and a home of its own: `pip install` of this project with its
dependencies, `metatree install claude-code`, and then what the host does: it starts the server of the entry that was
written, in FOLDER, which has no tree yet, and calls `search`. Seconds are of the wall, and those of pip of the
network too.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

ROOT = Path(__file__).resolve().parents[1]


def timed(*command: str, env: dict[str, str]) -> float:
    """Run a command, and return its seconds."""
    began = time.perf_counter()
    subprocess.run(command, env=env, check=True, capture_output=True)
    return time.perf_counter() - began


async def first_answers(entry: dict[str, object], folder: Path, question: str, env: dict[str, str]) -> None:
    """Start the server as the host does, and print when the first and the second answer came."""
    command = StdioServerParameters(**{**entry, "env": env, "cwd": str(folder)})
    began = time.perf_counter()
    async with Client(stdio_client(command)) as client:
        for which in ("first", "second"):
            answer = await client.call_tool("search", {"query": question, "k": 5})
            text = getattr(answer.content[0], "text", "")
            print(f"| {which} answer, from the start of the server | {time.perf_counter() - began:.1f} |")
            print(text, file=sys.stderr)


def main() -> None:
    """Install, set up and ask."""
    folder, question = Path(sys.argv[1]).resolve(), sys.argv[2]
    with tempfile.TemporaryDirectory() as work:
        home, venv = Path(work, "home"), Path(work, "venv")
        (home / ".claude").mkdir(parents=True)
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
        env = {**os.environ, "HOME": str(home), "PATH": f"{venv}/bin:{os.environ['PATH']}"}
        env |= {"XDG_STATE_HOME": f"{home}/state", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        print("| | seconds |\n|---|---:|")
        print(
            f"| `pip install 'metatree[mcp]'` | {timed('pip', 'install', '-q', f'{ROOT}[mcp]', env=env):.1f} |"
        )
        print(
            f"| `metatree install claude-code` | {timed('metatree', 'install', 'claude-code', env=env):.1f} |"
        )
        entry = json.loads((home / ".claude.json").read_text())["mcpServers"]["metatree"]
        entry = {name: entry[name] for name in ("command", "args")}
        asyncio.run(first_answers(entry, folder, question, env))


if __name__ == "__main__":
    main()
