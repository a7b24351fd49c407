"""Matrix: the JSON that Element exports of a room, a list of its events."""

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
    begins_key,
)

_ROOM = re.compile(rb'"room_name"\s*:')
_EVENT = re.compile(rb'"(?:exported_by|event_id|origin_server_ts|room_creator)"\s*:')
_FILES = frozenset({"m.image", "m.file", "m.audio", "m.video"})
_QUOTE = re.compile(r"\A> (?:\* )?<.*\n(?:> .*\n)*\n?")
"""What is answered, with who said it: programs repeat it before a reply. Other quotes are of what is said."""


class Matrix:
    """The export of one room."""

    name = "Matrix"
    ordered = True

    def recognises(self, file: ExportFile) -> bool:
        """Whether a room begins, with events as Matrix names them."""
        return _ROOM.search(file.head) is not None and _EVENT.search(file.head) is not None

    def messages(self, file: ExportFile) -> Iterator[ChatMessage]:
        """Yield what was said; an edit is the message that it changes, under its id."""
        names: dict[str, str] = {}
        title = ""
        with file.open() as stream:
            for path, value in values(stream, lambda path: path in ((), ("messages",))):
                if path == ("room_name",):
                    title = str(value or "")
                elif path == ("messages", "*") and isinstance(value, Mapping):
                    content = value.get("content")
                    content = content if isinstance(content, Mapping) else {}
                    sender = str(value.get("sender") or NOBODY)
                    if value.get("type") == "m.room.member" and content.get("displayname"):
                        names[str(value.get("state_key") or sender)] = str(content["displayname"])
                    elif (text := _text(value, content)) and value.get("type") != "m.reaction":
                        about = content.get("m.relates_to")
                        about = about if isinstance(about, Mapping) else {}
                        edited = about.get("event_id") if about.get("rel_type") == "m.replace" else None
                        yield ChatMessage(
                            str(edited or value.get("event_id") or ""),
                            names.get(sender, sender),
                            text,
                            iso(value.get("origin_server_ts")),
                            _reply(about),
                            str(value.get("room_id") or title),
                            title,
                        )


def _reply(about: Mapping[str, Any]) -> str:
    answered = about.get("m.in_reply_to")
    return str(answered.get("event_id") or "") if isinstance(answered, Mapping) else ""


def _text(event: Mapping[str, Any], content: Mapping[str, Any]) -> str:
    new = content.get("m.new_content")
    content = new if isinstance(new, Mapping) else content
    if event.get("type") == "m.room.encrypted":
        return "[cannot be read: it is encrypted]"
    body = content.get("body")
    if not isinstance(body, str):
        return ""
    if str(content.get("msgtype")) in _FILES:
        return attached([body])
    # A reply repeats what it answers, for programs that show no replies.
    return (body if begins_key(body) else _QUOTE.sub("", body)).strip()
