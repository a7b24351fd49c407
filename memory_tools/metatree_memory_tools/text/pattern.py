"""Regular expressions of strangers over many lines, with a limit of time.

A pattern such as `(a+)+$` takes time without end, and nothing in Python can stop it. One that repeats nothing cannot;
any other is looked for by a process of its own.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from time import monotonic

from metatree._util.process import TOP_FOLDER, python
from metatree.errors import UserError

LIMIT_S = 10.0
_LINE_CHARS = 2_000
_MOST_AT_ONCE = 20_000_000
"""Characters, of which a line counts sixty more: what a process of its own is given at once."""
_REPEATS = re.compile(r"[*+{?]")


def compiled(pattern: str, *, ignore_case: bool = False) -> re.Pattern[str]:
    """Compile a pattern.

    Raises:
        UserError: it is no regular expression.
    """
    try:
        return re.compile(pattern, re.IGNORECASE if ignore_case else 0)
    except (re.error, OverflowError, RecursionError) as exc:
        raise UserError(f"{pattern!r} is no regular expression: {exc}") from exc


def matching_lines(
    pattern: str,
    texts: Iterable[tuple[str, Sequence[str]]],
    *,
    ignore_case: bool = False,
    most: int,
    limit_s: float = LIMIT_S,
) -> list[tuple[str, int, str]]:
    """Return (name, line from 1, line) of the lines that a pattern is in, at most `most`, in order.

    Of the texts no more is kept than the lines that match and what is looked at.

    Args:
        pattern: a regular expression.
        texts: the name and the lines of each text; of a line, the first 2,000 characters are looked at.
        ignore_case: whether small and capital letters are the same.
        most: how many lines at most.
        limit_s: how many seconds it may take.

    Raises:
        UserError: it is no regular expression, or takes too long.
    """
    expression = compiled(pattern, ignore_case=ignore_case)
    if not _REPEATS.search(pattern):
        return list(islice(_each_matching(expression, texts), most))
    left_s = limit_s
    found: list[tuple[str, int, str]] = []
    for part in _in_parts(texts):
        began = monotonic()
        places = _apart(pattern, ignore_case, most - len(found), part, left_s, limit_s)
        left_s -= monotonic() - began
        lines_of = dict(part)
        found += [(name, number, lines_of[name][number - 1]) for name, number in places]
        if len(found) >= most:
            break
    return found


def _in_parts(texts: Iterable[tuple[str, Sequence[str]]]) -> Iterator[list[tuple[str, Sequence[str]]]]:
    part: list[tuple[str, Sequence[str]]] = []
    size = 0
    for name, lines in texts:
        part.append((name, lines))
        size += sum(map(len, lines)) + 60 * len(lines)
        if size >= _MOST_AT_ONCE:
            yield part
            part, size = [], 0
    if part:
        yield part


def _apart(
    pattern: str,
    ignore_case: bool,
    most: int,
    texts: Sequence[tuple[str, Sequence[str]]],
    left_s: float,
    limit_s: float,
) -> list[tuple[str, int]]:
    request = json.dumps([pattern, ignore_case, most, [[name, list(lines)] for name, lines in texts]])
    try:
        done = subprocess.run(
            python("from metatree_memory_tools.text.pattern import main; main()"),
            input=request.encode(),
            capture_output=True,
            timeout=max(0.0, left_s),
            check=True,
            cwd=TOP_FOLDER,
        )
    except subprocess.TimeoutExpired:
        text = f"the pattern {pattern!r} takes more than {limit_s:.0f} seconds: use a simpler one, or a smaller part"
        raise UserError(text) from None
    return [(str(name), int(line)) for name, line in json.loads(done.stdout)]


def _each_matching(
    expression: re.Pattern[str], texts: Iterable[tuple[str, Sequence[str]]]
) -> Iterator[tuple[str, int, str]]:
    for name, lines in texts:
        for number, line in enumerate(lines, start=1):
            if expression.search(line[:_LINE_CHARS]):
                yield name, number, line


def main() -> None:
    """Answer one request on standard input."""
    pattern, ignore_case, most, texts = json.load(sys.stdin.buffer)
    matches = islice(_each_matching(compiled(pattern, ignore_case=ignore_case), texts), most)
    sys.stdout.write(json.dumps([(name, number) for name, number, _ in matches]))
