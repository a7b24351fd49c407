"""What the sources of an accepted index may be, and that nothing is read, asked or called but what was shown."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from metatree_agents.cli._main import run
from metatree_memory_tools import build_tree
from metatree_memory_tools.build.source_spec import located
from metatree_memory_tools.databases._open import open_database
from metatree_memory_tools.databases._tools import database_of
from metatree_memory_tools.text.lines import text_of
from metatree_memory_tools.web.tools import _require_own

from metatree import Node, Source, Tree
from metatree.errors import StaleSource, ToolFailed, UserError
from metatree.searches.source_tools import _is_of_here, with_own
from metatree.storage.acceptance import accept
from metatree.storage.store import Store
from metatree.tools.tool import ToolTree, tool
from metatree.trees.layer import ROOT
from metatree.trees.source_types import SourceRef
from metatree.trees.sources import check_place, known_source
from tests.integration.trust.prepared import (
    Clone,
    Vault,
    as_user,
    change,
    insert,
)

pytestmark = pytest.mark.integration


def test_the_root_of_an_accepted_index_is_not_as_others_wrote_it(
    clone: Clone, vault: Vault, tmp_path: Path
) -> None:
    shutil.rmtree(clone.metatree)
    with as_user(clone.attacker):
        build_tree(clone.folder / "a.md", SourceRef("vault:x", type="vault"), out=clone.metatree).close()
    change(
        clone.metatree / "index.db",
        (
            "UPDATE node SET title = 'The harbour', description = 'Said by your admin', source_type = 'vault',"
            " source_path = 'private' WHERE id = '.'",
            (),
        ),
    )
    accept(clone.metatree / "index.db")
    build_tree(clone.folder / "a.md", SourceRef("vault:x", type="vault"), out=clone.metatree).close()
    with Tree.open(clone.metatree) as tree:
        root = tree.get(tree.root)
        assert (root.title, root.source) == ("a.md, vault-x", None) and "admin" not in root.description
    assert "private" not in vault.asked


def test_an_index_that_was_accepted_is_read_anew_from_what_it_names(
    clone: Clone, vault: Vault, capfd: pytest.CaptureFixture[str]
) -> None:
    """It could count a file in that was left out, name what a server does not list, and call a tool a harmless one."""
    shutil.rmtree(clone.metatree)
    (clone.folder / ".env").write_text("PASSWORD=hunter2hunter2 of the harbour\n")
    with as_user(clone.attacker):
        build_tree(str(clone.folder), SourceRef("x", {}, "vault", "vault"), out=clone.metatree).close()
        with Store.open(clone.metatree / "index.db") as store:
            insert(store, Node("vault/private", "x", source=Source(type="vault", path="vault/private")))
            insert(store, Node("clone/.env", "x", source=Source(path="clone/.env")))
            store.execute(
                "INSERT INTO file(path, size, mtime_ns, digest, encoding, facts, ctime_ns, reader)"
                " SELECT 'clone/.env', size, mtime_ns, digest, encoding, facts, ctime_ns, reader FROM file"
            )
    assert run(["trust", "--yes"]) == 0
    with Tree.open(clone.metatree) as tree:
        assert {node.id for _, node in tree.walk()} == {ROOT}
        assert tree.index.rows("SELECT * FROM file") == []
    assert run(["ask", "Where is the harbour?", "--sure", "0.3"]) == 0
    assert "in the south" in capfd.readouterr().out
    with Tree.open(clone.metatree) as tree:
        assert "clone/.env" not in tree and "vault/private" not in tree
        assert tree.content("vault/open") == "the harbour of open"
        with pytest.raises(UserError):
            text_of(tree, "clone/.env")


def test_an_index_that_was_accepted_reads_the_place_that_was_shown_wherever_it_is_moved(
    clone: Clone, tmp_path: Path
) -> None:
    private = tmp_path / "projects" / "notes"
    private.mkdir(parents=True)
    (private / "private.md").write_text("The safe opens with 77.\n")
    place = json.dumps([{"type": "folder", "place": each, "options": {}, "mount": mount} for each, mount in (
        ("..", "clone"), ("../../notes", "notes"))])  # fmt: skip
    change(clone.metatree / "index.db", ("UPDATE meta SET value = ? WHERE key = 'sources'", (place,)))
    accept(clone.metatree / "index.db")
    shown = [str(clone.folder), str(clone.folder.parent / "notes")]
    with Tree.open(clone.folder) as tree:
        assert [source.location for source in tree.sources()] == shown
    clone.folder.rename(private.parent / "clone")
    with Tree.open(private.parent / "clone") as tree:
        tree.refresh()
        moved = [source.location for source in tree.sources()]
        assert moved == [str(private.parent / "clone"), shown[1]]
        assert not any("private" in node.id for _, node in tree.walk())


@pytest.mark.parametrize("kind", ["database", "chats", "tree", "openapi"])
def test_a_place_that_depends_on_the_current_folder_is_read_from_none(
    clone: Clone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """It is no file where it is accepted, and one of somebody else's where a command is typed later."""
    record = {"type": kind, "location": "later", "options": {}, "mount": "later"}
    change(
        clone.metatree / "index.db",
        ("UPDATE meta SET value = ? WHERE key = 'sources'", (json.dumps([record]),)),
    )
    accept(clone.metatree / "index.db")
    shutil.copytree(clone.folder, tmp_path / "work" / "later", ignore=lambda *_: [".metatree"])
    monkeypatch.chdir(tmp_path / "work")
    with Tree.open(clone.folder) as tree:
        tree.refresh()
        assert "so it is not read" in str(tree.get("later").attributes["note"])
        assert len(tree) == 2


def test_an_index_that_was_accepted_and_cannot_be_written_asks_no_server(
    clone: Clone, vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(clone.metatree)
    (clone.folder / ".env").write_text("PASSWORD=hunter2hunter2\n")
    with as_user(clone.attacker):
        build_tree(str(clone.folder), SourceRef("x", {}, "vault", "vault"), out=clone.metatree).close()
        state = (clone.folder / ".env").stat()
        with Store.open(clone.metatree / "index.db") as store:
            store.execute(
                "INSERT INTO file(path, size, mtime_ns, digest, encoding, facts, ctime_ns, reader)"
                " SELECT 'clone/.env', ?, ?, 'x', 'utf-8', '{}', -1, 'text 1' FROM file",
                (state.st_size, state.st_mtime_ns),
            )
            insert(store, Node("clone/.env", "x", source=Source(path="clone/.env")))
    with build_tree(SourceRef("x", {}, "vault", "vault"), out=clone.folder.parent / "own") as tree:
        assert "ring" in _offered(tree, vault), "one's own vault has it"
    for module in ("storage.store", "storage.acceptance", "trees.tree"):
        monkeypatch.setattr(f"metatree.{module}.writable", lambda file: False)
    assert run(["trust", "--yes"]) == 0
    with Tree.open(clone.metatree) as tree:
        assert "in the south" in tree.content("clone/a.md")
        with pytest.raises(StaleSource):
            tree.content("clone/.env")
        with pytest.raises(UserError):
            text_of(tree, "clone/.env")
        with pytest.raises(UserError, match="METATREE_TRUST"):
            tree.content("vault/open")
        assert "ring" not in _offered(tree, vault)
    assert vault.asked == []


def test_a_built_index_that_was_accepted_and_cannot_be_written_opens_nothing(
    clone: Clone, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(clone.metatree)
    with closing(sqlite3.connect(clone.folder / "own.db")) as own, own:
        own.execute("CREATE TABLE animal(name, plate)")
    with as_user(clone.attacker):
        build_tree(str(clone.folder), out=clone.metatree).close()
        with Store.open(clone.metatree / "index.db") as store:
            store.execute("UPDATE file SET digest = 'x' WHERE path = 'own.db'")
            links = {"url": "http://a.example/", "links": [["the harbour", "http://a.example/harbour"]]}
            insert(store, Node("page", "The harbour", kind="page", content="It is here.", attributes=links))
    for module in ("storage.store", "storage.acceptance", "trees.tree"):
        monkeypatch.setattr(f"metatree.{module}.writable", lambda file: "/own/" in f"{file}/")
    assert run(["trust", "--yes"]) == 0
    with Tree.open(clone.metatree) as tree:
        assert tree.is_imported("page")
        assert not any(_is_of_here(tree, tree.get(node)) for node in ("page", "own.db"))
        with pytest.raises(ToolFailed, match="made elsewhere"):
            _require_own(tree, tree.get("page"))
        with pytest.raises(UserError, match="made elsewhere"):
            database_of(tree, tree.get("own.db"))
        assert tree.content("a.md") == (clone.folder / "a.md").read_text()
        assert "The harbour is in the south." in text_of(tree, "a.md").lines
    with build_tree(f"tree:{clone.metatree}", out=clone.folder.parent / "own") as tree:
        (seen,) = [node for _, node in tree.walk() if node.title == "The harbour"]
        assert (seen.kind, seen.attributes) == ("imported", {})


def test_no_tree_is_built_where_somebody_else_made_one_by_hand(
    clone: Clone, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its nodes would pass for those of files and servers."""
    shutil.rmtree(clone.metatree)
    clone.metatree.mkdir()
    with as_user(clone.attacker), Tree.create(clone.metatree / "index.db") as tree:
        tree.add(Node("kettle", "The kettle", content="The kettle is in the south."), ".")
    assert run(["trust", "--yes"]) == 0
    for command in (["build", "."], ["build", "--add", "a.md"]):
        assert run(command) == 2
        assert "holds nodes that somebody else made by hand" in capsys.readouterr().err
    assert run(["ask", "Where is the kettle?"]) == 0
    assert run(["build", "a.md", f"tree:{clone.metatree}", "--tree", "both"]) == 0
    assert run(["find", "kettle", "--tree", "both"]) == 0


def _offered(tree: Tree, vault: Vault) -> list[str]:
    """Return the tools that a search has for a node of a vault, which has one that rings."""

    @tool(kind="exploratory", answers_outside_tree=True)
    def ring(node: Node) -> str:
        """Ring at the vault."""
        return f"rung at {node.id}"

    vault.tools = [ring]
    tools = ToolTree(with_own(tree, [], True, filled=True)).tools()
    return [each.id for each in tools if each.when is None or each.when(tree.get("vault/open"))]


@pytest.mark.parametrize(
    "record",
    [
        '{"place": "x", "options": {}}',
        '{"type": "folder", "place": "a\\u0000b", "options": {}}',
        '{"type": "folder", "place": "\\ud800", "options": {}}',
        '{"type": "folder", "place": "x", "options": {"\\ud800": "\\u0000"}}',
        '{"type": "folder", "place": "x", "options": {"a": NaN}}',
        '{"type": 5, "place": "x", "options": {}}',
        '{"type": "folder", "place": "..", "options": {}, "mount": "../../x"}',
        '{"type": "folder", "place": "..", "options": {}, "mount": "."}',
        '{"type": "folder", "place": "..", "options": {"max_file_bytes": "abc"}, "mount": "x"}',
        '{"type": "folder", "place": "..", "options": {"include_secrets": "x"}, "mount": "x"}',
        '{"type": "folder", "place": "..", "options": {}, "mount": "x"},'
        ' {"type": "file", "place": "../a.md", "options": {}, "mount": "x"}',
        '{"type": "folder", "place": "..", "options": {}},'
        ' {"type": "file", "place": "../a.md", "options": {}, "mount": "x"}',
        '{"type": "database", "location": "notes.db", "options": {}, "mount": "x"}',
        '{"type": "openapi", "location": "openapi:notes.db", "options": {}, "mount": "x"}',
        '{"type": "openapi", "place": "../notes.db ", "options": {}, "mount": "x"}',
        '{"type": "chats", "location": "web://good.example?token=/../../notes.db", "options": {}, "mount": "x"}',
    ],
)
def test_sources_of_an_odd_form_are_refused_in_words(
    clone: Clone, capfd: pytest.CaptureFixture[str], record: str
) -> None:
    """Also in one's own index, which keeps what the one before it named."""
    statement = "INSERT OR REPLACE INTO meta(key, value) VALUES (?, ?)"
    (clone.folder / "notes.db").touch()
    (clone.folder / "web:" / "good.example?token=").mkdir(parents=True)
    change(clone.metatree / "index.db", (statement, ("sources", f"[{record}]")))
    for command in (["trust", "--show"], ["trust", "--show", "--json"], ["trust", "--yes"]):
        assert run(command) in (0, 2)
    assert "none of metatree's" in "".join(capfd.readouterr())
    assert run(["find", "harbour"]) == 0
    change(clone.metatree / "index.db", (statement, ("offered_sources", f"[{record}]")))
    for command in (["trust", "--show"], ["find", "harbour"], ["trust", "--yes"]):
        assert run(command) in (0, 2)
    assert "failed" not in "".join(capfd.readouterr())


def test_sources_of_a_tree_that_was_built_again_in_between_can_be_accepted(clone: Clone) -> None:
    shutil.rmtree(clone.metatree)
    files = [clone.folder / name for name in ("a.md", "b.md")]
    files[1].write_text("# Quay\n\nThe quay is long\n")
    with as_user(clone.attacker):
        build_tree(*files, out=clone.metatree).close()
    assert run(["find", "quay", "-q"]) == 0  # not made by this user: built again, from the folder
    assert run(["trust", "--yes"]) == 0
    with Tree.open(clone.folder) as tree:
        assert [source.location for source in tree.sources()] == list(map(str, files))
        assert "quay" in tree.content("b.md")
    assert run(["trust", "--show"]) == 0


@pytest.mark.parametrize(
    ("kind", "location"),
    [
        ("database", " notes.db"),
        ("database", "\u00a0postgresql://db.example.org/shop"),
        ("openapi", "OpenAPI:spec.json"),
        ("tree", " kb"),
        ("chats", "notes "),
    ],
)
def test_no_location_is_a_path_in_a_way_that_is_not_looked_at(
    clone: Clone, monkeypatch: pytest.MonkeyPatch, kind: str, location: str
) -> None:
    """Whether something has this name in the current folder by now, or comes later."""
    monkeypatch.chdir(clone.folder)
    with pytest.raises(UserError):
        check_place(SourceRef(location, {}, "notes", kind))


@pytest.mark.parametrize("location", ["https://db.example.org/shop", "notes.db"])
def test_no_database_is_a_path_below_the_current_folder(
    clone: Clone, monkeypatch: pytest.MonkeyPatch, location: str
) -> None:
    monkeypatch.chdir(clone.folder)
    with closing(sqlite3.connect(clone.folder / "notes.db")) as store, store:
        store.execute("CREATE TABLE animal(name)")
    with pytest.raises(UserError, match="neither the address nor the path"):
        open_database(SourceRef(location, {}, "notes", "database"))


def test_a_type_in_capital_letters_is_looked_at_as_in_small_ones(
    clone: Clone, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(clone.folder)
    spec = clone.folder / "spec.json"
    spec.write_text('{"openapi": "3.1.0", "paths": {}}')
    (source,) = located(["OpenAPI:spec.json"], {})
    assert (source.type, source.location) == ("openapi", str(spec))
    check_place(source)
    (source,) = located(["OpenAPI: https://api.example.org"], {})
    assert source.location == "https://api.example.org"
    spec.unlink()
    spec.symlink_to(clone.secret)
    with pytest.raises(UserError, match="is a link"):
        located(["OpenAPI:spec.json"], {})


def test_no_file_that_is_offered_is_a_link(clone: Clone, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(clone.metatree)
    notes = clone.folder / "notes.md"
    notes.write_text("# Notes\n\nThe quay is long\n")
    with as_user(clone.attacker):
        build_tree(notes, out=clone.metatree).close()
    notes.unlink()
    notes.symlink_to(clone.secret)
    assert run(["find", "harbour", "-q"]) == 0  # built again from the folder; the source is offered
    assert run(["trust", "--show"]) == 0
    shown = capsys.readouterr().out
    assert (
        "index.db: yours, but without the sources below, which came with it" in shown and "  reads " in shown
    )
    assert run(["trust", "--yes"]) == 2
    assert f"is a link to {str(clone.secret)!r}" in capsys.readouterr().err
    with Tree.open(clone.folder) as tree:
        assert str(clone.secret) not in str(tree.sources())


@pytest.mark.parametrize("first", ["build", "trust"])
def test_a_source_without_a_type_is_the_folder_that_was_shown(
    clone: Clone, tmp_path: Path, capsys: pytest.CaptureFixture[str], first: str
) -> None:
    """A build found one for it: what was shown as read became a tree, with memories and sources from elsewhere."""
    (tmp_path / "diary").mkdir()
    (tmp_path / "diary" / "d.md").write_text("# Diary\n\nThe safe is behind the picture.\n")
    (tmp_path / "kb").mkdir()
    build_tree(tmp_path / "diary", out=tmp_path / "kb" / ".metatree").close()
    shutil.rmtree(clone.metatree)
    with as_user(clone.attacker):
        build_tree(clone.folder).close()
    places = {"folder": "..", "": str(tmp_path / "kb" / ".metatree")}
    records = [
        {"type": kind, "place": place, "options": {}, "mount": kind or "kb"} for kind, place in places.items()
    ]
    change(
        clone.metatree / "index.db",
        ("UPDATE meta SET value = ? WHERE key = 'sources'", (json.dumps(records),)),
    )
    if first == "build":
        build_tree(clone.folder).close()
    assert run(["trust", "--yes"]) == 0
    assert f"reads {places['']}" in capsys.readouterr().out
    assert run(["build", "--add", str(clone.folder / "a.md")]) == 0
    with Tree.open(clone.metatree) as tree:
        assert [source.type for source in tree.sources()] == ["folder", "folder", "file"]
        assert not any("Diary" in node.title or "picture" in node.description for _, node in tree.walk())


@pytest.mark.parametrize("cwd", [None, "."])
def test_a_command_that_is_offered_is_never_started_in_the_folder(clone: Clone, cwd: str | None) -> None:
    """Its folder was read anew as if it had been named there: `python server.py` of the clone ran."""
    kept = known_source(SourceRef("python server.py", {"cwd": cwd}, "tools", "mcp"))
    (source,) = located([kept], {})
    assert Path(source.options["cwd"] or source.options["named_in"]) == Path.home()
