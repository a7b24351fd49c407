"""metatree's own router and reader with their shipped prompts, over the stub in the place of the connection.

What is counted is all that is sent: both messages, and the JSON schema of the answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from metatree_routers.llm._settings import ModelSettings
from metatree_routers.llm._tokens import TokenCounter
from metatree_routers.llm.router import LLMRouter
from metatree_routers.weighing.trust import READS, Trust

from benchmarks.peers.stub import Stub

_OPTION = re.compile(r"^ *\[(?P<label>[A-Z]{1,3})\] (?P<title>.*)$", re.MULTILINE)


class StubConnection:
    """Answers prompts from the stub, in the forms that are asked for."""

    def __init__(self, stub: Stub) -> None:
        self._stub = stub
        self.settings = ModelSettings("stub", "http://127.0.0.1/v1", "none")
        self.model = "stub"
        self.counter = TokenCounter(stub.count, exact=True)
        self.trust, self.trust_in_reading = Trust(), Trust(prior=READS)

    def fits(self, limit: int) -> int:
        return limit

    async def ask(
        self, form: Any, messages: Sequence[Mapping[str, Any]], *, max_tokens: int, task: str
    ) -> Any:
        rules, prompt = (str(message["content"]) for message in messages)
        schema = json.dumps(form.schema_for(True), separators=(",", ":"))
        with self._stub.call(rules + schema, prompt):
            said = self._choose(prompt) if task == "route" else self._read(prompt)
        return form.model_validate_json(json.dumps(said))

    def _choose(self, prompt: str) -> dict[str, Any]:
        labels, codes = [], []
        for found in _OPTION.finditer(prompt):
            code = self._stub.code(found["title"])
            if code is not None:
                labels.append(found["label"])
                codes.append(code)
        choice, right = self._stub.pick(codes)
        out = []
        if choice is not None and right is not None and choice != right and self._stub.rules_out_right():
            out = [{"option": labels[right], "why": "not about this"}]
        label = "none" if choice is None else labels[choice]
        return {"reason": "it is about this", "choice": label, "ruled_out": out}

    def _read(self, prompt: str) -> dict[str, Any]:
        fact = self._stub.read(prompt)
        answers = []
        if fact is not None:
            quote = self._stub.quote(fact)
            answers = [{"question": "Q1", "answer": fact, "quote": quote, "complete": True}]
        return {"answers": answers, "new_questions": [], "notes": ""}


def shipped(stub: Stub) -> LLMRouter:
    """Return the router that users have, over the stub."""
    connection: Any = StubConnection(stub)
    return LLMRouter(connection=connection)
