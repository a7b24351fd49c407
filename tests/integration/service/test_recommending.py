"""What people say of answers, over HTTP: later searches find what is right, and rank lower what was wrong."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from metatree_agents.cli._main import run
from metatree_agents.service.engine.answering import answer_query, corrections_of_text, said_of
from metatree_agents.service.engine.client import ServiceClient
from metatree_agents.service.engine.memory import learn
from metatree_agents.service.queue.models import EngineAnswer, EngineQuery
from metatree_agents.service.queue.recommendations import Recommendations
from metatree_memory_tools import build_tree
from metatree_routers import text_evidence

from metatree import Tree
from metatree.notes.feedback import flags
from metatree.notes.notes import memories
from metatree.result import QuestionAnswer, Quote, SearchResult
from tests.documents import make_pdf

from .conftest import SECRETS, Served, opened

pytestmark = pytest.mark.integration
REFUND = "Who approves refunds?"
TRIP = "Who approves trips?"
FILES = {
    "zebra.md": "# The zebra team\n\nRefunds are approved by the zebra team, they say.\n",
    "rumours.md": "# The desk\n\nEach month the desk looks at refunds, and Ann Miller approves them.\n",
    "trips.md": "# Trips\n\nTrips are approved by Bob Carter, the head of the department.\n",
}


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[Tree]:
    place = tmp_path / "source"
    place.mkdir()
    for name, text in FILES.items():
        (place / name).write_text(text)
    with build_tree(place) as made:
        yield made


def answer(service: Served, tree: Tree, text: str, topic: str = "T") -> EngineAnswer:
    """Ask over HTTP, answer as an engine does, and post the answer."""
    seq = service.frontend.ask(text, topic=topic).json()["Seq"]
    engine_query = EngineQuery(topic, seq, text, {})
    said = asyncio.run(
        answer_query(tree, engine_query, parts={"sure": 0.2})
    )  # what is learned is tested here
    service.engine.answer(text, *said.answer, topic=topic, seq=seq, Sources=said.sources)
    return said


def recommend(service: Served, kind: str, fragment: str, *, comment: str = "", **more: Any) -> None:
    body = {"Topic": "T", "OnBehalfOf": "Bea", "Query": REFUND, "Fragment": fragment, "Comment": comment}
    assert service.frontend.post("recommend", {**body, "Type": kind, **more}).status_code == 200


def learnt(service: Served, tree: Tree) -> None:
    async def once() -> None:
        async with ServiceClient(service.url, "Inference_1", SECRETS["Inference_1"][1]) as client:
            while await learn(client, tree):
                pass

    asyncio.run(once())


def paths(said: EngineAnswer) -> list[str]:
    return [source["Path"] for source in said.sources]


def test_what_is_flagged_as_off_topic_is_behind_what_is_not_and_forget_takes_it_back(
    service: Served, tree: Tree
) -> None:
    first = answer(service, tree, REFUND)
    assert paths(first) == ["rumours.md"]
    recommend(service, "Flag as Off Topic", first.answer[0])
    trips = answer(service, tree, TRIP, topic="before")
    learnt(service, tree)
    (made,) = flags(tree.memory)
    assert (made.who, made.source, tree.get(made.node).path) == (
        "Bea",
        "Flag as Off Topic, topic T",
        "rumours.md",
    )
    assert text_evidence(tree).score([REFUND], k=1)[0].node_id.startswith("zebra.md")
    assert answer(service, tree, TRIP, topic="after") == trips, "another question is answered as before"
    tree_path = str(tree.path)
    assert run(["forget", made.id, "--tree", tree_path]) == 0
    assert paths(answer(service, tree, REFUND, topic="V")) == ["rumours.md"]


def test_a_paragraph_that_is_corrected_is_lowered_and_the_comment_is_found(
    service: Served, tree: Tree
) -> None:
    first = answer(service, tree, REFUND)
    recommend(service, "Make Correction", first.answer[0], comment="Refunds are approved by Cleo since May.")
    learnt(service, tree)
    assert [node.content for node in memories(tree)] == ["Refunds are approved by Cleo since May."]
    assert [(each.why, tree.get(each.node).path) for each in flags(tree.memory)] == [
        ("corrected", "rumours.md")
    ]
    found = answer(service, tree, REFUND, topic="U")
    assert "Cleo" in found.answer[0]
    memory = tree.get(found.sources[0]["Node"])
    assert (memory.provenance["who"], memory.provenance["source"]) == ("Bea", "Make Correction, topic T")


@pytest.mark.parametrize("comment", ["Refunds are approved by Cleo.", ""])
def test_an_answer_that_quotes_a_corrected_line_says_who_corrected_it(
    service: Served, tree: Tree, comment: str
) -> None:
    first = answer(service, tree, REFUND)
    (source,) = first.sources
    quote = Quote(source["Node"], source["Title"], source["Quote"])
    other = Quote(source["Node"], source["Title"], "Another line of it.")

    def notes(*quotes: Quote) -> list[str]:
        given = QuestionAnswer("Which desk?", quotes[0].quote, quotes)
        return said_of(tree, SearchResult(answer=given.answer, answers=(given,))).ending.notes

    assert notes(quote) == []
    right = "Refunds are approved by Cleo."
    recommend(service, "Make Correction", first.answer[0] if comment else right, comment=comment)
    learnt(service, tree)
    (memory,) = memories(tree)
    (said,) = notes(quote)
    assert said.startswith("Corrected by Bea on 20") and said.endswith(f": {right}")
    assert notes(other) == [] and notes(Quote(memory.id, "m", right), quote) == []
    (one,) = service.engine.get("get-recommendations", After="0").json()
    taken = {"Number": one["number"], "OnBehalfOf": "Bea"}
    assert service.frontend.post("withdraw-recommendation", taken).ok
    learnt(service, tree)
    assert notes(quote) == []


def test_of_a_correction_that_was_corrected_itself_the_later_one_is_told(service: Served, tree: Tree) -> None:
    (source,) = answer(service, tree, REFUND).sources
    quote = Quote(source["Node"], source["Title"], source["Quote"])
    given = QuestionAnswer("Which desk?", quote.quote, (quote,))

    def notes() -> list[str]:
        return said_of(tree, SearchResult(answer=given.answer, answers=(given,))).ending.notes

    for number, who in enumerate(["Cleo since May", "Dan since June", "Eve since July"]):
        said = answer(service, tree, REFUND, topic=f"T{number}")
        assert len(said.sources) == 1
        right = f"Refunds are approved by {who}."
        recommend(service, "Make Correction", said.answer[0], comment=right, Topic=f"T{number}")
        learnt(service, tree)
        time.sleep(1.0)  # what was said when is kept in seconds
        assert [note.partition(": ")[2] for note in notes()] == [right]


def test_a_text_of_ones_own_that_corrects_lowers_what_was_answered(service: Served, tree: Tree) -> None:
    answer(service, tree, REFUND)
    recommend(service, "Make Correction", "Refunds are approved by Cleo.", comment="since May")
    learnt(service, tree)
    assert [node.content for node in memories(tree)] == ["Refunds are approved by Cleo.\n\nsince May"]
    assert [tree.get(each.node).path for each in flags(tree.memory)] == ["rumours.md"]
    assert "Cleo" in answer(service, tree, REFUND, topic="U").answer[0]


def test_an_answer_that_was_promoted_and_is_flagged_later_is_lowered_itself(
    service: Served, tree: Tree
) -> None:
    recommend(service, "Promote Answer", "The walrus committee approves refunds.")
    learnt(service, tree)
    (memory,) = memories(tree)
    before = text_evidence(tree).score([REFUND])
    recommend(service, "Flag as Off Topic", "The walrus committee approves refunds.", OnBehalfOf="Dan")
    learnt(service, tree)
    after = {each.node_id: each.score for each in text_evidence(tree).score([REFUND])}
    assert before[0].node_id == memory.id
    assert after[memory.id] == pytest.approx(before[0].score / 2)
    assert "Dan" in text_evidence(tree).why([REFUND], memory.id)


def test_an_answer_that_says_nothing_of_its_question_answers_it_in_other_words_too(
    service: Served, tree: Tree
) -> None:
    asked = "Which mountain hut do the maintainers meet in?"
    recommend(service, "Promote Answer", "The Rifugio Boccalatte.", Query=asked)
    learnt(service, tree)
    for text in (asked, "In which hut do the maintainers meet?"):
        found = answer(service, tree, text, topic=text)
        assert found.answer == ["The Rifugio Boccalatte."]
        assert tree.get(found.sources[0]["Node"]).provenance["who"] == "Bea"
    other = answer(service, tree, "Which hut do the zebras meet in?", topic="other")
    assert other.answer != ["The Rifugio Boccalatte."]


def test_a_paragraph_with_something_left_out_is_that_of_its_source_alone(service: Served, tree: Tree) -> None:
    from metatree_agents.service.engine.memory import named

    shown = "Each month the desk\n    …\nand Ann Miller approves them."
    nodes = {
        Path(node.path).name: node.id for _, node in tree.walk(tree.root) if node.has_content and node.path
    }
    sources = [{"Node": each, "Quote": ""} for each in nodes.values()]
    one = {"fragment": shown}
    assert named(tree, one, [{"Query": REFUND, "Answer": [shown, "Else."], "Sources": sources}]) == [
        nodes["rumours.md"]
    ]


@pytest.mark.parametrize("blank", ["  \n", "\x07\x1b", "\u202e\u200b "])
@pytest.mark.parametrize("field", ["Query", "Fragment"])
def test_a_recommendation_in_which_nothing_can_be_seen_is_refused(
    service: Served, field: str, blank: str
) -> None:
    body = {
        "Topic": "T",
        "OnBehalfOf": "Bea",
        "Query": REFUND,
        "Fragment": "Cleo does.",
        "Type": "Promote Answer",
    }
    refused = service.frontend.post("recommend", {**body, field: blank})
    assert refused.status_code == 422 and field in refused.text


def test_recommendations_that_cannot_be_taken_are_left_out_and_those_behind_them_are_taken(
    service: Served, place: Path | str, tree: Tree, caplog: pytest.LogCaptureFixture
) -> None:
    async def keep() -> None:  # as an earlier version took them, or somebody who writes to the database
        database = opened(place)
        await database.start()
        kept = Recommendations(database)
        said = "Refunds are approved by the zebra team"
        for kind, query, fragment in (("Flag as Off Topic", " \t", said), ("Promote Answer", REFUND, "\x07")):
            await kept.add(
                topic="T", on_behalf_of="Bea", query=query, fragment=fragment, comment="", kind=kind
            )
        await database.close()

    asyncio.run(keep())
    recommend(service, "Promote Answer", "Refunds are approved by Cleo.")
    learnt(service, tree)
    assert [node.content for node in memories(tree)] == ["Refunds are approved by Cleo."]
    assert "zebra" not in caplog.text
    left_out = [line for line in caplog.messages if "left out" in line]
    learnt(service, tree)
    assert len(left_out) == 2 == len([line for line in caplog.messages if "left out" in line])


def test_what_was_flagged_without_a_thread_is_looked_for_word_for_word(service: Served, tree: Tree) -> None:
    recommend(service, "Flag as Off Topic", "refunds are approved by the ZEBRA team", Topic="gone")
    recommend(service, "Flag as Off Topic", "Nothing in the tree says anything like it.", Topic="gone")
    recommend(service, "Flag as Off Topic", "the", Topic="gone")
    learnt(service, tree)
    assert [tree.get(each.node).path for each in flags(tree.memory)] == ["zebra.md"]


def test_one_who_flags_every_answer_changes_little_and_nothing_of_others(service: Served, tree: Tree) -> None:
    first = {text: answer(service, tree, text, topic=text) for text in (REFUND, TRIP)}
    for text, said in first.items():
        for _ in range(5):
            for topic in first:
                recommend(
                    service,
                    "Flag as Off Topic",
                    said.answer[0],
                    OnBehalfOf="Mallory",
                    Topic=topic,
                    Query=text,
                )
    learnt(service, tree)
    assert len(flags(tree.memory)) == 2
    assert "head of the department" in answer(service, tree, TRIP, topic="after").answer[0], (
        "it is still found"
    )


def test_a_flag_that_is_taken_back_takes_no_other_of_its_kind_with_it(service: Served, tree: Tree) -> None:
    def flagged() -> list[str]:
        return sorted(str(tree.get(each.node).path) for each in flags(tree.memory))

    def flag_off_topic(fragment: str) -> int:
        body = {"Topic": "T", "OnBehalfOf": "Bea", "Query": REFUND, "Fragment": fragment}
        made = service.frontend.post("recommend", {**body, "Type": "Flag as Off Topic"})
        return int(made.json()["Number"])

    def undo(number: int) -> None:
        assert service.frontend.post("withdraw-recommendation", {"OnBehalfOf": "Bea", "Number": number}).ok
        learnt(service, tree)

    zebra, desk = "Refunds are approved by the zebra team", "Ann Miller approves them"
    first, second, again = flag_off_topic(zebra), flag_off_topic(desk), flag_off_topic(zebra)
    learnt(service, tree)
    assert flagged() == ["rumours.md", "zebra.md"]
    undo(first)
    assert flagged() == ["rumours.md", "zebra.md"], "the same was said once more, and that stands"
    undo(again)
    assert flagged() == ["rumours.md"]
    undo(second)
    assert flagged() == []


def test_the_page_of_a_node_says_what_was_corrected_in_it(service: Served, tree: Tree) -> None:
    first = answer(service, tree, REFUND)
    (source,) = first.sources
    recommend(service, "Make Correction", first.answer[0], comment="Refunds are approved by Cleo.")
    learnt(service, tree)
    text = tree.content(source["Node"])
    (said,) = corrections_of_text(tree, source["Node"], text)
    assert said.startswith("Corrected by Bea on 20") and said.endswith(": Refunds are approved by Cleo.")
    assert corrections_of_text(tree, source["Node"], "Another line of it.") == []


def test_a_page_without_a_heading_has_the_title_of_its_document(tmp_path: Path) -> None:
    pages = [[(12.0, "Page one of the lamp.")], [(12.0, "The lamp has a bulb of nine watts.")]]
    (tmp_path / "lamp.pdf").write_bytes(make_pdf(pages, title="Manual of the lamp"))
    with build_tree(tmp_path) as made:
        said = asyncio.run(
            answer_query(
                made, EngineQuery("T", 1, "How many watts does the bulb have?", {}), parts={"sure": 0.2}
            )
        )
    (source,) = said.sources
    assert (source["Title"], source["Pages"]) == ("Manual of the lamp", [2, 2])


def test_lines_without_a_heading_have_the_title_of_what_they_are_of(tmp_path: Path) -> None:
    body = "\n\n".join(f".. data:: KEY_{number}\n\n    The key {number} of it.\n" for number in range(80))
    (tmp_path / "manual.rst").write_text(f"Settings of the lamp\n====================\n\n{body}")
    with build_tree(tmp_path) as made:
        query = EngineQuery("T", 1, "What is KEY_77?", {})
        said = asyncio.run(answer_query(made, query, parts={"sure": 0.05}))
    titles = {each["Title"] for each in (*said.sources, *said.ending.closest)}
    assert titles == {"manual.rst"}
