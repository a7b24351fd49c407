"""The files that an issue wants edited, at its base commit: SWE-bench issues of twelve Python repositories.

`code/issues.jsonl` holds `repo`, `mirror`, `base_commit`, `query` and `gold`, the files that the fix changed, tests
left out; `--mirrors` holds a git directory OWNER+NAME/repo for each mirror. Each commit is checked out, the tree is
built and brought up to date by `build_tree`, and all Python files that are no tests are ranked by `files_to_edit`.
Several sets look at the same run: all issues or some, with or without the history up to the base commit, files or the
definitions in the gold files that the fix changed (see `fixes`).

With `--keep`, the tree of each commit stays in `--work`, and with `--again` issues are ranked anew on the trees that
were kept: a changed ranking is scored in minutes, as long as what the index holds has not changed.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
import time
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from itertools import pairwise
from pathlib import Path

from benchmarks.retrieval.baseline import BM25
from benchmarks.retrieval.checkouts import Checkout, is_python_source
from benchmarks.retrieval.dataset import BASELINE, OURS, Notes, Options, Outcome, first_words, rows
from benchmarks.retrieval.fixes import Fixes, spans
from benchmarks.retrieval.wrong import WrongRouter
from metatree import Limits, Node

K = 10
PLAIN, HISTORY, OPEN = "plain", "history", "open"
"""Ranked without and with history among the files that may be gold, and without history among all files."""


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
    is_candidate: Callable[[str], bool] = is_python_source
    """Says which paths BM25 and metatree rank."""

    @property
    def names_gold(self) -> bool:
        """Whether the text names a gold file, by its path or by its file name."""
        names = {path.rpartition("/")[2] for path in self.gold} - {"__init__.py"}
        return any(name in self.query for name in names)


@dataclass(slots=True)
class Run:
    """What was ranked for one issue."""

    ranked: dict[str, list[str]]
    """`BM25`, `plain`, `history`, `open` -> files, best first."""
    seconds: dict[str, float]
    """`build`, `index`, `plain`, `history`, `open`."""
    calls: int = 0
    definitions: dict[str, list[str]] = field(default_factory=dict)
    """`BM25`, `plain`, `history` -> definitions in the gold files as `path::name`, best first."""
    changed: list[str] = field(default_factory=list)
    """Those of them that the fix changed; empty where the fix is not known."""


@dataclass(slots=True)
class Issues:
    """Some of the issues, ranked in one way; implements `Benchmark`."""

    name: str
    about: str
    keep: Callable[[Issue], bool]
    system: str = PLAIN
    metrics: Sequence[str] = ("Acc@1", "Acc@3", "Acc@5", "Acc@10", "MRR")
    goals: Mapping[str, float] = field(default_factory=dict)
    notes: Notes = field(default_factory=Notes)

    def outcomes(self, options: Options) -> Iterator[Outcome]:
        """Rank the files for each issue; what another set of this run or an earlier run in `--work` ranked is kept."""
        issues = [issue for issue in _read(options) if self.keep(issue)]
        for issue, run in ranked_issues(options, issues):
            ranked = {BASELINE: run.ranked[BASELINE], OURS: run.ranked[self.system]}
            yield Outcome(issue.id, issue.gold, ranked, run.seconds[self.system], run.calls)


@dataclass(slots=True)
class Definitions:
    """The definitions in the gold files that a fix changed; implements `Benchmark`."""

    name: str
    about: str
    system: str = PLAIN
    metrics: Sequence[str] = ("Hit@1", "Hit@5", "R@5")
    goals: Mapping[str, float] = field(default_factory=dict)
    notes: Notes = field(default_factory=Notes)

    def outcomes(self, options: Options) -> Iterator[Outcome]:
        """Rank the definitions of the gold files, for the issues whose fix is known and changed any."""
        for issue, run in ranked_issues(options, _read(options)):
            if run.changed:
                ranked = {
                    BASELINE: run.definitions[BASELINE],
                    OURS: run.definitions[self.system],
                }
                yield Outcome(issue.id, frozenset(run.changed), ranked, run.seconds[self.system], run.calls)


def _read(options: Options) -> list[Issue]:
    found = []
    counts: dict[str, int] = {}
    for row in rows(options.data / "code" / "issues.jsonl"):
        counts[row["repo"]] = counts.get(row["repo"], 0) + 1
        if options.limit is None or counts[row["repo"]] <= options.limit:
            found.append(
                Issue(
                    id=row["id"],
                    repo=row["repo"],
                    mirror=row["mirror"],
                    base_commit=row["base_commit"],
                    query=row["query"],
                    gold=frozenset(row["gold"]),
                    subsets=frozenset(row.get("subsets") or ()),
                )
            )
    return found


# running

_DONE: dict[tuple[float, int | None], dict[str, Run]] = {}
"""What this process has ranked, by the share of wrong choices and the words of descriptions."""


def ranked_issues(options: Options, issues: Sequence[Issue]) -> Iterator[tuple[Issue, Run]]:
    """Yield each issue with what was ranked for it, one repository after the other.

    Raises:
        FileNotFoundError: a mirror is not there.
    """
    by_repo: dict[str, list[Issue]] = {}
    for issue in issues:
        by_repo.setdefault(issue.repo, []).append(issue)
    with tempfile.TemporaryDirectory() as temporary:
        work = options.work or Path(temporary)
        work.mkdir(parents=True, exist_ok=True)
        for repo, mine in sorted(by_repo.items(), key=lambda entry: len(entry[1])):
            done = _done(options, work, repo)
            missing = [issue for issue in mine if issue.id not in done]
            if missing:
                _run_repository(options, work, missing, done)
            yield from ((issue, done[issue.id]) for issue in mine)


def mirror_of(options: Options, repository: str) -> Path:
    """Return the git directory of a repository.

    Raises:
        FileNotFoundError: it is not there.
    """
    if options.mirrors is None or not options.mirrors.is_dir():
        raise FileNotFoundError(0, "no mirrors", str(options.mirrors or "--mirrors"))
    mirror = options.mirrors / repository.replace("/", "+") / "repo"
    if not (mirror / "objects").is_dir():
        raise FileNotFoundError(0, "no mirror", str(mirror))
    return mirror


def _done(options: Options, work: Path, repo: str) -> dict[str, Run]:
    done = _DONE.setdefault((options.wrong, options.words), {})
    file = _log(options, work, repo)
    if options.work is not None and file.exists() and not options.again:
        for row in rows(file):
            if OPEN in row["ranked"]:  # what was ranked before all files were is ranked again
                done[row["id"]] = Run(
                    row["ranked"], row["seconds"], row["calls"], row["definitions"], row["changed"]
                )
    return done


def _log(options: Options, work: Path, repo: str) -> Path:
    """Where a run that is cut off goes on from."""
    how = f"-wrong{options.wrong}" if options.wrong else ""
    how += f"-words{options.words}" if options.words is not None else ""
    return work / f"{repo.replace('/', '+')}{how}.jsonl"


def _run_repository(options: Options, work: Path, issues: Sequence[Issue], done: dict[str, Run]) -> None:
    place = work / issues[0].repo.replace("/", "+")
    mirror = mirror_of(options, issues[0].mirror)
    checkout, fixes = Checkout(mirror, place), Fixes(mirror)
    dates = checkout.dates(issue.base_commit for issue in issues)
    baseline = CodeBM25()
    for issue in sorted(issues, key=lambda issue: (dates.get(issue.base_commit, 0), issue.id)):
        run = done[issue.id] = _run(options, issue, checkout, fixes, place, baseline)
        with _log(options, work, issue.repo).open("a", encoding="utf-8") as out:
            out.write(json.dumps({"id": issue.id, **asdict(run)}) + "\n")


def _run(
    options: Options, issue: Issue, checkout: Checkout, fixes: Fixes, place: Path, baseline: CodeBM25
) -> Run:
    from metatree_agents.code import locate
    from metatree_memory_tools import build_tree
    from metatree_routers import EmbeddedRouter, FileEvidence, TextEvidence, rank_files

    blobs = checkout.move_to(issue.base_commit, issue.is_candidate)

    def accept(node: Node) -> bool:
        return node.id in blobs

    ranked = {BASELINE: baseline.rank(issue.query, blobs, checkout.text)}
    definitions = {BASELINE: _bm25_definitions(issue, checkout)}
    kept = place / "kept" / issue.id
    tree_place = kept if options.keep and kept.exists() else place / "tree"
    calls = 0
    times = [time.perf_counter()]
    with build_tree(checkout.folder, out=tree_place, history=True) as tree:
        times.append(time.perf_counter())
        if options.words is not None:
            for node in [node for _, node in tree.walk()]:
                tree.update(replace(node, description=first_words(node.description, options.words)))
        evidence = TextEvidence(tree)
        evidence.refresh()
        if evidence.commits is not None:
            evidence.commits.refresh()
        times.append(time.perf_counter())
        ways: Sequence[tuple[str, bool, Callable[[Node], bool] | None]]
        ways = ((PLAIN, False, accept), (HISTORY, True, accept), (OPEN, False, None))
        for system, with_history, listed in ways:
            evidence = TextEvidence(tree, history=with_history)
            router = WrongRouter(EmbeddedRouter(), options.wrong, issue.id) if options.wrong else None
            files, search = locate(
                issue.query,
                tree,
                K,
                accept=listed,
                router=router,
                # With a router of its own, a search has the evidence that it is given, and not that of whole files.
                evidence=FileEvidence(evidence, tree, accept=listed) if router is not None else evidence,
                limits=Limits(router_calls=200),
            )
            times.append(time.perf_counter())
            ranked[system] = [file.path for file in files]
            calls = search.usage.router_calls
            gold = rank_files(evidence, tree, issue.query, len(issue.gold), accept=issue.gold.__contains__)
            definitions[system] = [f"{file.path}::{d.name}" for file in gold for d in file.definitions]
    if options.keep and tree_place != kept:
        shutil.copytree(tree_place, kept)
    names = ("build", "index", PLAIN, HISTORY, OPEN)
    seconds = {name: b - a for name, (a, b) in zip(names, pairwise(times), strict=True)}
    changed = sorted(f"{path}::{name}" for path, name in fixes.definitions(issue.base_commit, issue.gold))
    return Run(ranked, seconds, calls, definitions, changed)


def _bm25_definitions(issue: Issue, checkout: Checkout) -> list[str]:
    """Rank the definitions of the gold files by BM25 over their lines."""
    texts = {}
    for path in sorted(issue.gold):
        if (checkout.folder / path).is_file():
            text = checkout.text(path)
            lines = text.splitlines()
            for start, end, name in spans(text):
                texts[f"{path}::{name}"] = "\n".join(lines[start - 1 : end])
    return list(BM25(texts).rank(issue.query, K)) if texts else []


# the published line

_WORD = re.compile(r"\w+")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


class CodeBM25:
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

    def tokens(self, text: str) -> list[int]:
        return [number for token in _WORD.findall(text) for number in self._words(token)]

    def rank(
        self, question: str, blobs: Mapping[str, str], read: Callable[[str], str], k: int = K
    ) -> list[str]:
        """Rank the files of a commit; the words of a blob are kept."""
        import bm25s

        paths = list(blobs)
        for path, blob in blobs.items():
            if blob not in self._blobs:
                self._blobs[blob] = array("i", self.tokens(read(path)))
        corpus = [[*self.tokens(path), *self._blobs[blobs[path]]] for path in paths]
        wanted = [number for number in self.tokens(question) if number < len(self._numbers)]
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
        return [paths[i] for i in order[:k]]


def _goals(*values: float) -> dict[str, float]:
    return dict(zip(("Acc@1", "Acc@3", "Acc@5", "Acc@10"), values, strict=False))


def _sets() -> Iterable[Issues | Definitions]:
    everything, lite = (lambda _: True), (lambda issue: "lite" in issue.subsets)
    yield Issues("code", "files, without history", everything, goals=_goals(0.58, 0.77, 0.83, 0.90))
    yield Issues("code-lite", "those of lite", lite, goals=_goals(0.68, 0.88, 0.93))
    yield Issues(
        "code-unnamed",
        "no gold file is named",
        lambda issue: not issue.names_gold,
        goals={"Acc@5": 0.76},
    )
    yield Issues("code-named", "a gold file is named", lambda issue: issue.names_gold)
    yield Issues("code-several", "several gold files", lambda issue: len(issue.gold) > 1)
    yield Issues("code-history", "with history", everything, HISTORY, goals=_goals(0.60, 0.79, 0.85, 0.91))
    yield Issues("code-open", "without history, of all files", everything, OPEN)
    yield Issues("code-lite-history", "lite, with history", lite, HISTORY, goals=_goals(0.70, 0.90, 0.94))
    yield Definitions("code-definitions", "definitions in the gold files")


SETS = tuple(_sets())
