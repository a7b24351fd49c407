"""Settings of the command line: what a file of the user, and what one of a folder that somebody else made, may set."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from pathlib import Path

import pytest
import typer
from metatree_agents.cli._config import COMMANDS, KEYS, defaults
from metatree_agents.cli._main import app, run
from metatree_agents.tools.toolkit import MAX_SECONDS

from metatree import Tree
from metatree.settings import Settings

pytestmark = pytest.mark.integration
ROOT = Path(__file__).parents[3]
PACKAGES = ("metatree", "agents", "memory_tools", "routers")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the user's settings."""
    folder = tmp_path / "config"
    folder.mkdir()
    monkeypatch.setenv("METATREE_CONFIG_DIR", str(folder))
    return folder


@pytest.fixture
def clone(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current folder, whose files somebody else wrote."""
    folder = tmp_path / "clone"
    (folder / "generated").mkdir(parents=True)
    for name in ("circle.py", "disk.py", "generated/ring.py"):
        (folder / name).write_text(
            f'def area_{Path(name).stem}(r):\n    """Area of a circle."""\n    return 3 * r\n'
        )
    monkeypatch.chdir(folder)
    return folder


def found(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    """Return the ids that `find` lists."""
    capsys.readouterr()
    assert run(["find", "area of a circle", "--json", *arguments]) == 0
    return [each["id"] for each in json.loads(capsys.readouterr().out)["nodes"]]


def test_the_settings_of_a_folder_are_defaults_of_options(
    clone: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert len(found(capsys)) == 5
    (clone / "metatree.toml").write_text("k = 1\n")
    assert len(found(capsys)) == 1
    assert len(found(capsys, "-k", "2")) == 2
    (clone / "metatree.toml").write_text("k = 1\n[find]\nk = 2\n[ask]\nk = 3\n")
    assert len(found(capsys)) == 2


def test_the_table_of_pyproject_counts_where_there_is_no_file_of_our_own(
    clone: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (clone / "pyproject.toml").write_text(
        "[project]\nname = 'x'\n[tool.metatree]\nk = 1\n[tool.metatree.find]\nk = 2\n"
    )
    assert len(found(capsys)) == 2
    (clone / "metatree.toml").write_text("k = 1\n")
    assert len(found(capsys)) == 1


@pytest.mark.parametrize(
    "text", ["[tool.metatree\n", "k = 1\n# metatree\n", "tool = 3 # metatree\n", "\xff metatree"]
)
def test_a_pyproject_that_is_broken_or_of_others_is_not_ours(
    clone: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    (clone / "pyproject.toml").write_bytes(text.encode("latin-1"))
    assert found(capsys)


def test_patterns_leave_out_what_git_tracks_too(clone: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert any("generated" in node for node in found(capsys))
    (clone / "metatree.toml").write_text('ignore = ["generated/", "*.toml", "d*", "!disk.py"]\n')
    assert {node.partition(":")[0].partition("::")[0].split("#")[0] for node in found(capsys)} == {
        "circle.py",
        "disk.py",
    }
    assert run(["show", "--omitted"]) == 0
    assert "generated: ignored by the settings of the folder" in capsys.readouterr().out


def test_a_pattern_of_several_lines_is_several(clone: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (clone / "metatree.toml").write_text('ignore = ["x\\ncircle.py"]\n')
    assert not any("circle.py" in node for node in found(capsys))


HOSTILE = {
    "router": '"openai/theirs"',
    "web": '"http://search.example"',
    "source": '["/etc"]',
    "tree": '"/tmp/theirs"',
    "allow": '["shell"]',
    "service": '"http://service.example"',
    "user": '"Ann"',
    "trees": '"all"',
    "sure": "0.01",
    "kind": '["file"]',
    "human": "true",
    "history": "true",
    "no-refresh": "true",
}


def test_what_a_stranger_may_not_set_is_all_but_display_patterns_and_limits() -> None:
    assert {key for key, known in KEYS.items() if not known.of_folder} == set(HOSTILE)
    assert {key for key in KEYS if key not in HOSTILE} == {
        *("k", "tokens", "max-calls", "max-seconds", "verbose", "quiet", "ignore")
    }


@pytest.mark.parametrize("key", HOSTILE)
@pytest.mark.parametrize("table", ["", "[find]\n", "[ask]\n", "[build]\n"])
def test_a_stranger_sets_none_of_it(
    clone: Path, capsys: pytest.CaptureFixture[str], key: str, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from metatree_agents.cli._config import defaults

    (clone / "metatree.toml").write_text(f"{table}{key} = {HOSTILE[key]}\n")
    values, refused = defaults(Path())
    assert values == {}
    command = table.strip("[]\n")
    assert refused == [f"{command}.{key}" if command else key]


def test_a_folder_lowers_limits_and_raises_none(clone: Path, home: Path) -> None:
    from metatree_agents.cli._config import defaults

    def limits() -> tuple[object, object]:
        values, _ = defaults(Path())
        return values["ask"]["max_calls"], values["ask"].get("k")

    (clone / "metatree.toml").write_text("max-calls = 1_000_000\nk = 1_000_000\n")
    assert limits() == (200, 100)
    (home / "config.toml").write_text("max-calls = 7\nk = 3\n")
    assert limits() == (7, 100)
    (clone / "metatree.toml").write_text("max-calls = 5\n")
    assert limits() == (5, 3)
    (clone / "metatree.toml").write_text("[ask]\nmax-calls = 50\n")
    assert limits() == (7, 3)


def test_what_needs_to_be_accepted_is_used_after_that_while_it_stays_the_same(
    clone: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = clone / "metatree.toml"
    file.write_text('router = "openai/theirs"\n')
    assert run(["find", "area"]) == 0
    assert "set router: not used until you accept them with `metatree trust`" in capsys.readouterr().err
    assert run(["trust", "--show"]) == 0
    assert 'sets router to "openai/theirs"' in capsys.readouterr().out
    file.write_text('[find]\nkind = ["file"]\n')
    assert len(found(capsys)) == 5
    assert run(["trust", "--yes"]) == 0
    assert all("::" not in node for node in found(capsys))
    file.write_text('[find]\nkind = ["file"]\nk = 1\n')
    capsys.readouterr()
    assert run(["find", "area"]) == 0
    assert "not used until" in capsys.readouterr().err
    assert run(["trust", "--yes"]) == 0
    capsys.readouterr()
    assert run(["find", "area"]) == 0
    assert "not used until" not in capsys.readouterr().err
    assert run(["trust", "--revoke"]) == 0
    capsys.readouterr()
    run(["find", "area"])
    assert "not used until" in capsys.readouterr().err


def test_accepted_settings_are_not_those_of_another_folder(
    clone: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (clone / "metatree.toml").write_text('[find]\nkind = ["file"]\n')
    assert run(["find", "area"]) == 0
    assert run(["trust", "--yes"]) == 0
    other = tmp_path / "other"
    other.mkdir()
    (other / "a.py").write_text("def area(): ...\n")
    (other / "metatree.toml").write_text('[find]\nkind = ["file"]\n')
    monkeypatch.chdir(other)
    capsys.readouterr()
    assert run(["find", "area"]) == 0
    assert "not used until" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("setting", "name"),
    [
        ('source = "notes"', "notes"),
        ('source = ["circle.py", "folder:notes"]', "notes"),
        ('source = "generated/../notes"', "notes"),
        ('source = "folder:folder:generated/../notes"', "notes"),
        ('tree = "notes"', "notes"),
        ('[find]\ntree = "generated/kept"', "generated/kept"),
    ],
)
def test_what_accepted_settings_name_is_not_followed_through_a_link_that_comes_later(
    clone: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], setting: str, name: str
) -> None:
    private = tmp_path / "private"
    private.mkdir()
    (private / "diary.md").write_text("The area of a circle is a secret.\n")
    (clone / name).mkdir()
    (clone / name / "a.md").write_text("The area of a circle.\n")
    (clone / "metatree.toml").write_text(f"{setting}\n")
    assert run(["trust", "--yes"]) == 0
    if "tree" in setting:
        assert run(["build", ".", "--tree", name]) == 0
    assert found(capsys)
    shutil.rmtree(clone / name)
    (clone / name).symlink_to(private)
    capsys.readouterr()
    assert run(["find", "area of a circle"]) == 2
    said = capsys.readouterr()
    assert "goes through a link that leads out of this folder" in said.err and "diary" not in said.out
    assert [each.name for each in private.iterdir()] == ["diary.md"]


@pytest.mark.parametrize("name", ["~nobody-at-all/x", "x" * 5_000, "a\\u0000b", "database:"])
def test_odd_places_in_accepted_settings_are_one_line(
    clone: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    (clone / "metatree.toml").write_text(f'source = "{name}"\n')
    assert run(["trust", "--yes"]) == 0
    capsys.readouterr()
    assert run(["find", "area of a circle"]) in (2, 5)
    assert capsys.readouterr().err.count("\n") == 1


def test_no_password_of_an_address_in_settings_is_shown(
    clone: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (clone / "metatree.toml").write_text(
        'source = "database:postgresql://ann:hunter2hunter@127.0.0.1:1/shop"\nweb = "http://ann:hunter2hunter@x/"\n'
    )
    for command, code in ((["trust", "--show"], 0), (["trust", "--yes"], 0), (["show"], 2)):
        assert run(command) == code
        said = capsys.readouterr()
        assert "ann:***" in said.out + said.err and "hunter2hunter" not in said.out + said.err, command


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs two users")
def test_the_settings_of_another_user_are_not_ones_own(
    clone: Path, home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = home / "config.toml"
    file.write_text('source = "mcp:touch ran"\n')
    os.chown(file, 65534, 65534)
    assert run(["find", "kettle"]) == 2
    assert "belongs to another user: set METATREE_CONFIG_DIR" in capsys.readouterr().err
    file.write_text("max-calls = 30\n")
    monkeypatch.setenv("METATREE_TRUST", str(home))
    assert defaults(clone)[0]["ask"]["max_calls"] == 30


def test_settings_that_were_accepted_raise_no_limit_that_was_not_shown(
    clone: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "config.toml").write_text("max-calls = 5\n")
    (clone / "metatree.toml").write_text("sure = 0.7\nmax-calls = 200\nmax-seconds = 600\nk = 1000\n")
    for _ in range(2):
        found, _ = defaults(clone)
        assert (found["ask"]["max_calls"], found["ask"]["max_seconds"], found["ask"]["k"]) == (5, 600, 100)
        assert found["mcp"]["max_seconds"] == MAX_SECONDS
        assert run(["trust", "--yes"]) == 0
    assert found["ask"]["sure"] == 0.7


def test_settings_alone_can_be_accepted_before_there_is_a_tree(
    clone: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (clone / "metatree.toml").write_text('web = "http://127.0.0.1:8888"\n')
    assert run(["trust", "--yes", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["stores"] == [] and said["settings"][0].endswith(": accepted")


def test_the_user_s_own_file_sets_all_of_it(
    clone: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "config.toml").write_text('[find]\nkind = ["file"]\n')
    assert all("::" not in node for node in found(capsys))
    (home / "config.toml").write_text('router = "nobody/knows"\n')
    assert run(["find", "area"]) == 2
    assert "no router 'nobody/knows'" in capsys.readouterr().err


def test_the_environment_goes_before_a_file(
    clone: Path, home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "config.toml").write_text('router = "nobody/knows"\n')
    monkeypatch.setenv("METATREE_ROUTER", "embedded")
    assert found(capsys)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("k = 1\nrouetr = 'x'\n", "metatree.toml:2: 'rouetr' is no setting: did you mean 'router'?"),
        ("max_calls = 3\n", "metatree.toml:1: 'max_calls' is no setting: did you mean 'max-calls'?"),
        ("[find]\n\nkk = 1\n", "metatree.toml:3: 'kk' is no setting: did you mean 'k'?"),
        ("[fnd]\nk = 1\n", "metatree.toml:1: 'fnd' is no setting: did you mean 'find'?"),
        ("k = 'three'\n", "metatree.toml:1: k must be a whole number above 0"),
        ("k = true\n", "metatree.toml:1: k must be a whole number above 0"),
        ("ignore = 3\n", "metatree.toml:1: ignore must be a text or a list of texts"),
        ("verbose = 1\n", "metatree.toml:1: verbose must be true or false"),
        ("k = \n", "are no TOML"),
        ('"\\u001b[31m" = 1\n', "\\x1b[31m"),
        ("a." * 200 + "a = 1\n", "a key has more than 100 parts"),
    ],
)
def test_a_mistake_is_one_line_with_file_and_line(
    clone: Path, capsys: pytest.CaptureFixture[str], text: str, said: str
) -> None:
    (clone / "metatree.toml").write_text(text)
    assert run(["find", "area"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line and "\x1b" not in line


def test_links_pipes_and_large_files_are_no_settings(
    clone: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "secret").write_text("password = 'hunter2'\n")
    file = clone / "metatree.toml"
    file.symlink_to(tmp_path / "secret")
    assert run(["find", "area"]) == 2
    assert "hunter2" not in (said := capsys.readouterr().err) and "is a link" in said
    file.unlink()
    os.mkfifo(file)
    assert run(["find", "area"]) == 2
    file.unlink()
    file.write_text("#" * 2_000_000)
    assert run(["find", "area"]) == 2
    assert "more than a megabyte" in capsys.readouterr().err


def test_nothing_is_read_where_the_settings_of_a_source_cannot_be(
    clone: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (clone / "metatree.toml").write_text("ignore = 3\n")
    monkeypatch.chdir(tmp_path)
    assert run(["find", "area of a circle", "--source", str(clone)]) == 2
    assert "metatree.toml:1: ignore must be a text or a list of texts" in capsys.readouterr().err


def test_quiet_leaves_errors_and_warnings(clone: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["find", "area of a circle", "-q"]) == 0
    assert capsys.readouterr().err == ""
    assert run(["find", "area of a circle"]) == 0
    assert "run " in capsys.readouterr().err
    (clone / "metatree.toml").write_text('quiet = true\nrouter = "theirs"\n')
    assert run(["find", "area of a circle"]) == 0
    assert capsys.readouterr().err.startswith("metatree: warning: the settings of this folder set router")
    (clone / "metatree.toml").unlink()
    assert run(["find", "area of a circle", "--source", "nowhere", "-q"]) == 2
    assert "nowhere" in capsys.readouterr().err


def test_the_cache_is_told_and_cleared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("METATREE_CACHE_DIR", str(tmp_path / "cache"))
    for name in ("documents", "of-others"):
        (tmp_path / "cache" / name).mkdir(parents=True)
        (tmp_path / "cache" / name / "file").write_bytes(b"x" * 1_000_000)
    assert run(["cache"]) == 0
    assert f"{tmp_path / 'cache'}: 1.0 MB" in capsys.readouterr().out
    assert run(["cache", "--clear", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["bytes"] == {"documents": 1_000_000}
    assert (
        not (tmp_path / "cache" / "documents").exists()
        and (tmp_path / "cache" / "of-others" / "file").exists()
    )


def test_no_link_in_the_cache_is_followed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("METATREE_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "cache").mkdir()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("kept")
    (tmp_path / "cache" / "documents").symlink_to(tmp_path / "mine")
    assert run(["cache", "--clear"]) == 2
    assert (tmp_path / "mine" / "file").exists()


PAGE = ROOT / "docs" / "configuration.md"


def test_the_page_has_each_variable_that_the_code_reads_and_no_other() -> None:
    text = "\n".join(
        file.read_text(encoding="utf-8") for package in PACKAGES for file in (ROOT / package).rglob("*.py")
    )
    read = set(re.findall(r"\bMETATREE_[A-Z0-9_]+\b", text))
    read = {name for name in read if not name.startswith("METATREE_AUTH_")} | {"METATREE_AUTH_<HOST>"}
    read |= {f"METATREE_{name.upper()}" for name in Settings.__dataclass_fields__}
    read |= set(re.findall(r"environ(?:\.get\(|\[)\s*\"([A-Z][A-Z0-9_]+)\"", text))
    section = PAGE.read_text(encoding="utf-8").partition("## Variables")[2].partition("## ")[0]
    first = "\n".join(line.split("|")[1] for line in section.splitlines() if line.startswith("|"))
    said = set(re.findall(r"`([A-Z][A-Z0-9_]+(?:<HOST>)?)`", first))
    assert read - said == set(), "not in docs/configuration.md"
    assert {name for name in said if name.startswith("METATREE_")} - read == set(), "no code reads it"


def test_each_command_may_have_a_table() -> None:
    group = typer.main.get_command(app())
    assert sorted(COMMANDS) == sorted(group.commands)  # type: ignore[attr-defined]


def test_the_page_has_each_setting() -> None:
    said = re.findall(r"^\| `([a-z-]+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(said) == sorted(KEYS)


@pytest.mark.parametrize("command", ["mcp:{python} server.py", "mcp:./server.py", "MCP: {python} server.py"])
def test_a_server_of_ones_own_settings_is_none_of_the_current_folder(
    clone: Path, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for folder in (tmp_path / "home", clone):
        folder.mkdir(exist_ok=True)
        (folder / "server.py").write_text(
            f"#!{sys.executable}\nopen({str(tmp_path / 'by')!r}, 'a').write({folder.name!r} + ' ')\n"
        )
        (folder / "server.py").chmod(0o755)
    source = command.format(python=sys.executable)
    (home / "config.toml").write_text(f"source = {json.dumps(['.', source])}\n")
    run(["find", "area of a circle"])
    assert {*(tmp_path / "by").read_text().split()} == {"home"}


def test_a_description_that_ones_own_settings_name_is_not_called_where_it_lies_in_the_current_folder(
    clone: Path, home: Path
) -> None:
    described = {
        "openapi": "3.1.0",
        "servers": [{"url": "https://evil.example"}],
        "paths": {"/x": {"get": {}}},
    }
    (clone / "a.json").write_text(json.dumps(described))
    (home / "config.toml").write_text('source = [".", "openapi:a.json"]\n')
    assert run(["find", "area of a circle"]) == 0
    with Tree.open(clone / ".metatree") as tree:
        assert [each.options["server"] for each in tree.sources() if each.type == "openapi"] == [""]


def test_what_sources_of_a_folder_start_and_call_is_shown(
    clone: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sources = ["postgresql://db.example.org/shop", "mcp:python3 -m weather", "openapi:a.json"]
    (clone / "metatree.toml").write_text(f"source = {json.dumps(sources)}\n")
    assert run(["trust", "--show", "."]) == 0
    shown = capsys.readouterr().out
    for words in ("gives the database the password", "starts servers in this folder", "calls the server"):
        assert words in shown


def test_a_certificate_that_ones_own_settings_name_is_none_of_the_current_folder(
    clone: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "config.toml").write_text(
        'source = ["postgresql://ann@db/x?sslmode=verify-full&sslrootcert=ca.pem"]\n'
    )
    assert run(["find", "area of a circle"]) == 2
    assert "give the whole path of sslrootcert" in capsys.readouterr().err


def test_a_key_in_the_place_of_a_setting_is_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "metatree.toml").write_text("AKIAQ3EGRB7TZ5KMX2WD = 1\n")
    (tmp_path / "a.md").write_text("# Tea\n")
    assert run(["build", "."]) == 2
    said = capsys.readouterr().err
    assert "metatree.toml" in said and "AKIAQ3" not in said
