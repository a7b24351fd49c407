"""Text of answers as HTML that can do nothing: Markdown from an allow-list, and quoted words exactly as they are.

Answers hold what was found in memory and what a model made of it, so nothing in them is trusted: HTML is shown as
text, links go to http and https alone and say so, and pictures are their description, since fetching one would tell
its server who reads what.

An answer that is a line of code is no Markdown (`__init__` would be a bold *init*), one by a model is. Lost: all as
plain text, without lists and code of models.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from typing import Any, Final

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup, escape
from metatree_memory_tools.text.readable import readable, with_code_in_cells
from metatree_routers.query.entry import entry_of

from metatree_agents.service.openai.answer_segments import AnswerSegment, answer_segments, with_marks

_EXACT: Final = {
    "code": Markup('<div class="exact code" tabindex="0">{}</div>'),
    "words": Markup('<blockquote class="exact words">{}</blockquote>'),
}
_FOLDED: Final = Markup(
    '<details class="quote"><summary>All that is quoted of this page</summary><blockquote class="exact words">'
    "{}\n<mark>{}</mark>\n{}</blockquote></details>"
)
_PARAGRAPH: Final = Markup("<p>{}</p>")
_BLANK: Final = re.compile(r"\n[ \t]*\n+")
_WRAPPED: Final = 50
"""From how many characters on a line of words may have been wrapped."""
_BEGINS: Final = re.compile(r"[^\W\d_]|[\"'`(“‘„«]")
"""How a line of words begins: with no mark of a list or a table, no number, and no blank."""
_MARK: Final = Markup('<a class="mark" href="#{}-{}">[{}]</a>')
_RULES: Final = [
    *("blockquote", "code", "fence", "heading", "lheading", "hr", "list", "table"),
    *("backticks", "emphasis", "escape", "image", "link", "newline"),
]
_TABLE_ROW: Final = re.compile(r"\s{0,3}\|.*\|\s*$")
_TABLE_RULE: Final = re.compile(r"\s{0,3}\|(?:\s*:?-+:?\s*\|)+\s*$")
_CELL_END: Final = re.compile(r"`[^`]*`|(?<!\\)(\|)")
_EMPTY_HEAD: Final = re.compile(r"<thead>\s*<tr>\s*(?:<th></th>\s*)+</tr>\s*</thead>\s*")
"""The head of a table that names nothing."""
_LONGEST: Final = 20_000
"""Characters of one text that become HTML as Markdown: some texts take time that grows with the square of them."""
_PAGE: Final = 200_000
"""The same of all texts of a page."""


@dataclass(slots=True)
class Budget:
    """How much Markdown a page may still have; what is longer is shown as it is."""

    left: int = _PAGE

    def spend(self, characters: int) -> bool:
        """Return whether there is so much left, and take it."""
        if characters > min(self.left, _LONGEST):
            return False
        self.left -= characters
        return True


def prose(
    paragraphs: Sequence[str],
    quotes: Sequence[str] = (),
    budget: Budget | None = None,
    *,
    numbers: Sequence[int] = (),
    anchor: str = "source",
    question: str = "",
    pages: Collection[int] = (),
    verbatim: Collection[int] = (),
) -> Markup:
    """Return paragraphs as HTML, with a `[1]` behind what is quoted that leads to its source.

    A paragraph that is one of the quotes, or a part of one, is shown as it is: `__init__` in a line of code is no
    bold `init`. Everything else is Markdown, as far as the budget of the page goes.

    Args:
        question: what was asked; of a page of a document its entry alone is shown, with the rest folded.
        pages: the places of the quotes that are of such pages.
        verbatim: the places of those that people wrote here, in which a mark may be what they mean.
    """
    budget = budget or Budget()
    return Markup("").join(
        rendered(piece.text, budget)
        if piece.kind == "said"
        else _EXACT["words"].format(piece.text) + mark
        if piece.kind == "words" and piece.quote in verbatim
        else (_entry(piece, question, mark) if piece.quote in pages else _exact(piece, budget) + mark)
        for piece, number in with_marks(answer_segments(paragraphs, quotes), numbers)
        for mark in [_MARK.format(anchor, number, number) if number else Markup("")]
    )


def _entry(piece: AnswerSegment, question: str, mark: Markup) -> Markup:
    """Return the lines of a page that answer, and all that is quoted of it folded, with those lines marked."""
    lines = piece.text.strip("\n").split("\n")
    start, end = entry_of(question, lines)
    if end - start == len(lines):
        return _exact(piece, Budget()) + mark
    before, entry, after = ("\n".join(part) for part in (lines[:start], lines[start:end], lines[end:]))
    return _EXACT["words"].format(_words(entry)) + mark + _FOLDED.format(before, entry, after)


def _exact(piece: AnswerSegment, budget: Budget) -> Markup:
    """Return quoted words without their markup, tables of Markdown as tables, and code as it is."""
    if piece.kind != "words":
        return _EXACT[piece.kind].format(piece.text)
    parts = [
        Markup(rendered(text, budget).strip()) if is_table else _words(readable(text))
        for is_table, text in _with_tables_apart(piece.text.strip("\n").split("\n"))
    ]
    if len(parts) > 1:  # words beside a table are paragraphs
        parts = [part if part.startswith("<") else _PARAGRAPH.format(part) for part in parts]
    return _EXACT["words"].format(Markup("").join(parts))


def _with_tables_apart(lines: Sequence[str]) -> list[tuple[bool, str]]:
    """Return the texts between tables, and each table; one whose head is above the quote gets an empty one."""
    parts: list[tuple[bool, str]] = []
    for is_row, run in groupby(lines, key=lambda line: bool(_TABLE_ROW.match(line))):
        rows = list(run)
        if not is_row:
            parts.append((False, "\n".join(rows)))
        elif len(rows) > 1 and _TABLE_RULE.match(rows[1]):
            parts.append((True, "\n".join(rows)))
        elif len(rows) > 1:
            rows = [row for row in rows if not _TABLE_RULE.match(row)]
            columns = max(sum(map(bool, _CELL_END.findall(row))) for row in rows) - 1
            parts.append((True, "\n".join(["|  " * columns + "|", "|---" * columns + "|", *rows])))
        else:
            parts.append((False, rows[0]))
    return [(is_table, text) for is_table, text in parts if text.strip()]


def _words(text: str) -> Markup:
    """Return quoted words: code among them as it is, and lines joined that their file has only wrapped."""
    parts: list[tuple[bool, str]] = []
    for block in _BLANK.split(text.strip("\n")):
        lines = block.split("\n")
        is_code = all(line.startswith(("    ", "\t")) for line in lines)
        if is_code and parts and parts[-1][0]:
            parts[-1] = (True, f"{parts[-1][1]}\n\n{block}")
        else:
            parts.append((is_code, block if is_code else _joined(lines)))
    if not any(is_code for is_code, _ in parts):
        return escape("\n\n".join(block for _, block in parts))
    return Markup("").join(
        _EXACT["code"].format(textwrap.dedent(block)) if is_code else _PARAGRAPH.format(block)
        for is_code, block in parts
    )


def _joined(lines: Sequence[str]) -> str:
    """Return a paragraph as one line where it was wrapped: all lines but the last are long, and none is an item."""
    *before, last = lines
    wrapped = before and all(len(line) >= _WRAPPED and _BEGINS.match(line) for line in before)
    if (
        wrapped
        and _BEGINS.match(last)
        and not any(line.endswith(("  ", "\\", ";", "{")) or "|" in line for line in lines)
    ):
        return " ".join(line.strip() for line in lines)
    return "\n".join(lines)


def rendered(text: str, budget: Budget | None = None) -> Markup:
    """Return Markdown as HTML, and as plain text what the budget has not enough for."""
    if not (budget or Budget()).spend(len(text)):
        return Markup('<div class="exact words">{}</div>').format(text)
    return Markup(_EMPTY_HEAD.sub("", _markdown().render(with_code_in_cells(text))))


@cache
def _markdown() -> MarkdownIt:
    made = MarkdownIt("zero", {"html": False, "linkify": False, "maxNesting": 20}).enable(_RULES)
    made.validateLink = lambda url: url.lower().startswith(("http://", "https://"))  # type: ignore[method-assign]
    made.add_render_rule("link_open", _link_open)
    made.add_render_rule("image", _image)
    made.add_render_rule("heading_open", _heading)
    made.add_render_rule("heading_close", _heading)
    made.add_render_rule("th_open", _cell)
    made.add_render_rule("td_open", _cell)
    made.add_render_rule("fence", _code)
    made.add_render_rule("code_block", _code)
    made.render("*a*")  # rules are prepared by the first text, which threads must not do at the same time
    return made


def _link_open(self: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    href = escape(tokens[index].attrGet("href") or "")
    return f'<a href="{href}" rel="noopener noreferrer nofollow" target="_blank">'


def _image(self: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    return f'<span class="picture">picture: {escape(tokens[index].content)}</span>'


def _heading(self: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    """Headings of an answer stand below that of its question."""
    return '<p class="heading">' if tokens[index].nesting == 1 else "</p>"


def _cell(self: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    """How a column is aligned would be a style in the page, which its policy refuses."""
    return f"<{tokens[index].tag}>"


def _code(self: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    return f'<pre class="exact code" tabindex="0"><code>{escape(tokens[index].content)}</code></pre>'
