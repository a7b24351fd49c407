"""The tools of a tree in agents of pydantic-ai and LangChain, as their packages run them; no model is asked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from metatree_agents import function_tools, langchain_retriever, langchain_tools, pydantic_ai_toolset
from metatree_memory_tools import build_tree

from metatree import Tree

pytestmark = pytest.mark.real

CODE = '''"""Prices of the shop."""


def total(prices):
    """Return the sum of all prices."""
    return sum(prices)
'''


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[Tree]:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop/prices.py").write_text(CODE)
    (tmp_path / "shop/refunds.md").write_text("# Refunds\n\nRefunds are paid within 14 days.\n")
    with build_tree(tmp_path / "shop", out=tmp_path / "tree") as tree:
        yield tree


def test_an_agent_of_pydantic_ai_calls_the_tools(tree: Tree) -> None:
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import AgentInfo, FunctionModel

    offered: list[str] = []
    returned: list[Any] = []

    def model(messages: list[Any], info: AgentInfo) -> ModelResponse:
        offered[:] = [tool.name for tool in info.function_tools]
        last = messages[-1].parts[-1]
        if last.part_kind == "user-prompt":
            return ModelResponse(
                [ToolCallPart("grep", {"pattern": "sum"}), ToolCallPart("read", {"lines": 1})]
            )
        returned[:] = [part.content for part in messages[-1].parts]
        return ModelResponse([TextPart("done")])

    tools = function_tools(tree, only=["grep", "read"])
    agent = Agent(FunctionModel(model), toolsets=[pydantic_ai_toolset(tools)])
    assert asyncio.run(agent.run("Where are prices added?")).output == "done"
    assert offered == ["grep", "read"]
    assert json.loads(returned[0])["rows"][-1] == "prices.py:6: return sum(prices)"
    assert "read are wrong" in json.loads(returned[1])["error"]


def test_tools_of_langchain_have_the_schemas_and_give_the_answers(tree: Tree) -> None:
    from langchain_core.utils.function_calling import convert_to_openai_tool

    tools = function_tools(tree)
    made = langchain_tools(tools)
    assert [tool.name for tool in made] == [tool.name for tool in tools]
    for ours, theirs in zip(tools, made, strict=True):
        schema = convert_to_openai_tool(theirs)["function"]
        assert schema["description"] == ours.description
        assert schema["parameters"]["properties"].keys() == ours.parameters["properties"].keys()
        assert schema["parameters"].get("required", []) == ours.parameters.get("required", [])
    (grep,) = [tool for tool in made if tool.name == "grep"]
    rows = json.loads(grep.invoke({"pattern": "def total"}))["rows"]
    assert rows == ["prices.py:4: def total(prices):"]
    assert json.loads(asyncio.run(grep.ainvoke({"pattern": "def total"})))["rows"] == rows
    assert "no regular expression" in json.loads(grep.invoke({"pattern": "("}))["error"]


def test_a_retriever_of_langchain_gives_nodes_with_their_lines(tree: Tree) -> None:
    retriever = langchain_retriever(tree, k=3)
    documents = retriever.invoke("the sum of all prices")
    assert 1 <= len(documents) <= 3
    [found] = [each for each in documents if each.id == "prices.py::total"]
    assert found.page_content.startswith("def total(prices):")
    assert (found.metadata["path"], found.metadata["lines"]) == ("prices.py", [4, 6])
    assert 0 < found.metadata["score"] <= 1 and found.metadata["reason"]
    again = asyncio.run(retriever.ainvoke("the sum of all prices"))
    assert [each.id for each in again] == [each.id for each in documents]
    json.dumps([each.metadata for each in documents])
