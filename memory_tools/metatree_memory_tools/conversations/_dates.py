"""Dates as people and programs write them, as ISO 8601."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Any

_FORMS = (
    "%I:%M %p on %d %B, %Y",
    "%d %B, %Y",
    "%d %B %Y",
    "%d %b %Y",
    "%B %d, %Y",
    "%b %d, %Y",
    "%d %B %Y %H:%M",
    "%B %d, %Y %H:%M",
    "%B %d, %Y %I:%M %p",
    "%d.%m.%Y, %H:%M",
    "%d.%m.%Y, %H:%M:%S",
    "%d.%m.%y, %H:%M",
    "%d.%m.%Y %H:%M",
    "%d.%m.%Y",
    "%d/%m/%Y, %H:%M",
    "%d/%m/%Y, %H:%M:%S",
    "%m/%d/%y, %I:%M %p",
    "%m/%d/%Y, %I:%M %p",
    "%m/%d/%y, %I:%M:%S %p",
    "%m/%d/%Y, %I:%M:%S %p",
    "%d/%m/%y, %H:%M",
    "%m/%d/%y, %H:%M",
    "%Y/%m/%d %H:%M",
    "%Y/%m/%d",
)
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_SPACES = re.compile(r"[\s\u202f\u00a0]+")
_ORDINAL = re.compile(r"(?<=\d)(?:st|nd|rd|th)\b")


def iso(value: Any) -> str:
    """Return a date, with its time when it has one, as ISO 8601; empty when it is none.

    Numbers are seconds or milliseconds of Unix time, given in universal time. Of dates with slashes, those with an
    AM or PM have the month first, others the day.

    Example:
        >>> iso("1:56 pm on 8 May, 2023"), iso(1_700_000_000), iso("2024-05-17"), iso("soon")
        ('2023-05-08T13:56', '2023-11-14T22:13:20+00:00', '2024-05-17', '')
    """
    if isinstance(value, bool) or value is None:
        return ""
    if isinstance(value, datetime):
        return value.isoformat(timespec="seconds")
    if isinstance(value, int | float):
        try:
            seconds = value / 1000 if abs(value) > 100_000_000_000 else value
            return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
        except (OverflowError, OSError, ValueError):
            return ""
    return _of_text(value) if isinstance(value, str) else ""


@lru_cache(maxsize=4096)
def _of_text(text: str) -> str:
    text = _ORDINAL.sub("", _SPACES.sub(" ", text).strip(" []()"))
    if not text or len(text) > 60 or not any(char.isdigit() for char in text):
        return ""
    if re.fullmatch(r"\d{10}(?:\.\d+)?|\d{13}", text):
        return iso(float(text))
    try:
        moment = datetime.fromisoformat(text.replace(" UTC", "+00:00"))
        return text[:10] if re.fullmatch(r"\d{4}-\d\d-\d\d", text) else _shortest(moment)
    except ValueError:
        pass
    for form in _FORMS:
        try:
            moment = datetime.strptime(text, form)
        except ValueError:
            continue
        return moment.date().isoformat() if "%H" not in form and "%I" not in form else _shortest(moment)
    try:
        return parsedate_to_datetime(text).isoformat(timespec="seconds")
    except (ValueError, TypeError, IndexError, OverflowError):  # also of a year of eleven digits
        return ""


def _shortest(moment: datetime) -> str:
    return moment.isoformat(timespec="seconds" if moment.second or moment.tzinfo else "minutes")


def shown(at: str) -> str:
    """Return a date as people read it, from ISO 8601: `2023-05-08 13:56`.

    Example:
        >>> shown("2023-05-08T13:56"), shown("2023-11-14T22:13:20+00:00"), shown("2024-05-17")
        ('2023-05-08 13:56', '2023-11-14 22:13', '2024-05-17')
    """
    return at[:16].replace("T", " ")


def long_date(at: str) -> str:
    """Return a date with the name of its month, as questions have it: `8 May 2023 13:56`.

    Example:
        >>> long_date("2023-05-08T13:56"), long_date("2024-05-17")
        ('8 May 2023 13:56', '17 May 2024')
    """
    try:
        year, month, day = at[:10].split("-")
        return f"{int(day)} {_MONTHS[int(month) - 1]} {year}{at[10:16].replace('T', ' ')}"
    except (ValueError, IndexError):
        return shown(at)


def moment(at: str) -> datetime | None:
    """Return an ISO 8601 date as a moment, in universal time where it names no zone; None when it is empty."""
    if not at:
        return None
    try:
        result = datetime.fromisoformat(at)
    except ValueError:
        return None
    return result if result.tzinfo is not None else result.replace(tzinfo=UTC)
