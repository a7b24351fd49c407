"""Conversations in plain text: `speaker: what was said`."""

from __future__ import annotations

import re

from metatree_memory_tools.conversations._dates import iso
from metatree_memory_tools.conversations._model import Conversation, Conversations, Turn, in_sessions

_LINE = re.compile(
    r"^\s*(?:[\[(]?(?P<time>\d[\d./:\-, T\u202f\u00a0]{3,24}(?:[AaPp]\.?[Mm]\.?)?(?:Z|[+-]\d\d:?\d\d)?)[\])]?"
    r"\s*(?:-\s+)?)?"
    r"(?P<speaker>[^\W\d_][\w .'’()&-]{0,39}?)\s*:(?!//)\s+(?P<text>\S.*)$"
)
_LONGEST_DATE = 80
_ALONE = re.compile(r"^(?:date|on|session|---|===)?\s*[:\-=]*\s*(?P<date>.{6,40}?)\s*[:\-=]*$", re.IGNORECASE)
_LEAST_TURNS = 4
_LEAST_SHARE = 0.5


def looks_like_transcript(text: str) -> bool:
    """Whether a text is made of turns: most lines begin with a speaker, and a few speakers come again and again.

    Example:
        >>> looks_like_transcript("Ann: Hi!\\nBob: Hello.\\nAnn: Tea?\\nBob: Yes please.")
        True
        >>> looks_like_transcript("name: x\\nversion: 1\\nauthor: y\\nlicence: z")
        False
    """
    lines = [line for line in text.split("\n") if line.strip()][:400]
    names = [match["speaker"] for line in lines if (match := _LINE.match(line[:300]))]
    speakers = set(names)
    if len(names) < _LEAST_TURNS or len(speakers) < 2:
        return False
    again = sum(names.count(speaker) > 1 for speaker in speakers)
    return len(names) >= _LEAST_SHARE * len(lines) and again >= 2 and len(names) >= 2 * len(speakers)


def of_transcript(text: str) -> Conversations:
    """Return the conversation in a text of turns; a line without a speaker goes on with the turn before."""
    turns: list[Turn] = []
    date = ""
    for line in text.split("\n"):
        if not line.strip():
            continue
        match = _LINE.match(line)
        if match is None:
            bare = " ".join(line.split())
            alone = _ALONE.match(bare) if len(bare) <= _LONGEST_DATE else None
            when = iso(alone["date"]) if alone else ""
            if when:
                date = when
            elif turns:
                last = turns[-1]
                turns[-1] = Turn(last.speaker, f"{last.text}\n{line.strip()}", last.at)
            continue
        at = _time(match["time"], date)
        turns.append(Turn(" ".join(match["speaker"].split()), match["text"].strip(), at))
    return Conversations((Conversation(in_sessions(turns)),) if turns else ())


def _time(text: str | None, date: str) -> str:
    """Return when a turn was said; a time alone belongs to the date above it."""
    if not text:
        return date
    text = text.strip(" ,-")
    clock = re.fullmatch(r"(\d{1,2}):(\d\d)(?::(\d\d))?\s*([AaPp])?\.?[Mm]?\.?", text)
    if clock is None:
        return iso(text) or date
    if not date or int(clock[1]) > 23:
        return date
    hour = int(clock[1]) % 12 + (12 if clock[4] in ("p", "P") else 0) if clock[4] else int(clock[1])
    return f"{date[:10]}T{hour:02}:{clock[2]}" + (f":{clock[3]}" if clock[3] else "")
