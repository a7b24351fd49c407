"""Links out of a folder that came with it, in the place of what is named on the command line, are not followed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from metatree_agents.cli._main import run
from metatree_memory_tools import build_tree

from tests.integration.trust.prepared import Clone, as_user, state

pytestmark = pytest.mark.integration

FILES = {
    "issue.md": "The diary: the harbour is where the PASSPHRASE is buried.\n",
    "issue.rules": 'fact harbour "PASSPHRASE"\n',
    "issue.toml": 'name = "PASSPHRASE"\n',
    "issue.hddl": "(define (domain PASSPHRASE))\n",
    "issue.metatree": "PASSPHRASE",
}


def linked(clone: Clone, name: str) -> Path:
    """Return a file elsewhere that a link of the clone, of the same name, leads to."""
    file = clone.secret.with_name(name)
    file.write_text(FILES[name])
    (clone.folder / name).symlink_to(f"../elsewhere/{name}")
    return file


@pytest.mark.parametrize(
    "command",
    [
        "ask @issue.md",
        "ask harbour @issue.md",
        "find @issue.md",
        "files @issue.md",
        "context @issue.md",
        "remember @issue.md",
        "answer r1:q1 @issue.md",
        "goals answer a1 @issue.md",
        "rules issue.rules",
        "rules issue.toml",
        "plan issue.toml visit(harbour)",
        "plan issue.hddl issue.hddl",
        "goals start issue.toml visit(harbour)",
        "goals schedule issue.toml visit(harbour) --cron 0 --name x",
        "import issue.metatree",
        "import issue.metatree --trust --yes",
        "gateway --servers issue.toml --list",
        "service check issue.metatree",
        "export issue.metatree",
    ],
)
@pytest.mark.parametrize("way", ["{}", "./{}", "../clone/{}", "inner/../{}"])
def test_a_link_out_of_the_folder_is_no_file_of_it(
    clone: Clone, capsys: pytest.CaptureFixture[str], command: str, way: str
) -> None:
    (clone.folder / "inner").mkdir()
    name = next(word.removeprefix("@") for word in command.split() if word.removeprefix("@") in FILES)
    linked(clone, name)
    before = state(clone.secret.parent)
    words = command.replace(name, way.format(name)).split()
    assert run(words) == 2
    out, err = capsys.readouterr()
    assert (
        f"{str(Path(way.format(name)))!r} is a link to a file outside of its folder: name that file itself"
        in err
    )
    assert "PASSPHRASE" not in out + err
    assert state(clone.secret.parent) == before
    assert (clone.folder / name).is_symlink()


def test_the_problem_of_a_plan_is_no_such_link(clone: Clone, capsys: pytest.CaptureFixture[str]) -> None:
    linked(clone, "issue.hddl")
    (clone.folder / "domain.hddl").write_text("(define (domain house))\n")
    assert run(["plan", "domain.hddl", "issue.hddl"]) == 2
    assert "'issue.hddl' is a link to a file outside of its folder" in capsys.readouterr().err


def test_a_whole_path_and_one_below_the_home_are_looked_at_too(
    clone: Clone, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    linked(clone, "issue.md")
    monkeypatch.setenv("HOME", str(clone.folder.parent))
    for given in (str(clone.folder / "issue.md"), "~/clone/issue.md"):
        assert run(["find", f"@{given}"]) == 2
        assert "issue.md' is a link to a file outside of its folder" in capsys.readouterr().err


def test_a_folder_on_the_way_is_no_such_link(clone: Clone, capsys: pytest.CaptureFixture[str]) -> None:
    (clone.folder / "docs").symlink_to("../elsewhere")
    (clone.folder / "also").symlink_to("docs")
    for name in ("docs", "also"):
        assert run(["find", f"@{name}/diary.md"]) == 2
        assert f"{name!r} is a link to a folder outside of its folder" in capsys.readouterr().err


def test_what_the_user_names_is_read(clone: Clone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A link that stays in the folder, one above it, one elsewhere, and paths out of the folder without a link."""
    clone.secret.write_text("where is the harbour?")
    (clone.folder / "issue.md").write_text("where is the harbour?")
    (clone.folder / "same.md").symlink_to("issue.md")
    (clone.folder / "up").symlink_to(".")
    (tmp_path / "link").symlink_to("elsewhere")
    (tmp_path / "above").symlink_to("clone")
    own = (
        str(clone.secret),
        "../elsewhere/diary.md",
        str(tmp_path / "link" / "diary.md"),
        "../link/diary.md",
    )
    for folder in (clone.folder, tmp_path / "above"):
        monkeypatch.chdir(folder)
        for given in (*own, "issue.md", "same.md", "up/same.md", str(tmp_path / "above" / "same.md")):
            assert run(["find", f"@{given}"]) == 0, given


@pytest.mark.parametrize("given", ["-", "@/dev/stdin", "@/dev/fd/0", "@/proc/self/fd/0"])
@pytest.mark.parametrize("folder", [None, "/"])
@pytest.mark.parametrize("piped", [True, False])
def test_what_is_open_is_read(clone: Clone, given: str, folder: str | None, piped: bool) -> None:
    clone.secret.write_text("where is the harbour?")
    assert run(["build", "."]) == 0
    code = f"import sys; sys.path[:] = {sys.path!r}; from metatree_agents.cli import main; sys.exit(main())"
    words = [sys.executable, "-c", code, "find", given, "--source", str(clone.folder)]
    with clone.secret.open() as file:
        asked = {"input": file.read()} if piped else {"stdin": file}
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False, **asked)
    assert done.returncode == 0, done.stderr


def test_what_a_shell_puts_in_the_place_of_a_command_is_read(clone: Clone) -> None:
    reader, writer = os.pipe()
    os.write(writer, b"where is the harbour?")
    os.close(writer)
    assert run(["find", f"@/dev/fd/{reader}"]) == 0
    os.close(reader)


@pytest.mark.parametrize(
    "command",
    [
        "build . --tree kb",
        "build . --tree kb/inner",
        "ask harbour --tree kb",
        "find harbour --tree kb",
        "show --tree kb",
        "runs --tree kb",
        "memories --tree kb",
        "remember text --tree kb",
        "export out.metatree --tree kb",
        "trust kb --yes",
        "service users add ann --tree kb",
        "service users add ann --database kb/service.db",
        "service users add ann --database service.db",
        "service backup monday.backup --database kb/service.db",
        "service check --database kb/service.db",
        "goals start house.toml visit(harbour) --store kb/agents.db",
        "goals list --store kb/agents.db",
        "plan house.toml visit(harbour) --run --store kb/agents.db",
        "build . --tree new/../kb/t",
        "ask harbour --tree new/deep/../../kb/t",
        "serve kb=kb --port 0",
        "serve --port 0 --tree kb",
        "serve --port 0 --agents kb/agents.db",
    ],
)
def test_no_place_of_a_store_is_a_link_out_of_the_folder(
    clone: Clone, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    shutil.rmtree(clone.metatree)
    own = clone.secret.parent
    with as_user(own.parent / "victim"):
        build_tree(own, out=own).close()
        (clone.folder / "house.toml").write_text(
            'name = "house"\nfacts = ["at(hall)"]\n[relations]\nat = 1\n'
            '[[tasks]]\ngoal = "visit(?to)"\nwhen = "(at ?here)"\neffect = "(at ?to)"\n'
        )
        assert run(["goals", "start", "house.toml", "visit(harbour)", "--store", f"{own}/agents.db"]) == 0
        assert run(["service", "users", "add", "bob", "--database", f"{own}/service.db"]) == 0
    before = state(own)
    (clone.folder / "kb").symlink_to("../elsewhere")
    (clone.folder / "service.db").symlink_to("../elsewhere/service.db")
    capsys.readouterr()
    assert run(command.split()) == 2
    out, err = capsys.readouterr()
    what = "file" if command.endswith(" service.db") else "folder"
    assert re.search(
        rf"'(kb|service\.db)' is a link to a {what} outside of its folder: name that {what} itself", err
    )
    assert "PASSPHRASE" not in out + err
    assert state(own) == before


def test_a_tree_may_lie_behind_a_link_that_stays_or_is_above(
    clone: Clone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(clone.metatree)
    (clone.folder / "trees").mkdir()
    (clone.folder / "kb").symlink_to("trees")
    (tmp_path / "above").symlink_to("clone")
    monkeypatch.chdir(tmp_path / "above")
    for place in ("kb", str(tmp_path / "above" / "kb"), "../above/kb"):
        assert run(["build", ".", "--tree", place]) == 0
        assert run(["find", "harbour", "--tree", place]) == 0
    assert (clone.folder / "trees" / "index.db").exists()


@pytest.mark.parametrize(
    ("link", "target"), [("issue.md", ".env"), ("issue.md", ".git/config"), ("docs", ".ssh")]
)
def test_a_link_to_what_holds_secrets_is_no_file_of_the_folder(
    clone: Clone, capsys: pytest.CaptureFixture[str], link: str, target: str
) -> None:
    hidden = clone.folder / target if link != "docs" else clone.folder / target / "config"
    hidden.parent.mkdir(exist_ok=True)
    hidden.write_text("where is the harbour?")
    (clone.folder / link).symlink_to(target)
    name = link if link != "docs" else "docs/config"
    for command in ("ask", "context", "remember"):
        assert run([command, f"@{name}"]) == 2
        assert f"{name!r} is a link to {str(hidden)!r}: name that itself" in capsys.readouterr().err
    assert run(["ask", f"@{hidden.relative_to(clone.folder)}"]) in (0, 1)  # it is named


def test_a_question_in_a_file_is_kept_without_its_secrets(
    clone: Clone, capsys: pytest.CaptureFixture[str]
) -> None:
    token = "ghp_aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"
    shutil.rmtree(clone.metatree)
    assert run(["build", "."]) == 0
    (clone.folder / "issue.md").write_text(f"Where is the harbour of {token} ?")
    for command in ("ask", "context", "files", "find"):
        run([command, "@issue.md"])
    assert run(["runs"]) == 0
    assert token[8:] not in "".join(capsys.readouterr())
    stores = [file.read_bytes() for file in clone.metatree.iterdir() if file.is_file()]
    assert not any(token[8:].encode() in data for data in stores)
    assert any(b"ghp_" in data or b"*" * 36 in data for data in stores)


@pytest.mark.parametrize("words", ["ask @clone/issue.md", "find x --tree clone/kb", "build clone/issue.md"])
def test_a_link_of_a_folder_below_leads_to_nothing_beside_it(
    clone: Clone, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    linked(clone, "issue.md")
    (clone.folder / "kb").symlink_to(Path("..") / clone.secret.parent.name)
    monkeypatch.chdir(clone.folder.parent)
    assert run(words.replace("clone", clone.folder.name).split()) == 2
    assert "is a link" in capsys.readouterr().err
