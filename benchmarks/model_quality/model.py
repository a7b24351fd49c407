"""A model of any quality behind the shipped prompts: it sees what is sent, and knows what is right."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import httpx2
from metatree_routers import LLMRouter
from metatree_routers.llm.labels import labels
from metatree_routers.llm.prompts import best_first
from metatree_routers.wrappers.disk_cache import MemoryCache

from metatree import Option, RouteDecision, RouteRequest, Tree


@dataclass
class Model:
    """Answers the prompts of routers and readers, rightly in a share of them.

    It says the same of the same menu and of the same text when the question is the same, as a model at temperature 0
    does. So two designs of the search meet the same errors, and asking again is no second chance.

    Args:
        tree: the tree that is searched.
        quality: how often it is right, in [0, 1]; else it takes any of the other options.
        rules_out: how many of the options that it does not choose it rules out; when it errs, the right one may be
            among them.
        reads: how often it says rightly what a text answers; None for as often as it routes. Else it answers from a
            text that does not answer, or finds no answer in one that does.
        seed: of its errors.
    """

    tree: Tree
    quality: float
    rules_out: float = 0.2
    reads: float | None = None
    seed: int = 1

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        self.section = ""
        self.options: Sequence[Option] = ()
        self.node = ""
        self.requests = 0

    def router(self) -> LLMRouter:
        """Return metatree's own router and its parts, over this model."""
        model = self

        class Watched(LLMRouter):
            async def route(self, request: RouteRequest) -> RouteDecision:
                model.options = best_first(request.options)
                return await super().route(request)

        transport = httpx2.MockTransport(self.answer)
        return Watched(
            "stub", base_url="http://127.0.0.1:1/v1", transport=transport, cache=MemoryCache(), api_key="none"
        )

    def answer(self, request: Any) -> Any:
        """Answer one request."""
        self.requests += 1
        body = json.loads(request.content)
        system, user = (message["content"] for message in body["messages"])
        said = (
            self._choose()
            if '"choice"' in system
            else self._read(user)
            if '"quote"' in system
            else fill(user)
        )
        message = {"role": "assistant", "content": json.dumps(said)}
        tokens = {"prompt_tokens": (len(system) + len(user)) // 4, "completion_tokens": 40}
        reply = {
            "id": "x",
            "object": "chat.completion",
            "created": 1,
            "model": "stub",
            "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
            "usage": {**tokens, "total_tokens": sum(tokens.values())},
        }
        return httpx2.Response(200, json=reply)

    def right(self) -> list[int]:
        """Return the places of the options that lead to what is asked for, the nearest to it last."""
        above = [*self.tree.ancestors(self.section), self.section]
        leading = [place for place, option in enumerate(self.options) if option.id in above]
        return sorted(leading, key=lambda place: above.index(self.options[place].id))

    def choose(self, right: list[int], count: int) -> int | None:
        """Return the place of the option that it takes; None for none of them."""
        wrong = [place for place in range(count) if place not in right]
        if wrong and self.rng.random() >= self.quality:
            return self.rng.choice(wrong)
        return right[-1] if right else None

    def _asked(self, *about: str) -> None:
        self.rng = random.Random(f"{self.seed} {self.section} {about}")

    def _choose(self) -> dict[str, Any]:
        self._asked("menu", *(option.id for option in self.options))
        named = labels(len(self.options))
        right = self.right()
        choice = self.choose(right, len(named))
        errs = choice not in right and not (choice is None and not right)
        out = [
            label
            for place, label in enumerate(named)
            if place != choice and (errs or place not in right) and self.rng.random() < self.rules_out
        ]
        return {
            "reason": "it is about this",
            "choice": "none" if choice is None else named[choice],
            "ruled_out": [{"option": label, "why": "about something else"} for label in out],
        }

    def _read(self, user: str) -> dict[str, Any]:
        text = user.rpartition("<data>\nTitle: ")[2].rpartition("\n</data>")[0]
        self._asked("text", text)
        lines = [line for line in text.split("\n")[1:] if len(line) > 20]
        content = self.tree.content(self.section)
        answers = bool(lines) and any(line in content for line in lines[-1:])
        good = self.quality if self.reads is None else self.reads
        claims = answers if self.rng.random() < good else not answers
        if not claims or not lines:
            return {"answers": [], "new_questions": [], "notes": ""}
        quote = self.rng.choice(lines)
        said = {"question": "Q1", "answer": quote, "quote": quote, "complete": True}
        return {"answers": [said], "new_questions": [], "notes": ""}


def fill(user: str) -> dict[str, Any]:
    """Return arguments of a tool: a word of the question for each text that it has to have."""
    schema = json.loads(
        next(line for line in user.splitlines() if line.startswith('{"additionalProperties"'))
    )
    word = user.partition("Q1: ")[2].partition("?")[0].split()[-1]
    return dict.fromkeys(schema.get("required", ()), word)


class FirstOption(Model):
    """Takes the first option of every menu, as very small models do."""

    def choose(self, right: list[int], count: int) -> int | None:
        return 0


class LastOption(Model):
    """Takes the last option of every menu."""

    def choose(self, right: list[int], count: int) -> int | None:
        return count - 1


class Nothing(Model):
    """Says of every menu that nothing in it leads to an answer."""

    def choose(self, right: list[int], count: int) -> int | None:
        return None


ODD: dict[str, Callable[..., Model]] = {
    "always the first": FirstOption,
    "always the last": LastOption,
    "always none": Nothing,
}
