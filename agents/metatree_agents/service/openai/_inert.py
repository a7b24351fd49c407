"""Markdown that does nothing where a chat page shows it: no pictures, no HTML and no definitions but as text.

A page that renders a picture of an answer tells its server who asked what. A definition (`[1]: http://…`) says where
all `[1]` lead, those that mark our sources too. Links stay: only the reader follows them.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from markdown_it import MarkdownIt

_ACTS: Final = re.compile(
    r"!\[|<[A-Za-z/!?]|(?:^|(?<=\r))[ \t>*+\d.)-]*\[(?:[^][\\]|\\.)*\]:", re.MULTILINE | re.DOTALL
)
"""A picture, HTML, or a definition; its label may have line breaks, and stand in lists and quotations."""
_FENCE: Final = re.compile("```|~~~")
_MARKS: Final = re.compile(r"[][\\<`~]")
_LONGEST: Final = 20_000
"""Characters that are parsed: some texts take time that grows with the square of them."""
_NESTED: Final = 20
_AFTER: Final = "after"


def fenced(code: str) -> str:
    """Return code as chat pages show it as it is: between fences that are longer than any in it.

    Example:
        >>> print(fenced("def __init__(self):"))
        ```
        def __init__(self):
        ```
    """
    longest = max((len(run) for run in re.findall("`+", code)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{code.strip(chr(10))}\n{fence}"


def escaped(text: str) -> str:
    r"""Return text of one line as Markdown that shows it as it is: no link, picture, code or HTML.

    Example:
        >>> print(escaped("![x](http://a) <b>"))
        !\[x\](http://a) \<b>
    """
    return _MARKS.sub(r"\\\g<0>", text)


def inert_words(text: str) -> str:
    """Return quoted Markdown as it is, and between fences where it could show a picture or HTML, or define a link.

    One that could open a fence is between fences too: left open, it would swallow the fence of what comes next.
    """
    return fenced(text) if _ACTS.search(text) or _FENCE.search(text) else text


def inert_step(text: str) -> str:
    """Return a step of a search, escaped where it could show a picture or HTML, or define a link."""
    return text if inert_words(text) is text else escaped(text)


def inert_said(text: str) -> str:
    """Return Markdown that a model may have written: between fences where it could act, as `inert_words` has it.

    Both may stand in code. A piece must be harmless by itself and after any other one, so only fences count that begin
    a line and are closed, and code within a line that no table can cut.

    Example:
        >>> inert_said("Use `<b>`.")
        'Use `<b>`.'
    """
    return text if inert_words(text) is text or _is_harmless(text) else fenced(text)


def _is_harmless(text: str) -> bool:
    if len(text) > _LONGEST:
        return False
    lines = re.split(r"\r\n?|\n", text)
    defined: dict[str, object] = {}
    tokens = _parser().parse(f"{text}\n\n{_AFTER}", defined)
    if defined.get("references"):
        return False
    if [token.content for token in tokens[-3:] if not token.level or token.type == "inline"] != [
        "",
        _AFTER,
        "",
    ]:
        return False  # a block of it is still open
    for token in tokens:
        if token.level >= _NESTED - 1 or token.type == "html_block":
            return False
        if token.type == "fence" and not token.level and token.map and lines[token.map[0]][:1] in ("`", "~"):
            continue
        spans = token.children or [token]
        shown = "".join(
            " " if span.type == "code_inline" and "|" not in token.content else span.content for span in spans
        )
        if any(span.type in ("image", "html_inline") for span in spans) or _ACTS.search(shown):
            return False
    return True


@cache
def _parser() -> MarkdownIt:
    made = MarkdownIt("commonmark", {"maxNesting": _NESTED})
    made.validateLink = lambda url: True  # type: ignore[method-assign]
    made.render("*a*")  # rules are prepared by the first text, which threads must not do at the same time
    return made
