"""Turn what the openai SDK raises and returns into metatree's errors."""

from __future__ import annotations

import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

from metatree.errors import MetatreeError, RouterUnavailable
from metatree_routers.llm._capabilities import Dialect, Dialects
from metatree_routers.llm._errors import (
    SERVER,
    BadKey,
    DialectChanged,
    EmptyAnswer,
    NotAModelServer,
    OutOfCredit,
    PromptTooLong,
    Refused,
    RequestRejected,
    Truncated,
    UnknownModel,
)
from metatree_routers.llm._settings import Settings

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
_NO_CREDIT = ("insufficient_quota", "billing", "credit")
_FILTERED = ("content_filter", "content management policy", "content policy")
MAX_SAID = 200


def error_for(exc: Exception, settings: Settings, dialects: Dialects, dialect: Dialect) -> MetatreeError:
    """Return the error of metatree's for one of the SDK's; learn from rejections how the server wants to be asked."""
    import openai

    place = f"{SERVER} at {settings.shown_url}"
    if isinstance(exc, openai.APIStatusError):
        return _for_status(exc, place, settings, dialects, dialect)
    if isinstance(exc, openai.APIConnectionError):
        cause: BaseException = exc
        while cause.__cause__ is not None:
            cause = cause.__cause__
            if isinstance(cause, MetatreeError):
                return cause
        if isinstance(exc, openai.APITimeoutError) and not _lost(cause):
            return RouterUnavailable(f"{place} did not answer in time")
        return RouterUnavailable(f"{place} cannot be reached ({type(cause).__name__}: {_short(str(cause))})")
    return RouterUnavailable(f"{place} answered what is no completion ({type(exc).__name__})")


def _lost(cause: BaseException) -> bool:
    """Whether a connection was refused or lost, for which the SDK's transport raises a timeout too."""
    import aiohttp

    return isinstance(cause, (aiohttp.ClientConnectionError, OSError)) and not isinstance(cause, TimeoutError)


def _for_status(
    exc: Any, place: str, settings: Settings, dialects: Dialects, dialect: Dialect
) -> MetatreeError:
    status: int = exc.status_code
    said = _message(exc)
    code = str(getattr(exc, "code", None) or "")
    both = f"{code} {said}".casefold()
    told = f"{place} answered {status}: {said}" if said else f"{place} answered {status}"
    if status in (401, 403):
        return BadKey(f"{told}; check OPENAI_API_KEY and what the key may do")
    if status == 402 or (status == 429 and any(word in both for word in _NO_CREDIT)):
        return OutOfCredit(f"{told}; add credit, or use another key")
    if status == 429 or status == 408 or status == 409 or status == 425:
        return RouterUnavailable(told, retry_after_s=_retry_after(exc.response.headers))
    if status >= 500 and status != 501:
        if dialects.proven or not any(
            word in both for word in ("schema", "response_format", "tool", "grammar")
        ):
            return RouterUnavailable(told, retry_after_s=_retry_after(exc.response.headers))
    elif any(word in both for word in _TOO_LONG) or status == 413:
        return PromptTooLong(told)
    elif any(word in both for word in _FILTERED):
        return Refused(f"the request was refused by a filter: {said}")
    elif status == 404 and not _about_form(both):
        return _not_found(told, both, settings)
    if "model" in both and ("not found" in both or "does not exist" in both or "not exist" in both):
        return _not_found(told, both, settings)
    if dialects.rejected(dialect, status, both):
        return DialectChanged(f"{told}; it is asked in another form ({dialects.current.mode})")
    if status >= 500:
        return RouterUnavailable(told)
    return RequestRejected(told, status=status)


def _about_form(said: str) -> bool:
    return any(word in said for word in ("response_format", "schema", "tool use", "tools", "tool_choice"))


def _not_found(told: str, both: str, settings: Settings) -> MetatreeError:
    if "model" in both:
        return UnknownModel(
            f"{told}; is {settings.model!r} the model's name there? see {settings.shown_url}/models"
        )
    return NotAModelServer(
        f"{told}; the address of an OpenAI-compatible server usually ends with /v1, and {settings.model!r} must be a"
        " model that it has"
    )


def check_completion(completion: Any, settings: Settings, *, ever_worked: bool) -> None:
    """See that what came is a completion with something in it.

    Raises:
        NotAModelServer: it is no chat completion, and none ever came from there.
        RouterUnavailable: it is no chat completion this time.
        Refused: the model or a filter declined.
        Truncated: it ran into its token limit.
        EmptyAnswer: it has neither text nor a tool call.
    """
    choices = getattr(completion, "choices", None)
    if not choices or getattr(choices[0], "message", None) is None:
        told = f"{SERVER} at {settings.shown_url} answered what is no chat completion"
        if ever_worked:
            raise RouterUnavailable(told)
        raise NotAModelServer(f"{told}; the address of an OpenAI-compatible server usually ends with /v1")
    choice = choices[0]
    message = choice.message
    if getattr(message, "refusal", None):
        raise Refused(f"the model declined to answer: {_short(str(message.refusal))}")
    if choice.finish_reason == "content_filter":
        raise Refused("the answer was withheld by a filter")
    if choice.finish_reason == "length":
        raise Truncated("the answer was cut off because it was too long; use fewer words")
    if not (message.content or "").strip() and not message.tool_calls:
        raise EmptyAnswer("the answer was empty")


def _message(exc: Any) -> str:
    body = exc.body
    if isinstance(body, Mapping):
        inner = body.get("error", body)
        said = inner.get("message") or inner.get("detail") if isinstance(inner, Mapping) else inner
        if said:
            return _short(str(said))
    text = str(getattr(exc.response, "text", "") or "")
    return "" if text.lstrip().startswith("<") else _short(text)


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= MAX_SAID else text[: MAX_SAID - 1] + "…"


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Read `Retry-After` in seconds or as a date, or `retry-after-ms`; None when it says nothing of use."""
    try:
        if headers.get("retry-after-ms"):
            return max(0.0, float(headers["retry-after-ms"]) / 1000)
        said = headers.get("retry-after")
        if not said:
            return None
        try:
            return max(0.0, float(said))
        except ValueError:
            return max(0.0, parsedate_to_datetime(said).timestamp() - time.time())
    except (TypeError, ValueError):
        return None
