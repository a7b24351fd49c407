"""Measure how well questions find the code that answers them, beside ripgrep and BM25 over chunks in the same run.

usage: python -m benchmarks.code_search --data FOLDER --mirrors FOLDER [--work FOLDER]

`--data` holds `queries.jsonl` and `repositories.json` in the form of semble's public benchmark: questions, the files
that answer them (some with lines), and repositories at pinned commits; `--mirrors` holds git directories
OWNER+NAME/repo. The tree of each repository is built through the public API and asked by `search(…, returns="nodes")`.

NDCG@10 over the first ten results as they come; a target's rank is that of the first result in its file. `files` takes
any result of the file; `spans` one whose lines overlap those of the target, where it has lines. Means are over the
questions of a repository, then over repositories. `--results` writes what was found: two runs are the same when these
files are.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

from metatree_memory_tools import build_tree

from benchmarks.retrieval.baseline import BM25
from metatree import search

K = 10
CHUNK_LINES = 40
OURS, CHUNKS, RIPGREP = "metatree", "BM25", "ripgrep"
_WORD = re.compile(r"\w{3,}")


@dataclass(frozen=True, slots=True)
class Found:
    """A result: a file of a repository, and the lines; None for all of it."""

    path: str
    lines: tuple[int, int] | None = None
    id: str = ""
    """Of the node, where it is one."""


@dataclass(frozen=True, slots=True)
class Question:
    """A line of `queries.jsonl`."""

    text: str
    category: str
    targets: Sequence[Found]


System = Callable[[str], Sequence[Found]]


def ndcg(found: Sequence[Found], targets: Sequence[Found], *, spans: bool) -> float:
    """Return NDCG@10 with binary gains.

    Args:
        spans: whether the lines of a target must overlap those of the result.
    """
    gain = 0.0
    for target in targets:
        for rank, each in enumerate(found[:K]):
            if _same_file(each.path, target.path) and (not spans or _overlap(each.lines, target.lines)):
                gain += 1 / math.log2(rank + 2)
                break
    return gain / sum(1 / math.log2(rank + 2) for rank in range(min(K, len(targets))))


def _same_file(one: str, other: str) -> bool:
    return one == other or one.endswith("/" + other) or other.endswith("/" + one)


def _overlap(one: tuple[int, int] | None, other: tuple[int, int] | None) -> bool:
    return one is None or other is None or (one[0] <= other[1] and other[0] <= one[1])


def questions_of(data: Path) -> dict[str, list[Question]]:
    """Return the questions of each repository."""
    questions: dict[str, list[Question]] = defaultdict(list)
    with (data / "queries.jsonl").open(encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            targets = [_target(target) for target in (*row["relevant"], *row["secondary"])]
            questions[row["repo"]].append(Question(row["query"], row["category"], targets))
    return questions


def _target(target: Any) -> Found:
    if isinstance(target, str):
        return Found(target)
    lines = (target["start_line"], target["end_line"]) if target.get("start_line") else None
    return Found(target["path"], lines)


def check_out(mirror: Path, commit: str, root: str | None, folder: Path) -> None:
    """Write the files of a commit, or those below one of its folders."""
    folder.mkdir(parents=True)
    archive = subprocess.run(
        ["git", "-C", str(mirror), "archive", commit, *([root] if root else [])],
        check=True,
        capture_output=True,
    )
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive.stdout, check=True)


def ours(folder: Path, tree_folder: Path) -> System:
    """Build the tree of a folder and search it."""
    tree = build_tree(folder, out=tree_folder)

    def find(question: str) -> list[Found]:
        nodes = search(question, tree=tree, returns="nodes", k=K).nodes
        return [Found(node.path or node.id, node.lines, node.id) for node in nodes]

    return find


def chunks(folder: Path) -> System:
    """Index chunks of forty lines by BM25, each with the path of its file."""
    texts: dict[str, str] = {}
    for path, text in _texts(folder):
        lines = text.splitlines()
        for first in range(0, max(1, len(lines)), CHUNK_LINES):
            last = min(first + CHUNK_LINES, len(lines))
            texts[f"{path}:{first + 1}:{last}"] = "\n".join([path, *lines[first:last]])
    index = BM25(texts)

    def find(question: str) -> list[Found]:
        places = (id_.rsplit(":", 2) for id_ in index.rank(question, K))
        return [Found(path, (int(first), int(last))) for path, first, last in places]

    return find


def _texts(folder: Path) -> Iterator[tuple[str, str]]:
    for file in sorted(folder.rglob("*")):
        if file.is_file() and not file.is_symlink():
            try:
                yield file.relative_to(folder).as_posix(), file.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue


def ripgrep(folder: Path, program: str) -> System:
    """Look for the words of a question; files with most matching lines come first."""

    def find(question: str) -> list[Found]:
        words = [argument for word in _WORD.findall(question) for argument in ("-e", word)]
        done = subprocess.run(
            [program, "--count", "--ignore-case", "--fixed-strings", *words, "."],
            cwd=folder,
            check=False,
            capture_output=True,
            text=True,
        )
        counts = [line.rpartition(":") for line in done.stdout.splitlines()]
        ranked = sorted(counts, key=lambda count: (-int(count[2]), count[0]))
        return [Found(path.removeprefix("./")) for path, _, _ in ranked[:K]]

    return find


@dataclass(slots=True)
class Row:
    """What one system gave for one question."""

    repository: str
    language: str
    category: str
    system: str
    files: float
    spans: float
    seconds: float
    question: str
    ids: Sequence[str]


def rows_of(
    name: str,
    repository: dict[str, Any],
    questions: Sequence[Question],
    mirrors: Path,
    work: Path,
    rg: str | None,
) -> Iterator[Row]:
    """Ask all systems all questions about one repository."""
    folder, tree_folder = work / "files" / name, work / "trees" / name
    if not folder.exists():
        mirror = mirrors / repository["mirror"].replace("/", "+") / "repo"
        check_out(mirror, repository["commit"], repository["root"], folder)
    systems = {OURS: ours(folder, tree_folder), CHUNKS: chunks(folder)}
    if rg is not None:
        systems[RIPGREP] = ripgrep(folder, rg)
    for question in questions:
        for system, find in systems.items():
            began = time.process_time()
            found = find(question.text)
            seconds = time.process_time() - began
            files, spans = (ndcg(found, question.targets, spans=which) for which in (False, True))
            yield Row(
                name,
                repository["language"],
                question.category,
                system,
                files,
                spans,
                seconds,
                question.text,
                [f.id for f in found],
            )


def table(rows: Sequence[Row], by: Callable[[Row], str]) -> Iterator[str]:
    """Yield a line for each group: questions, and NDCG@10 by files and by spans of each system."""
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        groups[by(row)].append(row)
    for group, inside in sorted(groups.items()):
        yield _line(group, inside)


def _line(title: str, rows: Sequence[Row]) -> str:
    systems = dict.fromkeys(row.system for row in rows)
    of = {system: [row for row in rows if row.system == system] for system in systems}
    cells = [f"{mean(r.files for r in of[s]):.3f} {mean(r.spans for r in of[s]):.3f}" for s in systems]
    return f"| {title} | {len(of[OURS])} | {' | '.join(cells)} |"


def total(rows: Sequence[Row]) -> str:
    """Return the line of the mean over repositories."""
    cells = []
    for system in dict.fromkeys(row.system for row in rows):
        means = []
        for name in dict.fromkeys(row.repository for row in rows):
            inside = [row for row in rows if row.system == system and row.repository == name]
            means.append((mean(row.files for row in inside), mean(row.spans for row in inside)))
        cells.append(f"**{mean(m[0] for m in means):.3f}** {mean(m[1] for m in means):.3f}")
    return f"| mean over repositories | {sum(row.system == OURS for row in rows)} | {' | '.join(cells)} |"


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", type=Path, required=True, help="folder with queries.jsonl, repositories.json"
    )
    parser.add_argument(
        "--mirrors", type=Path, required=True, help="folder with OWNER+NAME/repo git directories"
    )
    parser.add_argument(
        "--work", type=Path, help="where checkouts and trees are kept; a temporary folder by default"
    )
    parser.add_argument(
        "--rg", default=shutil.which("rg"), help="ripgrep's program; it is left out without one"
    )
    parser.add_argument(
        "--results", type=Path, help="write the ids that were found for each question to this file"
    )
    parser.add_argument("--only", action="append", metavar="NAME", help="only this repository; repeatable")
    chosen = parser.parse_args()
    repositories = json.loads((chosen.data / "repositories.json").read_text(encoding="utf-8"))
    questions = questions_of(chosen.data)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as temporary:
        work = (chosen.work or Path(temporary)).absolute()
        for name, repository in repositories.items():
            if chosen.only is None or name in chosen.only:
                rows += rows_of(name, repository, questions[name], chosen.mirrors, work, chosen.rg)
                print(name, file=sys.stderr, flush=True)
    if chosen.results is not None:
        found = [json.dumps([row.repository, row.question, row.ids]) for row in rows if row.system == OURS]
        chosen.results.write_text("\n".join(found) + "\n", encoding="utf-8")
    systems = list(dict.fromkeys(row.system for row in rows))
    print(f"| | questions | {' | '.join(f'{system}: files, spans' for system in systems)} |")
    print("|---|---:|" + "---|" * len(systems))
    for by in (lambda row: row.repository, lambda row: row.language, lambda row: row.category):
        print("\n".join(table(rows, by)))
    print(total(rows))
    for system in systems:
        spent = [row.seconds for row in rows if row.system == system]
        print(f"{system}: {1e3 * mean(spent):.1f} ms CPU a question in this process", file=sys.stderr)


if __name__ == "__main__":
    main()
