"""Files of rows as tables: what stands between the cells, what the columns are called, and of which type they are."""

from __future__ import annotations

import csv
import io
import sqlite3
from contextlib import closing
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from metatree_memory_tools.databases import delimited_type
from metatree_memory_tools.databases._delimited import Delimited, _looks_misread, read_delimited
from metatree_memory_tools.databases.delimited_type import DelimitedFile

from metatree.trees.source_types import SourceFile


def table(text: str, *, tabs: bool = False) -> tuple[Delimited, dict[str, str], list[tuple[Any, ...]]]:
    """Return what was read, the columns with their types, and the rows."""
    read = read_delimited(text, "t", tabs=tabs)
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.deserialize(read.database)
        columns = {row[1]: row[2] for row in connection.execute("PRAGMA table_info(t)")}
        return read, columns, connection.execute("SELECT * FROM t").fetchall()


@pytest.mark.parametrize("sign", [",", ";", "\t", "|"])
def test_the_sign_between_cells_is_told_from_the_rows(sign: str) -> None:
    text = "\n".join(sign.join(row) for row in (("name", "size"), ("a-b", "3"), ("c d", "4")))
    assert table(text)[1:] == ({"name": "TEXT", "size": "INTEGER"}, [("a-b", 3), ("c d", 4)])


@pytest.mark.parametrize(
    ("cells", "type_", "values"),
    [
        (("10", "9", "-2"), "INTEGER", [10, 9, -2]),
        (("1.5", "2", "n/a"), "REAL", [1.5, 2.0, None]),
        (("1,200", "15", "3,000,000"), "INTEGER", [1200, 15, 3_000_000]),
        (("$4.50", "$1,200", "$3"), "REAL", [4.5, 1200.0, 3.0]),
        (("12%", "7%", "100%"), "INTEGER", [12, 7, 100]),
        (("00123", "99999", "12345"), "TEXT", ["00123", "99999", "12345"]),
        (("10", "many", "9"), "TEXT", ["10", "many", "9"]),
        (("2024-05-01", "2023-12-31", ""), "DATE", ["2024-05-01", "2023-12-31", None]),
        (("2024-05-01 10:00", "2023-12-31 09:30", "-"), "DATETIME", ["2024-05-01 10:00", "2023-12-31 09:30", None]),
        (("1.2.2024", "13.2.2024", "3.12.2023"), "DATE", ["2024-02-01", "2024-02-13", "2023-12-03"]),
        (("2012/01/02", "2011/12/31", ""), "DATE", ["2012-01-02", "2011-12-31", None]),
        (("Jan 1 2000", "Feb 11, 2000", "May 3 1999"), "DATE", ["2000-01-01", "2000-02-11", "1999-05-03"]),
        (("Jan 1 2000", "soon", "May 3 1999"), "TEXT", ["Jan 1 2000", "soon", "May 3 1999"]),
        (("02/13/2024", "01/02/2024", "12/31/2023"), "DATE", ["2024-02-13", "2024-01-02", "2023-12-31"]),
        (("01/02/2024", "03/04/2024", "05/06/2024"), "TEXT", ["01/02/2024", "03/04/2024", "05/06/2024"]),
        (("99999999999999999999", "1", "2"), "TEXT", ["99999999999999999999", "1", "2"]),
        (("٣", "4", "5"), "TEXT", ["٣", "4", "5"]),
        (("2024-99-01", "2024-01-01", "2024-01-02"), "TEXT", ["2024-99-01", "2024-01-01", "2024-01-02"]),
    ],
)  # fmt: skip
def test_a_column_has_the_type_of_all_its_values(
    cells: tuple[str, ...], type_: str, values: list[Any]
) -> None:
    text = io.StringIO()
    csv.writer(text).writerows([("name", "value"), *((f"n{n}", cell) for n, cell in enumerate(cells))])
    _, columns, rows = table(text.getvalue())
    assert columns["value"] == type_
    assert [row[1] for row in rows] == values


def test_rows_without_names_have_columns_by_number() -> None:
    read, columns, rows = table("1,Ann,3\n4,Bob,6\n")
    assert not read.has_names
    assert list(columns) == ["column_1", "column_2", "column_3"] and len(rows) == 2


@pytest.mark.parametrize("text", ["Ann,Oslo\nBob,Oslo\nAnn,Rome\n", "a,b,a\n1,2,3\n"])
def test_a_first_row_that_is_repeated_names_no_columns(text: str) -> None:
    assert not table(text)[0].has_names


def test_names_are_unique_in_any_case_and_never_empty() -> None:
    _, columns, _ = table("Id,value,,Note\n1,2,3,x\n")
    assert list(columns) == ["Id", "value", "column_3", "Note"]
    assert list(table("a b,a  b\nx,1\n")[1]) == ["a b", "a b_2"]


def test_uneven_rows_are_kept_and_counted() -> None:
    read, _, rows = table("a,b\n" + "x,1\n" * 8 + "y\n" + "z,3,9\n")
    assert rows[-2:] == [("y", None), ("z", 3)]
    assert read.problem == "2 of 10 rows have another number of cells"


def test_quotes_hold_signs_lines_and_quotes() -> None:
    assert table('a,b\n"x, y",1\n"two\nlines",2\n"say ""hi""",3\n')[2] == [
        ("x, y", 1),
        ("two\nlines", 2),
        ('say "hi"', 3),
    ]


def test_a_quote_that_is_never_closed_swallows_nothing() -> None:
    text = "name,size\n" + "".join(f"n{n},{n}\n" for n in range(50)) + '"broken,1\n' + "last,2\n"
    assert [row[0] for row in table(text)[2]][-3:] == ["n49", '"broken', "last"]


def test_lines_of_two_encodings_are_each_read_in_theirs() -> None:
    data = "name,city\nZoë,Köln\n".encode() + "José,Málaga\n".encode("latin-1")
    file = SourceFile("t.csv", data)
    assert file.encoding == "latin-1"
    assert table(file.text)[2] == [("Zoë", "Köln"), ("José", "Málaga")]


def test_what_stands_above_the_table_is_no_row() -> None:
    assert table("# exported\n# in May\nname,n\nA,1\nB,2\n")[2] == [("A", 1), ("B", 2)]


@pytest.mark.parametrize(
    "text",
    ["", "\n\n", "one line of prose", "A, b and c.\nThen d\nand e, f, g, h.\nThe end, at last, it is.\nx"],
)
def test_prose_is_no_table(text: str) -> None:
    with pytest.raises(ValueError):
        table(text)
    outline = DelimitedFile().outline(SourceFile("t.csv", text.encode()))
    assert not any(part.kind == "table" for part in outline.parts)


def test_a_file_that_is_too_large_is_a_text_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delimited_type, "MOST_BYTES", 10)
    outline = DelimitedFile().outline(SourceFile("t.csv", b"a,b\n1,2\n3,4\n"))
    assert outline.parts == () and "larger than" in outline.problem


@given(
    st.lists(
        st.lists(
            # What looks like UTF-8 that was read as Latin-1 is put right.
            st.text(st.characters(codec="utf-8", exclude_characters="\r\0"), max_size=8).filter(
                lambda cell: not _looks_misread(cell)
            ),
            min_size=3,
            max_size=3,
        ),
        min_size=1,
        max_size=12,
    )
)
def test_what_was_written_is_read_again(rows: list[list[str]]) -> None:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([("first one", "second one", "third one"), *rows])
    kept = [row for row in rows if any(cell.strip() for cell in row)]
    _, columns, found = table(text.getvalue())
    assert list(columns) == ["first one", "second one", "third one"]
    assert len(found) == len(kept)
    for at, type_ in enumerate(columns.values()):
        if type_ == "TEXT":
            assert [row[at] for row in found] == [row[at].strip() or None for row in kept]


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    DelimitedFile().outline(SourceFile("t.csv", text.encode("utf-8", "replace")))
