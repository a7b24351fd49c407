"""Regular expressions of strangers over many lines, with a limit of time.

A pattern such as `(a+)+$` takes time without end, and nothing in Python can stop it. One that repeats nothing cannot;
any other is looked for by a process of its own.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from metatree._util.process import python
from metatree.errors import UserError

LIMIT_S = 10.0
_LINE_CHARS = 2_000
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
) -> list[tuple[str, int]]:
    """Return (name, line from 1) of the lines that a pattern is in, at most `most`, in order.

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
        return _matching(expression, texts, most)
    request = json.dumps([pattern, ignore_case, most, [[name, list(lines)] for name, lines in texts]])
    try:
        done = subprocess.run(
            python("from metatree_memory_tools.text.pattern import main; main()"),
            input=request.encode(),
            capture_output=True,
            timeout=limit_s,
            check=True,
            cwd=Path(sys.executable).anchor or None,
        )
    except subprocess.TimeoutExpired:
        text = f"the pattern {pattern!r} takes more than {limit_s:.0f} seconds: use a simpler one, or a smaller part"
        raise UserError(text) from None
    return [(str(name), int(line)) for name, line in json.loads(done.stdout)]


def _matching(
    expression: re.Pattern[str], texts: Iterable[tuple[str, Sequence[str]]], most: int
) -> list[tuple[str, int]]:
    matches: list[tuple[str, int]] = []
    for name, lines in texts:
        for number, line in enumerate(lines, start=1):
            if expression.search(line[:_LINE_CHARS]):
                matches.append((name, number))
                if len(matches) >= most:
                    return matches
    return matches


def main() -> None:
    """Answer one request on standard input."""
    pattern, ignore_case, most, texts = json.load(sys.stdin.buffer)
    matches = _matching(compiled(pattern, ignore_case=ignore_case), texts, most)
    sys.stdout.write(json.dumps(matches))
