"""Labelled blocks of text that agents edit and prompts begin with, each within a limit.

As the memory blocks of MemGPT (Packer et al. 2023) and Letta have it: a label, what it is for, a limit, and perhaps no
editing. A block is one item of the board, so an edit is one commit, and a conditional one: of two agents that edit at
once the second is told of the first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Final

from metatree.blackboard._board import Blackboard
from metatree.blackboard._item import Item, estimate
from metatree.errors import BadItem, Conflict, UnknownItem, UserError

SECTION: Final = "blocks"
KEPT: Final = 50
"""How many earlier texts a block keeps."""
_TRIES: Final = 20


@dataclass(frozen=True, slots=True)
class Block:
    """A block as it is now."""

    label: str
    text: str
    limit: int
    """The most characters that it may have; tokens when `tokens` says so."""
    tokens: bool
    read_only: bool
    description: str
    size: int
    """Its characters or tokens."""


class Blocks:
    """The blocks of a board.

    Args:
        board: where they are kept; a view of it keeps whom they are edited by.
        count_tokens: for limits in tokens; an estimate by default.

    Example:
        >>> blocks = Blocks(Blackboard())
        >>> _ = blocks.define("person", "Likes tea.", limit=40, description="What is known of the person.")
        >>> blocks.replace("person", "tea", "coffee").text
        'Likes coffee.'
    """

    def __init__(self, board: Blackboard, *, count_tokens: Callable[[str], int] = estimate) -> None:
        self._board, self._count = board, count_tokens

    def define(
        self,
        label: str,
        text: str = "",
        *,
        limit: int = 2_000,
        tokens: bool = False,
        read_only: bool = False,
        description: str = "",
    ) -> Block:
        """Make a block, or change all of one that is there; also one that is not edited.

        Raises:
            UserError: the label is empty, or the limit below 1.
            BadItem: the text is longer than the limit.
        """
        if not label.strip() or "\n" in label or len(label) > 100:
            raise UserError(f"a block cannot be called {label!r}: use one line of 1 to 100 characters")
        if limit < 1:
            raise UserError(f"block {label!r}: limit={limit}: use 1 or more")
        given = {
            "label": label,
            "text": text,
            "limit": limit,
            "tokens": tokens,
            "read_only": read_only,
            "description": description,
        }
        self._check(given)
        try:
            return self._change(label, lambda _: given, forced=True)
        except UnknownItem:
            return self._block(self._board.add(SECTION, {**given, "history": []}, id=_id(label)))

    def get(self, label: str) -> Block:
        """Return a block. Raises UnknownItem."""
        return self._block(self._board.get(_id(label)))

    def all(self) -> Sequence[Block]:
        """Return the blocks in the order in which they were made."""
        return [self._block(item) for item in self._board.items(sections=SECTION)]

    def rewrite(self, label: str, text: str) -> Block:
        """Put a text in the place of all of a block; raises as `replace` does."""
        return self._change(label, lambda _: {"text": text})

    def replace(self, label: str, old: str, new: str) -> Block:
        """Replace a text that a block has once.

        Raises:
            UnknownItem: there is no such block.
            UserError: it may not be edited, or does not have the text, or has it several times.
            BadItem: it would be longer than its limit.
        """

        def changed(data: dict[str, Any]) -> dict[str, Any]:
            count = data["text"].count(old) if old else 0
            if count != 1:
                what = "does not have" if not count else f"has {count} times"
                raise UserError(f"block {label!r} {what} the text {old[:80]!r}: give one that it has once")
            return {"text": data["text"].replace(old, new)}

        return self._change(label, changed)

    def insert(self, label: str, text: str, *, line: int | None = None) -> Block:
        """Insert lines: before the line of a number (from 0), or at the end; raises as `replace` does."""

        def changed(data: dict[str, Any]) -> dict[str, Any]:
            lines = data["text"].split("\n") if data["text"] else []
            if line is not None and not 0 <= line <= len(lines):
                raise UserError(
                    f"block {label!r} has {len(lines)} lines: line={line} is none of 0 to {len(lines)}"
                )
            at = len(lines) if line is None else line
            return {"text": "\n".join([*lines[:at], text, *lines[at:]])}

        return self._change(label, changed)

    def history(self, label: str) -> Sequence[str]:
        """Return the texts that a block had before, the oldest first, at most the last fifty. Raises UnknownItem."""
        return list(self._board.get(_id(label)).data["history"])

    def render(self) -> str:
        """Return the blocks as a prompt shows them, with how full they are; what they say is escaped."""
        parts = []
        for one in self.all():
            unit = "tokens" if one.tokens else "characters"
            head = f'<block label="{escape(one.label)}" {unit}="{one.size}/{one.limit}"'
            head += ' read-only="yes">' if one.read_only else ">"
            told = [f"<!-- {escape(one.description).replace('--', '- -')} -->"] if one.description else []
            parts.append("\n".join([head, *told, escape(one.text, quote=False), "</block>"]))
        return "\n".join(parts)

    def _change(
        self, label: str, change: Callable[[dict[str, Any]], dict[str, Any]], *, forced: bool = False
    ) -> Block:
        for _ in range(_TRIES):
            item = self._board.get(_id(label))
            before = dict(item.data)
            if before["read_only"] and not forced:
                raise UserError(f"block {label!r} is read-only: it is changed by whoever defines it")
            after = {**before, **change(before)}
            self._check(after)
            if after["text"] != before["text"]:
                after["history"] = [*before["history"], before["text"]][-KEPT:]
            if after == before:
                return self._block(item)
            try:
                return self._block(self._board.update(item.id, after, if_version=item.version))
            except Conflict:  # somebody else has just edited it: once more, on what it says now
                continue
        raise Conflict(f"block {label!r} is edited by others all the time: try again")

    def _check(self, data: dict[str, Any]) -> None:
        size, limit = self._size(data), data["limit"]
        if size > limit:
            unit = "tokens" if data["tokens"] else "characters"
            raise BadItem(
                f"block {data['label']!r} would have {size} {unit}, {size - limit} over its limit of {limit}:"
                " shorten it"
            )

    def _size(self, data: dict[str, Any]) -> int:
        return self._count(data["text"]) if data["tokens"] else len(data["text"])

    def _block(self, item: Item) -> Block:
        data = item.data
        values = {
            name: data[name] for name in ("label", "text", "limit", "tokens", "read_only", "description")
        }
        return Block(**values, size=self._size(dict(data)))


def _id(label: str) -> str:
    return f"block:{label}"
