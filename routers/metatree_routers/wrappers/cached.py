"""Keep the answers of a router and its relatives, so that the same question is not paid for twice."""

from __future__ import annotations

from typing import Any

from metatree.durable import report_usage
from metatree.protocols import AnyRouter, Suite
from metatree_routers.wrappers._codec import answer_from, answer_json, errors_of, request_json
from metatree_routers.wrappers._wrapper import Wrapper, cache_key_of
from metatree_routers.wrappers.disk_cache import Cache, DiskCache, key_of


class CachedRouter(Wrapper):
    """Answers from a cache what was answered before: by model, prompts and content of the request.

    A hit counts as `cache_hits` and as no call. A request that comes again with errors is not looked up, and what is
    broken or does not fit is a miss.

    Args:
        inner: the router, with the parts it brings, or a suite.
        cache: None for the user's cache folder.
        seconds: how long an answer is kept; None until room is needed.

    Example:
        >>> from metatree.testing.parts import ScriptedRouter
        >>> from metatree_routers.wrappers.disk_cache import MemoryCache
        >>> CachedRouter(ScriptedRouter(["a"]), MemoryCache()).traits.uses_model
        False
    """

    def __init__(
        self, inner: AnyRouter | Suite, cache: Cache | None = None, *, seconds: float | None = None
    ) -> None:
        super().__init__(inner)
        self._cache = cache if cache is not None else DiskCache()
        self._seconds = seconds

    async def through(self, method: str, part: Any, request: Any) -> Any:
        key = key_of(method, cache_key_of(part), request_json(request))
        if not errors_of(request):
            stored = self._cache.get(key)
            if stored is not None:
                try:
                    answer = answer_from(method, stored)
                except Exception:  # written by something else
                    answer = None
                if answer is not None:
                    report_usage(cache_hits=1, **({"model_calls": -1} if part.traits.uses_model else {}))
                    return answer
        answer = await getattr(part, method)(request)
        self._cache.set(key, answer_json(method, answer), seconds=self._seconds)
        return answer
