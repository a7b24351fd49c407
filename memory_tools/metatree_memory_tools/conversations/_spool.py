"""Messages of an export on their way into a tree: on the disk, since they may be more than fit into the memory.

A message that comes twice, in an export that was taken again or in two files, is one. Within a conversation the order
is that of the export, whatever the clocks said; several exports of one conversation are put together by time.

That two exports name a conversation alike says nothing: accounts count their chats, channels have common names, and
somebody else's export may name whatever it likes. They are put together where they have a message in common and none
that was written by another or at another time; else each is a conversation of its own. Of a message with another text
both stay, each with its file. Lost: the later file counts (an export beside one's own rewrote it).
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Collection, Iterator
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
from metatree_memory_tools.text.descriptions import BEHIND, word_end

MOST_CHARS = 200_000
"""A longer message is cut."""
_MOST_AUTHOR_CHARS = 100
_MOST_TITLE_CHARS = 200
_PROBLEM_CHARS = 300
_AUTHORS = 20_000
_DEEPEST_REPLY = 1_000
_BETWEEN = 1_000
_LEAST_BACK = 4
"""More steps back in time than this, and few forth: no clock that runs backwards, but a file with the latest first."""

_MOST_APART = 100
"""Conversations of one name are compared with as many others."""
_PART = re.compile(r" \[part \d+\](?=\.json$)")

_SCHEMA = """
    CREATE TABLE chat (number INTEGER PRIMARY KEY, key TEXT UNIQUE, title TEXT, called TEXT);
    CREATE TABLE file (number INTEGER PRIMARY KEY, path TEXT, export TEXT, tag TEXT);
    CREATE TABLE said (chat INTEGER, like TEXT, times INTEGER, PRIMARY KEY(chat, like)) WITHOUT ROWID;
    CREATE TABLE message (
        seq INTEGER PRIMARY KEY, chat INTEGER, name TEXT, file INTEGER, key TEXT, time TEXT, rank TEXT,
        behind INTEGER DEFAULT 0, author TEXT, text TEXT, at TEXT, reply TEXT
    );
    CREATE UNIQUE INDEX named ON message(chat, name, file);
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
    file: str
    """The file that it is from, where the conversation comes from several exports; else empty."""
    identity: str
    """Tells it from others in any export of the conversation, whatever else is read with it."""


class Spool:
    """Messages of one source.

    Args:
        hide: takes secrets out of a text.
        left_out: the identities of messages that are passed over.
    """

    def __init__(self, hide: Callable[[str], str] = str, left_out: Collection[str] = ()) -> None:
        # A database without a name: a file that nobody else sees, and that is gone when it is closed.
        self._store = sqlite3.connect("", isolation_level=None)
        self._store.executescript(
            "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA cache_size=-32000;" + _SCHEMA
        )
        self._hide = hide
        self.left_out = left_out
        self._hide_author = lru_cache(_AUTHORS)(self._author)
        self._chats: dict[tuple[str, str], dict[str, int]] = {}
        """The conversations of each format and name, by the export that they are of."""
        self._files = 0
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
            except Exception as exc:  # of a format, for what is of another form than it takes for granted
                self.problems[file.path] = f"not read further: {type(exc).__name__}: {exc}"[:_PROBLEM_CHARS]
        self._store.execute("COMMIT")
        self.problems |= export.problems
        if self._files > 1:
            self._put_together()
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
        self._files += 1
        export = _export_of(known, file)
        path = f"{file.archive}/{file.path}" if file.archive else file.path
        self._store.execute(
            "INSERT INTO file VALUES (?, ?, ?, ?)", (self._files, path, export, hashed(path)[:8])
        )
        try:
            for count, message in enumerate(known.messages(file)):
                if count % _BETWEEN == 0:
                    progress(count, file.path)
                chat = self._chat(known.name, message, file, export)
                time = moment(message.at)
                when = "" if time is None else f"{time.timestamp():020.3f}"
                own = when
                if own:
                    forth += own > last.get(chat, own)
                    back += own < last.get(chat, own)
                    last[chat] = own
                if known.ordered:  # where a clock goes back, the order of the export stays
                    when = rank[chat] = max(rank.get(chat, ""), when)
                key = self._key(message.id) if message.id else self._numbered(chat, message)
                if self.left_out and _identity(_called(known.name, message, file), key) in self.left_out:
                    continue
                text = self._hidden(encodable(message.text), MOST_CHARS)
                author = self._hide_author(message.author)
                self._store.execute(
                    "INSERT INTO message(chat, name, file, key, time, rank, author, text, at, reply)"
                    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
                    " ON CONFLICT(chat, name, file) DO UPDATE SET text = excluded.text, author = excluded.author",
                    (
                        chat,
                        key,
                        self._files,
                        key,
                        own,
                        when,
                        author,
                        text,
                        message.at,
                        self._key(message.reply) if message.reply else "",
                    ),
                )
        finally:
            if known.ordered and back > max(_LEAST_BACK, 3 * forth):
                self._turn_round(before)

    def _turn_round(self, before: int) -> None:
        """Put the messages of a file that has the latest first into the order of their times."""
        self._store.execute("UPDATE message SET rank = time, behind = -seq WHERE seq > ?", (before,))

    def _author(self, name: str) -> str:
        return self._beginning(name, _MOST_AUTHOR_CHARS)

    def _beginning(self, text: str, chars: int) -> str:
        """Return the first characters of a text in one line, without the beginning of a secret that goes on behind."""
        return self._hidden(" ".join(encodable(text).split()), chars)

    def _hidden(self, text: str, chars: int) -> str:
        """Return the beginning of a text, hidden before it is cut."""
        return self._hide(text[: word_end(text, chars + BEHIND)])[:chars]

    def _numbered(self, chat: int, message: ChatMessage) -> str:
        """Return a name for a message that has none: the third `ok` of a minute is the third in a later export, too."""
        like = hashed(message.at, message.author, message.text)
        (number,) = self._store.execute(
            "INSERT INTO said VALUES (?, ?, 1) ON CONFLICT DO UPDATE SET times = times + 1 RETURNING times",
            (chat, like),
        ).fetchone()
        return f"x{like}" if number == 1 else f"x{like}.{number}"

    def _key(self, name: str) -> str:
        """Return a name as a part of an id, which is kept and shown as it is."""
        return key_of(name) if self._hide(name) == name else f"x{hashed(name)}"

    def _chat(self, known: str, message: ChatMessage, file: ExportFile, export: str) -> int:
        name = message.chat or message.title or file.name
        called = _called(known, message, file)
        exports = self._chats.setdefault((known, name), {})
        number = exports.get(export)
        if number is None:
            title, tag = message.title or name, ""
            if exports:  # whether it is the same one is seen when all of it is there
                title, tag = f"{title} ({export.rpartition('/')[2] or file.name})", f"~{hashed(export)[:8]}"
            title = self._beginning(title, _MOST_TITLE_CHARS)
            # Another format may have a conversation of this name.
            names = (self._key(name), self._key(f"{known}.{name}"), f"x{hashed(known, name)}")
            sql = "INSERT OR IGNORE INTO chat(key, title, called) VALUES (?, ?, ?) RETURNING number"
            tried = (self._store.execute(sql, (key + tag, title, called)).fetchone() for key in names)
            added = next(filter(None, tried))
            number = exports[export] = int(added[0])
        return number

    def _put_together(self) -> None:
        """Put exports of one conversation together, and tell what else has a common name apart."""
        for exports in self._chats.values():
            apart: list[int] = []
            for chat in exports.values():
                same = [other for other in apart[:_MOST_APART] if self._is_same(chat, other)]
                for number in (chat, *same[1:]) if same else ():
                    self._store.execute("UPDATE message SET chat = ? WHERE chat = ?", (same[0], number))
                apart = [other for other in apart if other not in same[1:]] + ([] if same else [chat])
        above = (
            "EXISTS (SELECT 1 FROM message AS above WHERE above.chat = message.chat AND above.name = message.name"
            " AND above.seq < message.seq"
        )
        alike = "above.author = message.author AND above.text = message.text"
        dated = "(above.at = message.at OR above.at = '' OR message.at = '')"
        self._store.execute(f"DELETE FROM message WHERE {above} AND {alike} AND {dated})")
        tag = "(SELECT tag FROM file WHERE number = message.file)"
        self._store.execute(f"UPDATE message SET key = name || '~' || {tag} WHERE {above})")

    def _is_same(self, chat: int, other: int) -> bool:
        """Whether two conversations have a message in common, and none that contradicts."""
        clash = "mine.author <> theirs.author OR (mine.at <> theirs.at AND mine.at <> '' AND theirs.at <> '')"
        common, contradicting = self._store.execute(
            f"SELECT total(mine.text = theirs.text), total({clash}) FROM message AS mine JOIN message AS theirs"
            " ON theirs.chat = ? AND theirs.name = mine.name WHERE mine.chat = ?",
            (other, chat),
        ).fetchone()
        return common > 0 and not contradicting

    def _put_replies_behind(self) -> None:
        """Put an answer behind what it answers, where a clock says otherwise.

        Level by level, from what answers nothing that is here, so that each message is looked at once. Lost: all of
        them again and again until none moves, which is the square of a thread whose clock runs backwards.
        """
        is_first = (
            "NOT EXISTS (SELECT 1 FROM message AS other WHERE other.chat = message.chat AND other.name = message.name"
            " AND other.file < message.file)"
        )
        # What several files have in other words is answered in each of them, and elsewhere in the first alone.
        row = f"message.seq, iif({is_first}, 0, message.file), iif({is_first}, {self._files}, message.file)"
        above = "message AS above ON above.seq = level.seq"
        answers = (
            "message.reply <> '' AND message.chat = above.chat AND message.reply = above.name"
            " AND message.file BETWEEN level.low AND level.high"
        )
        is_early = (
            "above.rank > message.rank OR (above.rank = message.rank AND message.behind <= above.behind)"
        )
        place = (
            f"iif({is_early}, above.rank, message.rank), iif({is_early}, above.behind + 1, message.behind)"
        )
        self._store.execute(
            "CREATE INDEX IF NOT EXISTS answers ON message(chat, reply, file) WHERE reply <> ''"
        )
        columns = "seq INTEGER PRIMARY KEY, low INTEGER, high INTEGER, rank TEXT, behind INTEGER"
        for table in ("level", "below"):
            self._store.execute(f"CREATE TEMP TABLE {table}({columns})")
        self._store.execute(
            f"INSERT INTO level SELECT {row}, '', 0 FROM message WHERE reply = '' OR NOT EXISTS"
            " (SELECT 1 FROM message AS above WHERE above.chat = message.chat AND above.name = message.reply)"
        )
        for _ in range(_DEEPEST_REPLY):
            # In the order of the files: behind what its own file has, where that is not the first.
            found = self._store.execute(
                f"INSERT OR REPLACE INTO below SELECT {row}, {place} FROM level CROSS JOIN "
                f"{above} CROSS JOIN message ON {answers}"
            ).rowcount
            # By their numbers: `UPDATE … FROM` looks at each message for each of a level.
            self._store.execute(
                "UPDATE message SET (rank, behind) = (SELECT rank, behind FROM below WHERE below.seq = message.seq)"
                " WHERE seq IN (SELECT seq FROM below)"
            )
            self._store.execute("DELETE FROM level")
            self._store.execute("INSERT INTO level SELECT * FROM below")
            self._store.execute("DELETE FROM below")
            if not found:
                break
        self._store.execute("DROP TABLE level")
        self._store.execute("DROP TABLE below")

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
        sql = "SELECT count(DISTINCT export) > 1 FROM file WHERE number IN (SELECT file FROM message WHERE chat = ?)"
        (mixed,) = self._store.execute(sql, (chat,)).fetchone()
        (called,) = self._store.execute("SELECT called FROM chat WHERE number = ?", (chat,)).fetchone()
        above = "FROM message AS above WHERE above.chat = message.chat AND above.name = message.reply"
        rows = self._store.execute(
            f"SELECT key, author, text, at, iif(reply = '', '', coalesce((SELECT key {above}"
            f" AND above.file = message.file), (SELECT key {above} ORDER BY file LIMIT 1), '')),"
            " iif(? OR key <> name, (SELECT path FROM file WHERE number = message.file), ''), name"
            " FROM message INDEXED BY placed WHERE chat = ? ORDER BY rank, behind, seq",
            (mixed, chat),
        )
        for *row, name in rows:
            yield Spooled._make((*row, _identity(called, name)))


def _called(known: str, message: ChatMessage, file: ExportFile) -> str:
    """Return what a conversation is called by all exports of it, as a hash."""
    return hashed(known, message.chat or message.title or file.name)


def _identity(called: str, name: str) -> str:
    return hashed(called, name)


def _export_of(known: Format, file: ExportFile) -> str:
    """Return what the export is called that a file is of; its files name one conversation alike.

    Letters are named alike everywhere, and a thread of them lies in any files.
    """
    if known.name == "mail":
        return ""
    if file.archive:
        return file.archive
    if known.name == "Slack":  # a folder for each channel
        return file.path.rsplit("/", 2)[0] if file.path.count("/") > 1 else ""
    return _PART.sub("", file.path)
