"""The options of `search` and its relatives: each is seen by `help`, by type checkers and in the docs."""

from __future__ import annotations

import asyncio
import inspect
import pydoc
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import metatree
from metatree import RouteDecision, RouteRequest, Tree, astream, search
from metatree.protocols import AnyRouter
from metatree.testing.parts import ScriptedRouter, tree_of

ROOT = Path(__file__).parents[3]
BEGIN = ("search", "asearch", "astream")
RESUME = ("resume", "aresume")


def parameters(name: str) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(getattr(metatree, name)).parameters)


@pytest.mark.parametrize("name", [*BEGIN, *RESUME])
def test_help_names_every_option_with_its_default(name: str) -> None:
    text = pydoc.plain(pydoc.render_doc(getattr(metatree, name)))
    (line,) = (line for line in text.splitlines() if f"{name}(" in line and "->" in line)
    options = parameters(name)
    assert len(options) > 15
    assert not [each for each in options.values() if each.kind is inspect.Parameter.VAR_KEYWORD]
    for option, parameter in options.items():
        given = "" if parameter.default is inspect.Parameter.empty else f" = {parameter.default!r}"
        assert re.search(rf"\b{option}: [^=]+{re.escape(given)}[,)]", line), option


@pytest.mark.parametrize(("names", "model"), [(BEGIN, "asearch"), (RESUME, "aresume")])
def test_each_explains_the_same_options(names: tuple[str, ...], model: str) -> None:
    for name in names:
        assert list(parameters(name).values()) == list(parameters(model).values())
    explained = inspect.getdoc(getattr(metatree, model)) or ""
    for option in parameters(model):
        assert re.search(rf"^    (\w+, )*{option}(, \w+)*: ", explained, re.MULTILINE), option


def test_the_docs_list_the_same_options_with_the_same_defaults() -> None:
    text = (ROOT / "docs" / "search.md").read_text(encoding="utf-8")
    section = text.split("## Options\n")[1].split("\n## ")[0]
    listed: dict[str, tuple[str, bool]] = {}
    for names, dagger, default in re.findall(r"^\| (`.+?`)( †)? \| (\S+) \|", section, re.MULTILINE):
        for name in re.findall(r"`(\w+)`", names):
            listed[name] = (default.strip("`"), bool(dagger))
    begin, resume = parameters("search"), parameters("resume")
    assert (
        set(listed)
        == set(begin) - {"questions", "start_node"}
        == (set(listed) | set(resume))
        - {
            "run_id",
            "answers",
        }
        | {"run_id"}
    )
    for name, (default, begin_alone) in listed.items():
        real = begin[name].default
        assert default == ("–" if real is inspect.Parameter.empty else repr(real)), name
        assert begin_alone == (name == "run_id" or name not in resume), name


PROGRAM = """
from metatree import Tree, aresume, asearch, astream, resume, search
tree = Tree.create(":memory:")
reveal_type(search("q", tree=tree, returns="nodes", k=3))
reveal_type(resume("r1", tree=tree, answers={"q": "a"}))
reveal_type(astream("q", None, tree=tree))
search("q", tree=tree, rooter=None)
search("q")
search("q", tree=tree, k="3")
resume("r1", tree=tree, k=3)
async def several() -> None:
    reveal_type(await asearch("q", start_node=None, tree=tree))
    await aresume("r1", anwsers={})
"""


@pytest.mark.integration
def test_mypy_knows_the_options(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file", ROOT / "pyproject.toml", program],
        text=True,
        capture_output=True,
        check=False,
        cwd=ROOT,
    )
    messages = [
        line.partition("program.py:")[2] for line in done.stdout.splitlines() if "defined in" not in line
    ]
    assert messages[:-1] == [
        '4: note: Revealed type is "metatree.result.SearchResult"',
        '5: note: Revealed type is "metatree.result.SearchResult"',
        '6: note: Revealed type is "typing.AsyncIterator[metatree.result.TraceEntry | metatree.result.SearchResult]"',
        '7: error: Unexpected keyword argument "rooter" for "search"; did you mean "router"?  [call-arg]',
        '8: error: Missing named argument "tree" for "search"  [call-arg]',
        '9: error: Argument "k" to "search" has incompatible type "str"; expected "int"  [arg-type]',
        '10: error: Unexpected keyword argument "k" for "resume"  [call-arg]',
        '12: note: Revealed type is "metatree.result.SearchResult"',
        '13: error: Unexpected keyword argument "anwsers" for "aresume"; did you mean "answers"?  [call-arg]',
    ], done.stdout + done.stderr


def test_a_wrong_option_is_named_when_it_is_given() -> None:
    wrong: Any = {"rooter": None}
    with pytest.raises(TypeError, match="unexpected keyword argument 'rooter'"):
        search("q", tree=tree_of({}), **wrong)
    with pytest.raises(TypeError, match="missing 1 required keyword-only argument: 'tree'"):
        search("q")  # type: ignore[call-arg]


def test_asearch_is_a_coroutine_function() -> None:
    """Frameworks look for that, to await what they call."""
    assert inspect.iscoroutinefunction(metatree.asearch) and inspect.iscoroutinefunction(metatree.aresume)
    assert not inspect.iscoroutinefunction(metatree.search)


async def _streamed(tree: Tree, **given: Any) -> list[Any]:
    return [entry async for entry in astream("q", tree=tree, router=ScriptedRouter([]), **given)]


def test_astream_takes_on_event_too() -> None:
    seen: list[Any] = []
    streamed = asyncio.run(_streamed(tree_of({"a": "x", "b": "y"}), returns="nodes", on_event=seen.append))
    assert seen == streamed[:-1] != []


def _second(request: RouteRequest) -> RouteDecision:
    return RouteDecision(request.options[-1].id)


async def _second_later(request: RouteRequest) -> RouteDecision:
    await asyncio.sleep(0)
    return _second(request)


class _Callable:
    def __call__(self, request: RouteRequest) -> RouteDecision:
        return _second(request)


@pytest.mark.parametrize(
    "router",
    [_second, _second_later, _Callable(), lambda request: RouteDecision(request.options[-1].id)],
    ids=["function", "coroutine", "object", "lambda"],
)
def test_a_router_may_be_a_plain_function(router: AnyRouter) -> None:
    tree = tree_of({"a": {"a1": "one"}, "b": {"b1": "two", "b2": "three"}})
    found = search("q", tree=tree, router=router, evidence=False, returns="nodes", k=1, accept={"note"})
    assert [node.id for node in found.nodes] == ["b2"]
    assert (found.usage.router_calls, found.usage.model_calls, found.detail) == (2, 0, "")


def test_help_says_that_a_router_may_be_a_function() -> None:
    text = pydoc.plain(pydoc.render_doc(search))
    assert "Callable[[RouteRequest], RouteDecision | Awaitable[RouteDecision]]" in text


@pytest.mark.parametrize(("evidence", "scored"), [(None, True), (False, False)])
def test_a_function_is_offered_options_with_the_evidence_of_a_tree_that_had_no_index(
    evidence: Any, scored: bool
) -> None:
    offered: list[Any] = []

    def router(request: RouteRequest) -> RouteDecision:
        offered.extend(request.options)
        return RouteDecision(max(request.options, key=lambda option: option.score or 0).id)

    tree = tree_of({"tea": "Tea is in the cellar.", "jam": "Jam is in the attic."})
    search("Where is the jam?", tree=tree, router=router, evidence=evidence)
    assert [option.score is not None for option in offered[:2]] == [scored, scored]
