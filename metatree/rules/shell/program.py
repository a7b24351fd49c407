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
    newest "dive"                                                           fires for its newest token, not its oldest

The same as TOML, with the texts of conditions and actions:

    facts = ["(a1 species rabbit)"]
    schedule = "a1 = 0; main = a1+;"
    resolver = "overriding-self-transition"           # or a list: its name, then names of productions
    seed = 7
    all = ["gather"]

    [[rules]]
    name = "gather"
    when = "(<x> species <s>) -{(species <s> -)}"
    then = "(!! species <s> -)"
    salience = 10

The brace that ends a schedule stands alone on its line. With a schedule, the productions that it names fire under
control; others with a right-hand side apply by themselves, and others without one just match.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from metatree._util import toml_text
from metatree.errors import UserError
from metatree.rules._working_memory import WorkingMemory
from metatree.rules.language.conditions import Production
from metatree.rules.language.functions import Functions
from metatree.rules.language.lexemes import Lexeme, RuleSyntaxError
from metatree.rules.language.text import Parser, lexemes
from metatree.rules.language.values import Fact, value_text
from metatree.rules.shell.control import ControlShell
from metatree.rules.shell.knowledge import KnowledgeSource, commit_all, commit_newest
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
    newest: set[str] = field(default_factory=set)
    """Productions that fire for their newest token first."""
    functions: Functions = field(default_factory=Functions)
    """What its productions may call."""

    @classmethod
    def parse(cls, text: str, *, functions: Mapping[str, Callable[..., Any]] | None = None) -> Program:
        """Read a program.

        Args:
            functions: name -> a pure function that productions may call, `#name(<x> …)`.

        Raises:
            RuleError: with line and column; a RuleSyntaxError says what was found and what was expected.
        """
        program = cls(functions=Functions(functions))
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
        program._read(Parser(lexemes(text), program.functions))
        if schedule is not None:
            names = [production.name for production in program.productions]
            program.schedule = Schedule.parse(schedule[0], names, line=schedule[1], column=schedule[2] + 1)
        return program

    @classmethod
    def from_toml(cls, text: str, *, functions: Mapping[str, Callable[..., Any]] | None = None) -> Program:
        """Read a program that is written as TOML.

        Raises:
            UserError: it is no TOML, a key is unknown or of another type, or a text in it is out of form.
        """
        return _from_toml(cls(functions=Functions(functions)), text)

    def memory(self) -> WorkingMemory:
        """Return its facts, with its productions applied to them by themselves, without schedule and resolver."""
        memory = WorkingMemory(functions=self.functions.own)
        for production in self.productions:
            memory.add_production(production)
        memory.add_all(self.facts)
        return memory

    def _read(self, parser: Parser) -> None:
        mentioned: list[tuple[str, Lexeme]] = []
        names: set[str] = set()
        while (word := parser.peek()).kind != "end":
            parser.refuse_foreign_construct()
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
            parser.take("word", "a fact, a production, or one of: schedule, resolver, seed, all, newest")
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
                case "all" | "newest":
                    texts = _texts(parser)
                    mentioned += texts
                    named = self.together if word.text == "all" else self.newest
                    named.update(text for text, _ in texts)
                case _:
                    parser.fail(
                        "a fact, a production, or one of: schedule, resolver, seed, all, newest", word
                    )

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
        controlled = {p.name for p in self.controlled}
        for name in controlled & self.newest:
            source.fires(name)(commit_newest)
        for name in controlled & self.together:
            source.fires(name)(commit_all)
        return ControlShell(
            [source],
            inferences=self.uncontrolled,
            schedule=self.schedule.text if self.schedule is not None else None,
            resolver=self.make_resolver(),
            order=[production.name for production in self.productions],
            functions=self.functions.own,
        )


def _texts(parser: Parser) -> list[tuple[str, Lexeme]]:
    texts = []
    while (word := parser.peek()).kind == "text":
        texts.append((str(parser.value()), word))
    return texts


_KEYS: Final[Mapping[str, type]] = {
    "facts": list,
    "rules": list,
    "schedule": str,
    "seed": int,
    "all": list,
    "newest": list,
}
_RULE_KEYS: Final[Mapping[str, type]] = {"name": str, "when": str, "then": str, "salience": int}


def _from_toml(program: Program, text: str) -> Program:
    try:
        data = toml_text.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as exc:
        raise UserError(f"this is no TOML: {exc or 'it is nested too deep'}") from exc
    resolver = data.pop("resolver", None)
    _check_keys(data, _KEYS, "the file")
    for number, one in enumerate(_strings(data, "facts"), start=1):
        with _named(f"fact {number}"):
            parser = _toml_parser(program, one)
            while parser.peek().kind != "end":
                program.facts.append(parser.fact())
    for number, one in enumerate(data.get("rules", ()), start=1):
        what = f"rule {number}"
        if not isinstance(one, dict):
            raise UserError(f"{what} is {one!r}: write [[rules]] and the keys name, when, then")
        _check_keys(one, _RULE_KEYS, what)
        for key in ("name", "when"):
            if key not in one:
                raise UserError(
                    f"{what} has no {key!r}: a rule has name, when, and perhaps then and salience"
                )
        name = value_text(one["name"])
        quoted = name if name.startswith('"') else f'"{name}"'
        source = f"({one['when']}\n -> {one.get('then', '')}\n {quoted} salience {one.get('salience', 0)})"
        with _named(f"{what}, {one['name']!r}"):
            parser = _toml_parser(program, source, column=0)
            production = parser.production(default=what)
            if parser.peek().kind != "end":
                parser.fail("the end of the rule")
        if production.name in {other.name for other in program.productions}:
            raise UserError(f"two rules are called {production.name!r}: rename one of them")
        program.productions.append(production)
    names = [production.name for production in program.productions]
    for key, into in (("all", program.together), ("newest", program.newest)):
        for name in _strings(data, key):
            _check_name(name, names, key)
            into.add(name)
    if resolver is not None:
        parts = [resolver] if isinstance(resolver, str) else resolver
        if not isinstance(parts, list) or not parts or not all(isinstance(part, str) for part in parts):
            raise UserError(
                f"resolver is {resolver!r}: write its name, or a list of its name and names of rules"
            )
        for name in parts[1:]:
            _check_name(name, names, "resolver")
        program.resolver = parts[0], tuple(parts[1:])
        program.make_resolver()
    program.seed = data.get("seed")
    if "schedule" in data:
        with _named("schedule"):
            program.schedule = Schedule.parse(data["schedule"], names)
    return program


def _toml_parser(program: Program, source: str, *, column: int = 1) -> Parser:
    return Parser(lexemes(source, column=column), program.functions)


def _check_keys(data: Mapping[str, Any], keys: Mapping[str, type], what: str) -> None:
    for key, value in data.items():
        if key not in keys:
            raise UserError(f"{what} has the key {key!r}: there are {', '.join(keys)}")
        if type(value) is not keys[key]:
            raise UserError(f"{key} of {what} is {value!r}, and not a {keys[key].__name__}")


def _strings(data: Mapping[str, Any], key: str) -> list[str]:
    for value in data.get(key, ()):
        if not isinstance(value, str):
            raise UserError(f"{key} has {value!r}: write texts")
    return list(data.get(key, ()))


def _check_name(name: str, names: list[str], what: str) -> None:
    if name not in names:
        raise UserError(
            f"{what} names {name!r}, and there is no such rule: there are {', '.join(names) or 'none'}"
        )


@contextmanager
def _named(what: str) -> Iterator[None]:
    """Say in errors which text of a file they are about."""
    try:
        yield
    except UserError as exc:
        raise UserError(f"{what}: {exc}") from exc
