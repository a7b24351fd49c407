"""Cells of columns that hold secrets."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metatree._util.secret_columns import masked_columns
from metatree.trees.masking import masked_file


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("user;Password\nann;hunter2hunter2\n", ["hunter2hunter2"]),
        ("user\tdb_password\tcity\r\nann\tab12cd34\tOslo\r\n", ["ab12cd34"]),
        ('"api key",n\n"a,b""c1234567",5\n', ['a,b""c1234567']),
        ("token,pos\nsomething,NN\nelse1,X\n", []),
        ("name,passport\nann,ab12cd34ef\n", []),
        ("\ufeffpassword\nhunter2hunter2", ["hunter2hunter2"]),
        ("password\n", []),
        ("\n\r\nkettle,password\nann,hunter71Zq7\n", ["hunter71Zq7"]),
        ("# a comment\nkettle,password\nann,hunter71Zq7\n", ["hunter71Zq7"]),
        ("#kettle,password\nann,hunter71Zq7\n", ["hunter71Zq7"]),
        ("sep=;\nkettle;password\nann;hunter71Zq7\n", ["hunter71Zq7"]),
        ("kettle,pot\nx,password\nann,hunter71Zq7\n", []),
        ("", []),
        ('password\n"open1234567', ['"open1234567']),
    ],
)
def test_cells(text: str, hidden: list[str]) -> None:
    masked, number = masked_columns(text)
    assert number == len(hidden) and len(masked) == len(text)
    for cell in hidden:
        text = text.replace(cell, "*" * len(cell))
    assert masked == text


table = st.lists(st.lists(st.text(max_size=12), min_size=3, max_size=3), max_size=6)


@given(table)
def test_columns_beside_it_stay(rows: list[list[str]]) -> None:
    file = io.StringIO()
    csv.writer(file).writerows([["a", "password", "b"], *rows])
    masked = list(csv.reader(io.StringIO(masked_columns(file.getvalue())[0])))
    plain = list(csv.reader(io.StringIO(file.getvalue())))
    assert [[row[0], row[2]] for row in masked] == [[row[0], row[2]] for row in plain]


def test_a_file() -> None:
    assert masked_file("a/users.csv", b"user,password\nann,hunter2hunter2\n")[:2] == (
        b"user,password\nann,**************\n",
        1,
    )
