"""Tools that are described by a JSON schema instead of a Python signature: those of servers and of descriptions.

Patterns and formats are left to the server: a pattern from elsewhere can take for ever to match. Each tool works on
its own node alone: the walk over nodes, with its evidence, chooses among five hundred, where a tool menu of five
hundred at the top would be asked through one by one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from typing import Any

from metatree._util.secret_columns import is_named_secret
from metatree._util.secret_text import masked
from metatree.errors import BadModelAnswer, MissingExtra
from metatree.node import Node
from metatree.protocols import ToolSpec
from metatree.tools.tool import Tool
from metatree.trees.layer import Layer
from metatree.trees.source_types import SourceRef
from metatree.trees.tree import Tree

MAX_SCHEMA_CHARS = 50_000
"""A longer schema is replaced by one that takes any object: the server checks its arguments itself."""
_NOT_CHECKED = (
    "pattern",
    "patternProperties",
    "format",
    "$dynamicRef",
    "unevaluatedProperties",
    "unevaluatedItems",
)
"""Keywords that are left to the server: a pattern written by somebody else may take for ever to match, and what follows
references may follow them for ever."""
_MOST_REFERENCES = 10_000
"""References that are followed for one call: thirty that each name the next one twice make a thousand million."""

_VALUES = ("default", "enum", "const", "example", "examples")

_MORE = ("patternProperties", "allOf", "anyOf", "oneOf", "$ref", "if")
"""Keywords under which there may be arguments besides the properties."""


_followed: ContextVar[list[int]] = ContextVar("metatree_followed")
"""How many references of a schema were followed so far, of the call that is being checked."""


@dataclass(frozen=True)
class SchemaTool(Tool):
    """A tool whose function takes all its arguments as one dictionary, as a JSON schema says.

    The schema is somebody else's text: it is never followed to another address, and patterns in it are not run.
    """

    schema: Mapping[str, Any] = field(default_factory=dict)
    needs: str = "mcp"
    """The extra that brings what checks schemas."""

    def check(self) -> None:
        """Whatever the schema says, the function takes it."""

    @cached_property
    def spec(self) -> ToolSpec:
        """What a tool caller reads of it."""
        return ToolSpec(self.id, self.title, self.description, self.kind, dict(self.schema), self.version)

    def validated(self, arguments: object) -> dict[str, Any]:
        """Return arguments in their canonical JSON form, with the defaults of the schema filled in.

        Raises:
            BadModelAnswer: they do not fit; the message names each argument and what is wrong with it.
        """
        if not isinstance(arguments, Mapping):
            raise BadModelAnswer(f"arguments must be an object, not {type(arguments).__name__}")
        try:
            given: dict[str, Any] = json.loads(json.dumps(dict(arguments)))
        except (TypeError, ValueError, RecursionError) as exc:
            raise BadModelAnswer(f"arguments must be JSON: {exc}") from exc
        properties = self.schema.get("properties")
        for name, property_ in properties.items() if isinstance(properties, Mapping) else ():
            if isinstance(property_, Mapping) and "default" in property_:
                given.setdefault(name, property_["default"])
        wrong = "; ".join(self._wrong(given))
        if wrong:
            raise BadModelAnswer(wrong)
        return given

    def _wrong(self, given: dict[str, Any]) -> list[str]:
        properties = self.schema.get("properties")
        open_ended = self.schema.get("additionalProperties") or any(key in self.schema for key in _MORE)
        if isinstance(properties, Mapping) and not open_ended:
            unknown = [name for name in given if name not in properties]
            if unknown:
                return [f"{name}: there is no such argument" for name in unknown[:5]]
        try:
            _followed.set([0])
            errors = sorted(self._validator.iter_errors(given), key=lambda error: list(map(str, error.path)))
        except MissingExtra:
            raise
        except Exception:  # the schema is out of form, or refers to what is not in it
            required = self.schema.get("required")
            names = required if isinstance(required, list) else []
            return [
                f"{name}: it is required" for name in names if isinstance(name, str) and name not in given
            ]
        return [f"{'.'.join(map(str, e.path)) or 'arguments'}: {e.message[:300]}" for e in errors[:5]]

    def bound(self, arguments: Mapping[str, Any], given: Mapping[type, Any]) -> dict[str, Any]:
        """Return the keyword arguments for the function."""
        return {"arguments": self.validated(arguments)}

    @cached_property
    def _injected(self) -> dict[str, type]:
        return {}  # everything that it takes is in the schema

    @cached_property
    def _validator(self) -> Any:
        try:
            import jsonschema
            import referencing
        except ImportError as exc:
            raise MissingExtra(self.needs, what=f"the tool {self.id!r}") from exc
        follow = jsonschema.Draft202012Validator.VALIDATORS["$ref"]

        def counted(*given: Any) -> Any:
            _followed.get()[0] += 1
            if _followed.get()[0] > _MOST_REFERENCES:
                raise RecursionError("too many references")
            return follow(*given)

        kind = jsonschema.validators.extend(
            jsonschema.Draft202012Validator,
            {**dict.fromkeys(_NOT_CHECKED, _unchecked), "$ref": counted},
        )
        return kind(dict(self.schema), registry=referencing.Registry())


def built_nodes(tree: Tree, source: SourceRef, kind: str) -> list[Node]:
    """Return the nodes of a kind that a source gave, as it gave them.

    What a tool may do without permission stands in its node. Those that were added to the tree, by an import for
    example, in the place of one that it hides, are none of the source's.
    """
    layer = Layer(tree.index)
    found = (layer.node(node_id) for node_id in sorted(layer.ids([kind])) if node_id in tree)
    return [node for node in found if node is not None and tree.source_of(node) == source]


def with_origin(function: partial[Any], origin: str) -> partial[Any]:
    """Return a function that says where it leads, so that a permission for it does not hold for another place."""
    function.origin = origin  # type: ignore[attr-defined]
    return function


def only_on(node_id: str) -> Callable[[Node], bool]:
    """Return what limits a tool to one node, as its `when`."""
    return lambda node: node.id == node_id


def usable_schema(schema: object) -> dict[str, Any]:
    """Return a schema of arguments, or one that takes any object when it is too long or no schema of an object."""
    anything: dict[str, Any] = {"type": "object", "additionalProperties": True}
    if not isinstance(schema, Mapping):
        return anything
    try:
        text = json.dumps(schema)
    except (TypeError, ValueError, RecursionError):
        return anything
    if len(text) > MAX_SCHEMA_CHARS or schema.get("type", "object") != "object":
        return anything
    result: dict[str, Any] = _public(json.loads(text))
    return result


def _public(schema: Any, name: str = "") -> Any:
    """Return a schema without values that look like secrets, by themselves or by the name of what they are for.

    A default that was only masked would be sent. Nor does a part name another draft, whose validator checks patterns.
    """
    if isinstance(schema, list):
        return [_public(each, name) for each in schema]
    if isinstance(schema, str):
        return _masked(schema)[0]
    if not isinstance(schema, dict):
        return schema
    return {
        key: _public(value, f"{name} {key}"[-60:])
        for key, value in schema.items()
        if not (key in _VALUES and _has_secret(value, name))
        and not (key == "$schema" and isinstance(value, str))
    }


def _has_secret(value: Any, name: str) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    if any(_has_secret(each, name) for each in inner):
        return True
    named = any(is_named_secret(word, value) for word in name.split()) if isinstance(value, str) else False
    return named or (isinstance(value, str) and _masked(value)[1] > 0)


_masked = lru_cache(maxsize=512)(masked)
"""Thousands of operations may share a schema."""


def schema_text(schema: Mapping[str, Any]) -> str:
    """Return the arguments that a schema asks for as lines of text, for people and for the text index.

    Example:
        >>> schema_text({"properties": {"city": {"type": "string", "description": "Where"}}, "required": ["city"]})
        'city (string, required): Where'
    """
    lines = []
    properties = schema.get("properties")
    required = schema.get("required")
    wanted = required if isinstance(required, list) else []
    for name, property_ in properties.items() if isinstance(properties, Mapping) else ():
        property_ = property_ if isinstance(property_, Mapping) else {}
        kind = property_.get("type", "any")
        kind = " or ".join(map(str, kind)) if isinstance(kind, list) else str(kind)
        about = [kind, "required"] if name in wanted else [kind]
        if isinstance(property_.get("enum"), list):
            about.append("one of " + ", ".join(map(str, property_["enum"][:10])))
        description = str(property_.get("description") or "").strip()
        lines.append(f"{name} ({', '.join(about)}){': ' + description if description else ''}")
    return "\n".join(lines)


def _unchecked(*_: Any) -> tuple[Any, ...]:
    return ()
