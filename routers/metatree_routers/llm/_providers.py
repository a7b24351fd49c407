"""Providers whose servers speak OpenAI's chat completions: where they are, and which variable holds their key."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from metatree.errors import UserError
from metatree_routers.llm.errors import BadKey


class Provider(NamedTuple):
    """Where a provider's server is."""

    url: str
    key: str
    """The environment variable of its key; '' for a server that needs none."""
    url_variable: str = ""
    """The environment variable that says where a server of one's own is instead."""


PROVIDERS = {
    "ollama": Provider("http://localhost:11434/v1", "", "OLLAMA_HOST"),
    "anthropic": Provider("https://api.anthropic.com/v1", "ANTHROPIC_API_KEY"),
    "gemini": Provider("https://generativelanguage.googleapis.com/v1beta/openai", "GEMINI_API_KEY"),
    "openrouter": Provider("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
}


def model_and_server(name: str) -> dict[str, Any]:
    """Return what `LLMRouter` is given for a name such as `ollama/qwen3:8b`.

    Raises:
        UserError: no model is named.
        BadKey: the provider needs a key, and its variable is not set.
    """
    which, _, model = name.partition("/")
    provider = PROVIDERS[which]
    if not model:
        raise UserError(f"no model is named: write {which}/MODEL")
    given = {
        "model": f"openai/{model}",
        "base_url": provider.url,
    }  # that prefix is taken off again, and no other
    if provider.url_variable and (host := os.environ.get(provider.url_variable, "").strip().rstrip("/")):
        host = host if "://" in host else f"http://{host}"
        given["base_url"] = host if host.endswith("/v1") else f"{host}/v1"
    if provider.key:
        key = os.environ.get(provider.key, "").strip()
        if not key:
            raise BadKey(f"{which} needs a key: set {provider.key}")
        given["api_key"] = key
    else:
        given["api_key"] = "none"  # the one of OpenAI is not for this server
    return given
