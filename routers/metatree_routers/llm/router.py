"""A router that asks a language model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from metatree.errors import BadModelAnswer
from metatree.protocols import Evidence, RouteDecision, Router, RouteRequest, Suite, Traits
from metatree_routers.llm._budget import Menu, at_least, clipped, how_many_fit, menu_prompt
from metatree_routers.llm._connection import Connection
from metatree_routers.llm._parts import (
    LLMComposer,
    LLMDescriber,
    LLMReader,
    LLMToolCaller,
    ModelPart,
    answer_tokens,
)
from metatree_routers.llm._response_models import RouteForm, route_form
from metatree_routers.llm.errors import PromptTooLong, for_the_model
from metatree_routers.llm.labels import NONE, offered
from metatree_routers.llm.prompts import Prompts, best_first
from metatree_routers.weighing.decide import decided
from metatree_routers.weighing.trust import POOR

PROMPT_TOKENS = 2_000
COMFORTABLE_TOKENS = 1_200
WIDE_TOKENS = 600
"""Of a menu at two levels, which is there to save calls and not to fill the prompt."""
ANSWER_TOKENS = 500
UNSAID = "the model gave no reason"


class LLMRouter(ModelPart, Router):
    """Asks a model on an OpenAI-compatible server which option to take.

    Only what was offered can be chosen: options go by labels, and an answer that names none of them is shown back to
    the model as an error. Long menus come in groups, short ones at two levels (`capacity`).

    Args:
        model: its name; None asks `METATREE_MODEL`. `openai/` before it is taken off once.
        connection: one that is shared with other parts; then `model` and `options` are not given.
        prompts: your own words.
        prompt_tokens: a prompt never takes more.
        comfortable_tokens: a menu says no more about its options than fits these; the worst are shortened.
        read_tokens: a reader's prompt never takes more.
        options: see `Connection`: `base_url`, `api_key`, `concurrency`, `timeout_s`, `prices`, `transport`, …

    Raises:
        UserError: no model is named, or the address is none.
        BadKey: OpenAI's own API is meant, and there is no key.

    Example:
        >>> LLMRouter("openai/qwen3:8b", base_url="http://localhost:11434/v1")
        LLMRouter('qwen3:8b', base_url='http://localhost:11434/v1')
    """

    def __init__(
        self,
        model: str | None = None,
        *,
        connection: Connection | None = None,
        prompts: Prompts | None = None,
        prompt_tokens: int = PROMPT_TOKENS,
        comfortable_tokens: int = COMFORTABLE_TOKENS,
        read_tokens: int | None = None,
        **options: Any,
    ) -> None:
        super().__init__(
            model, connection=connection, prompts=prompts, prompt_tokens=prompt_tokens, **options
        )
        self.comfortable_tokens = min(comfortable_tokens, prompt_tokens)
        self.read_tokens = read_tokens
        self._ordered: tuple[RouteRequest, RouteRequest] | None = None
        self._last: tuple[RouteRequest, int, Menu | None] | None = None

    def __repr__(self) -> str:
        settings = self.connection.settings
        return f"LLMRouter({settings.model!r}, base_url={settings.public_url!r})"

    @property
    def traits(self) -> Traits:
        """It says how much of a menu fits one prompt, and when the model is wrong too often."""
        return replace(super().traits, capacity=self.capacity, declines=self._declines)

    def _declines(self) -> str:
        return self.connection.trust.too_poor(POOR, "menus")

    def suite(self, evidence: Evidence | None = None) -> Suite:
        """Return this router with a reader, a tool caller, a composer and a describer over the same connection."""
        shared: dict[str, Any] = {"connection": self.connection, "prompts": self.prompts}
        passages = evidence.passages if evidence is not None and evidence.traits.gives_passages else None
        return Suite(
            self,
            LLMReader(**shared, prompt_tokens=self.read_tokens, passages=passages),
            LLMToolCaller(**shared),
            LLMComposer(**shared),
            LLMDescriber(**shared),
        )

    def capacity(self, request: RouteRequest) -> int:
        """Return how many of the options, from the first, fit one prompt.

        A menu at two levels is held to a smaller size, all or nothing.
        """
        limit = self._limit
        request = self._shown(request)
        if self._is_wider(request):
            limit = min(limit, self.comfortable_tokens, WIDE_TOKENS)
            if at_least(request) <= limit and self._menu(request, limit) is not None:
                return len(request.options)
            return 0
        if self._menu(request, limit) is not None:
            return len(request.options)
        return how_many_fit(
            clipped(request, self._counter, limit),
            self.prompts,
            self._counter,
            comfortable=self.comfortable_tokens,
            limit=limit,
        )

    async def route(self, request: RouteRequest) -> RouteDecision:
        request = self._shown(request)
        menu = self._menu(request, self._limit)
        if menu is None:
            raise PromptTooLong(
                f"the model server takes prompts of {self._limit} tokens, too few for these options"
            )
        answer = await self.connection.ask(
            route_form(len(request.options)),
            menu.messages,
            max_tokens=answer_tokens(ANSWER_TOKENS, request.errors),
            task="route",
        )
        return decided(request, self._decision(request, answer), self.connection.trust)

    def _decision(self, request: RouteRequest, answer: RouteForm) -> RouteDecision:
        unviable: dict[str, str] = {}
        for item in answer.ruled_out:
            option = offered(item.option, request.options)
            if option is not None:
                unviable[option.id] = item.why or answer.reason or UNSAID
        choice = answer.choice.strip()
        reason = answer.reason or UNSAID
        if choice.casefold().strip("\"'[]().") in (NONE, "", "null", "n/a"):
            return RouteDecision(None, unviable, reason)
        chosen = offered(choice, request.options)
        if chosen is None:
            if unviable:
                return RouteDecision(None, unviable, reason)
            raise BadModelAnswer(f"{choice[:60]!r} is none of the labels offered; name one of them, or none")
        unviable.pop(chosen.id, None)
        return RouteDecision(chosen.id, unviable, reason)

    def _shown(self, request: RouteRequest) -> RouteRequest:
        """Return a request with its options in the order of the prompt, the same object for `capacity` and `route`."""
        last = self._ordered
        if last is None or last[0] is not request:
            last = self._ordered = (request, replace(request, options=best_first(request.options)))
        return last[1]

    @staticmethod
    def _is_wider(request: RouteRequest) -> bool:
        return any(option.parent is not None and option.score is None for option in request.options)

    def _menu(self, request: RouteRequest, limit: int) -> Menu | None:
        """Make the prompt of a request, once: `capacity` and then `route` are asked with the same one."""
        last = self._last
        if last is not None and last[0] is request and last[1] == limit:
            return last[2]
        menu = menu_prompt(
            clipped(request, self._counter, limit),
            self.prompts,
            self._counter,
            comfortable=self.comfortable_tokens,
            limit=limit,
            errors=for_the_model(request.errors),
        )
        self._last = (request, limit, menu)
        return menu
