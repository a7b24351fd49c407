"""What the engines of `serve` and `worker`, and the searches of `mcp`, are made of besides a router."""

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
    ask_person: bool,
    allow: Sequence[str] | None,
) -> dict[str, Any]:
    """Return the parts of an engine's searches, as arguments of `search`.

    Args:
        parts: those that think, from `suite_parts`.
        memory: the tree.
        web: what `--web` names.
        ask_person: whether what the tree does not answer is put to the person in the thread.
        allow: tools that may change something without asking; any other asks in the thread.

    Raises:
        UserError: `web` is no address, or `allow` names no tool.
    """
    from metatree import ask_person as person
    from metatree_agents.cli._permits import permit_of
    from metatree_agents.cli._run_search import with_hints
    from metatree_agents.cli._web_fallback import browsing

    fallbacks, tools = browsing(web)
    return {
        **with_hints(parts, memory),
        "tools": tools,
        "fallbacks": [*fallbacks, person] if ask_person else fallbacks,
        "permit": permit_of(memory, allow, tools, terminal=False),
    }


def web_parts(web: str | None) -> dict[str, Any]:
    """Return what `--web` adds to the arguments of `search`; nothing when no engine is named."""
    from metatree_agents.cli._web_fallback import browsing

    fallbacks, tools = browsing(web)
    return {"tools": tools, "fallbacks": fallbacks} if fallbacks else {}
