"""Modes: how a server is asked for answers in a form, found out once for each server and model, and remembered."""

from __future__ import annotations

import logging
import threading
from dataclasses import asdict, dataclass, replace
from enum import StrEnum

from metatree_routers.wrappers.disk_cache import Cache, key_of

_log = logging.getLogger("metatree")
_REMEMBERED_S = 30 * 86_400.0


class Mode(StrEnum):
    """What makes a model keep to a form."""

    SCHEMA = "json_schema"
    """`response_format` with a JSON schema; the server keeps the model to it."""
    TOOLS = "tools"
    """A function that must be called; its arguments are the answer."""
    PLAIN = "json"
    """The prompt alone; the answer is looked for in the text."""


ORDER = (Mode.SCHEMA, Mode.TOOLS, Mode.PLAIN)


@dataclass(frozen=True, slots=True)
class ServerCapabilities:
    """The form in which one model of one server is asked."""

    mode: Mode = Mode.SCHEMA
    bounds: bool = True
    """Whether schemas bound the lengths of texts and lists; some servers reject such schemas."""
    temperature: bool = True
    """Whether a temperature is sent; reasoning models reject it."""
    limit: str = "max_tokens"
    """Name of the parameter that bounds an answer: `max_tokens` or `max_completion_tokens`."""


class CapabilityDiscovery:
    """Finds out the capabilities of one model on one server; safe to share between threads.

    A mode that the server rejects, or in which its first answer has no form at all, gives way to the next. The first
    answer in form settles the matter, on disk too.

    Args:
        key: what tells servers and models apart.
        first: where to begin when nothing is remembered.
        cache: None remembers nothing beyond this object.
    """

    def __init__(self, *key: str, first: ServerCapabilities, cache: Cache | None) -> None:
        self._key = key_of("capabilities", *key)
        self._cache = cache
        self._lock = threading.Lock()
        self._current = first
        self._proven = False
        stored = None if cache is None else cache.get(self._key)
        if stored is not None:
            try:
                self._current = ServerCapabilities(**{**stored, "mode": Mode(stored["mode"])})
                self._proven = True
            except (KeyError, TypeError, ValueError):
                _log.debug("what is remembered of a server is not usable; it is found out again")

    @property
    def current(self) -> ServerCapabilities:
        """The capabilities to ask in."""
        return self._current

    @property
    def proven(self) -> bool:
        """Whether an answer in form has come in the current capabilities."""
        return self._proven

    def worked(self, capabilities: ServerCapabilities) -> None:
        """Say that an answer in form came."""
        with self._lock:
            if self._proven or capabilities != self._current:
                return
            self._proven = True
        if self._cache is not None:
            self._cache.set(self._key, asdict(capabilities), seconds=_REMEMBERED_S)

    def formless(self, capabilities: ServerCapabilities) -> None:
        """Say that an answer had no form at all."""
        with self._lock:
            if capabilities == self._current and not self._proven:
                self._next_mode()

    def rejected(self, capabilities: ServerCapabilities, status: int, message: str) -> bool:
        """Say that the server rejected a request; return whether something can be changed about its form."""
        with self._lock:
            if capabilities != self._current:
                return True  # another call has found out meanwhile
            changed = self._adapt(message.casefold(), status)
            if changed:
                self._proven = False
            return changed

    def _adapt(self, message: str, status: int) -> bool:
        now = self._current
        if "max_completion_tokens" in message or "max_tokens" in message:
            other = "max_tokens" if now.limit == "max_completion_tokens" else "max_completion_tokens"
            if other == "max_completion_tokens" and other not in message:
                return False
            self._current = replace(now, limit=other)
        elif "temperature" in message and now.temperature:
            self._current = replace(now, temperature=False)
        elif now.bounds and now.mode is not Mode.PLAIN and any(word in message for word in _BOUNDS):
            self._current = replace(now, bounds=False)
        elif any(word in message for word in _ABOUT[now.mode]) or (not self._proven and status != 413):
            return self._next_mode()
        else:
            return False
        return True

    def _next_mode(self) -> bool:
        at = ORDER.index(self._current.mode)
        if at + 1 == len(ORDER):
            return False
        self._current = replace(self._current, mode=ORDER[at + 1])
        return True


_BOUNDS = ("maxlength", "maxitems", "max_length", "max_items", "repetition")
_ABOUT = {
    Mode.SCHEMA: ("response_format", "json_schema", "schema", "grammar", "guided", "structured"),
    Mode.TOOLS: ("tool", "function"),
    Mode.PLAIN: (),
}
