"""What a reader of a format takes out of a document: lines of text, and what is known of them.

A document is lines of text and nodes name ranges of them, as in a text file, so that one rule says what lies in which
leaf. Lost: places in the format itself (pages and boxes, paths of elements), which every reader would have to know.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import accumulate, takewhile
from typing import Any

from metatree._util.secret_text import masked, shaped_keys, without_keys, without_secrets
from metatree_memory_tools.text.descriptions import MOST_HEADINGS, shorten

MOST_CHARS = 10_000_000
"""Text beyond this is left out, with a note."""
_MOST_BYTES = 12_000_000
_MOST_TEXT_LINES = 500_000
_MOST_PAGES = 50_000
_TITLE_CHARS = 120

_PARTED = re.compile("[\x03\x0b-\r\x1c-\x1f\x85\u2028\u2029]")
"""Ends of lines within a line, which part words; and what the blank of a font is that says nothing of its signs."""
_HYPHEN = re.compile("\ufffe(?=[^\\s\ufffe]{0,400}\\d|machine\\s)")
_UNSAYABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufeff\ufffe\uffff]")
_SPACES = re.compile(r"[ \t\u00a0\u2000-\u200a\u202f\u205f\u3000]+")


@dataclass(frozen=True, slots=True)
class Heading:
    """The title of a section that begins at a line."""

    level: int
    """1 is the highest; levels may be left out."""
    title: str
    line: int
    """Counted from 1. A line after the last one: nothing belongs to it."""
    span: int = 1
    """How many lines say the title, with its number and ornament; they need not lie in a leaf."""


@dataclass(frozen=True, slots=True)
class PageStart:
    """One page, from its first line to the line before the next page."""

    line: int
    """Counted from 1. A page without text begins where the next one begins."""
    label: str = ""
    """What is printed on it, when that is not its number."""


@dataclass(slots=True)
class Extracted:
    """The text of a document in lines, with its headings and pages. Nodes name ranges of these lines.

    The same bytes give the same lines, so that a node's range stays right.
    """

    lines: list[str] = field(default_factory=list)
    headings: list[Heading] = field(default_factory=list)
    """By line."""
    pages: list[PageStart] = field(default_factory=list)
    """In order; empty for a document that has none."""
    title: str = ""
    links: list[str] = field(default_factory=list)
    """Where its links lead, each once, without those inside of it."""
    facts: dict[str, Any] = field(default_factory=dict)
    """What else it says of itself (author, description); JSON values."""
    problem: str = ""
    """Why it could not be read in full, in a few words."""

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "lines": self.lines,
            "headings": [
                [heading.level, heading.title, heading.line, heading.span] for heading in self.headings
            ],
            "pages": [[page.line, page.label] for page in self.pages],
            "title": self.title,
            "links": self.links,
            "facts": self.facts,
            "problem": self.problem,
        }

    def bounded(self) -> Extracted:
        """Return the same with as many lines, headings and pages as a tree can be made of, and a note of the rest."""
        bounds = (
            ("lines", len(self.lines), _MOST_TEXT_LINES),
            ("headings", len(self.headings), MOST_HEADINGS),
            ("pages", len(self.pages), _MOST_PAGES),
        )
        cut = [f"only its first {most:,} {what}" for what, number, most in bounds if number > most]
        lines = self.lines[:_MOST_TEXT_LINES]
        if sum(map(len, lines)) > _MOST_BYTES // 4:
            sizes = accumulate(max(len(line.encode("utf-8", "replace")), _weight(line)) for line in lines)
            fitting = sum(1 for _ in takewhile(_MOST_BYTES.__ge__, sizes))
            if fitting < len(lines):
                size = sum(len(line.encode("utf-8", "replace")) for line in lines[:fitting])
                cut, lines = [*cut, f"only its first {size / 1e6:.3g} MB of text"], lines[:fitting]
        if not cut:
            return self
        return replace(
            self,
            lines=lines,
            headings=[each for each in self.headings[:MOST_HEADINGS] if each.line <= len(lines)],
            pages=[each for each in self.pages[:_MOST_PAGES] if each.line <= len(lines) + 1],
            problem="; ".join([*filter(None, [self.problem]), *cut]),
        )

    def without_secrets(self, keys: frozenset[str] = frozenset()) -> Extracted:
        """Return the same with `*` in place of what looks like secrets; itself where nothing does.

        Args:
            keys: those of the document as it is written, where a reader may have put letters beside them.
        """
        # Programs take `word@db.example.org` for an e-mail address in `postgres://ann:word@db.example.org`, too.
        if mail := [link for link in self.links if link.lower().startswith("mailto:")]:
            return replace(self, links=[link for link in self.links if link not in mail]).without_secrets(
                keys
            )
        text = "\n".join(self.lines)
        hidden, number = masked(text)
        if number:  # a line of a key may be a title, which by itself is not known
            keys |= shaped_keys(text)

        def hide(said: str) -> tuple[str, int]:
            said, shaped = masked(said)
            said, known = without_keys(said, keys)
            return said, shaped + known

        hidden, known = without_keys(hidden, keys)
        about, more = without_secrets(
            [
                self.title,
                self.facts,
                [each.title for each in self.headings],
                self.links,
                [each.label for each in self.pages],
            ],
            hide,
        )
        if not number and not known and not more:
            return self
        title, facts, titles, links, labels = about
        lines = hidden.split("\n")
        headings = []
        for each, said in zip(self.headings, titles, strict=True):
            span = slice(each.line - 1, each.line - 1 + each.span)
            if lines[span] != self.lines[span]:  # of which a part may be in another line
                said = shorten(" ".join(lines[span]), _TITLE_CHARS)
            headings.append(replace(each, title=said))
        pages = [replace(each, label=label) for each, label in zip(self.pages, labels, strict=True)]
        return replace(
            self, lines=lines, title=title, facts=facts, headings=headings, links=links, pages=pages
        )

    @classmethod
    def of_json(cls, data: Mapping[str, Any]) -> Extracted:
        """Return what `as_json` gave; raises KeyError, TypeError or ValueError for anything else."""
        return cls(
            [str(line) for line in data["lines"]],
            [Heading(int(h[0]), str(h[1]), int(h[2]), int(h[3])) for h in data["headings"]],
            [PageStart(int(line), str(label)) for line, label in data["pages"]],
            str(data["title"]),
            [str(link) for link in data["links"]],
            dict(data["facts"]),
            str(data["problem"]),
        )

    def page_of(self, line: int) -> int:
        """Return the number of the page that a line is on, counted from 1; 0 without pages."""
        from bisect import bisect_right

        return bisect_right(self.pages, line, key=lambda page: page.line)

    def page_lines(self, number: int) -> tuple[int, int]:
        """Return the first and last line of a page, counted from 1; the last is before the first when it is empty."""
        first = self.pages[number - 1].line
        last = self.pages[number].line - 1 if number < len(self.pages) else len(self.lines)
        return first, last


def _weight(line: str) -> int:
    """Return what a line counts for: a quarter of its memory, four times as much by one emoji."""
    return sys.getsizeof(line) // 4


def shaped(line: str) -> str:
    """Return a line whose spaces mean something, as in code and tables, without what cannot be shown.

    Example:
        >>> shaped("\\tx = 1\\x00 "), shaped("the\\xa0key\\vof")
        ('    x = 1', 'the key of')
    """
    return "".join(map(_shown, line.expandtabs(4))).rstrip()


def _shown(char: str) -> str:
    """Return a character, one blank for whatever blank or end of a line, and nothing for what cannot be shown."""
    return char if char.isprintable() else " " if char.isspace() else ""


def tidy(line: str) -> str:
    """Return a line without what cannot be shown, and with single spaces.

    A word that goes on behind a hyphen at the end of a line is one, but not with what may be a key, which has digits.

    Example:
        >>> tidy("accord\\ufffeingly  so\\x00 "), tidy("the user\\ufffeghp_9Kv")
        ('accordingly so', 'the user- ghp_9Kv')
    """
    return _SPACES.sub(" ", _UNSAYABLE.sub("", _PARTED.sub(" ", _HYPHEN.sub("- ", line)))).strip()
