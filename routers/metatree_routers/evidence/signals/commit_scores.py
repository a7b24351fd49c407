"""What past commits say for the files that they touched: those like a report, and those that it names."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from metatree_routers.evidence.signals.named_commits import shares
from metatree_routers.index.commits import MOST_FILES, SimilarCommit, nearest, votes
from metatree_routers.index.index import IndexSnapshot
from metatree_routers.index.roles import Role

Floats = npt.NDArray[np.float32]

MOST_SUBJECT_CHARS = 60


def by_file(snapshot: IndexSnapshot, similar: Sequence[SimilarCommit]) -> dict[int, list[SimilarCommit]]:
    """Sort commits by the files of the tree that they touched."""
    commits: dict[int, list[SimilarCommit]] = {}
    numbers = snapshot.numbers({file for commit in similar for file in commit.files})
    for commit in similar:
        if len(commit.files) <= MOST_FILES:
            for file in commit.files:
                if file in numbers:
                    commits.setdefault(numbers[file], []).append(commit)
    return commits


def nearest_scores(
    snapshot: IndexSnapshot, similar: Sequence[SimilarCommit], commits: Collection[int]
) -> Floats:
    """Score each home by the one past commit most like the question that touched it: (h,)."""
    return _for_source(snapshot, commits, lambda ids: nearest(similar, ids))


def named_scores(snapshot: IndexSnapshot, named: Sequence[SimilarCommit], files: Collection[int]) -> Floats:
    """Score each home by the past commits that the question names: (h,)."""
    return _for_source(snapshot, files, lambda ids: shares(named, ids))


def _for_source(
    snapshot: IndexSnapshot, files: Collection[int], say: Callable[[Collection[str]], Mapping[str, float]]
) -> Floats:
    """Give homes the scores that are said for the ids of these files, if they are source: (h,)."""
    table = snapshot.table
    source = [file for file in files if table.role[file] == Role.SOURCE and table.home_row[file] >= 0]
    ids = snapshot.ids(source)
    messages = say(ids.values())
    scores = np.zeros(len(table.homes), dtype=np.float32)
    for number in source:
        scores[table.home_row[number]] = messages.get(ids[number], 0.0)
    return scores


def commit_scores(
    snapshot: IndexSnapshot, similar: Sequence[SimilarCommit], commits: dict[int, list[SimilarCommit]]
) -> Floats:
    """Score each home by the past commits like the question that touched it: (h,), not normalised.

    Tests and change logs are touched by every commit, so they take no share of its votes.
    """
    table = snapshot.table
    ids = snapshot.ids(commits)
    source = [ids[number] for number in commits if table.role[number] == Role.SOURCE]
    weights = votes(similar, source)
    scores = np.zeros(len(table.homes), dtype=np.float32)
    for number in commits:
        if table.home_row[number] >= 0:
            scores[table.home_row[number]] = weights.get(ids[number], 0.0)
    return scores


def named_clauses(named: Sequence[SimilarCommit]) -> Iterator[str]:
    """Say which commit that the report names touched a file."""
    if named:
        yield f"touched by the commit that it names: {_called(named[0])}"


def similar_clauses(similar: Sequence[SimilarCommit]) -> Iterator[str]:
    """Say which commits like the report touched a file, given the most similar first."""
    if similar:
        more = f" and {len(similar) - 1} more" if len(similar) > 1 else ""
        yield f"touched by commits like it: {_called(similar[0])}{more}"


def _called(commit: SimilarCommit) -> str:
    subject = commit.subject
    if len(subject) > MOST_SUBJECT_CHARS:
        subject = subject[: MOST_SUBJECT_CHARS - 1].rstrip() + "…"
    return f"{commit.hash[:9]} “{subject}”"
