"""`metatree install --project` and `uninstall --project`: what a project brings leads them nowhere."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import tomlkit
from metatree_agents.cli._main import run
from metatree_agents.hosts import _files, install
from metatree_agents.hosts.table import HOSTS

from metatree._util.open_folder import HAS_OPEN_FOLDERS, OpenFolder
from metatree.errors import UserError
from tests.integration.agents.hosts.host_files import CURSOR, FILES, everything

pytestmark = pytest.mark.integration

needs_open_folders = pytest.mark.skipif(not HAS_OPEN_FOLDERS, reason="needs folders that are opened")


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


_OTHER = '"%s": {"metatree": {"type": "local", "command": ["evil"], "environment": {"X": "1"}}}'


@pytest.mark.parametrize(
    ("host", "text"),
    [
        ("opencode", "{" + _OTHER % "mcp" + ", " + _OTHER % "m{env:NO}cp" + "}"),
        ("opencode", '{"x{env:": 1, %s, "y": "}"}' % (_OTHER % "mcp")),
        ("opencode", '{"mcp": {}, "x": 1 // {env:EVIL}\n}'),
        ("opencode", '{"mcp": {}, "mcp": {}}'),
        ("opencode", '{"mcp": {}, "__proto__": {%s}}' % (_OTHER % "mcp")),
        ("gemini", '{"mcpServers": {} // a \r /*\n, %s // */\n}' % (_OTHER % "mcpServers")),
        ("zed", '{"context_servers": {} /* /* */ , "x": /* */ 1}'),
    ],
)
def test_a_file_of_a_project_that_another_program_reads_otherwise_is_left_alone(
    home: Path, capsys: pytest.CaptureFixture[str], host: str, text: str
) -> None:
    """It would see an entry for our program that is not seen here, with variables of its own."""
    file = HOSTS[host].file("project", Path.cwd())
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(text.encode())
    assert run(["install", host, "--project"]) == 5
    assert "is read otherwise by other programs" in capsys.readouterr().out
    assert file.read_bytes() == text.encode()


@pytest.mark.parametrize("host", ["opencode", "zed", "vscode"])
def test_a_file_of_a_project_with_what_people_write_is_changed(home: Path, host: str) -> None:
    file = HOSTS[host].file("project", Path.cwd())
    file.parent.mkdir(exist_ok=True)
    lines = [
        "\ufeff{",
        '  // "theme": see https://example.org',
        "  /* a",
        "  b */",
        '  "x": ["{env:KEY} {file:./a-b.txt} é\\n"],',
        "}",
    ]
    file.write_bytes("\r\n".join(lines).encode())
    assert run(["install", host, "--project"]) == 0
    assert b"metatree" in file.read_bytes()


@pytest.mark.parametrize("host", ["opencode", "codex"])
@pytest.mark.parametrize("bare", [True, False])
def test_an_entry_of_a_folder_above_that_the_host_joins_with_ours_is_seen(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, host: str, bare: bool
) -> None:
    """OpenCode and Codex take the files of all folders up to the top of the repository."""
    file = HOSTS[host].file("project", Path.cwd())
    file.parent.mkdir(exist_ok=True)
    more = [] if bare else [("environment" if host == "opencode" else "env", {"METATREE_TRUST": "/"})]
    entry = {"command": ["true"] if host == "opencode" else "true", **dict(more)}
    text = json.dumps({"mcp": {"metatree": entry}})
    if host == "codex":
        text = tomlkit.dumps({"mcp_servers": {"metatree": entry}})
    file.write_text(text)
    below = Path.cwd() / "packages" / "shop"
    below.mkdir(parents=True)
    (below / ".git").mkdir()  # each host finds the top of a repository in its own way
    monkeypatch.chdir(below)
    assert run(["install", host, "--project"]) == (0 if bare else 5)
    assert bare or f"{file} has an entry 'metatree', too" in capsys.readouterr().out


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
