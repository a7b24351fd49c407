"""What past commits say for the files that they touched: those like a report, and those that it names."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from metatree_routers.evidence.signals.named_commits import shares
from metatree_routers.index.commits import MOST_FILES, SimilarCommit, nearest, votes
from metatree_routers.index.index import Reader
from metatree_routers.index.roles import Role

Floats = npt.NDArray[np.float32]


def by_file(reader: Reader, similar: Sequence[SimilarCommit]) -> dict[int, list[SimilarCommit]]:
    """Sort commits by the files of the tree that they touched."""
    found: dict[int, list[SimilarCommit]] = {}
    numbers = reader.numbers({file for commit in similar for file in commit.files})
    for commit in similar:
        if len(commit.files) <= MOST_FILES:
            for file in commit.files:
                if file in numbers:
                    found.setdefault(numbers[file], []).append(commit)
    return found


def nearest_scores(reader: Reader, similar: Sequence[SimilarCommit], commits: Collection[int]) -> Floats:
    """Score each home by the one past commit most like the question that touched it: (h,)."""
    return _for_source(reader, commits, lambda ids: nearest(similar, ids))


def named_scores(reader: Reader, named: Sequence[SimilarCommit], files: Collection[int]) -> Floats:
    """Score each home by the past commits that the question names: (h,)."""
    return _for_source(reader, files, lambda ids: shares(named, ids))


def _for_source(
    reader: Reader, files: Collection[int], say: Callable[[Collection[str]], Mapping[str, float]]
) -> Floats:
    """Give homes the scores that are said for the ids of these files, if they are source: (h,)."""
    records = reader.records
    source = [file for file in files if records.role[file] == Role.SOURCE and records.home_row[file] >= 0]
    ids = reader.ids(source)
    said = say(ids.values())
    scores = np.zeros(len(records.homes), dtype=np.float32)
    for number in source:
        scores[records.home_row[number]] = said.get(ids[number], 0.0)
    return scores


def commit_scores(
    reader: Reader, similar: Sequence[SimilarCommit], commits: dict[int, list[SimilarCommit]]
) -> Floats:
    """Score each home by the past commits like the question that touched it: (h,), not normalised.

    Tests and change logs are touched by every commit, so they take no share of its votes.
    """
    records = reader.records
    ids = reader.ids(commits)
    source = [ids[number] for number in commits if records.role[number] == Role.SOURCE]
    said = votes(similar, source)
    scores = np.zeros(len(records.homes), dtype=np.float32)
    for number in commits:
        if records.home_row[number] >= 0:
            scores[records.home_row[number]] = said.get(ids[number], 0.0)
    return scores
