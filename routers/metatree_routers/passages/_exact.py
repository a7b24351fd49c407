"""What must be found as it stands: whether a text holds it, and whether it says there what it is."""

from __future__ import annotations

import re
from functools import lru_cache


def holds(text: str, exact: str) -> bool:
    """Say whether a text holds something as it stands, and not as a part of a longer word.

    Example:
        >>> holds("use --no-ff here", "--no-ff"), holds("no_ffx", "no_ff"), holds("SIGHUP", "sighup")
        (True, False, True)
    """
    at = text.find(exact)
    if at < 0 and len(exact) > 3:
        text, exact = text.lower(), exact.lower()
        at = text.find(exact)
    while at >= 0:
        before, after = text[at - 1 : at], text[at + len(exact) : at + len(exact) + 1]
        if not (_in_word(exact[0]) and _in_word(before)) and not (_in_word(exact[-1]) and _in_word(after)):
            return True
        at = text.find(exact, at + 1)
    return False


def _in_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def is_defined(text: str, exact: str) -> bool:
    """Say whether a line of a text begins with something and goes on to say what it is: an entry, a definition.

    Example:
        >>> is_defined("def pack(items):", "pack"), is_defined("``--no-ff``  always make a commit", "--no-ff")
        (True, True)
        >>> is_defined("Call pack before you send.", "pack"), is_defined("def pack(items):", "Parcel.pack")
        (False, True)
    """
    name = exact.strip("()")
    if _definition(name).search(text) is not None:
        return True
    # The definition of a member has its own name alone, and stands in a base class of the one that was named.
    member = _MEMBER.fullmatch(name)
    return member is not None and _definition(member[1]).search(text) is not None


_MEMBER = re.compile(r"(?:[A-Za-z_]\w*\.)+([A-Za-z_]\w{3,})")


@lru_cache(maxsize=64)
def _definition(name: str) -> re.Pattern[str]:
    return re.compile(
        r"^[ \t*`\"':|.+-]{0,24}"
        r"(?:(?:def|class|function|const|let|var|async def|struct|enum|#define|option|cmdoption::|CREATE \w+"
        r"|\.(?:B|BR|IP|TP)|set|export)[ \t]+){0,3}"
        rf"[ \t`*\"':<\\f.(-]{{0,8}}{re.escape(name)}(?![\w-])[ \t]*"
        r"[`*\"'\]),]*[ \t]*(?:[:=(|\[<]|--|-[ \t]|[ \t]{2,}|,[ \t]*-|$)",
        re.IGNORECASE | re.MULTILINE,
    )
