"""Real file systems that are full or mounted read-only, and stores that vanish: what is said is so, nothing is lost."""

import os
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from metatree_agents.cli._main import run
from metatree_memory_tools import build_tree

from metatree import Tree, search
from metatree.errors import MetatreeError, StorageFull, StoreReplaced, UserError
from metatree.notes.notes import memories, remember

pytestmark = pytest.mark.integration

Mount = Callable[[str], Path]
READS = (
    ["ask", "When are parcels sent?"],
    ["find", "refunds"],
    ["files", "The cart takes too many items"],
    ["show"],
    ["runs"],
    ["trace"],
    ["memories"],
    ["show", "--omitted"],
)
TEXTS = {
    "guide.md": (
        "# Guide\n\n## Refunds\n\nRefunds are paid within 14 days.\n\n## Shipping\n\nParcels leave on Mondays.\n"
    ),
    "cart.py": 'class Cart:\n    """Takes at most 50 items."""\n\n    def add(self, name):\n        return name\n',
}


@pytest.fixture
def mount(tmp_path: Path) -> Iterator[Mount]:
    """Mount small file systems in memory, with a project on each."""
    made: list[Path] = []

    def mounted(size: str) -> Path:
        place = tmp_path / f"disk{len(made)}"
        place.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"a file system cannot be mounted here: {done.stderr.strip()}")
        made.append(place)
        for name, text in TEXTS.items():
            (place / name).write_text(text)
        return place

    if shutil.which("mount") is None or os.name != "posix":
        pytest.skip("there is no mount here")
    yield mounted
    for place in made:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.fixture(params=["tmpfs", "ext4"])
def disk(request: pytest.FixtureRequest, tmp_path: Path, mount: Mount) -> Iterator[Path]:
    """A file system of 8 MB, in memory or in a file whose blocks are smaller than those of memory."""
    if request.param == "tmpfs":
        yield mount("8m")
        return
    place, image = tmp_path / "ext4", tmp_path / "image"
    place.mkdir()
    with image.open("wb") as stream:
        stream.truncate(8 << 20)
    for command in (
        ["mkfs.ext4", "-q", "-F", "-m", "0", "-b", "1024", str(image)],
        ["mount", "-o", "loop", str(image), str(place)],
    ):
        if shutil.which(command[0]) is None:
            pytest.skip(f"there is no {command[0]} here")
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"an ext4 image cannot be mounted here: {done.stderr.strip()}")
    for name, text in TEXTS.items():
        (place / name).write_text(text)
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def make_read_only(place: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(place)], check=True)


def fill(place: Path, *, but: int = 0) -> Path:
    """Write until nothing more can be written, but for so many bytes; return the file to delete."""
    filler = place / "filler"
    with filler.open("wb", buffering=0) as stream:
        try:
            while True:
                stream.write(bytes(4096))
        except OSError:
            stream.truncate(max(0, stream.tell() - but))
    return filler


def run_command(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    code = run(arguments)
    output = capsys.readouterr()
    return code, output.out + output.err


WRITES = (
    ["build", "."],
    ["ask", "When do parcels leave?"],
    ["find", "refunds"],
    ["remember", "We are closed on Sundays"],
)


@pytest.mark.parametrize("command", WRITES, ids=lambda command: command[0])
def test_a_full_disk_is_called_full_before_there_is_a_tree(
    mount: Mount, command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place = mount("4m")
    monkeypatch.chdir(place)
    filler = fill(place)
    code, text = run_command(capsys, *command)
    assert code == 5
    assert "is full (0 bytes free); make room there" in text and str(place) in text
    assert "damaged" not in text and "under way" not in text
    filler.unlink()
    assert run_command(capsys, *command)[0] == 0
    assert (place / ".metatree" / ".gitignore").read_text() == "*\n"


@pytest.mark.parametrize("command", WRITES, ids=lambda command: command[0])
def test_a_tree_that_did_not_fit_is_whole_when_there_is_room(
    disk: Path, command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(disk)
    codes = set()
    for but in range(120_000, 1_000_000, 120_000):
        shutil.rmtree(".metatree", ignore_errors=True)
        filler = fill(disk, but=but)
        code, text = run_command(capsys, *command)
        codes.add(code)
        assert code in (0, 5) and "damaged" not in text, (but, text)
        assert code == 0 or ("is full (" in text and "free); make room there" in text), (but, text)
        filler.unlink()
        code, text = run_command(capsys, *command)
        assert code == 0 and "damaged" not in text, (but, text)
        with Tree.open(disk) as tree:
            tree.index.check()
            tree.memory.check()
    assert codes == {0, 5}


def serves(place: Path) -> tuple[int, str]:
    """Start a server, and stop it as soon as it listens; return its code and what it said."""
    command = [sys.executable, "-c", "from metatree_agents.cli import main; main()", "serve", "--port", "0"]
    with (
        (place.parent / "said").open("w+") as said,
        subprocess.Popen(command, cwd=place, stdout=said, stderr=subprocess.STDOUT) as server,
    ):
        while server.poll() is None and "listening on" not in (place.parent / "said").read_text():
            time.sleep(0.05)
        server.terminate()
    return server.returncode, (place.parent / "said").read_text()


@pytest.mark.parametrize("but", [250_000, 900_000, 1_200_000])
def test_a_service_that_did_not_fit_starts_when_there_is_room(disk: Path, but: int) -> None:
    filler = fill(disk, but=but)
    code, text = serves(disk)
    assert code in (0, 5) and "damaged" not in text, text
    assert code == 0 or "is full (" in text, text
    assert code or but > 250_000
    assert ".new" not in text, "a name that nobody knows"
    filler.unlink()
    if code:
        assert serves(disk)[0] == 0
    with closing(sqlite3.connect(disk / ".metatree" / "service.db")) as database:
        assert database.execute("PRAGMA quick_check").fetchall() == [("ok",)]


@pytest.mark.parametrize("but", [0, 40_000, 100_000, 200_000, 300_000])
def test_nothing_is_lost_when_a_disk_fills_up(
    mount: Mount, but: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place = mount("4m")
    monkeypatch.chdir(place)
    assert run_command(capsys, "ask", "When are refunds paid?", "--run", "first")[0] == 0
    assert run_command(capsys, "find", "refunds", "--run", "cut", "--max-calls", "1")[0] in (0, 3)
    assert run_command(capsys, "remember", "We are closed on Sundays")[0] == 0
    (place / "cart.py").write_text(TEXTS["cart.py"] * 20)
    filler = fill(place, but=but)
    commands = [*WRITES[:3], ["remember", "The shop has a cat"], ["resume", "cut"]]
    failed = []
    for command in commands:
        code, text = run_command(capsys, *command)
        if code not in (0, 1, 3):
            failed.append(command)
            assert code == 5 and "is full (" in text, text
            assert "damaged" not in text and "under way" not in text, text
    assert but or len(failed) == len(commands)
    filler.unlink()
    for command in failed:
        assert run_command(capsys, *command)[0] in (0, 3), command
    assert run_command(capsys, "trace", "first")[0] == 0
    with Tree.open(place) as tree:
        assert [node.title for node in memories(tree)] == ["The shop has a cat", "We are closed on Sundays"]
        assert len(tree) > 8
        tree.index.check()
        tree.memory.check()


def test_a_disk_that_fills_up_while_a_tree_is_open_keeps_what_was_acknowledged(mount: Mount) -> None:
    place = mount("4m")
    kept = []
    with build_tree(place) as tree:
        filler = fill(place, but=200_000)
        with pytest.raises(StorageFull, match="is full") as caught:
            for number in range(1000):
                kept.append(remember(tree, f"Shelf {number} holds {'paper ' * 200}", evidence=False).node.id)
        assert kept and caught.value.free_bytes is not None and caught.value.free_bytes < 1 << 20
        filler.unlink()
        kept.append(remember(tree, "Now there is room again", evidence=False).node.id)
    with Tree.open(place) as tree:
        assert {node.id for node in memories(tree)} == set(kept)


def test_a_tree_on_a_read_only_mount_is_searched(
    mount: Mount, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place = mount("8m")
    monkeypatch.chdir(place)
    assert run_command(capsys, "ask", "When are refunds paid?")[0] == 0
    assert run_command(capsys, "remember", "Parcels are sent once a week")[0] == 0
    assert run_command(capsys, "find", "refunds")[0] == 0
    make_read_only(place)
    for command in READS:
        code, text = run_command(capsys, *command)
        assert code in ((0,) if command[-1] != "--omitted" else (0, 1)), text
        alone = command[0] in ("ask", "find", "files")
        assert text.count("this run is kept in memory, and cannot be resumed later") == alone, text
    assert run_command(capsys, "questions")[0] == 1
    code, text = run_command(capsys, "find", "refunds", "items", "-k", "50", "--max-calls", "1")
    assert code == 3 and "metatree resume" not in text
    for command in (["build", "."], ["remember", "Nobody reads this"], ["forget", "memories:"]):
        code, text = run_command(capsys, *command)
        assert code == 2 and "mounted read-only" in text and "--tree" in text, text


def test_a_tree_that_is_behind_on_a_read_only_mount_is_searched_as_it_is(
    mount: Mount, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place = mount("8m")
    monkeypatch.chdir(place)
    build_tree(place).close()  # without an index of its words, and without a memory that was ever written
    (place / "more.md").write_text("# More\n\nGifts are wrapped.\n")
    make_read_only(place)
    code, text = run_command(capsys, "ask", "When are refunds paid?")
    assert code == 0 and "within 14 days" in text
    assert "the source has changed since the tree was built, and the tree can only be read" in text
    with Tree.open(place) as tree:
        assert search("When are refunds paid?", tree=tree).answers
        with pytest.raises(UserError, match="mounted read-only"):
            remember(tree, "no")


def test_a_read_only_source_without_a_tree_names_another_place(
    mount: Mount, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place = mount("1m")
    monkeypatch.chdir(place)
    make_read_only(place)
    code, text = run_command(capsys, "ask", "When are refunds paid?")
    assert code == 2 and "mounted read-only" in text and "--tree" in text
    code, text = run_command(
        capsys, "ask", "When are refunds paid?", "--source", ".", "--tree", str(tmp_path / "tree")
    )
    assert code == 0 and "within 14 days" in text


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in TEXTS.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_what_is_said_to_a_tree_that_was_deleted_is_not_acknowledged(project: Path) -> None:
    with build_tree(project) as tree:
        remember(tree, "We are closed on Sundays", evidence=False)
        shutil.rmtree(project / ".metatree")
        with pytest.raises(StoreReplaced, match=r"memory\.db was deleted or moved while it was in use"):
            remember(tree, "The shop has a cat", evidence=False)
        with pytest.raises(StoreReplaced, match=r"\.metatree was deleted or moved"):
            tree.refresh()
        with pytest.raises(MetatreeError, match="deleted or moved"):
            search("When are refunds paid?", tree=tree)


def test_a_store_that_was_replaced_is_not_written_to(project: Path) -> None:
    build_tree(project).close()
    with Tree.open(project) as tree:
        copy = project / ".metatree" / "copy.db"
        shutil.copy(project / ".metatree" / "memory.db", copy)
        copy.replace(project / ".metatree" / "memory.db")
        with pytest.raises(StoreReplaced, match=r"memory\.db was replaced by another file"):
            remember(tree, "The shop has a cat", evidence=False)


def test_a_tree_deleted_while_it_is_refreshed_is_called_deleted(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(project)
    assert run_command(capsys, "build", ".")[0] == 0
    (project / "more.md").write_text("# More\n\nGifts are wrapped.\n")
    stale = Tree.stale

    def deleted_meanwhile(tree: Tree) -> bool:
        changed = stale(tree)
        shutil.rmtree(project / ".metatree")
        return changed

    monkeypatch.setattr(Tree, "stale", deleted_meanwhile)
    code, text = run_command(capsys, "ask", "Are gifts wrapped?")
    assert (
        code == 5 and ".metatree was deleted or moved while it was in use" in text and "one file" not in text
    )
    monkeypatch.setattr(Tree, "stale", stale)
    assert run_command(capsys, "find", "gifts")[0] == 0
