"""The links of a page: where each leads and what it says.

Only these are followed, so that an order hidden in a text cannot send anything away in an address.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urldefrag, urlsplit

from metatree._util.secret_text import joined_elements
from metatree.errors import MissingExtra
from metatree_memory_tools.reading.own_process import SMALL_BYTES, ReadingFailed, read_apart
from metatree_memory_tools.text.descriptions import shorten_masked
from metatree_memory_tools.web.fetch import joined

MOST_LINKS = 500
_TEXT_CHARS = 120
_LIMIT_S = 5.0
_WORD = re.compile(r"[^\W_]+")
_COMMON = frozenset(
    [
        "a",
        "about",
        "an",
        "and",
        "are",
        "as",
        "at",
        "be",
        "by",
        "can",
        "do",
        "does",
        "for",
        "from",
        "how",
        "i",
        "in",
        "is",
        "it",
        "of",
        "on",
        "or",
        "that",
        "the",
        "this",
        "to",
        "was",
        "what",
        "when",
        "where",
        "which",
        "who",
        "why",
        "will",
        "with",
        "you",
        "your",
    ]
)


@dataclass(frozen=True, slots=True)
class Link:
    """One link."""

    url: str
    """http or https, without what follows a `#`."""
    text: str


def links_of(html: str, url: str) -> list[Link]:
    """Return the links of a page to other pages, each address once, in their order, at most 500.

    Of a page that takes too long to be looked through (what is nested deeply takes the square) there are none.

    Args:
        html: the page.
        url: where it was found; its `<base>` is minded.

    Raises:
        MissingExtra: the package that reads HTML is not installed.
    """
    try:
        import selectolax.lexbor  # noqa: F401
    except ImportError as exc:
        raise MissingExtra("web", what="reading a web page") from exc
    data = html.encode("utf-8", "surrogatepass")
    if len(data) <= SMALL_BYTES:
        rows = link_rows(data, url)
    else:
        try:
            rows = read_apart(link_rows, data, url, limit_s=_LIMIT_S)
        except ReadingFailed:
            rows = []
    return [Link(target, text) for target, text in rows]


def link_rows(data: bytes, url: str) -> list[tuple[str, str]]:
    """Return address and text of the links of a page in UTF-8; see `links_of`."""
    from selectolax.lexbor import LexborHTMLParser

    parser = LexborHTMLParser(data.decode("utf-8", "surrogatepass"))
    base = parser.css_first("base[href]")
    start = joined(url, base.attributes.get("href") or "") if base is not None else url
    links: dict[str, str] = {}
    for anchor in parser.css("a[href], area[href]"):
        target = urldefrag(joined(start, anchor.attributes.get("href") or ""))[0]
        if not target.lower().startswith(("http://", "https://")) or target == urldefrag(url)[0]:
            continue
        text = (
            " ".join(joined_elements(_texts(anchor)).split())
            or anchor.attributes.get("aria-label")
            or anchor.attributes.get("title")
        )
        if not links.get(target):
            links[target] = shorten_masked(text or "", _TEXT_CHARS)
        if len(links) >= MOST_LINKS:
            break
    return list(links.items())


def _texts(anchor: Any) -> Iterator[str]:
    return (node.text_content or "" for node in anchor.traverse(include_text=True) if node.tag == "-text")


def best_link(links: Sequence[Link], query: str) -> Link | None:
    """Return the link that is meant: by its address, by its text, else by the words that it shares with the query.

    Example:
        >>> links = [Link("http://a.example/x", "Opening hours"), Link("http://a.example/y", "Contact us")]
        >>> best_link(links, "When does it open on Sunday? What are the opening hours?").text
        'Opening hours'
    """
    text = query.strip()
    for link in links:
        if text in (link.url, link.text) or urldefrag(text)[0] == link.url:
            return link
    wanted = _stems(text)
    best = max(links, key=lambda link: _overlap(wanted, link), default=None)
    return best if best is not None and _overlap(wanted, best) > 0 else None


def link_listing(links: Sequence[Link], query: str, most: int = 12) -> str:
    """Return the texts of some links, those that share words with a query first."""
    wanted = _stems(query)
    ordered = sorted(links, key=lambda link: -_overlap(wanted, link))
    texts = list(dict.fromkeys(shorten_masked(link.text, 60) for link in ordered if link.text))
    return ", ".join(texts[:most])


def _overlap(wanted: frozenset[str], link: Link) -> float:
    """Weigh the words in common: a link of two words, both asked for, is meant more than one of ten."""
    text = _stems(link.text)
    path = _stems(urlsplit(link.url).path)
    common = len(wanted & text)
    return float(common / math.sqrt(len(text) + 1) + common + 0.5 * len(wanted & (path - text)))


def _stems(text: str) -> frozenset[str]:
    words: Iterable[str] = (word.lower() for word in _WORD.findall(text))
    return frozenset(_stem(word) for word in words if word not in _COMMON)


def _stem(word: str) -> str:
    for end in ("ings", "ing", "ies", "es", "ed", "s", "y", "e"):
        if word.endswith(end) and len(word) - len(end) >= 3:
            return word[: -len(end)]
    return word
