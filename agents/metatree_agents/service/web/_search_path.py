"""The path of a search as a picture: places in the tree, what was chosen, read and ruled out there, and why.

Made of the steps that an engine tells (`answering.step_of`), so that a search that goes on and one that has ended look
alike. Steps of engines that say less are shown with what they say.

The server draws it, and a page asks for it again when an event says that something happened: one drawing for the live
search, the answer and the trace. Lost: a second one in JavaScript.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Out:
    """A branch that was ruled out."""

    node: str
    title: str
    reason: str


@dataclass(slots=True)
class PathNode:
    """One place that a search came to, with what it did there and where it went from there."""

    node: str | None
    title: str
    tree: str | None = None
    """The name of its tree; None where trees have none."""
    trail: str = ""
    """Titles that lie between the place before and this one, when it was chosen across them."""
    why: str = ""
    """Why it was chosen."""
    kind: str = "place"
    """`place`, `question` (one that has to be answered first) or `event` (a tool, a new node, a restart …)."""
    offered: int = 0
    by: str = ""
    read: str = ""
    """What reading it gave, empty when it was not read."""
    useful: bool = False
    dead_end: str = ""
    """Why nothing was chosen here."""
    out: list[Out] = field(default_factory=list)
    out_count: int = 0
    below: list[PathNode] = field(default_factory=list)
    number: int = 0
    """Number of the latest step that changed it."""
    room: list[PathNode] = field(default_factory=list)
    """Where what is reached from here is put: `below`, or, very deep, beside it, so that a page stays readable."""


def search_path(steps: Iterable[tuple[int, Mapping[str, Any]]], *, tree: str | None = None) -> list[PathNode]:
    """Return the places of a search, each under the one that it was reached from.

    Args:
        steps: (number, step) in order; numbers grow.
        tree: the name of the tree; None where trees have none.
    """
    roots: list[PathNode] = []
    depths: dict[int, int] = {id(roots): 0}
    known: dict[tuple[int, str | None], PathNode] = {}
    tops: dict[int, list[PathNode]] = {}
    asking: list[PathNode] | None = None
    last: PathNode | None = None

    def put(made: PathNode, into: list[PathNode]) -> PathNode:
        made.tree = tree
        into.append(made)
        deeper = depths[id(into)] + 1
        made.room = made.below if deeper < DEEPEST else into
        depths.setdefault(id(made.room), deeper)
        return made

    def top(frame: int) -> list[PathNode]:
        """Return where the places of a frame begin: at the top, or under what asked for it."""
        nonlocal asking
        if frame not in tops:
            tops[frame] = asking if asking is not None else roots
            asking = None
        return tops[frame]

    def place(frame: int, node: str | None, title: str, above: object) -> PathNode:
        match = known.get((frame, node))
        if match is None:
            # A search that goes back up comes to places that it jumped over: each hangs under the nearest known one.
            way = [
                known[frame, each]
                for each in (above if isinstance(above, list) else ())
                if isinstance(each, str) and (frame, each) in known
            ]
            into = way[-1].room if way else top(frame)
            match = known[frame, node] = put(PathNode(node, title or node or ""), into)
        return match

    for number, step in steps:
        event, node = str(step.get("Event", "")), _text(step.get("Node")) or None
        frame, title, above = _number(step.get("Frame")), _text(step.get("Title")), step.get("Above")
        match event:
            case "route":
                here = place(frame, node, title, above)
                here.offered = max(
                    here.offered, _number(step.get("Offered"))
                )  # fewer are left at a later visit
                here.by = _text(step.get("By"))
                _rule_out(here, step)
                choice = _text(step.get("Choice"))
                if choice and (frame, choice) in known:
                    last = known[frame, choice]
                    last.number = number
                elif choice:
                    came = PathNode(choice, _text(step.get("Chosen")) or choice)
                    known[frame, choice] = put(came, here.room)
                    trail = step.get("Trail")
                    came.trail = " › ".join(map(_text, trail)) if isinstance(trail, list) else ""
                    came.why, came.number = _text(step.get("Reason")), number
                    last = came
                else:
                    here.dead_end = _text(step.get("Reason")) or "nothing here was worth a look"
                    last = here
            case "read":
                here = last = place(frame, node, title, above)
                count = _number(step.get("Answers"))
                here.useful = count > 0
                here.read = f"{count} answer{'s' * (count != 1)}" if count else "nothing of use"
            case "ask":
                made = PathNode(None, _text(step.get("Reason")) or _text(step.get("Text")), kind="question")
                here = put(made, last.room if last is not None else roots)
                asking = here.room
            case _:
                text = _text(step.get("Text"))
                if not text:
                    continue
                into = last.room if last is not None and event not in _ANEW else top(frame)
                here = put(PathNode(node, text, kind="event"), into)
        here.number = number
    return roots


DEEPEST = 30
"""How many places lie under each other in the picture."""
_ANEW = ("restart", "second_look")
"""Events after which a search begins at the top again."""


def _rule_out(place: PathNode, step: Mapping[str, Any]) -> None:
    seen = {out.node for out in place.out}
    marks = step.get("RuledOut")
    for one in marks if isinstance(marks, list) else ():
        if isinstance(one, Mapping) and _text(one.get("Node")) not in seen:
            node = _text(one.get("Node"))
            place.out.append(Out(node, _text(one.get("Title")) or node, _text(one.get("Reason"))))
    place.out_count = max(len(place.out), place.out_count, _number(step.get("RuledOutCount")))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _number(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
