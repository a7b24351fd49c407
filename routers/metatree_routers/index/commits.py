"""The messages of a source's commits, indexed: which past commits are like a question, and what they touched.

The commits are those that `build_tree(…, history=True)` has read, up to the one that is checked out. Their posting
lists lie in the store beside the text index and follow the history: new commits become a segment, another history is
indexed anew.

They have tables of their own: a commit is no node, and its words must not count for how rare a word is in the tree.
The vocabulary is that of the texts.
"""

from __future__ import annotations

import json
import math
import re
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from metatree.storage.schema import SQLITE
from metatree.storage.store import Store
from metatree.trees.history import find_commits, history_sources, history_state, messages, touches
from metatree_routers.index._posting_blocks import lists_in, places
from metatree_routers.index._schema import COMMITS
from metatree_routers.index.bm25 import BM25
from metatree_routers.index.postings import Postings, SegmentBuilder, decode
from metatree_routers.index.store import pages
from metatree_routers.index.vocabulary import Vocabulary
from metatree_routers.query.terms import terms

MESSAGE = BM25(k1=1.2, b=0.6)
SUBJECT_WEIGHT = 2.0
MOST_BODY_CHARS = 2_000
MOST_SEGMENTS = 8
MOST_CANDIDATES = 300
MOST_FILES = 60
"""A commit that touched more files was about all of them, and so about none."""
NEAREST = 30
"""Of so many commits, the one most like a question counts for itself."""
AGEING = 0.15
"""How much a commit loses with each year: its score is divided by 1 + this times its age."""
_YEAR_S = 365 * 86_400
_KEY = "commit-text"
_IN = 500


@dataclass(frozen=True, slots=True)
class SimilarCommit:
    """A past commit whose message is like a question."""

    number: int
    hash: str
    subject: str
    score: float
    """BM25, less for old ones."""
    files: tuple[str, ...]
    """Ids of the files that it touched, by their present names; those that are gone among them."""


class CommitIndex:
    """Finds commits by their messages; threads may share it.

    Args:
        store: the index store of a tree.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()

    def refresh(self, vocabulary: Vocabulary | None = None) -> bool:
        """Index the commits that are new, where the store can be written; say whether any are indexed.

        Args:
            vocabulary: words that are known already, so that they cost less; more are added.
        """
        wanted = self._history()
        if not wanted:
            return False
        with self._lock:
            state = self._state()
            if (state["version"], state["sources"]) == (COMMITS.version, wanted):
                return True
            if self._store.read_only:  # what is indexed has to do
                return bool(state["sources"]) and state["version"] == COMMITS.version
            with self._store.transaction():
                state = self._state()
                fresh = state["version"] == COMMITS.version and all(
                    wanted.get(mount, (None,))[0] == known[0] for mount, known in state["sources"].items()
                )
                if not fresh or state["segments"] >= MOST_SEGMENTS:
                    state = self._cleared()
                builder = SegmentBuilder(vocabulary)
                for mount, (epoch, _) in wanted.items():
                    last = since = state["sources"].get(mount, (epoch, 0))[1]
                    for number, subject, body in messages(self._store, mount, since, MOST_BODY_CHARS):
                        builder.add(number, title=subject, about="", content=body)
                        last = max(last, number)
                    wanted[mount] = (epoch, last)
                if len(builder):
                    self._write(state["segments"], builder)
                    state["segments"] += 1
                self._keep({"version": COMMITS.version, "segments": state["segments"], "sources": wanted})
        return True

    def token(self) -> str:
        """Return a text that changes with the history; empty when there are no commits."""
        return json.dumps(self._history()) if self._history() else ""

    def _history(self) -> dict[str, tuple[int, int]]:
        """Return, for each source with commits, the epoch of its history and its last commit."""
        histories = {}
        for mount in history_sources(self._store):
            state = history_state(self._store, mount)
            row = self._store.row(
                "SELECT number FROM history_commit WHERE source = ? ORDER BY number DESC LIMIT 1", (mount,)
            )
            if state is not None and row is not None:
                histories[mount] = (state.epoch, int(row[0]))
        return histories

    def _state(self) -> dict[str, Any]:
        row = self._store.row("SELECT value FROM meta WHERE key = ?", (_KEY,))
        if row is None:
            return {"version": 0, "segments": 0, "sources": {}}
        state: dict[str, Any] = json.loads(row[0])
        state["sources"] = {mount: tuple(known) for mount, known in state["sources"].items()}
        return state

    def _keep(self, state: Mapping[str, Any]) -> None:
        self._store.execute(
            "INSERT OR REPLACE INTO meta(key, value) VALUES (?, ?)", (_KEY, json.dumps(state))
        )

    def _cleared(self) -> dict[str, Any]:
        for statement in COMMITS.anew(SQLITE):
            self._store.execute(statement)
        return {"version": COMMITS.version, "segments": 0, "sources": {}}

    def _write(self, number: int, builder: SegmentBuilder) -> None:
        segment = builder.build()
        blocks = list(segment.blocks())
        self._store.execute_many(
            "INSERT INTO commit_posting(segment, block, data) VALUES (?, ?, ?)",
            ((number, block, data) for block, (_, data) in enumerate(blocks)),
        )
        lengths = SUBJECT_WEIGHT * segment.lengths[:, 0] + segment.lengths[:, 2]
        rows = np.stack([segment.nodes, lengths.astype(np.int32)], axis=1)
        self._store.execute(
            "INSERT INTO commit_length(segment, data, firsts) VALUES (?, ?, ?)",
            (number, rows.tobytes(), json.dumps([first for first, _ in blocks])),
        )

    def similar(self, weights: Mapping[str, float], k: int = 100) -> list[SimilarCommit]:
        """Return the commits whose messages are most like a question, best first.

        Args:
            weights: of the terms of the question.
        """
        if not self.refresh():
            return []
        numbers, lengths = self._all_lengths()
        if not len(numbers):
            return []
        norms = MESSAGE.norms(lengths, float(lengths.mean()))
        scores = np.zeros(len(numbers), dtype=np.float32)
        for term, rows in self._postings(weights).items():
            at = np.searchsorted(numbers, rows["node"])
            tf = np.asarray(SUBJECT_WEIGHT * rows["title"] + rows["content"], dtype=np.float32)
            idf = MESSAGE.idf(len(rows), len(numbers))
            scores[at] += np.float32(weights[term] * idf) * MESSAGE.saturate(tf, norms[at])
        best = np.argsort(-scores, kind="stable")[:MOST_CANDIDATES]
        return self._aged({int(numbers[i]): float(scores[i]) for i in best if scores[i] > 0}, k)

    def named(self, name: str) -> list[SimilarCommit]:
        """Return the commits whose hash begins so, or whose messages name such a number as `#12`, newest first."""
        if not self.refresh():
            return []
        if not name.startswith("#"):
            numbers = [commit.number for commit in find_commits(self._store, name)]
            return self._read(dict.fromkeys(numbers, 1.0))
        lists = self._postings(terms(name)).values()
        holders = sorted({int(number) for each in lists for number in each["node"]})
        rows = self._store.rows(
            "SELECT number, subject, body FROM history_commit WHERE number IN (SELECT value FROM json_each(?))",
            (json.dumps(holders),),
        )
        pattern = re.compile(rf"{re.escape(name)}(?!\d)")
        return self._read({row[0]: 1.0 for row in rows if pattern.search(f"{row[1]}\n{row[2]}")})

    def _aged(self, scores: Mapping[int, float], k: int) -> list[SimilarCommit]:
        rows = self._store.rows(
            "SELECT number, at FROM history_commit WHERE number IN (SELECT value FROM json_each(?))",
            (json.dumps(list(scores)),),
        )
        newest = self._store.row("SELECT max(at) FROM history_commit")
        now = newest[0] if newest is not None else 0
        aged = {number: scores[number] / (1 + AGEING * max(0, now - at) / _YEAR_S) for number, at in rows}
        best = sorted(aged, key=lambda number: (-aged[number], -number))[:k]
        return self._read({number: aged[number] for number in best})

    def _read(self, scores: Mapping[int, float]) -> list[SimilarCommit]:
        """Read commits and what they touched, the best first, of equals the newest."""
        rows = self._store.rows(
            "SELECT number, source, hash, subject FROM history_commit"
            " WHERE number IN (SELECT value FROM json_each(?))",
            (json.dumps(list(scores)),),
        )
        touched = touches(self._store, scores)
        return [
            SimilarCommit(
                number,
                name,
                subject,
                scores[number],
                tuple(dict.fromkeys(_id(source, touch.now) for touch in touched.get(number, ()))),
            )
            for number, source, name, subject in sorted(rows, key=lambda row: (-scores[row[0]], -row[0]))
        ]

    def _all_lengths(self) -> tuple[Any, Any]:
        rows = self._store.rows("SELECT data FROM commit_length ORDER BY segment")
        data = np.frombuffer(b"".join(row[0] for row in rows), dtype=np.int32).reshape(-1, 2)
        data = data[np.argsort(data[:, 0], kind="stable")]
        return data[:, 0], data[:, 1].astype(np.float32)

    def _postings(self, terms: Collection[str]) -> dict[str, Postings]:
        by_term: dict[str, list[Postings]] = {}
        for segment, firsts in self._store.rows("SELECT segment, firsts FROM commit_length"):
            wanted = places(json.loads(firsts), terms)
            for page in pages(sorted(wanted), _IN):
                marks = ",".join("?" * len(page))
                sql = f"SELECT block, data FROM commit_posting WHERE segment = ? AND block IN ({marks})"
                for block, packed in self._store.rows(sql, (segment, *page)):
                    for term, data in lists_in(packed, wanted[block]):
                        by_term.setdefault(term, []).append(decode(data))
        return {
            term: parts[0] if len(parts) == 1 else np.concatenate(parts) for term, parts in by_term.items()
        }


def votes(similar: Iterable[SimilarCommit], counted: Iterable[str] | None = None) -> dict[str, float]:
    """Return what similar commits say for each file that they touched.

    A commit has as many votes as its score's share of the best, squared; the files that it touched share them, by the
    root of their number.

    Args:
        counted: only these files share; None for all.
    """
    weights: dict[str, float] = {}
    best = 0.0
    allowed = None if counted is None else frozenset(counted)
    for commit in similar:
        best = max(best, commit.score)
        if len(commit.files) > MOST_FILES:
            continue
        files = [file for file in commit.files if allowed is None or file in allowed]
        for file in files:
            weights[file] = weights.get(file, 0.0) + (commit.score / best) ** 2 / math.sqrt(len(files))
    return weights


def nearest(similar: Sequence[SimilarCommit], counted: Iterable[str]) -> dict[str, float]:
    """Return, for each file, how like a question the most similar commit is that touched it.

    The share of the best score, divided by the fourth root of the number of files that it touched.

    Args:
        similar: best first; those behind the first `NEAREST` are not looked at.
        counted: only these files.
    """
    scores: dict[str, float] = {}
    allowed = frozenset(counted)
    for commit in similar[:NEAREST]:
        if len(commit.files) <= MOST_FILES:
            files = [file for file in commit.files if file in allowed]
            for file in files:
                share = commit.score / similar[0].score / len(files) ** 0.25
                scores[file] = max(scores.get(file, 0.0), share)
    return scores


def _id(source: str, path: str) -> str:
    return f"{source}/{path}" if source else path
