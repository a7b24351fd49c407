"""The pieces of a content: the lines of a module or a class between its definitions, and what a manual describes.

What stands in two pieces is not said in one place, so no passage and no answer is of two.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import accumulate

from metatree.node import Node

_DESCRIBED = re.compile(
    r"^\.\. (?:[a-z]+:)?(?:attribute|class|confval|data|decorator|describe|directive|envvar|exception|function|macro"
    r"|member|method|module|object|option|program|property|setting|struct|type|var|variable)::[ \t]+\S",
    re.MULTILINE,
)
"""Where a manual in reStructuredText begins to describe one thing. Source: Sphinx, Domains."""


def pieces_of(node: Node, content: str) -> list[int]:
    """Return where the pieces of a content begin, in characters, the first at 0.

    Example:
        >>> from metatree.node import Source
        >>> node = Node(id="a.py@<module>", title="a", source=Source(path="a.py", parts=((1, 2), (9, 9))))
        >>> pieces_of(node, "import b\\n\\nLIMIT = 3"), pieces_of(node, "another text")
        ([0, 10], [0])
        >>> pieces_of(Node(id="a", title="a"), "Keys\\n----\\n\\n.. data:: NAME\\n\\n   Its name.")
        [0, 11]
    """
    parts = node.source.parts if node.source else ()
    if not parts:
        return sorted({0, *(match.start() for match in _DESCRIBED.finditer(content))})
    begins = list(accumulate((len(line) + 1 for line in content.split("\n")), initial=0))
    lines = list(accumulate((last - first + 1 for first, last in parts), initial=0))
    return [begins[number] for number in lines[:-1]] if lines[-1] == len(begins) - 1 else [0]


def piece_at(node: Node, content: str, at: int) -> tuple[int, int]:
    """Return where the piece of a content begins and ends that a place is in."""
    begins = pieces_of(node, content)
    number = bisect_right(begins, at)
    return begins[number - 1], begins[number] - 1 if number < len(begins) else len(content)


def is_name_of_thing(text: str) -> bool:
    """Whether a text only names what a manual describes below it.

    Example:
        >>> is_name_of_thing(".. data:: NAME\\n\\n"), is_name_of_thing(".. data:: NAME\\n\\n   Its name.\\n")
        (True, False)
    """
    return "\n" not in text.strip() and _DESCRIBED.match(text) is not None
