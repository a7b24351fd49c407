"""TOML of files that strangers made, read within bounds."""

from __future__ import annotations

import re
import tomllib
from typing import Any, Final

_LONG_KEY: Final = re.compile(
    r"""(?<![\w-])(?:(?:[A-Za-z0-9_-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){100}"""
)
"""A hundred parts of a key. `tomllib` keeps each beginning of a dotted key: 60 kB of `a.a.a…` take 3.5 GB."""


def loads(text: str) -> dict[str, Any]:
    """Parse TOML as `tomllib.loads` does, but no key of more than a hundred parts.

    Raises:
        tomllib.TOMLDecodeError: it is no TOML, or has such a key.
    """
    if match := _LONG_KEY.search(text):
        line = text.count("\n", 0, match.start()) + 1
        raise tomllib.TOMLDecodeError(f"a key has more than 100 parts (at line {line}, column 1)")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except ValueError as exc:  # a number of thousands of digits
        raise tomllib.TOMLDecodeError(f"{exc} (at line 1, column 1)") from exc
