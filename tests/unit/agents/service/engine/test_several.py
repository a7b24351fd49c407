"""One answer of those of several trees."""

from __future__ import annotations

from typing import Any

import pytest
from metatree_agents.service.engine._several import joined
from metatree_agents.service.queue.models import Ending, EngineAnswer


def reply(
    text: str = "", node: str | None = None, *, end: Any = "answered", notes: list[str] | None = None
) -> Any:
    source = {"Node": node, "Title": node or "a person", "Quote": text, "Number": 1 if node else None}
    return EngineAnswer(
        [f"{text} [1]" if node else text],
        [],
        [source] if end == "answered" else [],
        "answered",
        ending=Ending(end, notes=notes or []),
    )


def test_what_a_person_said_to_the_searches_of_all_trees_is_given_once() -> None:
    given = [("docs", "Docs", reply("Ann is.")), ("team", "Team", reply("Ann is."))]
    assert joined(given).answer == ["Ann is."]
    assert len(joined(given).sources) == 1


def test_an_answer_with_a_source_goes_before_the_same_by_a_person() -> None:
    real = EngineAnswer(
        ["Ann is."], [], [{"Node": "memory:1", "Number": 1}], "answered", ending=Ending("answered")
    )
    found = joined([("docs", "Docs", reply("Ann is.")), ("team", "Team", real)])
    assert found.answer == ["Ann is."] and [each["Tree"] for each in found.sources] == ["team"]


def test_what_a_person_said_stays_beside_another_answer() -> None:
    found = joined([("docs", "Docs", reply("Bob was.", "a.md")), ("team", "Team", reply("Ann is."))])
    assert found.answer == ["Docs:", "Bob was. [1]", "A person:", "Ann is."]


@pytest.mark.parametrize(
    "read",
    [
        "Read as: How is a ease renewed?",
        "Nothing is called resolve_all; what is found only shares words with it.",
    ],
)
def test_what_a_tree_lacks_is_told_where_every_tree_lacks_it(read: str) -> None:
    one = [("a", "A", reply("x", "n", notes=[read])), ("b", "B", reply("y", "n"))]
    assert joined(one).ending.notes == []
    both = [("a", "A", reply(end="nothing", notes=[read])), ("b", "B", reply(end="nothing", notes=[read]))]
    assert joined(both).ending.notes == [read]
