"""Questions that the nodes of a tree do not answer and its tools do: a search from end to end, without a model."""

import itertools
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from metatree_memory_tools import build_tree

from metatree import SearchResult, search
from metatree.protocols import SURE
from metatree.trees.tree import Tree
from tests.integration.git_repository import Repository

pytestmark = pytest.mark.integration

CHAT = """8 May 2023
[09:15] Ann: Good morning Bob, did you sleep well?
[09:16] Bob: Like a stone, thanks.
[09:17] Ann: Where did you leave the key of the garden shed?
[09:18] Bob: Under the red pot, as always.
[09:19] Ann: Great, I want to mow the lawn.
[09:30] Bob: Mind the hedgehog.
"""


def tool_reasons(result: SearchResult) -> list[tuple[str, str]]:
    """Return which tools were called on which nodes."""
    return [
        (entry.data["tool"], entry.node or "")
        for entry in result.trace
        if entry.event == "tool" and "call" in entry.data
    ]


def run_search(tree: Tree, question: str, sure: float = SURE) -> SearchResult:
    """Ask without the tools of the tree, which must find nothing, and then with them."""
    assert search([question], tree=tree, sure=sure, own_tools=False).ended == "exhausted"
    result = search([question], tree=tree, sure=sure)
    assert result.ended == "answered"
    return result


def customers(path: Path) -> None:
    cities = ("Bern", "Basel", "Chur", "Sion")
    names = [
        f"{a} {b}"
        for b, a in itertools.product(("Meier", "Roth", "Keller", "Suter"), ("Ann", "Bob", "Eve", "Jan"))
    ]
    rows = [(name, "Lugano" if name == "Jan Suter" else cities[i % 4]) for i, name in enumerate(names)]
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE customer(id INTEGER PRIMARY KEY, name TEXT, city TEXT)")
        connection.executemany("INSERT INTO customer(name, city) VALUES (?, ?)", rows)
        connection.commit()


@pytest.mark.parametrize("among_files", [False, True])
def test_a_row_that_is_no_sample_is_found_by_the_database(tmp_path: Path, among_files: bool) -> None:
    (tmp_path / "data").mkdir()
    customers(tmp_path / "data" / "shop.db")
    source = tmp_path / "data" if among_files else tmp_path / "data" / "shop.db"
    with build_tree(source, out=tmp_path / "tree") as tree:
        result = run_search(tree, 'In which city does the customer "Jan Suter" live?')
        assert result.answer.startswith("name | city\nJan Suter | Lugano")
        assert [tool for tool, _ in tool_reasons(result)] == ["look_up"]


def test_a_text_that_is_gone_is_found_in_the_history(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repo")
    code = "def wait_for_server():\n    timeout = {}\n    return timeout\n"
    repository.commit(
        "Add waiting for servers", {"wait.py": code.format(5), "README.md": "# Waiting\n\nIt waits.\n"}
    )
    repository.commit(
        "Give slow disks more time\n\nServers with spinning disks need half a minute to start.",
        {"wait.py": code.format(30)},
    )
    with build_tree(repository.root, history=True) as tree:
        result = run_search(tree, 'Which commit added "timeout = 5"?')
        assert result.answer.splitlines()[-2:] == [
            f"{repository.git('rev-parse', '--short', 'HEAD~1')} 2020-09-13 Ann: Add waiting for servers",
            "  wait.py: +    timeout = 5",
        ]
        assert tool_reasons(result)[-1] == ("find_change", "wait.py::@history")
        result = search(
            "Which disks made the author of the commit change wait_for_server?", tree=tree, sure=0.75
        )
        assert "show_commit" in [tool for tool, _ in tool_reasons(result)]


def test_what_two_turns_say_together_is_read_around_one(tmp_path: Path) -> None:
    folder = tmp_path / "chats"
    folder.mkdir()
    (folder / "home.txt").write_text(CHAT)
    with build_tree(folder) as tree:
        result = run_search(
            tree, "What did Bob reply when asked for the key of the shed: under which pot?", sure=0.4
        )
        assert (
            "[8 May 2023 09:17] Ann: Where did you leave the key of the garden shed?\n"
            "[8 May 2023 09:18] Bob: Under the red pot, as always."
        ) in result.answer
        assert tool_reasons(result)[-1] in [("turns_around", "home.txt#3"), ("turns_around", "home.txt#4")]
