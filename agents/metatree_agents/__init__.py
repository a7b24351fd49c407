"""Agents on top of metatree: which files to edit, and the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from metatree_agents.code import Definition, FileToEdit, files_to_edit

__all__ = ["Definition", "FileToEdit", "files_to_edit"]


def __getattr__(name: str) -> Any:
    """Import the agents when they are first asked for: the command line begins without them."""
    if name in __all__:
        from metatree_agents import code

        return getattr(code, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
