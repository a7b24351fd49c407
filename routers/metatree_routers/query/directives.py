"""Directives of reStructuredText that say nothing by themselves: they tell a program what is to stand there.

Only those without content below them; a `note` or a `code-block` is what it says.
"""

from __future__ import annotations

import re
from typing import Final

_NAMES: Final = (
    "(?:py:)?(?:current)?module|highlight|contents|toctree|index|default-domain|role|meta|sectnum|tabularcolumns"
    r"|auto(?:function|class|method|module|attribute|data|exception|decorator)|include|literalinclude"
)
_BARE: Final = re.compile(rf"[ \t]*\.\. +(?:{_NAMES})::[^\n]*|[ \t]*\.\. +_[^\n]+:[ \t]*")
_OPTION: Final = re.compile(r"[ \t]+:[\w-]+:[^\n`]*")


def is_bare_directive(line: str) -> bool:
    """Whether a line is a directive, or a label, that says nothing to a reader.

    Example:
        >>> [is_bare_directive(line) for line in (".. currentmodule:: click", ".. note:: Mind it.", "See it.")]
        [True, False, False]
    """
    return line.lstrip().startswith("..") and _BARE.fullmatch(line.rstrip()) is not None


def without_bare_ends(text: str) -> str:
    """Return a stretch of a text without the bare directives that it begins and ends with; empty for nothing else.

    Example:
        >>> without_bare_ends(".. module:: a\\n   :synopsis: A.\\n\\nIt is so.\\n\\n.. autofunction:: b\\n")
        'It is so.'
    """
    lines = text.split("\n")
    bare = [not line.strip() or is_bare_directive(line) for line in lines]
    for number in range(1, len(lines)):
        # Its options; an empty line ends them.
        if lines[number - 1].strip() and bare[number - 1] and _OPTION.fullmatch(lines[number]):
            bare[number] = True
    said = [number for number, each in enumerate(bare) if not each]
    if not said:
        return ""
    if not any(is_bare_directive(line) for line in (*lines[: said[0]], *lines[said[-1] + 1 :])):
        return text
    return "\n".join(lines[said[0] : said[-1] + 1])
