"""Step 8: the chain that runs when the tree is exhausted, and the person at its end."""

from __future__ import annotations

from typing import Any

import pytest

from metatree import (
    Answer,
    FallbackRequest,
    FallbackResult,
    Limits,
    Node,
    Reading,
    ReadRequest,
    SearchResult,
    Tree,
    UserError,
    ask_person,
    load_run,
    resume,
    runs,
    search,
)
from metatree.testing.parts import FunctionRouter, PlainComposer, ScriptedReader, tree_of


def parts(reader: Any = None) -> dict[str, Any]:
    return {
        "router": FunctionRouter(lambda request: request.options[0].id),
        "reader": reader or ScriptedReader({}),
        "composer": PlainComposer(),
        "evidence": False,
    }


def run(tree: Tree, questions: Any = "q", reader: Any = None, **given: Any) -> SearchResult:
    return search(questions, tree=tree, **parts(reader), **given)


def events(result: SearchResult, name: str) -> list[Any]:
    return [entry for entry in result.trace if entry.event == name]


def test_the_chain_runs_in_order_until_an_answer_comes() -> None:
    calls: list[Any] = []

    def nothing(request: FallbackRequest) -> None:
        calls.append(("nothing", request.questions, request.context))

    async def broken(request: FallbackRequest) -> None:
        calls.append("broken")
        raise OSError("no net")

    async def web(request: FallbackRequest) -> FallbackResult:
        calls.append("web")
        return FallbackResult(answers=[Answer("Q", "from the web", "a quote")])

    def never(request: FallbackRequest) -> None:
        raise AssertionError

    result = run(tree_of({"a": "text"}), context="hints", fallbacks=[nothing, broken, web, never])
    assert (result.ended, result.answer) == ("answered", "from the web")
    assert calls == [("nothing", ("q",), "hints"), "broken", "web"]
    assert [e.reason for e in events(result, "fallback")] == [
        "the tree is exhausted: fallback 1",
        "the tree is exhausted: fallback 2",
        "it failed: OSError: no net",
        "the tree is exhausted: fallback 3",
    ]


def test_new_nodes_are_added_and_searched_and_the_rest_stays_marked() -> None:
    tree = tree_of({"a": "text a", "b": {"b1": "text b1"}})

    def web(request: FallbackRequest) -> FallbackResult:
        return FallbackResult(nodes=[Node("new", "New", content="page")], parent="b")

    reader = ScriptedReader({"new": {"q": "found"}})
    result = run(tree, reader=reader, fallbacks=[web])
    assert result.answer == "found"
    assert [r.node.id for r in reader.requests] == ["a", "b1", "new"]
    assert tree.parent("new") == "b"
    assert tree.get("new").provenance["run"] == result.run_id


def test_a_node_alone_is_added_under_the_root() -> None:
    tree = tree_of({"a": "text a"})
    run(tree, fallbacks=[lambda request: Node("a", "Another a", content="page")])
    ids = [node.id for node in tree.children()]
    assert ids[0] == "a"
    assert ids[1].startswith("a~")  # its id was taken


@pytest.mark.parametrize(
    "result",
    [
        5,
        "text",
        FallbackResult(nodes=["x"]),  # type: ignore[list-item]
        FallbackResult(answers=["x"]),  # type: ignore[list-item]
        FallbackResult(nodes=[Node("n", "n")], parent="gone"),
    ],
)
def test_a_fallback_that_returns_something_else_is_passed_by(result: Any) -> None:
    tree = tree_of({"a": "text a"})
    outcome = run(tree, fallbacks=[lambda request: result])
    assert outcome.ended == "exhausted"
    assert events(outcome, "fallback")[1].reason.startswith("it failed: ")
    assert len(tree) == 2


def test_a_fallback_may_not_make_more_nodes_than_the_limit() -> None:
    tree = tree_of({"a": "text a"})
    many = FallbackResult(nodes=[Node(f"n{i}", f"n{i}") for i in range(9)])
    result = run(tree, fallbacks=[lambda request: many], limits=Limits(nodes_created=3))
    assert len(tree) == 5
    assert events(result, "dropped")[0].reason == "no more nodes may be made: 6 left out"


def test_a_person_is_asked_last_and_the_answer_comes_with_resume() -> None:
    tree = tree_of({"a": "text a"})
    result = run(tree, ["What is it?", "And why?"], fallbacks=[lambda request: None, ask_person], run_id="r")
    assert (result.ended, result.detail) == ("waiting", "What is it?; And why?")
    assert result.open_questions == ("What is it?", "And why?")
    assert (runs(tree=tree)[0].ended, load_run("r", tree=tree).detail) == ("waiting", result.detail)

    chain: Any = [lambda request: None, ask_person]
    still = resume("r", tree=tree, fallbacks=chain, **parts())
    assert (still.ended, still.trace) == ("waiting", result.trace)
    half = resume("r", tree=tree, fallbacks=chain, answers={"what is  IT?": "a thing"}, **parts())
    assert (half.ended, half.answer, half.detail) == ("waiting", "a thing", "And why?")
    done = resume("r", tree=tree, fallbacks=chain, answers={"And why?": "because"}, **parts())
    assert (done.ended, done.answer) == ("answered", "a thing\nbecause")
    assert done.answers[0].sources[0].title == "a person"
    assert [e.reason for e in events(done, "person")] == ["answered", "answered"]


def test_a_person_may_decline() -> None:
    tree = tree_of({"a": "text a"})
    run(tree, fallbacks=[ask_person], run_id="r")
    done = resume("r", tree=tree, fallbacks=[ask_person], answers={"q": "  "}, **parts())
    assert (done.ended, done.open_questions) == ("exhausted", ("q",))


def test_an_answer_to_a_question_that_was_not_asked_is_wrong_use_and_holds_nothing() -> None:
    tree = tree_of({"a": "text a"})
    run(tree, fallbacks=[ask_person], run_id="r")
    with pytest.raises(UserError, match="did not ask 'z'; it waits for: q"):
        resume("r", tree=tree, fallbacks=[ask_person], answers={"z": "x"}, **parts())
    assert resume("r", tree=tree, fallbacks=[ask_person], answers={"q": "x"}, **parts()).answer == "x"


def test_one_answer_serves_all_who_asked_the_same() -> None:
    def read(request: ReadRequest) -> Reading:
        return Reading() if "shared" in request.questions else Reading(new_questions=("shared",))

    class Reader:
        async def read(self, request: ReadRequest) -> Reading:
            return read(request)

    tree = tree_of({"a": "text a"})
    result = run(tree, ["q", "r"], Reader(), fallbacks=[ask_person], concurrency=2, run_id="x")
    assert result.detail == "shared; shared"
    more = resume("x", tree=tree, fallbacks=[ask_person], answers={"shared": "yes"}, **parts(Reader()))
    assert (more.ended, more.detail) == ("waiting", "q; r")


def test_nested_questions_reach_the_person_and_go_back_to_where_they_came_up() -> None:
    class Reader:
        async def read(self, request: ReadRequest) -> Reading:
            if request.questions == ("q",):
                if "blue" in request.context:
                    return Reading((Answer("q", "so it is blue"),))
                return Reading(new_questions=("Which colour?",))
            return Reading()

    tree = tree_of({"a": "text a"})
    result = run(tree, reader=Reader(), fallbacks=[ask_person], run_id="r")
    assert result.detail == "Which colour?"
    done = resume(
        "r", tree=tree, fallbacks=[ask_person], answers={"Which colour?": "blue"}, **parts(Reader())
    )
    assert (done.ended, done.answer) == ("answered", "so it is blue")


def test_a_run_resumed_without_its_fallbacks_fails_and_says_so() -> None:
    tree = tree_of({"a": "text a"})
    run(tree, fallbacks=[lambda request: None], limits=Limits(reads=0), run_id="r")
    failed = resume("r", tree=tree, limits=Limits(), **parts())
    assert failed.ended == "failed"
    assert "give the fallbacks that the run was begun with" in failed.detail
    assert resume("r", tree=tree, fallbacks=[lambda request: None], **parts()).ended == "exhausted"


def action_tree() -> Tree:
    tree = Tree.create(":memory:")
    tree.add(Node("mail", "Mail", "Send and read mail", kind="group"))
    tree.add(Node("send", "Send a mail", "To one person", kind="action"), parent="mail")
    tree.add(Node("files", "Files", "Copy and delete", kind="group"))
    tree.add(Node("copy", "Copy a file", "", kind="action"), parent="files")
    return tree


def test_actions_are_chosen_and_not_read() -> None:
    router = FunctionRouter(lambda request: request.options[0].id)
    result = search(
        "send it", tree=action_tree(), returns="nodes", k=1, accept=["action"], router=router, evidence=False
    )
    assert [(n.id, n.title) for n in result.nodes] == [("send", "Send a mail")]
    assert (result.ended, result.answer) == ("answered", "")


def test_an_action_that_is_missing_is_made_by_the_fallback() -> None:
    tree = action_tree()
    router = FunctionRouter(lambda request: None)

    def make(request: FallbackRequest) -> FallbackResult:
        (question,) = request.questions
        return FallbackResult(
            nodes=[Node("print", question, "Made for a wish", kind="action")], parent="files"
        )

    given: Any = {"returns": "nodes", "k": 1, "accept": ["action"], "router": router, "evidence": False}
    result = search("print it", tree=tree, fallbacks=[make], **given)
    assert [n.id for n in result.nodes] == ["print"]
    assert tree.parent("print") == "files"
    assert result.ended == "answered"


def test_a_fallback_is_not_asked_when_nodes_were_collected() -> None:
    def never(request: FallbackRequest) -> None:
        raise AssertionError

    router = FunctionRouter(lambda request: request.options[0].id)
    result = search(
        "x", tree=action_tree(), returns="nodes", k=9, router=router, evidence=False, fallbacks=[never]
    )
    assert (len(result.nodes), result.ended) == (2, "answered")
