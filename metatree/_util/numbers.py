"""Whole numbers in texts that strangers made: Python converts no text of more than 4,300 digits."""

from __future__ import annotations

from typing import Final

MOST_DIGITS: Final = 18
"""What has no more than these fits into a database."""


def whole_number(text: str) -> int | None:
    """Return the number that digits spell; None for any other text, and for more than 18 digits.

    Example:
        >>> [whole_number(text) for text in ("007", "-7", "", "7a", "1" * 5_000)]
        [7, None, None, None, None]
    """
    return int(text) if len(text) <= MOST_DIGITS and text.isdecimal() else None
