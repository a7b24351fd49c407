"""What the fix of an issue changed: the definitions that hold the changed lines, from the mirror's history.

The fix is the first commit after the base commit that changes exactly the gold files, tests and documents aside, as
they are at the base commit. Where a mirror has none, such as one that ends too early, nothing is known of an issue.
"""

from __future__ import annotations

import ast
import re
import subprocess
import warnings
from collections.abc import Collection, Iterator
from pathlib import Path

from benchmarks.retrieval.checkouts import is_python_source

_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@", re.MULTILINE)


class Fixes:
    """Finds fixes in a bare git directory."""

    def __init__(self, mirror: Path) -> None:
        self._mirror = mirror

    def _git(self, *arguments: str) -> str:
        command = ["git", "--git-dir", str(self._mirror), *arguments]
        return subprocess.run(command, capture_output=True, check=True).stdout.decode("utf-8", "replace")

    def definitions(self, base: str, gold: Collection[str]) -> set[tuple[str, str]]:
        """Return (path, dotted name) of each innermost definition with changed lines; empty when no fix is found."""
        blobs = self._blobs(base, gold)
        for commit, touched in self._candidates(base, gold):
            if set(touched) != set(gold) or any(touched[path][0] != blobs.get(path) for path in gold):
                continue
            if self._others(commit) != set(gold):
                continue
            found = set()
            for path, (old, new) in touched.items():
                text = self._git("cat-file", "blob", old)
                lines = changed_lines(self._git("diff", "-U0", old, new))
                found |= {(path, name) for name in definitions_at(text, lines)}
            return found
        return set()

    def _blobs(self, commit: str, paths: Collection[str]) -> dict[str, str]:
        listed = self._git("ls-tree", "-z", commit, "--", *paths).split("\0")
        return {entry.partition("\t")[2]: entry.split()[2] for entry in listed if entry}

    def _candidates(
        self, base: str, gold: Collection[str]
    ) -> Iterator[tuple[str, dict[str, tuple[str, str]]]]:
        """Yield the commits after the base that change gold files, oldest first, with (old, new) blob of each."""
        listed = self._git(
            "log",
            "--all",
            "--raw",
            "--no-abbrev",
            "--no-renames",
            "--diff-merges=first-parent",
            "--full-history",
            "--ancestry-path",
            "--format=%x00%H",
            f"^{base}",
            "--",
            *gold,
        ).split("\0")
        for entry in listed[:0:-1]:
            commit, _, changes = entry.partition("\n")
            touched = {}
            for line in changes.splitlines():
                if line.startswith(":"):
                    _, _, old, new, status = line.partition("\t")[0].split()
                    if status == "M":
                        touched[line.partition("\t")[2]] = old, new
            yield commit, touched

    def _others(self, commit: str) -> set[str]:
        """Return the Python files that are no tests which a commit changed."""
        listed = self._git("log", "-1", "--name-only", "--diff-merges=first-parent", "--format=", commit)
        return set(filter(is_python_source, listed.splitlines()))


def changed_lines(diff: str) -> list[range]:
    """Return the old lines of each hunk of a diff without context; of an insertion, the line before it.

    Example:
        >>> changed_lines("@@ -3,2 +3 @@\\n@@ -9,0 +9,4 @@\\n")
        [range(3, 5), range(9, 10)]
    """
    return [range(int(start), int(start) + max(1, int(count or 1))) for start, count in _HUNK.findall(diff)]


def definitions_at(text: str, changed: Collection[range]) -> set[str]:
    """Return the dotted names of the innermost functions and classes that hold changed lines.

    Example:
        >>> definitions_at("class A:\\n    x = 1\\n    def f(self):\\n        return 2\\n", [range(4, 5)])
        {'A.f'}
    """
    inside = list(spans(text))
    found = set()
    for lines in changed:
        for line in lines:
            around = [(end - start, name) for start, end, name in inside if start <= line <= end]
            if around:
                found.add(min(around)[1])
    return found


def spans(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield (first line, last line, dotted name) of each function and class; nothing of what cannot be parsed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return
    yield from _spans(tree, "")


def _spans(node: ast.AST, above: str) -> Iterator[tuple[int, int, str]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            start = min([child.lineno, *(decorator.lineno for decorator in child.decorator_list)])
            name = f"{above}{child.name}"
            yield start, child.end_lineno or child.lineno, name
            yield from _spans(child, f"{name}.")
        else:
            yield from _spans(child, above)
