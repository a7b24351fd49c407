"""Forms: what an answer must look like, as pydantic models that read generously and schemas that ask strictly.

Importing this module loads pydantic, so the other modules import it when a model is first asked.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    WithJsonSchema,
    create_model,
    model_validator,
)

from metatree_routers.llm._extract import json_object
from metatree_routers.llm.labels import NONE, labels

REASON = 240
WHY = 120
ANSWER = 1_500
QUOTE = 600
LABEL = 80
LONGEST_LABEL = 3
TITLE = 120
MAX_RULED_OUT = 8
"""More is no judgement of each: a model of 135 million parameters ruled out 14 to 19 of 21 options."""
MAX_ANSWERS = 20
MAX_NEW_QUESTIONS = 3


class Formless(ValueError):
    """What a model wrote holds no object at all."""


def _cut(most: int) -> BeforeValidator:
    """Cut a text that is too long instead of rejecting it, and take null and numbers for text."""

    def cut(value: object) -> object:
        if value is None:
            return ""
        if isinstance(value, int | float):
            value = str(value)
        return value[:most] if isinstance(value, str) else value

    return BeforeValidator(cut)


Reason = Annotated[str, _cut(REASON), Field(max_length=REASON)]
Why = Annotated[str, _cut(WHY), Field(max_length=WHY)]
Text = Annotated[str, _cut(ANSWER), Field(max_length=ANSWER)]
QuoteText = Annotated[str, _cut(QUOTE), Field(max_length=QUOTE)]
Label = Annotated[str, _cut(LABEL), Field(max_length=LABEL)]
Title = Annotated[str, _cut(TITLE), Field(max_length=TITLE)]


def _list(most: int | None = None) -> BeforeValidator:
    """Take a single value for a list of one, null for an empty list, and cut a list that is too long."""

    def listed(value: object) -> object:
        if value is None or value == "":
            return []
        return value[:most] if isinstance(value, list) else [value]

    return BeforeValidator(listed)


class Form(BaseModel):
    """An answer in form: gives its schema, and reads what came."""

    model_config = ConfigDict(extra="ignore")
    strict: ClassVar[bool] = True
    """Whether the schema keeps to what OpenAI calls strict: all fields required, none besides."""

    @classmethod
    def model_validate_json(cls, json_data: str | bytes | bytearray, **_: Any) -> Self:
        """Read the object in a text; instructor calls this one.

        Raises:
            Formless: there is none.
            ValidationError: it is not in form.
        """
        text = str(json_data)
        data = json_object(text, cls.fields())
        if data is None:
            raise Formless(f"there is no JSON object in the answer {text[:80]!r}")
        return cls.model_validate(data)

    @classmethod
    def fields(cls) -> Collection[str]:
        """Return the names that tell an answer from other objects in a text."""
        return cls.model_fields

    @classmethod
    def schema_for(cls, bounds: bool) -> dict[str, Any]:
        """Return the schema without references and titles, with or without bounds on the lengths of texts and lists."""
        return _schema(cls, bounds)


class RuledOut(BaseModel):
    option: Label
    why: Why = ""

    @model_validator(mode="before")
    @classmethod
    def _from_label(cls, value: Any) -> Any:
        return {"option": value} if isinstance(value, str) else value


def _by_option(value: object) -> object:
    """Take `{"B": "why"}` for a list of options too."""
    if isinstance(value, dict) and "option" not in value:
        return [{"option": option, "why": why} for option, why in value.items()]
    return value


class RouteForm(Form):
    reason: Reason = ""
    choice: Label = NONE
    ruled_out: Annotated[
        list[RuledOut],
        _list(MAX_RULED_OUT),
        BeforeValidator(_by_option),
        Field(max_length=MAX_RULED_OUT),
    ] = Field(default_factory=list)

    @model_validator(mode="before")
    @classmethod
    def _demand_choice(cls, value: Any) -> Any:
        if isinstance(value, dict) and not {"choice", "ruled_out"} & value.keys():
            raise ValueError("`choice` is missing: name one label, or none")
        return value


@lru_cache(maxsize=512)
def route_form(count: int) -> type[RouteForm]:
    """Return the form for a menu of so many options: its schema allows a choice of their labels and nothing else.

    What is ruled out are labels alone, looked up among them later: the labels a second time, and a reason for each,
    would be a fifth of a prompt.
    """
    offered: list[Any] = [*labels(count)]
    choice: Any = Annotated[Label, Field(json_schema_extra={"enum": [*offered, NONE]})]
    most = min(count, MAX_RULED_OUT)
    label = {"type": "string", "maxLength": LONGEST_LABEL}
    ruled_out: Any = Annotated[
        list[RuledOut],
        _list(most),
        BeforeValidator(_by_option),
        Field(max_length=most),
        WithJsonSchema({"type": "array", "items": label, "maxItems": most}),
    ]
    return create_model(
        "Route",
        __base__=RouteForm,
        choice=(choice, NONE),
        ruled_out=(ruled_out, Field(default_factory=list)),
    )


class AnswerItem(BaseModel):
    question: Label = "Q1"
    answer: Text
    quote: QuoteText = ""
    complete: bool = True


class ReadForm(Form):
    answers: Annotated[list[AnswerItem], _list(MAX_ANSWERS), Field(max_length=MAX_ANSWERS)] = Field(
        default_factory=list
    )
    new_questions: Annotated[list[Reason], _list(MAX_NEW_QUESTIONS), Field(max_length=MAX_NEW_QUESTIONS)] = (
        Field(default_factory=list)
    )
    notes: Reason = ""

    @model_validator(mode="before")
    @classmethod
    def _demand_answers(cls, value: Any) -> Any:
        if isinstance(value, dict) and not {"answers", "new_questions", "notes"} & value.keys():
            if "answer" not in value:
                raise ValueError("`answers` is missing: give a list, empty if the text answers nothing")
            return {"answers": [value]}  # one answer without the list around it
        return value


class DescriptionForm(Form):
    title: Title
    description: QuoteText


class ItemForm(BaseModel):
    item: Label
    title: Title = ""
    description: QuoteText


class DescriptionsForm(Form):
    items: Annotated[list[ItemForm], _list()]


@lru_cache(maxsize=512)
def arguments_form(tool: str, schema: str) -> type[Form]:
    """Return the form of a tool's arguments: any object here, since the tool validates them against its schema."""
    wanted = json.loads(schema)

    class Arguments(Form):
        model_config = ConfigDict(extra="allow")
        strict: ClassVar[bool] = False

        @classmethod
        def fields(cls) -> Collection[str]:
            return list(wanted.get("properties", {}))

        @classmethod
        def schema_for(cls, bounds: bool) -> dict[str, Any]:
            return {**compact_schema(wanted, bounds=bounds), "title": "Arguments"}

    return Arguments


def problems(exc: ValidationError) -> str:
    """Return what is wrong with an answer, each field with its own sentence, for the model to fix."""
    messages = []
    for error in exc.errors(include_url=False, include_context=False)[:5]:
        where = ".".join(map(str, error["loc"]))
        message = error["msg"].removeprefix("Value error, ")
        messages.append(f"{where}: {message}" if where else message)
    return "; ".join(messages)


@lru_cache(maxsize=1024)
def _schema(form: type[Form], bounds: bool) -> dict[str, Any]:
    schema = compact_schema(form.model_json_schema(), bounds=bounds)
    schema["title"] = form.__name__
    if form.strict:
        _make_strict(schema)
    return schema


def compact_schema(schema: Mapping[str, Any], *, bounds: bool = True) -> dict[str, Any]:
    """Return a schema without references, titles and defaults, and without bounds on lengths when asked.

    Example:
        >>> compact_schema({"title": "T", "properties": {"title": {"$ref": "#/$defs/S"}},
        ...                 "$defs": {"S": {"type": "string", "maxLength": 9}}}, bounds=False)
        {'properties': {'title': {'type': 'string'}}}
    """
    shared = schema.get("$defs", {})

    def walk(value: Any, depth: int) -> Any:
        if isinstance(value, list):
            return [walk(item, depth) for item in value]
        if not isinstance(value, Mapping):
            return value
        name = value.get("$ref", "")
        if name.startswith("#/$defs/") and depth < 20:
            return walk(shared[name.removeprefix("#/$defs/")], depth + 1)
        result: dict[str, Any] = {}
        for key, inner in value.items():
            if key == "properties":
                result[key] = {field: walk(one, depth + 1) for field, one in inner.items()}
            elif key not in _DROPPED and (key not in _BOUNDS or (bounds and "enum" not in value)):
                result[key] = walk(inner, depth + 1)
        return result

    walked: dict[str, Any] = walk({k: v for k, v in schema.items() if k != "$defs"}, 0)
    return walked


_DROPPED = ("title", "default")
_BOUNDS = ("maxLength", "minLength", "maxItems", "minItems")


def _make_strict(schema: dict[str, Any]) -> None:
    if schema.get("type") == "object":
        schema["required"] = list(schema.get("properties", {}))
        schema["additionalProperties"] = False
    for inner in [*schema.get("properties", {}).values(), schema.get("items")]:
        if isinstance(inner, dict):
            _make_strict(inner)
