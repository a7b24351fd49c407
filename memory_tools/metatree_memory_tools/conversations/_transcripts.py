"""Conversations in plain text (`speaker: what was said`), and letters in mbox and eml files."""

from __future__ import annotations

import email
import email.policy
import re
from collections.abc import Callable, Iterator
from email.message import EmailMessage
from email.utils import parseaddr

from metatree_memory_tools.conversations._dates import iso
from metatree_memory_tools.conversations._model import Conversation, Conversations, Turn, in_sessions

_LINE = re.compile(
    r"^\s*(?:[\[(]?(?P<time>\d[\d./:\-, T\u202f\u00a0]{3,24}(?:[AaPp]\.?[Mm]\.?)?(?:Z|[+-]\d\d:?\d\d)?)[\])]?"
    r"\s*(?:-\s+)?)?"
    r"(?P<speaker>[^\W\d_][\w .'’()&-]{0,39}?)\s*:(?!//)\s+(?P<text>\S.*)$"
)
_ALONE = re.compile(r"^(?:date|on|session|---|===)?\s*[:\-=]*\s*(?P<date>.{6,40}?)\s*[:\-=]*$", re.IGNORECASE)
_LEAST_TURNS = 4
_LEAST_SHARE = 0.5
_QUOTE = re.compile(r"^(?:>.*|On .{10,200} wrote:|-----Original Message-----|_{10,})$")
_SUBJECT = re.compile(r"^(?:\s*(?:re|fwd?|aw|wg|sv|vs)\s*(?:\[\d+\])?\s*:)+\s*", re.IGNORECASE)


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
            alone = _ALONE.match(line.strip())
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


def of_letters(data: bytes, *, single: bool, hide: Callable[[str], str] = str) -> Conversations:
    """Return the letters of an mbox file, or of one eml file, as conversations by subject.

    Args:
        data: the file.
        single: whether it is one letter.
        hide: takes secrets out of a text, which may have stood in the file in base64 or another encoding of letters.
    """
    threads: dict[str, list[Turn]] = {}
    skipped = 0
    for raw in [data] if single else _split_mbox(data):
        try:
            letter = email.message_from_bytes(raw, policy=email.policy.default)
            subject, turn = _letter(letter, hide)
        except Exception:  # the parser raises all kinds of errors for letters that are out of form
            skipped += 1
            continue
        threads.setdefault(subject, []).append(turn)
    conversations = tuple(
        Conversation(in_sessions(sorted(turns, key=lambda turn: turn.at)), subject or "without a subject")
        for subject, turns in threads.items()
    )
    return Conversations(conversations, f"{skipped:,} letters are out of form" if skipped else "")


def _split_mbox(data: bytes) -> Iterator[bytes]:
    for part in re.split(rb"(?:\A|\r?\n)From [^\r\n]*\r?\n", data):
        if part.strip():
            yield re.sub(rb"(?m)^>(>*From )", rb"\1", part)


def _letter(letter: EmailMessage, hide: Callable[[str], str]) -> tuple[str, Turn]:
    subject = hide(" ".join(str(letter.get("subject", "")).split()))
    name, address = parseaddr(hide(str(letter.get("from", ""))))
    body = letter.get_body(preferencelist=("plain", "html"))
    text = str(body.get_content()) if body is not None else ""
    if body is not None and body.get_content_type() == "text/html":
        text = re.sub(r"<(script|style)\b.*?</\1>|<[^>]*>", " ", text, flags=re.DOTALL | re.IGNORECASE)
    attached = [hide(part.get_filename() or part.get_content_type()) for part in letter.iter_attachments()]
    lines = [line.rstrip() for line in hide(text).splitlines() if not _QUOTE.match(line.strip())]
    message = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
    if attached:
        message += f"\n[attached: {', '.join(attached)}]"
    who = " ".join((name or address).split()) or "unknown"
    return _SUBJECT.sub("", subject), Turn(
        who, f"{subject}\n{message}".strip(), iso(str(letter.get("date", "")))
    )
