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
from metatree.rules.language.lexemes import Lexeme, LexemeReader, RuleError, cut
from metatree.rules.language.values import MAX_DIGITS
from metatree.rules.shell._automaton import Automaton, Chain, Choice, Regex, Repeat, Symbol, minimal

_TOKEN: Final = re.compile(
    r"""(?P<space>\s+|\#[^\n]*)
    |(?P<number>\d+)
    |(?P<name>[A-Za-z_][\w-]*)
    |(?P<text>"[^"\\]*+(?:\\.[^"\\]*+)*+")
    |(?P<sign>[=;|*+?(){},])
    """,
    re.VERBOSE,
)

_REPEATS: Final[Mapping[str, tuple[int, int | None]]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}


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
        return _ScheduleReader(text, productions, line, column).schedule()

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


class _ScheduleReader(LexemeReader):
    def __init__(self, text: str, productions: Sequence[str], line: int, column: int) -> None:
        expected = "a symbol, a number, or one of = ; | * + ? ( ) { }"
        super().__init__(cut(text, _TOKEN, expected, line=line, column=column))
        self._text = text
        self._productions = list(productions)
        self._symbols: dict[str, str] = {}
        self._expressions: dict[str, Regex] = {}
        self._used: set[str] = set()
        self._defined: dict[str, Lexeme] = {}

    def schedule(self) -> Schedule:
        while self.peek().kind != "end":
            self._definition()
        if "main" not in self._expressions:
            self.wrong(self.peek(), "there is no `main = …;`: it is the expression that the schedule follows")
        unused = [n for n in self._defined if n not in self._used and n != "main"]
        if unused:
            word = self._defined[unused[0]]
            self.wrong(word, f"the symbol {unused[0]!r} is not used: use it, or take it out")
        try:
            automaton = minimal(self._expressions["main"])
        except UserError as exc:
            self.wrong(self._defined["main"], str(exc))
        except RecursionError:  # by symbols that are made of symbols; brackets are counted
            self.wrong(self._defined["main"], "`main` is nested too deep: use fewer symbols made of symbols")
        return Schedule(automaton, self._text, self._symbols)

    def _definition(self) -> None:
        name = self.take("name", "the name of a symbol")
        if name.text in self._defined:
            self.wrong(name, f"the symbol {name.text!r} is defined twice: rename one of them")
        self._defined[name.text] = name
        self.take("=", "'=' after the name")
        word = self.peek()
        if word.kind == "number" or (word.kind == "text" and self.peek(1).kind == ";"):
            self.take()
            production = self._production(word)
            self._symbols[name.text] = production
            self._expressions[name.text] = Symbol(production)
        else:
            self._expressions[name.text] = self._choice()
        self.take(";", "';' after the definition, or more of the expression")

    def _production(self, word: Lexeme) -> str:
        if word.kind == "text":
            name = re.sub(r"\\(.)", r"\1", word.text[1:-1])
            if name not in self._productions:
                known = ", ".join(map(repr, self._productions))
                self.wrong(word, f"there is no production {name!r}: there are {known or 'none'}")
            return name
        number = self._number(word)
        if number >= len(self._productions):
            self.wrong(
                word,
                f"there is no production number {number}: there are {len(self._productions)}, counted from 0",
            )
        return self._productions[number]

    def _choice(self) -> Regex:
        parts = [self._sequence()]
        while self.peek().kind == "|":
            self.take()
            parts.append(self._sequence())
        return parts[0] if len(parts) == 1 else Choice(tuple(parts))

    def _sequence(self) -> Regex:
        parts = []
        while self.peek().kind in ("name", "text", "("):
            parts.append(self._repeated())
        if not parts:
            self.fail("a symbol or '('")
        return parts[0] if len(parts) == 1 else Chain(tuple(parts))

    def _repeated(self) -> Regex:
        part = self._atom()
        while (word := self.peek()).kind in ("{", *_REPEATS):
            self.take()
            part = self._repetition(part, word) if word.kind == "{" else Repeat(part, *_REPEATS[word.kind])
        return part

    def _repetition(self, part: Regex, opening: Lexeme) -> Regex:
        least = self._number(self.take("number", "")) if self.peek().kind == "number" else None
        most = least
        if self.peek().kind == ",":
            self.take()
            most = self._number(self.take("number", "")) if self.peek().kind == "number" else None
        elif least is None:
            self.fail("a number or ','")
        self.take("}", "'}'")
        if least is None and most is None:
            self.wrong(opening, "{,} says nothing: give a number, or use *")
        if most is not None and (least or 0) > most:
            self.wrong(opening, f"{{{least},{most}}} cannot be met: the first number is the smaller one")
        return Repeat(part, least or 0, most)

    def _atom(self) -> Regex:
        word = self.take()
        if word.kind == "(":
            with self.deeper("name parts of the expression"):
                inner = self._choice()
            self.take(")", "')', or more of the expression")
            return inner
        if word.kind == "text":
            return Symbol(self._production(word))
        self._used.add(word.text)
        if word.text not in self._expressions:
            known = ", ".join(self._expressions) or "none"
            self.wrong(word, f"the symbol {word.text!r} is unknown: define it first (known: {known})")
        return self._expressions[word.text]

    def _number(self, word: Lexeme) -> int:
        if len(word.text) > MAX_DIGITS:
            self.wrong(word, f"a number of more than {MAX_DIGITS:,} digits: use a smaller one")
        return int(word.text)

    def wrong(self, at: Lexeme, what: str) -> NoReturn:
        raise ScheduleError(at.line, at.column, f"schedule: {what}")
