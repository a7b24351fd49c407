"""The tools of a tree for agents of pydantic-ai and LangChain, whose packages are imported when they are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from metatree import Tree, search
from metatree_agents.tools.functions import FunctionTool
from metatree_agents.tools.toolkit import Toolkit

if TYPE_CHECKING:
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.tools import BaseTool
    from pydantic_ai import FunctionToolset


def pydantic_ai_toolset(tools: Sequence[FunctionTool]) -> FunctionToolset[Any]:
    """Return function tools as a toolset for `Agent(…, toolsets=[…])` of pydantic-ai.

    Args:
        tools: from `function_tools(tree)`.
    """
    from pydantic_ai import FunctionToolset, Tool

    def made(tool: FunctionTool) -> Tool[Any]:
        async def call(**arguments: Any) -> str:
            return await tool.acall(arguments)

        return Tool.from_schema(call, tool.name, tool.description, dict(tool.parameters))

    return FunctionToolset([made(tool) for tool in tools])


def langchain_tools(tools: Sequence[FunctionTool]) -> list[BaseTool]:
    """Return function tools as tools of LangChain, for `bind_tools` and agents.

    Args:
        tools: from `function_tools(tree)`.
    """
    from langchain_core.tools import StructuredTool

    def made(tool: FunctionTool) -> BaseTool:
        def call(**arguments: Any) -> str:
            return tool.call(arguments)

        async def acall(**arguments: Any) -> str:
            return await tool.acall(arguments)

        return StructuredTool(
            name=tool.name,
            description=tool.description,
            args_schema=dict(tool.parameters),
            func=call,
            coroutine=acall,
        )

    return [made(tool) for tool in tools]


def langchain_retriever(tree: Tree, k: int = 10) -> BaseRetriever:
    """Return a retriever of LangChain: of each question the nodes that fit best, as documents.

    The metadata of a document are `title`, `path` and `lines` (null for what lies in no file), `score` and `reason`.

    Args:
        tree: the tree.
        k: how many documents there are at most.
    """
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever

    kit = Toolkit(tree)

    class TreeRetriever(BaseRetriever):
        """Documents from a tree."""

        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
            return [
                Document(
                    kit.whole_text(node.id),
                    id=node.id,
                    metadata={
                        "title": node.title,
                        "path": node.path,
                        "lines": node.lines and list(node.lines),
                        "score": node.score,
                        "reason": node.reason,
                    },
                )
                for node in search(query, tree=kit.ready(), returns="nodes", k=k).nodes
            ]

    return TreeRetriever()
