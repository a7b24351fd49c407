"""What a folder that somebody prepared is read for, shown as, and sent to: nothing else than it says."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from metatree_agents.cli import _output as output
from metatree_agents.cli._main import run
from metatree_agents.hosts import install as hosts
from metatree_agents.hosts.table import HOSTS
from metatree_agents.service.replication.publisher import _source_parts, _write_index
from metatree_memory_tools import build_tree
from metatree_memory_tools.build import _scan
from metatree_memory_tools.databases._tools import database_of
from metatree_memory_tools.git._command import _environment
from metatree_memory_tools.git._show import blame_text, changes_of_text, commit_text
from metatree_memory_tools.web.chromium import find_chromium, has_chromium
from metatree_routers.human import HumanRouter

from metatree import Node, Option, RouteRequest, Source, Tree
from metatree._util.secret_text import masked
from metatree.errors import UserError
from metatree.notes.archive import export_memory, import_memory
from metatree.notes.permissions import Permissions, fingerprint_of
from metatree.storage.acceptance import accept, survey
from metatree.trees.content import Contents
from metatree.trees.layer import Layer
from metatree.trees.source_files import read_inside
from tests.integration.trust.prepared import Clone, as_user, send_mail_tool

pytestmark = pytest.mark.integration

DRIVES = "\x1b]0;x\x07\x1b[2J\n  A  the right one"
PASSWORD = "hunter2hunter2"
KEY = "\n".join(
    ("-----BEGIN PRIVATE KEY-----", *("aZ9/" * 16 for _ in range(9)), "-----END PRIVATE KEY-----")
)
PROSE = "The harbour lies in the south of the town. " * 30


def git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


def test_git_tells_no_secret_that_is_masked_in_the_file(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    settings, guide = tmp_path / "settings.yaml", tmp_path / "guide.md"
    settings.write_text(f"harbour: south\npassword: {PASSWORD}\n{PROSE}\n")
    guide.write_text(f"{PROSE}\n{KEY}\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", f"The password is {PASSWORD}")
    settings.write_text(f"harbour: north\npassword: {PASSWORD}1\n{PROSE}\n")
    guide.write_text(f"{PROSE}\n{KEY}\n".replace("aZ9/" * 16, "bY8+" * 16))
    git(tmp_path, "commit", "-qam", "Move it")
    said = [
        *(commit_text(tmp_path, name).text for name in ("HEAD", "HEAD~1")),
        *(blame_text(tmp_path, name) for name in ("settings.yaml", "guide.md")),
        *(changes_of_text(tmp_path, "settings.yaml", text) for text in ("password", PASSWORD)),
        changes_of_text(tmp_path, "guide.md", "aZ9/"),
    ]
    assert all("Move it" in text or "password" in text.lower() or "PRIVATE" in text for text in said)
    for text in said:
        assert PASSWORD not in text and "aZ9/aZ9/" not in text and "bY8+bY8+" not in text
    assert "north" in said[0] and "password: ***" in said[2]
    assert PASSWORD in commit_text(tmp_path, "HEAD", secrets=True).text
    assert PASSWORD in blame_text(tmp_path, "settings.yaml", secrets=True)


def test_what_becomes_a_link_while_it_is_read_is_not_followed(
    clone: Clone, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each swap comes where a check was passed and the file is not open yet."""
    inner, aside = clone.folder / "inner", clone.folder / "aside"
    inner.mkdir()
    (inner / "diary.md").write_text("fine")

    def swap() -> None:
        inner.rename(aside)
        inner.symlink_to(clone.secret.parent)

    def back() -> None:
        inner.unlink()
        aside.rename(inner)

    real = os.path.realpath

    def resolved(path: str, **options: bool) -> str:
        back()
        found = real(path, **options)
        swap()
        return found

    swap()
    with monkeypatch.context() as patch, pytest.raises((UserError, OSError)):
        patch.setattr(os.path, "realpath", resolved)
        read_inside(clone.folder, "inner/diary.md")
    with pytest.raises((UserError, OSError)):
        read_inside(inner, "diary.md")  # a source, whose place was checked before
    with pytest.raises(OSError):
        _scan.scan(inner)
    back()
    folder = _scan._Walk.folder

    def entered(walk: _scan._Walk, path: str, *rest: object, **more: bool) -> bool:
        if path == "inner":
            swap()
        return folder(walk, path, *rest, **more)  # type: ignore[arg-type]

    (clone.secret.parent / "secret-name.md").write_text("x")
    monkeypatch.setattr(_scan._Walk, "folder", entered)
    assert not any("secret-name" in path for path in _scan.scan(clone.folder).files)


def test_a_database_that_becomes_a_link_is_not_asked(clone: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    own, private = clone.folder / "d.db", clone.secret.parent / "d.db"
    for file, text in ((own, "fine"), (private, "PASSPHRASE")):
        with closing(sqlite3.connect(file)) as made:
            made.executescript(f"CREATE TABLE t(a); INSERT INTO t VALUES ('{text}')")
    shutil.rmtree(clone.metatree)
    find = Tree.file_of

    def found(tree: Tree, node: str | Node) -> Path | None:
        file = find(tree, node)
        own.unlink()
        own.symlink_to(private)
        return file

    with build_tree(clone.folder) as tree:
        with closing(database_of(tree, tree.get("d.db"))) as database:
            assert database.query("SELECT a FROM t", 1).rows == (("fine",),)
        monkeypatch.setattr(Tree, "file_of", found)
        with pytest.raises(UserError):
            database_of(tree, tree.get("d.db"))


def test_only_the_tool_that_is_shown_is_permitted(clone: Clone) -> None:
    mark = fingerprint_of(send_mail_tool())
    said = {"title": "", "description": "", "version": "1", "who": "you", "at": "2026-01-01"}
    with as_user(clone.attacker), Tree.open(clone.folder) as tree:
        for key, tool, shown in (
            (mark, "weather", "0" * 64),
            ("x", "weather", mark),
            (mark, "weather", mark),
        ):
            Layer(tree.memory).set_fact(f"permission:{key}", {"tool": tool, "fingerprint": shown, **said})
            assert not Permissions(tree.memory).allows(send_mail_tool())
        Layer(tree.memory).set_fact("permission:y", "damaged")
        assert len(Permissions(tree.memory).all()) == 2
        assert Permissions(tree.memory).revoke("weather")
        assert not Permissions(tree.memory).all()
        Permissions(tree.memory).grant(send_mail_tool())
        assert Permissions(tree.memory).allows(send_mail_tool())


def test_all_are_shown_in_whose_names_something_speaks(clone: Clone) -> None:
    names = {"who": "the boss", "said": [{"who": "the boss"}, {"who": "the owner"}]}
    with as_user(clone.attacker), Tree.open(clone.folder) as tree:
        tree.add(Node("a", "a", content="It is sold", kind="note", provenance=names), parent=tree.root)
    assert survey(clone.metatree / "memory.db").authors == ["the boss", "the owner"]


def test_a_store_that_is_exchanged_while_it_is_shown_is_not_accepted(clone: Clone) -> None:
    file = clone.metatree / "memory.db"
    with as_user(clone.attacker), Tree.open(clone.folder):
        pass
    seen = survey(file)
    with as_user(clone.attacker), Tree.open(clone.folder) as tree:
        Permissions(tree.memory).grant(send_mail_tool())
    with pytest.raises(UserError, match="changed meanwhile"):
        accept(file, seen)
    accept(file, survey(file))


def test_an_export_reads_no_file_that_was_left_out(clone: Clone, tmp_path: Path) -> None:
    shutil.rmtree(clone.metatree)
    state = '{"version": 4, "terraform_version": "1.5", "lineage": "x", "outputs": "PASSPHRASE"}'
    (clone.folder / "state.txt").write_text(state)
    with Tree.create(tmp_path / "other.db") as other:
        for kind in ("text", "html", "rst", "conversation"):
            other.add(Node(kind, kind, source=Source(type=kind, path="state.txt")), parent=other.root)
        export_memory(other, tmp_path / "export")
    with build_tree(clone.folder) as tree:
        assert "state.txt" in dict(tree.omissions())
        import_memory(tree, tmp_path / "export")
        for kind in ("text", "html", "rst", "conversation"):
            with pytest.raises(UserError, match="is no file that the tree was built from"):
                tree.content(kind)


def test_nothing_is_published_that_is_not_in_the_tree(clone: Clone, tmp_path: Path) -> None:
    shutil.rmtree(clone.metatree)
    (clone.folder / "key.txt").write_text(KEY)
    (clone.folder / "settings.yaml").write_text(f"password: {PASSWORD}\n{PROSE}\n")
    with build_tree(clone.folder) as tree:
        files = _write_index(tree, tmp_path / "index.db")
        assert sorted(files.values()) == ["a.md", "settings.yaml"]
        sent = list(_source_parts(tree, files))
        assert {part.digest for part in sent} == files.keys()
        texts = b"".join(zlib.decompress(part.data) for part in sent)
        assert b"harbour" in texts and PASSWORD.encode() not in texts


def test_titles_and_questions_forge_no_options_for_a_person(clone: Clone) -> None:
    out = io.StringIO()
    menu = RouteRequest(
        (f"Where?{DRIVES}",), "", Node("n", f"shop{DRIVES}"), (Option("a", f"a{DRIVES}"), Option("b", "b"))
    )
    asyncio.run(HumanRouter(read=lambda: "b", out=out).route(menu))
    assert "\x1b" not in out.getvalue()
    assert [line for line in out.getvalue().split("\n") if line.startswith("  A  the right")] == []


def test_ids_of_an_export_do_not_drive_the_terminal(clone: Clone, capfd: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(clone.metatree)
    export, changed = clone.folder.parent / "export", clone.folder.parent / "changed"
    assert run(["remember", "The harbour is old", "--who", "ann"]) == 0
    assert run(["ask", "What is a zebra?", "--human", "--run", "r1"]) == 4
    assert run(["export", str(export)]) == 0
    with zipfile.ZipFile(export) as source, zipfile.ZipFile(changed, "w") as target:
        for name in source.namelist():
            text = source.read(name).decode().replace('"mark"', '"no mark"')
            for known in ("r1", next(each.id for each in _memories(clone))):
                text = changed_id(known, text)
            target.writestr(name, text)
    shutil.rmtree(clone.metatree)
    assert run(["import", str(changed), "--trust", "--yes"]) == 0
    capfd.readouterr()
    memory = next(each.id for each in _memories(clone))
    for command in (
        ["runs"],
        ["questions"],
        ["memories"],
        ["resume", f"r1{DRIVES}"],
        ["remember", "The harbour is very old", "--update", memory],
        ["forget", memory],
    ):
        assert run(command) in (0, 4), command
        said = "".join(capfd.readouterr())
        assert "\x1b" not in said and "\n  A  the right" not in said, command
        assert "the right one" in said, command


def changed_id(known: str, text: str) -> str:
    changed = json.dumps(known + DRIVES)[:-1]
    return re.sub(rf'(?<!\\)"{known}', lambda _: changed, text)


def _memories(clone: Clone) -> list[Node]:
    from metatree.notes.notes import memories

    with Tree.open(clone.folder) as tree:
        return memories(tree)


def test_names_in_a_program_of_rules_do_not_drive_the_terminal(
    clone: Clone, capfd: pytest.CaptureFixture[str]
) -> None:
    (clone.folder / "a.rules").write_text(f'(B1 on B2)\n((<x> on <y>) -> "on{DRIVES}")\n')
    assert run(["rules", "a.rules"]) == 0
    said = capfd.readouterr().out
    assert "\x1b" not in said and "\n  A  the right" not in said


def test_no_line_that_is_written_drives_the_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    output.write([f"a{DRIVES}\x9b\u202e", output.styled("b", "bold")])
    output.note(f"a{DRIVES}")
    said = "".join(capsys.readouterr())
    assert "\x1b" not in said and "\x9b" not in said and "\u202e" not in said
    monkeypatch.setattr(output, "coloured", lambda stream: True)
    output.write([output.styled(f"b{DRIVES}", "bold", "red")])
    assert capsys.readouterr().out.startswith("\x1b[1;31mb\\x1b]0;x")


def test_a_picture_is_not_written_through_a_link_to_a_folder(clone: Clone) -> None:
    before = sorted(clone.secret.parent.iterdir())
    (clone.folder / "a.rules").write_text(
        '(B1 on B2)\n((<x> on <y>) -> "on")\nschedule {\n gather = 0;\n main = gather+;\n}\n'
    )
    (clone.folder / "out").symlink_to(clone.secret.parent)
    for option, name in (("--trace", "out/a.json"), ("--picture", "out/a.dot")):
        assert run(["rules", "a.rules", option, name]) == 2
    assert sorted(clone.secret.parent.iterdir()) == before
    assert run(["rules", "a.rules", "--picture", "a.dot"]) == 0


def test_a_picture_is_not_written_through_a_hard_link_or_a_pipe(clone: Clone) -> None:
    before = clone.secret.read_bytes()
    (clone.folder / "a.rules").write_text(
        '(B1 on B2)\n((<x> on <y>) -> "on")\nschedule {\n gather = 0;\n main = gather+;\n}\n'
    )
    for option, name in (("--trace", "a.json"), ("--picture", "a.dot")):
        os.link(clone.secret, clone.folder / name)
        assert run(["rules", "a.rules", option, name]) == 0
        assert clone.secret.read_bytes() == before and (clone.folder / name).read_text()
        (clone.folder / name).unlink()
        os.mkfifo(clone.folder / name)
        assert run(["rules", "a.rules", option, name]) == 0
        assert (clone.folder / name).is_file()


def test_secrets_in_what_a_file_says_of_itself_are_masked(clone: Clone) -> None:
    pytest.importorskip("selectolax")
    shutil.rmtree(clone.metatree)
    about = f'<meta name="description" content="password: {PASSWORD}">'
    (clone.folder / "a.html").write_text(f"<html><head>{about}</head><body><p>{PROSE}</p></body></html>")
    with closing(sqlite3.connect(clone.folder / "d.db")) as made:
        made.execute(f"CREATE TABLE t(a TEXT DEFAULT 'password: {PASSWORD}')")
    description = {
        "openapi": "3.0.0",
        "info": {"title": "A", "version": "1"},
        "servers": [{"url": f"https://ann:{PASSWORD}@example.org/v1"}],
        "paths": {"/a": {"get": {"operationId": "a"}}},
    }
    (clone.folder / "o.json").write_text(json.dumps(description))
    out = clone.folder.parent / "tree"
    with build_tree(clone.folder, f"openapi:{clone.folder / 'o.json'}", out=out) as tree:
        nodes = [node for _, node in tree.walk()]
        assert any(node.attributes.get("server") == "https://example.org/v1" for node in nodes)
        assert any("password: ***" in node.description for node in nodes if node.kind == "column")
    assert PASSWORD.encode() not in (out / "index.db").read_bytes()


def test_git_finds_no_program_of_its_own_in_the_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """A git that does not know GIT_NO_LAZY_FETCH looks for `git-remote-NAME`, which a partial clone names."""
    monkeypatch.setenv("PATH", "node_modules/.bin:.", prepend=os.pathsep)
    assert all(map(os.path.isabs, _environment()["PATH"].split(os.pathsep)))


def test_secrets_in_the_schemas_of_a_description_are_not_kept(clone: Clone) -> None:
    """As defaults and choices of arguments, also of a body, in names, in what is said, in the address of a server."""
    token = "ghp_" + "q7Rk2LmX9vTz4WnB8sYp3JdH6fCg1AeU5oKi"
    schema = {"type": "string", "default": PASSWORD, "enum": [PASSWORD], "example": {"a": [PASSWORD]}}
    plain = {"type": "string", "default": "red", "enum": ["red", "blue"], "description": f"or {token}"}
    body = {
        "type": "object",
        "properties": {"login": {"properties": {"api_key": schema, "kind": {"const": token}}}},
    }
    operation = {
        "operationId": token,
        "tags": [token],
        "parameters": [
            {"name": "password", "in": "query", "schema": schema},
            {"name": "colour", "in": "query", "schema": plain},
            {"name": "shade", "in": "query", "schema": {"type": "string", "default": token}},
        ],
        "requestBody": {"content": {"application/json": {"schema": body}}},
        "responses": {},
    }
    description = {
        "openapi": "3.0.0",
        "info": {"title": "A", "version": "1"},
        "servers": [{"url": f"https://example.org/{token}/v1"}],
        "paths": {"/a": {"post": operation}},
    }
    file, out = clone.folder.parent / "o.json", clone.folder.parent / "tree"
    file.write_text(json.dumps(description))
    with build_tree(f"openapi:{file}", out=out) as tree:
        (node,) = [node for _, node in tree.walk() if node.kind == "api operation"]
        properties = node.attributes["call"]["schema"]["properties"]
        assert properties["password"] == {"type": "string"}
        assert properties["colour"]["default"] == "red" and properties["colour"]["enum"] == ["red", "blue"]
        assert "colour (string, one of red, blue)" in tree.content(node.id)
    kept = (out / "index.db").read_bytes()
    assert token.encode() not in kept and PASSWORD.encode() not in kept


@pytest.mark.parametrize(
    "command",
    [
        ["rules", "x.rules"],
        ["plan", "x.toml", "go(home)"],
        ["plan", "x.hddl", "y.hddl"],
        ["gateway", "--servers", "x.json", "--list"],
        ["build", "openapi:x.json"],
        ["build", "x.json"],
        ["ask", "@x.txt"],
    ],
    ids=" ".join,
)
def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(clone: Clone, command: list[str]) -> None:
    for name in ("x.rules", "x.toml", "x.hddl", "x.json", "x.txt", "y.hddl"):
        os.mkfifo(clone.folder / name)
    program = str(Path(sys.executable).with_name("metatree"))
    done = subprocess.run([program, *command], capture_output=True, check=False, timeout=120)
    assert done.returncode in (2, 5), done
    assert b"regular file" in done.stderr or b"neither a file" in done.stderr


def test_a_pipe_of_the_shell_is_read(clone: Clone) -> None:
    program = str(Path(sys.executable).with_name("metatree"))
    text = b'(B1 on B2)\n((<x> on <y>) -> "on")\n'
    done = subprocess.run(
        [program, "rules", "/dev/stdin"], input=text, capture_output=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr


def test_no_program_of_the_folder_is_run_as_a_browser(clone: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("bin/chromium", "chromium"):
        file = clone.folder / name
        file.parent.mkdir(exist_ok=True)
        file.write_text("#!/bin/sh\n")
        file.chmod(0o755)
    monkeypatch.setenv("PATH", os.pathsep.join(["bin", ".", "", str(clone.folder.parent / "none")]))
    assert not has_chromium()
    for named in ("chromium", "bin/chromium", "./chromium"):
        monkeypatch.setenv("METATREE_CHROMIUM", named)
        assert not has_chromium()
    monkeypatch.setenv("METATREE_CHROMIUM", str(file))
    assert find_chromium() == str(file)


def test_libraries_find_no_program_of_the_folder(clone: Clone) -> None:
    """The client of OpenAI asks `uname` for the processor."""
    ran = clone.folder.parent / "ran"
    (clone.folder / "bin").mkdir()
    for name in ("uname", "git", "lsb_release", "gcc", "ldconfig"):
        file = clone.folder / "bin" / name
        file.write_text(f"#!/bin/sh\necho {name} >>{ran}\n")
        file.chmod(0o755)
    shutil.rmtree(clone.metatree)
    command = [str(Path(sys.executable).with_name("metatree")), "ask", "Where is the harbour?"]
    for path in (f"bin{os.pathsep}{os.environ['PATH']}", "bin"):
        done = subprocess.run(
            [*command, "--router", "openai/none@http://127.0.0.1:9/v1"],
            env={**os.environ, "PATH": path, "OPENAI_API_KEY": "none"},
            capture_output=True,
            check=False,
            timeout=120,
        )
        assert b"cannot be reached" in done.stderr and not ran.exists(), done.stderr


KEY_LINES = KEY.splitlines()
AWS = "AKIAQX7RT5ZLMN2PW4VB"


def test_a_key_is_masked_whatever_its_lines_stand_in(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    between = (
        *(
            "\n# ",
            "\n * ",
            "\n// ",
            "\n; ",
            "\n> ",
            "\n| ",
            "\n+",
            "\n1: ",
            "\\n",
            "\\r\\n",
            '\\n" \\\n    "',
        ),
        *('" +\n    "', "<br>", "</p>\n<p>", "&#10;", "%0A", "\x85", "\u2028", '\\n",\n    "'),
    )
    lines = [*KEY_LINES[:-2], KEY_LINES[-2][:20], KEY_LINES[-1]]
    for number, each in enumerate(between):
        text = f"{PROSE}\n\n'''{each.join(lines)}'''\n\n{PROSE} at the end {number}.\n"
        for name in ("notes.md", "keys.py", "notes.txt"):
            (folder / f"{number}{name}").write_text(text)
        cell = {"cell_type": "markdown", "source": text.splitlines(keepends=True)}
        (folder / f"{number}.ipynb").write_text(json.dumps({"cells": [cell], "nbformat": 4}, indent=1))
    with build_tree(folder) as tree:
        shown = everything(tree)
        assert [name for name, text in shown.items() if "aZ9/aZ9" in text or "aZ9/aZ9" in name] == []
        assert all(f"at the end {number}" in "".join(shown.values()) for number in range(len(between)))
    assert b"aZ9/aZ9" not in (folder / ".metatree" / "index.db").read_bytes()


def test_a_key_of_any_length_is_masked_to_its_end_and_what_names_one_is_not() -> None:
    long = "\n".join([KEY_LINES[0], *KEY_LINES[1:2] * 500, *KEY_LINES[2:]])
    assert masked(f"{long} and so on")[0].endswith("* and so on")
    assert masked(long[:20_000])[0].count("a") == 0
    for text in (
        "It begins with -----BEGIN PRIVATE KEY----- and ends with -----END PRIVATE KEY-----, on a line of its own.",
        "It begins with `-----BEGIN PRIVATE KEY-----` (see /usr/local/share/certificates/readme.txt); then lines.",
    ):
        assert "on a line of its own" in masked(text)[0] or masked(text) == (text, 0)


@pytest.mark.parametrize("text", ["密钥{}", "é{}", "{}é", "_{}", "{}密钥", "{}_x", "-{}"])
@pytest.mark.parametrize("key", [AWS, "ghp_" + "a1B2" * 9, "glpat-" + "a1B2" * 5, "sk-" + "a1B2" * 9])
def test_a_token_is_masked_beside_any_other_letter(text: str, key: str) -> None:
    assert key not in masked(text.format(key))[0]
    assert masked(f"x{key}")[1] == 0, "a part of a word"


@pytest.mark.parametrize(
    ("subject", "encoding", "body"),
    [
        (f"wombat {AWS}", "7bit", f"wombat {AWS}"),
        (
            f"=?utf-8?b?{base64.b64encode(f'wombat {AWS}'.encode()).decode()}?=",
            "base64",
            base64.encodebytes(f"wombat {AWS}\n{KEY}".encode()).decode(),
        ),
        ("wombat", "quoted-printable", f"wombat {PROSE * 2}{AWS[:8]}=\n{AWS[8:]}\n{KEY}"),
    ],
)
@pytest.mark.parametrize("name", ["one.eml", "all.mbox"])
def test_what_stands_in_letters_in_an_encoding_is_masked(
    tmp_path: Path, subject: str, encoding: str, body: str, name: str
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    letter = (
        f"From: Ann <a@example.org>\nSubject: {subject}\nDate: Mon, 1 Jan 2024 00:00:00 +0000\n"
        f"Content-Transfer-Encoding: {encoding}\n\n{body}\n"
    )
    (folder / name).write_text(f"From a@example.org\n{letter}" * 2 if name == "all.mbox" else letter)
    with build_tree(folder) as tree:
        shown = "".join(everything(tree).values())
        assert AWS[:12] not in shown and "aZ9/aZ9" not in shown and "wombat" in shown
    assert AWS[:12].encode() not in (folder / ".metatree" / "index.db").read_bytes()


def everything(tree: Tree) -> dict[str, str]:
    """All that a tree says of each node."""
    contents = Contents(tree.index, tree.sources(), tree.files)
    return {
        node.id: f"{node.title}\n{node.description}\n{node.attributes}\n{contents.of(node)}"
        for _, node in tree.walk()
    }


@pytest.mark.parametrize("drives", [r"\u001b]0;PWN\u0007", r"\u001b[31mPWN"])
def test_a_traceback_does_not_drive_the_terminal(
    clone: Clone, drives: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Not by styles either, where a terminal shows ours."""
    monkeypatch.setattr("metatree_agents.cli._output.coloured", lambda stream: True)
    (clone.folder / "domain.toml").write_text(f'"{drives}" = 3\n')
    assert run(["plan", "domain.toml", "x", "--debug"]) == 2
    shown = capfd.readouterr().err
    assert "Traceback" in shown and "PWN" in shown
    assert not [char for char in shown if not char.isprintable() and char != "\n"]


@pytest.mark.parametrize(
    ("path", "text"), [(".codex/config.toml", "machine x login ann password {}"), (".cursor/mcp.json", "{}")]
)
def test_no_file_of_a_host_is_read_where_a_link_leads(
    clone: Clone, path: str, text: str, capfd: pytest.CaptureFixture[str]
) -> None:
    clone.secret.write_text(text.format(PASSWORD))
    (clone.folder / path).parent.mkdir()
    (clone.folder / path).symlink_to(clone.secret)
    run(["doctor"])
    said = capfd.readouterr()
    assert PASSWORD not in said.out + said.err and "a link leads out of the project" in said.out


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_a_file_of_a_host_that_is_none_holds_nothing_up(clone: Clone, kind: str) -> None:
    file = clone.folder / ".cursor" / "mcp.json"
    file.parent.mkdir()
    os.mkfifo(file)
    if kind == "device":
        file.unlink()
        file.symlink_to("/dev/zero")
    with soon(), pytest.raises(ValueError, match=r"is not a regular file|a link leads out"):
        hosts.state(HOSTS["cursor"], clone.folder)
    with soon():
        for plan in (hosts.planned, hosts.takes_back):
            changes = {each.what: each for each in plan(["cursor"], "project", clone.folder)}
            assert changes["server"].done == "refused"


@contextmanager
def soon() -> Iterator[None]:
    """Raise in what takes ten seconds: it waits for a file that has no end."""

    def late(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(10)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize(
    ("host", "path", "text"),
    [
        ("claude-code", ".mcp.json", '{"mcpServers": {"metatree": {"command": "x", "env": {"LD_PRELOAD": "./x.so"}}}}'),
        ("cursor", ".cursor/mcp.json", '{"mcpServers": {"metatree": {"command": "metatree", "cwd": "evil"}}}'),
        ("vscode", ".vscode/mcp.json", '{"servers": {"metatree": {"command": "x", "envFile": "evil.env"}}}'),
        ("codex", ".codex/config.toml", '[mcp_servers.metatree]\ncommand = "x"\nenv = {METATREE_TRUST = "."}\n'),
    ],
)  # fmt: skip
def test_a_server_that_the_folder_prepared_is_not_completed(
    clone: Clone, host: str, path: str, text: str, capfd: pytest.CaptureFixture[str]
) -> None:
    file = clone.folder / path
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    run(["install", "--project", host])
    said = capfd.readouterr()
    assert "the entry 'metatree' that came with the project has" in said.out + said.err
    assert file.read_text() == text
    file.unlink()
    assert run(["install", "--project", host]) == 0
    assert run(["install", "--project", host]) == 0, "ours stays as it is"


def test_what_a_program_says_by_escapes_is_masked_where_it_is_shown(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    text = f'"""The harbour.\n\nThe key \\x41{AWS[1:]} opens it."""\n\n\ndef f():\n    """Open by \\x41{AWS[1:]}."""\n'
    (folder / "a.py").write_text(text)
    with build_tree(folder) as tree:
        shown = "\n".join(f"{node.title} {node.description} {node.attributes}" for _, node in tree.walk())
        assert "Open by *" in shown and AWS not in shown
