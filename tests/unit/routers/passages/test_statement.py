"""What is shown of a text is whole: to the end of its sentence, list or entry, with what a colon announces."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from metatree_routers.embedded._excerpt import MOST_CODE_LINES, excerpt
from metatree_routers.passages.statement import MORE_LINES, is_cut, whole_statement

STEPS = """\
Setup
-----

It is quick. To begin,
run these commands:

.. code-block:: sh
   :caption: once

   make

   make test

Then rest. All of it
is done.

* one
* two,
  and more
* three

## Next

Other things.
"""


def widened(text: str, part: str, *, is_code: bool = False) -> str:
    at = text.index(part)
    start, end = whole_statement(text, at, at + len(part), is_code=is_code)
    return text[start:end]


@pytest.mark.parametrize(
    ("part", "begins", "ends"),
    [
        ("run these commands:", "It is quick.", "   make test"),
        ("To begin", "It is quick.", "   make test"),
        ("Then rest.", "Then rest.", "is done."),
        ("* two,", "* two,", "* three"),
        ("Other things.", "Other things.", "Other things."),
    ],
)
def test_a_stretch_goes_on_to_the_end_of_what_it_says(part: str, begins: str, ends: str) -> None:
    shown = widened(STEPS, part)
    assert shown.startswith(begins)
    assert shown.rstrip().endswith(ends)


def test_a_block_between_fences_is_not_cut() -> None:
    text = "Run:\n\n```sh\nmake\n\nmake test\n```\n\nMore."
    assert widened(text, "Run:\n\n```sh\nmake") == text.removesuffix("\n\nMore.")
    assert widened(text, "Run:") == text.removesuffix("\n\nMore.")


def test_a_fence_that_nothing_closes_ends_with_the_text() -> None:
    text = "Run:\n```"
    assert widened(text, "Run:") == text


def test_a_bold_line_announces_what_is_below_it() -> None:
    assert (
        widened("- a\n\n**Fixes**\n\n- b\n- c\n\nEnd.", "- a\n\n**Fixes**") == "- a\n\n**Fixes**\n\n- b\n- c"
    )


def test_what_is_announced_and_long_is_cut_between_its_paragraphs() -> None:
    text = "For example:\n\n" + "\n\n".join(f"    line {n}\n    more {n}" for n in range(20))
    shown = widened(text, "For example:")
    assert shown.endswith("    more 3")
    assert is_cut(text, len(shown)) is False
    assert widened(f"def f():\n{'    x()' * 30}\n\n    y()", "def f():", is_code=True).startswith("def f():")


def test_code_is_not_widened_by_a_block_that_does_not_fit() -> None:
    text = "class A:\n" + "\n".join(f"    x{n} = 1" for n in range(40))
    assert widened(text, "class A:", is_code=True) == "class A:"


@pytest.mark.parametrize(
    ("text", "shown", "cut"),
    [
        ("One goes\non. Two.", "One goes", True),
        ("One.\nTwo.", "One.", False),
        ("One goes on", "One go", True),
        ("One\n\nTwo", "One", False),
        ("- one\n- two", "- one", True),
        ("One.\n- two", "One.", False),
        ("One:\n\n- two", "One:", True),
        ("One.", "One.", False),
        ("**Fixes**\n\n- two", "**Fixes**", True),
    ],
)
def test_whether_a_statement_goes_on(text: str, shown: str, cut: bool) -> None:
    assert is_cut(text, len(shown)) is cut
    assert excerpt(text, shown, is_code=False) == (f"{shown}\n…" if cut else shown)


_LINES = st.lists(
    st.sampled_from(
        ["", "Word goes", "on.", "- item", "  more", "    code()", "So:", "```", ".. note::", "## Head"]
    ),
    min_size=1,
    max_size=40,
)


@given(_LINES, st.data(), st.booleans())
def test_a_stretch_is_never_shorter_and_not_much_longer(
    lines: list[str], data: st.DataObject, is_code: bool
) -> None:
    text = "\n".join(lines)
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    first, last = whole_statement(text, start, end, is_code=is_code)
    assert 0 <= first <= start <= end <= last <= len(text)
    assert text.count("\n", end, last) <= 3 * MORE_LINES


CODE = '''def send(
    mail: str,
) -> None:
    """Send a mail.

    It is queued.
    """
''' + "\n".join(f"    step({n})" for n in range(30))


def test_code_has_its_signature_the_docstring_begins_and_marks_where_lines_are_left_out() -> None:
    assert excerpt(CODE, "    step(20)\n    step(21)", is_code=True).split("\n") == [
        "def send(",
        "    mail: str,",
        ") -> None:",
        '    """Send a mail.',
        "    …",
        "    step(20)",
        "    step(21)",
        "    …",
    ]


def test_short_code_is_shown_whole_and_long_code_is_not() -> None:
    short = "def f():\n    a = 1\n    return a"
    assert excerpt(short, "    return a", is_code=True) == short
    body = "\n".join(f"    step({n})" for n in range(30))
    assert len(excerpt(CODE, body, is_code=True).split("\n")) <= MOST_CODE_LINES + 2


def test_a_mark_of_a_block_that_stands_alone_comes_with_what_announces_it() -> None:
    text = "It is quick.\n\nTo clear the screen, call `clear`, which\nworks everywhere:\n\n::\n\n    click.clear()\n"
    assert widened(text, "::\n\n    click.clear()").startswith("To clear the screen")
    text = text.replace("everywhere:", "everywhere.")
    assert widened(text, "::\n\n    click.clear()").startswith("To clear the screen")
