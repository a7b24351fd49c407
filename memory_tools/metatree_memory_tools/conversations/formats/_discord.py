"""Discord: the JSON of DiscordChatExporter, a file for each channel."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from metatree_memory_tools.conversations._dates import iso
from metatree_memory_tools.conversations.formats._json_stream import values
from metatree_memory_tools.conversations.formats.message import (
    NOBODY,
    ChatMessage,
    ExportFile,
    attached,
    joined,
    mappings,
)

_HEAD = re.compile(rb'\A[\xef\xbb\xbf\s]*\{\s*"guild"\s*:\s*\{.{0,4000}"channel"\s*:\s*\{', re.DOTALL)


class Discord:
    """The export of one channel or thread."""

    name = "Discord"
    ordered = True

    def recognises(self, file: ExportFile) -> bool:
        """Whether it begins with the guild and the channel."""
        return _HEAD.match(file.head) is not None

    def messages(self, file: ExportFile) -> Iterator[ChatMessage]:
        """Yield the messages; the channel stands before them."""
        name = title = ""
        with file.open() as stream:
            for path, value in values(stream, lambda path: path in ((), ("messages",))):
                if path == ("channel",) and isinstance(value, Mapping):
                    above = value.get("category")
                    title = " / ".join(str(each) for each in (above, value.get("name")) if each)
                    name = str(value.get("id") or title)
                elif path == ("messages", "*") and isinstance(value, Mapping) and (text := _text(value)):
                    yield ChatMessage(
                        str(value.get("id") or ""),
                        _author(value.get("author")),
                        text,
                        iso(value.get("timestamp")),
                        _reply(value.get("reference")),
                        name,
                        title,
                    )


def _author(author: Any) -> str:
    if not isinstance(author, Mapping):
        return NOBODY
    return str(author.get("nickname") or author.get("name") or author.get("id") or NOBODY)


def _reply(reference: Any) -> str:
    return str(reference.get("messageId") or "") if isinstance(reference, Mapping) else ""


def _text(message: Mapping[str, Any]) -> str:
    files = mappings(message.get("attachments"))
    names = [str(each.get("fileName") or "a file") for each in files]
    stickers = mappings(message.get("stickers"))
    names += [f"sticker {each.get('name')}" for each in stickers]
    embeds = mappings(message.get("embeds"))
    shown = [joined(str(each.get("title") or ""), str(each.get("description") or "")) for each in embeds]
    return joined(str(message.get("content") or ""), *shown, attached(names))
