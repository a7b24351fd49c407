"""The text of roff: escapes, special characters, strings, and the arguments of a macro (groff_char(7), roff(7))."""

from __future__ import annotations

import re

from metatree._util.entities import unescaped

_MOST_STRING_CHARS = 1_000
"""Strings may hold each other: each is short, so that none doubles for ever."""
_MOST_CHARS_OF_STRINGS = 1_000_000
"""All that they put into a page: two signs may stand for a thousand."""
_NAMED = r"(?:\[[^\]\n]{0,80}\]|\(..|.)"
_ESCAPE = re.compile(
    rf"""\\(?:
        \"(?P<comment>.*)
      | \#.*
      | \*(?P<string>{_NAMED})
      | (?:[fFgkmMVY]|n[+-]?){_NAMED}
      | s(?:[+-]?\d\d?|[+-]?\(..|\([+-]?..|[+-]?\[[^\]\n]{{0,20}}\]|[+-]?'[^'\n]{{0,20}}')
      | [hl]'(?P<motion>[^'\n]{{0,200}})'
      | [ABbDHLNoRSvwXxZ]'[^'\n]{{0,200}}'
      | z
      | \((?P<two>..)
      | \[(?P<name>[^\]\n]{{0,80}})\]
      | C'(?P<quoted>[^'\n]{{0,80}})'
      | (?P<one>.)
    )""",
    re.VERBOSE,
)
_NOTHING = frozenset("&)/,^|%:!?adrupc{}")
_ONE = {"e": "\\", "E": "\\", "~": " ", "0": " ", " ": " ", "t": "\t", "-": "-", "_": "_"}
_TABLE = r"""
aq '  dq "  oq ‘  cq ’  lq “  rq ”  Bq „  bq ‚  em —  en –  hy -  mi -  pl +  bu •  sq □  ci ○  co ©
rg ®  tm ™  de °  mu ×  di ÷  +- ±  <= ≤  >= ≥  != ≠  == ≡  ~= ≈  -> →  <- ←  ua ↑  da ↓  ti ~  ha ^
ga `  rs \  sl /  ul _  ru _  ba |  or |  br |  at @  sh #  Do $  ct ¢  Eu €  Po £  Ye ¥  sc §  ps ¶
dg †  dd ‡  lB [  rB ]  lC {  rC }  la ⟨  ra ⟩  Fo «  Fc »  ss ß  fo ‹  fc ›  fm ′  sd ″  aa ´  a^ ^
a~ ~  ad ¨  ae æ  AE Æ  oe œ  OE Œ  12 ½  14 ¼  34 ¾  if ∞  *m µ  mc µ  *a α  *b β  *p π  lh ☜  rh ☞
OK ✓  no ¬  eu €  o/ ø
"""
"""Names and characters, in pairs."""
_CHARACTERS = dict(zip(_TABLE.split()[::2], _TABLE.split()[1::2], strict=True))
_ACCENTS = {"'": "acute", "`": "grave", "^": "circ", ":": "uml", "~": "tilde", ",": "cedil", "o": "ring"}
_STRINGS = {
    "R": "®",
    "S": "",
    "Tm": "™",
    "lq": "“",
    "rq": "”",
    "Aq": "'",
    "--": "—",
    "C`": '"',
    "C'": '"',
    "PI": "π",
}
_ARGUMENT = re.compile(r'"((?:[^"\n]|"")*)(?:"|$)|((?:\\.|[^\s\\])+)')


def names(text: str) -> frozenset[str]:
    """Return the names of macros that a text lists."""
    return frozenset(text.split())


def arguments(text: str) -> list[str]:
    """Return the arguments of a macro; a blank stands in one that is quoted, or behind a backslash.

    Example:
        >>> arguments('"a b" c\\\\ d ""')
        ['a b', 'c\\\\ d', '']
    """
    text = re.split(r"\\[\"#]", text, maxsplit=1)[0]
    return [
        match[2] if match[1] is None else match[1].replace('""', '"') for match in _ARGUMENT.finditer(text)
    ]


class Strings:
    """The strings of a page, and its text with them in place."""

    def __init__(self) -> None:
        self._strings = dict(_STRINGS)
        self._left = _MOST_CHARS_OF_STRINGS

    def define(self, name: str, value: str, *, more: bool = False) -> None:
        """Set a string, or add to it."""
        said = self.said(value.removeprefix('"'))
        self._strings[name] = ((self._strings.get(name, "") if more else "") + said)[:_MOST_STRING_CHARS]

    def said(self, text: str) -> str:
        """Return a text without its escapes.

        Example:
            >>> Strings().said("\\\\fB\\\\-\\\\-all\\\\fR \\\\(em \\\\[u00E9]t\\\\[e aa] \\\\\\"note")
            '--all — ét\\\\[e aa] '
        """
        return _ESCAPE.sub(self._escape, text) if "\\" in text else text

    def _escape(self, match: re.Match[str]) -> str:
        name = match["two"] or match["name"] or match["quoted"]
        if name is not None:
            return _character(name)
        if (string := match["string"]) is not None:
            value = self._strings.get(string.strip("[]") if string[0] == "[" else string.lstrip("("), "")
            self._left -= len(value)
            return value if self._left >= 0 else ""
        if (motion := match["motion"]) is not None:  # what goes back stands over what is there
            return "" if motion.startswith("-") else " "
        one = match["one"]
        return "" if one is None or one in _NOTHING else _ONE.get(one, one)


def _character(name: str) -> str:
    """Return a special character by its name; the name as it is written where it has none."""
    known = _CHARACTERS.get(name)
    if known is not None:
        return known
    if re.fullmatch(r"u[0-9A-F]{4,6}", name):
        code = int(name[1:], 16)
        return chr(code) if code < 0x110000 and not 0xD800 <= code < 0xE000 else ""
    if len(name) == 2 and name[0] in _ACCENTS:
        letter = unescaped(f"&{name[1]}{_ACCENTS[name[0]]};")
        return letter if len(letter) == 1 else name[1]
    return f"\\[{name}]"
