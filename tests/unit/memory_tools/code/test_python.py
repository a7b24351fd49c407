"""Python files become classes and functions; every line lies in one leaf."""

import ast
import textwrap
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from metatree_memory_tools.code.python import PythonCode

from metatree.trees.source_types import Outline, OutlinePart, SourceFile


def outline(text: str, path: str = "pkg/mod.py") -> Outline:
    return PythonCode().outline(SourceFile(path, textwrap.dedent(text).encode()))


def leaves(parts: Sequence[OutlinePart]) -> Iterator[OutlinePart]:
    for part in parts:
        if part.parts:
            yield from leaves(part.parts)
        else:
            yield part


def lines_of(part: OutlinePart) -> Iterator[int]:
    for first, last in part.ranges or ((part.start_line, part.end_line),):
        yield from range(first, last + 1)


def by_id(parts: Sequence[OutlinePart]) -> dict[str, OutlinePart]:
    parts_by_id = {}
    for part in parts:
        parts_by_id[part.id] = part
        parts_by_id.update(by_id(part.parts))
    return parts_by_id


SAMPLE = '''\
"""Parse dates. Slowly."""
import re
from typing import (
    Any,
)

LIMIT = 3


# Says how.
@decorated(
    1
)
def parse(text: str,
          *, strict: bool = False) -> Any:
    """Parse one date.

    More.
    """
    def inner() -> None:
        return 1
    return inner


class Date(Base, metaclass=Meta):
    """A day."""

    year = 1

    @property
    def x(self): return 1

    @x.setter
    def x(self, value): ...

    class Inner:
        a = 1

    async def later(self) -> None:
        pass

    end = 2

if LIMIT:
    def late(): pass
else:
    LIMIT = 2
'''


def test_definitions_with_signatures_and_first_sentences() -> None:
    parts = by_id(outline(SAMPLE).parts)
    assert list(parts) == [
        "::<module>", "::parse", "::Date", "::Date.<class>", "::Date.x", "::Date.x@2", "::Date.Inner",
        "::Date.later", "::late",
    ]  # fmt: skip
    parse = parts["::parse"]
    assert parse.description == "def parse(text: str, *, strict: bool = False) -> Any — Parse one date."
    assert (parse.start_line, parse.end_line) == (10, 22)
    assert parse.attributes["signature"] == "def parse(text: str, *, strict: bool = False) -> Any"
    assert parse.attributes["summary"] == "Parse one date."
    date = parts["::Date"]
    assert date.description == "class Date(Base, metaclass=Meta) — A day. Methods: x, Inner, later."
    assert parts["::Date.later"].description == "async def later(self) -> None"
    assert parts["::Date.x"].description == "def x(self)"
    assert parts["::Date.<class>"].description == "A day. Sets: year, end."
    assert parts["::<module>"].title == "mod.py (module level)"


def test_each_line_that_says_something_lies_in_one_leaf() -> None:
    parts = outline(SAMPLE).parts
    owners = [line for part in leaves(parts) for line in lines_of(part)]
    assert len(owners) == len(set(owners))
    numbers = {n for n, line in enumerate(SAMPLE.split("\n"), start=1) if line.strip()}
    assert numbers <= set(owners)


def test_imports_and_a_short_docstring_make_no_leaf_of_their_own() -> None:
    text = '''"""Short."""\nimport a\n\n# note\n\ndef f(): pass\n'''
    result = outline(text)
    assert list(by_id(result.parts)) == ["::f"]
    assert result.description == "Short. Functions: f."
    assert list(by_id(outline(text.replace("Short.", "Short. And more.")).parts)) == ["::<module>", "::f"]
    assert list(by_id(outline(text + "x = 1\n").parts)) == ["::<module>", "::f"]
    typing = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import x\ndef f(): pass\n"
    assert list(by_id(outline(typing).parts)) == ["::f"]


def test_a_class_header_makes_no_leaf_of_its_own() -> None:
    parts = by_id(outline("class A(B):\n    '''Short.'''\n\n    def f(self): ...\n").parts)
    assert list(parts) == ["::A", "::A.f"]
    assert list(by_id(outline("class A:\n    x: int\n    y: int = 1\n").parts)) == ["::A"]


def test_a_file_without_definitions_is_one_leaf() -> None:
    result = outline("x = 1\ny, (z, *w) = f()\n")
    assert result.parts == () and result.description == "Sets: x, y, z."
    assert outline("").description == "An empty Python file."
    assert outline("import os\nfrom a import b as c\n").description == "Imports: os, c."


def test_long_lists_of_names_are_cut() -> None:
    text = "\n".join(f"def function_number_{n}(): pass" for n in range(200))
    assert len(outline(text).description) <= 300
    assert outline(text).description.endswith(", …")


def test_signatures_with_comments_are_written_anew() -> None:
    parts = by_id(outline("def f(a,  # first\n      b='#'):\n    pass\n").parts)
    assert parts["::f"].description == "def f(a, b='#')"


@pytest.mark.parametrize(
    "text",
    [
        "def f(:\n",
        "x = (\n",
        "\0",
        "if 1:\nx",
        "(" * 5000,
        "-" * 100_000 + "1",
        "x = " + "[" * 300 + "]" * 300,
        "\ufeff\ufeffx = 1",
    ],
)
def test_what_does_not_parse_is_text_with_a_note(text: str) -> None:
    result = PythonCode().outline(SourceFile("a.py", text.encode()))
    assert result.problem and result.attributes["note"] == result.problem
    assert result.parts == ()


def test_deep_but_valid_code_never_raises() -> None:
    deep = "\n".join("    " * n + "if x:" for n in range(90)) + "\n" + "    " * 90 + "pass\n"
    chain = "if a: pass\n" + "elif b: pass\n" * 3000
    for text in (deep, chain, "x = " + "1 + " * 20_000 + "1"):
        PythonCode().outline(SourceFile("a.py", text.encode()))


def test_encodings_line_ends_and_form_feeds() -> None:
    latin = "# -*- coding: latin-1 -*-\ndef f():\n    'Día.'\n".encode("latin-1")
    assert by_id(PythonCode().outline(SourceFile("a.py", latin)).parts)["::f"].description == "def f() — Día."
    crlf = b"x = 1\r\n\x0c\r\ndef f():\r\n    'Go.'\r\n    return 1\r\n"
    parts = by_id(PythonCode().outline(SourceFile("a.py", crlf)).parts)["::f"]
    assert (parts.start_line, parts.end_line, parts.description) == (3, 5, "def f() — Go.")
    bom = "\ufeffdef f(): 'Go.'\n".encode()
    assert "::f" in by_id(PythonCode().outline(SourceFile("a.py", bom)).parts)
    unknown = b"# coding: no-such-thing\ndef f(): pass\n"
    PythonCode().outline(SourceFile("a.py", unknown))


def test_warnings_in_the_source_stay_there() -> None:
    outline("x = '\\d'\ny = 1 is 1\ndef f(): return '\\d'\n")


def test_imports_are_collected_wherever_they_stand() -> None:
    result = outline(
        "import a.b\nfrom . import c\ndef f():\n    try:\n"
        "        from ..d import e as g\n    except X:\n        import h\n"
    )
    assert set(result.imports) == {
        (0, "a.b", ()),
        (1, "", (("c", "c"),)),
        (2, "d", (("e", "g"),)),
        (0, "h", ()),
    }


def test_a_script_is_recognised_by_its_first_line() -> None:
    assert PythonCode().recognises("bin/tool", b"#!/usr/bin/env python3\n")
    assert not PythonCode().recognises("bin/tool", b"#!/bin/sh\n# python\n")
    assert not PythonCode().recognises("tool.txt", b"#!/usr/bin/env python3\n")


blocks = st.recursive(
    st.sampled_from(
        ["x = 1", "import os", "# note", "", "'''text\nmore'''", "@d\n# c\ndef f(): pass", "pass"]
    ),
    lambda inner: st.builds(
        lambda head, body: (
            head + "\n" + "\n".join("    " + line for part in body for line in part.split("\n"))
        ),
        st.sampled_from(
            [
                "class A:",
                "def f(a,\n      b):",
                "@d(\n1)\nasync def g():",
                "if x:",
                "with a:",
                "class B(A,\n   C):",
            ]
        ),
        st.lists(inner, min_size=1, max_size=4).map(lambda parts: [*parts, "pass"]),
    ),
    max_leaves=12,
)


@given(st.lists(blocks, max_size=6).map("\n".join))
def test_no_line_is_in_two_leaves_and_only_what_says_nothing_is_in_none(text: str) -> None:
    try:
        ast.parse(text)
    except SyntaxError:
        return
    result = PythonCode().outline(SourceFile("a.py", text.encode()))
    assert not result.problem
    if not result.parts:
        return
    owners = [line for part in leaves(result.parts) for line in lines_of(part)]
    assert len(owners) == len(set(owners))
    lines = text.split("\n")
    for number in set(range(1, len(lines) + 1)) - set(owners):
        line = lines[number - 1].strip()
        assert "x = 1" not in line and not line.startswith(("def ", "async def", "@")), (number, line)
