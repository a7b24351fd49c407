"""`metatree install` and `uninstall` on the files of hosts, in the shape that the hosts' pages show."""

from __future__ import annotations

import json
import shutil
import tomllib
from collections.abc import Callable
from contextlib import suppress
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from metatree_agents.cli._main import run
from metatree_agents.cli.schemas._hosts import HostsOutput
from metatree_agents.hosts import _files, _json_edits, _toml_edits, install
from metatree_agents.hosts._records import checksum
from metatree_agents.hosts.table import HOSTS
from metatree_agents.tools._registry import TOOLS
from metatree_agents.tools.instructions import DESCRIPTION, instructions, registry_entry, skill

from metatree._util.open_folder import HAS_OPEN_FOLDERS, OpenFolder
from metatree.errors import UserError
from metatree.version import RELEASE

pytestmark = pytest.mark.integration
needs_open_folders = pytest.mark.skipif(not HAS_OPEN_FOLDERS, reason="needs folders that are opened")

CLAUDE = """{
  "numStartups": 42,
  "mcpServers": {
    "github": {
      "type": "http",
      "url": "https://api.example.com/mcp"
    }
  },
  "projects": {
    "/home/ann/shop": {"allowedTools": [], "history": [{"display": "fix \\"it\\" { // no comment"}]}
  }
}
"""
CODEX = """# What I like
model = "gpt-5.2-codex"   # the good one
approval_policy = "on-request"

[mcp_servers.docs]
command = "npx"
args = ["-y", "docs-mcp"]

[mcp_servers.docs.env]
TOKEN = "x"

[profiles.max]
model_reasoning_effort = "high"
"""
CURSOR = '{"mcpServers": {"figma": {"url": "http://127.0.0.1:3845/mcp"}}}'
VSCODE = """{
\t"inputs": [
\t\t{"type": "promptString", "id": "key", "password": true},
\t],
\t"servers": {
\t\t// asks for a key
\t\t"perplexity": {"type": "stdio", "command": "npx", "args": ["-y", "pp"], "env": {"KEY": "${input:key}"}},
\t},
}
"""
OPENCODE = """{
  "$schema": "https://opencode.ai/config.json",
  // my theme
  "theme": "opencode", /* dark */
  "mcp": {"jira": {"type": "remote", "url": "https://jira.example.com/mcp", "enabled": false}}
}
"""
GEMINI = '{\r\n  "theme": "Dracula",\r\n  "general": {"vimMode": true}\r\n}\r\n'
ZED = """// Zed settings
//
// For information on how to configure Zed, see the documentation.
{
  "ui_font_size": 16,
  "context_servers": {
    "postgres": {
      "settings": {
        "database_url": "postgresql://me@localhost/db" // local
      }
    }
  },
  "theme": {
    "mode": "system",
  },
}
"""
WINDSURF = "{}\n"
FILES = {
    "claude-code": (".claude.json", CLAUDE),
    "codex": (".codex/config.toml", CODEX),
    "cursor": (".cursor/mcp.json", CURSOR),
    "vscode": (".config/Code/User/mcp.json", VSCODE),
    "opencode": (".config/opencode/opencode.jsonc", OPENCODE),
    "gemini": (".gemini/settings.json", GEMINI),
    "zed": (".config/zed/settings.json", ZED),
    "windsurf": (".codeium/windsurf/mcp_config.json", WINDSURF),
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a home with the settings of all hosts; a project is the current folder."""
    home = tmp_path / "home"
    for name, text in FILES.values():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setattr("sys.platform", "linux")
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    return home


def everything(folder: Path) -> dict[str, bytes]:
    """Return the files below a folder, without metatree's own state and key."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".local/state" not in str(path) and path.name != "trust.key"
    }


def says(host: str, text: str) -> Any:
    return tomllib.loads(text) if host == "codex" else _json_edits.parsed(text)


def server_in(host: str, said: Any) -> Any:
    for key in HOSTS[host].keys:
        said = said[key]
    return said["metatree"]


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


def test_a_project_has_files_of_its_own_that_name_no_place_of_this_machine(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(Path(run.__code__.co_filename).parent))
    before = everything(home)
    assert run(["install", *FILES, "--project"]) == 0
    project = everything(Path.cwd())
    assert set(project) == {
        ".mcp.json",
        ".claude/skills/metatree/SKILL.md",
        ".codex/config.toml",
        ".agents/skills/metatree/SKILL.md",
        ".cursor/mcp.json",
        ".cursor/skills/metatree/SKILL.md",
        ".vscode/mcp.json",
        ".github/skills/metatree/SKILL.md",
        "opencode.json",
        ".opencode/skills/metatree/SKILL.md",
        ".gemini/settings.json",
        ".gemini/skills/metatree/SKILL.md",
        ".zed/settings.json",
        ".windsurf/skills/metatree/SKILL.md",
    }
    changed = {name for name, data in everything(home).items() if before.get(name) != data}
    assert changed == {FILES["windsurf"][0]}  # it has one list of servers alone
    assert json.loads(project[".vscode/mcp.json"])["servers"]["metatree"]["args"] == [
        "mcp",
        "--source",
        "${workspaceFolder}",
    ]
    assert run(["uninstall", "--project"]) == 0
    assert everything(Path.cwd()) == {} and list(Path.cwd().iterdir()) == []
    assert everything(home) == before


@pytest.mark.parametrize("link", [".claude/skills/metatree/SKILL.md", ".claude/skills/metatree"])
def test_a_link_in_a_project_has_no_other_file_written_over(
    home: Path, capsys: pytest.CaptureFixture[str], link: str
) -> None:
    other = Path("notes/SKILL.md" if link.endswith("metatree") else "notes/own.txt")
    other.parent.mkdir()
    other.write_text("mine")
    Path(link).parent.mkdir(parents=True)
    Path(link).symlink_to((other.parent if link.endswith("metatree") else other).resolve())
    assert run(["install", "claude-code", "--project"]) == 5
    assert "leads to" in capsys.readouterr().out and other.read_text() == "mine"
    assert not Path(".mcp.json").exists()  # nothing of it is installed


def test_a_link_in_a_project_leads_no_write_out_of_it(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path(".mcp.json").symlink_to(home / FILES["cursor"][0])
    Path(".claude").symlink_to(home)
    assert run(["install", "claude-code", "--project"]) == 5
    assert capsys.readouterr().out.count("leads out of the project") == 2
    assert everything(home) == {name: text.encode() for name, text in FILES.values()}


def test_an_entry_in_another_file_of_the_project_that_the_host_takes_is_not_joined(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """OpenCode puts them together: variables of the one would be those of our program in the other."""
    entry = {"mcp": {"metatree": {"environment": {"PYTHONPATH": "evil"}}}}
    Path(".opencode").mkdir()
    for first, second in (
        ("opencode.json", "opencode.jsonc"),
        ("opencode.jsonc", "opencode.json"),
        ("opencode.json", ".opencode/opencode.json"),
        ("opencode.json", ".opencode/opencode.jsonc"),
    ):
        Path(first).write_text("{}")
        Path(second).write_text(json.dumps(entry))
        assert run(["install", "opencode", "--project"]) == 5
        out = capsys.readouterr().out
        assert "refused" in out and "metatree" in out and (first.endswith("c") or f"{second} has" in out)
        assert Path(first).read_text() == "{}"
        Path(first).unlink()
        Path(second).unlink()


def test_a_link_that_stays_in_a_project_is_followed(home: Path) -> None:
    """Hosts that share skills have one folder, with links to it."""
    Path(".agents/skills").mkdir(parents=True)
    Path(".claude").mkdir()
    Path(".claude/skills").symlink_to("../.agents/skills")
    Path(".mcp.json").symlink_to("servers.json")
    Path("servers.json").write_text("{}")
    assert run(["install", "claude-code", "--project"]) == 0
    assert Path(".agents/skills/metatree/SKILL.md").is_file()
    assert Path(".mcp.json").is_symlink() and "metatree" in Path("servers.json").read_text()
    assert run(["uninstall", "claude-code", "--project"]) == 0
    assert Path("servers.json").read_text() == "{}" and list(Path(".agents/skills").iterdir()) == []


@pytest.mark.parametrize(
    ("file", "target"), [(".mcp.json", "secrets.json"), (".codex/config.toml", "../.env")]
)
def test_a_link_in_a_project_leads_to_no_secrets_beside_it(
    home: Path, capsys: pytest.CaptureFixture[str], file: str, target: str
) -> None:
    host = "codex" if "codex" in file else "claude-code"
    link = Path(file)
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(target)
    text = "pin = 4711\n" if host == "codex" else '{"pin": 4711}'
    link.write_text(text)
    for command in (
        ["install", host, "--project"],
        ["install", host, "--project", "--dry-run"],
        ["uninstall", host, "--project"],
    ):
        assert run(command) == 5
        said = capsys.readouterr()
        assert "a link leads to" in said.out and "4711" not in said.out + said.err
    assert link.read_text() == text and not [
        each for each in home.rglob("*") if each.is_file() and text in each.read_text()
    ]


@pytest.mark.parametrize("place", [".git/config", ".git"])
def test_a_link_in_a_project_leads_no_write_to_what_git_keeps(
    home: Path, capsys: pytest.CaptureFixture[str], place: str
) -> None:
    Path(".git").mkdir()
    Path(".git/config").write_text("{}")
    Path(".mcp.json" if place == ".git/config" else ".claude").symlink_to(place)
    for command in ("install", "uninstall"):
        assert run([command, "claude-code", "--project"]) == 5
        assert "a link leads to" in capsys.readouterr().out
    assert everything(Path(".git")) == {"config": b"{}"}


PLACES = [".cursor", ".cursor/mcp.json", ".cursor/skills", ".cursor/skills/metatree/SKILL.md"]


@pytest.fixture(params=["install", "install where nothing is", "uninstall"])
def swapping(request: pytest.FixtureRequest, home: Path) -> tuple[Any, Callable[[str], None]]:
    """Return what plans a change of a prepared project, and what puts links to the same files of the home in it."""
    if request.param != "install where nothing is":
        Path(".cursor/skills/metatree").mkdir(parents=True)
        Path(".cursor/skills/metatree/SKILL.md").write_text("other")
        Path(".cursor/mcp.json").write_text('{"mcpServers": {"evil": {"command": "evil"}}}')
    if request.param == "uninstall":
        assert run(["install", "cursor", "--project"]) == 0
    assert run(["install", "cursor"]) == 0

    def swap(place: str) -> None:
        if Path(place).exists():
            Path(place).rename("aside")
        Path(place).parent.mkdir(parents=True, exist_ok=True)
        Path(place).symlink_to(home / place)

    return (install.takes_back if request.param == "uninstall" else install.planned), swap


@needs_open_folders
@pytest.mark.parametrize("place", PLACES)
def test_a_link_that_comes_after_the_plan_leads_no_write_out_of_the_project(
    place: str, home: Path, swapping: tuple[Any, Callable[[str], None]]
) -> None:
    plan, swap = swapping
    before = everything(home)
    with pytest.raises(
        UserError, match=r"leads out of the project.* in the place of .*; the .* left as it is"
    ):
        for change in plan(["cursor"], "project", Path.cwd()):
            if change.path.is_relative_to(Path(place).absolute()):
                swap(place)
            install.apply(change)
    assert everything(home) == before


@needs_open_folders
@pytest.mark.parametrize("place", PLACES)
def test_a_link_that_comes_just_before_the_write_leads_it_nowhere(
    place: str, home: Path, swapping: tuple[Any, Callable[[str], None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By then the folder is open, and what is in it was compared."""
    plan, swap = swapping
    before = everything(home)
    looked = _files.read_in

    def look_and_swap(folder: OpenFolder, name: str) -> str | None:
        found = looked(folder, name)
        if Path(folder.path, name).is_relative_to(Path(place).absolute()) and not Path(place).is_symlink():
            swap(place)
        return found

    monkeypatch.setattr(install, "read_in", look_and_swap)
    with suppress(UserError):  # the next file is refused
        for change in plan(["cursor"], "project", Path.cwd()):
            install.apply(change)
    assert Path(place).is_symlink() or place.endswith((".json", ".md")), (
        "a link in the place of a file is replaced"
    )
    assert everything(home) == before


@needs_open_folders
def test_a_file_of_a_project_that_was_changed_after_the_plan_is_left_alone(home: Path) -> None:
    file = Path(".cursor/mcp.json")
    file.parent.mkdir()
    file.write_text(CURSOR)
    file.chmod(0o640)
    for plan in (install.planned, install.takes_back):
        for change in plan(["cursor"], "project", Path.cwd()):
            if change.what == "server":
                said = file.read_text()
                file.write_text("{}")
                with pytest.raises(UserError, match=r"mcp\.json' was changed by another program just now"):
                    install.apply(change)
                assert file.read_text() == "{}"
                file.write_text(said)
            install.apply(change)
        assert file.stat().st_mode & 0o777 == 0o640
    assert file.read_text() == CURSOR and not Path(".cursor/skills").exists()


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


@pytest.mark.parametrize(
    "changed",
    [
        {"command": "sh"},
        {"args": ["ask"]},
        {"args": 1},
        {"env": {"A": "b"}},
        {"args": ["mcp", "--source", "mcp:sh -c id"]},
        {"args": ["mcp", "--router", "openai/x@http://evil.example/v1"]},
    ],
)
def test_doctor_says_that_a_project_brings_another_entry(
    home: Path, capsys: pytest.CaptureFixture[str], changed: dict[str, Any]
) -> None:
    run(["install", "cursor", "opencode", "--project"])
    file = Path(".cursor/mcp.json")
    said = json.loads(file.read_text())
    said["mcpServers"]["metatree"] |= changed
    file.write_text(json.dumps(said))
    capsys.readouterr()
    run(["doctor", "--json"])
    checks = json.loads(capsys.readouterr().out)["checks"]
    [detail] = [check["detail"] for check in checks if check["name"] == "agent hosts"]
    assert "cursor (project: not as `install` writes it)" in detail and "opencode (project)" in detail


def test_doctor_knows_the_entry_of_a_project_that_this_user_has_written(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(["install", "cursor", "--project", "--source", str(home)])
    capsys.readouterr()
    run(["doctor", "--json"])
    checks = json.loads(capsys.readouterr().out)["checks"]
    [detail] = [check["detail"] for check in checks if check["name"] == "agent hosts"]
    assert "cursor (project)" in detail


def test_an_unknown_host_and_none_at_all(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(["install", "emacs"]) == 2
    assert "'emacs'" in capsys.readouterr().err
    monkeypatch.setenv("HOME", str(home / "nowhere"))
    assert run(["install"]) == 2
    assert "name one, of claude-code" in capsys.readouterr().err


def test_skill_server_and_registry_say_the_same_and_name_tools_that_there_are() -> None:
    root = Path(__file__).parents[3]
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


def test_a_source_that_a_link_of_the_project_leads_out_of_it_is_not_served(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "private").mkdir()
    Path("docs").symlink_to(home / "private")
    assert run(["install", "claude-code", "--project", "--source", "docs"]) == 2
    assert "'docs' is a link to a folder outside of its folder" in capsys.readouterr().err
    assert not Path(".mcp.json").exists()
    assert run(["new-plugin", "kettle", "--out", "docs/kettle"]) == 2
    assert not list((home / "private").iterdir())
