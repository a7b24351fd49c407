"""Steps 4 and 8: questions that come up, and what is learned from them."""

from __future__ import annotations

from typing import Any

from metatree import Answer, Limits, Reading, ReadRequest, RouteRequest, SearchResult, Tree, search
from metatree.testing.parts import FunctionRouter, PlainComposer, tree_of


class Reader:
    """Answers by a function; keeps its requests."""

    def __init__(self, function: Any) -> None:
        self.function = function
        self.requests: list[ReadRequest] = []

    async def read(self, request: ReadRequest) -> Reading:
        self.requests.append(request)
        reply = self.function(request)
        return reply if reply is not None else Reading(useful=False)

    @property
    def read_nodes(self) -> list[tuple[str, tuple[str, ...]]]:
        return [(r.node.id, r.questions) for r in self.requests]


def run(tree: Tree, reader: Reader, questions: Any = "q", **given: Any) -> SearchResult:
    router = given.pop("router", FunctionRouter(lambda request: request.options[0].id))
    return search(
        questions, tree=tree, router=router, reader=reader, composer=PlainComposer(), evidence=False, **given
    )


def events(result: SearchResult, name: str) -> list[Any]:
    return [entry for entry in result.trace if entry.event == name]


def test_answers_return_to_the_exact_place_that_asked() -> None:
    tree = tree_of({"x": {"x1": "text x1", "x2": "text x2"}, "y": {"y1": "text y1", "y2": "text y2"}})

    def read(request: ReadRequest) -> Reading | None:
        if request.node.id == "x2" and "q" in request.questions:
            if "is 42" in request.context:
                return Reading((Answer("q", "so 42"),))
            return Reading(new_questions=("What is n?",))
        if request.node.id == "x1" and "What is n?" in request.questions:
            return Reading((Answer("What is n?", "n is 42"),))
        return None

    reader = Reader(read)
    result = run(tree, reader)
    assert (result.ended, result.answer) == ("answered", "so 42")
    # x1 is read again in the nested frame, whose marks are fresh; then x2 is taken up again with the answer.
    assert reader.read_nodes == [
        ("x1", ("q",)),
        ("x2", ("q",)),
        ("x1", ("What is n?",)),
        ("x2", ("q",)),
    ]
    assert "What is n? n is 42" in reader.requests[-1].context
    assert [a.question for a in result.answers] == ["q"]
    assert [(e.frame, e.data["questions"]) for e in events(result, "frame")] == [
        (0, ["q"]),
        (1, ["What is n?"]),
    ]


def test_a_nested_frame_starts_at_the_root_even_if_the_search_did_not() -> None:
    tree = tree_of({"x": {"x1": "text x1"}, "y": "text y"})

    def read(request: ReadRequest) -> Reading | None:
        if request.node.id == "x1" and request.questions == ("q",):
            return (
                Reading((Answer("q", "done"),))
                if "deep" in request.context
                else Reading(new_questions=("n",))
            )
        return Reading((Answer("n", "deep"),)) if request.node.id == "y" else None

    reader = Reader(read)
    router = FunctionRouter(lambda request: request.options[-1].id)
    result = run(tree, reader, router=router, start_node="x1")
    assert result.answer == "done"
    assert [r.node.id for r in router.requests] == ["."]
    assert reader.read_nodes == [("x1", ("q",)), ("y", ("n",)), ("x1", ("q",))]


def test_nested_questions_may_nest() -> None:
    tree = tree_of({"a": "text a", "b": "text b", "c": "text c"})
    needs = {("a", "q"): "r", ("b", "r"): "s"}

    def read(request: ReadRequest) -> Reading | None:
        (question,) = request.questions
        if (request.node.id, question) == ("c", "s"):
            return Reading((Answer("s", "S!"),))
        need = needs.get((request.node.id, question))
        if need is None:
            return None
        if f"{need.upper()}!" in request.context:
            return Reading((Answer(question, f"{question.upper()}!"),))
        return Reading(new_questions=(need,))

    result = run(tree, Reader(read))
    assert (result.answer, result.ended) == ("Q!", "answered")
    assert [e.frame for e in events(result, "frame")] == [0, 1, 2]
    assert [(e.frame, e.reason) for e in events(result, "end")] == [
        (2, "answered"),
        (1, "answered"),
        (0, "answered"),
    ]


def test_a_question_that_an_enclosing_frame_asks_is_dropped() -> None:
    tree = tree_of({"a": "text a", "b": "text b"})

    def read(request: ReadRequest) -> Reading:
        if request.questions == ("What is Q",):
            return Reading(new_questions=("inner",))
        return Reading(new_questions=("  what IS\n q ",))

    result = run(tree, Reader(read), "What is Q", second_look=False)
    dropped = events(result, "dropped")
    assert [(e.frame, e.reason) for e in dropped] == [
        (1, "an enclosing search is asking it")
    ]  # once for each frame
    assert len(events(result, "frame")) == 2
    assert result.ended == "exhausted"


def test_a_question_that_a_finished_frame_answered_gets_that_answer() -> None:
    tree = tree_of({"a": "text a", "b": "text b", "k": "text k"})

    def read(request: ReadRequest) -> Reading | None:
        node, questions = request.node.id, request.questions
        if node == "k" and "what is N" in questions:
            return Reading((Answer("what is N", "N is 7"),))
        if node == "b" and "also" in questions and "N is 7" in request.context:
            return Reading((Answer("also", "eight"),))
        if node in "ab" and "also" in questions:
            return Reading(new_questions=("What  is n",))
        if node == "a" and "q" in questions:
            if "eight" in request.context:
                return Reading((Answer("q", "done"),))
            if "N is 7" in request.context:
                return Reading(new_questions=("also",))
            return Reading(new_questions=("what is N",))
        return None

    reader = Reader(read)
    result = run(tree, reader)
    assert result.answer == "done"
    assert [e.data["questions"] for e in events(result, "frame")] == [["q"], ["what is N"], ["also"]]
    assert (
        sum("what is N" in questions for _, questions in reader.read_nodes) == 3
    )  # a, b, k: searched for once


def test_a_question_without_an_answer_is_not_searched_for_twice() -> None:
    tree = tree_of({"a": "text a", "b": "text b"})

    def read(request: ReadRequest) -> Reading | None:
        return Reading(new_questions=("n",)) if request.questions == ("q",) else None

    result = run(tree, Reader(read))
    assert len(events(result, "frame")) == 2
    assert result.ended == "exhausted"


def test_depth_is_bounded() -> None:
    tree = tree_of({"a": "text a"})
    reader = Reader(lambda request: Reading(new_questions=(request.questions[0] + "+",)))
    result = run(tree, reader, limits=Limits(depth=2))
    assert [e.data["questions"] for e in events(result, "frame")] == [["q"], ["q+"], ["q++"]]
    assert events(result, "dropped")[0].reason == "nested deeper than 2"


def test_the_number_of_questions_is_bounded() -> None:
    tree = tree_of({"a": "text a"})
    reader = Reader(
        lambda r: Reading(new_questions=tuple(f"n{i}" for i in range(9))) if "q" in r.questions else None
    )
    result = run(tree, reader, limits=Limits(questions=4))
    assert events(result, "frame")[1].data["questions"] == ["n0", "n1", "n2", "n3"]
    assert len(events(result, "dropped")) == 5


def test_new_questions_given_as_one_text_are_one_question() -> None:
    tree = tree_of({"a": "text a"})
    reader = Reader(lambda r: Reading(new_questions="why so") if "q" in r.questions else None)  # type: ignore[arg-type]
    result = run(tree, reader)
    assert events(result, "frame")[1].data["questions"] == ["why so"]


def test_an_exhausted_frame_that_has_learned_restarts_and_known_reads_are_not_paid_for_twice() -> None:
    tree = tree_of({"alpha": "text a", "bravo": "text b", "charlie": "text c"})

    def read(request: ReadRequest) -> Reading | None:
        if request.node.id == "alpha" and "bravo opens it" in request.context:
            return Reading((Answer("q", "open"),))
        # the note names alpha, so it concerns that node when the search begins again
        return Reading(notes="alpha: bravo opens it") if request.node.id == "bravo" else None

    reader = Reader(read)
    result = run(tree, reader)
    assert (result.answer, result.ended) == ("open", "answered")
    assert [n for n, _ in reader.read_nodes] == ["alpha", "bravo", "charlie", "alpha"]
    assert len(events(result, "restart")) == 1
    assert result.usage.reads == 4


def test_known_reads_are_taken_from_the_journal_after_a_restart() -> None:
    tree = tree_of({"a": "text a", "b": "text b"})
    reader = Reader(lambda r: Reading(notes="something") if r.node.id == "a" else None)
    result = run(tree, reader, limits=Limits(restarts=2))
    assert [n for n, _ in reader.read_nodes] == ["a", "b"]
    assert [(e.node, e.data["known"]) for e in events(result, "read")] == [
        ("a", False),
        ("b", False),
        ("a", True),
        ("b", True),
    ]
    assert len(events(result, "restart")) == 1  # nothing was learned the second time


def test_restarts_are_bounded() -> None:
    tree = tree_of({"a": "text a", "b": "text b"})
    count = 0

    def read(request: ReadRequest) -> Reading:
        nonlocal count
        count += 1
        return Reading(notes=f"something about {count}", new_questions=(f"n{count}",))

    for restarts in (0, 1, 3):
        count = 0
        result = run(tree, Reader(read), limits=Limits(restarts=restarts, depth=0))
        assert len(events(result, "restart")) <= restarts
        assert result.ended == "exhausted"


def test_a_part_of_a_known_read_is_not_counted_twice() -> None:
    tree = tree_of({"a": "text a", "b": "text b"})

    def read(request: ReadRequest) -> Reading:
        if request.node.id == "a":
            return Reading((Answer("q", "half", complete=False),))
        return Reading(notes="a note")

    reader = Reader(read)
    result = run(tree, reader)
    assert len(events(result, "restart")) == 1
    assert result.answers[0].answer == "half"
    assert len(result.answers[0].sources) == 1


def test_only_facts_that_concern_a_node_are_shown_to_its_reader() -> None:
    tree = tree_of({"alpha": "text a", "bravo": "text b", "other": "text o"})

    def read(request: ReadRequest) -> Reading | None:
        if request.node.id == "alpha" and request.questions == ("q",):
            return Reading(new_questions=("n",))
        if request.node.id == "other" and request.questions == ("n",):
            return Reading((Answer("n", "see bravo"),))
        return None

    reader = Reader(read)
    run(tree, reader)
    contexts = {r.node.id: r.context for r in reader.requests if r.questions == ("q",)}
    assert "see bravo" in contexts["alpha"]  # it asked
    assert "see bravo" in contexts["bravo"]  # it is named
    assert "see bravo" not in contexts["other"]


def test_a_second_look_comes_once_and_can_be_switched_off() -> None:
    def choose(request: RouteRequest) -> Any:
        return None

    tree = tree_of({"a": {"a1": "text a1", "a2": "text a2"}, "b": "text b"})
    result = run(tree, Reader(lambda r: None), router=FunctionRouter(choose))
    assert len(events(result, "second_look")) == 1
    assert result.ended == "exhausted"
    result = run(tree, Reader(lambda r: None), router=FunctionRouter(choose), second_look=False)
    assert (len(events(result, "second_look")), result.ended) == (0, "exhausted")


def test_a_second_look_offers_what_was_ruled_out_and_nothing_that_was_read() -> None:
    from metatree import RouteDecision

    tree = tree_of({"a": {"a1": "text a1", "a2": "text a2"}, "b": "text b", "c": "text c"})
    router = FunctionRouter(
        lambda r: (
            RouteDecision("b", {"a": "no"})
            if len(router.requests) == 1
            else RouteDecision(r.options[0].id, {})
        )
    )
    reader = Reader(lambda r: Reading((Answer("q", "yes"),)) if r.node.id == "a2" else None)
    result = run(tree, reader, router=router)
    assert [n for n, _ in reader.read_nodes] == ["b", "c", "a1", "a2"]
    assert result.answer == "yes"


def test_independent_questions_in_parallel_give_the_answers_of_one_after_another() -> None:
    import asyncio

    shape: Any = {b: {b + n: f"text {b}{n}" for n in "123"} for b in "abc"}
    questions = [f"{b}{n}?" for b in "abc" for n in "13"]
    at_once = most = 0

    class Slow:
        async def read(self, request: ReadRequest) -> Reading:
            nonlocal at_once, most
            at_once += 1
            most = max(most, at_once)
            await asyncio.sleep(0.002)
            at_once -= 1
            known = f"{request.node.id}?"
            return Reading((Answer(known, request.content),)) if known in request.questions else Reading()

    def ask(concurrency: int) -> SearchResult:
        return run(tree_of(shape), Slow(), questions, concurrency=concurrency)  # type: ignore[arg-type]

    one, four = ask(1), ask(4)
    assert one.answers == four.answers
    assert one.answer == four.answer
    assert [e.data["questions"] for e in events(four, "frame")] == [[q] for q in questions]
    assert most == 4
