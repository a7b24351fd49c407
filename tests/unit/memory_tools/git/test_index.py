"""The index of git by its bytes; tests/integration/test_build_git.py asks git itself."""

from __future__ import annotations

import pytest
from metatree_memory_tools.git.index import names_in


def entry(rest: bytes) -> bytes:
    return bytes(40 + 20) + b"\x00\x00" + rest


def index(version: int, *entries: bytes) -> bytes:
    return (
        b"DIRC" + version.to_bytes(4, "big") + len(entries).to_bytes(4, "big") + b"".join(entries) + bytes(20)
    )


def test_version_4_names_what_differs_from_the_name_before() -> None:
    long = b"docs/" + b"l" * 300
    data = index(
        4,
        entry(b"\x00docs/a.md\0"),
        entry(b"\x04b.md\0"),  # 4 bytes less, then the rest
        entry(b"\x04" + b"l" * 300 + b"\0"),
        entry(b"\x81\x2c" + b"z\0"),  # 300 = ((1 + 1) << 7) + 44: a second byte begins where one byte ends
        entry(b"\x06src/a.py\0"),
    )
    assert names_in(data) == [b"docs/a.md", b"docs/b.md", long, b"docs/z", b"src/a.py"]


def test_a_number_that_never_ends_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="more than a name has"):
        names_in(index(4, entry(b"\xff" * 100 + b"\0")))


@pytest.mark.parametrize("version", [1, 5])
def test_other_versions_are_no_names(version: int) -> None:
    with pytest.raises(ValueError, match="no index of git"):
        names_in(index(version, entry(b"a\0")))
