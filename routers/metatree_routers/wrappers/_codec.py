"""Requests and answers of the parts as JSON, for caches and recordings."""

from __future__ import annotations

from dataclasses import asdict, is_dataclass
from typing import Any

from metatree.node import Node
from metatree.protocols import (
    Answer,
    Description,
    EarlierStatement,
    Reading,
    ReadRequest,
    RouteDecision,
    RouteRequest,
    ToolRequest,
)


def errors_of(request: Any) -> tuple[str, ...]:
    """Return what was wrong with the earlier answers to a request; nothing of those that carry no errors."""
    return request.errors if isinstance(request, RouteRequest | ReadRequest | ToolRequest) else ()


def request_json(request: Any) -> Any:
    """Return what a request, or each of several, says, without the errors of earlier answers to it.

    Of a node only what a part may look at is kept: not its provenance, which changes from run to run.
    """
    if isinstance(request, tuple):
        return [request_json(each) for each in request]
    data: dict[str, Any] = {}
    for name in request.__dataclass_fields__:
        value = getattr(request, name)
        if name == "errors" or (name == "asked_for" and not value):  # not in earlier recordings
            continue
        data[name] = _plain(value)
    return data


def _plain(value: Any) -> Any:
    if isinstance(value, Node):
        return [value.id, value.title, value.description, value.kind, value.content]
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Answer) and not value.earlier:  # not in earlier recordings
        return {name: each for name, each in asdict(value).items() if name != "earlier"}
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value


def answer_json(method: str, answer: Any) -> Any:
    """Return an answer as JSON."""
    if method == "describe_many":
        return [None if each is None else asdict(each) for each in answer]
    return answer if method in ("fill", "compose") else asdict(answer)


def answer_from(method: str, stored: Any) -> Any:
    """Return the answer that `answer_json` made JSON of.

    Raises:
        Exception: of whatever kind, when it is no such JSON.
    """
    match method:
        case "route":
            probabilities = dict(stored.get("probabilities", {}))
            return RouteDecision(stored["choice"], dict(stored["unviable"]), stored["reason"], probabilities)
        case "read":
            answers = tuple(map(_answer_from, stored["answers"]))
            return Reading(answers, tuple(stored["new_questions"]), stored["notes"], stored["useful"])
        case "describe":
            return Description(stored["title"], stored["description"])
        case "describe_many":
            return [None if each is None else answer_from("describe", each) for each in stored]
        case "fill":
            return dict(stored)
        case _:
            return str(stored)


def _answer_from(stored: Any) -> Answer:
    earlier = tuple(EarlierStatement(**said) for said in stored.get("earlier", ()))
    return Answer(**{**stored, "earlier": earlier})
