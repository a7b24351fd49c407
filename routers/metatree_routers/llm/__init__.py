"""Routers, readers and the other parts that ask a language model, over any OpenAI-compatible server.

Names are imported when they are first used: the openai SDK and instructor take a second to load.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from metatree.protocols import Suite
    from metatree_routers.llm._connection import Connection
    from metatree_routers.llm._parts import LLMComposer, LLMDescriber, LLMReader, LLMToolCaller
    from metatree_routers.llm._prices import PRICES, Price
    from metatree_routers.llm._replay import Recording, Replay
    from metatree_routers.llm.describe_tree import Described, adescribe_tree, describe_tree
    from metatree_routers.llm.prompts import Prompts
    from metatree_routers.llm.router import LLMRouter

_HOMES = {
    "Connection": "metatree_routers.llm._connection",
    "Described": "metatree_routers.llm.describe_tree",
    "LLMComposer": "metatree_routers.llm._parts",
    "LLMDescriber": "metatree_routers.llm._parts",
    "LLMReader": "metatree_routers.llm._parts",
    "LLMRouter": "metatree_routers.llm.router",
    "LLMToolCaller": "metatree_routers.llm._parts",
    "PRICES": "metatree_routers.llm._prices",
    "Price": "metatree_routers.llm._prices",
    "Prompts": "metatree_routers.llm.prompts",
    "Recording": "metatree_routers.llm._replay",
    "Replay": "metatree_routers.llm._replay",
    "adescribe_tree": "metatree_routers.llm.describe_tree",
    "describe_tree": "metatree_routers.llm.describe_tree",
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
    "provider_suite",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(home), name)


def openai_suite(name: str) -> Suite:
    """Return the parts for a router's name: `openai/MODEL`, or `openai` for the model in `METATREE_MODEL`.

    Raises:
        UserError: no model is named, or the address in `OPENAI_BASE_URL` is none.
        BadKey: OpenAI's own API is meant, and there is no key.
    """
    from metatree_routers.llm.router import LLMRouter

    return LLMRouter(name.partition("/")[2] or None).suite()


def provider_suite(name: str) -> Suite:
    """Return the parts for a provider's model: `ollama/MODEL`, `anthropic/MODEL`, `gemini/MODEL`, `openrouter/MODEL`.

    Raises:
        UserError: no model is named.
        BadKey: the provider needs a key, and its variable is not set.
    """
    from metatree_routers.llm._providers import model_and_server
    from metatree_routers.llm.router import LLMRouter

    return LLMRouter(**model_and_server(name)).suite()
