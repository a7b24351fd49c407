"""Forms: what an answer must look like, as pydantic models that read generously and schemas that ask strictly.

Importing this module loads pydantic and instructor, so the other modules import it when a model is first asked.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Self

from instructor import ResponseSchema
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, create_model, model_validator

from metatree_routers.llm.extract import json_object
from metatree_routers.llm.labels import NONE, labels

REASON = 240
WHY = 120
ANSWER = 1_500
QUOTE = 600
MAX_RULED_OUT = 60
MAX_ANSWERS = 20
MAX_NEW_QUESTIONS = 3


class Formless(ValueError):
    """What a model wrote holds no object at all."""


def _clip(most: int) -> Any:
    """Return a text type that is cut, not rejected, when it is too long, and takes null and numbers for text."""

    def cut(value: object) -> object:
        if value is None:
            return ""
        if isinstance(value, int | float | bool):
            value = str(value)
        return value[:most] if isinstance(value, str) else value

    return Annotated[str, BeforeValidator(cut), Field(max_length=most)]


Reason = _clip(REASON)
Why = _clip(WHY)
Text = _clip(ANSWER)
QuoteText = _clip(QUOTE)
Label = _clip(80)
Title = _clip(120)


def _listed(value: object) -> object:
    """Take a single value for a list of one, and null for an empty list."""
    if value is None or value == "":
        return []
    return value if isinstance(value, list) else [value]


class Form(ResponseSchema):
    """An answer in form. `instructor` asks for its schema and gives it what came."""

    model_config = ConfigDict(extra="ignore")
    strict: ClassVar[bool] = True
    """Whether the schema keeps to what OpenAI calls strict: all fields required, none besides."""

    @classmethod
    def model_validate_json(cls, json_data: str | bytes | bytearray, **_: Any) -> Self:
        """Read the object in a text; instructor's wish for strict types is not followed, models err in small ways."""
        text = json_data if isinstance(json_data, str) else json_data.decode("utf-8", "replace")
        found = json_object(text, cls.model_fields)
        if found is None:
            return cls.model_validate(_NoObject(text))
        return cls.model_validate(found)

    @model_validator(mode="before")
    @classmethod
    def _must_be_object(cls, value: Any) -> Any:
        if isinstance(value, _NoObject):
            raise Formless(f"there is no JSON object in the answer {value.text[:80]!r}")
        return value

    @classmethod
    def model_json_schema(cls, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Return the schema without references and titles, made once."""
        return cls.schema_for(True)

    @classmethod
    def schema_for(cls, bounds: bool) -> dict[str, Any]:
        """Return the schema, with or without bounds on the lengths of texts and lists."""
        return _schema(cls, bounds)


class _NoObject:
    def __init__(self, text: str) -> None:
        self.text = text


class RuledOut(BaseModel):
    option: Label
    why: Why = ""

    @model_validator(mode="before")
    @classmethod
    def _from_label(cls, value: Any) -> Any:
        return {"option": value} if isinstance(value, str) else value


class RouteForm(Form):
    reason: Reason = ""
    choice: Label = NONE
    ruled_out: Annotated[list[RuledOut], BeforeValidator(_listed), Field(max_length=MAX_RULED_OUT)] = Field(
        default_factory=list
    )

    @model_validator(mode="before")
    @classmethod
    def _from_mapping(cls, value: Any) -> Any:
        """Take `{"B": "why"}` for `ruled_out` too, cut it when it is too long, and demand that a choice is made."""
        if not isinstance(value, dict):
            return value
        if "choice" not in value and "ruled_out" not in value:
            raise ValueError("`choice` is missing: name one label, or none")
        said = value.get("ruled_out")
        if isinstance(said, dict) and "option" not in said:
            said = [{"option": option, "why": why} for option, why in said.items()]
        return {**value, "ruled_out": said[:MAX_RULED_OUT] if isinstance(said, list) else said}


@lru_cache(maxsize=512)
def route_form(count: int) -> type[RouteForm]:
    """Return the form for a menu of so many options: its schema allows their labels and nothing else."""
    offered = list(labels(count))
    one = create_model(
        "RuledOut",
        __base__=RuledOut,
        option=(Annotated[Label, Field(json_schema_extra={"enum": list(offered)})], ...),
        why=(Why, ...),
    )
    return create_model(
        "Route",
        __base__=RouteForm,
        reason=(Reason, ""),
        choice=(Annotated[Label, Field(json_schema_extra={"enum": [*offered, NONE]})], NONE),
        ruled_out=(
            Annotated[list[one], BeforeValidator(_listed), Field(max_length=min(count, MAX_RULED_OUT))],  # type: ignore[valid-type]
            Field(default_factory=list),
        ),
    )


class AnswerItem(BaseModel):
    question: Label = "Q1"
    answer: Text
    quote: QuoteText = ""
    complete: bool = True


class ReadForm(Form):
    answers: Annotated[list[AnswerItem], BeforeValidator(_listed), Field(max_length=MAX_ANSWERS)] = Field(
        default_factory=list
    )
    new_questions: Annotated[list[Reason], BeforeValidator(_listed), Field(max_length=MAX_NEW_QUESTIONS)] = Field(
        default_factory=list
    )
    notes: Reason = ""

    @model_validator(mode="before")
    @classmethod
    def _something(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        if not {"answers", "new_questions", "notes"} & value.keys():
            if "answer" in value:  # one answer without the list around it
                return {"answers": [value]}
            raise ValueError("`answers` is missing: give a list, empty if the text answers nothing")
        value = dict(value)
        for name, most in (("answers", MAX_ANSWERS), ("new_questions", MAX_NEW_QUESTIONS)):
            if isinstance(value.get(name), list):
                value[name] = value[name][:most]
        return value


class DescriptionForm(Form):
    title: Title
    description: QuoteText


class ItemForm(BaseModel):
    item: Label
    title: Title = ""
    description: QuoteText


class DescriptionsForm(Form):
    items: Annotated[list[ItemForm], BeforeValidator(_listed)]


@lru_cache(maxsize=512)
def arguments_form(tool: str, schema: str) -> type[Form]:
    """Return the form of a tool's arguments: any object here, since the tool validates them against its schema."""
    wanted = json.loads(schema)

    class Arguments(Form):
        model_config = ConfigDict(extra="allow")
        strict: ClassVar[bool] = False

        @classmethod
        def model_validate_json(cls, json_data: str | bytes | bytearray, **_: Any) -> Self:
            text = json_data if isinstance(json_data, str) else json_data.decode("utf-8", "replace")
            found = json_object(text, wanted.get("properties", {}))
            return cls.model_validate(_NoObject(text) if found is None else found)

        @classmethod
        def schema_for(cls, bounds: bool) -> dict[str, Any]:
            return {**compact_schema(wanted, bounds=bounds), "title": "Arguments"}

    return Arguments


def problems(exc: ValidationError) -> str:
    """Return what is wrong with an answer, each field with its own sentence, for the model to mend."""
    said = []
    for error in exc.errors(include_url=False, include_context=False)[:5]:
        where = ".".join(map(str, error["loc"]))
        message = error["msg"].removeprefix("Value error, ")
        said.append(f"{where}: {message}" if where else message)
    return "; ".join(said)


def is_formless(exc: ValidationError) -> bool:
    """Say whether an answer held no object at all."""
    return any(isinstance(e.get("ctx", {}).get("error"), Formless) for e in exc.errors(include_url=False))


@lru_cache(maxsize=1024)
def _schema(form: type[Form], bounds: bool) -> dict[str, Any]:
    schema = compact_schema(super(Form, form).model_json_schema(), bounds=bounds)
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
        kept: dict[str, Any] = {}
        for key, inner in value.items():
            if key == "properties":
                kept[key] = {field: walk(one, depth + 1) for field, one in inner.items()}
            elif key not in _DROPPED and (bounds or key not in _BOUNDS):
                kept[key] = walk(inner, depth + 1)
        return kept

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
