"""Marks and keys tell whose a store is; `metatree trust` shows all that it would accept, and accepts no more."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from metatree_agents.cli._main import run
from metatree_agents.gateway.gateway import state_folder
from metatree_agents.hosts._records import Records
from metatree_agents.service.replication.copies import copies_folder
from metatree_memory_tools import build_tree
from metatree_routers.wrappers.disk_cache import DiskCache

from metatree import Tree
from metatree._util.cache_folder import cache_folder, cache_part
from metatree.errors import BrokenStore, UntrustedStore, UserError
from metatree.notes.notes import remember
from metatree.notes.permissions import Permissions
from metatree.storage.acceptance import accept, survey
from metatree.storage.store import Store
from metatree.storage.store_files import is_exempt
from metatree.storage.user_key import _process_key, config_folder, user_key
from tests.integration.trust.prepared import (
    Clone,
    as_user,
    brings_a_service_with_an_administrator,
    brings_memories_permissions_and_runs,
    starts_a_command,
    state,
)

pytestmark = pytest.mark.integration


def test_a_memory_of_another_is_left_alone_until_it_is_accepted(
    clone: Clone, capfd: pytest.CaptureFixture[str]
) -> None:
    brings_memories_permissions_and_runs(clone)
    before = (clone.metatree / "memory.db").read_bytes()
    assert run(["memories"]) == 2  # the index is not ours yet, and this command builds none
    assert run(["build", "."]) == 0
    assert run(["memories"]) == 1
    assert run(["remember", "The harbour lies in the north"]) == 2
    assert "metatree trust" in capfd.readouterr().err
    assert (clone.metatree / "memory.db").read_bytes() == before
    assert run(["trust", "--yes"]) == 0
    output = capfd.readouterr()
    assert "1 remembered text of victim" in output.err + output.out
    assert re.search(r"lets send_mail \([0-9a-f]{12}\) change things without asking", output.err + output.out)
    assert run(["memories"]) == 0
    assert "PASSPHRASE" in capfd.readouterr().out
    assert run(["trust", "--revoke"]) == 0
    assert run(["memories"]) == 2


def test_without_a_terminal_nothing_is_accepted(clone: Clone, capfd: pytest.CaptureFixture[str]) -> None:
    starts_a_command(clone)
    assert run(["trust"]) == 2
    output = capfd.readouterr()
    assert "--yes" in output.err
    assert f"starts {clone.command}" in output.err
    assert not survey(clone.metatree / "index.db").trusted


def test_what_would_be_allowed_is_json(clone: Clone, capfd: pytest.CaptureFixture[str]) -> None:
    starts_a_command(clone)
    assert run(["trust", "--show", "--json"]) == 0
    data = json.loads(capfd.readouterr().out)
    index = next(each for each in data["stores"] if each["path"].endswith("index.db"))
    assert (index["trusted"], index["sources"]) == (False, [f"starts {clone.command}, in your home"])


def test_sources_that_an_index_of_another_named_are_read_once_they_are_accepted(
    clone: Clone, capfd: pytest.CaptureFixture[str]
) -> None:
    clone.name_sources(
        {"type": "folder", "place": "..", "options": {}, "mount": "clone"},
        {"type": "folder", "place": str(clone.secret.parent), "options": {}, "mount": "diary"},
    )
    assert run(["ask", "Where is the harbour?"]) == 0
    assert "PASSPHRASE" not in capfd.readouterr().out
    assert run(["trust", "--yes"]) == 0
    capfd.readouterr()
    with Tree.open(clone.folder) as tree:
        assert [source.mount for source in tree.sources()] == ["clone", "diary"]
        assert "PASSPHRASE" in tree.content("diary/diary.md")
    assert run(["trust", "--show"]) == 0
    assert "trusted: you made or accepted all of it" in capfd.readouterr().out


def test_a_link_is_not_accepted_for_the_source_that_is_shown(
    clone: Clone, capfd: pytest.CaptureFixture[str]
) -> None:
    (clone.folder / "docs").symlink_to(clone.secret.parent)
    clone.name_sources(
        {"type": "folder", "place": "..", "options": {}, "mount": "clone"},
        {"type": "folder", "place": "../docs", "options": {}, "mount": "docs"},
    )
    assert run(["build", "."]) == 0
    assert run(["trust", "--yes"]) == 2
    assert f"leads to {str(clone.secret.parent)!r}" in capfd.readouterr().err
    with Tree.open(clone.folder) as tree:
        assert [source.location for source in tree.sources()] == [str(clone.folder)]
    (clone.folder / "docs").unlink()
    (clone.folder / "docs").mkdir()
    (clone.metatree / "docs").mkdir()  # a place is below the folder, whichever file is named
    assert run(["trust", str(clone.metatree / "index.db"), "--yes"]) == 0
    with Tree.open(clone.folder) as tree:
        assert str(clone.folder / "docs") in [source.location for source in tree.sources()]


def test_one_moves_and_renames_ones_own_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    (home / "src" / "shop").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME")
    with build_tree(home / "src" / "shop") as tree:
        remember(tree, "Mine", who="ann")
    assert (home / ".config" / "metatree" / "trust.key").stat().st_mode & 0o777 == 0o600
    (home / "src" / "shop").rename(home / "shop")
    with Tree.open(home / "shop") as tree:  # by the inode
        assert not tree.memory.read_only
    (home / "shop").rename(home / "src" / "shop")
    shutil.copytree(home, tmp_path / "new home")  # by the path below the home
    monkeypatch.setenv("HOME", str(tmp_path / "new home"))
    with Tree.open(tmp_path / "new home" / "src" / "shop") as tree:
        assert not tree.memory.read_only
    shutil.copytree(home / "src" / "shop", tmp_path / "copy")
    with pytest.raises(UntrustedStore):
        Tree.open(tmp_path / "copy")


def test_trees_below_folders_that_a_variable_names_need_no_mark(
    clone: Clone, monkeypatch: pytest.MonkeyPatch
) -> None:
    brings_memories_permissions_and_runs(clone)
    with pytest.raises(UntrustedStore):
        Tree.open(clone.folder)
    monkeypatch.setenv("METATREE_TRUST", os.pathsep.join(["/nowhere", str(clone.folder.parent)]))
    with Tree.open(clone.folder) as tree:
        assert len(Permissions(tree.memory).all()) == 1


@pytest.mark.parametrize("link", [".metatree", ".metatree/memory.db"])
def test_a_link_into_a_folder_that_the_variable_names_is_not_followed(
    clone: Clone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, link: str
) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "plan.md").write_text("The launch is on Friday.\n")
    with build_tree(own) as tree:
        remember(tree, "The launch is late.")
    shutil.rmtree(clone.metatree)
    (clone.folder / link).parent.mkdir(exist_ok=True)
    (clone.folder / link).symlink_to(own / link)
    monkeypatch.setenv("METATREE_TRUST", str(own))
    with pytest.raises(UserError, match="is a link and is not followed"):
        build_tree(clone.folder)
    (tmp_path / "other name").symlink_to(own)
    with Tree.open(tmp_path / "other name") as tree:
        assert "plan.md" in tree, "a folder that its user names by a link is theirs"


def test_a_program_may_say_that_it_trusts_a_tree(clone: Clone) -> None:
    brings_memories_permissions_and_runs(clone)
    with Tree.open(clone.folder, trust=True) as tree:
        assert len(Permissions(tree.memory).all()) == 1
    with pytest.raises(UntrustedStore):
        Tree.open(clone.folder)


def test_several_users_may_accept_the_same_tree(clone: Clone) -> None:
    for name in ("index.db", "memory.db"):
        file = clone.metatree / name
        if file.exists():
            accept(file)
    assert survey(clone.metatree / "index.db").trusted
    Tree.open(clone.folder).close()
    with as_user(clone.attacker):
        assert survey(clone.metatree / "index.db").trusted
        Tree.open(clone.folder).close()
    with as_user(clone.folder.parent / "a third"), pytest.raises(UntrustedStore):
        Tree.open(clone.folder)


def test_where_no_key_can_be_kept_a_tree_is_known_to_this_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("METATREE_CONFIG_DIR", str(tmp_path / "file" / "config"))
    (tmp_path / "shop").mkdir()
    build_tree(tmp_path / "shop").close()
    Tree.open(tmp_path / "shop").close()
    assert "METATREE_CONFIG_DIR" in caplog.text
    code = f"from metatree import Tree; Tree.open({str(tmp_path / 'shop')!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "UntrustedStore" in done.stderr


def test_processes_that_begin_at_the_same_time_make_one_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("METATREE_CONFIG_DIR", str(tmp_path / "config"))
    code = "from metatree.storage.user_key import user_key; print(user_key().hex())"
    running = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(6)
    ]
    keys = {process.communicate()[0].strip() for process in running}
    assert keys == {user_key().hex()}
    assert [path.name for path in (tmp_path / "config").iterdir()] == ["trust.key"]


def test_the_mark_covers_the_sources(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    build_tree(tmp_path / "shop").close()
    index = tmp_path / "shop" / ".metatree" / "index.db"
    assert survey(index).trusted
    with closing(sqlite3.connect(index)) as made:
        made.execute("UPDATE meta SET value = replace(value, '..', '/etc') WHERE key = 'sources'")
        made.commit()
    assert not replace(survey(index), runs=0).trusted


def test_nothing_that_is_accepted_is_hidden(clone: Clone, capfd: pytest.CaptureFixture[str]) -> None:
    """One record that is none hides no other, and what there is too much of to list is counted."""
    brings_memories_permissions_and_runs(clone)
    brings_a_service_with_an_administrator(clone)
    before = survey(clone.metatree / "memory.db").held["other nodes"]
    with closing(sqlite3.connect(clone.metatree / "memory.db")) as made:
        made.executescript(
            "INSERT INTO meta VALUES ('permission:aa', '{}'), ('permission:bb', '{');"
            "UPDATE node SET provenance = '{' WHERE id = '.';"
            "INSERT INTO node(seq, id, position, kind, title, description, provenance, digest, kept)"
            " VALUES (900, 'x', 1, 'memory', '', '', '{', '', 0);"
            "INSERT INTO board VALUES (1, 'main', NULL, 0);"
        )
    with closing(sqlite3.connect(clone.metatree / "service.db")) as made, made:
        made.executemany(
            "INSERT INTO service_user(name, role, secret, made_at) VALUES (?, 'a', 's', 0)",
            [(f"u{number}",) for number in range(150)],
        )
    assert run(["trust", "--show"]) == 0
    output = capfd.readouterr().out
    assert "lets send_mail (" in output
    assert output.count("lets a tool without a name change things") == 2
    assert "1 remembered text of victim" in output
    assert f"holds other nodes: {before + 1}\n" in output
    assert "lets 51 others log in" in output


def test_a_command_is_shown_as_it_is(clone: Clone, capfd: pytest.CaptureFixture[str]) -> None:
    command = "sh -c 'true https://a:b;touch x;@ ?token=c;touch y' \x9b2J\u202e"
    clone.name_sources({"type": "mcp", "location": command, "options": {"cwd": "/"}, "mount": "tools"})
    assert run(["trust", "--show"]) == 0
    escaped = command.replace("\x9b", "\\x9b").replace("\u202e", "\\u202e")
    assert f'  starts {escaped} with {{"cwd": "/"}}\n' in capfd.readouterr().out
    assert run(["trust", "--show", "--json"]) == 0
    output = capfd.readouterr().out
    assert not {"\x9b", "\u202e"} & set(output)
    assert json.loads(output)["stores"][0]["sources"] == [f'starts {command} with {{"cwd": "/"}}']


def test_nothing_that_is_shown_looks_like_something_else(
    clone: Clone, capfd: pytest.CaptureFixture[str]
) -> None:
    """Runs of blanks reach the next line of a terminal; other characters are unseen, or over the one before."""
    ours = "trusted: you made or accepted all of it"
    clone.name_sources(
        {"type": "folder", "place": f"../a{' ' * 200}{ours}", "options": {}, "mount": "a"},
        {"type": "folder", "place": f"../b\n{ours}", "options": {}, "mount": "b"},
        {"type": "folder", "place": "../\u3164\u2800c\u0336\ufe0fe\u0301", "options": {}, "mount": "c"},
        {"type": "mcp", "location": "c\u0430t  א rm", "options": {}, "mount": "d"},
    )
    assert run(["trust", "--show"]) == 0
    output = capfd.readouterr().out
    assert "/a " + "\\x20" * 199 + ours in output
    assert f"/b\\n{ours}" in output
    assert "/\\u3164\\u2800c\\u0336\\ufe0fe\u0301\n" in output  # a letter with its accent stays
    assert "starts c\\u0430t \\x20\\u05d0 rm, in your home\n" in output


@pytest.mark.parametrize(
    "sources",
    [
        {"type": "mcp", "location": "sh", "options": {}},
        ["sh"],
        [{"type": "mcp", "location": "sh", "place": None, "options": {}, "mount": "tools"}],
        [{"type": "mcp", "location": ["sh"], "options": {}, "mount": "tools"}],
        [{"type": "mcp", "location": "sh", "options": [], "mount": "tools"}],
        [{"location": "sh", "options": {}, "mount": "tools", "more": "x"}],
        [{"type": "", "location": "mcp:sh", "options": {}, "mount": "tools"}],
    ],
)
def test_sources_that_cannot_be_shown_are_not_accepted(
    clone: Clone, sources: object, capfd: pytest.CaptureFixture[str]
) -> None:
    with closing(sqlite3.connect(clone.metatree / "index.db")) as made, made:
        made.execute("UPDATE meta SET value = ? WHERE key = 'sources'", (json.dumps(sources),))
    assert run(["trust", "--yes"]) == 2
    assert "its list of sources" in capfd.readouterr().err
    with pytest.raises(UserError, match="its list of sources"):
        accept(clone.metatree / "index.db")
    assert not survey(clone.metatree / "index.db").trusted


def test_only_what_was_shown_is_accepted(clone: Clone) -> None:
    starts_a_command(clone)
    index = clone.metatree / "index.db"
    with closing(sqlite3.connect(index)) as made, made:
        made.execute("INSERT INTO meta VALUES ('offered_sources', '[]')")
    seen = survey(index)
    assert [record["type"] for record in seen.sources] == ["mcp"]
    with closing(sqlite3.connect(index)) as made, made:
        made.execute("UPDATE meta SET value = replace(value, 'touch', 'rm') WHERE key = 'sources'")
    with pytest.raises(UserError, match="changed meanwhile"):
        accept(index, seen)
    assert not survey(index).trusted


@pytest.mark.parametrize("store", ["index.db", "memory.db"])
@pytest.mark.parametrize("place", ["in the file", "in its log"])
def test_what_was_only_counted_is_accepted_as_it_was_too(clone: Clone, store: str, place: str) -> None:
    """Between showing and accepting, a text may take the place of another in somebody's name."""
    brings_memories_permissions_and_runs(clone)
    file = clone.metatree / store
    seen = survey(file)
    made = sqlite3.connect(file)
    try:
        with made:
            if place == "in its log":
                made.execute("PRAGMA journal_mode = WAL")
            found = made.execute("UPDATE node SET description = 'Pay to the account below'").rowcount
        assert found and survey(file) == seen
        with pytest.raises(UserError, match="changed meanwhile"):
            accept(file, seen)
    finally:
        made.close()
    assert not survey(file).trusted
    accept(file, survey(file))
    assert survey(file).trusted


def test_sources_that_another_is_said_to_have_offered_hide_none(
    clone: Clone, capfd: pytest.CaptureFixture[str]
) -> None:
    starts_a_command(clone)
    with closing(sqlite3.connect(clone.metatree / "index.db")) as made, made:
        record = {"type": "folder", "place": "..", "options": {}}
        made.execute("INSERT INTO meta VALUES ('offered_sources', ?)", (json.dumps([record]),))
    assert run(["trust", "--show"]) == 0
    assert f"starts {clone.command}" in capfd.readouterr().out
    accept(clone.metatree / "index.db")
    assert not survey(clone.metatree / "index.db").offered


def test_looking_at_a_tree_that_cannot_be_written_leaves_no_file_beside_it(
    clone: Clone, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A file of another user beside a log keeps its owner out; the disk may have no room for one at all."""
    brings_memories_permissions_and_runs(clone)
    before = state(clone.metatree)
    for module in ("storage.store", "storage.acceptance", "trees.tree"):
        monkeypatch.setattr(f"metatree.{module}.writable", lambda file: False)
    monkeypatch.setattr("metatree_agents.cli.commands._trees.writable", lambda file: False)
    assert run(["ask", "Where is the harbour?"]) == 2
    assert "metatree trust" in capfd.readouterr().err
    assert run(["trust", "--yes"]) == 0
    assert run(["memories"]) == 0
    assert "PASSPHRASE" in capfd.readouterr().out
    assert run(["trust", "--revoke"]) == 0
    assert run(["memories"]) == 2
    assert state(clone.metatree) == before


def test_a_user_without_a_home_can_work(
    clone: Clone, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", home)
    for name in ("METATREE_CONFIG_DIR", "METATREE_CACHE_DIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    _process_key.cache_clear()
    shutil.rmtree(clone.metatree)
    assert run(["ask", "Where is the harbour?"]) == 0
    output = capfd.readouterr()
    assert "in the south" in output.out
    assert "METATREE_CONFIG_DIR" in output.err
    assert run(["remember", "The harbour lies in the north"]) == 0


def test_nothing_is_accepted_where_no_mark_can_be_kept(
    clone: Clone, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("METATREE_CONFIG_DIR")
    monkeypatch.setattr(Path, "home", home)
    before = (clone.metatree / "memory.db").read_bytes()
    assert run(["trust", "--yes"]) == 2
    assert "no home to keep it in: set METATREE_CONFIG_DIR" in capsys.readouterr().err
    assert (clone.metatree / "memory.db").read_bytes() == before
    assert run(["doctor"]) == 5
    assert "this user has no home, where hosts keep their settings" in capsys.readouterr().out


def test_a_key_is_kept_where_files_have_one_name_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def link(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setenv("METATREE_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setattr(os, "link", link)
    key = user_key()
    assert (tmp_path / "config" / "trust.key").read_bytes() == key
    assert [path.name for path in (tmp_path / "config").iterdir()] == ["trust.key"]


@pytest.mark.parametrize("kind", ["users", "permissions", "authors"])
def test_a_store_of_names_without_an_end_takes_no_memory_to_show(
    clone: Clone, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("metatree.storage.acceptance._MOST", 3)
    file = clone.metatree / "memory.db"
    for more, problem in ((3, ""), (1, "it is too large to look into")):
        with as_user(clone.attacker), Tree.open(clone.folder) as tree:
            tree.memory.execute(
                "CREATE TABLE IF NOT EXISTS service_user(name TEXT PRIMARY KEY, role TEXT NOT NULL)"
            )
            for number in range(more):
                name = f"{more}-{number}"
                if kind == "users":
                    tree.memory.execute("INSERT INTO service_user VALUES (?, 'user')", (name,))
                elif kind == "permissions":
                    tree.memory.execute("INSERT INTO meta VALUES (?, '{}')", (f"permission:{name}",))
                else:
                    remember(tree, f"The harbour has gate {name}", who=name)
        assert survey(file).problem == problem


def test_a_definition_that_is_too_long_is_told_from_a_damaged_one(tmp_path: Path) -> None:
    """SQLite has the same code for both."""
    columns = ", ".join(f"column_{number}" for number in range(1_000))
    broken = "UPDATE sqlite_master SET sql = 'CREATE TABLE one((('"
    for name, script, problem in (
        ("long", f"CREATE TABLE many({columns})", "it is too large to look into"),
        ("broken", f"CREATE TABLE one(x); PRAGMA writable_schema=ON; {broken}", "it is damaged (malformed"),
    ):
        file = tmp_path / f"{name}.db"
        with closing(sqlite3.connect(file)) as made:
            made.executescript(script)
        assert survey(file).problem.startswith(problem)


@pytest.mark.parametrize("name", ["memory.db", "agents.db", "service.db"])
def test_a_store_without_tables_that_was_there_is_not_made_ones_own(tmp_path: Path, name: str) -> None:
    """Whoever made it may have rights to it, and would read what is kept in it."""
    file = tmp_path / name
    with closing(sqlite3.connect(file)) as made:
        made.executescript("PRAGMA user_version=1; CREATE TABLE x(y); DROP TABLE x; VACUUM")
    before = file.read_bytes()
    with pytest.raises(BrokenStore, match="is empty: what it held is lost"):
        Store.open(file)
    assert file.read_bytes() == before


@pytest.mark.parametrize("home", [".", "home"])
def test_a_copy_elsewhere_is_not_ones_own_where_the_home_depends_on_the_current_folder(
    clone: Clone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: str
) -> None:
    monkeypatch.setenv("HOME", home)
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "a.md").write_text("# Mine\n")
    monkeypatch.chdir(tmp_path / "own")
    build_tree(Path()).close()
    shutil.rmtree(clone.metatree)
    shutil.copytree(tmp_path / "own" / ".metatree", clone.metatree)
    monkeypatch.chdir(clone.folder)
    with pytest.raises(UntrustedStore):
        Store.open(clone.metatree / "index.db")


def test_what_is_accepted_is_kept_for_ones_own_user_alone(clone: Clone) -> None:
    """git and archives give rights to others, who would read what is remembered from then on."""
    clone.metatree.chmod(0o777)
    stores = [clone.metatree / "index.db", clone.metatree / "memory.db"]
    for store in stores:
        store.chmod(0o666)
    assert run(["trust", "--yes"]) == 0
    assert [each.stat().st_mode & 0o777 for each in (clone.metatree, *stores)] == [0o700, 0o600, 0o600]


def test_base_folders_that_depend_on_the_current_one_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """XDG Base Directory Specification: "If an implementation encounters a relative path … ignore it"."""
    for variable in ("XDG_CACHE_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(variable, ".cache")
    monkeypatch.delenv("METATREE_CACHE_DIR", raising=False)
    for folder in (cache_folder(), state_folder(), Records().folder):
        assert folder.is_relative_to(Path.home()), folder


@pytest.mark.parametrize("variable", ["METATREE_CACHE_DIR", "METATREE_CONFIG_DIR"])
def test_folders_of_ours_that_depend_on_the_current_one_are_not_used(
    variable: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A folder that brings `.cache/documents` as a link had files elsewhere deleted; one with a key was one's own."""
    monkeypatch.setenv(variable, "./.own")
    folder = cache_folder() if variable == "METATREE_CACHE_DIR" else config_folder()
    assert folder is not None and folder.is_absolute() and ".own" not in folder.parts
    assert f"{variable}='./.own' is not used" in caplog.text
    monkeypatch.setenv(variable, "~/own")
    folder = cache_folder() if variable == "METATREE_CACHE_DIR" else config_folder()
    assert folder == Path.home() / "own"


def test_no_part_of_the_cache_is_kept_through_a_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """To make room, what is oldest in it is deleted."""
    monkeypatch.setenv("METATREE_CACHE_DIR", str(tmp_path))
    (tmp_path / "photos").mkdir()
    for name in ("documents", "answers", "copies"):
        (tmp_path / name).symlink_to(tmp_path / "photos")
        assert cache_part(name).resolve() != tmp_path / "photos"
    assert f"{tmp_path / 'documents'} is a link and is not used" in caplog.text
    assert DiskCache(name="answers").folder == cache_part("answers")
    assert copies_folder() == cache_part("copies")
    (tmp_path / "documents").unlink()
    assert cache_part("documents") == tmp_path / "documents"


def test_a_folder_that_depends_on_the_current_one_is_not_trusted(
    clone: Clone, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(clone.folder)
    monkeypatch.setenv("METATREE_TRUST", os.pathsep.join([".", ".metatree"]))
    assert not is_exempt(clone.metatree / "index.db")
    assert "METATREE_TRUST='.' is not used" in caplog.text
    monkeypatch.setenv("METATREE_TRUST", str(clone.folder))
    assert is_exempt(clone.metatree / "index.db")
