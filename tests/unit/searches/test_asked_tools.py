"""Tools that a question asks for outright are called before a passage may close it."""

from __future__ import annotations

from typing import Any

import pytest

from metatree import Node, SearchResult, Tool, Tree, plugins, resume, search, tool
from metatree.durable import MemoryJournal
from metatree.testing.parts import FunctionRouter, ScriptedReader, ScriptedToolCaller, tree_of

FIELDS = "\n".join(
    ["# TODO comments are counted by nobody: fields.py has too many.", "a = 1  # TODO", "b = 2"]
)
HOW_MANY = "How many TODO comments has fields.py?"


def tree() -> Tree:
    notes = "There are seven TODO comments in fields.py, somebody said."
    return tree_of({"fields.py": FIELDS, "notes.md": notes, "forms.py": "c = 3"})


def counter(calls: list[str], gives: Any = None, **given: Any) -> Tool:
    @tool(kind="exploratory", **given)
    def count_todos(node: Node) -> str:
        "Count the TODO comments of a file."
        calls.append(node.id)
        if isinstance(gives, Exception):
            raise gives
        return f"{(node.content or '').count('# TODO')} TODO comments" if gives is None else str(gives)

    return count_todos


def ask(question: str, *tools: Tool, **given: Any) -> SearchResult:
    return search(question, tree=tree(), tools=tools, **given)


@pytest.mark.parametrize("sure", [None, 0.5])
def test_a_tool_that_says_what_is_asked_of_a_node_that_is_named_answers(sure: float | None) -> None:
    calls: list[str] = []
    found = ask(HOW_MANY, counter(calls), sure=sure)
    assert found.answer == "2 TODO comments"
    assert found.ended == "answered"
    assert calls == ["fields.py"]
    assert found.answers[0].sources[0].node == "fields.py"


def test_a_tool_of_a_plug_in_is_asked_too(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    known = plugins.loaders

    def loaders(group: str) -> Any:
        return [("todos", lambda: counter(calls))] if group == plugins.TOOLS else known(group)

    monkeypatch.setattr(plugins, "loaders", loaders)
    assert ask(HOW_MANY).answer == "2 TODO comments"
    assert calls == ["fields.py"]


@pytest.mark.parametrize(
    "question",
    [
        "How many TODO comments are there?",  # no node is named
        "Why has fields.py TODO comments?",
        "Who wrote the TODO comments on sessions in fields.py?",
    ],
)
def test_a_tool_that_was_not_asked_for_is_not_called_first(question: str) -> None:
    found = ask(question, counter([]))
    assert "2 TODO comments" not in found.answer


@pytest.mark.parametrize(
    "gives", [ValueError("no such file"), "", "No TODO comments were found", "Error: gone"]
)
def test_a_tool_that_fails_or_finds_nothing_is_no_answer_and_a_passage_may_be(gives: Any) -> None:
    calls: list[str] = []
    found = ask(HOW_MANY, counter(calls, gives), sure=None)
    assert calls[0] == "fields.py"
    assert found.ended == "answered"
    assert found.answers[0].sources[0].quote in FIELDS


def test_a_tool_that_changes_something_is_not_called_first() -> None:
    calls: list[str] = []
    ask(HOW_MANY, counter(calls, changes=True), permit=lambda tool, arguments: False)
    assert calls == []


def test_a_tool_says_itself_where_it_answers_and_its_answer_is_for_that_question_alone() -> None:
    calls: list[str] = []

    def first_on(tree: Tree, question: str) -> list[Node]:
        return [tree.get("forms.py")] if "weather" in question else []

    weather = counter(calls, "sunny", first_on=first_on)
    found = search(
        ["What is the weather?", "Who counts TODO comments?"], tree=tree(), tools=[weather], sure=None
    )
    assert calls == ["forms.py"]
    answers = {answer.question: answer.answer for answer in found.answers}
    assert answers["What is the weather?"] == "sunny"
    assert "sunny" not in answers.get("Who counts TODO comments?", "")


def test_a_tool_that_cannot_say_where_it_answers_is_passed_by() -> None:
    def first_on(tree: Tree, question: str) -> list[Node]:
        raise RuntimeError("broken")

    calls: list[str] = []
    found = ask(HOW_MANY, counter(calls, first_on=first_on), sure=None)
    assert found.ended == "answered"


def test_a_router_that_thinks_for_itself_decides_on_tools() -> None:
    calls: list[str] = []
    ask(
        HOW_MANY,
        counter(calls),
        router=FunctionRouter(lambda request: None),
        reader=ScriptedReader({}),
        tool_caller=ScriptedToolCaller({}),
        second_look=False,
    )
    assert calls == []


def test_a_call_that_was_made_is_not_made_again_when_the_run_is_resumed() -> None:
    calls: list[str] = []
    journal, there = MemoryJournal(), tree()
    first = search(HOW_MANY, tree=there, tools=[counter(calls)], journal=journal, run_id="r")
    again = resume("r", tree=there, tools=[counter(calls)], journal=journal)
    assert first.answer == again.answer == "2 TODO comments"
    assert calls == ["fields.py"]
