"""Nearness in meaning: how near the title of a report is to what the definitions of a file say of themselves.

A definition says what it is for by its name and the first sentence of its docstring. The five nearest of a file are
averaged, since one may be near by chance. Only files that words have found are compared: by meaning alone,
anything is found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from metatree.node import Node
from metatree_routers.embeddings.static import Embedder

NEAREST = 5
"""Definitions of a file that are averaged."""
MOST_CHARS = 300
"""Of what a definition says of itself."""


def name_and_summary(node: Node) -> str:
    """Return the name of a definition in words, and its summary or else its description.

    Example:
        >>> name_and_summary(Node("a.py::Jar.copy_all", "copy_all", "Copy all cookies.", kind="definition"))
        'Jar copy all Copy all cookies.'
    """
    name = node.id.partition("::")[2] or node.path or node.id
    name = " ".join(name.replace(".", " ").replace("_", " ").replace("/", " ").split())
    # The description of a function without a docstring is its signature, which says less than its name.
    summary = node.attributes.get("summary") or ("" if "signature" in node.attributes else node.description)
    return f"{name} {str(summary)[:MOST_CHARS]}"


@dataclass(frozen=True, slots=True)
class TitleSimilarity:
    """How near files are to a title."""

    scores: npt.NDArray[np.float64]
    """(files,) in standard deviations from their mean."""
    nearest: Sequence[int]
    """Which part of each file is the nearest."""


def title_similarity(title: str, files: Sequence[Sequence[str]], embedder: Embedder) -> TitleSimilarity:
    """Compare files with a title.

    Args:
        files: what the parts of each file say of themselves.
    """
    nearest = [0] * len(files)
    means = np.zeros(len(files))
    query = embedder.embed([title])[0]
    flat = [text for texts in files for text in texts]
    if not flat or not query.any():
        return TitleSimilarity(means, nearest)
    cosine = embedder.embed(flat) @ query
    ends = np.cumsum([0, *map(len, files)]).tolist()
    for row, (start, end) in enumerate(pairwise(ends)):
        if end > start:
            means[row] = np.sort(cosine[start:end])[-NEAREST:].mean()
            nearest[row] = int(np.argmax(cosine[start:end]))
    has_text = np.array([bool(texts) for texts in files])
    spread = float(means[has_text].std())
    if spread < 1e-6:
        return TitleSimilarity(np.zeros(len(files)), nearest)
    return TitleSimilarity(np.where(has_text, (means - means[has_text].mean()) / spread, 0.0), nearest)
