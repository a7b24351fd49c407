"""Messages of an export on their way into a tree: on the disk, since they may be more than fit into the memory.

A message that comes twice, in an export that was taken again or in two files, is one. Within a conversation the order
is that of the export, whatever the clocks said; several exports of one conversation are put together by time.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, Self

from metatree.trees.text import encodable
from metatree_memory_tools.conversations._dates import moment
from metatree_memory_tools.conversations.formats.files import Export, format_of
from metatree_memory_tools.conversations.formats.message import (
    ChatMessage,
    CutOff,
    ExportFile,
    Format,
    hashed,
    key_of,
)

MOST_CHARS = 200_000
"""A longer message is cut."""
_MOST_AUTHOR_CHARS = 100
_MOST_TITLE_CHARS = 200
_AUTHORS = 20_000
_DEEPEST_REPLY = 1_000
_BETWEEN = 1_000
_LEAST_BACK = 4
"""More steps back in time than this, and few forth: no clock that runs backwards, but a file with the latest first."""

_SCHEMA = """
    CREATE TABLE chat (number INTEGER PRIMARY KEY, key TEXT UNIQUE, title TEXT);
    CREATE TABLE said (chat INTEGER, like TEXT, times INTEGER, PRIMARY KEY(chat, like)) WITHOUT ROWID;
    CREATE TABLE message (
        seq INTEGER PRIMARY KEY, chat INTEGER, key TEXT, time TEXT, rank TEXT, behind INTEGER DEFAULT 0,
        author TEXT, text TEXT, at TEXT, reply TEXT
    );
    CREATE UNIQUE INDEX named ON message(chat, key);
"""


@dataclass(frozen=True, slots=True)
class Chat:
    """A conversation, with what is in it."""

    number: int
    key: str
    title: str
    messages: int
    people: int
    first: str
    """The earliest time in it; empty when none is known."""
    last: str


class Spooled(NamedTuple):
    """A message as it becomes a node."""

    key: str
    author: str
    text: str
    at: str
    reply: str
    """The key of the message that it answers, when that is in the same conversation; else empty."""


class Spool:
    """Messages of one source.

    Args:
        hide: takes secrets out of a text.
    """

    def __init__(self, hide: Callable[[str], str] = str) -> None:
        # A database without a name: a file that nobody else sees, and that is gone when it is closed.
        self._store = sqlite3.connect("", isolation_level=None)
        self._store.executescript(
            "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA cache_size=-32000;" + _SCHEMA
        )
        self._hide = hide
        self._hide_author = lru_cache(_AUTHORS)(self._author)
        self._chats: dict[tuple[str, str], int] = {}
        self.formats: dict[str, int] = {}
        """How many files were read of each format."""
        self.problems: dict[str, str] = {}
        """What could not be read in full, by path, and why."""
        self._unordered = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._store.close()

    def take(self, export: Export, progress: Callable[[int, str], None] = lambda count, path: None) -> None:
        """Read all files of an export that a format knows."""
        self._store.execute("BEGIN")
        for file in export.files:
            try:
                known = format_of(file)
                if known is not None:
                    self.formats[known.name] = self.formats.get(known.name, 0) + 1
                    self._read(known, file, progress)
            except (CutOff, OSError) as exc:
                self.problems[file.path] = str(exc)
        self._store.execute("COMMIT")
        self.problems |= export.problems
        if self._unordered:
            self._put_replies_behind()
        self._store.execute("CREATE INDEX IF NOT EXISTS placed ON message(chat, rank, behind, seq)")

    def _read(self, known: Format, file: ExportFile, progress: Callable[[int, str], None]) -> None:
        rank: dict[int, str] = {}
        last: dict[int, str] = {}
        forth = back = 0
        (before,) = self._store.execute("SELECT ifnull(max(seq), 0) FROM message").fetchone()
        self._store.execute("DELETE FROM said")
        self._unordered |= not known.ordered
        try:
            for count, message in enumerate(known.messages(file)):
                if count % _BETWEEN == 0:
                    progress(count, file.path)
                chat = self._chat(known.name, message, file)
                time = moment(message.at)
                when = "" if time is None else f"{time.timestamp():020.3f}"
                own = when
                if own:
                    forth += own > last.get(chat, own)
                    back += own < last.get(chat, own)
                    last[chat] = own
                if known.ordered:  # where a clock goes back, the order of the export stays
                    when = rank[chat] = max(rank.get(chat, ""), when)
                key = key_of(message.id) if message.id else self._numbered(chat, message)
                text = self._hide(encodable(message.text)[:MOST_CHARS])
                author = self._hide_author(message.author)
                self._store.execute(
                    "INSERT INTO message(chat, key, time, rank, author, text, at, reply)"
                    " VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
                    " ON CONFLICT(chat, key) DO UPDATE SET text = excluded.text, author = excluded.author",
                    (
                        chat,
                        key,
                        own,
                        when,
                        author,
                        text,
                        message.at,
                        key_of(message.reply) if message.reply else "",
                    ),
                )
        finally:
            if known.ordered and back > max(_LEAST_BACK, 3 * forth):
                self._turn_round(before)

    def _turn_round(self, before: int) -> None:
        """Put the messages of a file that has the latest first into the order of their times."""
        self._store.execute("UPDATE message SET rank = time, behind = -seq WHERE seq > ?", (before,))

    def _author(self, name: str) -> str:
        return self._hide(encodable(" ".join(name.split()))[:_MOST_AUTHOR_CHARS])

    def _numbered(self, chat: int, message: ChatMessage) -> str:
        """Return a name for a message that has none: the third `ok` of a minute is the third in a later export, too."""
        like = hashed(message.at, message.author, message.text)
        (number,) = self._store.execute(
            "INSERT INTO said VALUES (?, ?, 1) ON CONFLICT DO UPDATE SET times = times + 1 RETURNING times",
            (chat, like),
        ).fetchone()
        return f"x{like}" if number == 1 else f"x{like}.{number}"

    def _chat(self, known: str, message: ChatMessage, file: ExportFile) -> int:
        name = message.chat or message.title or file.name
        number = self._chats.get((known, name))
        if number is None:
            title = self._hide(encodable(" ".join((message.title or name).split()))[:_MOST_TITLE_CHARS])
            sql = "INSERT OR IGNORE INTO chat(key, title) VALUES (?, ?) RETURNING number"
            added = self._store.execute(sql, (key_of(name), title)).fetchone()
            if added is None:  # another format has a conversation of this name
                added = self._store.execute(sql, (key_of(f"{known}.{name}"), title)).fetchone()
            number = self._chats[(known, name)] = int(added[0])
        return number

    def _put_replies_behind(self) -> None:
        """Put an answer behind what it answers, where a clock says otherwise."""
        for _ in range(_DEEPEST_REPLY):
            moved = self._store.execute(
                "UPDATE message SET rank = above.rank, behind = above.behind + 1 FROM message AS above"
                " WHERE message.reply <> '' AND above.chat = message.chat AND above.key = message.reply"
                " AND above.behind < ? AND (above.rank > message.rank"
                " OR (above.rank = message.rank AND message.behind <= above.behind))",
                (_DEEPEST_REPLY,),
            ).rowcount
            if not moved:
                return

    def chats(self) -> Iterator[Chat]:
        """Yield the conversations by their first message."""
        rows = self._store.execute(
            "SELECT number, chat.key, title, count(*), count(DISTINCT author), min(nullif(at, '')), max(at)"
            " FROM chat JOIN message ON chat = number GROUP BY number ORDER BY min(rank), number"
        )
        for number, key, title, messages, people, first, last in rows:
            yield Chat(number, key, title, messages, people, first or "", last or "")

    def people(self, chat: int, most: int) -> list[str]:
        """Return who wrote in a conversation, those who wrote most first."""
        sql = "SELECT author FROM message WHERE chat = ? GROUP BY author ORDER BY count(*) DESC, min(seq) LIMIT ?"
        return [row[0] for row in self._store.execute(sql, (chat, most))]

    def messages(self, chat: int) -> Iterator[Spooled]:
        """Yield the messages of a conversation in their order."""
        rows = self._store.execute(
            "SELECT key, author, text, at, CASE WHEN reply <> '' AND EXISTS (SELECT 1 FROM message AS above"
            " WHERE above.chat = message.chat AND above.key = message.reply) THEN reply ELSE '' END"
            " FROM message INDEXED BY placed WHERE chat = ? ORDER BY rank, behind, seq",
            (chat,),
        )
        for row in rows:
            yield Spooled._make(row)
