"""What `/v1` returns: models, completions and chunks, in OpenAI's form; `metatree` in them is more than that."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlencode

from metatree_agents.service.openai._inert import escaped, fenced, inert_said, inert_step, inert_words
from metatree_agents.service.openai.answer_segments import (
    AnswerSegment,
    answer_segments,
    numbers_of,
    quoted_sources,
    quotes_of,
    with_marks,
)
from metatree_agents.service.openai.closest_passages import (
    CLOSEST,
    closest_of,
    place_of,
    said_by_of,
    said_in_words,
    said_of_open,
    shown_quote,
)
from metatree_agents.service.queue.human_input import forms
from metatree_agents.service.queue.models import STOPPED, STOPPED_WITH
from metatree_agents.service.queue.queue import Query

MODEL: Final = "metatree"
"""The model that is always there: whatever an engine takes for its default."""
LISTED: Final = 8
STILL_OPEN: Final = "Still open:"
_BYTES_A_TOKEN: Final = 4
_QUOTE_CHARS: Final = 200


ASKS_BACK = "The memory does not say. Do you know?"
"""What comes before a question to the person; the question alone would look like an echo."""


def model_shape(name: str, made_at: float) -> dict[str, Any]:
    """Return a model as the list of models has it."""
    return {"id": name, "object": "model", "created": int(made_at), "owned_by": "metatree"}


def content_of(query: Query, base: str = "") -> str:
    """Return an answer as a chat page shows it: its paragraphs, and a short list of its sources.

    A query that waits for a person has what it asks for its answer; the next message answers that. One that stayed
    open has the passages that come closest.

    Args:
        base: the address of the service, to which titles of nodes lead; none do when it is empty.
    """
    if query.status == "Waiting":
        (question, *_) = [*forms(query.topic, query.seq, query.asked), None]
        if question is not None:
            if question.choices:
                return inert_said(f"{question.question} ({' or '.join(question.choices)})")
            return inert_said(f"{ASKS_BACK} {question.question}")
    if query.status == "Stopped" and not query.answer:
        return STOPPED
    if query.status != "Stopped" and not query.ending.answered:
        return "\n\n".join([*_notes(query), inert_said(said_of_open(query)), *_closest_lines(query, base)])
    pieces = with_marks(
        answer_segments(query.answer or (), quotes_of(query.sources)), numbers_of(query.sources)
    )
    text = "\n\n".join(_marked(piece, number) for piece, number in pieces)
    text = f"{STOPPED_WITH}\n\n{text}" if query.status == "Stopped" else text
    listed = sources_listed(
        query.sources or (),
        lambda source: node_link(base, source.get("Node"), query.topic, query.seq, source.get("Tree")),
    )
    text += "\n\nSources:\n" + "\n".join(f"- {line}" for line in listed) if listed else ""
    return "\n\n".join([*_notes(query), text, *_closest_lines(query, base)])


def _notes(query: Query) -> list[str]:
    """Return how the question was read, where that is not as it stands."""
    return [escaped(" ".join(note.split())) for note in query.ending.notes]


def _marked(piece: AnswerSegment, number: int | None) -> str:
    mark = f"[{number}]" if number else ""
    if piece.kind == "code":
        return "\n".join(filter(None, (fenced(piece.text), mark)))
    text = inert_words(piece.text) if piece.kind == "words" else inert_said(piece.text)
    return f"{text}{' ' if text is piece.text else chr(10)}{mark}".rstrip()


def node_link(base: str, node: Any, topic: str, seq: int, tree: Any = None) -> str:
    """Return the address of the page of a node, where what an answer quotes is marked; empty for none."""
    if not base or not isinstance(node, str) or not node:
        return ""
    named = {"tree": tree} if isinstance(tree, str) and tree else {}
    given = urlencode({"id": node, "topic": topic, "seq": seq, **named}, errors="replace")
    return f"{base.rstrip('/')}/node?{given}#quoted"


def _linked(title: str, address: str) -> str:
    return f"[{escaped(title)}]({address})" if address else escaped(title)


def _about(said_by: str) -> str:
    return f" ({escaped(said_in_words(said_by).text)})" if said_by else ""


def _where(tree: Any, place: str) -> str:
    """Return in which tree, where trees have names, and at which place of it something is; empty for neither."""
    told = ": ".join(filter(None, (str(tree or ""), place)))
    return f" ({escaped(told)})" if told else ""


def _closest_lines(query: Query, base: str) -> Iterator[str]:
    for question, passages in closest_of(query).items():
        if question != query.text or query.ending.answered:
            asked = " ".join(question.split())
            yield f"{STILL_OPEN} {escaped(asked)}" + (f"\n\n{CLOSEST}" if passages else "")
        for number, passage in enumerate(passages, start=1):
            title = _linked(
                passage.title, node_link(base, passage.node, query.topic, query.seq, passage.tree)
            )
            where = _where(passage.tree, "" if passage.place == passage.title else passage.place)
            yield f"{number}. {title}{where}{_about(passage.said_by)}\n\n{fenced(passage.quote)}"


def sources_listed(
    sources: Sequence[dict[str, Any]], address: Callable[[Mapping[str, Any]], str] = lambda _: ""
) -> list[str]:
    """Return where an answer comes from: what it quotes, at most `LISTED` of them, each with its number and words.

    Where nothing is quoted, each place once.

    Args:
        address: of the page of a source's node; empty for none.

    Example:
        >>> quoted = {"Title": "total_of", "Path": "invoice.py", "Lines": [4, 4], "Number": 1, "Quote": "VAT = 7"}
        >>> sources_listed([quoted, {"Title": "Lamps", "Path": None}])
        ['[1] total_of (invoice.py, line 4): “VAT = 7”']
        >>> sources_listed([{"Title": "Lamps", "Path": None}])
        ['Lamps']
    """
    listed: dict[str, None] = {}
    for source in quoted_sources(sources) or sources:
        title, place = " ".join(str(source.get("Title") or "").split()), place_of(source)
        name = title or place
        beside = place if source.get("Path") and place != name else ""
        where = _where(source.get("Tree"), beside) if name else ""
        name = _linked(name, address(source) if name else "") + where
        name += _about(said_by_of(source)) if name else ""
        if source.get("Quote"):
            number = f"[{source['Number']}] " if source.get("Number") else ""
            words = " ".join(shown_quote(source, chars=_QUOTE_CHARS).split())
            name = f"{number}{name}: “{escaped(words)}”"
        if name:
            listed[name] = None
    lines = list(listed)
    more = len(lines) - LISTED
    return [*lines[:LISTED], f"and {more} more"] if more > 0 else lines


def thinking_of(query: Query) -> str:
    """Return the thinking behind an answer as text."""
    return "\n".join(map(inert_step, query.think or ()))


def usage_of(prompt: str, content: str, reasoning: str) -> dict[str, Any]:
    """Return an estimate of tokens: no model counted them; four bytes are taken for one."""
    prompt_tokens, content_tokens, reasoning_tokens = (
        -(-len(text.encode("utf-8", "replace")) // _BYTES_A_TOKEN) for text in (prompt, content, reasoning)
    )
    return {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": content_tokens + reasoning_tokens,
        "total_tokens": prompt_tokens + content_tokens + reasoning_tokens,
        "completion_tokens_details": {"reasoning_tokens": reasoning_tokens},
    }


def extra_of(query: Query) -> dict[str, Any]:
    """Return what a client of ours may want to know besides."""
    return {
        "topic": query.topic,
        "seq": query.seq,
        "status": query.status,
        "sources": query.sources or [],
        "end": query.ending.end,
        "open": query.ending.open,
        "closest": query.ending.closest,
    }


def completion(
    request_id: str, model: str, query: Query, prompt: str, *, thinks: bool, base: str
) -> dict[str, Any]:
    """Return an answer as a whole."""
    content, reasoning = content_of(query, base), thinking_of(query) if thinks else ""
    message: dict[str, Any] = {"role": "assistant", "content": content, "refusal": None}
    if reasoning:
        message["reasoning_content"] = reasoning
    return {
        "id": request_id,
        "object": "chat.completion",
        "created": int(time.time()),
        "model": model,
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}],
        "usage": usage_of(prompt, content, reasoning),
        "metatree": extra_of(query),
    }


class Chunks:
    """The chunks of one streamed answer, as server-sent events."""

    def __init__(self, request_id: str, model: str, *, usage: bool, base: str) -> None:
        self._address = base
        self._base = {
            "id": request_id,
            "object": "chat.completion.chunk",
            "created": int(time.time()),
            "model": model,
        }
        self._usage: dict[str, Any] = {"usage": None} if usage else {}

    def delta(self, finish: str | None = None, **delta: Any) -> str:
        """Return a chunk with a part of the message."""
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return event({**self._base, "choices": [choice], **self._usage})

    def answer(self, query: Query) -> Iterator[str]:
        """Yield the chunks of an answer, a paragraph each, and the one that ends it."""
        content = content_of(query, self._address)
        for number, part in enumerate(content.split("\n\n")):
            yield self.delta(content=("\n\n" if number else "") + part)
        choice = {"index": 0, "delta": {}, "logprobs": None, "finish_reason": "stop"}
        yield event({**self._base, "choices": [choice], **self._usage, "metatree": extra_of(query)})

    def end(self, prompt: str, query: Query, reasoning: str) -> str:
        """Return the chunk with the usage, where it is wanted, and the end of the stream."""
        done = "data: [DONE]\n\n"
        if not self._usage:
            return done
        usage = usage_of(prompt, content_of(query, self._address), reasoning)
        return event({**self._base, "choices": [], "usage": usage}) + done


def event(data: dict[str, Any]) -> str:
    """Return a server-sent event."""
    return f"data: {json.dumps(data)}\n\n"
