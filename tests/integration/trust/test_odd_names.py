"""Files and folders whose names mean something elsewhere: an option, the home, a module, a store."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import shlex
import shutil
import sqlite3
import sys
from contextlib import closing, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from metatree_agents.cli._main import run
from metatree_memory_tools import build_tree
from metatree_memory_tools.build._scan import scan
from metatree_memory_tools.build.source_spec import located
from metatree_memory_tools.mcp_server import _stdio
from metatree_memory_tools.mcp_server.address import ServerAddress

from metatree import Blackboard, Tree, plugins
from metatree.blackboard._json_lines import read_lines
from metatree.errors import UntrustedStore, UserError
from metatree.notes.notes import forget, remember
from metatree.trees import sources
from tests.integration.trust.prepared import Clone, as_user

pytestmark = pytest.mark.integration


def test_ones_own_stores_are_no_nodes_by_another_name_of_the_disk(clone: Clone) -> None:
    """Where the disk tells no case apart; a link stands for its other names here."""
    for name in (".Metatree", ".GIT", "kept"):
        (clone.folder / name).mkdir()
        (clone.folder / name / "b.md").write_text("# The memory\n\nThe PASSPHRASE.\n")
    (clone.folder / "other").symlink_to(clone.folder / "kept")
    assert set(scan(clone.folder, exclude="other").files) == {"a.md"}


def test_git_passes_over_a_tree_whatever_the_clone_says_of_it(clone: Clone) -> None:
    file, other = clone.metatree / ".gitignore", clone.folder.parent / "notes"
    other.write_text("*\n!memory.db\n")
    file.unlink()
    os.link(other, file)
    build_tree(clone.folder).close()
    assert file.read_text() == "*\n"
    assert other.read_text() == "*\n!memory.db\n"


@pytest.mark.parametrize("way", ["", "."])
def test_a_plug_in_that_lies_in_the_current_folder_is_none(
    clone: Clone, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """Python looks for packages there, too, at a prompt and in a notebook."""
    package = clone.folder / "evil.egg-info"
    package.mkdir()
    (package / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: evil\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("[metatree.memory_types]\nevil = evilmod:Evil\n")
    (clone.folder / "evilmod.py").write_text(f"open({str(clone.started)!r}, 'w').close()\n")
    monkeypatch.syspath_prepend(str(clone.folder) if way else "")
    assert "evil" not in plugins.names(plugins.MEMORY_TYPES)
    build_tree(clone.folder).close()
    assert not clone.has_acted()
    monkeypatch.chdir(clone.folder.parent)
    if way:  # whoever names the folder means it
        assert "evil" in plugins.names(plugins.MEMORY_TYPES)


@pytest.mark.parametrize("text", ["@private.txt", "-", "--help", "plain"])
def test_the_command_that_brings_a_memory_back_reads_no_file(
    clone: Clone, capfd: pytest.CaptureFixture[str], text: str
) -> None:
    shutil.rmtree(clone.metatree)
    (clone.folder / "private.txt").write_text("PASSPHRASE\n")
    with build_tree(clone.folder) as tree:
        made = remember(tree, text, "note", who="ann").node
        words = shlex.split(forget(tree, made).command)
    assert run(words[1:]) == 0
    with Tree.open(clone.folder) as tree:
        (back,) = [tree.get(node) for _, node in tree.walk() if node.kind == "memory"]
        assert (back.content, back.title, back.provenance["who"]) == (text, "note", "ann")


def test_a_folder_that_is_called_as_the_home_is_that_folder(
    clone: Clone, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home = clone.secret.parent
    monkeypatch.setenv("HOME", str(home))
    (clone.folder / "~" / "notes").mkdir(parents=True)
    (clone.folder / "~" / "notes" / "b.md").write_text("# The lake\n\nThe lake is in the north.\n")
    with build_tree("~/notes") as tree:
        assert tree.source_root == clone.folder / "~" / "notes"
    (home / "notes").mkdir()
    for name in ("~", "~/notes"):
        with pytest.raises(UserError, match="is here and in a home"):
            build_tree(name)
        assert run(["build", name]) == 2
    assert not (home / ".metatree").exists() and not (home / "notes" / ".metatree").exists()
    for use in (Tree.open, Blackboard, read_lines):
        with pytest.raises(UserError, match="is here and in a home"):
            use(Path("~") / "notes")
    assert run(["files", "lake", "--source", "./~/notes"]) == 0
    assert "b.md" in capsys.readouterr().out
    (home / "notes").rmdir()
    with Tree.open(Path("~") / "notes") as tree:
        assert tree.source_root == clone.folder / "~" / "notes"
    with pytest.raises(UserError, match="no user has that home"):
        build_tree("~nobody-of-this-name")


def test_an_index_of_others_among_files_is_no_tree(clone: Clone, tmp_path: Path) -> None:
    with as_user(clone.attacker):
        build_tree(clone.secret, out=tmp_path / "theirs").close()
    shutil.copy(tmp_path / "theirs" / "index.db", clone.folder / "index.db")
    shutil.rmtree(clone.metatree)
    assert run(["ask", "Where is the harbour?"]) == 0
    assert run(["build", "."]) == 0
    (tmp_path / "theirs" / ".DS_Store").touch()
    with build_tree(tmp_path / "theirs", out=tmp_path / "mine") as tree:  # and that folder is one
        assert [source.type for source in tree.sources()] == ["tree"] and len(tree) == 2


def test_ones_own_settings_name_ones_own_home_whatever_a_clone_has(
    clone: Clone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("METATREE_CONFIG_DIR", str(home / "config"))
    for folder, said in ((home, "north"), (clone.folder / "~", "south")):
        (folder / "notes").mkdir(parents=True)
        (folder / "notes" / "a.md").write_text(f"# The lake\n\nThe lake is in the {said}.\n")
    (home / "config").mkdir()
    for folder in (home, clone.folder / "~"):
        shutil.copytree(folder / "notes", folder / "no:tes")
    for value in ("~/notes", "folder:~/notes", "~/no:tes"):
        (home / "config" / "config.toml").write_text(f'source = ["{value}"]\n')
        assert run(["ask", "Where is the lake?"]) == 0
        assert "The lake is in the north." in capsys.readouterr().out


@pytest.fixture
def programs(clone: Clone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Programs in PATH, and others of the same names in the clone; what runs says so in a file."""
    log = tmp_path / "log"
    (tmp_path / "bin").mkdir()
    (clone.folder / "https:" / "mcp.example.org").mkdir(parents=True)
    for folder, who in ((tmp_path / "bin", "own"), (clone.folder, "theirs")):
        for name in ("uvx", "weather-server", "https:/mcp.example.org/mcp")[: 2 if who == "own" else 3]:
            (folder / name).write_text(f"#!/bin/sh\necho {who} >> {log}\n")
            (folder / name).chmod(0o755)
    (clone.folder / "uvx weather-server").touch()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    return log


@pytest.mark.skipif(os.name == "nt", reason="programs are scripts")
@pytest.mark.parametrize("server", ["mcp:uvx weather-server", "mcp:weather-server", "mcp: weather-server"])
def test_a_server_that_is_named_is_the_program_in_path(programs: Path, server: str) -> None:
    run(["build", "a.md", server])
    run(["build", "--add", "a.md"])
    assert programs.read_text().split() and set(programs.read_text().split()) == {"own"}


@pytest.mark.skipif(os.name == "nt", reason="programs are scripts")
def test_an_address_is_no_file_of_that_name(
    clone: Clone, programs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    (clone.folder / "https:" / "docs.example.org").mkdir()
    (clone.folder / "https:" / "docs.example.org" / "guide").write_text("# The lake\n\nThe lake is theirs.\n")
    (clone.folder / "https:" / "docs.example.org" / "api.json").write_text(
        '{"openapi": "3.0.0", "paths": {}}'
    )
    (clone.folder / "postgresql:" / "127.0.0.1:9").mkdir(parents=True)
    with closing(sqlite3.connect(clone.folder / "postgresql:" / "127.0.0.1:9" / "shop")) as store:
        store.execute("CREATE TABLE lake(name TEXT)")
    shutil.rmtree(clone.metatree)
    for source in (
        "mcp:https://mcp.example.org/mcp",
        "https://docs.example.org/guide",
        "openapi:https://docs.example.org/api.json",
        "postgresql://127.0.0.1:9/shop",
        "database:postgresql://127.0.0.1:9/shop",
    ):
        assert run(["build", source]) != 0, source
    assert run(["build", "tree:https://docs.example.org/guide"]) == 2
    assert "is an address: give a file or a folder of tree" in capsys.readouterr().err
    assert not programs.exists()
    (clone.folder / "wss:" / "x").mkdir(parents=True)
    assert run(["build", "wss://x"]) == 2
    assert "is an address, and the name of a file here" in capsys.readouterr().err
    assert run(["build", "./wss://x"]) == 0


def test_a_blank_behind_a_type_hides_no_link(clone: Clone, capsys: pytest.CaptureFixture[str]) -> None:
    (clone.folder / "api.yaml").symlink_to(clone.secret)
    (clone.folder / "metatree.toml").write_text('source = ["openapi: api.yaml", "a.md"]\n')
    assert run(["trust", "--yes"]) == 0
    assert run(["ask", "Where is the harbour?"]) == 2
    assert "goes through a link that leads out of this folder" in capsys.readouterr().err
    (clone.folder / "metatree.toml").unlink()
    assert run(["build", "openapi: api.yaml"]) == 2
    assert "is a link that leads to" in capsys.readouterr().err


def test_what_is_installed_into_a_project_is_written_through_no_link_of_it(clone: Clone) -> None:
    notes = clone.folder / "notes.txt"
    notes.write_text("mine\n")
    skill = clone.folder / ".claude" / "skills" / "metatree" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.symlink_to(notes)
    run(["install", "claude-code", "--project"])
    assert notes.read_text() == "mine\n"


@pytest.mark.parametrize("name", ["--source=~", "--tree=~", "--history", "-y"])
def test_a_file_that_is_called_as_an_option_is_none(
    clone: Clone, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """As the shell gives them for `metatree build *`."""
    home = clone.secret.parent
    monkeypatch.setenv("HOME", str(home))
    shutil.rmtree(clone.metatree)
    (clone.folder / name).touch()
    assert run(["build", "a.md", name]) == 2
    assert "the name of a file here" in capfd.readouterr().err
    assert not clone.metatree.exists() and not (home / "index.db").exists()
    assert run(["build", "--", "a.md"]) == 0
    assert run(["remember", "--", name]) == 0


@pytest.mark.parametrize("silent", [True, False])
@pytest.mark.parametrize(
    "folder", ["~", "mcp:sh payload #", "--tree=..", "--source=mcp:sh payload #", "folder:.."]
)
def test_what_lies_in_a_folder_that_can_only_be_listed_is_no_option_and_no_program(
    clone: Clone,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    folder: str,
    silent: bool,
) -> None:
    """An archive brings a folder of mode 0444, and the shell the names in it, for `metatree build */*`."""

    def denied(ask: Any) -> Any:
        def asked(path: Any, *args: Any, **kwargs: Any) -> Any:
            if isinstance(path, str | Path) and str(path).startswith(
                (f"{folder}/", f"{clone.folder / folder}/")
            ):
                raise PermissionError(errno.EACCES, "Permission denied", str(path))
            return ask(path, *args, **kwargs)

        return asked

    home = clone.secret.parent
    monkeypatch.setenv("HOME", str(home))
    for place in (clone.folder / folder, home, clone.folder.parent):
        place.mkdir(exist_ok=True)
        (place / "private").mkdir()
        (place / "private" / "b.md").write_text("# The lake\n\nThe lake is in the north.\n")
    (clone.folder / "payload").write_text(f"touch {shlex.quote(str(clone.folder / 'ran'))}\nsleep 1\n")
    shutil.rmtree(clone.metatree)
    for name in ("stat", "lstat"):  # the rights of root open such a folder
        monkeypatch.setattr(os, name, denied(getattr(os, name)))
    if silent:  # as it is from Python 3.14 on
        monkeypatch.setattr(Path, "exists", lambda path: os.path.exists(path))  # noqa: PTH110
        monkeypatch.setattr(Path, "is_dir", lambda path: os.path.isdir(path))  # noqa: PTH112
    before = sorted(clone.folder.parent.rglob("*"))
    assert run(["build", "a.md", f"{folder}/private"]) in (2, 5)
    said = capfd.readouterr().err
    assert "is here and in a home" in said or "a file here" in said or "cannot be looked at" in said
    assert sorted(clone.folder.parent.rglob("*")) == before


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("@~/notes.md", ["ask"]),
        ("@~/notes.md", ["remember"]),
        ("@notes.md", ["find"]),
        ("kb=../private", ["serve", "--port", "0"]),
        ("evil:domain", ["goals", "start"]),
        ("postgresql://127.0.0.1:9", ["build"]),
        ("https://127.0.0.1:9/docs", ["ask", "Who?", "--source"]),
    ],
)
def test_the_name_of_a_file_is_none_of_what_it_is_called_as(
    clone: Clone,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    name: str,
    command: list[str],
) -> None:
    """As a pattern of the shell gives it."""
    home = clone.secret.parent
    monkeypatch.setenv("HOME", str(home))
    for place in (home / "notes.md", clone.folder / "notes.md"):
        place.write_text("# The lake\n\nThe lake is in the north.\n")
    (clone.folder.parent / "private").mkdir()
    (clone.folder / "evil.py").write_text("open('ran', 'w').close()\n")
    (clone.folder / name).parent.mkdir(parents=True, exist_ok=True)
    (clone.folder / name).touch()
    shutil.rmtree(clone.metatree)
    before = sorted(clone.folder.parent.rglob("*"))
    assert run([*command, name, *(["x"] if command[0] == "goals" else [])]) == 2
    said = capfd.readouterr()
    assert "the name of a file here" in said.err and "north" not in said.out
    assert [each for each in sorted(clone.folder.parent.rglob("*")) if ".metatree" not in str(each)] == before


def test_what_begins_with_the_name_of_a_file_is_no_address(
    clone: Clone,
) -> None:
    """As `for d in *; do metatree build "$d/docs"; done` has it: what reads databases takes `postgresql:HOST`, too."""
    (clone.folder / "postgresql:127.0.0.1:9").touch()
    with pytest.raises(UserError, match="does not exist"):
        located(["postgresql:127.0.0.1:9/docs"], {})
    assert located(["postgresql:127.0.0.1:8/docs"], {})[0].type == "database"


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="needs a system with /proc")
@pytest.mark.parametrize("name", ["--source=mcp:sh payload #", "mcp:sh payload #", "--tree=..", "~"])
def test_what_another_process_has_seen_behind_a_link_is_no_option_and_no_program(
    clone: Clone, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], name: str
) -> None:
    """Behind a link to `/proc/self/task` the shell sees the number of its own process, for `metatree build */*`."""
    monkeypatch.setenv("HOME", str(clone.secret.parent))
    (clone.folder / "payload").write_text(f"touch {shlex.quote(str(clone.folder / 'ran'))}\nsleep 1\n")
    (clone.folder / name).symlink_to("/proc/self/task")
    for folder in (clone.secret.parent, clone.folder.parent):
        (folder / "99999999").mkdir()
    shutil.rmtree(clone.metatree)
    before = sorted(clone.folder.parent.rglob("*"))
    assert run(["build", "a.md", f"{name}/99999999"]) == 2
    said = capfd.readouterr().err
    assert any(why in said for why in ("is here and in a home", "a file here", "is a link that leads to"))
    assert sorted(clone.folder.parent.rglob("*")) == before


@pytest.mark.skipif(os.name == "nt", reason="programs are scripts")
@pytest.mark.parametrize("command", ["{python} -P server.py", "./server.py --fast"])
def test_a_server_is_started_where_it_was_named_and_not_in_the_folder_that_is_current(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """A clone brings a program of the name that a tree of one's own starts."""
    own, clone = tmp_path / "own", tmp_path / "clone"
    for folder in (own, clone):
        folder.mkdir()
        (folder / "server.py").write_text(
            f"#!{sys.executable}\nfrom pathlib import Path\n"
            f"Path({str(tmp_path / 'by')!r}).open('a').write({folder.name!r})\n"
        )
        (folder / "server.py").chmod(0o755)
    monkeypatch.chdir(own)
    build_tree("mcp:" + command.format(python=sys.executable), out=tmp_path / "kb").close()
    monkeypatch.chdir(clone)
    assert run(["build", "--add", str(own), "--tree", str(tmp_path / "kb")]) == 0
    with Tree.open(tmp_path / "kb") as tree:
        tree.refresh()
    assert {*(tmp_path / "by").read_text().replace("own", "o")} == {"o"}


def test_a_server_follows_the_folder_in_which_it_was_named_when_that_moves_with_its_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clone may lie where it was before."""
    shop = tmp_path / "shop"
    shop.mkdir()
    (shop / "a.md").write_text("# The shop\n")
    monkeypatch.chdir(shop)
    build_tree("a.md", f"mcp:{sys.executable} server.py").close()
    monkeypatch.chdir(tmp_path)
    shop.rename("old")
    shop.mkdir()
    with Tree.open(tmp_path / "old") as tree:
        (server,) = [each for each in tree.sources() if each.type == "mcp"]
    assert ServerAddress.of(server.location, server.options).start_folder == str(tmp_path / "old")


@pytest.mark.parametrize("way", ["own", "older", "accepted"])
def test_a_server_that_was_named_above_its_tree_is_started_in_no_other_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """Kept as a way up, the folder in which it was named would be another one where the tree is moved."""
    named = tmp_path / "src"
    (named / "app").mkdir(parents=True)
    (tmp_path / "archive").mkdir()
    monkeypatch.chdir(named)
    with pytest.MonkeyPatch.context() as patch:
        if way == "accepted":
            patch.setenv("METATREE_CONFIG_DIR", str(tmp_path / "other"))
        if way != "own":
            patch.setattr(sources, "_kept_path", lambda place, folder, **_: os.path.relpath(place, folder))
        build_tree(f"mcp:{sys.executable} tools/server.py", out="app/.metatree").close()
    if way == "accepted":
        assert run(["trust", "app", "--yes"]) == 0
    (named / "app").rename(tmp_path / "archive" / "app")
    if way == "older":
        with pytest.raises(UntrustedStore):
            Tree.open(tmp_path / "archive" / "app")
        return
    with Tree.open(tmp_path / "archive" / "app") as tree:
        (server,) = tree.sources()
    assert ServerAddress.of(server.location, server.options).start_folder == str(named)


def test_a_home_that_is_relative_starts_and_reads_nothing_of_the_folder(
    clone: Clone, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    servers = {"mcpServers": {"x": {"command": str(clone.folder / "evil")}}}
    (clone.folder / "home").mkdir()
    (clone.folder / "home" / ".claude.json").write_text(json.dumps(servers))
    monkeypatch.setenv("HOME", "home")
    monkeypatch.setenv("XDG_STATE_HOME", str(clone.secret.parent))
    assert ServerAddress.of("uvx weather", {"named_in": "/nowhere"}).start_folder == "/"
    assert run(["gateway", "--import", "claude-code", "--list"]) == 2
    assert "set HOME to a whole path" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["uvx", "./uvx"])
def test_on_windows_no_server_is_looked_for_in_the_current_folder(
    clone: Clone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    started: list[str] = []

    async def start(program: str, *arguments: str, **options: Any) -> None:
        started.append(program)
        raise OSError("it was caught")

    for place in (tmp_path / "bin", clone.folder, tmp_path / "named"):
        place.mkdir(exist_ok=True)
        (place / "uvx").write_text("#!/bin/sh\n")
        (place / "uvx").chmod(0o755)
    monkeypatch.setenv("PATH", os.pathsep.join([".", "", str(tmp_path / "bin")]))
    monkeypatch.setattr(asyncio, "create_subprocess_exec", start)
    monkeypatch.setattr(_stdio, "sys", SimpleNamespace(platform="win32"))

    async def main() -> None:
        async with _stdio.StdioServer([name, "weather"], {}, str(tmp_path / "named")).transport():
            pass

    with pytest.raises(OSError, match="it was caught"):
        asyncio.run(main())
    assert started == [str(tmp_path / ("bin" if name == "uvx" else "named") / "uvx")]


@pytest.mark.parametrize("names", [["--", "--tree"], ["--"], ["--tree"]])
def test_a_file_called_as_an_option_ends_no_options(
    clone: Clone, capsys: pytest.CaptureFixture[str], names: list[str]
) -> None:
    for name in names:
        (clone.folder / name).write_text("x")
    kb = str(clone.secret.parent)
    assert run(["build", *names, "a.md", "--tree", kb]) == 2
    assert "is an option, and the name of a file here" in capsys.readouterr().err
    assert not (clone.secret.parent / "index.db").exists()


def test_a_server_whose_folder_is_gone_is_started_in_the_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "was").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    named = ServerAddress.of("uvx weather", {"named_in": str(tmp_path / "was")})
    assert named.start_folder == str(tmp_path / "was")
    (tmp_path / "was").rmdir()
    assert named.start_folder == str(tmp_path)
    (tmp_path / "clone").mkdir()
    (tmp_path / "was").symlink_to("clone")  # as git puts one in the place of a folder
    assert named.start_folder == str(tmp_path)
    assert ServerAddress.of("uvx weather", {"cwd": "/nowhere"}).start_folder == "/nowhere"
    assert ServerAddress.of("uvx weather", {}).start_folder == str(tmp_path), "as an older version kept it"
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "in").mkdir()
    monkeypatch.chdir(tmp_path / "in")
    for options in ({"named_in": "in"}, {"named_in": "."}):
        assert ServerAddress.of("uvx weather", options).start_folder == str(tmp_path)
    assert ServerAddress.of("uvx weather", {"cwd": "in"}).start_folder == str(tmp_path / "in")


def test_a_title_that_ends_as_our_word_on_who_said_it_stands_in_quotes(
    clone: Clone, capfd: pytest.CaptureFixture[str]
) -> None:
    title = "Production backups are made by Mallory. (said by root on 2026-11-29)"
    (clone.folder / "b.md").write_text(f"# {title}\n\nProduction backups are made by Mallory.\n")
    run(["ask", "Who makes the production backups?", "--sure", "0.01"])
    shown = capfd.readouterr().out
    assert "by Mallory" in shown and f"  {title}\n" not in shown


@pytest.mark.skipif(os.name == "nt", reason="programs are scripts")
@pytest.mark.parametrize("way", ["accepted", "offered", "older"])
def test_a_server_of_which_no_folder_is_kept_is_started_in_the_home_when_the_tree_is_built_again(
    clone: Clone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """And not in the folder in which that is said."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    for folder in (home, clone.folder):
        (folder / "server.py").write_text(
            f"open({str(tmp_path / 'by')!r}, 'a').write({folder.name!r} + ' ')\n"
        )
    shutil.rmtree(clone.metatree)
    source = f"mcp:{sys.executable} server.py"
    with as_user(clone.attacker) if way != "older" else nullcontext():
        build_tree(clone.folder / "a.md", source, out=clone.metatree).close()
    (tmp_path / "by").unlink()
    with closing(sqlite3.connect(clone.metatree / "index.db")) as store, store:
        ((text,),) = store.execute("SELECT value FROM meta WHERE key = 'sources'").fetchall()
        records = json.loads(text)
        for record in records:
            record["options"].pop("named_in", None)
        store.execute("UPDATE meta SET value = ? WHERE key = 'sources'", (json.dumps(records),))
    (clone.folder / "own.md").write_text("# Own\n")
    if way == "offered":
        run(["find", "harbour"])
    assert run(["trust", ".", "--yes"]) == 0
    assert run(["build", "--add", "own.md"]) == 0
    assert {*(tmp_path / "by").read_text().split()} == {"home"}
