"""`metatree remember`, `memories` and `forget` as a person uses them."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from metatree_agents.cli._main import run
from metatree_agents.cli.schemas import _memory as memory_shapes
from metatree_memory_tools import build_tree

from metatree import Tree, remember

pytestmark = pytest.mark.integration


def test_a_memory_is_found_survives_a_rebuild_and_a_rename_and_is_taken_back(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["remember", "src/shop/payment.py must not log card numbers", "--who", "ann"]) == 0
    said = capsys.readouterr().out
    assert "under src/shop/payment.py: it names src/shop/payment.py" in said
    memory = said.split()[0]
    assert run(["remember", "-h"]) == 0
    capsys.readouterr()

    assert run(["ask", "What must not log card numbers?"]) == 0
    out = capsys.readouterr().out
    assert "must not log card numbers" in out and "said by ann on" in out

    (project / "src/shop/payment.py").rename(project / "src/shop/charging.py")
    (project / ".metatree/index.db").rename(project / ".metatree/old.db")  # a whole rebuild
    assert run(["build", "."]) == 0
    with Tree.open(project) as tree:
        assert tree.get(memory).provenance["who"] == "ann"
        assert tree.parent(memory) == "src/shop", "what it hung below is gone"
    assert run(["find", "log card numbers", "-k", "1"]) == 0
    assert memory in capsys.readouterr().out

    assert run(["forget", memory]) == 0
    printed = capsys.readouterr()
    assert run(["find", "log card numbers", "-k", "3"]) in (0, 1)
    assert memory not in capsys.readouterr().out
    command = printed.err.partition("to take this back: ")[2].strip()
    assert run(shlex.split(command)[1:]) == 0
    assert memory in capsys.readouterr().out


def test_no_memory_of_somebody_is_not_no_memory(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["remember", "tea is at four", "--who", "ann"]) == 0
    assert run(["remember", "cake is at five", "--who", "bob"]) == 0
    capsys.readouterr()
    assert run(["memories", "--who", "nobody"]) == 1
    assert capsys.readouterr().err == "nobody called 'nobody' said anything; who did: ann, bob\n"
    assert run(["memories", "--who", "ann", "--under", "docs"]) == 1
    assert "no memory of ann lies below 'docs'" in capsys.readouterr().err


def test_a_rename_takes_the_memory_along(project: Path) -> None:
    with build_tree(project) as tree:
        node = remember(tree, "src/shop/payment.py wants a review").node
        (project / "src/shop/payment.py").rename(project / "src/shop/charging.py")
        tree.refresh()
        assert tree.parent(node) == "src/shop/charging.py"


def test_json(
    project: Path, capsys: pytest.CaptureFixture[str], conforms: Callable[[Any, Any], None]
) -> None:
    assert (
        run(["remember", "tea is at four", "--who", "ann", "--from", "a call", "--title", "Tea", "--json"])
        == 0
    )
    made = json.loads(capsys.readouterr().out)
    conforms(made, memory_shapes.RememberOutput)
    assert (made["node"]["title"], made["node"]["said"][0]["source"]) == ("Tea", "a call")
    assert run(["remember", "tea is at four", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["known"] is True
    assert run(["remember", "tea is at five", "--update", made["node"]["id"], "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["node"]["text"] == "tea is at five"
    assert run(["memories", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    conforms(listed, memory_shapes.MemoriesOutput)
    assert len(listed["memories"]) == 1 and len(listed["memories"][0]["said"]) == 3
    assert run(["forget", made["node"]["id"].removeprefix("memory:"), "--json"]) == 0
    gone = json.loads(capsys.readouterr().out)
    conforms(gone, memory_shapes.ForgetOutput)
    assert gone["undo"]["text"] == "tea is at five"
    assert run(["memories"]) == 1


def test_flags_are_listed_and_taken_back(
    project: Path, capsys: pytest.CaptureFixture[str], conforms: Callable[[Any, Any], None]
) -> None:
    from metatree import Tree
    from metatree.notes.feedback import flag

    assert run(["build", "."]) == 0
    assert run(["memories", "--flags"]) == 1
    assert "nothing is flagged" in capsys.readouterr().err
    with Tree.open(".") as tree:
        made = flag(tree, "src/shop/cart.py", "Where is the total?", who="ann", source="topic T")
    assert run(["memories", "--flags", "--who", "ann"]) == 0
    out = capsys.readouterr().out
    assert made.id in out and "src/shop/cart.py: flagged as off topic for “Where is the total?” by ann" in out
    assert run(["memories", "--flags", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    conforms(listed, memory_shapes.FlagsOutput)
    assert [(each["who"], each["source"]) for each in listed["flags"]] == [("ann", "topic T")]
    assert run(["find", "Where is the total?", "-k", "9"]) == 0
    assert "flagged as off topic" in capsys.readouterr().out
    assert run(["forget", made.id]) == 0
    assert run(["forget", made.id]) == 2
    assert "no flag" in capsys.readouterr().err
    assert run(["find", "Where is the total?", "-k", "9"]) == 0
    assert "flagged" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["forget", "src/shop/cart.py"], "only what was added can be forgotten"),
        (["forget", "src/shop/crat.py"], "did you mean 'src/shop/cart.py'"),
        (["forget", "."], "only what was added can be forgotten"),
        (["remember", " "], "the text is empty"),
        (["remember", "x", "--under", "nowhere"], "no node 'nowhere'"),
        (["remember", "x", "--update", "src/shop/cart.py"], "is no memory"),
    ],
)
def test_wrong_use_is_reported_in_one_line(
    project: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert run(["build", "."]) == 0
    capsys.readouterr()
    assert run(arguments) == 2
    printed = capsys.readouterr()
    assert message in printed.err and printed.out == ""


def test_what_a_memory_holds_cannot_drive_the_terminal(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["remember", "\x1b]0;owned\x07 tea \x1b[2J", "--who", "\x1b[31mred"]) == 0
    assert run(["memories"]) == 0
    assert run(["ask", "tea"]) in (0, 1)
    assert "\x1b" not in capsys.readouterr().out


def test_a_warning_about_a_secret_says_how_to_forget_it(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["remember", "password = hunter2hunter2"]) == 0
    assert "warning: it looks like it holds a password or key" in capsys.readouterr().err
