"""Messages, and what stands around texts, repeat no key that a file has where a name should be."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path

import pytest
import yaml
from mcp import Client
from metatree_agents.cli._main import run
from metatree_agents.service.http.error_responses import error_response
from metatree_agents.service.web import _pdf_secrets
from metatree_agents.service.web._pdf_secrets import holds_secret
from metatree_agents.tools.functions import function_tools
from metatree_agents.tools.mcp_server import mcp_server
from metatree_agents.tools.toolkit import Toolkit
from metatree_memory_tools import build_tree
from metatree_memory_tools.databases._sqlite import SQLite
from metatree_memory_tools.documents._document_text import Extracted, PageStart
from metatree_memory_tools.reading.bounded_yaml import load_yaml

from metatree import Tree
from metatree.blackboard._json_lines import read_lines
from metatree.errors import UserError
from metatree.notes.archive import export_memory, import_memory, survey_archive
from metatree.notes.notes import remember
from metatree.settings_files import read_settings
from metatree.storage.store import APPLICATION_ID
from tests.integration.trust.prepared import Clone, as_user

pytestmark = pytest.mark.integration
AWS = "AKIAQ3EGRB7TZ5KMX2WD"
ADDRESS = "https://ann:s3cretpw99@mcp.example.org/x"


@pytest.mark.parametrize(
    "key", [AWS, f'"{ADDRESS}"', "hvs.CAESIJ7k3mQ9x2VbT5nW8zR1cY6dF4gH0jL3pS9aU2eKGh4KHGh2cy5Zb1w8"]
)
def test_settings_that_say_a_key_twice_are_refused_without_it(tmp_path: Path, key: str) -> None:
    """TOML takes a key with dots for a name in parts."""
    (tmp_path / "metatree.toml").write_text(f"[x.{key}]\na = 1\n[x.{key}]\nb = 1\n")
    with pytest.raises(UserError, match=r"are no TOML: Cannot declare \(…\) twice \(at line 3, ") as caught:
        read_settings(tmp_path / "metatree.toml")
    (tmp_path / "metatree.toml").write_text(f"{key} = 0x{'9' * 30}\n")
    with pytest.raises(UserError, match="does not fit") as other:
        read_settings(tmp_path / "metatree.toml")
    assert not re.search("AKIAQ3|s3cret|CAESIJ", str(other.value))
    error: BaseException | None = caught.value
    while error is not None:
        assert not re.search("AKIAQ3|s3cret|CAESIJ", str(error))
        error = error.__cause__


@pytest.mark.parametrize(
    "command", ["doctor", "install --project codex claude-code", "uninstall --project codex"]
)
def test_files_of_hosts_are_refused_without_their_keys(
    command: str, clone: Clone, capfd: pytest.CaptureFixture[str]
) -> None:
    (clone.folder / ".codex").mkdir()
    (clone.folder / ".codex" / "config.toml").write_text(f'[mcp_servers."{ADDRESS}"]\na = 1\n' * 2)
    entry = {"metatree": {"command": "metatree", "args": ["mcp"], AWS: ""}}
    (clone.folder / ".mcp.json").write_text(json.dumps({"mcpServers": entry}))
    for end in ([], ["--json"]):
        run([*command.split(), *end])
        said = "".join(capfd.readouterr())
        assert "Cannot declare (…) twice" in said and "s3cretpw99" not in said and AWS not in said


def test_a_tool_fails_without_a_key() -> None:
    def broken() -> Tree:
        raise UserError(f"{ADDRESS} is no tree")

    async def asked() -> list[str]:
        async with Client(mcp_server(Toolkit(broken))) as client:
            tool = await client.call_tool("search", {"query": "harbour"})
            with pytest.raises(Exception, match="is no tree") as caught:
                await client.read_resource("metatree://nodes/x")
            return [str(tool.content), str(caught.value)]

    search = next(each for each in function_tools(broken) if each.name.endswith("search"))
    error = error_response({"path": "/topics"}, 422, f"{ADDRESS} is no tree")
    for said in (*asyncio.run(asked()), search.call({"query": "harbour"}), bytes(error.body).decode()):
        assert "mcp.example.org/x is no tree" in said and "s3cretpw99" not in said


def test_attributes_of_whole_sources_have_no_keys(tmp_path: Path) -> None:
    """SQLite quotes what it does not find, and so does who unpacks an archive."""
    with closing(sqlite3.connect(tmp_path / "shop.db")) as store:
        store.execute("CREATE TABLE stock(name TEXT)")
        store.execute(f"CREATE VIEW teas AS SELECT name FROM [{ADDRESS}]")
    with build_tree(f"database:{tmp_path / 'shop.db'}", out=tmp_path / "tree") as tree:
        said = json.dumps([dict(node.attributes) for _, node in tree.walk()])
    assert "mcp.example.org/x" in said and "s3cretpw99" not in said
    operation = {"parameters": [{"name": AWS, "in": "query"}], "responses": {"200": {"description": "tea"}}}
    scheme = {AWS: {"type": "apiKey", "in": "header", "name": "tea"}}
    api = {
        "openapi": "3.0.0",
        "info": {"title": "tea", "version": "1"},
        "paths": {"/tea": {"get": operation}},
    }
    (tmp_path / "api.json").write_text(json.dumps(api | {"components": {"securitySchemes": scheme}}))
    with build_tree(f"openapi:{tmp_path / 'api.json'}", out=tmp_path / "api") as tree:
        said = json.dumps([dict(node.attributes) for _, node in tree.walk()])
    assert "tea" in said and '"****' in said and AWS not in said


def test_an_export_of_others_has_keys_neither_in_its_kinds_nor_in_its_time(
    by_hand: Tree, tmp_path: Path
) -> None:
    with as_user(tmp_path / "other-user"), Tree.create(tmp_path / "other.db") as other:
        remember(other, "The kettle is blue.", who="ann")
        export_memory(other, tmp_path / "plain")
    with zipfile.ZipFile(tmp_path / "plain") as plain, zipfile.ZipFile(tmp_path / "export", "w") as made:
        for name in plain.namelist():
            data = plain.read(name).replace(b'"kind":"memory"', f'"kind":"note {AWS}"'.encode())
            if name == "manifest.json":
                data = json.dumps(json.loads(data) | {"made_at": f"key: {AWS}"}).encode()
            made.writestr(name, data)
    assert survey_archive(tmp_path / "export").made_at == "a time that it does not say"
    assert import_memory(by_hand, tmp_path / "export").added
    said = str([node for _, node in by_hand.walk()])
    assert "note ****" in said and AWS not in said


def test_a_pdf_that_takes_long_to_look_into_is_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    data = b"%PDF-1.7\n%" + b"tea " * 600_000
    assert not holds_secret(data)
    monkeypatch.setattr(_pdf_secrets, "_MOST_S", 0.0)
    assert holds_secret(data)


def test_a_store_whose_definitions_are_damaged_is_named_without_its_keys(
    clone: Clone, capfd: pytest.CaptureFixture[str]
) -> None:
    for name in ("memory.db", "service.db"):
        (clone.metatree / name).unlink(missing_ok=True)
        with closing(sqlite3.connect(clone.metatree / name)) as store:
            store.execute(f"PRAGMA application_id={APPLICATION_ID}")
            store.execute("CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID")
            store.execute("PRAGMA writable_schema=ON")
            view = "INSERT INTO sqlite_master VALUES('view', ?, ?, 0, 'CREATE VIEW x AS SELECT a FROM ,')"
            store.execute(view, (AWS, AWS))
            store.commit()
    run(["build", "."])
    for command in (["doctor"], ["service", "check"], ["trust", "--show"], ["find", "harbour"]):
        run(command)
        said = "".join(capfd.readouterr())
        assert AWS not in said and ("damaged" in said or command == ["find", "harbour"]), command


def test_a_line_that_is_left_out_is_named_without_its_keys(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "answers.jsonl"
    file.write_text('{"Question": "a"}\n' + f"The kettle is opened by {AWS}\n" + f"{'tea ' * 23}{AWS}\n")
    assert read_lines(file) == [{"Question": "a"}]
    assert "is no JSON" in caplog.text and AWS[:8] not in caplog.text


@pytest.mark.parametrize("tag", ["int", "float", "bool", "timestamp"])
@pytest.mark.parametrize("key", ["ghp_aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5", "123456789:" + "AAF3abcDE" * 4])
def test_a_value_of_yaml_that_is_none_of_its_tag_is_not_quoted(tag: str, key: str) -> None:
    """It would be in parts, or in small letters, in which no key is known."""
    with pytest.raises(yaml.YAMLError, match="is none") as caught:
        load_yaml(f"a: 1\nb: !!{tag} {key}\n")
    assert not re.search(r"aB3dE|ab3de|AAF3|aaf3", str(caught.value))


def test_a_column_of_a_view_that_is_not_there_is_not_named(tmp_path: Path) -> None:
    """SQLite takes a key with `-` for a difference, and its first part for a column that there is."""
    with closing(sqlite3.connect(tmp_path / "shop.db")) as store:
        store.execute("CREATE TABLE stock(glpat INTEGER)")
        store.execute("CREATE VIEW keys AS SELECT glpat-aB3dE5fG7hJ9kL1mN3pQ FROM stock")
        store.execute("CREATE VIEW more AS SELECT glpat-aB3dE5fG7hJ9kL1mN3pQ(1) FROM stock")
        store.commit()
    with build_tree(tmp_path, out=tmp_path / "tree") as tree:
        said = str([node for _, node in tree.walk()])
    assert "no such column" in said and "aB3dE" not in said
    with closing(SQLite.open_file(tmp_path / "shop.db")) as database:
        for sql, shown in (
            ("SELECT nam FROM stock", "no such column: nam"),
            ("SELECT * FROM keys", "no such column$"),
        ):
            with pytest.raises(UserError, match=shown):
                database.query(sql, 1)


def test_the_definition_that_sqlite_cannot_read_is_not_quoted(tmp_path: Path) -> None:
    """Nor is a password in a line of netrc whose first word is a column, and whose others are its type."""
    with closing(sqlite3.connect(tmp_path / "shop.db")) as store:
        store.execute("CREATE TABLE tea(name, machine m login ann password Xk7vQ2mZp9Lw)")
    with closing(sqlite3.connect(tmp_path / "other.db")) as store:
        store.execute("CREATE TABLE tea(name)")
        store.execute("PRAGMA writable_schema = on")
        store.execute(
            "UPDATE sqlite_master SET sql = 'CREATE TABLE tea(machine m login ann password 9hunt2x)'"
        )
        store.commit()
    with build_tree(tmp_path, out=tmp_path / "tree") as tree:
        said = str([node for _, node in tree.walk()])
    assert "malformed database schema" in said and "machine" in said
    assert "9hunt2x" not in said and "Xk7vQ2mZp9Lw" not in said


def test_the_label_of_a_page_has_no_key() -> None:
    text = Extracted(["Tea."], pages=[PageStart(1, AWS)]).without_secrets()
    assert text.pages == [PageStart(1, "*" * len(AWS))]
