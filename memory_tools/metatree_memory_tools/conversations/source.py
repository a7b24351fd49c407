"""The source type for exports of conversations: a file, an archive or a folder of them, read as a stream.

Its nodes keep their texts in the index: a message in an archive of gigabytes cannot be looked up in it. Conversations,
sessions and messages are named by what the export calls them and by their days, so that an export which is taken
again, and has grown, leaves the nodes that were there as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

from metatree._util.secret_text import masked
from metatree.errors import UserError
from metatree.node import Node, Source
from metatree.notes.left_out import IDENTITY, OPTION
from metatree.notes.wishes import BRANCH_KIND, KIND, MACHINES, said_attributes, stated, title_of
from metatree.trees.content import shows_secrets
from metatree.trees.layer import ROOT
from metatree.trees.source_types import Progress, SourceRef
from metatree_memory_tools.conversations._dates import moment, shown
from metatree_memory_tools.conversations._model import (
    MOST_TURNS,
    PAUSE,
    Session,
    Turn,
    names,
    session_description,
    turn_text,
)
from metatree_memory_tools.conversations._spool import Chat, Spool, Spooled
from metatree_memory_tools.conversations.file_type import turn_attributes
from metatree_memory_tools.conversations.formats.files import format_of, opened, paths_below
from metatree_memory_tools.text.descriptions import shorten

MANY_CHATS = 100
"""More conversations than this lie below the months in which they began."""
MANY_MESSAGES = 3_000
"""The sessions of a longer conversation lie below months."""
_WISHES = "~wishes"
_DESCRIPTION_CHARS = 120
_MOST_PROBLEMS = 5
_PEOPLE = 5


class Chats:
    """Exports of ChatGPT, Claude, Slack, Discord, Telegram, WhatsApp, Matrix, mail, and transcripts of meetings.

    `chats:FOLDER` reads all exports in a folder, those in archives too; what several of them have is there once, and
    conversations that have nothing but a name in common stay apart.
    """

    name = "chats"
    version = "11"
    leaves_out = True
    on_disk = True

    def recognises(self, location: str) -> bool:
        """Whether a file is an export, or an archive with a file of one."""
        place = Path(location)
        try:
            with opened(place) as export:
                files = (file for file, _ in zip(export.files, range(_LOOKED_AT), strict=False))
                return any(format_of(file) is not None for file in files)
        except (OSError, ValueError, UserError):
            # An archive that is cut off says so when it is read; else it would only be a binary file.
            return place.suffix.lower() == ".zip" and place.is_file()

    def fingerprint(self, source: SourceRef) -> str | None:
        """Return sizes and times of the file, or of the files in the folder."""
        place = Path(source.location)
        try:
            files = [place / path for path in paths_below(place)] if place.is_dir() else [place]
            states = (
                f"{file.relative_to(place)} {(state := file.stat()).st_size} {state.st_mtime_ns}"
                for file in files
            )
            parts = (*states, *source.options.get(OPTION, ()))
            return blake2b("\n".join(parts).encode("utf-8", "replace"), digest_size=16).hexdigest()
        except OSError as exc:
            raise UserError(f"{source.location!r} cannot be read: {exc.strerror}") from exc

    def nodes(self, source: SourceRef, *, progress: Progress | None) -> Iterator[tuple[Node, str | None]]:
        """Yield the conversations with their sessions and messages, and what people want always."""

        def read(count: int, path: str) -> None:
            if progress is not None:
                progress(count, 0, path)

        forgotten = frozenset(source.options.get(OPTION, ()))
        with Spool(str if shows_secrets(source) else _hidden, forgotten) as spool:
            with opened(Path(source.location)) as export:
                spool.take(export, read)
            yield from _Nodes(spool, Path(source.location).name, source.mount, self.name).all(progress)

    def content(self, source: SourceRef, ref: Source) -> str:
        """Raise: the index keeps what was said."""
        raise UserError(f"{ref.path!r} is not read from the export: refresh the tree")


_LOOKED_AT = 200
"""So many files of an archive are looked at for one of an export."""


def _hidden(text: str) -> str:
    return masked(text)[0]


class _Nodes:
    """Makes nodes of what a spool holds."""

    def __init__(self, spool: Spool, name: str, mount: str, source_type: str) -> None:
        self.spool = spool
        self.name = name
        self.mount = mount
        self.source_type = source_type
        self.done = 0
        self._has_wishes = False
        self._periods: set[str] = set()

    def all(self, progress: Progress | None) -> Iterator[tuple[Node, str | None]]:
        chats = list(self.spool.chats())
        total = sum(chat.messages for chat in chats)
        if not chats and not self.spool.problems and not self.spool.left_out:
            raise UserError(f"{self.name!r} holds no export of conversations that is known")
        yield self._top(chats, total), None
        for chat in chats:
            parent = ROOT
            if len(chats) > MANY_CHATS:
                year, month = chat.first[:4] or "undated", chat.first[:7] or "undated"
                yield from self._period(year, ROOT, "conversations that began then")
                if month != year:
                    yield from self._period(month, f"~{year}", "conversations that began then")
                parent = f"~{month}"
            yield self._chat(chat), parent
            for node in self._messages(chat):
                self.done += 1
                if progress is not None and self.done % 1_000 == 0:
                    progress(self.done, total, chat.title)
                yield node

    def _top(self, chats: list[Chat], total: int) -> Node:
        kinds = ", ".join(self.spool.formats)
        some = ", ".join(chat.title for chat in sorted(chats, key=lambda chat: -chat.messages)[:20])
        first = min((chat.first for chat in chats if chat.first), default="")
        last = max((chat.last for chat in chats), default="")
        when = f" from {first[:10]} to {last[:10]}" if first else ""
        plural = "" if len(chats) == 1 else "s"
        said = f"{len(chats):,} conversation{plural} ({kinds}), {total:,} messages{when}: {some}"
        attributes: dict[str, Any] = {"conversations": len(chats), "messages": total}
        if problems := self.spool.problems:
            some_of = [f"{path}: {why}" for path, why in list(problems.items())[:_MOST_PROBLEMS]]
            rest = len(problems) - len(some_of)
            attributes["note"] = shorten("; ".join(some_of) + (f"; and {rest:,} more" if rest else ""), 500)
            said = f"{said}. Not read in full: {attributes['note']}"
        return Node(ROOT, self.name, shorten(said, 700), kind="conversations", attributes=attributes)

    def _period(self, period: str, parent: str, what: str) -> Iterator[tuple[Node, str]]:
        node_id = f"~{period}" if parent == ROOT or parent.startswith("~") else f"{parent}/~{period}"
        if node_id not in self._periods:
            self._periods.add(node_id)
            yield Node(node_id, period, what, kind="period"), parent

    def _chat(self, chat: Chat) -> Node:
        some = self.spool.people(chat.number, _PEOPLE)
        who = names(some, chat.people)
        when = f" from {chat.first[:10]} to {chat.last[:10]}" if chat.first else ""
        plural = "" if chat.messages == 1 else "s"
        said = f"Conversation of {who}: {chat.messages:,} message{plural}{when}"
        attributes = {"people": chat.people, "messages": chat.messages}
        return Node(chat.key, chat.title, said, kind="conversation", attributes=attributes)

    def _messages(self, chat: Chat) -> Iterator[tuple[Node, str]]:
        days: dict[str, int] = {}
        for messages in _sessions(self.spool.messages(chat.number)):
            first = messages[0]
            day = first.at[:10] or "undated"
            number = days[day] = days.get(day, 0) + 1
            parent = chat.key
            if chat.messages > MANY_MESSAGES:
                month = first.at[:7] or "undated"
                yield from self._period(month, chat.key, "what was said then")
                parent = f"{chat.key}/~{month}"
            session = f"{chat.key}/~{day}.{number}"
            turns = tuple(Turn(each.author, each.text, each.at) for each in messages)
            title = shown(first.at) or f"Part {number}"
            said = session_description(Session(turns))
            attributes = {"at": first.at} if first.at else {}
            yield Node(session, title, said, kind="session", attributes=attributes), parent
            for message, turn in zip(messages, turns, strict=True):
                node_id = f"{chat.key}/{message.key}"
                about: dict[str, str] = {**turn_attributes(turn), IDENTITY: message.identity}
                if message.reply:
                    about["reply_to"] = f"{self.mount}/{chat.key}/{message.reply}"
                if message.file:
                    about["export"] = message.file
                said = shorten(" ".join(turn.text.split()), _DESCRIPTION_CHARS)
                yield Node(node_id, turn.speaker, said, turn_text(turn), "turn", attributes=about), session
                yield from self._wishes(turn, node_id)

    def _wishes(self, turn: Turn, node_id: str) -> Iterator[tuple[Node, str]]:
        """Yield what a message wants always; it has a source, which says that a file names its speaker."""
        if turn.speaker.casefold() in MACHINES:
            return
        for number, wish in enumerate(stated(turn.text), start=1):
            if not self._has_wishes:
                self._has_wishes = True
                yield Node(_WISHES, "Wishes", "What people want always, or prefer", kind=BRANCH_KIND), ROOT
            about = {**said_attributes(wish, node_id), "who": turn.speaker, "at": turn.at}
            yield (
                Node(
                    f"{_WISHES}/{node_id}~{number}",
                    title_of(wish),
                    wish.text,
                    wish.text,
                    KIND,
                    Source(type=self.source_type, path=""),
                    attributes=about,
                ),
                _WISHES,
            )


def _sessions(messages: Iterator[Spooled]) -> Iterator[list[Spooled]]:
    """Yield messages that belong together: no long silence between them, and not too many."""
    session: list[Spooled] = []
    last = None
    for message in messages:
        now = moment(message.at)
        paused = now is not None and last is not None and abs(now - last) > PAUSE
        if session and (paused or len(session) >= MOST_TURNS):
            yield session
            session = []
        session.append(message)
        last = now or last
    if session:
        yield session
