"""The order in which a gateway shows tools."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from metatree_agents.gateway._ranking import FEATURES, GAINS, WEIGHTS, ToolEvidence
from metatree_memory_tools.mcp_server.source import KIND
from metatree_routers import TextEvidence
from metatree_routers.embeddings import _minilm
from metatree_routers.embeddings.static import Vectors

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
    found = evidence.tools(TextEvidence(tree).rank([REQUEST], k=60))
    candidates = evidence.candidates(REQUEST, found)
    assert candidates.features.shape == (len(found), len(FEATURES))
    assert abs(candidates.features.mean(axis=0)).max() < 1e-6 and candidates.features.std(axis=0).max() < 1.01
    assert sorted(candidates.order(WEIGHTS, GAINS)) == list(range(len(found)))


def test_five_servers_that_do_one_step_leave_a_place_for_the_other(tree: Tree) -> None:
    checks = ("Check an email address.", "Verify an email address.", "Validate an email address.")
    with Tree.create(":memory:", title="Tools") as many:
        for number in range(6):
            server = f"verifier{number}"
            many.add(Node(server, server, "Email verification", kind="mcp server"), ".")
            many.add(Node(f"{server}/validate", "validate_email", checks[number % 3], kind=KIND), server)
        many.add(Node("tunes", "tunes", "Sounds of videos", kind="mcp server"), ".")
        many.add(Node("tunes/convert", "convert", "Convert a video to mp3.", kind=KIND), "tunes")
        request = (
            "Validate the email addresses of my readers. Also make an mp3 of the video about the launch."
        )
        evidence = ToolEvidence(many)
        candidates = evidence.candidates(request, tools := evidence.tools(evidence.rank([request], k=60)))
        ids = [node.id for _, node in tools]
        alone = [ids[at] for at in candidates.order(WEIGHTS, GAINS * 0)]
        together = [ids[at] for at in candidates.order(WEIGHTS, GAINS)]
        assert together.index("tunes/convert") < min(2, alone.index("tunes/convert"))


def test_a_server_that_the_request_names_comes_first() -> None:
    with Tree.create(":memory:", title="Tools") as many:
        for server in ("Post Office", "Mailcheap", "Letterbox"):
            many.add(Node(server, server, "Mail for everybody", kind="mcp server"), ".")
            many.add(Node(f"{server}/status", "status", "Get the status of the service.", kind=KIND), server)
        for number in range(20):
            many.add(Node(f"other{number}", f"other{number}", "Something else", kind="mcp server"), ".")
        evidence = ToolEvidence(many)
        request = "Check the status of the Post Office API."
        found = evidence.tools(evidence.rank([request], k=60))
        features = evidence.candidates(request, found).features[:, FEATURES.index("named")]
        assert found[int(features.argmax())][1].id == "Post Office/status"
        assert evidence.rank([request], k=1)[0].node_id == "Post Office/status"
        away = evidence.candidates("Post me the status of the office.", found).features
        assert abs(away[:, FEATURES.index("named")]).max() == 0


FILMS = {
    "GET /search/movie": "Search movies by their title.",
    "GET /search/person": "Search people.",
    "GET /movie/{movie_id}/credits": "Get the cast and crew for a movie.",
    "GET /movie/{movie_id}/images": "Get the images that belong to a movie.",
    "GET /movie/{movie_id}/reviews": "Get the reviews for a movie.",
    "GET /movie/{movie_id}/similar": "Get a list of similar movies.",
    "GET /movie/popular": "Get a list of the current popular movies.",
    "GET /movie/upcoming": "Get a list of upcoming movies.",
    "GET /person/{person_id}/movie_credits": "Get the movie credits for a person.",
    "GET /person/{person_id}/images": "Get the images for a person.",
    "GET /tv/popular": "Get a list of the current popular shows.",
}


@pytest.fixture(scope="module")
def films() -> Tree:
    tree = Tree.create(":memory:", title="Tools")
    tree.add(Node("films", "films", "Films and shows", kind="mcp server"), ".")
    for name, about in FILMS.items():
        tree.add(Node(f"films/{name}", name, about, kind=KIND), "films")
    return tree


def test_what_finds_an_input_comes_behind_the_best_tool_that_takes_it(films: Tree) -> None:
    evidence = ToolEvidence(films)
    titles = [node.title for _, node in evidence.tools(evidence.rank(["Who is the cast of Titanic?"], k=60))]
    taking = next(at for at, title in enumerate(titles) if "{movie_id}" in title)
    assert taking < 3 and titles.index("GET /search/movie") <= taking + 1
    ids = [f"films/{name}" for name in FILMS if "{movie_id}" in name]
    moved = evidence._with_finders("Who directed Titanic?", [*ids, "films/GET /search/movie"], set(ids))
    assert moved == [*ids, "films/GET /search/movie"]  # what no request offers stays where it is
    everything = [f"films/{name}" for name in FILMS]
    moved = evidence._with_finders(
        "Who directed Titanic?", [*ids, "films/GET /search/movie"], set(everything)
    )
    assert moved == [ids[0], "films/GET /search/movie", *ids[1:]]


def test_a_person_who_is_named_is_looked_for_as_one(films: Tree) -> None:
    best = [each.node_id for each in ToolEvidence(films).rank(["Kate Winslet's latest movie?"], k=6)]
    assert "films/GET /search/person" in best
    best = [each.node_id for each in ToolEvidence(films).rank(["The latest movie in Oslo?"], k=4)]
    assert "films/GET /search/person" not in best


class Synonyms:
    """Knows that rain is weather, and nothing else."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def embed(self, texts: Sequence[str]) -> Vectors:
        self.texts += texts
        wet = [any(word in text.lower() for word in ("rain", "weather", "forecast")) for text in texts]
        return np.array([[1.0, 0.0] if each else [0.0, 1.0] for each in wet], dtype=np.float32)


def test_with_minilm_the_nearness_is_minilms(monkeypatch: pytest.MonkeyPatch) -> None:
    embedder = Synonyms()
    monkeypatch.setenv("METATREE_EMBEDDING", "minilm")
    monkeypatch.setattr(_minilm, "minilm_embedder", lambda: embedder)
    with Tree.create(":memory:", title="Tools") as tree:
        for name, about in (
            ("later", "Look for what comes in a city."),
            ("sooner", "Look for what comes in a city, its forecast."),
            ("trams", "Look for what comes in a city by tram."),
        ):
            tree.add(Node(f"city/{name}", name, about, kind=KIND), ".")
        evidence = ToolEvidence(tree)
        tools = evidence.tools(TextEvidence.rank(evidence, ["rain in the city"], k=5))
        made = len(embedder.texts)
        near = evidence.candidates("rain in the city", tools).features[:, FEATURES.index("request")]
        assert [node.title for (_, node), value in zip(tools, near, strict=True) if value > 0] == ["sooner"]
        assert embedder.texts[made:] == ["rain in the city", "rain city"], "vectors of tools are kept"
        assert evidence.rank(["rain in the city"], k=1)[0].node_id == "city/sooner"
