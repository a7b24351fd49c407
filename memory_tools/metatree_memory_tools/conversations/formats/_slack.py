"""Slack: a folder for each channel, a file for each day, and `users.json` for the names.

A message is named by its time (`ts`), which Slack makes unique in a channel; `thread_ts` is the one that it answers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from metatree._util.entities import unescaped
from metatree._util.secret_text import joined_elements
from metatree_memory_tools.conversations._dates import iso
from metatree_memory_tools.conversations.formats._json_stream import values
from metatree_memory_tools.conversations.formats.message import (
    NOBODY,
    ChatMessage,
    CutOff,
    ExportFile,
    attached,
    joined,
    mappings,
)
from metatree_memory_tools.text.descriptions import cut_masked

_DAY = re.compile(r"(?:^|/)([^/]+)/\d{4}-\d\d-\d\d\.json$")
_TIME = re.compile(rb'"ts"\s*:\s*"\d{9,11}\.\d+"')
_MARK = re.compile(r"<([@#!]?)([^<>|]{1,2000})(?:\|([^<>]{0,2000}))?>")
_MOST = 1_000_000
_MOST_MESSAGES = 200_000
_MOST_CHARS = 50_000_000
"""Of the messages of a day, which are put in order in memory."""
_LONGEST_KEY = 100
_LONGEST = 200
"""Characters of a name; more would let a list of a few kilobytes, once unpacked, take gigabytes."""
_TITLE_PEOPLE = 5


class Slack:
    """The export of a workspace."""

    name = "Slack"
    ordered = True

    def recognises(self, file: ExportFile) -> bool:
        """Whether it is the file of a day, with times as Slack writes them."""
        return _DAY.search(file.path) is not None and _TIME.search(file.head) is not None

    def messages(self, file: ExportFile) -> Iterator[ChatMessage]:
        """Yield the messages of a channel on one day, by their times: a file has some threads after the rest."""
        day = _DAY.search(file.path)
        channel = day[1] if day else file.name
        users = _users(file)
        title = _members(file, users).get(channel) or channel
        day_messages: list[ChatMessage] = []
        chars = 0
        problem: CutOff | None = None
        try:
            with file.open() as stream:
                for _, each in values(stream, lambda path: path == ()):
                    if not isinstance(each, Mapping) or not isinstance(each.get("ts"), str):
                        continue
                    if message := _message(each, users, channel, title):
                        day_messages.append(message)
                        chars += len(message.text)
                    if len(day_messages) > _MOST_MESSAGES or chars > _MOST_CHARS:
                        raise CutOff("it has too many messages of one day")
        except CutOff as exc:
            problem = exc
        yield from sorted(day_messages, key=lambda message: message.id)
        if problem is not None:
            raise problem


def _message(
    each: Mapping[str, Any], users: Mapping[str, str], channel: str, title: str
) -> ChatMessage | None:
    """Return a message, None for one without text."""
    text, ts = _text(each, users), each["ts"]
    thread = str(each.get("thread_ts") or "")
    reply = thread if thread != ts else ""
    return ChatMessage(ts, _author(each, users), text, _time(ts), reply, channel, title) if text else None


def _time(ts: str) -> str:
    try:
        return iso(int(ts.partition(".")[0]))
    except ValueError:
        return ""


def _users(file: ExportFile) -> dict[str, str]:
    """Return the names of all users by their ids; read once for an export."""
    return _listed(file, "users.json", "id", _name)


def _members(file: ExportFile, users: Mapping[str, str]) -> dict[str, str]:
    """Return who talks in the conversations that have no name, by the folders that they are in."""

    def said(chat: Mapping[str, Any]) -> str:
        members = chat.get("members")
        some = members[:_TITLE_PEOPLE] if isinstance(members, list) else []
        names = ", ".join(users.get(str(each)) or str(each) for each in some)
        return names + (", …" if isinstance(members, list) and len(members) > len(some) else "")

    return _listed(file, "dms.json", "id", said) | _listed(file, "mpims.json", "name", said)


def _listed(
    file: ExportFile, name: str, key: str, said: Callable[[Mapping[str, Any]], str]
) -> dict[str, str]:
    """Return what a list of the export says of its entries, by one of their members; read once for an export."""
    folder = file.path.rpartition("/")[0].rpartition("/")[0]
    kept = file.shared.setdefault(f"slack {name} {folder}", {})
    assert isinstance(kept, dict)
    listed = file.beside(f"{folder}/{name}" if folder else name) if not kept else None
    if listed is not None:
        kept[""] = ""  # and not again where nothing is listed
        try:
            with listed.open() as stream:
                for _, each in values(stream, lambda path: path == ()):
                    known = each.get(key) if isinstance(each, Mapping) else None
                    if isinstance(known, str) and len(known) <= _LONGEST_KEY and len(kept) < _MOST:
                        kept[known] = cut_masked(said(each), _LONGEST)
        except CutOff:
            pass
    return kept


def _name(user: Mapping[str, Any]) -> str:
    profile = user.get("profile") or user.get("user_profile")
    profile = profile if isinstance(profile, Mapping) else {}
    names = (profile.get("real_name"), user.get("real_name"), profile.get("display_name"), user.get("name"))
    return next((str(name) for name in names if name), "")


def _author(message: Mapping[str, Any], users: Mapping[str, str]) -> str:
    user = str(message.get("user") or "")
    said = _name(message) if isinstance(message.get("user_profile"), Mapping) else ""
    return users.get(user) or said or str(message.get("username") or user or message.get("bot_id") or NOBODY)


def _text(message: Mapping[str, Any], users: Mapping[str, str]) -> str:
    files = mappings(message.get("files"))
    names = [str(each.get("name") or each.get("title") or "a file") for each in files]
    quoted = mappings(message.get("attachments"))
    more = [str(each.get("text") or each.get("fallback") or "") for each in quoted]
    said = joined(str(message.get("text") or ""), *more)

    def plain(mark: re.Match[str]) -> str:
        kind, target, label = mark[1], mark[2], mark[3]
        if kind == "@":
            return f"@{users.get(target) or label or target}"
        if kind == "#":
            return f"#{label or target}"
        if kind == "!":
            return f"@{label or target.partition('^')[0]}"
        return f"{label} ({target})" if label and label not in target else target

    def pieces() -> Iterator[str]:
        at = 0
        for mark in _MARK.finditer(said):
            yield from (said[at : mark.start()], plain(mark))
            at = mark.end()
        yield said[at:]

    return joined(unescaped(joined_elements(pieces())), attached(names))
