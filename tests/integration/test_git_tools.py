"""The history of a file as a node, and the tools that ask git, never more than that, and never outside."""

from pathlib import Path
from typing import Any

import pytest
from metatree_memory_tools import build_tree
from metatree_memory_tools.build.plugins import history_tools
from metatree_memory_tools.git.tools import (
    blame,
    find_change,
    git_log,
    open_commit,
    show_commit,
)

from metatree import search
from metatree.errors import MetatreeError, UserError
from metatree.node import Node
from metatree.testing.parts import FunctionRouter, ScriptedReader
from metatree.tools.tool import Tool
from metatree.trees.tree import Tree
from tests.integration.git_repository import Repository

pytestmark = pytest.mark.integration

FIRST = "def wait():\n    return 1\n\n\ndef stop():\n    return 2\n"


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = Repository(tmp_path / "repo")
    made.commit(
        "Add waiting\n\nAsked for in #1.", {"pkg/wait.py": FIRST, "README.md": "# Waiting\n\nWait.\n"}
    )
    made.git("config", "user.name", "x")
    made.commit(
        "Wait longer\n\nServers need time to start.", {"pkg/wait.py": FIRST.replace("return 1", "return 30")}
    )
    made.commit("Keep a key", {".env": "TOKEN=s3cret\n", "pkg/other.py": "TTL = 3\n"})
    return made


def ask(used: Tool, tree: Tree, node: str, **arguments: Any) -> str:
    found = used.function(node=tree.get(node), tree=tree, **arguments)
    assert isinstance(found, str)
    return found


def test_each_file_has_its_history_as_a_node_that_is_read_when_asked_for(repository: Repository) -> None:
    with build_tree(repository.root, history=True) as tree:
        history = tree.get("pkg/wait.py::@history")
        assert tree.parent(history) == "pkg/wait.py"
        assert tree.children("pkg/wait.py")[-1].id == history.id
        assert history.description == "2 commits on 2020-09-13, by Ann. Latest: Wait longer"
        lines = tree.content(history).splitlines()
        assert [line.partition("Ann: ")[2] for line in lines] == ["Wait longer", "Add waiting"]
        assert "Wait longer" in {content for _, _, content in tree.texts([history.id])}.pop()
        assert tree.file_of(history) == repository.root / "pkg/wait.py"


def test_the_node_follows_the_file_and_the_commits(repository: Repository) -> None:
    with build_tree(repository.root, history=True) as tree:
        before = tree.sequence
        tree.refresh()
        assert tree.sequence == before
        repository.git("mv", "pkg/wait.py", "pkg/sleep.py")
        repository.commit("Rename", {})
        tree.refresh()
        assert "pkg/wait.py::@history" not in tree
        assert tree.get("pkg/sleep.py::@history").attributes["commits"] == 3
        assert "Earlier names: pkg/wait.py" in tree.content("pkg/sleep.py::@history")
        changed = {node_id for _, node_id, _ in tree.changes(before)}
        assert "pkg/other.py::@history" not in changed
        (repository.root / "pkg/sleep.py").write_text("x = 1\n")
        tree.refresh()
        assert "pkg/sleep.py::@history" in tree
    with build_tree(repository.root, history=False) as tree:
        assert tree.ids(["history"]) == []


def test_a_note_below_a_history_stays_when_the_file_changes(repository: Repository) -> None:
    with build_tree(repository.root, history=True) as tree:
        tree.add(Node("n", "a note"), "pkg/wait.py::@history")
        repository.commit("Change", {"pkg/wait.py": "x = 1\n"})
        tree.refresh()
        assert tree.parent("n") == "pkg/wait.py::@history"


def test_several_sources_keep_their_histories_apart(repository: Repository, tmp_path: Path) -> None:
    other = Repository(tmp_path / "other")
    other.commit("Another first", {"a.py": "a = 1\n"})
    with build_tree(repository.root, other.root, out=tmp_path / "tree", history=True) as tree:
        assert "Another first" in tree.content("other/a.py::@history")
        assert "Another first" in ask(git_log, tree, "other/a.py")
        assert "Wait longer" in ask(show_commit, tree, "repo/pkg/wait.py::@history")
    with build_tree(other.root, tmp_path / "repo" / "pkg", out=tmp_path / "tree", history=True) as tree:
        assert "Wait longer" in ask(git_log, tree, "pkg/wait.py")
        assert "README" not in ask(show_commit, tree, "pkg/wait.py")


def test_the_tools_tell_who_when_why_and_what(repository: Repository) -> None:
    with build_tree(repository.root, history=True) as tree:
        said = ask(blame, tree, "pkg/wait.py::wait")
        assert "Ann: Wait longer\n  2:     return 30" in said
        assert "stop" not in said
        assert ask(git_log, tree, "pkg").count("\n") == 2
        assert "Add waiting" not in ask(git_log, tree, "pkg/wait.py", words="longer")
        with pytest.raises(UserError, match="none of 2 commits"):
            ask(git_log, tree, "pkg/wait.py", author="Bob")
        shown = ask(show_commit, tree, "pkg/wait.py")
        assert "Servers need time to start." in shown
        assert "-    return 1\n+    return 30" in shown
        assert "Ann: Wait longer" in ask(find_change, tree, "pkg/wait.py", term="return 30")
        assert ask(find_change, tree, "pkg/wait.py", term="nothing like it") == ""


def test_lines_that_are_not_committed_are_told_apart(repository: Repository) -> None:
    (repository.root / "pkg/wait.py").write_text("import os\n" + FIRST)
    with build_tree(repository.root, history=True) as tree:
        said = ask(blame, tree, "pkg/wait.py::@history")
        assert "not committed yet\n  1: import os\n" in said
        assert "Ann: Add waiting\n  2: def wait():" in said
        (repository.root / "pkg/fresh.py").write_text("x = 1\n")
        tree.refresh()
        with pytest.raises(UserError, match="not committed"):
            ask(blame, tree, "pkg/fresh.py")


def test_secrets_of_a_commit_are_not_shown(repository: Repository) -> None:
    with build_tree(repository.root, history=True) as tree:
        shown = ask(show_commit, tree, "pkg/other.py")
        assert "A .env" in shown
        assert "s3cret" not in shown
        assert "+TTL = 3" in shown
        assert "s3cret" not in ask(find_change, tree, "pkg", term="TTL")
        assert "s3cret" not in ask(find_change, tree, ".", term="TOKEN")
    with build_tree(repository.root, history=True, include_secrets=True) as tree:
        assert "s3cret" in ask(show_commit, tree, "pkg/other.py")


@pytest.mark.parametrize(
    "name",
    [
        "--output=x",
        "-p",
        "HEAD:.env",
        "HEAD..HEAD",
        "HEAD^{tree}",
        "nowhere",
        "@{-1}",
        ":/Keep",
        "HEAD --",
        "../x",
        "side",
    ],
)
def test_only_commits_of_the_history_can_be_named(repository: Repository, name: str) -> None:
    repository.git("checkout", "-q", "-b", "side")
    repository.commit("Elsewhere", {"pkg/wait.py": "secret plan\n"})
    repository.git("checkout", "-q", "main")
    with build_tree(repository.root, history=True) as tree:
        with pytest.raises(MetatreeError):
            ask(show_commit, tree, "pkg/wait.py", commit=name)
        assert "Keep a key" in ask(show_commit, tree, "pkg/wait.py", commit="HEAD")
    assert sorted(path.name for path in repository.root.iterdir()) == [
        ".env",
        ".git",
        ".metatree",
        "README.md",
        "pkg",
    ]


@pytest.mark.parametrize("text", ["--output=x", "-G.", "\n", "--"])
def test_a_text_to_look_for_is_no_option(repository: Repository, text: str) -> None:
    with build_tree(repository.root, history=True) as tree:
        try:
            assert ask(find_change, tree, "pkg/wait.py", term=text) == ""
        except UserError as error:
            assert "give the text" in str(error)
    assert not (repository.root / "x").exists()


def test_files_whose_names_look_like_options_are_asked_about(repository: Repository) -> None:
    names = {"--output=x": "one", ":(top)y": "two", "*.py": "three"}
    repository.commit("Others", {"y": "a plain file\n", "other.py": "another\n"})
    for name, text in names.items():
        repository.commit(f"Add {text}", {name: f"{text}\n"})
    repository.commit("Change others", {"y": "two\n", "other.py": "three\n"})
    with build_tree(repository.root, history=True) as tree:
        for name, text in names.items():
            assert ask(git_log, tree, name).endswith(f"Ann: Add {text}")
            assert f"Ann: Add {text}" in ask(blame, tree, name)
            assert f"+{text}" in ask(show_commit, tree, name)
            found = ask(find_change, tree, name, term=text).splitlines()
            assert [line.partition("Ann: ")[2] for line in found if "Ann: " in line] == [f"Add {text}"]
    assert not (repository.root / "x").exists()


def test_trees_without_a_history_have_no_such_tools(repository: Repository) -> None:
    with build_tree(repository.root) as tree:
        assert history_tools(tree) == ()
        with pytest.raises(UserError, match="built with its history"):
            ask(blame, tree, "pkg/wait.py")
    with build_tree(repository.root, history=True) as tree:
        assert [group.id for group in history_tools(tree)] == ["history"]


def test_a_commit_is_opened_once_and_stays_when_the_tree_is_built_again(repository: Repository) -> None:
    commit = repository.git("rev-parse", "HEAD~1")
    with build_tree(repository.root, history=True) as tree:
        result = search(
            [f"What did commit {commit[:10]} open?"],
            start_node="pkg/wait.py::@history",
            tree=tree,
            router=FunctionRouter(lambda request: request.options[0].id),
            reader=ScriptedReader({}),
            tools=[open_commit],
            own_tools=False,
            evidence=False,
        )
        made = [entry.node for entry in result.trace if entry.event == "create"]
        opened = f"commit:{commit}"
        assert made == [opened]
        node = tree.get(opened)
        assert node.title == f"{commit[:10]} Wait longer"
        assert node.provenance["tool"] == "open_commit"
        assert tree.parent(node) == "pkg/wait.py::@history"
        repository.commit("Another", {"pkg/wait.py": FIRST})
        tree.refresh()
        assert tree.parent(opened) == "pkg/wait.py::@history"
        again = open_commit.function(node=tree.get("pkg/wait.py"), tree=tree, commit=commit[:9])
        assert (again.id, again.content) == (node.id, tree.content(node))


def test_a_file_that_is_called_like_a_history_is_itself(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repo")
    repository.commit(
        "1", {"a.md": "# A\n", "a.md::@history": "a file\n", "b.md::@history/c.md": "# C\n", "b.md": "# B\n"}
    )
    for _ in range(2):
        with build_tree(repository.root, history=True) as tree:
            assert (
                tree.content("a.md::@history") == "a file\n" and tree.get("b.md::@history").kind == "folder"
            )
            assert tree.get("b.md::@history/c.md::@history").kind == "history"
