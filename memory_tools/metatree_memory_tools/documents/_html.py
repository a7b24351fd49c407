"""HTML documents as text, by selectolax: what a reader of the page sees, in lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from metatree._util.secret_text import joined_elements, masked
from metatree.trees.text import decode
from metatree_memory_tools.documents._document_text import MOST_CHARS, Extracted, Heading, shaped, tidy
from metatree_memory_tools.text.descriptions import cut_masked, shorten_masked

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

_UNSEEN_TAGS = (
    "script style head template noscript svg math iframe object embed canvas audio video select datalist "
    "dialog"
)
_UNSEEN = frozenset(_UNSEEN_TAGS.split())
_BLOCK_TAGS = (
    "address article aside blockquote body center dd details div dl dt fieldset figcaption figure footer "
    "form h1 h2 h3 h4 h5 h6 header hr html legend li main nav ol p pre section summary table tbody td "
    "tfoot th thead tr ul caption br option optgroup menu dir hgroup search"
)
_BLOCKS = frozenset(_BLOCK_TAGS.split())
_APART = frozenset(["button", "textarea", "input", "progress", "meter"])
"""Boxes within a line, which stand apart from the words beside them."""
_PICTURES = frozenset(["svg", "math", "iframe", "object", "embed", "canvas", "audio", "video", "select"])
"""What is not read, and stands in a line as a picture does."""
_ASIDE = frozenset(["nav", "aside", "footer"])
_ASIDE_ROLES = frozenset(["navigation", "banner", "contentinfo", "complementary", "search"])
_HEADINGS = {"h1": 1, "h2": 2, "h3": 3, "h4": 4, "h5": 5, "h6": 6}
_HIDDEN_STYLE = re.compile(r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*hidden)", re.IGNORECASE)
_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?([\w-]+)", re.IGNORECASE)
_LINE_NUMBER = re.compile(r"\s*\d{1,6}\s*")
_PILCROW = re.compile(r"\s*[¶#§🔗]\s*$")
_TITLE_CHARS = 120
_LINE_CHARS = 100_000
_MOST_LINKS = 1_000
_MOST_DEPTH = 2_000
_ANY_TAG = re.compile(r"<(/?)([a-zA-Z][\w-]*)")
_MARKUP = re.compile(r"<(script|style)\b.*?</\1>|</?([a-z][\w-]*)?[^>]*>", re.DOTALL | re.IGNORECASE)
_UNCLOSED_TAGS = (
    "area base br col embed hr img input link meta param source track wbr p li dt dd tr td th tbody thead tfoot option"
    " colgroup rt rp"
)
_UNCLOSED = frozenset(_UNCLOSED_TAGS.split())
"""Elements that need no end, so that their number says nothing of the depth."""


def extract_html(data: bytes) -> Extracted:
    """Return the text of a page that is seen; never raises for what the bytes are."""
    from selectolax.lexbor import LexborHTMLParser

    page = decoded_page(data)
    if _is_deep(page):
        return _without_structure(page)
    parser = LexborHTMLParser(page)
    result = Extracted()
    title = parser.css_first("title")
    if title is not None:
        result.title = shorten_masked(tidy(" ".join(title.text().split())), _TITLE_CHARS)
    for name in ("description", "author"):
        meta = parser.css_first(f"meta[name={name} i]")
        if meta is not None and (text := tidy(meta.attributes.get("content") or "")):
            result.facts[name] = shorten_masked(text, 300)
    if parser.root is not None:
        mains = parser.css("main, [role=main]")
        _HtmlReader(result, only_main=len(mains) == 1).run(parser.root)
    return result


def _is_deep(page: str) -> bool:
    """Whether elements are nested so deeply that parsing would take the square of the depth in time."""
    depth = 0
    for tag in _ANY_TAG.finditer(page):
        if tag[2].lower() not in _UNCLOSED:
            depth = max(0, depth - 1) if tag[1] else depth + 1
            if depth > _MOST_DEPTH:
                return True
    return False


def _without_structure(page: str) -> Extracted:
    text = _MARKUP.sub(_between, cut_masked(page, MOST_CHARS))
    lines = [line for row in text.split("\n") if (line := tidy(row))]
    return Extracted(lines, problem=f"read without its structure: it is nested more than {_MOST_DEPTH} deep")


def _between(mark: re.Match[str]) -> str:
    """Return what stands in the place of a mark: nothing within a line, since it may stand in the middle of a key."""
    return "\n" if mark[1] or (mark[2] or "").lower() in _BLOCKS else ""


def decoded_page(data: bytes) -> str:
    """Return the text of a page, by the character set that it declares."""
    declared = _CHARSET.search(data[:4096])
    if declared and not data.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
        try:
            return data.decode(declared[1].decode("ascii"))
        except (LookupError, UnicodeError):
            pass
    return decode(data)[0]


class _HtmlReader:
    """One page while it is walked over, in the order of its text; nothing here calls itself, pages may be deep."""

    def __init__(self, result: Extracted, *, only_main: bool) -> None:
        self.result = result
        self.lines = result.lines
        self.around: list[str] = []
        """What stands around the text: navigation, footers."""
        self.only_main = only_main
        self.where = [only_main]
        """Whether the element at hand stands around the text; one for each change on the way down."""
        if only_main:
            self.lines = self.around
        self.words: list[str] = []
        """Of the line at hand."""
        self.chars = 0
        self.links: dict[str, None] = {}
        self.heading: tuple[int, int, list[str]] | None = None
        """Level, first line and words of the heading that is open."""
        self.cells = 0
        """Cells of the row at hand; a row is one line."""
        self.in_row = 0
        self.in_pre = 0
        self.mark = ""
        """What the next line begins with."""

    def run(self, root: LexborNode) -> None:
        for node, tag, enters in self._walk(root):
            if not enters:
                self._leave(tag)
                self._turn(node, tag, enters=False)
            elif tag == "-text":
                text = node.text_content or ""
                (self._number if _LINE_NUMBER.fullmatch(text) and _is_number(node) else self._text)(text)
            else:
                self._turn(node, tag, enters=True)
                self._enter(node, tag)
            if self.chars > MOST_CHARS:
                self.result.problem = "only the beginning: there is too much text"
                break
        self._break()
        self.result.links = list(self.links)[:_MOST_LINKS]
        self._append_around()

    def _turn(self, node: LexborNode, tag: str, *, enters: bool) -> None:
        """Change between the text and what stands around it."""
        role = node.attributes.get("role") if tag not in ("-text", "html", "body") else None
        if tag == "main" or role == "main":
            around = False
        elif not self.only_main and (tag in _ASIDE or role in _ASIDE_ROLES):
            around = True
        else:
            return
        self._break()
        if enters:
            self.where.append(around)
        elif len(self.where) > 1:
            self.where.pop()
        self.lines = self.around if self.where[-1] else self.result.lines

    def _append_around(self) -> None:
        """Put what stands around the text behind it, as a section of its own."""
        result = self.result
        while result.lines and not result.lines[-1]:
            result.lines.pop()
        if not result.lines:
            result.lines += self.around
            return
        if not any(self.around):
            return
        levels = sorted(heading.level for heading in result.headings)
        level = levels[0] + (levels.count(levels[0]) == 1) if levels else 1
        result.lines.append("")
        result.headings.append(Heading(level, "Around the text (navigation)", len(result.lines)))
        result.lines += self.around

    def _walk(self, root: LexborNode) -> Iterator[tuple[LexborNode, str, bool]]:
        """Yield each element when it begins and when it ends, and each text, without what is not seen."""
        open_: list[tuple[LexborNode, str]] = []
        node: LexborNode | None = root
        while node is not None:
            tag = node.tag or ""
            below: LexborNode | None = None
            if tag == "-text" or tag in _PICTURES:
                yield node, tag, True
            elif not tag.startswith(("-", "!", "_")) and not _unseen(node, tag):
                yield node, tag, True
                below = node.child
                if below is None:
                    yield node, tag, False
            if below is not None:
                open_.append((node, tag))
                node = below
                continue
            while node is not None and node.next is None:
                if not open_:
                    return
                node, tag = open_.pop()
                yield node, tag, False
            node = None if node is None else node.next

    def _enter(self, node: LexborNode, tag: str) -> None:
        if tag == "a":
            href = (node.attributes.get("href") or "").strip()
            if href and not href.startswith(("#", "javascript:", "data:")):
                self.links.setdefault(cut_masked(href, 500))
        elif tag in _APART or tag in _PICTURES:
            self.words.append(" ")
        elif tag == "img":
            self._text(f" {node.attributes.get('alt') or ''} ")
        elif tag in ("td", "th"):
            if not self.in_row:
                self._break()
            elif self.cells:
                self.words.append(" | ")
            self.cells += 1
        elif tag == "tr":
            if not self.in_row:
                self._break()
            self.in_row += 1
            self.cells = 0 if self.in_row == 1 else self.cells
        elif tag in _BLOCKS and not (self.in_row and tag not in ("table", "tbody", "thead", "tfoot")):
            self._break()
            if tag == "li":
                self.mark = "- "
            elif tag == "pre":
                self.in_pre += 1
        elif tag in _BLOCKS:
            self.words.append(" ")
        if tag in _HEADINGS and not self.in_row and not self.where[-1] and self.heading is None:
            self.mark = ""
            self._blank()
            self.heading = (_HEADINGS[tag], len(self.result.lines) + 1, [])

    def _leave(self, tag: str) -> None:
        if tag in _HEADINGS and self.heading is not None:
            self._break()
            level, line, words = self.heading
            title = shorten_masked(_PILCROW.sub("", tidy(" ".join(words))), _TITLE_CHARS)
            if title:
                span = len(self.result.lines) - line + 1
                self.result.headings.append(Heading(level, title, line, span))
            self.heading = None
        elif tag in _APART:
            self.words.append(" ")
        elif tag == "tr":
            self.in_row = max(0, self.in_row - 1)
            if not self.in_row:
                self._break()
        elif tag in _BLOCKS and not self.in_row:
            self._break()
            if tag == "li":
                self.mark = ""
            if tag == "pre":
                self.in_pre = max(0, self.in_pre - 1)
            if tag in ("p", "ul", "ol", "dl", "table", "pre", "blockquote"):
                self._blank()

    def _number(self, text: str) -> None:
        """Keep the number of a line of code apart from the line, which is a column of its own where it is seen."""
        self.words.append(f"{text.rstrip()} ")

    def _text(self, text: str) -> None:
        if not self.in_pre or self.in_row:
            self.words.append(text)
            return
        rows = text.split("\n")
        for number, row in enumerate(rows):
            if number:
                self._break(keep=True)
            self.words.append(row)

    def _break(self, *, keep: bool = False) -> None:
        """End the line at hand, if there is anything on it; with `keep` an empty one is a line too."""
        text = joined_elements(self.words)
        self.words.clear()
        line = shaped(text) if self.in_pre else tidy(" ".join(text.split()))
        if not line.strip(" |"):
            if keep:
                self._blank()
            return
        line = self.mark + line
        self.mark = ""
        if self.heading is not None and not self.where[-1]:
            self.heading[2].append(line)
        if len(line) > _LINE_CHARS:
            line = masked(line)[0]  # no key is cut in two
        for start in range(0, len(line), _LINE_CHARS):
            self.lines.append(line[start : start + _LINE_CHARS])
        self.chars += len(line)

    def _blank(self) -> None:
        if self.lines and self.lines[-1]:
            self.lines.append("")


def _is_number(node: LexborNode) -> bool:
    """Whether a text is the number of a line of code, as programs that colour code write it."""
    names = "" if node.parent is None else str((node.parent.attributes or {}).get("class") or "")
    return "line" in names or "num" in names or "ln" in names.split()


def _unseen(node: LexborNode, tag: str) -> bool:
    if tag in _UNSEEN:
        return True
    attributes = node.attributes
    if not attributes:
        return False
    return (
        "hidden" in attributes
        or attributes.get("aria-hidden") == "true"
        or bool(_HIDDEN_STYLE.search(attributes.get("style") or ""))
    )
