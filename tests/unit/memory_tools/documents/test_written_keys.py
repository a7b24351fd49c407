"""Keys are found in the markup of a document, whatever stands before them and whatever its parts are called."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping

import pytest
from metatree_memory_tools.documents import _written_keys
from metatree_memory_tools.documents._worker import _answer
from metatree_memory_tools.documents._written_keys import written_keys

from metatree.errors import UserError

KEY = "ghp_" + "Kettle7" * 6
MARKUP = f"<a:t>the key</a:t><a:t>{KEY}</a:t><a:t>then</a:t>"


def archive(
    parts: Mapping[str, bytes], *, damaged: bytes = b"", compression: int = zipfile.ZIP_STORED
) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as made:
        for name, data in parts.items():
            made.writestr(name, data)
    data = file.getvalue()
    return data.replace(damaged, damaged.swapcase()) if damaged else data


@pytest.mark.parametrize(
    "parts",
    [
        {"a.xml": MARKUP.encode()},
        {"a.bin": b"\x89PNG" + MARKUP.encode()},
        {"a": MARKUP.encode("utf-16")},
        {"a": MARKUP.encode("utf-16-be")},
        {"a": MARKUP.encode("utf-32")},
        {"padding.xml": b"<a>" + b" " * 45_000_000, "a.xml": MARKUP.encode()},
        {"a.xml": b" " * (999_990 - MARKUP.index(KEY)) + MARKUP.encode()},
        {"a.xml": b"\xe2\x82" * 400_000 + MARKUP.encode()},
        {
            "keys.xml": b"".join(b"<a>AKIA%016dAB</a>" % number for number in range(1_000)),
            "a": MARKUP.encode(),
        },
    ],
)
def test_a_key_is_found_in_whichever_part_it_is(parts: Mapping[str, bytes]) -> None:
    assert KEY in written_keys("pptx", archive(parts))


def test_a_document_with_a_damaged_part_is_left_out() -> None:
    """A reader takes what comes before the damage, in pieces of its own."""
    data = archive({"a.xml": MARKUP.encode() + b"harbour"}, damaged=b"harbour")
    with pytest.raises(UserError, match="damaged: a part of it cannot be unpacked"):
        written_keys("docx", data)


def test_what_is_an_archive_goes_by_the_format_and_not_by_how_it_begins() -> None:
    assert KEY in written_keys(
        "docx", b"#!" + archive({"a.xml": MARKUP.encode()}, compression=zipfile.ZIP_DEFLATED)
    )
    assert KEY in written_keys("html", b"PK" + MARKUP.encode())
    assert KEY in written_keys("html", b"PK" + MARKUP.encode() + archive({"a": b""}))
    assert written_keys("docx", b"PK no archive") == frozenset()


def test_what_has_too_much_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind a bound, what is not known would be shown."""
    monkeypatch.setattr(_written_keys, "_MOST_KEYS", 2)
    many = b"".join(b"<p>ghp_Kettle%030d</p>" % number for number in range(3))
    with pytest.raises(UserError, match="more than 2 keys"):
        written_keys("html", many)
    assert b"more than 2 keys" in _answer("html", many, 5.0, False) and b"ghp_" in _answer(
        "html", many, 5.0, True
    )
    monkeypatch.setattr(_written_keys, "_MOST_BYTES", 100)
    with pytest.raises(UserError, match="unpacks to more than"):
        written_keys("pptx", archive({"a": b" " * 60, "b": b" " * 60}))
