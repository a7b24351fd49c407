"""A program of facts, productions, schedule and resolver in one text.

    (animal a1 -) (a1 species rabbit)                                       facts
    ((<x> species <s>) -{(species <s> -)} -> (!! species <s> -) "gather")    productions
    schedule {
        a1 = 0;
        main = a1+;
    }
    resolver overriding-self-transition "gather"
    seed 7
    all "gather"                                                            fires for all its tokens at once

The brace that ends a schedule stands alone on its line. With a schedule, the productions that it names fire under
control; others with a right-hand side apply by themselves, and others without one just match.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from metatree.errors import UserError
from metatree.rules.language.conditions import Production
from metatree.rules.language.lexemes import Lexeme, RuleSyntaxError
from metatree.rules.language.text import Parser, lexemes
from metatree.rules.language.values import Fact
from metatree.rules.shell.control import ControlShell
from metatree.rules.shell.knowledge import KnowledgeSource, commit_all
from metatree.rules.shell.resolvers import Resolver, resolver_named
from metatree.rules.shell.schedule import Schedule

_OPENING: Final = re.compile(r"^[ \t]*schedule[ \t]*\{", re.MULTILINE)
_CLOSING: Final = re.compile(r"^[ \t]*\}[ \t]*$", re.MULTILINE)
_SCHEDULE: Final = re.compile(r"^[ \t]*schedule\b", re.MULTILINE)


@dataclass(slots=True)
class Program:
    """What a text says."""

    facts: list[Fact] = field(default_factory=list)
    productions: list[Production] = field(default_factory=list)
    schedule: Schedule | None = None
    resolver: tuple[str, tuple[str, ...]] | None = None
    """Its name and its arguments."""
    seed: int | None = None
    together: set[str] = field(default_factory=set)
    """Productions that fire for all their tokens at once."""

    @classmethod
    def parse(cls, text: str) -> Program:
        """Read a program.

        Raises:
            RuleError: with line and column; a RuleSyntaxError says what was found and what was expected.
        """
        program = cls()
        schedule = None
        opening = _OPENING.search(text)
        closing = None if opening is None else _CLOSING.search(text, opening.end())
        if opening is not None and closing is not None:
            begin, end = opening.end(), closing.start()
            schedule = (text[begin:end], text.count("\n", 0, begin) + 1, opening.end() - opening.start())
            blank = re.sub(r"[^\n]", " ", text[opening.start() : closing.end()])
            text = text[: opening.start()] + blank + text[closing.end() :]
        again = _SCHEDULE.search(text)
        if again is not None:
            line = text.count("\n", 0, again.start()) + 1
            expected = (
                "one schedule only" if schedule else "'schedule {' with a '}' alone on the line that ends it"
            )
            raise RuleSyntaxError(line, 1, "'schedule'", expected)
        program._read(Parser(lexemes(text)))
        if schedule is not None:
            names = [production.name for production in program.productions]
            program.schedule = Schedule.parse(schedule[0], names, line=schedule[1], column=schedule[2] + 1)
        return program

    def _read(self, parser: Parser) -> None:
        mentioned: list[tuple[str, Lexeme]] = []
        names: set[str] = set()
        while (word := parser.peek()).kind != "end":
            if word.kind == "(":
                if parser.begins_production():
                    production = parser.production(default=f"rule {len(self.productions) + 1}")
                    if production.name in names:
                        parser.wrong(
                            word, f"two productions are called {production.name!r}: rename one of them"
                        )
                    names.add(production.name)
                    self.productions.append(production)
                else:
                    self.facts.append(parser.fact())
                continue
            parser.take("word", "a fact, a production, or one of: schedule, resolver, seed, all")
            match word.text:
                case "resolver":
                    name = parser.take("word", "the name of a resolver")
                    texts = _texts(parser)
                    mentioned += texts
                    self.resolver = (name.text, tuple(text for text, _ in texts))
                    try:
                        self.make_resolver()
                    except UserError as exc:
                        parser.wrong(name, str(exc))
                case "seed":
                    seed = parser.value()
                    if not isinstance(seed, int):
                        parser.fail("a whole number", word)
                    self.seed = seed
                case "all":
                    texts = _texts(parser)
                    mentioned += texts
                    self.together.update(text for text, _ in texts)
                case _:
                    parser.fail("a fact, a production, or one of: schedule, resolver, seed, all", word)

        for text, word in mentioned:
            if text not in names:
                known = ", ".join(repr(production.name) for production in self.productions) or "none"
                parser.wrong(word, f"there is no production {text!r}: there are {known}")

    @property
    def controlled(self) -> list[Production]:
        """The productions that fire only when the shell says so."""
        if self.schedule is not None:
            scheduled = {s for arrows in self.schedule.automaton.arrows.values() for s in arrows}
            return [p for p in self.productions if p.name in scheduled]
        return list(self.productions) if self.resolver is not None else []

    @property
    def uncontrolled(self) -> list[Production]:
        """The productions that apply, or just match, by themselves."""
        controlled = {production.name for production in self.controlled}
        return [p for p in self.productions if p.name not in controlled]

    def make_resolver(self) -> Resolver | None:
        """Return the resolver, None when none is named; raises UserError when there is none of this name."""
        return resolver_named(*self.resolver) if self.resolver is not None else None

    def shell(self) -> ControlShell:
        """Return a control shell that runs the program; productions fire for one token, or for all, at a time."""
        source = KnowledgeSource("program", self.controlled)
        for name in self.together & {p.name for p in self.controlled}:
            source.fires(name)(commit_all)
        return ControlShell(
            [source],
            inferences=self.uncontrolled,
            schedule=self.schedule.text if self.schedule is not None else None,
            resolver=self.make_resolver(),
            order=[production.name for production in self.productions],
        )


def _texts(parser: Parser) -> list[tuple[str, Lexeme]]:
    texts = []
    while (word := parser.peek()).kind == "text":
        texts.append((str(parser.value()), word))
    return texts
