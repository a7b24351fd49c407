"""Routers, readers and the other parts that ask a language model, over any OpenAI-compatible server.

Names are imported when they are first used: the openai SDK and instructor take a second to load.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from metatree.protocols import Suite
    from metatree_routers.llm.composer import LLMComposer
    from metatree_routers.llm.connection import Connection
    from metatree_routers.llm.describer import LLMDescriber
    from metatree_routers.llm.descriptions import Described, adescribe_tree, describe_tree
    from metatree_routers.llm.prices import PRICES, Price
    from metatree_routers.llm.prompts import Prompts
    from metatree_routers.llm.reader import LLMReader
    from metatree_routers.llm.recording import Recording, Replay
    from metatree_routers.llm.router import LLMRouter
    from metatree_routers.llm.tool_caller import LLMToolCaller

_HOMES = {
    "Connection": "connection",
    "Described": "descriptions",
    "LLMComposer": "composer",
    "LLMDescriber": "describer",
    "LLMReader": "reader",
    "LLMRouter": "router",
    "LLMToolCaller": "tool_caller",
    "PRICES": "prices",
    "Price": "prices",
    "Prompts": "prompts",
    "Recording": "recording",
    "Replay": "recording",
    "adescribe_tree": "descriptions",
    "describe_tree": "descriptions",
}

__all__ = [
    "PRICES",
    "Connection",
    "Described",
    "LLMComposer",
    "LLMDescriber",
    "LLMReader",
    "LLMRouter",
    "LLMToolCaller",
    "Price",
    "Prompts",
    "Recording",
    "Replay",
    "adescribe_tree",
    "describe_tree",
    "openai_suite",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)


def openai_suite(name: str) -> Suite:
    """Return the parts for a router's name: `openai/MODEL`, or `openai` for the model in `METATREE_MODEL`.

    Raises:
        UserError: no model is named, or the address in `OPENAI_BASE_URL` is none.
        BadKey: OpenAI's own API is meant, and there is no key.
    """
    from metatree_routers.llm.router import LLMRouter

    return LLMRouter(name.partition("/")[2] or None).suite()
