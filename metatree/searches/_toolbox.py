"""The part of a search's world that makes things: tool calls, new nodes and fallbacks."""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from metatree._util.threads import GaveUp, called, within
from metatree.durable import Attempt, Effect, Handler, InDoubt, Policy, report_usage
from metatree.errors import BadModelAnswer, StaleSource, ToolFailed, UserError
from metatree.node import Node, digest_of
from metatree.notes.permissions import Permissions, fingerprint_of
from metatree.protocols import Describer, DescribeRequest, Description, Option, ToolCaller, ToolRequest
from metatree.searches._world import STORE_ERRORS, answer_json, model_policy
from metatree.searches.fallback import Fallback, FallbackRequest, FallbackResult, _AskPerson
from metatree.storage.store import Store
from metatree.tools.call_log import Call, CallRecords, Calls, Made, call_of
from metatree.tools.tool import Tool, ToolGroup, ToolTree
from metatree.trees.text import encodable
from metatree.trees.tree import Tree

if TYPE_CHECKING:
    from metatree.blackboard import Blackboard

Verdict = bool | None | _AskPerson
Permit = Callable[[Tool, Mapping[str, Any]], "Verdict | Awaitable[Verdict]"]
"""Decides whether a tool that changes something may be called with these arguments.

None leaves it to the permissions that the memory holds; `ask_person` does so too, and puts the question to a person
where there is none.
"""


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
        permit: Permit | _AskPerson | None,
        fallbacks: Sequence[Fallback | _AskPerson],
        accepts: Callable[[Node], bool] | None,
        timeout_s: float,
        board: Callable[[], Blackboard],
    ) -> None:
        self._tree = tree
        self._board = board
        self._tools = tools
        self._run_id = run_id
        self._tool_caller = tool_caller
        self._describer = describer
        self._permit = permit
        self._fallbacks = fallbacks
        self._accepts = accepts
        self._timeout_s = timeout_s
        kept = Store.open(":memory:") if tree.memory.read_only else tree.memory
        self._records: Calls = CallRecords(kept) if tree.shared is None else tree.shared.calls
        self._permissions = Permissions(tree.memory)
        self.began = 0.0
        """When the run was begun."""

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
        return {
            "tools": Policy(fatal=(Exception,)),
            "fill": model_policy(self._tool_caller, timeout_s=self._timeout_s, needed=True),
            "call": Policy(
                counts=("tool_calls",),
                repeatable=self._is_repeatable,
                recover=self._recover,
                fatal=STORE_ERRORS,
            ),
            "describe": model_policy(self._describer, timeout_s=self._timeout_s),
            "insert": Policy(fatal=(Exception,)),
            "fallback": Policy(timeout_s=self._timeout_s, fatal=STORE_ERRORS),
        }

    def _is_repeatable(self, effect: Effect) -> bool:
        return self._tools.tool(effect.payload["tool"]).is_repeatable

    def has_tools(self, node: Node) -> bool:
        """Say whether any tool works on a node."""
        return bool(self._tools) and bool(self._tools.viable("", node))

    def beyond(self) -> Callable[[Node], bool] | None:
        """Return what says of a node whether a tool on it may answer what no text says; None when no tool does."""
        tools = [tool for tool in self._tools.tools() if tool.beyond]
        return (lambda node: any(tool.works_on(node) for tool in tools)) if tools else None

    def options(self, ids: Sequence[str], node: Node, questions: Sequence[str]) -> list[Option]:
        """Return tools and groups as a menu for a node; those that are not there are left out."""
        entries = [entry for entry in map(self._tools.find, ids) if entry is not None]
        return [Option(entry.id, entry.title, self._description(entry, node, questions)) for entry in entries]

    def _description(self, entry: Tool | ToolGroup, node: Node, questions: Sequence[str]) -> str:
        if isinstance(entry, Tool):
            return entry.described(node, questions)
        inner = [tool for tool in self._tools.viable(entry.id, node) if isinstance(tool, Tool)]
        said = [tool.about(node, questions) for tool in inner if tool.about is not None]
        return " ".join([entry.description, *filter(None, said)])

    def _list(self, effect: Effect, attempt: Attempt) -> dict[str, Any]:
        asked = effect.payload
        node = self._tree.find(asked["node"])
        viable = [] if node is None else self._tools.viable(asked["at"], node, may_create=asked["may_create"])
        options = [entry for entry in viable if entry.id not in asked["marks"]]
        return {
            "options": [entry.id for entry in options],
            "callable": [entry.id for entry in options if isinstance(entry, Tool)],
        }

    def _node(self, node_id: str) -> Node:
        node = self._tree.find(node_id)
        if node is None:
            raise ToolFailed(f"node {node_id!r} is no longer in the tree")
        return node

    async def _fill(self, effect: Effect, attempt: Attempt) -> dict[str, Any]:
        asked = effect.payload
        tool = self._tools.tool(asked["tool"])
        node = self._node(asked["node"])
        spec = replace(tool.spec, description=tool.described(node, asked["questions"]))
        request = ToolRequest(spec, node, tuple(asked["questions"]), asked["context"], attempt.errors)
        return {"arguments": tool.validated(await self._tool_caller.fill(request))}

    async def _call(self, effect: Effect, attempt: Attempt) -> dict[str, Any]:
        asked = effect.payload
        tool, node, call = self._call_of(effect)
        if tool.changes:
            allowed = await self._permitted(tool, asked["arguments"], asked["granted"])
            if allowed is None:
                report_usage(tool_calls=-1)  # nothing was called yet
                return {"asks": _question(tool, asked), "fingerprint": fingerprint_of(tool)}
            if not allowed:
                raise ToolFailed(
                    f"{tool.id!r} may change something, and there is no permission for this call"
                )
        made = await self._records.claim(
            call, key=attempt.key, run_id=self._run_id, tool=tool, again=asked["again"]
        )
        if made is not None:
            report_usage(tool_calls=-1)  # nothing was called
        else:
            try:
                made = Made(await self._make(tool, asked["arguments"], node, call), False)
                self._records.keep(call, made.result, key=attempt.key, tool=tool)
            except BaseException as exc:
                cut_off = isinstance(exc, InDoubt) or not isinstance(exc, Exception)
                if cut_off and not tool.is_repeatable:
                    self._records.doubt(call, key=attempt.key)
                else:
                    self._records.drop(call, key=attempt.key)
                raise
        return self._called(call, made)

    def _recover(self, effect: Effect, attempt: Attempt) -> dict[str, Any]:
        """Return what a call gave that may not be made twice and was interrupted after it was recorded."""
        _, _, call = self._call_of(effect)
        made = self._records.result_of(call, key=attempt.key)
        if made is None:
            raise InDoubt("it was interrupted and may have happened")
        return self._called(call, made)

    def _call_of(self, effect: Effect) -> tuple[Tool, Node, Call]:
        asked = effect.payload
        tool = self._tools.tool(asked["tool"])
        node = self._node(asked["node"])
        scope = str(getattr(self._permit, "scope", ""))
        within = f"{self._run_id} {self.began}"
        return tool, node, call_of(tool, asked["arguments"], node, scope=scope, within=within)

    async def _permitted(
        self, tool: Tool, arguments: Mapping[str, Any], granted: Mapping[str, str] | None
    ) -> bool | None:
        """Say whether a call is allowed: by the caller, then by the memory, then by a person; None to ask one.

        Args:
            granted: what a person has said to this call, and of which tool it was.
        """
        said = self._permit if isinstance(self._permit, _AskPerson) else await self._asked(tool, arguments)
        if isinstance(said, bool):
            return said
        if self._permissions.allows(tool):
            return True
        if granted is not None and granted["fingerprint"] == fingerprint_of(tool):
            if granted["how"] == "always":
                self._permissions.grant(tool, who="a person")
            return True
        return None if isinstance(said, _AskPerson) else False

    async def _asked(self, tool: Tool, arguments: Mapping[str, Any]) -> Verdict:
        """Return what the caller's function says; anything that is no verdict is a no."""
        if self._permit is None or isinstance(self._permit, _AskPerson):
            return None
        try:
            said = self._permit(tool, arguments)
            said = await said if inspect.isawaitable(said) else said
        except Exception as exc:
            raise ToolFailed(
                f"whether {tool.id!r} is permitted cannot be said: {type(exc).__name__}: {exc}"
            ) from exc
        return said if said is None or isinstance(said, _AskPerson) else said is True

    def _called(self, call: Call, made: Made) -> dict[str, Any]:
        if "failed" in made.result:
            raise ToolFailed(made.result["failed"])
        found = {"reused": made.reused, "call": call.hash, **made.result}
        if made.reused:
            found |= {**made.said(), "own": made.run_id == self._run_id}
        if "node" in found:
            kept = self._tree.find(found["node"]["id"])
            same = kept is not None and (
                kept.provenance.get("call") == call.hash or found["node"].get("there") == kept.digest
            )
            found["node"] = {**found["node"], "kept": same}
        return found

    async def _make(self, tool: Tool, arguments: Mapping[str, Any], node: Node, call: Call) -> dict[str, Any]:
        """Call a tool and return `{"text": …}` or `{"node": {…}}`.

        `{"failed": …}` is what a tool that changes something has done when what it returned is of no use: it has
        happened, and must not happen again.
        """
        result = await self._result(tool, arguments, node)
        try:
            return self._kept(tool, arguments, node, call, result)
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
                worked_on = replace(node, content=self._tree.content(node.id))
            except (UserError, StaleSource, OSError) as exc:
                raise ToolFailed(str(exc)) from exc
        about: dict[type, Any] = {Node: worked_on, Tree: self._tree}
        if tool.on_board:
            board = self._board()
            about[type(board)] = board
        given = tool.bound(arguments, about)
        try:
            return await within(partial(called, tool.function, given), tool.timeout_s)
        except GaveUp as exc:
            late = f"{tool.id!r} gave nothing within {tool.timeout_s:g} s"
            if not tool.is_repeatable:
                raise InDoubt(late) from exc
            raise ToolFailed(late) from exc
        except Exception as exc:
            raise ToolFailed(f"{type(exc).__name__}: {exc}") from exc

    def _kept(
        self, tool: Tool, arguments: Mapping[str, Any], node: Node, call: Call, result: Any
    ) -> dict[str, Any]:
        """Return what a tool returned as it is kept: a text, cut, or a node."""
        if tool.kind == "exploratory":
            text = result if isinstance(result, str) else "" if result is None else _as_text(result)
            if len(text) > tool.max_chars:
                text = f"{text[: tool.max_chars]}\n… cut: {len(text) - tool.max_chars} more characters"
            return {"text": text}
        if not isinstance(result, Node):
            raise ToolFailed(f"{tool.id!r} must return a Node to add, and returned {type(result).__name__}")
        return {"node": self._node_json(result, node, tool, arguments, call)}

    def _node_json(
        self, made: Node, under: Node, tool: Tool, arguments: Mapping[str, Any], call: Call
    ) -> dict[str, Any]:
        _check_node(made, tool.id)
        node_id = encodable(made.id) or f"{under.id}~{call.hash[:12]}"
        there = self._tree.find(node_id)
        known = (
            {} if there is None or there.digest != (made.digest or _digest(made)) else {"there": there.digest}
        )
        if (
            there is not None and not known and there.provenance.get("call") != call.hash
        ):  # its id is another node's
            node_id = f"{node_id}~{call.hash[:12]}"
        return {
            **known,
            "id": node_id,
            "title": encodable(made.title),
            "description": encodable(made.description),
            "content": None if made.content is None else encodable(made.content),
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
        parent = effect.payload["parent"]
        with self._tree.memory.transaction():
            if self._tree.find(node.id) is None:
                if parent not in self._tree:
                    return {"gone": True}
                self._tree.add(node, parent=parent)
                self._tree.link(parent, node.id, f"tool:{node.provenance['tool']}")
        return {"id": node.id, "title": node.title}

    async def _fallback(self, effect: Effect, attempt: Attempt) -> dict[str, Any]:
        asked = effect.payload
        found = await self._found_by(asked, attempt.key)
        answers = [answer_json(answer) for answer in found.answers]
        nodes = [
            self._keep_found(node, found.parent, f"{attempt.key}/{number}")
            for number, node in enumerate(list(found.nodes)[: asked["may_create"]])
        ]
        return {"answers": answers, "nodes": nodes, "left_out": len(found.nodes) - len(nodes)}

    async def _found_by(self, asked: Mapping[str, Any], key: str) -> FallbackResult:
        """Call a function of the chain and check what it gives."""
        if asked["index"] >= len(self._fallbacks) or isinstance(self._fallbacks[asked["index"]], _AskPerson):
            raise UserError("give the fallbacks that the run was begun with, in the same order")
        function = self._fallbacks[asked["index"]]
        assert not isinstance(function, _AskPerson)
        request = FallbackRequest(tuple(asked["questions"]), asked["context"], self._tree, key)
        try:
            found = function(request)
            if inspect.isawaitable(found):
                found = await found
        except Exception as exc:
            raise ToolFailed(f"{type(exc).__name__}: {exc}") from exc
        if isinstance(found, Node):
            found = FallbackResult(nodes=(found,))
        found = FallbackResult() if found is None else found
        if not isinstance(found, FallbackResult):
            raise ToolFailed(
                f"a fallback must return a FallbackResult, a Node or None, not {type(found).__name__}"
            )
        for node in found.nodes:
            _check_node(node, "a fallback")
        if found.nodes and found.parent not in self._tree:
            raise ToolFailed(f"a fallback wants to add below {found.parent!r}, which is not in the tree")
        return found

    def _keep_found(self, node: Node, parent: str, key: str) -> dict[str, Any]:
        """Add a node that a fallback found, once, under another id when its own is taken."""
        made = replace(node, provenance={**node.provenance, "run": self._run_id, "key": key})
        for name in (made.id, f"{made.id}~{key}"):
            made = replace(made, id=name)
            there = self._tree.find(name)
            if there is None:
                self._tree.add(made, parent=parent)
            if there is None or there.provenance.get("key") == key:
                break
        accept = self._accepts is not None and self._accepts(made)
        return {"id": made.id, "title": made.title, "accept": accept, "trail": self._tree.ancestors(made.id)}


def _digest(made: Node) -> str:
    """Return the digest that a tree would give a node that a tool made."""
    content = None if made.content is None else encodable(made.content)
    return digest_of(
        replace(made, title=encodable(made.title), description=encodable(made.description), content=content)
    )


def _question(tool: Tool, asked: Mapping[str, Any]) -> str:
    """Return what a person is asked; what the tool says of itself is cut, since others wrote it."""
    given = json.dumps(asked["arguments"], ensure_ascii=False, sort_keys=True)
    about = " ".join(tool.description.split())[:200]
    return (
        f"May {tool.id} be called with {given[:1000]} at {asked['node']}? It may change something outside of the"
        f" memory, and says: {about!r}. (yes: this call; always: this tool from now on; no)"
    )


def _check_node(made: Any, by: str) -> None:
    """Raise `ToolFailed` unless this is a node that can be kept; an empty id is allowed."""
    if not isinstance(made, Node):
        raise ToolFailed(f"{by!r} must give nodes, not {type(made).__name__}")
    for name in ("id", "title", "description", "kind"):
        if not isinstance(getattr(made, name), str):
            raise ToolFailed(f"{by!r} gave a node whose {name} is no text: {getattr(made, name)!r}")
    if not isinstance(made.content, str | None):
        raise ToolFailed(f"{by!r} gave a node whose content is no text, but {type(made.content).__name__}")
    try:
        json.dumps([dict(made.attributes), dict(made.provenance)])
    except (TypeError, ValueError, RecursionError) as exc:
        raise ToolFailed(f"{by!r} gave a node with attributes that JSON cannot hold: {exc}") from exc


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
    return json.dumps(result, ensure_ascii=False, indent=1, default=str)
