"""What chat pages and exports of a thread show of an answer fetches nothing, and says who said it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token
from metatree_agents.service.openai._inert import escaped
from metatree_agents.service.openai._models import content_of, thinking_of
from metatree_agents.service.queue.models import Ending
from metatree_agents.service.queue.queue import Query
from metatree_agents.service.queue.recommendations import Recommendation
from metatree_agents.service.web._exports import exported

PICTURE = "![logo](http://a.example/pix.png?u=ann)"
PARTS = [
    *(
        PICTURE,
        "![x][r]",
        "[r]: http://a.example/p.png",
        "[1]: http://a.example/p",
        "[\n1\n]:\nhttp://a.example/p",
        "<img src=http://a.example/p>",
        "<!--",
        "-->",
        "<div",
    ),
    *(
        "```",
        "````",
        "~~~",
        "~~~~",
        "`",
        "``",
        "\n",
        "\r",
        "  ",
        "    ",
        "- ",
        "1. ",
        "> ",
        "|",
        "|-|-|",
        "\\",
        "a",
        "!",
    ),
    *("x\n|-|-|\n", "- ```\n", "<script>", "</div>", "* * *\n", "[t](http://a.example)", "\t"),
]
TEXT = st.lists(st.sampled_from(PARTS), min_size=1, max_size=8).map("".join)


def query_of(answer: Sequence[str], *sources: dict[str, Any], ending: Ending | None = None) -> Query:
    ending = ending or Ending()
    made = Query(
        "T", 1, "q", "Done", list(answer), [], list(sources), "default", {}, 0.0, 1, [], ending=ending
    )
    return replace(made, think=list(answer))


def source(quote: str, **given: Any) -> dict[str, Any]:
    return {"Node": "n", "Title": "a.md", "Quote": quote, "Path": "a.md", "Number": 1, **given}


def closest(**given: Any) -> Ending:
    return Ending("closest", ["q"], [{"Question": "q", "Node": "n", "Title": "T", "Quote": "w", **given}])


def fetched(content: str) -> list[str]:
    """Return what a renderer with tables and HTML would fetch or run, and what it takes for names of links."""

    def tokens(of: Sequence[Token]) -> Iterator[Token]:
        for token in of:
            yield token
            yield from tokens(token.children or ())

    parser = MarkdownIt("commonmark", {"maxNesting": 200})
    found: list[str] = []
    for one in (parser, MarkdownIt("commonmark", {"maxNesting": 200}).enable("table")):
        defined: dict[str, Any] = {}
        found += [
            each.content
            for each in tokens(one.parse(content, defined))
            if each.type in ("image", "html_inline", "html_block")
        ]
        found += defined.get("references", ())
    return found


@pytest.mark.parametrize("words", [PICTURE, "![x][r]", "<img src=http://a.example/p>", "<b\nonclick=a>"])
@pytest.mark.parametrize("is_quoted", [True, False])
def test_a_picture_or_html_in_an_answer_is_shown_as_text(words: str, is_quoted: bool) -> None:
    answer = [f"It hangs in the hall, as {words} shows.", "[r]: http://a.example/p.png"]
    content = content_of(query_of(answer, *([source(answer[0]), source(answer[1])] if is_quoted else [])))
    assert not fetched(content) and answer[0] in content


@pytest.mark.parametrize(
    "words",
    [
        "[1]: http://a.example",
        "It is so.\n\n   [1]:\nhttp://a.example 'a title'",
        "> - [1]: <http://a.example>",
        "[\n 1\n]: http://a.example",
        r"[a\]b]: http://a.example",
    ],
)
@pytest.mark.parametrize("is_quoted", [True, False])
def test_no_text_says_where_the_mark_of_a_source_leads(words: str, is_quoted: bool) -> None:
    quoted = [source("Nine."), source(words, Number=2)] if is_quoted else [source("Nine.")]
    content = content_of(query_of(["Nine.", words], *quoted))
    assert not fetched(content) and words in content
    links = [
        child.attrGet("href")
        for token in MarkdownIt("commonmark").parse(content)
        for child in token.children or ()
        if child.type == "link_open"
    ]
    assert not [link for link in links if link == "http://a.example"]
    assert not fetched(thinking_of(query_of([words])))


_FENCED = "look:\n\n```\nx{}```\n" + PICTURE + "\n```\n"


@pytest.mark.parametrize(
    "asked",
    [
        "[1]: http://a.example",
        PICTURE,
        "a\n\n<img src=http://a.example/p>",
        f"look:\n\n```\nx\n```\xa0\n{PICTURE}\n```\n",
        *(
            _FENCED.format(end)
            for end in ("\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\r", "\r\n", "\n")
        ),
    ],
)
def test_a_question_does_nothing_in_an_export(asked: str) -> None:
    row = Recommendation(1, "T", asked, "q", asked, asked, "Make Correction", 0.0)
    query = replace(query_of(["Nine."], source("Nine.")), text=asked, by=asked, think=[asked])
    for ending in (Ending("answered"), Ending("nothing")):
        text = exported("T", asked, [replace(query, ending=ending)], {query.seq: [row]}, "md")
        assert not fetched(text)
    assert "> a\n" in exported("T", "T", [replace(query_of(["b"]), text="a")], {}, "md")


def test_words_without_any_stay_markdown_and_so_does_code_of_a_model() -> None:
    said = "Use `<input>` **here**:\n\n```html\n<img src=a>\n```"
    content = content_of(
        query_of(["It is [here](http://a.example).", said], source("It is [here](http://a.example)."))
    )
    assert content.startswith(f"It is [here](http://a.example). [1]\n\n{said}\n\nSources:")


@given(st.lists(TEXT, min_size=1, max_size=4), st.lists(st.booleans(), min_size=4, max_size=4), TEXT, TEXT)
@example(["~~~", f"~~~\n{PICTURE}"], [True] * 4, "a", "a")
@example(["```", f"```\n{PICTURE}\n```"], [True, False, True, True], "a", "a")
@example(["- a", f"  ```\n{PICTURE}\n  ```"], [True, False, True, True], "a", "a")
@example(["- a", f"      {PICTURE}"], [True, False, True, True], "a", "a")
@example([f"a|b\n-|-\n`{PICTURE} | a`|c"], [False] * 4, "a", "a")
@example([">" * 25 + PICTURE], [False] * 4, "a", "a")
@example(["\r[r]: http://a.example/p.png"], [True, False, False, False], PICTURE, PICTURE)
@example(["\r[r]: http://a.example/p.png"], [False] * 4, PICTURE, PICTURE)
def test_nothing_that_memory_or_a_model_says_is_fetched(
    texts: list[str], quoted: list[bool], title: str, place: str
) -> None:
    sources = [
        source(text, Title=title, Path=place, SaidBy=title)
        for text, is_quoted in zip(texts, quoted, strict=False)
        if is_quoted
    ]
    passage = closest(Title=title, Place=place, SaidBy=place, Quote=texts[0])
    for query in (query_of(texts, *sources), query_of(texts, ending=passage)):
        for base in ("", "http://b.example"):
            assert not fetched(content_of(query, base))
        assert not fetched(thinking_of(query))


@given(TEXT.map(lambda text: " ".join(text.split())))
def test_an_escaped_line_is_text(text: str) -> None:
    parsed = MarkdownIt("commonmark").parseInline(escaped(text))
    assert {child.type for token in parsed for child in token.children or ()} <= {
        "text",
        "text_special",
        "softbreak",
    }


def test_lists_say_who_said_it_where_the_engine_does() -> None:
    ann = "imported from [six].metatree on 2026-11-23"
    content = content_of(query_of(["Nine."], source("Nine.", SaidBy=ann)))
    assert content.endswith(r"- [1] a.md (imported from \[six\].metatree on 2026-11-23): “Nine.”")
    for said in ({}, {"SaidBy": ""}, {"SaidBy": None}, {"SaidBy": ["ann"]}):
        assert content_of(query_of(["Nine."], source("Nine.", **said))).endswith("- [1] a.md: “Nine.”")
    near = content_of(query_of(["It does not say."], ending=closest(SaidBy="said by ann on 2026-05-03")))
    assert "1. T (n) (said by ann on 2026-05-03)\n\n```\nw" in near
    assert "said by" not in content_of(query_of(["It does not say."], ending=closest()))
    named = closest(Place="office.md", Lines=[9, 11], Tree="handbook")
    assert "1. T (handbook: office.md, lines 9–11)\n" in content_of(query_of(["No."], ending=named))
    recommended = "said by ann on 2026-05-03 (Add Missing Info, topic what-is-it-9f2c)"
    answered = query_of(["w"], source("w", SaidBy=recommended))
    for text in (content_of(answered), content_of(query_of(["No."], ending=closest(SaidBy=recommended)))):
        assert "(added by ann, 2026-05-03)" in text and "topic" not in text
