"""The stub as a decision model: it gives a probability to every option instead of naming one."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

import httpx2
from metatree_routers.decisions import Choice, Likelihoods, Question, Score
from metatree_routers.decisions._logits import Logits

from benchmarks.peers.stub import Stub, heading

SURE = 0.99
"""How sure an over-confident model is, right or wrong."""
LEAST_ERROR = 0.02
_LETTER = re.compile(r"^\[([A-Z])\] (.*)$", re.MULTILINE)
_OPTION = re.compile(r"Option [A-Z]+ \((?P<title>.*)\) cannot")


class StubDecisions:
    """Picks as the stub does, and says how sure it is.

    Args:
        stub: the model.
        calibrated: whether it is as sure as it is right; else it is sure with 0.99, right or wrong.
    """

    name, max_options, max_questions = "stub", 255, 64

    def __init__(self, stub: Stub, *, calibrated: bool) -> None:
        self._stub, self._calibrated = stub, calibrated

    async def decide(self, state: str, questions: Mapping[str, Question]) -> Mapping[str, Likelihoods]:
        asked = {name: _as_json(question) for name, question in questions.items()}
        with self._stub.call(state, json.dumps(asked)):
            return {name: self._answer(state, question) for name, question in questions.items()}

    @property
    def _sure(self) -> float:
        return 1 - max(LEAST_ERROR, self._stub.condition.error_rate) if self._calibrated else SURE

    def _answer(self, state: str, question: Question) -> Likelihoods:
        if isinstance(question, Choice):
            return self._choose(question)
        option = _OPTION.match(question.instructions)
        if option is None:  # of a text: whether it answers; reading is free of errors here
            return {"yes": 0.98 if self._stub.read(state) is not None else 0.02}
        code = heading(option["title"]) or ()
        cannot = self._stub.target[: len(code)] != code
        return {"yes": self._sure if cannot != self._stub.errs() else 1 - self._sure}

    def _choose(self, question: Choice) -> Likelihoods:
        labels = [label for label in question.options if label != "none"]
        choice, _ = self._stub.pick([heading(question.options[label]) or () for label in labels])
        picked = "none" if choice is None else labels[choice]
        rest = (1 - self._sure) / len(labels)
        return {label: self._sure if label == picked else rest for label in question.options}


class StubLetters:
    """The stub behind a chat server with log-probabilities: it gets what `Logits` sends to the servers of users.

    Both orders of one menu are one decision of the stub. It is as sure as it is right.
    """

    def __init__(self, stub: Stub) -> None:
        self._stub = stub
        self._picked: dict[tuple[str, frozenset[str]], str] = {}

    def model(self) -> Logits:
        """Return the wire over this stub."""
        return Logits(
            "stub",
            base_url="http://127.0.0.1:1/v1",
            transport=httpx2.MockTransport(self._answer),
            api_key="none",
        )

    def _answer(self, request: Any) -> Any:
        system, user = (message["content"] for message in json.loads(request.content)["messages"])
        with self._stub.call(system, user):
            options = dict(_LETTER.findall(user.rpartition("<data>\n")[2]))
            line = self._pick(user, options)
            sure = 1 - max(LEAST_ERROR, self._stub.condition.error_rate)
            rest = (1 - sure) / max(1, len(options) - 1)
            top = [
                {"token": letter, "logprob": math.log(sure if option == line else rest)}
                for letter, option in options.items()
            ]
        reply = {"choices": [{"logprobs": {"content": [{"top_logprobs": top}]}}]}
        return httpx2.Response(200, json=reply)

    def _pick(self, user: str, options: Mapping[str, str]) -> str:
        if set(options.values()) == {"Yes.", "No."}:
            return "Yes." if self._stub.read(user) is not None else "No."
        key = (self._stub.question, frozenset(options.values()))
        if key not in self._picked:
            lines = [line for line in options.values() if not line.startswith("none of these")]
            choice, _ = self._stub.pick([heading(line) or () for line in lines])
            none = next((line for line in options.values() if line not in lines), lines[0])
            self._picked[key] = none if choice is None else lines[choice]
        return self._picked[key]


def _as_json(question: Question) -> dict[str, object]:
    more: dict[str, object] = {}
    if isinstance(question, Choice):
        more = {"criteria": dict(question.options)}
    elif isinstance(question, Score):
        more = {"criteria": list(question.levels)}
    return {"type": type(question).__name__.lower(), "instructions": question.instructions, **more}
