"""What every step of a search does: ask for an effect, write down why, and make the next move."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from metatree.durable import Effect
from metatree.result import TraceEvent
from metatree.searches._effects import RouteMenu, SearchEffect
from metatree.searches._outcomes import FoundAnswer
from metatree.searches._state import Fact, Frame, SearchState, Waiting


class Moves(ABC):
    """The moves that the parts of the search machine make of each other's; each part implements its own."""

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
    def _read(
        self,
        state: SearchState,
        frame: Frame,
        node: str,
        title: str,
        version: str,
        content: str | None = None,
        notice: str = "",
        question: str = "",
    ) -> list[Effect]:
        """Read a node, or text that one of its tools returned; a known read is taken from the journal.

        Args:
            notice: what the reader has to know of that text.
            question: the one question that the text is read for; '' for all that are open.
        """

    @abstractmethod
    def _take(self, state: SearchState, frame: Frame, answer: FoundAnswer, node: str, title: str) -> None:
        """Take an answer or a part of one; a complete one closes its question."""

    @abstractmethod
    def _use_tools(self, state: SearchState, frame: Frame) -> list[Effect]:
        """Walk the tool tree of a node whose content and children did not answer, or leave it."""

    @abstractmethod
    def _list_tools(self, state: SearchState, frame: Frame) -> list[Effect]:
        """List the tools where a walk through a tool tree is."""

    @abstractmethod
    def _apply_tool_decision(
        self,
        state: SearchState,
        frame: Frame,
        payload: RouteMenu,
        choice: str | None,
        unviable: Mapping[str, str],
    ) -> list[Effect]:
        """Apply a decision among tools."""

    @abstractmethod
    def _finish(self, state: SearchState, frame: Frame, ended: str) -> list[Effect]:
        """End a frame: hand its answers to the place that asked, or end the run."""

    @abstractmethod
    def _exhausted(self, state: SearchState, frame: Frame) -> list[Effect]:
        """Go on at the root with nothing left."""


def effect_of(state: SearchState, frame: Frame, payload: SearchEffect) -> list[Effect]:
    """Make an effect for a frame, as the list that a step returns."""
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


def collecting(state: SearchState) -> bool:
    """Say whether nodes are collected, and nothing is read."""
    return bool(state.given["returns"] == "nodes")
