"""Archives whose list of members alone would fill the memory."""

import io
import struct
import zipfile

import pytest

from metatree._util import zips


def archive(members: int) -> bytearray:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as packed:
        for number in range(members):
            packed.writestr(zipfile.ZipInfo(f"{number}.txt"), b"")
    return bytearray(written.getvalue())


def test_an_archive_that_lists_too_many_members_is_not_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    data = archive(200)
    assert len(zips.open_archive(io.BytesIO(data)).namelist()) == 200
    monkeypatch.setattr(zips, "_MOST_LIST_BYTES", 5_000)
    with pytest.raises(zips.TooManyMembers):
        zips.open_archive(io.BytesIO(data))


def test_the_end_of_a_large_archive_counts_whatever_the_one_behind_it_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = archive(70_000)
    at = data.rindex(b"PK\x05\x06")
    assert data[at - 20 : at - 16] == b"PK\x06\x07"
    struct.pack_into("<I", data, at + 12, 500)
    assert len(zips.open_archive(io.BytesIO(data)).namelist()) == 70_000
    monkeypatch.setattr(zips, "_MOST_LIST_BYTES", 1_000_000)
    with pytest.raises(zips.TooManyMembers):
        zips.open_archive(io.BytesIO(data))


@pytest.mark.parametrize("data", [b"", b"PK\x05\x06", b"PK\x06\x07" + b"\0" * 16 + b"PK\x05\x06" + b"\0" * 8])
def test_what_is_no_archive_is_none(data: bytes) -> None:
    with pytest.raises(zipfile.BadZipFile):
        zips.open_archive(io.BytesIO(data))
