"""Manual pages as text: the macros of man and of mdoc, roff's escapes, and what must not be followed."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from metatree_memory_tools import build_tree
from metatree_memory_tools.documents._man import extract_man, is_manual
from metatree_memory_tools.documents._roff_text import Strings, arguments
from metatree_memory_tools.documents.types import ManualPage

from metatree.trees.source_types import SourceFile

MAN = r"""'\" t
.\" Made by hand.
.de Own
. not shown
..
.ie \n(.g .ds Aq \(aq
.el       .ds Aq '
.TH TEA 1 "2020-01-02" "tea 3" "Cups"
.SH NAME
tea \- makes \fItea\fR
.SH SYNOPSIS
.B tea
.RI [ cup " ...]"
.SH OPTIONS
.TP
.BR \-s ", " \-\-sugar =\fIN\fR
Take
.I N
pieces (it\*(Aqs 2 when none is given).
.TP
.B \-x
.TQ
.B \-y
Both.
.SS "Exit values"
.RS
0 = drunk
.RE
.RS
1 = cold
.RE
.IP \(bu 2
One.
.IP 2.
Two.
.nf
  tea   \-s 3
.fi
.TS
tab(|);
l l.
Kind|Heat
_
green|80 \(deC
.TE
"""
MDOC = r""".Dd June 1, 2020
.Dt CUP 6
.Os
.Sh NAME
.Nm cup ,
.Nm mug
.Nd hold tea
.Sh SYNOPSIS
.Nm
.Op Fl av
.Op Fl f Ar file Ns Oo , Ar file Oc
.Ar
.Sh DESCRIPTION
.Nm
holds tea
.Pq see Xr tea 1 .
.Bl -tag -width indent
.It Fl a , Fl -all
Hold
.Em all .
.It Ic p Ap s
Points.
.El
.Bl -enum -compact
.It
First.
.It
Second.
.El
.Dl cup -a
.Ex -std
"""


def test_a_page_of_man() -> None:
    page = extract_man(MAN)
    assert page.title == "tea(1)" and "\n".join(page.lines) == (
        """\
NAME

tea - makes tea

SYNOPSIS

tea [cup ...]

OPTIONS

-s, --sugar=N
    Take N pieces (it's 2 when none is given).

-x
-y
    Both.

Exit values

    0 = drunk
    1 = cold

- One.

2. Two.
  tea   -s 3

Kind | Heat
green | 80 °C"""
    )
    assert [(each.level, each.title, each.line) for each in page.headings] == [
        (1, "NAME", 1), (1, "SYNOPSIS", 5), (1, "OPTIONS", 9), (2, "Exit values", 18),
    ]  # fmt: skip


def test_a_page_of_mdoc() -> None:
    page = extract_man(MDOC)
    assert page.title == "cup(6)" and "\n".join(page.lines) == (
        """\
NAME

cup, mug — hold tea

SYNOPSIS

cup [-av] [-f file[, file]] file ...

DESCRIPTION

cup holds tea (see tea(1)).

-a, --all
    Hold all.

p's
    Points.
1. First.
2. Second.
    cup -a
The cup utility exits 0 on success, and >0 if an error occurs."""
    )


@pytest.mark.parametrize(
    ("path", "head", "known"),
    [
        ("man/tea.1", b'.\\" x\n.TH TEA 1\n', True),
        ("snake.6.in", b".Dd x\n", True),
        ("Foo.3pm", b"'\\\" t\n.SH NAME\n", True),
        ("log/messages.1", b"Jan 1 tea\n.TH\n"[:6], False),
        ("tea.txt", b".TH TEA 1\n", False),
        ("version-1.2", b"# 1.2\n", False),
    ],
)
def test_what_is_a_page(path: str, head: bytes, known: bool) -> None:
    assert is_manual(path, head) is known


def test_conditions_and_what_is_left_out() -> None:
    assert extract_man(".if n .ig ++\na\n.++\nb").lines == ["b"]
    assert extract_man(".if t \\{\\\n. a\nnot\n.\\}\n.if n \\{\\\nshown\n.\\}\nb").lines == ["shown b"]
    assert extract_man(".ie t one\n.el two").lines == ["two"]
    assert extract_man(".IX Item x\n.nop y\n.MINE z").lines == ["z"]
    assert extract_man("a \\\nb\n.so man1/tea.1").lines == ["a b See man1/tea.1."]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (r"\fB\-\-all\fP \f(CWx\fR \f[CR]y\f[]", "--all x y"),
        (r"\(aqa\(cq \[em] \[u00E9] \(co \(:u \[xyz]", "'a’ — é © ü \\[xyz]"),
        (r"a\ b\~c\0d\|e\&f\%g\e\\", "a b c de" + "fg\\\\"),
        (r"\s-2small\s0 \h'2n'x\v'-1'y \n(.gz\h'-2n'", "small  xy z"),
        (r"a \" note", "a "),
        (r"\*(Tm \*R \*[lq]a\*[rq] \*(zz.", "™ ® “a” ."),
    ],
)
def test_escapes(text: str, said: str) -> None:
    assert Strings().said(text) == said


def test_arguments_in_quotes() -> None:
    assert arguments(r'a "b c" "d ""e""" \fIf\ g "" h \" i') == ["a", "b c", 'd "e"', r"\fIf\ g", "", "h"]


@given(st.text(alphabet=".'\\\"{}()[]*fnrs \nTPSHBlItOpNsABCelifdego0-", max_size=400))
@settings(max_examples=300)
def test_no_page_is_refused(text: str) -> None:
    page = extract_man(text)
    assert all(0 < each.line <= len(page.lines) for each in page.headings)
    assert all("\n" not in line for line in page.lines)


@pytest.mark.parametrize(
    "text",
    [
        ".ds a xxxxxxxxxx\n" + ".as a \\*a\\*a\n" * 2_000 + "\\*a" * 100,
        ".RS\n" * 20_000 + "x",
        ".Op " * 20_000,
        ".if n " * 20_000 + "x",
        "a\\\n" * 20_000,
        '.TP "' + "a" * 200_000,
        "\\s'" * 50_000,
        ".Bl -tag\n.It a\n" * 5_000,
        "T{ " * 20_000,
        ".TS\nl.\n" + "T{\n" * 5_000,
    ],
)
def test_what_nests_or_grows(text: str) -> None:
    before = time.process_time()
    page = extract_man(text)
    assert sum(map(len, page.lines)) < 3_000_000
    assert time.process_time() - before < 20  # for ever before it was bounded


def test_the_tree_of_a_page(tmp_path: Path) -> None:
    (tmp_path / "tea.1").write_text(MAN)
    (tmp_path / "secret.1").write_text(".TH S 1\n.SH EXAMPLE\npassword = hunter2hunter2\n")
    with build_tree(tmp_path, out=tmp_path / "tree") as tree:
        assert [node.title for node in tree.children("tea.1")] == ["NAME", "SYNOPSIS", "OPTIONS"]
        (inner,) = [node for node in tree.children("tea.1#options") if node.title == "Exit values"]
        assert tree.content(inner.id).splitlines()[2:4] == ["    0 = drunk", "    1 = cold"]
        assert tree.get("tea.1").description.startswith("tea(1): tea - makes tea")
        assert "password = ****" in tree.content("secret.1")


def test_a_page_is_read_once_for_its_nodes() -> None:
    kind, file = ManualPage(), SourceFile("tea.1", MAN.encode())
    assert kind.text(file) is kind.text(file)
