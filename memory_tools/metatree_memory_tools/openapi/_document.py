"""Reading a description: JSON or YAML, with references inside it, all of it somebody else's text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

from metatree.errors import MissingExtra, UserError
from metatree_memory_tools.reading.bounded_yaml import load_yaml
from metatree_memory_tools.text.descriptions import cut_masked

MAX_BYTES = 30_000_000
_MOST_VALUES = 2_000_000
_MOST_NODES = 3_000
_MOST_DEPTH = 12
_MOST_IN_ALL = 1_000_000
"""Of all schemas together, since each of many operations may refer to the same large one."""
_MOST_PARAMETERS = 200
_LONGEST_REF = 1_000
"""A longer reference leads nowhere: it would be read again for each of the many that may say it."""
_DROPPED = (
    "example",
    "examples",
    "xml",
    "externalDocs",
    "discriminator",
    "$schema",
    "$id",
    "$anchor",
    "deprecated",
)


class Document:
    """A parsed description.

    Args:
        data: the bytes of it.
        where: what it is called in errors.

    Raises:
        UserError: it is neither JSON nor YAML, or no OpenAPI description of version 3.
        MissingExtra: it is YAML, and the package for that is not installed.
    """

    def __init__(self, data: bytes, where: str) -> None:
        self.data = _parsed(data, where)
        self._left = _MOST_IN_ALL
        version = self.data.get("openapi")
        if not isinstance(version, str) or not re.match(r"3\.\d", version):
            format_ = (
                "Swagger 2, which is not read: convert it to OpenAPI 3"
                if self.data.get("swagger")
                else version
            )
            raise UserError(
                f"{where} is no OpenAPI description of version 3 ({format_ or 'it names no version'})"
            )
        self.old = version.startswith("3.0")

    def resolved(self, value: object) -> Mapping[str, Any]:
        """Return an object, or the one that it refers to; an empty one when that is not in this document."""
        for _ in range(20):
            if not isinstance(value, Mapping):
                return {}
            ref = value.get("$ref")
            if not isinstance(ref, str):
                return value
            value = self._at(ref)
        return {}

    def _at(self, ref: str) -> object:
        if not ref.startswith("#/") or len(ref) > _LONGEST_REF:
            return None
        value: object = self.data
        for step in ref[2:].split("/"):
            step = unquote(step).replace("~1", "/").replace("~0", "~")
            if isinstance(value, list) and step.isdecimal() and len(step) < 10 and int(step) < len(value):
                value = value[int(step)]
            elif isinstance(value, Mapping):
                value = value.get(step)
            else:
                return None
        return value

    def schema(self, value: object) -> dict[str, Any]:
        """Return a schema as JSON Schema with all references put in, cut where it would be too deep or too long."""
        budget = [min(_MOST_NODES, self._left)]
        begin = budget[0]
        result = self._schema(value, 0, budget, ())
        self._left -= begin - max(0, budget[0])
        return result if isinstance(result, dict) else {}

    def _schema(self, value: object, depth: int, budget: list[int], inside: tuple[str, ...]) -> Any:
        budget[0] -= 1
        if isinstance(value, bool):
            return value
        if not isinstance(value, Mapping) or budget[0] < 0 or depth > _MOST_DEPTH:
            return {}
        ref = value.get("$ref")
        if isinstance(ref, str):
            if ref in inside:
                return {}  # it holds itself: what is further in is not described
            return self._schema(self._at(ref), depth + 1, budget, (*inside, ref))
        schema: dict[str, Any] = {}
        for key, each in value.items():
            if key in _DROPPED or str(key).startswith("x-"):
                continue
            if key in ("properties", "patternProperties", "$defs", "definitions") and isinstance(
                each, Mapping
            ):
                schema[key] = {
                    str(name): self._schema(inner, depth + 1, budget, inside)
                    for name, inner in each.items()
                    if budget[0] > 0 and not (isinstance(inner, Mapping) and inner.get("readOnly") is True)
                }
            elif key in (
                "items",
                "additionalProperties",
                "not",
                "contains",
                "propertyNames",
                "if",
                "then",
                "else",
            ):
                schema[key] = self._schema(each, depth + 1, budget, inside)
            elif key in ("allOf", "anyOf", "oneOf", "prefixItems") and isinstance(each, list):
                schema[key] = [
                    self._schema(inner, depth + 1, budget, inside) for inner in each if budget[0] > 0
                ]
            elif _plain(each, 200):
                schema[key] = each
        return _as_json_schema(schema) if self.old else schema

    def operations(self) -> Iterator[tuple[str, str, Mapping[str, Any], list[Mapping[str, Any]]]]:
        """Yield (method, path, operation, parameters) of each operation, parameters of the path included."""
        paths = self.data.get("paths")
        for path, item in paths.items() if isinstance(paths, Mapping) else ():
            item = self.resolved(item)
            for method in METHODS:
                operation = item.get(method)
                if isinstance(operation, Mapping) and isinstance(path, str):
                    yield method.upper(), path, operation, self._parameters(item, operation)

    def operation_count(self) -> int:
        """Return how many operations there are."""
        paths = self.data.get("paths")
        items = map(self.resolved, paths.values()) if isinstance(paths, Mapping) else ()
        return sum(isinstance(item.get(method), Mapping) for item in items for method in METHODS)

    def _parameters(self, item: Mapping[str, Any], operation: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        parameters: dict[tuple[Any, Any], Mapping[str, Any]] = {}
        for owner in (item, operation):
            listed = owner.get("parameters")
            for each in listed[:_MOST_PARAMETERS] if isinstance(listed, list) else ():
                parameter = self.resolved(each)
                if isinstance(parameter.get("name"), str):
                    parameters[parameter["name"], parameter.get("in")] = parameter
        return list(parameters.values())


_MOST_CHARS = 20_000
METHODS = ("get", "head", "post", "put", "patch", "delete", "options")


def text_of(owner: Mapping[str, Any], name: str, most: int = _MOST_CHARS) -> str:
    """Return the beginning of a text of an object, '' when it has none."""
    value = owner.get(name)
    return _beginning(value, most) if isinstance(value, str) else ""


@lru_cache(maxsize=256)  # thousands of operations may share one
def _beginning(text: str, most: int) -> str:
    return cut_masked(text, most).strip()


def _parsed(data: bytes, where: str) -> Mapping[str, Any]:
    if len(data) > MAX_BYTES:
        raise UserError(f"{where} is larger than {MAX_BYTES:,} bytes")
    if sum(map(data.count, (b"{", b"[", b","))) > _MOST_VALUES:
        raise UserError(
            f"{where} has more than {_MOST_VALUES:,} values and brackets, too many for a description"
        )
    text = data.decode("utf-8-sig", "replace")
    result: object
    try:
        result = json.loads(text)
    except RecursionError as exc:
        raise UserError(f"{where} is nested too deep to be read") from exc
    except ValueError as exc:
        if text.lstrip().startswith("{") and "\n" not in text.strip():
            raise UserError(f"{where} is no JSON: {exc}") from exc
        result = _yaml(text, where)
    if not isinstance(result, Mapping):
        raise UserError(f"{where} is no OpenAPI description: it holds no object")
    return result


def _yaml(text: str, where: str) -> object:
    try:
        import yaml
    except ImportError as exc:
        raise MissingExtra("openapi", what="an OpenAPI description in YAML") from exc
    try:
        return load_yaml(text, dates=False)
    except yaml.YAMLError as exc:
        mark = getattr(exc, "problem_mark", None)
        line = "" if mark is None else f" (line {mark.line + 1})"
        raise UserError(
            f"{where} is neither JSON nor YAML{line}: {getattr(exc, 'problem', None) or exc}"
        ) from exc
    except (RecursionError, ValueError, TypeError) as exc:  # a key that is a list, among others
        raise UserError(f"{where} is no YAML that can be read: {exc}") from exc


def _plain(value: object, most: int) -> bool:
    """Whether a value is JSON with not more than so many parts; YAML may hold the same list a million times."""
    pending, seen = [value], 0
    while pending:
        each = pending.pop()
        seen += 1
        if seen > most:
            return False
        if isinstance(each, Mapping):
            if not all(isinstance(key, str) for key in each):
                return False
            pending.extend(each.values())
        elif isinstance(each, list):
            pending.extend(each[: most + 1])
        elif not (each is None or isinstance(each, str | int | float | bool)):
            return False
    return True


def _as_json_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema of OpenAPI 3.0 in the words of JSON Schema: `nullable`, and bounds that are left out."""
    if schema.pop("nullable", False) is True and isinstance(schema.get("type"), str):
        schema["type"] = [schema["type"], "null"]
        if isinstance(schema.get("enum"), list) and None not in schema["enum"]:
            schema["enum"] = [*schema["enum"], None]
    for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if isinstance(schema.get(exclusive), bool) and schema.pop(exclusive) and bound in schema:
            schema[exclusive] = schema.pop(bound)
    return schema
