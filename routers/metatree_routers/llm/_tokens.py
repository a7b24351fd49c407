"""Count tokens without a network: exactly where a model's tokenizer is at hand, else by a safe estimate."""

from __future__ import annotations

import hashlib
import math
import os
import re
import tempfile
from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from metatree.trees.text import encodable
from metatree_routers.tokenizer import llama_tokenizer

PER_MESSAGE = 8
"""Tokens that a chat format puts around one message; the known formats use 3 to 7."""
MARGIN = 1.15
"""An estimate is raised by this much: other vocabularies split some texts (digits, indentation) more finely."""
_CACHED_CHARS = 2_000
_LLAMA_2 = re.compile(r"llama-?2|codellama|vicuna|mistral-7b|mixtral", re.IGNORECASE)
_TIKTOKEN_DATA = "https://openaipublic.blob.core.windows.net/encodings/{}.tiktoken"


class TokenCounter:
    """Counts the tokens of texts and of chat messages.

    Args:
        count: counts one text.
        exact: whether it is the model's own tokenizer.

    Example:
        >>> TokenCounter(lambda text: len(text.split()), exact=True).text("one two")
        2
    """

    def __init__(self, count: Callable[[str], int], *, exact: bool) -> None:
        self.exact = exact
        self._given = count
        self._cached = lru_cache(maxsize=16_384)(self._count)
        self._rules = lru_cache(maxsize=64)(self.lines)

    def _count(self, text: str) -> int:
        return self._given(encodable(text))

    def text(self, text: str) -> int:
        """Return the number of tokens of a text."""
        count = self._cached(text) if len(text) <= _CACHED_CHARS else self._count(text)
        return count if self.exact else math.ceil(count * MARGIN)

    def lines(self, text: str) -> int:
        """Return an upper bound for a text of which most words come again: each is counted once and remembered.

        No vocabulary in use has tokens that span words, so that a text takes at most what its words take. The first
        word of a line is counted with the line's end, and indentation in one piece. The bound is 5 % high, and takes a
        tenth of the time of counting each prompt.
        """
        count = self._cached
        total = 0
        for line in text.split("\n"):
            bare = line.lstrip(" ")
            if len(bare) < len(line):
                total += count(line[: len(line) - len(bare)])
            first, *words = bare.split(" ")
            total += count("\n" + first)
            for word in words:
                total += count(word) if word else 1
        return total if self.exact else math.ceil(total * MARGIN)

    def messages(self, messages: Sequence[dict[str, Any]]) -> int:
        """Return an upper bound for chat messages with what a chat format puts around them."""
        return sum(
            PER_MESSAGE
            + (self._rules if message["role"] == "system" else self.lines)(str(message["content"]))
            for message in messages
        )

    def clip(self, text: str, most: int) -> str:
        """Return the longest beginning of a text that takes at most so many tokens, with `…` where it was cut."""
        if self.text(text) <= most:
            return text
        low, high = 0, min(len(text), most * 12)
        while low < high:
            middle = (low + high + 1) // 2
            if self.text(text[:middle] + "…") <= most:
                low = middle
            else:
                high = middle - 1
        return text[:low].rstrip() + "…" if low else ""


def counter_for(model: str) -> TokenCounter:
    """Return a counter for a model: its own tokenizer when that is on this machine, else a safe estimate."""
    encoding = _tiktoken(model)
    if encoding is not None:
        return TokenCounter(lambda text: len(encoding.encode(text, disallowed_special=())), exact=True)
    return _llama_counter(_LLAMA_2.search(model) is not None)


@lru_cache(maxsize=2)
def _llama_counter(exact: bool) -> TokenCounter:
    try:
        tokenizer = llama_tokenizer()
    except (LookupError, ImportError, OSError, ValueError):
        return TokenCounter(_by_bytes, exact=False)
    return TokenCounter(lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids), exact=exact)


def _by_bytes(text: str) -> int:
    """Count as if three bytes made a token: more than any vocabulary in use needs for prose and code."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // 3) + 1


def _tiktoken(model: str) -> Any:
    """Return OpenAI's encoding of a model when tiktoken is installed and its data lies here; it would download it."""
    if find_spec("tiktoken") is None:
        return None
    import tiktoken

    try:
        name = tiktoken.encoding_name_for_model(model)
    except KeyError:
        return None
    folder = os.environ.get("TIKTOKEN_CACHE_DIR") or os.environ.get("DATA_GYM_CACHE_DIR")
    place = Path(folder) if folder else Path(tempfile.gettempdir()) / "data-gym-cache"
    file = place / hashlib.sha1(_TIKTOKEN_DATA.format(name).encode(), usedforsecurity=False).hexdigest()
    return tiktoken.get_encoding(name) if file.is_file() else None
