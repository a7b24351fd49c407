"""Answers in form: instructor prepares the request and reads the answer, and metatree's errors come out.

Instructor is called at its handlers, which do both; its patched `create` around them looks through classes, copies
messages and sets up retries, in more time than all else together, for what is off here.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from metatree.errors import BadModelAnswer
from metatree_routers.llm._capabilities import Dialect, Dialects, Mode
from metatree_routers.llm._response_models import Form, is_formless, problems

NAME = "answer"


def shaped(body: dict[str, Any], form: type[Form], dialect: Dialect) -> dict[str, Any]:
    """Return a request's body with the wish for a form as this server takes it."""
    return {**body, **_wish(form, dialect.mode, dialect.bounds)}


def answer_of(completion: Any, form: type[Form], dialects: Dialects, dialect: Dialect) -> Any:
    """Read the answer in form, through instructor, and say to the dialects whether it came in form.

    Raises:
        BadModelAnswer: it has not the form.
    """
    try:
        answer = _handlers(dialect.mode).response_parser(response=completion, response_model=_facade(form))
    except Exception as exc:  # pydantic's, instructor's, and an assertion about refusals
        answer = _from_text(form, completion) if dialect.mode is Mode.TOOLS else None
        if answer is None:
            raise _bad(exc, dialects, dialect) from None
    dialects.worked(dialect)
    return answer


@lru_cache(maxsize=2)
def _handlers(mode: Mode) -> Any:
    """Return instructor's handlers for a mode.

    The plain mode has that of the JSON schema, of which `_wish` leaves the schema out: instructor's own JSON modes put
    a prompt of theirs before ours.
    """
    from instructor.v2 import Mode as Modes
    from instructor.v2 import Provider, mode_registry

    return mode_registry.get_handlers(
        Provider.OPENAI, Modes.TOOLS if mode is Mode.TOOLS else Modes.JSON_SCHEMA
    )


@lru_cache(maxsize=2048)
def _wish(form: type[Form], mode: Mode, bounds: bool) -> dict[str, Any]:
    """Return the part of a body that asks for a form; made once, since it is the same in every call.

    Instructor says where it goes; the names are the same for all forms, and the schema has the bounds that the server
    takes.
    """
    if mode is Mode.PLAIN:
        return {}
    _, wish = _handlers(mode).request_handler(response_model=_facade(form), kwargs={"messages": []})
    del wish["messages"]
    schema = form.schema_for(bounds)
    if mode is Mode.SCHEMA:
        strict = {"strict": True} if form.strict else {}
        wish["response_format"]["json_schema"] = {"name": NAME, "schema": schema, **strict}
    else:
        function = {"name": NAME, "description": "Give the answer.", "parameters": schema}
        wish["tools"][0]["function"] = function
        wish["tool_choice"]["function"] = {"name": NAME}
    return dict(wish)


@lru_cache(maxsize=1024)
def _facade(form: type[Form]) -> type[Any]:
    """Return what instructor sees of a form: a class without fields that gives its schema and reads its answers.

    Instructor's wish for strict types is not followed: models err in small ways.
    """
    from instructor import ResponseSchema

    class Facade(ResponseSchema):
        @classmethod
        def model_json_schema(cls, *args: Any, **kwargs: Any) -> dict[str, Any]:
            return dict(form.schema_for(True))  # instructor writes a description into it

        @classmethod
        def model_validate_json(cls, json_data: Any, **_: Any) -> Any:
            return form.read(json_data)

    return Facade


def _from_text(form: type[Form], completion: Any) -> Form | None:
    """Read an answer that a model wrote as text although it was to call a function."""
    from pydantic import ValidationError

    message = completion.choices[0].message
    if message.tool_calls or not message.content:
        return None
    try:
        return form.read(message.content)
    except ValidationError:
        return None


def _bad(cause: Exception, dialects: Dialects, dialect: Dialect) -> BadModelAnswer:
    from pydantic import ValidationError

    if isinstance(cause, ValidationError):
        if is_formless(cause):
            dialects.formless(dialect)
        return BadModelAnswer(f"the answer has not the form asked for: {problems(cause)}")
    dialects.formless(dialect)
    return BadModelAnswer("the answer has not the form asked for: there is no JSON object in it")
