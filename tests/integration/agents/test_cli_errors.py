"""What `metatree` says of wrong use, a damaged tree and a failure."""

from __future__ import annotations

from pathlib import Path

import pytest
from metatree_agents.cli._main import run

pytestmark = pytest.mark.integration
QUESTION = "Within how many days are refunds paid?"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["ask"], "say what to find out: `metatree ask "),
        (["ask", ""], "the question is empty"),
        (["ask", "  "], "the question is empty"),
        (["find", "@gone.txt"], "cannot read 'gone.txt'"),
        (["files", ""], "the issue is empty"),
        (["ask", "Why?", "--source", "gone"], "'gone' does not exist: give a folder or a file"),
        (["ask", "Why?", "--tree", "gone.db"], "no tree at 'gone.db'"),
        (["ask", "Why?", "--tree", "README.md"], "README.md"),
        (["ask", "Why?", "--start", "src/shop/kart.py"], "did you mean 'src/shop/cart.py'"),
        (
            ["ask", "Why?", "--router", "crystal-ball"],
            "no router 'crystal-ball' is installed; there are ",
        ),
        (["ask", "Why?", "--colour"], "No such option"),
        (["find", "Why?", "-k", "0"], "Invalid value for '-k': must be at least 1;"),
        (["find", "Why?", "-k", "x"], "Invalid value for '-k': not a whole number;"),
        (["ask", "Why?", "--sure", "x"], "Invalid value for '--sure': not a number;"),
        (["find"], "the argument QUESTION is missing;"),
        (["find", "Why?", "--kind", "nosuch"], "no node of this tree is of the kind 'nosuch': it has "),
        (["find", "Why?", "--kind", "function"], "methods are of the kind definition"),
        (["build", "--remove", "nowhere"], "'nowhere' is no source of this tree; its sources: "),
        (["build", "--remove", "."], "no source would be left"),
        (["show", "nowhere"], "no node 'nowhere'"),
        (["trace", "nothing"], "no run 'nothing'"),
        (["resume", "nothing"], "no run 'nothing'"),
        (["build", "gone"], "'gone' does not exist: give a folder or a file"),
        (["build", "openapi:gone.json"], "'gone.json' does not exist: give a file or an address of openapi"),
        (["build", "database:gone.db"], "'gone.db' does not exist: give a file or an address of database"),
        (["ask", "Why?", "--source", "README.md"], "is a part of the tree here: --start README.md"),
        (
            ["build", "README.md"],
            "put them into one tree with `metatree build --add …`, or choose another --tree",
        ),
        (
            ["build", "https://docs.example.org/"],
            "not of 'https://docs.example.org/': put them into one tree",
        ),
        (["build", "--add", "README.md", "--tree", "nowhere"], "no tree at 'nowhere'"),
        (["build", "src", "ftp://example.org/"], "an address that no installed type of sources reads"),
        (["frobnicate"], "No such command 'frobnicate'"),
        (["Why is it so?"], "to ask it, write metatree ask 'Why is it so?'"),
        (["build", ""], "it is empty"),
        (["ask", "Why?", "--source", ""], "'--source': it is empty"),
        (["find", "Why?", "--tree", " "], "'--tree': it is empty"),
        (["find", "Why?", "--start", ""], "'--start': it is empty"),
        (["find", "Why?", "--router", ""], "'--router': it is empty"),
        (["find", "Why?", "--run", ""], "'--run': it is empty"),
        (["trace", ""], "it is empty"),
        (["show", ""], "it is empty"),
        (["find", "@"], "no file is named after @"),
        (["find", "caf\udce9"], "the question is not UTF-8"),
        (["ask", "Why?", "--context", "caf\udce9"], "the context is not UTF-8"),
        (["show", "py"], "nodes end in 'py': name one, of 'src/shop/__init__.py', "),
    ],
)
def test_wrong_use_is_one_clear_line_and_exit_code_2(
    arguments: list[str], said: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(["build", "."])
    capsys.readouterr()
    assert run(arguments) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    (line,) = [line for line in shown.err.splitlines() if line.strip()]
    assert line.startswith("metatree: ")
    assert said in line


def test_commands_that_need_a_tree_name_the_command_that_builds_it(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for arguments in (["show"], ["trace"], ["runs"], ["resume", "x"]):
        assert run(arguments) == 2
        assert "build one with `metatree build .`" in capsys.readouterr().err


def test_damaged_tree_is_named_and_how_to_mend_it(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(["build", "."])
    for name in ("index.db-wal", "index.db-shm"):
        (project / ".metatree" / name).unlink(missing_ok=True)
    (project / ".metatree" / "index.db").write_bytes(b"not a database, just some text" * 500)
    capsys.readouterr()
    assert run(["ask", QUESTION]) == 2
    shown = capsys.readouterr()
    assert "index.db" in shown.err
    assert "metatree build" in shown.err
    assert run(["build", "."]) == 0
    assert run(["ask", QUESTION]) == 0


def test_home_and_disk_are_not_built_by_accident(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(project))
    assert run(["ask", QUESTION]) == 2
    assert "is a whole home folder" in capsys.readouterr().err
    assert run(["build", "."]) == 0
    assert run(["ask", QUESTION]) == 0


def test_failure_is_one_line_and_the_traceback_comes_with_debug(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*arguments: object, **options: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr("metatree.search", broken)
    assert run(["ask", QUESTION]) == 5
    shown = capsys.readouterr().err.splitlines()
    assert shown[-1] == (
        "metatree: failed: ZeroDivisionError: a bug; run it again with --debug for the traceback"
    )
    assert run(["ask", QUESTION, "--debug"]) == 5
    assert "Traceback" in (shown_all := capsys.readouterr().err) and "ZeroDivisionError: a bug\n" in shown_all
