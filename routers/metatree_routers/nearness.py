"""Nearness in meaning: how near the title of a report is to what the definitions of a file say of themselves.

A definition says what it is for by its name and the first sentence of its docstring. The five nearest of a file are
averaged, since one may be near by chance. Only files that words have found are compared: by meaning alone,
anything is found. An embedder that is slow compares the best of them, by what a fast one finds nearest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from metatree.node import Node
from metatree_routers.embedding import Embedder

Cosines = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]

NEAREST = 5
"""Definitions of a file that are averaged."""
MOST_SLOW = 10
"""Files that a slow embedder compares; fifty short texts take it about a second."""
MOST_CHARS = 300
"""Of what a definition says of itself."""


def said_of_itself(node: Node) -> str:
    """Return the name of a definition in words, and its summary or else its description.

    Example:
        >>> said_of_itself(Node("a.py::Jar.copy_all", "copy_all", "Copy all cookies.", kind="definition"))
        'Jar copy all Copy all cookies.'
    """
    name = node.id.partition("::")[2] or node.path or node.id
    name = " ".join(name.replace(".", " ").replace("_", " ").replace("/", " ").split())
    # The description of a function without a docstring is its signature, which says less than its name.
    said = node.attributes.get("summary") or ("" if "signature" in node.attributes else node.description)
    return f"{name} {str(said)[:MOST_CHARS]}"


@dataclass(frozen=True, slots=True)
class Nearness:
    """How near files are to a title."""

    scores: npt.NDArray[np.float64]
    """(files,) in standard deviations from their mean."""
    nearest: Sequence[int]
    """Which part of each file is the nearest."""


def nearness(
    title: str, files: Sequence[Sequence[str]], embedder: Embedder, slow: Embedder | None = None
) -> Nearness:
    """Compare files with a title.

    Args:
        files: what the parts of each file say of themselves, the best file first.
        slow: compares the first `MOST_SLOW` files again, by the parts that `embedder` finds nearest. They change
            places among themselves: their mean and their spread stay.
    """
    told = np.array([bool(texts) for texts in files], dtype=bool)
    if not told.any():
        return Nearness(np.zeros(len(files)), [0] * len(files))
    cosines = _cosines(title, files, embedder)
    best = [np.argsort(-each, kind="stable")[:NEAREST] for each in cosines]
    scores = _in_deviations(cosines, best, told)
    if slow is not None:
        few = np.flatnonzero(told)[:MOST_SLOW]
        again = _cosines(title, [[files[row][part] for part in best[row]] for row in few], slow)
        order = [np.argsort(-each, kind="stable") for each in again]
        mean, spread = scores[few].mean(), scores[few].std()
        scores[few] = mean + spread * _in_deviations(again, order, np.ones(len(few), dtype=bool))
        for row, parts in zip(few, order, strict=True):
            best[row] = best[row][parts]
    return Nearness(scores, [int(parts[0]) if len(parts) else 0 for parts in best])


def _cosines(title: str, files: Sequence[Sequence[str]], embedder: Embedder) -> list[Cosines]:
    """Return the cosine of each part of each file with the title."""
    flat = [text for texts in files for text in texts]
    cosine = np.asarray(embedder.embed(flat) @ embedder.embed([title])[0], dtype=np.float64)
    ends = np.cumsum([0, *map(len, files)]).tolist()
    return [cosine[start:end] for start, end in pairwise(ends)]


def _in_deviations(cosines: Sequence[Cosines], best: Sequence[Rows], told: npt.NDArray[np.bool_]) -> Cosines:
    """Return the mean of the best parts of each file that tells anything, in standard deviations: (files,)."""
    means = np.array(
        [each[parts].mean() if len(parts) else 0.0 for each, parts in zip(cosines, best, strict=True)]
    )
    spread = float(means[told].std())
    if spread < 1e-6:
        return np.zeros(len(means))
    return np.where(told, (means - means[told].mean()) / spread, 0.0)
