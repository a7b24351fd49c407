"""The commands of README.md and of the pages that a newcomer reads first, in the order in which they stand."""

import os
import re
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path

import pytest

from metatree.testing._web_server import WebServer

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]
SHELL = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
HDDL = {
    "domain.hddl": "(define (domain shop) (:types box) (:predicates (open ?b - box)) (:task opened :parameters"
    " (?b - box)) (:method do :parameters (?b - box) :task (opened ?b) :ordered-subtasks (and (lift ?b)))"
    " (:action lift :parameters (?b - box) :effect (open ?b)))",
    "problem.hddl": "(define (problem one) (:domain shop) (:objects a - box) (:htn :ordered-subtasks (and (opened"
    " a))) (:init) (:goal (open a)))",
}


@pytest.fixture
def home(tmp_path: Path, pdf: Callable[..., bytes]) -> Path:
    """Make the home of a newcomer: the source of requests, and a shop with documents and a database."""
    found = find_spec("requests")
    assert found is not None and found.origin is not None
    requests, shop = tmp_path / "src" / "requests", tmp_path / "src" / "shop"
    shutil.copytree(Path(found.origin).parent, requests / "src" / "requests")
    (requests / "issue.txt").write_text("Redirects with a fragment lose it in Session.resolve_redirects")
    (shop / "src").mkdir(parents=True)
    (shop / "src" / "cart.py").write_text(
        "def total(items):\n    'Sum up the prices.'\n    return sum(items)\n"
    )
    (shop / "docs").mkdir()
    (shop / "docs" / "guide.md").write_text("# Guide\n\nRefunds are paid within 14 days.\n")
    (shop / "README.md").write_text("# Shop\n\nA small shop.\n")
    (shop / "mcp.json").write_text('{"mcpServers": {"notes": {"command": "notes-server"}}}')
    (shop / "handbook.pdf").write_bytes(pdf([[(12, "Deploys need two people.")]]))
    with closing(sqlite3.connect(shop / "shop.db")) as connection:
        connection.execute("CREATE TABLE customer(name TEXT)")
    for name, text in HDDL.items():
        (shop / name).write_text(text)
    return tmp_path


def commands(page: str, first: str) -> list[list[str]]:
    """Return the commands of a page from the block on that has this text, each as words."""
    blocks = SHELL.findall((ROOT / page).read_text(encoding="utf-8"))
    begin = next(number for number, block in enumerate(blocks) if first in block)
    lines = [line for block in blocks[begin:] for line in block.splitlines()]
    every = [words for words in (shlex.split(line, comments=True) for line in lines) if words]
    return [words for words in every if words[0] not in ("pip", "make")]  # `test_setup.py` has those


def run_all(lines: list[list[str]], home: Path, folder: Path, **environment: str) -> list[str]:
    """Run commands in a shell's way and return what they print; each must end with exit code 0.

    `ask` may end with 1, and show what comes closest: here is only the installed part of what README asks.
    """
    said = []
    variables = {**os.environ, "HOME": str(home), **environment}
    for words in lines:
        words = [re.sub(r"^~", str(home), word) for word in words]
        if words[0] == "cd":
            folder = Path(words[1])
            continue
        assert words[0] == "metatree", words
        command = [sys.executable, "-c", "from metatree_agents.cli import main; main()", *words[1:]]
        if words[1] == "serve":
            said.append(_served([*command, "--port", "0"], folder, variables))
            continue
        done = subprocess.run(
            command,
            cwd=folder,
            env=variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        closest = words[1] == "ask" and "Closest passages" in done.stdout
        assert done.returncode == int(closest), (shlex.join(words), done.stdout, done.stderr)
        said.append(done.stdout + done.stderr)
    return said


def _served(command: list[str], folder: Path, variables: dict[str, str]) -> str:
    with subprocess.Popen(command, cwd=folder, env=variables, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        said = ""
        for line in process.stderr:
            said += line
            if "http://" in line:
                break
        process.send_signal(signal.SIGTERM)
        said += process.stderr.read()
    assert process.returncode == 0, said
    return said


def test_the_commands_of_the_readme_run_in_their_order(home: Path) -> None:
    with WebServer(
        {"/guide": "<title>Guide</title><h1>Guide</h1><p>Parcels leave on Mondays.</p>"}
    ) as server:
        lines = [
            [word.replace("https://docs.example.org", server.url) for word in words]
            for words in commands("README.md", "metatree mcp")
        ]
        assert [words[1] for words in lines if words[0] == "metatree"] == [
            *("mcp", "serve", "build", "build", "remember", "gateway")
        ]
        run_all(lines, home, home / "src" / "requests", METATREE_WEB_ALLOW=server.host)
        (found,) = run_all([["metatree", "show"]], home, home / "src" / "shop")
        assert all(name in found for name in ("src", "docs", "handbook.pdf", "shop.db", "guide", "Memories"))


def test_the_commands_of_the_page_on_sources_run_in_their_order(home: Path) -> None:
    lines = commands("docs/sources.md", "one folder: its tree")
    known = [words for words in lines if not any("://" in word or word.startswith("tree:") for word in words)]
    said = run_all(known[:4], home, home / "src" / "shop")
    assert len(said) == 4
    assert "nodes" in said[0], said[0]


def test_the_commands_of_the_page_on_remembering_run_in_their_order(home: Path) -> None:
    lines = commands("docs/memory.md", "metatree remember")
    assert [words[1] for words in lines] == ["remember", "ask", "memories", "forget"]
    said = run_all(lines[:3], home, home / "src" / "requests")
    assert "10 in production" in said[1]
    forget = [*lines[3][:2], said[0].split()[0]]
    run_all([forget], home, home / "src" / "requests")


def test_make_bench_runs_every_benchmark_of_the_page_on_the_engine_but_those_with_a_folder() -> None:
    page = (ROOT / "docs" / "benchmarks" / "engine.md").read_text(encoding="utf-8")
    asked = set(re.findall(r"\| `python (benchmarks/\w+\.py)` \|", page))
    assert asked >= {"benchmarks/bench_import.py", "benchmarks/overhead.py"}
    rule = re.search(r"^bench:.*\n(.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert rule is not None
    patterns = re.findall(r"benchmarks/[\w*]+\.py", rule[1])
    run = {path.relative_to(ROOT).as_posix() for pattern in patterns for path in ROOT.glob(pattern)}
    assert asked <= run


def test_the_page_on_the_command_line_has_every_example_in_its_block() -> None:
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert not re.findall(r"^Example: ", page, re.MULTILINE)
    assert "metatree build ~/src/requests\nmetatree build src docs handbook.pdf\n" in page
