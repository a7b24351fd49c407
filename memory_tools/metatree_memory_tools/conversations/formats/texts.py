"""The text of a message, out of the many shapes that programs keep it in; and the text of HTML."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html.parser import HTMLParser
from typing import Any

_BLOCKS = frozenset(
    re.findall(
        r"\w+",
        """address article aside blockquote br caption center dd div dl dt figcaption footer form h1 h2 h3 h4 h5 h6
        header hr li main nav ol p pre section table tbody td tfoot th thead title tr ul""",
    )
)
_UNSEEN = frozenset({"script", "style", "head", "template", "noscript"})
_MOST_HTML = 2_000_000


def text_of_parts(value: Any) -> str | None:
    """Return the text of a message: of a list of parts, those that are texts, and a word for the others."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        if isinstance(value.get("parts"), list):
            return text_of_parts(value["parts"])
        for key in ("text", "value", "content", "result"):
            if value.get(key) is not None:
                return text_of_parts(value[key])
        kind = value.get("type") or value.get("content_type")
        return f"[{kind}]" if isinstance(kind, str) else None
    if isinstance(value, list):
        return "\n".join(filter(None, (text_of_parts(part) for part in value)))
    return None


class _Text(HTMLParser):
    """Takes what is seen of a page: no scripts, no styles, no hidden blocks."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.texts: list[str] = []
        self._unseen: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._unseen or tag in _UNSEEN:
            if not self._unseen or tag == self._unseen[0]:
                self._unseen.append(tag)
            return
        if tag in _BLOCKS:
            self.texts.append("\n")
        elif tag == "img" and (alt := (dict(attrs).get("alt") or "").strip()):
            self.texts.append(f" {alt} ")

    def handle_endtag(self, tag: str) -> None:
        if self._unseen:
            if tag == self._unseen[-1]:
                self._unseen.pop()
        elif tag in _BLOCKS:
            self.texts.append("\n")

    def handle_data(self, data: str) -> None:
        if not self._unseen:
            self.texts.append(data)


def text_of_html(html: str) -> str:
    """Return what is read of a page, with a line for each block.

    Example:
        >>> text_of_html("<style>p {}</style><p>Tea &amp; cake</p><ul><li>at <b>four</b></li></ul>")
        'Tea & cake\\nat four'
    """
    parser = _Text()
    try:
        parser.feed(html[:_MOST_HTML])
        parser.close()
    except (AssertionError, ValueError, RecursionError):  # of declarations that are out of form
        pass
    lines = (" ".join(line.split()) for line in "".join(parser.texts).split("\n"))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(line for line in lines if line)).strip()
