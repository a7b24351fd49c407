"""Links inside of a folder to what is left out of it, modules in the place of packages, and what `trust` shows."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from metatree_agents.cli._main import run
from metatree_agents.tools.toolkit import Toolkit
from metatree_memory_tools import build_tree
from metatree_memory_tools.build.build import changed_files
from metatree_memory_tools.databases._tools import database_of, find_rows, query_database
from metatree_memory_tools.git._show import blame_text

from metatree import Blackboard, Tree
from metatree.errors import MetatreeError, UserError
from metatree.settings import Settings
from tests.integration.trust.prepared import Clone

pytestmark = pytest.mark.integration

HIDDEN = "The spare key lies under the third flower pot."


@pytest.mark.parametrize("name", [".env", "id_rsa", ".git/notes", ".metatree/notes"])
def test_a_file_that_is_named_is_no_link_to_what_is_left_out(clone: Clone, name: str) -> None:
    target = clone.folder / name
    target.parent.mkdir(exist_ok=True)
    target.write_text(HIDDEN)
    link = clone.folder / "notes.md"
    link.symlink_to(name)
    for given in ("notes.md", link):
        with pytest.raises(UserError, match=r"is a link (to|that leads into)"):
            build_tree(given, out=clone.folder.parent / "tree")


@pytest.mark.parametrize("source", ["notes.md", "."])
@pytest.mark.parametrize("refreshed", [True, False])
def test_a_file_that_becomes_such_a_link_is_read_no_more(
    clone: Clone, capsys: pytest.CaptureFixture[str], source: str, refreshed: bool
) -> None:
    (clone.folder / ".env").write_text(HIDDEN)
    (clone.folder / ".ssh").mkdir()
    (clone.folder / ".ssh" / "x.md").write_text(HIDDEN)
    (clone.folder / "deep").mkdir()
    (clone.folder / "deep" / "x.md").write_text("# Flower pots\n\nThere are three pots.\n")
    file = clone.folder / "notes.md"
    file.write_text("# Notes\n\nThe flower pot is in the south.\n")
    assert run(["build", source]) == 0
    file.unlink()
    file.symlink_to(".env")
    shutil.rmtree(clone.folder / "deep")
    (clone.folder / "deep").symlink_to(".ssh")
    more = [] if refreshed else ["--no-refresh"]
    for command in (
        ["context", "spare key third flower pot", *more],
        ["ask", "Where does the spare key lie?", *more],
        ["find", "spare key flower pot", *more],
        ["show", "notes.md", "--content"],
        ["export", str(clone.folder.parent / "e.metatree")],
    ):
        run(command)
    with Tree.open(clone.folder / ".metatree") as tree:
        try:
            said = str(asyncio.run(Toolkit(tree, refresh=False).grep("spare key")))
        except UserError as exc:  # as of a source that is gone
            said = str(exc)
        rows = str(tree.index.rows("SELECT * FROM node"))
    out, err = capsys.readouterr()
    assert "third flower" not in (out + err + said + rows).replace("spare key third flower pot", "")


def test_a_folder_that_is_named_is_no_link_into_git(clone: Clone, capsys: pytest.CaptureFixture[str]) -> None:
    (clone.folder / ".git").mkdir(exist_ok=True)
    (clone.folder / ".git" / "config").write_text(HIDDEN)
    (clone.folder / "docs").symlink_to(".git")
    for given in ("docs", str(clone.folder / "docs"), "docs/config"):
        assert run(["build", given]) == 2
        assert "leads into '.git'" in capsys.readouterr().err


@pytest.mark.parametrize("folder", [".ssh", ".aws", ".gnupg", ".kube", ".ssh/conf.d"])
def test_a_file_that_is_named_is_in_no_folder_of_secrets_by_a_link(
    clone: Clone, capsys: pytest.CaptureFixture[str], folder: str
) -> None:
    (clone.folder / folder).mkdir(parents=True)
    (clone.folder / folder / "config").write_text(HIDDEN)
    (clone.folder / folder / "id_rsa").write_text(HIDDEN)
    (clone.folder / "docs").symlink_to(folder)
    names = ("docs/config", str(clone.folder / "docs" / "config"), "file:docs/config", "docs/id_rsa")
    for given in (*names, "docs") if folder != ".kube" else names[:3]:
        assert run(["build", given]) == 2, given
        assert "which is left out" in capsys.readouterr().err
    assert not (clone.folder / folder / ".metatree").exists()
    assert run(["build", f"{folder}/config"]) == 0  # it is named


@pytest.mark.parametrize(
    "source",
    [
        "mcp:sh -c ': -----BEGIN RSA PRIVATE KEY-----\ntouch ran\n: -----END RSA PRIVATE KEY-----'",
        "mcp:sh password=hunter2hunter2/ran.sh",
        "mcp:sh ghp_" + "aB3d" * 9,
    ],
)
def test_settings_that_are_asked_for_are_shown_as_they_are(
    clone: Clone, capsys: pytest.CaptureFixture[str], source: str
) -> None:
    text = source.replace("\n", "\\n")
    (clone.folder / "metatree.toml").write_text(f'source = ["{text}"]\n')
    assert run(["trust", "--show"]) in (0, 1)
    shown = " ".join(capsys.readouterr().out.split())
    assert "*" not in shown
    for piece in source.split():
        assert piece.replace("\n", " ") in shown, shown


def test_settings_are_named_by_their_whole_path(clone: Clone) -> None:
    (clone.folder / "settings.toml").write_text("similar_images = 3\n")
    with pytest.raises(UserError, match="is relative"):
        Settings.load(environment={"METATREE_SETTINGS": "settings.toml"})


@pytest.mark.parametrize("named", ["pairs.jsonl", "./pairs.jsonl", "../clone/pairs.jsonl"])
def test_questions_that_boards_begin_with_are_named_by_their_whole_path(
    clone: Clone, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    (clone.folder / "pairs.jsonl").write_text('{"question": "Where is the harbour?", "answer": "North"}\n')
    settings = clone.folder.parent / "settings.toml"
    settings.write_text(f"qa_pair_file = {named!r}\n")
    for variable, value in (("METATREE_SETTINGS", str(settings)), ("METATREE_QA_PAIR_FILE", named)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(variable, value)
            with pytest.raises(
                UserError, match=r"(METATREE_QA_PAIR_FILE|settings.toml': qa_pair_file)=.* is relative"
            ):
                Blackboard()
    monkeypatch.setenv("METATREE_QA_PAIR_FILE", str(clone.folder / "pairs.jsonl"))
    assert Blackboard().questions.length == 1
    monkeypatch.setenv("METATREE_QA_PAIR_FILE", "")
    assert Blackboard().questions.length == 0


@pytest.mark.parametrize(("option", "first"), [("-c", ""), ("-m", ""), ("-c", "."), ("-c", "./x/..")])
def test_no_module_of_the_folder_comes_in_the_place_of_a_package(
    clone: Clone, option: str, first: str
) -> None:
    """At a prompt, under `python -c` and `python -m`, Python looks for modules in the current folder first."""
    for name in ("tree_sitter_kotlin", "tree_sitter_go", "selectolax"):
        (clone.folder / f"{name}.py").write_text("open('ran', 'w').close()\n")
    (clone.folder / "a.kt").write_text("fun harbour() = 1\n")
    (clone.folder / "a.go").write_text("package a\n\nfunc Harbour() {}\n")
    (clone.folder / "a.html").write_text("<h1>Harbour</h1><p>Lies in the south.</p>\n")
    paths = [path for path in sys.path if path]
    code = (
        f"import sys; sys.path[:] = [{first!r} or sys.path[0], *{paths!r}]\n"
        "from metatree_memory_tools import build_tree\n"
        "with build_tree('.') as tree: print(tree.get('a.go::Harbour').title)"
    )
    elsewhere = clone.folder.parent / "programs"
    elsewhere.mkdir()
    (elsewhere / "program.py").write_text(code)
    done = subprocess.run(
        [sys.executable, option, code if option == "-c" else "program"],
        cwd=clone.folder,
        env={**os.environ, "PYTHONPATH": str(elsewhere)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == "Harbour", done.stderr
    assert not (clone.folder / "ran").exists()


def test_a_folder_whose_name_is_a_uri_is_that_folder(clone: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite takes `file:x/…` for a URI where it was built so, and would open `x/…`, which was not looked at."""
    for name in ("file:x", "x"):
        (clone.folder / name).mkdir()
        (clone.folder / name / "a.md").write_text(f"# {name}\n")
        assert run(["build", f"./{name}"]) == 0
    opened: list[str] = []
    real = sqlite3.connect

    def connect(database: str, *args: object, **options: object) -> sqlite3.Connection:
        opened.append(str(database))
        return real(database, *args, **options)  # type: ignore[call-overload,no-any-return]

    monkeypatch.setattr(sqlite3, "connect", connect)
    with Tree.open("file:x") as tree:
        assert tree.children()[0].id == "a.md"
    for command in ("show", "runs", "memories", "find a", "ask a", "export ../e"):
        run([*command.split(), "--source", "file:x"])
    files = [each for each in opened if each not in ("", ":memory:")]
    assert len(files) > 5
    for each in files:
        assert each.startswith(("/", "file:///")), each


def test_no_database_is_reached_by_a_link(clone: Clone) -> None:
    for name, town in (("shop", "public"), ("private", "hidden")):
        with closing(sqlite3.connect(clone.folder / f"{name}.db")) as connection, connection:
            connection.execute("CREATE TABLE customer (name TEXT, town TEXT)")
            connection.execute("INSERT INTO customer VALUES ('Bob', ?)", (town,))
        (clone.folder / f"{name}.csv").write_text(f"name,town\nBob,{town}\n")
    (clone.folder / ".gitignore").write_text("private.*\n")
    with build_tree(clone.folder, out=clone.folder.parent / "tree") as tree:
        for kind in ("db", "csv"):
            file = clone.folder / f"shop.{kind}"
            file.unlink()
            file.symlink_to(f"private.{kind}")
            with pytest.raises(MetatreeError), closing(database_of(tree, tree.get(f"shop.{kind}"))):
                pass


def test_a_file_called_as_an_index_makes_no_tree_of_a_folder(clone: Clone) -> None:
    """The files of that folder would not be in the tree, and nobody would know."""
    folder = clone.folder / "inner"
    folder.mkdir()
    (folder / "index.db").write_text("no store\n")
    (folder / "a.md").write_text("# Harbour\n")
    with build_tree(folder, out=clone.folder.parent / "tree") as tree:
        assert {"a.md", "index.db"} <= {node.id for node in tree.children()}


def test_blame_reads_no_file_that_a_link_leads_to(clone: Clone) -> None:
    clone_git(clone.folder, "init", "-q", ".")
    (clone.folder / ".gitignore").write_text(".env\n")
    (clone.folder / "notes.md").write_text("# Notes\n\nThe harbour.\n")
    clone_git(clone.folder, "add", "-A")
    clone_git(clone.folder, "commit", "-qm", "one")
    (clone.folder / ".env").write_text(HIDDEN)
    assert "The harbour" in blame_text(clone.folder, "notes.md", 1, 9)
    (clone.folder / "notes.md").unlink()
    (clone.folder / "notes.md").symlink_to(".env")
    assert HIDDEN not in blame_text(clone.folder, "notes.md", 1, 9)


def clone_git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.mark.parametrize("given", ["loop", "folder:loop", "file:loop", "chats:loop", "inner/loop/x"])
def test_links_that_lead_to_each_other_lead_to_nothing(
    clone: Clone, capsys: pytest.CaptureFixture[str], given: str
) -> None:
    (clone.folder / "inner").mkdir()
    for folder in (clone.folder, clone.folder / "inner"):
        (folder / "loop").symlink_to("again")
        (folder / "again").symlink_to("loop")
    assert run(["build", given]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_what_is_added_to_a_tree_follows_no_link_in_the_place_of_what_is_there(
    clone: Clone, capsys: pytest.CaptureFixture[str]
) -> None:
    """As a pull of git may bring it: nobody has named the link."""
    shutil.rmtree(clone.metatree)
    docs, readme = clone.folder / "docs", clone.folder / "README.md"
    docs.mkdir()
    for file in (docs / "a.md", readme, clone.folder / "more.md"):
        file.write_text("# Tea\n\nThe tea is green.\n")
    assert run(["build", "docs", "README.md"]) == 0
    kept = readme.read_text()
    for place, target in ((readme, clone.secret), (docs, clone.secret.parent)):
        shutil.rmtree(place) if place.is_dir() else place.unlink()
        place.symlink_to(target)
        assert run(["build", "--add", "more.md"]) == 2
        assert "now: it is not read" in (said := capsys.readouterr().err) or "leads to" in said
        with Tree.open(clone.metatree) as tree:
            assert all(str(clone.secret.parent) not in source.location for source in tree.sources())
        place.unlink()
        readme.write_text(kept)
    assert run(["build", "--remove", "docs", "--add", "more.md"]) == 0


def test_a_link_in_the_place_of_a_database_is_asked_by_no_tool(clone: Clone) -> None:
    shutil.rmtree(clone.metatree)
    for place in (clone.folder / "shop.db", clone.secret.with_name("own.db")):
        with closing(sqlite3.connect(place)) as store, store:
            store.execute("CREATE TABLE customer(name TEXT, street TEXT)")
            store.execute("INSERT INTO customer VALUES ('ann', ?)", (f"street of {place.name}",))
    build_tree("database:shop.db", out=clone.metatree).close()
    (clone.folder / "shop.db").unlink()
    (clone.folder / "shop.db").symlink_to(clone.secret.with_name("own.db"))
    with Tree.open(clone.metatree) as tree:
        node = next(node for _, node in tree.walk() if node.kind == "table")
        for tool, arguments in (
            (query_database, {"sql": "SELECT * FROM customer"}),
            (find_rows, {"text": "ann"}),
        ):
            with pytest.raises(UserError, match="not read"):
                tool.function(node=node, tree=tree, **arguments)


def test_a_link_in_the_place_of_a_file_leaves_the_other_sources(clone: Clone) -> None:
    shutil.rmtree(clone.metatree)
    notes = clone.folder / "notes.md"
    notes.write_text("# Notes\n\nThe quay is long.\n")
    with build_tree(notes, clone.folder / "a.md", out=clone.metatree) as tree:
        notes.unlink()
        notes.symlink_to(clone.secret)
        assert changed_files(tree) == 0
        (clone.folder / "a.md").write_text("# Harbour\n\nIt is in the north now.\n")
        assert changed_files(tree) == 1
