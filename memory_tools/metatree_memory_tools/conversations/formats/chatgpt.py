"""ChatGPT: `conversations.json`, a list of conversations, each a tree of messages (`mapping`).

The messages are those on the way to `current_node`, which is what was shown last; others are drafts that were replaced.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from metatree_memory_tools.conversations._dates import iso
from metatree_memory_tools.conversations.formats._json_stream import values
from metatree_memory_tools.conversations.formats.message import (
    ChatMessage,
    ExportFile,
    attached,
    joined,
    mappings,
)
from metatree_memory_tools.conversations.formats.texts import text_of_parts

_HEAD = re.compile(rb'"mapping"\s*:\s*\{')


class ChatGpt:
    """The export of ChatGPT's data controls."""

    name = "ChatGPT"
    ordered = True

    def recognises(self, file: ExportFile) -> bool:
        """Whether a list of objects begins, with a tree of messages in the first."""
        return file.head.lstrip().startswith(b"[") and _HEAD.search(file.head) is not None

    def messages(self, file: ExportFile) -> Iterator[ChatMessage]:
        """Yield the messages of all conversations; a reply is to the message before it on the way."""
        with file.open() as stream:
            for _, chat in values(stream, lambda path: path == ()):
                if isinstance(chat, Mapping) and isinstance(chat.get("mapping"), Mapping):
                    yield from _messages(chat)


def _messages(chat: Mapping[str, Any]) -> Iterator[ChatMessage]:
    title = str(chat.get("title") or "")
    name = str(chat.get("conversation_id") or chat.get("id") or title)
    before = ""
    for entry in way_to(chat["mapping"], chat.get("current_node")):
        message = entry.get("message")
        if not isinstance(message, Mapping):
            continue
        author, about = message.get("author"), message.get("metadata")
        role = author.get("role") if isinstance(author, Mapping) else None
        files = about.get("attachments") if isinstance(about, Mapping) else None
        names = [str(each.get("name") or "a file") for each in mappings(files)]
        text = joined(text_of_parts(message.get("content")) or "", attached(names))
        if not text or not isinstance(role, str) or role == "system":
            continue
        key = str(message.get("id") or entry.get("id") or "")
        yield ChatMessage(key, role, text, iso(message.get("create_time")), before, name, title)
        before = key


def way_to(mapping: Mapping[str, Any], current: Any) -> list[Mapping[str, Any]]:
    """Return the entries of a tree of messages, from its root to the one that was shown last."""
    if not isinstance(current, str) or current not in mapping:
        leaves = [
            key for key, each in mapping.items() if isinstance(each, Mapping) and not each.get("children")
        ]
        current = leaves[-1] if leaves else None
    way: list[Mapping[str, Any]] = []
    seen: set[str] = set()
    while isinstance(current, str) and current in mapping and current not in seen:
        seen.add(current)
        entry = mapping[current]
        if not isinstance(entry, Mapping):
            break
        way.append(entry)
        current = entry.get("parent")
    return way[::-1]
