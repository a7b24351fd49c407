"""The fallback that browses the web, for commands: on when `--web` or `METATREE_SEARCH_URL` names a search engine."""

from __future__ import annotations

from typing import Any


def browsing(address: str | None) -> tuple[list[Any], list[Any]]:
    """Return fallbacks and tools for a search; both empty when no engine is named.

    Args:
        address: of a SearXNG instance; None for the one in the environment.

    Raises:
        UserError: it is no address.
    """
    from metatree_memory_tools.web.search import configured_fallback

    fallback = configured_fallback(address)
    if fallback is None:
        return [], []
    from metatree_memory_tools.web.tools import page_tools

    return [fallback], list(page_tools)


def chain_of(given: list[str], fallbacks: list[Any]) -> list[Any]:
    """Return the fallbacks of a run that is taken up again, in the order in which it was begun with them."""
    from metatree import ask_person

    pending = list(fallbacks)
    return [pending.pop(0) if kind == "call" and pending else ask_person for kind in given]
