"""TOML of files that strangers made, read within bounds."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import Any, Final

from metatree._util.secret_text import shapes_masked

_LONG_KEY: Final = re.compile(
    r"""(?<![\w-])(?:(?:[A-Za-z0-9_-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){100}"""
)
"""A hundred parts of a key. `tomllib` keeps each beginning of a dotted key: 60 kB of `a.a.a…` take 3.5 GB."""
_SHORT_KEY: Final = 15
"""A longer one may be a part of a secret with dots, which is not known by it."""
_QUOTED: Final = re.compile(r"""(['"])(.*?)\1""")


def loads(text: str) -> dict[str, Any]:
    """Parse TOML as `tomllib.loads` does, but no key of more than a hundred parts, and no number beyond 64 bits.

    Raises:
        tomllib.TOMLDecodeError: it is no TOML, or has such a key or number.
    """
    if match := _LONG_KEY.search(text):
        line = text.count("\n", 0, match.start()) + 1
        raise tomllib.TOMLDecodeError(f"a key has more than 100 parts (at line {line}, column 1)")
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as exc:  # it repeats keys that are there twice
        raise tomllib.TOMLDecodeError(public_message(str(exc))) from None
    except ValueError as exc:  # a number of thousands of digits
        raise tomllib.TOMLDecodeError(f"{exc} (at line 1, column 1)") from exc
    # TOML promises 64 bits; Python reads hexadecimal numbers of any length, and then cannot print them.
    for key, value in _numbers(values):
        if value.bit_length() > 64:
            named = repr(key) if len(key) <= _SHORT_KEY else "a key"
            raise tomllib.TOMLDecodeError(f"the number of {named} does not fit into 64 bits")
    return values


def public_message(message: str) -> str:
    """Return what a parser of TOML says without names that look like secrets, whole or when their parts are joined.

    Example:
        >>> public_message("Cannot declare ('servers', 'tea') twice (at line 3, column 15)")
        "Cannot declare ('servers', 'tea') twice (at line 3, column 15)"
    """
    named = ".".join(match[2] for match in _QUOTED.finditer(message))
    if shapes_masked(named) == named:
        return shapes_masked(message)
    begin, end = next(_QUOTED.finditer(message)).start(), max(map(message.rfind, "'\""))
    return shapes_masked(f"{message[:begin]}…{message[end + 1 :]}")


def _numbers(values: dict[str, Any]) -> Iterator[tuple[str, int]]:
    """Yield the whole numbers of a document, each with the nearest key above it."""
    pending: list[tuple[str, Any]] = [("", values)]
    while pending:
        key, value = pending.pop()
        if isinstance(value, int):
            yield key, value
        elif isinstance(value, dict):
            pending.extend(value.items())
        elif isinstance(value, list):
            pending.extend((key, each) for each in value)
