"""The tools that questions ask for outright; and the node-level fallback, once content and children did not answer:
the walk through the tool tree of a node.

tools ─┬─ none left ── up in the tool tree, at its top leave the node
       ├─ one ──────── enter it                    ┌─ text ── read it, then the next tool
       └─ several ──── route ── fill ── call ──────┼─ node ── describe ── insert ── enter it
                                                   └─ failed ── unviable, the next tool
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from metatree.durable import Effect, Outcome
from metatree.searches._context import context_of
from metatree.searches._effects import (
    AskHuman,
    CallTool,
    DescribeNode,
    FillArguments,
    FindCalls,
    Grant,
    InsertNode,
    ListTools,
    RouteMenu,
)
from metatree.searches._outcomes import (
    FilledArguments,
    NodeDescription,
    NodeInserted,
    ToolListing,
    ToolOutput,
)
from metatree.searches._reading_steps import ReadingSteps
from metatree.searches._state import UNVIABLE, VISITED, Frame, Mark, SearchState, ToolVisit
from metatree.searches._steps import collecting, effect_of, note
from metatree.tools.call_log import made_before


class ToolWalk(ReadingSteps):
    """The part of the search machine that uses tools."""

    def _use_tools(self, state: SearchState, frame: Frame) -> list[Effect]:
        """Walk the tool tree of a node whose content and children did not answer, or leave it."""
        node = frame.trail[-1]
        if collecting(state) or not frame.has_tools:
            return self._leave(state, frame, "nothing left below")
        frame.tools = frame.visits.setdefault(node, ToolVisit(node, [""]))
        return self._list_tools(state, frame)

    def _find_calls(self, state: SearchState, frame: Frame) -> list[Effect]:
        return effect_of(state, frame, FindCalls(tuple(frame.open)))

    def _on_calls(self, state: SearchState, frame: Frame, event: Outcome) -> list[Effect]:
        frame.calls = [] if event.error is not None else list(event.value["calls"])
        return self._next_call(state, frame)

    def _next_call(self, state: SearchState, frame: Frame) -> list[Effect]:
        """Make the next call that a question asks for outright; after the last, walk the tree."""
        while frame.calls:
            call = frame.calls.pop(0)
            if call["question"] in frame.open:
                frame.tools = ToolVisit(call["node"], [""], question=call["question"])
                return self._enter_tool(state, frame, call["tool"], is_callable=True)
        frame.calls = frame.tools = None
        return self._list(state, frame)

    def _list_tools(self, state: SearchState, frame: Frame) -> list[Effect]:
        if frame.calls is not None:
            return self._next_call(state, frame)
        visit, may_create = frame.visit, state.created < state.limits["nodes_created"]
        return effect_of(state, frame, ListTools(visit.node, visit.path[-1], visit.marks, may_create))

    def _on_tools(self, state: SearchState, frame: Frame, event: Outcome) -> list[Effect]:
        visit = frame.visit
        nothing: ToolListing = {"options": [], "callable": []}
        value: ToolListing = nothing if event.error is not None else event.value
        most = state.given.get("most_in_vain")
        options = [i for i in value["options"] if most is None or state.in_vain.get(i, 0) < most]
        if not options:
            current = visit.path.pop() if len(visit.path) > 1 else ""
            if current:
                visit.marks[current] = Mark(VISITED, "nothing left below", state.steps, visit.path[-1])
                return self._list_tools(state, frame)
            frame.tools = None
            return self._leave(state, frame, "neither its content nor its tools answer")
        if len(options) == 1:
            return self._enter_tool(state, frame, options[0], options[0] in value["callable"])
        return self._route(state, frame, options, tools=True, callable_=value["callable"], jumps=False)

    def _apply_tool_decision(
        self,
        state: SearchState,
        frame: Frame,
        payload: RouteMenu,
        choice: str | None,
        unviable: Mapping[str, str],
    ) -> list[Effect]:
        """Apply a decision among tools."""
        visit = frame.visit
        for tool, why in unviable.items():
            visit.marks[tool] = Mark(UNVIABLE, why, state.steps, visit.path[-1])
        if choice is None:
            return self._list_tools(state, frame)
        return self._enter_tool(state, frame, choice, choice in payload.callable)

    def _enter_tool(self, state: SearchState, frame: Frame, tool: str, is_callable: bool) -> list[Effect]:
        visit = frame.visit
        if not is_callable:
            visit.path.append(tool)
            return self._list_tools(state, frame)
        visit.tool = tool
        state.in_vain[tool] = state.in_vain.get(tool, 0) + 1  # until something comes of it
        questions = (visit.question,) if visit.question else tuple(frame.open)
        payload = FillArguments(visit.node, tool, questions, context_of(state, frame))
        return effect_of(state, frame, payload)

    def _on_fill(self, state: SearchState, frame: Frame, event: Outcome) -> list[Effect]:
        visit = frame.visit
        if event.error is not None:
            return self._tool_done(state, frame, UNVIABLE, f"no arguments: {event.error}")
        value: FilledArguments = event.value
        visit.arguments = value["arguments"]
        return self._call(state, frame)

    def _call(
        self,
        state: SearchState,
        frame: Frame,
        *,
        again: bool = False,
        granted: Grant | None = None,
    ) -> list[Effect]:
        visit = frame.visit
        return effect_of(state, frame, CallTool(visit.node, visit.tool, visit.arguments, again, granted))

    def _tool_done(self, state: SearchState, frame: Frame, kind: str, reason: str) -> list[Effect]:
        visit = frame.visit
        visit.marks[visit.tool] = Mark(kind, reason, state.steps, visit.path[-1])
        note(state, frame, "tool", visit.node, reason, tool=visit.tool, arguments=visit.arguments, mark=kind)
        return self._list_tools(state, frame)

    def _on_call(self, state: SearchState, frame: Frame, event: Outcome) -> list[Effect]:
        visit = frame.visit
        if event.error_kind == "in_doubt":
            arguments = json.dumps(visit.arguments, ensure_ascii=False, sort_keys=True)
            happened = f"A call of {visit.tool} with {arguments} was interrupted and may have happened."
            return effect_of(state, frame, AskHuman(f"{happened} Call it again? (yes/no)", "call"))
        if event.error is not None:
            return self._tool_done(state, frame, UNVIABLE, f"it failed: {event.error}")
        value: ToolOutput = event.value
        if "asks" in value:
            return effect_of(state, frame, AskHuman(value["asks"], "permission", value["fingerprint"]))
        visit.marks[visit.tool] = Mark(VISITED, "called", state.steps, visit.path[-1])
        origin: dict[str, Any] = {name: entry for name, entry in value.items() if name in ("at", "from_run")}
        before = made_before(origin) if value["reused"] else ""
        reused = {"reused": True, **origin} if value["reused"] else {}
        changes = {"changes": True} if value.get("changes") else {}
        node = value.get("node")
        where = node["id"] if node else visit.node
        call = {"tool": visit.tool, "arguments": visit.arguments, "call": value["call"], **changes, **reused}
        note(state, frame, "missed_node" if value["reused"] else "tool", where, before or "called", **call)
        if node is None:
            if not value["text"].strip():
                return self._list_tools(state, frame)
            notice = f"{visit.tool} was not called again: {before}" if before and not value.get("own") else ""
            title = f"{visit.tool}, called on {origin['at']}" if origin.get("at") else visit.tool
            text, question = value["text"], visit.question
            return self._read(state, frame, visit.node, title, "", text, notice, question)
        if node.get("kept"):  # it is in the tree already
            return self._enter_node(state, frame, node["id"])
        if state.created >= state.limits["nodes_created"]:  # by a search beside this one
            return self._tool_done(state, frame, UNVIABLE, "no more nodes may be made")
        if not node["title"] or not node["description"]:
            return effect_of(state, frame, DescribeNode(visit.node, node, tuple(frame.open)))
        return effect_of(state, frame, InsertNode(visit.node, node))

    def _on_permission(self, state: SearchState, frame: Frame, reply: str, fingerprint: str) -> list[Effect]:
        """Go on with what a person said to a call that needs permission; whatever is no clear yes is a no."""
        answer = reply.casefold().strip(" .!")
        if answer in ("yes", "y", "always"):
            granted = Grant("always" if answer == "always" else "once", fingerprint)
            return self._call(state, frame, granted=granted)
        return self._tool_done(state, frame, UNVIABLE, "a person did not permit the call")

    def _on_describe(
        self, state: SearchState, frame: Frame, payload: DescribeNode, event: Outcome
    ) -> list[Effect]:
        visit = frame.visit
        plain: NodeDescription = {"title": visit.tool, "description": f"made by {visit.tool}"}
        description: NodeDescription = plain if event.error is not None else event.value
        node = payload.node.copy()
        node["title"] = node["title"] or description["title"]
        node["description"] = node["description"] or description["description"]
        return effect_of(state, frame, InsertNode(visit.node, node))

    def _on_insert(self, state: SearchState, frame: Frame, event: Outcome) -> list[Effect]:
        visit = frame.visit
        if event.error is not None:
            return self._tool_done(state, frame, UNVIABLE, f"its node could not be kept: {event.error}")
        value: NodeInserted = event.value
        if value.get("gone"):
            return self._tool_done(state, frame, UNVIABLE, "the node it worked on is no longer there")
        state.created += 1
        note(state, frame, "create", value["id"], f"made by {visit.tool}", parent=visit.node)
        return self._enter_node(state, frame, value["id"])

    def _enter_node(self, state: SearchState, frame: Frame, node: str) -> list[Effect]:
        state.in_vain.clear()
        state.fruitless = 0
        if node in frame.marks or node in frame.trail:
            return self._list_tools(state, frame)
        visit, frame.tools = frame.visit, None  # its other tools come when the search is back
        frame.trail.append(node)
        note(state, frame, "enter", node, f"made by {visit.tool}")
        return self._list(state, frame)
