"""A trace in words: why each branch was taken or ruled out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from metatree.result import TraceEntry
from metatree_agents.cli.screen import styled, visible

_RULED_OUT_SHOWN = 8


def trace_lines(entries: Iterable[TraceEntry]) -> Iterator[str]:
    """Yield the trace, one decision a line, nested frames indented, ruled-out branches below the choice."""
    for entry in entries:
        indent = "  " * entry.frame
        yield f"{entry.step:4}  {indent}{styled(f'{entry.event:11}', 'bold')} {_line(entry)}".rstrip()
        margin = f"      {indent}{'':12}"
        unviable = _mapping(entry.data.get("unviable"))
        for number, (node, reason) in enumerate(unviable.items()):
            if number == _RULED_OUT_SHOWN:
                yield styled(f"{margin}… {len(unviable) - number} more ruled out", "dim")
                break
            yield styled(f"{margin}not {visible(node)}: {visible(_one_line(reason))}", "dim")


def path_lines(entries: Iterable[TraceEntry]) -> Iterator[str]:
    """Yield only the path that a search took: what it chose, entered, read, collected, and where it went back."""
    for entry in entries:
        indent = "  " + "  " * entry.frame
        node = visible(entry.node or "")
        reason = visible(_one_line(entry.reason))
        match entry.event:
            case "route":
                choice = entry.data.get("choice")
                offered = entry.data.get("offered") or ()
                taken = visible(str(choice)) if choice else "none"
                yield f"{indent}at {node}: {taken} of {len(offered)}{_because(reason)}"
            case "read" | "collect" | "tool" | "create" | "fallback" | "restart" | "second_look" | "person":
                yield f"{indent}{entry.event.replace('_', ' ')} {node}{_because(reason)}"
            case "up":
                yield styled(f"{indent}back up from {node}{_because(reason)}", "dim")
            case _:
                pass


def _line(entry: TraceEntry) -> str:
    node = visible(entry.node or "")
    reason = visible(_one_line(entry.reason))
    if entry.event == "route":
        choice = entry.data.get("choice")
        offered = entry.data.get("offered") or ()
        by = entry.data.get("by")
        taken = visible(str(choice)) if choice else "none"
        asked = f", by {by}" if by and by != "router" else ""
        return f"{node} → {taken} of {len(offered)}{asked}{_because(reason)}"
    if entry.event == "mark":
        return f"{node} {entry.data.get('mark', '')}{_because(reason)}"
    return f"{node}{_because(reason)}" if node else reason


def _because(reason: str) -> str:
    return f"  ({reason})" if reason else ""


def _one_line(text: object, width: int = 160) -> str:
    line = " ".join(str(text).split())
    return line if len(line) <= width else line[: width - 1] + "…"


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}
