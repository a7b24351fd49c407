"""Labels: what a model calls the options by, and how its words are matched to what was offered.

Labels are letters: a model that counts wrong names nothing then, where a number names a neighbour. The schema lists
them, so a server that keeps to schemas can choose nothing else; there are as many schemas as lengths of menus, which
providers compile once. Lost: ids (long, and new schemas in every call), one schema for all.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from string import ascii_uppercase

from metatree.protocols import Option

NONE = "none"
_FIRST_WORD = re.compile(r"[\[(<\"'`*\s]*([A-Za-z]{1,3})[\])>\"'`*.:,\s-]*")


@lru_cache(maxsize=256)
def labels(count: int) -> tuple[str, ...]:
    """Return short labels in order: A … Z, then AA, AB, …

    Example:
        >>> labels(3), labels(28)[-2:]
        (('A', 'B', 'C'), ('AA', 'AB'))
    """
    return tuple(_label(number) for number in range(count))


def _label(number: int) -> str:
    text = ascii_uppercase[number % 26]
    return text if number < 26 else _label(number // 26 - 1) + text


def offered(label: object, options: Sequence[Option]) -> Option | None:
    """Return the option that was meant, None when the words name none of those offered.

    A label counts, also in brackets or before more words ("B: tokens.py"), and so does an id or a title that only one
    option has.

    Example:
        >>> menu = [Option("a1", "tokens.py"), Option("a2", "login.py")]
        >>> [found and found.id for found in (offered(said, menu) for said in ("[b]", "tokens.py", "C", 0))]
        ['a2', 'a1', None, None]
    """
    if not isinstance(label, str):
        return None
    text = label.strip()
    known = dict(zip(labels(len(options)), options, strict=True))
    if text.upper() in known:
        return known[text.upper()]
    named = [option for option in options if text in (option.id, option.title)]
    if len(named) == 1:
        return named[0]
    word = _FIRST_WORD.fullmatch(text)
    if word is None and (match := re.match(r"[\[(]?([A-Za-z]{1,3})(?:[\])]|[.:)]\s|\s[-–—]\s)", text)):
        word = match
    return known.get(word.group(1).upper()) if word else None
