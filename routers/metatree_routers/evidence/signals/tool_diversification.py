"""Tools that are used together: a request often takes several, of one server, and each for another part of it.

Three steps over what speaks for each tool so far. All tools of a group come forward by what the group can do when its
tools are taken together: for each word of the request, the tool that says it best. Then the best tool is taken, and
what it says already counts less for those that follow, and so on; so a tool that is the same again falls behind one
for the rest of the request.

Source: the second step is maximal marginal relevance (Carbonell, Goldstein 1998) with words of the request in place
of the similarity of two texts.

Lost, all with static embeddings: each sentence of a request ranked alone (StableToolBench R@10 +1.8, MetaTool -1 to
-2), nearness in meaning of single words (MetaTool R@5 +2, StableToolBench -2 to -4), words weighed by the length of
their vectors (MuSiQue +5, StableToolBench +1, LoCoMo and LiveMCPBench -1 to -5).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from metatree_routers.evidence.signals.context import term_coverage
from metatree_routers.index.fields import TOOL_KINDS
from metatree_routers.index.node_table import NodeTable
from metatree_routers.index.postings import Postings

Floats = npt.NDArray[np.float32]
Nodes = npt.NDArray[np.intp]

GROUP_WEIGHT = 0.2
"""Of what the tools of a group say together, for each of them."""
COVERED_WEIGHT = 0.4
"""Of what tools before it say already, taken off a tool."""
MOST_ORDERED = 40
"""So many of the best tools are put in order."""


def take_together(
    table: NodeTable,
    scores: Floats,
    weights: Mapping[str, float],
    postings: Mapping[str, Postings],
    candidates: Nodes,
    competing: npt.NDArray[np.bool_],
) -> None:
    """Bring forward tools of a group that can do much of a request, in place.

    Args:
        scores: (n,) what speaks for each node, in the unit of weight times inverse document frequency.
        candidates: the nodes with evidence; only tools among them are changed.
        competing: (n,) the nodes that may be found.
    """
    is_tool = table.of_kind(TOOL_KINDS)
    tool_nodes = candidates[is_tool[candidates] & (table.parent[candidates] > 0)]
    if not len(tool_nodes):
        return
    tools = np.flatnonzero(is_tool & competing & (table.parent > 0))
    groups, row = np.unique(table.parent[tools], return_inverse=True)
    joint = np.zeros(len(groups), dtype=np.float32)
    for weight, covered in term_coverage(table, weights, postings, tools):
        best = np.zeros(len(groups), dtype=np.float32)
        np.maximum.at(best, row, covered)
        joint += weight * best
    scores[tool_nodes] += np.float32(GROUP_WEIGHT) * joint[np.searchsorted(groups, table.parent[tool_nodes])]


def put_in_order(
    table: NodeTable,
    scores: Floats,
    weights: Mapping[str, float],
    postings: Mapping[str, Postings],
    candidates: Nodes,
) -> None:
    """Take off the scores of tools what better ones say already, in place; the best keeps its own."""
    tools = candidates[table.of_kind(TOOL_KINDS)[candidates]]
    tools = tools[np.argsort(-scores[tools], kind="stable")[:MOST_ORDERED]]
    rows = list(term_coverage(table, weights, postings, tools))
    if len(tools) < 2 or not rows:
        return
    weight = np.array([weight for weight, _ in rows], dtype=np.float32)
    coverage = np.stack([coverage for _, coverage in rows])
    own = scores[tools]
    covered = np.zeros(len(rows), dtype=np.float32)
    left = np.ones(len(tools), dtype=bool)
    last = np.inf
    for _ in range(len(tools)):
        value = np.where(left, own - np.float32(COVERED_WEIGHT) * ((weight * covered) @ coverage), -np.inf)
        best = int(np.argmax(value))
        last = min(float(value[best]), last)
        left[best] = False
        scores[tools[best]] = last
        covered = np.maximum(covered, coverage[:, best])
