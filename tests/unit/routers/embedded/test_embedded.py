"""The embedded parts: they choose, quote, fill in and describe without a model, and say when they cannot."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from metatree_routers import (
    EmbeddedComposer,
    EmbeddedDescriber,
    EmbeddedReader,
    EmbeddedRouter,
    EmbeddedToolCaller,
    embedded_suite,
)
from metatree_routers.embeddings.static import StaticEmbedder, cosines, quantise, static_embedder, status

from metatree import (
    Answer,
    ComposeRequest,
    DescribeRequest,
    Node,
    Option,
    Reading,
    ReadRequest,
    RouteDecision,
    RouteRequest,
    ToolRequest,
    ToolSpec,
    UserError,
)
from metatree.errors import BadModelAnswer
from metatree.protocols import SURE
from tests.profiles import examples

PROSE = """# Sessions

A session keeps cookies between requests. It is made with `Session()`.

The default timeout is thirty seconds. It can be changed for each request, e.g. for large files.
Redirects are followed up to thirty times; then TooManyRedirects is raised.
"""

CODE = '''def resolve_redirects(self, response, request, timeout=None):
    """Receive a response and follow its redirects."""
    hops = 0
    while response.is_redirect:
        hops += 1
        if hops > self.max_redirects:
            raise TooManyRedirects("exceeded the limit")
        response = self.send(request.copy(), timeout=timeout)
    return response
'''


def route(question: str, *options: Option) -> RouteDecision:
    request = RouteRequest((question,), "", Node(id=".", title="memory"), options)
    return asyncio.run(EmbeddedRouter().route(request))


def read(
    content: str,
    *questions: str,
    node: Node | None = None,
    parts: tuple[Answer, ...] = (),
    sure: float = SURE,
) -> Reading:
    node = node or Node(id="n", title="Sessions", content=content)
    request = ReadRequest(node, content, questions, partial_answers=parts, sure=sure)
    return asyncio.run(EmbeddedReader().read(request))


def test_the_router_takes_the_option_with_the_best_evidence() -> None:
    best = Option("b", "B", score=0.7, hints=("b.py: line",))
    decision = route("q", Option("a", "A", score=0.2), best, Option("c", "C", score=0.0))
    assert decision.choice == "b"
    assert "b.py: line" in decision.reason
    assert list(decision.unviable) == ["c"]


def test_without_evidence_the_router_reads_titles_and_descriptions() -> None:
    weather = Option("w", "forecast", "Tells whether it will rain or snow in a city")
    money = Option("m", "convert", "Changes an amount of money from one currency to another")
    assert route("Will it rain in Oslo?", money, weather).choice == "w"
    assert route("How many euros are 20 dollars?", weather, money).choice == "m"


def test_the_router_rules_out_what_has_nothing_to_do_with_the_question() -> None:
    decision = route("zyxwv?", Option("a", "Auth", "Login and tokens"), Option("b", "Billing", "Invoices"))
    assert decision.choice is None
    assert set(decision.unviable) == {"a", "b"}
    assert all(decision.unviable.values())


def test_a_low_score_beside_a_high_one_is_not_said_to_be_doubt_about_the_whole_tree() -> None:
    chosen = route("pool", Option("a", "A", "", score=0.8), Option("b", "B", "", score=0.005))
    assert chosen.choice == "a"
    assert chosen.unviable == {"b": "next to nothing in or below it matches the questions"}
    none = route("pool", Option("a", "A", "", score=0.004), Option("b", "B", "", score=0.0))
    assert none.choice is None
    assert none.unviable["a"] == none.reason == "a word that the questions turn on is in no text of the tree"


def test_the_router_decides_the_same_each_time() -> None:
    options = [Option(str(i), f"title {i}", "the same words") for i in range(9)]
    assert {route("the same words", *options).choice for _ in range(5)} == {"0"}


@pytest.mark.parametrize(
    ("question", "quote"),
    [
        ("How many seconds is the default timeout?", "The default timeout is thirty seconds."),
        ("When is TooManyRedirects raised?", "then TooManyRedirects is raised."),
        ("What keeps cookies between requests?", "A session keeps cookies between requests."),
    ],
)
def test_the_reader_quotes_the_sentence_that_answers(question: str, quote: str) -> None:
    (answer,) = read(PROSE, question).answers
    assert quote in answer.quote
    assert answer.quote in PROSE
    assert len(answer.quote) < 250


def test_the_reader_quotes_code_with_its_signature() -> None:
    node = Node(id="s.py::resolve_redirects", title="resolve_redirects", kind="definition")
    (answer,) = read(CODE, "Where are redirects followed?", node=node, sure=0.4).answers
    assert answer.quote == CODE.rstrip("\n")
    long = CODE + "    # nothing\n" * 200 + '    log("gave up after a zebra crossed")\n'
    (answer,) = read(long, "Where is the zebra logged after it crossed?", node=node).answers
    assert answer.answer.startswith("def resolve_redirects(") and "zebra crossed" in answer.quote
    assert answer.quote in long


@pytest.mark.parametrize(
    "question",
    [
        "How is a chocolate cake baked?",
        "Which moons does Jupiter have?",
        "What does the invoice cost in euros?",
        "",
        "the of and",
        "\x00",
        "🙂",
    ],
)
def test_the_reader_says_when_there_is_no_answer(question: str) -> None:
    reading = read(PROSE, question)
    assert (reading.answers, reading.useful) == ((), False)


@settings(max_examples=examples(150))
@given(st.text(max_size=400), st.text(max_size=80))
def test_quotes_are_words_of_the_content(content: str, question: str) -> None:
    for answer in read(content, question, content[:40]).answers:
        assert answer.quote and answer.quote in content


@pytest.mark.parametrize(
    "turn",
    [
        "user: Where did I park the blue car?",
        "[5 January 2026 09:01] Ann: Where did I park the blue car?",
        "2026-01-05 09:01 Ann Miller: so where did I park my blue car?",
        '"Where did I park the blue car?"',
    ],
)
def test_who_only_asks_the_same_answers_nothing(turn: str) -> None:
    question = "Where did I park the blue car?"
    assert not read(turn, question).useful
    (answer,) = read(f"{turn}\n\nassistant: You parked the blue car on level 2.", question).answers
    assert "assistant: You parked the blue car on level 2." in answer.quote


def test_who_asked_something_is_answered_by_the_question() -> None:
    (answer,) = read("Ann: Where is the blue car?", "Who asked where the blue car is?", sure=0.4).answers
    assert answer.quote == "Ann: Where is the blue car?"


@pytest.mark.parametrize("kind", ["api operation", "mcp tool"])
def test_what_is_said_of_a_tool_closes_no_question_and_what_it_says_does(kind: str) -> None:
    question = "What is the status of order 17?"
    text = "GET /orders/{id}\n\nStatus of an order by its number"
    node = Node(id="o", title="Status of an order", kind=kind, content=text)
    (part,) = read(text, question, node=node, sure=0.0).answers
    assert not part.complete
    other = Answer(question, "Orders have a status.", "Orders have a status.", complete=False)
    assert read(text, question, node=node, parts=(other,)) == Reading(useful=False)
    (answer,) = read('{"order": 17, "status": "shipped"}', question, node=node, parts=(part,)).answers
    assert answer.complete and answer.answer == answer.quote


@pytest.mark.parametrize("weak", [0, 2, 5])
def test_nothing_is_an_answer_without_the_name_that_is_asked_for(weak: int) -> None:
    question = "How does the session connect to a PostgreSQL connection pool?"
    content = (
        "The session has a pool of connections. It connects to a host and keeps the connection in the pool."
    )
    parts = tuple(Answer(question, f"pool {i}", f"pool {i}", complete=False) for i in range(weak))
    assert not read(content, question, parts=parts).useful
    (answer,) = read(content.replace("a host", "a PostgreSQL host"), question).answers
    assert "PostgreSQL" in answer.quote


def test_a_heading_that_repeats_the_question_is_no_answer() -> None:
    question = "How do I stream a large download?"
    assert not read("- Streaming Downloads\n", question).useful
    assert read("- Stream a large download with iter_content.\n", question).answers


def test_a_word_in_no_text_rules_out_every_option() -> None:
    decision = route("q", Option("a", "A", score=0.009), Option("b", "B", score=0.0))
    assert decision.choice is None and set(decision.unviable) == {"a", "b"}
    assert "in no text" in decision.reason


def test_a_lone_surrogate_in_a_question_does_no_harm() -> None:
    assert read(PROSE, "What is the default timeout of a caf\udce9?") is not None
    embedder = static_embedder()
    assert embedder is not None and embedder.embed(["caf\udce9"]).any()


def fill(
    schema: dict[str, Any], question: str, *, errors: tuple[str, ...] = (), context: str = ""
) -> dict[str, Any]:
    spec = ToolSpec("t", "T", "", "exploratory", schema)
    node = Node(id="n", title="N", attributes={"path": "src/n.py"})
    return asyncio.run(EmbeddedToolCaller().fill(ToolRequest(spec, node, (question,), context, errors)))


def required(**properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


@pytest.mark.parametrize(
    ("name", "schema", "question", "expected"),
    [
        ("pattern", {"type": "string"}, "Where is `max_redirects` set?", "max_redirects"),
        ("pattern", {"type": "string"}, "Where is resolve_redirects called?", "resolve_redirects"),
        ("regex", {"type": "string"}, "Who reads `a.b`?", r"a\.b"),
        ("query", {"type": "string"}, "Where are redirects followed?", "Where are redirects followed?"),
        ("name", {"type": "string"}, "What does HTTPAdapter do?", "HTTPAdapter"),
        ("url", {"type": "string"}, "What does https://example.org/a say?", "https://example.org/a"),
        ("target", {"type": "string", "format": "uri"}, "Look at https://example.org", "https://example.org"),
        ("path", {"type": "string"}, "What is in docs/api.md?", "docs/api.md"),
        ("file", {"type": "string"}, "What is in here?", "src/n.py"),
        ("since", {"type": "string"}, "What changed since 2024-03-01?", "2024-03-01"),
        ("max_lines", {"type": "integer"}, "Anything", 20),
        ("limit", {"type": "integer", "maximum": 5}, "Anything", 5),
        ("year", {"type": "integer"}, "What was paid in 2019?", 2019),
        ("count", {"type": "integer", "default": 7}, "Anything", 7),
        ("deep", {"type": "boolean"}, "Anything", False),
        ("unit", {"enum": ["celsius", "fahrenheit"]}, "How warm in Fahrenheit?", "fahrenheit"),
        ("unit", {"enum": ["celsius", "fahrenheit"]}, "How warm?", "celsius"),
        (
            "terms",
            {"type": "array", "items": {"type": "string"}, "maxItems": 1},
            "Who uses `Cart`?",
            ["Cart"],
        ),
        ("pattern", {"anyOf": [{"type": "null"}, {"type": "string"}]}, "Where is `x_y`?", "x_y"),
    ],
)
def test_arguments_come_from_the_question(
    name: str, schema: dict[str, Any], question: str, expected: object
) -> None:
    result = fill(required(**{name: schema}), question)[name]
    assert result == expected or (schema.get("type") == "array" and expected[0] in result)  # type: ignore[index]


def test_optional_arguments_are_left_to_the_tool() -> None:
    schema = required(pattern={"type": "string"})
    schema["properties"]["max_lines"] = {"type": "integer", "default": 20}
    assert fill(schema, "Where is `x_y`?") == {"pattern": "x_y"}


def test_after_an_error_the_next_candidate_is_tried() -> None:
    schema = required(pattern={"type": "string"})
    question = "Where is `max_redirects` set in HTTPAdapter?"
    assert fill(schema, question, errors=("no match",))["pattern"] == "HTTPAdapter"
    with pytest.raises(BadModelAnswer, match="were tried"):
        fill(schema, question, errors=("no match",) * 20)


def test_what_cannot_be_guessed_is_said() -> None:
    with pytest.raises(BadModelAnswer, match="'passphrase'"):
        fill(required(passphrase={"type": "string"}), "where are redirects followed")


def test_answers_are_joined_under_their_questions() -> None:
    answers = (Answer("a?", "one"), Answer("b?", "two"), Answer("a?", "three"), Answer("a?", "one"))
    text = asyncio.run(EmbeddedComposer().compose(ComposeRequest(("a?", "b?", "c?"), answers, ("c?",))))
    assert text == "a?\none\n\nthree\n\nb?\ntwo\n\nNot found: c?"


def test_parts_that_a_later_answer_says_again_are_written_once() -> None:
    answers = (Answer("a?", "one", complete=False), Answer("b?", "two"), Answer("a?", "one\nthree"))
    text = asyncio.run(EmbeddedComposer().compose(ComposeRequest(("a?", "b?"), answers, ())))
    assert text == "a?\none\nthree\n\nb?\ntwo"


@pytest.mark.parametrize(
    ("content", "title", "description"),
    [
        (PROSE, "Sessions", "A session keeps cookies between requests. It is made with `Session()`."),
        (CODE, "resolve_redirects", "Receive a response and follow its redirects."),
        ("<html><title>A page</title><p>It says little. </p>", "A page", "It says little."),
        ("just one line", "just one line", "just one line"),
    ],
)
def test_descriptions_are_words_of_the_text(content: str, title: str, description: str) -> None:
    result = asyncio.run(EmbeddedDescriber().describe(DescribeRequest(content)))
    assert result.title == title
    assert result.description.startswith(description)


@given(st.text(max_size=600))
def test_descriptions_are_short_and_in_one_line(content: str) -> None:
    result = asyncio.run(EmbeddedDescriber().describe(DescribeRequest(content, tool="grep")))
    assert 0 < len(result.title) <= 80 and len(result.description) <= 240
    assert "\n" not in result.title + result.description


@pytest.mark.parametrize("begin", ['r"""', "a", "", "def", "<h1>", "# a"])
@pytest.mark.parametrize("many", [" ", "\n"])
def test_a_text_of_blanks_is_described_at_once(begin: str, many: str) -> None:
    """Of 19,000, cubic is hours: this does not end, rather than fail."""
    for end in ("x", ""):
        asyncio.run(EmbeddedDescriber().describe(DescribeRequest(begin + many * 19_000 + end)))


def test_the_suite_has_every_part() -> None:
    suite = embedded_suite()
    assert isinstance(suite.router, EmbeddedRouter) and isinstance(suite.reader, EmbeddedReader)
    with pytest.raises(UserError, match="gpt"):
        embedded_suite("gpt")


def test_static_embeddings_are_those_of_the_package() -> None:
    """The second opinion: the package's own loader, with downloads off."""
    from pathlib import Path

    import wordllama

    texts = ["where are redirects followed", "def send(self, request): ...", "🙂", "a"]
    theirs = wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True)
    ours = StaticEmbedder().embed(texts)
    assert ours == pytest.approx(theirs.embed(texts, norm=True), abs=1e-5)
    assert cosines(quantise(ours), ours[0]) == pytest.approx(ours @ ours[0], abs=0.01)
    assert not StaticEmbedder().embed([""]).any()


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    assert status()[0] and static_embedder() is not None
    monkeypatch.setattr("metatree_routers.embeddings.static._loaded", [])
    monkeypatch.setattr("metatree_routers.tokenizer.find_spec", lambda name: None)
    working, message = status()
    assert not working and "pip install" in message
    assert static_embedder() is None
    assert (
        route("Is it login?", Option("a", "Auth", "Login"), Option("b", "Billing", "Invoices")).choice == "a"
    )


def test_no_text_of_a_question_is_given_to_two_arguments() -> None:
    """A tool that writes settings wrote `port = port`."""
    schema = required(key={"type": "string"}, value={"type": "string"})
    assert fill(schema, 'Set "port" to "9000"') == {"key": "port", "value": "9000"}
    for question in ('Set "port" to 9000', 'What is "port" set to?', "Set `port` to 9000 in the settings"):
        with pytest.raises(BadModelAnswer, match="'value'"):
            fill(schema, question)
