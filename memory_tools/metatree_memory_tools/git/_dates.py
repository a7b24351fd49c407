"""Times as git tells them, which whoever made a commit may have made up."""

from __future__ import annotations

import re

_SECONDS = re.compile(r"-?[0-9]{1,18}")


def seconds_of(text: str) -> int:
    """Return a time in seconds; 0 for what is none, or more than a database keeps.

    Example:
        >>> seconds_of("1700000000"), seconds_of("18446744073709551615"), seconds_of("")
        (1700000000, 0, 0)
    """
    return int(text) if _SECONDS.fullmatch(text) else 0
