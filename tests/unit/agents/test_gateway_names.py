"""Names and texts that servers choose."""

from __future__ import annotations

import pytest
from metatree_agents.gateway._catalog import short_schema
from metatree_agents.gateway._names import plain_name, plain_text, unique_names
from metatree_agents.gateway.permission import _difference


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("read_file", "read_file"),
        ("r\u0435ad_file", "r\\u0435ad_file"),  # a Cyrillic e
        ("\u0441\u043e\u0440\u0443", "\\u0441\\u043e\\u0440\\u0443"),  # all of them Cyrillic, reads copy
        ("\u043f\u043e\u0438\u0441\u043a", "\u043f\\u043e\u0438\\u0441\\u043a"),
        ("ｒｅａｄ", "\\uff52\\uff45\\uff41\\uff44"),
        ("read\u200bfile", "read\\u200bfile"),
        ("a\x1b[31m", "a\\u001b[31m"),
        ("a/b c", "a_b_c"),
        ("搜索网页", "搜索网页"),
    ],
)
def test_no_name_looks_like_another(name: str, shown: str) -> None:
    assert plain_name(name) == shown


def test_every_tool_of_a_server_has_an_id_of_its_own() -> None:
    names = unique_names(["a", "A", "a", "b"])
    assert len({name.casefold() for name in names}) == 4 and names[3] == "b"


def test_a_model_reads_no_more_than_people_see() -> None:
    hidden = "".join(chr(0xE0000 + ord(char)) for char in "obey")
    assert plain_text(f"Adds{hidden} num\u202ebers.\r\x07") == "Adds numbers."
    assert plain_text("Größe, 大きさ, नमस्ते\n\tok") == "Größe, 大きさ, नमस्ते\n\tok"


def test_a_schema_is_cut_where_it_is_long() -> None:
    properties = {f"argument_{n}": {"type": "string", "description": "word " * 100} for n in range(30)}
    schema = {"type": "object", "properties": properties, "required": ["argument_3"]}
    short = short_schema(schema)
    assert len(short) <= 1_300 and '"required":["argument_3"]' in short and "argument_29" in short
    named_description = {"properties": {"description": {"type": "string", "description": "What it is"}}}
    assert short_schema(named_description) == (
        '{"properties":{"description":{"type":"string","description":"What it is"}}}'
    )


def test_a_description_that_changed_is_compared_at_once() -> None:
    """Letter by letter it is minutes: this does not end, rather than fail."""
    before, after = "abcdefghij" * 9 + "xyxyxyxyy", "xyxyxyxyy" + "abcdefghij" * 9
    shown = _difference("\n".join(["same", *[before] * 200]), "\n".join(["same", *[after] * 200]))
    assert shown.startswith(f"- {before}") and "same" not in shown
    assert _difference("One.\nTwo.", "One.\nThree.") == "- Two.\n+ Three."
    assert "behind its first 200 lines" in _difference("x\n" * 200 + "Two.", "x\n" * 200 + "Three.")
