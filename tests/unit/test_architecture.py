"""The shape of the house: layers, packages, public names, and what importing costs."""

from __future__ import annotations

import ast
import importlib
import json
import os
import re
import subprocess
import sys
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import grimp
import pytest

ROOT = Path(__file__).parents[2]
HEAVY = (
    "openai",
    "instructor",
    "networkx",
    "fastapi",
    "uvicorn",
    "numpy",
    "pydantic",
    "diskcache",
    "rich",
    "typer",
    "asyncio",
)


def _python(program: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program],
        text=True,
        capture_output=True,
        check=False,
        cwd=ROOT / "tests",
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.integration
def test_imports_point_one_way() -> None:
    done = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        text=True,
        capture_output=True,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.integration
def test_no_modules_import_each_other_in_a_circle() -> None:
    """Also not for a type alone or inside a function: what several need lies below them, or a protocol says it."""
    graph = grimp.build_graph(
        "metatree", "metatree_agents", "metatree_memory_tools", "metatree_routers", cache_dir=None
    )
    below = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    assert len(below) > 400
    TopologicalSorter(below).prepare()  # raises CycleError, which names the modules


@pytest.mark.parametrize("folder", ["agents", "memory_tools", "routers"])
def test_outer_folder_is_no_package(folder: str) -> None:
    """An import package called `agents` would overwrite, and be overwritten by, the OpenAI Agents SDK."""
    assert (ROOT / folder / f"metatree_{folder}" / "__init__.py").exists()
    assert not (ROOT / folder / "__init__.py").exists()


@pytest.mark.integration
@pytest.mark.parametrize(
    "package", ["metatree", "metatree_agents", "metatree_memory_tools", "metatree_routers"]
)
def test_import_loads_nothing_heavy(package: str) -> None:
    loaded = json.loads(_python(f"import {package}, sys, json; print(json.dumps(sorted(sys.modules)))"))
    assert package in loaded
    assert [name for name in HEAVY if name in loaded] == []


PUBLIC = {
    "metatree": """
        Answer Blackboard ClosestPassage ComposeRequest Composer DescribeRequest Describer Description
        EarlierAnswer EarlierStatement Ended Evidence
        FallbackRequest FallbackResult Forgotten Limits Merge MetatreeError Node NodeRef Option Passage PersonQuestion
        QuestionAnswer QuestionNote Quote ReadRequest Reader Reading Remembered RouteDecision RouteRequest Router
        RunInfo Scored SearchResult Settings Source SourceRef Suite Tool ToolCaller ToolGroup
        ToolRequest ToolSpec TraceEntry TraceEvent Traits Tree Usage UserError Wish aresume asearch ask_person astream
        cancel
        forget load_run memories remember resume runs search tool
    """,
    "metatree.rules": """
        Agenda AskRouter BoardBridge ControlShell Explanation FactChange Firing First FunctionFailed
        KnowledgeSource
        OverridingSelfTransition Priority Production Program Recency Resolver RuleSyntaxError
        RulesDoNotRest STOP Schedule ScheduleError SelfTransition ShellLimits ShellReport StopWhen
        Token Trivial WorkingMemory commit_all commit_one open_memory parse_facts parse_productions
        why_not
    """,
    "metatree_agents.planner": """
        AgentInfo AgentOptions Agents BadDefinition Domain Done PlanLimits TaskContext ordered plan unordered
    """,
    "metatree_agents": """
        ContextRange Definition FileToEdit FunctionTool IssueContext context_for files_to_edit function_tools
        langchain_retriever langchain_tools pydantic_ai_toolset
    """,
    "metatree_memory_tools": "build_tree",
    "metatree_routers": """
        CachedRouter DecisionReader DecisionRouter EmbeddedComposer EmbeddedDescriber EmbeddedReader
        EmbeddedRouter EmbeddedToolCaller FallbackRouter FileEvidence FoundDefinition FoundFile HumanRouter
        LLMRouter LimitedRouter RecordedRouter ReplayedRouter ScriptedRouter TextEvidence describe_tree
        embedded_suite rank_files text_evidence
    """,
    "metatree_routers.llm": """
        Connection Described LLMComposer LLMDescriber LLMReader LLMRouter LLMToolCaller PRICES Price Prompts Recording
        Replay adescribe_tree describe_tree openai_suite provider_suite
    """,
    "metatree_routers.decisions": """
        Choice DecisionModel DecisionReader DecisionRouter Likelihoods Question Score YesNo decision_suite
    """,
}


@pytest.mark.parametrize("package", PUBLIC)
def test_public_names_are_pinned(package: str) -> None:
    module = importlib.import_module(package)
    assert sorted(module.__all__) == sorted(PUBLIC[package].split())
    assert all(hasattr(module, name) for name in module.__all__)


def test_every_entry_point_of_the_project_file_can_be_loaded() -> None:
    import tomllib
    from importlib.metadata import EntryPoint

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for group, entries in project["entry-points"].items():
        for name, value in entries.items():
            assert EntryPoint(name, value, group).load() is not None


@cache
def _modules() -> dict[str, Path]:
    """Return the modules of all packages, by dotted name."""
    found = {}
    for top in (
        ROOT / "metatree",
        *(ROOT / each / f"metatree_{each}" for each in ("agents", "memory_tools", "routers")),
    ):
        for file in top.rglob("*.py"):
            found[".".join(file.relative_to(top.parent).with_suffix("").parts)] = file
    return found


class _Module(NamedTuple):
    """What the tests want of one module; syntax trees of all of them would take most of a gigabyte."""

    docstring: str
    imported: set[str]
    """What it imports, and what it names in texts that are dotted names, which is imported later."""
    classes: list[str]
    asked: list[tuple[int, object]]
    """Line and name of what an object is asked for by `getattr` or `hasattr`."""


@cache
def _read(file: Path) -> _Module:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    found = _Module(ast.get_docstring(tree) or "", set(), [], [])
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=str(module), names=listed):
                found.imported.update(f"{module}.{each.name}" for each in listed)
                found.imported.add(module)
            case ast.Import(names=listed):
                found.imported.update(each.name for each in listed)
            case ast.Constant(value=str(text)) if re.fullmatch(r"metatree\w*(\.\w+)+", text):
                found.imported.add(text)
            case ast.ClassDef(name=name):
                found.classes.append(name)
            case ast.Call(
                func=ast.Name(id="getattr" | "hasattr"), args=[_, ast.Constant(value=value), *_], lineno=line
            ):
                found.asked.append((line, value))
            case _:
                pass
    return found


def test_a_private_module_is_imported_within_its_own_folder_alone() -> None:
    modules = _modules()
    for name, file in modules.items():
        for wanted in _read(file).imported:
            if (
                wanted in modules
                and wanted.rpartition(".")[2].startswith("_")
                and not wanted.endswith("__init__")
            ):
                folder = wanted.rpartition(".")[0]
                assert name.startswith(f"{folder}."), f"{name} imports {wanted}"


def test_a_module_that_no_other_folder_imports_is_private() -> None:
    """Those that docs, examples and entry points name are for users; the table of commands names theirs."""
    modules = _modules()
    texts = [ROOT / "README.md", ROOT / "AGENTS.md", ROOT / "pyproject.toml", *(ROOT / "docs").rglob("*.md")]
    texts += [file for file in (ROOT / "examples").rglob("*") if file.suffix in (".md", ".py", ".toml")]
    named = set(
        re.findall(r"metatree\w*(?:\.\w+)+", "\n".join(file.read_text(encoding="utf-8") for file in texts))
    )
    table = modules["metatree_agents.cli._main"].read_text(encoding="utf-8")
    named |= {f"metatree_agents.cli.commands.{place}" for place in re.findall(r'\("([\w.]+):\w+", "', table)}
    used = {name: _read(file).imported for name, file in modules.items()}
    for name in modules:
        folder, _, last = name.rpartition(".")
        if (
            last.startswith("_")
            or "." not in folder
            or any(each == name or each.startswith(f"{name}.") for each in named)
        ):
            continue
        outside = [user for user in modules if not user.startswith(f"{folder}.")]
        assert any(name in used[user] for user in outside), (
            f"only its own folder imports {name}: call it _{last}"
        )


def test_each_folder_says_what_lives_there() -> None:
    for name, file in _modules().items():
        if name.endswith(".__init__"):
            assert len(_read(file).docstring) > 60, name


def test_a_class_name_tells_which_class_is_meant() -> None:
    """No name has three classes, and no two public ones: a search for it finds the one that is meant."""
    homes: dict[str, list[str]] = {}
    for module, file in _modules().items():
        for name in _read(file).classes:
            homes.setdefault(name, []).append(module.removesuffix(".__init__"))
    assert len(homes) > 500
    for name, modules in homes.items():
        public = [module for module in modules if "._" not in module and not name.startswith("_")]
        assert len(modules) < 3, f"{name} is a class of {', '.join(modules)}: rename some"
        assert len(public) < 2, f"{name} is a public class of {' and of '.join(public)}: rename one"


PROBES = {
    "metatree/parts.py": "the one place that looks what a given part has",
    "memory_tools/metatree_memory_tools/build/build.py": "flags that an operating system may not have",
    "memory_tools/metatree_memory_tools/documents/_pdf.py": "errors of pypdfium2",
    "memory_tools/metatree_memory_tools/mcp_server/connection.py": "parts of answers as the MCP SDK has them",
    "memory_tools/metatree_memory_tools/openapi/_document.py": "errors of PyYAML",
    "memory_tools/metatree_memory_tools/reading/bounded_yaml.py": "what PyYAML was built with",
    "routers/metatree_routers/llm/_connection.py": "completions as servers send them",
    "routers/metatree_routers/llm/_sdk_errors.py": "completions and errors of the SDK",
}
"""Modules that may ask an object for an attribute by a quoted name, and of what."""


def test_what_a_part_can_do_is_asked_of_its_traits() -> None:
    """Not by `getattr(part, "capacity", None)`: a wrapper would have to know each such name."""
    rooms = ("metatree/searches", "routers", "memory_tools")
    for file in sorted(each for room in rooms for each in (ROOT / room).rglob("*.py")):
        if file.relative_to(ROOT).as_posix() in PROBES:
            continue
        for line, name in _read(file).asked:
            pytest.fail(f"{file.relative_to(ROOT)}:{line} asks for {name!r} by name: see Traits")


def _drawn_rooms() -> dict[str, tuple[int, str]]:
    """Return for each room in the drawing of docs/concepts.md its line and the rooms on it that it may import."""
    text = (ROOT / "docs" / "concepts.md").read_text(encoding="utf-8")
    drawing = re.search(r"## The house\n.*?```text\n(.*?)```", text, re.S)
    assert drawing is not None
    rooms: dict[str, tuple[int, str]] = {}
    package = ""
    for number, line in enumerate(drawing[1].splitlines()):
        if line.startswith("metatree"):
            package = line.split()[0]
        elif line.strip():
            for group in re.split(r"\s{3,}", line.strip())[0].split(" | "):
                rooms |= {f"{package}.{room}": (number, group) for room in group.split(" + ")}
    return rooms


@pytest.mark.integration
def test_the_drawing_of_the_house_has_each_room_above_those_that_it_imports() -> None:
    drawn, found = _drawn_rooms(), set[str]()
    graph = grimp.build_graph(
        "metatree", "metatree_agents", "metatree_memory_tools", "metatree_routers", cache_dir=None
    )
    for module in graph.modules:
        room = ".".join(module.split(".")[:2])
        if "." not in room:
            continue
        found.add(room)
        assert room in drawn, f"{room} is not in the drawing of docs/concepts.md"
        for below in graph.find_modules_directly_imported_by(module):
            other = ".".join(below.split(".")[:2])
            if other == room or other.partition(".")[0] != room.partition(".")[0] or "." not in other:
                continue
            (line, group), (its_line, its_group) = drawn[room], drawn[other]
            assert its_line > line or (its_line == line and group == its_group), f"{module} imports {below}"
    assert found == set(drawn), "the drawing has rooms that are not there"
