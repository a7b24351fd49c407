"""Answers in form: instructor prepares the request and reads the answer, and metatree's errors come out.

Instructor is called at its handlers (`mode_registry`), which do both. Lost: `instructor.from_openai`, whose `create`
looks through classes, copies messages, sets up retries and counts what is off here: a routing call takes 3.2 ms of CPU
with it against 1.8 (bench_llm.py, pairs in one run), 64 searches side by side 1.07 s against 0.58, and each call leaves
56 objects in cycles, for which the interpreter's collector looks through the whole program. It also writes each failed
call to the log as an error, and puts its own error in the place of the SDK's.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError

from metatree.errors import BadModelAnswer
from metatree_routers.llm._capabilities import CapabilityDiscovery, Mode, ServerCapabilities
from metatree_routers.llm._response_models import Form, Formless, problems

if TYPE_CHECKING:
    from openai.types.chat import ChatCompletion

NAME = "answer"
F = TypeVar("F", bound=Form)


def request_for(body: dict[str, Any], form: type[Form], capabilities: ServerCapabilities) -> dict[str, Any]:
    """Return a request's body that asks for a form, as this server takes it."""
    return {**body, **_form_fields(form, capabilities.mode, capabilities.bounds)}


def answer_of(
    completion: ChatCompletion,
    form: type[F],
    discovery: CapabilityDiscovery,
    capabilities: ServerCapabilities,
) -> F:
    """Read the answer in form, through instructor, and say to the discovery whether it came in form.

    What was written as text although a function was to be called is read as a text.

    Raises:
        BadModelAnswer: it has not the form.
    """
    wants_call = capabilities.mode is Mode.TOOLS
    is_called = wants_call and bool(completion.choices[0].message.tool_calls)
    try:
        parse = _handlers(Mode.TOOLS if is_called else Mode.SCHEMA).response_parser
        answer: F = parse(response=completion, response_model=form)
    except Exception as exc:  # pydantic's, instructor's, and an assertion about refusals
        if not isinstance(exc, ValidationError) or is_called is not wants_call:
            discovery.formless(capabilities)
        raise BadModelAnswer(f"the answer has not the form asked for: {_problem(exc)}") from None
    discovery.worked(capabilities)
    return answer


def _problem(exc: Exception) -> str:
    if isinstance(exc, ValidationError):
        return problems(exc)
    return str(exc) if isinstance(exc, Formless) else "there is no JSON object in it"


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

    Instructor says where it goes, for any form; the name is the same for all of them, and the schema has the bounds
    that the server takes. Instructor's wish for strict types is not followed: models err in small ways.
    """
    if mode is Mode.PLAIN:
        return {}
    _, fields = _handlers(mode).request_handler(response_model=Form, kwargs={"messages": []})
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
