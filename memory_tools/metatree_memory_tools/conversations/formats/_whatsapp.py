"""WhatsApp: the text that a phone exports of a chat, as the phone's language and region write times.

`[17.05.24, 14:03:22] Ann: …` on iOS, `17/05/2024, 14:03 - Ann: …` on Android, with am and pm, years first, other digits
and marks of direction. Whether the day or the month comes first is told from all dates of the file: a number above
twelve is a day; where there is none, the order in which fewer messages go back in time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Final

from metatree_memory_tools.conversations.formats.message import HEAD, NOBODY, ChatMessage, ExportFile, text_of

_DIRECTION = "\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff"
_AM = "a.m|am|上午|午前|오전|dop|de|fm|πμ|ص|पूर्वाह्न|sa|öö"
_PM = "p.m|pm|下午|午後|오후|odp|du|em|μμ|م|अपराह्न|ch|ös"
_HALF = r"[^\W\d_]{1,10}(?:\.\s?[^\W\d_]\.?)?\.?"
_WHEN = (
    r"(?P<a>\d{1,4})(?P<mark>[./-])\s?(?P<b>\d{1,2})[./-]\s?(?P<c>\d{1,4})\.?(?:,|،|、|\s|klo|kl\.|à|at|um)*"
    rf"(?P<before>{_HALF})?\s*(?P<h>\d{{1,2}})[:.](?P<m>\d\d)(?:[:.](?P<s>\d\d))?\s*(?P<after>{_HALF})?"
)
_LINE = re.compile(rf"^(?:\[{_WHEN}\]|{_WHEN.replace('P<', 'P<x')}\s*[-–]\s)\s*(?P<rest>.*)$", re.DOTALL)
_AUTHOR = re.compile(r"^(?P<author>[^:\n]{1,100}?):(?!\S) ?(?P<text>.*)$", re.DOTALL)
_NAME = re.compile(
    r"^(?:.{0,20}?WhatsApp.{0,20}?(?:-|with|mit|avec|con|com|met)\s+)?(?P<who>.*?)(?: ?\(\d+\))?\.(?:txt|zip)$",
    re.IGNORECASE,
)
_ENOUGH: Final = 200
"""After so many dates with a number above twelve in one place, the others are like them."""

When = tuple[int, int, int, int, int, int]


class WhatsApp:
    """A chat as a phone exports it."""

    name = "WhatsApp"
    ordered = True

    def recognises(self, file: ExportFile) -> bool:
        """Whether lines begin with times as WhatsApp writes them, the first line one of them."""
        if not file.name.lower().endswith(".txt"):
            return False
        lines = [line for line in text_of(file.head).splitlines() if line.strip()]
        if len(file.head) >= HEAD:
            lines = lines[:-1]
        dated = [split for line in lines if (split := _split(line)) is not None]
        return bool(dated) and _split(lines[0]) is not None and (len(dated) > 1 or ": " in dated[0][1])

    def messages(self, file: ExportFile) -> Iterator[ChatMessage]:
        """Yield the messages; a line without a time goes on with the one before.

        What the phone says of the encryption, before anybody spoke, is none of them.
        """
        messages = self._lines_together(file)
        for message in messages:
            if message.author != NOBODY or "WhatsApp" not in message.text:
                yield message
                break
        yield from messages

    def _lines_together(self, file: ExportFile) -> Iterator[ChatMessage]:
        order = _order(file)
        title = _title(file)
        at, said = "", list[str]()
        for line in file.lines():
            split = _split(line)
            if split is None:
                if said:
                    said.append(_plain(line))
                continue
            if said:
                yield _message(at, "\n".join(said), title)
            at, said = _iso(split[0], order), [_plain(split[1])]
        if said:
            yield _message(at, "\n".join(said), title)


def _plain(text: str) -> str:
    return text.strip(_DIRECTION).replace("\u200e", "")


def _message(at: str, said: str, title: str) -> ChatMessage:
    match = _AUTHOR.match(said)
    author = " ".join(match["author"].strip(_DIRECTION + "~\u202f\u00a0 ").split()) if match else ""
    text = match["text"] if match and author else said
    return ChatMessage("", author or NOBODY, text.strip(), at, "", "", title)


def _title(file: ExportFile) -> str:
    """Return with whom a chat is: from the name of the file, or of the archive around `_chat.txt`."""
    name = file.name
    if name.lower() == "_chat.txt":
        name = str(file.shared.get("archive") or "")
    match = _NAME.match(name)
    return match["who"].strip(" -_") if match else ""


def _split(line: str) -> tuple[tuple[str, When, str], str] | None:
    """Return the parts of the time that a line begins with, and the rest; None for a line without one."""
    match = _LINE.match(line[:400].lstrip(_DIRECTION))
    if match is None:
        return None
    prefix = "" if match["a"] else "x"
    first, middle, last, hour, minute = (int(match[prefix + name]) for name in ("a", "b", "c", "h", "m"))
    second = int(match[f"{prefix}s"] or 0)
    half = (
        f"{match[prefix + 'before'] or ''}{match[prefix + 'after'] or ''}".replace(" ", "").lower().strip(".")
    )
    if hour > 24 or minute > 59 or second > 60:
        return None
    if half and hour <= 12:
        hour = hour % 12 + (12 if _is(half, _PM) else 0)
    style = match[prefix + "mark"] + ("h" if half else "")
    rest = match["rest"] + (line[400:] if len(line) > 400 else "")
    return (style, (first, middle, last, hour, minute, second), half), rest


def _is(half: str, known: str) -> bool:
    return any(half == each or half.startswith(each) for each in known.split("|"))


def _order(file: ExportFile) -> str:
    """Return `ymd`, `dmy` or `mdy`, as the dates of a file are written."""
    first_above = second_above = 0
    back = {"dmy": 0, "mdy": 0}
    last: dict[str, tuple[int, ...]] = {}
    style = ""
    for line in file.lines():
        split = _split(line)
        if split is None:
            continue
        style, (a, b, c, *_), _half = split[0]
        if a > 31:
            return "ymd"
        first_above += a > 12
        second_above += b > 12
        for order, day in (("dmy", (c, b, a)), ("mdy", (c, a, b))):
            back[order] += day < last.get(order, day)
            last[order] = day
        if first_above + second_above > _ENOUGH:
            break
    if first_above != second_above:
        return "dmy" if first_above > second_above else "mdy"
    if back["dmy"] != back["mdy"]:
        return "dmy" if back["dmy"] < back["mdy"] else "mdy"
    return "mdy" if style == "/h" else "dmy"  # America writes slashes, and am and pm


def _iso(when: tuple[str, When, str], order: str) -> str:
    a, b, c, hour, minute, second = when[1]
    year, month, day = {"ymd": (a, b, c), "dmy": (c, b, a), "mdy": (c, a, b)}[order]
    year += 2000 if year < 100 else 0
    if year > 2400:  # of the Buddhist calendar
        year -= 543
    try:
        moment = datetime(year, month, day, hour % 24, minute, min(second, 59))
    except ValueError:
        return ""
    return moment.isoformat(timespec="seconds" if moment.second else "minutes")
