"""The memory type for files that hold conversations: exports, transcripts, letters.

Turns are numbered where other files have lines, as tables of databases are: no other field of a source survives in the
store. Addresses in answers are ids then.
"""

from __future__ import annotations

import io
import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from hashlib import blake2b
from typing import Any, Final

from metatree._util.secret_text import masked
from metatree.errors import UserError
from metatree.node import Source
from metatree.notes.left_out import IDENTITY
from metatree.notes.wishes import BRANCH_KIND, KIND, MACHINES, said_attributes, stated, title_of
from metatree.trees.source_types import NotOfType, Outline, OutlinePart, SourceFile
from metatree_memory_tools.conversations._model import (
    GONE,
    Conversation,
    Conversations,
    Session,
    Turn,
    conversation_description,
    session_description,
    session_title,
    turn_text,
)
from metatree_memory_tools.conversations.formats.message import ExportFile, hashed
from metatree_memory_tools.reading.outlines import outline_json, outline_of
from metatree_memory_tools.reading.own_process import (
    SMALL_BYTES,
    ReadingFailed,
    allowance,
    read_apart,
)
from metatree_memory_tools.text.descriptions import shorten

_LETTERS = (".eml", ".mbox", ".mht", ".mhtml")
_JSON = (".json", ".jsonl", ".ndjson")
_TRANSCRIPTS = (".txt", ".chat", ".transcript")
_MAY_BE = (*_TRANSCRIPTS, ".json", ".vtt", ".srt")
_MAILDIR = re.compile(r"(?:^|/)(?:cur|new)/[^/]+$")
_IN_JSON = re.compile(
    rb'"mapping"\s*:\s*\{|"(?:role|speaker|sender|author)"\s*:|"session_1"\s*:|"(?:messages|turns|chat_messages)"\s*:\s*\['
)
_TEXT_IN_JSON = re.compile(rb'"(?:content|text|parts|message|body)"\s*:|"session_1"\s*:')
_DESCRIPTION_CHARS = 120
WISHES = "#wishes"
_LIMIT_S: Final = 20.0
_LIMIT_S_PER_MB: Final = 2.0
_TIMES: Final = 6
"""How many times its size a file may take of memory while it is read."""


class ConversationFile:
    """A file with one or several conversations: sessions, and in these turns with speakers and dates.

    A turn is found again by its number in the file, which stands where others have lines. The tools are a plug-in of
    their own, since they work on turns that an agent noted, too.
    """

    name = "conversation"
    source_type = "conversation"
    version = "16"
    max_file_bytes = 300_000_000
    larger = "chats:"
    leaves_out = True

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._latest: tuple[tuple[bytes, str, bool], list[str] | str] | None = None

    def recognises(self, path: str, head: bytes) -> bool:
        """Whether it is an export of conversations, a transcript or a letter, by its beginning and its name."""
        name = path.lower()
        if name.endswith(_JSON) and _IN_JSON.search(head) and _TEXT_IN_JSON.search(head):
            return True
        if name.endswith(_LETTERS):
            return True
        if not name.endswith(_MAY_BE) and not head.startswith(b"From ") and _MAILDIR.search(path) is None:
            return False
        from metatree_memory_tools.conversations.formats.files import format_of

        if format_of(ExportFile(path, lambda: io.BytesIO(head))) is not None:
            return True
        if not name.endswith(_TRANSCRIPTS):
            return False
        from metatree_memory_tools.conversations._transcripts import looks_like_transcript

        return looks_like_transcript(head.decode("utf-8", "replace"))

    def encoded(self, path: str, head: bytes) -> bool:
        """Whether it is a letter, or several, or JSON: what is said there stands in it in escapes."""
        from metatree_memory_tools.conversations.formats.files import format_of
        from metatree_memory_tools.conversations.formats.mail import Letters

        if path.lower().endswith((*_LETTERS, *_JSON)):
            return True
        return isinstance(format_of(ExportFile(path, lambda: io.BytesIO(head))), Letters)

    def outline(self, file: SourceFile) -> Outline:
        """Return the sessions and turns of a file; one without turns is none of this type."""
        try:
            small = len(file.data) <= SMALL_BYTES
            found = _outlined(file) if small else _apart(outlined, file, sorted(file.left_out))
        except ReadingFailed as exc:
            note = str(exc)
            said = f"A file of conversations that cannot be read: {note}"
            return Outline(description=said, attributes={"note": note}, problem=note, empty=True)
        if found is None:
            raise NotOfType
        return found if isinstance(found, Outline) else outline_of(found)

    def content(self, file: SourceFile, source: Source) -> str:
        """Return what was said in one turn."""
        turns = self._turns(file)
        if source.start_line is None or not 0 < source.start_line <= len(turns):
            raise UserError(f"{file.name!r} has no such turn any more: refresh the tree")
        return turns[source.start_line - 1]

    def _turns(self, file: SourceFile) -> list[str]:
        # Neighbours are asked for one by one, some with bytes that were read again: they are parsed once.
        asked = (file.data, file.path, file.secrets)
        with self._lock:
            if self._latest is None or self._latest[0] != asked:
                small = len(file.data) <= SMALL_BYTES
                try:
                    self._latest = (asked, _texts(file) if small else _apart(turn_texts, file))
                except ReadingFailed as exc:
                    if not exc.lasting:
                        raise
                    self._latest = (asked, str(exc))  # it is not tried again for each turn
            texts = self._latest[1]
            # The bytes that are asked with the next time are these, mostly, and not only equal to them: to compare them
            # for each turn is to read the file as many times.
            self._latest = (asked, texts)
        if isinstance(texts, str):
            raise ReadingFailed(texts, lasting=True)
        return texts


def _apart(function: Callable[..., Any], file: SourceFile, *more: Any) -> Any:
    return read_apart(
        function,
        file.data,
        file.path,
        file.secrets,
        *more,
        limit_s=_LIMIT_S + _LIMIT_S_PER_MB * len(file.data) / 1e6,
        memory_bytes=allowance(file.data, _TIMES),
    )


def outlined(data: bytes, path: str, secrets: bool, left_out: Sequence[str]) -> dict[str, Any] | None:
    """Return as JSON what lies in a file; for the process that reads what strangers made."""
    found = _outlined(SourceFile(path, data, secrets, frozenset(left_out)))
    return None if found is None else outline_json(found)


def turn_texts(data: bytes, path: str, secrets: bool) -> list[str]:
    """Return the texts of the turns of a file; for that process, too."""
    return _texts(SourceFile(path, data, secrets))


def _texts(file: SourceFile) -> list[str]:
    texts: list[str] = []
    conversations = [*reversed(parsed(file).conversations)]
    while conversations:  # each goes when its texts are there: both together take twice the memory
        texts += map(turn_text, conversations.pop().turns())
    return texts


def _outlined(file: SourceFile) -> Outline | None:
    """Return the sessions and turns of a file; None for one without turns."""
    conversations = parsed(file)
    if not conversations.conversations:
        return None
    names = list(identities(_turns_of(conversations)))
    conversations = _without_forgotten(conversations, names, file.left_out)
    parts = (*_parts(conversations.conversations, iter(names)), *_wishes(conversations.conversations))
    left = [each for each in conversations.conversations if any(turn is not GONE for turn in each.turns())]
    if not left:
        description = "Conversations of which nothing is left: all was forgotten"
    elif len(conversations.conversations) == 1:
        description = _titled(left[0])
    else:
        titles = ", ".join(each.title for each in left if each.title)
        description = shorten(f"{len(left):,} conversations: {titles}", 300)
    return Outline(
        description=description,
        parts=parts,
        attributes={"conversations": len(left)},
        summary=description,
        problem=conversations.problem,
        empty=not parts,
    )


def _turns_of(found: Conversations) -> Iterator[Turn]:
    for conversation in found.conversations:
        yield from conversation.turns()


def _without_forgotten(
    found: Conversations, names: Sequence[str], left_out: Collection[str]
) -> Conversations:
    """Put `GONE` in the place of what was forgotten.

    Args:
        names: the identities of all turns, in order.
    """
    if not left_out:
        return found
    each_name = iter(names)

    def kept(session: Session) -> Session:
        turns = tuple(GONE if next(each_name) in left_out else turn for turn in session.turns)
        return replace(session, turns=turns)

    return replace(
        found,
        conversations=tuple(
            replace(each, sessions=tuple(map(kept, each.sessions))) for each in found.conversations
        ),
    )


def identities(turns: Iterable[Turn]) -> Iterator[str]:
    """Yield what tells each turn from the others in the file, also when it has grown; it says nothing of the words."""
    times: Counter[str] = Counter()
    for turn in turns:
        like = hashed(turn.at, turn.speaker, turn.text)
        times[like] += 1
        yield hashed(like, str(times[like]))


def parsed(file: SourceFile) -> Conversations:
    """Return the conversations in a file, none when it holds none; never raises for what a file holds."""
    from metatree_memory_tools.conversations._exports import of_export, of_json, of_json_lines
    from metatree_memory_tools.conversations._transcripts import of_transcript
    from metatree_memory_tools.conversations.formats.files import format_of
    from metatree_memory_tools.conversations.formats.mail import Letters

    name = file.path.lower()
    export = ExportFile(file.path, lambda: io.BytesIO(file.data))
    known = format_of(export) or (Letters() if name.endswith(_LETTERS) else None)
    if known is not None:
        return of_export(known, export, str if file.secrets else _without_secrets)
    if not name.endswith(_JSON):
        return of_transcript(file.text)
    found = None
    if name.endswith(".json"):
        with suppress(ValueError, RecursionError):
            found = of_json(json.loads(file.text))
    found = of_json_lines(file.text) if found is None else found
    return found if file.secrets else replace(found, conversations=tuple(map(_masked, found.conversations)))


def _masked(conversation: Conversation) -> Conversation:
    """Return a conversation without what looks like secrets: whoever makes titles of it cuts its texts."""

    def session(of: Session) -> Session:
        hidden = (
            replace(turn, speaker=_without_secrets(turn.speaker), text=_without_secrets(turn.text))
            for turn in of.turns
        )
        return replace(of, turns=tuple(hidden))

    title, sessions = _without_secrets(conversation.title), tuple(map(session, conversation.sessions))
    return replace(conversation, title=title, sessions=sessions)


def _without_secrets(text: str) -> str:
    return masked(text)[0]


def _titled(conversation: Conversation) -> str:
    description = conversation_description(conversation)
    title = conversation.title
    return f"{title}{'' if title.endswith(('.', '?', '!')) else '.'} {description}" if title else description


def _parts(conversations: Sequence[Conversation], names: Iterator[str]) -> Iterator[OutlinePart]:
    """Yield what lies below the file; levels with one member alone are left out.

    Args:
        names: the identities of all turns, in order.
    """
    number = 1
    for at, conversation in enumerate(conversations, start=1):
        top = f"#{at}/" if len(conversations) > 1 else "#"
        first = number
        sessions: list[OutlinePart] = []
        for index, session in enumerate(conversation.sessions, start=1):
            alone = len(conversation.sessions) == 1
            base = top if alone else f"{top}{index}/"
            turns = tuple(_turn_parts(session, base, number, names))
            number += len(session.turns)
            if turns:
                sessions += turns if alone else [_session_part(session, index, base, turns)]
        if len(conversations) == 1:
            yield from sessions
            continue
        if not sessions:
            continue
        yield OutlinePart(
            id=top.rstrip("/"),
            title=conversation.title or f"Conversation {at}",
            description=conversation_description(conversation),
            kind="conversation",
            start_line=first,
            end_line=number - 1,
            parts=tuple(sessions),
        )


def _wishes(conversations: Sequence[Conversation]) -> Iterator[OutlinePart]:
    """Yield the branch of what people want always, if there is any: see `metatree.notes.wishes`."""
    found: list[OutlinePart] = []
    number = 0
    for at, conversation in enumerate(conversations, start=1):
        for index, session in enumerate(conversation.sessions, start=1):
            top = f"#{at}/" if len(conversations) > 1 else "#"
            base = top if len(conversation.sessions) == 1 else f"{top}{index}/"
            for place, turn in enumerate(session.turns, start=1):
                number += 1
                found += _turn_wishes(turn, f"{base}{place}", number)
    if found:
        yield OutlinePart(
            id=WISHES,
            title="Wishes",
            description="What people want always, or prefer",
            kind=BRANCH_KIND,
            start_line=found[0].start_line,
            end_line=found[-1].end_line,
            parts=tuple(found),
        )


def _turn_wishes(turn: Turn, place: str, number: int) -> Iterator[OutlinePart]:
    if turn.speaker.casefold() in MACHINES:
        return
    for index, wish in enumerate(stated(turn.text), start=1):
        yield OutlinePart(
            id=f"{WISHES}/{place[1:]}~{index}",
            title=title_of(wish),
            description=wish.text,
            kind=KIND,
            start_line=number,
            end_line=number,
            attributes={**said_attributes(wish, place), "who": turn.speaker, "at": turn.at},
            digest=blake2b(wish.text.encode("utf-8", "replace"), digest_size=16).hexdigest(),
        )


def _session_part(session: Session, index: int, base: str, turns: tuple[OutlinePart, ...]) -> OutlinePart:
    return OutlinePart(
        id=base.rstrip("/"),
        title=session_title(session, index),
        description=session_description(session),
        kind="session",
        start_line=turns[0].start_line,
        end_line=turns[-1].end_line,
        parts=turns,
        attributes={"at": session.at} if session.at else {},
    )


def _turn_parts(session: Session, base: str, number: int, names: Iterator[str]) -> Iterator[OutlinePart]:
    for index, (turn, identity) in enumerate(zip(session.turns, names, strict=False), start=1):
        if turn is GONE:
            continue
        text = turn_text(turn)
        line = number + index - 1
        yield OutlinePart(
            id=f"{base}{index}",
            title=turn.speaker,
            description=shorten(" ".join(turn.text.split()), _DESCRIPTION_CHARS),
            kind="turn",
            start_line=line,
            end_line=line,
            attributes={**turn_attributes(turn), IDENTITY: identity},
            digest=blake2b(text.encode("utf-8", "replace"), digest_size=16).hexdigest(),
        )


def turn_attributes(turn: Turn) -> dict[str, str]:
    """Return what the node of a turn says besides its text."""
    return {"speaker": turn.speaker, **({"at": turn.at} if turn.at else {})}
