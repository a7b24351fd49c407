"""How long imports and the command line take to start, in CPU time beyond the bare interpreter, and what they load.

usage: python benchmarks/bench_import.py
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

RUNS = 7
METATREE = Path(sys.executable).with_name("metatree")
HEAVY = (
    "openai",
    "instructor",
    "networkx",
    "numpy",
    "pydantic",
    "diskcache",
    "wordllama",
    "rich",
    "typer",
    "asyncio",
)
COMMANDS: tuple[tuple[str, list[str]], ...] = (
    ("import metatree", [sys.executable, "-c", "import metatree"]),
    ("import metatree_memory_tools", [sys.executable, "-c", "import metatree_memory_tools"]),
    ("import metatree_routers", [sys.executable, "-c", "import metatree_routers"]),
    ("import metatree_agents", [sys.executable, "-c", "import metatree_agents"]),
    ("metatree --help", [str(METATREE), "--help"]),
)


def cpu_ms(command: list[str], bytecode: str) -> float:
    """Return the least CPU time of several runs, in milliseconds: what else the machine does only adds to it.

    The first run compiles into the folder `bytecode`, as the first run after an installation does.
    """
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": bytecode, "PYTHONDONTWRITEBYTECODE": ""}
    times = []
    for _ in range(RUNS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True, env=environment)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return 1000 * min(times)


def heavy_modules(command: list[str], bytecode: str) -> list[str]:
    """Return which of the heavy modules a command loads, as the interpreter's own report of its imports says."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": bytecode, "PYTHONPROFILEIMPORTTIME": "1"}
    done = subprocess.run(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=True, env=environment, text=True
    )
    loaded = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()}
    return [name for name in HEAVY if name in loaded]


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as bytecode:
        bare = cpu_ms([sys.executable, "-c", "pass"], bytecode)
        print("| what | CPU ms beyond a bare interpreter | loads of the heavy ones |")
        print("|---|---:|---|")
        for name, command in COMMANDS:
            heavy = ", ".join(heavy_modules(command, bytecode)) or "–"
            print(f"| {name} | {cpu_ms(command, bytecode) - bare:.0f} | {heavy} |")
        print(f"| (bare interpreter) | {bare:.0f} | |")
        print(f"\nheavy: {', '.join(HEAVY)}")


if __name__ == "__main__":
    main()
