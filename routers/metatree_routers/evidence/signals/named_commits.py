"""Past commits that a report names: by their hash, or by the number of a change or a ticket that their messages name.

Whoever names the commit that brought a fault, or the discussion that it came from, has looked for the place. A number
of another project may be one of this project by chance; so `project#1` does not count, and an address does only where
the project that it names is a folder that the commit touched.

Links and names are taken at their word: 27 of 30 linked files and 30 of 37 named commits led to a file of the fix.
Lost: lines of code and messages that are in one file alone, and names resolved through re-exports; what they point to
comes first already, or is not meant.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from metatree_routers.index.commits import MOST_FILES, CommitIndex, SimilarCommit
from metatree_routers.query.parse import Sections

MOST_NAMES = 10
"""Hashes and numbers of a report that are looked up."""
MOST_COMMITS = 5
"""A number that more commits name is one of something else, or of no one change."""

_HASH = re.compile(r"(?<![\w.#/-])[0-9a-f]{7,40}(?![\w.-])")
_NUMBER = re.compile(r"(?<![\w/&#-])#(\d{3,6})\b")
_HASH_LINK = re.compile(r"/commits?/([0-9a-f]{7,40})\b")
_NUMBER_LINK = re.compile(r"/([\w.-]+)/(?:-/)?(?:pull|issues|merge_requests)/(\d{3,6})\b")


@dataclass(frozen=True, slots=True)
class Name:
    """What a report calls a commit."""

    text: str
    """The beginning of a hash, or a number with `#` before it."""
    project: str = ""
    """The project whose number it is, where the report says so."""


def names_of_commits(parts: Sections) -> list[Name]:
    """List the hashes and numbers in a report, each once.

    The beginning of a hash may be digits alone, or spell a word, as any number and some words do: such names come
    last, so that they take the place of no other.

    Example:
        >>> [name.text for name in names_of_commits(Sections(title="Wrong since 3543129d226 (see #2844, numpy#123)"))]
        ['3543129d226', '#2844']
    """
    names = dict.fromkeys(_names(parts))
    return sorted(names, key=lambda name: name.text.isdigit() or name.text.isalpha())[:MOST_NAMES]


def _names(parts: Sections) -> Iterator[Name]:
    for link in parts.links:
        for match in _HASH_LINK.findall(link):
            yield Name(match)
        for project, number in _NUMBER_LINK.findall(link):
            yield Name(f"#{number}", project.lower())
    for text in parts.texts().values():
        for match in _HASH.findall(text):
            yield Name(match)
        for number in _NUMBER.findall(text):
            yield Name(f"#{number}")


def named_commits(commits: CommitIndex, names: Iterable[Name]) -> list[SimilarCommit]:
    """Return the past commits that are called so and touched some files, each once."""
    results: dict[str, SimilarCommit] = {}
    for name in names:
        called = commits.named(name.text)
        if len(called) > MOST_COMMITS:
            continue
        for commit in called:
            if 0 < len(commit.files) <= MOST_FILES and (
                not name.project or _is_in(name.project, commit.files)
            ):
                results.setdefault(commit.hash, commit)
    return list(results.values())


def _is_in(folder: str, files: Collection[str]) -> bool:
    return any(folder in map(str.lower, PurePosixPath(file).parts[:-1]) for file in files)


def shares(named: Sequence[SimilarCommit], counted: Iterable[str]) -> dict[str, float]:
    """Return how much commits that a report names say for each file: by the root of the number of files touched.

    Args:
        counted: only these files count.
    """
    allowed = frozenset(counted)
    weights: dict[str, float] = {}
    for commit in named:
        files = [file for file in commit.files if file in allowed]
        for file in files:
            weights[file] = max(weights.get(file, 0.0), len(files) ** -0.5)
    return weights
