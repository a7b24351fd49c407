"""Text from arguments, standard input and files."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from metatree_agents.cli._inputs import host_and_port, text_of, texts_of

from metatree.errors import UserError


@pytest.fixture
def stdin(monkeypatch: pytest.MonkeyPatch) -> io.BytesIO:
    data = io.BytesIO()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(data, encoding="ascii"))
    return data


def _fill(stdin: io.BytesIO, data: bytes) -> None:
    stdin.write(data)
    stdin.seek(0)


def test_argument_is_itself() -> None:
    assert text_of("  Where?\n", what="question") == "Where?"


def test_dash_reads_standard_input_as_utf8_whatever_the_locale(stdin: io.BytesIO) -> None:
    _fill(stdin, "\ufeffWo läuft es?\n".encode())
    assert text_of("-", what="question") == "Wo läuft es?"


def test_megabytes_on_standard_input_are_read_whole(stdin: io.BytesIO) -> None:
    _fill(stdin, b"word " * 1_000_000)
    assert len(text_of("-", what="issue")) == 4_999_999


def test_other_encodings_are_refused_with_the_place_and_a_remedy(stdin: io.BytesIO) -> None:
    _fill(stdin, "café".encode("latin-1"))
    with pytest.raises(UserError, match=r"standard input is not UTF-8 text \(byte 0xe9 at offset 3\).*iconv"):
        text_of("-", what="question")


def test_at_sign_reads_a_file(tmp_path: Path) -> None:
    (tmp_path / "issue.txt").write_text("It fails\n", encoding="utf-8")
    assert text_of(f"@{tmp_path / 'issue.txt'}", what="issue") == "It fails"


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"cannot read '.*gone': No such file"):
        text_of(f"@{tmp_path / 'gone'}", what="issue")
    with pytest.raises(UserError, match=r"No such file or directory; check the path$"):
        text_of(f"@{tmp_path / 'gone'}", what="program", whole=True)


def test_an_empty_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "empty.rules").write_text("\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"empty\.rules: the program is empty$"):
        text_of(f"@{tmp_path / 'empty.rules'}", what="program", whole=True)


@pytest.mark.parametrize("empty", ["", "  \n", "\ufeff "])
def test_empty_text_is_refused(empty: str, stdin: io.BytesIO) -> None:
    _fill(stdin, empty.encode())
    for argument in ("-", empty.replace("\ufeff", "")):
        with pytest.raises(UserError, match="the question is empty"):
            text_of(argument, what="question")


def test_standard_input_is_read_only_once() -> None:
    with pytest.raises(UserError, match="only once"):
        texts_of(["-", "and this", "-"], what="question")


def test_bytes_of_an_argument_that_are_not_utf8_are_refused() -> None:
    with pytest.raises(UserError, match=r"the question is not UTF-8 text \(byte 0xe9 at offset 3\).*iconv"):
        text_of("caf\udce9 netrc", what="question")


def test_utf8_argument_is_read_as_such_in_a_locale_without_it() -> None:
    assert text_of("caf\udcc3\udca9", what="question") == "café"


def test_text_that_begins_with_an_at_sign_is_written_with_two() -> None:
    assert text_of("@@property what is it?", what="question") == "@property what is it?"


def test_at_sign_without_a_file_is_refused() -> None:
    with pytest.raises(UserError, match="no file is named after @"):
        text_of("@", what="question")


def test_file_that_cannot_be_read_says_how_to_write_a_text(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="check the path, or write @@"):
        text_of(f"@{tmp_path}", what="issue")


def test_closed_standard_input_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(UserError, match="standard input is closed"):
        text_of("-", what="question")


def test_addresses_to_listen_on() -> None:
    given = {"localhost:1": ("localhost", 1), "[::1]:0": ("::1", 0), ":65535": ("127.0.0.1", 65535)}
    assert {text: host_and_port(text, port_alone=False) for text in given} == given
    assert host_and_port("8000", port_alone=True) == ("127.0.0.1", 8000)


@pytest.mark.parametrize("text", ["", "8000", "host:", "host:port", ":65536", ":²", ":-1", ":" + "9" * 5000])
def test_no_address_to_listen_on(text: str) -> None:
    with pytest.raises(UserError, match="is no address"):
        host_and_port(text, port_alone=False)
