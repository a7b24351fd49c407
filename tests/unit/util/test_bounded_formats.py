"""Zips, TOML and JSON that unpack or parse to far more than they are."""

from __future__ import annotations

import tomllib
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from metatree_agents.hosts import _json_edits, _toml_edits
from metatree_agents.service.database.backup import verified
from metatree_memory_tools.reading import bounded_yaml
from metatree_memory_tools.reading.bounded_yaml import load_yaml

from metatree import errors
from metatree._util import toml_text
from metatree._util.zips import open_member, read_member
from metatree.notes import erasure
from metatree.notes.archive import _reader, _writer

MB = 1_000_000


def bomb(file: Path, members: tuple[str, ...], method: int, size: int = 50 * MB) -> Path:
    """Write a zip whose members unpack to many zeros and say that they unpack to 500 bytes."""
    with zipfile.ZipFile(file, "w", method) as archive:
        for name in members:
            with archive.open(name, "w") as out:
                for _ in range(size // MB):
                    out.write(bytes(MB))
        for info in archive.filelist:
            info.file_size = 500
    return file


@contextmanager
def below(megabytes: int) -> Iterator[None]:
    """Fail if more memory is taken meanwhile."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < megabytes * MB
    finally:
        tracemalloc.stop()


METHODS = pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])


def imported(file: Path) -> None:
    with _reader.opened(file) as archive:
        list(archive.rows("notes"))


def exported(file: Path) -> None:
    _writer._check(file)


@METHODS
@pytest.mark.parametrize("read", [imported, exported, verified])
def test_no_member_takes_more_than_its_bound(
    read: Callable[[Path], object], method: int, tmp_path: Path
) -> None:
    file = bomb(tmp_path / "export.metatree", ("manifest.json", "manifest.sha256"), method)
    assert file.stat().st_size < MB
    with below(20), pytest.raises(errors.MetatreeError):
        read(file)


@METHODS
def test_a_bomb_beside_a_tree_stays_packed(method: int, tmp_path: Path) -> None:
    file = bomb(tmp_path / "old.zip", ("a", "b"), method)
    with below(20):
        assert erasure._has_bytes(file, ["secret"], erasure._Room()) is not True


def test_what_deflate_packed_is_read(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a", b"text" * 1_000)
        archive.writestr("b", b"x" * 30, zipfile.ZIP_LZMA)
    with zipfile.ZipFile(tmp_path / "x.zip") as archive:
        assert read_member(archive, "a", 4_000) == b"text" * 1_000
        with pytest.raises(zipfile.BadZipFile, match="more than 3,999 bytes"):
            read_member(archive, "a", 3_999)
        with pytest.raises(zipfile.BadZipFile, match="another method"):
            open_member(archive, "b")


@pytest.mark.parametrize("part", ["a", '"a"', "'a b'", "a "])
@pytest.mark.parametrize("form", ["{}b = 1", "x = {{ {}b = 1 }}", "[{}b]\nc = 1"])
def test_a_key_of_many_parts_is_refused_before_it_is_parsed(part: str, form: str) -> None:
    text = "x0 = 1\n" + form.format(f"{part}." * 30_000)
    with below(20), pytest.raises(tomllib.TOMLDecodeError, match=r"more than 100 parts \(at line 2"):
        toml_text.loads(text)
    with below(20), pytest.raises(ValueError, match="100 parts"):
        _toml_edits.parsed(text)


def test_a_number_of_too_many_digits_is_no_toml() -> None:
    with pytest.raises(tomllib.TOMLDecodeError, match="digits"):
        toml_text.loads(f"a = {'9' * 5_000}")


def test_other_toml_is_parsed() -> None:
    text = "a.b.c = 1\nd = 'e.f.g'\n[h.\"i.j\"]\nk = 1.5\n"
    assert toml_text.loads(text) == tomllib.loads(text)
    long = "x = '" + "a" * 300_000 + "'\n" + "y = " + "1" * 3 + "\n"
    assert toml_text.loads(long) == tomllib.loads(long)


def test_settings_of_millions_of_values_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_json_edits, "_MOST_TOKENS", 10_000)
    with below(10), pytest.raises(ValueError, match="more than 10,000 values"):
        _json_edits.parsed("[" + "1," * 300_000 + "1]")
    assert _json_edits.parsed("[" + "1," * 4_000 + "1]") == [1] * 4_001


@pytest.mark.parametrize("number", ["1:" * 5_000 + "1", "0x" + "f" * 5_000, "1" * 5_000, "1." + "0" * 5_000])
def test_a_number_of_yaml_is_bounded(number: str) -> None:
    yaml = pytest.importorskip("yaml")
    with pytest.raises(yaml.YAMLError, match="more than 200 signs"):
        load_yaml(f"a: 1:30\nb: {number}\n")
    assert load_yaml("a: 1:30\nb: 0x1f\nc: 1.5\nd: '" + "1" * 5_000 + "'")["b"] == 31


def test_values_of_yaml_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    yaml = pytest.importorskip("yaml")
    monkeypatch.setattr(bounded_yaml, "MOST_NODES", 1_000)
    with below(20), pytest.raises(yaml.YAMLError, match="more than 1,000 values"):
        load_yaml("[" + "{}," * 510 + "]")
    assert load_yaml("[" + "'a b c'," * 990 + "]") == ["a b c"] * 990


@pytest.mark.parametrize("top", ["*a8", "{x: *a8}", "&b [*b]"])
def test_aliases_of_yaml_are_bounded(top: str) -> None:
    yaml = pytest.importorskip("yaml")
    ten = "\n".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9))
    with pytest.raises(yaml.YAMLError, match="aliases bring more than 1,000,000 values"):
        load_yaml(f"a0: &a0 x\n{ten}\nname: {top}\n", most_values=1_000_000)
    assert load_yaml("a: &a [1, {b: 2}]\nc: [*a, *a]") == {"a": [1, {"b": 2}], "c": [[1, {"b": 2}]] * 2}


@pytest.mark.parametrize("text", ["a = {}", "[[b]]\na = [1, {{ a = {} }}]"])
def test_a_number_of_toml_fits_into_64_bits(text: str) -> None:
    with pytest.raises(tomllib.TOMLDecodeError, match="'a' does not fit into 64 bits"):
        toml_text.loads(text.format("0x" + "f" * 5_000))
    assert toml_text.loads(text.format("0xffff"))
