"""Which tree a command works on when `--source` and `--tree` do not agree."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from metatree_agents.cli._main import run

from metatree import Tree

pytestmark = pytest.mark.integration


@pytest.mark.parametrize(
    "command", [["files", "refunds"], ["ask", "refunds?"], ["find", "refunds"], ["show"], ["runs"]]
)
def test_a_tree_of_another_folder_answers_nothing(
    project: Path, tmp_path: Path, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    other, kept = tmp_path / "other", str(tmp_path / "kept")
    other.mkdir()
    (other / "b.py").write_text("B = 1\n")
    assert run(["build", str(project), "--tree", kept]) == 0
    capsys.readouterr()
    for given in (command, ["build", str(other)]):
        option = [] if given[0] == "build" else ["--source", str(other)]
        assert run([*given, *option, "--tree", kept]) == 2
        shown = capsys.readouterr()
        assert f"this tree is of '{project}', not of '{other}'" in shown.err
        assert not shown.out
    assert run(["show", "--source", ".", "--tree", kept]) == 0


def test_a_question_to_a_folder_that_was_renamed(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = str(tmp_path / "kept")
    assert run(["build", ".", "--tree", kept]) == 0
    moved = project.rename(tmp_path / "moved")
    assert run(["files", "refunds", "--source", str(moved), "--tree", kept]) == 0
    assert "guide.md" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ("mcp:/nowhere/server", 5),
        ("database:postgresql://127.0.0.1:1/shop", 5),
        ("openapi:http://127.0.0.1:1/api.json", 5),
        ("nowhere", 2),
    ],
)
def test_a_build_that_failed_is_not_in_the_way_of_the_next(
    project: Path, source: str, code: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing could be read of its source, so the tree that it left is of nothing."""
    monkeypatch.chdir(project)
    assert run(["build", source]) == code
    assert run(["build", "."]) == 0
    capsys.readouterr()
    assert run(["ask", "When are refunds paid?"]) == 0
    assert "within 14 days" in capsys.readouterr().out
    with Tree.open(project) as tree:
        assert [each.location for each in tree.sources()] == [str(project)]


def test_several_sources_are_one_tree_in_the_current_folder(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["build", "shop/src", "shop/docs/guide.md"]) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("shop/src, shop/docs/guide.md: ")
    assert "it is in .metatree" in shown.err
    assert run(["ask", "When are refunds paid?"]) == 0
    assert "within 14 days" in capsys.readouterr().out
    assert run(["files", "the cart is full at MAX_ITEMS", "-k", "1"]) == 0
    assert "src/shop/cart.py" in capsys.readouterr().out
    assert run(["files", "the cart is full at MAX_ITEMS", "-k", "1", "--json"]) == 0
    (file,) = json.loads(capsys.readouterr().out)["files"]
    assert (file["path"], file["source"]) == ("shop/cart.py", str(project / "src"))
    assert (file["node"], Path(file["source"], file["path"]).is_file()) == ("src/shop/cart.py", True)


def test_a_search_of_several_sources_builds_them_and_takes_up_another_list(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    question = ["ask", "When are refunds paid?", "--source", "docs"]
    assert run([*question, "--source", "src", "--json"]) == 0
    shown = capsys.readouterr()
    assert "guide.md" in json.loads(shown.out)["answers"][0]["sources"][0]["node"]
    assert "built the tree of docs, src" in shown.err
    assert run([*question, "--source", "README.md"]) == 0
    assert "built the tree of docs, README.md" in capsys.readouterr().err
    (project / "docs").rename(project / "gone")
    assert run(["build", "README.md", "docs"]) == 2
    assert run(["ask", "How is the shop installed?"]) == 0
    assert "pip install shop" in capsys.readouterr().out


def test_sources_are_added_to_a_tree_and_what_was_remembered_stays(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["build", "."]) == 0
    assert run(["remember", "Cart.total is slow", "--under", "src/shop/cart.py"]) == 0
    (project / "other").mkdir()
    (project / "other" / "b.md").write_text("# Gifts\n\nGifts are wrapped.\n")
    assert run(["build", "--add", "other", "README.md"]) == 0
    capsys.readouterr()
    with Tree.open(project) as tree:
        assert [Path(source.location).name for source in tree.sources()] == ["shop", "other", "README.md"]
        (said,) = tree.ids(["memory"])
        assert tree.parent(said) == "shop/src/shop/cart.py"
    assert run(["find", "gifts"]) == 0
    assert run(["build", "--add", "other"]) == 0
    with Tree.open(project) as tree:
        assert len(tree.sources()) == 3


def test_a_source_that_cannot_be_added_is_taken_out_again(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["build", "src", "docs"]) == 0
    capsys.readouterr()
    assert run(["build", "--add", "http://127.0.0.1:9/x.html", "README.md"]) == 5
    said = capsys.readouterr().err
    assert (
        "cannot be read" in said and "metatree build --remove http://127.0.0.1:9/x.html takes it out" in said
    )
    assert run(["build", "--remove", "http://127.0.0.1:9/x.html", "--remove", "docs"]) == 0
    with Tree.open(project / ".metatree") as tree:
        assert [Path(source.location).name for source in tree.sources()] == ["src", "README.md"]
    assert run(["build", "--remove", "src", "--add", "docs"]) == 0
    with Tree.open(project / ".metatree") as tree:
        assert [source.mount for source in tree.sources()] == ["README.md", "docs"]


def test_a_folder_behind_a_question_is_no_question(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ask", "How is the shop installed?", "docs"]) == 0
    assert "docs is asked as a question: --source docs searches that folder" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["docs", "docs/inner", "src/../docs", "none/../docs/inner"])
def test_a_link_out_of_the_folder_is_not_followed_by_its_name(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """`build *` in a clone names what came with it."""
    private = tmp_path / "private"
    (private / "inner").mkdir(parents=True)
    (private / "inner" / "diary.md").write_text("The safe opens with 77.\n")
    shutil.rmtree(project / "docs")
    (project / "docs").symlink_to(private)
    (project / "own").symlink_to("src")
    for command in (
        ["build", name, "README.md"],
        ["build", name],
        ["build", f"folder:{name}"],
        ["ask", "How does the safe open?", "--source", name],
    ):
        assert run(command) == 2
        assert "is a link that leads to" in capsys.readouterr().err
    assert not list(private.rglob(".metatree"))
    assert run(["build", "own", str(project / "docs")]) == 0, "a link inside, and a whole path"


@pytest.mark.parametrize("inner", ["docs", "deep/docs"])
def test_a_link_out_of_a_clone_is_not_followed_by_its_name_from_the_folder_above(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], inner: str
) -> None:
    private, link = tmp_path / "private", tmp_path / "clone" / inner
    private.mkdir()
    (private / "diary.md").write_text("The safe opens with 77.\n")
    link.parent.mkdir(parents=True)
    (tmp_path / "clone" / "README.md").write_text("# Shop\n")
    (tmp_path / "clone" / "guide").mkdir()
    (tmp_path / "clone" / "same").symlink_to("guide")
    link.symlink_to(private)
    monkeypatch.chdir(tmp_path)
    for command in (["build", f"clone/{inner}", "clone/README.md"], ["build", f"clone/{inner}"]):
        assert run(command) == 2
        assert f"is a link that leads to '{private}'" in capsys.readouterr().err
    assert not list(private.rglob(".metatree"))
    assert run(["build", "clone/same"]) == 0, "a link inside"


def test_help_is_a_command_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["help", "find"]) == 0
    assert "metatree find" in capsys.readouterr().out


def test_a_source_that_was_never_read_stands_in_nobodys_way(project: Path) -> None:
    (project / "broken.json").write_text("{")
    assert run(["build", "openapi:broken.json"]) == 5
    assert run(["build", "src", "docs"]) == 0
    with Tree.open(project / ".metatree") as tree:
        assert [source.mount for source in tree.sources()] == ["src", "docs"]


def test_of_all_files_of_a_folder_those_of_secrets_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`build *` names them, too; one that is named alone is read."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.md").write_text("# The harbour\n")
    (tmp_path / "secrets.yaml").write_text("pass: correct horse battery\n")
    state = {"version": 4, "terraform_version": "1.5.7", "lineage": "8b1e", "outputs": {}, "resources": []}
    (tmp_path / "state.json").write_text(json.dumps(state))
    (tmp_path / "sub").mkdir()
    assert run(["build", *sorted(path.name for path in tmp_path.iterdir())]) == 0
    said = capsys.readouterr().err
    with Tree.open(".metatree") as tree:
        assert "a.md" in tree and "secrets.yaml" not in tree and "state.json" not in tree
    for name in ("secrets.yaml", "state.json"):
        assert f"{name} may hold secrets and is left out: `metatree build --add {name}`" in said
    assert run(["build", "secrets.yaml", "state.json", "--tree", "other"]) == 2
    assert run(["build", "--add", "secrets.yaml"]) == 0
    with Tree.open(".metatree") as tree:
        assert "horse" in tree.content("secrets.yaml")
