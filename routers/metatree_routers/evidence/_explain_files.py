"""Say why a file was found: what names it, what its path says, which words are where in it, which commits touched it.

Every sentence names evidence that the ranking has counted; without that evidence it is not said.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

import numpy as np
import numpy.typing as npt

from metatree_routers.evidence._ranking import Ranking
from metatree_routers.evidence.signals.paths import path_words
from metatree_routers.index.commits import SimilarCommit
from metatree_routers.index.index import Reader
from metatree_routers.index.postings import Postings
from metatree_routers.query.parse import Sections

_MOST_NAMED = 2
_MOST_WORDS = 4
_MOST_SUBJECT_CHARS = 60
_MOST_PHRASES = 2
_LOOKED_AT = 60
"""Words of a question that are looked for, the heaviest first."""


def reasons(reader: Reader, ranking: Ranking, files: Sequence[int], parts: Sections) -> dict[int, str]:
    """Return a line for each file, what says most first; empty when nothing is known."""
    heaviest = sorted(ranking.weights.items(), key=lambda item: (-item[1], item[0]))[:_LOOKED_AT]
    found = reader.postings([term for term, _ in heaviest])
    postings = {term: found[term] for term, _ in heaviest if term in found}
    weights, spellings = parts.term_weights(), parts.spellings()
    best = _best_parts(reader, ranking, files)
    names = reader.ids(best.values())
    telling = {*parts.telling(ranking.weights, numbers=True)}
    said = {}
    for file in files:
        sentences = list(dict.fromkeys(pointer.reason for pointer in ranking.pointers.get(file, ())))
        sentences = sentences[:_MOST_NAMED]
        if ranking.named_commits.get(file):
            sentences.append(
                f"touched by the commit that it names: {_called(ranking.named_commits[file][0])}"
            )
        in_path = parts.telling(path_words(reader.records, postings, weights, file))
        if in_path:
            sentences.append(f"its path says {_spelled(in_path, spellings)}")
        sentences += _closely(reader, ranking, file, spellings, telling)
        part = best.get(file)
        in_part = [] if part is None else parts.telling(_words(reader, postings, np.array([part])))
        name = names.get(part, "").partition("::")[2] if part is not None else ""
        if in_part and name and not name.endswith(">"):
            sentences.append(f"`{name}` has {_spelled(in_part, spellings)}")
        else:
            in_part = []
        inside = np.flatnonzero(reader.records.home == file)
        shown = {*in_path[:_MOST_WORDS], *in_part[:_MOST_WORDS]}
        others = [term for term in parts.telling(_words(reader, postings, inside)) if term not in shown]
        if others and not (shown and parts.are_small_numbers(others)):
            sentences.append(f"{'also has' if shown else 'shares'} {_spelled(others, spellings)}")
        if ranking.commits.get(file):
            sentences.append(_touched(ranking.commits[file]))
        if ranking.seen is not None and file in ranking.seen.tests:
            sentences.append(f"changed together with {ranking.seen.tests[file]}")
        elif ranking.seen is not None and file in ranking.seen.companions:
            sentences.append(f"changed together with {ranking.seen.companions[file]}")
        said[file] = "; ".join(sentences)
    return said


def _closely(
    reader: Reader, ranking: Ranking, file: int, spellings: Mapping[str, str], telling: Set[str]
) -> list[str]:
    """Return what a closer look at a file says: the phrases that it has, and what is near in meaning."""
    if ranking.seen is None:
        return []
    said = []
    phrases = [
        f"“{spellings.get(a, a)} {spellings.get(b, b)}”"
        for a, b in ranking.seen.phrases.get(file, ())
        if min(len(a), len(b)) > 2 and a not in b and b not in a and not telling.isdisjoint((a, b))
    ]
    if phrases:
        said.append(f"has {' and '.join(list(dict.fromkeys(phrases))[:_MOST_PHRASES])} in a row")
    near = ranking.seen.near.get(file)
    if near is not None:
        name = reader.ids([near])[near].partition("::")[2]
        said.append(f"{f'`{name}`' if name else 'what it is for'} is near in meaning to the title")
    return said


def _best_parts(reader: Reader, ranking: Ranking, files: Sequence[int]) -> dict[int, int]:
    """Return the part of each file that speaks most for it."""
    inside = np.flatnonzero(np.isin(reader.records.home, np.array(files, dtype=np.int32)))
    inside = inside[(ranking.parts[inside] > 0) & (reader.records.home[inside] != inside)]
    inside = inside[np.argsort(ranking.parts[inside], kind="stable")]
    return {int(reader.records.home[node]): int(node) for node in inside}  # the best is written last


def _words(reader: Reader, postings: Mapping[str, Postings], nodes: npt.NDArray[np.intp]) -> list[str]:
    """Return the words that any of these nodes has, the heaviest first."""
    wanted = np.zeros(len(reader.records), dtype=bool)
    wanted[nodes] = True
    return [term for term, found in postings.items() if wanted[found["node"]].any()]


def _spelled(terms: Sequence[str], spellings: Mapping[str, str]) -> str:
    return ", ".join(list(dict.fromkeys(spellings.get(term, term) for term in terms))[:_MOST_WORDS])


def _touched(commits: Sequence[SimilarCommit]) -> str:
    more = f" and {len(commits) - 1} more" if len(commits) > 1 else ""
    return f"touched by commits like it: {_called(commits[0])}{more}"


def _called(commit: SimilarCommit) -> str:
    subject = commit.subject
    if len(subject) > _MOST_SUBJECT_CHARS:
        subject = subject[: _MOST_SUBJECT_CHARS - 1].rstrip() + "…"
    return f"{commit.hash[:9]} “{subject}”"
