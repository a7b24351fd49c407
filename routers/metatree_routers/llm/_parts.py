"""The parts that ask a language model: what they share, and those besides the router."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from metatree._util.numbers import whole_number
from metatree.errors import BadModelAnswer
from metatree.protocols import (
    Answer,
    Composer,
    ComposeRequest,
    Describer,
    DescribeRequest,
    Description,
    Passage,
    Reader,
    Reading,
    ReadRequest,
    ToolCaller,
    ToolRequest,
    Traits,
)
from metatree_routers.llm._budget import clipped, clipped_context, clipped_questions, excerpt
from metatree_routers.llm._connection import Connection
from metatree_routers.llm._extract import MAX_CHARS
from metatree_routers.llm._response_models import DescriptionForm, DescriptionsForm, ReadForm, arguments_form
from metatree_routers.llm._second_opinion import SecondOpinion, settled
from metatree_routers.llm._tokens import TokenCounter
from metatree_routers.llm.errors import for_the_model
from metatree_routers.llm.labels import labels
from metatree_routers.llm.prompts import Message, Prompts, messages, unquoted
from metatree_routers.weighing.trust import HEARD

READING_TOKENS = 1_200
FILLING_TOKENS = 800
COMPOSING_TOKENS = 1_500
DESCRIBING_TOKENS = 300
EACH_DESCRIBED_TOKENS = 120
_LABEL = re.compile(r"q?\s*(\d+)", re.IGNORECASE)


class ModelPart:
    """What asks a model: a connection, the words of its prompts, and how long these may be."""

    PROMPT_TOKENS: ClassVar[int] = 6_000
    """A prompt never takes more, where nothing else is given."""

    def __init__(
        self,
        model: str | None = None,
        *,
        connection: Connection | None = None,
        prompts: Prompts | None = None,
        prompt_tokens: int | None = None,
        **options: Any,
    ) -> None:
        self.connection = connection or Connection(model, **options)
        self.prompts = prompts or Prompts()
        self.prompt_tokens = self.PROMPT_TOKENS if prompt_tokens is None else prompt_tokens

    @property
    def traits(self) -> Traits:
        """Its answers depend on model, server and prompts besides the request."""
        key = f"{self.connection.model} {self.connection.settings.public_url} {self.prompts.version}"
        return Traits(uses_model=True, cache_key=key)

    @property
    def _counter(self) -> TokenCounter:
        return self.connection.counter

    @property
    def _limit(self) -> int:
        return self.connection.fits(self.prompt_tokens)

    def _filled(
        self, prompt_for: Callable[[str], list[Message]], content: str, questions: Sequence[str]
    ) -> list[Message]:
        """Return a prompt with as much of a text as fits beside the rest of it."""
        room = max(16, self._limit - self._counter.messages(prompt_for("")) - 2)
        return prompt_for(excerpt(content, questions, self._counter, room))


def answer_tokens(most: int, errors: Sequence[str]) -> int:
    """Return the limit of an answer: once more for each earlier answer that was cut off."""
    return most * (1 + sum("cut off" in error for error in errors))


class LLMReader(ModelPart, Reader):
    """Asks a model what a text says about the questions.

    Args: as of `LLMRouter`; a prompt never takes more than `prompt_tokens` (6,000), a longer text is cut to the parts
        that share words with the questions.
        passages: `Evidence.passages` of the tree, which what the model says is weighed with; None takes its word.
    """

    def __init__(
        self,
        model: str | None = None,
        *,
        passages: Callable[..., list[Passage]] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(model, **options)
        self._passages = passages

    @property
    def traits(self) -> Traits:
        """It says when the model is wrong too often, where the passages of a tree can tell."""
        return replace(super().traits, declines=None if self._passages is None else self._declines)

    def _declines(self) -> str:
        trust = self.connection.trust_in_reading
        return trust.too_poor(HEARD, "texts") or settled(trust, self.connection.trust)

    async def read(self, request: ReadRequest) -> Reading:
        short = clipped(
            replace(request, content="", partial_answers=request.partial_answers[-5:]),
            self._counter,
            self._limit,
        )
        errors = for_the_model(request.errors)

        def prompt_for(content: str) -> list[Message]:
            return messages(self.prompts.read, self.prompts.read_prompt(short, content, errors))

        answer = await self.connection.ask(
            ReadForm,
            self._filled(prompt_for, request.content, request.questions),
            max_tokens=answer_tokens(READING_TOKENS, request.errors),
            task="read",
        )
        answers = []
        for item in answer.answers:
            question = _question(item.question, request.questions)
            if question is not None and item.answer.strip():
                answers.append(Answer(question, item.answer.strip(), unquoted(item.quote), item.complete))
        new = tuple(question.strip() for question in answer.new_questions if question.strip())
        notes = answer.notes.strip()
        reading = Reading(tuple(answers), new, notes, useful=bool(answers or new or notes))
        if self._passages is None or request.asked_for:
            return reading
        return await SecondOpinion(
            self._passages, self.connection.trust_in_reading, self.connection.trust
        ).on(request, reading)


def _question(label: str, questions: tuple[str, ...]) -> str | None:
    """Return the question that a label means; with one question alone every label does."""
    if len(questions) == 1:
        return questions[0]
    match = _LABEL.match(label.strip().lstrip("["))
    number = whole_number(match.group(1)) or 0 if match else 0
    if 1 <= number <= len(questions):
        return questions[number - 1]
    folded = " ".join(label.casefold().split())
    return next((q for q in questions if folded and " ".join(q.casefold().split()).startswith(folded)), None)


class LLMToolCaller(ModelPart, ToolCaller):
    """Asks a model for the arguments of one tool; which tool is called, and whether, is not its to say.

    Args: as of `LLMRouter`; `prompt_tokens` is 3,000.
    """

    PROMPT_TOKENS = 3_000

    async def fill(self, request: ToolRequest) -> dict[str, Any]:
        short = clipped(request, self._counter, self._limit)
        errors = for_the_model(request.errors)

        def prompt_for(content: str) -> list[Message]:
            return messages(self.prompts.fill, self.prompts.fill_prompt(short, content, errors))

        room = self._limit - self._counter.messages(prompt_for("")) - 8
        content = request.node.content or ""
        schema = json.dumps(dict(request.tool.schema), sort_keys=True)
        answer = await self.connection.ask(
            arguments_form(request.tool.id, schema),
            prompt_for(excerpt(content, request.questions, self._counter, room) if room > 32 else ""),
            max_tokens=answer_tokens(FILLING_TOKENS, request.errors),
            task="fill",
        )
        return dict(answer.model_extra or {})


class LLMComposer(ModelPart, Composer):
    """Asks a model to join several answers into one text.

    Args: as of `LLMRouter`; `prompt_tokens` is 6,000.
    """

    async def compose(self, request: ComposeRequest) -> str:
        counter, limit = self._counter, self._limit
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
            max_tokens=COMPOSING_TOKENS,
            task="compose",
        )
        text = text.rpartition("</think>")[2].strip()[:MAX_CHARS]
        if not text:
            raise BadModelAnswer("the text was empty")
        return text


class LLMDescriber(ModelPart, Describer):
    """Asks a model for titles and descriptions.

    Args: as of `LLMRouter`; `prompt_tokens` (6,000) is shared by the nodes of one call.
    """

    @property
    def traits(self) -> Traits:
        """It describes many in one call."""
        return replace(super().traits, describes_many=True)

    async def describe(self, request: DescribeRequest) -> Description:
        def prompt_for(content: str) -> list[Message]:
            return messages(self.prompts.describe, self.prompts.describe_prompt(request, content))

        answer = await self.connection.ask(
            DescriptionForm,
            self._filled(prompt_for, request.content, request.questions),
            max_tokens=DESCRIBING_TOKENS,
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
        named = labels(len(requests))

        def prompt_for(contents: Sequence[str]) -> list[Message]:
            return messages(
                self.prompts.describe_many, self.prompts.describe_many_prompt(requests, named, contents)
            )

        bare = self._counter.messages(prompt_for([""] * len(requests)))
        each = max(12, (self._limit - bare) // len(requests) - 2)
        answer = await self.connection.ask(
            DescriptionsForm,
            prompt_for([excerpt(request.content, (), self._counter, each) for request in requests]),
            max_tokens=EACH_DESCRIBED_TOKENS * len(requests) + 100,
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
