"""Fit prompts into a token limit: how much a menu says, how many options it takes, and which lines of a text stay."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TypeVar

from metatree.protocols import ReadRequest, RouteRequest, ToolRequest
from metatree_routers.llm._tokens import TokenCounter
from metatree_routers.llm.labels import labels
from metatree_routers.llm.prompts import DETAILS, TITLE, Detail, Message, Prompts, messages

R = TypeVar("R", RouteRequest, ReadRequest, ToolRequest)

QUESTIONS_SHARE = 0.3
CONTEXT_SHARE = 0.25
_CHUNK_LINES = 12
_MAX_TOKEN_CHARS = 16
_MANY_CHARS = 5
"""More characters than a token has on average in prose or code, in any vocabulary in use."""
_WORD = re.compile(r"[^\W_]{3,}")


@dataclass(frozen=True, slots=True)
class Menu:
    """A prompt for a router: what is sent, and how many tokens that takes at most."""

    messages: list[Message]
    tokens: int


def menu_prompt(
    request: RouteRequest,
    prompts: Prompts,
    counter: TokenCounter,
    *,
    comfortable: int,
    limit: int,
    errors: Sequence[str] = (),
) -> Menu | None:
    """Return the prompt that says the most about the options within `comfortable` tokens, or the least within `limit`.

    None when even the tersest menu is over the limit.
    """
    named = labels(len(request.options))
    comfortable = min(comfortable, limit)
    made = None
    for detail in DETAILS:
        if at_least(request, detail) > comfortable and detail is not DETAILS[-1]:
            continue  # without making and counting it
        prompt = messages(prompts.route, prompts.route_prompt(request, named, detail, errors))
        made = Menu(prompt, counter.messages(prompt))
        if made.tokens <= comfortable:
            return made
    return made if made is not None and made.tokens <= limit else None


def at_least(request: RouteRequest, detail: Detail = DETAILS[-1]) -> int:
    """Return a number of tokens that a menu is bound to take, from its characters alone."""
    told = detail.full >= len(request.options)
    chars = 0
    for option in request.options:
        most = detail.description if told else detail.rest
        chars += min(len(option.title), TITLE) + min(len(option.description), most) + 4
        if told and option.hints:
            chars += sum(min(len(hint), detail.hint) for hint in option.hints[: detail.hints])
    return chars // _MANY_CHARS


def how_many_fit(
    request: RouteRequest, prompts: Prompts, counter: TokenCounter, *, comfortable: int, limit: int
) -> int:
    """Return how many of the options, from the first, fit one prompt; at least 2."""

    def is_too_long(count: int) -> bool:
        part = replace(request, options=request.options[:count])
        return menu_prompt(part, prompts, counter, comfortable=comfortable, limit=limit) is None

    few = min(2, len(request.options))
    return few + bisect_left(range(few + 1, len(request.options) + 1), True, key=is_too_long)


def clipped_questions(questions: Sequence[str], counter: TokenCounter, limit: int) -> tuple[str, ...]:
    """Return questions that take at most their share of a limit; longer ones are cut, all alike."""
    each = max(8, int(limit * QUESTIONS_SHARE) // max(1, len(questions)))
    return tuple(counter.clip(" ".join(question.split()), each) for question in questions)


def clipped_context(context: str, counter: TokenCounter, limit: int) -> str:
    """Return a context that takes at most its share of a limit."""
    return counter.clip(context, int(limit * CONTEXT_SHARE))


def clipped(request: R, counter: TokenCounter, limit: int) -> R:
    """Return a request whose questions and context take at most their share of a limit; the rest stays."""
    return replace(
        request,
        questions=clipped_questions(request.questions, counter, limit),
        context=clipped_context(request.context, counter, limit),
    )


def excerpt(content: str, questions: Sequence[str], counter: TokenCounter, limit: int) -> str:
    """Return a text that takes at most so many tokens: its beginning and the parts that share words with the questions.

    Parts keep their order; a line says where something was left out.

    Example:
        >>> count = TokenCounter(lambda text: len(text.split()), exact=True)
        >>> text = "\\n".join(["head", *["filler"] * 99, "the timeout is ten", *["filler"] * 99])
        >>> found = excerpt(text, ["Which timeout?"], count, 40)
        >>> "timeout" in found, found.startswith("head"), count.text(found) <= 40
        (True, True, True)
    """
    if len(content) <= limit * _MAX_TOKEN_CHARS and counter.lines(content) <= limit:
        return content
    lines = content.split("\n")
    size = max(1, min(_CHUNK_LINES, limit // 40))
    chunks = [lines[at : at + size] for at in range(0, len(lines), size)]
    wanted = set(_words(" ".join(questions)))
    matches = [set(_words(" ".join(chunk))) & wanted for chunk in chunks]
    rarity = Counter(word for words in matches for word in words)
    score = [sum(1 / rarity[word] for word in words) for words in matches]
    order = sorted(range(len(chunks)), key=lambda at: (at != 0, -score[at], at))
    mark_tokens = counter.lines(_LEFT_OUT.format(len(lines))) + 1
    chosen: dict[int, str] = {}
    left = limit
    for at in order:
        text = "\n".join(chunks[at])
        cost = counter.lines(text) + mark_tokens
        share = limit // 3 if at == 0 else left
        if cost <= share:
            chosen[at] = text
            left -= cost
        elif at == 0 or (score[at] > 0 and left > limit // 8):
            cut = counter.clip(text, share - mark_tokens - text.count("\n"))
            chosen[at] = cut
            left -= counter.lines(cut) + mark_tokens
        if left < limit // 20:
            break
    return _joined(chosen, chunks)


_LEFT_OUT = "[… {} lines left out …]"


def _joined(chosen: dict[int, str], chunks: list[list[str]]) -> str:
    parts: list[str] = []
    for left_out, run in groupby(range(len(chunks)), key=lambda at: at not in chosen):
        if left_out:
            parts.append(_LEFT_OUT.format(sum(len(chunks[at]) for at in run)))
        else:
            parts += [chosen[at] for at in run]
    return "\n".join(parts)


def _words(text: str) -> list[str]:
    return [word.casefold()[:6] for word in _WORD.findall(text)]
