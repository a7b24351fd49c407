"""The embedded describer: a title and a description taken from the text itself."""

from __future__ import annotations

import re

from metatree._util.threads import off_loop
from metatree.protocols import Describer, DescribeRequest, Description, Traits
from metatree_routers.embedded._sentences import sentences

MAX_TITLE_CHARS = 80
MAX_DESCRIPTION_CHARS = 240
_READ_CHARS = 20_000

_HEADING = re.compile(r"^\s{0,3}#{1,6}\s+(\S.*)$", re.MULTILINE)
_UNDERLINED = re.compile(r"^(\S.*)\n(?:={3,}|-{3,})\s*$", re.MULTILINE)
_HTML_TITLE = re.compile(r"<(?:title|h1)[^>]*>(.*?)</[^>]*>", re.IGNORECASE | re.DOTALL)
_DEFINED = re.compile(
    r"^[ \t]*(?:async\s+)?(?:def|class|function|func|fn|interface|struct|type)\s+([A-Za-z_]\w*)", re.MULTILINE
)
_DOCSTRING = re.compile(r'^[ \t]*[rRbBuU]{0,2}("""|\'\'\')(.+?)\1', re.MULTILINE | re.DOTALL)
_TAG = re.compile(r"<[^<>]{1,500}>")


class EmbeddedDescriber(Describer):
    """Takes the title from the first heading, definition or line, and the description from the first sentences."""

    traits = Traits(any_loop=True)

    @off_loop
    def describe(self, request: DescribeRequest) -> Description:
        """Return a title of at most 80 characters and a description of at most 240; both in one line."""
        text = request.content[:_READ_CHARS].replace("\r\n", "\n")
        title, rest = _title(text)
        title = title or (request.node.title if request.node else "") or request.tool or "empty text"
        description = _description(text, rest)
        return Description(shorten(title, MAX_TITLE_CHARS), shorten(description, MAX_DESCRIPTION_CHARS))


def _title(text: str) -> tuple[str, str]:
    """Return the title and what follows it."""
    candidates = [
        match for pattern in (_HTML_TITLE, _HEADING, _UNDERLINED, _DEFINED) if (match := pattern.search(text))
    ]
    if candidates:
        first = min(candidates, key=lambda match: match.start())
        title = first.group(1).strip()
        if first.re is _HEADING:
            title = title.rstrip("#").rstrip() or title
        return _TAG.sub(" ", title), text[first.end() :]
    for line in text.split("\n"):
        if any(letter.isalnum() for letter in line):
            start, end = next(sentences(line), (0, len(line)))
            return line[start:end], text
    return "", text


def _description(text: str, rest: str) -> str:
    documented = _DOCSTRING.search(text)
    body = documented.group(2).strip() if documented else _TAG.sub(" ", rest)
    summary = ""
    for start, end in sentences(body):
        sentence = " ".join(body[start:end].split())
        if not any(letter.isalnum() for letter in sentence):
            continue
        if summary and len(summary) + len(sentence) >= MAX_DESCRIPTION_CHARS:
            break
        summary = f"{summary} {sentence}".strip()
        if len(summary) > MAX_DESCRIPTION_CHARS // 2:
            break
    return summary


def shorten(text: str, limit: int) -> str:
    """Put a text in one line and cut it between words, with an ellipsis.

    Example:
        >>> shorten("a long  title of\\nmany words", 14)
        'a long title …'
    """
    text = " ".join(text.split())
    if len(text) <= limit:
        return text
    cut = text[: limit - 1]
    return f"{cut.rsplit(' ', 1)[0]} …" if " " in cut else f"{cut}…"
