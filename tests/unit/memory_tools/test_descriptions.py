"""Every word of a description stands in its source, whatever the type of text: nothing is cut, glued or made up."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from metatree_memory_tools.code.languages.code import Code
from metatree_memory_tools.code.python import PythonCode
from metatree_memory_tools.conversations.file_type import ConversationFile
from metatree_memory_tools.documents._docx import extract_docx
from metatree_memory_tools.documents._html import extract_html
from metatree_memory_tools.documents._outline import outline_of
from metatree_memory_tools.documents._pdf import extract_pdf
from metatree_memory_tools.documents.types import ReStructuredText
from metatree_memory_tools.text.markdown import Markdown
from metatree_memory_tools.text.plain import PlainText

from metatree.trees.source_types import Outline, OutlinePart, SourceFile
from tests.documents import make_docx, make_pdf
from tests.profiles import examples

WORDS = re.compile(r"[^\W_]+(?:_+[^\W_]+)*")
LABELS = frozenset(
    WORDS.findall(
        "Sections Classes Functions Methods Contents Imports Names Constants An empty file A Word document PDF web page"
        " without text untitled Page no a picture scan or an pages pictures scans Messages Types Tests from to and of"
        " messages message conversation between Conversation"
    )
)


def described(parts: tuple[OutlinePart, ...]) -> Iterator[str]:
    for part in parts:
        yield part.description
        yield from described(part.parts)


def foreign(outline: Outline, source: str) -> list[str]:
    """The words of descriptions that the source does not have; one that is cut at an ellipsis may be a beginning."""
    known = set(WORDS.findall(source)) | LABELS
    names = []
    for text in (outline.description, outline.summary, *described(outline.parts)):
        for match in WORDS.finditer(text):
            word = match[0]
            cut = text[match.end() : match.end() + 1] == "…" and any(each.startswith(word) for each in known)
            if word not in known and not cut:
                names.append(f"{word!r} in {text!r}")
    return names


WORD = st.text("abeoxIVé", min_size=1, max_size=9)
MARKS = st.sampled_from(
    ["{}", "{}.", "{},", "({})", "{}:", "*{}*", "**{}**", "`{}`", "``{}``", "_{}_", "{}_", ":f:`{}`", "[{}](x)", "|{}|",
     "x**{}", "{}|b", "a*{}", "{}*a", "`{} <x>`_", "<br>{}", "{}<br>a", "[{}][x]", "![{}](x)", "{})", "~~{}~~", "a`{}",
     "{}``a", "\"{}\"", "__{}__", "a__{}", "{}!", "it's {}", "{}-a", "a/{}", "{}…"]
)  # fmt: skip
PHRASE = st.builds(lambda mark, word: mark.replace("{}", word), MARKS, WORD)
BEGIN = st.sampled_from(
    ["", "", "", "- ", "* ", "1. ", "a) ", "(iv) ", "#. ", "> ", "    ", "| ", "# ", "## ", ".. ", ":a: "]
)

LINE = st.builds(lambda begin, phrases: begin + " ".join(phrases), BEGIN, st.lists(PHRASE, max_size=14))
TEXT = st.lists(
    st.one_of(
        LINE, LINE, LINE, st.sampled_from(["", "", "====", "----", "```", "::", "***", "| - | - |", "+--+"])
    ), max_size=12
).map("\n".join)  # fmt: skip
EXAMPLES = [
    "their pages. It can go on.\nThey said so. I did.",
    "Title\n=====\n\nx**2 and y**3, a|b of foo_ and a``b``c are one.",
    "a<br>b and *x*y*z* of __init__ to _x_y.",
    "long " + "w" * 450 + " pages. It",
    " " * 397 + "pages. It can",
    "`a <" + "x" * 420 + ">`_ pages",
]


def tried(check: Callable[[str], None]) -> None:
    """Check the examples, then texts that hypothesis makes."""
    for text in EXAMPLES:
        check(text)
    settings(max_examples=examples(100))(given(TEXT)(check))()


def commented(text: str, mark: str) -> str:
    return "".join(f"{mark} {line}\n" for line in text.split("\n"))


TYPES: dict[str, tuple[Any, Callable[[str], str]]] = {
    "a.md": (Markdown(), str),
    "a.rst": (ReStructuredText(), str),
    "a.txt": (PlainText(), str),
    "a.toml": (PlainText(), lambda text: commented(text, "#")),
    "a.py": (PythonCode(), lambda text: f"'''{text}'''\n\n\ndef f():\n    '''{text}'''\n"),
    "b.py": (
        PythonCode(),
        lambda text: commented(text, "#") + "\n\n" + commented(text, "#") + "def f(): pass\n",
    ),
    "a.js": (Code(), lambda text: f"/**\n{commented(text, ' *')}*/\nfunction f() {{}}\n"),
    "a.go": (Code(), lambda text: f"package a\n\n{commented(text, '//')}func F() {{}}\n"),
    "a.json": (
        ConversationFile(),
        lambda text: json.dumps(
            {"messages": [{"role": "user", "content": f"So: {text}"}]}, ensure_ascii=False
        ),
    ),
    "a.ipynb": (
        PlainText(),
        lambda text: json.dumps({"cells": [{"source": [text]}]}, ensure_ascii=False, indent=1),
    ),
}


@pytest.mark.parametrize("name", TYPES)
def test_every_word_of_a_description_stands_in_the_text(name: str) -> None:
    kind, form = TYPES[name]

    def check(text: str) -> None:
        source = form(text.replace("'''", "").replace("*/", ""))
        content = source + "\n" + source.replace("\\n", " ")
        if name.endswith(".json"):
            content += " 1 turn function"
        assert foreign(kind.outline(SourceFile(name, source.encode())), content) == []

    tried(check)


@pytest.mark.parametrize("name", ["html", "docx", "pdf"])
def test_every_word_of_a_description_stands_in_the_document(name: str) -> None:
    def check(text: str) -> None:
        lines = text.split("\n")
        if name == "html":
            body = "".join(f"<p>{html.escape(line)}</p>" for line in lines)
            document = extract_html(f"<html><body><h1>One</h1>{body}</body></html>".encode())
        elif name == "docx":
            body = "".join(f"<w:p><w:r><w:t>{html.escape(line)}</w:t></w:r></w:p>" for line in lines)
            document = extract_docx(make_docx(body))
        else:
            ascii_lines = [line.replace("é", "e").replace("…", "")[:80] for line in lines]
            document = extract_pdf(make_pdf([[(10, line) for line in ascii_lines]]))
        outline = outline_of(document, "a", "A document")
        assert foreign(outline, "\n".join([*document.lines, "One", "document", "1"])) == []

    tried(check)
