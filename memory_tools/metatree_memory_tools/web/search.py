"""The fallback that browses the web: a search provider's hits become pages of the tree, which are then searched."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable
from urllib.parse import urlencode, urlsplit

from metatree._util.secret_text import masked
from metatree._util.threads import in_thread
from metatree.errors import FetchFailed, MetatreeError, UserError
from metatree.node import Node
from metatree.searches.fallback import FallbackRequest, FallbackResult
from metatree.trees.tree import ROOT
from metatree_memory_tools.text.descriptions import shorten
from metatree_memory_tools.web._page import page_id, read_page
from metatree_memory_tools.web.addresses import AddressRules
from metatree_memory_tools.web.fetch import FetchLimits, fetch
from metatree_memory_tools.web.tools import page_in

VARIABLE = "METATREE_SEARCH_URL"
"""Names the SearXNG instance that is asked when nothing else says so."""
HITS = 5
_MAX_BYTES = 5_000_000
WebFallback = Callable[[FallbackRequest], Awaitable[FallbackResult | None]]
_log = logging.getLogger("metatree")


@dataclass(frozen=True, slots=True)
class SearchHit:
    """One page that a provider found."""

    url: str
    title: str = ""
    snippet: str = ""


@runtime_checkable
class SearchProvider(Protocol):
    """Finds pages on the web."""

    name: str
    """Kept in the provenance of the pages."""

    def search(self, query: str, *, k: int) -> Sequence[SearchHit]:
        """Return at most `k` pages for a query, best first.

        Raises:
            MetatreeError: it cannot be asked now.
        """
        ...


class SearxNG:
    """A SearXNG instance, by its JSON interface, which its settings must allow (`search.formats: [html, json]`).

    Args:
        url: of the instance, with or without `/search` at its end.
        rules: where it may be besides on a public address; the instance itself was named by the user, so that it may
            be on a private one.
        seconds: for one answer.
        language: as `en`; None leaves it to the instance.
    """

    name = "searxng"

    def __init__(
        self,
        url: str,
        *,
        rules: AddressRules | None = None,
        seconds: float = 20.0,
        language: str | None = None,
    ) -> None:
        address = url.strip().rstrip("/")
        self.url = address if address.endswith("/search") else f"{address}/search"
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UserError(
                f"{url!r} is no address of a search engine: give one that begins with http:// or https://"
            )
        self._rules = (rules or AddressRules()).naming(self.url)
        self._seconds = seconds
        self._language = language

    def search(self, query: str, *, k: int) -> Sequence[SearchHit]:
        """Ask the instance."""
        parameters = {"q": query, "format": "json", "safesearch": "1"}
        if self._language:
            parameters["language"] = self._language
        try:
            response = fetch(
                f"{self.url}?{urlencode(parameters)}",
                rules=self._rules,
                robots=None,  # an interface for programs, which the user has named
                limits=FetchLimits(max_bytes=_MAX_BYTES, seconds=self._seconds),
            )
        except FetchFailed as exc:
            if exc.status == 403:
                text = f"{self.url!r} refuses to answer in JSON: allow it there with `search.formats: [html, json]`"
                raise FetchFailed(text, url=self.url, status=403) from exc
            raise
        try:
            data = json.loads(response.body)
            results = data["results"]
            hits = [
                SearchHit(str(r["url"]), str(r.get("title") or ""), str(r.get("content") or ""))
                for r in results
            ]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as exc:
            raise FetchFailed(f"{self.url!r} did not answer as SearXNG does: {exc}", url=self.url) from exc
        return hits[:k]


def web_search_fallback(
    provider: SearchProvider,
    *,
    hits: int = HITS,
    rules: AddressRules | None = None,
    options: Mapping[str, Any] | None = None,
    parent: str = ROOT,
) -> WebFallback:
    """Make a link for `fallbacks=` that looks on the web for what a tree does not answer.

    The pages that a provider finds for the open questions are fetched, kept as nodes with where they came from, and
    searched. What a hit's snippet says is data and is kept only as what the provider said of the page; pages that may
    not or cannot be fetched are left out.

    Args:
        provider: finds the pages; anything with the method of `SearchProvider`.
        hits: how many pages for each question.
        rules: what may be fetched; None for public addresses alone, and what `METATREE_WEB_ALLOW` names.
        options: as of a web source: `robots`, `max_bytes`, `seconds`.
        parent: the node that the pages come under.

    Example:
        >>> class Library:
        ...     name = "library"
        ...     def search(self, query, *, k):
        ...         return []
        >>> look = web_search_fallback(Library())
        >>> # search(question, tree=tree, fallbacks=[look])
    """
    if not isinstance(provider, SearchProvider):
        raise UserError(f"{provider!r} is no search provider: it needs a method `search(query, *, k)`")
    rules = rules or AddressRules.of(options or {})

    def browse(request: FallbackRequest) -> FallbackResult | None:
        results: dict[str, tuple[SearchHit, str]] = {}
        for question in request.questions:
            for hit in list(provider.search(question, k=hits))[:hits]:
                if page_in(request.tree, masked(hit.url)[0]) is None:
                    results.setdefault(page_id(hit.url), (hit, question))
        if not results:
            return None

        def read(each: tuple[SearchHit, str]) -> Node | None:
            return _page(each[0], each[1], str(provider.name), options or {}, rules)

        with ThreadPoolExecutor(max_workers=min(4, len(results))) as pool:
            nodes = list(pool.map(read, results.values()))
        unique: dict[str, Node] = {}
        for node in nodes:
            if node is not None and request.tree.find(node.id) is None:
                unique.setdefault(node.id, node)
        at = parent if parent in request.tree else ROOT
        return FallbackResult(nodes=list(unique.values()), parent=at) if unique else None

    async def browse_the_web(request: FallbackRequest) -> FallbackResult | None:
        # In a thread of its own, so that other parts of the search go on, and its time limit holds.
        return await in_thread(browse, request=request)

    return browse_the_web


def configured_fallback(url: str | None = None) -> WebFallback | None:
    """Return the fallback for an address, or for the one in `METATREE_SEARCH_URL`; None when neither is given."""
    address = url or os.environ.get(VARIABLE, "").strip()
    return web_search_fallback(SearxNG(address)) if address else None


def _page(
    hit: SearchHit, question: str, provider: str, options: Mapping[str, Any], rules: AddressRules
) -> Node | None:
    try:
        made = read_page(hit.url, options, rules=rules, named=False).node()
    except MetatreeError as exc:
        _log.info("a hit of %s is left out: %s", provider, exc)
        return None
    provenance = {
        **made.provenance,
        "tool": "web search",
        "provider": provider,
        "query": question,
        "said_of_it": shorten(masked(f"{hit.title}: {hit.snippet}")[0], 300),
    }
    return Node(
        made.id, made.title, made.description, made.content, made.kind, None, provenance, made.attributes
    )
