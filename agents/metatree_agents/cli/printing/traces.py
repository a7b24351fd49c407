"""A trace in words: why each branch was taken or ruled out."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from metatree.result import TraceEntry
from metatree_agents.cli._output import one_line, styled, visible

_RULED_OUT_SHOWN = 8
_WIDE = 110


def trace_lines(entries: Iterable[TraceEntry], *, collects: bool = False) -> Iterator[str]:
    """Yield the whole trace: one decision a line with its step, what was ruled out below it, nested frames indented.

    Args:
        collects: whether the run collects nodes: no question is open at its end, whatever it found.
    """
    for entry, depth, text in _texts(entries):
        indent = "  " * depth
        if collects and entry.event == "end":
            text = _words(replace(entry, data={**entry.data, "open": ()}))
        yield f"{entry.step:4}  {indent}{text}"
        unviable = entry.data.get("unviable")
        if isinstance(unviable, Mapping):
            yield from _ruled_out(unviable, f"      {indent}    ")


def path_lines(entries: Iterable[TraceEntry]) -> Iterator[str]:
    """Yield only the path of a search: its choices, what it entered, read, called and collected."""
    for entry, depth, text in _texts(entries):
        if entry.event not in ("mark", "fact", "end"):
            yield f"  {'  ' * depth}{text}"


def _texts(entries: Iterable[TraceEntry]) -> Iterator[tuple[TraceEntry, int, str]]:
    """Yield each entry that says something of its own, with the depth of its frame and its words."""
    depths: dict[int, int] = {}
    before: TraceEntry | None = None
    for entry in entries:
        if entry.event == "frame" and entry.frame not in depths:
            # Only a nested frame has a reason; it interrupts the frame that was at work.
            nested = bool(entry.reason) and before is not None
            depths[entry.frame] = depths.get(before.frame, 0) + 1 if nested and before is not None else 0
        if not _follows(entry, before):
            yield entry, depths.get(entry.frame, 0), _words(entry)
        # The marks of what a decision ruled out come between it and the entering of what it chose.
        if not (entry.event == "mark" and entry.data.get("mark") == "unviable"):
            before = entry


def _follows(entry: TraceEntry, before: TraceEntry | None) -> bool:
    """Say whether an entry only carries out the decision before it, which has told it already."""
    if before is None or entry.frame != before.frame or entry.step != before.step:
        return False
    if entry.event == "enter":
        return before.event == "route" and before.data.get("choice") == entry.node
    if entry.event == "mark" and entry.data.get("mark") == "unviable":
        return before.event == "route" and entry.node in before.data.get("unviable", ())
    return entry.event == "mark" and before.event in ("read", "collect") and before.node == entry.node


def _words(entry: TraceEntry) -> str:
    node = styled(visible(entry.node or ""), "cyan")
    why = _reason(entry.reason)
    data = entry.data
    match entry.event:
        case "frame":
            questions = " / ".join(one_line(question, _WIDE) for question in data.get("questions", ()))
            return (
                f"{styled('ask', 'bold')} {questions}{'' if entry.node in (None, '.') else f' (from {node})'}"
            )
        case "route":
            choice = styled(visible(str(data["choice"])), "cyan") if data.get("choice") else "none"
            offered: Sequence[str] = data.get("offered", ())
            by = data.get("by", "router")
            judge = {
                "router": "",
                "tree": " in the order of the tree",
                "probabilities": " of what is left",
            }.get(by, f" by {by}")
            return f"at {node}: {styled('chose', 'bold')} {choice} of {len(offered)}{judge}{why}"
        case "read":
            answers = len(data.get("answers", ()))
            known = " again" if data.get("known") else ""
            ending = f": {answers} answer{'' if answers == 1 else 's'}" if answers else why
            return f"{styled('read', 'bold')} {node}{known}{ending}"
        case "mark" if data.get("mark") == "unviable":
            return f"{styled('ruled out', 'bold')} {node}{why}"
        case "mark":
            return f"done with {node}{why}"
        case "tool" | "missed_node" if data.get("tool"):
            event = entry.event.replace("_", " ")
            given = (
                f" with {one_line(json.dumps(found, ensure_ascii=False), _WIDE)}"
                if (found := data.get("arguments"))
                else ""
            )
            return f"{styled(event, 'bold')} {visible(str(data['tool']))}{given} at {node}{why}"
        case "end":
            left = len(data.get("open", ()))
            return f"{styled('end', 'bold')}{why}" + (f", {left} still open" if left else "")
        case _:
            event = styled(entry.event.replace("_", " "), "bold")
            return f"{event} {node}{why}" if entry.node else f"{event}{why}"


def _ruled_out(unviable: Mapping[str, object], margin: str) -> Iterator[str]:
    for number, (node, reason) in enumerate(unviable.items()):
        if number == _RULED_OUT_SHOWN:
            yield styled(f"{margin}… {len(unviable) - number} more ruled out (--json has them all)", "dim")
            return
        yield styled(f"{margin}ruled out {visible(node)}{_reason(str(reason))}", "dim")


def _reason(reason: str) -> str:
    return f": {one_line(reason, _WIDE)}" if reason else ""
