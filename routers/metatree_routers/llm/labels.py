"""Labels: what a model calls the options by, and how its words are matched to what was offered."""

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

    Letters are no positions: a model that counts wrong names nothing instead of a neighbour.

    Example:
        >>> labels(3), labels(28)[-2:]
        (('A', 'B', 'C'), ('AA', 'AB'))
    """
    return tuple(_label(number) for number in range(count))


def _label(number: int) -> str:
    text = ascii_uppercase[number % 26]
    return text if number < 26 else _label(number // 26 - 1) + text


def offered(said: object, options: Sequence[Option]) -> Option | None:
    """Return the option that was meant, None when the words name none of those offered.

    A label counts, also in brackets or before more words ("B: tokens.py"), and so does an id or a title that only one
    option has.

    Example:
        >>> menu = [Option("a1", "tokens.py"), Option("a2", "login.py")]
        >>> [found and found.id for found in (offered(said, menu) for said in ("[b]", "tokens.py", "C", 0))]
        ['a2', 'a1', None, None]
    """
    if not isinstance(said, str):
        return None
    text = said.strip()
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
