"""Facts that fit one pattern, with the indexes that joins look them up by.

An index is a dictionary from the values in some places to the values in the others, which are kept in a dictionary
too: it is ordered, so a run can be repeated, and no bigger than a set. Places with constants are not stored.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any

from metatree.rules.language.conditions import Pattern, Var
from metatree.rules.language.values import Fact

Places = tuple[int, ...]
Index = dict[Any, Any]
Handler = Callable[[Any, Any, Any, int], None]
"""Called with the three values of a fact and the number of the event."""


def variable_at(pattern: Pattern, place: int) -> str:
    """Return the name of the variable in a place."""
    term = pattern.terms[place]
    assert isinstance(term, Var)
    return term.name


class Shape:
    """What a pattern asks of a fact, without the names of its variables.

    Two patterns of one shape share one memory: `(<x> on <y>)` and `(<a> on <b>)`.
    """

    __slots__ = ("constants", "equal", "key", "mask", "places")

    def __init__(self, pattern: Pattern) -> None:
        first: dict[str, int] = {}
        self.constants: dict[int, Any] = {}
        self.equal: list[tuple[int, int]] = []
        """Places that hold the same value, since they are the same variable."""
        for place, term in enumerate(pattern.terms):
            if not isinstance(term, Var):
                self.constants[place] = term
            elif term.name in first:
                self.equal.append((first[term.name], place))
            else:
                first[term.name] = place
        self.places: Places = tuple(first.values())
        """The places that vary, each variable once."""
        self.mask: Places = tuple(self.constants)
        self.key = (tuple(self.constants.items()), tuple(self.equal))


class Alpha:
    """The facts of one shape."""

    def __init__(self, shape: Shape, facts: Collection[Fact]) -> None:
        self.shape = shape
        self.indexes: dict[Places, Index] = {}
        self.on_add: list[Handler] = []
        self.on_remove: list[Handler] = []
        self.users = 0
        self.waiting: list[Callable[[], None]] = []
        """Called once, when the first fact comes."""
        self._facts = facts
        self.empty = not facts if shape.places else tuple(shape.constants.values()) not in facts
        """Whether there was no fact since it is known; a join with it finds nothing, and costs nothing."""
        self._statistics: tuple[int, dict[Places, int]] = (-1, {})
        self._only: Fact | None = None
        """The first fact, while it is taken in."""
        self.insert: Callable[[Any, Any, Any], None] = self._first_insert if self.empty else _no_op
        self.delete: Callable[[Any, Any, Any], None] = _no_op
        self._insert: Callable[[Any, Any, Any], None] = _no_op

    def _first_insert(self, f0: Any, f1: Any, f2: Any) -> None:
        if self.shape.equal and not self.fits((f0, f1, f2)):
            return
        self.empty, self._only = False, (f0, f1, f2)
        waiting, self.waiting = self.waiting, []
        for tell in waiting:
            tell()
        if self.shape.places and not self.indexes:  # one is kept always: to build it later takes all facts
            self.index(self.shape.places[:1])
        self._only = None
        self.insert = self._insert
        self.insert(f0, f1, f2)

    def fits(self, fact: Fact) -> bool:
        """Say whether a fact belongs here."""
        return all(fact[p] == c for p, c in self.shape.constants.items()) and all(
            fact[p] == fact[q] for p, q in self.shape.equal
        )

    def matching(self) -> Iterator[Fact]:
        """Yield the facts that belong here from all there are."""
        return (fact for fact in self._facts if self.fits(fact))

    def index(self, by: Places) -> Index:
        """Return the index by some of the varying places; it is built when it is first asked for.

        By no place, its only key is `()`.
        """
        index = self.indexes.get(by)
        if index is None:
            index = {}
            rest = tuple(p for p in self.shape.places if p not in by)
            for fact in self._rows():
                index.setdefault(_part(fact, by), {})[_part(fact, rest)] = None
            self.empty = not index
            self.indexes[by] = index
            self._generate()
        return index

    def keep(self, used: Collection[Places]) -> None:
        """Drop the indexes that are not used any more, but the last."""
        unused = self.indexes.keys() - set(used or list(self.indexes)[:1])
        if unused:
            for by in unused:
                del self.indexes[by]
            self._generate()

    def distinct(self, by: Places, *, at: int) -> int:
        """Return about how many different values there are in some places, as of the given number of facts in all."""
        if self.empty:
            return 0
        if (
            not at / 2 <= self._statistics[0] <= at
        ):  # counting costs what there is, so it is not done for each handler
            self._statistics = (at, {})
        known = self._statistics[1]
        if by not in known:
            if by in self.indexes and by:
                known[by] = len(self.indexes[by])
            else:
                known[by] = len({_part(fact, by) for fact in self._rows()})
        return known[by]

    def _rows(self) -> Iterator[Fact]:
        """Yield the facts here from an index when there is one: there may be far fewer than in all."""
        if self._only is not None:
            return iter([self._only])
        for by, index in self.indexes.items():
            rest = tuple(p for p in self.shape.places if p not in by)
            return self._rows_of(by, rest, index)
        return self.matching()

    def _rows_of(self, by: Places, rest: Places, index: Index) -> Iterator[Fact]:
        row: list[Any] = [self.shape.constants.get(p) for p in range(3)]
        for key, others in index.items():
            for place, value in zip(by, key if len(by) > 1 else (key,), strict=False):
                row[place] = value
            for other in others:
                for place, value in zip(rest, other if len(rest) > 1 else (other,), strict=False):
                    row[place] = value
                for first, second in self.shape.equal:
                    row[second] = row[first]
                yield row[0], row[1], row[2]

    def _generate(self) -> None:
        """Write the two functions that keep all indexes, without a loop over them."""
        add, remove = ["def insert(f0, f1, f2):"], ["def delete(f0, f1, f2):"]
        for lines in (add, remove):
            if self.shape.equal:
                test = " and ".join(f"f{p} == f{q}" for p, q in self.shape.equal)
                lines.append(f" if not ({test}): return")
        names: dict[str, Any] = {}
        for number, (by, index) in enumerate(self.indexes.items()):
            rest = tuple(p for p in self.shape.places if p not in by)
            names[f"index{number}"] = index
            key, other = places_text(by), places_text(rest)
            add += [
                f" d = index{number}.get({key})",
                f" if d is None: index{number}[{key}] = {{{other}: None}}",
                f" else: d[{other}] = None",
            ]
            remove += [
                f" d = index{number}[{key}]",
                f" if len(d) == 1: del index{number}[{key}]",
                f" else: del d[{other}]",
            ]
        exec("\n".join([*add, " return", *remove, " return"]), names)
        self._insert, self.delete = names["insert"], names["delete"]
        self.insert = self._first_insert if self.empty else self._insert


def _no_op(f0: Any, f1: Any, f2: Any) -> None:
    return


def _part(fact: Fact, places: Places) -> Any:
    return fact[places[0]] if len(places) == 1 else tuple(fact[p] for p in places)


def places_text(places: Places) -> str:
    """Return the expression for the values in some places of a fact: bare for one, a tuple otherwise."""
    return f"f{places[0]}" if len(places) == 1 else "(" + ", ".join(f"f{p}" for p in places) + ")"
