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
from metatree.rules.conditions import Production
from metatree.rules.control import ControlShell
from metatree.rules.knowledge import KnowledgeSource, commit_all
from metatree.rules.resolvers import Resolver, resolver_named
from metatree.rules.schedule import Schedule
from metatree.rules.text import Parser, RuleSyntaxError, lexemes
from metatree.rules.values import Fact

_SCHEDULE: Final = re.compile(
    r"^[ \t]*schedule[ \t]*\{(?P<body>.*?)^[ \t]*\}[ \t]*$", re.MULTILINE | re.DOTALL
)
_OPENED: Final = re.compile(r"^[ \t]*schedule\b", re.MULTILINE)


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
            RuleSyntaxError: with line, column, what was found and what was expected.
            UserError: the schedule or the resolver makes no sense.
        """
        program = cls()
        schedule = None
        found = _SCHEDULE.search(text)
        if found is not None:
            line = text.count("\n", 0, found.start("body")) + 1
            schedule = (found.group("body"), line)
            text = text[: found.start()] + re.sub(r"[^\n]", " ", found.group()) + text[found.end() :]
        again = _OPENED.search(text)
        if again is not None:
            line = text.count("\n", 0, again.start()) + 1
            expected = (
                "one schedule only" if schedule else "'schedule {' with a '}' alone on the line that ends it"
            )
            raise RuleSyntaxError(line, 1, "'schedule'", expected)
        program._read(Parser(lexemes(text)))
        if schedule is not None:
            names = [production.name for production in program.productions]
            program.schedule = Schedule.parse(schedule[0], names, line=schedule[1])
        program._check()
        return program

    def _read(self, parser: Parser) -> None:
        while (word := parser.peek()).kind != "end":
            if word.kind == "(":
                if parser.begins_production():
                    self.productions.append(parser.production(default=f"rule {len(self.productions) + 1}"))
                else:
                    self.facts.append(parser.fact())
                continue
            parser.take("word", "a fact, a production, or one of: schedule, resolver, seed, all")
            match word.text:
                case "resolver":
                    name = parser.take("word", "the name of a resolver").text
                    self.resolver = (name, _texts(parser))
                case "seed":
                    seed = parser.value()
                    if not isinstance(seed, int):
                        parser.fail("a whole number", word)
                    self.seed = seed
                case "all":
                    self.together.update(_texts(parser))
                case _:
                    parser.fail("a fact, a production, or one of: schedule, resolver, seed, all", word)

    def _check(self) -> None:
        names = [production.name for production in self.productions]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise UserError(f"two productions are called {twice!r}: rename one of them")
        mentioned = set(self.together) | set(self.resolver[1] if self.resolver else ())
        unknown = sorted(mentioned - set(names))
        if unknown:
            raise UserError(f"there is no production {unknown[0]!r}: there are {', '.join(map(repr, names))}")
        self.make_resolver()

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


def _texts(parser: Parser) -> tuple[str, ...]:
    found = []
    while parser.peek().kind == "text":
        found.append(str(parser.value()))
    return tuple(found)
