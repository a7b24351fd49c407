"""One operation: which arguments it takes, where each of them goes, and what can be said of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from metatree_memory_tools.openapi._document import Document, text_of
from metatree_memory_tools.schema_tool import schema_text, usable_schema
from metatree_memory_tools.text.descriptions import cut_masked

READS = ("GET", "HEAD")
"""Methods that change nothing, by the standard (RFC 9110, 9.2.1)."""
PLACES = ("path", "query", "header", "cookie")
_IGNORED_HEADERS = (
    "accept",
    "authorization",
    "connection",
    "content-length",
    "content-type",
    "cookie",
    "host",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
)
_JSON = re.compile(r"application/(?:[\w.+-]+\+)?json", re.IGNORECASE)
_MOST_OF_ANSWER = 2_000
_FORM = "application/x-www-form-urlencoded"


def described(
    document: Document,
    method: str,
    path: str,
    operation: Mapping[str, Any],
    parameters: list[Mapping[str, Any]],
) -> dict[str, Any]:
    """Return what is needed to call an operation, as JSON.

    Returns:
        `method`, `path`, `places` (argument -> [where it goes, name there, style, explode]), `schema` of the
        arguments, `body` (media type, '' for none), `security` (lists of names, one of which is enough),
        `note` (why it cannot be called, '' when it can).
    """
    properties: dict[str, Any] = {}
    required: list[str] = []
    places: dict[str, list[Any]] = {}
    note = ""
    for parameter in parameters:
        name, place = parameter["name"], parameter.get("in")
        if place not in PLACES or (place == "header" and name.lower() in _IGNORED_HEADERS):
            continue
        argument = name if name not in properties and name != "body" else f"{place}_{name}"
        schema = document.schema(parameter.get("schema") or _content_schema(parameter))
        description = text_of(parameter, "description")
        if description:
            schema = {**schema, "description": cut_masked(description, 500)}
        properties[argument] = schema
        style = parameter.get("style") if isinstance(parameter.get("style"), str) else None
        style = style or ("form" if place in ("query", "cookie") else "simple")
        explode = parameter.get("explode")
        places[argument] = [place, name, style, explode if isinstance(explode, bool) else style == "form"]
        if parameter.get("required") is True or place == "path":
            required.append(argument)
    body = ""
    request_body = document.resolved(operation.get("requestBody"))
    if request_body:
        body, schema = _body(document, request_body)
        if body:
            properties["body"] = schema
            if request_body.get("required") is True:
                required.append("body")
        elif request_body.get("required") is True:
            note = "its body is of a type that cannot be sent from here"
    missing = set(re.findall(r"\{([^{}]+)\}", path)) - {p[1] for p in places.values() if p[0] == "path"}
    for name in sorted(missing):  # descriptions forget them
        properties[name] = {"type": "string"}
        places[name] = ["path", name, "simple", False]
        required.append(name)
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    if required:
        schema["required"] = required
    security = operation.get("security", document.data.get("security"))
    return {
        "method": method,
        "path": path,
        "places": places,
        "schema": usable_schema(schema),
        "body": body,
        "security": [list(each) for each in security if isinstance(each, Mapping)]
        if isinstance(security, list)
        else [],
        "note": note,
    }


def text_about(document: Document, operation: Mapping[str, Any], call: Mapping[str, Any]) -> str:
    """Return the text of an operation's node: what it does, its arguments, what it answers."""
    parts = [f"{call['method']} {call['path']}"]
    for name in ("summary", "description"):
        text = text_of(operation, name)
        if text and text not in parts[-1]:
            parts.append(text)
    arguments = schema_text(call["schema"])
    if arguments:
        parts.append(f"Arguments:\n{arguments}")
    answers = []
    responses = operation.get("responses")
    for status, response in list(responses.items())[:20] if isinstance(responses, Mapping) else ():
        text = text_of(document.resolved(response), "description", _MOST_OF_ANSWER)
        answers.append(f"{status}: {text}" if text else str(status))
    if answers:
        parts.append("Answers:\n" + "\n".join(answers))
    if call["note"]:
        parts.append(f"It cannot be called: {call['note']}.")
    return "\n\n".join(parts)


def _content_schema(parameter: Mapping[str, Any]) -> object:
    content = parameter.get("content")
    first = next(iter(content.values()), None) if isinstance(content, Mapping) else None
    return first.get("schema") if isinstance(first, Mapping) else None


def _body(document: Document, body: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the media type and the schema of a body that can be sent, ('', {}) when there is none."""
    content = body.get("content")
    if not isinstance(content, Mapping):
        return "", {}
    for fits in (_JSON.match, lambda kind: kind.lower().startswith(_FORM)):
        for kind, each in content.items():
            if isinstance(kind, str) and fits(kind) and isinstance(each, Mapping):
                schema = document.schema(each.get("schema"))
                description = text_of(body, "description")
                return kind.partition(";")[0], {
                    **schema,
                    "description": cut_masked(description, 500),
                } if description else schema
    if "*/*" in content:
        return "application/json", document.schema(document.resolved(content["*/*"]).get("schema"))
    return "", {}
