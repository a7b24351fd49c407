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


def warn_of_other_package() -> None:
    """Warn in one line where the package `metatree` is that of another project, installed over ours or before it."""
    import metatree

    if hasattr(metatree, "MetatreeError"):
        return
    import warnings

    warnings.warn_explicit(
        f"the package in {metatree.__file__!r} is that of another project, 'metatree' (phylogenetics): run"
        " `pip uninstall metatree`, then `pip install --force-reinstall --no-deps metatree-memory`",
        RuntimeWarning,
        # No file has this name, so that Python adds no line of source.
        "<metatree>",
        0,
    )


def __getattr__(name: str) -> Any:
    """Import the agents when they are first asked for: the command line begins without them."""
    if name in _MODULES:
        from importlib import import_module

        warn_of_other_package()
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
