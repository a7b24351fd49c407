"""What the engines of `serve` and `worker` are made of besides a router."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from metatree import Tree


def engine_parts(
    parts: dict[str, Any],
    memory: Tree,
    *,
    web: str | None,
    human: bool,
    allow: Sequence[str] | None,
) -> dict[str, Any]:
    """Return the parts of an engine's searches, as arguments of `search`.

    Args:
        parts: those that think, from `suite_parts`.
        memory: the tree.
        web: what `--web` names.
        human: whether what the tree does not answer is put to the person in the thread.
        allow: tools that may change something without asking; any other asks in the thread.

    Raises:
        UserError: `web` is no address, or `allow` names no tool.
    """
    from metatree import ask_person
    from metatree_agents.cli.commands._permits import permit_of
    from metatree_agents.cli.commands._search import web_fallbacks, with_evidence

    fallbacks, tools = web_fallbacks(web)
    return {
        **with_evidence(parts, memory),
        "tools": tools,
        "fallbacks": [*fallbacks, ask_person] if human else fallbacks,
        "permit": permit_of(memory, allow, tools, terminal=False),
    }
