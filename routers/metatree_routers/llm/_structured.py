"""Answers in form: instructor prepares the request and reads the answer, and metatree's errors come out.

Instructor is called at its handlers (`mode_registry`), which do both. Lost: `instructor.from_openai`, whose `create`
looks through classes, copies messages, sets up retries and counts what is off here: a routing call takes 3.2 ms of CPU
with it against 1.8 (bench_llm.py, pairs in one run), 64 searches side by side 1.07 s against 0.58, and each call leaves
56 objects in cycles, for which the interpreter's collector looks through the whole program. It also writes each failed
call to the log as an error, and puts its own error in the place of the SDK's.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from metatree.errors import BadModelAnswer
from metatree_routers.llm._capabilities import CapabilityDiscovery, Mode, ServerCapabilities
from metatree_routers.llm._response_models import Form, is_formless, problems

NAME = "answer"


def request_for(body: dict[str, Any], form: type[Form], capabilities: ServerCapabilities) -> dict[str, Any]:
    """Return a request's body that asks for a form, as this server takes it."""
    return {**body, **_form_fields(form, capabilities.mode, capabilities.bounds)}


def answer_of(
    completion: Any, form: type[Form], discovery: CapabilityDiscovery, capabilities: ServerCapabilities
) -> Any:
    """Read the answer in form, through instructor, and say to the discovery whether it came in form.

    Raises:
        BadModelAnswer: it has not the form.
    """
    try:
        answer = _handlers(capabilities.mode).response_parser(
            response=completion, response_model=_adapter(form)
        )
    except Exception as exc:  # pydantic's, instructor's, and an assertion about refusals
        answer = _from_text(form, completion) if capabilities.mode is Mode.TOOLS else None
        if answer is None:
            raise _bad(exc, discovery, capabilities) from None
    discovery.worked(capabilities)
    return answer


@lru_cache(maxsize=2)
def _handlers(mode: Mode) -> Any:
    """Return instructor's handlers for a mode.

    The plain mode has that of the JSON schema, of which `_form_fields` leaves the schema out: instructor's own JSON
    modes put a prompt of theirs before ours.
    """
    from instructor.v2 import Mode as Modes
    from instructor.v2 import Provider, mode_registry

    return mode_registry.get_handlers(
        Provider.OPENAI, Modes.TOOLS if mode is Mode.TOOLS else Modes.JSON_SCHEMA
    )


@lru_cache(maxsize=2048)
def _form_fields(form: type[Form], mode: Mode, bounds: bool) -> dict[str, Any]:
    """Return the part of a body that asks for a form; made once, since it is the same in every call.

    Instructor says where it goes; the names are the same for all forms, and the schema has the bounds that the server
    takes.
    """
    if mode is Mode.PLAIN:
        return {}
    _, fields = _handlers(mode).request_handler(response_model=_adapter(form), kwargs={"messages": []})
    del fields["messages"]
    schema = form.schema_for(bounds)
    if mode is Mode.SCHEMA:
        strict = {"strict": True} if form.strict else {}
        fields["response_format"]["json_schema"] = {"name": NAME, "schema": schema, **strict}
    else:
        function = {"name": NAME, "description": "Give the answer.", "parameters": schema}
        fields["tools"][0]["function"] = function
        fields["tool_choice"]["function"] = {"name": NAME}
    return dict(fields)


@lru_cache(maxsize=1024)
def _adapter(form: type[Form]) -> type[Any]:
    """Return what instructor sees of a form: a class without fields that gives its schema and reads its answers.

    Instructor's wish for strict types is not followed: models err in small ways.
    """
    from instructor import ResponseSchema

    class Adapter(ResponseSchema):
        @classmethod
        def model_json_schema(cls, *args: Any, **kwargs: Any) -> dict[str, Any]:
            return dict(form.schema_for(True))  # instructor writes a description into it

        @classmethod
        def model_validate_json(cls, json_data: Any, **_: Any) -> Any:
            return form.read(json_data)

    return Adapter


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


def _bad(
    cause: Exception, discovery: CapabilityDiscovery, capabilities: ServerCapabilities
) -> BadModelAnswer:
    from pydantic import ValidationError

    if isinstance(cause, ValidationError):
        if is_formless(cause):
            discovery.formless(capabilities)
        return BadModelAnswer(f"the answer has not the form asked for: {problems(cause)}")
    discovery.formless(capabilities)
    return BadModelAnswer("the answer has not the form asked for: there is no JSON object in it")
