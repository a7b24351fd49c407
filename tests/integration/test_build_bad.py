"""Sources that are too big or broken end in a note on their node, within bounds of memory."""

from __future__ import annotations

import os
import stat
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from metatree_memory_tools import build_tree
from metatree_memory_tools.build import _scan as scanning

from metatree import search

pytestmark = pytest.mark.integration


@contextmanager
def peak_below(most: int) -> Iterator[None]:
    """Fail when the block has more bytes at once."""
    tracemalloc.start()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < most, f"{peak:,} bytes"


@pytest.mark.parametrize("alone", [False, True])
def test_a_line_of_a_hundred_megabytes(tmp_path: Path, alone: bool) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    with (folder / "one.log").open("wb") as stream:
        for _ in range(100):
            stream.write(b"word " * 200_000)
    (folder / "other.txt").write_text("It rained in Oslo.\n")
    with peak_below(30_000_000):
        tree = build_tree(
            *([folder / "one.log", folder / "other.txt"] if alone else [folder]), out=tmp_path / "t"
        )
    with tree:
        note = "too large to be read (100.0 MB, the limit is 2.0 MB)"
        assert tree.get("one.log").attributes["note"] == note and note in tree.get("one.log").description
        assert not tree.get("one.log").has_content and dict(tree.omissions()) == {"one.log": note}
        assert "rained" in search("Where did it rain?", tree=tree, sure=0.1).answer
        assert not tree.stale()


class Entry:
    """What `os.scandir` yields for a small file."""

    def __init__(self, name: bytes) -> None:
        self.name = name

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        return os.stat_result((stat.S_IFREG | 0o644, 1, 1, 1, 0, 0, 5, 1, 1, 1), {"st_mtime_ns": 1})


def test_an_endless_folder_is_cut_in_flat_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def scandir(path: bytes) -> Iterator[Iterator[Any]]:
        yield (Entry(b"%07d.txt" % (number * 7919 % 200_003)) for number in range(200_000))

    monkeypatch.setattr(os, "scandir", scandir)
    monkeypatch.setattr(scanning, "MAX_ENTRIES", 1_000)
    seen: list[int] = []
    with peak_below(4_000_000):
        found = scanning.scan(tmp_path, progress=lambda done, total, path: seen.append(done))
    assert list(found.files)[:2] == ["0000000.txt", "0000001.txt"] and len(found.files) == 1_000
    assert "200,000 files" in found.notes["."] and len(seen) == 200


def test_a_cut_folder_says_so_on_its_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanning, "MAX_ENTRIES", 10)
    for number in range(25):
        (tmp_path / "app" / "many").mkdir(parents=True, exist_ok=True)
        (tmp_path / "app" / "many" / f"{number:02}.txt").write_text(f"Text number {number}.")
    note = "holds 25 files and folders: the first 10 by name are in the tree"
    with build_tree(tmp_path / "app") as tree:
        assert tree.get("many").attributes["note"] == note and note in tree.get("many").description
        assert tree.child_count("many") == 10 and tree.omissions() == [("many/…", note)]
        assert not tree.stale()
    with build_tree(tmp_path / "app", tmp_path / "app" / "many", out=tmp_path / "two") as tree:
        assert tree.get("many").attributes["note"] == tree.get("app/many").attributes["note"] == note


def test_a_file_alone_whose_name_is_no_text(tmp_path: Path) -> None:
    place = os.fsencode(tmp_path) + b"/caf\xe9.md"
    with open(place, "wb") as stream:  # noqa: PTH123
        stream.write(b"# Caf\xe9\n\n## Hours\n\nWe open at nine.\n")
    with build_tree(os.fsdecode(place), out=tmp_path / "t") as tree:
        (top,) = tree.children()
        assert top.title == "caf\\xe9.md"
        assert "nine" in search("At which hours do we open?", tree=tree).answer
        found = tree.file_of(top)
        assert found is not None and found.read_bytes().startswith(b"# Caf")
        tree.refresh()
        assert not tree.stale()


def test_what_is_neither_file_nor_folder_is_a_note(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "a.txt").write_text("words")
    with build_tree(tmp_path / "pipe", tmp_path / "a.txt", out=tmp_path / "t") as tree:
        assert "neither a file nor a folder" in tree.get("pipe").attributes["note"]
        assert tree.content("a.txt") == "words"


def test_a_file_alone_that_a_link_leads_to_is_read_and_one_that_leads_nowhere_later_is_a_note(
    tmp_path: Path,
) -> None:
    (tmp_path / "real.txt").write_text("words")
    (tmp_path / "link.txt").symlink_to("real.txt")
    (tmp_path / "loop").symlink_to("loop")
    with build_tree(tmp_path / "link.txt", out=tmp_path / "t") as tree:
        assert tree.content("real.txt") == "words", "kept by where it is"
        (tmp_path / "real.txt").unlink()
        (tmp_path / "real.txt").symlink_to("loop")
        tree.refresh()
        assert "is a link" in tree.get("real.txt").attributes["note"]
