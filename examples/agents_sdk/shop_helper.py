"""An agent of the OpenAI Agents SDK whose memory is a tree: `pip install openai-agents metatree-memory`.

usage: OPENAI_API_KEY=… python shop_helper.py FOLDER QUESTION
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from typing import Any

from metatree_agents import FunctionTool, function_tools
from metatree_memory_tools import build_tree

from agents import Agent, Model, Runner, set_tracing_disabled
from agents import FunctionTool as AgentsTool
from metatree import Tree


def as_agents_tool(tool: FunctionTool) -> AgentsTool:
    """Return a tool of a tree as the Agents SDK has them."""

    async def call(_: Any, arguments: str) -> str:
        return await tool.acall(arguments)

    return AgentsTool(
        name=tool.name,
        description=tool.description,
        params_json_schema=dict(tool.parameters),
        on_invoke_tool=call,
        strict_json_schema=False,
    )


def helper(tree: Tree, model: str | Model | None = None) -> Agent:
    """Return an agent that answers from a tree and may remember things in it."""
    return Agent(
        name="helper",
        instructions="Answer from the memory: ask it before you answer, and name the source.",
        tools=[as_agents_tool(tool) for tool in function_tools(tree, only=["ask", "read", "remember"])],
        model=model,
    )


def main(arguments: Sequence[str]) -> None:
    """Ask an agent one question about a folder."""
    folder, question = arguments
    set_tracing_disabled(True)
    with build_tree(folder) as tree:
        print(asyncio.run(Runner.run(helper(tree), question)).final_output)


if __name__ == "__main__":
    main(sys.argv[1:])
