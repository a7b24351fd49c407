"""What the best nodes lead to: names in their texts, tools that are used with them, tools that find their inputs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from metatree_routers.embeddings.static import Vectors
from metatree_routers.evidence._question import rank_question
from metatree_routers.evidence.evidence import TextEvidence
from metatree_routers.evidence.signals.input_finders import inputs_of, names_something
from metatree_routers.evidence.signals.tool_diversification import put_in_order, take_together
from metatree_routers.index.fields import NodeText
from metatree_routers.index.index import IndexSnapshot, TextIndex
from metatree_routers.query.wording import request_steps, request_words

from metatree.node import Node
from metatree.trees.tree import Tree


def _tree(*rows: tuple[str, str, str, str, str]) -> Tree:
    """Make a tree of (id, parent, kind, title, content)."""
    tree = Tree.create()
    for id_, parent, kind, title, content in rows:
        tree.add(Node(id=id_, title=title, kind=kind, content=content or None), parent)
    return tree


def _order(tree: Tree, question: str) -> list[str]:
    return [scored.node_id for scored in TextEvidence(tree, embeddings=False).rank([question])]


FILLER = tuple(
    (f"f{n}", ".", "document", f"Town {n}", f"Town {n} is a place near a river.") for n in range(30)
)
WRESTLER = ("wrestler", ".", "document", "Akino Kenji", "Akino Kenji is a wrestler born in Hiroshima.")
PLANE = ("plane", ".", "document", "Bombers", "A plane dropped a bomb on Hiroshima.")
LONDON = ("london", ".", "document", "Raids", "A plane dropped a bomb on Hamburg.")
HOPS = (WRESTLER, LONDON, PLANE, ("hamburg", ".", "document", "Ports", "Ships left Hamburg."), *FILLER)
QUESTION = "Which plane dropped a bomb where Akino Kenji was born?"


@pytest.mark.parametrize("kind", ["document", "definition"])
def test_a_text_with_a_name_of_the_best_one_and_the_rest_of_the_question_comes_behind_it(kind: str) -> None:
    tree = _tree(("wrestler", ".", kind, *WRESTLER[3:]), *HOPS[1:])
    best = _order(tree, QUESTION)
    assert (best.index("plane") < best.index("london")) == (kind == "document")


def test_the_reason_says_which_name_led_on() -> None:
    evidence = TextEvidence(_tree(*HOPS), embeddings=False)
    assert "has “Hiroshima”, which is named in “Akino Kenji”" in evidence.why([QUESTION], "plane")
    assert "named in" not in evidence.why([QUESTION], "london")


def test_of_several_nodes_with_the_title_that_a_text_names_the_best_is_meant() -> None:
    tree = _tree(
        ("store", ".", "document", "Hello Love", "Hello Love was sung by Hank Snow in Leland."),
        ("snow/1", ".", "document", "Hank Snow", "He played cards."),
        ("snow/2", ".", "document", "Hank Snow", "He died in Madison."),
        *FILLER,
    )
    assert _order(tree, "Where died the singer of Hello Love of Leland?")[:2] == ["store", "snow/2"]
    assert _order(tree, "Who sang Hello Love of Leland?")[1] in ("snow/1", "snow/2")


def _interface(*tools: tuple[str, str, str]) -> Tree:
    groups = dict.fromkeys(group for group, _, _ in tools)
    return _tree(
        *((group, ".", "group", group, "") for group in groups),
        *((f"{group}/{title}", group, "tool", title, content) for group, title, content in tools),
    )


def test_tools_of_a_group_rise_by_what_the_group_says_together() -> None:
    tree = _interface(("a", "songs", ""), ("a", "levels", ""), ("b", "songs", ""), ("b", "other", ""))

    def check(reader: IndexSnapshot) -> None:
        ids = ["a/songs", "a/levels", "b/songs", "b/other"]
        tools = np.array([reader.numbers(ids)[id_] for id_ in ids])
        scores = np.zeros(len(reader.table), dtype=np.float32)
        weights = {"song": 3.0, "level": 3.0}
        competing = reader.table.alive
        take_together(reader.table, scores, weights, reader.postings(weights), tools, competing)
        songs, levels, same, other = scores[tools].tolist()
        assert songs == levels > same == other > 0
        assert not np.delete(scores, tools).any()

    TextEvidence(tree, embeddings=False).query(check)


def test_a_tool_for_the_rest_of_a_request_comes_before_the_same_tool_again() -> None:
    tree = _tree(
        *((f"s/{n}", ".", "tool", "weather wind", "") for n in range(3)),
        ("chart", ".", "tool", "draw charts", ""),
        *((f"x/{n}", ".", "tool", f"thing {n}", "other words") for n in range(9)),
    )
    question = "weather wind charts"
    assert _order(tree, question).index("chart") == 1
    passages = _tree(*((id_, ".", "passage", node.title, "") for id_, node in _nodes(tree)))
    assert _order(passages, question).index("chart") == 3


def _nodes(tree: Tree) -> list[tuple[str, Node]]:
    return [(node.id, node) for node in tree.children(".")]


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.floats(0.125, 5, width=32), min_size=2, max_size=6))
def test_the_best_tool_keeps_its_score_and_no_score_grows(values: list[float]) -> None:
    tree = _tree(*((f"t{n}", ".", "tool", "weather", "") for n in range(len(values))))
    evidence = TextEvidence(tree, embeddings=False)

    def check(reader: IndexSnapshot) -> None:
        scores = np.array([0.0, *values], dtype=np.float32)
        before = scores.copy()
        tools = np.arange(1, len(scores))
        put_in_order(reader.table, scores, {"weather": 3.0}, reader.postings({"weather"}), tools)
        assert scores.max() == before.max()
        assert (scores <= before).all()

    evidence.query(check)


MOVIES = (
    ("movie", "GET /movie/{movie_id}/credits", "Cast and crew."),
    ("movie", "GET /movie/top", "The best movies."),
    ("tv", "GET /tv/{tv_id}/credits", "Cast and crew of a show."),
    ("search", "GET /search/movie", "Parameters: query"),
    ("search", "GET /search/tv", "Parameters: query"),
    *(("more", f"GET /thing/{n}", "other words") for n in range(9)),
)


def test_what_finds_the_input_of_the_best_tool_comes_with_it_when_something_is_named() -> None:
    tree = _interface(*MOVIES)
    finder = "search/GET /search/movie"
    best = _order(tree, "Who is in the cast of the movie Titanic?")
    assert set(best[:2]) == {"movie/GET /movie/{movie_id}/credits", finder}
    assert finder not in _order(tree, "the cast and crew of a film")
    assert finder not in _order(tree, "the cast and crew of the film with the ID 12 by Titanic")


def test_the_reason_says_which_input_a_tool_finds() -> None:
    evidence = TextEvidence(_interface(*MOVIES), embeddings=False)
    reason = evidence.why(["Who is in the cast and crew of Titanic?"], "search/GET /search/movie")
    assert reason == "finds the “movie_id” that “GET /movie/{movie_id}/credits” takes"


def test_where_many_tools_find_such_a_thing_none_is_meant() -> None:
    more = tuple(("search", f"GET /search/movie/{n}", "Parameters: query") for n in range(3))
    best = _order(_interface(*MOVIES, *more), "Who is in the cast of Titanic?")
    assert not any("/search/movie" in id_ for id_ in best)


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("Who was the hero of Titanic?", True),
        ("list the top movies", False),
        ("the user with ID 7 in Oslo", False),
    ],
)
def test_a_request_names_something_unless_it_gives_the_id(question: str, *, names: bool) -> None:
    assert names_something(question) is names


def test_inputs_are_told_by_their_names() -> None:
    assert inputs_of("Parameters: user_id, page, stationCode, track-id") == [
        ("user", "user_id"),
        ("track", "track-id"),
    ]
    assert inputs_of("identify the valid kids") == []


def test_what_is_asked_for_is_left_of_a_question() -> None:
    assert request_words("Could you tell me about redirects?") == "redirects"
    assert request_words("please help") == "please help"


MEANINGS = ("graph chart", "mail letter", "trip flight", "song music")


class _ByMeaning:
    """An embedder for which the words of an entry of `MEANINGS` are the same."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        rows = [
            [sum(word in entry.split() for word in text.lower().split()) for entry in MEANINGS]
            for text in texts
        ]
        vectors = np.array(rows, dtype=np.float32).reshape(len(texts), len(MEANINGS))
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.asarray(vectors / np.maximum(lengths, 1e-9), dtype=np.float32)


def _by_meaning(tree: Tree, question: str) -> dict[str, float]:
    index = TextIndex(tree, embedder=_ByMeaning, embedding="meanings")
    index.refresh()

    def scores(reader: IndexSnapshot) -> dict[str, float]:
        ranking = rank_question(reader, question, _ByMeaning)
        return {reader.ids([node])[node]: float(ranking.scores[node]) for node in ranking.order.tolist()}

    return index.query(scores)


@pytest.mark.parametrize("kind", ["tool", "passage"])
def test_a_tool_is_near_to_a_request_when_it_is_near_to_one_of_its_steps(kind: str) -> None:
    """ "A letter" is one of three things in the whole, and all of a step."""
    tree = _tree(
        ("letter", ".", kind, "letter", ""),
        ("all", ".", kind, "letter flight music", "sheep"),
        ("words", ".", kind, "rivers", "mountains"),
    )
    request = "Find mountains with mail. Find rivers for a trip. Find a sheep song."
    scores = _by_meaning(tree, request)
    assert (scores["letter"] > 0.5 * scores["all"]) == (kind == "tool")


@pytest.mark.parametrize("kind", ["tool", "passage"])
def test_what_tools_lie_in_is_near_to_a_request_when_it_is_near_to_one_of_its_steps(kind: str) -> None:
    tree = _tree(
        ("post", ".", "group", "letter", ""),
        ("post/a", "post", kind, "sheep", ""),
        ("all", ".", "group", "letter flight music", ""),
        ("all/a", "all", kind, "sheep", ""),
        ("words", ".", kind, "rivers", "mountains"),
    )
    scores = _by_meaning(tree, "Find sheep with mail. Find rivers for a trip. Find a mountain song.")
    assert (scores["post/a"] > 0.9 * scores["all/a"]) == (kind == "tool"), scores


def test_the_vector_of_a_tool_is_made_of_its_name_in_words() -> None:
    tool = Node(id="t", title="getStock_price", description="Of a Symbol", kind="tool")
    assert (
        NodeText.of(tool, "Parameters: symbol").head() == "get stock price\nof a symbol\nparameters: symbol"
    )
    passage = Node(id="p", title="getStock_price", description="Of a Symbol", kind="passage")
    assert NodeText.of(passage, "More").head() == "getStock_price\nOf a Symbol\nMore"


def test_a_request_of_one_step_has_no_steps() -> None:
    assert request_steps("Could you please help me? I want the weather in Oslo.") == []
    assert request_steps("Show the weather in Oslo and draw a chart of it.") == ["weather Oslo", "draw chart"]
    assert len(request_steps("Take a walk. " * 50)) == 12


@pytest.mark.parametrize("name", ["empty?", "empty?@2", "empty!", "empty=@3", "empty<T>", "empty"])
def test_a_definition_is_found_by_the_name_that_people_say(name: str) -> None:
    node = Node(
        id=f"till.rb::Till.{name}", title=f"Till.{name}", kind="definition", attributes={"path": "till.rb"}
    )
    assert set(NodeText.of(node, "").exact) >= {"=Till.empty", "=empty"}
