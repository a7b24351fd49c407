"""Telegram Desktop: `result.json`, of one chat, or of all (`chats.list`)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from metatree._util.secret_text import joined_elements
from metatree_memory_tools.conversations._dates import iso
from metatree_memory_tools.conversations.formats._json_stream import Path, values
from metatree_memory_tools.conversations.formats.message import NOBODY, ChatMessage, ExportFile, joined

_MESSAGE = re.compile(rb'"(?:date_unixtime|from_id|actor_id)"\s*:')
_WHOLE = re.compile(rb'\A[\xef\xbb\xbf\s]*\{\s*"(?:about|personal_information|chats)"\s*:')
_CHAT = re.compile(rb'"type"\s*:\s*"(?:personal_chat|bot_chat|saved_messages|(?:private|public)_\w+)"')
_LISTS = (("chats", "list"), ("left_chats", "list"))


class Telegram:
    """The machine-readable export of Telegram Desktop."""

    name = "Telegram"
    ordered = True

    def recognises(self, file: ExportFile) -> bool:
        """Whether a chat of Telegram's kinds begins, or the export of an account, which can begin with anything."""
        head = file.head
        if _CHAT.search(head) is not None and b'"messages"' in head:
            return True
        return _WHOLE.match(head) is not None and (
            _MESSAGE.search(head) is not None or file.name == "result.json"
        )

    def messages(self, file: ExportFile) -> Iterator[ChatMessage]:
        """Yield the messages, also what the service says of the chat; a chat's name stands before them."""
        about: dict[str, Any] = {}
        with file.open() as stream:
            for path, value in values(stream, _is_inside):
                inner = path[3:] if path[:2] in _LISTS and path[2:3] == ("*",) else path
                if inner in (("name",), ("type",), ("id",)):
                    if inner[0] in about:  # another chat; one of saved messages has no name
                        about.clear()
                    about[inner[0]] = value
                elif inner == ("messages", "*") and isinstance(value, Mapping) and (text := _text(value)):
                    title = str(about.get("name") or about.get("type") or "")
                    said = value.get("date_unixtime")
                    yield ChatMessage(
                        str(value.get("id") or ""),
                        str(value.get("from") or value.get("actor") or value.get("from_id") or NOBODY),
                        text,
                        iso(str(said)) if said else iso(value.get("date")),
                        str(value.get("reply_to_message_id") or ""),
                        str(about.get("id") or title),
                        title,
                    )


def _is_inside(path: Path) -> bool:
    if path in ((), ("messages",), *_LISTS, *(way[:1] for way in _LISTS)):
        return True
    return path[:2] in _LISTS and path[2:] in (("*",), ("*", "messages"))


def _piece(each: Any) -> str:
    """Return the text of a part of a message; some stand on lines of their own."""
    if not isinstance(each, Mapping):
        return str(each or "")
    text = str(each.get("text") or "")
    return f"\n{text}\n" if each.get("type") in ("pre", "blockquote") else text


def _text(message: Mapping[str, Any]) -> str:
    text = message.get("text")
    if isinstance(text, list):  # of plain texts, and of objects for links, mentions and the like
        text = joined_elements(filter(None, map(_piece, text)))
    more = [f"[{message[kind]}]" for kind in ("action", "media_type") if isinstance(message.get(kind), str)]
    if isinstance(message.get("photo"), str):
        more.append("[photo]")
    if isinstance(message.get("sticker_emoji"), str):
        more.append(message["sticker_emoji"])
    if isinstance(message.get("file_name"), str):
        more.append(f"[attached: {message['file_name']}]")
    poll = message.get("poll")
    if isinstance(poll, Mapping):
        more.append(f"[poll: {poll.get('question')}]")
    return joined(str(text or ""), " ".join(more))
