"""Text with its markup as a person reads it: Markdown, reStructuredText, HTML, docstrings.

For what is printed; a quote stays as it stands in the source. A stretch of a text is enough: what is cut off at its
ends is taken as it looks. Lines of code stay as they are, also in a document.

Lost: docutils, which runs the directives of a text and refuses stretches; taking marks off line by line, which makes
`__init__` in a line of code a bold *init* and leaves links that go over two lines.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final, Literal

from metatree._util.entities import unescaped
from metatree._util.secret_text import masked

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

MAX_CHARS: Final = 20_000
"""A longer text stays as it is."""
Markup = Literal["markdown", "rst", "html", "docstring", "plain"]
_SUFFIXES: Final[dict[str, Markup]] = {
    **dict.fromkeys((".md", ".markdown", ".mdown", ".mkd", ".mdx"), "markdown"),
    **dict.fromkeys((".rst", ".rest"), "rst"),
    **dict.fromkeys((".html", ".htm", ".xhtml"), "html"),
    **dict.fromkeys((".py", ".pyi"), "docstring"),
}
_LOOKS_RST = re.compile(
    r"^\s*\.\. [\w:-]+::|:[\w:.-]{2,40}:`|`[^`\n]+`__?\b|``[^`\n]+``|^\s*:(?:param|returns?|type)\b[^:\n]*:",
    re.MULTILINE,
)
_LOOKS_MARKDOWN = re.compile(
    r"^#{1,6} \S|^(?:```|~~~)|\*\*\S[^*\n]*\*\*|\]\((?:https?:|\.{0,2}/|#)", re.MULTILINE
)
_COMMENT = re.compile(
    r"<!--.{0,1500}?(?:-->|\Z)|<(script|style)\b.{0,1500}?</\1\s*>", re.DOTALL | re.IGNORECASE
)
_TAG = re.compile(r"</?[A-Za-z][^<>]{0,1000}>")
_BREAKS = re.compile(r"<(?:br|/p|/div|/li|/tr|/h[1-6])\b[^<>]*>", re.IGNORECASE)
_SECRET = re.compile(r"x(?:[x ]*x)?")
_FENCE = re.compile(r"^ {0,3}(?:```+|~~~+)([^`\n]*)$", re.MULTILINE)


def readable(text: str, path: str = "") -> str:
    """Return a text, or a stretch of one, without its markup.

    Args:
        text: the text.
        path: the file that it is from; its suffix says which markup it has, and without it its looks do.

    Example:
        >>> print(readable("Use\\n---\\n\\n:func:`run` it *once*::\\n\\n    run(**now)", "a.rst"))
        Use
        <BLANKLINE>
        run it once:
        <BLANKLINE>
            run(**now)
    """
    return text if len(text) > MAX_CHARS else _still_masked(text, _unmarked(text, path))


def _unmarked(text: str, path: str) -> str:
    match markup_of(text, path):
        case "markdown":
            return _from_markdown(text)
        case "rst":
            return _joined([line for _, line in _rst_lines(text)])
        case "docstring":
            return _joined([line for _, line in _rst_lines(text, is_code=True)])
        case "html":
            return _without_tags(text)
        case _:
            return text


def _still_masked(text: str, shown: str) -> str:
    """Return what is shown of a text, with `*` for keys in it that were none as long as marks stood in them.

    What the text itself has in one piece was masked there, or is to be seen.
    """
    hidden, number = ("", 0) if shown == text else masked(shown)
    if not number:
        return shown
    changed = "".join(
        "x" if old != new else " " if old.isspace() else "." for old, new in zip(shown, hidden, strict=True)
    )
    result, done = "", 0
    for secret in _SECRET.finditer(
        changed
    ):  # with the blanks in it: of a private key each line stands there alone
        begin, end = secret.span()
        if shown[begin:end] not in text:
            result += shown[done:begin] + hidden[begin:end]
            done = end
    return result + shown[done:]


def readable_code(text: str, path: str = "") -> list[tuple[int, str]]:
    """Return lines of code without the markup of docstrings, each with its place in the text, from 0.

    Example:
        >>> readable_code("def f(): ...\\n# Uses :func:`g`.", "a.py")
        [(0, 'def f(): ...'), (1, '# Uses g.')]
    """
    if len(text) > MAX_CHARS or markup_of(text, path) != "docstring":
        return list(enumerate(text.split("\n")))
    lines = _rst_lines(text, is_code=True)
    shown = _still_masked(text, "\n".join(line for _, line in lines))
    return [(at, line) for (at, _), line in zip(lines, shown.split("\n"), strict=True)]


def markup_of(text: str, path: str = "") -> Markup:
    """Return which markup a text has."""
    suffix = PurePosixPath(path.rpartition("#")[0] or path).suffix.lower()
    known = _SUFFIXES.get(suffix)
    if known is not None:
        return known
    if suffix not in ("", ".txt"):
        return "plain"
    if _LOOKS_RST.search(text):
        return "rst"
    return "markdown" if _LOOKS_MARKDOWN.search(text) else "plain"


def _joined(lines: Sequence[str]) -> str:
    """Join lines with at most one blank one between two others, and none at the ends."""
    kept: list[str] = []
    for line in lines:
        if line.strip() or (kept and kept[-1].strip()):
            kept.append(line.rstrip())
    return "\n".join(kept).strip("\n")


def _without_tags(text: str) -> str:
    text = _BREAKS.sub(
        lambda match: "\n" if match.string[match.end() :][:1] != "\n" else "", _COMMENT.sub("", text)
    )
    return _joined(unescaped(_TAG.sub("", text)).split("\n"))


# Markdown


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt  # slow to import

    return MarkdownIt("commonmark", {"maxNesting": 20}).enable("table")


def with_code_in_cells(text: str) -> str:
    """Return Markdown whose tables keep code with `|` in one cell, as its author meant it; a cell ends there otherwise.

    Example:
        >>> with_code_in_cells("| `json|md` | the form |")
        '| `json\\\\|md` | the form |'
    """
    if "|" not in text or "`" not in text:
        return text
    lines, in_fence = text.split("\n"), False
    for number, line in enumerate(lines):
        if line.lstrip().startswith(("```", "~~~")):
            in_fence = not in_fence
        elif not in_fence and line.lstrip().startswith("|"):
            lines[number] = _CODE_SPAN.sub(lambda span: _BARE_PIPE.sub(r"\\|", span[0]), line)
    return "\n".join(lines)


def _from_markdown(text: str) -> str:
    text = with_code_in_cells(textwrap.dedent(text))
    fences = list(_FENCE.finditer(text))
    if len(fences) % 2:  # one of its ends is not in this stretch
        before = text[: fences[0].start()].rstrip()
        begins = fences[0][1].strip() or not before or before[-1] in ".:!?)"
        text = f"{text}\n```" if begins else f"```\n{text}"
    try:
        tokens = _parser().parse(text)
    except (RecursionError, ValueError, IndexError):
        return text
    return _joined(list(_markdown_lines(tokens)))


def _markdown_lines(tokens: Sequence[Token]) -> Iterator[str]:
    """Yield the lines of parsed Markdown; lists keep their items, code its lines, tables their cells."""
    counts: list[int] = []
    indents: list[str] = []
    marker, cells = "", list[str]()
    in_row = False
    for token in tokens:
        lines: list[str] = []
        match token.type:
            case "bullet_list_open":
                counts.append(-1)
            case "ordered_list_open":
                counts.append(int(token.attrGet("start") or 1))
            case "bullet_list_close" | "ordered_list_close":
                counts.pop()
                if not counts:
                    yield ""
            case "list_item_open":
                marker = "- " if counts[-1] < 0 else f"{counts[-1]}. "
                counts[-1] += counts[-1] >= 0
                indents.append(" " * len(marker))
            case "list_item_close":
                indents.pop()
            case "tr_open":
                in_row = True
            case "tr_close":
                # The head of many a table of options names nothing.
                in_row, lines, cells = False, [" | ".join(cells)] if any(cells) else [], []
            case "inline" if in_row:
                cells.append(_inline(token).replace("\n", " "))
            case "inline":
                lines = _inline(token).split("\n")
            case "fence" | "code_block":
                lines = [f"    {line}" for line in token.content.rstrip("\n").split("\n")]
            case "html_block":
                lines = _without_tags(token.content).split("\n")
        for line in lines:
            yield f"{''.join(indents[:-1])}{marker}{line}" if marker else f"{''.join(indents)}{line}"
            marker = ""
        if token.type in ("heading_close", "fence", "code_block", "html_block", "table_close", "hr") or (
            token.type == "paragraph_close" and not token.hidden
        ):
            yield ""


def _inline(token: Token) -> str:
    parts: list[str] = []
    links: list[tuple[int, str]] = []
    for child in token.children or ():
        match child.type:
            case "text" | "code_inline":
                parts.append(child.content)
            case "softbreak" | "hardbreak":
                parts.append("\n")
            case "image":
                parts.append(child.content)
            case "html_inline" if child.content.lower().startswith("<br"):
                parts.append("\n")
            case "link_open":
                links.append((len(parts), str(child.attrGet("href") or "")))
            case "link_close" if links:
                parts.append(_target("".join(parts[links[-1][0] :]), links[-1][1]))
                links.pop()
    return "".join(parts)


def _target(said: str, href: str) -> str:
    """Return the address of a link as it is shown behind its words: of a page elsewhere, which they do not name."""
    shown = href.startswith(("http://", "https://")) and said.strip() and said.strip() not in href
    return f" ({href})" if shown else ""


# reStructuredText, and Python with docstrings in it

_CODE_SPAN = re.compile(r"(?<!`)(`{1,3})(?!`)[^`\n]+(?<!`)\1(?!`)")
_BARE_PIPE = re.compile(r"(?<!\\)\|")
_DIRECTIVE = re.compile(r"^(\s*)\.\. +(?:\|[^|\n]+\| +)?([\w:.+-]+)::[ \t]*(.*)$")
_OPTION = re.compile(r"^\s+:[\w-]+:(?:\s|$)")
_KNOWN_OPTION = re.compile(
    r"\s+:(?:alt|align|caption|class|glob|height|hidden|lineno-start|linenos|maxdepth|members|name|noindex|no-index|scale"
    r"|show-inheritance|synopsis|target|titlesonly|undoc-members|width):(?:\s|$)"
)
"""Where the directive itself is not in the stretch."""
_LABEL = re.compile(r"^\s*\.\. +(?:_[^:]*(?::.*)?|\.?)$")
_NOTE = re.compile(r"^(\s*)\.\. +(\[[^\]]+\] .*)$")
_FIELD = re.compile(r"^(\s*):([A-Za-z][^:`\n]*):(?:\s+(.*)|)$")
_UNDERLINE = re.compile(r"^\s*([=\-~^*#\"'`+.:_])\1{2,}\s*$")
_DOCSTRING_UNDERLINE = re.compile(r"^\s*([=\-~^])\1{2,}\s*$")
_BORDER = re.compile(r"^\s*(?:\+[-=+]+\+|=[= ]*=)\s*$")
_ROLE = re.compile(r":([\w:+.-]{1,60}):`[~!]?([^`<]*(?<!\s))\s*(?:<[^`<>]*>)?`")
_LINKED = re.compile(r"`([^`<]{1,300}?)\s*<([^`<>]{1,500})>`__?")
_NAMED = re.compile(r"`([^`\n]{1,300})`__?(?!\w)")
_LITERAL = re.compile(r"``(?=\S)(.{1,400}?)(?<=\S)``", re.DOTALL)
_STRONG = re.compile(r"(?<![\w*\\])(\*\*|\*)(?=[^\s*])([^*]{1,400}?)(?<=[^\s*\\])\1(?![\w*])")
# No code has these: a name between two pairs of asterisks, words in brackets between two single ones.
_BOLD_IN_CODE = re.compile(
    r"(?<![\w*)\]])\*\*([A-Za-z]\w*)\*\*(?![\w*(\[])|(?<![\w*)\]])\*(\([a-z ]+\))\*(?![\w*(\[])"
)
_SINGLE = re.compile(r"(?<![\w`])`(?=\S)([^`]{1,300}?)(?<=\S)`(?![\w`])")
_SUBSTITUTED = re.compile(r"(?<![\w|])\|(?=\S)([^|\n]{1,80}?)(?<=\S)\|_{0,2}(?![\w|])")
_CODE_DIRECTIVES = frozenset(
    {
        "code",
        "code-block",
        "sourcecode",
        "parsed-literal",
        "doctest",
        "testcode",
        "testsetup",
        "testoutput",
        "math",
        "prompt",
        "console",
        "click:example",
        "click:run",
        "ipython",
        "raw",
        "jinja",
        "productionlist",
    }
)
_SILENT = frozenset(
    {
        "contents",
        "toctree",
        "module",
        "py:module",
        "currentmodule",
        "py:currentmodule",
        "highlight",
        "index",
        "image",
        "figure",
        "default-domain",
        "testsetup",
        "raw",
        "tabs",
        "only",
        "meta",
        "role",
        "container",
        "class",
        "rst-class",
    }
)
_SAID: Final = {
    "versionadded": "Added in version",
    "versionchanged": "Changed in version",
    "deprecated": "Deprecated since version",
    "versionremoved": "Removed in version",
    "seealso": "See also",
}
_NOTES = frozenset({"note", "warning", "tip", "important", "caution", "danger", "hint", "attention", "error"})
_FIELDS: Final = {
    "return": "Returns",
    "returns": "Returns",
    "rtype": "Return type",
    "raise": "Raises",
    "raises": "Raises",
    "except": "Raises",
    "yields": "Yields",
    "yield": "Yields",
}
_NUMBERS = frozenset({"issue", "pr", "pull", "pep", "rfc", "cve", "commit", "bug", "ticket", "gh"})
"""Roles whose text is a number that says nothing without them."""
_ARGUMENTS = frozenset(
    {"param", "parameter", "arg", "argument", "key", "keyword", "var", "ivar", "cvar", "type"}
)


def _rst_lines(text: str, *, is_code: bool = False) -> list[tuple[int, str]]:
    """Return lines of reStructuredText without markup, each with its place in the text, from 0.

    Args:
        is_code: take nothing for markup but what stands in docstrings alone.
    """
    out: list[tuple[int, str]] = []
    prose: list[tuple[int, str]] = []

    def flush() -> None:
        if prose:
            said = _inline_rst("\n".join(line for _, line in prose), is_code=is_code).split("\n")
            out.extend(zip((number for number, _ in prose), said, strict=False))
            prose.clear()

    ornament = _DOCSTRING_UNDERLINE if is_code else _UNDERLINE
    literal: int | None = None  # how far the line is indented below which text stands as it is
    below: int | None = None  # the same of a field or a directive that goes on
    option: int | None = None  # how far the options of a directive are indented
    lines = text.split("\n")
    for number, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        if option is not None and line.strip() and (_OPTION.match(line) or indent > option > 0):
            option = option or indent
            continue
        option = None
        if not is_code and not out and not prose and _KNOWN_OPTION.match(line):
            continue
        if literal is not None and (not line.strip() or indent > literal):
            flush()
            out.append((number, line))
            continue
        literal = None
        if below is not None and line.strip() and indent > below:
            line = " " * (below + 4) + line.lstrip()
        elif line.strip():
            below = None
        if directive := _DIRECTIVE.match(line):
            flush()
            name = directive[2].lower()
            option = 0
            literal = indent if name in _CODE_DIRECTIVES else None
            below = indent if name in _SAID or name in _NOTES else None
            under = next((each for each in lines[number + 1 :] if each.strip()), "")
            goes_on = len(under) - len(under.lstrip()) > indent
            said = _directive(directive[1], name, directive[3].strip())
            prose.extend((number, each if goes_on else each.removesuffix(":")) for each in said)
        elif _LABEL.match(line) or ornament.match(line) or (not is_code and _BORDER.match(line)):
            flush()
        elif note := _NOTE.match(line):
            prose.append((number, note[1] + note[2]))
        elif field := _FIELD.match(line):
            below = len(field[1])
            prose.append((number, field[1] + _field(field[2].strip(), field[3] or "")))
        elif line.rstrip().endswith("::") and not line.lstrip().startswith("#"):
            literal = indent
            if before := line.rstrip()[:-2].rstrip():
                prose.append((number, f"{before}:"))
            flush()
        else:
            prose.append((number, line))
    flush()
    return out


def _directive(indent: str, name: str, said: str) -> list[str]:
    if name in _SAID:
        version, _, rest = said.partition(" ")
        head = _SAID[name] if name == "seealso" else f"{_SAID[name]} {version}"
        rest = said if name == "seealso" else rest
        return [f"{indent}{head}: {rest}".rstrip()]
    if name in _NOTES:
        return [f"{indent}{name.capitalize()}: {said}".rstrip()]
    if name in ("include", "literalinclude"):
        return [f"{indent}(see {said})"]
    return [] if name in _SILENT or name in _CODE_DIRECTIVES or not said else [f"{indent}{said}"]


def _field(name: str, said: str) -> str:
    kind, _, rest = name.replace("\\*", "*").partition(" ")
    if kind in _ARGUMENTS and rest:
        shown = f"{rest.split()[-1]} (type)" if kind == "type" else rest.split()[-1]
        return f"{shown}: {said}".rstrip()
    if kind in _FIELDS:
        return f"{_FIELDS[kind]} {rest}".rstrip() + f": {said}".rstrip()
    return f"{name}: {said}".rstrip()


def _role(name: str, said: str) -> str:
    return (
        f"{name} {said}" if name.lower() in _NUMBERS and not said.lower().startswith(name.lower()) else said
    )


def _inline_rst(text: str, *, is_code: bool) -> str:
    """Take off the marks within lines; those of literals first, whose text stays as it is."""
    kept: list[str] = []

    def keep(said: str) -> str:
        kept.append(said)
        return f"\x00{len(kept) - 1}\x00"

    text = _LITERAL.sub(lambda match: keep(match[1]), text.replace("\x00", ""))
    text = _ROLE.sub(lambda match: keep(_role(match[1], match[2])), text)
    text = _LINKED.sub(lambda match: keep(match[1] + _target(match[1], match[2])), text)
    if is_code:
        text = _BOLD_IN_CODE.sub(lambda match: match[1] or match[2], text)
    else:
        text = _NAMED.sub(lambda match: keep(match[1]), text) if "`_" in text else text
        text = _SINGLE.sub(lambda match: keep(match[1]), text)
        text = _STRONG.sub(lambda match: match[2], text)
        text = _SUBSTITUTED.sub(lambda match: match[1], text)
        text = re.sub(r"\\([*`|_\\ ])", lambda match: match[1].strip(), text)
    return re.sub("\x00(\\d+)\x00", lambda match: kept[int(match[1])], text)
