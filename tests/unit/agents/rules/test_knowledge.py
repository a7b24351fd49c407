"""Knowledge sources that answer questions: by a tree search, by a model."""

from __future__ import annotations

import pytest
from metatree_agents.rules.sources import (
    ModelAnswerer,
    RequestSplitter,
    TreeSearcher,
    unanswered,
)

from metatree import Node, Tree
from metatree.durable import MemoryJournal
from metatree.rules import ControlShell, First, StopWhen, parse_productions
from metatree.testing.parts import FunctionRouter, ScriptedReader, ScriptedToolCaller

FACTS = {"Where is Bern?": "in Switzerland", "Where is Oslo?": "in Norway"}


@pytest.fixture
def tree() -> Tree:
    tree = Tree.create(":memory:")
    for number, (question, answer) in enumerate(FACTS.items()):
        tree.add(Node(id=f"n{number}", title=question, content=f"{question} {answer}"), parent=tree.root)
    return tree


def searcher(tree: Tree) -> TreeSearcher:
    knows = {f"n{number}": {question: answer} for number, (question, answer) in enumerate(FACTS.items())}
    router = FunctionRouter(
        lambda request: next((o.id for o in request.options if o.title in request.questions), None)
    )
    return TreeSearcher(tree, router=router, options={"reader": ScriptedReader(knows), "evidence": False})


def test_a_request_becomes_questions_that_are_searched_at_once(tree: Tree) -> None:
    split = RequestSplitter(lambda text: [f"{part.strip()}?" for part in text.split("?") if part.strip()])
    shell = ControlShell([split, searcher(tree)], resolver=First())
    report = shell.run('(r1 request "Where is Bern? Where is Oslo? Where is Atlantis?")', seed=0)
    assert report.ended == "accepted"
    answers = {b["t"]: b["a"] for b in report.memory.query("(<q> question <t>) (<q> answer <a>)")}
    assert answers == FACTS
    assert len(report.memory.query("(<q> unanswered-by search)")) == 1
    assert {b["s"] for b in report.memory.query("(<q> source <s>)")} == {"n0", "n1"}
    assert [e["production"] for e in report.trace] == ["split request", "search"], (
        "one firing for all questions"
    )


def test_a_resolver_stops_when_enough_is_known(tree: Tree) -> None:
    split = RequestSplitter(lambda text: text.split("|"))
    enough = StopWhen(lambda conflict: len(conflict.memory.query("(<q> answer <a>)")) >= 1, First())
    model = ModelAnswerer(ScriptedToolCaller({"answer": {"known": True, "answer": "in my head"}}))
    shell = ControlShell([split, searcher(tree), model], resolver=enough)
    report = shell.run('(r1 request "Where is Bern?|Where is Atlantis?")', seed=0)
    assert report.detail == "the resolver stopped the run"
    assert len(report.memory.query("(<q> answered-by model)")) == 0


def test_a_model_answers_what_the_search_did_not(tree: Tree) -> None:
    caller = ScriptedToolCaller({"answer": [{"known": "maybe"}, {"known": True, "answer": "in the sea"}]})
    model = ModelAnswerer(
        caller, production='((<q> unanswered-by search) (<q> question <text>) -{(<q> answer <a>)} -> "model")'
    )
    shell = ControlShell([searcher(tree), model], resolver=First())
    report = shell.run('(q1 question "Where is Atlantis?")', seed=0)
    assert ("q1", "answer", "in the sea") in report.facts
    assert caller.requests[1].errors, "a form that does not fit is reported and asked for again"
    assert caller.requests[0].tool.schema["required"] == ["known", "answer"]


def test_a_search_that_has_started_is_resumed_and_not_paid_for_again(tree: Tree) -> None:
    journal = MemoryJournal()
    shell = ControlShell([searcher(tree)])
    whole = shell.run('(q1 question "Where is Bern?")', seed=0, run_id="r", journal=journal)
    records = journal.read("r")
    again = MemoryJournal()
    token = again.create("r", "shell", records[0])
    again.release("r", token, None)
    report = shell.resume("r", journal=again)
    assert report.facts == whole.facts


def test_names_with_spaces_make_valid_productions() -> None:
    (production,) = parse_productions(unanswered("my search"))
    assert production.name == "my search"
