"""Short descriptions made of what is there: first sentences, and names as far as they fit."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise

from metatree._util.secret_text import masked

DESCRIPTION_CHARS = 300
"""How long a description may be."""

SENTENCE_CHARS = 200
"""How long the sentence that it begins with may be."""

MOST_HEADINGS = 10_000
"""Of a file of text. Each takes 1.5 kB while it is read, hundreds of times what the shortest ones take in the file."""

BEHIND = 20_000
_MOST_OF_WORD = 1_000_000
_BLANK = re.compile(r"\s")
"""Characters behind a cut by which a secret is known that begins before it: a private key is the longest."""

_END = re.compile(r"(?<=[.!?])\s+(?=[^a-z])|(?<=:)\n\s*\n|\n\s*\n")
_ROLE = re.compile(r":[\w:+.-]{1,60}:`~?!?([^`<]*(?<!\s))\s*(?:<[^`>]*>)?`")
_UNDERLINE = re.compile(r"^[ \t]*([=~\-^*#\"'`+.:_])\1{2,}+[ \t\r]*$", re.MULTILINE)
_ABBREVIATION = re.compile(r"(?:\b(?:e\.g|i\.e|etc|cf|vs|resp|approx|No)|\b[A-Z])\.$")


def shorten(text: str, limit: int) -> str:
    """Return a text in one line of at most `limit` characters, cut between words.

    Example:
        >>> shorten("one two\\n  three", 9)
        'one two…'
    """
    text = " ".join(text.split())
    if len(text) <= limit:
        return text
    cut = text[: limit - 1]
    space = cut.rfind(" ")
    return (cut[:space] if space > limit // 2 else cut).rstrip(" ,;:.") + "…"


def shorten_masked(text: str, limit: int) -> str:
    """Return a text as `shorten` does, and `*` for a secret that would be cut: nothing knows the beginning of one.

    For texts whose secrets are masked later, or nowhere: what documents, servers and exports say of themselves.

    Example:
        >>> shorten_masked("https://ann:hunter2hunter2@shop.example.org/", 20)
        'https://ann:*******…'
    """
    if len(text) <= limit:
        return shorten(text, limit)
    line = " ".join(text.split())
    return shorten(masked(line[: word_end(line, limit + BEHIND)])[0], limit)


def cut_masked(text: str, limit: int) -> str:
    """Return the first characters of a text, with `*` for a secret that would be cut."""
    return text if len(text) <= limit else masked(text[: word_end(text, limit + BEHIND)])[0][:limit]


def word_end(text: str, at: int) -> int:
    """Return where the word ends that stands at a place of a text: what is cut in the middle of a key is none.

    Example:
        >>> word_end("one two", 5), word_end("one", 9)
        (7, 3)
    """
    blank = _BLANK.search(text, at, at + _MOST_OF_WORD)
    return min(len(text), at + _MOST_OF_WORD) if blank is None else blank.start()


def beginning(line: str, limit: int) -> str:
    """Return the words of a line that lie within so many characters; of a single word, as much as fits."""
    if len(line) <= limit:
        return line
    words = line[: limit + 1].rpartition(" ")[0]
    return words if words.strip() else line[: len(line) - len(line.lstrip()) + limit]


def first_sentence(text: str, limit: int = SENTENCE_CHARS) -> str:
    """Return the first sentence of a text, or the first paragraph when that ends before.

    Example:
        >>> first_sentence("Parse dates, e.g. of mails. Slow.\\n\\nMore.")
        'Parse dates, e.g. of mails.'
    """
    text = text.strip()
    for end in _END.finditer(text[: 4 * limit]):
        if not _ABBREVIATION.search(text[: end.start()]):
            return shorten(text[: end.start()], limit)
    return shorten(text[: 4 * limit], limit)


def unmarked_by(marks: re.Pattern[str], text: str) -> str:
    """Return a text with what the first group that matched says in place of each mark, and no two words made one.

    Example:
        >>> unmarked_by(re.compile(r"<[^>]*>"), "one<br>two<i>.</i>")
        'one two.'
    """

    pieces, at = [], 0
    for match in marks.finditer(text):
        pieces += [text[at : match.start()], match[match.lastindex] if match.lastindex else ""]
        at = match.end()
    if not pieces:
        return text
    pieces.append(text[at:])
    words = [piece for piece in pieces if piece]
    ends = [one[-1].isalnum() and other[0].isalnum() for one, other in pairwise(words)]
    return "".join(piece + " " * end for piece, end in zip(words, [*ends, False], strict=False))


def docstring_prose(text: str) -> str:
    """Return a docstring without underlines, roles of reStructuredText, and a title that is only a dotted name.

    Example:
        >>> docstring_prose("app.mail\\n~~~~~~~~\\n\\nSend a :class:`Mail <app.Mail>`.")
        'Send a Mail.'
    """
    if ":`" in text:
        text = unmarked_by(_ROLE, text)
    if _UNDERLINE.search(text):
        lines = text.strip().split("\n")
        while lines and not _word(lines[0]):
            lines.pop(0)
        if len(lines) > 1 and not _word(lines[1]) and " " not in lines[0].strip():
            lines = lines[2:]
        text = "\n".join(line if _word(line) else "" for line in lines)
    return text.strip()


def _word(line: str) -> bool:
    return any(char.isalnum() for char in line)


def is_whole(sentence: str, text: str) -> bool:
    """Whether a first sentence says all that the text says."""
    return sentence == " ".join(text.split())


def with_names(text: str, label: str, names: Iterable[str], limit: int = DESCRIPTION_CHARS) -> str:
    """Return a text followed by as many names as fit, as in `Sends mail. Classes: Mail, Box.`"""
    names = list(names)
    if not names:
        return text
    start = f"{sentence(text)} {label}: " if text else f"{label}: "
    fitting = ""
    for number, name in enumerate(names):
        longer = f"{fitting}, {name}" if fitting else name
        rest = ", …" if number + 1 < len(names) else "."
        if len(start) + len(longer) + len(rest) > limit:
            return start + fitting + ", …" if fitting else text
        fitting = longer
    return start + fitting + "."


def sentence(text: str) -> str:
    """Return a text with a full stop at its end, unless it ends in one or something like it."""
    return text if not text or text[-1] in ".!?…:" else text + "."
