"""Steps 1 to 3 and 7: descending, routing, reading, going up."""

from __future__ import annotations

from typing import Any

import pytest

from metatree import Answer, Node, Reading, RouteDecision, RouteRequest, SearchResult, Traits, Tree, search
from metatree.errors import BadModelAnswer
from metatree.testing.parts import FunctionRouter, PlainComposer, ScriptedReader, ScriptedRouter, tree_of


def first(request: RouteRequest) -> str | None:
    return request.options[0].id


def run(tree: Tree, questions: Any = "q", *args: Any, **given: Any) -> SearchResult:
    given.setdefault("router", FunctionRouter(first))
    given.setdefault("reader", ScriptedReader({}))
    given.setdefault("composer", PlainComposer())
    return search(questions, *args, tree=tree, evidence=False, **given)


def events(result: SearchResult, name: str) -> list[Any]:
    return [entry for entry in result.trace if entry.event == name]


def test_a_single_option_is_entered_without_asking() -> None:
    router = ScriptedRouter()
    result = run(
        tree_of({"a": {"b": {"c": "text"}}}), router=router, reader=ScriptedReader({"c": {"q": "yes"}})
    )
    assert (result.answer, router.requests) == ("yes", [])
    assert [e.node for e in events(result, "enter")] == ["a", "b", "c"]


def test_an_inner_node_is_read_when_it_is_entered_and_then_its_children() -> None:
    tree = tree_of({"a": ("own text", {"a1": "text one", "a2": "text two"}), "b": "text three"})
    reader = ScriptedReader({"b": {"q": "yes"}})
    run(tree, reader=reader)
    assert [r.node.id for r in reader.requests] == ["a", "a1", "a2", "b"]


def test_going_up_from_the_start_node_reads_what_lies_above_and_beside() -> None:
    tree = tree_of({"a": ("own a", {"a1": {"x": "text x", "y": "text y"}, "a2": "text a2"}), "b": "text b"})
    reader = ScriptedReader({})
    result = run(tree, "q", "a1", reader=reader)
    assert [r.node.id for r in reader.requests] == ["x", "y", "a", "a2", "b"]
    assert [e.node for e in events(result, "mark")] == ["x", "y", "a1", "a2", "a", "b", "."]
    assert result.ended == "exhausted"


def test_a_leaf_can_be_the_start_node() -> None:
    reader = ScriptedReader({"b": {"q": "yes"}})
    run(tree_of({"a": {"a1": "text a1", "a2": "text a2"}, "b": "text b"}), "q", "a2", reader=reader)
    assert [r.node.id for r in reader.requests] == ["a2", "a1", "b"]


def test_a_choice_that_is_also_ruled_out_is_a_choice() -> None:
    router = ScriptedRouter([RouteDecision("b", {"b": "no", "a": "no"})])
    result = run(
        tree_of({"a": "text a", "b": "text b"}), router=router, reader=ScriptedReader({"b": {"q": "yes"}})
    )
    assert result.answer == "yes"
    assert events(result, "route")[0].data["unviable"] == {"a": "no"}


def test_only_offered_ids_count() -> None:
    router = ScriptedRouter([RouteDecision("zz", {"a": "no", "qq": "no"})])
    result = run(
        tree_of({"a": "text a", "b": "text b"}), router=router, reader=ScriptedReader({"b": {"q": "yes"}})
    )
    assert result.answer == "yes"
    assert (events(result, "route")[0].data["choice"], events(result, "route")[0].data["unviable"]) == (
        None,
        {"a": "no"},
    )


def test_a_malformed_answer_is_tried_again_with_the_error_shown() -> None:
    router = ScriptedRouter(["zz", BadModelAnswer("no JSON"), "b"])
    result = run(
        tree_of({"a": "text a", "b": "text b"}), router=router, reader=ScriptedReader({"b": {"q": "yes"}})
    )
    assert result.answer == "yes"
    assert [len(r.errors) for r in router.requests] == [0, 1, 2]
    assert "was not offered" in router.requests[1].errors[0]
    assert router.requests[2].errors[1] == "no JSON"
    assert (result.usage.router_calls, result.usage.failed_attempts) == (3, 2)


def test_after_three_malformed_answers_the_order_of_the_tree_decides_without_evidence_and_the_trace_says_so() -> (
    None
):
    router = ScriptedRouter([RuntimeError("broken")] * 9)
    reader = ScriptedReader({"b": {"q": "yes"}})
    result = run(tree_of({"a": "text a", "b": "text b"}), router=router, reader=reader)
    assert result.answer == "yes"
    assert len(router.requests) == 3
    assert [(e.data["by"], e.reason) for e in events(result, "route")] == [
        ("nobody", "the router failed: RuntimeError: broken"),
        ("tree", "order of the tree"),
    ]


@pytest.mark.parametrize("garbage", [None, 7, "a", {"choice": "a"}, [], RouteDecision])
def test_garbage_from_a_router_that_asks_a_model_does_not_end_the_run(garbage: Any) -> None:
    class Garbage:
        traits = Traits(uses_model=True)

        async def route(self, request: RouteRequest) -> Any:
            return garbage

    result = run(
        tree_of({"a": "text a", "b": "text b"}), router=Garbage(), reader=ScriptedReader({"b": {"q": "yes"}})
    )
    assert result.answer == "yes"


@pytest.mark.parametrize(
    "garbage",
    [None, 7, Reading(answers=("x",)), Reading(answers=5), Reading(answers=(Answer(None, None, None),))],  # type: ignore[arg-type]
)
def test_garbage_from_a_reader_does_not_end_the_run(garbage: Any) -> None:
    class Garbage:
        async def read(self, request: Any) -> Any:
            return garbage if request.node.id == "a" else Reading((Answer("q", "yes"),))

    assert run(tree_of({"a": "text a", "b": "text b"}), reader=Garbage()).answer == "yes"


def test_parts_of_an_answer_are_shown_to_later_reads_and_a_complete_one_closes_the_question() -> None:
    part = Answer("q", "half", "one half", complete=False)
    whole = Answer("Q ", "whole", "two", complete=True)
    reader = ScriptedReader({"a": Reading((part,)), "b": Reading((whole,))})
    result = run(tree_of({"a": "here is one  half of it", "b": "two", "c": "text"}), reader=reader)
    assert [r.node.id for r in reader.requests] == ["a", "b"]
    assert reader.requests[1].partial_answers == (Answer("q", "half", "one  half", complete=False),)
    assert (result.ended, result.answer, result.answers[0].complete) == ("answered", "whole", True)
    # Nothing of what is shown rests on the part.
    assert [(s.node, s.quote, s.number) for s in result.answers[0].sources] == [("b", "two", 1)]


def test_parts_alone_are_the_best_answer_and_the_question_stays_open() -> None:
    parts = {i: Reading((Answer("q", f"part {i}", complete=False),)) for i in "ab"}
    result = run(tree_of({"a": "text a", "b": "text b"}), reader=ScriptedReader(parts))
    assert (result.ended, result.answer, result.open_questions) == ("exhausted", "part a\npart b", ("q",))
    assert not result.answers[0].complete


def test_a_quote_that_is_not_in_the_content_is_left_empty() -> None:
    reader = ScriptedReader({"a": Reading((Answer("q", "yes", quote="never said"),))})
    result = run(tree_of({"a": "text a"}), reader=reader)
    assert result.answers[0].sources[0].quote == ""


def test_an_answer_to_a_question_that_was_not_asked_is_not_taken() -> None:
    reader = ScriptedReader({"a": Reading((Answer("other", "yes"),))})
    result = run(tree_of({"a": "text a"}), reader=reader)
    assert (result.ended, result.answers) == ("exhausted", ())


def test_a_node_that_is_not_useful_is_marked_visited_with_that_reason() -> None:
    reader = ScriptedReader({"a": Reading(useful=False, notes="only licences")})
    result = run(tree_of({"a": "text a"}), reader=reader)
    mark = events(result, "mark")[0]
    assert (mark.node, mark.reason, mark.data["mark"]) == ("a", "only licences", "visited")


def test_several_questions_are_composed_and_one_is_not() -> None:
    class Composer:
        calls = 0

        async def compose(self, request: Any) -> str:
            Composer.calls += 1
            return " + ".join(a.answer for a in request.answers)

    tree = tree_of({"a": "text a", "b": "text b"})
    reader = ScriptedReader({"a": {"q1": "one"}, "b": {"q2": "two"}})
    result = run(tree, ["q1", "q2"], reader=reader, composer=Composer())
    assert (result.answer, Composer.calls, result.ended) == ("one + two", 1, "answered")
    result = run(tree, ["q1", "q3"], reader=reader, composer=Composer())
    assert (result.answer, Composer.calls, result.open_questions) == ("one", 1, ("q3",))


def test_a_composer_that_fails_leaves_the_answers_one_under_the_other() -> None:
    class Broken:
        async def compose(self, request: Any) -> str:
            raise ValueError("no")

    reader = ScriptedReader({"a": {"q1": "one", "q2": "two"}})
    result = run(tree_of({"a": "text"}), ["q1", "q2"], reader=reader, composer=Broken())
    assert (result.ended, result.answer) == ("answered", "q1\none\n\nq2\ntwo")


def test_the_same_question_twice_is_one_question() -> None:
    reader = ScriptedReader({"a": {"q": "one", "r": "two"}})
    result = run(tree_of({"a": "text"}), ["q", "r", " Q "], reader=reader)
    assert [a.question for a in result.answers] == ["q", "r"]


def test_content_that_cannot_be_read_is_passed_by() -> None:
    tree = tree_of({"a": "text a", "b": "text b"})
    reader = ScriptedReader({"b": {"q": "yes"}})

    def choose(request: RouteRequest) -> str:
        tree.update(Node("a", "a", content=None, kind="folder"))  # its text goes between listing and reading
        return "a"

    result = run(tree, router=FunctionRouter(choose), reader=reader)
    assert (result.answer, [r.node.id for r in reader.requests]) == ("yes", ["b"])
    assert result.usage.reads == 1


def test_sync_and_async_and_streamed_searches_have_one_trace() -> None:
    import asyncio

    from metatree import asearch, astream

    def parts() -> dict[str, Any]:
        return {
            "router": ScriptedRouter(["b", RouteDecision(None, {"b1": "no"}), "b3", "a", "a2"]),
            "reader": ScriptedReader({"a2": {"q": "yes"}}),
            "evidence": False,
        }

    shape: Any = {b: {b + n: f"text {b}{n}" for n in "123"} for b in "ab"}

    async def streamed() -> list[Any]:
        return [each async for each in astream("q", tree=tree_of(shape), **parts())]

    one = search("q", tree=tree_of(shape), **parts())
    two = asyncio.run(asearch("q", tree=tree_of(shape), **parts()))
    *three, result = asyncio.run(streamed())
    assert one.trace == two.trace == tuple(three) == result.trace
    assert one.answer == "yes"
