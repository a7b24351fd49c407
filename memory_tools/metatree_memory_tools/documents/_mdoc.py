"""The macros of mdoc that stand in text: `.Op Fl v Ar file` is `[-v file]` (mdoc(7))."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from metatree_memory_tools.documents._roff_text import names

_CLOSING = frozenset(".,:;)]?!")
_OPENING = frozenset("([")
_AROUND = {
    "Op": "[]", "Pq": "()", "Bq": "[]", "Dq": "“”", "Sq": "‘’", "Ql": "‘’", "Qq": '""', "Brq": "{}", "Aq": "<>",
}  # fmt: skip
_OPENS = {"Oo": "[", "Po": "(", "Bo": "[", "Do": "“", "So": "‘", "Qo": '"', "Bro": "{", "Ao": "<", "Eo": ""}
_CLOSES = {"Oc": "]", "Pc": ")", "Bc": "]", "Dc": "”", "Sc": "’", "Qc": '"', "Brc": "}", "Ac": ">", "Ec": ""}
_PLAIN = names(
    "Ad An Ar At Bf Cd Cm Dv Em Er Ev Fa Fd Fl Fn Fr Ft Ic In Li Lk Lb Ms Mt Nd Nm No Ns Ot Pa Sm Sx Sy Tn Va Vt Xo Xc"
    " Xr Ap Bsx Bx Fx Nx Ox Ux Dx Pf St Ta Tg"
)
_REFERENCES = names("%A %B %C %D %I %J %N %O %P %Q %R %T %U %V")
_SYSTEMS = {
    "Bsx": "BSD/OS", "Bx": "BSD", "Fx": "FreeBSD", "Nx": "NetBSD", "Ox": "OpenBSD", "Ux": "UNIX",
    "Dx": "DragonFly", "At": "AT&T UNIX",
}  # fmt: skip
_NO_TEXT = names("Sm Bf Ef Xo Xc Rs Re Bk Ek Tg Lb Fd")
_MOST_DEPTH = 50


class Named(Protocol):
    """What knows the name of the program that a page is about."""

    name: str


def in_mdoc(name: str, words: Sequence[str], page: Named) -> str | None:
    """Return the text of a macro in a line of its own, None for one that is none of mdoc.

    Args:
        name: the macro.
        words: its arguments, among which other macros may be.
        page: keeps the name that `Nm` says first.
    """
    if name in _REFERENCES:
        return " ".join(words) + ","
    if name == "Ex":
        return (
            f"The {' '.join(words[1:]) or page.name} utility exits 0 on success, and >0 if an error occurs."
        )
    if name in _NO_TEXT:
        return ""
    if not (name in _PLAIN or name in _AROUND or name in _OPENS or name in _CLOSES):
        return None
    if name == "Nm" and words and not page.name and words[0][:1] not in _CLOSING:
        page.name = words[0]
    if name == "An" and words and words[0].startswith("-"):
        return ""
    return _Line(page).said([name, *words], 0)


class _Line:
    """The arguments of one line, put together."""

    def __init__(self, page: Named) -> None:
        self.page = page

    def said(self, words: Sequence[str], depth: int) -> str:
        out = ""
        is_glued = True

        def add(said: str, *, glue: bool = False) -> None:
            nonlocal out, is_glued
            out += said if is_glued or glue or not out else f" {said}"
            is_glued = False

        at, before = 0, ""
        while at < len(words):
            word = words[at]
            at += 1
            if word in _AROUND and depth < _MOST_DEPTH:
                rest = list(words[at:])
                behind = []
                while rest and rest[-1] in _CLOSING:
                    behind.append(rest.pop())
                left, right = _AROUND[word][0], _AROUND[word][1]
                add(left + self.said(rest, depth + 1) + right + "".join(reversed(behind)))
                break
            if word in _OPENS:
                add(_OPENS[word])
                is_glued = True
            elif word in _CLOSES:
                add(_CLOSES[word], glue=True)
            elif word == "Ns":
                is_glued = True
            elif word == "Ap":
                add("'", glue=True)
                is_glued = True
            elif word == "Pf" and at < len(words):
                add(words[at])
                at, is_glued = at + 1, True
            elif word in _PLAIN:
                before = word
                if said := self._alone(word, words[at : at + 1]):
                    add(said)
                if word == "Xr" and at + 1 < len(words) and words[at + 1] not in _CLOSING:
                    add(f"{words[at]}({words[at + 1]})")
                    at += 2
                continue
            elif word in _CLOSING:
                add(word, glue=True)
            elif word in _OPENING:
                add(word)
                is_glued = True
            else:
                add(f"-{word}" if before == "Fl" else word)
                continue
            before = before if word in _CLOSING else ""
        return out

    def _alone(self, word: str, following: Sequence[str]) -> str:
        """Return what a macro says without an argument behind it."""
        if word in _SYSTEMS:
            return _SYSTEMS[word]
        if word == "Nd":
            return "—"
        if following and following[0] not in _CLOSING and following[0] not in _PLAIN:
            return ""
        alone: dict[str, Callable[[], str]] = {
            "Nm": lambda: self.page.name, "Ar": lambda: "file ...", "Fl": lambda: "-", "Pa": lambda: "~",
            "Ta": lambda: "|",
        }  # fmt: skip
        return alone[word]() if word in alone else ""
