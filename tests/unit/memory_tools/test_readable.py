"""Markup is shown as text that a person reads; code, and all that is no markup, stays as it is."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from metatree_memory_tools.text.readable import readable, readable_code


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("## Use ##\n\nRun `x.__init__` **now**, _once_.", "Use\n\nRun x.__init__ now, once."),
        ("Title\n=====\nText &amp; more &lt;3", "Title\n\nText & more <3"),
        ("* one\n* two\n  goes on\n    1. inner", "- one\n- two\n  goes on\n  1. inner"),
        (
            "Do:\n\n```python\n# a comment\nx = a**b\n```\nThen.",
            "Do:\n\n    # a comment\n    x = a**b\n\nThen.",
        ),
        ("x = a**b\n```\nThen *go*.", "    x = a**b\n\nThen go."),
        ("See:\n```sh\npip install x", "See:\n\n    pip install x"),
        ("| a | b |\n|---|---|\n| 1 | `2` |", "a | b\n1 | 2"),
        ("[docs](https://x.org/d) and [here](x.md)", "docs (https://x.org/d) and here"),
        ("![logo](x.png) <b>bold</b><!-- no --> 1 < 2", "logo bold 1 < 2"),
    ],
)
def test_markdown(text: str, shown: str) -> None:
    assert readable(text, "docs/a.md") == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("====\nTop\n====\n\nText", "Top\n\nText"),
        (":meth:`~Runner.run` is ``a**b`` or *so*.", "Runner.run is a**b or so."),
        (".. code-block:: python\n   :caption: x.py\n\n   run(**now)\n\nThen", "   run(**now)\n\nThen"),
        ("For example::\n\n    x = `1`\n\nEnd", "For example:\n\n    x = `1`\n\nEnd"),
        (".. versionchanged:: 8.0\n    Now ``None``.", "Changed in version 8.0:\n    Now None."),
        (".. versionadded:: 2.1 Faster.", "Added in version 2.1: Faster."),
        (".. versionadded:: 2.1\n\nText", "Added in version 2.1\n\nText"),
        (
            ":param str name: the name\n              of it\n:returns: a :class:`Node`",
            "name: the name\n    of it\nReturns: a Node",
        ),
        (".. _label:\n\nText", "Text"),
        (".. toctree::\n   :maxdepth: 2\n\n   a", "   a"),
        (".. autoclass:: X\n   :members: a, b,\n      c\n\nText", "X\n\nText"),
        ("See `the docs\n<https://x.org>`_ and `here`_.", "See the docs (https://x.org) and here."),
        ("a snake_case_ name, 2*3*4, x_", "a snake_case_ name, 2*3*4, x_"),
        (".. [1] A note", "[1] A note"),
        ("   :noindex:\n   :synopsis: x\n\nText", "Text"),
    ],
)
def test_restructuredtext(text: str, shown: str) -> None:
    assert readable(text, "docs/a.rst") == shown


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (r"It is **ghp_8KvQ2mLx7bN4cP8t**\ R1wZ5yU6oE0aHs4dFgJk now.", "a.rst"),
        (r"It is AKIA\ Q3EGRB7TZ5KMX2WD now.", "a.rst"),
        ("It is ghp_9KvQ2mLx7bN4<wbr>cP8tR1wZ5yU6oE0aHs4dFgJk now.", "a.md"),
        ("It is [ghp_7KvQ2mLx7bN4](a.md)cP8tR1wZ5yU6oE0aHs4dFgJk now.", "a.md"),
        ("It is postgres://ann:hunt<!-- -->er73@db.x.org/a now.", "a.md"),
    ],
)
def test_no_key_comes_up_when_the_marks_in_it_are_taken_out(text: str, path: str) -> None:
    shown = readable(text, path)
    assert "It is" in shown and "***" in shown and "now." in shown


def test_secrets_that_are_to_be_shown_stay() -> None:
    text = "The *old* key is ghp_9KvQ2mLx7bN4cP8tR1wZ5yU6oE0aHs4dFgJk now."
    assert readable(text, "a.md") == text.replace("*", "")


def test_html() -> None:
    assert (
        readable("<p>One &amp; <b>two</b><br>three</p>\n<script>x</script><p>4</p>", "a.html")
        == "One & two\nthree\n4"
    )


CODE = '''\
def run(*args, **kwargs):
    """Run :func:`it`.

    :param args: what ``it``
                 takes

    .. versionadded:: 2.0
    """
    return f"``{a*b*c}``", __init__, "|x|"
'''


def test_docstrings_lose_their_markup_and_lines_keep_their_numbers() -> None:
    assert readable(CODE, "a.py").splitlines()[1:8] == [
        '    """Run it.',
        "",
        "    args: what it",
        "        takes",
        "",
        "    Added in version 2.0",
        '    """',
    ]
    by_number = dict(readable_code(CODE, "a.py"))
    assert by_number[0] == "def run(*args, **kwargs):"
    assert by_number[6] == "    Added in version 2.0"
    assert by_number[8].endswith('__init__, "|x|"')


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("    * **http2** - *(optional)* A flag.", "    * http2 - (optional) A flag."),
        ("    :param \\*\\*kwargs: others", "    **kwargs: others"),
        ("    return f(*a, **b) ** c * (d) * e", "    return f(*a, **b) ** c * (d) * e"),
        ("def f(*, a: int, **b: int) -> None:", "def f(*, a: int, **b: int) -> None:"),
        ("x = a*(b)*c", "x = a*(b)*c"),
    ],
)
def test_marks_in_code(line: str, shown: str) -> None:
    assert readable(f"def g():\n{line}", "a.py").split("\n")[1] == shown


@pytest.mark.parametrize("path", ["a.c", "a.yaml", "setup.cfg"])
def test_what_has_no_markup_stays(path: str) -> None:
    text = "# a **b**\n----\n:x: `y`"
    assert readable(text, path) == text
    assert readable_code(text, path) == list(enumerate(text.split("\n")))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("# A\n\ntext", "A\n\ntext"),
        ("Use :func:`x`.", "Use x."),
        ("2 * 3 * 4 = 24, a_b_c", "2 * 3 * 4 = 24, a_b_c"),
    ],
)
def test_without_a_path_the_look_of_a_text_decides(text: str, shown: str) -> None:
    assert readable(text) == shown


_PIECES = st.sampled_from(
    ["word", "a_b", "`c d`", "``e``", "**f g**", "*h*", "\n", "\n\n", "    i = 1\n", "::\n", ":func:`j`", "# k\n",
     "- l\n",      "====\n", ".. note:: m\n", "```\n", "| n | o |\n", "[p](q.md)", "<b>r</b>", ":param s: t\n", " "]
)  # fmt: skip


@given(st.lists(_PIECES, max_size=20).map(" ".join), st.sampled_from(["a.md", "a.rst", "a.py", "a.html", ""]))
def test_no_word_of_a_text_is_lost(text: str, path: str) -> None:
    shown = readable(text, path)
    for word in re.findall(r"\b(?:word|a_b|c d|f g|h|j)\b", text):
        assert word in shown


@given(st.text(max_size=400), st.sampled_from(["a.md", "a.rst", "a.py", "a.html", ""]))
def test_any_text_can_be_shown(text: str, path: str) -> None:
    assert isinstance(readable(text, path), str)


KEY = "ghp_Zk81mQpwX77qAbCdEfGhIjKlMnOpQrStUv12"
PARTED = f"It is {KEY[:9]}:func:`{KEY[9:]}` here."


@pytest.mark.parametrize("path", ["a.py", "a.rst", "a.rst#there", ""])
@pytest.mark.parametrize("before", ["", "password = hunter2abcd9\n", "Another is AKIAQ3EGRB7TZ5KMX2WD.\n"])
def test_a_key_in_parts_is_masked_whatever_stands_beside_it(before: str, path: str) -> None:
    """A password of prose, which is none in code, had the whole text taken for one that shows secrets."""
    text = f"{before}{PARTED}"
    assert KEY not in readable(text, path)
    assert readable(text, path).startswith(before.rstrip())
    code = f'def f():\n    """Do.\n\n    {text}\n    """\n'
    assert KEY not in "\n".join(line for _, line in readable_code(code, "a.py"))


def test_a_key_that_a_text_shows_is_shown() -> None:
    """It was asked for: elsewhere what the text is from has it masked."""
    assert KEY in readable(f"Use *this*: {KEY}.", "a.md")


def test_a_private_key_whose_first_line_has_marks_is_masked_whole() -> None:
    lines = [f"{number}IEowIBAAKCAQEA{'aB3d' * 12}" for number in range(4)]
    text = "\n".join(["-----BEGIN ``RSA`` PRIVATE KEY-----", *lines, "-----END RSA PRIVATE KEY-----"])
    shown = readable(text, "a.rst")
    assert not any(line in shown for line in lines)
