"""OpenTelemetry spans by the conventions for generative AI, through `opentelemetry-api` alone; nothing without it."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

CONTENT_SWITCH = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"


class CallSpan:
    """One call of a model; without OpenTelemetry it does nothing."""

    def __init__(self, span: Any, *, content: bool) -> None:
        self._span = span
        self._content = content

    def sent(self, messages: Sequence[Mapping[str, Any]]) -> None:
        """Write the prompt down, if contents are wanted."""
        if self._span is not None and self._content:
            self._span.set_attribute("gen_ai.input.messages", _as_parts(messages))

    def answered(
        self, *, response_id: str, model: str, finish: str | None, tokens_in: int, tokens_out: int, text: str
    ) -> None:
        """Write down what came."""
        if self._span is None:
            return
        self._span.set_attributes(
            {
                "gen_ai.response.id": response_id,
                "gen_ai.response.model": model,
                "gen_ai.response.finish_reasons": [finish or ""],
                "gen_ai.usage.input_tokens": tokens_in,
                "gen_ai.usage.output_tokens": tokens_out,
            }
        )
        if self._content:
            message = {"role": "assistant", "content": text, "finish_reason": finish or ""}
            self._span.set_attribute("gen_ai.output.messages", _as_parts([message]))


@lru_cache(maxsize=1)
def _there() -> bool:
    return find_spec("opentelemetry") is not None and find_spec("opentelemetry.trace") is not None


def _tracer() -> Any:
    if not _there():
        return None
    from opentelemetry import trace

    if type(trace.get_tracer_provider()).__name__ in ("ProxyTracerProvider", "NoOpTracerProvider"):
        return None  # no SDK is set up: not even empty spans are made
    return trace.get_tracer("metatree")


@contextlib.contextmanager
def model_call(
    *, task: str, model: str, base_url: str, max_tokens: int, temperature: float | None, content: bool | None
) -> Iterator[CallSpan]:
    """Open a span for one call of a model; an exception that leaves the block marks it as failed.

    Args:
        task: `route`, `read`, `fill`, `compose` or `describe`.
        content: whether prompts and answers are written; None asks the environment variable `CONTENT_SWITCH`.
    """
    tracer = _tracer()
    if tracer is None:
        yield CallSpan(None, content=False)
        return
    from opentelemetry.trace import SpanKind, Status, StatusCode

    server = urlsplit(base_url)
    attributes: dict[str, Any] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": model,
        "gen_ai.request.max_tokens": max_tokens,
        "server.address": server.hostname or "",
        "metatree.task": task,
    }
    if server.port:
        attributes["server.port"] = server.port
    if temperature is not None:
        attributes["gen_ai.request.temperature"] = temperature
    if content is None:
        content = os.environ.get(CONTENT_SWITCH, "").casefold() in ("true", "1", "yes")
    with tracer.start_as_current_span(
        f"chat {model}",
        kind=SpanKind.CLIENT,
        attributes=attributes,
        record_exception=False,
        set_status_on_exception=False,
    ) as span:
        try:
            yield CallSpan(span, content=content)
        except BaseException as exc:
            span.set_attribute("error.type", type(exc).__name__)
            # The message of an answer out of form quotes the answer.
            span.set_status(Status(StatusCode.ERROR, str(exc)[:200] if content else type(exc).__name__))
            raise


def _as_parts(messages: Sequence[Mapping[str, Any]]) -> str:
    parts = []
    for message in messages:
        one: dict[str, Any] = {
            "role": message["role"],
            "parts": [{"type": "text", "content": message["content"]}],
        }
        if "finish_reason" in message:
            one["finish_reason"] = message["finish_reason"]
        parts.append(one)
    return json.dumps(parts, ensure_ascii=False)
