"""The text of a message, out of the many shapes that programs keep it in; and the text of HTML."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from metatree._util.entities import unescaped
from metatree._util.secret_text import joined_elements

_BLOCKS = frozenset(
    re.findall(
        r"\w+",
        """address article aside audio blockquote br button canvas caption center dd details dialog dir div dl dt embed
        fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 header hgroup hr iframe img input label legend li main
        math menu meter nav object ol optgroup option p pre progress search section select summary svg table tbody td
        textarea tfoot th thead title tr ul video""",
    )
)
_UNSEEN = frozenset({"script", "style", "head", "template", "noscript"})
_CLOSINGS = {name: re.compile(f"</{name}", re.IGNORECASE) for name in _UNSEEN}
_MOST_HTML = 2_000_000
_TAG = re.compile(r"<([/!?]?)([A-Za-z\[][\w:-]*)")


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


def _pieces(page: str) -> Iterator[str]:
    """Yield what is seen between tags, and a line's end for each block; each letter is looked at a few times at most.

    Lost: `html.parser`, which takes the square of the time for tags that nothing closes.
    """
    unclosed: set[str] = set()
    at = 0
    while (begin := page.find("<", at)) >= 0:
        yield page[at:begin]
        if page.startswith("<!--", begin):
            end = page.find("-->", begin + 4)
            if end < 0:
                return
            at = end + 3
            continue
        tag = _TAG.match(page, begin)
        if tag is None:
            yield "<"
            at = begin + 1
            continue
        end = page.find(">", tag.end())
        if end < 0:
            return
        at, name = end + 1, tag[2].lower()
        if name in _UNSEEN and not tag[1] and name not in unclosed:
            closed = _CLOSINGS[name].search(page, at)
            if closed is None:
                unclosed.add(name)
            else:
                at = closed.start()
        elif name in _BLOCKS:
            yield "\n"
    yield page[at:]


def text_of_html(page: str) -> str:
    """Return what is read of a page, with a line for each block.

    Example:
        >>> text_of_html("<style>p {}</style><p>Tea &amp; cake</p><ul><li>at <b>four</b></li></ul>")
        'Tea & cake\\nat four'
    """
    if len(page) > _MOST_HTML:  # of a word that is cut nobody knows whether it was a key
        page = page[:_MOST_HTML].rpartition(" ")[0]
    lines = (" ".join(line.split()) for line in unescaped(joined_elements(_pieces(page))).split("\n"))
    return "\n".join(line for line in lines if line).strip()
