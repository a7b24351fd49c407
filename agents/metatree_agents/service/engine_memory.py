"""Recommendations become memory: what people promote or correct is remembered in the tree of an engine."""

from __future__ import annotations

import asyncio

from metatree import Tree
from metatree.layer import Layer
from metatree.remembering import remember
from metatree_agents.service.client import ServiceClient, patiently
from metatree_agents.service.recommendations import NEGATIVE

_FACT = "recommendations-from:"


async def learn(client: ServiceClient, tree: Tree) -> int:
    """Remember what was recommended since the last time; return how many recommendations came.

    Each is remembered once in a tree, whatever happens in between: the same text is one memory.
    """
    layer, fact = Layer(tree.memory), _FACT + client.url
    after = int(layer.fact(fact) or 0)
    came = await patiently(client, "GET", "get-recommendations", After=after)
    for one in came:
        if one["type"] not in NEGATIVE:
            await asyncio.to_thread(_remember, tree, one)
        with tree.memory.transaction():
            layer.set_fact(fact, one["number"])
    return len(came)


def _remember(tree: Tree, one: dict[str, str]) -> None:
    remember(
        tree,
        "\n\n".join(text for text in (one["fragment"], one["comment"]) if text.strip())[:190_000],
        title=" ".join(one["query"].split())[:100] or None,
        source=f"{one['type']}, topic {one['topic']}",
        who=one["on_behalf_of"],
    )
