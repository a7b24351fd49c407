"""An engine that works for what is no query service, or a lying one: one clear error, and no traceback."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from metatree_agents.service.engine._answers import check_answer
from metatree_agents.service.engine.client import ServiceClient
from metatree_agents.service.engine.engine import Engine

from metatree import Tree
from metatree.errors import UserError

pytestmark = pytest.mark.integration

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["Topic", "Queries", "Trees", "Id", "Before", "1", "x"]), inner, max_size=4
        )
    ),
    max_leaves=8,
)
BATCH = {"Topic": "t", "Queries": [{"1": "Where is the key?"}], "Lease": "l", "LeaseSeconds": 60}
NOTHING = {"Topic": None, "Queries": None}


def worked(answers: dict[str, Any], caplog: pytest.LogCaptureFixture | None = None) -> list[tuple[str, Any]]:
    """Let an engine work for a service that answers so by route; return what it was given until it stopped."""
    given_: list[tuple[str, Any]] = []
    taken = False

    def serve(request: httpx2.Request) -> httpx2.Response:
        nonlocal taken
        route = request.url.path.removeprefix("/api/")
        if request.method == "POST":
            given_.append((route, json.loads(request.content)))
        answer = answers.get(route, {})
        if route == "get-new-queries" and route in answers:
            answer, taken = (NOTHING if taken else answer), True
        return httpx2.Response(200, json=answer)

    async def run() -> None:
        with Tree.create(":memory:") as tree:
            async with ServiceClient(
                "http://liar", "E", "e" * 24, transport=httpx2.MockTransport(serve)
            ) as client:
                engine = Engine(client, {"shed": tree} if "trees" in answers else tree)
                asyncio.get_running_loop().call_later(1.0, engine.stop)
                await engine.run()

    asyncio.run(run())
    return given_


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ([], "no JSON object"),
        ({}, "Topic: Field required"),
        ({"Topic": "t", "Queries": None}, "a topic comes with its queries"),
        ({"Topic": "t", "Queries": [{}]}, "Queries.0"),
        ({"Topic": "t", "Queries": [{"x": "y"}]}, "Queries.0"),
        ({**BATCH, "LeaseSeconds": "soon"}, "LeaseSeconds"),
    ],
)
def test_what_is_no_batch_ends_an_engine_with_one_clear_error(answer: Any, says: str) -> None:
    with pytest.raises(
        UserError, match="http://liar is no query service: it answers get-new-queries"
    ) as caught:
        worked({"get-new-queries": answer})
    assert says in str(caught.value)


def test_a_tree_that_was_not_offered_is_not_searched(caplog: pytest.LogCaptureFixture) -> None:
    batch = {**BATCH, "Trees": ["attic"]}
    titles = [{"Name": "attic", "Title": "Attic"}]
    given_ = worked({"get-new-queries": batch, "trees": titles, "get-topic-thread": []})
    assert "wants a search of 'attic', a tree that this engine did not offer" in caplog.text
    assert [route for route, _ in given_ if route == "give-new-answer"] == []


@given(
    JSON,
    st.sampled_from(["get-identity", "get-new-lookup", "get-new-queries", "get-recommendations", "trees"]),
)
def test_whatever_is_answered_is_right_or_a_value_error(answer: Any, route: str) -> None:
    try:
        check_answer(route, answer)
    except ValueError as exc:
        assert str(exc)
    else:
        assert isinstance(answer, list if route in ("get-recommendations", "trees") else dict)
