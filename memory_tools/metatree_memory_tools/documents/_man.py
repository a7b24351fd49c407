"""Manual pages as the text that a reader of `man` sees: roff with the macros of man and of mdoc.

Sources: groff_man(7), mdoc(7), groff_char(7). Text is filled into lines, what stands under a tag is indented below it,
and fonts, registers and other layout are left out. Lost: groff, a program that has to be installed, runs others, and
gives pages of a width. Strings and conditions are followed as far as pod2man needs it; macros of a page's own only
say their arguments.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence

from metatree_memory_tools.documents._document_text import Extracted, Heading, shaped, tidy
from metatree_memory_tools.documents._mdoc import in_mdoc
from metatree_memory_tools.documents._roff_text import Strings, arguments, names
from metatree_memory_tools.text.descriptions import MOST_HEADINGS, shorten_masked

_WIDTH = 80
_STEP = 4
_MOST_INDENT = 40
_TITLE_CHARS = 120
_CONTROL = re.compile(r"[.'][ \t]*([^\s\"\\]*|\\[\"{}])[ \t]*(.*)", re.DOTALL)
_CONDITION = re.compile(r"(!?)\s*(?:([nt])(?=\s|\\\{|$)|(\S+))\s*(.*)", re.DOTALL)
_BULLETS = frozenset("•·*-–—o+")
_NUMBER = re.compile(r"\(?(?:\d{1,3}|[a-z])[.)]")
_JOINED = names("BI BR IB IR RB RI")
_SPACED = names("B I R SM SB CW L")
_PARAGRAPHS = names("PP P LP Pp HP Lp")
_SPACES = names("sp Sp")
_BREAKS = names("br ti in ce SY Sy")
_LITERAL = names("nf EX Vb")
_FILLED = names("fi EE Ve")
_CONDITIONS = names("if ie el while")
_MOST_CONDITIONS = 50
"""In one line."""
_SILENT = names("AT DT Dd IX Iq Os PD UC YS")
_ENDS_OF_SKIPPED = {"de": "..", "de1": "..", "am": "..", "ig": "..", "EQ": ".EN", "PS": ".PE"}
_HEAD = re.compile(rb"^\.[ \t]*(?:TH|SH|Dd|Dt|Sh|so)\b", re.MULTILINE)
_NAME = re.compile(r"\.(?:[1-9][a-z]{0,4}|[ln]|man|mdoc)(?:\.in)?$", re.IGNORECASE)


def is_manual(path: str, head: bytes) -> bool:
    """Whether a file is a manual page, by the end of its name and by its first lines.

    Example:
        >>> is_manual("man/tea.1", b".TH TEA 1"), is_manual("log/tea.1", b"GET / 200")
        (True, False)
    """
    return _NAME.search(path) is not None and _HEAD.search(head) is not None


def extract_man(text: str) -> Extracted:
    """Return the lines of a manual page, with its sections as headings.

    Example:
        >>> extract_man('.TH TEA 1\\n.SH OPTIONS\\n.TP\\n.B \\\\-s\\nNo \\\\fImilk\\\\fR.').lines
        ['OPTIONS', '', '-s', '    No milk.']
    """
    return _Page().read(text)


class _Page:
    """One page while it is read."""

    def __init__(self) -> None:
        self.result = Extracted()
        self.strings = Strings()
        self.words: list[str] = []
        self.base = 0
        """How far the text of the section, or of an `.RS` in it, is indented."""
        self.indent = 0
        self.lead = ""
        """What stands before the first line of a paragraph: the bullet or the number of an item."""
        self.bases: list[int] = []
        self.is_literal = False
        self.has_tag = False
        """Whether the next text is a tag, with what it names below."""
        self.level = 0
        """Of a heading whose title is the next text."""
        self.is_else = False
        self.name = ""
        self.lists: list[str] = []
        self.numbers: list[int] = []

    def read(self, text: str) -> Extracted:
        lines = iter(_joined(text))
        for line in lines:
            self.line(line, lines)
        self.flush()
        while self.result.lines and not self.result.lines[-1]:
            self.result.lines.pop()
        return self.result

    def line(self, line: str, rest: Iterator[str]) -> None:
        """Read a line; `rest` gives those that belong to it."""
        for _ in range(_MOST_CONDITIONS):
            control = _CONTROL.match(line) if line[:1] in (".", "'") else None
            if control is None:
                self.text(line)
                return
            if control[1] not in _CONDITIONS:
                self.control(control[1], control[2], rest)
                return
            line = self.condition(control[1], control[2], rest)
            if not line:
                return

    # text

    def text(self, line: str) -> None:
        said = self.strings.said(line)
        if not said.strip():
            if not line.strip():
                self.blank()
            return
        if self.is_literal and not self.level:
            self.emit(" " * self.indent + said.expandtabs(8).rstrip())
            return
        if line[:1] in " \t" and not self.has_tag:
            self.flush()
        self.say(said)

    def say(self, said: str) -> None:
        """Add words to a paragraph, or what is waited for: a heading, a tag."""
        if not said.strip():
            return
        if self.level:
            self.heading(self.level, said)
        elif self.has_tag:
            self.has_tag = False
            self.tag(said)
        else:
            self.words.append(said)

    def tag(self, said: str) -> None:
        self.flush()
        self.emit(" " * self.base + tidy(said))
        self.indent = min(self.base + _STEP, _MOST_INDENT)

    def flush(self) -> None:
        """End a paragraph's lines, without a blank one."""
        said = tidy(" ".join(self.words))
        self.words.clear()
        if said or self.lead:
            indent = " " * self.indent
            first, self.lead = indent + self.lead, ""
            below = " " * len(first)
            wrapped = textwrap.wrap(
                said, _WIDTH, initial_indent=first, subsequent_indent=below,
                break_long_words=False, break_on_hyphens=False,
            )  # fmt: skip
            for each in wrapped or [first.rstrip()]:
                self.emit(each)

    def emit(self, line: str) -> None:
        self.result.lines.append(shaped(line))

    def blank(self) -> None:
        self.flush()
        if self.result.lines and self.result.lines[-1]:
            self.result.lines.append("")

    def heading(self, level: int, said: str) -> None:
        self.level, self.base, self.indent, self.is_literal = 0, 0, 0, False
        self.bases.clear()
        self.lists.clear()
        self.blank()
        title = shorten_masked(tidy(said), _TITLE_CHARS)
        self.emit(title)
        if len(self.result.headings) < MOST_HEADINGS:
            self.result.headings.append(Heading(level, title, len(self.result.lines)))
        self.result.lines.append("")

    # requests and macros

    def control(self, name: str, rest: str, lines: Iterator[str]) -> None:
        if name in _ENDS_OF_SKIPPED:
            given = rest.split()[0 if name == "ig" else 1 :]
            end = f".{given[0]}" if given and name not in ("EQ", "PS") else _ENDS_OF_SKIPPED[name]
            any(line.replace(" ", "") == end for line in lines)  # to the end, or to the last line
        elif name in ("ds", "as"):
            key, _, value = rest.partition(" ")
            self.strings.define(key, value, more=name == "as")
        elif name == "TS":
            self.table(lines)
        elif name in ("TH", "Dt"):
            words = [self.strings.said(each) for each in arguments(rest)][:2]
            title = f"{words[0].lower()}({words[1]})" if len(words) == 2 else " ".join(words)
            self.result.title = self.result.title or shorten_masked(tidy(title), _TITLE_CHARS)
        elif name in ("SH", "SS", "Sh", "Ss"):
            self.flush()
            self.has_tag = False
            self.level = 1 if name in ("SH", "Sh") else 2
            if said := " ".join(map(self.strings.said, arguments(rest))):
                self.heading(self.level, said)
        else:
            self.macro(name, rest)

    def condition(self, name: str, rest: str, lines: Iterator[str]) -> str:
        """Return what a condition leads to: `n` is true, as on a terminal, and what asks for registers is not."""
        holds, body = self.is_else, rest
        if name != "el":
            match = _CONDITION.match(rest)
            if match is None:
                return ""
            holds = name != "while" and bool(match[2]) and (match[2] == "n") != bool(match[1])
            body, self.is_else = match[4], not holds
        if holds:
            return body.replace("\\{", "").replace("\\}", "").strip()
        depth = body.count("\\{") - body.count("\\}")
        while depth > 0 and (line := next(lines, None)) is not None:
            depth += line.count("\\{") - line.count("\\}")
        return ""

    def macro(self, name: str, rest: str) -> None:
        words = arguments(rest)
        if name in _JOINED:
            self.say("".join(map(self.strings.said, words)))
        elif name in _SPACED:
            self.say(" ".join(map(self.strings.said, words)))
        elif name in _PARAGRAPHS:
            self.blank()
            self.indent = self.base
        elif name in _SPACES:
            self.blank()
        elif name in ("TP", "TQ"):
            self.item_begins(close=name == "TQ")
            self.has_tag = True
        elif name in ("IP", "It"):
            self.item(name, words)
        elif name in ("RS", "Bd", "D1", "Dl"):
            self.deeper(name, words)
        elif name in ("RE", "Ed"):
            self.flush()
            self.is_literal = False if name == "Ed" else self.is_literal
            self.base = self.indent = self.bases.pop() if self.bases else 0
        elif name in _BREAKS:
            self.flush()
            if name == "SY":
                self.say(" ".join(map(self.strings.said, words)))
        elif name in _LITERAL or name in _FILLED:
            self.flush()
            self.is_literal = name in _LITERAL
        elif name == "OP":
            self.say(f"[{' '.join(map(self.strings.said, words))}]")
        elif name in ("UR", "MT"):
            self.say("".join(map(self.strings.said, words[:1])))
        elif name in ("UE", "ME"):
            if words and self.words:
                self.words[-1] += self.strings.said(words[0])
        elif name == "so":
            self.say(f"See {rest.strip()}.")
        elif name in ("Bl", "El"):
            self.list(name, words)
        elif (said := in_mdoc(name, [self.strings.said(each) for each in words], self)) is not None:
            self.say(said)
        elif name[:1].isupper() and name not in _SILENT:
            self.say(" ".join(map(self.strings.said, words)))  # a macro of its own

    def deeper(self, name: str, words: Sequence[str]) -> None:
        self.flush()
        if name in ("D1", "Dl"):
            said = in_mdoc("No", [self.strings.said(each) for each in words], self)
            self.emit(" " * min(self.indent + _STEP, _MOST_INDENT) + tidy(said or ""))
            return
        self.bases.append(self.base)
        self.base = self.indent = min(max(self.indent, self.base + _STEP), _MOST_INDENT)
        if name == "Bd" and {"-literal", "-unfilled"} & set(words):
            self.is_literal = True

    def item_begins(self, *, close: bool = False) -> None:
        self.has_tag = False
        if close:
            self.flush()
        else:
            self.blank()
        self.indent = self.base

    def item(self, name: str, words: Sequence[str]) -> None:
        """Begin an item: of `.IP` with its tag, or of the list of mdoc that it stands in."""
        said = [self.strings.said(each) for each in words]
        kind = self.lists[-1] if name == "It" and self.lists else ""
        self.item_begins(close="-compact" in kind)
        if name == "IP":
            mark = said[0].strip() if said else ""
        elif "-enum" in kind:
            self.numbers[-1] += 1
            mark = f"{self.numbers[-1]}."
        elif any(each in kind for each in ("-bullet", "-dash", "-hyphen", "-item")):
            mark = "-"
        else:
            mark = in_mdoc("No", said, self) or ""
        if mark in _BULLETS or _NUMBER.fullmatch(mark):
            self.lead = f"{mark} "
            if mark in _BULLETS:
                self.lead = "- "
        elif mark:
            self.tag(mark)
        elif name == "IP":
            self.indent = min(self.base + _STEP, _MOST_INDENT)

    def list(self, name: str, words: Sequence[str]) -> None:
        self.flush()
        if name == "Bl":
            self.bases.append(self.base)
            self.base = self.indent if self.lists else self.base
            self.lists.append(" ".join(words))
            self.numbers.append(0)
        elif self.lists:
            self.lists.pop()
            self.numbers.pop()
            self.base = self.indent = self.bases.pop() if self.bases else 0

    def table(self, lines: Iterator[str]) -> None:
        """Read a table of tbl: its cells in one line, `|` between them."""
        self.blank()
        separator, is_form = "\t", True
        for line in lines:
            if line.startswith(".TE"):
                break
            if is_form:
                if (given := re.search(r"tab\s*\((.)\)", line)) is not None:
                    separator = given[1]
                is_form = not line.rstrip().endswith(".")
                continue
            if line.startswith(".T&"):
                is_form = True
                continue
            if line[:1] == "." or set(line.strip()) <= set("_="):
                continue
            pieces, is_open = [line], _blocks(line)
            while is_open > 0 and (more := next(lines, None)) is not None:
                if not more.startswith("."):
                    pieces.append(more)
                    is_open += _blocks(more)
            cells = " ".join(pieces).split(separator)
            cells = [tidy(self.strings.said(each.strip().strip("T{}"))) for each in cells]
            self.emit(" " * self.indent + " | ".join(each for each in cells if each))
        self.blank()


def _blocks(line: str) -> int:
    """Return how many blocks of text, which are cells of several lines, begin in a line and do not end in it."""
    return line.count("T{") - line.count("T}")


def _joined(text: str) -> Iterator[str]:
    """Yield the lines of a page, those that end with a backslash with what follows, without comments."""
    before = ""
    for line in text.split("\n"):
        line = before + line.rstrip("\r")
        if line.endswith("\\") and not line.endswith("\\\\") and len(line) < 10_000:
            before = line[:-1]
            continue
        before = ""
        yield line
    if before:
        yield before
