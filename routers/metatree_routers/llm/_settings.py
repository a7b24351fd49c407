"""Where a model is and how it is called: names, addresses, keys, from arguments or from the environment."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from metatree.errors import UserError
from metatree_routers.llm.errors import BadKey

OPENAI = "https://api.openai.com/v1"
PREFIX = "openai/"
_REASONING = re.compile(r"(^|/)(o[1-9]|gpt-5|gpt-oss|deepseek-r|qwq)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """One model of one server."""

    model: str
    base_url: str
    api_key: str
    """Never shown; `repr` leaves it out."""

    def __repr__(self) -> str:
        return f"ModelSettings(model={self.model!r}, base_url={self.public_url!r})"

    @property
    def public_url(self) -> str:
        """The address without its query, which may hold a key."""
        return public_url(self.base_url)

    @property
    def is_openai(self) -> bool:
        """Whether it is OpenAI's own API, or Azure's."""
        host = urlsplit(self.base_url).hostname or ""
        return host == "api.openai.com" or host.endswith(".openai.azure.com")

    @property
    def reasons(self) -> bool:
        """Whether the model thinks before it answers, in tokens that count against its limit."""
        return _REASONING.search(self.model) is not None


def model_settings(model: str | None, base_url: str | None, api_key: str | None) -> ModelSettings:
    """Fill in what was not given from `METATREE_MODEL`, `OPENAI_BASE_URL` and `OPENAI_API_KEY`.

    Args:
        model: a name as the server knows it; `openai/` before it is taken off once.
        base_url: ends with `/v1` for most servers; None for OpenAI's own.
        api_key: a server of your own may need none.

    Raises:
        UserError: no model is named, or the address is none, or has a user name or a password in it.
        BadKey: OpenAI's own API is meant, and there is no key.
    """
    named = (model or os.environ.get("METATREE_MODEL") or "").strip()
    named = named.removeprefix(PREFIX)
    if not named:
        raise UserError("no model is named: use --router openai/MODEL, LLMRouter('MODEL') or METATREE_MODEL")
    url = (base_url or os.environ.get("OPENAI_BASE_URL") or OPENAI).strip().rstrip("/")
    parts = urlsplit(url)
    if "@" in (parts.netloc or url):  # nothing of it is shown: what is a password here is anybody's guess
        raise UserError(
            f"{'base_url' if base_url else 'OPENAI_BASE_URL'} has a user name or a password before an @: take them out,"
            " and give what the server wants as its key with OPENAI_API_KEY or api_key=…"
        )
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UserError(
            f"{public_url(url)!r} is no address of a server: write it as http://localhost:11434/v1"
        )
    key = (api_key or os.environ.get("OPENAI_API_KEY") or "").strip()
    made = ModelSettings(named, url, key or "none")
    if not key and made.is_openai:
        raise BadKey("OpenAI needs a key: set OPENAI_API_KEY, or OPENAI_BASE_URL for a server of your own")
    return made


def public_url(url: str) -> str:
    """Return an address without a query or a fragment.

    Example:
        >>> public_url("https://example.org:8080/v1?key=x")
        'https://example.org:8080/v1'
    """
    return urlsplit(url)._replace(query="", fragment="").geturl()
