"""Facts that fit one pattern, with the indexes that joins look them up by.

An index is a dictionary from the values in some places to the values in the others, which are kept in a dictionary
too: it is ordered, so a run can be repeated, and no bigger than a set. Places with constants are not stored.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import Any

from metatree.rules.language.conditions import Pattern, Var
from metatree.rules.language.values import Fact
from metatree.rules.matcher._code import CHANGE, Code, fresh, together

Places = tuple[int, ...]
Index = dict[Any, Any]
Change = Callable[[Any, Any, Any, int], None]
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
    """The facts of one shape.

    What happens when a fact comes or goes is in functions that are written when they are first called: `add` and
    `remove` do all of it. For a fact that belongs to several memories they are in two halves, since joins look into
    all memories: `insert` into all and then `find` in all, `lose` in all and then `delete` from all.
    """

    add: Change
    remove: Change
    insert: Change
    find: Change
    lose: Change
    delete: Change

    def __init__(self, shape: Shape, facts: Collection[Fact]) -> None:
        self.shape = shape
        self.indexes: dict[Places, Index] = {}
        self.on_add: list[Code] = []
        self.on_remove: list[Code] = []
        self.users = 0
        self.waiting: list[Callable[[], None]] = []
        """Called once, when the first fact comes."""
        self._facts = facts
        self.empty = not facts if shape.places else tuple(shape.constants.values()) not in facts
        """Whether there was no fact since it is known; a join with it finds nothing, and costs nothing."""
        self._statistics: tuple[int, dict[Places, int]] = (-1, {})
        self._only: Fact | None = None
        """The first fact, while it is taken in."""
        self.changed()

    def changed(self) -> None:
        """Have the functions written anew when they are next called, since handlers or indexes changed."""
        find, lose = partial(together, self.on_add), partial(together, self.on_remove)
        insert, delete = self._inserting, self._deleting
        self._lazily("find", find)
        self._lazily("lose", lose)
        self._lazily("delete", delete)
        self._lazily("remove", lambda: together([lose(), delete()]))
        if self.empty:
            self.insert, self.add = self._first_insert, self._first_add
            return
        self._lazily("insert", insert)
        self._lazily("add", lambda: together([insert(), find()]))

    def _lazily(self, name: str, write: Callable[[], Code]) -> None:
        def first(f0: Any, f1: Any, f2: Any, event: int) -> None:
            function = write().compiled()
            setattr(self, name, function)
            function(f0, f1, f2, event)

        setattr(self, name, first)

    def _first_add(self, f0: Any, f1: Any, f2: Any, event: int) -> None:
        self._first_insert(f0, f1, f2, event)
        self.find(f0, f1, f2, event)

    def _first_insert(self, f0: Any, f1: Any, f2: Any, event: int) -> None:
        self.empty, self._only = False, (f0, f1, f2)
        waiting, self.waiting = self.waiting, []
        for tell in waiting:
            tell()
        if self.shape.places and not self.indexes:  # one is kept always: to build it later takes all facts
            self.index(self.shape.places[:1])
        self._only = None
        self.changed()
        self.insert(f0, f1, f2, event)

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

        By no place, its only key is `()`, which stays when no fact is left.
        """
        index = self.indexes.get(by)
        if index is None:
            index = {} if by else {(): {}}
            rest = tuple(p for p in self.shape.places if p not in by)
            for fact in self._rows():
                index.setdefault(_part(fact, by), {})[_part(fact, rest)] = None
            self.empty = not any(index.values())
            self.indexes[by] = index
            self.changed()
        return index

    def keep(self, used: Collection[Places]) -> None:
        """Drop the indexes that are not used any more, but the last."""
        unused = self.indexes.keys() - set(used or list(self.indexes)[:1])
        if unused:
            for by in unused:
                del self.indexes[by]
            self.changed()

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

    def _inserting(self) -> Code:
        """Write what puts a fact into all indexes, without a loop over them."""
        names, lines = {}, []
        for by, index in self.indexes.items():
            name, key, other = self._names(by)
            names[name] = index if by else index[()]
            lines += (
                [f" {name}[{other}] = None"]
                if not by
                else [
                    f" d = {name}.get({key})",
                    f" if d is None: {name}[{key}] = {{{other}: None}}",
                    f" else: d[{other}] = None",
                ]
            )
        return Code(CHANGE, "\n".join(lines) or " pass", names)

    def _deleting(self) -> Code:
        """Write what takes a fact out of all indexes."""
        names, lines = {}, []
        for by, index in self.indexes.items():
            name, key, other = self._names(by)
            names[name] = index if by else index[()]
            lines += (
                [f" del {name}[{other}]"]
                if not by
                else [
                    f" d = {name}[{key}]",
                    f" del d[{other}]",
                    f" if not d: del {name}[{key}]",
                ]
            )
        return Code(CHANGE, "\n".join(lines) or " pass", names)

    def _names(self, by: Places) -> tuple[str, str, str]:
        """Return a name for an index, and the expressions for the two parts of a fact."""
        return fresh(), places_text(by), places_text(tuple(p for p in self.shape.places if p not in by))


def _part(fact: Fact, places: Places) -> Any:
    return fact[places[0]] if len(places) == 1 else tuple(fact[p] for p in places)


def places_text(places: Places) -> str:
    """Return the expression for the values in some places of a fact: bare for one, a tuple otherwise."""
    return f"f{places[0]}" if len(places) == 1 else "(" + ", ".join(f"f{p}" for p in places) + ")"
