"""Entities of HTML as letters, whatever a stranger has written."""

from __future__ import annotations

import html
import re

_LONG_NUMBER = re.compile(r"&#\d{9,}+;?")


def unescaped(text: str) -> str:
    """Return a text with its entities as letters; a number of more digits than any letter has is no letter.

    Example:
        >>> unescaped("a &amp; b&#95;c &#" + "1" * 5_000 + ";")
        'a & b_c \ufffd'
    """
    return html.unescape(_LONG_NUMBER.sub("\ufffd", text))
