"""Words of a text with their places, and a reader that takes them one by one; programs and schedules are read so."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NoReturn

from metatree.errors import UserError
from metatree.rules.language.values import MAX_DEPTH


class RuleError(UserError):
    """A text makes no sense at some place."""

    line: int
    column: int

    def __init__(self, line: int, column: int, what: str, **data: str) -> None:
        super().__init__(f"line {line}, column {column}: {what}", line=line, column=column, **data)


class RuleSyntaxError(RuleError):
    """A text is not in the form of facts and productions."""

    found: str
    expected: str

    def __init__(self, line: int, column: int, found: str, expected: str) -> None:
        super().__init__(line, column, f"found {found}, expected {expected}", found=found, expected=expected)


_SHOWN_CHARS = 80
"""More of a word is no help in a message."""


@dataclass(frozen=True, slots=True)
class Lexeme:
    """One word of a text."""

    kind: str
    """The group of the pattern that it matches, such as `text` or `name`; the word itself for a `sign`; `end`."""
    text: str
    line: int
    column: int

    def __str__(self) -> str:
        if self.kind == "end":
            return "the end of the text"
        return repr(self.text if len(self.text) <= _SHOWN_CHARS else self.text[:_SHOWN_CHARS] + "…")


def cut(
    source: str, pattern: re.Pattern[str], expected: str, *, line: int = 1, column: int = 1
) -> list[Lexeme]:
    """Cut a text into words; what matches the groups `space` and `comment` is left out.

    Args:
        pattern: has a named group for each kind of word.
        expected: what may stand where it matches nothing.
        line, column: the place that the text begins at, for errors.
    """
    lexemes: list[Lexeme] = []
    position, start = 0, 1 - column
    while position < len(source):
        match = pattern.match(source, position)
        column = position - start + 1
        if match is None:
            if source[position] == '"':
                what = source[position:].split("\n", 1)[0][:20]
                raise RuleSyntaxError(line, column, repr(what), 'a closing "')
            raise RuleSyntaxError(line, column, repr(source[position]), expected)
        kind, text = str(match.lastgroup), match.group()
        if kind not in ("space", "comment"):
            lexemes.append(Lexeme(text if kind == "sign" else kind, text, line, column))
        line += text.count("\n")
        if "\n" in text:
            start = position + text.rindex("\n") + 1
        position = match.end()
    lexemes.append(Lexeme("end", "", line, len(source) - start + 1))
    return lexemes


class LexemeReader:
    """Reads a list of words from left to right."""

    def __init__(self, words: list[Lexeme]) -> None:
        self._words = words
        self._at = 0
        self._depth = 0

    def peek(self, ahead: int = 0) -> Lexeme:
        """Return a word without taking it."""
        return self._words[min(self._at + ahead, len(self._words) - 1)]

    def take(self, kind: str | None = None, expected: str | None = None) -> Lexeme:
        """Take the next word; with `kind`, it must be of that kind."""
        word = self.peek()
        if kind is not None and word.kind != kind:
            self.fail(expected or repr(kind))
        self._at += 1
        return word

    def fail(self, expected: str, word: Lexeme | None = None) -> NoReturn:
        """Raise a RuleSyntaxError at the next word."""
        word = word or self.peek()
        raise RuleSyntaxError(word.line, word.column, str(word), expected)

    def wrong(self, at: Lexeme, what: str) -> NoReturn:
        """Raise a RuleError at a word."""
        raise RuleError(at.line, at.column, what)

    @contextmanager
    def deeper(self, advice: str) -> Iterator[None]:
        """Read what stands in brackets; raises RuleError with an advice where they are nested too deep."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self.wrong(self.peek(), f"brackets are nested more than {MAX_DEPTH} deep: {advice}")
        yield
        self._depth -= 1
