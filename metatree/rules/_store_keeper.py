"""What a working memory keeps in a store: what was stated, and which tokens were dealt with.

Derived facts are not written: the productions derive them again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any, Final

from metatree.rules.language.conditions import Production
from metatree.rules.language.values import Fact, Value, from_json, to_json
from metatree.rules.matcher.tokens import Values
from metatree.storage.store import Store

_MAX_INT: Final = 2**63


class StoreKeeper:
    """Writes down the changes of a working memory, in the tables `fact` and `rule_token` of a store.

    One store holds several working memories under different names; each belongs to one process at a time.
    """

    def __init__(self, store: Store, name: str) -> None:
        self._store = store
        self._name = name

    def fact(self, fact: Fact, *, holds: bool, provenance: dict[str, Any] | None) -> None:
        """Note a stated fact, or that it is stated no more."""
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
        """Note that a token is in a state, `committed` or `withdrawn` (and to be removed), or is no more."""
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
        """Return the tokens noted for a production by state, none when its text was another one then."""
        states: dict[str, list[Values]] = {}
        for token, state in self._store.rows(
            "SELECT token, state FROM rule_token WHERE memory = ? AND production = ? AND conditions = ?",
            (self._name, production.name, _checksum(production)),
        ):
            states.setdefault(state, []).append(tuple(from_json(value) for value in json.loads(token)))
        return states

    def forget(self, production: str) -> None:
        """Forget the tokens of a production."""
        self._store.execute(
            "DELETE FROM rule_token WHERE memory = ? AND production = ?", (self._name, production)
        )

    def batch(self) -> AbstractContextManager[None]:
        """Keep everything that is noted inside, or nothing."""
        return self._store.transaction()

    def facts(self) -> Iterator[tuple[Fact, dict[str, Any] | None]]:
        """Yield the facts in the order of their coming, with their provenance."""
        for i, attribute, value, provenance in self._store.rows(
            "SELECT id, attribute, value, provenance FROM fact WHERE memory = ? ORDER BY number",
            (self._name,),
        ):
            fact = (_value(i), _value(attribute), _value(value))
            yield fact, None if provenance is None else json.loads(provenance)


def _column(value: Value) -> str | int | float | bytes:
    if isinstance(value, int) and not -_MAX_INT <= value < _MAX_INT:
        return str(value).encode()
    if isinstance(value, str | int | float):
        return value
    return json.dumps(to_json(value), ensure_ascii=False).encode()


def _value(column: Any) -> Value:
    if isinstance(column, bytes):
        return from_json(json.loads(column))
    value: Value = column
    return value


def _dump(values: Values) -> str:
    return json.dumps([to_json(value) for value in values], ensure_ascii=False, separators=(",", ":"))


def _checksum(production: Production) -> str:
    return hashlib.sha256(str(production).encode()).hexdigest()[:16]
