"""The small parts of the language-model path: labels, JSON in prose, tokens, fitting, forms, prices."""

from __future__ import annotations

import json
import math
import sys
import types
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from metatree_routers.llm import _extract as extract
from metatree_routers.llm._budget import clipped, excerpt, how_many_fit, menu_prompt
from metatree_routers.llm._connection import Connection
from metatree_routers.llm._extract import json_object
from metatree_routers.llm._prices import Price, price_of
from metatree_routers.llm._response_models import (
    DescriptionForm,
    Formless,
    ReadForm,
    RouteForm,
    arguments_form,
    compact_schema,
    problems,
    route_form,
)
from metatree_routers.llm._settings import model_settings
from metatree_routers.llm._tokens import TokenCounter, counter_for
from metatree_routers.llm.labels import labels, offered
from metatree_routers.llm.prompts import Prompts
from metatree_routers.tokenizer import llama_tokenizer
from pydantic import ValidationError

from metatree import Node, Option, RouteRequest
from metatree.errors import UserError
from tests.profiles import examples

ROOT = Path(__file__).parents[4]
MENU = [Option("x/a.py", "a.py"), Option("x/b.py", "b.py"), Option("y/a.py", "a.py")]


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("A", "x/a.py"), ("b", "x/b.py"), (" C. ", "y/a.py"), ("[A]", "x/a.py"), ("(B)", "x/b.py"), ("**C**", "y/a.py"),
        ("B: b.py", "x/b.py"), ("[C] a.py: about", "y/a.py"), ("B - b.py", "x/b.py"), ("x/b.py", "x/b.py"),
        ("b.py", "x/b.py"), ("a.py", None), ("D", None), ("", None), ("A or B", None), ("1", None), ("0", None),
        ("Apple", None), ("AB", None), (None, None), (3, None), (["A"], None), ("A" * 500, None),
    ],
)  # fmt: skip
def test_words_are_matched_to_what_was_offered(said: object, meant: str | None) -> None:
    result = offered(said, MENU)
    assert (result.id if result else None) == meant


@given(st.integers(0, 2_000))
def test_labels_differ(count: int) -> None:
    assert len(set(labels(count))) == count


@given(st.text(max_size=200))
def test_only_offered_options_are_found(said: str) -> None:
    assert offered(said, MENU) in (None, *MENU)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a": 1}', {"a": 1}),
        ('Here: {"a": 1} and that is it', {"a": 1}),
        ('```json\n{"a": 1}\n```', {"a": 1}),
        ('{"x": 0} then {"a": 1} then {"y": 2}', {"a": 1}),
        ('{"a": 1,}', {"a": 1}),
        ('{"a": [1, 2,],}', {"a": [1, 2]}),
        ("{'a': True, 'b': None}", {"a": True, "b": None}),
        ('{"a": "two\nlines"}', {"a": "two\nlines"}),
        ('<think>{"a": 0}</think>\n{"a": 1}', {"a": 1}),
        ('{"arguments": {"a": 1}}', {"a": 1}),
        ('{"name": "answer", "arguments": "{\\"a\\": 1}"}', {"a": 1}),
        ('[{"a": 1}]', {"a": 1}),
        ('{"b": {"c": "}"}} tail', {"b": {"c": "}"}}),
        ("no JSON", None),
        ("", None),
        ("{", None),
        ("{{{{" * 100, None),
        ("[1, 2]", None),
        ("{[]}", None),
        ("[" * 10_000, None),
        ('{"a": ' * 5_000, None),
    ],
)
def test_the_object_in_a_text_is_found(text: str, found: Any) -> None:
    assert json_object(text, ("a",)) == found


@given(st.text(alphabet="{}[]\",:\\ab1 \n'`", max_size=300))
def test_whatever_a_model_writes_is_read_or_not(text: str) -> None:
    assert json_object(text, ("a",)) is None or isinstance(json_object(text, ("a",)), dict)


@pytest.mark.parametrize("text", ["{" * 200_000, '{"a": ' * 500_000, "x{" * 1_500_000, "</think" * 400_000])
def test_of_a_long_answer_a_bounded_part_is_looked_through(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = [0]
    closing = extract._closing

    def counted(text: str, at: int) -> int | None:
        looked[0] += len(text) - at
        return closing(text, at)

    monkeypatch.setattr(extract, "_closing", counted)
    assert json_object(text, ("a",)) is None
    assert looked[0] <= 3 * extract.MAX_CHARS


def test_the_end_of_a_long_answer_is_read() -> None:
    thoughts = "Hm. {Perhaps} " * 100_000
    assert json_object(f'{thoughts}{{"a": 1}}', ("a",)) == {"a": 1}
    assert json_object(f'<think>{thoughts}</think>{{"a": 2,}}', ("a",)) == {"a": 2}
    assert json_object(json.dumps({"a": "x" * 100_000}), ("a",)) == {"a": "x" * 100_000}


# Tokens


@given(st.text(max_size=400))
@settings(max_examples=examples(200))
def test_the_count_by_lines_is_never_less_than_the_tokenizer_says(text: str) -> None:
    assert counter_for("llama-2-7b").lines(text) >= len(
        llama_tokenizer().encode(text, add_special_tokens=False).ids
    )


@pytest.mark.parametrize(
    "file", ["README.md", "metatree/searches/_machine.py", "docs/cli.md", "pyproject.toml"]
)
def test_the_count_by_lines_is_close_for_prose_and_code(file: str) -> None:
    text = (ROOT / file).read_text()
    exact = len(llama_tokenizer().encode(text, add_special_tokens=False).ids)
    assert exact <= counter_for("llama-2-7b").lines(text) <= 1.25 * exact + 8


def test_unknown_models_get_a_safe_estimate() -> None:
    assert counter_for("llama-2-7b").exact
    assert not counter_for("some-model").exact
    text = "How long do tokens live? " * 20
    assert counter_for("some-model").text(text) > counter_for("llama-2-7b").text(text)


@pytest.mark.parametrize("model", ["llama-2-7b", "some-model"])
def test_half_a_surrogate_pair_is_counted_as_the_question_mark_that_is_sent(model: str) -> None:
    counter = counter_for(model)
    text, sent = "half \ud800 of it", "half ? of it"
    assert (counter.text(text), counter.lines(text)) == (counter.text(sent), counter.lines(sent))
    assert counter.clip(text, 100) == text


def test_without_any_tokenizer_bytes_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    from metatree_routers.llm import _tokens as tokens

    tokens._llama_counter.cache_clear()

    def missing() -> None:
        raise LookupError("the package wordllama is not installed")

    monkeypatch.setattr(tokens, "llama_tokenizer", missing)
    try:
        counter = tokens.counter_for("some-model")
        assert counter.text("word " * 100) >= 500 / 3
        assert counter.text("漢字" * 10) >= 20
    finally:
        tokens._llama_counter.cache_clear()


def test_tiktoken_is_used_only_when_its_data_is_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from metatree_routers.llm import _tokens as tokens

    fake = types.ModuleType("tiktoken")
    fake.encoding_name_for_model = lambda model: {"gpt-4o": "o200k_base"}[model]  # type: ignore[attr-defined]

    class Encoding:
        def encode(self, text: str, disallowed_special: Any) -> list[str]:
            return text.split()

    fake.get_encoding = lambda name: Encoding()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tiktoken", fake)
    monkeypatch.setattr(tokens, "find_spec", lambda name: True if name == "tiktoken" else None)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    assert tokens._tiktoken("gpt-4o") is None, "it would be downloaded"
    (tmp_path / "fb374d419588a4632f3f557e76b4b70aebbca790").write_text("")
    assert tokens._tiktoken("gpt-4o") is not None
    assert tokens.counter_for("gpt-4o").text("one two three") == 3
    assert tokens._tiktoken("some-model") is None


@given(st.text(max_size=500), st.integers(0, 60))
def test_clipped_texts_fit(text: str, most: int) -> None:
    counter = counter_for("some-model")
    assert counter.text(counter.clip(text, most)) <= max(most, counter.text(""))


# Fitting

WORDS = st.text(alphabet="abcdefghij _.,()\nλ漢", max_size=300)
OPTIONS = st.lists(
    st.builds(
        Option,
        id=st.uuids().map(str),
        title=WORDS,
        description=WORDS,
        parent=st.none() | st.just("Part"),
        score=st.floats(0, 1),
        hints=st.lists(WORDS, max_size=3).map(tuple),
    ),
    min_size=2,
    max_size=25,
)


@given(OPTIONS, WORDS, WORDS.map(lambda text: text * 5), st.integers(500, 1_500))
@settings(max_examples=examples(60))
def test_a_prompt_never_exceeds_its_limit(
    options: list[Option], question: str, context: str, limit: int
) -> None:
    counter = counter_for("some-model")
    request = clipped(
        RouteRequest((question, "and?"), context, Node("n", "node"), tuple(options)), counter, limit
    )
    menu = menu_prompt(request, Prompts(), counter, comfortable=400, limit=limit)
    fit = how_many_fit(request, Prompts(), counter, comfortable=400, limit=limit)
    assert 2 <= fit <= len(options)
    if menu is None:
        assert fit < len(options)
    else:
        assert fit == len(options)
        tokenizer = llama_tokenizer()
        sent = sum(len(tokenizer.encode(m["content"], add_special_tokens=False).ids) for m in menu.messages)
        assert sent <= menu.tokens <= limit


def test_a_menu_says_less_of_each_option_the_more_there_are() -> None:
    counter = counter_for("some-model")

    def shown(count: int) -> str:
        options = tuple(
            Option(
                f"{n}", f"file_{n}.py", "A description of some length " * 4, None, n / 99, ("a hint " * 9,)
            )
            for n in range(count)
        )
        made = menu_prompt(
            RouteRequest(("q?",), "", Node("n", "n"), options),
            Prompts(),
            counter,
            comfortable=600,
            limit=2_000,
        )
        assert made is not None
        return made.messages[1]["content"]

    assert "> a hint" in shown(4)
    assert "> a hint" not in shown(60)
    assert "file_59.py" in shown(60)


@given(st.lists(WORDS, max_size=60), st.integers(60, 400))
@settings(max_examples=examples(60))
def test_an_excerpt_fits(lines: list[str], limit: int) -> None:
    counter = counter_for("llama-2-7b")
    assert counter.text(excerpt("\n".join(lines), ["abc def?"], counter, limit)) <= limit


def test_an_excerpt_keeps_the_lines_that_matter() -> None:
    counter = counter_for("llama-2-7b")
    lines = [f"line {n} of many others" for n in range(400)]
    lines[333] = "REDIRECT_LIMIT = 30"
    cut = excerpt("\n".join(lines), ["What is the redirect limit?"], counter, 300)
    assert cut.startswith("line 0 of")
    assert "REDIRECT_LIMIT = 30" in cut
    assert "lines left out …]" in cut


# Forms


def test_schemas_are_small_and_complete() -> None:
    schema = route_form(2).schema_for(True)
    assert schema["properties"]["choice"] == {"enum": ["A", "B", "none"], "type": "string"}
    assert schema["properties"]["reason"]["maxLength"] == 240
    assert schema["required"] == ["reason", "choice", "ruled_out"]
    assert schema["properties"]["ruled_out"]["maxItems"] == 2
    assert "$ref" not in json.dumps(schema) and "$defs" not in json.dumps(schema)
    free = json.dumps(ReadForm.schema_for(False))
    assert "maxLength" not in free and "maxItems" not in free
    assert route_form(2) is route_form(2)


def test_a_property_called_title_stays() -> None:
    assert set(DescriptionForm.schema_for(True)["properties"]) == {"title", "description"}


def test_endless_references_end() -> None:
    node = {"type": "object", "properties": {"child": {"$ref": "#/$defs/N"}}}
    assert compact_schema({"$ref": "#/$defs/N", "$defs": {"N": node}})["type"] == "object"


@pytest.mark.parametrize(
    ("text", "choice", "ruled_out"),
    [
        ('{"choice": "A"}', "A", []),
        ('{"choice": null, "ruled_out": ["B", "C"]}', "", ["B", "C"]),
        ('{"choice": "A", "ruled_out": {"B": "old"}}', "A", ["B"]),
        ('{"choice": "A", "ruled_out": {"option": "B", "why": "old"}}', "A", ["B"]),
        ('{"choice": "A", "ruled_out": "B"}', "A", ["B"]),
        ('{"ruled_out": [{"option": "B"}]}', "none", ["B"]),
        (
            json.dumps({"choice": "A", "reason": "x" * 5_000, "ruled_out": [{"option": "B"}] * 99}),
            "A",
            ["B"] * 8,
        ),
    ],
)
def test_decisions_are_read_generously(text: str, choice: str, ruled_out: list[str]) -> None:
    read = RouteForm.model_validate_json(text)
    assert (read.choice, [item.option for item in read.ruled_out]) == (choice, ruled_out)
    assert len(read.reason) <= 240


@pytest.mark.parametrize(
    ("text", "answers"),
    [
        ('{"answers": []}', []),
        ('{"answer": "30", "quote": "x"}', ["30"]),
        ('{"answers": {"answer": 30}}', ["30"]),
        ('{"answers": null, "notes": null, "new_questions": "What?"}', []),
    ],
)
def test_readings_are_read_generously(text: str, answers: list[str]) -> None:
    assert [item.answer for item in ReadForm.model_validate_json(text).answers] == answers


def test_what_is_wrong_is_said_in_a_sentence() -> None:
    with pytest.raises(ValidationError) as caught:
        ReadForm.model_validate_json('{"answers": [{"question": "Q1"}], "new_questions": 3}')
    assert "answers.0.answer: Field required" in problems(caught.value)
    with pytest.raises(Formless, match=r"^there is no JSON object in the answer 'Well, I would say B\.'$"):
        RouteForm.model_validate_json("Well, I would say B.")


def test_arguments_keep_what_they_are() -> None:
    schema = json.dumps(
        {"type": "object", "properties": {"pattern": {"type": "string"}}, "required": ["pattern"]}
    )
    form = arguments_form("grep", schema)
    assert form.model_validate_json('{"x": 1} {"pattern": "TTL", "most": 3}').model_extra == {
        "pattern": "TTL",
        "most": 3,
    }
    assert form.schema_for(True)["required"] == ["pattern"]


# Prices and settings


def test_prices_are_found_by_name_and_date_and_can_be_given() -> None:
    assert price_of("gpt-4o-mini-2024-07-18") == price_of("gpt-4o-mini") is not None
    assert price_of("gpt-5.9-unheard-of") is None
    mine = {"gpt-4o": Price("1", "1"), "own": Price("0", "0")}
    assert price_of("gpt-4o", mine) == mine["gpt-4o"]
    assert price_of("own", mine) == mine["own"]
    assert Price("2", "8").of(1_000_000, 500_000, cached=1_000_000) == Decimal(6)


def test_a_name_is_taken_as_the_server_knows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    url = "http://localhost:1/v1/"
    assert model_settings("openai/qwen3:8b", url, None).model == "qwen3:8b"
    assert model_settings("openai/openai/gpt-4o", url, None).model == "openai/gpt-4o"
    monkeypatch.setenv("METATREE_MODEL", "openai/from-environment")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://host:2/v1?x=y")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    made = model_settings(None, None, None)
    assert (made.model, made.base_url) == ("from-environment", "http://host:2/v1?x=y")
    assert repr(made) == "ModelSettings(model='from-environment', base_url='http://host:2/v1')"


@pytest.mark.parametrize("url", ["http://me:pa55@host/v1", "http://:p@a55@host/v1?x=pa55", "me:pa55@host/v1"])
def test_an_address_with_a_password_is_refused_at_once(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    with pytest.raises(UserError, match=r"^base_url has .* api_key=…$") as given:
        Connection("a-model", base_url=url)
    monkeypatch.setenv("OPENAI_BASE_URL", url)
    with pytest.raises(UserError, match=r"^OPENAI_BASE_URL has .* OPENAI_API_KEY") as set_outside:
        Connection("a-model")
    assert "a55" not in f"{given.value}{set_outside.value}"


@pytest.mark.parametrize(
    "fields",
    [
        {"extra": {"top_p": 1, "bias": {"words": [1.0, math.nan]}}},
        {"extra": {"bias": float("1e999")}},
        {"extra": {"bias": "\ud800"}},
        {"temperature": -math.inf},
    ],
)
def test_a_field_that_json_cannot_say_is_named_at_once(fields: dict[str, Any]) -> None:
    with pytest.raises(
        UserError, match=r"^'(bias|temperature)', a field of each request, .* JSON cannot say"
    ):
        Connection("a-model", base_url="http://localhost:1/v1", **fields)


def test_a_counter_counts_each_word_once() -> None:
    counted: list[str] = []
    counter = TokenCounter(lambda text: counted.append(text) or 1, exact=True)  # type: ignore[func-returns-value]
    assert counter.lines("to be or\nnot to be") == counter.lines("to be or\nnot to be") == 6
    assert len(counted) == len(set(counted))
