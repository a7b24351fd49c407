"""The node-level fallback: the walk through the tool tree of a node whose content and children did not answer.

tools ─┬─ none left ── up in the tool tree, at its top leave the node
       ├─ one ──────── enter it                    ┌─ text ── read it, then the next tool
       └─ several ──── route ── fill ── call ──────┼─ node ── describe ── insert ── enter it
                                                   └─ failed ── unviable, the next tool
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from metatree.durable import Effect, Outcome
from metatree.searches._context import context_of
from metatree.searches._state import UNVIABLE, VISITED, Frame, Mark, SearchState, ToolVisit
from metatree.searches._steps import collecting, effect_of, note
from metatree.tools.call_log import made_before


class ToolWalk(ABC):
    """The part of the search machine that uses tools; the rest of the machine is what it needs around it."""

    @abstractmethod
    def _list(self, state: SearchState, frame: Frame) -> list[Effect]: ...

    @abstractmethod
    def _leave(self, state: SearchState, frame: Frame, reason: str) -> list[Effect]: ...

    @abstractmethod
    def _route(
        self,
        state: SearchState,
        frame: Frame,
        options: list[str],
        *,
        tools: bool = False,
        callable_: Iterable[str] = (),
        jumps: bool = True,
    ) -> list[Effect]: ...

    @abstractmethod
    def _read(
        self,
        state: SearchState,
        frame: Frame,
        node: str,
        title: str,
        version: str,
        content: str | None = None,
        told: str = "",
    ) -> list[Effect]: ...

    def _use_tools(self, state: SearchState, frame: Frame) -> list[Effect]:
        """Walk the tool tree of a node whose content and children did not answer, or leave it."""
        node = frame.trail[-1]
        if collecting(state) or not frame.has_tools:
            return self._leave(state, frame, "nothing left below")
        frame.tools = visit = frame.visits.setdefault(node, ToolVisit(node, [""]))
        return self._list_tools(state, frame, visit)

    def _list_tools(self, state: SearchState, frame: Frame, visit: ToolVisit) -> list[Effect]:
        may_create = state.created < state.limits["nodes_created"]
        return effect_of(
            state,
            frame,
            "tools",
            node=visit.node,
            at=visit.path[-1],
            marks=visit.marks,
            may_create=may_create,
        )

    def _on_tools(self, state: SearchState, frame: Frame, effect: Effect, event: Outcome) -> list[Effect]:
        visit = frame.tools
        assert visit is not None
        options = [] if event.error is not None else event.value["options"]
        if not options:
            here = visit.path.pop() if len(visit.path) > 1 else ""
            if here:
                visit.marks[here] = Mark(VISITED, "nothing left below", state.steps, visit.path[-1])
                return self._list_tools(state, frame, visit)
            frame.tools = None
            return self._leave(state, frame, "neither its content nor its tools answer")
        if len(options) == 1:
            return self._enter_tool(state, frame, visit, options[0], options[0] in event.value["callable"])
        return self._route(state, frame, options, tools=True, callable_=event.value["callable"], jumps=False)

    def _enter_tool(
        self, state: SearchState, frame: Frame, visit: ToolVisit, tool: str, is_callable: bool
    ) -> list[Effect]:
        if not is_callable:
            visit.path.append(tool)
            return self._list_tools(state, frame, visit)
        visit.tool = tool
        return effect_of(
            state,
            frame,
            "fill",
            node=visit.node,
            tool=tool,
            questions=list(frame.open),
            context=context_of(state, frame),
        )

    def _on_fill(self, state: SearchState, frame: Frame, effect: Effect, event: Outcome) -> list[Effect]:
        visit = frame.tools
        assert visit is not None
        if event.error is not None:
            return self._tool_done(state, frame, visit, UNVIABLE, f"no arguments: {event.error}")
        visit.arguments = event.value["arguments"]
        return self._call(state, frame, visit)

    def _call(
        self,
        state: SearchState,
        frame: Frame,
        visit: ToolVisit,
        *,
        again: bool = False,
        granted: dict[str, str] | None = None,
    ) -> list[Effect]:
        return effect_of(
            state,
            frame,
            "call",
            node=visit.node,
            tool=visit.tool,
            arguments=visit.arguments,
            again=again,
            granted=granted,
        )

    def _tool_done(
        self, state: SearchState, frame: Frame, visit: ToolVisit, kind: str, reason: str
    ) -> list[Effect]:
        visit.marks[visit.tool] = Mark(kind, reason, state.steps, visit.path[-1])
        note(state, frame, "tool", visit.node, reason, tool=visit.tool, arguments=visit.arguments, mark=kind)
        return self._list_tools(state, frame, visit)

    def _on_call(self, state: SearchState, frame: Frame, effect: Effect, event: Outcome) -> list[Effect]:
        visit = frame.tools
        assert visit is not None
        if event.error_kind == "in_doubt":
            asked = json.dumps(visit.arguments, ensure_ascii=False, sort_keys=True)
            doubt = f"A call of {visit.tool} with {asked} was interrupted and may have happened."
            question = f"{doubt} Call it again? (yes/no)"
            return effect_of(state, frame, "ask", question=question, about="call")
        if event.error is not None:
            return self._tool_done(state, frame, visit, UNVIABLE, f"it failed: {event.error}")
        value = event.value
        if "asks" in value:
            return effect_of(
                state,
                frame,
                "ask",
                question=value["asks"],
                about="permission",
                fingerprint=value["fingerprint"],
            )
        visit.marks[visit.tool] = Mark(VISITED, "called", state.steps, visit.path[-1])
        found = "missed_node" if value["reused"] else "tool"
        said = {name: value[name] for name in ("at", "from_run") if name in value}
        before = made_before(said) if value["reused"] else ""
        reused = {"reused": True, **said} if value["reused"] else {}
        made = value.get("node")
        where = made["id"] if made else visit.node
        call = {"tool": visit.tool, "arguments": visit.arguments, "call": value["call"], **reused}
        note(state, frame, found, where, before or "called", **call)
        if made is None:
            if not value["text"].strip():
                return self._list_tools(state, frame, visit)
            told = f"{visit.tool} was not called again: {before}" if before and not value.get("own") else ""
            title = f"{visit.tool}, called on {said['at']}" if said.get("at") else visit.tool
            return self._read(state, frame, visit.node, title, "", content=value["text"], told=told)
        if made.get("kept"):  # it is in the tree already
            return self._enter_made(state, frame, visit, made)
        if state.created >= state.limits["nodes_created"]:  # by a search beside this one
            return self._tool_done(state, frame, visit, UNVIABLE, "no more nodes may be made")
        if not made["title"] or not made["description"]:
            return effect_of(
                state, frame, "describe", parent=visit.node, node=made, questions=list(frame.open)
            )
        return effect_of(state, frame, "insert", parent=visit.node, node=made)

    def _on_permission(self, state: SearchState, frame: Frame, said: str, fingerprint: str) -> list[Effect]:
        """Go on with what a person said to a call that needs permission; whatever is no clear yes is a no."""
        visit = frame.tools
        assert visit is not None
        word = said.casefold().strip(" .!")
        if word in ("yes", "y", "always"):
            how = "always" if word == "always" else "once"
            return self._call(state, frame, visit, granted={"how": how, "fingerprint": fingerprint})
        return self._tool_done(state, frame, visit, UNVIABLE, "a person did not permit the call")

    def _on_describe(self, state: SearchState, frame: Frame, effect: Effect, event: Outcome) -> list[Effect]:
        visit = frame.tools
        assert visit is not None
        made = dict(effect.payload["node"])
        said = (
            event.value
            if event.error is None
            else {"title": visit.tool, "description": f"made by {visit.tool}"}
        )
        made["title"] = made["title"] or said["title"]
        made["description"] = made["description"] or said["description"]
        return effect_of(state, frame, "insert", parent=visit.node, node=made)

    def _on_insert(self, state: SearchState, frame: Frame, effect: Effect, event: Outcome) -> list[Effect]:
        visit = frame.tools
        assert visit is not None
        if event.error is not None:
            return self._tool_done(
                state, frame, visit, UNVIABLE, f"its node could not be kept: {event.error}"
            )
        if event.value.get("gone"):
            return self._tool_done(state, frame, visit, UNVIABLE, "the node it worked on is no longer there")
        state.created += 1
        note(state, frame, "create", event.value["id"], f"made by {visit.tool}", parent=visit.node)
        return self._enter_made(state, frame, visit, event.value)

    def _enter_made(
        self, state: SearchState, frame: Frame, visit: ToolVisit, made: dict[str, Any]
    ) -> list[Effect]:
        node = made["id"]
        if node in frame.marks or node in frame.trail:
            return self._list_tools(state, frame, visit)
        frame.tools = None  # its other tools come when the search is back
        frame.trail.append(node)
        note(state, frame, "enter", node, f"made by {visit.tool}")
        return self._list(state, frame)
