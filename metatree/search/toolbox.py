"""The part of a search's world that makes things: tool calls, new nodes and fallbacks."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from metatree.calls import Call, CallRecords, call_of
from metatree.errors import BadModelAnswer, ToolFailed
from metatree.fallback import Fallback, FallbackRequest, FallbackResult, _AskPerson
from metatree.kernel import Attempt, Effect, Handler, Policy
from metatree.node import Node
from metatree.protocols import Describer, DescribeRequest, Description, ToolCaller, ToolRequest
from metatree.search.world import model_policy
from metatree.tool import Tool, ToolTree
from metatree.tree import Tree

Permit = Callable[[Tool, Mapping[str, Any]], bool]
"""Decides whether a tool that changes something may be called with these arguments."""


class Toolbox:
    """Handlers for the effects of tools and fallbacks."""

    def __init__(
        self,
        tree: Tree,
        tools: ToolTree,
        *,
        run_id: str,
        tool_caller: ToolCaller,
        describer: Describer,
        permit: Permit | None,
        fallbacks: Sequence[Fallback | _AskPerson],
        accepts: Callable[[Node], bool] | None,
        timeout_s: float,
    ) -> None:
        self._tree = tree
        self._tools = tools
        self._run_id = run_id
        self._tool_caller = tool_caller
        self._describer = describer
        self._permit = permit
        self._fallbacks = fallbacks
        self._accepts = accepts
        self._timeout_s = timeout_s
        self._records = CallRecords(tree.memory)

    def handlers(self) -> dict[str, Handler]:
        """Return the handlers by kind of effect."""
        return {
            "tools": self._list,
            "fill": self._fill,
            "call": self._call,
            "describe": self._describe,
            "insert": self._insert,
            "fallback": self._fallback,
        }

    def policies(self) -> dict[str, Policy]:
        """Return how each kind is tried, timed and counted; a call's time limit is the tool's own."""
        repeatable = all(tool.repeatable for tool in self._tools.tools())
        return {
            "fill": model_policy(self._tool_caller, timeout_s=self._timeout_s),
            "call": Policy(counts=("tool_calls",), repeatable=repeatable),
            "describe": model_policy(self._describer, timeout_s=self._timeout_s),
            "fallback": Policy(timeout_s=self._timeout_s),
        }

    def has_tools(self, node: Node) -> bool:
        """Say whether any tool works on a node."""
        return bool(self._tools) and bool(self._tools.viable("", node))

    def _list(self, effect: Effect, attempt: Attempt) -> dict[str, Any]:
        asked = effect.payload
        node = self._tree.get(asked["node"])
        viable = self._tools.viable(asked["at"], node, may_create=asked["may_create"])
        options = [entry for entry in viable if entry.id not in asked["marks"]]
        return {
            "options": [entry.id for entry in options],
            "callable": [entry.id for entry in options if isinstance(entry, Tool)],
        }

    async def _fill(self, effect: Effect, attempt: Attempt) -> dict[str, Any]:
        asked = effect.payload
        tool = self._tools.tool(asked["tool"])
        node = self._tree.get(asked["node"])
        request = ToolRequest(tool.spec, node, tuple(asked["questions"]), asked["context"], attempt.errors)
        return {"arguments": tool.validated(await self._tool_caller.fill(request))}

    async def _call(self, effect: Effect, attempt: Attempt) -> dict[str, Any]:
        asked = effect.payload
        tool = self._tools.tool(asked["tool"])
        node = self._tree.get(asked["node"])
        if tool.changes and not (self._permit and self._permit(tool, asked["arguments"])):
            raise ToolFailed(f"{tool.id!r} may change something, and there is no permission for this call")
        call = call_of(tool, asked["arguments"], node, scope=str(getattr(self._permit, "scope", "")))
        made = await self._records.claim(call, key=attempt.key, run_id=self._run_id, tool=tool)
        if made is not None:
            result, reused = made.result, made.reused
        else:
            try:
                result, reused = await self._make(tool, asked["arguments"], node, call), False
                self._records.keep(call, result, tool=tool)
            except BaseException:
                self._records.drop(call)
                raise
        found = {"reused": reused, "call": call.hash, **result}
        if "node" in found:
            kept = self._tree.find(found["node"]["id"])
            found["node"] = {
                **found["node"],
                "kept": kept is not None and kept.provenance.get("call") == call.hash,
            }
        return found

    async def _make(self, tool: Tool, arguments: Mapping[str, Any], node: Node, call: Call) -> dict[str, Any]:
        """Call a tool and return `{"text": …}` or `{"node": {…}}`."""
        worked_on = node
        if tool.on_node and node.has_content and node.content is None:
            worked_on = replace(node, content=self._tree.content(node.id))
        given = tool.bound(arguments, {Node: worked_on, Tree: self._tree})
        try:
            async with asyncio.timeout(tool.timeout_s):
                if inspect.iscoroutinefunction(tool.function):
                    result = await tool.function(**given)
                else:
                    result = await asyncio.to_thread(tool.function, **given)
        except TimeoutError as exc:
            raise ToolFailed(f"{tool.id!r} gave nothing within {tool.timeout_s:g} s") from exc
        if tool.kind == "exploratory":
            text = result if isinstance(result, str) else _as_text(result)
            if len(text) > tool.max_chars:
                text = f"{text[: tool.max_chars]}\n… cut: {len(text) - tool.max_chars} more characters"
            return {"text": text}
        if not isinstance(result, Node):
            raise ToolFailed(f"{tool.id!r} must return a Node to add, and returned {type(result).__name__}")
        return {"node": self._node_json(result, node, tool, arguments, call)}

    def _node_json(
        self, made: Node, under: Node, tool: Tool, arguments: Mapping[str, Any], call: Call
    ) -> dict[str, Any]:
        node_id = made.id or f"{under.id}~{call.hash[:12]}"
        there = self._tree.find(node_id)
        if there is not None and there.provenance.get("call") != call.hash:
            node_id = f"{node_id}~{call.hash[:12]}"
        return {
            "id": node_id,
            "title": made.title,
            "description": made.description,
            "content": made.content,
            "kind": made.kind,
            "attributes": dict(made.attributes),
            "provenance": {
                **made.provenance,
                "tool": tool.id,
                "version": tool.version,
                "arguments": dict(arguments),
                "call": call.hash,
                "run": self._run_id,
                "under": under.id,
            },
        }

    async def _describe(self, effect: Effect, attempt: Attempt) -> dict[str, Any]:
        asked = effect.payload
        made = asked["node"]
        request = DescribeRequest(
            content=made["content"] or "",
            node=_node_of(made),
            parent=self._tree.find(asked["parent"]),
            questions=tuple(asked["questions"]),
            tool=made["provenance"]["tool"],
        )
        said = await self._describer.describe(request)
        if not isinstance(said, Description):
            raise BadModelAnswer(f"a describer must return a Description, not {type(said).__name__}")
        return {"title": said.title[:200], "description": said.description[:1000]}

    def _insert(self, effect: Effect, attempt: Attempt) -> dict[str, Any]:
        node = _node_of(effect.payload["node"])
        if self._tree.find(node.id) is None:
            self._tree.add(node, parent=effect.payload["parent"])
            self._tree.link(effect.payload["parent"], node.id, f"tool:{node.provenance['tool']}")
        return {"id": node.id, "title": node.title}

    async def _fallback(self, effect: Effect, attempt: Attempt) -> dict[str, Any]:
        asked = effect.payload
        function = self._fallbacks[asked["index"]]
        assert not isinstance(function, _AskPerson)
        request = FallbackRequest(tuple(asked["questions"]), asked["context"], self._tree, attempt.key)
        found = function(request)
        if inspect.isawaitable(found):
            found = await found
        if isinstance(found, Node):
            found = FallbackResult(nodes=(found,))
        found = found or FallbackResult()
        if not isinstance(found, FallbackResult):
            raise ToolFailed(
                f"a fallback must return a FallbackResult, a Node or None, not {type(found).__name__}"
            )
        nodes = []
        for number, node in enumerate(found.nodes):
            made = replace(
                node, provenance={**node.provenance, "run": self._run_id, "key": f"{attempt.key}/{number}"}
            )
            there = self._tree.find(made.id)
            if there is not None and there.provenance.get("key") != made.provenance["key"]:
                made, there = replace(made, id=f"{made.id}~{self._run_id}.{effect.id}.{number}"), None
            if there is None:
                self._tree.add(made, parent=found.parent)
            accept = self._accepts is not None and self._accepts(made)
            trail = self._tree.ancestors(made.id)
            nodes.append({"id": made.id, "title": made.title, "accept": accept, "trail": trail})
        answers = [
            {"question": a.question, "answer": a.answer, "quote": a.quote, "complete": a.complete}
            for a in found.answers
        ]
        return {"answers": answers, "nodes": nodes}


def _node_of(made: Mapping[str, Any]) -> Node:
    return Node(
        id=made["id"],
        title=made["title"],
        description=made["description"],
        content=made["content"],
        kind=made["kind"],
        attributes=made["attributes"],
        provenance=made["provenance"],
    )


def _as_text(result: object) -> str:
    import json

    return json.dumps(result, ensure_ascii=False, indent=1, default=str)
