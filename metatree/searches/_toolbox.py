"""The part of a search's world that makes things: tool calls, new nodes and fallbacks."""

from __future__ import annotations

import inspect
import json
import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

from metatree.durable import Attempt, Effect, Handler, InDoubt, Policy, report_usage
from metatree.errors import BadModelAnswer, StaleSource, ToolFailed, UserError
from metatree.node import Node, digest_of
from metatree.notes.permissions import Permissions, fingerprint_of, shown_arguments
from metatree.parts import scope_of
from metatree.protocols import (
    Describer,
    DescribeRequest,
    Description,
    Evidence,
    Option,
    Suite,
    ToolCaller,
    ToolRequest,
)
from metatree.searches._effects import (
    CallTool,
    DescribeNode,
    FillArguments,
    FindCalls,
    Grant,
    InsertNode,
    ListTools,
    RunFallback,
)
from metatree.searches._off_loop import Home
from metatree.searches._options import Permit, Verdict
from metatree.searches._outcomes import (
    CallsFound,
    FallbackOutput,
    FilledArguments,
    NodeAdded,
    NodeDescription,
    NodeInserted,
    NodeMade,
    ToolListing,
    ToolOutput,
)
from metatree.searches._world import STORE_ERRORS, alone, answer_json, model_policy, standing_in
from metatree.searches.fallback import Fallback, FallbackRequest, FallbackResult, _AskPerson
from metatree.storage.store import Store
from metatree.tools.call_log import Call, CallLog, CallResult, call_of
from metatree.tools.tool import Tool, ToolGroup, ToolTree
from metatree.trees.text import encodable
from metatree.trees.tree import Tree

if TYPE_CHECKING:
    from metatree.blackboard import Blackboard


_log = logging.getLogger("metatree")
_MOST_NODES = 50
"""Nodes among which those that a question names are looked for."""
_MOST_ASKED_CALLS = 3
"""Calls of tools that a question asks for outright."""
_LEAST_NAME = 3


@dataclass(slots=True, kw_only=True, eq=False)
class Toolbox:
    """Handlers for the effects of tools and fallbacks."""

    tree: Tree
    tools: ToolTree
    home: Home
    run_id: str
    ours: bool
    """Whether this user began the run, so that a person's yes in it counts."""
    tool_caller: ToolCaller
    evidence: Evidence | None
    describer: Describer
    embedded: Suite
    """What stands in for parts whose model gives no usable answers."""
    permit: Permit | _AskPerson | None
    fallbacks: Sequence[Fallback | _AskPerson]
    accepts: Callable[[Node], bool] | None
    timeout_s: float
    board: Callable[[], Blackboard]
    began: float = 0.0
    """When the run was started."""
    _records: CallLog = field(init=False)
    _permissions: Permissions = field(init=False)

    def __post_init__(self) -> None:
        memory, shared = self.tree.memory, self.tree.shared
        store = Store.open(":memory:") if memory.read_only else memory
        self._records = CallLog(store) if shared is None else shared.calls
        self._permissions = Permissions(memory)

    def handlers(self) -> dict[str, Handler]:
        """Return the handlers by kind of effect."""
        return {
            ListTools.kind: self._list,
            FindCalls.kind: self._find_calls,
            FillArguments.kind: self._fill,
            CallTool.kind: self._call,
            DescribeNode.kind: self._describe,
            InsertNode.kind: self._insert,
            RunFallback.kind: self._fallback,
        }

    def policies(self) -> dict[str, Policy]:
        """Return how each kind is tried, timed and counted; a call's time limit is the tool's own."""
        return {
            ListTools.kind: Policy(fatal=(Exception,)),
            FindCalls.kind: Policy(fatal=STORE_ERRORS),
            FillArguments.kind: model_policy(
                self.tool_caller, timeout_s=self.timeout_s, needed=alone(self.tool_caller)
            ),
            CallTool.kind: Policy(
                counts=("tool_calls",),
                repeatable=self._is_repeatable,
                recover=self._recover,
                fatal=STORE_ERRORS,
            ),
            DescribeNode.kind: model_policy(self.describer, timeout_s=self.timeout_s),
            InsertNode.kind: Policy(fatal=(Exception,)),
            RunFallback.kind: Policy(timeout_s=self.timeout_s, fatal=STORE_ERRORS),
        }

    def _is_repeatable(self, effect: Effect) -> bool:
        payload: CallTool = effect.payload
        return self.tools.tool(payload.tool).is_repeatable

    def has_tools(self, node: Node) -> bool:
        """Say whether any tool works on a node."""
        return bool(self.tools) and bool(self.tools.viable("", node))

    def answers_outside_tree(self) -> Callable[[Node], bool] | None:
        """Return what says of a node whether a tool on it may answer what no text says; None when no tool does."""
        tools = [tool for tool in self.tools.tools() if tool.answers_outside_tree]
        return (lambda node: any(tool.works_on(node) for tool in tools)) if tools else None

    def options(self, ids: Sequence[str], node: Node, questions: Sequence[str]) -> list[Option]:
        """Return tools and groups as a menu for a node; those that are not there are left out."""
        entries = [entry for entry in map(self.tools.find, ids) if entry is not None]
        return [Option(entry.id, entry.title, self._description(entry, node, questions)) for entry in entries]

    def _description(self, entry: Tool | ToolGroup, node: Node, questions: Sequence[str]) -> str:
        if isinstance(entry, Tool):
            return entry.described(node, questions)
        inner = [tool for tool in self.tools.viable(entry.id, node) if isinstance(tool, Tool)]
        texts = [tool.about(node, questions) for tool in inner if tool.about is not None]
        return " ".join([entry.description, *filter(None, texts)])

    def _list(self, effect: Effect, attempt: Attempt) -> ToolListing:
        payload: ListTools = effect.payload
        node = self.tree.find(payload.node)
        viable = [] if node is None else self.tools.viable(payload.at, node, may_create=payload.may_create)
        options = [entry for entry in viable if entry.id not in payload.marks]
        return {
            "options": [entry.id for entry in options],
            "callable": [entry.id for entry in options if isinstance(entry, Tool)],
        }

    @property
    def asks_tools(self) -> bool:
        """Whether tools that questions ask for outright are called before anything is read."""
        return any(map(_may_be_asked_for, self.tools.tools()))

    def _find_calls(self, effect: Effect, attempt: Attempt) -> CallsFound:
        payload: FindCalls = effect.payload
        return {
            "calls": [
                {"node": node.id, "tool": tool.id, "question": question}
                for question in payload.questions
                for tool, node in islice(self._asked_for(question), _MOST_ASKED_CALLS)
            ]
        }

    def _asked_for(self, question: str) -> Iterator[tuple[Tool, Node]]:
        """Yield the tools that a question asks for outright: by their own word, then by what they are called."""
        tools = [tool for tool in self.tools.tools() if _may_be_asked_for(tool)]
        for tool in tools:
            if tool.first_on is not None:
                try:
                    nodes = list(islice(tool.first_on(self.tree, question), _MOST_ASKED_CALLS))
                except Exception:
                    _log.warning("the tool %r could not say where it answers", tool.id, exc_info=True)
                    continue
                yield from ((tool, node) for node in nodes if tool.works_on(node))
        if self.evidence is None:
            return
        named = [
            node
            for scored in self.evidence.rank([question], k=_MOST_NODES)
            if (node := self.tree.find(scored.node_id)) is not None and _is_named(node, question)
        ]
        offers = [
            (tool, node) for tool in tools if tool.first_on is None for node in named if tool.works_on(node)
        ]
        for number in self.evidence.asked_for(question, [(tool.spec, node) for tool, node in offers]):
            yield offers[number]

    def _node(self, node_id: str) -> Node:
        node = self.tree.find(node_id)
        if node is None:
            raise ToolFailed(f"node {node_id!r} is no longer in the tree")
        return node

    async def _fill(self, effect: Effect, attempt: Attempt) -> FilledArguments:
        payload: FillArguments = effect.payload
        tool = self.tools.tool(payload.tool)
        node = self._node(payload.node)
        spec = replace(tool.spec, description=tool.described(node, payload.questions))
        request = ToolRequest(spec, node, tuple(payload.questions), payload.context, attempt.errors)
        caller: ToolCaller = standing_in(payload, self.tool_caller, self.embedded.tool_caller)
        return {"arguments": tool.validated(await self.home.asks(caller, caller.fill)(request))}

    async def _call(self, effect: Effect, attempt: Attempt) -> ToolOutput:
        payload: CallTool = effect.payload
        tool, node, call = self._call_of(payload)
        if tool.changes or not self.ours:  # whoever began the run may have written the arguments
            allowed = await self._is_permitted(tool, payload.arguments, payload.granted)
            if allowed is None:
                report_usage(tool_calls=-1)  # nothing was called yet
                return {"asks": _question(tool, payload), "fingerprint": fingerprint_of(tool)}
            if not allowed:
                why = "may change something" if tool.changes else "would be called in a run of somebody else"
                raise ToolFailed(f"{tool.id!r} {why}, and there is no permission for this call")
        result = await self._records.claim(
            call, key=attempt.key, run_id=self.run_id, tool=tool, again=payload.again
        )
        if result is not None:
            report_usage(tool_calls=-1)  # nothing was called
        else:
            made = partial(self._make, tool, payload.arguments, node, call)
            result = await self._records.make(call, made, key=attempt.key, tool=tool)
        return self._output(tool, call, result)

    def _recover(self, effect: Effect, attempt: Attempt) -> ToolOutput:
        """Return what a call gave that may not be made twice and was interrupted after it was recorded."""
        tool, _, call = self._call_of(effect.payload)
        result = self._records.result_of(call, key=attempt.key)
        if result is None:
            raise InDoubt("it was interrupted and may have happened")
        return self._output(tool, call, result)

    def _call_of(self, payload: CallTool) -> tuple[Tool, Node, Call]:
        tool = self.tools.tool(payload.tool)
        node = self._node(payload.node)
        within = f"{self.run_id} {self.began}"
        call = call_of(tool, payload.arguments, node, scope=scope_of(self.permit), within=within)
        return tool, node, call

    async def _is_permitted(
        self, tool: Tool, arguments: Mapping[str, Any], granted: Grant | None
    ) -> bool | None:
        """Say whether a call is allowed: by the caller, then by the memory, then by a person; None to ask one.

        Args:
            granted: what a person has said to this call, and of which tool it was.
        """
        verdict = self.permit if isinstance(self.permit, _AskPerson) else await self._verdict(tool, arguments)
        if isinstance(verdict, bool):
            return verdict
        if self._permissions.allows(tool):
            return True
        if not self.ours:
            return False
        if granted is not None and granted.fingerprint == fingerprint_of(tool):
            if granted.how == "always":
                self._permissions.grant(tool, who="a person")
            return True
        return None if isinstance(verdict, _AskPerson) else False

    async def _verdict(self, tool: Tool, arguments: Mapping[str, Any]) -> Verdict:
        """Return what the caller's function says; anything that is no verdict is a no."""
        if self.permit is None or isinstance(self.permit, _AskPerson):
            return None
        try:
            verdict: Any = await self.home.run(partial(_answer_of, self.permit, tool, arguments))
        except Exception as exc:
            raise ToolFailed(
                f"whether {tool.id!r} is permitted cannot be said: {type(exc).__name__}: {exc}"
            ) from exc
        return verdict if verdict is None or isinstance(verdict, _AskPerson) else verdict is True

    def _output(self, tool: Tool, call: Call, result: CallResult) -> ToolOutput:
        if "failed" in result.result:
            raise ToolFailed(result.result["failed"])
        origin = {**result.origin(), "own": result.run_id == self.run_id} if result.reused else {}
        changes = {"changes": True} if tool.changes else {}
        about = {"reused": result.reused, "call": call.hash, **changes}
        output = cast(ToolOutput, {**about, **result.result, **origin})
        if "node" in output:
            node = self.tree.find(output["node"]["id"])
            same = node is not None and (
                node.provenance.get("call") == call.hash or output["node"].get("there") == node.digest
            )
            output["node"] = {**output["node"], "kept": same}
        return output

    async def _make(self, tool: Tool, arguments: Mapping[str, Any], node: Node, call: Call) -> dict[str, Any]:
        """Call a tool and return `{"text": …}` or `{"node": {…}}`.

        `{"failed": …}` is what a tool that changes something has done when what it returned is of no use: it has
        happened, and must not happen again.
        """
        result = await self._result(tool, arguments, node)
        try:
            return self._result_json(tool, arguments, node, call, result)
        except Exception as exc:
            failed = exc if isinstance(exc, ToolFailed) else ToolFailed(f"{type(exc).__name__}: {exc}")
            if tool.changes:
                return {"failed": str(failed)}
            raise failed from exc

    async def _result(self, tool: Tool, arguments: Mapping[str, Any], node: Node) -> Any:
        """Call a tool and return what it returns."""
        worked_on = node
        if tool.on_node and node.has_content and node.content is None:
            try:
                worked_on = replace(node, content=self.tree.content(node.id))
            except (UserError, StaleSource, OSError) as exc:
                raise ToolFailed(str(exc)) from exc
        about: dict[type, Any] = {Node: worked_on, Tree: self.tree}
        if tool.on_board:
            board = self.board()
            about[type(board)] = board
        return await self.home.run(partial(tool.run, tool.bound(arguments, about)))

    def _result_json(
        self, tool: Tool, arguments: Mapping[str, Any], node: Node, call: Call, result: Any
    ) -> dict[str, Any]:
        """Return what a tool returned as it is kept: a text, cut, or a node."""
        if tool.kind == "exploratory":
            return {"text": tool.text_of(result)}
        if not isinstance(result, Node):
            raise ToolFailed(f"{tool.id!r} must return a Node to add, and returned {type(result).__name__}")
        return {"node": self._node_json(result, node, tool, arguments, call)}

    def _node_json(
        self, node: Node, parent: Node, tool: Tool, arguments: Mapping[str, Any], call: Call
    ) -> dict[str, Any]:
        _check_node(node, tool.id)
        node_id = encodable(node.id) or f"{parent.id}~{call.hash[:12]}"
        existing = self.tree.find(node_id)
        known = (
            {}
            if existing is None or existing.digest != (node.digest or _digest(node))
            else {"there": existing.digest}
        )
        if (
            existing is not None and not known and existing.provenance.get("call") != call.hash
        ):  # its id is another node's
            node_id = f"{node_id}~{call.hash[:12]}"
        return {
            **known,
            "id": node_id,
            "title": encodable(node.title),
            "description": encodable(node.description),
            "content": None if node.content is None else encodable(node.content),
            "kind": node.kind,
            "attributes": dict(node.attributes),
            "provenance": {
                **node.provenance,
                "tool": tool.id,
                "version": tool.version,
                "arguments": dict(arguments),
                "call": call.hash,
                "run": self.run_id,
                "under": parent.id,
            },
        }

    async def _describe(self, effect: Effect, attempt: Attempt) -> NodeDescription:
        payload: DescribeNode = effect.payload
        node = payload.node
        request = DescribeRequest(
            content=node["content"] or "",
            node=_node_of(node),
            parent=self.tree.find(payload.parent),
            questions=tuple(payload.questions),
            tool=node["provenance"]["tool"],
        )
        describer: Describer = standing_in(payload, self.describer, self.embedded.describer)
        description = await self.home.asks(describer, describer.describe)(request)
        if not isinstance(description, Description):
            raise BadModelAnswer(f"a describer must return a Description, not {type(description).__name__}")
        return {"title": description.title[:200], "description": description.description[:1000]}

    def _insert(self, effect: Effect, attempt: Attempt) -> NodeInserted:
        payload: InsertNode = effect.payload
        node, parent = _node_of(payload.node), payload.parent
        with self.tree.memory.transaction():
            if self.tree.find(node.id) is None:
                if parent not in self.tree:
                    return {"gone": True}
                if self.ours:
                    self.tree.add(node, parent=parent)
                else:  # what the record says that a tool gave
                    self.tree.add_imported(node, parent)
                self.tree.link(parent, node.id, f"tool:{node.provenance['tool']}")
        return {"id": node.id, "title": node.title}

    async def _fallback(self, effect: Effect, attempt: Attempt) -> FallbackOutput:
        payload: RunFallback = effect.payload
        result = await self._run_fallback(payload, attempt.key)
        answers = [answer_json(answer) for answer in result.answers]
        nodes = [
            self._add_from_fallback(node, result.parent, f"{attempt.key}/{number}")
            for number, node in enumerate(list(result.nodes)[: payload.may_create])
        ]
        return {"answers": answers, "nodes": nodes, "left_out": len(result.nodes) - len(nodes)}

    async def _run_fallback(self, payload: RunFallback, key: str) -> FallbackResult:
        """Call a function of the chain and check what it gives."""
        if payload.index >= len(self.fallbacks) or isinstance(self.fallbacks[payload.index], _AskPerson):
            raise UserError("give the fallbacks that the run was begun with, in the same order")
        function = self.fallbacks[payload.index]
        assert not isinstance(function, _AskPerson)
        request = FallbackRequest(tuple(payload.questions), payload.context, self.tree, key)
        try:
            result: Any = await self.home.run(partial(_answer_of, function, request))
        except Exception as exc:
            raise ToolFailed(f"{type(exc).__name__}: {exc}") from exc
        if isinstance(result, Node):
            result = FallbackResult(nodes=(result,))
        result = FallbackResult() if result is None else result
        if not isinstance(result, FallbackResult):
            raise ToolFailed(
                f"a fallback must return a FallbackResult, a Node or None, not {type(result).__name__}"
            )
        for node in result.nodes:
            _check_node(node, "a fallback")
        if result.nodes and result.parent not in self.tree:
            raise ToolFailed(f"a fallback wants to add below {result.parent!r}, which is not in the tree")
        return result

    def _add_from_fallback(self, node: Node, parent: str, key: str) -> NodeAdded:
        """Add a node that a fallback found, once, under another id when its own is taken."""
        copy = replace(node, provenance={**node.provenance, "run": self.run_id, "key": key})
        for name in (copy.id, f"{copy.id}~{key}"):
            copy = replace(copy, id=name)
            existing = self.tree.find(name)
            if existing is None:
                self.tree.add(copy, parent=parent)
            if existing is None or existing.provenance.get("key") == key:
                break
        accept = self.accepts is not None and self.accepts(copy)
        return {"id": copy.id, "title": copy.title, "accept": accept, "trail": self.tree.ancestors(copy.id)}


async def _answer_of(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function of the caller's, which may be a coroutine function."""
    answer = function(*arguments)
    return await answer if inspect.isawaitable(answer) else answer


def _digest(node: Node) -> str:
    """Return the digest that a tree would give a node that a tool made."""
    content = None if node.content is None else encodable(node.content)
    return digest_of(
        replace(node, title=encodable(node.title), description=encodable(node.description), content=content)
    )


def _question(tool: Tool, payload: CallTool) -> str:
    """Return what a person is asked; what the tool says of itself is cut, since others wrote it."""
    arguments = shown_arguments(payload.arguments)
    about = " ".join(tool.description.split())[:200]
    return (
        f"May {tool.id} be called with {arguments} at {payload.node}? It may change something outside of the"
        f" memory, and says: {about!r}. (yes: this call; always: this tool from now on; no)"
    )


def _check_node(node: Any, by: str) -> None:
    """Raise `ToolFailed` unless this is a node that can be kept; an empty id is allowed."""
    if not isinstance(node, Node):
        raise ToolFailed(f"{by!r} must give nodes, not {type(node).__name__}")
    for name in ("id", "title", "description", "kind"):
        if not isinstance(getattr(node, name), str):
            raise ToolFailed(f"{by!r} gave a node whose {name} is no text: {getattr(node, name)!r}")
    if not isinstance(node.content, str | None):
        raise ToolFailed(f"{by!r} gave a node whose content is no text, but {type(node.content).__name__}")
    try:
        json.dumps([dict(node.attributes), dict(node.provenance)])
    except (TypeError, ValueError, RecursionError) as exc:
        raise ToolFailed(f"{by!r} gave a node with attributes that JSON cannot hold: {exc}") from exc


def _node_of(node: NodeMade) -> Node:
    return Node(
        id=node["id"],
        title=node["title"],
        description=node["description"],
        content=node["content"],
        kind=node["kind"],
        attributes=node["attributes"],
        provenance=node["provenance"],
    )


def _may_be_asked_for(tool: Tool) -> bool:
    """Say whether a tool may be called because a question asks for it: it tells something, and changes nothing."""
    return tool.kind == "exploratory" and not tool.changes


def _is_named(node: Node, question: str) -> bool:
    """Say whether a question has the title of a node, or the name of its file, as it is written."""
    names = {node.title, (node.path or "").rpartition("/")[2]}
    return any(
        len(name) >= _LEAST_NAME and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", question, re.IGNORECASE)
        for name in names
    )
