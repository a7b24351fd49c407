"""Agents on metatree: files to edit, lines to read, the tools of a tree for other agents, and the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from metatree_agents.code import Definition, FileToEdit, files_to_edit
    from metatree_agents.context import ContextRange, IssueContext, context_for
    from metatree_agents.tools.frameworks import langchain_retriever, langchain_tools, pydantic_ai_toolset
    from metatree_agents.tools.functions import FunctionTool, function_tools

__all__ = [
    "ContextRange",
    "Definition",
    "FileToEdit",
    "FunctionTool",
    "IssueContext",
    "context_for",
    "files_to_edit",
    "function_tools",
    "langchain_retriever",
    "langchain_tools",
    "pydantic_ai_toolset",
]

_MODULES = {
    "ContextRange": "metatree_agents.context",
    "IssueContext": "metatree_agents.context",
    "context_for": "metatree_agents.context",
    "Definition": "metatree_agents.code",
    "FileToEdit": "metatree_agents.code",
    "FunctionTool": "metatree_agents.tools.functions",
    "files_to_edit": "metatree_agents.code",
    "function_tools": "metatree_agents.tools.functions",
    "langchain_retriever": "metatree_agents.tools.frameworks",
    "langchain_tools": "metatree_agents.tools.frameworks",
    "pydantic_ai_toolset": "metatree_agents.tools.frameworks",
}


def __getattr__(name: str) -> Any:
    """Import the agents when they are first asked for: the command line begins without them."""
    if name in _MODULES:
        from importlib import import_module

        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
