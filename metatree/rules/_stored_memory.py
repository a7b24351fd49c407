"""A working memory in a store: what was stated survives its process, and so does which tokens were dealt with.

Derived facts are not written: the productions derive them again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any, Final

from metatree.rules._working_memory import WorkingMemory
from metatree.rules.language.conditions import Production
from metatree.rules.language.values import Fact, Value, from_json, to_json
from metatree.rules.matcher.tokens import Values
from metatree.storage.store import Store

_MAX_INT: Final = 2**63


class StoreKeeper:
    """Implements `Keeper` in the tables `fact` and `rule_token` of a store.

    One store holds several working memories under different names; each belongs to one process at a time.
    """

    def __init__(self, store: Store, name: str) -> None:
        self._store = store
        self._name = name

    def fact(self, fact: Fact, *, holds: bool, provenance: dict[str, Any] | None) -> None:
        places = [_column(value) for value in fact]
        if holds:
            self._store.execute(
                "INSERT INTO fact(memory, id, attribute, value, provenance) VALUES (?, ?, ?, ?, ?)"
                " ON CONFLICT DO UPDATE SET provenance = excluded.provenance",
                (self._name, *places, None if provenance is None else json.dumps(provenance)),
            )
        else:
            self._store.execute(
                "DELETE FROM fact WHERE memory = ? AND id = ? AND attribute = ? AND value = ?",
                (self._name, *places),
            )

    def token(self, production: Production, values: Values, state: str, *, holds: bool) -> None:
        token = _dump(values)
        if holds:
            self._store.execute(
                "INSERT OR REPLACE INTO rule_token(memory, production, conditions, token, state)"
                " VALUES (?, ?, ?, ?, ?)",
                (self._name, production.name, _checksum(production), token, state),
            )
        else:
            self._store.execute(
                "DELETE FROM rule_token WHERE memory = ? AND production = ? AND token = ? AND state = ?",
                (self._name, production.name, token, state),
            )

    def states(self, production: Production) -> dict[str, list[Values]]:
        found: dict[str, list[Values]] = {}
        for token, state in self._store.rows(
            "SELECT token, state FROM rule_token WHERE memory = ? AND production = ? AND conditions = ?",
            (self._name, production.name, _checksum(production)),
        ):
            found.setdefault(state, []).append(tuple(from_json(value) for value in json.loads(token)))
        return found

    def forget(self, production: str) -> None:
        self._store.execute(
            "DELETE FROM rule_token WHERE memory = ? AND production = ?", (self._name, production)
        )

    def batch(self) -> AbstractContextManager[None]:
        return self._store.transaction()

    def facts(self) -> Iterator[tuple[Fact, dict[str, Any] | None]]:
        """Yield the facts in the order of their coming, with their provenance."""
        for i, attribute, value, provenance in self._store.rows(
            "SELECT id, attribute, value, provenance FROM fact WHERE memory = ? ORDER BY number",
            (self._name,),
        ):
            fact = (_value(i), _value(attribute), _value(value))
            yield fact, None if provenance is None else json.loads(provenance)


def open_memory(store: Store, name: str = "main") -> WorkingMemory:
    """Return a working memory that lives in a store, with the facts that are in it.

    A call that has returned is kept, whatever happens to the process. Productions are code, not data: add them again,
    and each finds its tokens as they were, those to add and to remove, and those that were dealt with.
    """
    keeper = StoreKeeper(store, name)
    memory = WorkingMemory(keeper=keeper)
    memory.take_in(keeper.facts())
    return memory


def _column(value: Value) -> str | int | float | bytes:
    if isinstance(value, int) and not -_MAX_INT <= value < _MAX_INT:
        return str(value).encode()
    if isinstance(value, str | int | float):
        return value
    return json.dumps(to_json(value), ensure_ascii=False).encode()


def _value(column: Any) -> Value:
    if isinstance(column, bytes):
        return from_json(json.loads(column))
    found: Value = column
    return found


def _dump(values: Values) -> str:
    return json.dumps([to_json(value) for value in values], ensure_ascii=False, separators=(",", ":"))


def _checksum(production: Production) -> str:
    return hashlib.sha256(str(production).encode()).hexdigest()[:16]
