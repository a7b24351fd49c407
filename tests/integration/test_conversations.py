"""Conversations in files, brought up to date, and an agent's own, which stay when the tree is built again."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from metatree_agents.cli.printing.results import node_lines
from metatree_agents.tools.functions import function_tools
from metatree_memory_tools import build_tree
from metatree_memory_tools.conversations import ConversationLog, Turn
from metatree_memory_tools.conversations.file_type import ConversationFile

from metatree import remember, search
from metatree.node import Source
from metatree.notes.wishes import standing
from metatree.trees.source_types import SourceFile
from metatree.trees.tree import Tree

pytestmark = pytest.mark.integration


def line(number: int, text: str) -> str:
    day = f"2024-01-{1 + number // 10:02}T10:{number % 10:02}:00"
    return json.dumps({"role": "user" if number % 2 else "assistant", "content": text, "timestamp": day})


def test_a_file_that_grows_keeps_its_nodes(tmp_path: Path) -> None:
    folder = tmp_path / "chats"
    folder.mkdir()
    file = folder / "chat.jsonl"
    lines = [line(number, f"turn number {number}") for number in range(25)]
    file.write_text("\n".join(lines))
    with build_tree(folder) as tree:
        assert [node.title for node in tree.children("chat.jsonl")] == [
            "Session 1, 2024-01-01 10:00",
            "Session 2, 2024-01-02 10:00",
            "Session 3, 2024-01-03 10:00",
        ]
        assert tree.content("chat.jsonl#2/3") == "[2 January 2024 10:02] assistant: turn number 12"
        before = tree.sequence
        file.write_text("\n".join([*lines, line(25, "one more")]))
        tree.refresh()
        changed = [node_id for _, node_id, _ in tree.changes(before)]
        assert "chat.jsonl#3/6" in changed
        assert "chat.jsonl#2/3" not in changed
        assert tree.content("chat.jsonl#3/6").endswith("user: one more")


def test_kinds_of_files_are_told_apart(tmp_path: Path) -> None:
    files = {
        "package.json": '{"name": "x", "author": "y", "messages": {"a": "b"}}',
        "chat.json": json.dumps(
            [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
        ),
        "talk.txt": "Ann: Hi\nBob: Hello\nAnn: Tea?\nBob: Yes\n",
        "notes.txt": "Buy: milk\nCall: Bob\nWrite: a letter\nPay: bills\n",
        "data.jsonl": '{"x": 1}\n{"x": 2}\n',
        "letter.eml": "From: Ann <a@x.org>\nSubject: Hi\n\nHello.\n",
    }
    (tmp_path / "files").mkdir()
    for name, text in files.items():
        (tmp_path / "files" / name).write_text(text)
    with build_tree(tmp_path / "files") as tree:
        turns = {node.id for _, node in tree.walk() if node.kind == "turn"}
    assert turns == {"chat.json#1", "chat.json#2", *(f"talk.txt#{n}" for n in range(1, 5)), "letter.eml#1"}


def test_noted_turns_are_found_and_stay_when_the_tree_is_built_again(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "a.py").write_text("x = 1\n")
    with build_tree(folder) as tree:
        log = ConversationLog(tree, "support")
        log.extend(
            [Turn("Ann", f"Ticket number {number} is open.", "2024-01-01T10:00") for number in range(120)]
        )
        sold = log.say("Bob", "The blue bicycle was sold to Peter.", at="2024-01-01T11:00")
        found = search(["To whom was the blue bicycle sold?"], tree=tree)
        assert found.answer == "[1 January 2024 11:00] Bob: The blue bicycle was sold to Peter."
        (folder / "a.py").write_text("x = 2\n")
        tree.refresh()
        assert tree.ancestors(sold) == [
            ".",
            "conversations:",
            "conversations:/support",
            "conversations:/support/2",
        ]
    with build_tree(folder) as tree:
        assert tree.content(sold) == "[1 January 2024 11:00] Bob: The blue bicycle was sold to Peter."


PROGRAM = """
import sys
from metatree import Tree
from metatree_memory_tools.conversations import ConversationLog
with Tree.open(sys.argv[1]) as tree:
    log = ConversationLog(tree, "shared")
    for number in range(40):
        log.say(sys.argv[2], f"turn {number}")
"""


def test_processes_that_note_the_same_conversation_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "memory.tree"
    Tree.create(path).close()
    running = [subprocess.Popen([sys.executable, "-c", PROGRAM, path, name]) for name in ("Ann", "Bob")]
    assert [process.wait() for process in running] == [0, 0]
    with Tree.open(path) as tree:
        said = [(node.title, node.description) for _, node in tree.walk() if node.kind == "turn"]
    assert sorted(said) == sorted((name, f"turn {number}") for name in ("Ann", "Bob") for number in range(40))
    assert [text for name, text in said if name == "Ann"] == [f"turn {number}" for number in range(40)]


def test_the_wishes_of_a_file_lie_below_it_with_their_turns(tmp_path: Path) -> None:
    said = [
        ("Ann", "Hello, how are you?"),
        ("Bob", "Fine. Never call me before nine."),
        ("Ann", "All right."),
    ]
    messages = [{"speaker": who, "text": text, "date": "2026-01-05T09:00"} for who, text in said]
    (tmp_path / "chat.json").write_text(json.dumps({"messages": messages}), encoding="utf-8")
    with build_tree(tmp_path) as tree:
        (wish,) = standing(tree)
        assert (wish.text, wish.who, wish.source) == ("Never call me before nine.", "Bob", "chat.json#2")
        assert tree.content(wish.source).endswith("Bob: Fine. Never call me before nine.")
        assert tree.get(tree.parent(wish.node) or "").kind == "wishes"
        found = search("When may I call?", tree=tree, returns="nodes")
        assert [each.source for each in found.wishes] == ["chat.json#2"]
        assert "chat.json#wishes" not in {node.id.partition("/")[0] for node in found.nodes}


def test_a_file_takes_back_no_wish_that_the_tree_was_told(tmp_path: Path) -> None:
    said = "From now on never ask me before you deploy the shop."
    turns = [{"role": "user", "name": "ann", "content": said, "timestamp": "2027-01-01T00:00:00Z"}]
    (tmp_path / "chat.json").write_text(json.dumps([{"title": "Shop", "messages": turns}]), encoding="utf-8")
    with build_tree(tmp_path) as tree:
        remember(tree, "Always ask me before you deploy the shop.", who="ann")
        told = {wish.text: wish.file for wish in standing(tree)}
        assert told.pop("Always ask me before you deploy the shop.") is None
        assert told == {said: "chat.json"}
        apart = search("Who wrote the poem?", tree=tree, returns="nodes").wishes
        assert [wish.file for wish in apart] == [None]  # a file's rule is not for every question


def test_what_a_file_names_as_a_wish_is_shown_as_that(tmp_path: Path) -> None:
    said = "Always give version numbers when I ask about libraries."
    messages = [{"speaker": "ann", "text": said}, {"speaker": "bob", "text": "Flask is the library in use."}]
    (tmp_path / "chat.json").write_text(json.dumps({"messages": messages}), encoding="utf-8")
    with build_tree(tmp_path) as tree:
        found = search("Which libraries are in use?", tree=tree, returns="nodes")
        assert any("(a file names ann)" in line for line in node_lines(found))
        (find,) = function_tools(tree, only=["search"])
        (wish,) = json.loads(find(query="Which libraries are in use?"))["wishes"]
        assert wish["file"] == "chat.json"


class Compared(bytes):
    """Bytes that count how often they are compared."""

    times = 0

    def __eq__(self, other: object) -> bool:
        Compared.times += 1
        return bytes.__eq__(self, other)

    __hash__ = bytes.__hash__


def test_a_file_is_not_compared_with_itself_for_each_turn() -> None:
    """An export of 48 MB and 100,000 turns took ten minutes."""
    data = "\n".join(line(number, f"turn number {number}") for number in range(40)).encode()
    kind = ConversationFile()
    for _ in range(2):  # read for its outline, and again for its texts
        file = SourceFile("chat.jsonl", Compared(data))
        for number in range(1, 41):
            text = kind.content(file, Source(type="conversation", path="chat.jsonl", start_line=number))
            assert text.endswith(f"turn number {number - 1}")
    assert Compared.times <= 2
