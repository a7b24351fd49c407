"""Which files does an issue want edited? Real issues of twelve repositories, ranked by BM25 and by metatree.

usage: python benchmarks/localisation.py --data DIR --mirrors DIR [--repos psf/requests,...] [--subset lite]
                                         [--limit N] [--work DIR] [--out FILE]

DIR of --data holds `issues.jsonl`: SWE-bench issues with `repo`, `mirror`, `base_commit`, `query` and `gold`, the
files that the fix changed, tests left out. DIR of --mirrors holds a git directory OWNER+NAME/repo for each mirror.
Each commit is checked out, the tree is built through the public API, and all Python files that are no tests are
ranked. Acc@k: every gold file is in the first k. The intervals are 95 % bootstrap intervals over issues.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

KS = (1, 3, 5, 10)
KEPT = 50
"""Files kept of each ranking."""
RESAMPLES = 1_000


@dataclass(frozen=True, slots=True)
class Issue:
    """One line of `issues.jsonl`."""

    id: str
    repo: str
    mirror: str
    base_commit: str
    query: str
    gold: frozenset[str]
    subsets: frozenset[str]

    @property
    def names_gold(self) -> bool:
        """Whether the text names a gold file, by its path or by its file name."""
        names = {path.rpartition("/")[2] for path in self.gold} - {"__init__.py"}
        return any(name in self.query for name in names)


@dataclass(slots=True)
class Outcome:
    """What was ranked for one issue."""

    issue: Issue
    bm25: list[str]
    metatree: list[str]
    seconds: dict[str, float] = field(default_factory=dict)


def is_test(path: str) -> bool:
    """Say whether a path is a test: in a folder test, tests or testing, or a file test.py, test_*.py, conftest.py …"""
    *folders, name = path.split("/")
    return (
        any(folder in ("test", "tests", "testing") for folder in folders)
        or name in ("conftest.py", "test.py", "tests.py")
        or name.startswith("test_")
        or name.endswith("_test.py")
    )


# checking out


class Checkout:
    """The files of one repository at one commit after the other; only what differs is written."""

    def __init__(self, mirror: Path, work: Path) -> None:
        self.folder = work / "files"
        self.folder.mkdir(parents=True, exist_ok=True)
        self._mirror = mirror
        self._environment = {
            **os.environ,
            "GIT_INDEX_FILE": str(work / "git-index"),
            "GIT_WORK_TREE": str(self.folder),
        }

    def _git(self, *arguments: str, check: bool = True) -> bytes:
        command = [
            "git",
            "--git-dir",
            str(self._mirror),
            "-c",
            "core.bare=false",
            "-c",
            "core.symlinks=false",
            *arguments,
        ]
        return subprocess.run(
            command, env=self._environment, cwd=self.folder, capture_output=True, check=check
        ).stdout

    def move_to(self, commit: str) -> dict[str, str]:
        """Write the files of a commit; return the blob id of each Python file that is no test."""
        before = self._git("ls-files", "-z").split(b"\0")
        self._git("read-tree", "--reset", commit)
        gone = set(before) - set(self._git("ls-files", "-z").split(b"\0"))
        for name in gone:
            with suppress(OSError):
                (self.folder / os.fsdecode(name)).unlink()
        # Goes on past what a mirror lacks, such as large data files; `read-tree -u` would not.
        self._git("checkout-index", "--all", "--force", "--index", "--quiet", check=False)
        blobs = {}
        for entry in self._git("ls-tree", "-r", "-z", commit).decode("utf-8", "replace").split("\0"):
            if entry:
                (mode, kind, blob), path = entry.partition("\t")[0].split(), entry.partition("\t")[2]
                if kind == "blob" and mode != "120000" and path.endswith(".py") and not is_test(path):
                    blobs[path] = blob
        return blobs

    def dates(self, commits: Iterable[str]) -> dict[str, int]:
        """Return the time of each commit."""
        listed = self._git("show", "-s", "--format=%H %ct", *dict.fromkeys(commits)).decode()
        return {line.split()[0]: int(line.split()[1]) for line in listed.splitlines() if line}

    def text(self, path: str) -> str:
        """Return the text of a file."""
        return (self.folder / path).read_bytes().decode("utf-8", "replace")


# the published line


_WORD = re.compile(r"\w+")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


class BM25:
    """bm25s with its defaults over path and text; identifiers split, Snowball stems, English stop words of bm25s."""

    def __init__(self) -> None:
        import Stemmer
        from bm25s.stopwords import STOPWORDS_EN

        stemmer = Stemmer.Stemmer("english")
        stop = set(STOPWORDS_EN)

        @cache
        def words(token: str) -> tuple[int, ...]:
            parts = [part.lower() for part in _PART.findall(token)]
            said = [*parts, token.lower()] if len(parts) > 1 else [token.lower()]
            return tuple(
                self._number(stemmer.stemWord(word)) for word in said if word not in stop and len(word) > 1
            )

        self._numbers: dict[str, int] = {}
        self._words = words
        self._blobs: dict[str, array[int]] = {}

    def _number(self, word: str) -> int:
        return self._numbers.setdefault(word, len(self._numbers))

    def _tokens(self, text: str) -> list[int]:
        return [number for token in _WORD.findall(text) for number in self._words(token)]

    def rank(self, question: str, blobs: dict[str, str], read: Callable[[str], str]) -> list[str]:
        """Rank the files of a commit; the words of a blob are kept."""
        import bm25s

        paths = list(blobs)
        for path, blob in blobs.items():
            if blob not in self._blobs:
                self._blobs[blob] = array("i", self._tokens(read(path)))
        corpus = [[*self._tokens(path), *self._blobs[blobs[path]]] for path in paths]
        wanted = [number for number in self._tokens(question) if number < len(self._numbers)]
        retriever = bm25s.BM25()
        present = {number for tokens in corpus for number in tokens}
        local = {number: place for place, number in enumerate(sorted(present))}
        vocabulary = {str(number): place for number, place in local.items()}
        ids = [[local[number] for number in tokens] for tokens in corpus]
        retriever.index((ids, vocabulary), show_progress=False)
        query = [str(number) for number in wanted if number in local]
        if not query:
            return []
        scores = retriever.get_scores(query)
        order = sorted(range(len(paths)), key=lambda i: (-float(scores[i]), paths[i]))
        return [paths[i] for i in order[:KEPT]]


# running


def outcomes(
    issues: Sequence[Issue], mirrors: Path, work: Path, done: dict[str, Outcome]
) -> Iterator[Outcome]:
    """Rank the files for each issue, repository by repository, commits in the order of their dates."""
    by_repo: dict[str, list[Issue]] = {}
    for issue in issues:
        by_repo.setdefault(issue.repo, []).append(issue)
    for repo, mine in by_repo.items():
        yield from (done[issue.id] for issue in mine if issue.id in done)
        mine = [issue for issue in mine if issue.id not in done]
        mirror = mirrors / mine[0].mirror.replace("/", "+") / "repo" if mine else mirrors
        if mine and not (mirror / "objects").is_dir():
            print(f"left out {len(mine)} issues of {repo}: there is no mirror {mirror}", file=sys.stderr)
        elif mine:
            yield from _of_repository(mine, Checkout(mirror, work / repo.replace("/", "+")), work)


def _of_repository(issues: list[Issue], checkout: Checkout, work: Path) -> Iterator[Outcome]:
    from metatree_memory_tools import build_tree
    from metatree_routers import TextEvidence, rank_files

    dates = checkout.dates(issue.base_commit for issue in issues)
    baseline = BM25()
    out = work / issues[0].repo.replace("/", "+") / "tree"
    for issue in sorted(issues, key=lambda issue: (dates.get(issue.base_commit, 0), issue.id)):
        blobs = checkout.move_to(issue.base_commit)
        times = [time.perf_counter()]
        with build_tree(checkout.folder, out=out) as tree:
            times.append(time.perf_counter())
            evidence = TextEvidence(tree)
            evidence.refresh()
            times.append(time.perf_counter())
            found = rank_files(evidence, tree, issue.query, KEPT, accept=blobs.__contains__)
            times.append(time.perf_counter())
        lines = baseline.rank(issue.query, blobs, checkout.text)
        seconds = dict(
            zip(
                ("build", "index", "rank"),
                (b - a for a, b in pairwise(times)),
                strict=True,
            )
        )
        yield Outcome(issue, lines, [file.path for file in found], seconds)


# scoring


def scores(gold: frozenset[str], ranked: Sequence[str]) -> list[float]:
    """Return Acc@1, Acc@3, Acc@5, Acc@10 and the reciprocal rank of the first gold file."""
    accuracy = [float(gold <= set(ranked[:k])) for k in KS]
    return [*accuracy, next((1 / place for place, path in enumerate(ranked, 1) if path in gold), 0.0)]


def table(title: str, found: Sequence[Outcome]) -> str:
    """Return both systems side by side, with intervals, and the difference."""
    if not found:
        return f"{title}: no issues"
    bm25 = [scores(outcome.issue.gold, outcome.bm25) for outcome in found]
    ours = [scores(outcome.issue.gold, outcome.metatree) for outcome in found]
    gain = [[b - a for a, b in zip(x, y, strict=True)] for x, y in zip(bm25, ours, strict=True)]
    heads = [*(f"Acc@{k}" for k in KS), "MRR"]
    lines = [f"{title} ({len(found)} issues)", f"{'':10}" + "".join(f"{head:>22}" for head in heads)]
    for name, rows in (("BM25", bm25), ("metatree", ours), ("gain", gain)):
        lines.append(f"{name:10}" + "".join(f"{cell:>22}" for cell in _cells(rows)))
    return "\n".join(lines)


def _cells(rows: list[list[float]]) -> Iterator[str]:
    rng = random.Random(0)
    samples = [rng.choices(range(len(rows)), k=len(rows)) for _ in range(RESAMPLES)]
    for column in zip(*rows, strict=True):
        means = sorted(sum(column[i] for i in sample) / len(sample) for sample in samples)
        low, high = means[int(0.025 * RESAMPLES)], means[int(0.975 * RESAMPLES)]
        yield f"{statistics.fmean(column):.3f} [{low:.3f} {high:.3f}]"


def report(found: Sequence[Outcome]) -> str:
    """Return all tables and the times."""
    named = [outcome for outcome in found if outcome.issue.names_gold]
    unnamed = [outcome for outcome in found if not outcome.issue.names_gold]
    single = [outcome for outcome in found if len(outcome.issue.gold) == 1]
    lite = [outcome for outcome in found if "lite" in outcome.issue.subsets]
    parts = [table("all", found), table("lite", lite), table("one gold file", single)]
    parts += [table("a gold file is named", named), table("no gold file is named", unnamed)]
    for repo in sorted({outcome.issue.repo for outcome in found}):
        parts.append(table(repo, [outcome for outcome in found if outcome.issue.repo == repo]))
    for what in ("build", "index", "rank"):
        seconds = sorted(outcome.seconds[what] for outcome in found if what in outcome.seconds)
        if seconds:
            slow = seconds[int(0.95 * (len(seconds) - 1))]
            parts.append(
                f"{what}: median {1000 * statistics.median(seconds):.0f} ms, 95 % within {1000 * slow:.0f} ms"
            )
    return "\n\n".join(parts)


# command line


def read_issues(data: Path) -> list[Issue]:
    """Read `issues.jsonl` in a folder, or in its subfolder `code`."""
    file = data / "issues.jsonl" if (data / "issues.jsonl").exists() else data / "code" / "issues.jsonl"
    issues = []
    for line in file.read_text(encoding="utf-8").splitlines():
        raw: dict[str, Any] = json.loads(line)
        issues.append(
            Issue(
                id=raw["id"],
                repo=raw["repo"],
                mirror=raw["mirror"],
                base_commit=raw["base_commit"],
                query=raw["query"],
                gold=frozenset(raw["gold"]),
                subsets=frozenset(raw.get("subsets") or ()),
            )
        )
    return issues


def read_done(file: Path | None, issues: Iterable[Issue]) -> dict[str, Outcome]:
    """Read what an earlier run wrote, so that it goes on where that one stopped."""
    by_id = {issue.id: issue for issue in issues}
    if file is None or not file.exists():
        return {}
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line]
    return {
        row["id"]: Outcome(by_id[row["id"]], row["bm25"], row["ranked"], row["seconds"])
        for row in rows
        if row["id"] in by_id
    }


def main() -> None:
    """Run and print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder with issues.jsonl")
    parser.add_argument(
        "--mirrors", type=Path, required=True, help="folder with OWNER+NAME/repo git directories"
    )
    parser.add_argument("--repos", help="only these, with commas between them")
    parser.add_argument("--subset", help="only issues of this subset, for example lite")
    parser.add_argument("--limit", type=int, help="only the first N issues of each repository")
    parser.add_argument(
        "--work", type=Path, help="where checkouts and trees are kept; a temporary folder by default"
    )
    parser.add_argument(
        "--out", type=Path, help="append a line of JSON for each issue; issues in it are not run again"
    )
    chosen = parser.parse_args()

    issues = read_issues(chosen.data)
    if chosen.repos:
        issues = [issue for issue in issues if issue.repo in chosen.repos.split(",")]
    if chosen.subset:
        issues = [issue for issue in issues if chosen.subset in issue.subsets]
    if chosen.limit:
        seen: dict[str, int] = {}
        kept = []
        for issue in issues:
            seen[issue.repo] = seen.get(issue.repo, 0) + 1
            kept += [issue] if seen[issue.repo] <= chosen.limit else []
        issues = kept
    done = read_done(chosen.out, issues)
    found = []
    with tempfile.TemporaryDirectory() as temporary:
        for outcome in outcomes(issues, chosen.mirrors, chosen.work or Path(temporary), done):
            found.append(outcome)
            if outcome.issue.id not in done and chosen.out:
                row = {
                    "id": outcome.issue.id,
                    "ranked": outcome.metatree,
                    "bm25": outcome.bm25,
                    "seconds": outcome.seconds,
                }
                with chosen.out.open("a", encoding="utf-8") as out:
                    out.write(json.dumps(row) + "\n")
            print(f"\r{len(found)}/{len(issues)} {outcome.issue.id:40}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    print(report(found))


if __name__ == "__main__":
    main()
