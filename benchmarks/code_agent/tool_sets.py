"""Two sets of tools over the files of one commit; a call gives the text that a model would read, and what it showed."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from typing import Any, Protocol

from metatree_agents.tools.toolkit import Toolkit

from metatree.errors import MetatreeError

WINDOW = 200
"""Lines of one `read`."""
MOST_ROWS = 100
"""Lines of one `grep`."""
_ROW_CHARS = 200
_WORD = re.compile(r"\w+")
_PLACE = re.compile(r"^(?P<path>[^\s:]+):(?P<line>\d+): ", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Call:
    """What an agent does next: a tool and its arguments."""

    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Shown:
    """What a call gave: the text, the lines of files in it, and the answer as the tools have it."""

    text: str
    lines: Sequence[tuple[str, int, int]] = ()
    answer: Any = None


class ToolSet(Protocol):
    """The tools of an agent."""

    def call(self, call: Call) -> Shown:
        """Do it."""
        ...


class Shell:
    """`grep`, `glob` and `read` in windows, over the files that a fix may change."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.lines = {path: text.rstrip("\n").split("\n") for path, text in sorted(texts.items())}
        self.words: Counter[str] = Counter()
        """How many lines have each word."""
        for lines in self.lines.values():
            for line in lines:
                self.words.update(set(_WORD.findall(line)))

    def call(self, call: Call) -> Shown:
        """Do it."""
        tools: Mapping[str, Callable[..., Shown]] = {"grep": self.grep, "glob": self.glob, "read": self.read}
        return tools[call.tool](**call.arguments)

    def hits(self, pattern: str) -> Iterator[tuple[str, int, str]]:
        """Yield the lines that match, by path."""
        matches = re.compile(pattern).search
        for path, lines in self.lines.items():
            for number, line in enumerate(lines, start=1):
                if matches(line):
                    yield path, number, line

    def grep(self, pattern: str) -> Shown:
        """Return the lines that match, with path and number, as many as a host shows."""
        found = list(self.hits(pattern))
        rows = [f"{path}:{number}: {line.strip()[:_ROW_CHARS]}" for path, number, line in found[:MOST_ROWS]]
        if len(found) > MOST_ROWS:
            rows.append(f"… {len(found) - MOST_ROWS} more")
        shown = [(path, number, number) for path, number, _ in found[:MOST_ROWS]]
        return Shown("\n".join(rows) or "no line matches", shown, found[:MOST_ROWS])

    def glob(self, pattern: str) -> Shown:
        """Return the paths that match."""
        paths = [path for path in self.lines if fnmatch(path, pattern) or fnmatch(f"/{path}", pattern)]
        return Shown("\n".join(paths[:MOST_ROWS]) or "no path matches", answer=paths)

    def read(self, path: str, first: int) -> Shown:
        """Return a window of a file with numbered lines."""
        lines = self.lines[path][first - 1 : first - 1 + WINDOW]
        text = "\n".join(f"{number}: {line}" for number, line in enumerate(lines, start=first))
        return Shown(f"{path}\n{text}", [(path, first, first + len(lines) - 1)])


class Metatree:
    """The tools that `metatree mcp` gives to a host, by the texts that a model reads of them."""

    def __init__(self, kit: Toolkit) -> None:
        self.kit = kit

    def call(self, call: Call) -> Shown:
        """Do it."""
        try:
            answer = asyncio.run(getattr(self.kit, call.tool)(**call.arguments))
        except MetatreeError as error:  # which an agent is told
            return Shown(str(error))
        text = answer.text_for_model(self.kit.basis().line)
        return Shown(text, list(_lines_of(call.tool, answer, text)), answer)


def _lines_of(tool: str, answer: Any, text: str) -> Iterator[tuple[str, int, int]]:
    """Yield the lines of files whose text an answer shows."""
    if tool == "context":
        yield from ((each.path, each.start_line, each.end_line) for each in answer.ranges)
    elif tool == "read" and answer.path is not None:
        yield answer.path, answer.first_line, answer.last_line
    elif tool == "grep":
        yield from ((m["path"], int(m["line"]), int(m["line"])) for m in _PLACE.finditer(text))
