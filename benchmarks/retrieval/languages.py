"""The files that past fixes of projects in other languages than Python changed, asked for by the message of the fix.

There is no set of issues for these projects here, so the question is what the commit says, without the numbers and
people that it names, and gold are the one to three source files that it changed. A message is shorter than a report and
written by one who knows the cause, so the figures say how metatree compares with BM25 here and nothing of issues.
Nothing was tuned on them but the roles of files, which the first run of this set showed to be those of Python alone.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from benchmarks.retrieval.code import HISTORY, OPEN, PLAIN, Issue, mirror_of, ranked_issues
from benchmarks.retrieval.dataset import BASELINE, OURS, Notes, Options, Outcome

PER_REPOSITORY = 25
"""Fixes of each repository, evenly from its history; the newest where there are fewer than twice as many."""
MOST_GOLD = 3
MOST_FILES = 12
LEAST_WORDS = 8

REPOSITORIES = {
    "gin-gonic/gin": "go",
    "caddyserver/caddy": "go",
    "BurntSushi/ripgrep": "rs",
    "sharkdp/bat": "rs",
    "tokio-rs/axum": "rs",
    "axios/axios": "js ts mjs cjs",
    "preactjs/preact": "js ts jsx tsx mjs",
    "vuejs/core": "ts js tsx",
    "google/gson": "java",
    "jqlang/jq": "c h y l jq",
    "redis/redis": "c h tcl",
    "fmtlib/fmt": "h cc c",
    "jekyll/jekyll": "rb",
    "rubocop/rubocop": "rb",
    "briannesbitt/Carbon": "php",
    "pallets/click": "py",
}
"""Suffixes of the source of each; the last is the one in Python, for comparison."""

# Said apart from `metatree_routers.index.roles`, so that a fault there is seen here.
_TEST = re.compile(
    r"(^|/)(tests?|testing|__tests__|specs?|testdata|fixtures|e2e|cypress|features|test-[^/]*|[^/]*-tests?)/"
    r"|[._-](test|spec|tests)\.[a-z]+$|(^|/)test[_-][^/]*$|Tests?\.(java|php)$|(^|/)test\.[a-z]+$",
    re.IGNORECASE,
)
_NO_SOURCE = re.compile(
    r"(^|/)(docs?|examples?|benchmarks?|bench|fuzz|vendor|deps|third[_-]party|dist|node_modules|scripts?|tools"
    r"|sandbox|playground|demo|website|packages-private|support|\.github)/",
    re.IGNORECASE,
)
_FIX = r"\b(fix|fixed|fixes|bug|crash|incorrect|wrong|regression)\b"
_CHORE = re.compile(
    r"\b(typo|lint|dependabot|bump|changelog|docs?|readme|warning|tests?|ci|release)\b",
    re.IGNORECASE,
)
_TRAILER = re.compile(
    r"^(signed-off-by|co-authored-by|reviewed-by|acked-by|cc|closes?|fix(es|ed)?|resolves?|see|refs?|pr-url|change-id)\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\s*\(?#\d+\)?")


def is_source(path: str, suffixes: frozenset[str]) -> bool:
    """Say whether a file is source of these suffixes: no test, document, example, tool or copy of another project.

    Example:
        >>> is_source("lib/core.js", frozenset({"js"})), is_source("lib/core.test.js", frozenset({"js"}))
        (True, False)
    """
    is_code = path.rpartition(".")[2] in suffixes
    return is_code and not _TEST.search(path) and not _NO_SOURCE.search(path)


def asked(message: str) -> str:
    """Return what a commit says, without lines on people and other commits, and without numbers of issues.

    Example:
        >>> asked("Fix the body (#12)\\n\\nFixes #11\\nSigned-off-by: me")
        'Fix the body'
    """
    subject, _, body = message.strip().partition("\n")
    lines = [line for line in body.split("\n") if len(line.split()) > 6 or not _TRAILER.match(line.strip())]
    return _NUMBER.sub("", "\n".join([subject, *lines])).strip()


def past_fixes(mirror: Path, suffixes: frozenset[str]) -> Iterator[tuple[str, str, frozenset[str]]]:
    """Yield (commit before, message, changed source files) of each fix on the main line, the newest first."""
    command = ["git", "--git-dir", str(mirror), "log", "HEAD", "--no-merges", "--first-parent"]
    command += ["-i", "--extended-regexp", f"--grep={_FIX}", "--name-status", "--no-renames"]
    command += ["--format=%x01%P%x00%B%x02"]
    said = subprocess.run(command, capture_output=True, check=True).stdout.decode("utf-8", "replace")
    for entry in said.split("\x01")[1:]:
        head, _, listed = entry.partition("\x02")
        parent, _, message = head.partition("\0")
        changes = [line.split("\t", 1) for line in listed.splitlines() if "\t" in line]
        source = {path: status for status, path in changes if is_source(path, suffixes)}
        question = asked(message.replace("\r", ""))
        if (
            parent
            and 1 <= len(source) <= MOST_GOLD
            and len(changes) <= MOST_FILES
            and set(source.values()) == {"M"}
            and len(question.split()) >= LEAST_WORDS
            and not _CHORE.search(question.split("\n")[0])
        ):
            yield parent, question, frozenset(source)


def _issues(options: Options) -> Iterator[Issue]:
    for repository, listed in REPOSITORIES.items():
        suffixes = frozenset(listed.split())
        found = list(past_fixes(mirror_of(options, repository), suffixes))
        step = max(1, len(found) // PER_REPOSITORY)
        is_candidate: Callable[[str], bool] = partial(is_source, suffixes=suffixes)
        for base, question, gold in found[::step][: min(PER_REPOSITORY, options.limit or PER_REPOSITORY)]:
            id_ = f"{repository}-{base[:12]}"
            yield Issue(id_, repository, repository, base, question, gold, frozenset(), is_candidate)


@dataclass(slots=True)
class PastFixes:
    """Past fixes, ranked in one way; implements `Benchmark`."""

    name: str
    about: str
    system: str
    metrics: Sequence[str] = ("Acc@1", "Acc@3", "Acc@5", "Acc@10", "MRR")
    goals: Mapping[str, float] = field(default_factory=dict)
    notes: Notes = field(default_factory=Notes)

    def outcomes(self, options: Options) -> Iterator[Outcome]:
        """Rank the files for each fix, at the commit before it."""
        for issue, run in ranked_issues(options, list(_issues(options))):
            ranked = {BASELINE: run.ranked[BASELINE], OURS: run.ranked[self.system]}
            yield Outcome(issue.id, issue.gold, ranked, run.seconds[self.system], run.calls)


SETS = (
    PastFixes("code-languages", "fixes in other languages", PLAIN),
    PastFixes("code-languages-history", "the same, with history", HISTORY),
    PastFixes("code-languages-open", "the same, of all files", OPEN),
)
