"""Arguments held to a JSON schema that somebody else wrote."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from metatree_memory_tools.schema_tool import (
    MAX_SCHEMA_CHARS,
    SchemaTool,
    only_on,
    schema_text,
    usable_schema,
)

from metatree import Node
from metatree.errors import BadModelAnswer

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def _tool(schema: object) -> SchemaTool:
    def call(arguments: dict[str, Any]) -> str:
        return "called"

    return SchemaTool(call, "t", "T", "Do it.", "exploratory", schema=usable_schema(schema))


def test_defaults_are_filled_in_and_the_function_gets_one_dictionary() -> None:
    tool = _tool({"properties": {"a": {"type": "integer"}, "b": {"default": [1]}}, "required": ["a"]})
    assert tool.validated({"a": 1}) == {"a": 1, "b": [1]}
    assert tool.bound({"a": 1}, {}) == {"arguments": {"a": 1, "b": [1]}}
    assert tool.spec.schema["required"] == ["a"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "'a' is a required property"),
        ({"a": "x"}, "a: 'x' is not of type 'integer'"),
        ({"a": 1, "c": 2}, "c: there is no such argument"),
        ([1], "must be an object"),
        ({"a": {1}}, "must be JSON"),
    ],
)
def test_what_does_not_fit_is_named(arguments: object, said: str) -> None:
    tool = _tool({"properties": {"a": {"type": "integer"}}, "required": ["a"]})
    with pytest.raises(BadModelAnswer, match=said):
        tool.validated(arguments)


def test_arguments_besides_the_properties_are_left_to_the_schema() -> None:
    tool = _tool({"properties": {"a": {}}, "allOf": [{"properties": {"b": {"type": "integer"}}}]})
    assert tool.validated({"b": 1}) == {"b": 1}
    with pytest.raises(BadModelAnswer):
        tool.validated({"b": "x"})
    assert _tool({"properties": {}, "additionalProperties": True}).validated({"x": 1}) == {"x": 1}


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "http://169.254.169.254/schema"},
        {"properties": {"a": {"$ref": "file:///etc/passwd"}}, "required": ["a"]},
        {"properties": {"a": {"$ref": "#/nowhere"}}, "required": ["a"]},
        {"properties": {"a": {"type": "no such type"}}, "required": ["a"]},
    ],
)
def test_a_schema_that_refers_elsewhere_or_is_wrong_is_not_followed(schema: dict[str, Any]) -> None:
    tool = _tool(schema)
    assert tool.validated({"a": 1}) == {"a": 1}
    if "required" in schema:
        with pytest.raises(BadModelAnswer, match="required"):
            tool.validated({})


def test_no_part_of_a_schema_brings_another_draft_that_checks_patterns() -> None:
    part = {"$schema": "http://json-schema.org/draft-07/schema#", "type": "string", "pattern": "^b+$"}
    schema = usable_schema({"properties": {"a": part, "$schema": {"type": "integer"}}})
    assert _tool(schema).validated({"a": "aaa", "$schema": 1}) == {"a": "aaa", "$schema": 1}


def test_what_is_no_schema_of_an_object_takes_anything() -> None:
    cycle: dict[str, Any] = {}
    cycle["properties"] = cycle
    for schema in (
        None,
        7,
        {"type": "array"},
        {"properties": {"a": {"enum": ["x" * MAX_SCHEMA_CHARS]}}},
        cycle,
    ):
        assert usable_schema(schema) == {"type": "object", "additionalProperties": True}


@given(
    st.dictionaries(
        st.sampled_from(["type", "properties", "required", "enum", "items", "default"]), json_values
    ),
    json_values,
)
def test_any_schema_gives_an_answer(schema: dict[str, Any], arguments: object) -> None:
    tool = _tool(schema)
    schema_text(schema)
    with suppress(BadModelAnswer):
        assert isinstance(tool.validated(arguments), dict)


def test_a_tool_for_one_node() -> None:
    works = only_on("a")
    assert works(Node("a", "A")) and not works(Node("b", "B"))
