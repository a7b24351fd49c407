"""How long imports and the command line take to start, in CPU time beyond the bare interpreter.

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


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as bytecode:
        bare = cpu_ms([sys.executable, "-c", "pass"], bytecode)
        print(f"{'what':32} {'CPU ms beyond a bare interpreter':>34}")
        for name, command in COMMANDS:
            print(f"{name:32} {cpu_ms(command, bytecode) - bare:34.0f}")
        print(f"{'(bare interpreter)':32} {bare:34.0f}")


if __name__ == "__main__":
    main()
