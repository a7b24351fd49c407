"""Requests and answers of the parts as JSON, for caches and recordings."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from metatree.node import Node
from metatree.protocols import Answer, Description, Reading, RouteDecision


def request_json(request: Any) -> dict[str, Any]:
    """Return what a request says, without the errors of earlier answers to it.

    Of a node only what a part may look at is kept: not its provenance, which changes from run to run.
    """
    said: dict[str, Any] = {}
    for name in request.__dataclass_fields__:
        value = getattr(request, name)
        if name == "errors":
            continue
        said[name] = _plain(value)
    return said


def _plain(value: Any) -> Any:
    if isinstance(value, Node):
        return [value.id, value.title, value.description, value.kind, value.content]
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return asdict(value) if hasattr(value, "__dataclass_fields__") else value


def answer_json(method: str, answer: Any) -> Any:
    """Return an answer as JSON."""
    return answer if method in ("fill", "compose") else asdict(answer)


def answer_from(method: str, kept: Any) -> Any:
    """Return the answer that `answer_json` made JSON of.

    Raises:
        Exception: of whatever kind, when it is no such JSON.
    """
    match method:
        case "route":
            return RouteDecision(kept["choice"], dict(kept["unviable"]), kept["reason"])
        case "read":
            answers = tuple(Answer(**answer) for answer in kept["answers"])
            return Reading(answers, tuple(kept["new_questions"]), kept["notes"], kept["useful"])
        case "describe":
            return Description(kept["title"], kept["description"])
        case "fill":
            return dict(kept)
        case _:
            return str(kept)
