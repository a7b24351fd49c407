"""Reading the files of a build in other processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from metatree_memory_tools import build_tree
from metatree_memory_tools.build import _files, _pool, _read_file, _scan
from metatree_memory_tools.memory_types import memory_types

from metatree import Tree, plugins
from metatree._util.process import python
from tests.documents import make_pdf

pytestmark = pytest.mark.integration

Started = list[subprocess.Popen[bytes]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of source code and text, with tables between them, which no worker reads, and others."""
    root = tmp_path / "source"
    for part in range(6):
        below = root / f"part_{part}"
        below.mkdir(parents=True)
        for number in range(20):
            (below / f"m{number:02}.py").write_text(
                f'"""Module {number} of {part}."""\n\n\ndef f{number}(a):\n    """Return {part}."""\n    return a\n'
            )
        (below / "notes.md").write_text(f"# Notes\n\nOn part {part}.\n\n## More\n\nMuch more.\n")
        (below / "table.csv").write_text("name,size\n" + "".join(f"n{n},{n}\n" for n in range(9)))
        (below / "messages.po").write_text(f'msgid "Part {part}"\nmsgstr "Teil {part}"\n')
        (below / "broken.py").write_bytes(b"def (:\n\xff\xfe\n")
    return root


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Started:
    """Build with two workers from ten files on; the workers that were started."""
    processes: Started = []
    start = _pool._start

    def counted() -> subprocess.Popen[bytes]:
        processes.append(start())
        return processes[-1]

    monkeypatch.setattr(_pool, "_start", counted)
    monkeypatch.setattr(_pool, "cores", lambda: 2)
    monkeypatch.setattr(_pool, "MIN_FILES", 10)
    monkeypatch.setattr(_pool, "_CHUNK_FILES", 7)
    return processes


def rows(tree: Tree) -> dict[str, list[Any]]:
    """All that a build writes of nodes and files, but for times."""
    store = tree.index
    return {
        table: store.rows(f"SELECT {columns} FROM {table} ORDER BY 1, 2, 3")
        for table, columns in (
            ("node", "id, parent, position, kind, title, description, digest"),
            ("file", "path, digest, reader, facts"),
            ("link", "*"),
        )
    }


def alone(folder: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Any]]:
    with monkeypatch.context() as patch:
        patch.setattr(_pool, "cores", lambda: 1)
        return rows(build_tree(folder, out=out))


def test_workers_read_what_one_process_reads(
    folder: Path, tmp_path: Path, started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = alone(folder, tmp_path / "one", monkeypatch)
    assert started == []
    seen: list[tuple[int, int, str]] = []
    here: list[str] = []

    def read(root: Path, file: Any, *args: Any, **kwargs: Any) -> Any:
        here.append(file.id)
        return _read_file.read_file(root, file, *args, **kwargs)

    monkeypatch.setattr(_pool, "read_file", read)
    tree = build_tree(folder, out=tmp_path / "two", progress=lambda *step: seen.append(step))
    assert here == [f"part_{part}/table.csv" for part in range(6)]
    assert len(started) == 2
    assert rows(tree) == expected
    assert len(expected["file"]) == 144
    assert [number for number, _, _ in seen] == list(range(145))
    assert all(process.returncode is not None for process in started)  # they end with the build


def test_the_largest_files_come_last_when_no_worker_is_there_any_more(
    folder: Path, tmp_path: Path, started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One document may take as much as all else together."""
    for name in ("part_0/a.pdf", "part_5/z.pdf"):
        (folder / name).write_bytes(make_pdf([[(12.0, "Tea.")]]) + b"%" + b"x" * 200_000)
    expected = alone(folder, tmp_path / "one", monkeypatch)
    started.clear()
    at_work: dict[str, int] = {}

    def read(root: Path, file: Any, *args: Any, **kwargs: Any) -> Any:
        at_work[file.id] = sum(process.poll() is None for process in started)
        return _read_file.read_file(root, file, *args, **kwargs)

    monkeypatch.setattr(_pool, "read_file", read)
    for module in (_pool, _files):
        monkeypatch.setattr(module, "HUGE_BYTES", 100_000)
    monkeypatch.setattr(_pool, "_CHUNK_BYTES", 50_000)
    assert rows(build_tree(folder, out=tmp_path / "two")) == expected
    assert [*at_work][-2:] == ["part_0/a.pdf", "part_5/z.pdf"] and len(started) == 2
    assert [at_work[name] for name in ("part_0/a.pdf", "part_5/z.pdf")] == [0, 0]
    assert at_work["part_0/table.csv"] > 0


@pytest.mark.parametrize("code", ["pass", "print('nonsense', flush=True)"])
def test_a_worker_that_ends_or_lies_loses_nothing(
    folder: Path, tmp_path: Path, started: Started, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    expected = alone(folder, tmp_path / "one", monkeypatch)
    pipe = subprocess.PIPE
    broken = [sys.executable, "-c", code]
    monkeypatch.setattr(_pool, "_start", lambda: subprocess.Popen(broken, stdin=pipe, stdout=pipe))
    assert rows(build_tree(folder, out=tmp_path / "two")) == expected


LIMITED = """
import os
from metatree_memory_tools.build import _pool
read_file = _pool.read_file
def read(root, file, *args, **kwargs):
    if file.path == "part_2/m03.py":
        {does}
    return read_file(root, file, *args, **kwargs)
_pool.read_file, _pool.LIMIT_S = read, 0.3
_pool.main()
"""


@pytest.mark.parametrize(
    ("does", "why"),
    [
        pytest.param("os._exit(1)", "not read: it ended the process that read it", id="ends"),
        pytest.param(
            "9 ** 9 ** 9",
            "not read: it takes more than 30 s",
            id="never ends",
            marks=pytest.mark.skipif(sys.platform == "win32", reason="no limit of the time of a process"),
        ),
    ],
)
@pytest.mark.parametrize("few", [False, True])
def test_a_file_that_ends_its_worker_is_left_out_alone(
    folder: Path,
    tmp_path: Path,
    started: Started,
    monkeypatch: pytest.MonkeyPatch,
    does: str,
    why: str,
    few: bool,
) -> None:
    expected = alone(folder, tmp_path / "one", monkeypatch)
    command = python(LIMITED.format(does=does))
    pipe = subprocess.PIPE
    monkeypatch.setattr(_pool, "_start", lambda: subprocess.Popen(command, stdin=pipe, stdout=pipe))
    if few:
        monkeypatch.setattr(_pool, "MIN_FILES", 1_000)
        monkeypatch.setattr(_pool, "_LARGE_BYTES", 0)
    with build_tree(folder, out=tmp_path / "two") as tree:
        assert dict(tree.omissions())["part_2/m03.py"] == why
        found = rows(tree)
    gone = {row[0] for row in expected["node"]} - {row[0] for row in found["node"]}
    assert gone == {"part_2/m03.py", "part_2/m03.py::f3"}


@pytest.mark.parametrize("name", ["a.js", "tool"])
def test_longer_code_is_parsed_by_a_worker_even_where_there_is_little(
    folder: Path, tmp_path: Path, started: Started, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(_pool, "MIN_FILES", 1_000)
    build_tree(folder, out=tmp_path / "one").close()
    assert started == []
    (folder / name).write_text("#!/usr/bin/env node\n" + "function pour(tea) { return tea }\n" * 200)
    with build_tree(folder, out=tmp_path / "two") as tree:
        assert len(started) == 1 and tree.get(name).attributes["language"] == "javascript"


def test_without_a_program_to_start_the_build_reads_by_itself(
    folder: Path, tmp_path: Path, started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = alone(folder, tmp_path / "one", monkeypatch)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "nothing"))
    assert rows(build_tree(folder, out=tmp_path / "two")) == expected
    assert started == []


def test_a_build_that_is_stopped_ends_its_workers(folder: Path, tmp_path: Path, started: Started) -> None:
    def stop(number: int, total: int, path: str) -> None:
        if number == 60:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_tree(folder, out=tmp_path / "tree", progress=stop)
    assert started
    assert all(process.returncode is not None for process in started)


def test_a_type_that_lives_in_this_process_is_asked_here(
    folder: Path, tmp_path: Path, started: Started
) -> None:
    markdown = plugins.load(plugins.MEMORY_TYPES, "markdown")
    plugins.register(plugins.MEMORY_TYPES, "markdown", markdown)
    try:
        build_tree(folder, out=tmp_path / "tree").close()
        assert started == []
        (folder / "long.js").write_text("function pour(tea) { return tea }\n" * 200)
        (folder / "long.md").write_text("# Tea\n\nThe harbour is in the south.\n" * 5_000)
        build_tree(folder, out=tmp_path / "other").close()
    finally:
        plugins.unregister(plugins.MEMORY_TYPES, "markdown")
    assert len(started) == 1, "code is of a type that every process has"


def test_a_build_that_is_stopped_starts_no_other_worker(
    folder: Path, tmp_path: Path, started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = python(LIMITED.format(does="import time; time.sleep(600)"))
    pipe = subprocess.PIPE

    def start() -> subprocess.Popen[bytes]:
        started.append(subprocess.Popen(command, stdin=pipe, stdout=pipe))
        return started[-1]

    monkeypatch.setattr(_pool, "_start", start)

    def stop(number: int, total: int, path: str) -> None:
        if number == 40:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_tree(folder, out=tmp_path / "tree", progress=stop)
    assert len(started) == 2
    assert all(process.returncode is not None for process in started)


def test_large_pages_are_read_one_after_the_other(
    folder: Path, started: Started, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each takes twenty times its size, and a worker would start a reader of documents of its own for it."""
    page = "<h1>The harbour</h1><p>It lies in the north.</p>" + "<p>Word after word.</p>" * 60
    for number in range(6):
        (folder / f"page{number}.html").write_text(page)
    (folder / "chat.txt").write_text("02/03/2026, 10:00 - Ann: The harbour lies in the north.\n" * 60)
    monkeypatch.setattr(_pool, "_MOST_PAGE_BYTES", 1_000)
    asked: list[str] = []
    read_here = _pool.FileReader._read_here

    def counted(self: Any, file: Any, *more: Any) -> Any:
        asked.append(file.path)
        return read_here(self, file, *more)

    monkeypatch.setattr(_pool.FileReader, "_read_here", counted)
    files = _scan.scan(folder).files
    reader = _pool.FileReader(folder, 2_000_000, secrets=False)
    types = memory_types()
    for name in ("page1.html", "chat.txt"):
        assert _pool._read(reader, files[name], None, types) is None
    monkeypatch.setattr(_pool, "_MOST_PAGE_BYTES", 1_000_000)
    assert _pool._read(reader, files["chat.txt"], None, types) is not None
    found = _pool._read(reader, files["page1.html"], None, types)
    assert found is not None and any("north" in node.description for node, _ in found.nodes)
    (folder / "page2.html").write_text(page + "<p>Word after word.</p>" * 50_000)
    with build_tree(folder, out=tmp_path / "out") as tree:
        assert any("north" in tree.content(node) for _, node in tree.walk("page2.html") if node.has_content)
    assert started and "page2.html" in asked and "page1.html" not in asked


@pytest.mark.skipif(sys.platform != "linux", reason="how much memory a process has is read from /proc")
def test_a_short_file_takes_little_memory_beside_what_there_is(folder: Path) -> None:
    """Four kilobytes of C that do not parse took 640 MB in one step of their parser."""
    pytest.importorskip("tree_sitter_c")
    text = "\n".join(("a=>" * 60)[:60] for _ in range(70))[:3_990]
    (folder / "a.c").write_text(text)
    # Not by `getrusage`, which tells of the process that this one was forked from, too.
    code = (
        "import re, sys; from metatree_memory_tools import build_tree; build_tree(sys.argv[1]).close();"
        " print(re.search(r'VmHWM:\\s*(\\d+)', open('/proc/self/status').read())[1])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder)], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 400_000
