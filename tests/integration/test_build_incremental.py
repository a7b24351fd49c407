"""Only what changed is read and written again, and the result is what a first build would give."""

import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from metatree_memory_tools import build_tree
from metatree_memory_tools.build import _pool, build
from metatree_memory_tools.build import _read_file as reading
from metatree_memory_tools.build._scan import ScannedFile

from metatree.errors import StaleSource, TransientError, UserError
from metatree.node import Node
from metatree.trees.layer import Layer
from metatree.trees.tree import Tree

pytestmark = pytest.mark.integration


def make(folder: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


def settle(folder: Path) -> None:
    """Give all files a time that lies back; a file that is written while a build goes on is looked at again."""
    for path in folder.rglob("*"):
        if path.is_file():
            os.utime(path, ns=(10**18, 10**18 + 7))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "app"
    make(
        folder,
        {
            "README.md": "# App\n\nDoes it.\n\n## Use\n\nRun.\n\n## Test\n\nTry.\n",
            "pkg/__init__.py": '"""The package."""\nfrom .a import f\n',
            "pkg/a.py": "import os\n\n\ndef f():\n    'Do f.'\n\n\ndef g():\n    'Do g.'\n",
            "pkg/b.py": "from pkg import f\n\n\nclass B:\n    def m(self): 'Go.'\n    def n(self): f()\n",
            "pkg/data/x.txt": "some words\n",
        },
    )
    return folder


def dump(tree: Tree) -> list[Any]:
    """Everything that a tree says, in order."""
    return [
        (depth, node, tree.content(node) if node.has_content else None, tree.links(node))
        for depth, node in tree.walk()
    ] + tree.omissions()


def same_as_fresh(source: Path, tree: Tree) -> None:
    """Whether a tree that was brought up to date is one that was built at once."""
    fresh_at = source.parent / "fresh"
    shutil.rmtree(fresh_at, ignore_errors=True)
    with build_tree(source, out=fresh_at) as fresh:
        for mine, theirs in zip(dump(tree), dump(fresh), strict=False):
            assert mine == theirs
        assert len(dump(tree)) == len(dump(fresh))


def changed_ids(tree: Tree, since: int) -> dict[str, bool]:
    return {node_id: there for _, node_id, there in tree.changes(since)}


def test_an_unchanged_tree_is_not_written(source: Path) -> None:
    settle(source)
    with build_tree(source) as tree:
        sequence = tree.sequence
        pages = tree.index.version()
        assert not tree.stale()
        tree.refresh()
        assert tree.sequence == sequence and tree.index.version() == pages


def test_only_the_changed_definition_is_a_change(source: Path) -> None:
    with build_tree(source) as tree:
        since = tree.sequence
        make(
            source,
            {"pkg/a.py": "import os\nX = 1\n\n\ndef f():\n    'Do f.'\n\n\ndef g():\n    'Do g well.'\n"},
        )
        assert tree.stale()
        tree.refresh()
        # `f` moved down, which is no change; the line X = 1 makes a node of its own.
        assert changed_ids(tree, since) == {"pkg/a.py::<module>": True, "pkg/a.py::g": True}
        assert tree.content("pkg/a.py::f") == "def f():\n    'Do f.'"
        assert tree.get("pkg/a.py::f").attributes["start_line"] == 5
        same_as_fresh(source, tree)


def test_a_touched_file_is_no_change(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settle(source)
    with build_tree(source) as tree:
        os.utime(source / "pkg" / "a.py", ns=(1, 1))
        since, read = tree.sequence, list[str]()

        def read_file(root: Path, found: ScannedFile, *args: Any, **given: Any) -> Any:
            read.append(found.path)
            return reading.read_file(root, found, *args, **given)

        monkeypatch.setattr(_pool, "read_file", read_file)
        tree.refresh()
        tree.refresh()
        assert read == ["pkg/a.py"] and changed_ids(tree, since) == {}


def test_the_same_size_and_time_but_other_bytes_right_after_the_build_are_seen(source: Path) -> None:
    """A file may change within one tick of the clock of the file system."""
    path = source / "pkg" / "a.py"
    with build_tree(source) as tree:
        for number in range(5):
            path.write_text(f"def f():\n    return {number}\n")
            tree.refresh()
            state = path.stat()
            path.write_text(f"def f():\n    return {number + 5}\n")
            os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
            assert tree.stale()
            tree.refresh()
            assert f"return {number + 5}" in tree.content("pkg/a.py::f")


def test_an_edit_that_keeps_size_and_time_is_seen_by_the_time_of_its_status(source: Path) -> None:
    settle(source)
    path = source / "pkg" / "a.py"
    with build_tree(source) as tree:
        path.write_text(path.read_text().replace("Do f.", "Do F!"))
        os.utime(path, ns=(10**18, 10**18 + 7))
        with pytest.raises(StaleSource):
            tree.content("pkg/a.py::f")
        assert tree.stale()
        tree.refresh()
        assert "Do F!" in tree.content("pkg/a.py::f") and not tree.stale()


def test_a_tree_without_recorded_times_of_status_records_them_without_reading(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one is that was built before these were recorded."""
    settle(source)
    with build_tree(source) as tree:
        tree.index.execute("UPDATE file SET ctime_ns = -1")
        assert not tree.stale()
        monkeypatch.setattr(_pool, "read_file", None)
        tree.refresh()
        assert not tree.index.rows("SELECT path FROM file WHERE ctime_ns = -1")
        assert tree.content("pkg/a.py::f")


def test_a_deleted_file_takes_its_nodes_links_and_folder_along(source: Path) -> None:
    with build_tree(source) as tree:
        since = tree.sequence
        shutil.rmtree(source / "pkg" / "data")
        (source / "pkg" / "a.py").unlink()
        tree.refresh()
        gone = {node_id for node_id, there in changed_ids(tree, since).items() if not there}
        assert gone == {"pkg/data", "pkg/data/x.txt", "pkg/a.py", "pkg/a.py::f", "pkg/a.py::g"}
        assert tree.links("pkg/b.py") == [("imports", "pkg/__init__.py")]
        same_as_fresh(source, tree)


def test_imports_follow_modules_that_come_and_go(source: Path) -> None:
    with build_tree(source) as tree:
        assert tree.links("pkg/b.py") == [("imports", "pkg/a.py")]
        (source / "pkg" / "a.py").rename(source / "pkg" / "a2.py")
        tree.refresh()
        assert tree.links("pkg/b.py") == [("imports", "pkg/__init__.py")]
        make(source, {"pkg/__init__.py": "from .a2 import f\n"})
        tree.refresh()
        assert tree.links("pkg/b.py") == [("imports", "pkg/a2.py")]
        same_as_fresh(source, tree)


def test_a_file_that_becomes_a_folder_and_back(source: Path) -> None:
    with build_tree(source) as tree:
        (source / "pkg" / "a.py").unlink()
        make(source, {"pkg/a.py/inner.py": "def q(): 'x'\ndef r(): 'y'\n"})
        tree.refresh()
        assert [node.id for node in tree.children("pkg/a.py")] == ["pkg/a.py/inner.py"]
        same_as_fresh(source, tree)
        shutil.rmtree(source / "pkg" / "a.py")
        make(source, {"pkg/a.py": "def q(): 'x'\n"})
        tree.refresh()
        assert "pkg/a.py/inner.py" not in tree and tree.get("pkg/a.py").kind == tree.get("pkg/b.py").kind
        same_as_fresh(source, tree)


def test_any_series_of_edits_ends_where_a_first_build_ends(source: Path) -> None:
    rng = random.Random(11)
    texts = [
        "def f(): 'One.'\ndef g(): 'Two.'\n", "x = 1\n\n\nclass A:\n    y = 2\n    def m(self): 'Three.'\n", "",
        "def f(:\n", "# A\n\n## B\n\ntext\n\n## C\n", "from pkg.a import f\nimport pkg.b\n", "\0binary",
        "def g(): 'Two.'\n\n\ndef f(): 'One.'\n",
    ]  # fmt: skip
    with build_tree(source) as tree:
        for round_ in range(60):
            for _ in range(rng.randrange(1, 4)):
                files = [
                    path for path in source.rglob("*") if path.is_file() and ".metatree" not in path.parts
                ]
                action = rng.randrange(4)
                if action == 0 and files:
                    rng.choice(files).unlink()
                elif action == 1 and files:
                    target = (
                        source
                        / rng.choice(["", "pkg", "new", "pkg/data"])
                        / f"r{round_}.{rng.choice(['py', 'md'])}"
                    )
                    target.parent.mkdir(exist_ok=True)
                    rng.choice(files).rename(target)
                else:
                    name = rng.choice(
                        ["pkg/a.py", "pkg/b.py", "pkg/c.md", "top.py", "new/deep/z.py", "pkg/__init__.py"]
                    )
                    make(source, {name: rng.choice(texts)})
            tree.refresh()
            assert not tree.stale()
            same_as_fresh(source, tree)


def test_an_index_that_follows_changes_has_what_the_tree_has(source: Path) -> None:
    rng = random.Random(3)
    index, token = {}, 0
    with build_tree(source) as tree:
        for _ in range(25):
            name = rng.choice(["pkg/a.py", "pkg/b.py", "pkg/c.py"])
            if rng.random() < 0.3:
                (source / name).unlink(missing_ok=True)
            else:
                names = rng.sample("fghij", 3)
                make(source, {name: "\n".join(f"def {n}(): {rng.randrange(9)}\n" for n in names)})
            tree.refresh()
            for _, node_id, there in tree.changes(token):
                if there:
                    index[node_id] = tree.get(node_id).digest
                else:
                    index.pop(node_id, None)
            token = tree.sequence
            assert index == {node.id: node.digest for _, node in tree.walk()}


def test_content_of_a_file_that_changed_is_refused(source: Path) -> None:
    with build_tree(source) as tree:
        assert tree.content("pkg/a.py::g") == "def g():\n    'Do g.'"
        os.utime(source / "pkg" / "a.py")
        assert tree.content("pkg/a.py::g") == "def g():\n    'Do g.'"
        with (source / "pkg" / "a.py").open("a") as stream:
            stream.write("\n")
        with pytest.raises(StaleSource, match="refresh"):
            tree.content("pkg/a.py::g")
        (source / "pkg" / "a.py").unlink()
        with pytest.raises(StaleSource):
            tree.content("pkg/a.py::g")


def test_progress_is_shown(source: Path) -> None:
    settle(source)
    said = []
    build_tree(source, progress=lambda *args: said.append(args)).close()
    assert [done for done, _, _ in said] == list(range(6)) and {total for _, total, _ in said} == {5}
    said.clear()
    build_tree(source, progress=lambda *args: said.append(args)).close()
    assert [total for _, total, _ in said if total] == []


def test_stale_sees_what_came_went_and_changed(source: Path) -> None:
    time.sleep(0.1)  # the time of a file that was written just before it is read is not trusted
    with build_tree(source) as tree:
        assert not tree.stale()
        make(source, {"pkg/new.py": "x = 1\n"})
        assert tree.stale()
        tree.refresh()
        (source / "pkg" / "new.py").unlink()
        assert tree.stale()
        tree.refresh()
        os.utime(source / "pkg" / "a.py", ns=(5, 5))
        assert tree.stale()


CHILD = """
import sys, time
from metatree_memory_tools import build_tree
from metatree_memory_tools.build import _files as files_build
files_build._BATCH_FILES = 5
def progress(done, total, path):
    print(done, flush=True)
    time.sleep(0.002)
build_tree(sys.argv[1], progress=progress).close()
"""


def many_files(folder: Path, count: int = 60) -> None:
    make(
        folder, {f"pkg{n % 7}/m{n}.py": f"def f{n}(): 'Do {n}.'\n\n\ndef g{n}(): 'x'\n" for n in range(count)}
    )


def build_and_kill(source: Path, kill_at: int) -> None:
    """Start a build in another process, and kill that at a number of files."""
    with subprocess.Popen(
        [sys.executable, "-c", CHILD, str(source)], stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        for line in child.stdout:
            if int(line) >= kill_at:
                break
        os.kill(child.pid, signal.SIGKILL)


@pytest.mark.parametrize("kill_at", [0, 4, 6, 23, 41, 59])
def test_a_killed_build_is_completed_by_the_next(source: Path, kill_at: int) -> None:
    many_files(source)
    build_and_kill(source, kill_at)
    with Tree.open(source) as half:
        assert half.stale()
        walked = [node.id for _, node in half.walk()]
        assert len(walked) == len(half) == len(set(walked))
    with build_tree(source, wait_s=5) as tree:
        assert not tree.stale()
        same_as_fresh(source, tree)


def test_a_rebuild_that_is_killed_leaves_a_tree_that_can_be_used(source: Path) -> None:
    many_files(source)
    build_tree(source).close()
    for path in source.rglob("m*.py"):
        path.write_text(path.read_text() + "\n\ndef more(): 'y'\n")
    build_and_kill(source, 30)
    with Tree.open(source) as tree:
        for _, node in tree.walk():
            if node.source is not None:
                try:
                    assert tree.content(node)
                except StaleSource:
                    continue
        tree.refresh()
        same_as_fresh(source, tree)


def test_a_second_build_waits_for_the_first_or_says_so(source: Path) -> None:
    (source / ".metatree").mkdir()
    results: list[int] = []
    thread = threading.Thread(target=lambda: results.append(len(build_tree(source, wait_s=60))))
    with build.lock(source / ".metatree", 1):
        with pytest.raises(TransientError, match="another build"):
            build_tree(source, wait_s=0.2)
        thread.start()
        time.sleep(0.2)
        assert results == []
    thread.join()
    assert results[0] > 5


def test_several_processes_build_the_same_tree(source: Path) -> None:
    many_files(source, 30)
    running = [
        subprocess.Popen([sys.executable, "-c", CHILD, str(source)], stdout=subprocess.DEVNULL)
        for _ in range(4)
    ]
    assert [process.wait(120) for process in running] == [0] * 4
    with Tree.open(source) as tree:
        assert not tree.stale()
        same_as_fresh(source, tree)


def test_the_folder_of_the_tree_keeps_itself_out_of_git(source: Path) -> None:
    build_tree(source).close()
    assert (source / ".metatree" / ".gitignore").read_text() == "*\n"


def test_a_reader_of_another_version_reads_again(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with build_tree(source) as tree:
        assert Layer(tree.index).fact("building") is False
        monkeypatch.setattr("metatree_memory_tools.code.python.PythonCode.version", "other")
        assert tree.stale()
        tree.refresh()
        assert not tree.stale()


def test_a_tree_of_another_folder_is_not_replaced(source: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    make(other, {"b.py": "B = 1\n"})
    kept = tmp_path / "kept"
    build_tree(source, out=kept).close()
    for place in (kept, source / ".metatree"):
        build_tree(source, out=place).close()
        with pytest.raises(UserError, match=r"this tree is of .*, not of .*: put them .*--add.* or .*--tree"):
            build_tree(other, out=place)
        with Tree.open(place) as tree:
            assert tree.source_root == source and "b.py" not in tree
    (tmp_path / "link").symlink_to(source)
    build_tree(tmp_path / "link", out=kept).close()


def test_the_tree_of_a_folder_that_was_renamed_follows_it(source: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    with build_tree(source, out=kept) as tree:
        before = {node.id for _, node in tree.walk()}
        note = next(iter(sorted(before - {"."})))
        tree.add(Node(id="note", title="note", content="mind this"), note)
    moved = source.rename(tmp_path / "moved")
    with build_tree(moved, out=kept) as tree:
        assert tree.source_root == moved
        assert {node.id for _, node in tree.walk()} == {*before, "note"}
        assert tree.parent("note") == note
