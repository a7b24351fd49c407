"""A describer that asks a language model, for one node or for many at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from metatree.errors import BadModelAnswer
from metatree.protocols import Describer, DescribeRequest, Description, Traits
from metatree_routers.llm._budget import excerpt
from metatree_routers.llm._connection import Connection
from metatree_routers.llm.labels import labels
from metatree_routers.llm.prompts import Message, Prompts, messages

PROMPT_TOKENS = 6_000
ANSWER_TOKENS = 300
EACH_TOKENS = 120


class LLMDescriber(Describer):
    """Asks a model for titles and descriptions.

    Args: as of `LLMRouter`; `prompt_tokens` is shared by the nodes of one call.
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
        return Traits(uses_model=True, cache_key=key, describes_many=True)

    async def describe(self, request: DescribeRequest) -> Description:
        from metatree_routers.llm._response_models import DescriptionForm

        counter, limit = self.connection.counter, self.connection.fits(self.prompt_tokens)

        def prompt_for(content: str) -> list[Message]:
            return messages(self.prompts.describe, self.prompts.describe_prompt(request, content))

        room = max(16, limit - counter.messages(prompt_for("")) - 2)
        answer = await self.connection.ask(
            DescriptionForm,
            prompt_for(excerpt(request.content, request.questions, counter, room)),
            max_tokens=ANSWER_TOKENS,
            task="describe",
        )
        title, description = answer.title.strip(), answer.description.strip()
        if not title or not description:
            raise BadModelAnswer("title and description must not be empty")
        return Description(title, description)

    async def describe_many(self, requests: Sequence[DescribeRequest]) -> list[Description | None]:
        """Return a description for each request, in one call; None where the model left one out.

        Raises:
            BadModelAnswer: it described none of them.
        """
        from metatree_routers.llm._response_models import DescriptionsForm

        counter, limit = self.connection.counter, self.connection.fits(self.prompt_tokens)
        named = labels(len(requests))

        def prompt_for(contents: Sequence[str]) -> list[Message]:
            return messages(
                self.prompts.describe_many, self.prompts.describe_many_prompt(requests, named, contents)
            )

        bare = counter.messages(prompt_for([""] * len(requests)))
        each = max(12, (limit - bare) // len(requests) - 2)
        contents = [excerpt(request.content, (), counter, each) for request in requests]
        answer = await self.connection.ask(
            DescriptionsForm,
            prompt_for(contents),
            max_tokens=EACH_TOKENS * len(requests) + 100,
            task="describe",
        )
        descriptions: dict[str, Description] = {}
        for item in answer.items:
            if item.description.strip():
                label = item.item.strip().strip("[]().:").upper().removeprefix("ITEM ").strip()
                descriptions[label] = Description(item.title.strip(), item.description.strip())
        described = [descriptions.get(label) for label in named]
        if not any(described):
            raise BadModelAnswer(f"no item was described; the items are {', '.join(named)}")
        return described
