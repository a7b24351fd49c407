"""Private keys in the forms that programs write between lines: PEM, SSH2, OpenVPN, PuTTY."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple


class _Form(NamedTuple):
    mark: str
    """Stands in every text that has such a key."""
    head: re.Pattern[str]
    sign: str
    """How the line behind the key begins."""
    behind: str
    """What ends that line, when it is part of the key."""


_FORMS: Final = (
    _Form(
        "PRIVATE",  # a reader may fill lines, and part the words of the first one
        re.compile(r"-----BEGIN\s{1,9}[A-Z0-9\s_-]{0,60}PRIVATE\s{1,9}KEY(?:\s{1,9}BLOCK)?-----"),
        "-----END",
        "-----",
    ),
    _Form("PRIVATE KEY", re.compile(r"---- BEGIN SSH2 [A-Z ]{0,30}PRIVATE KEY ----"), "---- END ", "-----"),
    _Form(
        "private key-----",
        re.compile(r"-----(?:BEGIN|begin) [A-Za-z0-9 _-]{0,60}private key-----"),
        "-----",
        "-----",
    ),
    _Form(
        "-----BEGIN OpenVPN",
        re.compile(r"-----BEGIN OpenVPN [A-Za-z0-9 -]{0,40}[Kk]ey(?: V\d)?-----"),
        "-----END ",
        "-----",
    ),
    _Form("Private-Lines:", re.compile(r"Private-Lines:[ \t]{0,9}\d{1,5}"), "Private-", ""),
)
_BODY = re.compile(r"[A-Za-z0-9+/=\s\\:,.()-]{0,20000}")
_LONG = re.compile(r"[A-Za-z0-9+/=]{16}")
_KEY_LINE = re.compile(r"[A-Za-z0-9+/=]{24,}")
_HEX = re.compile(r"n?[0-9a-f]{32,}")
_FULL_LINE = range(60, 77)
_BEFORE_LINES, _BETWEEN_LINES, _BETWEEN_FULL_LINES, _LAST_LINE = 4_000, 100, 1_000, 200
"""How many characters may stand before the first line of a key, between two, between two full ones, which may be fields
of rows, and from the last full one to its end."""


def private_keys(text: str) -> Iterator[tuple[int, int]]:
    """Yield where keys are, from their first line to their last, or to where they break off."""
    for form in _FORMS:
        if form.mark in text:
            yield from _of_form(text, form)


def _of_form(text: str, form: _Form) -> Iterator[tuple[int, int]]:
    heads = list(form.head.finditer(text))
    if not heads:  # the words alone, as in this line of code
        return
    for head, after in zip(heads, [*(each.start() for each in heads[1:]), len(text)], strict=True):
        start = head.start() if form.behind else head.end()
        body = _BODY.match(text, head.end(), after)
        assert body is not None
        end = text.find(form.sign, head.end(), body.end() + 9)
        if end < 0:
            plain = body.end() if _LONG.search(body[0]) else 0  # what only names its head is no key
            lines = _end_of_lines(text, head.end(), after)
            end = text.find(form.sign, lines, min(lines + _LAST_LINE, after)) if lines else -1
            if end < 0:
                if lines or plain:  # it breaks off
                    yield start, max(lines, plain)
                continue
        last = text.find(form.behind, end + 9, end + 60) if form.behind else end - 5
        yield start, min(end + 9, len(text)) if last < 0 else last + 5


def _end_of_lines(text: str, start: int, after: int) -> int:
    """Return where the lines of a key end that stand in something, 0 when there are none.

    That is a comment, a quotation, the texts of a program or of a notebook, each with its own signs around a line.
    """
    end, most = start, _BEFORE_LINES
    for run in _KEY_LINE.finditer(text, start, after):
        line, gap = run[0], run.start() - end
        if gap > max(most, _BETWEEN_FULL_LINES):
            break
        is_mixed = line.upper() != line != line.lower() and any(map(str.isdigit, line))
        if gap > most and not (is_mixed and len(line) in _FULL_LINE):
            continue
        # A picture in a key of PGP has hundreds of signs of one letter, or of a few without a digit.
        is_next = gap <= _BETWEEN_LINES and len(line) in _FULL_LINE and line[0] != "="
        if is_mixed or (end > start and is_next) or _HEX.fullmatch(line):
            end, most = run.end(), _BETWEEN_LINES
    return end if end > start else 0
