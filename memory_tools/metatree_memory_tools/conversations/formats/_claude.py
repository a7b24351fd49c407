"""Claude: `conversations.json`, a list of conversations with `chat_messages`."""

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

_HEAD = re.compile(rb'"chat_messages"\s*:\s*\[')


class Claude:
    """The export of Claude's privacy settings."""

    name = "Claude"
    ordered = True

    def recognises(self, file: ExportFile) -> bool:
        """Whether a list of objects begins, with messages as Claude names them."""
        return file.head.lstrip().startswith(b"[") and _HEAD.search(file.head) is not None

    def messages(self, file: ExportFile) -> Iterator[ChatMessage]:
        """Yield the messages of all conversations, with the texts that were attached to them."""
        with file.open() as stream:
            for _, chat in values(stream, lambda path: path == ()):
                if not isinstance(chat, Mapping):
                    continue
                title = str(chat.get("name") or "")
                name = str(chat.get("uuid") or title)
                before = ""
                for each in mappings(chat.get("chat_messages")):
                    if not (text := _text(each)):
                        continue
                    key = str(each.get("uuid") or "")
                    reply = str(each.get("parent_message_uuid") or before)
                    author = str(each.get("sender") or "unknown")
                    yield ChatMessage(key, author, text, iso(each.get("created_at")), reply, name, title)
                    before = key


def _text(message: Mapping[str, Any]) -> str:
    said = message.get("text") or text_of_parts(message.get("content")) or ""
    pasted = mappings(message.get("attachments"))
    files = mappings(message.get("files"))
    names = [str(each["file_name"]) for each in (*pasted, *files) if each.get("file_name")]
    texts = [str(each["extracted_content"]) for each in pasted if each.get("extracted_content")]
    return joined(str(said), attached(names), *texts)
