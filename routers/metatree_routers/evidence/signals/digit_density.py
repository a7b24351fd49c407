"""Figures: a question for an amount is more often answered by a table than by a sentence."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from metatree_routers.index.digit_density import RICH
from metatree_routers.index.node_table import NodeTable

Floats = npt.NDArray[np.float32]

WEIGHT = 0.6
"""Of the z-score of the share of figures, of one standard deviation of the scores."""
LONG = 100
"""A text of so many terms shows what share of it is figures; in a shorter one it counts less."""


def add_digit_density(table: NodeTable, scores: Floats, nodes: npt.NDArray[np.intp]) -> None:
    """Raise the scores of nodes that are rich in figures, in place; lower those of the others.

    Args:
        nodes: those that compete: with text, and with some evidence.
    """
    if len(nodes) < 2:
        return
    share = table.digit_density[nodes].astype(np.float32)
    spread = float(share.std())
    if not spread:
        return
    known = np.minimum(np.float32(1), table.lengths[nodes, 2] / np.float32(LONG))
    z = (share - share.mean()) / spread
    scores[nodes] += np.float32(WEIGHT * float(scores[nodes].std())) * known * z


def clauses(table: NodeTable, node: int) -> Iterator[str]:
    """Say that a node is rich in figures."""
    if table.digit_density[node] >= RICH:
        yield "many figures"
