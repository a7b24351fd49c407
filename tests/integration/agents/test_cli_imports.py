"""What a command imports, and so how long it takes to start: `benchmarks/bench_import.py` has the times."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from metatree_agents.cli._main import run

pytestmark = pytest.mark.integration
QUESTION = "Within how many days are refunds paid?"


def _loaded(*arguments: str) -> set[str]:
    """Return the packages that a command loads."""
    program = (
        "import atexit, sys\n"
        "from metatree_agents.cli import main\n"
        "atexit.register(lambda: print('LOADED', *sorted({name.partition('.')[0] for name in sys.modules})))\n"
        f"sys.argv = ['metatree', *{arguments!r}]\n"
        "main()\n"
    )
    said = subprocess.check_output([sys.executable, "-c", program], text=True)
    loaded = set(said.splitlines()[-1].split())
    assert {"LOADED", "metatree", "typer"} <= loaded
    return loaded


def test_a_question_loads_no_http_client_unless_it_looks_on_the_web(project: Path) -> None:
    assert run(["build", "."]) == 0
    assert _loaded("ask", QUESTION).isdisjoint({"httpx2", "aiohttp", "openai"})


def test_help_loads_nothing_heavy() -> None:
    """What it takes in time is in `benchmarks/bench_import.py`."""
    loaded = _loaded("--help")
    heavy = {
        "openai",
        "instructor",
        "aiohttp",
        "numpy",
        "pydantic",
        "fastapi",
        "uvicorn",
        "psycopg",
        "sqlglot",
    }
    assert loaded.isdisjoint(heavy | {"networkx", "diskcache", "wordllama", "jinja2", "tree_sitter", "mcp"})


def test_the_version_costs_no_pydantic() -> None:
    load = "import sys; from metatree_agents.cli._main import run; run(['--version'])"
    program = f"{load}; print('pydantic' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], text=True, capture_output=True, check=True)
    assert done.stdout.splitlines()[1:] == ["False"]


def test_find_loads_no_pydantic(project: Path) -> None:
    assert run(["build", "."]) == 0
    assert "pydantic" not in _loaded("find", "refunds", "-k", "3", "--kind", "section")


def test_find_loads_no_other_command(project: Path) -> None:
    run(["build", "."])
    program = (
        "import sys; from metatree_agents.cli._main import run; code = run(['find', 'refunds'])\n"
        "print(code, *(name for name in sys.modules if name.startswith('metatree_')))"
    )
    done = subprocess.run([sys.executable, "-c", program], text=True, capture_output=True, check=True)
    code, *loaded = done.stdout.splitlines()[-1].split()
    commands = {name for name in loaded if name.startswith("metatree_agents.cli.commands.")}
    own = {f"metatree_agents.cli.commands.{name}" for name in ("ask", "_search", "_trees")}
    assert code == "0" and own <= commands
    assert commands.isdisjoint(
        f"metatree_agents.cli.commands.{name}" for name in ("doctor", "goals", "service", "build", "memories")
    )
