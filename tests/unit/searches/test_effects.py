"""The effects of a search, and the events of its trace: what is declared is what the code makes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import FrozenInstanceError, fields, is_dataclass
from pathlib import Path
from typing import Any, get_args

import pytest

import metatree.searches
from metatree import Limits, TraceEvent, UserError, resume, runs, search
from metatree.durable import MemoryJournal
from metatree.searches import _effects
from metatree.searches._effects import AskHuman, Grant, SearchEffect
from metatree.searches._off_loop import Home
from metatree.searches._options import SearchOptions
from metatree.searches._run import Search
from metatree.testing.parts import ScriptedReader, ScriptedRouter, tree_of

ROOM = Path(str(metatree.searches.__file__)).parent
EFFECTS = get_args(SearchEffect)


def test_every_effect_is_a_frozen_dataclass_with_a_kind_of_its_own() -> None:
    for effect in EFFECTS:
        assert is_dataclass(effect)
        make: Any = effect
        made = make(*["x"] * len(fields(effect)))
        with pytest.raises(FrozenInstanceError):
            setattr(made, fields(effect)[0].name, "y")
    assert len({effect.kind for effect in EFFECTS}) == len(EFFECTS) == 14
    declared = {each for each in vars(_effects).values() if isinstance(each, type) and is_dataclass(each)}
    assert {each for each in declared if each.__module__ == _effects.__name__} - {Grant} == set(EFFECTS)


def test_every_effect_has_a_handler_and_a_policy() -> None:
    tree = tree_of({})
    options = SearchOptions("q", tree=tree, evidence=False)
    run = Search(tree, options, home=Home(), run_id="r", returns="answer", concurrency=1, limits=Limits())
    kinds = {effect.kind for effect in EFFECTS}
    assert set(run.handlers) == kinds - {AskHuman.kind}
    assert set(run.policies) == kinds
    assert [kind for kind, policy in run.policies.items() if policy.external] == [AskHuman.kind]


def _noted() -> Iterator[str]:
    """Yield the events of all calls of `note` in the code of the search."""
    for file in ROOM.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "note":
                event = node.args[2]
                choices = [event.body, event.orelse] if isinstance(event, ast.IfExp) else [event]
                for choice in choices:
                    assert isinstance(choice, ast.Constant), ast.unparse(node)
                    yield str(choice.value)


def test_the_events_of_a_trace_are_those_that_the_code_emits() -> None:
    assert sorted(set(_noted())) == sorted(get_args(TraceEvent))


def test_a_run_of_an_earlier_machine_is_refused_with_the_reason() -> None:
    journal = MemoryJournal()
    tree = tree_of({"a": {"a1": "x", "a2": "y"}})
    search(
        "q",
        tree=tree,
        router=ScriptedRouter(["a1"]),
        reader=ScriptedReader({}),
        evidence=False,
        journal=journal,
        run_id="r",
        limits=Limits(reads=1),
    )
    assert [info.run_id for info in runs(journal=journal)] == ["r"]
    first = journal.read("r")[0]
    first.body["version"] = 1
    message = "begun by version 1 of the search machine, and this is version 2 of search: finish it with the metatree"
    with pytest.raises(UserError, match=message):
        resume("r", journal=journal, tree=tree)
