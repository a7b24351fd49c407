"""A composer that asks a language model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from metatree.errors import BadModelAnswer
from metatree.protocols import Composer, ComposeRequest, Traits
from metatree_routers.llm._budget import clipped_context, clipped_questions
from metatree_routers.llm._connection import Connection
from metatree_routers.llm.prompts import Prompts, messages

PROMPT_TOKENS = 6_000
ANSWER_TOKENS = 1_500


class LLMComposer(Composer):
    """Asks a model to join several answers into one text.

    Args: as of `LLMRouter`.
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

    async def compose(self, request: ComposeRequest) -> str:
        counter, limit = self.connection.counter, self.connection.fits(self.prompt_tokens)
        each = max(24, limit // 2 // max(1, len(request.answers)))
        short = replace(
            request,
            questions=clipped_questions(request.questions, counter, limit),
            open_questions=clipped_questions(request.open_questions, counter, limit // 4),
            context=clipped_context(request.context, counter, limit // 2),
            answers=tuple(
                replace(
                    a, question=counter.clip(a.question, each // 3), answer=counter.clip(a.answer, each // 2)
                )
                for a in request.answers
            ),
        )
        text = await self.connection.text(
            messages(self.prompts.compose, self.prompts.compose_prompt(short)),
            max_tokens=ANSWER_TOKENS,
            task="compose",
        )
        text = text.rpartition("</think>")[2].strip()
        if not text:
            raise BadModelAnswer("the text was empty")
        return text
