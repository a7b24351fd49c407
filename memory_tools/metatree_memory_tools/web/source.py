"""The type of source: a page on the web, `build_tree("https://…")`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from metatree.errors import UserError
from metatree.node import Node, Source
from metatree.tools.tool import Tool, ToolGroup
from metatree.trees.source_types import Progress, SourceRef
from metatree_memory_tools.web._page import read_page
from metatree_memory_tools.web.addresses import AddressRules
from metatree_memory_tools.web.fetch import ROBOTS
from metatree_memory_tools.web.freshness import page_fingerprint


class WebPage:
    """A page at an http or https address, kept as it was seen until it is refreshed.

    Options: `allow` (hosts whose addresses may be private), `allow_private`, `robots` (false to fetch whatever
    `robots.txt` says), `max_bytes`, `seconds`.
    """

    name = "web"
    version = "1"

    @property
    def tools(self) -> Sequence[Tool | ToolGroup]:
        """The tool tree of pages."""
        from metatree_memory_tools.web.tools import page_tools

        return page_tools

    def recognises(self, location: str) -> bool:
        """Whether a location is an address on the web."""
        return location.lower().startswith(("http://", "https://"))

    def fingerprint(self, source: SourceRef) -> str | None:
        """Return what the server says of the version of the page; None when only fetching it tells."""
        robots = ROBOTS if source.options.get("robots", True) else None
        return page_fingerprint(source.location, rules=AddressRules.of(source.options), robots=robots)

    def nodes(
        self, source: SourceRef, *, progress: Progress | None = None
    ) -> Iterator[tuple[Node, str | None]]:
        """Yield the page and its sections, with their texts."""
        yield from read_page(source.location, source.options).nodes()

    def content(self, source: SourceRef, ref: Source) -> str:
        """Raise an error: the texts of all nodes are kept in the tree."""
        raise UserError(f"nothing is read from {source.location!r} when it is needed: refresh the tree")
