"""Files of servers, as every host writes them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from metatree_agents.gateway.servers_file import entries
from metatree_agents.hosts.servers import fronted_folder, of_host, read_file

from metatree import UserError

pytestmark = pytest.mark.integration


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "mcp.json",
            '{"mcpServers": {"git": {"command": "uvx", "args": ["mcp-server-git"], "env": {"A": "b"}}}}',
        ),
        (
            "mcp.json",
            '{"servers": {"git": {"type": "stdio", "command": "uvx", "args": ["mcp-server-git"], "env": {"A": "b"}}}}',
        ),
        ("mcp.json", '{"git": {"command": "uvx", "args": ["mcp-server-git"], "env": {"A": "b"}}}'),
        (
            "opencode.jsonc",
            '{"mcp": {"git": {"type": "local", "command": ["uvx", "mcp-server-git"], "environment": {"A": "b"},},}}//x',
        ),
        (
            "settings.json",
            '{"context_servers": {"git": {"command": {"path": "uvx", "args": ["mcp-server-git"], "env": {"A": "b"}}}}}',
        ),
        ("config.toml", '[mcp_servers.git]\ncommand = "uvx"\nargs = ["mcp-server-git"]\nenv = {A = "b"}\n'),
    ],
)
def test_the_files_of_all_hosts_say_the_same(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert read_file(tmp_path / name) == {
        "git": {"command": "uvx", "args": ["mcp-server-git"], "env": {"A": "b"}}
    }


def test_addresses_variables_and_what_is_switched_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "pa$$word-1")
    file = tmp_path / "mcp.json"
    servers = {
        "a": {
            "url": "https://a.example/mcp?key=secret-key-9",
            "headers": {"Authorization": "Bearer ${SHOP_TOKEN}"},
        },
        "b": {"httpUrl": "https://b.example/mcp", "bearer_token_env_var": "SHOP_TOKEN", "disabled": False},
        "c": {"command": "x", "disabled": True},
        "d": {"command": "x", "enabled": False},
        "e": {
            "command": "x",
            "args": ["${NOT_SET:-fallback}", "--api-key", "k3y-of-e"],
            "env": {"MODE": "fast-mode"},
        },
        "metatree-gateway": {"command": "anything"},
        "me": {"command": "/usr/bin/metatree", "args": ["gateway", "--servers", "x"]},
    }
    file.write_text(json.dumps({"mcpServers": servers}))
    a, b, e = entries([file], [], folder=tmp_path)
    assert a.settings["headers"] == {"Authorization": "Bearer pa$$word-1"} == b.settings["headers"]
    assert set(a.secrets) >= {"Bearer pa$$word-1", "pa$$word-1", "secret-key-9"}
    token = "ghp_aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"
    assert token[8:] not in replace(a, settings={"url": f"https://a.example/s/{token}/mcp"}).place
    assert a.place == "https://a.example/mcp" and "pa$$" not in repr(a.identity)
    assert e.settings["args"][0] == "fallback" and e.secrets == ("k3y-of-e",)


def test_a_file_takes_no_name_from_a_server_of_the_users_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    home, clone = tmp_path / "home", tmp_path / "clone"
    (home / ".cursor").mkdir(parents=True)
    clone.mkdir()
    monkeypatch.setenv("HOME", str(home))
    (home / ".cursor/mcp.json").write_text('{"mcpServers": {"mail": {"command": "mine"}}}')
    (clone / "mcp.json").write_text('{"mcpServers": {"mail": {"command": "theirs"}}}')
    listed = entries([clone / "mcp.json"], ["cursor"], folder=clone)
    assert [(each.name, each.settings["command"]) for each in listed] == [
        ("mail", "mine"),
        ("mail-2", "theirs"),
    ]
    assert "'mail' at theirs … is mounted as 'mail-2'" in caplog.text


def test_what_is_not_used_of_a_server_that_is_listed_twice_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = tmp_path / "a.json", tmp_path / "b.json"
    first.write_text('{"mcpServers": {"mail": {"command": "x", "reuse": 5}, "post": {"command": "x"}}}')
    second.write_text('{"mcpServers": {"mail": {"command": "x", "reuse": 5, "read_only": "none"}}}')
    assert [each.name for each in entries([first, second], [], folder=tmp_path)] == ["mail"]
    assert [each.getMessage() for each in caplog.records] == [
        "the server 'post' is the same as 'mail', and is mounted under that name",
        "the server 'mail' is listed before without this: `read_only` of 'mail' is not used",
    ]


def test_a_credential_in_the_place_of_its_variable_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "mcp.json"
    monkeypatch.setenv("SHOP_KEY", "k3y-of-the-shop")
    for given in ("$SHOP_KEY", "${SHOP_KEY}"):
        file.write_text(json.dumps({"mcpServers": {"shop": {"openapi": "a.json", "auth": {"key": given}}}}))
        if given == "$SHOP_KEY":
            assert len(entries([file], [], folder=tmp_path)) == 1
            continue
        with pytest.raises(UserError, match="with no braces") as told:
            entries([file], [], folder=tmp_path)
        assert "k3y" not in str(told.value)


def test_only_the_users_own_files_of_a_host_are_taken_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    (home / ".cursor").mkdir(parents=True)
    (project / ".cursor").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    (home / ".cursor/mcp.json").write_text('{"mcpServers": {"mine": {"command": "x"}}}')
    (project / ".cursor/mcp.json").write_text('{"mcpServers": {"theirs": {"command": "evil"}}}')
    assert [each.name for each in entries([], ["cursor"], folder=project)] == ["mine"]
    claude = {
        "mcpServers": {"mine": {"command": "x"}},
        "projects": {
            str(project): {"mcpServers": {"local": {"command": "y"}}},
            "/other": {"mcpServers": {"z": {}}},
        },
    }
    (home / ".claude.json").write_text(json.dumps(claude))
    (project / ".mcp.json").write_text('{"mcpServers": {"theirs": {"command": "evil"}}}')
    assert list(of_host("claude-code", project)) == ["mine", "local"]
    both = entries([], ["cursor", "claude-code"], folder=project)
    assert [each.name for each in both] == ["mine", "local"]
    for name in ("zed", "notepad"):
        with pytest.raises(UserError):
            of_host(name, project)


@pytest.mark.parametrize(
    ("settings", "secret"),
    [
        ({"args": ["run", "-e", "GITHUB_TOKEN=ghp_abcdef"]}, "ghp_abcdef"),
        ({"args": ["remote", "--header", "Authorization: Bearer xyz12345"]}, "xyz12345"),
        ({"args": ["--api-key=k-1234567"]}, "k-1234567"),
        ({"args": ["--api-key", "k-1234567"]}, "k-1234567"),
        ({"args": ["postgresql://ann:p4ssword@db/shop"]}, "p4ssword"),
        ({"env": {"DATABASE_URL": "mysql://ann:hunter%2022@db/shop"}}, "hunter 22"),
        ({"env": {"API_KEY": "a/key+of+mine"}}, "a%2Fkey%2Bof%2Bmine"),
        ({"headers": {"Authorization": "Basic YW5uOmh1bnRlcjIyMw=="}}, "hunter223"),
        ({"url": "https://example.org/mcp?token=t0ken-1"}, "t0ken-1"),
        ({"command": "postgresql://ann:Hunter2xQz9@db/shop"}, "Hunter2xQz9"),
    ],
)
def test_what_is_secret_in_an_entry_is_known(tmp_path: Path, settings: dict[str, Any], secret: str) -> None:
    where = {} if "url" in settings else {"command": "run"}
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"one": {**where, **settings}}}))
    (entry,) = entries([file], [], folder=tmp_path)
    assert secret in entry.secrets
    assert secret not in repr(entry) and secret not in entry.place


def test_a_server_is_started_in_the_folder_of_its_file_and_one_of_a_host_in_the_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not in the current one, which may be a clone with a program of that name; permissions are for it there."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    servers = {
        "a": {"command": "python", "args": ["server.py"]},
        "b": {"command": "python", "args": ["server.py"], "cwd": "in"},
        "c": {"command": "python", "args": ["server.py"], "cwd": "${workspaceFolder}"},
        "d": {"openapi": "a.json"},
        "e": {"openapi": "openapi:https://example.org/a.json"},
        "f": {"url": "https://example.org/mcp"},
    }
    folders = {name: tmp_path / name for name in ("own", "clone", "home")}
    for name, folder in folders.items():
        (folder / ".cursor").mkdir(parents=True)
        file = folder / (".cursor/mcp.json" if name == "home" else "mcp.json")
        file.write_text(json.dumps({"mcpServers": servers}))
    monkeypatch.chdir(folders["clone"])
    own = {each.name: each for each in entries([folders["own"] / "mcp.json"], [], folder=folders["clone"])}
    assert [own[name].settings.get("cwd") for name in "abcdef"] == [
        *(str(folders["own"]), str(folders["own"] / "in"), str(folders["clone"])),
        *(None, None, None),
    ]
    assert own["d"].settings["openapi"] == str(folders["own"] / "a.json")
    assert own["e"].settings["openapi"] == "openapi:https://example.org/a.json"
    clone = {each.name: each for each in entries([Path("mcp.json")], [], folder=folders["clone"])}
    assert clone["a"].settings["cwd"] == str(folders["clone"])
    assert clone["a"].origin != own["a"].origin and clone["f"].origin == own["f"].origin
    (home, *_) = entries([], ["cursor"], folder=folders["clone"])
    assert home.settings["cwd"] == str(folders["home"])


def test_a_server_of_a_host_whose_place_the_gateway_takes_is_started_in_the_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not beside the file that keeps its settings, with the keys of others in it."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    fronted_folder().mkdir(parents=True)
    file = fronted_folder() / "claude-code.json"
    file.write_text(json.dumps({"mcpServers": {"a": {"command": "python", "args": ["server.py"]}}}))
    (entry,) = entries([file], [], folder=tmp_path)
    assert entry.settings["cwd"] == str(tmp_path)
