"""Which lines of a file its definitions have, and which are left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


class OwnedLines:
    """The lines of a file, counted from 1; those that a definition below the one at hand has are owned."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self._owned = bytearray(len(lines) + 2)

    def __contains__(self, line: int) -> bool:
        return bool(self._owned[line])

    def own(self, first: int, last: int) -> None:
        """Give the lines from first to last to a definition."""
        self._owned[first : last + 1] = b"\1" * (last + 1 - first)

    def left(self, first: int, last: int) -> list[int]:
        """Return the lines from first to last that are not blank and that no definition owns."""
        return [
            line for line in range(first, last + 1) if not self._owned[line] and self._lines[line - 1].strip()
        ]

    def ranges(self, left: Sequence[int]) -> Iterator[tuple[int, int]]:
        """Yield ranges that cover lines and the blank lines between them, but no line that is owned."""
        first = previous = left[0]
        for line in left[1:]:
            if any(self._owned[previous + 1 : line]):
                yield first, previous
                first = line
            previous = line
        yield first, previous
