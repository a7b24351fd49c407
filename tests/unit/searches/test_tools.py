"""Steps 5 and 6: the tools of a node, and calls that are not made twice."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime
from typing import Any

import pytest

from metatree import (
    Answer,
    Limits,
    Node,
    Reading,
    SearchResult,
    ToolGroup,
    Tree,
    resume,
    search,
    tool,
)
from metatree.testing.parts import (
    FunctionRouter,
    PlainComposer,
    PlainDescriber,
    ScriptedReader,
    ScriptedToolCaller,
    tree_of,
)
from metatree.tools.tool import Tool

WRONG: Any = 5


def run(tree: Tree, tools: Any, questions: Any = "q", **given: Any) -> SearchResult:
    given.setdefault("router", FunctionRouter(lambda request: request.options[0].id))
    given.setdefault("reader", ScriptedReader({}))
    given.setdefault("tool_caller", ScriptedToolCaller({"look": {}, "fetch": {}}))
    return search(
        questions,
        tree=tree,
        tools=tools,
        composer=PlainComposer(),
        describer=PlainDescriber(),
        evidence=False,
        **given,
    )


def events(result: SearchResult, name: str) -> list[Any]:
    return [entry for entry in result.trace if entry.event == name]


def exploratory(function: Any = None, **given: Any) -> Tool:
    calls = given.pop("calls", [])
    given.setdefault("kinds", ["note"])

    def look(node: Node) -> str:
        calls.append(node.id)
        return "the tool says forty-two" if function is None else function(node)

    return tool(kind="exploratory", name="look", **given)(look)


def interactive(calls: list[str] | None = None, **given: Any) -> Tool:
    def fetch(node: Node) -> Node:
        if calls is not None:
            calls.append(node.id)
        return Node(
            id=given.get("id", ""), title=given.get("title", ""), content=f"page below {node.id}", kind="page"
        )

    return tool(kind="interactive", name="fetch", kinds=given.get("kinds", ["note"]))(fetch)


class ReadsTool(ScriptedReader):
    """Answers from what a tool said."""

    async def read(self, request: Any) -> Reading:
        self.requests.append(request)
        if "forty-two" in request.content:
            return Reading((Answer("q", "42", "forty-two"),))
        return Reading(useful=False)


def test_an_exploratory_result_is_read_at_the_node_it_worked_on() -> None:
    reader = ReadsTool({})
    result = run(tree_of({"a": {"a1": "text"}}), [exploratory()], reader=reader)
    assert (result.answer, result.ended) == ("42", "answered")
    assert [r.content for r in reader.requests] == ["text", "the tool says forty-two"]
    assert (result.answers[0].sources[0].node, result.answers[0].sources[0].quote) == ("a1", "forty-two")
    assert result.usage.tool_calls == 1


def test_tools_come_after_content_and_children() -> None:
    reader = ScriptedReader({})
    look = exploratory(lambda node: f"looked at {node.id}")
    run(tree_of({"a": ("own", {"a1": "text"})}), [look], reader=reader)
    assert [(r.node.id, r.content) for r in reader.requests] == [
        ("a", "own"),
        ("a1", "text"),
        ("a1", "looked at a1"),
        ("a", "looked at a"),
    ]


def test_only_viable_tools_are_offered() -> None:
    @tool(kind="exploratory", kinds=["table"])
    def rows(node: Node) -> str:
        raise AssertionError("not for notes")

    result = run(tree_of({"a": "text"}), [rows])
    assert events(result, "tool") == []


def test_several_tools_are_routed_like_nodes_and_one_in_a_group_is_entered_without_asking() -> None:
    @tool(kind="exploratory", description="Say what is beside it.")
    def beside(node: Node) -> str:
        return "forty-two"

    group = ToolGroup(
        "web", "Web", "Pages", [exploratory(lambda node: "nothing"), ToolGroup("in", "In", "", [beside])]
    )

    @tool(kind="exploratory")
    def never(node: Node) -> str:
        raise AssertionError

    router = FunctionRouter(lambda request: "web" if request.options[0].id == "web" else "in")
    caller = ScriptedToolCaller({"beside": {}})
    result = run(
        tree_of({"a": "text"}), [group, never], router=router, reader=ReadsTool({}), tool_caller=caller
    )
    assert result.answer == "42"
    assert [[(o.id, o.title, o.description) for o in r.options] for r in router.requests] == [
        [("web", "Web", "Pages"), ("never", "never", "never")],
        [("look", "look", "look"), ("in", "In", "")],
    ]
    assert [r.node.id for r in router.requests] == ["a", "a"]
    assert [r.tool.id for r in caller.requests] == ["beside"]


def test_a_router_may_rule_all_tools_out() -> None:
    calls: list[str] = []

    @tool(kind="exploratory")
    def other(node: Node) -> str:
        raise AssertionError

    result = run(
        tree_of({"a": "text"}), [exploratory(calls=calls), other], router=FunctionRouter(lambda request: None)
    )
    assert (result.ended, calls) == ("exhausted", [])


def test_arguments_are_validated_and_the_error_is_shown() -> None:
    seen: list[Any] = []

    @tool(kind="exploratory")
    def grep(node: Node, pattern: str, lines: int = 20) -> str:
        "Find lines."
        seen.append((pattern, lines, node.content))
        return "forty-two"

    caller = ScriptedToolCaller(
        {"grep": [{"lines": "many"}, {"pattern": "x", "deep": 1}, {"pattern": "x", "lines": "3"}]}
    )
    result = run(tree_of({"a": "text"}), [grep], tool_caller=caller, reader=ReadsTool({}))
    assert result.answer == "42"
    assert seen == [("x", 3, "text")]
    assert [len(r.errors) for r in caller.requests] == [0, 1, 2]
    assert "pattern: Field required" in caller.requests[1].errors[0]
    assert "lines: Input should be a valid integer" in caller.requests[1].errors[0]
    assert "deep: Extra inputs are not permitted" in caller.requests[2].errors[1]
    assert caller.requests[0].tool.schema["required"] == ["pattern"]
    assert events(result, "tool")[0].data["arguments"] == {"pattern": "x", "lines": 3}


def test_a_tool_without_arguments_that_fit_is_unviable() -> None:
    @tool(kind="exploratory")
    def grep(node: Node, pattern: str) -> str:
        raise AssertionError

    result = run(tree_of({"a": "text"}), [grep], tool_caller=ScriptedToolCaller({"grep": {}}))
    entry = events(result, "tool")[0]
    assert entry.data["mark"] == "unviable"
    assert entry.reason.startswith("no arguments: pattern: Field required")


def test_an_interactive_tool_makes_a_node_that_is_described_joined_and_searched() -> None:
    tree = tree_of({"a": "text"})
    reader = ScriptedReader({})
    result = run(tree, [interactive()], reader=reader, run_id="r1")
    (made,) = tree.children("a")
    assert (made.title, made.description, made.kind) == ("page below a", "page below a", "page")
    assert made.id.startswith("a~")
    assert {k: made.provenance[k] for k in ("tool", "version", "arguments", "run", "under")} == {
        "tool": "fetch",
        "version": "1",
        "arguments": {},
        "run": "r1",
        "under": "a",
    }
    assert tree.links("a") == [("tool:fetch", made.id)]
    assert [r.node.id for r in reader.requests] == ["a", made.id]
    assert [e.node for e in events(result, "create")] == [made.id]


def test_a_title_that_the_tool_gives_is_kept_and_the_rest_is_described() -> None:
    tree = tree_of({"a": "text"})
    run(tree, [interactive(title="Given")])
    (made,) = tree.children("a")
    assert (made.title, made.description) == ("Given", "page below a")


def test_an_id_that_another_node_has_is_changed() -> None:
    tree = tree_of({"a": "text", "taken": "text"})
    run(tree, [interactive(id="taken", kinds=["note"])], start_node="a")
    assert [n.id.partition("~")[0] for n in tree.children("a")] == ["taken"]
    assert tree.get("taken").content == "text"


def test_a_tool_that_fails_is_unviable_and_the_search_goes_on() -> None:
    def broken(node: Node) -> str:
        raise SystemExit(3) if node.id == "a" else KeyError("x")

    result = run(tree_of({"a": "text", "b": "text b"}), [exploratory(broken)])
    assert [(e.data["mark"], e.reason) for e in events(result, "tool")] == [
        ("unviable", "it failed: RuntimeError: SystemExit: 3"),
        ("unviable", "it failed: KeyError: 'x'"),
    ]
    assert result.ended == "exhausted"


@pytest.mark.parametrize(
    "result", ["text", None, 5, Node(id=WRONG, title="x"), Node(id="n", title="n", attributes={"a": {1}})]
)
def test_an_interactive_tool_that_returns_no_node_fails(result: Any) -> None:
    @tool(kind="interactive")
    def fetch(node: Node) -> Any:
        return result

    tree = tree_of({"a": "text"})
    outcome = run(tree, [fetch], start_node="a")
    assert events(outcome, "tool")[0].data["mark"] == "unviable"
    assert tree.children("a") == []


def test_half_characters_from_a_tool_do_not_stop_the_search() -> None:
    @tool(kind="interactive")
    def fetch(node: Node) -> Node:
        return Node(id="", title="bad \ud800", content="worse \udfff")

    tree = tree_of({"a": "text"})
    run(tree, [fetch], start_node="a")
    assert [n.title for n in tree.children("a")] == ["bad ?"]


def test_a_tool_that_changes_something_needs_permission() -> None:
    calls: list[str] = []
    given: dict[str, Any] = {"calls": calls, "changes": True}
    result = run(tree_of({"a": "text"}), [exploratory(**given)])
    assert (calls, events(result, "tool")[0].data["mark"]) == ([], "unviable")
    assert "no permission" in events(result, "tool")[0].reason

    async def never(tool: Tool, arguments: Any) -> bool:  # a coroutine is true, its answer is not
        return False

    requests: list[Any] = []

    def yes(tool: Tool, arguments: Any) -> bool:
        requests.append((tool.id, arguments))
        return True

    def broken(tool: Tool, arguments: Any) -> bool:
        raise RuntimeError("cannot say")

    for permit in (never, broken):
        run(tree_of({"a": "text"}), [exploratory(**given)], permit=permit)
        assert calls == []
    run(tree_of({"a": "text"}), [exploratory(**given)], permit=yes)
    assert (calls, requests) == (["a"], [("look", {})])


def test_long_output_is_cut_and_says_so() -> None:
    reader = ReadsTool({})
    run(tree_of({"a": "text"}), [exploratory(lambda node: "x" * 50, max_chars=20)], reader=reader)
    assert reader.requests[1].content == "x" * 20 + "\n… cut: 30 more characters"


def test_output_that_is_no_text_becomes_json_and_nothing_is_not_read() -> None:
    reader = ReadsTool({})
    run(tree_of({"a": "text"}), [exploratory(lambda node: {"k": [1]})], reader=reader)
    assert reader.requests[1].content == '{\n "k": [\n  1\n ]\n}'
    reader = ReadsTool({})
    run(tree_of({"a": "text"}), [exploratory(lambda node: None)], reader=reader)
    assert len(reader.requests) == 1


def test_a_tool_that_blocks_is_given_up_and_nobody_waits_for_its_thread() -> None:
    ended = threading.Event()

    def block(node: Node) -> str:
        ended.wait(60)
        return "late"

    try:
        began = time.monotonic()
        result = run(tree_of({"a": "text"}), [exploratory(block, timeout_s=0.05)])
        assert time.monotonic() - began < 30
    finally:
        ended.set()
    assert events(result, "tool")[0].reason == "it failed: 'look' gave nothing within 0.05 s"


def test_an_async_tool_and_a_tool_with_the_tree() -> None:
    @tool(kind="exploratory")
    async def count(tree: Tree, node: Node) -> str:
        return f"{len(tree)} nodes, forty-two"

    result = run(
        tree_of({"a": "text"}), [count], reader=ReadsTool({}), tool_caller=ScriptedToolCaller({"count": {}})
    )
    assert result.answer == "42"


def test_calls_are_not_made_twice_in_one_run_nor_in_another() -> None:
    calls: list[str] = []
    tree = tree_of({"a": "text"})
    look = exploratory(calls=calls)
    notes = ScriptedReader({"a": Reading(notes="learned")})  # restarts, and looks again
    first = run(tree, [look], reader=notes)
    assert (calls, len(events(first, "restart"))) == (["a"], 1)
    assert [e.event for e in first.trace if e.event in ("tool", "missed_node")] == ["tool", "missed_node"]
    second = run(tree, [look], reader=ReadsTool({}))
    assert (calls, second.answer, second.usage.tool_calls) == (["a"], "42", 0)
    assert events(second, "missed_node")[0].node == "a"
    when = datetime.now(UTC).strftime("%Y-%m-%d")
    assert events(second, "missed_node")[0].reason.startswith(
        f"this call was made before, by run {first.run_id} on {when}"
    )
    (source,) = second.answers[0].sources
    assert source.title.startswith(f"look, called on {when}") and source.title.endswith("UTC")


def test_an_interactive_call_made_before_leads_to_its_node() -> None:
    calls: list[str] = []
    tree = tree_of({"a": "text"})
    run(tree, [interactive(calls)])
    (made,) = tree.children("a")
    tree.move(made.id, ".")  # somewhere else, where it may be missed
    reader = ScriptedReader({made.id: {"q": "found"}})
    # the router rules it out, so it is missed until the tool that made it leads there
    router = FunctionRouter(lambda request: "a")
    again = run(tree, [interactive(calls)], reader=reader, router=router, start_node="a")
    assert (again.answer, calls) == ("found", ["a"])
    assert [e.node for e in events(again, "missed_node")] == [made.id]
    assert len(tree) == 3


def test_a_changed_node_version_or_scope_is_another_call() -> None:
    calls: list[str] = []
    tree = tree_of({"a": "text"})
    run(tree, [exploratory(calls=calls)])
    tree.update(Node("a", "a", "other words", "text"))
    run(tree, [exploratory(calls=calls)])
    assert len(calls) == 2
    run(tree, [exploratory(calls=calls, version="2")])
    assert len(calls) == 3

    class Permit:
        def __init__(self, scope: str) -> None:
            self.scope = scope

        def __call__(self, tool: Tool, arguments: Any) -> bool:
            return True

    for scope, expected in (("anna", 4), ("anna", 4), ("bert", 5), ("", 5)):
        run(tree, [exploratory(calls=calls, version="2")], permit=Permit(scope))
        assert len(calls) == expected, scope


def test_results_are_reused_for_as_long_as_the_tool_says(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    tree = tree_of({"a": "text"})
    twice = {"a": Reading(notes="learned")}
    for number in (1, 2):
        run(tree, [exploratory(calls=calls, reuse="run")], reader=ScriptedReader(twice))
        assert len(calls) == number  # once a run, though each looks twice
    brief = exploratory(calls=calls, version="brief", reuse=600)
    run(tree, [brief])
    run(tree, [brief])
    assert len(calls) == 3
    tree.memory.clock = lambda: time.time() + 601
    run(tree, [brief])
    assert len(calls) == 4


def test_two_runs_that_interleave_keep_their_own_results() -> None:
    calls: list[str] = []
    tree = tree_of({"a": "text"})
    look = exploratory(calls=calls, reuse="run")

    def also(node: Node) -> str:
        if len(calls) == 1:
            run(tree, [look])  # another run makes the same call in the middle of this one
        return "x"

    other = tool(kind="exploratory", name="also", reuse="run")(also)
    caller = ScriptedToolCaller({"look": {}, "also": {}})
    run(tree, [look, other], reader=ScriptedReader({"a": Reading(notes="n")}), tool_caller=caller)
    assert len(calls) == 2


def test_failures_are_never_reused() -> None:
    calls: list[str] = []
    tree = tree_of({"a": "text"})

    def broken(node: Node) -> str:
        calls.append(node.id)
        raise OSError("no net")

    run(tree, [exploratory(broken)])
    run(tree, [exploratory(broken)])
    assert len(calls) == 2


def test_searches_beside_each_other_make_one_call() -> None:
    calls: list[str] = []

    def slow(node: Node) -> str:
        calls.append(node.id)
        time.sleep(0.1)
        return "forty-two"

    result = run(tree_of({"a": "text"}), [exploratory(slow)], ["q", "r", "s"], concurrency=3)
    assert calls == ["a"]
    assert result.usage.tool_calls == 1


def test_a_call_that_may_not_be_repeated_and_ran_out_of_time_is_put_to_a_person() -> None:
    calls: list[str] = []

    def slow(node: Node) -> str:
        calls.append(node.id)
        if len(calls) == 1:
            late.wait(60)
        return "forty-two"

    for reply, times, ended in (("yes", 2, "answered"), ("no", 1, "exhausted")):
        calls.clear()
        tree = tree_of({"a": "text"})
        once = exploratory(slow, timeout_s=1.0, repeatable=False)
        late = threading.Event()
        parts: dict[str, Any] = {"reader": ReadsTool({}), "tool_caller": ScriptedToolCaller({"look": {}})}
        result = run(tree, [once], run_id="r", **parts)
        assert (result.ended, calls) == ("waiting", ["a"])
        late.set()
        assert result.detail.startswith("A call of look with {} was interrupted and may have happened.")
        done = resume(
            "r",
            tree=tree,
            tools=[once],
            router=FunctionRouter(lambda r: None),
            evidence=False,
            answers={result.detail: reply},
            **parts,
        )
        assert (done.ended, len(calls)) == (ended, times)


def test_tool_calls_are_limited_and_go_on_with_a_larger_limit() -> None:
    calls: list[str] = []
    tree = tree_of({"a": "text a", "b": "text b", "c": "text c"})
    result = run(tree, [exploratory(calls=calls)], limits=Limits(tool_calls=2), run_id="r")
    assert (result.ended, result.detail, calls) == ("limit", "tool_calls", ["a", "b"])
    parts: dict[str, Any] = {"reader": ScriptedReader({}), "tool_caller": ScriptedToolCaller({"look": {}})}
    router = FunctionRouter(lambda request: request.options[0].id)
    done = resume(
        "r",
        tree=tree,
        tools=[exploratory(calls=calls)],
        router=router,
        evidence=False,
        limits=Limits(),
        **parts,
    )
    assert (done.ended, calls) == ("exhausted", ["a", "b", "c"])


def test_a_run_resumed_without_its_tools_fails_and_says_so() -> None:
    tree = tree_of({"a": "text a"})
    run(tree, [exploratory()], limits=Limits(tool_calls=0), run_id="r")
    parts: dict[str, Any] = {
        "reader": ScriptedReader({}),
        "router": FunctionRouter(lambda r: None),
        "evidence": False,
    }
    failed = resume("r", tree=tree, limits=Limits(), **parts)
    assert (failed.ended, failed.detail) == (
        "failed",
        "UserError: there is no tool 'look': give the tools that the run was begun with",
    )
    caller = ScriptedToolCaller({"look": {}})
    assert resume("r", tree=tree, tools=[exploratory()], tool_caller=caller, **parts).ended == "exhausted"


def test_nodes_created_are_limited() -> None:
    tree = tree_of({"a": "text a", "b": "text b", "c": "text c"})
    run(tree, [interactive()], limits=Limits(nodes_created=2))
    assert len(tree) == 6


def test_nothing_is_made_by_tools_when_nodes_are_wanted() -> None:
    calls: list[str] = []
    result = run(tree_of({"a": "text a", "b": "text b"}), [exploratory(calls=calls)], returns="nodes", k=9)
    assert (len(result.nodes), calls) == (2, [])


def test_the_same_node_made_from_two_places_is_one_node() -> None:
    """A commit that is opened from two files hangs below the first of them."""

    @tool(kind="interactive", name="fetch", kinds=["note"])
    def fetch(node: Node) -> Node:
        return Node(id="commit:1", title="a commit", description="d", content="the same", kind="page")

    tree = tree_of({"a": "text of a", "b": "text of b"})
    result = run(tree, [fetch])
    assert [node.id for node in tree.children("a")] + [node.id for node in tree.children("b")] == ["commit:1"]
    assert len(events(result, "create")) == 1
    assert len(events(result, "tool")) == 2
