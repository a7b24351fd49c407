"""Answers in form: instructor prepares the request and reads the answer, and metatree's errors come out."""

from __future__ import annotations

import contextvars
import logging
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from metatree.errors import BadModelAnswer, MetatreeError
from metatree_routers.llm.forms import Form, is_formless, problems
from metatree_routers.llm.modes import Dialect, Dialects, Mode

NAME = "answer"
_ours: contextvars.ContextVar[bool] = contextvars.ContextVar("metatree_instructor_call", default=False)


def instructed(create: Callable[..., Any], mode: Mode) -> Callable[..., Any]:
    """Return instructor's version of a function that sends a request.

    The plain mode goes through its JSON-schema handler too, and `shaped` takes the schema out again: instructor's own
    JSON modes put a prompt of theirs before ours.
    """
    import instructor

    _quieten()
    chosen = instructor.Mode.TOOLS if mode is Mode.TOOLS else instructor.Mode.JSON_SCHEMA
    return instructor.patch(create=create, mode=chosen)


def shaped(body: dict[str, Any], form: type[Form], dialect: Dialect) -> dict[str, Any]:
    """Return a request's body with the schema as this server takes it."""
    if dialect.mode is Mode.PLAIN:
        return {name: value for name, value in body.items() if name != "response_format"}
    schema = form.schema_for(dialect.bounds)
    if dialect.mode is Mode.SCHEMA:
        wanted: dict[str, Any] = {"name": NAME, "schema": schema}
        if form.strict:
            wanted["strict"] = True
        return {**body, "response_format": {"type": "json_schema", "json_schema": wanted}}
    function = {"name": NAME, "description": "Give the answer.", "parameters": schema}
    return {
        **body,
        "tools": [{"type": "function", "function": function}],
        "tool_choice": {"type": "function", "function": {"name": NAME}},
    }


async def answered(
    send: Callable[..., Any], dialects: Dialects, dialect: Dialect, body: dict[str, Any]
) -> Any:
    """Send a request through instructor once and return the answer in form.

    Raises:
        BadModelAnswer: it has not the form.
        MetatreeError: what the sending raised.
    """
    from instructor.core import InstructorRetryException

    form = body["response_model"]
    body = {**body, "response_model": _facade(form)}
    ours = _ours.set(True)
    try:
        answer = await send(**body)
    except InstructorRetryException as exc:
        cause = exc.__cause__
        if isinstance(cause, MetatreeError):
            raise cause from cause.__cause__
        answer = _from_text(form, exc.last_completion) if dialect.mode is Mode.TOOLS else None
        if answer is None:
            raise _bad(cause, dialects, dialect) from None
    finally:
        _ours.reset(ours)
    dialects.worked(dialect)
    return answer


@lru_cache(maxsize=1024)
def _facade(form: type[Form]) -> type[Any]:
    """Return what instructor sees of a form: a class without fields that gives its schema and reads its answers.

    Instructor looks through all classes and fields of a response model four times a call, in more time than all else.
    Its wish for strict types is not followed: models err in small ways.
    """
    from instructor import ResponseSchema

    class Facade(ResponseSchema):
        @classmethod
        def model_json_schema(cls, *args: Any, **kwargs: Any) -> dict[str, Any]:
            return form.schema_for(True)

        @classmethod
        def model_validate_json(cls, json_data: Any, **_: Any) -> Any:
            return form.read(json_data)

    return Facade


def _from_text(form: type[Form], completion: Any) -> Form | None:
    """Read an answer that a model wrote as text although it was to call a function."""
    from pydantic import ValidationError

    message = completion.choices[0].message if completion is not None else None
    if message is None or message.tool_calls or not message.content:
        return None
    try:
        return form.read(message.content)
    except ValidationError:
        return None


def _bad(cause: BaseException | None, dialects: Dialects, dialect: Dialect) -> BadModelAnswer:
    from pydantic import ValidationError

    if isinstance(cause, ValidationError):
        if is_formless(cause):
            dialects.formless(dialect)
        return BadModelAnswer(f"the answer has not the form asked for: {problems(cause)}")
    dialects.formless(dialect)
    return BadModelAnswer("the answer has not the form asked for: there is no JSON object in it")


class _OwnCalls(logging.Filter):
    """Drops what instructor logs about metatree's calls: each failure is an error here already, and its log lines quote
    the model's answers."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not _ours.get()


def _quieten() -> None:
    log = logging.getLogger("instructor.v2.retry")
    if not any(isinstance(one, _OwnCalls) for one in log.filters):
        log.addFilter(_OwnCalls())
