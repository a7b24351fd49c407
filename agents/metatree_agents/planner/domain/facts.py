"""Facts as the planner sees them, and the values of variables for which a condition holds."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from metatree.errors import MetatreeError, UserError
from metatree_agents.planner.domain.conditions import Binding, Condition, free_variables, is_variable
from metatree_agents.planner.domain.given import checked_value
from metatree_agents.planner.domain.model import Library

Row = tuple[Any, ...]
Change = tuple[bool, str, Row]
"""Whether a fact is added, its relation, and its arguments."""

MOST_ROWS: Final = 1_000_000
"""How many facts a reader may return at once."""

RelationReader = Callable[..., Iterable[Any]]
"""Reads a dynamic relation live: given its arguments, None for those that are asked for, returns tuples."""


class _FactTable:
    """Facts by relation that are changed in place, with an index for each way in which they were asked for."""

    def __init__(self, rows: Mapping[str, Iterable[Row]]) -> None:
        self.rows: dict[str, set[Row]] = {relation: set(listed) for relation, listed in rows.items()}
        self.indexes: dict[str, dict[tuple[int, tuple[int, ...]], dict[Row, set[Row]]]] = {}
        self.key = 0
        for relation, listed in self.rows.items():
            for row in listed:
                self.key ^= hash((relation, row))

    def change(self, changes: Iterable[Change]) -> list[Change]:
        """Add and delete facts; return what takes that back."""
        undo: list[Change] = []
        for adds, relation, row in changes:
            rows = self.rows.setdefault(relation, set())
            if (row in rows) == adds:
                continue
            undo.append((not adds, relation, row))
            self.key ^= hash((relation, row))
            (rows.add if adds else rows.discard)(row)
            for (length, places), index in self.indexes.get(relation, {}).items():
                if len(row) == length:
                    values = tuple(row[place] for place in places)
                    if adds:
                        index.setdefault(values, set()).add(row)
                    else:
                        index[values].discard(row)
        return undo[::-1]

    def matching(self, relation: str, terms: Row) -> Collection[Row]:
        """Return the facts of a relation that agree with terms, those that are variables aside."""
        rows = self.rows.get(relation)
        if not rows:
            return ()
        places = tuple(place for place, term in enumerate(terms) if not is_variable(term))
        if len(places) == len(terms):
            return (terms,) if terms in rows else ()
        indexes = self.indexes.setdefault(relation, {})
        index = indexes.get((len(terms), places))
        if index is None:
            index = indexes[len(terms), places] = {}
            for row in rows:
                if len(row) == len(terms):
                    index.setdefault(tuple(row[place] for place in places), set()).add(row)
        return index.get(tuple(terms[place] for place in places), ())


class Facts:
    """Facts by relation; a changed copy costs what has changed.

    All copies share one table, which is brought back to an older copy when that is looked at.

    Args:
        library: knows which relations are derived.
        rows: relation -> argument tuples.
        readers: relation -> what reads it live, instead of `rows`.
        step: called for each condition that is solved; it may raise to end that, since relations that are derived from
            each other can take for ever.

    Source: Baker 1978, "Shallow binding in Lisp 1.5" (the table goes to the copy that is used).
    """

    def __init__(
        self,
        library: Library,
        rows: Mapping[str, Iterable[Row]] | None = None,
        readers: Mapping[str, RelationReader] | None = None,
        *,
        step: Callable[[], None] | None = None,
    ) -> None:
        self.library = library
        self.readers = readers or {}
        self.step = step
        self._table: _FactTable | None = _FactTable(rows or {})
        self._next: Facts | None = None
        """Where the table has gone, and what leads back from there."""
        self._back: list[Change] = []

    def changed(self, effects: Iterable[Change], *, step: Callable[[], None] | None = None) -> Facts:
        """Return facts with some added and deleted, and another `step` if one is given; what is both is there."""
        made = Facts.__new__(Facts)
        made.library, made.readers, made._next, made._back = self.library, self.readers, None, []
        made.step = step or self.step
        listed = list(effects)
        made._table = self._current_table()
        self._back = made._table.change(
            [one for one in listed if not one[0]] + [one for one in listed if one[0]]
        )
        self._table, self._next = None, made
        return made

    def _current_table(self) -> _FactTable:
        """Return the table, brought back to what holds here."""
        if self._table is None:
            way, at = [], self
            while at._next is not None:
                way.append(at)
                at = at._next
            for one in reversed(way):
                holder, one._next = one._next, None
                assert holder is not None
                assert holder._table is not None
                one._table, holder._table, holder._next = holder._table, None, one
                holder._back = one._table.change(one._back)
                one._back = []
            assert self._table is not None
        return self._table

    def key(self) -> int:
        """Return a number that tells these facts from others, as good as surely."""
        return self._current_table().key

    def matching(self, relation: str, terms: Row) -> Iterator[Row]:
        """Yield the facts of a relation that agree with terms, those that are variables aside."""
        derived = self.library.relations.get(relation)
        if derived is not None and derived.definition is not None:
            binding = {
                parameter: term
                for parameter, term in zip(derived.parameters, terms, strict=True)
                if not is_variable(term)
            }
            seen = set()
            for solution in self.solutions(derived.definition, binding):
                row = tuple(solution[parameter] for parameter in derived.parameters)
                if row not in seen:
                    seen.add(row)
                    yield row
            return
        reader = self.readers.get(relation)
        if reader is None:
            rows = self._current_table().matching(relation, terms)
            yield from sorted(rows, key=repr) if len(rows) > 1 else tuple(rows)
            return
        for row in _read(relation, reader, terms):
            if len(row) == len(terms) and all(
                is_variable(term) or term == value for term, value in zip(terms, row, strict=True)
            ):
                yield row

    def _count(self, atom: Condition, binding: Binding) -> float:
        """Return how many facts an atom meets; what has to be read or derived comes last."""
        relation = self.library.relations.get(atom[1])
        if atom[1] in self.readers or (relation is not None and relation.definition is not None):
            return float("inf")
        return len(self._current_table().matching(atom[1], _bound(atom[2], binding)))

    def solutions(self, condition: Condition, binding: Binding) -> Iterator[Binding]:
        """Yield the values of all variables of a condition for which it holds, each once."""
        seen: set[Any] = set()
        for solution in self._solve(condition, binding):
            key = tuple(sorted(solution.items(), key=lambda item: item[0]))
            if key not in seen:
                seen.add(key)
                yield solution

    def holds(self, condition: Condition, binding: Binding | None = None) -> bool:
        """Say whether a condition holds for some values of the variables that have none."""
        return next(self._solve(condition, binding or {}), None) is not None

    def _solve(self, condition: Condition, binding: Binding) -> Iterator[Binding]:
        if self.step is not None:
            self.step()
        match condition[0]:
            case "atom":
                terms = _bound(condition[2], binding)
                for row in self.matching(condition[1], terms):
                    solution = dict(binding)
                    if all(
                        not is_variable(term) or solution.setdefault(term, value) == value
                        for term, value in zip(terms, row, strict=True)
                    ):
                        yield solution
            case "and":
                yield from self._all(list(condition[1:]), binding)
            case "or":
                for one in condition[1:]:
                    yield from self._solve(one, binding)
            case "not":
                if not self.holds(condition[1], binding):
                    yield binding
            case "imply":
                if not self.holds(condition[1], binding) or self.holds(condition[2], binding):
                    yield binding
            case "exists":
                outer = {k: v for k, v in binding.items() if k not in {name for name, _ in condition[1]}}
                inner = ("and", *self._ranges(condition), condition[2])
                hidden = {name for name, _ in condition[1]}
                for solution in self._solve(inner, outer):
                    yield {**binding, **{k: v for k, v in solution.items() if k not in hidden}}
            case "forall":
                outer = {k: v for k, v in binding.items() if k not in {name for name, _ in condition[1]}}
                if all(
                    self.holds(condition[2], solution)
                    for solution in self._solve(("and", *self._ranges(condition)), outer)
                ):
                    yield binding
            case "=":
                left, right = (binding.get(t, t) if is_variable(t) else t for t in condition[1:])
                if left == right and not is_variable(left):
                    yield binding
                elif is_variable(left) != is_variable(right):
                    yield (
                        {**binding, str(left): right} if is_variable(left) else {**binding, str(right): left}
                    )
            case "sortof":
                yield from self._solve(("atom", condition[2], (condition[1],)), binding)
            case other:
                raise AssertionError(other)

    def _ranges(self, condition: Condition) -> list[Condition]:
        return [("or", *(("atom", kind, (name,)) for kind in types)) for name, types in condition[1] if types]

    def _all(self, parts: list[Condition], binding: Binding) -> Iterator[Binding]:
        """Solve a conjunction: first what only tests, then what has the fewest facts.

        What only tests waits until its variables have values.
        """
        if not parts:
            yield binding
            return
        least, number = float("inf"), -1
        for n, one in enumerate(parts):
            if not free_variables(one) - binding.keys() or (one[0] == "=" and _one_known(one, binding)):
                number = n
                break
            if one[0] in ("atom", "and", "or", "exists", "sortof"):
                count = self._count(one, binding) if one[0] == "atom" else float("inf")
                if number < 0 or count < least:
                    least, number = count, n
        number = max(number, 0)
        rest = parts[:number] + parts[number + 1 :]
        for solution in self._solve(parts[number], binding):
            yield from self._all(rest, solution)


def _read(relation: str, reader: RelationReader, terms: Row) -> Iterator[Row]:
    """Yield the facts that a reader knows; raises UserError where it fails, or what it returns are no facts."""
    where = f"the reader of relation {relation!r}"
    try:
        given = iter(reader(*(None if is_variable(term) else term for term in terms)))
        for number, one in enumerate(given):
            if number == MOST_ROWS:
                raise UserError(
                    f"{where} returned more than {MOST_ROWS:,} facts: heed the arguments that it is given"
                )
            row = tuple(one) if isinstance(one, tuple | list) else (one,)
            yield tuple([checked_value(value, where) for value in row])
    except MetatreeError:
        raise
    except Exception as exc:
        raise UserError(f"{where} failed: {type(exc).__name__}: {exc}") from exc


def facts_by_relation(listed: Iterable[Sequence[Any]]) -> dict[str, set[Row]]:
    """Return facts by relation from a list of them, each with the relation first."""
    facts: dict[str, set[Row]] = {}
    for name, *terms in listed:
        facts.setdefault(str(name), set()).add(tuple(terms))
    return facts


def _bound(terms: Row, binding: Binding) -> Row:
    return tuple(binding.get(term, term) if is_variable(term) else term for term in terms)


def _one_known(equality: Condition, binding: Binding) -> bool:
    return any(not is_variable(term) or term in binding for term in equality[1:])
