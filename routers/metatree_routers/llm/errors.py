"""What can go wrong between a prompt and its answer.

    BadModelAnswer (metatree.errors)      shown to the model, which is asked again
    ├── Truncated                         it ran into its token limit
    ├── AnswerRefused                           the model or its filter declined
    └── EmptyAnswer                       there was nothing in it
    TransientError (metatree.errors)      asked again as it was
    ├── RouterUnavailable (metatree.errors)  429, 5xx, timeouts, dropped connections
    ├── CapabilitiesChanged                    the server does not take this form; the next attempt uses another
    └── PromptTooLong                     over the model's context; the next prompt is shorter
    UserError (metatree.errors)           the run stops and can be resumed once the settings are fixed
    ├── BadKey                            401, 403
    ├── UnknownModel                      404
    ├── OutOfCredit                       the account has nothing left
    └── NotAModelServer                   what answers there is no chat completion API
    RequestRejected                       any other 4xx, about this one request

Messages that come from the server's side begin with `SERVER`, so that they are distinct from what a model should be
shown.
"""

from __future__ import annotations

from collections.abc import Iterable

from metatree.errors import BadModelAnswer, MetatreeError, TransientError, UserError

SERVER = "the model server"


class Truncated(BadModelAnswer):
    """An answer was cut off at its token limit."""


class AnswerRefused(BadModelAnswer):
    """The model, or a filter before it, declined to answer."""


class EmptyAnswer(BadModelAnswer):
    """An answer held nothing."""


class CapabilitiesChanged(TransientError):
    """The server does not take requests of this form; the next attempt is made in another."""


class PromptTooLong(TransientError):
    """The prompt did not fit the model's context; the next one is shorter."""


class RequestRejected(MetatreeError):
    """The server rejects this request, and would reject it again."""

    status: int


class BadKey(UserError):
    """The server does not accept the key."""


class UnknownModel(UserError):
    """The server has no such model."""


class OutOfCredit(UserError):
    """The account that the key belongs to has nothing left."""


class NotAModelServer(UserError):
    """What answers at this address is not an OpenAI-compatible server."""


def for_the_model(errors: Iterable[str]) -> list[str]:
    """Return the errors that a model can fix: those about its answers, not those about its server."""
    return [e for e in errors if not e.startswith((SERVER, "no answer within"))]


_LEAST_KEY = 8
"""Characters of what is a key; servers of one's own are given any word."""


def without_key(message: str, key: str) -> str:
    """Return what a server says without the key that it was given: some repeat what they refuse.

    Example:
        >>> without_key("no such key: sk-12345678", "sk-12345678")
        'no such key: ***'
    """
    return message.replace(key, "***") if len(key) >= _LEAST_KEY else message
