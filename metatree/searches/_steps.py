"""What every step of a search does: ask for an effect, and write down why."""

from __future__ import annotations

from typing import Any

from metatree.durable import Effect
from metatree.searches._state import Frame, SearchState, Waiting


def effect_of(state: SearchState, frame: Frame, kind: str, **payload: Any) -> list[Effect]:
    """Make an effect for a frame, as the list that a step returns."""
    effect = Effect(state.next_effect, kind, payload)
    state.next_effect += 1
    state.waiting[effect.id] = Waiting(frame.id, effect)
    return [effect]


def note(state: SearchState, frame: Frame, event: str, node: str | None, reason: str, **data: Any) -> None:
    """Write a decision into the trace."""
    state.trace.append(
        {"step": state.steps, "frame": frame.id, "event": event, "node": node, "reason": reason, "data": data}
    )


def collecting(state: SearchState) -> bool:
    """Say whether nodes are collected, and nothing is read."""
    return bool(state.given["returns"] == "nodes")
