"""A section of a blackboard, read and written like a list."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from metatree.blackboard._item import Item
    from metatree.blackboard.items import Items


class Section:
    """One section of a board, as the reader of that board sees it: a view, so it always shows what is there now.

    Example:
        >>> from metatree import Blackboard
        >>> board = Blackboard()
        >>> _ = board.add_requests({"request": "book a table"})
        >>> board.requests.length, board.requests.list_content
        (1, [{'request': 'book a table'}])
    """

    def __init__(self, board: Items, name: str) -> None:
        self.board = board
        self.name = name

    @property
    def content(self) -> list[Item]:
        """The items, oldest first."""
        return self.board.items(self.name)

    @property
    def list_content(self) -> list[dict[str, Any]]:
        """What the items say, oldest first."""
        return self.board.dicts(self.content)

    @property
    def length(self) -> int:
        """How many items there are."""
        return self.board.count(self.name)

    def __len__(self) -> int:
        return self.length

    def __iter__(self) -> Iterator[Item]:
        return iter(self.content)

    def add_memory_item(self, memory_item: Any) -> Item:
        """Add an item as it is; raises as `Blackboard.add` does."""
        return self.board.add(self.name, memory_item)

    def load(self, content: Iterable[Any]) -> None:
        """Put these items in the place of what is there."""
        self.board.replace_sections({self.name: list(content)})

    def from_list_of_dicts(self, data: Iterable[Mapping[str, Any]]) -> None:
        """Put these items in the place of what is there."""
        self.board.replace_sections({self.name: list(data)})

    def to_list_of_dicts(self) -> list[dict[str, Any]]:
        """Return what the items say, oldest first."""
        return self.list_content

    def to_json(self) -> str:
        """Return what the items say as a JSON list."""
        return json.dumps(self.list_content)

    def filter_memory_from_steps(self, steps: Collection[int]) -> list[dict[str, Any]]:
        """Return what those items say whose `step` is one of these."""
        return [data for data in self.list_content if data.get("step") in steps]

    def filter_memory_from_keys(self, keys: Collection[str]) -> list[dict[str, Any]]:
        """Return what the items say under these keys; an item that lacks one is without it."""
        return [{k: v for k, v in data.items() if k in keys} for data in self.list_content]

    def get_latest_item(self) -> Item | None:
        """Return the newest item, None when there is none."""
        newest = self.board.items(self.name, limit=1, newest=True)
        return newest[0] if newest else None

    def delete_memory_item(self, step: int) -> None:
        """Remove the items whose `step` this is."""
        for item in self.content:
            if item.get_value("step") == step:
                self.board.remove(item.id)

    def is_empty(self) -> bool:
        """Say whether there is nothing."""
        return self.length == 0

    def clear(self) -> None:
        """Remove all items."""
        self.board.remove_all(self.name)

    def __repr__(self) -> str:
        return f"Section({self.name!r}, {self.length} items)"
