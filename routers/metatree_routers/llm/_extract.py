"""Find the JSON object in what a model wrote: bare, in a code fence, behind its thoughts, or with small slips.

What it takes grows with the length of the text and no faster, and is bounded: what a server sends is read on the loop
that all searches share. Lost: each brace tried to the end of the text; 200 kB of braces took 45 s.
"""

from __future__ import annotations

import ast
import contextlib
import json
import re
import warnings
from collections import deque
from collections.abc import Collection, Iterator
from typing import Any

_END_OF_THOUGHTS = re.compile(r"</think(?:ing)?>", re.IGNORECASE)
_TRAILING_COMMA = re.compile(r",(\s*[}\]])")
_STRING_OR_BRACE = re.compile(r'\\.|"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|[{}]', re.DOTALL)
_DECODER = json.JSONDecoder(strict=False)
MAX_CHARS = 20_000
"""Of an answer that is not JSON from its first character to its last, only this much of its end is looked through."""
MAX_WHOLE = 200_000
"""An answer that is JSON from its first character to its last is read up to this length."""
_MAX_DECODED = 40 * MAX_CHARS
"""Characters that are decoded, over all braces at which an object may begin."""
_TRY_COSTS = 400
"""What a brace at which nothing begins costs, in characters that could be decoded meanwhile."""
_MAX_REPAIRED = 2 * MAX_CHARS
"""Characters that are looked through for small slips, over all tries."""
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
    text = text[-MAX_WHOLE:]
    thoughts = deque(_END_OF_THOUGHTS.finditer(text), maxlen=1)
    text = text[thoughts[0].end() if thoughts else 0 :].strip()
    candidates = [*_objects(text)]
    if not candidates:
        return None
    fitting = [value for value in candidates if any(name in value for name in fields)]
    chosen = (fitting or candidates)[-1]
    if fields and not fitting:
        for name in _WRAPPERS:
            inner = chosen.get(name)
            if isinstance(inner, str):
                inner = _loaded(inner[:MAX_CHARS])
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
    text = text[-MAX_CHARS:]
    at, decodable, repairable = text.find("{"), _MAX_DECODED, _MAX_REPAIRED
    while at >= 0 and decodable > 0:
        value, end, decoded = _object_at(text, at)
        decodable -= _TRY_COSTS + decoded
        if value is None and repairable > 0:
            closing = _closing(text, at)
            repairable -= (closing or len(text)) - at
            repaired = None if closing is None else _loaded(text[at:closing])
            if isinstance(repaired, dict):
                value, end = repaired, closing or end
        if value is not None:
            yield value
        at = text.find("{", end)


def _object_at(text: str, at: int) -> tuple[dict[str, Any] | None, int, int]:
    """Return the object that begins at a brace where it is JSON as it is, where to go on, and how much was decoded."""
    try:
        value, end = _DECODER.raw_decode(text, at)
    except json.JSONDecodeError as exc:
        return None, at + 1, exc.pos - at
    except (ValueError, RecursionError):
        return None, at + 1, len(text) - at
    return (value, end, end - at) if isinstance(value, dict) else (None, at + 1, end - at)


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
    if text[:1] not in "{[" or len(text) > MAX_CHARS:
        return None
    try:
        with warnings.catch_warnings():  # about escapes in a text that is no program
            warnings.simplefilter("ignore")
            return ast.literal_eval(text)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
