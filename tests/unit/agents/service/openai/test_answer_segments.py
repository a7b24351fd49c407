"""Answers in pieces: what is quoted is exact, code is distinguished from words, and nothing is lost."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from metatree_agents.service.openai._inert import fenced
from metatree_agents.service.openai._models import content_of
from metatree_agents.service.openai.answer_segments import AnswerSegment, answer_segments, with_marks
from metatree_agents.service.queue.queue import Query

CODE = "    def __init__(self):\n        self.a = 1\n    }\n\n    def b(self):\n        return __c__\n    }\n"


def query_of(answer: list[str], quote: str) -> Query:
    sources = [{"Node": "n", "Title": "a.py", "Quote": quote, "Path": "a.py"}]
    return Query("T", 1, "q", "Done", answer, [], sources, "default", {}, 0.0, 1, [])


def test_code_that_is_quoted_is_one_piece_with_its_indentation_and_words_of_an_engine_are_said() -> None:
    first, second = CODE.strip("\n").split("\n\n")
    paragraphs = ["It is set", "*here*:", first.strip(), second, "see?"]
    assert list(answer_segments(paragraphs, ["", CODE])) == [
        AnswerSegment("said", "It is set\n\n*here*:"),
        AnswerSegment("code", CODE.rstrip("\n").replace("\n    ", "\n").removeprefix("    ")),
        AnswerSegment("said", "see?"),
    ]
    assert list(answer_segments(["Ann does."], ["I think Ann does."])) == [
        AnswerSegment("words", "Ann does.")
    ]


def test_a_paragraph_that_stands_in_a_quote_twice_is_the_one_that_comes_next() -> None:
    quote = "a(\n\nb(\n\na(\n\nc("
    assert [piece.text for piece in answer_segments(["a(", "b(", "a(", "c("], [quote])] == [quote]


def test_code_in_a_chat_is_shown_as_it_is() -> None:
    content = content_of(query_of(["It is here:", *CODE.strip("\n").split("\n\n")], CODE))
    (fence,) = [token for token in MarkdownIt().parse(content) if token.type == "fence"]
    assert fence.content == CODE.replace("\n    ", "\n").removeprefix("    ")
    assert content.startswith("It is here:\n\n```\n") and "\n\nSources:\n- a.py: “" in content


@given(st.text("`ab\n ~", min_size=1).filter(lambda text: text.strip("\n")))
def test_no_code_ends_its_own_fence(code: str) -> None:
    (fence,) = MarkdownIt().parse(fenced(code))
    assert fence.type == "fence" and fence.content == code.strip("\n") + "\n"


@given(st.lists(st.text("ab(\n", min_size=1)), st.lists(st.text("ab(\n"), max_size=3))
def test_no_word_is_lost(paragraphs: list[str], quotes: list[str]) -> None:
    made = "".join(piece.text for piece in answer_segments(paragraphs, quotes))
    assert "".join(made.split()) == "".join("".join(paragraphs).split())


def test_the_signature_above_quoted_code_is_code_too() -> None:
    quote = "    b = __init__\n    return b"
    answer = ["Here:", 'def __new__(a):\n    """Do.\n    …\n' + quote, "It is *so*."]
    assert [(piece.kind, piece.text) for piece in answer_segments(answer, [quote])] == [
        ("said", "Here:"),
        ("code", answer[1]),
        ("said", "It is *so*."),
    ]
    assert [piece.kind for piece in answer_segments(["def f():\n    return 1"], ["Words alone."])] == ["said"]


DOCUMENT = """Password Prompts
----------------

This hides what is typed:

.. click:example::

    @click.command()
    def encode():
        pass"""


def test_a_document_with_code_in_it_is_words_and_not_code() -> None:
    (piece,) = answer_segments(DOCUMENT.split("\n\n"), [DOCUMENT])
    assert (piece.kind, piece.text) == ("words", DOCUMENT)
    (mark,) = answer_segments(
        ["::", "    import click\n    click.clear()"], ["::\n\n    import click\n    click.clear()"]
    )
    assert mark.kind == "words"
    (code,) = answer_segments(["def encode():\n    pass"], ["def encode():\n    pass"])
    assert code.kind == "code"


def test_what_is_left_out_below_a_quote_is_a_part_of_it() -> None:
    code = "def send(\n    name,\n):\n    pass\n\n    # all of it\n    return 1"
    ((piece, number),) = with_marks(
        answer_segments(["def send(\n    name,\n):\n    pass", "    …"], [code]), [1]
    )
    assert (piece.kind, piece.text, number) == ("code", "def send(\n    name,\n):\n    pass\n\n    …", 1)
    answer = ["Lamps are dear.", "    …", "So it is said."]
    words, said = with_marks(answer_segments(answer, ["Lamps are dear. Very."]), [1])
    assert (words[0].kind, words[0].text, words[1]) == ("words", "Lamps are dear.\n\n…", 1)
    assert (said[0].kind, said[0].text) == ("said", "So it is said.")
    assert [piece.kind for piece in answer_segments(["He said", "…"], ["Lamps."])] == ["said"]


def test_code_of_several_paragraphs_is_one_piece_below_its_signature() -> None:
    quote = "        self.most = 30\n\n        # proxies\n        self.trust = True"
    said = [
        "    def __init__(self):\n        …\n        self.most = 30",
        "        # proxies\n        self.trust = True\n        …",
    ]
    (piece,) = answer_segments(said, [quote])
    assert piece.kind == "code"
    assert piece.text.startswith("def __init__(self):\n    …\n    self.most = 30\n\n    # proxies\n")
