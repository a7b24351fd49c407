"""Permission to call tools that change something: given once for a tool, remembered in the memory of a tree.

A permission is for a tool as it was when the person said yes. One that comes back under the same id with another
description, other parameters, another version or from another place in the code needs a new one.

That is a nuisance with servers that edit their descriptions often, and the only defence against one that swaps a tool.
An answer to "may it be called?" names the tool that was asked for, so that a run that waited a week does not call what
stands in its place. Permissions are small facts, not a table, and an import leaves them out unless it is told
otherwise.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from typing import Any, Final

from metatree.storage.store import Store
from metatree.storage.trust import IMPORTED_RUN
from metatree.tools.tool import Tool
from metatree.trees.layer import Layer

_FACT: Final = "permission:"
_MOST_SHOWN: Final = 4_000
"""Characters of arguments that a person is shown whole."""
_END_CHARS: Final = 300
"""Of each end of a long text, where all of them are more than that."""


@dataclass(frozen=True, slots=True)
class Permission:
    """One tool that may be called without asking again."""

    tool: str
    """Its id."""
    title: str
    description: str
    version: str
    fingerprint: str
    """Hash of all that was known of the tool."""
    who: str
    """Who said so."""
    at: str
    """When, ISO 8601 in UTC."""


def fingerprint_of(tool: Tool) -> str:
    """Return the hash of what a tool says of itself and where it comes from; what it does cannot be known.

    A function may have an attribute `origin` (a text: the command of an MCP server, the address of a service).
    """
    spec = tool.spec
    function = tool.function
    where = [getattr(function, name, "") for name in ("__module__", "__qualname__", "origin")]
    parts = [
        spec.id,
        spec.title,
        spec.description,
        spec.kind,
        spec.version,
        dict(spec.schema),
        *map(str, where),
    ]
    text = json.dumps(parts, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def shown_arguments(arguments: Mapping[str, Any]) -> str:
    """Return the arguments of a call as JSON for the person who is asked: every name, and of long texts both ends.

    What is left out of a text is said where it was. Arguments that are too long even so end with how much is not shown.

    Example:
        >>> shown_arguments({"job": "a" * 5_000}).strip('{":jaob }')
        '… (4,400 more characters) …'
    """
    text = json.dumps(arguments, ensure_ascii=False, sort_keys=True)
    if len(text) > _MOST_SHOWN:
        text = json.dumps(_both_ends(arguments), ensure_ascii=False, sort_keys=True)
    left = len(text) - _MOST_SHOWN
    return text if left <= 0 else f"{text[:_MOST_SHOWN]}… ({left:,} more characters are not shown)"


def _both_ends(value: Any) -> Any:
    if isinstance(value, str) and len(value) > 2 * _END_CHARS:
        between = f"… ({len(value) - 2 * _END_CHARS:,} more characters) …"
        return f"{value[:_END_CHARS]}{between}{value[-_END_CHARS:]}"
    if isinstance(value, Mapping):
        return {_both_ends(key): _both_ends(each) for key, each in value.items()}
    return [_both_ends(each) for each in value] if isinstance(value, list | tuple) else value


class Permissions:
    """The permissions that a memory holds."""

    def __init__(self, store: Store, *, now: Callable[[], float] = time.time) -> None:
        self._store = store
        self._layer = Layer(store)
        self._now = now

    def allows(self, tool: Tool) -> bool:
        """Whether this very tool may be called without asking."""
        mark = fingerprint_of(tool)
        permission = _permission(self._layer.fact(_FACT + mark))
        # What it says is what people were shown of it, before they accepted it from somebody else.
        return permission is not None and (permission.tool, permission.fingerprint) == (tool.id, mark)

    def may_ask(self, run_id: str) -> bool:
        """Whether a person's answer in a run counts, and its board: not in one that was imported or accepted."""
        return not self._layer.has_fact(IMPORTED_RUN + run_id)

    def grant(self, tool: Tool, *, who: str = "unknown") -> Permission:
        """Allow a tool from now on; whoever asked the person calls this."""
        permission = Permission(
            tool.id,
            tool.title,
            tool.description,
            tool.version,
            fingerprint_of(tool),
            who,
            datetime.fromtimestamp(self._now(), UTC).isoformat(timespec="seconds"),
        )
        with self._store.durable():
            self._layer.set_fact(_FACT + permission.fingerprint, asdict(permission))
        return permission

    def all(self) -> list[Permission]:
        """Return all permissions, by tool and time."""
        return sorted(self._by_key().values(), key=lambda each: (each.tool, each.at))

    def _by_key(self) -> dict[str, Permission]:
        kept = {key: _permission(fact) for key, fact in self._layer.facts(_FACT).items()}
        return {key: permission for key, permission in kept.items() if permission is not None}

    def revoke(self, tool: str) -> list[Permission]:
        """Take back all permissions of a tool, by its id or the beginning of a fingerprint of 8 digits or more."""
        revoked = {
            key: each
            for key, each in self._by_key().items()
            if each.tool == tool or (len(tool) >= 8 and each.fingerprint.startswith(tool))
        }
        with self._store.durable(), self._store.transaction():
            for key in revoked:
                self._layer.drop_fact(key)
        return sorted(revoked.values(), key=lambda each: (each.tool, each.at))


def _permission(fact: Any) -> Permission | None:
    """Return a permission as it is kept; None for anything else, which somebody else may have put there."""
    if not isinstance(fact, dict) or fact.keys() != {each.name for each in fields(Permission)}:
        return None
    return Permission(**fact) if all(isinstance(value, str) for value in fact.values()) else None
