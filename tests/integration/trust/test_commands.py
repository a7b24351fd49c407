"""A `.metatree` that somebody else prepared starts nothing, reads nothing outside, and speaks in nobody's name."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import zipfile
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import pytest
from metatree_agents.cli._main import run
from metatree_agents.planner import Agents
from metatree_memory_tools import build_tree

from metatree import Blackboard, Node, Source, Tree, search
from metatree.errors import UserError
from metatree.notes.archive import export_memory, import_memory
from metatree.notes.notes import remember
from metatree.notes.permissions import Permissions
from metatree.storage.store import Store
from metatree.storage.trust import sign
from metatree.trees.edits import ready
from metatree.trees.layer import ROOT, Layer
from metatree.trees.source_files import digest_bytes
from tests.integration.trust.prepared import (
    Clone,
    add_resource,
    as_user,
    brings_a_service_with_an_administrator,
    brings_memories_permissions_and_runs,
    send_mail_tool,
    starts_a_command,
    state,
)

pytestmark = pytest.mark.integration

COMMANDS = (
    ["ask", "Where is the harbour?"],
    ["ask", "Where is the harbour?", "--no-refresh"],
    ["find", "harbour"],
    ["files", "harbour is wrong"],
    ["show"],
    ["show", "a.md"],
    ["runs"],
    ["trace"],
    ["resume", "r1"],
    ["questions"],
    ["memories"],
    ["remember", "The harbour lies in the north"],
    ["export", "-"],
    ["plugins", "--permissions"],
    ["goals", "list"],
    ["service", "users", "list"],
    ["build", "."],
    ["trust", "--show"],
)
MORE = (
    ["service", "check"],
    ["context", "harbour is wrong"],
    ["audit", "memory:0"],
    ["forget", "--by", "mallory", "--yes", "--verify"],
    ["answer", "r1:q1", "yes"],
    ["describe", "--yes"],
    ["import", "empty.metatree"],
    ["install", "--dry-run", "--project"],
    ["doctor"],
)


def has_a_resource_of_a_command(clone: Clone) -> None:
    """Nothing is to be built, so `--no-refresh` does not help."""
    clone.name_sources(
        {"type": "mcp", "location": clone.command, "options": {}, "mount": "tools"}, building=False
    )


def starts_a_command_beside_the_folder(clone: Clone) -> None:
    clone.name_sources(
        {"type": "folder", "place": "..", "options": {}, "mount": "clone"},
        {"type": "mcp", "location": clone.command, "options": {}, "mount": "tools"},
    )


def reads_another_folder(clone: Clone) -> None:
    clone.name_sources({"type": "folder", "place": str(clone.secret.parent), "options": {}})


def reads_another_folder_by_a_relative_path(clone: Clone) -> None:
    clone.name_sources({"type": "folder", "place": "../../elsewhere", "options": {}}, building=False)


def mounts_a_tree_that_starts_a_command(clone: Clone) -> None:
    with as_user(clone.attacker):
        inner = clone.folder / "inner"
        inner.mkdir()
        (inner / "b.md").write_text("# Inner\n")
        build_tree(inner).close()
        with Store.open(inner / ".metatree" / "index.db") as store:
            record = {"type": "mcp", "location": clone.command, "options": {}, "mount": "tools"}
            Layer(store).set_fact("sources", [record])
            add_resource(Layer(store))
            sign(store)
    clone.name_sources({"type": "tree", "place": "../inner", "options": {}, "mount": "inner"})


def fetches_a_private_address(clone: Clone) -> None:
    """The listener takes up connections and answers nothing."""
    clone.listener.listen()
    address = f"http://127.0.0.1:{clone.listener.getsockname()[1]}/"
    options = {"allow_private": True, "robots": False, "seconds": 1}
    clone.name_sources({"type": "web", "location": address, "options": options, "mount": "web"})


def brings_agents(clone: Clone) -> None:
    domain = clone.folder.parent / "domain.toml"
    domain.write_text(
        'name = "house"\nfacts = ["at(hall)"]\n[relations]\nat = 1\n'
        '[[tasks]]\ngoal = "visit(?to)"\nwhen = "(at ?here)"\neffect = "(at ?to)"\n'
    )
    with as_user(clone.attacker):
        store = ["--store", str(clone.metatree / "agents.db"), "--id", "mallory", "--no-run"]
        assert run(["goals", "start", str(domain), "visit(harbour)", *store]) == 0


def is_a_link_to_another_tree(clone: Clone) -> None:
    build_tree(clone.secret.parent).close()  # the victim's own
    shutil.rmtree(clone.metatree)
    clone.metatree.symlink_to(clone.secret.parent / ".metatree")


def has_an_index_that_is_a_link(clone: Clone) -> None:
    build_tree(clone.secret.parent).close()
    (clone.metatree / "index.db").unlink()
    (clone.metatree / "index.db").symlink_to(clone.secret.parent / ".metatree" / "index.db")


def has_pipes_for_files(clone: Clone) -> None:
    for name in ("index.db", "memory.db", "build.lock"):
        (clone.metatree / name).unlink(missing_ok=True)
        os.mkfifo(clone.metatree / name)


def has_links_for_logs(clone: Clone) -> None:
    for name in ("index.db-wal", "memory.db-wal", "build.lock-journal", "service.db-shm"):
        (clone.metatree / name).unlink(missing_ok=True)
        (clone.metatree / name).symlink_to(clone.secret)


def names_its_sources_by_a_view(clone: Clone) -> None:
    """What SQL computes is read like rows; a node in the index says which file of that folder it is."""
    ref = Source(type="text", path="diary.md")
    with as_user(clone.attacker), Store.open(clone.metatree / "index.db") as store:
        layer = Layer(store)
        node = Node("diary.md", "Where is the harbour?", "The harbour is here", kind="file", source=ref)
        layer.insert([(layer.next_seq(), ready(node), ROOT, 0)])
    record = json.dumps([{"type": "folder", "place": str(clone.secret.parent), "options": {}}])
    with closing(sqlite3.connect(clone.metatree / "index.db")) as made:
        made.executescript(
            "ALTER TABLE meta RENAME TO kept; CREATE VIEW meta(key, value) AS SELECT key, CASE key WHEN 'sources'"
            f" THEN '{record}' ELSE value END FROM kept;"
        )


def copies_the_victims_own_tree(clone: Clone) -> None:
    """The marks are real, of the one who runs the commands; the place is another, and so is a source."""
    own = clone.folder.parent / "own"
    own.mkdir()
    (own / "c.md").write_text("# Own\n")
    build_tree(own).close()
    shutil.rmtree(clone.metatree)
    shutil.copytree(own / ".metatree", clone.metatree)
    with closing(sqlite3.connect(clone.metatree / "index.db")) as made:
        record = {"type": "folder", "place": str(clone.secret.parent), "options": {}}
        made.execute("UPDATE meta SET value = ? WHERE key = 'sources'", (json.dumps([record]),))
        made.commit()


SHAPES = (
    starts_a_command,
    starts_a_command_beside_the_folder,
    has_a_resource_of_a_command,
    reads_another_folder,
    reads_another_folder_by_a_relative_path,
    mounts_a_tree_that_starts_a_command,
    fetches_a_private_address,
    brings_memories_permissions_and_runs,
    brings_a_service_with_an_administrator,
    brings_agents,
    is_a_link_to_another_tree,
    has_an_index_that_is_a_link,
    names_its_sources_by_a_view,
    copies_the_victims_own_tree,
)


@pytest.mark.parametrize("prepare", SHAPES)
def test_no_command_acts_for_who_prepared_the_folder(
    clone: Clone, prepare: Callable[[Clone], None], capfd: pytest.CaptureFixture[str]
) -> None:
    prepare(clone)
    with Tree.create(clone.folder.parent / "empty.db") as empty:
        export_memory(empty, clone.folder / "empty.metatree")
    before = state(clone.secret.parent)
    capfd.readouterr()
    for command in (*COMMANDS[:-2], *MORE, *COMMANDS[-2:]):
        code = run(command)
        said = capfd.readouterr()
        assert code in (0, 1, 2, 3, 5), command
        assert "PASSPHRASE" not in said.out + said.err, command
        assert "Traceback" not in said.err, command
        assert "mallory" not in said.out or command[0] == "trust", command
        assert not clone.has_acted(), command
    assert state(clone.secret.parent) == before


@pytest.mark.parametrize(
    ("prepare", "why"),
    [(has_pipes_for_files, "is not a regular file"), (has_links_for_logs, "is a link and is not followed")],
)
def test_files_that_lead_elsewhere_or_hold_up_are_refused(
    clone: Clone, prepare: Callable[[Clone], None], why: str, capfd: pytest.CaptureFixture[str]
) -> None:
    prepare(clone)
    before = state(clone.secret.parent)
    for command in COMMANDS:
        code = run(command)
        said = capfd.readouterr()
        assert code in (0, 2), command
        assert (
            code == 0 or why in said.err or re.search("there (are|is) no (agents|service|tree)", said.err)
        ), command
        assert "PASSPHRASE" not in said.out + said.err, command
    with pytest.raises(UserError, match=why):
        Tree.open(clone.folder)
    with pytest.raises(UserError, match=why):
        build_tree(clone.folder)
    assert state(clone.secret.parent) == before


@pytest.mark.parametrize("prepare", SHAPES)
def test_no_call_acts_for_who_prepared_the_folder(clone: Clone, prepare: Callable[[Clone], None]) -> None:
    prepare(clone)
    before = state(clone.secret.parent)
    for call in (
        lambda: Tree.open(clone.folder),
        lambda: Tree.open(clone.metatree / "index.db"),
        lambda: Tree.open(clone.metatree / "memory.db"),
        lambda: Blackboard(clone.folder),
        lambda: Agents(clone.metatree / "agents.db"),
        lambda: Store.open(clone.metatree / "service.db"),
        lambda: build_tree(clone.folder),
        lambda: build_tree(f"tree:{clone.folder}", out=clone.folder.parent / "mounted"),
        lambda: build_tree(f"tree:{clone.folder}/inner", out=clone.folder.parent / "mounted"),
    ):
        try:
            opened = call()
        except UserError:
            continue
        with opened:
            if isinstance(opened, Tree):
                with suppress(UserError):
                    opened.refresh()
                found = search("Where is the harbour?", tree=opened)
                assert "PASSPHRASE" not in str(found.answer)
                assert not any("PASSPHRASE" in _content(opened, node) for _, node in opened.walk())
            if isinstance(opened, Agents):
                assert not list(opened.all())
            if isinstance(opened, Store):
                assert not opened.rows("SELECT 1 FROM sqlite_master WHERE name = 'service_user'")
    assert not clone.has_acted()
    assert state(clone.secret.parent) == before


@pytest.mark.parametrize("prepare", [starts_a_command, brings_memories_permissions_and_runs])
def test_no_mcp_server_acts_for_who_prepared_the_folder(
    clone: Clone, prepare: Callable[[Clone], None]
) -> None:
    prepare(clone)
    client = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "a", "version": "1"},
    }
    calls = [
        {"name": "ask", "arguments": {"questions": "Where is the harbour?"}},
        {"name": "search", "arguments": {"query": "harbour"}},
    ]
    messages: list[dict[str, object]] = [
        {"id": 0, "method": "initialize", "params": client},
        {"method": "notifications/initialized"},
        *({"id": number, "method": "tools/call", "params": call} for number, call in enumerate(calls, 1)),
    ]
    said = ""
    with _running("mcp", stdin=subprocess.PIPE) as running:
        assert running.stdin is not None and running.stdout is not None
        running.stdin.writelines(f"{json.dumps({'jsonrpc': '2.0', **each})}\n" for each in messages)
        running.stdin.flush()
        for line in running.stdout:
            said += line
            if all(f'"id":{number},' in said for number in (1, 2)):
                running.stdin.close()
    assert "in the south" in said
    assert "PASSPHRASE" not in said
    assert not clone.started.exists()


@pytest.mark.parametrize("prepare", [starts_a_command, brings_a_service_with_an_administrator])
def test_no_service_acts_for_who_prepared_the_folder(clone: Clone, prepare: Callable[[Clone], None]) -> None:
    prepare(clone)
    said = ""
    with _running("serve", "--port", "0", stdin=subprocess.DEVNULL) as running:
        assert running.stdout is not None
        for line in running.stdout:  # until it is refused, or serves
            said += line
            if line.startswith("listening on"):
                running.terminate()
    assert not clone.started.exists()
    if prepare is brings_a_service_with_an_administrator:
        assert "was not made by you" in said
        assert running.returncode == 2


def _running(*arguments: str, stdin: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", "from metatree_agents.cli import main; main()", *arguments]
    return subprocess.Popen(command, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def test_an_index_of_another_is_built_again_from_the_folder_alone(
    clone: Clone, capfd: pytest.CaptureFixture[str]
) -> None:
    starts_a_command_beside_the_folder(clone)
    assert run(["ask", "Where is the harbour?"]) == 0
    said = capfd.readouterr()
    assert "in the south" in said.out
    assert "metatree trust" in said.err
    with Tree.open(clone.folder) as tree:
        assert [source.type for source in tree.sources()] == ["folder"]


def test_a_pipe_for_the_names_that_git_passes_over_holds_no_build_up(clone: Clone) -> None:
    shutil.rmtree(clone.metatree)
    clone.metatree.mkdir()
    os.mkfifo(clone.metatree / ".gitignore")
    code = f"from metatree_memory_tools import build_tree; build_tree({str(clone.folder)!r}).close()"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    with Tree.open(clone.folder) as tree:
        assert "a.md" in tree


def test_nothing_is_written_where_links_lead(clone: Clone, capfd: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(clone.metatree)
    clone.metatree.symlink_to(clone.secret.parent)
    before = state(clone.secret.parent)
    for command in (
        ["build", "."],
        ["ask", "Where is the harbour?"],
        ["goals", "list"],
        ["service", "users", "list"],
    ):
        assert run(command) == 2
    assert state(clone.secret.parent) == before
    changed = clone.secret.parent.stat().st_mtime_ns
    assert run(["doctor"]) == 5  # it tries what SQLite can do where the tree lives
    assert clone.secret.parent.stat().st_mtime_ns == changed
    clone.metatree.unlink()
    build_tree(clone.folder).close()
    (clone.metatree / "memory.db.images").symlink_to(clone.secret.parent)
    with pytest.raises(UserError, match="is a link"):
        Blackboard(clone.folder)
    assert state(clone.secret.parent) == before
    assert "Traceback" not in capfd.readouterr().err


def test_a_trace_or_a_picture_of_rules_is_not_written_where_a_link_leads(clone: Clone) -> None:
    before = clone.secret.read_bytes()
    (clone.folder / "a.rules").write_text("(B1 on B2)\n")
    (clone.folder / "trace.json").symlink_to(clone.secret)
    assert run(["rules", "a.rules", "--trace", "trace.json"]) == 2
    assert clone.secret.read_bytes() == before


def test_names_of_a_problem_do_not_drive_the_terminal(
    clone: Clone, capsys: pytest.CaptureFixture[str]
) -> None:
    action = "do\x1b[31mit"
    (clone.folder / "domain.hddl").write_text(
        "(define (domain d) (:requirements :typing :hierarchy) (:types t) (:predicates (p ?x - t))"
        " (:task go :parameters (?x - t))"
        f" (:method m :parameters (?x - t) :task (go ?x) :ordered-subtasks (and ({action} ?x)))"
        f" (:action {action} :parameters (?x - t) :precondition (and) :effect (p ?x)))"
    )
    (clone.folder / "problem.hddl").write_text(
        "(define (problem q) (:domain d) (:objects a - t) (:htn :tasks (and (go a))) (:init))"
    )
    assert run(["plan", "domain.hddl", "problem.hddl"]) == 0
    said = capsys.readouterr().out
    assert "\x1b" not in said and "do\\x1b[31mit a" in said


def test_git_is_not_taken_from_the_folder(clone: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    program = clone.folder / "bin" / "git"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\ntouch {clone.started}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", "bin", prepend=os.pathsep)
    build_tree(clone.folder, history=True).close()
    (clone.metatree / "bin").symlink_to(program.parent)
    with Tree.open(clone.folder) as tree:
        tree.index.execute("INSERT INTO meta VALUES ('colour', '1')")
        assert run(["show"]) == 0
    assert not clone.started.exists()


def test_no_image_is_taken_over_or_exported_through_a_link_that_came_meanwhile(clone: Clone) -> None:
    pillow = pytest.importorskip("PIL.Image")
    picture = clone.folder.parent / "picture.png"
    pillow.new("RGB", (300, 300), (1, 2, 3)).save(picture)
    archive = clone.folder.parent / "a.metatree"
    with build_tree(clone.folder, out=clone.folder.parent / "own") as tree:
        Blackboard(tree.memory).add_image(content=picture.read_bytes(), metadata={"of": "harbour"})
        export_memory(tree, archive)
    shutil.rmtree(clone.metatree)
    before = state(clone.secret.parent)
    with build_tree(clone.folder) as tree:
        (clone.metatree / "memory.db.images").symlink_to(clone.secret.parent)
        with pytest.raises(UserError, match=r"images' is a link and is not followed"):
            import_memory(tree, archive)
        with pytest.raises(UserError, match="is a link"):
            export_memory(tree, clone.folder.parent / "b.metatree")
    assert state(clone.secret.parent) == before


def test_images_that_are_links_lead_nowhere(clone: Clone) -> None:
    """Who knows what picture will be put on a board knows the names of its files."""
    pillow = pytest.importorskip("PIL.Image")
    shutil.rmtree(clone.metatree)
    build_tree(clone.folder).close()
    picture = clone.folder / "a.png"
    pillow.effect_noise((900, 900), 50).save(picture)
    before = state(clone.secret.parent)
    images = clone.metatree / "memory.db.images"
    images.mkdir()
    (images / f"{digest_bytes(picture.read_bytes())}.thumbnail.webp").symlink_to(clone.secret)
    with Blackboard(clone.folder) as board:
        board.add_image(picture)
    assert state(clone.secret.parent) == before
    assert sorted(file.is_symlink() for file in images.iterdir()) == [False, False]
    for file in images.iterdir():
        file.unlink()
        file.symlink_to(clone.secret)
    with Blackboard(clone.folder) as board:
        said = json.dumps(board.screenshots_to_prompt()) + board.screenshots_to_json()
        assert base64.b64encode(clone.secret.read_bytes()).decode() not in said
    assert run(["export", "shop.metatree"]) == 0
    with zipfile.ZipFile("shop.metatree") as made:
        assert clone.secret.read_bytes() not in map(made.read, made.namelist())
    with Blackboard(clone.folder) as board:
        board.add_image(picture)
    assert state(clone.secret.parent) == before
    assert not (images / f"{digest_bytes(picture.read_bytes())}.png").is_symlink()
    for file in images.iterdir():
        file.unlink()
        with file.open("wb") as stream:
            stream.truncate(1 << 40)  # more than memory holds
    with Blackboard(clone.folder) as board:
        assert "base64" not in json.dumps(board.screenshots_to_prompt()) + board.screenshots_to_json()
    assert run(["export", "shop.metatree"]) == 0
    assert Path("shop.metatree").stat().st_size < 1_000_000


@pytest.mark.parametrize("named", ["docs", "docs/guide.md", "tree:docs"])
def test_a_link_that_was_put_in_the_place_of_a_source_is_not_followed(
    clone: Clone, named: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """What was built is the victim's own; then git brings a link where a folder was."""
    shutil.rmtree(clone.metatree)
    for folder in (clone.folder / "docs", clone.folder / "src", clone.secret.parent):
        folder.mkdir(exist_ok=True)
        (folder / "guide.md").write_text(f"# The harbour\n\nA guide of {folder.name} to the PASSPHRASE.\n")
    (clone.folder / "docs" / "guide.md").write_text("# The harbour\n\nA guide.\n")
    build_tree(clone.folder / "docs").close()
    build_tree(clone.secret.parent).close()
    assert run(["build", named, "src"]) == 0
    (clone.folder / "docs").rename(clone.folder / "before")
    (clone.folder / "docs").symlink_to(clone.secret.parent)
    capfd.readouterr()
    for command in (["ask", "Where is the harbour in the guide of elsewhere?"], ["files", "harbour"]):
        for options in ([], ["--no-refresh"]):
            assert run([*command, *options]) in (0, 1)
            said = capfd.readouterr()
            assert "elsewhere to" not in said.out + said.err
            assert "diary" not in said.out
    with Tree.open(clone.folder) as tree:
        tree.refresh()
        notes = [str(node.attributes.get("note")) for node in tree.children()]
        assert any("leads to" in note for note in notes)
        for _, node in tree.walk():
            assert "elsewhere to" not in (_content(tree, node))


def _content(tree: Tree, node: Node) -> str:
    try:
        return tree.content(node)
    except UserError:
        return ""


def test_backups_and_exports_write_through_no_link_and_take_no_memory_of_another(
    clone: Clone, capfd: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(clone.metatree)
    assert run(["build", "."]) == 0
    assert run(["remember", "The harbour lies in the north"]) == 0
    assert run(["service", "users", "add", "ann"]) == 0
    before = state(clone.secret.parent)
    for name in (
        "monday.backup.part",
        f".shop.metatree.{os.getpid()}.part",
    ):
        (clone.folder / name).symlink_to(clone.secret)
    capfd.readouterr()
    assert run(["export", "shop.metatree"]) == 0
    assert run(["service", "backup", "monday.backup"]) == 0
    assert [each.name for each in clone.metatree.glob("*.copy*")] == []
    assert state(clone.secret.parent) == before
    # What came in the place of the memory is neither read nor written.
    memory = clone.metatree / "memory.db"
    memory.rename(clone.metatree / "mine.db")
    memory.symlink_to(clone.secret.parent / "new.db")
    assert run(["service", "restore", "monday.backup", "--force"]) == 2
    assert run(["service", "backup", "tuesday.backup"]) in (0, 2)
    memory.unlink()
    with as_user(clone.attacker), Store.open(memory) as store:
        Permissions(store).grant(send_mail_tool(), who="victim")
    assert run(["service", "backup", "wednesday.backup"]) == 2
    assert "was not made by you" in capfd.readouterr().err
    assert run(["service", "restore", "monday.backup", "--force"]) == 0
    assert run(["memories"]) == 0
    assert "in the north" in capfd.readouterr().out
    assert state(clone.secret.parent) == before


def test_a_repository_of_pipes_and_devices_holds_nothing_up(clone: Clone) -> None:
    shutil.rmtree(clone.metatree)
    (clone.folder / ".git" / "info").mkdir(parents=True)
    (clone.folder / ".gitignore").write_text("*.log\n")
    (clone.folder / "b.log").write_text("b")
    for name in ("index", "config", "HEAD", "info/exclude"):
        os.mkfifo(clone.folder / ".git" / name)
    for link in (None, "/dev/zero"):
        if link is not None:
            (clone.folder / ".git" / "index").unlink()
            (clone.folder / ".git" / "index").symlink_to(link)
        code = f"from metatree_memory_tools import build_tree; build_tree({str(clone.folder)!r}).close()"
        subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
        with Tree.open(clone.folder) as tree:
            assert "a.md" in tree
            assert "b.log" not in tree
        shutil.rmtree(clone.metatree)


def test_a_folder_puts_no_module_in_the_place_of_what_is_installed(clone: Clone, tmp_path: Path) -> None:
    installed = tmp_path / "installed"
    installed.mkdir()
    domain = "from metatree_agents.planner import Domain\ndomain = Domain('shop')\n"
    (installed / "shop.py").write_text(domain)
    for name in ("shop", "yaml", "networkx", "sitecustomize"):
        (clone.folder / f"{name}.py").write_text(f"open({str(clone.started)!r}, 'w').close()\n")
    (clone.folder / "ours.py").write_text(domain)
    code = "import networkx; from metatree_agents.cli.commands.goals import _imported; _imported({!r}); import yaml"
    for name in ("shop:domain", "ours:domain"):
        subprocess.run(
            [sys.executable, "-P", "-c", code.format(name)],
            check=True,
            env=os.environ | {"PYTHONPATH": str(installed)},
            timeout=60,
        )
        assert not clone.started.exists(), name


@pytest.mark.parametrize("there", ["somebody else's", "a hard link", "damaged"])
def test_a_backup_is_not_restored_into_a_file_of_others(
    clone: Clone, capfd: pytest.CaptureFixture[str], there: str
) -> None:
    """Whoever made it, may read it or has it elsewhere would have what was kept in it."""
    own, backup = clone.secret.parent, clone.folder.parent / "monday.backup"
    with build_tree(own) as tree:
        remember(tree, "The salary is 4711", who="victim")
    command = ["service", "users", "add", "ann", "--role", "user", "--source", str(own)]
    assert run(command) == 0
    assert run(["service", "backup", str(backup), "--source", str(own)]) == 0
    with Tree.open(own) as tree:
        remember(tree, "The harbour is in the north", who="victim")
    memory, other = clone.metatree / "memory.db", own / ".metatree" / "memory.db"
    shutil.rmtree(clone.metatree)
    build_tree(clone.folder).close()
    memory.unlink(missing_ok=True)
    if there == "somebody else's":
        with as_user(clone.attacker):
            Store.open(memory).close()
    elif there == "a hard link":
        os.link(other, memory)
    else:
        memory.write_bytes(b"nothing" * 1000)
    memory.chmod(0o644)
    before = other.read_bytes()
    assert run(["service", "restore", str(backup)]) == 2
    assert "replace it with --force" in capfd.readouterr().err
    assert run(["service", "restore", str(backup), "--force"]) == 0
    assert memory.stat().st_mode & 0o777 == 0o600 and memory.stat().st_nlink == 1
    assert other.read_bytes() == before
    assert run(["memories"]) == 0
    assert "4711" in capfd.readouterr().out


@pytest.mark.parametrize("there", ["a stranger's", "a link", "a pipe", "a view"])
def test_a_check_of_a_service_believes_nothing_of_others(
    clone: Clone, capfd: pytest.CaptureFixture[str], there: str
) -> None:
    brings_a_service_with_an_administrator(clone)
    service = clone.metatree / "service.db"
    if there == "a link":
        moved = service.rename(clone.secret.parent / "service.db")
        service.symlink_to(moved)
    elif there == "a pipe":
        service.unlink()
        os.mkfifo(service)
    elif there == "a view":
        with closing(sqlite3.connect(service)) as made, made:
            made.execute("DROP TABLE service_user")
            endless = (
                "WITH RECURSIVE c(role) AS (SELECT 'admin' UNION ALL SELECT role FROM c) SELECT role FROM c"
            )
            made.execute(f"CREATE VIEW service_user AS {endless}")
    assert run(["service", "check"]) == 5
    said = capfd.readouterr().out
    assert "ok    database" not in said and "FAIL" in said
    before = state(clone.metatree) if there == "a stranger's" else {}
    assert run(["service", "check", "--json"]) == 5
    assert not before or state(clone.metatree) == before, "nothing is made and nothing is changed"


def test_paths_in_commands_to_copy_are_quoted_for_a_shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "x$(touch PWNED)"
    folder.mkdir()
    (folder / "a.md").write_text("# Harbour\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("METATREE_CONFIG_DIR", str(tmp_path / "other"))
    assert run(["build", str(folder)]) == 0 and run(["remember", "Hi", "--source", str(folder)]) == 0
    monkeypatch.setenv("METATREE_CONFIG_DIR", str(tmp_path / "own"))
    capsys.readouterr()
    assert run(["remember", "Ho", "--source", str(folder)]) != 0
    said = capsys.readouterr().err
    assert f"`metatree trust '{folder / '.metatree'}'`" in said
    for arguments in (["show", "--source", "y$(touch PWNED)"], ["show", "--tree", "y$(touch PWNED)"]):
        (tmp_path / "y$(touch PWNED)").mkdir(exist_ok=True)
        assert run(arguments) == 2
        assert "'y$(touch PWNED)'`" in capsys.readouterr().err
