"""metatree's requests as prompts: what a model-backed router and reader would send, and the answers taken back.

Each prompt has a stable beginning and asks for JSON. Options carry short labels, checked against those offered.
"""

from __future__ import annotations

import json
import re

from benchmarks.peers.stub import Stub, heading
from metatree import Answer, Option, Reading, ReadRequest, RouteDecision, RouteRequest, Traits
from metatree.errors import BadModelAnswer

ROUTE_SYSTEM = """\
You guide a search through a tree of notes. You see the open questions, where the search is, and what lies below, \
each option with a label, a title, a description and sometimes lines found below it. Choose the one option that is \
most likely to lead to an answer. Rule out only options that cannot lead to one. If none can, choose null.
Answer with JSON: {"choice": "<label or null>", "unviable": {"<label>": "<reason>"}, "reason": "<one sentence>"}"""

READ_SYSTEM = """\
You read one note for a search. Say what it answers, with the words of the note that support it, exactly. Ask \
something back only when the note cannot be understood without it.
Answer with JSON: {"answers": [{"question": "", "answer": "", "quote": "", "complete": true}], \
"new_questions": [], "notes": "<worth keeping>", "useful": true}"""

_OPTION = re.compile(r"^\[(?P<label>\w+)\] (?P<title>.*)$", re.MULTILINE)


def render_route(request: RouteRequest) -> str:
    """Return the part of a router's prompt that changes."""
    lines = ["Questions:", *(f"- {question}" for question in request.questions)]
    if request.context:
        lines += ["Known:", request.context]
    lines += [f"Here: {request.node.title}", "Options:"]
    for number, option in enumerate(request.options, start=1):
        lines += _render_option(f"o{number}", option)
    if request.errors:
        lines += ["Your earlier answers were wrong:", *request.errors]
    return "\n".join(lines)


def _render_option(label: str, option: Option) -> list[str]:
    within = f" (in {option.parent})" if option.parent else ""
    lines = [f"[{label}] {option.title}{within}"]
    if option.description:
        lines.append(f"    {option.description}")
    return lines + [f"    found below: {hint}" for hint in option.hints]


def render_read(request: ReadRequest) -> str:
    """Return the part of a reader's prompt that changes."""
    lines = ["Questions:", *(f"- {question}" for question in request.questions)]
    if request.context:
        lines += ["Known:", request.context]
    return "\n".join([*lines, f"Note: {request.node.title}", request.content])


class StubRouter:
    """Renders a request, has the stub answer the prompt, and takes the answer back; the model errs in its choice."""

    traits: Traits = Traits(uses_model=True)

    def __init__(self, stub: Stub) -> None:
        self._stub = stub

    async def route(self, request: RouteRequest) -> RouteDecision:
        return decide(self._stub, request)


class TwoLevelRouter(StubRouter):
    """A `StubRouter` that states how much fits its prompt, so that menus may show two levels at once."""

    def __init__(self, stub: Stub, options: int = 60) -> None:
        super().__init__(stub)
        self.traits = Traits(uses_model=True, capacity=lambda request: min(len(request.options), options))


def decide(stub: Stub, request: RouteRequest) -> RouteDecision:
    """Ask the stub for one decision, by way of prompt and JSON."""
    prompt = render_route(request)
    with stub.call(ROUTE_SYSTEM, prompt):
        said = _answer_route(stub, prompt)
    try:
        answer = json.loads(said)
        by_label = {f"o{number}": option.id for number, option in enumerate(request.options, start=1)}
        choice = answer["choice"]
        unviable = {by_label[label]: reason for label, reason in answer["unviable"].items()}
        return RouteDecision(None if choice is None else by_label[choice], unviable, answer["reason"])
    except (KeyError, ValueError) as exc:
        raise BadModelAnswer(f"not an answer of the form that was asked for: {exc}") from exc


def _answer_route(stub: Stub, prompt: str) -> str:
    """Play the model that was sent a router's prompt."""
    labels, codes = [], []
    for found in _OPTION.finditer(prompt):
        code = heading(found["title"])
        if code is not None:
            labels.append(found["label"])
            codes.append(code)
    choice, right = stub.pick(codes)
    unviable = {}
    if choice is None:
        unviable = dict.fromkeys(labels, "not about this")
    elif right is not None and choice != right and stub.rules_out_right():
        unviable = {labels[right]: "not about this"}
    label = None if choice is None else labels[choice]
    return json.dumps({"choice": label, "unviable": unviable, "reason": "it is about this"})


class StubReader:
    """Renders a request, has the stub answer the prompt, and takes the answer back; the model does not err here."""

    traits: Traits = Traits(uses_model=True)

    def __init__(self, stub: Stub) -> None:
        self._stub = stub

    async def read(self, request: ReadRequest) -> Reading:
        return read(self._stub, request)


def read(stub: Stub, request: ReadRequest) -> Reading:
    """Ask the stub what a note answers."""
    prompt = render_read(request)
    with stub.call(READ_SYSTEM, prompt):
        fact = stub.read(prompt)
        answers = []
        if fact is not None:
            quote = f"is {fact} units an hour"
            answers = [{"question": stub.question, "answer": fact, "quote": quote, "complete": True}]
        said = json.dumps({"answers": answers, "new_questions": [], "notes": "", "useful": bool(answers)})
    answer = json.loads(said)
    return Reading(
        tuple(Answer(**each) for each in answer["answers"]),
        tuple(answer["new_questions"]),
        answer["notes"],
        answer["useful"],
    )
