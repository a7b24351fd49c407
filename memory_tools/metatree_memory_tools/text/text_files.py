"""What the types of text files share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from metatree.node import Source
from metatree.trees.source_types import SourceFile
from metatree.trees.text import cut

if TYPE_CHECKING:
    from metatree.tools.tool import ToolGroup


class TextFiles:
    """A type of files whose nodes name ranges of lines of the text."""

    source_type = "text"

    @property
    def tools(self) -> tuple[ToolGroup, ...]:
        """The tool tree of its nodes."""
        from metatree_memory_tools.text._tools import DOCUMENT_TOOLS  # loads pydantic, which no build needs

        return DOCUMENT_TOOLS

    def content(self, file: SourceFile, source: Source) -> str:
        """Return the lines that a node names."""
        return cut(file.text, source)
