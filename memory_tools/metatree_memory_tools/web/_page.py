"""A page as it was seen: fetched once, its text kept, with its sections and links.

A page that was followed or found is one node with its whole text, a page that is a source has its sections: the nodes
that a search may make are counted, and a page of fifty sections would use them up.
"""

from __future__ import annotations

import posixpath
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any
from urllib.parse import unquote, urldefrag, urlsplit

from metatree._util.secret_text import masked, without_secrets
from metatree.errors import FetchFailed, UserError
from metatree.node import Node, Source
from metatree.trees.layer import ROOT
from metatree.trees.masking import masked_data
from metatree.trees.source_types import MemoryType, NotOfType, Outline, OutlinePart, SourceFile
from metatree.trees.text import cut, is_binary
from metatree_memory_tools.memory_types import FileType, memory_types
from metatree_memory_tools.text.descriptions import cut_masked, shorten_masked
from metatree_memory_tools.web._links import Link, links_of
from metatree_memory_tools.web.addresses import AddressRules
from metatree_memory_tools.web.fetch import ROBOTS, Fetched, FetchLimits, fetch
from metatree_memory_tools.web.freshness import validator

PAGE = "page"
"""Kind of the node of a page."""
SECTION = "page section"
MAX_TEXT = 200_000
"""Of a page that becomes one node; the rest is cut, and the text says so."""
_NAMES = {
    "text/html": "page.html",
    "application/xhtml+xml": "page.html",
    "application/pdf": "page.pdf",
    "text/markdown": "page.md",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "page.docx",
}
_TEXTS = ("text/", "application/json", "application/xml", "application/javascript", "application/x-yaml")
_HTML_HEAD = re.compile(
    rb"\s*(?:<!--.*?-->\s*)*<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE | re.DOTALL
)


@dataclass(frozen=True)
class FetchedPage:
    """What was at an address, and the memory type that reads such files."""

    fetched: Fetched
    file: SourceFile
    kind: MemoryType
    outline: Outline
    links: tuple[Link, ...]
    at: float
    """When it was fetched, in seconds since the epoch."""
    is_named: bool = True
    """Whether the user gave its address."""

    @property
    def address(self) -> str:
        """Where it is; of an address that a server led to, without the keys in it, which nobody here has named."""
        return self.fetched.url if self.is_named and not self.fetched.hops else masked(self.fetched.url)[0]

    @property
    def title(self) -> str:
        """What it calls itself, else its address."""
        own = str(self.outline.attributes.get("title") or "")
        return shorten_masked(own, 120) or shorten_masked(self.address.partition("://")[2], 120)

    @property
    def digest(self) -> str:
        """Hash of the bytes."""
        return blake2b(self.file.data, digest_size=16).hexdigest()

    def attributes(self) -> dict[str, Any]:
        """Return what the node of the page knows besides its words."""
        result: dict[str, Any] = {
            "url": self.address,
            "links": without_secrets([[link.text, link.url] for link in self.links], masked)[0],
        }
        for name, value in (("media_type", self.fetched.content_type), ("version", validator(self.fetched))):
            if value:
                result[name] = value
        if self.fetched.hops:
            typed, *others = self.fetched.hops
            result["redirected_from"] = [typed, *(masked(each)[0] for each in others)]
        if self.outline.problem:
            result["note"] = self.outline.problem
        return result

    def text(self, part: OutlinePart | None = None) -> str:
        """Return the text of a part, or of all of it."""
        place = Source(type=self.kind.source_type, path=self.file.path)
        if part is not None:
            ranges = part.ranges if len(part.ranges) > 1 else ()
            place = replace(place, start_line=part.start_line, end_line=part.end_line, parts=ranges)
        if self.kind.source_type == "text":
            return cut(self.file.text, place)
        return self.kind.content(self.file, place)

    def node(self) -> Node:
        """Return the page as one node with all of its text; its id is made of its address."""
        text = self.text()
        if len(text) > MAX_TEXT:
            text = f"{cut_masked(text, MAX_TEXT)}\n… cut: {len(text) - MAX_TEXT:,} more characters"
        return Node(
            page_id(self.address),
            self.title,
            self.outline.description or self.address,
            text,
            PAGE,
            provenance={"url": self.address, "fetched_at": round(self.at, 3)},
            attributes=self.attributes(),
        )

    def nodes(self) -> Iterator[tuple[Node, str | None]]:
        """Yield the page and its sections with their texts, as a source gives them."""
        alone = not self.outline.parts
        top = Node(
            ROOT,
            self.title,
            self.outline.description or self.address,
            self.text() if alone else None,
            PAGE,
            attributes={**self.attributes(), "fetched_at": round(self.at, 3)},
        )
        # Not the time it was fetched at: a page that is the same is the same node.
        content = repr((top.title, top.description, self.digest, self.attributes()))
        yield (
            replace(top, digest=blake2b(content.encode("utf-8", "replace"), digest_size=16).hexdigest()),
            None,
        )
        yield from self._sections(self.outline.parts, ROOT)

    def _sections(self, parts: tuple[OutlinePart, ...], parent: str) -> Iterator[tuple[Node, str | None]]:
        for part in parts:
            node_id = part.id.lstrip("#:") or "section"
            text = None if part.parts else self.text(part)
            attributes = {**part.attributes, "start_line": part.start_line, "end_line": part.end_line}
            yield Node(node_id, part.title, part.description, text, SECTION, attributes=attributes), parent
            yield from self._sections(part.parts, node_id)


def read_page(
    url: str, options: Mapping[str, Any], *, rules: AddressRules | None = None, named: bool = True
) -> FetchedPage:
    """Fetch a page and find out what lies in it.

    Args:
        url: http or https.
        options: of the source: `allow_private`, `allow`, `robots` (false to fetch whatever `robots.txt` says),
            `max_bytes`, `seconds`.
        rules: instead of those in the options.
        named: whether the user gave the address; a key in another one is not shown.

    Raises:
        RefusedAddress, FetchFailed: it may not or cannot be fetched, or it is nothing that can be read.
        MissingExtra: what reads such a page is not installed.
    """
    rules = rules or AddressRules.of(options)
    robots = ROBOTS if options.get("robots", True) else None
    try:
        response = fetch(url, rules=rules, robots=robots, limits=limits_of(options))
    except FetchFailed as exc:
        if named:
            raise
        raise FetchFailed(masked(str(exc))[0], url=masked(url)[0], status=exc.status) from None
    name = _name_of(response)
    data = response.body
    if name.endswith(".html") and response.charset:
        # What the header says goes before what the page says; a mark at the start goes before both.
        with suppress(LookupError, UnicodeError):
            data = data.decode(response.charset, "replace").encode("utf-8-sig")
    file = SourceFile(name, data)
    for known in _types_of(file):
        is_decoded = known.traits.binary or known.traits.encoded(name, data[:8192])
        read = file if is_decoded else SourceFile(name, masked_data(name, data))
        with suppress(NotOfType):
            outline = known.kind.outline(read)
            links = links_of(read.text, response.url) if name.endswith(".html") else []
            return FetchedPage(response, read, known.kind, outline, tuple(links), time.time(), named)
    what = response.content_type or "of an unknown type"
    said = response.url if named and not response.hops else masked(response.url)[0]
    raise FetchFailed(f"{said!r} is {what}: there is no text in it that could be read", url=said)


def limits_of(options: Mapping[str, Any]) -> FetchLimits:
    """Read `max_bytes` and `seconds` from the options of a source. Raises UserError."""
    given: dict[str, Any] = {}
    for name, kind in (("max_bytes", int), ("seconds", float)):
        value = options.get(name)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
            raise UserError(f"{name}={value!r}: give a number above 0")
        given[name] = kind(value)
    return FetchLimits(**given)


def page_id(url: str) -> str:
    """Return the id of a page that a tool or a fallback found.

    Example:
        >>> page_id("HTTP://Example.org/a#b")
        'page:http://example.org/a'
    """
    parts = urlsplit(urldefrag(url)[0])
    return "page:" + parts._replace(scheme=parts.scheme.lower(), netloc=parts.netloc.lower()).geturl()


def _name_of(response: Fetched) -> str:
    """Return a name for a file that such a body would have, so that memory types know it."""
    kind = response.content_type
    if kind in _NAMES:
        return _NAMES[kind]
    if not kind and _HTML_HEAD.match(response.body[:2_000]):
        return "page.html"
    last = posixpath.basename(unquote(urlsplit(response.url).path))
    last = re.sub(r"[^\w.-]", "_", last)[-100:]
    if "." in last.strip("."):
        return last
    return "page.txt" if not kind or kind.startswith(_TEXTS) else "page.bin"


def _types_of(file: SourceFile) -> Iterator[FileType]:
    head = file.data[:8192]
    binary = is_binary(file.data)
    return (each for each in memory_types() if each.knows(file.path, head, binary=binary))
