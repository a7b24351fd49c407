"""Function tools: their schemas, their calls, and an agent of the OpenAI Agents SDK that uses them for real."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import pytest
from metatree_agents import FunctionTool, function_tools
from metatree_agents.tools.functions import NAMES
from metatree_memory_tools import build_tree
from openai import AsyncOpenAI

from agents import OpenAIChatCompletionsModel, Runner, set_tracing_disabled
from metatree import Tree, UserError, memories
from metatree.testing._model_server import ModelRequest, ModelServer, Reply

pytestmark = pytest.mark.integration

EXAMPLE = Path(__file__).parents[3] / "examples" / "agents_sdk" / "shop_helper.py"


@pytest.fixture
def tree(project: Path) -> Tree:
    return build_tree(project)


def _by_name(tree: Tree, **options: Any) -> dict[str, FunctionTool]:
    given = {"only": [*NAMES, "forget"], **options}
    return {tool.name: tool for tool in function_tools(tree, **given)}


def test_schemas_are_what_models_take(tree: Tree) -> None:
    tools = _by_name(tree)
    assert [tool.name for tool in function_tools(tree)] == list(NAMES) and len(NAMES) == 10
    for tool in tools.values():
        function = tool.schema["function"]
        assert tool.schema["type"] == "function" and function["description"]
        assert function["parameters"]["type"] == "object"
        assert function["parameters"]["additionalProperties"] is False
        properties = function["parameters"]["properties"]
        assert all(about.get("description") for name, about in properties.items() if name != "max_tokens")
        assert tool.response_schema["name"] == tool.name
        json.dumps(tool.schema)
    assert tools["remember"].parameters["required"] == ["text"]


def test_what_does_not_fit_says_how_many_tokens_would(tree: Tree) -> None:
    tools = _by_name(tree)

    def called(name: str, **arguments: Any) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(tools[name].call(arguments))
        return answer

    issue = "Declined credit card is charged again"
    found = called("context", issue=issue, max_tokens=55)
    wanted = re.search(r"the best is (\S+):\d+-\d+; for it: max_tokens of (\d+) or more", found["empty"])
    assert found["ranges"] == [] and wanted is not None
    enough = called("context", issue=issue, max_tokens=int(wanted[2]))
    assert wanted[1] in [each["path"] for each in enough["ranges"]]

    cut = called("read", node="src/shop/payment.py", max_tokens=51)
    assert cut["cut"] == "cut: no line fits; for one: max_tokens of 200 or more"
    assert called("read", node="src/shop/payment.py", max_tokens=200)["last_line"] > 1


def _without_titles(schema: Any) -> Any:
    return {name: {k: v for k, v in about.items() if k != "title"} for name, about in schema.items()}


def test_functions_and_mcp_are_the_same_tools(tree: Tree) -> None:
    from mcp import Client
    from metatree_agents.tools.mcp_server import mcp_server
    from metatree_agents.tools.toolkit import Toolkit

    functions = _by_name(tree, only=NAMES)

    async def compare() -> None:
        async with Client(mcp_server(Toolkit(tree))) as client:
            listed = (await client.list_tools()).tools
            assert [tool.name for tool in listed] == list(functions)
            for tool in listed:
                function = functions[tool.name]
                assert tool.description == function.description
                assert tool.input_schema.get("required") == function.parameters.get("required")
                properties = tool.input_schema["properties"]
                assert _without_titles(properties) == _without_titles(function.parameters["properties"])
            for name, arguments in (
                ("search", {"query": "refunds", "k": 2}),
                ("ask", {"questions": ["When are refunds paid?"]}),
                ("ask", {"questions": ["Which refunds did Napoleon get at Waterloo?"]}),
                ("read", {"node": "docs/guide.md", "lines": "2-4"}),
                ("browse", {}),
                ("remember", {"text": "Ann handles refunds", "who": "ann"}),
            ):
                told = (await client.call_tool(name, arguments)).structured_content
                called = json.loads(await functions[name].acall(arguments))
                assert told is not None and list(told) == list(called)
                if name == "remember":
                    assert (told["id"], told["known"], called["known"]) == (called["id"], False, True)
                else:
                    varies = {"run": "", "basis": None}
                    assert {**told, **varies} == {**called, **varies}, name

    asyncio.run(compare())


def test_an_open_question_comes_with_short_passages_that_are_closest(project: Path) -> None:
    unsaid = "Which zeppelin carried the otter?"
    song = "\n".join(["# Songs", "", *["la " * 20] * 40, "The otter sings.", *["la " * 20] * 40])
    (project / "docs" / "songs.md").write_text(song, encoding="utf-8")
    (ask,) = function_tools(build_tree(project), only=["ask"])
    asked = json.loads(ask(questions=[unsaid, "When are refunds paid?", "xylophone quokka?"]))
    assert asked["open_questions"] == [unsaid, "xylophone quokka?"]
    assert {passage["question"] for passage in asked["closest"]} == {unsaid}
    first = asked["closest"][0]
    assert first["place"] == "docs/songs.md"
    assert "The otter sings." in first["quote"].split("\n")
    start, _, end = first["lines"].partition("-")
    assert 1 <= int(start) <= 43 <= int(end)
    assert all(len(passage["quote"]) <= 410 for passage in asked["closest"])


def test_calls(tree: Tree) -> None:
    tools = _by_name(tree, prefix="shop_", who="the bot")
    asked = json.loads(tools["shop_ask"].call('{"questions": ["When are refunds paid?"]}'))
    assert asked["answer"] == "Refunds are paid within 14 days."
    kept = json.loads(tools["shop_remember"](text="Ann handles refunds"))
    assert memories(tree)[0].provenance["who"] == "the bot"
    assert json.loads(tools["shop_search"](query="who handles refunds", k=1))["nodes"][0]["id"] == kept["id"]
    assert json.loads(tools["shop_forget"](node=kept["id"]))["forgotten"] == [kept["id"]]


def test_reading_a_file_gives_all_of_it_and_a_folder_a_list(tree: Tree, project: Path) -> None:
    read = _by_name(tree)["read"]
    whole = (project / "src/shop/cart.py").read_text()
    assert json.loads(read(node="src/shop/cart.py"))["text"] == whole.rstrip("\n")
    parts, lines = [], "1-"
    while lines:
        page = json.loads(read(node="src/shop/cart.py", lines=lines, max_tokens=150))
        parts.append(page["text"])
        lines = page["cut"].partition("lines ")[2].partition(",")[0]
    assert len(parts) > 2 and "\n".join(parts) == whole.rstrip("\n")
    assert "docs/guide.md  guide.md" in json.loads(read(node="docs"))["text"]
    assert "def add" in json.loads(read(node="src/shop/cart.py::Cart"))["text"]


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("ask", "not json", "are no JSON"),
        ("ask", "[1]", "arguments of ask are wrong"),
        ("ask", '{"questions": 3}', "questions: Input should be a valid list"),
        ("ask", "{}", "questions: Field required"),
        ("read", '{"node": "nowhere"}', "no node 'nowhere'"),
        ("read", '{"node": ".", "path": "/etc"}', "path: Extra inputs are not permitted"),
        ("browse", '{"limit": 0}', "limit: Input should be greater"),
        ("forget", '{"node": "src"}', "only what was added can be forgotten"),
    ],
)
def test_errors_are_reported_to_the_model(tree: Tree, name: str, arguments: str, message: str) -> None:
    assert message in json.loads(_by_name(tree)[name].call(arguments))["error"]


def test_one_question_needs_no_list(tree: Tree) -> None:
    asked = _by_name(tree)["ask"].call('{"questions": "Within how many days are refunds paid?"}')
    assert json.loads(asked)["answer"] == "Refunds are paid within 14 days."


def test_only_some_tools(tree: Tree) -> None:
    assert list(_by_name(tree, only=["read"])) == ["read"]
    with pytest.raises(UserError, match="choose from ask"):
        function_tools(tree, only=["write"])


def test_an_agent_of_the_openai_agents_sdk_answers_from_the_tree_and_remembers(tree: Tree) -> None:
    """The example, run with a model that is played: it asks, remembers, and then answers with what came back."""
    spec = importlib.util.spec_from_file_location("shop_helper", EXAMPLE)
    assert spec is not None and spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    results: list[dict[str, Any]] = []

    def call(number: int, name: str, **arguments: Any) -> Reply:
        function = {"name": name, "arguments": json.dumps(arguments)}
        calls = [{"id": f"c{number}", "type": "function", "function": function}]
        return _completion({"role": "assistant", "content": None, "tool_calls": calls})

    def model(request: ModelRequest) -> Reply:
        said = [json.loads(m["content"]) for m in request.body["messages"] if m["role"] == "tool"]
        results[:] = said
        if not said:
            assert [t["function"]["name"] for t in request.body["tools"]] == ["ask", "read", "remember"]
            return call(1, "ask", questions=["When are refunds paid?"])
        if len(said) == 1:
            return call(2, "remember", text="Somebody asked about refunds", who="the helper")
        return _completion({"role": "assistant", "content": f"{said[0]['answer']} ({said[1]['id']})"})

    set_tracing_disabled(True)
    with ModelServer(model) as server:

        async def main() -> str:
            client = AsyncOpenAI(base_url=server.url, api_key="none")
            agent = example.helper(tree, OpenAIChatCompletionsModel("stub", client))
            done = await Runner.run(agent, "When do I get my money back?")
            await client.close()
            return str(done.final_output)

        answer = asyncio.run(main())
    (memory,) = memories(tree)
    assert answer == f"Refunds are paid within 14 days. ({memory.id})"
    assert results[0]["answers"][0]["sources"][0]["node"] == "docs/guide.md#refunds"
    assert memory.provenance["who"] == "the helper"


def _completion(message: dict[str, Any]) -> Reply:
    finish = "tool_calls" if message.get("tool_calls") else "stop"
    body = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": "stub",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }
    return Reply(raw=json.dumps(body))
