"""What a scripted agent does with each set of tools; the same every time, and with no look at the fix.

A script is a generator: it yields calls and is sent what they showed. Both end in the same way, by reading the files
that they hold for likeliest from the first line to the last.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence

from benchmarks.code_agent.tool_sets import WINDOW, Call, Shell, Shown

Script = Generator[Call, Shown, None]

CONTEXT_TOKENS = 4000
FILES = 10
_FIRST_GREPS, _READS = 3, 3
_DEFINED = 3.0
"""How much more a line that defines a name says than one that has it."""
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_LOOKS_LIKE_CODE = re.compile(r"_|[a-z][A-Z]|[A-Z]{2,}[a-z]|\.")
_QUOTED = re.compile(r"\"([^\"\n]{4,60})\"|'([^'\n]{4,60})'")
_MARKED = re.compile(r"```.*?```|`[^`\n]+`", re.DOTALL)
_FILE = re.compile(r"[\w/.-]*\w\.py\b")
_WORD = re.compile(r"[a-z]{4,}")
_COMMON = 300
"""A query that more lines match says nothing, and a model sees so."""


def queries(issue: str, shell: Shell) -> Iterator[str]:
    """Yield what to look for, as patterns: identifiers, then quoted strings, then words, the rarest first.

    What no line has is left out, as if the agent knew; so it wastes no call.
    """
    marked = " ".join(_MARKED.findall(issue))
    names: dict[str, None] = {}
    for name in _IDENTIFIER.findall(issue):
        if _LOOKS_LIKE_CODE.search(name) or re.search(rf"\b{re.escape(name)}\b", marked):
            names.setdefault(name.rpartition(".")[2])
    quoted = [one or other for one, other in _QUOTED.findall(issue)]
    words = dict.fromkeys(_WORD.findall(issue.lower()))
    given: set[str] = set()
    folded: Counter[str] = Counter()
    for word, count in shell.words.items():
        folded[word.lower()] += count
    groups: tuple[tuple[Iterable[str], str, Callable[[str], int]], ...] = (
        (names, r"\b{}\b", lambda text: shell.words[text]),
        (dict.fromkeys(quoted), "{}", lambda text: sum(1 for _ in shell.hits(re.escape(text)))),
        (words, r"(?i:\b{}\b)", lambda text: folded[text]),
    )
    for group, pattern, count_of in groups:
        counted = []
        for text in group:
            if len(text) > 2 and text.lower() not in given and 0 < (count := count_of(text)) <= _COMMON:
                counted.append((count, text, pattern.format(re.escape(text))))
        for _, text, asked in sorted(counted):
            if text.lower() not in given:
                given.add(text.lower())
                yield asked


def with_shell(issue: str, shell: Shell) -> Script:
    """Look for the files that the issue names, grep, and read the windows around what most queries hit."""
    weights: dict[str, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    for name in list(dict.fromkeys(_FILE.findall(issue)))[:_FIRST_GREPS]:
        shown = yield Call("glob", {"pattern": f"*/{name.rpartition('/')[2]}"})
        for path in shown.answer[:FILES]:
            weights[path][1] += 1.0
    pending = queries(issue, shell)
    read: set[tuple[str, int]] = set()
    greps = _FIRST_GREPS
    while True:
        asked = [query for query, _ in zip(pending, range(greps), strict=False)]
        for query in asked:
            shown = yield Call("grep", {"pattern": query})
            rarity = 1 / (1 + math.log(len(shown.answer) or 1))
            for path, number, line in shown.answer:
                defines = re.search(rf"^\s*(?:async )?(?:def|class)\s+{query}", line) is not None
                weights[path][number] += rarity * (_DEFINED if defines else 1.0)
        places = list(_windows(weights, read))
        for path, first in places[:_READS]:
            read.update((path, number) for number in range(first, first + WINDOW))
            yield Call("read", {"path": path, "first": first})
        if not asked and not places:
            break
        greps = 1
    ranked = sorted(weights, key=lambda path: (-sum(weights[path].values()), path))
    yield from _whole(ranked, shell, read)


def _windows(weights: dict[str, dict[int, float]], read: set[tuple[str, int]]) -> Iterator[tuple[str, int]]:
    """Yield windows around hits that were not read, the heaviest first, one of a file."""
    best = []
    for path, hits in weights.items():
        fresh = {number: weight for number, weight in hits.items() if (path, number) not in read}
        firsts = {max(1, number - WINDOW // 4) for number in fresh}
        worth = [
            (sum(weight for number, weight in fresh.items() if first <= number < first + WINDOW), -first)
            for first in firsts
        ]
        if worth:
            weight, first = max(worth)
            best.append((-weight, path, -first))
    for _, path, first in sorted(best):
        yield path, first


def with_metatree(issue: str, shell: Shell) -> Script:
    """Take the lines of the issue, then the definitions in the files to edit, then what a search finds."""
    read: set[tuple[str, int]] = set()

    def lines(shown: Shown) -> None:
        read.update((path, n) for path, first, last in shown.lines for n in range(first, last + 1))

    def unread(places: Sequence[tuple[str, int, int]]) -> Script:
        for path, first, last in places:
            if any((path, number) not in read for number in range(first, last + 1)):
                shown = yield Call("read", {"node": path, "lines": f"{first}-{last}"})
                lines(shown)

    shown = yield Call("context", {"issue": issue, "max_tokens": CONTEXT_TOKENS})
    lines(shown)
    rest = re.findall(r"([^\s,:]+):(\d+)-(\d+)", shown.answer.cut)
    yield from unread([(path, int(first), int(last)) for path, first, last in rest])
    shown = yield Call("files_to_edit", {"issue": issue, "k": FILES // 2})
    files = [file.path for file in shown.answer.files]
    yield from unread(
        [(each.path, d.start_line, d.end_line) for each in shown.answer.files for d in each.definitions]
    )
    shown = yield Call("search", {"query": issue.strip().split("\n")[0]})
    hits = [
        (hit.path, *map(int, hit.lines.split("-"))) for hit in shown.answer.nodes if hit.path and hit.lines
    ]
    yield from unread([(path, first, last) for path, first, last in hits])
    yield from _whole([path for path in files if path in shell.lines], shell, read, tool="metatree")
    shown = yield Call("files_to_edit", {"issue": issue, "k": 3 * FILES})
    more = [file.path for file in shown.answer.files if file.path in shell.lines and file.path not in files]
    yield from _whole(more, shell, read, tool="metatree")


def _whole(paths: Sequence[str], shell: Shell, read: set[tuple[str, int]], *, tool: str = "shell") -> Script:
    """Read what was not read of files, window by window."""
    for path in paths:
        count, first = len(shell.lines[path]), 1
        while first <= count:
            if (path, first) in read:
                first += 1
                continue
            if tool == "shell":
                yield Call("read", {"path": path, "first": first})
            else:
                yield Call("read", {"node": path, "lines": f"{first}-{min(count, first + WINDOW - 1)}"})
            first += WINDOW
