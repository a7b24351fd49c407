"""Standing wishes as agents, boards and people are shown them."""

from __future__ import annotations

import json

import pytest
from metatree_agents.cli.printing.results import node_lines
from metatree_agents.tools.functions import function_tools
from metatree_memory_tools.conversations import ConversationLog

from metatree import Tree, search
from metatree.blackboard import Blackboard

WISH = "Always give version numbers when I ask about software dependencies or libraries."
QUESTION = "Which libraries are used in this project?"


@pytest.fixture
def tree() -> Tree:
    made = Tree.create(":memory:")
    log = ConversationLog(made, "talk")
    log.say("ann", WISH, at="2026-01-05T09:00")
    log.say("ann", "Flask and Jinja are the libraries in use.", at="2026-01-05T09:01")
    return made


def test_agents_get_them_as_json_and_marked_in_the_text(tree: Tree) -> None:
    find, ask = function_tools(tree, only=["search", "ask"])
    for found in (json.loads(find(query=QUESTION)), json.loads(ask(questions=[QUESTION]))):
        (wish,) = found["wishes"]
        assert (wish["text"], wish["who"]) == (WISH, "ann")
        assert (wish["about"], wish["source"]) == (
            "software dependencies or libraries",
            "conversations:/talk/1/1",
        )


def test_people_see_them_below_what_was_found(tree: Tree) -> None:
    lines = list(node_lines(search(QUESTION, tree=tree, returns="nodes")))
    at = lines.index("Standing wishes that can apply")
    assert at > 0
    assert lines[at + 1 :] == ["  conversations:/talk/1/1  (ann, 2026-01-05)", f"  | {WISH}"]


def test_a_board_has_them_beside_the_request_and_in_its_prompt(tree: Tree) -> None:
    board = Blackboard(tree)
    search(QUESTION, tree=tree, returns="nodes", blackboard=board)
    (request,) = board.items(sections="requests")
    assert [wish["text"] for wish in request.data["standing_wishes"]] == [WISH]
    assert WISH in board.render(2_000).text
