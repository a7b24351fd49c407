"""The pieces that a content was put together of: the lines of a module or a class between its definitions.

What stands in two pieces is not said in one place, so no passage and no answer is of two.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate

from metatree.node import Node


def pieces_of(node: Node, content: str) -> list[int]:
    """Return where the pieces of a content begin, in characters, the first at 0.

    Example:
        >>> from metatree.node import Source
        >>> node = Node(id="a.py@<module>", title="a", source=Source(path="a.py", parts=((1, 2), (9, 9))))
        >>> pieces_of(node, "import b\\n\\nLIMIT = 3"), pieces_of(node, "another text")
        ([0, 10], [0])
    """
    parts = node.source.parts if node.source else ()
    if not parts:
        return [0]
    begins = list(accumulate((len(line) + 1 for line in content.split("\n")), initial=0))
    lines = list(accumulate((last - first + 1 for first, last in parts), initial=0))
    return [begins[number] for number in lines[:-1]] if lines[-1] == len(begins) - 1 else [0]


def piece_at(node: Node, content: str, at: int) -> tuple[int, int]:
    """Return where the piece of a content begins and ends that a place is in."""
    begins = pieces_of(node, content)
    number = bisect_right(begins, at)
    return begins[number - 1], begins[number] - 1 if number < len(begins) else len(content)
