"""Which files of a tree of code a question is about: a sum of a few shares, each with a reason.

The best three definitions of a file by BM25 (a file is about what several of its parts are about); the words of its
name; the share of the question's words that it has; by how many files of the tree it is imported; whether it
defines what the question names in any spelling, `flat hash map` for `FlatHashMap`. What is deep in the tree, tests,
documents and layers for old versions come behind.

The weights are round ones: on 206 questions over eleven repositories, others move NDCG@10 by less than a point on
either half of them. Lost: BM25 of whole files and of definitions in their place (no more than that of definitions), the
best definition alone (-.05), nearness in meaning (the static embeddings gain nothing here).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Protocol

import numpy as np
import numpy.typing as npt

from metatree_routers.evidence.signals.matching import Matches, best_parts, share_of_best
from metatree_routers.index.fields import file_stem
from metatree_routers.index.index import IndexSnapshot
from metatree_routers.index.node_table import NodeTable
from metatree_routers.index.postings import Postings
from metatree_routers.query.names import names_asked, squashed
from metatree_routers.query.terms import name_terms, terms

Floats = npt.NDArray[np.float32]
Rows = npt.NDArray[np.intp]

STEM_WEIGHT = 0.6
COVERED_WEIGHT = 0.6
CENTRAL_WEIGHT = 0.4
NAMED_WEIGHT = 0.2
DEPTH_WEIGHT = 0.2
"""Each of what the best file by its definitions has, which is 1."""
OUTDATED = 0.5
"""What a file in a layer for old versions is multiplied with."""
MOST_FILES = 100
"""So many files are looked at closely: those that words and paths have found."""

_OUTDATED = re.compile(r"(?:^|[/_.-])(?:compat\w*|legacy|deprecated|backports?|obsolete)(?=[/_.-]|$)")
_VERSION = re.compile(r"(.*/|)v(\d{1,4})(?=/)")
_CODE_SHARE = 0.2
"""A tree is one of code when so many of its files have definitions."""
_PLAIN_SHARE = 0.2
"""And when no more of what can be read is outside files."""


class Importers(Protocol):
    """Knows which files are imported."""

    def importers(self, ids: Collection[str]) -> Mapping[str, int]:
        """Return by how many files each of these files is imported."""
        ...


def is_code(table: NodeTable, inside: npt.NDArray[np.bool_], readable: npt.NDArray[np.bool_]) -> bool:
    """Say whether most of what lies inside is files, many of them with definitions.

    Args:
        inside: (n,) the nodes that compete.
        readable: (n,) those that have text of their own.
    """
    rows = table.home_row
    files = np.flatnonzero(table.of_kind({"file"})[table.homes])
    is_file = np.zeros(len(table.homes) + 1, dtype=bool)
    is_file[files] = True
    nodes = np.flatnonzero(inside & readable)
    in_file = is_file[rows[nodes]]
    if not len(nodes) or np.count_nonzero(~in_file) > _PLAIN_SHARE * len(nodes):
        return False
    defines = np.zeros(len(table.homes) + 1, dtype=bool)
    defines[rows[table.of_kind({"definition"}) & inside]] = True
    holding = np.zeros(len(table.homes) + 1, dtype=bool)
    holding[rows[nodes][in_file]] = True
    return bool(np.count_nonzero(defines & holding) >= _CODE_SHARE * np.count_nonzero(holding))


def named_nodes(table: NodeTable, named: Mapping[str, Postings]) -> Floats:
    """Say of each node how surely a question names it: (n,) in [0, 1], less where many files have the name.

    Args:
        named: the nodes of each name.
    """
    surely = np.zeros(len(table), dtype=np.float32)
    most = np.log1p(len(table.homes))
    for rows in named.values():
        nodes = rows["node"]
        homes = len(set(table.home[nodes].tolist()))
        surely[nodes] = np.maximum(surely[nodes], np.float32(np.log1p(len(table.homes) / homes) / most))
    return np.minimum(surely, np.float32(1))


def file_scores(
    snapshot: IndexSnapshot,
    matches: Matches,
    asked_terms: Iterable[str],
    names: Iterable[str],
    surely: Floats,
    factors: Floats,
    links: Importers | None,
) -> Floats:
    """Add up what speaks for each home: (h,), the best 1, 0 where nothing does.

    Args:
        asked_terms: those of the question.
        names: what may be a name in it, squashed.
        surely: (n,) what it names.
        factors: (h,) what each home is multiplied with, for its role.
    """
    table = snapshot.table
    in_home = np.flatnonzero((surely > 0) & (table.home_row >= 0))
    named = np.zeros(len(table.homes), dtype=np.float32)
    np.maximum.at(named, table.home_row[in_home], surely[in_home])
    sums = share_of_best(best_parts(table, matches.parts))
    sums += np.float32(COVERED_WEIGHT / max(matches.total, 1e-9)) * matches.covered_whole
    found = np.flatnonzero((sums > 0) | (named > 0))
    if not len(found):
        return np.zeros_like(sums)
    sums += np.float32(NAMED_WEIGHT) * share_of_best(named)
    # A file that is called as the question says may have few of its words.
    rough = (sums[found] + np.float32(STEM_WEIGHT) * (named[found] > 0)) * factors[found]
    rows = found[np.argsort(-rough, kind="stable")[:MOST_FILES]]
    rest = np.setdiff1d(found, rows, assume_unique=True)
    paths = snapshot.ids(table.homes[rows])
    ids = [paths[int(home)] for home in table.homes[rows]]
    said, asked_names = set(asked_terms), set(names)
    sums[rows] += np.float32(STEM_WEIGHT) * _array(stem_share(id_, said, asked_names) for id_ in ids)
    sums[rows] += np.float32(CENTRAL_WEIGHT) * _share_of_most(links.importers(ids) if links else {}, ids)
    depth = _array(id_.count("/") for id_ in ids)
    sums[rows] -= np.float32(DEPTH_WEIGHT) * share_of_best(depth - depth.min())
    sums[rows] = np.maximum(sums[rows], np.float32(1e-3)) * factors[rows]
    sums[rows[outdated(ids)]] *= np.float32(OUTDATED)
    sums[rest] *= np.float32(1e-3)
    return share_of_best(sums)


def stem_share(path: str, said: set[str], names: set[str]) -> float:
    """Return the share of the words of a file's name that a question has.

    Args:
        said: the terms of the question.
        names: what may be a name in it, squashed.

    Example:
        >>> stem_share("src/path_router.rs", {"rout", "router"}, {"router"})
        0.5
    """
    whole, words = _stem(path)
    if whole in names:
        return 1.0
    return sum(word in said for word in words) / len(words) if words else 0.0


def outdated(paths: Sequence[str]) -> list[int]:
    """Return which of these files are for old versions: by a folder's name, or a later version stands beside it.

    Example:
        >>> outdated(["src/v3/a.ts", "src/v4/a.ts", "src/compat.py", "src/compare.py"])
        [0, 2]
    """
    ages = list(map(_age, paths))
    latest: dict[str, int] = {}
    for _, folder, number in ages:
        latest[folder] = max(number, latest.get(folder, 0))
    return [at for at, (old, folder, number) in enumerate(ages) if old or number < latest[folder]]


@lru_cache(maxsize=65_536)
def _age(path: str) -> tuple[bool, str, int]:
    """Say whether a file is in a layer for old versions, and in which version of which folder; 0 of none."""
    lower = path.lower()
    match = _VERSION.match(lower)
    folder, number = (match[1], int(match[2])) if match else ("", 0)
    return _OUTDATED.search(lower) is not None, folder, number


@lru_cache(maxsize=65_536)
def _stem(path: str) -> tuple[str, tuple[str, ...]]:
    """Return the name of a file, squashed, and the terms of its words."""
    stem = file_stem(path)
    whole = squashed(stem)
    terms = name_terms(re.sub(r"\W", "_", stem))
    return whole, tuple(term for term in terms if squashed(term) != whole) or terms


def _share_of_most(importers: Mapping[str, int], ids: Sequence[str]) -> Floats:
    return share_of_best(np.log1p(_array(importers.get(id_, 0) for id_ in ids)))


def _array(values: Iterable[float]) -> Floats:
    return np.array(list(values), dtype=np.float32)


class FileClauses:
    """Says what speaks for nodes of a tree of code: their names, those of their files, and who imports these.

    Args:
        ids: the nodes that are asked about.
        links: knows which files are imported.
    """

    def __init__(self, questions: Sequence[str], ids: Iterable[str], links: Importers | None) -> None:
        self._asked = {name for question in questions for name in names_asked(question)}
        self._terms = {term for question in questions for term in terms(question)}
        self._importers = links.importers(set(map(_file_of, ids))) if links is not None else {}

    def name(self, id_: str) -> Iterator[str]:
        """Say that a node defines what a question names, or that a file is called so."""
        path, _, inside = id_.partition("::")
        name = inside.rpartition(".")[2] if inside else file_stem(path)
        if squashed(name) in self._asked:
            yield f"defines `{name}`" if inside else f"is called `{name}`"

    def file(self, id_: str) -> Iterator[str]:
        """Say what speaks for the file of a node."""
        path = _file_of(id_)
        if stem_share(path, self._terms, self._asked) > 0:
            yield f"in a file called `{file_stem(path)}`"
        importers = self._importers.get(path, 0)
        if importers:
            yield f"its file is imported by {importers} other{'s' if importers > 1 else ''}"


def _file_of(id_: str) -> str:
    return id_.partition("::")[0].partition("#")[0]
