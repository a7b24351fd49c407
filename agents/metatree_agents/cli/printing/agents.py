"""Agents as trees of lines: after a command, and live on a terminal while they are driven."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from metatree_agents.cli import _output as output

if TYPE_CHECKING:
    from metatree_agents.planner.agents.agents import AgentInfo
    from metatree_agents.planner.agents.state import AgentState
    from metatree_agents.planner.domain.network import Intent

_WIDE = 80
_SIGNS = {
    "complete": ("✓", "green"),
    "failed": ("✗", "red"),
    "cancelled": ("-", "dim"),
    "active": ("▶", "cyan"),
    "pending": ("·", "dim"),
    "deferred": ("…", "yellow"),
    "open": ("?", "yellow"),
}


def intent_lines(
    intents: Sequence[Intent],
    waits: Mapping[int, str] | None = None,
    *,
    styled: Callable[..., str] = output.styled,
) -> Iterator[str]:
    """Yield one line for each goal, with what it waits for, sub-goals indented below their rule."""
    below: dict[int | None, list[Intent]] = {}
    for one in intents:
        below.setdefault(one.parent, []).append(one)
    waiting = [(one, 0) for one in reversed(below.get(None, []))]
    while waiting:
        one, depth = waiting.pop()
        sign, style = _SIGNS[one.status]
        text = _goal_text(one)
        if waits and one.id in waits:
            text += f", waits for {output.one_line(waits[one.id], _WIDE)}"
        yield "  " * depth + styled(f"{sign} {output.visible(text)}", style)
        waiting += [(inner, depth + 1) for inner in reversed(below.get(one.id, []))]


def _goal_text(one: Intent) -> str:
    from metatree_agents.planner.domain.conditions import atom_text

    text = atom_text(one.goal)
    if one.action and one.action != one.goal[0]:
        text += f" by {one.action}"
    text += f": {one.status}" if one.status not in ("complete", "pending") else ""
    if one.attempt > 1:
        text += f", attempt {one.attempt}"
    if one.result is not None:
        text += f" = {output.one_line(str(one.result), _WIDE)}"
    return text + (
        f" ({output.one_line(one.detail, _WIDE)})" if one.detail and one.status == "failed" else ""
    )


def agent_lines(info: AgentInfo) -> Iterator[str]:
    """Yield an agent as text."""
    from metatree_agents.planner.domain.conditions import atom_text

    yield output.styled(f"{info.id}  {output.visible(atom_text(info.goal))}: {info.status}", "bold")
    if info.detail and info.status not in ("complete",):
        yield output.visible(info.detail)
    yield from intent_lines(info.intents, info.waits)
    for question in info.questions:
        yield output.visible(f"? {question}")
    if info.refused:
        yield f"{info.refused} late write{'' if info.refused == 1 else 's'} of processes that had lost it refused"


@contextmanager
def live_tree() -> Iterator[Callable[[str, AgentState], None] | None]:
    """Show what an agent does as a tree that changes; yield None when standard error is not a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    def plain(text: str, *_: str) -> str:
        return text

    with Live(console=Console(stderr=True), transient=True, refresh_per_second=8) as live:

        def show(agent: str, state: AgentState) -> None:
            lines = list(intent_lines(sorted(state.network.values(), key=lambda one: one.id), styled=plain))
            live.update(Text("\n".join(_window(lines))))

        yield show


def _window(lines: Iterable[str], height: int = 30) -> list[str]:
    """Return as many lines as fit, those around the first that is at work."""
    listed = list(lines)
    if len(listed) <= height:
        return listed
    at = next((n for n, line in enumerate(listed) if line.lstrip().startswith("▶")), 0)
    last = next((n for n in range(len(listed) - 1, 0, -1) if listed[n].lstrip().startswith("▶")), at)
    first = max(0, min(last - height // 2, len(listed) - height))
    return [*listed[first : first + height], f"… {len(listed)} goals"]
