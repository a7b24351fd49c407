"""What a conversation is, whatever it was written down in.

The text of a turn begins with its date in words: +1.0 to 1.5 points R@5 and R@10 on LoCoMo over no date. Its
description, the first words, is for menus and not indexed (+1.7).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from metatree_memory_tools.conversations._dates import long_date, moment, shown

PAUSE = timedelta(hours=6)
"""A longer silence begins another session."""

MOST_TURNS = 100
"""A session with more turns is cut, so that a menu stays short."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What somebody said at one time."""

    speaker: str
    text: str
    at: str = ""
    """When, in ISO 8601; empty when it is not known."""


@dataclass(frozen=True, slots=True)
class Session:
    """Turns that belong together."""

    turns: tuple[Turn, ...]
    title: str = ""
    at: str = ""
    """When it began."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """Sessions of the same people, or on the same subject."""

    sessions: tuple[Session, ...]
    title: str = ""
    id: str = ""
    """What it is called where it comes from."""

    def turns(self) -> Iterator[Turn]:
        """Yield what was said, in order."""
        for session in self.sessions:
            yield from session.turns


@dataclass(frozen=True, slots=True)
class Conversations:
    """All that one file holds."""

    conversations: tuple[Conversation, ...] = ()
    problem: str = ""
    """Why some of it could not be read."""


GONE = Turn("", "")
"""Stands in the place of a turn that was forgotten, so that those after it keep their numbers."""


def in_sessions(turns: Iterable[Turn]) -> tuple[Session, ...]:
    """Cut turns into sessions where nothing was said for a long time, and where they are many."""
    sessions: list[list[Turn]] = []
    last = None
    for turn in turns:
        now = moment(turn.at)
        paused = now is not None and last is not None and abs(now - last) > PAUSE
        if not sessions or paused or len(sessions[-1]) >= MOST_TURNS:
            sessions.append([])
        sessions[-1].append(turn)
        last = now or last
    return tuple(Session(tuple(turns), at=turns[0].at) for turns in sessions)


def cut_long(session: Session) -> Iterator[Session]:
    """Yield a session, or the pieces of a long one."""
    if len(session.turns) <= MOST_TURNS:
        yield session
        return
    for start in range(0, len(session.turns), MOST_TURNS):
        turns = session.turns[start : start + MOST_TURNS]
        number = f"turns {start + 1}-{start + len(turns)}"
        yield replace(
            session,
            turns=turns,
            title=f"{session.title}, {number}".lstrip(", "),
            at=turns[0].at or session.at,
        )


def speakers_of(turns: Iterable[Turn]) -> list[str]:
    """Return who speaks, in the order of their first words."""
    return list(dict.fromkeys(turn.speaker for turn in turns))


def turn_text(turn: Turn) -> str:
    """Return a turn as the text of its node: when, who, what."""
    when = f"[{long_date(turn.at)}] " if turn.at else ""
    return f"{when}{turn.speaker}: {turn.text}"


def session_title(session: Session, number: int) -> str:
    """Return what a session is called."""
    when = f", {shown(session.at)}" if session.at else ""
    return f"{session.title or f'Session {number}'}{when}"


def session_description(session: Session) -> str:
    """Say who talked, when, how much, and how it began."""
    turns = [turn for turn in session.turns if turn is not GONE]
    who = names(speakers_of(turns))
    begin = " ".join(turns[0].text.split())[:120] if turns else ""
    number = f"{len(turns)} turn{'' if len(turns) == 1 else 's'}"
    return f"{who}, {number}. Begins: {begin}" if begin else f"{who}, {number}"


def conversation_description(conversation: Conversation) -> str:
    """Say who talked, how much, and from when to when."""
    turns = [turn for turn in conversation.turns() if turn is not GONE]
    times = sorted(at for turn in turns if (at := turn.at)) or sorted(
        s.at for s in conversation.sessions if s.at
    )
    when = f" from {times[0][:10]} to {times[-1][:10]}" if times else ""
    number = f"{len(turns):,} turn{'' if len(turns) == 1 else 's'}"
    sessions = f" in {len(conversation.sessions)} sessions" if len(conversation.sessions) > 1 else ""
    return f"Conversation of {names(speakers_of(turns))}: {number}{sessions}{when}"


def names(speakers: Sequence[str], count: int | None = None, most: int = 5) -> str:
    """Return who speaks, in words; the first few of `count` where they are many."""
    count = len(speakers) if count is None else count
    if count > most:
        return f"{', '.join(speakers[:most])} and {count - most:,} others"
    return " and ".join([", ".join(speakers[:-1]), speakers[-1]]) if len(speakers) > 1 else "".join(speakers)
