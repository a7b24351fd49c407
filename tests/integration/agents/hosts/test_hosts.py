"""`metatree install` and `uninstall` on the files of hosts, in the shape that the hosts' pages show."""

from __future__ import annotations

import json
import shutil
import tomllib
from collections.abc import Callable
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from metatree_agents.cli._main import run
from metatree_agents.cli.schemas._hosts import HostsOutput
from metatree_agents.hosts import _json_edits, _toml_edits
from metatree_agents.hosts._records import checksum
from metatree_agents.hosts.table import HOSTS
from metatree_agents.tools._registry import TOOLS
from metatree_agents.tools.instructions import DESCRIPTION, instructions, registry_entry, skill

from metatree.version import RELEASE
from tests.integration.agents.hosts.host_files import (
    CLAUDE,
    CODEX,
    CURSOR,
    FILES,
    ZED,
    everything,
    says,
    server_in,
)

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("host", FILES)
def test_a_server_and_a_skill_are_added_and_all_else_stays(
    host: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = everything(home)
    name, text = FILES[host]
    assert run(["install", host]) == 0
    after = (home / name).read_bytes().decode()
    said, wanted = says(host, after), says(host, text)
    server = server_in(host, said)
    program = server["command"][0] if host == "opencode" else server["command"]
    arguments = server["command"][1:] if host == "opencode" else server["args"]
    assert Path(program).is_absolute() and Path(program).name.startswith("metatree")
    assert arguments[0] == "mcp"
    for key in HOSTS[host].keys:
        wanted, said = wanted.setdefault(key, {}), said[key]
    assert {key: value for key, value in said.items() if key != "metatree"} == wanted
    # every character that was there still is: the entry was put in, and perhaps a comma before it
    edits = SequenceMatcher(None, text, after, autojunk=False).get_opcodes()
    assert {edit[0] for edit in edits} == {"equal", "insert"}
    [skill_file] = set(everything(home)) - set(before)
    assert skill_file.endswith("skills/metatree/SKILL.md")
    assert (home / skill_file).read_text() == skill()
    # once more changes nothing
    capsys.readouterr()
    both = everything(home)
    assert run(["install", host]) == 0
    assert everything(home) == both
    assert capsys.readouterr().out.count("unchanged") == 2
    # and what was not changed since becomes what it was, with the folders that were made gone
    assert run(["uninstall", host]) == 0
    assert everything(home) == before
    assert not (home / skill_file).parent.parent.exists()
    assert run(["uninstall", host]) == 1


def test_all_hosts_at_once_share_a_skill_until_the_last_one_goes(home: Path) -> None:
    before = everything(home)
    assert run(["install"]) == 0
    shared = home / ".agents/skills/metatree/SKILL.md"
    assert run(["uninstall", "codex"]) == 0
    assert shared.exists()  # Zed has it too
    assert run(["uninstall"]) == 0
    assert everything(home) == before


def test_from_a_file_that_was_changed_since_the_entry_alone_is_taken_out(home: Path) -> None:
    run(["install", "zed", "codex", "claude-code"])
    zed, codex, claude = (home / FILES[host][0] for host in ("zed", "codex", "claude-code"))
    zed.write_text(zed.read_text().replace('"ui_font_size": 16,', '"ui_font_size": 18, // bigger'))
    codex.write_text(codex.read_text() + '\n[profiles.min]\nmodel_reasoning_effort = "low"\n')
    claude.write_text(claude.read_text().replace("42", "43"))
    assert run(["uninstall"]) == 0
    assert zed.read_text() == ZED.replace('"ui_font_size": 16,', '"ui_font_size": 18, // bigger')
    assert codex.read_text() == CODEX + '\n[profiles.min]\nmodel_reasoning_effort = "low"\n'
    assert claude.read_text() == CLAUDE.replace("42", "43")


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize(
    "text", [CODEX, CODEX.rstrip(), CODEX + "\n\n", "# mine\n", 'mcp_servers.a.command = "x"\n']
)
@pytest.mark.parametrize("above", ["", "# above\n\n"])
@pytest.mark.parametrize("below", ["# below\n", "\n# below\n", "\n\n[x]\n# below\n"])
def test_what_stands_around_an_entry_in_toml_stays_byte_for_byte(
    text: str, above: str, below: str, newline: str, home: Path
) -> None:
    codex = home / FILES["codex"][0]
    codex.write_bytes(text.replace("\n", newline).encode())
    run(["install", "codex"])
    installed = codex.read_bytes().decode()
    assert newline == "\n" or "\n" not in installed.replace("\r\n", "")
    below = (below if text.endswith("\n") else "").replace("\n", newline)
    codex.write_bytes((above + installed + below).encode())
    run(["install", "codex", "--source", "."])
    assert run(["uninstall", "codex"]) == 0
    assert codex.read_bytes().decode() == above + text.replace("\n", newline) + below


def test_tables_of_an_entry_in_toml_go_with_it_and_comments_below_them_stay() -> None:
    keys = ("mcp_servers", "metatree")
    entry = '[mcp_servers.metatree]\nargs = [\n  "[x]",\n]\n# inside\n[mcp_servers.metatree.env]\nA = """\n# b\n"""\n'
    for around in ("", "[mcp_servers.m]\n", "[mcp_servers.metatree_too]\n", "[[x]]\n", "# comment\n"):
        text = "a = 1\n\n" + entry + around
        assert _toml_edits.without_entry(text, keys) == "a = 1\n" + around
    alone = _toml_edits.with_entry("", keys, {"command": "m"})
    assert alone == '[mcp_servers.metatree]\ncommand = "m"\n'
    assert _toml_edits.without_entry(alone + "# mine\n", keys) == "# mine\n"
    inline = _toml_edits.without_entry("mcp_servers = {a = {b = 1}, metatree = {b = 2}}  # mine\n", keys)
    assert tomllib.loads(inline) == {"mcp_servers": {"a": {"b": 1}}} and inline.endswith("  # mine\n")


def test_an_entry_written_again_after_a_change_is_taken_out_and_not_restored(home: Path) -> None:
    cursor = home / FILES["cursor"][0]
    run(["install", "cursor"])
    cursor.write_text(cursor.read_text().replace("3845", "3846"))
    run(["install", "cursor", "--source", "."])
    assert json.loads(cursor.read_text())["mcpServers"]["metatree"]["args"][-1] == str(Path.cwd())
    run(["uninstall", "cursor"])
    assert cursor.read_text() == CURSOR.replace("3845", "3846")


def test_what_a_person_added_to_the_entry_stays(home: Path) -> None:
    cursor = home / FILES["cursor"][0]
    cursor.write_text('{"mcpServers": {"metatree": {"command": "old", "env": {"METATREE_MODEL": "m"}}}}')
    run(["install", "cursor"])
    server = json.loads(cursor.read_text())["mcpServers"]["metatree"]
    assert server["env"] == {"METATREE_MODEL": "m"} and server["command"] != "old"


def test_a_dry_run_shows_a_diff_and_writes_nothing(
    home: Path, capsys: pytest.CaptureFixture[str], conforms: Callable[[Any, Any], None]
) -> None:
    before = everything(home.parent)
    assert run(["install", "codex", "--dry-run"]) == 0
    shown = capsys.readouterr().out
    assert "\n+[mcp_servers.metatree]\n" in shown and "\n-" not in shown.replace("\n--- ", "")
    assert run(["install", "vscode", "--dry-run", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    conforms(printed, HostsOutput)
    assert printed["changes"][0]["done"] == "changed" and any(
        "metatree" in x for x in printed["changes"][0]["diff"]
    )
    assert everything(home.parent) == before
    assert not (home / ".local").exists()


@pytest.mark.parametrize("copy_name", ["copy.json", "HOME/note.txt"])
def test_records_that_a_checkout_brings_put_nothing_into_files(
    home: Path, monkeypatch: pytest.MonkeyPatch, copy_name: str
) -> None:
    project = Path.cwd()
    claude = home / ".claude.json"
    run(["install", "claude-code"])
    (home / "note.txt").write_text("evil")
    state = project / ".state"
    (state / "metatree" / "hosts").mkdir(parents=True)
    (state / "metatree" / "hosts" / "copy.json").write_text('{"mcpServers": {"evil": {"command": "sh"}}}')
    record = {
        "hosts": ["claude-code"],
        "written": checksum(claude.read_bytes()),
        "copy_name": copy_name.replace("HOME", str(home)),
    }
    for kept in ({str(claude): record}, {"mark": "0" * 64, "files": {str(claude): record}}):
        (state / "metatree" / "hosts" / "files.json").write_text(json.dumps(kept))
        monkeypatch.setenv("XDG_STATE_HOME", str(state))
        run(["uninstall", "claude-code"])
        assert "evil" not in claude.read_text()
        assert (home / "note.txt").exists()


def test_a_dry_run_masks_the_keys_of_other_servers(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    token = "ghp_aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"
    cursor = home / FILES["cursor"][0]
    cursor.parent.mkdir(exist_ok=True)
    cursor.write_text(json.dumps({"mcpServers": {"a": {"command": "a", "env": {"GITHUB_TOKEN": token}}}}))
    for command in (["install", "cursor", "--dry-run"], ["install", "cursor", "--dry-run", "--json"]):
        assert run(command) == 0
        shown = capsys.readouterr().out
        assert "GITHUB_TOKEN" in shown and token[8:] not in shown


@pytest.mark.parametrize(
    ("host", "text", "why"),
    [
        ("claude-code", '{"mcpServers": {', "line 1"),
        ("cursor", "{\n  'mcpServers': {}\n}", "line 2"),
        ("codex", "[mcp_servers\n", "line 1"),
        ("codex", "x = [1\n", "no TOML: Unclosed array"),
        ("zed", '{"context_servers": []}', "'context_servers' is no object"),
        ("gemini", "\xff", "UTF-8"),
        ("windsurf", "[" * 100_000, "nested too deep"),
    ],
)
def test_a_file_that_is_not_valid_is_left_alone_and_said(
    host: str, text: str, why: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = home / FILES[host][0]
    path.write_bytes(text.encode("latin-1"))
    before = everything(home)
    assert run(["install", host]) == 5
    assert everything(home) == before  # the skill is not installed either
    [line] = [line for line in capsys.readouterr().out.splitlines() if "refused" in line]
    assert "left alone" in line and why in line
    run(["uninstall", host])
    assert path.read_bytes() == text.encode("latin-1")


def test_a_home_that_cannot_be_written_gives_one_line(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = everything(home)
    monkeypatch.setenv("XDG_STATE_HOME", str(home / FILES["zed"][0]))  # a file: nothing can be made below it
    assert run(["install"]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert "cannot write" in line and "claude-code" in line and "--project" in line
    assert everything(home) == before


def test_settings_in_toml_that_are_larger_than_people_have_are_left_alone(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """60,000 tables took `doctor` 17 seconds and `install` 50."""
    file = Path(".codex/config.toml")
    file.parent.mkdir()
    file.write_text("".join(f"[t{number}]\na = 1\n" for number in range(60_000)))
    before = file.read_bytes()
    assert run(["install", "codex", "--project"]) != 0
    assert "more than are read (500,000)" in capsys.readouterr().out
    assert file.read_bytes() == before


def test_a_link_of_the_user_stays_a_link(home: Path) -> None:
    real = home / "dotfiles.json"
    (home / ".claude.json").rename(real)
    (home / ".claude.json").symlink_to(real)
    run(["install", "claude-code"])
    assert (home / ".claude.json").is_symlink() and "metatree" in real.read_text()
    run(["uninstall"])
    assert (home / ".claude.json").is_symlink() and real.read_text() == CLAUDE


def test_copies_are_for_their_owner_alone(home: Path) -> None:
    (home / ".claude.json").chmod(0o600)
    run(["install", "claude-code"])
    assert (home / ".claude.json").stat().st_mode & 0o777 == 0o600
    state = home / ".local/state/metatree/hosts"
    assert state.stat().st_mode & 0o777 == 0o700
    copies = [path for path in state.iterdir() if path.name.endswith(".claude.json")]
    assert [path.read_text() for path in copies] == [CLAUDE]
    assert {path.stat().st_mode & 0o777 for path in state.iterdir()} == {0o600}


def test_doctor_lists_which_hosts_have_it(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(["install", "codex", "zed"])
    run(["install", "zed", "cursor", "--project"])
    (home / FILES["gemini"][0]).write_text("{")
    capsys.readouterr()
    run(["doctor", "--json"])
    checks = json.loads(capsys.readouterr().out)["checks"]
    [detail] = [check["detail"] for check in checks if check["name"] == "agent hosts"]
    assert "codex (user)" in detail and "zed (user, project)" in detail and "cursor (project)" in detail
    assert "gemini (line 1 is no JSON)" in detail
    assert "`metatree install claude-code vscode opencode windsurf`" in detail


def test_an_unknown_host_and_none_at_all(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(["install", "emacs"]) == 2
    assert "'emacs'" in capsys.readouterr().err
    monkeypatch.setenv("HOME", str(home / "nowhere"))
    assert run(["install"]) == 2
    assert "name one, of claude-code" in capsys.readouterr().err


def test_skill_server_and_registry_say_the_same_and_name_tools_that_there_are() -> None:
    root = Path(__file__).parents[4]
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    said = json.loads((root / "server.json").read_text())
    assert said == registry_entry(project["name"], RELEASE)
    assert DESCRIPTION in skill() and instructions() in skill() and said["description"] == DESCRIPTION
    assert len(DESCRIPTION) <= 100  # as long as the registry takes
    front = skill().split("---\n")[1]
    assert len(front.partition("description: ")[2]) <= 1024  # as long as hosts read
    named = {line.split("`")[1] for line in instructions().splitlines() if line.startswith("- `")}
    assert named <= {tool.name for tool in TOOLS}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.dictionaries(st.text(max_size=4), JSON, max_size=4), st.sampled_from([None, 1, 2, "\t"]), st.booleans()
)
def test_any_json_keeps_what_it_says(
    said: dict[str, Any], indent: int | str | None, has_servers: bool
) -> None:
    if has_servers:
        said = {**said, "servers": {"other": {"a": [1]}}}
    text = json.dumps(said, indent=indent)
    added = _json_edits.with_entry(text, ("servers", "metatree"), {"command": "m"}) if text else ""
    wanted = {**said, "servers": {**said.get("servers", {}), "metatree": {"command": "m"}}}
    assert json.loads(added) == wanted
    taken = _json_edits.without_entry(added, ("servers", "metatree"))
    del wanted["servers"]["metatree"]
    assert json.loads(taken) == wanted


@pytest.mark.parametrize("variable", ["XDG_CONFIG_HOME", "CODEX_HOME"])
def test_a_variable_that_names_a_relative_folder_is_passed_over(
    home: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    """It would be a folder of a clone, whose authors may have put a link there."""
    shutil.copytree(home, "conf", dirs_exist_ok=True)
    here = everything(Path("conf"))
    monkeypatch.setenv(variable, "conf/.config" if variable == "XDG_CONFIG_HOME" else "conf/.codex")
    before = everything(home)
    assert run(["install", "codex", "opencode"]) == 0
    assert everything(Path("conf")) == here
    assert everything(home) != before
