"""Tools that are used together: a request often takes several, of one server, and each for another part of it.

Three steps over what speaks for each tool so far. All tools of a group come forward by what the group can do when its
tools are taken together: for each word of the request, the tool that says it best. Then the best tool is taken, and
what it says already counts less for those that follow, and so on; so a tool that is the same again falls behind one
for the rest of the request.

Source: the second step is maximal marginal relevance (Carbonell, Goldstein 1998) with words of the request in place of
the similarity of two texts.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from metatree_routers.evidence.signals.context import term_coverage
from metatree_routers.index.node_table import Records
from metatree_routers.index.postings import Postings

Floats = npt.NDArray[np.float32]
Nodes = npt.NDArray[np.intp]

TOOL_KINDS = frozenset({"tool", "action", "mcp tool", "api operation"})
GROUP_WEIGHT = 0.2
"""Of what the tools of a group say together, for each of them."""
SAID_WEIGHT = 0.4
"""Of what tools before it say already, taken off a tool."""
MOST_ORDERED = 40
"""So many of the best tools are put in order."""


def take_together(
    records: Records,
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
    is_tool = records.of_kind(TOOL_KINDS)
    found = candidates[is_tool[candidates] & (records.parent[candidates] > 0)]
    if not len(found):
        return
    tools = np.flatnonzero(is_tool & competing & (records.parent > 0))
    groups, row = np.unique(records.parent[tools], return_inverse=True)
    joint = np.zeros(len(groups), dtype=np.float32)
    for weight, said in term_coverage(records, weights, postings, tools):
        best = np.zeros(len(groups), dtype=np.float32)
        np.maximum.at(best, row, said)
        joint += weight * best
    scores[found] += np.float32(GROUP_WEIGHT) * joint[np.searchsorted(groups, records.parent[found])]


def put_in_order(
    records: Records,
    scores: Floats,
    weights: Mapping[str, float],
    postings: Mapping[str, Postings],
    candidates: Nodes,
) -> None:
    """Take off the scores of tools what better ones say already, in place; the best keeps its own."""
    tools = candidates[records.of_kind(TOOL_KINDS)[candidates]]
    tools = tools[np.argsort(-scores[tools], kind="stable")[:MOST_ORDERED]]
    rows = list(term_coverage(records, weights, postings, tools))
    if len(tools) < 2 or not rows:
        return
    weight = np.array([weight for weight, _ in rows], dtype=np.float32)
    said = np.stack([said for _, said in rows])
    own = scores[tools]
    covered = np.zeros(len(rows), dtype=np.float32)
    left = np.ones(len(tools), dtype=bool)
    last = np.inf
    for _ in range(len(tools)):
        value = np.where(left, own - np.float32(SAID_WEIGHT) * ((weight * covered) @ said), -np.inf)
        best = int(np.argmax(value))
        last = min(float(value[best]), last)
        left[best] = False
        scores[tools[best]] = last
        covered = np.maximum(covered, said[:, best])
