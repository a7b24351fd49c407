"""Where the words of an answer stand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from metatree.errors import MetatreeError
from metatree.trees.text import line_in_file

if TYPE_CHECKING:
    from metatree import Node, Tree
    from metatree.result import Quote

NOT_IN_SOURCE = "not in the source"
"""Said of an answer whose words, as a model gave them, no source has."""


def source_place(tree: Tree, source: Quote) -> str:
    """Return where the words of a source stand, as `file:line`; the node's id when it has no file."""
    node = tree.find(source.node)
    if node is None or node.source is None:
        return source.node
    # Elsewhere the number is that of a turn, a page or a table, and the path may be a key of the source's own.
    if node.source.type != "text" and (node.source.start_line is not None or tree.file_of(node) is None):
        return source.node
    line = _quoted_line(tree, node, source.quote)
    return node.source.path if line is None else f"{node.source.path}:{line}"


def _quoted_line(tree: Tree, node: Node, quote: str) -> int | None:
    assert node.source is not None
    start = node.source.start_line
    if not quote:
        return start
    try:
        before, quoted, _ = tree.content(node).partition(quote)
    except (MetatreeError, OSError):  # the file has changed or gone since it was quoted
        return start
    if not quoted:
        return start
    leading = len(quote) - len(quote.lstrip("\n"))
    return line_in_file(node.source, before.count("\n") + leading + 1)
