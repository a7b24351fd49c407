"""How long it takes from nothing to the first useful answer inside a host of coding agents, in commands and seconds.

usage: python benchmarks/bench_first_answer.py FOLDER QUESTION

Each command is run as a person runs it, in an environment and a home of its own: `pip install` of this project with its
dependencies, `metatree install claude-code`, and then what the host does: it starts the server of the entry that was
written, in FOLDER, which has no tree yet, and calls `search`. Seconds are of the wall, and those of pip of the
network too; on a busy machine those of the CPU say more.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

ROOT = Path(__file__).resolve().parents[1]


def cpu() -> float:
    """Return the seconds of CPU that commands have taken so far."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def timed(*command: str, env: dict[str, str]) -> str:
    """Run a command, and return its seconds, of the wall and of the CPU."""
    began, used = time.perf_counter(), cpu()
    subprocess.run(command, env=env, check=True, capture_output=True)
    return f"{time.perf_counter() - began:.1f} | {cpu() - used:.1f}"


async def first_answers(entry: dict[str, Any], folder: Path, question: str, env: dict[str, str]) -> None:
    """Start the server as the host does, and print when the first and the second answer came."""
    command = StdioServerParameters(command=entry["command"], args=entry["args"], env=env, cwd=folder)
    began = time.perf_counter()
    async with Client(stdio_client(command)) as client:
        for which in ("first", "second"):
            answer = await client.call_tool("search", {"query": question, "k": 5})
            text = getattr(answer.content[0], "text", "")
            print(f"| {which} answer, from the start of the server | {time.perf_counter() - began:.1f} | |")
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
        print("| | seconds | of CPU |\n|---|---:|---:|")
        print(
            f"| `pip install 'metatree-memory[mcp]'` | {timed('pip', 'install', '-q', f'{ROOT}[mcp]', env=env)} |"
        )
        print(f"| `metatree install claude-code` | {timed('metatree', 'install', 'claude-code', env=env)} |")
        entry = json.loads((home / ".claude.json").read_text())["mcpServers"]["metatree"]
        used = cpu()
        asyncio.run(first_answers(entry, folder, question, env))
        print(f"| the server, to its end | | {cpu() - used:.1f} |")


if __name__ == "__main__":
    main()
