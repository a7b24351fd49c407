"""Conversations in files: known formats of exports, and JSON that looks like one (lists of messages and the like)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from metatree._util.numbers import whole_number
from metatree_memory_tools.conversations._dates import iso
from metatree_memory_tools.conversations._model import (
    Conversation,
    Conversations,
    Session,
    Turn,
    cut_long,
    in_sessions,
)
from metatree_memory_tools.conversations.formats.chatgpt import way_to
from metatree_memory_tools.conversations.formats.message import ChatMessage, CutOff, ExportFile, Format
from metatree_memory_tools.conversations.formats.texts import text_of_parts
from metatree_memory_tools.text.descriptions import cut_masked, shorten_masked

_SPEAKER = ("speaker", "role", "author", "sender", "from", "name", "user", "username")
_TEXT = ("text", "content", "message", "body", "value", "utterance")
_TIME = (
    "timestamp",
    "created_at",
    "create_time",
    "date",
    "time",
    "at",
    "datetime",
    "ts",
    "sent_at",
    "date_time",
)
_MESSAGES = ("messages", "turns", "conversation", "dialogue", "dialog", "chat", "utterances", "chat_messages")
_SESSION = re.compile(r"session_(\d+)$")


def of_export(known: Format, file: ExportFile, hide: Callable[[str], str] = str) -> Conversations:
    """Return the conversations of a file in a known format; what is cut off is said, and what comes before it holds.

    Args:
        hide: takes secrets out of a text, which may have stood in the file in an encoding of its own.
    """
    chats: dict[str, dict[str, ChatMessage]] = {}
    problem = ""
    try:
        for number, message in enumerate(known.messages(file)):
            chat = chats.setdefault(message.chat, {})
            name = message.id or f" {number}"
            first = chat.get(name, message)  # an edit comes later, under the same name
            chat[name] = replace(message, at=first.at)
    except CutOff as exc:
        problem = str(exc)
    conversations: list[Conversation] = []
    for name, chat in chats.items():
        messages = list(chat.values())
        if not known.ordered:
            messages.sort(key=lambda message: message.at)
        turns = [Turn(hide(each.author), hide(each.text), each.at) for each in messages]
        conversations.append(Conversation(in_sessions(turns), hide(messages[0].title), name))
    return Conversations(tuple(conversations), problem)


def of_json(data: Any) -> Conversations:
    """Return the conversations in a JSON value, none when it holds none.

    Known are lists of messages, objects with such a list, lists of such objects, the export of ChatGPT with its trees
    of messages, and objects with `session_1`, `session_1_date_time`, ….
    """
    conversations = list(_conversations(data))
    return Conversations(tuple(each for each in conversations if each.sessions))


def of_json_lines(text: str) -> Conversations:
    """Return the conversations in lines of JSON: messages, by conversation and session, or objects with some."""
    conversations: list[Conversation] = []
    grouped: dict[str, dict[str, tuple[str, list[Turn]]]] = {}
    skipped = 0
    for line in text.split("\n"):
        if not line.strip():
            continue
        try:
            data = json.loads(line)
        except (ValueError, RecursionError):
            skipped += 1
            continue
        turn = _turn(data) if isinstance(data, Mapping) else None
        if turn is not None:
            name = str(_first(data, ("conv", "conversation_id", "thread_id", "chat_id", "channel")) or "")
            session = str(_first(data, ("session", "session_id")) or "")
            when, turns = grouped.setdefault(name, {}).setdefault(session, (turn.at, []))
            turns.append(turn)
        elif isinstance(data, Mapping | list) and (inside := list(_conversations(data))):
            conversations += inside
        else:
            skipped += 1
    for name, sessions in grouped.items():
        cut: tuple[Session, ...] = ()
        for key, (when, turns) in sessions.items():
            if key:
                title = f"Session {key}" if key.isdigit() else key
                cut += tuple(cut_long(Session(tuple(turns), title, when)))
            else:
                cut += in_sessions(turns)
        conversations.append(Conversation(cut, name, name))
    problem = f"{skipped:,} lines are no messages" if skipped else ""
    return Conversations(tuple(each for each in conversations if each.sessions), problem)


def _conversations(data: Any) -> Iterator[Conversation]:
    if isinstance(data, Mapping):
        one = _conversation(data)
        if one is not None:
            yield one
        else:
            for key in ("conversations", "chats", "threads", "data"):
                if isinstance(data.get(key), list):
                    yield from _conversations(data[key])
                    return
    elif isinstance(data, list):
        turns = [turn for each in data if isinstance(each, Mapping) and (turn := _turn(each)) is not None]
        if turns and len(turns) * 2 >= len(data):
            yield Conversation(in_sessions(turns))
            return
        for each in data:
            if isinstance(each, Mapping) and (one := _conversation(each)) is not None:
                yield one
            elif isinstance(each, list):
                yield from _conversations(each)


def _conversation(data: Mapping[str, Any]) -> Conversation | None:
    title = str(_first(data, ("title", "name", "subject", "topic", "sample_id")) or "")
    name = str(_first(data, ("id", "uuid", "conversation_id", "sample_id")) or "")
    if isinstance(data.get("mapping"), Mapping):
        return Conversation(in_sessions(_in_tree(data["mapping"], data.get("current_node"))), title, name)
    sessions = _numbered(data) or _numbered(data.get("conversation"))
    if sessions:
        return Conversation(sessions, title, name)
    inner = data.get("sessions")
    if isinstance(inner, list):
        cut: list[Session] = []
        for each in inner:
            turns = _turns(each)
            if turns:
                about = each if isinstance(each, Mapping) else {}
                at = iso(_first(about, _TIME)) or turns[0].at
                cut += cut_long(Session(_dated(turns, at), str(_first(about, ("title", "name")) or ""), at))
        return Conversation(tuple(cut), title, name) if cut else None
    for key in _MESSAGES:
        turns = _turns(data.get(key))
        if turns:
            return Conversation(in_sessions(turns), title, name)
    return None


def _turns(data: Any) -> list[Turn]:
    if isinstance(data, Mapping):
        for key in _MESSAGES:
            if isinstance(data.get(key), list):
                return _turns(data[key])
        return []
    if not isinstance(data, list):
        return []
    return [turn for each in data if isinstance(each, Mapping) and (turn := _turn(each)) is not None]


def _numbered(data: Any) -> tuple[Session, ...]:
    """Return the sessions of an object with `session_1`, `session_1_date_time`, …"""
    if not isinstance(data, Mapping):
        return ()
    matches = ((_SESSION.match(str(key)), key) for key in data)
    named = ((whole_number(match[1]), key) for match, key in matches if match is not None)
    keys = sorted((number, key) for number, key in named if number is not None)
    sessions: list[Session] = []
    for number, key in keys:
        at = iso(data.get(f"{key}_date_time") or data.get(f"{key}_date"))
        turns = _dated(_turns(data[key]), at)
        if turns:
            sessions += cut_long(Session(turns, f"Session {number}", at))
    return tuple(sessions)


def _dated(turns: Iterable[Turn], at: str) -> tuple[Turn, ...]:
    """Return turns with the date of their session where they have none of their own."""
    return tuple(turn if turn.at else Turn(turn.speaker, turn.text, at) for turn in turns)


def _in_tree(mapping: Mapping[str, Any], current: Any) -> list[Turn]:
    """Return the turns on the way from the root of an export's tree to the one that was shown last."""
    path = []
    for entry in way_to(mapping, current):
        message = entry.get("message")
        turn = _turn(message) if isinstance(message, Mapping) else None
        if turn is not None and turn.speaker != "system":
            path.append(turn)
    return path


def _turn(data: Mapping[str, Any]) -> Turn | None:
    speaker = _speaker(_first(data, _SPEAKER))
    text = text_of_parts(_first(data, _TEXT))
    if not speaker or text is None:
        return None
    calls = data.get("tool_calls")
    if isinstance(calls, list) and calls:
        text = "\n".join(filter(None, [text, *(_call(call) for call in calls)]))
    for key in ("caption", "blip_caption", "image_caption"):
        if isinstance(data.get(key), str) and data[key]:
            text = f"{text}\n[shows an image: {data[key]}]"
    if not text.strip():
        return None
    return Turn(speaker, text.strip(), iso(_first(data, _TIME)))


def _first(data: Mapping[str, Any], keys: Iterable[str]) -> Any:
    return next((data[key] for key in keys if data.get(key) is not None), None)


def _speaker(value: Any) -> str:
    if isinstance(value, Mapping):
        value = _first(value, ("name", "role", "display_name", "email"))
    return shorten_masked(value, 100) if isinstance(value, str) else ""


def _call(call: Any) -> str:
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping):
        return ""
    return f"[calls {function.get('name')} with {cut_masked(str(function.get('arguments')), 2_000)}]"
