"""Names of tools that servers choose: shown so that none can pass for another one, or hide what it is."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import Final

_ALIKE: Final = frozenset("аАеЕоОрРсСхХуУкКмМнНтТвВзЗіІјЈѕЅһԁԛԝӏαΑΒεΕΖηΗιΙκΚΜνΝοΟρΡτΤυΥχΧγω")
"""Letters of Cyrillic and Greek that look like Latin ones."""
_MOST_CHARS: Final = 100
_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Mn", "Me"})
"""Kinds of characters that no line of text needs: control, direction, invisible, written over others."""


def plain_name(name: str) -> str:
    """Return a name with every character escaped that is unseen, or could be taken for a Latin letter.

    Names in other scripts stay, so long as they are of those alone.

    Example:
        >>> [plain_name(each) for each in ("read_file", "re\\u0430d_file", "read\\u200b_file", "搜索")]
        ['read_file', 're\\\\u0430d_file', 'read\\\\u200b_file', '搜索']
    """
    latin = any(char.isascii() and char.isalpha() for char in name)
    shown = []
    for char in name[:_MOST_CHARS]:
        folded = unicodedata.normalize("NFKC", char) != char
        unclear = not char.isascii() and (latin or folded or char in _ALIKE or not char.isalnum())
        if unclear or not char.isprintable():
            shown.append(f"\\u{ord(char):04x}")
        else:
            shown.append("_" if char in " /" else char)
    return "".join(shown) + ("…" if len(name) > _MOST_CHARS else "")


def unique_names(names: Iterable[str]) -> list[str]:
    """Return plain names, those that differ in case alone or not at all with a number.

    Example:
        >>> unique_names(["send", "Send", "send"])
        ['send', 'Send#2', 'send#3']
    """
    used: dict[str, int] = {}
    result = []
    for name in map(plain_name, names):
        number = used[name.casefold()] = used.get(name.casefold(), 0) + 1
        result.append(name if number == 1 else f"{name}#{number}")
    return result


def plain_text(text: str) -> str:
    """Return a text of a server without what people do not see and a model reads: control and invisible characters.

    Example:
        >>> plain_text("Adds\\u200b two\\x1b[31m numbers.\\nFast.")
        'Adds two[31m numbers.\\nFast.'
    """
    return "".join(
        char for char in text if char in "\n\t" or (char.isascii() and char.isprintable()) or _seen(char)
    )


def _seen(char: str) -> bool:
    kind = unicodedata.category(char)
    is_mark = kind == "Mn" and char < "\ufe00"  # part of a letter in many scripts
    return not char.isascii() and (kind not in _HIDDEN or is_mark)
