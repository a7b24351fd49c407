"""Passwords and keys that a name before them tells: `password = "…"`, `- name: API_KEY`, `--token …`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

compiled = cache(re.compile)
"""Expressions of secrets are made when a text has their marks: a search that reads no such text needs none of them."""

NAME = (
    r"(?:(?:password|passwd|passphrase|passcode|pwd|credential|secret(?:[_-]?access)?(?:[_-]?key)?"
    r"|(?:(?<![a-z])|(?<=pg))pass|api[_ -]?key|access[_ -]?key"
    r"|(?:private|account|signing|encryption|master|app|hmac)[_-]?key|(?:auth|access|refresh)[_ -]?token|token)"
    r"(?:[_-]?(?:base|hash|value|plain|text|new|old|confirm(?:ation)?|default|prod(?:uction)?|staging|stage|test"
    r"|dev(?:elopment)?|live|main|primary|secondary|current|next|previous|fallback|backup|root|admin|github|gitlab))?"
    r"s?[_-]?\d{0,3})"
)
"""How what holds a secret is called, in any case: `db_password2`, `SECRET_KEY_BASE`, `PGPASS`."""
_TYPE = r"(?:[ \t]{0,3}:?[ \t]{0,3}[a-z_][\w.\[\]<>|&]{0,40}(?=\s{0,3}=))?"
"""What may stand between a name and its value: `token: str = "…"`, `var token string = "…"`."""
_GAP = r"(?:[ \t]{0,40}+(?!\s)|(?=[ \t]{0,2}[^\S \t])\s{1,3}+(?!\s))"
"""What may stand around a sign: settings are aligned, and a value may stand on the next line.

Each gap in one way only: where no value follows, all ways are tried."""
_YAML = r"(?:[!&][\w./:-]{1,40}[ \t]{1,3})?(?:[|>][-+\d]{0,2}[ \t]{0,3}\r?\n[ \t]{1,40})?"
"""A tag, an anchor, and the sign of a block, whose value begins on the next line."""
_LETTERS_AND_DIGITS = r"(?=[^\s\"'\\\d]{0,200}+\d)(?=[^\s\"'\\A-Za-z]{0,200}+[A-Za-z])"
_ASSIGNED = (
    rf"(?i){NAME}(?![a-z0-9])[\"'\\*`]{{0,4}}+{_GAP}(?:[:?+]?=>?|:|\bis\b)[*_]{{0,2}}+{_GAP}{_YAML}[\"'\\*`]{{0,4}}+"
    rf"(?P<value>{_LETTERS_AND_DIGITS}[^\s\"'\\,;]{{8,200}})"
)
_VALUE = (  # `- name: DB_PASSWORD` with `value: …` behind it, in YAML and in JSON; `value="…"` of XML
    rf"(?i){NAME}[\"']{{0,2}}\s{{0,3}},?\s{{0,40}}[\"']?value[\"']?(?:\s{{0,3}}:\s{{0,3}}[\"']?|\s?=\s?[\"'])"
    rf"(?P<value>{_LETTERS_AND_DIGITS}[^\s\"'\\,;]{{8,200}})"
)
_ELEMENT = (  # also `<key>password</key><string>…</string>`, and attributes in the tag
    rf"(?i){NAME}(?:</key>\s{{0,40}}<string)?(?:[\"'\s][^<>]{{0,200}})?>\s{{0,40}}(?:<!\[CDATA\[)?"
    rf"(?P<value>{_LETTERS_AND_DIGITS}[^\s<>\]]{{8,200}}+)(?:(?:\]\]>)?\s{{0,40}}</|(?<=[^\s<>\]]{{200}}))"
)
_QUOTED = (
    rf"(?i){NAME}(?![a-z0-9])[\"'\\]{{0,4}}\]?{_TYPE}{_GAP}(?:[:?+|]{{0,2}}=>?|:|<-|(?<=[\"']),){_GAP}\(?[brf]?\\?[\"'`]{{1,3}}"
    rf"(?P<value>{_LETTERS_AND_DIGITS}[^\s\"'`\\]{{8,200}}+)(?:\\?[\"'`]|(?<=[^\s\"'`\\]{{200}}))"
)
_BEHIND_BLANK = (  # `PASSWORD '…'` of SQL, and `password TEXT DEFAULT '…'`
    rf"(?i)(?:{NAME}|identified\s{{1,3}}by)(?:\s{{1,3}}[a-z]{{3,12}}(?:\(\d{{1,5}}\))?(?:\s{{1,3}}not\s{{1,3}}null)?\s{{1,3}}default)?"
    rf"\s{{1,3}}[\"'](?P<value>{_LETTERS_AND_DIGITS}[^\s\"'\\]{{8,200}}+)(?:[\"']|(?<=[^\s\"'\\]{{200}}))"
)
_OPTION = (  # `--db-password …`
    rf"(?i)(?<=-){NAME}\s{{1,3}}[\"']?(?P<value>{_LETTERS_AND_DIGITS}[^\s\"'\\-][^\s\"'\\]{{7,200}})"
)
_INSIDE_QUOTES = (  # `"Server=db;Password=…;"`
    rf"(?i)(?<=[;\"']){NAME}\s?=\s?(?P<value>{_LETTERS_AND_DIGITS}[^\s\"'\\,;]{{8,200}}+)"
    rf"(?:(?=[;\"'])|(?<=[^\s\"'\\,;]{{200}}))"
)
_MARKS = ("pass", "pwd", "secret", "credential", "identified")
"""How the names begin: a search for these texts costs a tenth of one for the expression."""
_ENDS = (
    ("key", re.compile(r"(?:api|access|private|account|signing|encryption|master|app|hmac)[_ -]?\Z")),
    ("token", re.compile(r"(?:auth|access|refresh)[_ -]?\Z")),
)
"""How the others end, and what stands before that: it is looked at where the end is, which is one search for many."""
_LONGEST_BEFORE = len("encryption_")


def named_values(text: str, *, code: bool) -> Iterator[re.Match[str]]:
    """Yield matches whose group `value` stands behind a name that says so; of program code those in quotes."""
    places = _name_places(text)
    if not places:
        return
    shapes = [(_QUOTED, ""), (_INSIDE_QUOTES, "=")] if code else [(_ASSIGNED, "")]
    shapes += [(_BEHIND_BLANK, ""), (_OPTION, "-"), (_VALUE, "value"), (_ELEMENT, "</")]
    for shape, mark in shapes:
        if mark in text:
            match_at = compiled(shape).match
            yield from (match for at in places if (match := match_at(text, at)))


def _name_places(text: str) -> list[int]:
    """Return where names of what holds a secret may begin."""
    lower = text.replace("\u0130", "I").lower()  # the one letter that becomes two
    places = [at for mark in _MARKS for at in _places(lower, mark)]
    for mark, before in _ENDS:
        for at in _places(lower, mark):
            if begin := before.search(lower, max(0, at - _LONGEST_BEFORE), at):
                places.append(begin.start())
            if mark == "token":
                places.append(at)
    return places


def _places(text: str, mark: str) -> Iterator[int]:
    at = text.find(mark)
    while at >= 0:
        yield at
        at = text.find(mark, at + 1)
