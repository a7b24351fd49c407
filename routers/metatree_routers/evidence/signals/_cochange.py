"""Files that were changed together with tests like a report, or with the files that fit it best.

A test uses the public interface as people who report do, and says what it expects; where the fault is in what lies
below that interface, the commits that touched the test touched it, too. So did those that touched the interface
itself, and what has to change in several files has often done so before.

Lost: what tests import, which found too much. Each of the five best files leads on for itself; lost: their sum, the
first alone (its companions pass it), and the names that they use.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Collection, Mapping

from metatree.storage.store import Store

MOST_TESTS = 10
MOST_BEST = 5
"""Files that fit best, of which the one that says most for another counts."""
MOST_FILES = 30
"""A commit that touched more files says little of any two of them."""
UNSURE = 0.5
"""Added to how often a file was touched, so that one commit in common does not say everything."""


def touched_with(
    store: Store, tests: Mapping[str, float], candidates: Collection[str]
) -> dict[str, dict[str, float]]:
    """Score files by how much of what touched them, and of what touched others, such as tests, was the same commits.

    Each commit has the share of a vote that its number of files leaves to a pair of them; a pair counts by that,
    divided by how often the test, and by the root of how often the file was touched.

    Args:
        store: the index store of a tree that was built with its history.
        tests: how well each test, or other file, fits, by its id.
        candidates: the files that are scored.

    Returns:
        What each test says for each file that has a score.
    """
    names = _file_numbers(store, {*tests, *candidates})
    wanted = {number: name for name, number in names.items()}
    shares = _shares(store, [names[test] for test in tests if test in names])
    scored: defaultdict[str, dict[str, float]] = defaultdict(dict)
    weights: defaultdict[tuple[str, str], float] = defaultdict(float)
    for files, share in shares.values():
        inside = [wanted[file] for file in files if file in wanted]
        for test in inside:
            if test in tests:
                for file in inside:
                    if file in candidates and file != test:
                        weights[test, file] += share
    touched = _touched(
        store, [names[name] for name in {*tests, *(file for _, file in weights)} if name in names]
    )
    for (test, file), share in weights.items():
        often = (touched[names[test]] + UNSURE) * math.sqrt(touched[names[file]] + UNSURE)
        scored[file][test] = tests[test] * share / often
    return dict(scored)


def _file_numbers(store: Store, ids: Collection[str]) -> dict[str, int]:
    """Return the number of each file in the history, by its id: the mount of its source, and its path."""
    rows = store.rows(
        "SELECT CASE source WHEN '' THEN path ELSE source || '/' || path END, number FROM history_file"
    )
    return {name: number for name, number in rows if name in ids}


def _shares(store: Store, files: Collection[int]) -> dict[int, tuple[list[int], float]]:
    """Return, for each small commit that touched one of these files, what it touched, and the share of a pair."""
    rows = store.rows(
        "SELECT number, file FROM history_touch WHERE number IN"
        " (SELECT number FROM history_touch WHERE file IN (SELECT value FROM json_each(?)))",
        (json.dumps(list(files)),),
    )
    touched: defaultdict[int, list[int]] = defaultdict(list)
    for number, file in rows:
        touched[number].append(file)
    return {
        number: (files, 1.0 / len(files)) for number, files in touched.items() if len(files) <= MOST_FILES
    }


def _touched(store: Store, files: Collection[int]) -> dict[int, float]:
    """Return how often each of these files was touched, each time by the root of its share of the commit."""
    rows = store.rows(
        "SELECT file, (SELECT count(*) FROM history_touch AS other WHERE other.number = history_touch.number)"
        " FROM history_touch WHERE file IN (SELECT value FROM json_each(?))",
        (json.dumps(list(files)),),
    )
    weights: defaultdict[int, float] = defaultdict(float)
    for file, size in rows:
        if size <= MOST_FILES:
            weights[file] += 1.0 / math.sqrt(size)
    return weights
