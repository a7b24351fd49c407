"""S-expressions with their places, the notation of HDDL and of conditions in planner domains."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from metatree.errors import UserError

MAX_DEPTH: Final = 60
"""Parentheses inside one another; conditions are compiled to Python, which reads 200."""


class PlannerSyntaxError(UserError):
    """A domain, a problem or a condition cannot be read; the message says where and what was expected."""

    line: int
    column: int

    def __init__(self, message: str, *, line: int, column: int, source: str = "") -> None:
        where = f"{source}:{line}:{column}" if source else f"line {line}, column {column}"
        super().__init__(f"{where}: {message}", line=line, column=column, source=source)


@dataclass(frozen=True, slots=True)
class Word:
    """A word, lower-cased as the language wants it, with the place and the spelling that it has in its text."""

    text: str
    line: int
    column: int
    spelling: str


@dataclass(frozen=True, slots=True)
class Group:
    """What stands in one pair of parentheses."""

    items: tuple[Word | Group, ...]
    line: int
    column: int


Expression = Word | Group


def words_of(text: str) -> list[Word]:
    """Return the words of a text, parentheses among them, without comments (`;` to the end of the line)."""
    words: list[Word] = []
    for number, line in enumerate(text.splitlines(), start=1):
        start = -1
        for index, sign in enumerate(line):
            if sign in "(); \t\r\f\v\ufeff\xa0":
                if start >= 0:
                    words.append(_word(line[start:index], number, start))
                    start = -1
                if sign == ";":
                    break
                if sign in "()":
                    words.append(Word(sign, number, index + 1, sign))
            elif start < 0:
                start = index
        else:
            if start >= 0:
                words.append(_word(line[start:], number, start))
    return words


def _word(spelling: str, line: int, index: int) -> Word:
    return Word(spelling.lower(), line, index + 1, spelling)


def read(text: str, source: str = "") -> list[Expression]:
    """Return the expressions of a text.

    Raises:
        PlannerSyntaxError: a parenthesis is missing or too many, or too many are inside one another.
    """
    reader = ExpressionReader(source)
    stack: list[tuple[Word | None, list[Expression]]] = [(None, [])]
    for word in words_of(text):
        if word.text == "(":
            stack.append((word, []))
            if len(stack) > MAX_DEPTH:
                raise reader.error(
                    word,
                    f"this is inside {MAX_DEPTH} other parentheses: take it apart, or leave needless ones out",
                )
        elif word.text == ")":
            opened, items = stack.pop()
            if opened is None:
                raise reader.error(word, "this `)` closes nothing: remove it, or open it before")
            stack[-1][1].append(Group(tuple(items), opened.line, opened.column))
        else:
            stack[-1][1].append(word)
    opened, items = stack[-1]
    if opened is not None:
        raise reader.error(opened, "this `(` is never closed")
    return items


class ExpressionReader:
    """Helps to take expressions apart, with errors that name the source."""

    def __init__(self, source: str = "") -> None:
        self.source = source

    def error(self, at: Expression, message: str) -> PlannerSyntaxError:
        """Return an error at the place of an expression."""
        return PlannerSyntaxError(message, line=at.line, column=at.column, source=self.source)

    def group(self, at: Expression, what: str) -> Group:
        """Return an expression that has to be in parentheses."""
        if not isinstance(at, Group):
            raise self.error(at, f"expected {what} in parentheses, found `{at.spelling}`")
        return at

    def word(self, at: Expression, what: str) -> Word:
        """Return an expression that has to be a word."""
        if not isinstance(at, Word):
            raise self.error(at, f"expected {what}, found a group in parentheses")
        return at

    def head(self, group: Group, what: str) -> Word:
        """Return the first word of a group."""
        if not group.items:
            raise self.error(group, f"expected {what}, found `()`")
        return self.word(group.items[0], what)

    def typed(self, items: tuple[Expression, ...], what: str) -> list[tuple[Word, tuple[Word, ...]]]:
        """Return the words of a typed list (`a b - t c - (either u v) d`), each with its types, none for no type."""
        typed: list[tuple[Word, tuple[Word, ...]]] = []
        waiting: list[Word] = []
        index = 0
        while index < len(items):
            word = self.word(items[index], what)
            index += 1
            if word.text != "-":
                waiting.append(word)
                continue
            if index >= len(items):
                raise self.error(word, "a type has to follow `-`")
            if not waiting:
                raise self.error(word, f"{what} has to stand before `-`")
            types = self._types(items[index])
            index += 1
            typed += [(one, types) for one in waiting]
            waiting = []
        return typed + [(one, ()) for one in waiting]

    def _types(self, at: Expression) -> tuple[Word, ...]:
        if isinstance(at, Word):
            return (at,)
        head = self.head(at, "`either`")
        if head.text != "either" or len(at.items) < 2:
            raise self.error(at, "expected a type or `(either …)`")
        return tuple(self.word(one, "a type") for one in at.items[1:])
