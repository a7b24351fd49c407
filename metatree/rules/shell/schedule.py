"""The schedule: a regular expression over productions that says which may fire next.

    # define symbols
    a1 = 0;                  the production with this number, from 0
    a2 = "start trip";       or with this name
    pair = a1 a2?;           an expression
    main = pair+ (a1 | a2){2,3};

Operators: `|`, nothing (one after the other), `* + ?`, `{n} {n,} {,n} {n,m}`, brackets. `#` begins a comment.

Source: the grammar of the sample blackboard on rete-next (Sfouflis).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NoReturn

from metatree.errors import UserError
from metatree.rules.language.text import MAX_DEPTH, MAX_DIGITS, Lexeme, RuleError, RuleSyntaxError
from metatree.rules.shell._automaton import Automaton, Chain, Choice, Regex, Repeat, Symbol, minimal

_TOKEN: Final = re.compile(
    r"""(?P<space>\s+|\#[^\n]*)
    |(?P<number>\d+)
    |(?P<name>[A-Za-z_][\w-]*)
    |(?P<text>"(?:[^"\\]|\\.)*")
    |(?P<sign>[=;|*+?(){},])
    """,
    re.VERBOSE,
)


class ScheduleError(RuleError):
    """A schedule makes no sense for these productions."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """Which production may fire when.

    Example:
        >>> schedule = Schedule.parse("a = 0; b = 1; main = a+ b;", ["gather", "decide"])
        >>> schedule.allowed(1), schedule.allowed(2), schedule.automaton.accepting
        ({'gather': 2}, {'gather': 2, 'decide': 3}, frozenset({3}))
    """

    automaton: Automaton
    """Its symbols are names of productions."""
    text: str
    symbols: Mapping[str, str]
    """Symbol of the text -> name of its production."""

    @classmethod
    def parse(cls, text: str, productions: Sequence[str], *, line: int = 1, column: int = 1) -> Schedule:
        """Read a schedule and check it.

        Args:
            productions: their names; a number in the text is a place in this list.
            line, column: the place that the text begins at, for errors.

        Raises:
            RuleSyntaxError: with line, column, what was found and what was expected.
            ScheduleError: a symbol is unknown or unused, there is no `main`, or no end can be reached.
        """
        return _Reader(text, productions, line, column).schedule()

    @classmethod
    def free(cls, productions: Sequence[str]) -> Schedule:
        """Return the schedule that allows every production at any time, and may always end."""
        arrows = {1: dict.fromkeys(productions, 1)}
        return cls(Automaton(arrows, frozenset([1])), "", {})

    def allowed(self, state: int) -> dict[str, int]:
        """Return the productions that may fire in a state, with the state that each leads to."""
        return self.automaton.allowed(state)

    def graphviz(self) -> str:
        """Return a picture in the DOT language."""
        return self.automaton.graphviz()

    def mermaid(self) -> str:
        """Return a picture as a Mermaid state diagram."""
        return self.automaton.mermaid()


class _Reader:
    def __init__(self, text: str, productions: Sequence[str], line: int, column: int) -> None:
        self._text = text
        self._productions = list(productions)
        self._words = _words(text, line, column)
        self._at = 0
        self._depth = 0
        self._symbols: dict[str, str] = {}
        self._expressions: dict[str, Regex] = {}
        self._used: set[str] = set()
        self._defined: dict[str, Lexeme] = {}

    def schedule(self) -> Schedule:
        while self._peek().kind != "end":
            self._definition()
        if "main" not in self._expressions:
            self._wrong(
                self._peek(), "there is no `main = …;`: it is the expression that the schedule follows"
            )
        unused = [n for n in self._defined if n not in self._used and n != "main"]
        if unused:
            word = self._defined[unused[0]]
            self._wrong(word, f"the symbol {unused[0]!r} is not used: use it, or take it out")
        try:
            automaton = minimal(self._expressions["main"])
        except UserError as exc:
            self._wrong(self._defined["main"], str(exc))
        except RecursionError:  # by symbols that are made of symbols; brackets are counted
            self._wrong(self._defined["main"], "`main` is nested too deep: use fewer symbols made of symbols")
        return Schedule(automaton, self._text, self._symbols)

    def _definition(self) -> None:
        name = self._take("name", "the name of a symbol")
        if name.text in self._defined:
            self._wrong(name, f"the symbol {name.text!r} is defined twice: rename one of them")
        self._defined[name.text] = name
        self._take("=", "'=' after the name")
        word = self._peek()
        if word.kind == "number" or (word.kind == "text" and self._peek(1).kind == ";"):
            self._at += 1
            production = self._production(word)
            self._symbols[name.text] = production
            self._expressions[name.text] = Symbol(production)
        else:
            self._expressions[name.text] = self._choice()
        self._take(";", "';' after the definition, or more of the expression")

    def _production(self, word: Lexeme) -> str:
        if word.kind == "text":
            name = re.sub(r"\\(.)", r"\1", word.text[1:-1])
            if name not in self._productions:
                known = ", ".join(map(repr, self._productions))
                self._wrong(word, f"there is no production {name!r}: there are {known or 'none'}")
            return name
        number = self._number(word)
        if number >= len(self._productions):
            self._wrong(
                word,
                f"there is no production number {number}: there are {len(self._productions)}, counted from 0",
            )
        return self._productions[number]

    def _choice(self) -> Regex:
        parts = [self._sequence()]
        while self._peek().kind == "|":
            self._at += 1
            parts.append(self._sequence())
        return parts[0] if len(parts) == 1 else Choice(tuple(parts))

    def _sequence(self) -> Regex:
        parts = []
        while self._peek().kind in ("name", "text", "("):
            parts.append(self._repeated())
        if not parts:
            self._fail("a symbol or '('")
        return parts[0] if len(parts) == 1 else Chain(tuple(parts))

    def _repeated(self) -> Regex:
        part = self._atom()
        while (word := self._peek()).kind in ("*", "+", "?", "{"):
            self._at += 1
            match word.kind:
                case "*":
                    part = Repeat(part, 0, None)
                case "+":
                    part = Repeat(part, 1, None)
                case "?":
                    part = Repeat(part, 0, 1)
                case _:
                    part = self._counted(part, word)
        return part

    def _counted(self, part: Regex, opening: Lexeme) -> Regex:
        least = self._number(self._take("number", "")) if self._peek().kind == "number" else None
        most = least
        if self._peek().kind == ",":
            self._at += 1
            most = self._number(self._take("number", "")) if self._peek().kind == "number" else None
        elif least is None:
            self._fail("a number or ','")
        self._take("}", "'}'")
        if least is None and most is None:
            self._wrong(opening, "{,} says nothing: give a number, or use *")
        if most is not None and (least or 0) > most:
            self._wrong(opening, f"{{{least},{most}}} cannot be met: the first number is the smaller one")
        return Repeat(part, least or 0, most)

    def _atom(self) -> Regex:
        word = self._peek()
        self._at += 1
        if word.kind == "(":
            self._depth += 1
            if self._depth > MAX_DEPTH:
                self._wrong(
                    word, f"brackets are nested more than {MAX_DEPTH} deep: name parts of the expression"
                )
            inner = self._choice()
            self._depth -= 1
            self._take(")", "')', or more of the expression")
            return inner
        if word.kind == "text":
            return Symbol(self._production(word))
        self._used.add(word.text)
        if word.text not in self._expressions:
            known = ", ".join(self._expressions) or "none"
            self._wrong(word, f"the symbol {word.text!r} is unknown: define it first (known: {known})")
        return self._expressions[word.text]

    def _peek(self, ahead: int = 0) -> Lexeme:
        return self._words[min(self._at + ahead, len(self._words) - 1)]

    def _take(self, kind: str, expected: str) -> Lexeme:
        if self._peek().kind != kind:
            self._fail(expected)
        self._at += 1
        return self._words[self._at - 1]

    def _fail(self, expected: str) -> NoReturn:
        word = self._peek()
        raise RuleSyntaxError(word.line, word.column, str(word), expected)

    def _number(self, word: Lexeme) -> int:
        if len(word.text) > MAX_DIGITS:
            self._wrong(word, f"a number of more than {MAX_DIGITS:,} digits: use a smaller one")
        return int(word.text)

    def _wrong(self, at: Lexeme, what: str) -> NoReturn:
        raise ScheduleError(at.line, at.column, f"schedule: {what}")


def _words(text: str, line: int, column: int) -> list[Lexeme]:
    found: list[Lexeme] = []
    position, start = 0, 1 - column
    while position < len(text):
        match = _TOKEN.match(text, position)
        column = position - start + 1
        if match is None:
            raise RuleSyntaxError(
                line, column, repr(text[position]), "a symbol, a number, or one of = ; | * + ? ( ) { }"
            )
        kind, word = str(match.lastgroup), match.group()
        if kind != "space":
            found.append(Lexeme(word if kind == "sign" else kind, word, line, column))
        line += word.count("\n")
        if "\n" in word:
            start = position + word.rindex("\n") + 1
        position = match.end()
    found.append(Lexeme("end", "", line, len(text) - start + 1))
    return found
