"""The walk through the tree: list a node, choose among its children, enter, collect or leave it.

descend ─ list the children ─┬─ something to read ── read (`_reading_steps`)
   ▲                         ├─ one option ──────── enter it
   │                         ├─ several options ─── route ── enter the choice, mark the rest
   │                         └─ none ── tools (`_tool_steps`)
   └──────────── up ── the node is visited
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from metatree.durable import Effect, Outcome
from metatree.errors import NotWorthAsking
from metatree.searches._context import context_of
from metatree.searches._effects import ListNode, RankMenu, RouteMenu
from metatree.searches._outcomes import Chosen, Listing, MenuSplit, Ranked, Routed, unscored
from metatree.searches._state import (
    MOST_UNUSABLE,
    UNVIABLE,
    VISITED,
    Collected,
    Frame,
    Knockout,
    Mark,
    SearchState,
)
from metatree.searches._steps import collecting, effect_of, note
from metatree.searches._tool_steps import ToolWalk

MOST_LEVELS = 1_000
"""Levels that are entered: each is a step, and nobody's folders are as deep."""
LEAST_SHARE = 0.02
"""What is less likely is not tried before the router has seen what is left."""
LEAST_OF_LEFT = 0.2
"""So much of what is left the likeliest must be, or the router is asked again."""


class TreeWalk(ToolWalk):
    """The part of the search machine that goes from node to node."""

    def _list(self, state: SearchState, frame: Frame) -> list[Effect]:
        return effect_of(state, frame, ListNode(frame.trail[-1], frame.marks))

    def _on_list(self, state: SearchState, frame: Frame, event: Outcome) -> list[Effect]:
        node = frame.trail[-1]
        value: Listing = event.value
        if event.error is not None or value.get("gone"):
            return self._leave(state, frame, event.error or "it is no longer in the tree")
        frame.options = value["children"]
        for child in value.get(
            "ruled_out", ()
        ):  # in a menu further up, too: a second look has to come by here
            if child in frame.marks:
                frame.marks[child].menu = node
        frame.has_tools = value["tools"]
        if collecting(state):
            if value["accept"] and node not in frame.read and frame.trail == state.given["trail"]:
                frame.read[node] = state.steps  # the start node itself may be what is looked for
                return self._route(state, frame, [node])
            if len(frame.options) == 1 and value["collectable"]:
                return self._route(state, frame, frame.options)
        elif value["content"] and node not in frame.read:
            frame.read[node] = state.steps
            return self._read(state, frame, node, value["title"], value["version"])
        return self._descend(state, frame)

    def _descend(self, state: SearchState, frame: Frame) -> list[Effect]:
        options = [o for o in frame.options if o not in frame.marks]
        if not options:
            return self._use_tools(state, frame)
        if len(options) == 1:
            return self._enter(state, frame, options[0], "the only option")
        if (above := _likelier_above(frame)) is not None:
            here = frame.trail.pop()
            self._mark(
                state, frame, here, UNVIABLE, f"{above} is likelier than what is left here", frame.trail[-1]
            )
            return self._list(state, frame)
        if (following := _next_likeliest(frame)) is not None:
            choice, share = following
            here, reason = frame.trail[-1], f"the next likeliest ({share:.2f})"
            data = {"offered": options, "choice": choice, "unviable": {}, "by": "probabilities"}
            note(state, frame, "route", here, reason, **data)
            return self._enter(state, frame, choice, reason)
        return self._route(state, frame, options)

    def _enter(self, state: SearchState, frame: Frame, node: str, reason: str) -> list[Effect]:
        if node in frame.trail:  # an option above: moved during the run
            frame.marks[node] = Mark(VISITED, "it lies above", state.steps, frame.trail[-1])
            return self._list(state, frame)
        if len(frame.trail) >= MOST_LEVELS:
            deep = f"it lies {MOST_LEVELS:,} levels deep"
            self._mark(state, frame, node, UNVIABLE, deep, frame.trail[-1])
            return self._list(state, frame)
        frame.trail.append(node)
        note(state, frame, "enter", node, reason)
        return self._list(state, frame)

    def _leave(self, state: SearchState, frame: Frame, reason: str) -> list[Effect]:
        """Mark the node at the end of the trail visited and go up."""
        node = frame.trail.pop()
        self._mark(state, frame, node, VISITED, reason, frame.trail[-1] if frame.trail else None)
        if not frame.trail:
            return self._exhausted(state, frame)
        return self._list(state, frame)

    def _mark(
        self, state: SearchState, frame: Frame, node: str, kind: str, reason: str, menu: str | None
    ) -> None:
        frame.marks[node] = Mark(kind, reason, state.steps, menu)
        note(state, frame, "mark", node, reason, mark=kind)

    def _route(
        self,
        state: SearchState,
        frame: Frame,
        options: Sequence[str],
        *,
        tools: bool = False,
        callable_: Sequence[str] = (),
        jumps: bool = True,
    ) -> list[Effect]:
        questions, context = tuple(frame.open), context_of(state, frame)
        payload = RouteMenu(
            frame.trail[-1], options, tools, callable_, jumps, frame.marks, questions, context
        )
        if collecting(state) and not tools:
            done = tuple(node.id for node in state.collected)
            payload = replace(payload, collected=done, wanted=state.given["k"] - len(done))
        return effect_of(state, frame, payload)

    def _on_route(self, state: SearchState, frame: Frame, payload: RouteMenu, event: Outcome) -> list[Effect]:
        if event.error_kind == NotWorthAsking.__name__:
            return effect_of(state, frame, replace(payload, embedded=True))
        if event.error is not None:
            why = f"the router failed: {event.error}"
            own, in_row = state.given.get("own_router"), state.tallies[payload.kind].failed_in_row
            if own and in_row >= MOST_UNUSABLE:
                state.without_router = True
                state.why_without = f"the router {own!r} failed at {in_row} requests in a row ({event.error})"
                why += "; the embedded one chooses from here"
            note(state, frame, "route", frame.trail[-1], why, by="nobody")
            return effect_of(state, frame, RankMenu(replace(payload, jumps=False)))
        value: Routed | MenuSplit = event.value
        if "split" in value:
            if frame.knockout is None:
                frame.knockout = Knockout([])
            frame.knockout.groups[:0] = value["split"]
            frame.knockout.unviable.update(value["gone"])
            return self._next_group(state, frame)
        return self._apply_decision(state, frame, payload, value, by="router")

    def _next_group(self, state: SearchState, frame: Frame) -> list[Effect]:
        """Route the next group of a menu that is too long for one prompt; at last, the winners among themselves."""
        knockout = frame.knockout
        assert knockout is not None
        if knockout.groups:
            group = knockout.groups.pop(0)
            if len(group) > 1:
                return self._route(state, frame, group, jumps=False)
            knockout.winners += group
            return self._next_group(state, frame)
        frame.knockout = None
        for node, why in knockout.unviable.items():
            self._mark(state, frame, node, UNVIABLE, why, frame.trail[-1])
        if len(knockout.winners) == 1:
            return self._enter_or_collect(state, frame, knockout)
        if not knockout.winners:
            return self._list(state, frame)
        return self._route(state, frame, knockout.winners, jumps=False)

    def _enter_or_collect(self, state: SearchState, frame: Frame, knockout: Knockout) -> list[Effect]:
        """Go on with the only winner of all groups."""
        winner, value = knockout.winners[0], knockout.last
        if value is not None and value["choice"] == winner and _is_collectable(state, value):
            return self._collect(state, frame, winner, value)
        if collecting(state) and value is None:
            return self._route(state, frame, [winner], jumps=False)
        return self._enter(state, frame, winner, "the only one left of its groups")

    def _on_rank(self, state: SearchState, frame: Frame, payload: RouteMenu, event: Outcome) -> list[Effect]:
        options = list(payload.options)
        ranked: Ranked = {**unscored(options[0]), "why": ""} if event.error is not None else event.value
        removed = options if ranked["choice"] is None else ()
        value: Routed = {
            **ranked,
            "more": [],
            "unviable": dict.fromkeys(removed, "it is no longer in the tree"),
            "probabilities": {},
            "by_model": False,
            "reason": "order by evidence" if ranked["score"] else "order of the tree",
            "offered": options,
        }
        return self._apply_decision(
            state, frame, payload, value, by="evidence" if ranked["score"] else "tree"
        )

    def _apply_decision(
        self, state: SearchState, frame: Frame, payload: RouteMenu, value: Routed, *, by: str
    ) -> list[Effect]:
        """Apply a decision among nodes, among some of those of a menu that is too long, or among tools."""
        choice, unviable = _decided(frame, payload, value)
        here, reason, knockout = frame.trail[-1], value["reason"], frame.knockout
        data: dict[str, Any] = {"offered": value["offered"], "choice": choice, "unviable": unviable, "by": by}
        if shares := value.get("probabilities"):
            data["probabilities"] = shares
            if state.given.get("by_probabilities") and not (collecting(state) or payload.tools or knockout):
                frame.likely[here] = shares
        note(state, frame, "route", here, reason, **data, **({} if knockout is None else {"group": True}))
        if knockout is not None:
            knockout.unviable.update(unviable)
            if choice is not None:
                knockout.winners.append(choice)
                knockout.last = value
            return self._next_group(state, frame)
        if payload.tools:
            return self._apply_tool_decision(state, frame, payload, choice, unviable)
        for node, why in unviable.items():
            self._mark(state, frame, node, UNVIABLE, why or reason, here)
        if choice is None:
            return self._list(state, frame)
        if _is_collectable(state, value):
            return self._collect(state, frame, choice, value)
        return self._enter(state, frame, choice, reason)

    def _collect(self, state: SearchState, frame: Frame, node: str, value: Routed) -> list[Effect]:
        """Collect what was chosen, and what a router that goes by evidence would choose next."""
        here = frame.trail[-1]
        self._keep(state, frame, node, value, _why_collected(value))
        for following in value.get("more", ()):
            other = following["choice"]
            if other is None or len(state.collected) >= state.given["k"]:
                break
            reason = f"next by evidence ({following['score']:.2f})"
            note(state, frame, "route", here, reason, offered=[other], choice=other, unviable={}, by="router")
            self._keep(state, frame, other, following, _why_collected(following))
        if len(state.collected) >= state.given["k"]:
            return self._finish(state, frame, "answered")
        if node == here and not value.get("inner"):
            return self._leave(state, frame, "collected")
        return self._list(state, frame)

    def _keep(self, state: SearchState, frame: Frame, node: str, value: Chosen, reason: str) -> None:
        """Collect a node; what could be collected below it stays open."""
        if all(node != other.id for other in state.collected):
            first_last = value.get("lines")
            lines = None if first_last is None else (first_last[0], first_last[1])
            path = value.get("path")
            state.collected.append(
                Collected(node, value["title"], value["score"], reason, path, lines, value.get("at", ""))
            )
            state.fruitless = 0
            note(state, frame, "collect", node, reason, score=value["score"])
        if node != frame.trail[-1] and not value.get("inner"):
            self._mark(state, frame, node, VISITED, "collected", frame.trail[-1])


def _next_likeliest(frame: Frame) -> tuple[str, float] | None:
    """Return the likeliest of what is left of a menu, None when it is to be asked about again.

    What is left is made to sum to one, since what was tried first does not answer.
    """
    said = frame.likely.get(frame.trail[-1])
    if said is None:
        return None
    left = {i: share for i, share in said.items() if i not in frame.marks and i not in frame.trail}
    total = 1 - sum(share for i, share in said.items() if i not in left)
    best = max(left, key=left.__getitem__, default=None)
    if best is None or left[best] < LEAST_SHARE or left[best] < LEAST_OF_LEFT * total:
        del frame.likely[frame.trail[-1]]
        return None
    return best, min(1.0, left[best] / max(total, left[best]))


def _likelier_above(frame: Frame) -> str | None:
    """Return what a menu above offers that is likelier than all that is left here, once something here led to nothing.

    What is left here has the share of this node, less that of what was tried in it.
    """
    here, *above = reversed(frame.trail)
    shares = frame.likely.get(here)
    tried = sum(share for node, share in (shares or {}).items() if node in frame.marks)
    if not tried:
        return None
    left = max(0.0, 1 - tried)
    for menu in above:
        offered = frame.likely.get(menu)
        if offered is None or here not in offered:
            return None
        left *= offered[here]
        others = {i: p for i, p in offered.items() if i not in frame.marks and i not in frame.trail}
        best = max(others, key=others.__getitem__, default=None)
        if best is not None and others[best] > left:
            return best
        here = menu
    return None


def _is_collectable(state: SearchState, value: Routed) -> bool:
    """Say whether what was chosen is collected, and not entered for what is below it."""
    return collecting(state) and value["accept"] and all(value["choice"] != c.id for c in state.collected)


def _decided(frame: Frame, payload: RouteMenu, value: Routed) -> tuple[str | None, dict[str, str]]:
    """Return what was chosen and what was ruled out.

    Only ids that were offered count, and a choice that is also ruled out is a choice.
    """
    offered = set(value["offered"])
    choice = value["choice"] if value["choice"] in offered else None
    unviable = {i: r for i, r in value["unviable"].items() if i in offered and i != choice}
    if choice is None and not unviable:
        unviable = dict.fromkeys(value["offered"], value["reason"] or "nothing was chosen")
    if choice is not None and frame.looked_twice and not payload.tools:
        # A second look is for routers that are wrong: beside a choice, nothing is ruled out. Lost: two looks (more
        # calls, 97 % found), and votes (more state).
        unviable = {}
    return choice, unviable


def _why_collected(value: Routed | Ranked) -> str:
    """Return why a node was collected: what the evidence says, with its line or with what the router said."""
    hint, why = value["hint"], value.get("why", "")
    reason = str(value.get("reason", ""))
    if not why:
        return reason or hint
    if value.get("by_model") and reason:
        return f"{reason} ({why})"
    return f"{why}: {hint!r}" if hint else why
