"""What every step of a search does: ask for an effect, write down why, and make the next move."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from metatree.durable import Effect
from metatree.result import TraceEvent
from metatree.searches._effects import ByPart, RouteMenu, SearchEffect
from metatree.searches._state import Fact, Frame, SearchState, Waiting


class Moves(ABC):
    """What reading and tools ask of the parts that are built on them: the walk through the tree, and the machine."""

    @abstractmethod
    def _list(self, state: SearchState, frame: Frame) -> list[Effect]:
        """List the node at the end of the trail."""

    @abstractmethod
    def _descend(self, state: SearchState, frame: Frame) -> list[Effect]:
        """Choose among the children of the node that was listed."""

    @abstractmethod
    def _leave(self, state: SearchState, frame: Frame, reason: str) -> list[Effect]:
        """Mark the node at the end of the trail visited and go up."""

    @abstractmethod
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
        """Ask the router."""

    @abstractmethod
    def _list_tools(self, state: SearchState, frame: Frame) -> list[Effect]:
        """List the tools where a walk through a tool tree is."""

    @abstractmethod
    def _finish(self, state: SearchState, frame: Frame, ended: str) -> list[Effect]:
        """End a frame: hand its answers to the place that asked, or end the run."""

    @abstractmethod
    def _exhausted(self, state: SearchState, frame: Frame) -> list[Effect]:
        """Go on at the root with nothing left."""


def effect_of(state: SearchState, frame: Frame, payload: SearchEffect) -> list[Effect]:
    """Make an effect for a frame, as the list that a step returns."""
    without = state.without_model and payload.kind in state.given.get("by_model", ())
    if isinstance(payload, ByPart) and (without or (state.without_router and isinstance(payload, RouteMenu))):
        payload = replace(payload, embedded=True)
    effect = Effect(state.next_effect, payload.kind, payload)
    state.next_effect += 1
    state.waiting[effect.id] = Waiting(frame.id, effect)
    return [effect]


def note(
    state: SearchState, frame: Frame, event: TraceEvent, node: str | None, reason: str, **data: Any
) -> None:
    """Write a decision into the trace."""
    state.trace.append(
        {"step": state.steps, "frame": frame.id, "event": event, "node": node, "reason": reason, "data": data}
    )


def learn(state: SearchState, frame: Frame, fact: Fact) -> None:
    """Keep a fact for later reads of a frame."""
    if all((known.text, known.question) != (fact.text, fact.question) for known in frame.facts):
        frame.learned = True
    frame.facts.append(fact)
    note(state, frame, "fact", fact.node, fact.text, question=fact.question)


def asks_model(state: SearchState, payload: SearchEffect) -> bool:
    """Say whether a model was asked to carry an effect out."""
    by_part = isinstance(payload, ByPart) and not payload.embedded
    return by_part and payload.kind in state.given.get("by_model", ())


def collecting(state: SearchState) -> bool:
    """Say whether nodes are collected, and nothing is read."""
    return bool(state.given["returns"] == "nodes")
