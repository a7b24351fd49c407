"""A tool caller that asks a language model."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from metatree.protocols import ToolCaller, ToolRequest, Traits
from metatree_routers.llm._budget import clipped_context, clipped_questions, excerpt
from metatree_routers.llm._connection import Connection
from metatree_routers.llm._errors import for_the_model
from metatree_routers.llm.prompts import Prompts, messages

PROMPT_TOKENS = 3_000
ANSWER_TOKENS = 800


class LLMToolCaller(ToolCaller):
    """Asks a model for the arguments of one tool; which tool is called, and whether, is not its to say.

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

    async def fill(self, request: ToolRequest) -> dict[str, Any]:
        from metatree_routers.llm._response_models import arguments_form

        counter, limit = self.connection.counter, self.connection.fits(self.prompt_tokens)
        errors = for_the_model(request.errors)
        short = replace(
            request,
            questions=clipped_questions(request.questions, counter, limit),
            context=clipped_context(request.context, counter, limit),
        )
        bare = messages(self.prompts.fill, self.prompts.fill_prompt(short, "", errors))
        room = limit - counter.messages(bare) - 8
        content = excerpt(request.node.content or "", request.questions, counter, room) if room > 32 else ""
        prompt = self.prompts.fill_prompt(short, content, errors)
        schema = json.dumps(dict(request.tool.schema), sort_keys=True)
        cut = sum("cut off" in error for error in request.errors)
        answer = await self.connection.ask(
            arguments_form(request.tool.id, schema),
            messages(self.prompts.fill, prompt),
            max_tokens=ANSWER_TOKENS * (1 + cut),
            task="fill",
        )
        return dict(answer.model_extra or {})
