"""The sections of reStructuredText, by the rules of its specification for titles.

A title is a line of text at the beginning of a block with a line of one repeated sign below it, or above and below
it; ranks follow from the order in which the ornaments appear. docutils itself would run the directives of a file
(read others, fetch pictures), is ten times slower, and has no lines for what it includes.

On 797 real files both found the same titles.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from metatree_memory_tools.documents._document_text import Extracted, Heading
from metatree_memory_tools.text.descriptions import MOST_HEADINGS, docstring_prose, shorten, unmarked_by

_ORNAMENT = re.compile(r"([!-/:-@\[-`{-~])\1*\s*$")
_EXPLICIT = re.compile(r"\.\.(?:\s|$)|__(?:\s|$)")
_FIELD = re.compile(r":[^:\s][^:]*:(?:\s|$)")
# At the beginning of a line alone, and of numbers, single letters and small Roman numbers: no word is one of these.
_NUMBER = r"(?:\d{1,3}|[A-Za-z]|#|[ivx]{1,5}|[IVX]{1,5})"
_LIST = re.compile(rf"^(?:[-*+•]|{_NUMBER}[.)]|\({_NUMBER}\))\s+")
# As the specification has it, a mark between two letters is none: x**2, str|bytes.
_MARKS = re.compile(
    r"(?<![\w*])\*+(?=[^\s*])|(?<=[^\s*])\*+(?![\w*])|(?<![\w`])`+|`+_{0,2}(?![\w`])"
    r"|(?<!\w)\||\|(?!\w)|(?<=[^\W_])_(?=\W|$)"
)
_MAY_MARK = re.compile(r"[*`|_]")
_SUBSTITUTED = re.compile(r"\s*<[^>]*>`")
_TITLE_CHARS = 120


def extract_rst(lines: Sequence[str]) -> Extracted:
    """Return the lines of a file with its titles as headings."""
    result = Extracted(lines=list(lines))
    ranks: dict[tuple[str, bool], int] = {}
    number, last = 1, len(lines)
    while number <= last:
        title = _title_at(lines, number)
        if title is None:
            number += 1
            continue
        if len(result.headings) == MOST_HEADINGS:
            result.problem = (
                f"only its first {MOST_HEADINGS:,} headings are sections; the last holds the rest"
            )
            break
        text, style, span = title
        rank = ranks.setdefault(style, len(ranks) + 1)
        result.headings.append(Heading(rank, shorten(unmarked(text[:1_000]), _TITLE_CHARS), number, span))
        number += span
    return result


def _title_at(lines: Sequence[str], number: int) -> tuple[str, tuple[str, bool], int] | None:
    """Return text, style (sign, with a line above) and number of lines of the title that begins at a line, if any."""
    line = lines[number - 1].rstrip()
    if not line or line[0].isspace():
        return None
    if number > 1 and lines[number - 2].strip() and not _ends_block(lines, number - 1):
        return None
    below = lines[number].rstrip() if number < len(lines) else ""
    ornament = _ORNAMENT.match(line)
    if ornament:
        under = lines[number + 1].rstrip() if number + 1 < len(lines) else ""
        if below.strip() and under == line and len(below) <= max(len(line), 4) and not _ORNAMENT.match(below):
            return below.strip(), (ornament[1], True), 3
        return None
    under_ornament = _ORNAMENT.match(below)
    if under_ornament is None or _EXPLICIT.match(line) or _FIELD.match(line):
        return None
    if len(below) < 4 and len(below) < len(line):
        return None
    if below.startswith("::") and len(below) == 2:
        return None  # a paragraph that introduces literal text
    return line, (under_ornament[1], False), 2


def _ends_block(lines: Sequence[str], number: int) -> bool:
    """Whether a line that is not blank ends a block, so that a title may follow at once."""
    line = lines[number - 1]
    return line[0].isspace() or _EXPLICIT.match(line) is not None or _ORNAMENT.match(line) is not None


def unmarked(text: str) -> str:
    """Return a line of reStructuredText without its marks.

    Example:
        >>> unmarked("The **new** :func:`open` and `docs <https://example.org>`_ of ``io``")
        'The new open and docs of io'
    """
    text = docstring_prose(text)
    # Which of them are marks takes longer to say than that there are none, as in most lines.
    return (
        unmarked_by(_MARKS, _SUBSTITUTED.sub("`", text)).strip() if _MAY_MARK.search(text) else text.strip()
    )


def prose(lines: Iterable[str]) -> Iterator[str]:
    """Yield lines as a description may say them: without directives, comments, tables, fields and ornament."""
    skip = False
    for line in lines:
        text = line.strip()
        if _EXPLICIT.match(line):
            skip = True
        elif text and not line[0].isspace():
            skip = False
        if skip or _ORNAMENT.match(text) or _FIELD.match(text) or text.startswith(("+-", "==", "|")):
            yield ""
        else:
            yield unmarked(_LIST.sub("", text))
