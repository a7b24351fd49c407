"""Transcripts of meetings: WebVTT (`<v Ann>…`) and SubRip, also with `Ann: …` in the text, as Zoom and Meet have it.

What one speaker says in captions that follow each other closely is one message. Captions have times from the beginning
of the recording; the name of the file may say its day (`GMT20240517-140322_Recording.vtt`, `2024-05-17 standup.srt`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta

from metatree._util.entities import unescaped
from metatree._util.secret_text import joined_elements
from metatree_memory_tools.conversations.formats.message import (
    NOBODY,
    ChatMessage,
    ExportFile,
    begins_key,
    text_of,
)

_TIMES = re.compile(
    r"^\s*(?:(\d{1,3}):)?(\d{1,2}):(\d\d)[.,](\d{1,3})\s*-->\s*(?:(\d{1,3}):)?(\d{1,2}):(\d\d)[.,](\d{1,3})"
)
_VOICE = re.compile(r"<v(?:\.[^\s<>]{0,100})?\s{1,10}([^<>]{1,100})>")
_TAG = re.compile(r"</?[A-Za-z][^<>]{0,200}>|<\d[\d:.]*>|\{\\[^{}]{0,50}\}")
_SPEAKER = re.compile(r"^\s*(?:-\s*)?([^\W\d_][\w .,'’()&-]{0,59}?):\s+(\S.*)$", re.DOTALL)
_DAY = re.compile(
    r"(?<!\d)(20\d\d)[-_.]?([01]\d)[-_.]?([0-3]\d)(?:[-_T ]{1,2}([0-2]\d)[-:.h]?([0-5]\d)(?:[-:.]?([0-5]\d))?)?(?!\d)"
)
_PAUSE_S = 8.0
_MOST_CHARS = 800


class Captions:
    """The transcript of one meeting."""

    name = "transcript"
    ordered = True

    def recognises(self, file: ExportFile) -> bool:
        """Whether it is headed as WebVTT is, or begins with a number and two times."""
        lines = [line for line in text_of(file.head).lstrip("\ufeff").splitlines()[:60] if line.strip()]
        if not lines:
            return False
        if re.match(r"WEBVTT(?:\s|$)", lines[0]):
            return True
        return len(lines) > 2 and lines[0].strip().isdigit() and _TIMES.match(lines[1]) is not None

    def messages(self, file: ExportFile) -> Iterator[ChatMessage]:
        """Yield what was said, speaker by speaker."""
        title = re.sub(r"\.(?:vtt|srt|txt)$", "", file.name, flags=re.IGNORECASE)
        title = re.sub(r"(?:\.transcript| ?\(\d+\))+$", "", title)
        day = _day(file.name)
        first = last = 0.0
        speaker, said = "", list[str]()
        for begin, end, who, text in _captions(file.lines()):
            goes_on = who == speaker and begin - last <= _PAUSE_S and sum(map(len, said)) < _MOST_CHARS
            if said and not goes_on:
                yield _message(first, speaker, said, day, title)
                said = []
            if not said:
                first, speaker = begin, who
            said.append(text)
            last = end
        if said:
            yield _message(first, speaker, said, day, title)


def _message(first: float, speaker: str, said: list[str], day: datetime | None, title: str) -> ChatMessage:
    clock = str(timedelta(seconds=int(first)))
    at = "" if day is None else (day + timedelta(seconds=int(first))).isoformat(timespec="seconds")
    text = " ".join(" ".join(said).split())
    # Without a day there is no time in ISO 8601, and the place in the recording is said in the text.
    return ChatMessage("", speaker or NOBODY, text if at else f"({clock}) {text}", at, "", "", title)


def _captions(lines: Iterator[str]) -> Iterator[tuple[float, float, str, str]]:
    """Yield begin and end in seconds, speaker and text; a speaker holds until another one is named."""
    times: tuple[float, float] | None = None
    text: list[str] = []
    shown: set[str] = set()
    speaker = ""
    for line in _with_end(lines):
        found = _TIMES.match(line)
        if found is None and line.strip():
            if times is not None:
                text.append(line.strip())
            continue
        if times is not None and text:
            if found is not None and text[-1].isdigit():
                text.pop()  # the number of the next caption, where no blank line is between
            # Captions that roll repeat the line above.
            new = text if any(map(begins_key, text)) else [each for each in text if _shown(each) not in shown]
            shown = set(map(_shown, text))
            for who, said in _voices(new):
                speaker = who or speaker
                if said:
                    yield (*times, speaker, said)
        if found is not None:
            times, text = (_seconds(found.groups()[:4]), _seconds(found.groups()[4:])), []
        elif text:
            times, text = None, []


def _with_end(lines: Iterator[str]) -> Iterator[str]:
    yield from lines
    yield ""


def _seconds(parts: tuple[str | None, ...]) -> float:
    hours, minutes, seconds, part = (part or "0" for part in parts)
    return int(hours) * 3600 + int(minutes) * 60 + int(seconds) + int(part.ljust(3, "0")) / 1000


def _voices(lines: list[str]) -> Iterator[tuple[str, str]]:
    """Yield who says what in one caption; the first may go on with what was said, and is named nobody then."""
    whole = "\n".join(lines)
    voices = list(_VOICE.finditer(whole))
    for voice, following in zip(voices, [*voices[1:], None][: len(voices)], strict=True):
        end = following.start() if following else len(whole)
        yield unescaped(voice[1]).strip(), _shown(whole[voice.end() : end])
    if voices:
        return
    who, said = "", list[str]()
    is_key = any(map(begins_key, lines))  # whose lines say `Version: 1`
    for line in map(_shown, lines):
        named = None if is_key else _SPEAKER.match(line)
        if named is not None:
            yield who, " ".join(said)
            who, said = named[1].strip(), [named[2]]
        else:
            said.append(line)
    yield who, " ".join(said).strip()


def _shown(text: str) -> str:
    return " ".join(unescaped(joined_elements(_TAG.split(text))).split())


def _day(name: str) -> datetime | None:
    match = _DAY.search(name)
    if match is None:
        return None
    try:
        return datetime(*(int(part or 0) for part in match.groups()))  # type: ignore[arg-type]  # six numbers
    except ValueError:
        return None
