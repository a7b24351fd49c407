"""Patterns of `.gitignore` files, matched in a time that grows with the length of the path alone.

Each pattern becomes a regular expression that never goes back: what a `*` passes over ends at the first place where
the piece after it fits, which loses no match, since pieces have a fixed length and what follows then has the most
room. The same holds for `**` and whole folders. So a line such as `*a*a*a*a*b` costs what any other does.

Source: wildmatch.c and dir.c of git, whose odd cases are kept: `foo**/bar` matches `foobar`, since git cuts off what
stands before the first wildcard.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

_MOST_PATH = 4_096
"""No path is longer, so no pattern that needs more matches any."""

_CHUNK = 500
MOST_WILD = 1_000
"""Patterns with wildcards, of all files that say something of one path: each costs a microsecond a path.

One with many wildcards counts as several: each of them is compiled anew by every command."""
_WILD_OF_ONE = 4
MOST_RULES = 50_000
"""Patterns of any kind, of all files that say something of one path: each takes a hundred bytes."""
_SPECIAL = re.compile(rb"[*?\[\\]")
_CLASSES = {
    b"alnum": rb"[0-9A-Za-z]", b"alpha": rb"[A-Za-z]", b"blank": rb"[ \t]", b"cntrl": rb"[\x00-\x1f\x7f]",
    b"digit": rb"[0-9]", b"graph": rb"[!-~]", b"lower": rb"[a-z]", b"print": rb"[ -~]",
    b"punct": rb"[!-/:-@\[-`{-~]", b"space": rb"[ \t\n\r]", b"upper": rb"[A-Z]", b"xdigit": rb"[0-9A-Fa-f]",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Rule:
    """One line."""

    pattern: bytes
    """Without `!`, and without the `/` at its beginning and end."""
    negative: bool
    folders: bool
    """Whether it is about folders alone."""
    named: bool
    """Whether it is about the last part of a path, in any folder."""


def rules_of(text: bytes) -> Iterator[Rule]:
    """Yield the rules of a file in their order."""
    for line in text.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        # A pattern is a text of C to git.
        line = _without_spaces(line.removesuffix(b"\r").partition(b"\0")[0])
        if not line or line.startswith(b"#"):
            continue
        pattern = line.removeprefix(b"!")
        inner = pattern.removesuffix(b"/")
        named = b"/" not in inner
        yield Rule(inner.removeprefix(b"/"), pattern is not line, inner != pattern, named)


def _without_spaces(line: bytes) -> bytes:
    """Return a line without the spaces at its end; a backslash keeps the one after it."""
    bare = line.rstrip(b" ")
    marks = len(bare) - len(bare.rstrip(b"\\"))
    return bare + b" " if marks % 2 and len(bare) < len(line) else bare


class Patterns:
    """The patterns of one file."""

    def __init__(
        self,
        text: bytes,
        most_wild: int = MOST_WILD,
        most_rules: int = MOST_RULES,
        wanted: Collection[bytes] = (),
    ) -> None:
        """Read the lines of a file; what is no valid pattern matches nothing, as in git.

        Args:
            text: what it says.
            most_wild: after so many patterns with wildcards, the rest is not followed.
            most_rules: after so many patterns of any kind, too.
            wanted: folders that no pattern leaves out: those that do are passed over.
        """
        self._rules: list[Rule] = []
        self.wild = 0
        """How many patterns with wildcards there are, those with many as several."""
        self.is_cut = False
        for rule in rules_of(text):
            if len(self._rules) >= most_rules:
                self.is_cut = True
                break
            if wild := len(_SPECIAL.findall(rule.pattern)):
                if self.wild >= most_wild:
                    self.is_cut = True
                    break
                self.wild += 1 + wild // _WILD_OF_ONE
            if not any(_leaves_out(rule, folder) for folder in wanted):
                self._rules.append(rule)
        self._literal: dict[tuple[bool, bytes], dict[bool, int]] = {}
        """Of rules without wildcards, by what they match, the last one for folders alone and the last one for all."""
        self._wild: dict[bool, list[int]] = {True: [], False: []}
        for number, rule in enumerate(self._rules):
            if _SPECIAL.search(rule.pattern):
                self._wild[rule.named].append(number)
            elif rule.pattern:
                self._literal.setdefault((rule.named, rule.pattern), {})[rule.folders] = number

    @property
    def count(self) -> int:
        """How many patterns there are."""
        return len(self._rules)

    def verdict(self, path: str, *, folder: bool) -> bool | None:
        """Return whether the last rule that matches a path leaves it out; None when none matches."""
        raw = path.encode("utf-8", "surrogateescape")
        best = -1
        for named, text in ((True, raw[raw.rfind(b"/") + 1 :]), (False, raw)):
            for folders, number in self._literal.get((named, text), {}).items():
                if folder or not folders:
                    best = max(best, number)
            best = max(best, self._last_wild(named, text, folder, best))
        return None if best < 0 else not self._rules[best].negative

    def _last_wild(self, named: bool, text: bytes, folder: bool, least: int) -> int:
        numbers = self._wild[named]
        for first in reversed(range(0, len(numbers), _CHUNK)):
            chunk = numbers[first : first + _CHUNK]
            if chunk[-1] < least:
                break
            # Most paths match nothing; one expression for many patterns finds that out many times faster.
            if self._any[named][first // _CHUNK].fullmatch(text) is None:
                continue
            for number in reversed(chunk):
                if number < least:
                    break
                rule = self._rules[number]
                if (folder or not rule.folders) and _compiled(rule.pattern, named).fullmatch(text):
                    return number
        return -1

    @cached_property
    def _any(self) -> dict[bool, list[re.Pattern[bytes]]]:
        """One expression for each chunk of patterns with wildcards."""
        return {
            named: [
                re.compile(
                    b"|".join(
                        _expression(self._rules[number].pattern, named) for number in numbers[i : i + _CHUNK]
                    ),
                    re.DOTALL,
                )
                for i in range(0, len(numbers), _CHUNK)
            ]
            for named, numbers in self._wild.items()
        }


def _leaves_out(rule: Rule, folder: bytes) -> bool:
    if rule.negative:
        return False
    text = folder[folder.rfind(b"/") + 1 :] if rule.named else folder
    if not _SPECIAL.search(rule.pattern):
        return rule.pattern == text
    return _compiled(rule.pattern, rule.named).fullmatch(text) is not None


@lru_cache(maxsize=1_024)
def _compiled(pattern: bytes, named: bool) -> re.Pattern[bytes]:
    return re.compile(_expression(pattern, named), re.DOTALL)


_NEVER = rb"(?!)"


def _expression(pattern: bytes, named: bool) -> bytes:
    """Return the regular expression of a pattern, which the whole of a path has to match."""
    try:
        return _Translation(pattern, named).run()
    except _NoPattern:
        return _NEVER


class _NoPattern(Exception):
    """It matches nothing."""


class _Translation:
    def __init__(self, pattern: bytes, named: bool) -> None:
        self.pattern = pattern
        self.named = named
        self.done: list[bytes] = []
        """Expressions of whole folders, since the last `**`."""
        self.groups: list[bytes] = []
        """Those up to each `**`: what stands between two of them ends at the first place where it fits."""
        self.pieces: list[list[bytes]] = [[]]
        """Those of single characters in the part of the path at hand, cut at each `*`."""
        self.least = 0

    def run(self) -> bytes:
        special = _SPECIAL.search(self.pattern)
        at = begin = special.start() if special else len(self.pattern)
        for number in self.pattern[:begin]:
            self._char(bytes([number]))
        while at < len(self.pattern):
            char = self.pattern[at : at + 1]
            if char == b"*":
                at = self._star(at, begin)
            elif char == b"?":
                self._one(rb"[^/]")
                at += 1
            elif char == b"[":
                at = self._class(at + 1)
            else:
                at += char == b"\\"
                if at >= len(self.pattern):
                    raise _NoPattern
                self._char(self.pattern[at : at + 1])
                at += 1
        self._end_part(b"")
        return b"".join([*self.groups, *self.done])

    def _char(self, char: bytes) -> None:
        if char == b"/" and not self.named:
            self._end_part(b"/")
        else:
            self._one(re.escape(char))

    def _one(self, expression: bytes) -> None:
        self.least += 1
        if self.least > _MOST_PATH:
            raise _NoPattern
        self.pieces[-1].append(expression)

    def _end_part(self, end: bytes) -> None:
        """Write down the part of the path at hand: each piece at the first place where it fits, the last at the end."""
        first, *others = (b"".join(piece) for piece in self.pieces)
        pattern = first
        if others:
            pattern += b"".join(rb"(?>[^/]*?" + piece + b")" for piece in others[:-1])
            pattern += rb"[^/]*" + others[-1] + (end or rb"\Z")
        else:
            pattern += end
        self.done.append(b"(?>" + pattern + b")" if others else pattern)
        self.pieces = [[]]

    def _star(self, at: int, begin: int) -> int:
        """Read a run of `*` and return where it ends."""
        end = at
        while self.pattern[end : end + 1] == b"*":
            end += 1
        rest = self.pattern[end : end + 2]
        if not self.named and end - at > 1 and (at == begin or self.pattern[at - 1 : at] == b"/"):
            if not rest:
                self._folders(rb".*")
                return end
            if rest[:1] == b"/":
                self._folders(rb"(?:[^/]*/)*?")
                return end + 1
            if rest == b"\\/":
                self._folders(rb"(?:[^/]*/)+?")
                return end + 2
        self.pieces.append([])
        return end

    def _folders(self, expression: bytes) -> None:
        """Write down any folders; what follows is looked for from the first of them on."""
        self.done.append(b"".join(self.pieces[-1]))  # what stands before the first wildcard, if anything
        self.pieces = [[]]
        self.groups.append(b"(?>" + b"".join(self.done) + b")")
        self.done = [expression]

    def _class(self, at: int) -> int:
        """Read what stands in brackets, from after the first, and return where it ends."""
        pattern = self.pattern
        negative = pattern[at : at + 1] in (b"!", b"^")
        at += negative
        chars: set[int] = set()
        before = -1
        first = True
        while first or pattern[at : at + 1] != b"]":
            first = False
            char = pattern[at : at + 1]
            if not char:
                raise _NoPattern
            if char == b"\\":
                at += 1
                before = self._at(at)
                chars.add(before)
            elif char == b"-" and before > 0 and pattern[at + 1 : at + 2] not in (b"", b"]"):
                at += 1
                if pattern[at : at + 1] == b"\\":
                    at += 1
                chars.update(range(before, self._at(at) + 1))
                before = -1
            elif char == b"[" and pattern[at + 1 : at + 2] == b":":
                close = pattern.find(b"]", at + 2)
                if close < 0:
                    raise _NoPattern
                if close - at - 3 < 0 or pattern[close - 1 : close] != b":":
                    before = self._at(at)
                    chars.add(before)
                else:
                    known = _CLASSES.get(pattern[at + 2 : close - 1])
                    if known is None:
                        raise _NoPattern
                    chars.update(member[0][0] for member in _members(known))
                    at, before = close, -1
            else:
                before = self._at(at)
                chars.add(before)
            at += 1
        if negative:
            chars = set(range(256)) - chars
        chars.discard(ord("/"))
        self._one(_set(chars) if chars else _NEVER)
        return at + 1

    def _at(self, at: int) -> int:
        if at >= len(self.pattern):
            raise _NoPattern
        return self.pattern[at]


def _set(chars: set[int]) -> bytes:
    """Return the expression of a set of bytes, with its ranges, which keep it as short as the pattern is."""
    ranges: list[list[int]] = []
    for char in sorted(chars):
        if ranges and ranges[-1][1] == char - 1:
            ranges[-1][1] = char
        else:
            ranges.append([char, char])
    return b"[" + b"".join(b"\\x%02x-\\x%02x" % (first, last) for first, last in ranges) + b"]"


def _members(expression: bytes) -> Iterator[re.Match[bytes]]:
    return re.finditer(expression, bytes(range(256)))
