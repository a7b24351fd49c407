"""Measure `context_for` on issues whose fix is known, beside three plain ways of choosing lines, in one run.

usage: python -m benchmarks.code_context --data DIR --mirrors DIR [--repo OWNER/NAME …] [--half 0|1] [--limit N]

`DIR/code/issues.jsonl` has the issues (SWE-bench), `DIR/code/lines.jsonl` the lines at the base commit that each fix
changes; `--mirrors` holds a git directory OWNER+NAME/repo for each repository. Files that may be shown are Python files
that are no tests. All ways count tokens with the same tokenizer, and the lines that they give:

- `context_for`: this project.
- `BM25 definitions`: bm25s over all functions and classes, identifiers split; whole ones in their order while they fit.
- `BM25 first lines`: the beginnings of the five best files by bm25s, a fifth of the tokens each.
- `whole files`: the files that `files_to_edit` ranks best, whole, until the tokens are spent.

`one` and `all` are the shares of issues with one and all edited spans inside what was given; `efficiency` is the mean
share of the given lines that lie in an edited definition (of an edited line outside of any, the line itself).
`--half` takes the issues whose id has an even or odd checksum: weights were fitted on half 0, half 1 is for reports.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import md5
from pathlib import Path
from typing import Any

import bm25s
from metatree_agents.code import files_to_edit, nearly_best
from metatree_agents.context import context_for, token_counter
from metatree_memory_tools import build_tree
from metatree_routers import TextEvidence

from benchmarks.retrieval.checkouts import Checkout, is_python_source
from benchmarks.retrieval.code import CodeBM25
from benchmarks.retrieval.fixes import spans

BUDGETS = (2000, 4000, 8000)
OURS, DEFINITIONS, BEGINNINGS, WHOLE = "context_for", "BM25 definitions", "BM25 first lines", "whole files"
Given = dict[str, set[int]]
Spans = Mapping[str, Sequence[tuple[int, int]]]


@dataclass(slots=True)
class Score:
    """What one way gave for one issue."""

    one: bool
    all: bool
    efficiency: float
    lines: int


@dataclass(slots=True)
class World:
    """The files of one commit."""

    texts: Mapping[str, str]
    count: Callable[[str], int]
    _lines: dict[str, list[str]] = field(default_factory=dict)

    def lines(self, path: str) -> list[str]:
        if path not in self._lines:
            self._lines[path] = self.texts[path].split("\n")
        return self._lines[path]

    def cost(self, path: str, numbers: Sequence[int]) -> int:
        lines = self.lines(path)
        return self.count("\n".join(lines[number - 1] for number in numbers)) + 1


def scored(edits: Spans, given: Given, world: World) -> Score:
    """Score the lines that were given."""
    inside = [
        set(range(first, last + 1)) <= given.get(path, set())
        for path, ranges in edits.items()
        for first, last in ranges
    ]
    edited = {path: edited_lines(world.texts.get(path, ""), ranges) for path, ranges in edits.items()}
    lines = sum(map(len, given.values()))
    useful = sum(len(numbers & edited.get(path, set())) for path, numbers in given.items())
    return Score(any(inside), all(inside), useful / lines if lines else 0.0, lines)


def edited_lines(text: str, ranges: Sequence[tuple[int, int]]) -> set[int]:
    """Return the lines of the innermost definitions that were edited, and edited lines outside of any.

    Example:
        >>> sorted(edited_lines("import a\\ndef f():\\n    return 1\\nb = 2\\n", [(1, 1), (3, 3)]))
        [1, 2, 3]
    """
    inside = list(spans(text))
    found: set[int] = set()
    for first, last in ranges:
        for line in range(first, last + 1):
            around = [(end - start, start, end) for start, end, _ in inside if start <= line <= end]
            found |= {line} if not around else set(range(min(around)[1], min(around)[2] + 1))
    return found


def bm25_definitions(issue: str, world: World, words: CodeBM25) -> Iterator[tuple[str, int, int]]:
    """Yield functions and classes, best first."""
    found = []
    for path, text in world.texts.items():
        lines = text.splitlines()
        for first, last, name in spans(text):
            found.append((path, first, last, words.tokens(name + "\n" + "\n".join(lines[first - 1 : last]))))
    numbers = {number: place for place, number in enumerate(sorted({n for row in found for n in row[3]}))}
    retriever = bm25s.BM25()
    vocabulary = {str(number): place for number, place in numbers.items()}
    retriever.index(([[numbers[n] for n in row[3]] for row in found], vocabulary), show_progress=False)
    scores = retriever.get_scores([str(n) for n in words.tokens(issue) if n in numbers])
    for place in sorted(range(len(found)), key=lambda i: -float(scores[i])):
        yield found[place][:3]


def whole_definitions(ranked: Iterator[tuple[str, int, int]], world: World, budget: int) -> Given:
    """Take definitions in their order while they fit."""
    given: Given = {}
    for path, first, last in ranked:
        fresh = [line for line in range(first, last + 1) if line not in given.get(path, ())]
        cost = world.cost(path, fresh) if fresh else 0
        if fresh and cost <= budget:
            budget -= cost
            given.setdefault(path, set()).update(fresh)
        if budget < 20:
            break
    return given


def beginnings(paths: Sequence[str], world: World, budget: int, *, share: int = 1) -> Given:
    """Take lines of files from the first on, each file within its share of the tokens, or what the last one left."""
    given: Given = {}
    left = budget
    for path in paths:
        left = budget // share if share > 1 else left
        for number in range(1, len(world.lines(path)) + 1):
            left -= world.cost(path, [number])
            if left < 0:
                break
            given.setdefault(path, set()).add(number)
        if left < 0 and share == 1:
            break
    return given


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--mirrors", type=Path, required=True)
    parser.add_argument("--repo", action="append", help="only these; by default those whose mirror is there")
    parser.add_argument("--half", type=int, choices=(0, 1))
    parser.add_argument("--limit", type=int, help="issues of each repository")
    parser.add_argument(
        "--work", type=Path, help="folder for checkouts and trees; a temporary one by default"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        _run(options, options.work or Path(temporary))


def _run(options: argparse.Namespace, work: Path) -> None:
    lines = _rows(options.data / "code" / "lines.jsonl")
    edits = {row["id"]: row["edits"] for row in lines}
    by_repo: dict[str, list[dict[str, Any]]] = {}
    for row in _rows(options.data / "code" / "issues.jsonl"):
        there = options.mirrors / str(row["mirror"]).replace("/", "+") / "repo"
        wanted = row["repo"] in options.repo if options.repo else there.is_dir()
        if wanted and (
            options.half is None or int(md5(row["id"].encode()).hexdigest(), 16) % 2 == options.half
        ):
            by_repo.setdefault(row["repo"], []).append(row)
    scores: dict[tuple[str, int], list[Score]] = {}
    f1: dict[str, list[float]] = {}
    for issues in by_repo.values():
        for issue in issues[: options.limit]:
            _measure(options, work, issue, edits[issue["id"]], scores, f1)
    for budget in BUDGETS:
        print(f"\n{budget} tokens                one    all   efficiency  lines")
        for way in (OURS, DEFINITIONS, BEGINNINGS, WHOLE):
            rows = scores.get((way, budget), [])
            if rows:
                means = [
                    _mean([getattr(row, name) for row in rows])
                    for name in ("one", "all", "efficiency", "lines")
                ]
                print(f"{way:24}  {means[0]:.3f}  {means[1]:.3f}  {means[2]:.3f}      {means[3]:.0f}")
    print("\nfile F1: " + ", ".join(f"{name} {_mean(values):.3f}" for name, values in f1.items()))
    print(f"{len(next(iter(f1.values()), []))} issues; tokens by {token_counter()[1]}")


def _measure(
    options: argparse.Namespace,
    work: Path,
    issue: dict[str, Any],
    edits: Spans,
    scores: dict[tuple[str, int], list[Score]],
    f1: dict[str, list[float]],
) -> None:
    place = work / str(issue["repo"]).replace("/", "+")
    checkout = Checkout(options.mirrors / str(issue["mirror"]).replace("/", "+") / "repo", place)
    blobs = checkout.move_to(str(issue["base_commit"]), is_python_source)
    world = World({path: checkout.text(path) for path in blobs}, token_counter()[0])
    query, words = str(issue["query"]), CodeBM25()
    ranked = list(bm25_definitions(query, world, words))
    by_words = words.rank(query, blobs, checkout.text)
    with build_tree(checkout.folder, out=place / "tree", history=False) as tree:
        evidence = TextEvidence(tree, history=False)
        files = files_to_edit(query, tree, 10, accept=lambda node: node.id in blobs, evidence=evidence)
        for budget in BUDGETS:
            chosen = context_for(query, tree, budget, accept=lambda node: node.id in blobs, evidence=evidence)
            assert chosen.tokens <= budget
            given: Given = {}
            for each in chosen.ranges:
                given.setdefault(each.path, set()).update(range(each.start_line, each.end_line + 1))
            ways = {
                OURS: given,
                DEFINITIONS: whole_definitions(iter(ranked), world, budget),
                BEGINNINGS: beginnings(by_words[:5], world, budget, share=5),
                WHOLE: beginnings([file.path for file in files], world, budget),
            }
            for way, lines in ways.items():
                scores.setdefault((way, budget), []).append(scored(edits, lines, world))
    gold = set(edits)
    for name, listed in {"auto": nearly_best(files), "k=1": files[:1], "k=2": files[:2]}.items():
        hits = len(gold & {file.path for file in listed})
        f1.setdefault(name, []).append(2 * hits / (len(gold) + len(listed)) if hits else 0.0)
    ours = scores[OURS, 4000][-1]
    print(f"{issue['id']}  one {ours.one:d} all {ours.all:d} efficiency {ours.efficiency:.2f}", flush=True)


def _rows(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


if __name__ == "__main__":
    main()
