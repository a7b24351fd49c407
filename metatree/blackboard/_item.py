"""An item of a blackboard: what was said, who said it, when and in which run, and what it came from."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from typing import Any, Final

from metatree.errors import BadItem

SECTIONS: Final = ("questions", "requests", "trajectories", "screenshots")
"""The sections that every board has and that its prompt shows, in this order."""

Data = "Mapping[str, Any] | MemoryItem | Item | str | Any"

_DIGITS: Final = b"0123456789"
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
_encode_ascii = json.JSONEncoder(allow_nan=False).encode


@dataclass(frozen=True, slots=True)
class Item:
    """One thing on a blackboard, as it was when it was read."""

    id: str
    """Unique on its board; a fork keeps it."""
    section: str
    json: str
    """What it says, as a JSON object; empty for an item that was removed."""
    number: int
    """Its place: items of a store are in the order of their numbers."""
    version: int
    """1 at first, raised by every change of the item."""
    changed: int
    """The version of the board when it was last changed."""
    at: float
    """When it was added, in seconds since the epoch."""
    agent: str = ""
    """Who wrote it."""
    run: str = ""
    """The run that it came from."""
    step: int | None = None
    """The step of that run."""
    round: int | None = None
    """The round of requests that it belongs to, counted from 1."""
    sources: tuple[str, ...] = ()
    """Ids of what it was made from: items, nodes, calls."""
    audience: tuple[str, ...] | None = None
    """The agents that may see it, besides the one that wrote it; None for all."""
    pinned: bool = False
    """Whether prompts show it however old it is."""
    image: str = ""
    """Name of its image in the board's folder of images."""

    @property
    def data(self) -> dict[str, Any]:
        """A copy of what it says; empty for an item that was removed."""
        data: dict[str, Any] = json.loads(self.json) if self.json else {}
        return data

    @property
    def removed(self) -> bool:
        """Whether it was removed; only `Blackboard.changes` tells of such items."""
        return not self.json

    def to_dict(self) -> dict[str, Any]:
        """Return a copy of what it says."""
        return self.data

    def get_value(self, key: str) -> Any:
        """Return what it says under a key, None when nothing."""
        return self.data.get(key)


class MemoryItem:
    """Values under keys, to be filled in step by step before they are added to a board.

    Keys are values' names and nothing else: one that is called `to_dict` hides no method, and no item sees the
    keys of another. A value can be read as an attribute where no method has that name.

    Example:
        >>> item = MemoryItem({"step": 1})
        >>> item.set_value("subtask", "log in")
        >>> item.to_dict(), item.subtask, item.filter(["step"])
        ({'step': 1, 'subtask': 'log in'}, 'log in', {'step': 1})
    """

    def __init__(self, values: Mapping[str, Any] | None = None) -> None:
        self._values: dict[str, Any] = dict(values or {})

    def to_dict(self) -> dict[str, Any]:
        """Return the values by their keys."""
        return dict(self._values)

    def from_dict(self, data: Mapping[str, Any]) -> None:
        """Add values."""
        self._values.update(data)

    def add_values_from_dict(self, values: Mapping[str, Any]) -> None:
        """Add values."""
        self._values.update(values)

    def to_json(self) -> str:
        """Return the values as a JSON object."""
        return json.dumps(self._values)

    def filter(self, keys: Iterable[str] = ()) -> dict[str, Any]:
        """Return the values of those of the keys that are there."""
        wanted = set(keys)
        return {key: value for key, value in self._values.items() if key in wanted}

    def set_value(self, key: str, value: Any) -> None:
        """Set one value."""
        self._values[key] = value

    def get_value(self, key: str) -> Any:
        """Return a value, None when there is none."""
        return self._values.get(key)

    def get_values(self, keys: Iterable[str]) -> dict[str, Any]:
        """Return the values of the keys, None for those that are not there."""
        return {key: self._values.get(key) for key in keys}

    @property
    def attributes(self) -> list[str]:
        """The keys."""
        return list(self._values)

    def __getattr__(self, name: str) -> Any:
        values: dict[str, Any] = self.__dict__.get("_values", {})
        try:
            return values[name]
        except KeyError:
            raise AttributeError(f"the item has no value {name!r}") from None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MemoryItem) and self._values == other._values

    __hash__ = None  # type: ignore[assignment]  # it changes

    def __repr__(self) -> str:
        return f"MemoryItem({self._values!r})"


def as_dict(data: Any) -> dict[str, Any]:
    """Return what a dictionary, an item, a dataclass, a pydantic model or a plain text says.

    Raises:
        BadItem: it is something else.
    """
    if isinstance(data, dict):
        return data
    if isinstance(data, str):
        return {"text": data}
    if isinstance(data, Mapping):
        return dict(data)
    if isinstance(data, MemoryItem | Item):
        return data.to_dict()
    if is_dataclass(data) and not isinstance(data, type):
        return asdict(data)
    dump = getattr(data, "model_dump", None)
    if callable(dump) and not isinstance(data, type):
        dumped = dump(mode="json")
        if isinstance(dumped, dict):
            return dumped
    raise BadItem(
        f"a board holds a dictionary, an item or a text, not {type(data).__name__}: give one of these"
    )


def encode(data: dict[str, Any]) -> str:
    """Return a dictionary as JSON that gives the same dictionary back; tuples become lists.

    Raises:
        BadItem: a key is no text, or a value is nothing that JSON can hold; the message names the place.
    """
    try:
        text = _encode(data)
        for key, value in data.items():
            if type(key) is not str:
                _check(data, "")
            if isinstance(value, dict | list | tuple):
                _check(value, key, 1)
        if not text.isascii():
            text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, which SQLite cannot hold
        return _encode_ascii(data)
    except (TypeError, ValueError, RecursionError) as exc:
        _check(data, "")
        raise BadItem(f"JSON cannot hold this item: {exc}") from exc
    return text


def _check(value: Any, where: str, depth: int = 0) -> None:
    """Find what JSON cannot hold and say where it is. Raises BadItem."""
    if depth > 100:
        raise BadItem(f"the item is nested deeper than 100 levels at {where or 'its top'}")
    if isinstance(value, dict):
        for key, inner in value.items():
            if not isinstance(key, str):
                raise BadItem(f"the key {key!r} {_at(where)} is {type(key).__name__}: JSON keys are texts")
            _check(inner, f"{where}.{key}" if where else key, depth + 1)
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(value):
            _check(inner, f"{where}[{index}]", depth + 1)
    elif isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            raise BadItem(f"the value {_at(where)} is {value}, which JSON cannot hold: use None or a text")
    elif not (value is None or isinstance(value, str | int | bool)):
        raise BadItem(
            f"the value {_at(where)} is {type(value).__name__}, which JSON cannot hold: "
            "convert it to text, a number, a list or a dictionary"
        )


def _at(where: str) -> str:
    return f"at {where!r}" if where else "at the top"


def history_fields(data: dict[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    """Return the values whose keys are to be kept; a dictionary with none of them is no step and stays whole."""
    history = {key: value for key, value in data.items() if key in keys}
    return history or data


def estimate(text: str) -> int:
    """Return about how many tokens a text takes, for most texts rather too many than too few.

    A token for three bytes, two for three digits. Tokenizers of 100,000 words and more need less for JSON, code and
    prose; a tokenizer of 32,000 needs 10 % less for JSON and code, 8 % more for German and Chinese. Random letters,
    such as base64, take up to twice as much: give `render` a tokenizer where a board is full of them.
    """
    data = text.encode("utf-8", "surrogatepass")
    digits = len(data) - len(data.translate(None, _DIGITS))
    return (len(data) + digits) // 3 + 1
