"""Turn what the openai SDK raises and returns into metatree's errors."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from email.utils import parsedate_to_datetime
from typing import Any

from metatree.errors import MetatreeError, RouterUnavailable
from metatree_routers.llm._capabilities import CapabilityDiscovery, ServerCapabilities
from metatree_routers.llm._settings import ModelSettings
from metatree_routers.llm.errors import (
    SERVER,
    AnswerRefused,
    BadKey,
    CapabilitiesChanged,
    EmptyAnswer,
    NotAModelServer,
    OutOfCredit,
    PromptTooLong,
    RequestRejected,
    Truncated,
    UnknownModel,
    without_key,
)

_BY_CODE: Mapping[str, type[MetatreeError]] = {
    "insufficient_quota": OutOfCredit,
    "billing_hard_limit_reached": OutOfCredit,
    "billing_not_active": OutOfCredit,
    "rate_limit_exceeded": RouterUnavailable,
    "context_length_exceeded": PromptTooLong,
    "exceed_context_size_error": PromptTooLong,
    "content_filter": AnswerRefused,
    "content_policy_violation": AnswerRefused,
    "model_not_found": UnknownModel,
}
# Many servers of the same API answer 400 or 429 without such a code, so what they write has to tell.
_NO_CREDIT = ("insufficient_quota", "billing", "credit")
_TOO_LONG = (
    "context_length",
    "context length",
    "context size",
    "context window",
    "maximum input length",
    "prompt is too long",
    "too many tokens",
    "maximum context",
)
_FILTERED = ("content_filter", "content management policy", "content policy")
MAX_MESSAGE_CHARS = 200


def error_for(
    exc: Exception, settings: ModelSettings, discovery: CapabilityDiscovery, capabilities: ServerCapabilities
) -> MetatreeError:
    """Return metatree's error for one of the SDK's; learn from rejections how the server wants to be asked."""
    import openai

    place = f"{SERVER} at {settings.public_url}"
    if isinstance(exc, openai.APIStatusError):
        return _for_status(exc, place, settings, discovery, capabilities)
    if isinstance(exc, openai.APIConnectionError):
        cause: BaseException = exc
        while cause.__cause__ is not None:
            cause = cause.__cause__
            if isinstance(cause, MetatreeError):
                return cause
        if isinstance(exc, openai.APITimeoutError) and not _lost(cause):
            return RouterUnavailable(f"{place} did not answer in time")
        return RouterUnavailable(
            f"{place} cannot be reached ({type(cause).__name__}: {_short(str(cause))}); see whether it runs there"
        )
    return RouterUnavailable(f"{place} answered what is no completion ({type(exc).__name__})")


def _lost(cause: BaseException) -> bool:
    """Whether a connection was refused or lost, for which the SDK's transport raises a timeout too."""
    import aiohttp

    return isinstance(cause, (aiohttp.ClientConnectionError, OSError)) and not isinstance(cause, TimeoutError)


def _for_status(
    exc: Any,
    place: str,
    settings: ModelSettings,
    discovery: CapabilityDiscovery,
    capabilities: ServerCapabilities,
) -> MetatreeError:
    status: int = exc.status_code
    message = without_key(_message(exc), settings.api_key)
    both = f"{exc.code or ''} {message}".casefold()
    answer = f"{place} answered {status}: {message}" if message else f"{place} answered {status}"
    codes = (str(each).casefold() for each in (exc.code, exc.type) if each)
    by_code = next((_BY_CODE[code] for code in codes if code in _BY_CODE), None)

    def is_a(kind: type[MetatreeError], words: Sequence[str]) -> bool:
        return by_code is kind or (by_code is None and any(word in both for word in words))

    if status in (401, 403):
        return BadKey(f"{answer}; check OPENAI_API_KEY and what the key may do")
    if status == 402 or (status == 429 and is_a(OutOfCredit, _NO_CREDIT)):
        return OutOfCredit(f"{answer}; add credit, or use another key")
    if status in (408, 409, 425, 429):
        return RouterUnavailable(answer, retry_after_s=_retry_after(exc.response.headers))
    if status >= 500 and status != 501:
        if discovery.proven or not any(
            word in both for word in ("schema", "response_format", "tool", "grammar")
        ):
            return RouterUnavailable(answer, retry_after_s=_retry_after(exc.response.headers))
    elif status == 413 or is_a(PromptTooLong, _TOO_LONG):
        return PromptTooLong(answer)
    elif is_a(AnswerRefused, _FILTERED):
        return AnswerRefused(f"the request was refused by a filter: {message}")
    elif status == 404 and not _about_form(both):
        return _not_found(answer, both, settings)
    if by_code is UnknownModel or (
        "model" in both and any(words in both for words in ("not found", "not exist"))
    ):
        return _not_found(answer, both, settings)
    if discovery.rejected(capabilities, status, both):
        return CapabilitiesChanged(f"{answer}; it is asked in another form ({discovery.current.mode})")
    if status >= 500:
        return RouterUnavailable(answer)
    return RequestRejected(answer, status=status)


def _about_form(message: str) -> bool:
    return any(word in message for word in ("response_format", "schema", "tool use", "tools", "tool_choice"))


def _not_found(answer: str, both: str, settings: ModelSettings) -> MetatreeError:
    if "model" in both:
        return UnknownModel(
            f"{answer}; is {settings.model!r} the model's name there? see {settings.public_url}/models"
        )
    return NotAModelServer(
        f"{answer}; the address of an OpenAI-compatible server usually ends with /v1, and {settings.model!r} must be a"
        " model that it has"
    )


def check_completion(completion: Any, settings: ModelSettings, *, ever_worked: bool) -> None:
    """See that what came is a completion with something in it.

    Raises:
        RouterUnavailable: it is no chat completion, as when a proxy shows a page of its own.
        AnswerRefused: the model or a filter declined.
        Truncated: it ran into its token limit.
        EmptyAnswer: it has neither text nor a tool call.
    """
    choices = getattr(completion, "choices", None)
    if not choices or getattr(choices[0], "message", None) is None:
        answer = f"{SERVER} at {settings.public_url} answered what is no chat completion"
        hint = "; the address of an OpenAI-compatible server usually ends with /v1"
        raise RouterUnavailable(answer if ever_worked else answer + hint)
    choice = choices[0]
    message = choice.message
    if getattr(message, "refusal", None):
        raise AnswerRefused(f"the model declined to answer: {_short(str(message.refusal))}")
    if choice.finish_reason == "content_filter":
        raise AnswerRefused("the answer was withheld by a filter")
    if choice.finish_reason == "length":
        raise Truncated("the answer was cut off because it was too long; use fewer words")
    if not (message.content or "").strip() and not message.tool_calls:
        raise EmptyAnswer("the answer was empty")


def _message(exc: Any) -> str:
    body = exc.body
    if isinstance(body, Mapping):
        inner = body.get("error", body)
        detail = inner.get("message") or inner.get("detail") if isinstance(inner, Mapping) else inner
        if detail:
            return _short(str(detail))
    text = str(getattr(exc.response, "text", "") or "")
    return "" if text.lstrip().startswith("<") else _short(text)


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= MAX_MESSAGE_CHARS else text[: MAX_MESSAGE_CHARS - 1] + "…"


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Read `Retry-After` in seconds or as a date, or `retry-after-ms`; None when it says nothing of use."""
    try:
        if headers.get("retry-after-ms"):
            return max(0.0, float(headers["retry-after-ms"]) / 1000)
        value = headers.get("retry-after")
        if not value:
            return None
        try:
            return max(0.0, float(value))
        except ValueError:
            return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (TypeError, ValueError):
        return None
