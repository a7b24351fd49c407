"""Unicode's normal forms of texts of strangers, in a time that grows with their length alone.

To normalise takes the square of how many combining marks stand in a row, which no language has more than a few of.
Source: UAX #15, Stream-Safe Text Format.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Final

_MOST_MARKS: Final = 30
_JOINER: Final = "\N{COMBINING GRAPHEME JOINER}"
_RUN: Final = re.compile(rf"[^\x00-\u02ff]{{{_MOST_MARKS + 1},}}")
"""Where so many marks may stand in a row: none is below U+0300."""


def nfc(text: str) -> str:
    """Return a text in NFC; of more than 30 combining marks in a row, each 30 for themselves.

    Example:
        >>> nfc("e\\u0301") == "\\xe9"
        True
    """
    return unicodedata.normalize("NFC", _RUN.sub(lambda run: "".join(_joined(run[0])), text))


def most_marks(text: str) -> int:
    """Return the most combining marks in a row in a text, 0 where there are no more than 30 anywhere.

    Example:
        >>> most_marks("a" + "\\u0301" * 40), most_marks("Ä" * 40)
        (40, 0)
    """
    if text.isascii():
        return 0
    return max((most for run in _RUN.finditer(text) if (most := _most(run[0])) > _MOST_MARKS), default=0)


def _most(run: str) -> int:
    most = marks = 0
    for char in run:
        marks = marks + 1 if unicodedata.combining(char) else 0
        most = max(most, marks)
    return most


def _joined(run: str) -> Iterator[str]:
    marks = 0
    for char in run:
        marks = marks + 1 if unicodedata.combining(char) else 0
        if marks > _MOST_MARKS:
            yield _JOINER
            marks = 1
        yield char
