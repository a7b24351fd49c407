"""Memory types: how folders, code and documents become trees of nodes.

Every line of a source lies in exactly one leaf: a file, class or section with children has no content of its own, and
what is not in a child (module-level statements, a class body's attributes, a section's introduction) is a leaf beside
them. So a read never pays for text twice, and a menu says everything that can be read. Lost: content on inner nodes,
read on the way down (one reader call for each file passed, mostly for imports).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from metatree_memory_tools.build.build import build_tree

__all__ = ["build_tree"]


def __getattr__(name: str) -> Any:
    """Load what builds trees when it is asked for: the types that read files are of use without it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from metatree_memory_tools.build.build import build_tree

    return build_tree
