"""Several questions in one text are asked one by one, so that each has an answer of its own or stays open by itself.

The rules are those of English and careful: a text is cut after a question mark, before `and` where another question
begins (`… and when was it released?`), and at the commas of three questions or more, never between things
that are asked about together (`the difference between A and B`, `when and where`). Nothing is lost: each word is in
some part. What `it` stands for is put behind it, since a part is looked for without the others.

Lost: any question word after `and`, which cuts questions about questions (`how do I know who asked and when`); parts
without what `it` stands for, which find nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

MOST_CHARS = 600
"""A longer text is a report, and so is one of several lines: it stays as it is."""
MOST_PARTS = 6
_LEAST_WORDS = 3
"""Of a question before `and`: `When and where` is one."""

_AUX = (
    "is|are|was|were|am|do|does|did|has|have|had|can|could|will|would|should|shall|may|might|must|isn't|aren't|doesn't"
    "|don't|didn't|won't|can't"
)
_WH = "who|whom|whose|what|which|when|where|why|how"
_HIDDEN = re.compile(r"`[^`]*`|\"[^\"]*\"|“[^”]*”|(?<!\w)'[^']*'(?!\w)|\([^()]*\)")
_AFTER_MARK = re.compile(rf"(?<=\S\?)\s+(?=[A-ZÀ-Þ¿\"“`]|(?:and|also|but|or|und|et|y|e|{_WH}|{_AUX})\b)")
_BEFORE_AND = re.compile(
    r"(?:,|;)?\s+(?=and\s+(?:then\s+|also\s+)?"
    rf"(?:(?:in|on|at|by|under|with|from|for|to|of|since)\s+(?:which|what|whom|when|where)\b"
    rf"|who\s+\w+\s+\w|what\s+happens\b|(?:what|which|whom|whose)\s+(?:\w+\s+){{0,3}}(?:{_AUX})\b"
    rf"|(?:when|where|why|how)\s+(?:{_AUX})\b"
    r"|how\s+(?:many|much|long|often|far|large|big|old|to)\b"
    rf"|(?:{_AUX})\s+(?:it|they|he|she|there|this|that|these|those|i|you|we|the|an?)\b))",
    re.IGNORECASE,
)
_BEFORE_COMMA = re.compile(
    rf"[,;]\s+(?=(?:who\s+\w+\s+\w|(?:what|which|whom|whose)\s+(?:\w+\s+){{0,3}}(?:{_AUX})\b"
    rf"|(?:when|where|why|how)\s+(?:{_AUX})\b|how\s+(?:many|much|long|often|far|large|big|old|to)\b))",
    re.IGNORECASE,
)
_ASKS_AT_ONCE = re.compile(
    rf"\W*(?:(?:what|which|whom|whose)\s+(?:\w+\s+){{0,3}}(?:{_AUX})|who\s+\w+|(?:when|where|why|how)\s+(?:{_AUX})"
    r"|how\s+(?:many|much|long|often|far|large|big|old|to))\b",
    re.IGNORECASE,
)
"""`When the cache is full, what does it do?` is one question: what stands before a comma has to ask by itself."""
_LEAST_LISTED = 3
_ASKS = re.compile(rf"\W*(?:(?:and|also|but|so|then)\s+)*(?:\w+\s+)?(?:{_WH}|{_AUX})\b", re.IGNORECASE)
_QUESTION_WORD = re.compile(rf"\b(?:{_WH})\b", re.IGNORECASE)
_TOGETHER = re.compile(r"\b(?:between|both|compared?|either|neither|versus|vs)\b", re.IGNORECASE)
_STANDS_FOR = re.compile(r"\b(?:it|its|they|them|their|theirs)\b", re.IGNORECASE)
_NAME = re.compile(
    r"`([^`]+)`|\"([^\"]+)\"|“([^”]+)”|(?<![\w-])(--?[A-Za-z][\w-]*)"
    r"|\b(\w+(?:\.\w+)+|\w*_\w+|[a-z]+[A-Z]\w*|[A-Z]\w*[a-z]\w*[A-Z]\w*)\b"
)
_FILLERS = frozenset(
    f"{_WH}|{_AUX}|the|a|an|and|also|but|then|there|i|you|we|me|my|your|please|to|of|in|on|at|by|under|with|from|for|be"
    "|used|mean|work|works|many|much|long|often|it|its|they|them|their".split("|")
)
_MOST_NAME_WORDS = 6


def split_questions(text: str) -> list[str]:
    """Return the questions of a text, one or several, in their order.

    Example:
        >>> split_questions("Who wrote the parser and when was it released?")
        ['Who wrote the parser?', 'And when was it (parser) released?']
        >>> split_questions("What is the difference between `read` and `write`?")
        ['What is the difference between `read` and `write`?']
    """
    text = text.strip()
    if len(text) > MOST_CHARS or "\n" in text:
        return [text]
    parts = [part for sentence in _after_marks(text) for part in _before_and(sentence)]
    if not 1 < len(parts) <= MOST_PARTS:
        return [text]
    name = ""
    named = []
    for part in parts:
        # The name itself may be in a part that says `it`: that one is told first.
        named.append(_STANDS_FOR.sub(lambda word: f"{word[0]} ({name})", part, count=1) if name else part)  # noqa: B023
        name = _name_in(part) or name
    return named


def _after_marks(text: str) -> list[str]:
    """Cut behind question marks; a sentence that asks nothing stays with the question after it, or the last one."""
    shown = _covered(text)
    ends = [match.start() for match in _AFTER_MARK.finditer(shown)]
    parts: list[str] = []
    for start, end in zip([0, *ends], [*ends, len(text)], strict=True):
        part = text[start:end].strip()
        if parts and (not part.endswith("?") or not _says_something(shown[start:end])):
            parts[-1] += f" {part}"
        else:
            parts.append(part)
    return parts


def _before_and(sentence: str) -> Iterator[str]:
    shown = _covered(sentence)
    listed = _cut(
        sentence, shown, sorted([*_BEFORE_AND.finditer(shown), *_BEFORE_COMMA.finditer(shown)], key=_start)
    )
    if len(listed) >= _LEAST_LISTED:
        yield from listed
    else:
        yield from _cut(sentence, shown, _BEFORE_AND.finditer(shown))


def _start(match: re.Match[str]) -> int:
    return match.start()


def _cut(sentence: str, shown: str, matches: Iterable[re.Match[str]]) -> list[str]:
    parts, start = [], 0
    for match in matches:
        before = shown[start : match.start()]
        by_comma = match.re is _BEFORE_COMMA
        if by_comma and _ASKS_AT_ONCE.match(before) is None:
            continue
        if _is_whole(before) and len(shown[match.end() :].split()) > _LEAST_WORDS:
            parts.append(_as_question(sentence[start : match.start()]))
            start = match.end()
    return [*parts, _as_question(sentence[start:]) if start else sentence]


def _is_whole(clause: str) -> bool:
    """Whether a clause is a question that needs nothing of what follows, and has no question inside."""
    asks = _ASKS.match(clause)
    if asks is None or _TOGETHER.search(clause) or _QUESTION_WORD.search(clause, asks.end()):
        return False
    return len(clause.split()) >= _LEAST_WORDS and _says_something(clause)


def _says_something(clause: str) -> bool:
    """Whether a clause has more than words that any question has."""
    return any(word.casefold() not in _FILLERS for word in re.findall(r"[\w'-]+|\x00+", clause))


def _as_question(clause: str) -> str:
    clause = clause.strip()
    return clause[:1].upper() + clause[1:] + ("" if clause.endswith("?") else "?")


def _name_in(part: str) -> str:
    """Return what a question is about: the name in it that stands as code does, else the words that say something."""
    if (match := _NAME.search(part)) is not None:
        return str(next(filter(None, match.groups())))
    words = re.findall(r"[\w'.+#-]*\w", re.split(r"(?<=[.!])\s+", part)[-1])
    verb = next((n for n, word in enumerate(words) if word.casefold() in ("who", "what", "which")), None)
    if verb is not None and verb + 1 < len(words) and words[verb + 1].casefold() not in _AUX.split("|"):
        del words[verb + 1]  # who WROTE the parser
    while words and words[0].casefold() in _FILLERS:
        words.pop(0)
    while words and words[-1].casefold() in _FILLERS:
        words.pop()
    return " ".join(words[:_MOST_NAME_WORDS])


def _covered(text: str) -> str:
    """Return a text with what is quoted or in brackets made unreadable, each sign in its place."""
    return _HIDDEN.sub(lambda match: "\x00" * len(match[0]), text)
