"""Edits of JSON files that people keep: all but the entry stays, with comments and commas at the end (JSONC).

Lost: the packages that edit JSONC: each is new, or old, or compiled; what is needed is to set and to remove one member.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

_TOKEN = re.compile(
    r"""(?P<skip>[ \t\r\n]+|//[^\n\r\u2028\u2029]*|/\*.*?\*/)"""
    r"""|(?P<text>"(?:[^"\\\n]|\\.)*")|(?P<mark>[{}\[\]:,])|(?P<plain>[\w.+-]+)""",
    re.DOTALL,
)
_MOST_TOKENS: Final = 1_000_000
"""Of a file; each takes a hundred bytes and more."""
_ODD = re.compile(r"\r(?!\n)|[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f\x85\u2028\u2029]|/\*.*/\*", re.DOTALL)
"""What ends a line or a comment for some programs and not for others."""
_FILLED_IN = re.compile(r"\{(?:env|file):")
"""OpenCode puts variables and files in their places in the text, before it is read as JSON."""
_VALUE = re.compile(r'"(?:\\.|[^"\\{]|\{(?!env:|file:)|\{(?:env|file):[\w./~-]+\})*"')
"""A text in which they change nothing but itself."""
_PROTOTYPES: Final = {"__proto__", "constructor", "prototype"}
_INDENTED = re.compile(r"^([ \t]+)\S", re.MULTILINE)


@dataclass(slots=True)
class _Value:
    start: int
    data: Any = None
    end: int = 0
    members: dict[str, _Member] | None = None
    """Of an object."""


@dataclass(slots=True)
class _Member:
    start: int
    value: _Value
    comma: int | None = None
    """Where the comma after it stands."""


@dataclass(slots=True)
class _Parser:
    text: str
    alike: bool = False
    """Whether a form is refused that another program could read otherwise."""
    tokens: list[tuple[str, str, int]] = field(default_factory=list)
    at: int = 0

    def document(self) -> _Value:
        place = len(self.text) - len(self.text.lstrip("\ufeff"))
        while place < len(self.text):
            match = _TOKEN.match(self.text, place)
            if match is None:
                raise ValueError(f"line {_line(self.text, place)} is no JSON")
            if self.alike and not _is_read_alike(match):
                raise self._otherwise(place)
            if match.lastgroup != "skip":
                if len(self.tokens) == _MOST_TOKENS:
                    raise ValueError(
                        f"it has more than {_MOST_TOKENS:,} values and brackets, too many for settings"
                    )
                self.tokens.append((str(match.lastgroup), match[0], place))
            place = match.end()
        value = self._value()
        if self.at < len(self.tokens):
            raise self._wrong()
        return value

    def _wrong(self) -> ValueError:
        place = self.tokens[self.at][2] if self.at < len(self.tokens) else len(self.text)
        return ValueError(f"line {_line(self.text, place)} is no JSON")

    def _otherwise(self, place: int) -> ValueError:
        return ValueError(
            f"what stands in line {_line(self.text, place)} is read otherwise by other programs"
        )

    def _next(self) -> tuple[str, str, int]:
        if self.at >= len(self.tokens):
            raise self._wrong()
        self.at += 1
        return self.tokens[self.at - 1]

    def _is(self, mark: str) -> bool:
        return self.at < len(self.tokens) and self.tokens[self.at][:2] == ("mark", mark)

    def _value(self) -> _Value:
        kind, token, start = self._next()
        if token == "{" and kind == "mark":
            return self._object(start)
        if token == "[" and kind == "mark":
            items = []
            while not self._is("]"):
                items.append(self._value().data)
                if not self._is("]"):
                    self._expect(",")
            return _Value(start, items, self._expect("]") + 1)
        if kind == "mark":
            self.at -= 1
            raise self._wrong()
        try:
            return _Value(start, json.loads(token), start + len(token))
        except ValueError:
            self.at -= 1
            raise self._wrong() from None

    def _object(self, start: int) -> _Value:
        members: dict[str, _Member] = {}
        while not self._is("}"):
            kind, token, place = self._next()
            if kind != "text":
                self.at -= 1
                raise self._wrong()
            self._expect(":")
            name = json.loads(token)
            if self.alike and (name in members or name in _PROTOTYPES or _FILLED_IN.search(name)):
                raise self._otherwise(place)
            member = members[name] = _Member(place, self._value())
            if not self._is("}"):
                member.comma = self._expect(",")
        data = {key: member.value.data for key, member in members.items()}
        return _Value(start, data, self._expect("}") + 1, members)

    def _expect(self, mark: str) -> int:
        if not self._is(mark):
            raise self._wrong()
        return self._next()[2]


def parsed(text: str, *, alike: bool = False) -> Any:
    """Return what a file says; an empty one is an empty object.

    Args:
        alike: whether a file is refused that a host could read otherwise, and see an entry where none is seen here: a
            name twice, ends of lines and comments on which programs do not agree, names with variables in them.

    Raises:
        ValueError: it is no JSON, comments and commas at the end allowed, or one that is read otherwise.
    """
    return _parsed(text, alike=alike).data


def with_entry(text: str, keys: Sequence[str], entry: Mapping[str, Any]) -> str:
    """Return the text with an entry at a place, whose objects are made where they are missing.

    Raises:
        ValueError: it is no JSON, or something other than an object is in the way.
    """
    if not text.strip("\ufeff \t\r\n"):
        return json.dumps(_nested(keys, entry), indent=2, ensure_ascii=False) + "\n"
    value, depth = _deepest(text, keys)
    if depth == len(keys):
        return text[: value.start] + _written(entry, text, value.start) + text[value.end :]
    assert value.members is not None
    rest = keys[depth:]
    newline = "\r\n" if "\r\n" in text else "\n"
    inner = text[value.start + 1 : value.end - 1]
    last = list(value.members.values())[-1] if value.members else None
    outer = _indent_at(text, value.start)
    if last is not None and "\n" not in inner:  # an object in one line
        comma = "" if last.comma is not None else ","
        added = f"{comma} {json.dumps(rest[0])}: {json.dumps(_nested(rest[1:], entry), ensure_ascii=False)}"
        at = (last.comma + 1) if last.comma is not None else last.value.end
        return text[:at] + added + text[at:]
    indent = _indent_at(text, last.start) if last is not None else outer + _unit(text)
    at = value.start + 1 + len(inner.rstrip())
    made = json.dumps(_nested(rest[1:], entry), indent=_unit(text), ensure_ascii=False)
    member = f"{json.dumps(rest[0])}: " + made.replace("\n", newline + indent)
    keeps_comma = last is not None and last.comma is not None
    tail = text[at : value.end - 1] if "\n" in text[at : value.end - 1] else newline + outer
    text = text[:at] + f"{newline}{indent}{member}" + "," * keeps_comma + tail + text[value.end - 1 :]
    if last is not None and last.comma is None:
        text = text[: last.value.end] + "," + text[last.value.end :]
    return text


def without_entry(text: str, keys: Sequence[str]) -> str:
    """Return the text without the entry at a place; unchanged where there is none.

    Raises:
        ValueError: it is no JSON.
    """
    value, depth = _deepest(text, keys[:-1])
    if depth < len(keys) - 1 or value.members is None or keys[-1] not in value.members:
        return text
    names = list(value.members)
    number = names.index(keys[-1])
    member = value.members[keys[-1]]
    start, end = member.start, member.value.end
    cuts = []
    if member.comma is not None:
        end = member.comma + 1
    elif number > 0:
        comma = value.members[names[number - 1]].comma
        assert comma is not None
        cuts.append((comma, comma + 1))
    line = text.rfind("\n", 0, start) + 1
    if not text[line:start].strip():  # it begins its line: the line goes too
        start = line
        rest = re.compile(r"[ \t]*\r?\n").match(text, end)
        if rest is not None:
            end = rest.end()
        else:
            start = member.start
    else:
        blanks = re.compile(r"[ \t]*").match(text, end)
        if member.comma is not None and blanks is not None:
            end = blanks.end()
        else:
            start = len(text[:start].rstrip(" \t"))
    for first, after in sorted([*cuts, (start, end)], reverse=True):
        text = text[:first] + text[after:]
    return text


def _is_read_alike(token: re.Match[str]) -> bool:
    if token.lastgroup == "text":
        return _VALUE.fullmatch(token[0]) is not None
    return not (_ODD.search(token[0]) or _FILLED_IN.search(token[0]))


def _parsed(text: str, *, alike: bool = False) -> _Value:
    if not text.strip("\ufeff \t\r\n"):
        return _Value(0, {}, 0, {})
    try:
        return _Parser(text, alike).document()
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def _deepest(text: str, keys: Sequence[str]) -> tuple[_Value, int]:
    """Return the value as far down the keys as there is one, and how many keys that are."""
    value = _parsed(text)
    for depth, key in enumerate(keys):
        if value.members is None:
            what = "the file" if not depth else f"{'.'.join(keys[:depth])!r}"
            raise ValueError(f"{what} is no object")
        if key not in value.members:
            return value, depth
        value = value.members[key].value
    return value, len(keys)


def _nested(keys: Sequence[str], entry: Mapping[str, Any]) -> Any:
    made: Any = dict(entry)
    for key in reversed(keys):
        made = {key: made}
    return made


def _written(entry: Mapping[str, Any], text: str, at: int) -> str:
    newline = "\r\n" if "\r\n" in text else "\n"
    made = json.dumps(entry, indent=_unit(text), ensure_ascii=False)
    return made.replace("\n", newline + _indent_at(text, at))


def _indent_at(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip())]


def _unit(text: str) -> str:
    found = _INDENTED.search(text)
    return found[1] if found else "  "


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1
