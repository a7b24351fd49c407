"""Plug-ins as packages that are really installed: whole ones, and broken ones, which harm nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from metatree_agents.cli.schemas import search

pytestmark = pytest.mark.integration

MODULES = {
    "no_import": "import a_module_that_nobody_has\n",
    "no_syntax": "def f(:\n",
    "exits": "raise SystemExit('goodbye')\n",
    "raises": "1 / 0\n",
    "made_wrong": "class Kind:\n    def __init__(self):\n        raise RuntimeError('no licence')\n",
    "no_type": "class Kind:\n    '''Knows nothing.'''\n    name = 'no_type'\n",
    "no_tools": "def tools():\n    return None\n",
    "not_a_tool": "def tools():\n    return [len]\n",
    "twice": """
from metatree import Node, ToolGroup, tool

@tool(kind="exploratory")
def echo(node: Node, text: str) -> str:
    "Say it again."
    return text

tools = ToolGroup("twice", "Twice", "The same twice", (echo, echo))
""",
    "no_annotation": """
from metatree import Node, tool

@tool(kind="exploratory")
def count(node: Node, word):
    "Count a word."
    return "3"
""",
    "local_type": """
from __future__ import annotations
from metatree import Node, tool

def made():
    from typing import Literal
    Size = Literal["small", "large"]

    @tool(kind="exploratory")
    def size(node: Node, size: Size) -> str:
        "Say how large it is."
        return size

    return size
""",
    "a_router": """
from metatree import RouteDecision, RouteRequest

def last(request: RouteRequest) -> RouteDecision:
    "Choose the last option."
    return RouteDecision(request.options[-1].id)

def no_suite(name):
    "Return what is no suite."
    return last
""",
    "whole": """
from metatree import Node, tool

@tool(kind="exploratory")
def shout(node: Node, text: str) -> str:
    "Say it loudly."
    return text.upper()
""",
    "raising_outline": """
class Kind:
    '''Knows Markdown, and fails at it.'''
    name = source_type = "raising_outline"
    version = "1"
    def recognises(self, path, head):
        return path.endswith(".md")
    def outline(self, file):
        raise ValueError("too late")
    def content(self, file, source):
        return "wrong"
""",
    "raising_kind": """
class Kind:
    '''Raises whatever it is asked.'''
    name = source_type = "raising"
    version = "1"
    def recognises(self, path, head):
        raise ValueError("never")
    outline = content = recognises
""",
}
ENTRIES = {
    "metatree.memory_types": {
        "no_import": "no_import:Kind",
        "no_syntax": "no_syntax:Kind",
        "exits": "exits:Kind",
        "made_wrong": "made_wrong:Kind",
        "no_type": "no_type:Kind",
        "no_attribute": "whole:Nothing",
        "raising": "raising_kind:Kind",
        "raising_outline": "raising_outline:Kind",
        "other_name": "raising_outline:Kind",
    },
    "metatree.sources": {"raises": "raises:Source", "exits": "exits:Source"},
    "metatree.tools": {
        "no_tools": "no_tools:tools",
        "not_a_tool": "not_a_tool:tools",
        "raises": "raises:tools",
        "twice": "twice:tools",
        "whole": "whole:shout",
        "no_annotation": "no_annotation:count",
        "local_type": "local_type:made",
    },
    "metatree.routers": {
        "no_import": "no_import:suite",
        "last": "a_router:last",
        "no_suite": "a_router:no_suite",
    },
    "metatree.evidence": {"raises": "raises:evidence"},
    "metatree.builders": {"exits": "exits:builder"},
}


def _installed(folder: Path, entries: dict[str, dict[str, str]]) -> Path:
    """Install a package as pip does: its modules and its metadata, in a folder on the path."""
    for name, text in MODULES.items():
        (folder / f"{name}.py").write_text(text)
    info = folder / "broken_bits-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken-bits\nVersion: 1.2\n")
    lines = [
        f"[{group}]\n" + "".join(f"{n} = {o}\n" for n, o in found.items()) for group, found in entries.items()
    ]
    (info / "entry_points.txt").write_text("\n".join(lines))
    return folder


@pytest.fixture
def plugged(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Return a function that runs the command line with the package on the path."""
    folder = tmp_path / "site"
    folder.mkdir()
    _installed(folder, ENTRIES)
    project = tmp_path / "project"
    project.mkdir()
    (project / "tea.md").write_text("# Tea\n\nThe kettle is in the cellar.\n")

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(Path(sys.executable).with_name("metatree")), *arguments],
            cwd=project,
            env={**os.environ, "PYTHONPATH": str(folder)},
            text=True,
            capture_output=True,
            check=False,
        )

    return run


def test_each_broken_plugin_says_what_is_wrong_with_it(
    plugged: Callable[..., subprocess.CompletedProcess[str]], conforms: Callable[[Any, Any], None]
) -> None:
    done = plugged("plugins", "--json")
    assert done.returncode == 5, done.stderr
    told = json.loads(done.stdout)
    conforms(told, search.PluginsOutput)
    found = {(p["group"].partition(".")[2], p["name"]): p for p in told["plugins"]}
    assert all(found[key]["package"] == "broken-bits" for key in found if key[1] in MODULES)
    for key, message in {
        ("memory_types", "no_import"): "ModuleNotFoundError: No module named 'a_module_that_nobody_has'",
        ("memory_types", "no_syntax"): "SyntaxError",
        ("memory_types", "exits"): "SystemExit: goodbye",
        ("memory_types", "made_wrong"): "RuntimeError: no licence",
        ("memory_types", "no_type"): "lacks 'version', 'source_type', 'recognises', 'outline', 'content'",
        ("memory_types", "no_attribute"): "AttributeError",
        ("sources", "raises"): "ZeroDivisionError",
        ("memory_types", "other_name"): "has the name 'raising_outline': make both the same",
        ("tools", "no_annotation"): "parameter 'word' has no type: write word: str",
        ("tools", "local_type"): "the type 'Size' of a parameter is not known in local_type",
        ("tools", "no_tools"): "TypeError",
        ("tools", "not_a_tool"): "which is no tool",
        ("routers", "no_import"): "a_module_that_nobody_has",
        ("evidence", "raises"): "ZeroDivisionError",
        ("builders", "exits"): "goodbye",
    }.items():
        assert message in (found[key]["error"] or ""), key
    assert found["tools", "whole"]["tools"] == ["shout"]
    for key in (
        ("memory_types", "python"),
        ("routers", "embedded"),
        ("evidence", "text"),
        ("builders", "sources"),
    ):
        assert found[key]["error"] is None and found[key]["package"] == "metatree-memory"
    people = plugged("plugins")
    assert people.returncode == 5
    assert "no_import" in people.stdout and "BROKEN: the plug-in" in people.stdout


def test_a_broken_plugin_harms_neither_build_nor_search(
    plugged: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    built = plugged("build", ".", "--json")
    assert built.returncode == 0, built.stderr
    assert "tea.md: the type 'raising_outline' failed: ValueError: too late" in built.stderr
    assert "Traceback" not in built.stderr
    asked = plugged("ask", "Where is the kettle?", "--json")
    assert asked.returncode == 0, asked.stderr
    assert json.loads(asked.stdout)["answer"] == "The kettle is in the cellar."
    assert plugged("find", "kettle").returncode == 0
    assert plugged("doctor").returncode == 0
    assert plugged("remember", "Tea is at four").returncode == 0


def test_an_entry_point_may_be_a_router_itself(
    plugged: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    asked = plugged("ask", "Where is the kettle?", "--router", "last")
    assert asked.returncode == 0 and "The kettle is in the cellar." in asked.stdout, asked.stderr
    wrong = plugged("ask", "Where is the kettle?", "--router", "no_suite")
    assert wrong.returncode == 2 and "gives <function last" in wrong.stderr and "not a Suite" in wrong.stderr


def test_what_lies_in_the_current_folder_is_not_installed(tmp_path: Path) -> None:
    """`python -c` and the prompt have it on their path, and a clone may bring metadata and modules."""
    clone = (
        tmp_path / f"clone-python{sys.version_info.major}{sys.version_info.minor}.zip"
    )  # as Python's library may be
    info = clone / "evil-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: evil\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[metatree.memory_types]\nevil = evil:kind\n")
    (clone / "evil.py").write_text("open('ran', 'w').close()\n")
    (clone / "tea.md").write_text("# Tea\n")
    build = "from metatree_memory_tools import build_tree; print(len(build_tree('.').children('.')))"
    module = tmp_path / "site" / "built.py"
    module.parent.mkdir()
    module.write_text(build)
    environment = {**os.environ, "PYTHONPATH": str(module.parent)}
    elsewhere = tmp_path / "elsewhere" / "tool.py"
    elsewhere.parent.mkdir()
    elsewhere.write_text(build)
    gone = elsewhere.with_name("gone.py")
    gone.write_text("import os; here = os.getcwd(); os.chdir('/'); " + build.replace("'.'", "here", 1))
    profiled = ["-m", "cProfile", "-o", str(tmp_path / "profile")]
    ways = [["-c", build], ["-m", "built"], [*profiled, str(elsewhere)], [*profiled, str(gone)], [str(gone)]]
    for way, first in product(ways, ["", os.pathsep]):
        done = subprocess.run(
            [sys.executable, *way],
            cwd=clone,
            env={**environment, "PYTHONPATH": first + str(module.parent), "PWD": str(clone)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert not (clone / "ran").exists(), (way, first)
        assert "evil" not in done.stderr, (way, first)
    # On the path because somebody put it there, it is.
    environment["PYTHONPATH"] += os.pathsep + str(clone)
    names = "from metatree import plugins; print(sorted(plugins.available(plugins.MEMORY_TYPES)))"
    done = subprocess.run(
        [sys.executable, "-c", names],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "'evil'" in done.stdout


@pytest.mark.parametrize("pythonpath", ["{site}:", ":{site}", "{site}:.", "{site}:inner/..", "{site}:inner"])
def test_the_command_line_imports_nothing_that_pythonpath_names_from_here(
    tmp_path: Path, pythonpath: str
) -> None:
    """`PYTHONPATH=$PYTHONPATH:/opt/lib` has an empty element where it was not set before."""
    clone = tmp_path / "clone"
    (clone / "inner").mkdir(parents=True)
    for folder in (clone, clone / "inner"):
        info = folder / "evil-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: evil\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text("[metatree.memory_types]\nevil = evil:kind\n")
        for name in ("evil", "wordllama", "typer", "numpy"):
            (folder / f"{name}.py").write_text("open('ran', 'a').write(__name__)\n")
    (clone / "tea.md").write_text("# Tea\nThe kettle is in the cellar.\n")
    site = tmp_path / "site"
    site.mkdir()
    script = Path(sys.executable).with_name("metatree")
    asked = subprocess.run(
        [str(script), "ask", "Where is the kettle?"],
        cwd=clone,
        env={**os.environ, "PYTHONPATH": pythonpath.format(site=site)},
        capture_output=True,
        text=True,
    )
    assert asked.returncode == 0 and "in the cellar" in asked.stdout, asked.stderr
    assert not (clone / "ran").exists(), (clone / "ran").read_text()
