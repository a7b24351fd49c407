"""Find the JSON object in what a model wrote: bare, in a code fence, behind its thoughts, or with small slips."""

from __future__ import annotations

import ast
import contextlib
import json
import re
import warnings
from collections.abc import Collection, Iterator
from typing import Any

_THOUGHTS = re.compile(r".*</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_TRAILING_COMMA = re.compile(r",(\s*[}\]])")
_STRING_OR_BRACE = re.compile(r'\\.|"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|[{}]', re.DOTALL)
_DECODER = json.JSONDecoder(strict=False)
MAX_CHARS = 200_000
_MAX_TRIES = 64
_WRAPPERS = ("arguments", "parameters", "answer", "response", "result")


def json_object(text: str, fields: Collection[str] = ()) -> dict[str, Any] | None:
    """Return the object that a model meant as its answer, None when there is none.

    Of several, it is the last with one of the fields, else the last: what comes before may be repeated from the prompt.

    Example:
        >>> json_object('Sure! ```json\\n{"choice": "A",}\\n``` I hope this helps.')
        {'choice': 'A'}
        >>> json_object("No idea.") is None
        True
    """
    text = _THOUGHTS.sub("", text[:MAX_CHARS]).strip()
    candidates = [*_objects(text)]
    if not candidates:
        return None
    fitting = [value for value in candidates if any(name in value for name in fields)]
    chosen = (fitting or candidates)[-1]
    if fields and not fitting:
        for name in _WRAPPERS:
            inner = chosen.get(name)
            if isinstance(inner, str):
                inner = _loaded(inner)
            if isinstance(inner, dict) and any(field in inner for field in fields):
                return inner
    return chosen


def _objects(text: str) -> Iterator[dict[str, Any]]:
    whole = _loaded(text)
    if isinstance(whole, dict):
        yield whole
        return
    if isinstance(whole, list) and len(whole) == 1 and isinstance(whole[0], dict):
        yield whole[0]
        return
    at, tries = text.find("{"), 0
    while at >= 0 and tries < _MAX_TRIES:
        tries += 1
        value, end = _object_at(text, at)
        if value is not None:
            yield value
        at = text.find("{", end)


def _object_at(text: str, at: int) -> tuple[dict[str, Any] | None, int]:
    """Return the object that begins at a place and where to go on; repair small slips when it is not JSON as it is."""
    try:
        value, end = _DECODER.raw_decode(text, at)
    except (ValueError, RecursionError):
        closing = _closing(text, at)
        value = None if closing is None else _loaded(text[at:closing])
        end = at + 1 if closing is None or value is None else closing
    return (value, end) if isinstance(value, dict) else (None, end)


def _closing(text: str, at: int) -> int | None:
    """Return the place behind the brace that closes the one at `at`."""
    depth = 0
    for token in _STRING_OR_BRACE.finditer(text, at):
        depth += {"{": 1, "}": -1}.get(token[0], 0)
        if depth == 0:
            return token.end()
    return None


def _loaded(text: str) -> Any:
    """Read JSON, JSON with commas too many, or a Python literal."""
    with contextlib.suppress(ValueError, RecursionError):
        return _DECODER.decode(text)
    with contextlib.suppress(ValueError, RecursionError):
        return _DECODER.decode(_TRAILING_COMMA.sub(r"\1", text))
    if text[:1] not in "{[" or len(text) > 20_000:
        return None
    try:
        with warnings.catch_warnings():  # about escapes in a text that is no program
            warnings.simplefilter("ignore")
            return ast.literal_eval(text)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
