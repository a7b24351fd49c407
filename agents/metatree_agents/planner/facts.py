"""Facts as the planner sees them, and the values of variables for which a condition holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from metatree_agents.planner.conditions import Binding, Condition, free_variables, is_variable
from metatree_agents.planner.model import Library

Reader = Callable[..., Iterable[Any]]
"""Reads a dynamic relation live: given its arguments, None for those that are asked for, returns tuples."""


class Facts:
    """Facts by relation; a changed copy shares what did not change.

    Args:
        library: knows which relations are derived.
        rows: relation -> argument tuples.
        readers: relation -> what reads it live, instead of `rows`.
    """

    def __init__(
        self,
        library: Library,
        rows: Mapping[str, Iterable[tuple[Any, ...]]] | None = None,
        readers: Mapping[str, Reader] | None = None,
    ) -> None:
        self.library = library
        self.rows: dict[str, frozenset[tuple[Any, ...]]] = {k: frozenset(v) for k, v in (rows or {}).items()}
        self.readers = readers or {}

    def changed(self, effects: Iterable[tuple[bool, str, tuple[Any, ...]]]) -> Facts:
        """Return facts with some added and deleted; what is both is there."""
        made = Facts.__new__(Facts)
        made.library, made.readers, made.rows = self.library, self.readers, dict(self.rows)
        listed = list(effects)
        for adds in (False, True):
            for sign, relation, terms in listed:
                if sign == adds:
                    before = made.rows.get(relation, frozenset())
                    made.rows[relation] = before | {terms} if adds else before - {terms}
        return made

    def key(self) -> frozenset[tuple[str, frozenset[tuple[Any, ...]]]]:
        """Return what tells these facts from others."""
        return frozenset((name, rows) for name, rows in self.rows.items() if rows)

    def matching(self, relation: str, terms: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
        """Yield the facts of a relation that agree with terms, those that are variables aside."""
        derived = self.library.relations.get(relation)
        if derived is not None and derived.definition is not None:
            binding = {
                parameter: term
                for parameter, term in zip(derived.parameters, terms, strict=True)
                if not is_variable(term)
            }
            seen = set()
            for found in self.solutions(derived.definition, binding):
                row = tuple(found[parameter] for parameter in derived.parameters)
                if row not in seen:
                    seen.add(row)
                    yield row
            return
        reader = self.readers.get(relation)
        if reader is not None:
            asked = (None if is_variable(term) else term for term in terms)
            rows: Iterable[tuple[Any, ...]] = (
                tuple(row) if isinstance(row, tuple | list) else (row,) for row in reader(*asked)
            )
        else:
            rows = self.rows.get(relation, frozenset())
            if not any(is_variable(term) for term in terms):
                if terms in rows:
                    yield terms
                return
            rows = sorted(rows, key=repr)
        for row in rows:
            if len(row) == len(terms) and all(
                is_variable(term) or term == value for term, value in zip(terms, row, strict=True)
            ):
                yield row

    def solutions(self, condition: Condition, binding: Binding) -> Iterator[Binding]:
        """Yield the values of all variables of a condition for which it holds, each once."""
        seen: set[Any] = set()
        for found in self._solve(condition, binding):
            key = tuple(sorted(found.items(), key=lambda item: item[0]))
            if key not in seen:
                seen.add(key)
                yield found

    def holds(self, condition: Condition, binding: Binding | None = None) -> bool:
        """Say whether a condition holds for some values of the variables that have none."""
        return next(self._solve(condition, binding or {}), None) is not None

    def _solve(self, condition: Condition, binding: Binding) -> Iterator[Binding]:
        match condition[0]:
            case "atom":
                terms = tuple(binding.get(t, t) if is_variable(t) else t for t in condition[2])
                for row in self.matching(condition[1], terms):
                    found = dict(binding)
                    if all(
                        not is_variable(term) or found.setdefault(term, value) == value
                        for term, value in zip(terms, row, strict=True)
                    ):
                        yield found
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
                for found in self._solve(inner, outer):
                    yield {**binding, **{k: v for k, v in found.items() if k not in hidden}}
            case "forall":
                outer = {k: v for k, v in binding.items() if k not in {name for name, _ in condition[1]}}
                if all(
                    self.holds(condition[2], found)
                    for found in self._solve(("and", *self._ranges(condition)), outer)
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
        """Solve a conjunction: what only tests waits until its variables have values."""
        if not parts:
            yield binding
            return
        number = next(
            (
                n
                for n, one in enumerate(parts)
                if one[0] in ("atom", "and", "or", "exists", "sortof")
                or not free_variables(one) - binding.keys()
                or (one[0] == "=" and _one_known(one, binding))
            ),
            0,
        )
        rest = parts[:number] + parts[number + 1 :]
        for found in self._solve(parts[number], binding):
            yield from self._all(rest, found)


def _one_known(equality: Condition, binding: Binding) -> bool:
    return any(not is_variable(term) or term in binding for term in equality[1:])
