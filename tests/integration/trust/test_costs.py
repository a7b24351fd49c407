"""What a prepared folder may cost: a few bytes of it must not become gigabytes, or hours."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest
from metatree_agents.cli._main import run
from metatree_agents.cli.commands import archive as archive_command
from metatree_agents.context import token_counter
from metatree_agents.planner.domain.files import read_file
from metatree_agents.service.database.backup import verified
from metatree_agents.service.engine.client import MOST_BYTES, ServiceClient, ServiceRefused
from metatree_agents.service.replication.copies import TreeCopy
from metatree_agents.service.replication.trees import Current
from metatree_agents.tools import toolkit
from metatree_memory_tools import build_tree
from metatree_memory_tools.build import _files, _pool, _read_file
from metatree_memory_tools.conversations import file_type
from metatree_memory_tools.databases import _sqlite, _sqlite_apart
from metatree_memory_tools.databases._tools import database_of
from metatree_memory_tools.documents import _document_text
from metatree_memory_tools.openapi import _document
from metatree_memory_tools.openapi.source import KIND
from metatree_memory_tools.reading.bounded_yaml import load_yaml
from metatree_memory_tools.reading.own_process import MEMORY_BYTES, SMALL_BYTES, ReadingFailed, read_apart
from metatree_memory_tools.text import lines, markdown
from metatree_memory_tools.text.lines import text_of
from metatree_memory_tools.text.pattern import matching_lines
from metatree_routers import TextEvidence

from metatree import Node, Tree, search
from metatree._util.process import is_dead, this_process
from metatree._util.secret_text import masked
from metatree.errors import BrokenStore, StaleSource, UserError
from metatree.node import Source
from metatree.notes.archive import _reader, export_memory, import_memory
from metatree.notes.archive import format as archive_format
from metatree.notes.archive.format import row_of
from metatree.notes.note_file import keep_note
from metatree.storage.store import Store
from metatree.trees.masking import masked_file
from metatree.trees.source_files import FileState, read_source
from metatree.trees.source_types import SourceFile, SourceRef
from tests.documents import make_pdf
from tests.integration.trust.prepared import Clone, state
from tests.integration.trust.test_costs_of_databases import views

pytestmark = pytest.mark.integration
DIGEST = "6d" * 16


@contextmanager
def at_most(megabytes: int) -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < megabytes * 1_000_000
    finally:
        tracemalloc.stop()


def test_a_document_is_not_read_as_a_text_too(clone: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    """A PDF without a NUL may have 200 MB, and took three times that in the process that builds."""
    page = make_pdf([[(12.0, "The harbour lies in the south. password = hunter2hunter2")]])
    assert b"\0" not in page
    (clone.folder / "big.pdf").write_bytes(page)
    looked_at: list[str] = []

    def noted(path: str, data: bytes) -> tuple[bytes, int, str]:
        looked_at.append(path)
        return masked_file(path, data)

    for module in (_read_file, lines):
        monkeypatch.setattr(module, "masked_file", noted)
    with build_tree(clone.folder) as tree:
        assert "a.md" in looked_at and "big.pdf" not in looked_at
        text = "\n".join(lines.text_of(tree, "big.pdf").lines)
        assert "in the south" in text and "hunter2" not in text and "big.pdf" not in looked_at
        assert not any(
            "hunter2" in tree.content(node) for _, node in tree.walk("big.pdf") if node.has_content
        )


def test_secrets_of_a_document_are_looked_for_once_for_all_its_parts(
    clone: Clone, monkeypatch: pytest.MonkeyPatch
) -> None:
    lengths: list[int] = []

    def counted(text: str) -> tuple[str, int]:
        lengths.append(len(text))
        return masked(text)

    monkeypatch.setattr(_document_text, "masked", counted)
    parts = "".join(f"<h1>Part {n}</h1><p>{'The harbour is in the south. ' * 20}</p>" for n in range(100))
    (clone.folder / "long.html").write_text(parts)
    with build_tree(clone.folder) as tree:
        TextEvidence(tree).refresh()
    assert sum(length > 10_000 for length in lengths) <= 4


def test_a_description_of_too_many_values_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_document, "_MOST_VALUES", 1_000, raising=False)
    for text in ("[" + "{}," * 600 + "{}]", '[["a",["b"' + ',"c"' * 1_000 + "]]]"):
        with pytest.raises(UserError, match="more than 1,000 values and brackets"):
            _document._parsed(text.encode(), "api.json")


@pytest.mark.parametrize("apart", [True, False])
def test_files_of_many_nodes_are_written_a_few_at_a_time(
    clone: Clone, monkeypatch: pytest.MonkeyPatch, apart: bool
) -> None:
    """Two hundred files of ten thousand headings took 1.5 GB before the first was written."""
    monkeypatch.setattr(_files, "_BATCH_NODES", 300, raising=False)
    monkeypatch.setattr(_pool, "MIN_FILES", 10 if apart else 1_000)
    monkeypatch.setattr(_pool, "_CHUNK_BYTES", 3_000, raising=False)
    monkeypatch.setattr(_pool, "_AHEAD_BYTES", 3_000, raising=False)
    written: list[int] = []
    write = _files.FilesBuild._write

    def counted(self: Any, batch: list[Any], *rest: Any) -> set[str]:
        written.append(sum(len(file.nodes) for file in batch))
        return write(self, batch, *rest)

    monkeypatch.setattr(_files.FilesBuild, "_write", counted)
    for number in range(40):
        (clone.folder / f"n{number}.md").write_text("".join(f"# h{n}\n" for n in range(100)))
    with build_tree(clone.folder) as tree:
        assert len(tree) > 4_000
    assert max(written) < 500 and sum(written) > 4_000


def test_operations_that_share_a_large_schema_are_bounded(
    clone: Clone, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_document, "_MOST_IN_ALL", 5_000, raising=False)
    large = {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(1_000)}}
    body = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/s"}}}}
    described = {
        "openapi": "3.1.0",
        "info": {"title": "Shop", "version": "1"},
        "components": {"schemas": {"s": large}},
        "paths": {f"/{n}": {"post": {"requestBody": body}} for n in range(50)},
    }
    (clone.folder / "api.json").write_text(json.dumps(described))
    with build_tree(SourceRef(f"openapi:{clone.folder / 'api.json'}"), out=clone.folder / "out") as tree:
        calls = [tree.get(each).attributes["call"] for each in tree.ids([KIND])]
        sizes = [len(call["schema"]["properties"].get("body", {}).get("properties", {})) for call in calls]
    assert len(sizes) == 50
    assert 1_000 in sizes
    assert sum(sizes) <= 5_000


def test_the_list_of_an_export_takes_no_gigabytes(clone: Clone) -> None:
    with zipfile.ZipFile(clone.folder / "evil.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("manifest.json", b"[" + b"{}," * 5_000_000 + b"{}]")
    with build_tree(clone.folder, out=clone.folder / "own") as tree, at_most(50), pytest.raises(BrokenStore):
        import_memory(tree, clone.folder / "evil.zip")


def test_a_row_of_an_export_takes_no_gigabytes() -> None:
    with pytest.raises(UserError, match="too many values"):
        row_of(b'{"a":[' + b"{}," * 4_000_000 + b"{}]}")


def test_a_python_file_of_the_shortest_statements_is_text(clone: Clone) -> None:
    (clone.folder / "a.py").write_text("a\n" * 300_000)
    with build_tree(clone.folder) as tree:
        assert "more than 250,000" in str(tree.get("a.py").attributes["note"])


def test_a_file_that_grew_is_not_read_whole(clone: Clone) -> None:
    os.truncate(clone.folder / "a.md", 100_000_000)
    with at_most(10), pytest.raises(StaleSource):
        read_source(clone.folder, "a.md", "a.md", FileState(40, 1, "0" * 32, "utf-8"))


@pytest.mark.parametrize("name", ["versions", "files", f"files/{DIGEST[:2]}", f"versions/1-{DIGEST}"])
def test_a_copy_of_a_tree_writes_and_deletes_nothing_where_a_link_leads(clone: Clone, name: str) -> None:
    folder = clone.folder / "copy" / "abc"
    folder.mkdir(parents=True)
    Store.open(folder / "memory.db").close()
    own = clone.folder.parent / "own"
    own.mkdir()
    (own / "b.md").write_text("# Own\n")
    build_tree(own).close()
    before = state(own)
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).symlink_to(own / ".metatree")
    client: Any = SimpleNamespace(url="http://127.0.0.1")
    copy = TreeCopy(client, clone.folder / "copy")
    with pytest.raises(UserError, match="is a link"):
        copy._settle_in("abc")
        if name.startswith("files"):
            copy._file(DIGEST)
        asyncio.run(copy._take_version(Current("abc", DIGEST, 1, 1, 1)))
    copy._close()
    assert state(own) == before


def test_what_a_service_answers_is_bounded() -> None:
    async def check() -> None:
        packed = gzip.compress(b" " * (MOST_BYTES + 1))

        def answer(request: httpx2.Request) -> httpx2.Response:
            return httpx2.Response(200, headers={"Content-Encoding": "gzip"}, content=packed)

        client = ServiceClient("http://127.0.0.1", "Eng1", "secret", transport=httpx2.MockTransport(answer))
        async with client:
            with pytest.raises(ServiceRefused, match="answered with more than"):
                await client.call("GET", "get-tree")

    asyncio.run(check())


def test_remembering_waits_for_no_pipe(clone: Clone) -> None:
    os.mkfifo(clone.folder / "coffee.md")
    note = keep_note(clone.folder, "Coffee at four", "coffee", who="ann")
    assert note.path.name == "coffee-2.md" and not note.known
    assert keep_note(clone.folder, "Coffee at four", "coffee", who="ann").known


def hostile_files() -> dict[str, bytes]:
    """Return files that take a hundred megabytes and more where they are parsed, a hundredth of what they could."""
    wide = ",".join("a" * 1_000)
    return {
        "t.csv": (f"{wide}\n" * 150 + "a\n" * 30_000).encode(),
        "m.eml": b"From: " + b"=?utf-8?q?a?= " * 9_000 + b"\nSubject: x\n\nThe harbour\n",
        "c.json": b'{"messages":[{"role":"user","content":"hi"}],"x":[' + b"[]," * 1_500_000 + b"[]]}",
    }


@pytest.mark.parametrize("name", hostile_files())
def test_what_is_not_read_in_lines_is_parsed_in_a_process_of_its_own(clone: Clone, name: str) -> None:
    (clone.folder / name).write_bytes(hostile_files()[name])
    with at_most(60), build_tree(clone.folder) as tree:
        assert "in the south" in tree.content("a.md")
        assert name in tree


def test_a_file_that_ends_that_process_is_left_out_and_harms_no_other(
    clone: Clone, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = [{"role": "user", "content": f"The harbour is in the south, said {n}"} for n in range(2_000)]
    (clone.folder / "b.json").write_text(json.dumps({"messages": turns}))
    views(clone.folder, "SELECT 1 AS a", *[f"SELECT a+a AS a FROM v{number}" for number in range(24)])
    (clone.folder / "z.csv").write_text("name,depth\nharbour,7\nlake,3\n")
    monkeypatch.setattr(_sqlite_apart, "_TABLES_S", 2.0)
    with build_tree(clone.folder) as tree:
        omitted = dict(tree.omissions())
        (database,) = [path for path in omitted if path.endswith(".db")]
        assert (
            "not read: it takes more than" in omitted[database] or "damaged, or too much" in omitted[database]
        )
        assert "said 1999" in tree.content("b.json#20/100")
        assert database_of(tree, tree.get("z.csv")).query("SELECT depth FROM z", 5).rows == ((7,), (3,))


def test_no_database_of_a_folder_is_opened_here(clone: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    views(clone.folder, "SELECT 1 AS a", "SELECT x'00ff' AS a")
    monkeypatch.delattr(_sqlite.SQLite, "open_bytes")
    monkeypatch.delattr(_sqlite.SQLite, "open_file")
    (path,) = clone.folder.glob("*.db")
    with build_tree(clone.folder) as tree:
        database = database_of(tree, tree.get(path.name))
        assert [table.name for table in database.tables()] == ["v0", "v1"]
        assert database.sample("", "v1").rows == ((b"\x00\xff",),)
        with pytest.raises(UserError, match="the query failed"):
            database.query("SELECT * FROM nothing", 1)
    with build_tree(path, out=clone.folder.parent / "alone") as tree:
        assert any(node.title == "v1" for _, node in tree.walk())


@pytest.mark.parametrize("what", ["memory", "depth", "end", "time", "wrong"])
def test_the_process_that_reads_goes_on_after_what_takes_too_much(what: str) -> None:
    memory_bytes = 100_000_000 if what == "memory" else MEMORY_BYTES
    limit_s = 1.0 if what == "time" else 20.0
    with pytest.raises(ValueError if what == "wrong" else ReadingFailed):
        read_apart(takes_too_much, b"x", what, limit_s=limit_s, memory_bytes=memory_bytes)
    assert read_apart(takes_too_much, b"abc", "", limit_s=20.0) == 3


def test_the_process_that_reads_has_its_own_limit_below_a_process_of_a_build() -> None:
    """Which has one that no process which it starts may raise."""
    code = (
        "import resource; from metatree_memory_tools.reading._worker import _allow\n"
        "resource.setrlimit(resource.RLIMIT_DATA, (1_000_000_000, 1_000_000_000))\n"
        "_allow(420_000_000); print(*resource.getrlimit(resource.RLIMIT_DATA))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["420000000", "1000000000"]


def test_a_file_of_conversations_that_takes_too_much_is_not_read_again_for_each_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []

    def apart(*_: Any) -> None:
        asked.append(1)
        raise ReadingFailed("it takes too much memory", lasting=True)

    monkeypatch.setattr(file_type, "_apart", apart)
    kind = file_type.ConversationFile()
    file = SourceFile("a.json", b"[" + b" " * (SMALL_BYTES + 1) + b"]")
    for line in (1, 2, 3):
        with pytest.raises(ReadingFailed):
            kind.content(file, Source(type="conversation", path="a.json", start_line=line))
    assert asked == [1]


def test_a_notebook_is_masked_where_it_is_read_and_not_as_the_text_that_it_is_in(clone: Clone) -> None:
    """Which is mostly pictures, and takes up to twelve times its size."""
    token = "ghp_" + "aB3d" * 9
    text = f"The harbour. The key is {token} here."
    cells = [{"cell_type": "markdown", "metadata": {}, "source": ["# A\n", text]}]
    notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}
    (clone.folder / "a.ipynb").write_text(json.dumps(notebook))
    with build_tree(clone.folder) as tree:
        said = "".join(tree.content(node) for _, node in tree.walk() if node.path == "a.ipynb")
        row = tree.index.row("SELECT facts FROM file WHERE path = 'a.ipynb'")
        assert "The harbour" in said and token not in said and row is not None and "masked" not in row[0]
        assert text_of(tree, "a.ipynb").lines[-1].endswith("** here.")


def takes_too_much(data: bytes, what: str) -> int:
    """Do what a parser may; called in the process that reads."""
    match what:
        case "memory":
            data *= 300_000_000
        case "depth":
            return takes_too_much(data, what)
        case "end":
            os.abort()
        case "time":
            time.sleep(60)
        case "wrong":
            raise ValueError("wrong")
    return len(data)


def test_a_row_of_an_export_is_no_longer_than_can_be_read(
    clone: Clone, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Tree.create(clone.folder / "a.db") as tree:
        tree.add(Node("a", "A", content="x" * 10_000))
        export_memory(tree, clone.folder / "good")
        monkeypatch.setattr(archive_format, "MAX_LINE", 5_000)
        with pytest.raises(UserError, match="row 1 of nodes cannot be exported"):
            export_memory(tree, clone.folder / "large")
        with pytest.raises(BrokenStore, match="too long"):
            import_memory(tree, clone.folder / "good")


def test_an_image_of_an_export_is_bounded(clone: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_reader, "_LARGEST_IMAGE", 1_000)
    name = "0" * 32 + ".png"
    with zipfile.ZipFile(clone.folder / "export", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("manifest.json", json.dumps({"format": "metatree-memory", "version": 1}))
        archive.writestr(f"images/{name}", b"x" * 1_001)
    with (
        _reader.opened(clone.folder / "export") as opened,
        pytest.raises(BrokenStore, match="more than 1,000 bytes"),
    ):
        opened.image(name)


def test_the_checksum_of_a_backup_takes_no_gigabytes(clone: Clone) -> None:
    with zipfile.ZipFile(clone.folder / "evil.backup", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("manifest.json", b"{}")
        archive.writestr("manifest.sha256", b"0" * 190_000_000)
    with at_most(30), pytest.raises(BrokenStore, match="cut off or changed"):
        verified(clone.folder / "evil.backup")


def test_merge_keys_of_yaml_stay_few(clone: Clone) -> None:
    lines = ["a0: &a0 {k: v}"]
    for number in range(1, 9):
        below = ", ".join([f"*a{number - 1}"] * 10)
        lines.append(f"a{number}: &a{number} {{<<: [{below}]}}")
    (clone.folder / "domain.yaml").write_text("\n".join(lines))
    with at_most(200), pytest.raises(UserError, match="merge keys bring more"):
        read_file(clone.folder / "domain.yaml")
    with pytest.raises(UserError, match="merge keys bring more"):
        _document._parsed("\n".join(lines).encode(), "api.yaml")
    assert load_yaml("a: &a {x: 1}\nb: {<<: *a, y: 2}") == {"a": {"x": 1}, "b": {"x": 1, "y": 2}}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("head.md", "# kettle{}b\nthe kettle is blue\n"),
        ("front.md", "---\ntitle: b{}c\n---\n# Kettle\n"),
        ("item.md", "---\ntags:\n  - b{}c\n---\n# Kettle\n"),
        ("role.py", "def kettle():\n    '''The kettle.\n\n    :a:`{}x\n    '''\n"),
        ("chat.txt", "Ann: a kettle\nBob: hi\nAnn: how\nBob: well\ndate{}x\nAnn: so\nBob: the kettle\n"),
    ],
)
def test_blanks_in_a_line_cost_what_other_letters_do(name: str, text: str, tmp_path: Path) -> None:
    """Of 200,000, quadratic is minutes to hours: this does not end, rather than fail."""
    (tmp_path / name).write_text(text.format(" " * 200_000))
    with build_tree(tmp_path) as tree:
        result = search("What colour is the kettle?", tree=tree)
        assert name in tree
        assert result.ended != "limit"


@pytest.mark.parametrize(
    "line", ["[{}", "[[{}a{}b", "[a]{}b", "{}[a", "[[a{}]]{}#{}]", "a{}b", '"{}=', "{}a.b{}"]
)
def test_a_line_of_a_domain_is_found_at_once(line: str) -> None:
    """Of 100,000 blanks, cubic is a year and quadratic two minutes; linear is milliseconds."""
    code = (
        "import resource, sys; from metatree_agents.planner.domain._places import _in_toml;"
        " resource.setrlimit(resource.RLIMIT_CPU, (10, 10));"
        f" print(_in_toml({line!r}.replace('{{}}', ' ' * 100_000) + '\\n[t]\\nk = 1\\n', ('t', 'k')))"
    )
    done = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True)
    assert (done.returncode, done.stdout) == (0, "(3, 1)\n"), done.stderr


@pytest.mark.parametrize("caption", ['<v."' * 100_000, "<v.a " * 80_000, "\n".join(map(str, range(60_000)))])
def test_captions_are_read_in_a_time_that_grows_with_them(caption: str, tmp_path: Path) -> None:
    """Quadratic is minutes: this does not end, rather than fail."""
    begin = "00:00:0{0}.000 --> 00:00:0{0}.900\n"
    captions = [begin.format(number) + caption.replace("9", str(number)) for number in range(1, 4)]
    texts = ["WEBVTT", begin.format(0) + "<v Ann>the kettle is blue", *captions]
    (tmp_path / "standup.vtt").write_text("\n\n".join(texts))
    with build_tree(f"chats:{tmp_path / 'standup.vtt'}", out=tmp_path / "tree") as tree:
        assert any(node.title == "Ann" for _, node in tree.walk())


def test_names_in_an_archive_of_chats_are_bounded(tmp_path: Path) -> None:
    """Quadratic is minutes: this does not end, rather than fail."""
    text = "13/02/2024, 10:00 - Ann: the kettle is blue\n13/02/2024, 10:01 - Bob: hi\n"
    with zipfile.ZipFile(tmp_path / "chats.zip", "w") as archive:
        archive.writestr("WhatsApp Chat with Ann.txt", text)
        for number in range(5):
            archive.writestr(zipfile.ZipInfo(f"{number}WhatsApp-{' ' * 60_000}\nx\n.txt"), text)
            archive.writestr(zipfile.ZipInfo(f"{number}WhatsApp-{' ' * 400}\n.txt"), text)
    with build_tree(f"chats:{tmp_path / 'chats.zip'}", out=tmp_path / "tree") as tree:
        assert [node.title for _, node in tree.walk() if node.kind == "conversation"] == ["Ann"]


def asks_for_a_password(file: Path) -> None:
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("manifest.json", "{}")
    data = bytearray(file.read_bytes())
    data[6] |= 1
    data[data.find(b"PK\x01\x02") + 8] |= 1
    file.write_bytes(data)


def is_nested_deep(file: Path) -> None:
    text = "[" * 100_000
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("manifest.json", text)
        archive.writestr("manifest.sha256", sha256(text.encode()).hexdigest())


@pytest.mark.parametrize("prepare", [asks_for_a_password, is_nested_deep])
def test_a_zip_that_cannot_be_read_is_told_as_one(
    prepare: Callable[[Path], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["build", "."]) == 0
    prepare(tmp_path / "x.zip")
    for command in (["import", "x.zip"], ["export", "x.zip"], ["service", "check", "x.zip"]):
        capfd.readouterr()
        assert run(command) == 2
        assert "'x.zip' is " in capfd.readouterr().err


def test_files_beside_an_export_are_not_in_its_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["build", "."]) == 0
    for pid in ("²", "99999999999999999999", "-1"):
        (tmp_path / f".shop.metatree.{pid}.part").touch()
    (tmp_path / ".shop.metatree.999999.part").mkdir()
    assert run(["export", "shop.metatree"]) == 0
    assert is_dead(this_process().replace(f"/{os.getpid()}/", "/99999999999999999999/")) is False
    assert is_dead(this_process().replace(f"/{os.getpid()}/", "/²/")) is False


def test_a_place_of_blanks_is_shown_at_once(clone: Clone, capfd: pytest.CaptureFixture[str]) -> None:
    """Of a million, quadratic is an hour: this does not end, rather than fail."""
    record = {"type": "mcp", "location": " " * 1_000_000 + "x", "options": {}}
    with closing(sqlite3.connect(clone.metatree / "index.db")) as made, made:
        made.execute("UPDATE meta SET value = ? WHERE key = 'sources'", (json.dumps([record]),))
    assert run(["trust", "--show"]) == 0
    assert "starts" in capfd.readouterr().out


def test_a_dotted_name_takes_no_gigabytes(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(f"import {'a. ' * 20_000}b\n")
    (tmp_path / "b.py").write_text(f"x = {'a.' * 400}b\ndef kettle(): ...\n")
    with at_most(60), build_tree(tmp_path) as tree:
        assert "a name of more than 500 parts" in str(tree.get("a.py").attributes)
        assert "500 parts" not in str(tree.get("b.py").attributes)


@pytest.mark.parametrize(
    "coding", ["punycode", "idna", "utf_7", "unicode_escape", "utf-16", "cp875", "iso2022_jp"]
)
def test_a_declared_encoding_is_one_of_characters(coding: str, tmp_path: Path) -> None:
    """Of punycode, 2 MB are half an hour: this does not end, rather than fail."""
    token = "ghp_" + "a1B2" * 9
    head = f"# coding: {coding}\n# kettle {token}\n# kettle-jv3s"
    (tmp_path / "k.py").write_text(head + "a" * 1_500_000 + "\n")
    with build_tree(tmp_path) as tree:
        assert "kettle" in tree.content("k.py") and token not in tree.content("k.py")
        lines = text_of(tree, "k.py").lines
        assert (len(lines), token in str(lines)) == (3, False)


def test_other_encodings_are_read_as_they_are_declared(tmp_path: Path) -> None:
    for coding in ("cp1251", "koi8-r", "gbk", "shift_jis", "euc_jp", "iso-8859-5", "mac_cyrillic"):
        assert bytes(range(128)).decode(coding) == bytes(range(128)).decode()
        (tmp_path / f"{coding}.py").write_bytes(f"# coding: {coding}\n# чайник\n".encode(coding))
    with build_tree(tmp_path) as tree:
        for name in tree.children():
            assert text_of(tree, name.id).lines[1] == "# чайник"
            assert "чайник" in tree.content(name.id)


def test_an_entity_of_many_digits_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    said = f"The kettle is blue since 1999. &#{'1' * 5_000};"
    mail = f"From: Ann <a@x>\nSubject: the kettle\nContent-Type: text/html\n\n<html><body><p>{said}</p></body></html>\n"
    (tmp_path / "a.vtt").write_text(f"WEBVTT\n\n00:00.000 --> 00:01.000\n<v Ann>{said}\n")
    (tmp_path / "a.eml").write_text(mail)
    for name in ("a.vtt", "a.eml"):
        with build_tree(f"chats:{tmp_path / name}", out=tmp_path / "trees" / name) as tree:
            texts = tree.texts([node.id for _, node in tree.walk()])
            assert any("kettle is blue since 1999" in str(text) for text in texts)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text(f"# Kettle\n\n<div>\n{said}\n</div>\n")
    monkeypatch.chdir(tmp_path / "notes")
    assert run(["ask", "what colour is the kettle?"]) in (0, 1)
    assert "blue since 1999" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.py", "class {}:\n" + "".join(f"  def m{n}(self): pass\n" for n in range(5_000))),
        (
            "a.java",
            "class {0} {{\nclass {0} {{\n" + "".join(f"void m{n}(){{{{}}}}\n" for n in range(5_000)) + "}}}}",
        ),
        ("a.md", "# {}\n\na\n\n" + "".join(f"## s{n}\n\nb\n\n" for n in range(5_000))),
    ],
)
def test_what_lies_in_a_long_name_does_not_have_it_whole(name: str, text: str, tmp_path: Path) -> None:
    """Of a hundred thousand letters, 20,000 methods took 22 GB."""
    (tmp_path / name).write_text(text.format("A" * 100_000))
    with build_tree(tmp_path) as tree:
        ids = [node.id for _, node in tree.walk()]
    assert len(ids) > 5_000 and len(ids) == len(set(ids)) and max(map(len, ids)) < 1_100


def test_where_a_setting_stands_is_found_at_once(clone: Clone, capfd: pytest.CaptureFixture[str]) -> None:
    """Of a hundred thousand, cubic is years: this does not end, rather than fail."""
    Path("metatree.toml").write_text(f'ignore = ["""\n[{" " * 100_000}x\n"""]\n[ "find" ]\nnote = 1\n')
    assert run(["find", "kettle"]) == 2
    assert "metatree.toml:5" in capfd.readouterr().err


@pytest.mark.parametrize("line", ["# " + "`" * 5_998, "# " + "<!--" * 1_500, "#<!--" * 1_200])
def test_a_line_of_markdown_is_read_at_once(line: str) -> None:
    """Of 700 lines, 4 MB, quadratic is a minute."""
    code = (
        "import resource; from metatree.trees.source_types import SourceFile;"
        " from metatree_memory_tools.text.markdown import Markdown;"
        " resource.setrlimit(resource.RLIMIT_CPU, (8, 8));"
        f" print(Markdown().outline(SourceFile('a.md', {line + chr(10)!r}.encode() * 700)).attributes['lines'])"
    )
    done = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True)
    assert (done.returncode, done.stdout) == (0, "700\n"), done.stderr


@pytest.mark.skipif(not hasattr(os, "SEEK_DATA"), reason="the system does not tell holes")
def test_holes_of_an_export_are_not_written_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copies: list[tuple[int, int]] = []

    def noted(file: Path, *_: object, **__: object) -> bool:
        copies.append((file.stat().st_size, 512 * file.stat().st_blocks))
        assert file.read_bytes() == (tmp_path / file.name).read_bytes()
        return True

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # as this folder, that one may have holes
    assert run(["build", "."]) == 0
    assert run(["export", "b.metatree"]) == 0
    size = (tmp_path / "b.metatree").stat().st_size
    shutil.copy("b.metatree", "a.metatree")
    with (tmp_path / "a.metatree").open("r+b") as file:
        file.truncate(300_000_000)
    monkeypatch.setattr(archive_command, "_agreed", noted)
    assert run(["import", "--trust", "b.metatree"]) == 0
    assert run(["import", "--trust", "a.metatree"]) == 2
    assert [each for each, _ in copies] == [size, 300_000_000]
    assert copies[1][1] < 10_000_000


@pytest.mark.parametrize("pattern", ["kettle.*z", "kettlez"])
def test_lines_are_looked_for_in_one_part_after_the_other(pattern: str) -> None:
    def texts() -> Iterator[tuple[str, list[str]]]:
        for number in range(12):
            yield f"k{number}.txt", [f"{line}" for line in range(200_000)]
        yield "last.txt", ["the kettle is", "a kettlez"]

    with at_most(100):
        assert matching_lines(pattern, texts(), most=5, limit_s=100) == [("last.txt", 2, "a kettlez")]


def test_reading_a_file_of_line_breaks_numbers_no_more_than_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "d.txt").write_text("the kettle" + "\n" * 400_000 + "x\n")
    counted: list[int] = []
    count, *others = token_counter()

    def noted(text: str) -> int:
        counted.append(len(text))
        return count(text)

    monkeypatch.setattr(toolkit, "token_counter", lambda: (noted, *others))
    with build_tree(tmp_path) as tree:
        said = asyncio.run(toolkit.Toolkit(tree, refresh=False).read("d.txt"))
    assert said.text.startswith("the kettle") and said.cut.startswith("cut: the rest is lines ")
    assert max(counted) < 200_000


@pytest.mark.parametrize(
    ("block", "lines"), [("- -\n", 336), ("1. a\n", 502), ("> a\n\n", 668), ("[a]: b\n", 1_000)]
)
def test_markdown_of_nothing_but_marks_is_looked_through_so_far(
    block: str, lines: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two megabytes of lists took a gigabyte."""
    monkeypatch.setattr(markdown, "_MOST_BLOCKS", 1_000)
    text = "# Kettle\n\n## Lid\n\n" + block * 2_000 + "\n## Spout\n\nIt pours.\n"
    outline = markdown.Markdown().outline(SourceFile("a.md", text.encode()))
    assert [part.title for part in outline.parts] == ["Lid"]
    note = outline.attributes["note"]
    assert note == f"only the headings of its first {lines:,} lines are sections; the last holds the rest"
    monkeypatch.setattr(markdown, "_MOST_BLOCKS", 200_000)
    whole = markdown.Markdown().outline(SourceFile("a.md", text.encode()))
    assert [part.title for part in whole.parts] == ["Lid", "Spout"] and "note" not in whole.attributes
