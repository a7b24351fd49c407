"""The order in which a gateway shows tools."""

from __future__ import annotations

import pytest
from metatree_agents.gateway._ranking import FEATURES, ToolEvidence
from metatree_memory_tools.mcp_server.source import KIND
from metatree_routers import TextEvidence

from metatree import Node, Tree

TOOLS = {
    "weather": {
        "get_forecast": "Get the forecast for a city.",
        "list_stations": "List stations of the weather service that measure wind in a city.",
        "get_alerts": "Get warnings for a region.",
    },
    "books": {
        "search_books": "Search the catalogue by author or title.",
        "reserve": "Reserve a copy for a reader.",
        "list_branches": "List branches of the library in a city, with hours of reading.",
    },
    "mail": {"send_message": "Send a message to somebody.", "list_folders": "List the folders."},
}


@pytest.fixture(scope="module")
def tree() -> Tree:
    tree = Tree.create(":memory:", title="Tools")
    for server, tools in TOOLS.items():
        tree.add(Node(server, server, f"All about {server}", kind="mcp server"), ".")
        for name, about in tools.items():
            tree.add(Node(f"{server}/{name}", name, about, kind=KIND), server)
    return tree


REQUEST = "How is the weather going to be in Oslo, and which books by Hamsun does the library have?"


def test_what_is_near_to_a_step_comes_before_what_shares_a_word(tree: Tree) -> None:
    plain = [scored.node_id for scored in TextEvidence(tree).rank([REQUEST], k=8)]
    ranked = [scored.node_id for scored in ToolEvidence(tree).rank([REQUEST], k=8)]
    assert plain.index("weather/list_stations") < len(plain)
    assert "weather/get_forecast" not in plain[: plain.index("weather/list_stations")]
    assert ranked.index("weather/get_forecast") < ranked.index("weather/list_stations")


def test_only_the_tools_change_their_places(tree: Tree) -> None:
    plain = TextEvidence(tree).rank([REQUEST], k=60)
    ranked = ToolEvidence(tree).rank([REQUEST], k=60)
    assert {each.node_id for each in plain} == {each.node_id for each in ranked}
    assert [each.score for each in plain] == [each.score for each in ranked]
    servers = [(place, each.node_id) for place, each in enumerate(plain) if "/" not in each.node_id]
    assert servers == [(place, each.node_id) for place, each in enumerate(ranked) if "/" not in each.node_id]
    assert ToolEvidence(tree).rank([REQUEST], k=3) == ranked[:3]


def test_a_request_without_a_word_of_any_tool_finds_what_is_near_in_meaning(tree: Tree) -> None:
    request = "Will it rain tomorrow?"
    assert not TextEvidence(tree).rank([request], k=5)
    assert ToolEvidence(tree).rank([request], k=5)[0].node_id.startswith("weather/")


def test_numbers_of_tools_are_told_beside_each_other(tree: Tree) -> None:
    evidence = ToolEvidence(tree)
    features = evidence.features(REQUEST, evidence.tools(TextEvidence(tree).rank([REQUEST], k=60)))
    assert features.shape[1] == len(FEATURES)
    assert abs(features.mean(axis=0)).max() < 1e-6 and features.std(axis=0).max() < 1.01
