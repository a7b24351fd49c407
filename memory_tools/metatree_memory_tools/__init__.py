"""Memory types: how folders, code and documents become trees of nodes."""

from __future__ import annotations

from metatree_memory_tools.build.build import build_tree

__all__ = ["build_tree"]
