"""Descriptions of a tree: few calls, resumable, repeated only for what changed."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from metatree_memory_tools import build_tree
from metatree_routers import LLMRouter, describe_tree

from metatree import Node, Traits, Tree
from metatree.errors import UserError
from metatree.protocols import DescribeRequest, Description
from metatree.testing._model_server import ModelRequest, ModelServer, status
from metatree.testing.parts import PlainDescriber

pytestmark = pytest.mark.integration


def describing(request: ModelRequest) -> Any:
    """A model that describes an item by the first words of its text."""
    items = re.findall(r"^Item ([A-Z]+)\n<data>\n(.*?)\n</data>", request.user, re.MULTILINE | re.DOTALL)
    return {
        "items": [
            {"item": label, "title": "a title", "description": f"About {text.splitlines()[0][:60]}"}
            for label, text in items
        ]
    }


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A folder of 30 small files in three packages."""
    for number in range(30):
        file = tmp_path / "source" / f"p{number % 3}" / f"m{number}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f'"""Module {number}."""\n\n\ndef f{number}(): ...\n\n\ndef g{number}(): ...\n')
    return tmp_path / "source"


@pytest.fixture
def describer(serve: Callable[..., ModelServer], router_for: Callable[..., LLMRouter]) -> Any:
    """A describer with its server."""
    server = serve(describing)
    made = router_for(server).suite().describer
    made.server = server  # type: ignore[attr-defined]
    return made


def test_at_most_one_call_for_twenty_nodes_and_none_the_second_time(source: Path, describer: Any) -> None:
    with build_tree(source) as tree:
        total = len(tree)
        first = describe_tree(tree, describer)
        assert first.written == total
        assert first.calls == len(describer.server.requests) == -(-total // 20)
        assert tree.get("p0/m0.py").description.startswith("About file: m0.py")
        assert tree.get("p0/m0.py").title == "m0.py", "titles of built nodes are their names"
        again = describe_tree(tree, describer)
        assert (again.calls, again.written, again.unchanged) == (0, 0, total)


def test_only_what_changed_is_described_again_with_what_lies_above(source: Path, describer: Any) -> None:
    with build_tree(source) as tree:
        describe_tree(tree, describer)
        (source / "p1" / "m4.py").write_text('"""Module 4."""\n\n\ndef f4(): return 1\n\n\ndef g4(): ...\n')
        tree.refresh()
        before = len(describer.server.requests)
        report = describe_tree(tree, describer)
        assert report.written == 4
        prompts_text = "\n".join(request.user for request in describer.server.requests[before:])
        named = re.findall(r"^<data>\n\w+: (\S+)", prompts_text, re.MULTILINE)
        assert named == ["f4", "m4.py", "p1", "source"]


def test_descriptions_outlive_a_new_build_and_a_new_process(source: Path, describer: Any) -> None:
    with build_tree(source) as tree:
        describe_tree(tree, describer)
    with build_tree(source) as tree:
        assert tree.get("p0/m0.py").description.startswith("About")
        assert describe_tree(tree, describer).calls == 0


def test_a_run_that_was_cut_off_goes_on(source: Path, describer: Any) -> None:
    with build_tree(source) as tree:
        total = len(tree)
        first = describe_tree(tree, describer, max_calls=2, concurrency=1)
        assert (first.calls, first.written) == (2, 40)
        assert all("max_calls" in why for why in first.failed.values())
        second = describe_tree(tree, describer)
        assert first.written + second.written == total
        assert second.calls == -(-total // 20) - 2


def test_failures_are_tried_again_and_then_left_for_the_next_time(source: Path, describer: Any) -> None:
    with build_tree(source) as tree:
        total = len(tree)
        describer.server.then(status(503, "busy", retry_after="0"), "no JSON")
        first = describe_tree(tree, describer, concurrency=1)
        assert (first.written, first.failed) == (total, {})
        assert first.calls == -(-total // 20) + 2
    describer.server.answer = {"items": [{"item": "B", "title": "", "description": "only this one"}]}
    with Tree.create(":memory:") as other:
        other.add_many([(Node(f"n{number}", f"N{number}", "", "text"), other.root) for number in range(3)])
        report = describe_tree(other, describer)
        assert report.written == 1
        assert set(report.failed.values()) == {"the model left it out"}
        assert other.get("n1").description == "only this one"


def test_words_that_somebody_gave_are_kept(describer: Any) -> None:
    with Tree.create(":memory:", title="memory", description="by hand") as tree:
        tree.add(Node("mine", "Mine", "I wrote this", "text"))
        tree.add(Node("bare", "", "", "text of a note"))
        report = describe_tree(tree, describer)
        assert (report.written, report.kept) == (1, 2)
        assert tree.get("mine").description == "I wrote this"
        assert tree.get("bare").title == "a title"
        everything = describe_tree(tree, describer, which=lambda node: node.id != tree.root)
        assert everything.written == 1
        assert tree.get("mine").description.startswith("About")


def test_a_describer_for_one_node_at_a_time_will_do() -> None:
    class One:
        async def describe(self, request: DescribeRequest) -> Description:
            assert request.node is not None
            return Description("t", f"one: {request.node.id}")

    with Tree.create(":memory:") as tree:
        tree.add(Node("a", "A", "", "text"))
        report = describe_tree(tree, One())
        assert tree.get("a").description == "one: a"
        assert report.calls == report.written


def test_wrong_settings_end_it_with_the_error(source: Path, describer: Any) -> None:
    describer.server.then(status(401, "wrong key"))
    with build_tree(source) as tree, pytest.raises(UserError, match="OPENAI_API_KEY"):
        describe_tree(tree, describer, concurrency=1)


def test_a_node_that_changes_meanwhile_is_left_alone(describer: Any) -> None:
    with Tree.create(":memory:") as tree:
        tree.add(Node("a", "A", "", "text"))

        def changing(request: ModelRequest) -> Any:
            return describing(request)

        describer.server.answer = changing
        changed: list[Node] = []

        class Racing(PlainDescriber):
            traits = Traits(describes_many=True)

            async def describe_many(self, requests: Sequence[DescribeRequest]) -> Any:
                if not changed:
                    changed.append(tree.update(replace(tree.get("a"), content="other text")))
                return [Description("t", "d") for _ in requests]

        report = describe_tree(tree, Racing())
        assert report.failed == {"a": "it changed meanwhile"}
        assert tree.get("a").description == ""
