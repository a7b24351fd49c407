"""`POST /v1/systemone`: TypeSafe, Upstage, Fireworks, Cloudflare, llama.cpp, Ollama, Strands and others.

    {"model", "state", "questions": {name: {"type": "choice" | "noul" | "score", "instructions", "criteria"}}}
    → {"answers": {name: {"choice", "probabilities": {…}} | {"noul": p} | {"probabilities": {…}}}, "usage"}

Source: the providers' documentation (docs.typesafe.ai, console.upstage.ai/api/systemone); a question that was declined
is left out or of the type `refusal`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from metatree.errors import BadModelAnswer, UserError
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

URL, KEY = "SYSTEMONE_BASE_URL", "SYSTEMONE_API_KEY"


class SystemOne:
    """A model behind `/v1/systemone`.

    Args:
        model: its name there.
        base_url: None asks `SYSTEMONE_BASE_URL`.
        api_key: None asks `SYSTEMONE_API_KEY`, `TYPESAFE_API_KEY`; a server of your own may need none.
        max_options: of one choice; some providers take 26 or 208.
        options: of the connection: `timeout_s`, `concurrency`, `transport`.
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
        url = base_url or from_environment(URL)
        if not url:
            raise UserError(
                f"no server is named for systemone/{model}: set {URL}, or write systemone/{model}@http://localhost:8000/v1"
            )
        key = api_key or from_environment(KEY, "TYPESAFE_API_KEY")
        self.server = JsonServer(url, key, key_variable=KEY, **options)
        self.model = model
        self.name = f"systemone/{model} {self.server.public_url}"
        self.max_options = max_options

    async def decide(self, state: str, questions: Mapping[str, Question]) -> Mapping[str, Likelihoods]:
        asked = {name: _asked(question) for name, question in questions.items()}
        said = await self.server.post("/systemone", {"model": self.model, "state": state, "questions": asked})
        report_tokens(said, len(state) // 4 + sum(len(str(each)) for each in asked.values()) // 4)
        answers = said.get("answers")
        if not isinstance(answers, dict):
            raise BadModelAnswer("there are no `answers` in what the model server answered")
        return {
            name: _likelihoods(question, answers[name])
            for name, question in questions.items()
            if isinstance(answers.get(name), dict) and answers[name].get("type") != "refusal"
        }


def _asked(question: Question) -> dict[str, Any]:
    if isinstance(question, Choice):
        return {"type": "choice", "instructions": question.instructions, "criteria": dict(question.options)}
    if isinstance(question, YesNo):
        return {"type": "noul", "instructions": question.instructions}
    return {"type": "score", "instructions": question.instructions, "criteria": list(question.levels)}


def _likelihoods(question: Question, answer: Mapping[str, Any]) -> Likelihoods:
    if isinstance(question, YesNo):
        return of_yes(answer.get("noul"))
    shares = answer.get("probabilities")
    if not isinstance(shares, dict):
        raise BadModelAnswer("an answer has no `probabilities`")
    return of_choice(question, shares) if isinstance(question, Choice) else of_score(question, shares)
