"""A reader that asks a language model."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from metatree.protocols import Answer, Reader, Reading, ReadRequest, Traits
from metatree_routers.llm._budget import clipped_read, excerpt
from metatree_routers.llm._connection import Connection
from metatree_routers.llm._errors import for_the_model
from metatree_routers.llm.prompts import Message, Prompts, messages, unquoted

PROMPT_TOKENS = 6_000
ANSWER_TOKENS = 1_200
_LABEL = re.compile(r"q?\s*(\d+)", re.IGNORECASE)


class LLMReader(Reader):
    """Asks a model what a text says about the questions.

    Args: as of `LLMRouter`; a prompt never takes more than `prompt_tokens`, a longer text is cut to the parts that
        share words with the questions.
    """

    def __init__(
        self,
        model: str | None = None,
        *,
        connection: Connection | None = None,
        prompts: Prompts | None = None,
        prompt_tokens: int = PROMPT_TOKENS,
        **options: Any,
    ) -> None:
        self.connection = connection or Connection(model, **options)
        self.prompts = prompts or Prompts()
        self.prompt_tokens = prompt_tokens

    @property
    def traits(self) -> Traits:
        """Its answers depend on model, server and prompts besides the request."""
        key = f"{self.connection.model} {self.connection.settings.public_url} {self.prompts.version}"
        return Traits(uses_model=True, cache_key=key)

    async def read(self, request: ReadRequest) -> Reading:
        from metatree_routers.llm._response_models import ReadForm

        cut = sum("cut off" in error for error in request.errors)
        answer = await self.connection.ask(
            ReadForm, self._messages(request), max_tokens=ANSWER_TOKENS * (1 + cut), task="read"
        )
        answers = []
        for item in answer.answers:
            question = _question(item.question, request.questions)
            if question is not None and item.answer.strip():
                answers.append(Answer(question, item.answer.strip(), unquoted(item.quote), item.complete))
        new = tuple(question.strip() for question in answer.new_questions if question.strip())
        notes = answer.notes.strip()
        return Reading(tuple(answers), new, notes, useful=bool(answers or new or notes))

    def _messages(self, request: ReadRequest) -> list[Message]:
        counter, limit = self.connection.counter, self.connection.fits(self.prompt_tokens)
        errors = for_the_model(request.errors)
        short = clipped_read(replace(request, content=""), counter, limit)

        def prompt_for(content: str) -> list[Message]:
            return messages(self.prompts.read, self.prompts.read_prompt(short, content, errors))

        room = max(16, limit - counter.messages(prompt_for("")) - 2)
        return prompt_for(excerpt(request.content, request.questions, counter, room))


def _question(label: str, questions: tuple[str, ...]) -> str | None:
    """Return the question that a label means; with one question alone every label does."""
    if len(questions) == 1:
        return questions[0]
    match = _LABEL.match(label.strip().lstrip("["))
    if match and 1 <= int(match.group(1)) <= len(questions):
        return questions[int(match.group(1)) - 1]
    folded = " ".join(label.casefold().split())
    return next((q for q in questions if folded and " ".join(q.casefold().split()).startswith(folded)), None)
