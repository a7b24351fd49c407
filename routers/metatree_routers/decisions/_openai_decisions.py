"""`POST /v1/decisions`: OpenAI's Decisions API (public beta), and servers of the same shape.

    {"model", "input", "questions": [{"type": "choice", "name", "instructions", "choices": [{"value", "description"}]}
                                     | {"type": "predicate", …} | {"type": "score", …, "levels": [{"label"}]}]}
    → {"answers": [{"type", "name", "probabilities": [{"value", "probability"}]} | {"probability"}
                   | {"type": "refusal", "name"}], "usage"}

Source: the types of openai-python and Fireworks' reference (docs.fireworks.ai/api-reference/post-decisions).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from metatree.errors import BadModelAnswer
from metatree_routers.decisions._model import (
    Choice,
    Likelihoods,
    Question,
    YesNo,
    of_choice,
    of_score,
    of_yes,
)
from metatree_routers.decisions._server import JsonServer, from_environment, report_tokens
from metatree_routers.llm.errors import BadKey

OPENAI = "https://api.openai.com/v1"


class OpenAIDecisions:
    """A model behind `/v1/decisions`.

    Args:
        model: its name there.
        base_url: None asks `OPENAI_BASE_URL`, then it is OpenAI's own.
        api_key: None asks `OPENAI_API_KEY`.
        max_options: of one choice; Fireworks takes 208.
        options: of the connection: `timeout_s`, `concurrency`, `transport`.

    Raises:
        BadKey: OpenAI's own API is meant, and there is no key.
    """

    max_questions = 64

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        max_options: int = 255,
        **options: Any,
    ) -> None:
        url = base_url or from_environment("OPENAI_BASE_URL") or OPENAI
        key = api_key or from_environment("OPENAI_API_KEY")
        if not key and url.startswith(OPENAI):
            raise BadKey(
                "OpenAI needs a key: set OPENAI_API_KEY, or OPENAI_BASE_URL for a server of your own"
            )
        self.server = JsonServer(url, key, key_variable="OPENAI_API_KEY", **options)
        self.model = model
        self.name = f"decisions/{model} {self.server.public_url}"
        self.max_options = max_options

    async def decide(self, state: str, questions: Mapping[str, Question]) -> Mapping[str, Likelihoods]:
        asked = [_asked(name, question) for name, question in questions.items()]
        said = await self.server.post("/decisions", {"model": self.model, "input": state, "questions": asked})
        report_tokens(said, len(state) // 4 + sum(len(str(each)) for each in asked) // 4)
        answers = said.get("answers")
        if not isinstance(answers, list):
            raise BadModelAnswer("there are no `answers` in what the model server answered")
        named = {
            each["name"]: each
            for each in answers
            if isinstance(each, dict) and isinstance(each.get("name"), str)
        }
        return {
            name: _likelihoods(question, named[name])
            for name, question in questions.items()
            if name in named and named[name].get("type") != "refusal"
        }


def _asked(name: str, question: Question) -> dict[str, Any]:
    base = {"name": name, "instructions": question.instructions}
    if isinstance(question, Choice):
        choices = [{"value": label, "description": said} for label, said in question.options.items()]
        return {"type": "choice", **base, "choices": choices}
    if isinstance(question, YesNo):
        return {"type": "predicate", **base}
    return {"type": "score", **base, "levels": [{"label": level} for level in question.levels]}


def _likelihoods(question: Question, answer: Mapping[str, Any]) -> Likelihoods:
    if isinstance(question, YesNo):
        return of_yes(answer.get("probability"))
    listed = answer.get("probabilities")
    if not isinstance(listed, list) or not all(isinstance(each, dict) for each in listed):
        raise BadModelAnswer("an answer has no `probabilities`")
    shares = {str(each.get("value")): each.get("probability") for each in listed}
    if len(shares) < len(listed):
        raise BadModelAnswer("an answer has two probabilities for one option")
    return of_choice(question, shares) if isinstance(question, Choice) else of_score(question, shares)
