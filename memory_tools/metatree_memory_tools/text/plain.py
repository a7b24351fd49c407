"""Any other text file: one node, or pieces of bounded length when it is long; code is cut into shorter ones.

Code that no parser reads (no grammar for its language, none installed, or it does not parse) is cut where a blank line
stands above a line that is not indented, so that a piece is about a definition or two.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from metatree.trees.source_types import Outline, OutlinePart, SourceFile
from metatree_memory_tools.text.descriptions import beginning, first_sentence, shorten
from metatree_memory_tools.text.text_files import TextFiles

PIECE_LINES = 400
"""A longer file is cut into pieces of about this many lines."""

CODE_LINES = 40
"""Code is cut into pieces of about this many lines."""
_LEAST_CODE, _MOST_CODE = 20, 60

MOST_LINE_CHARS = 2_000
"""Lines that are longer on average were made by a tool: they are no outline for anybody."""

_ORNAMENT = re.compile(r"^[\W_]*$|^#!|-\*-|^<\?xml|^<!doctype|^[{}\[\]()<>;,]+$", re.IGNORECASE)
_COMMENT = re.compile(r"^\s*(?://[/!]?|/\*+|\*+/?|#+|;+|--|<!--|%+|\.\. |REM |dnl )\s*|\s*(?:\*/|-->)\s*$")
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
    version = "4"

    def recognises(self, path: str, head: bytes) -> bool:
        """Whether it is text at all, which the builder has made sure of."""
        return True

    def outline(self, file: SourceFile) -> Outline:
        """Return a description made of the first lines that say something, and pieces when it is long."""
        attributes: dict[str, Any] = {"lines": len(file.lines)}
        suffix = file.name.rpartition(".")[2].lower()
        language = _LANGUAGES.get(suffix) or _CODE.get(suffix)
        if language:
            attributes = {"language": language, **attributes}
        summary = describe(file.lines)
        parts: tuple[OutlinePart, ...] = ()
        if suffix in _CODE and len(file.lines) > _MOST_CODE and is_written(file):
            parts = tuple(_part(file.lines, start, end) for start, end in _code_pieces(file.lines))
        elif len(file.lines) > PIECE_LINES * 3 // 2:
            parts = tuple(_part(file.lines, start, end) for start, end in _pieces(file.lines))
        description = summary or "An empty file."
        return Outline(description=description, parts=parts, attributes=attributes, summary=summary)


def describe(lines: list[str], limit: int = 200) -> str:
    """Return the first lines that say something, without signs of comments, markup, ornament and licences."""
    rows = [line if len(line) <= 500 else beginning(line, 500) for line in lines[:200]]
    text = "\n".join(rows)
    if "<" in text[:2000] and _MARKUP.search(text[:2000]):
        rows = _TAGS.sub("\n", text).split("\n")
    prose_lines: list[str] = []
    commented = False
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


def is_written(file: SourceFile) -> bool:
    """Whether the lines of a file are as short as those that a person writes."""
    return len(file.text) <= MOST_LINE_CHARS * max(1, len(file.lines))


def _part(lines: list[str], start: int, end: int) -> OutlinePart:
    name = f"lines {start + 1}-{end}"
    description = describe(lines[start:end])
    return OutlinePart(
        id=f"#L{start + 1}", title=name, description=description, start_line=start + 1, end_line=end
    )


def _pieces(lines: list[str]) -> Iterator[tuple[int, int]]:
    """Yield pieces that end at a blank line where there is one near."""
    start = 0
    while start < len(lines):
        end = min(start + PIECE_LINES, len(lines))
        if end < len(lines):
            near = range(end, start + PIECE_LINES // 2, -1)
            end = next((line for line in near if not lines[line - 1].strip()), end)
        if len(lines) - end < PIECE_LINES // 4:
            end = len(lines)
        yield start, end
        start = end


def _code_pieces(lines: list[str]) -> Iterator[tuple[int, int]]:
    """Yield pieces that end where something new seems to begin, as near to `CODE_LINES` as may be."""
    start = 0
    while start < len(lines):
        end = len(lines)
        if end - start > _MOST_CODE:
            places = range(start + _LEAST_CODE, start + _MOST_CODE + 1)
            end = min(places, key=lambda at: (_inside(lines, at), abs(at - start - CODE_LINES)))
        yield start, end
        start = end


def _inside(lines: list[str], at: int) -> int:
    """Return how surely a line, counted from 0, goes on with what stands above it."""
    line = lines[at]
    indented = not line.strip() or line[0].isspace() or line[0] in ")]}"
    return 2 * bool(lines[at - 1].strip()) + indented


_LANGUAGES = {
    "css": "css", "html": "html", "ini": "ini", "cfg": "ini", "json": "json", "po": "gettext",
    "rst": "restructuredtext", "scss": "css", "toml": "toml", "xml": "xml", "yaml": "yaml", "yml": "yaml",
}  # fmt: skip
_CODE = {
    "adb": "ada", "ads": "ada", "asm": "assembler", "awk": "awk", "c": "c", "cc": "c++", "cl": "lisp",
    "clj": "clojure", "cljc": "clojure", "cljs": "clojure", "coffee": "coffeescript", "cpp": "c++",
    "cr": "crystal", "cs": "c#", "cu": "cuda", "cxx": "c++", "d": "d", "dart": "dart", "el": "lisp",
    "elm": "elm", "erl": "erlang", "ex": "elixir", "exs": "elixir", "f": "fortran", "f90": "fortran",
    "f95": "fortran", "fs": "f#", "fsx": "f#", "gd": "gdscript", "go": "go", "graphql": "graphql",
    "groovy": "groovy", "h": "c", "hcl": "hcl", "hh": "c++", "hpp": "c++", "hrl": "erlang", "hs": "haskell",
    "inl": "c++", "java": "java", "jl": "julia", "js": "javascript", "jsx": "javascript", "kt": "kotlin",
    "kts": "kotlin", "lisp": "lisp", "lua": "lua", "m": "objective-c", "mjs": "javascript", "ml": "ocaml",
    "mli": "ocaml", "mm": "objective-c", "nim": "nim", "nix": "nix", "pas": "pascal", "php": "php",
    "pl": "perl", "pm": "perl", "proto": "protobuf", "ps1": "powershell", "purs": "purescript",
    "py": "python", "pyx": "cython", "r": "r", "rb": "ruby", "rkt": "racket", "rs": "rust",
    "s": "assembler", "scala": "scala", "scm": "scheme", "sh": "shell", "sol": "solidity", "sql": "sql",
    "sv": "verilog", "svelte": "svelte", "swift": "swift", "tcl": "tcl", "tf": "hcl", "thrift": "thrift",
    "ts": "typescript", "tsx": "typescript", "v": "verilog", "vb": "basic", "vhd": "vhdl", "vim": "vim",
    "vue": "vue", "zig": "zig",
}  # fmt: skip
"""Suffixes of programming languages, whether or not a grammar is known."""
