"""Any other text file: one node, or pieces of bounded length when it is long."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from metatree.trees.source_types import Outline, OutlinePart, SourceFile
from metatree_memory_tools.text.descriptions import beginning, first_sentence, shorten
from metatree_memory_tools.text.text_files import TextFiles

PIECE_LINES = 400
"""A longer file is cut into pieces of about this many lines."""

_ORNAMENT = re.compile(r"^[\W_]*$|^#!|-\*-|^<\?xml|^<!doctype|^[{}\[\]()<>;,]+$", re.IGNORECASE)
_COMMENT = re.compile(r"^\s*(?:///?|/\*+|\*+/?|#+|;+|--|<!--|%+|\.\. |REM |dnl )\s*|\s*(?:\*/|-->)\s*$")
_MARKUP = re.compile(r"<(?:!doctype|html|head|body|div|p|span|svg|\?xml|table)\b", re.IGNORECASE)
_TAGS = re.compile(
    # Bounded: what nothing closes would be looked for to the end of the text from each place where it begins.
    r"<!--.{0,2000}?-->|<(script|style)\b.{0,2000}?</\1>|<[^<>]*>|\{[%{#].{0,2000}?[%}#]\}",
    re.DOTALL | re.IGNORECASE,
)
_DIRECTIVE = re.compile(r"\.\. [\w:-]+::|\.\. _|:[\w -]+:( |$)|\.\\\"|[@+]import\b|\{%.*%\}$")
_UNDERLINED = re.compile(r"([=~\-^*#\"'`+])\1{2,}$")
_LICENSE = re.compile(r"copyright|licen[sc]e|all rights reserved|spdx", re.IGNORECASE)


class PlainText(TextFiles):
    """Text of a kind that no other type knows."""

    name = "text"
    version = "3"

    def recognises(self, path: str, head: bytes) -> bool:
        """Whether it is text at all, which the builder has made sure of."""
        return True

    def outline(self, file: SourceFile) -> Outline:
        """Return a description made of the first lines that say something, and pieces when it is long."""
        attributes: dict[str, Any] = {"lines": len(file.lines)}
        language = _LANGUAGES.get(file.name.rpartition(".")[2].lower())
        if language:
            attributes = {"language": language, **attributes}
        summary = describe(file.lines)
        parts: tuple[OutlinePart, ...] = ()
        if len(file.lines) > PIECE_LINES * 3 // 2:
            parts = tuple(_pieces(file.lines))
        description = summary or "An empty file."
        return Outline(description=description, parts=parts, attributes=attributes, summary=summary)


def describe(lines: list[str], limit: int = 200) -> str:
    """Return the first lines that say something, without signs of comments, markup, ornament and licences."""
    text = "\n".join(beginning(line, 500) for line in lines[:200])
    if "<" in text[:2000] and _MARKUP.search(text[:2000]):
        text = _TAGS.sub("\n", text)
    prose_lines: list[str] = []
    commented = False
    rows = text.split("\n")
    for number, row in enumerate(rows):
        line = row.strip()
        bare = _COMMENT.sub("", line).strip()
        below = rows[number + 1].strip() if number + 1 < len(rows) else ""
        if _DIRECTIVE.match(line) or not bare or _ORNAMENT.search(line) or _ORNAMENT.search(bare):
            if prose_lines and not line and sum(map(len, prose_lines)) > 40:
                break
            continue
        if _LICENSE.search(bare) and not prose_lines:
            continue
        if prose_lines and commented and bare == line:
            break  # the comment that the file begins with is over
        commented = bare != line
        prose_lines.append(bare + ":" if _UNDERLINED.match(below) and bare[-1] not in ".:!?" else bare)
        if sum(map(len, prose_lines)) > limit:
            break
    sentence = first_sentence(" ".join(prose_lines), limit) if prose_lines else ""
    return sentence or shorten(next((line for line in lines if line.strip()), ""), limit)


def _pieces(lines: list[str]) -> Iterator[OutlinePart]:
    """Yield pieces that end at a blank line where there is one near."""
    start = 0
    while start < len(lines):
        end = min(start + PIECE_LINES, len(lines))
        if end < len(lines):
            near = range(end, start + PIECE_LINES // 2, -1)
            end = next((line for line in near if not lines[line - 1].strip()), end)
        if len(lines) - end < PIECE_LINES // 4:
            end = len(lines)
        name = f"lines {start + 1}-{end}"
        description = describe(lines[start:end])
        yield OutlinePart(
            id=f"#L{start + 1}", title=name, description=description, start_line=start + 1, end_line=end
        )
        start = end


_LANGUAGES = {
    "c": "c", "h": "c", "cc": "c++", "cpp": "c++", "hpp": "c++", "cs": "c#", "css": "css", "go": "go", "html": "html",
    "ini": "ini", "cfg": "ini", "java": "java", "js": "javascript", "mjs": "javascript", "jsx": "javascript",
    "json": "json", "kt": "kotlin", "lua": "lua", "php": "php", "pl": "perl", "po": "gettext", "r": "r",
    "rb": "ruby", "rs": "rust", "rst": "restructuredtext", "scala": "scala", "scss": "css", "sh": "shell",
    "sql": "sql", "swift": "swift", "toml": "toml", "ts": "typescript", "tsx": "typescript", "xml": "xml",
    "yaml": "yaml", "yml": "yaml",
}  # fmt: skip
