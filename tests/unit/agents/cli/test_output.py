"""What the commands print: for people, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from decimal import Decimal
from types import MappingProxyType
from typing import Any

import jsonschema
import pytest
import typer
from metatree_agents.cli import _output as output
from metatree_agents.cli._errors import exit_code
from metatree_agents.cli._main import app
from metatree_agents.cli.commands._search import ended
from metatree_agents.cli.printing.answers import answer_lines, with_sources
from metatree_agents.cli.printing.results import file_lines, node_lines, summary, usage_text
from metatree_agents.cli.printing.traces import path_lines, trace_lines
from metatree_agents.cli.schemas import search
from metatree_agents.cli.schemas.registry import OUTPUTS
from metatree_agents.code import Definition, FileToEdit
from metatree_agents.tools.locations import source_place

from metatree import ClosestPassage, Node, QuestionNote, Source, Tree
from metatree.result import (
    Ended,
    NodeRef,
    QuestionAnswer,
    Quote,
    SearchResult,
    TraceEntry,
    TraceEvent,
    Usage,
)

BASIS = {
    "source": "/src",
    "commit": None,
    "dirty": None,
    "indexed_at": "2026-05-01T10:00:00+00:00",
    "changed_since": 2,
    "stale": True,
}
QUOTE = Quote("auth", "auth.py", "TIMEOUT = 30", 1, "auth", (3, 3))


@pytest.fixture
def tree() -> Tree:
    made = Tree.create(":memory:")
    made.add(Node(id="auth", title="auth.py", content="import time\n\nTIMEOUT = 30\n"))
    return made


def shallow(result: SearchResult) -> dict[str, Any]:
    """Return the fields of a result, for what a command adds to them."""
    return {each.name: getattr(result, each.name) for each in fields(result)}


def _answered(**changes: object) -> SearchResult:
    given: dict[str, object] = {
        "answer": "30 seconds",
        "answers": (QuestionAnswer("How long?", "30 seconds", (QUOTE,), cited="30 seconds [1]"),),
        "usage": Usage(router_calls=2, reads=1, seconds=0.25),
        "ended": "answered",
        "run_id": "r1",
    }
    return SearchResult(**{**given, **changes})  # type: ignore[arg-type]  # any field may be replaced


def test_answer_is_followed_by_its_sources_and_their_quotes(tree: Tree) -> None:
    assert list(answer_lines(_answered(), tree)) == [
        "30 seconds [1]",
        "",
        "Sources",
        "  [1] auth:3  auth.py",
        "  | TIMEOUT = 30",
    ]


def test_quote_that_is_the_answer_is_not_printed_twice(tree: Tree) -> None:
    lines = list(answer_lines(_answered(answer="It is set here:\nTIMEOUT = 30"), tree))
    assert lines == ["It is set here:", "TIMEOUT = 30", "", "Sources", "  [1] auth:3  auth.py"]


def test_source_shared_by_two_answers_is_listed_once(tree: Tree) -> None:
    twice = (QuestionAnswer("How long?", "30", (QUOTE,)), QuestionAnswer("Which unit?", "seconds", (QUOTE,)))
    assert list(answer_lines(_answered(answers=twice), tree)).count("  [1] auth:3  auth.py") == 1


def test_long_quote_is_cut_and_says_so(tree: Tree) -> None:
    long = Quote("auth", "auth.py", "\n".join(f"line {n}" for n in range(20)))
    lines = list(answer_lines(_answered(answers=(QuestionAnswer("q", "a", (long,)),)), tree))
    assert lines[-1] == "  | … 8 more lines"


def _close(question: str = "And who?", quote: str = "Ann did it.", **changes: Any) -> ClosestPassage:
    fields = {"node": "auth", "title": "auth.py", "place": "src/auth.py", "lines": (3, 3), "score": 0.25}
    return ClosestPassage(question=question, quote=quote, **{**fields, **changes})


def _open(*closest: ClosestPassage, questions: tuple[str, ...] = ("And who?",)) -> SearchResult:
    return SearchResult(answer="", open_questions=questions, closest=closest, ended="exhausted")


def test_what_stays_open_comes_with_the_passages_that_are_closest(tree: Tree) -> None:
    shown = list(answer_lines(_open(_close(), _close(place="b.md", lines=(7, 9), title="B")), tree))
    assert shown == [
        "The sources do not say, as far as this search can tell. Closest passages:",
        "  src/auth.py:3  auth.py",
        "  | Ann did it.",
        "  b.md:7-9  B",
        "  | Ann did it.",
    ]


def test_a_passage_of_a_document_has_its_file_and_page(tree: Tree) -> None:
    pages = {"first_page": 14, "last_page": 14}
    tree.add(
        Node(
            "m.pdf#f",
            "f",
            source=Source(type="pdf", path="m.pdf", start_line=30, end_line=51),
            attributes=pages,
        )
    )
    passage = _close(node="m.pdf#f", place="m.pdf#f", lines=(18, 38), title="f")
    assert "  m.pdf, page 14  f" in answer_lines(_open(passage), tree)


def test_what_was_answered_comes_before_what_stays_open(tree: Tree) -> None:
    some = _answered(
        open_questions=("And who?\nReally?", "Why?"), closest=(_close("Why?"),), ended="exhausted"
    )
    shown = list(answer_lines(some, tree))
    assert shown[:6] == ["How long?", *answer_lines(_answered(), tree)]
    assert shown[6:8] == ["", "Still open: And who? …"]
    assert shown[8].startswith(
        "The sources do not say, as far as this search can tell, and no passage comes close"
    )
    assert shown[9:] == [
        "",
        "Still open: Why?",
        "The sources do not say, as far as this search can tell. Closest passages:",
        "  src/auth.py:3  auth.py",
        "  | Ann did it.",
    ]


def test_questions_without_any_answer_are_each_named(tree: Tree) -> None:
    shown = list(answer_lines(_open(_close(), questions=("And who?", "Why?")), tree))
    assert [line for line in shown if line.startswith("Still open: ")] == [
        "Still open: And who?",
        "Still open: Why?",
    ]
    assert shown[0] == "Still open: And who?"


def test_nothing_that_comes_close_is_one_sentence(tree: Tree) -> None:
    (line,) = answer_lines(_open(), tree)
    assert line == "The sources do not say, as far as this search can tell, and no passage comes close"


def test_long_passage_is_cut_to_the_lines_that_share_words_with_the_question(tree: Tree) -> None:
    text = "\n".join("who repairs the roof." if n == 14 else f"line {n}." for n in range(20))
    passage = _close("Who repairs roofs?", text, lines=(1, 20))
    cut = list(answer_lines(_open(passage, questions=("Who repairs roofs?",)), tree))[2:]
    assert (cut[0], cut[1], cut[-1]) == ("  | line 0.", "  | …", "  | …")
    assert len(cut) == 8
    assert "  | who repairs the roof." in cut[2:-2]
    whole = list(answer_lines(_open(passage, questions=("Who repairs roofs?",)), tree, verbose=True))[1:]
    assert whole[0] == "  src/auth.py:1-20  auth.py  0.25"
    assert whole[1:] == [f"  | {line}" for line in text.split("\n")]


def test_one_endless_line_is_cut_at_its_end(tree: Tree) -> None:
    (line,) = list(answer_lines(_open(_close(quote="word " * 2_000)), tree))[2:]
    assert line.endswith("…")
    assert len(line) < 1_000


def test_a_passage_drives_no_terminal_and_imitates_no_output(tree: Tree) -> None:
    quote = "\x1b[2J\x1b]0;t\x07\rStill open: no\u2028Sources\n\nSources\n  auth  auth.py\n```\n# Answer: 42"
    hostile = _close(quote=quote, title="A\nSources\x1b[31m", place="a\x1b[1m.md")
    shown = list(answer_lines(_open(hostile), tree, verbose=True))
    assert not any("\x1b" in line or "\n" in line or "\r" in line for line in shown)
    assert all(line.startswith("  | ") or line == "  |" for line in shown[2:])
    assert shown[1] == r"  a\x1b[1m.md:3  A Sources\x1b[31m  0.25"
    assert "  | Answer: 42" in shown


def test_a_failed_search_shows_passages_and_claims_nothing_of_the_sources(tree: Tree) -> None:
    failed = SearchResult(answer="", open_questions=("And who?",), closest=(_close(),), ended="failed")
    assert list(answer_lines(failed, tree)) == [
        "no answer was found: the search failed",
        "Closest passages:",
        "  src/auth.py:3  auth.py",
        "  | Ann did it.",
    ]


def test_control_characters_of_a_source_do_not_reach_the_terminal(tree: Tree) -> None:
    lines = list(answer_lines(_answered(answer="\x1b]0;title\x07 done"), tree))
    assert lines[0] == r"\x1b]0;title\x07 done"


def test_place_of_a_source_is_its_lines_or_its_pages(tree: Tree) -> None:
    assert source_place(tree, QUOTE) == "auth:3"
    assert source_place(tree, replace(QUOTE, place="src/f.py", lines=(3, 7))) == "src/f.py:3-7"
    assert source_place(tree, replace(QUOTE, place="a.pdf", lines=None, pages=(2, 2))) == "a.pdf, page 2"
    assert source_place(tree, Quote("gone", "gone", "")) == "gone"


def test_code_has_the_numbers_of_its_lines_and_no_markup(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    content = 'def f(a):\n    """Do :func:`g`.\n\n    More.\n    """\n    b = a\n    return b'
    tree.add(
        Node(id="f", title="f", kind="definition", source=Source(path="f.py", start_line=10, end_line=16))
    )
    monkeypatch.setattr(tree, "content", lambda node: content)
    quote = Quote("f", "f", "    b = a\n    return b", 1, "f.py", (15, 16))
    text = 'def f(a):\n    """Do :func:`g`.\n    …\n    b = a\n    return b'
    result = SearchResult(answer=text, answers=(QuestionAnswer("q", text, (quote,)),), ended="answered")
    assert list(answer_lines(result, tree)) == [
        "10  def f(a):",
        '11      """Do g.',
        "        …",
        "15      b = a",
        "16      return b",
        "[1]",
        "",
        "Sources",
        "  [1] f.py:15-16  f",
    ]
    assert '14      """' in list(answer_lines(result, tree, verbose=True))
    content += "\n    c()" * 40
    assert list(answer_lines(result, tree, verbose=True))[2] == "        …"


def test_markup_of_an_answer_and_of_a_passage_is_shown_as_text(tree: Tree) -> None:
    quote = Quote("auth", "auth.py", "## Time\n\nIt is **30** s.", 1, "docs/a.md", (1, 3))
    answer = QuestionAnswer("q", quote.quote, (quote,), cited=f"{quote.quote} [1]")
    result = SearchResult(answer=quote.quote, answers=(answer,), ended="answered")
    assert list(answer_lines(result, tree))[:3] == ["Time", "", "It is 30 s. [1]"]
    near = _close(quote="Use :func:`run`::\n\n    run()", place="a.rst", lines=(1, 3))
    assert list(answer_lines(_open(near), tree))[2:] == ["  | Use run:", "  |", "  |     run()"]


def test_fewer_passages_are_kept_for_each_question() -> None:
    near = [_close("p"), _close("q"), _close("p", place="b"), _close("q", place="c")]
    assert with_sources(_open(*near), 1).closest == (near[0], near[1])
    assert with_sources(_open(*near), None).closest == (near[0], near[2], near[1], near[3])


def test_fewer_sources_leave_their_numbers_out() -> None:
    both = (QUOTE, replace(QUOTE, quote="x[9]", number=2))
    result = _answered(answers=(QuestionAnswer("q", "a", both, cited="x[9] [1][2]"),), cited="x[9] [1][2]")
    assert with_sources(result, 1).answers[0].cited == "x[9] [1]"


def test_nodes_are_listed_with_score_and_reason() -> None:
    nodes = (NodeRef("src/a.py", "a.py", 0.913, "def run\nmore"), NodeRef("b", "b", 0.5, ""))
    assert list(node_lines(SearchResult(answer="", nodes=nodes, ended="answered"))) == [
        "0.91  src/a.py  def run …",
        "0.50  b",
    ]


def test_a_part_of_a_file_is_listed_with_its_lines_and_one_clause() -> None:
    reason = "defines `run`; says “run”; its file is imported by 2 others: 'def run()'"
    node = NodeRef("src/a.py::A.run", "A.run", 1.0, reason, "src/a.py", (3, 9))
    result = SearchResult(answer="", nodes=(node,), ended="answered")
    assert list(node_lines(result)) == ["1.00  src/a.py:3-9  A.run  defines `run`"]
    assert list(node_lines(result, verbose=True)) == [f"1.00  src/a.py:3-9  A.run  {reason}"]


def test_files_are_listed_with_their_definitions() -> None:
    files = [FileToEdit("src/a.py", 0.9, "names it", (Definition("run", 10, 25),))]
    assert list(file_lines(files, SearchResult(answer="", ended="answered"))) == [
        "0.90  src/a.py  names it",
        "           10-25     run",
    ]


def test_usage_names_only_what_was_used() -> None:
    assert usage_text(Usage(router_calls=1, reads=2, seconds=1.5)) == "1 choice, 2 reads, 1.50 s"
    paid = Usage(model_calls=3, tokens_in=1_000, tokens_out=200, cost_usd=Decimal("0.0123"), tool_calls=1)
    assert usage_text(paid) == "0 choices, 0 reads, 3 model calls, 1,200 tokens, 1 tool call, $0.0123, 0.00 s"


def test_summary_says_which_limit_was_reached() -> None:
    result = _answered(ended="limit", detail="router_calls")
    assert summary(result) == "run r1: limit (router_calls); 2 choices, 1 read, 0.25 s"


def test_what_went_wrong_in_a_search_that_ended_is_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    result = _answered(ended="exhausted", detail="the router failed in all 3 calls")
    assert ended(result, Tree.create(":memory:"), verbose=False) == 0
    assert capsys.readouterr().err.splitlines() == [
        "warning: the router failed in all 3 calls",
        "run r1: searched to the end; 2 choices, 1 read, 0.25 s",
    ]


def test_run_that_waits_for_an_answer_off_the_board_is_answered_by_resume(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert ended(_answered(ended="waiting", detail="How long?"), Tree.create(":memory:"), verbose=False) == 4
    assert "answer it with: metatree resume r1 --answer TEXT" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("how", "found", "code"),
    [
        ("answered", True, 0),
        ("exhausted", True, 0),
        ("exhausted", False, 1),
        ("limit", True, 3),
        ("limit", False, 3),
        ("waiting", False, 4),
        ("cancelled", True, 5),
        ("failed", False, 5),
    ],
)
def test_exit_code_of_each_end(how: Ended, found: bool, code: int) -> None:
    answers = (QuestionAnswer("q", "a", ()),) if found else ()
    assert exit_code(SearchResult(answer="", answers=answers, ended=how)) == code


def _entry(
    step: int, frame: int, event: TraceEvent, node: str | None, reason: str, **data: Any
) -> TraceEntry:
    return TraceEntry(step, frame, event, node, reason, data)


TRACE = (
    _entry(0, 0, "frame", ".", "", questions=["How long?"]),
    _entry(
        1,
        0,
        "route",
        ".",
        "time",
        offered=["src", "docs"],
        choice="src",
        unviable={"docs": "prose"},
        by="router",
    ),
    _entry(1, 0, "mark", "docs", "prose", mark="unviable"),
    _entry(1, 0, "enter", "src", "time"),
    _entry(2, 0, "enter", "src/a", "the only option"),
    _entry(3, 0, "read", "src/a", "a question came up", answers=[], useful=True, known=False),
    _entry(3, 1, "frame", ".", "questions that came up", questions=["Which unit?"]),
    _entry(4, 1, "read", "docs/u", "", answers=[{"answer": "seconds"}], useful=True, known=False),
    _entry(4, 1, "end", None, "answered", open=[]),
    _entry(5, 0, "read", "src/a", "nothing here answers", answers=[], useful=False, known=False),
    _entry(5, 0, "mark", "src/a", "nothing here answers", mark="visited"),
    _entry(6, 0, "mark", "src", "nothing left below", mark="visited"),
    _entry(6, 0, "end", None, "exhausted", open=["How long?"]),
)


def test_trace_says_why_branches_were_taken_and_ruled_out_once_each() -> None:
    assert list(trace_lines(TRACE)) == [
        "   0  ask How long?",
        "   1  at .: chose src of 2: time",
        "          ruled out docs: prose",
        "   2  enter src/a: the only option",
        "   3  read src/a: a question came up",
        "   3    ask Which unit?",
        "   4    read docs/u: 1 answer",
        "   4    end: answered",
        "   5  read src/a: nothing here answers",
        "   6  done with src: nothing left below",
        "   6  end: exhausted, 1 still open",
    ]


def test_path_leaves_out_the_bookkeeping() -> None:
    assert list(path_lines(TRACE)) == [
        "  ask How long?",
        "  at .: chose src of 2: time",
        "  enter src/a: the only option",
        "  read src/a: a question came up",
        "    ask Which unit?",
        "    read docs/u: 1 answer",
        "  read src/a: nothing here answers",
    ]


def test_a_trace_has_the_arguments_of_a_call() -> None:
    given = {"tool": "find_word", "arguments": {"word": "tea"}}
    (line,) = trace_lines([TraceEntry(3, 0, "tool", "a.md", "called", given)])
    assert line == '   3  tool find_word with {"word": "tea"} at a.md: called'


def test_long_list_of_ruled_out_options_is_cut_and_says_so() -> None:
    unviable = {f"n{number}": "no" for number in range(20)}
    entry = _entry(
        1, 0, "route", ".", "", offered=list(unviable), choice=None, unviable=unviable, by="evidence"
    )
    lines = list(trace_lines([entry]))
    assert lines[0] == "   1  at .: chose none of 20 by evidence"
    assert lines[-1] == "          … 12 more ruled out (--json has them all)"


def test_json_fits_its_schema(conforms: Callable[[Any, Any], None]) -> None:
    result = _answered(nodes=(NodeRef("a", "A", 1 / 3, "r"),), trace=TRACE)
    files = [FileToEdit("src/a.py", 0.9, "names it", (Definition("run", 10, 25),))]
    more: dict[str, Any] = {"basis": BASIS, "empty": ""}
    for model, value in (
        (search.AskOutput, {**shallow(result), **more}),
        (search.FindOutput, {**shallow(result), **more}),
        (search.FilesOutput, {"files": files, "usage": result.usage, **more}),
        (search.TraceOutput, result),
    ):
        conforms(json.loads(json.dumps(model.model_validate(value).as_json())), model)
    output_json = search.FindOutput.model_validate({**shallow(result), **more}).as_json()
    with pytest.raises(jsonschema.ValidationError):
        conforms({**output_json, "run": 1}, search.FindOutput)
    with pytest.raises(AssertionError):
        conforms({**output_json, "more": 1}, search.FindOutput)


def test_a_trace_becomes_json_whatever_its_data_is() -> None:
    data = {
        "tuple": (1, 2.0),
        "inner": MappingProxyType({3: Decimal("0.1")}),
        "kept": NodeRef("a", "A", 1.0, "r"),
    }
    entry = search.EntryOutput.model_validate(_entry(1, 0, "route", "a", "", **data)).as_json()
    assert entry["data"] == {
        "tuple": [1, 2.0],
        "inner": {"3": "0.1"},
        "kept": {"id": "a", "title": "A", "score": 1.0, "reason": "r", "path": None, "lines": None, "at": ""},
    }


def test_files_of_a_tree_of_one_folder_have_no_source() -> None:
    one = FileToEdit("a.py", 0.9, "names it", node="a.py")
    of_two = FileToEdit("a.py", 0.9, "names it", node="x/a.py", source="/x")
    assert list(search.FileOutput.model_validate(one).as_json()) == ["path", "score", "reason", "definitions"]
    assert list(search.FileOutput.model_validate(of_two).as_json())[4:] == ["source", "node"]


def test_every_command_that_prints_json_has_a_model() -> None:
    def named(name: str, command: Any) -> Iterator[str]:
        for inner, one in getattr(command, "commands", {}).items():
            yield from named(f"{name} {inner}".strip(), one)
        if any("--json" in each.opts for each in command.params):
            yield name

    in_registry = {name.partition(" --")[0] for name in OUTPUTS}
    assert set(named("", typer.main.get_command(app()))) - {"service serve"} == in_registry


def test_ask_json_is_the_contract() -> None:
    usage = Usage(router_calls=2, reads=1, seconds=0.25)
    given = {**shallow(_answered()), "basis": BASIS, "empty": ""}
    assert search.AskOutput.model_validate(given).as_json() == {
        "answer": "30 seconds",
        "cited": "",
        "answers": [
            {
                "question": "How long?",
                "answer": "30 seconds",
                "sources": [
                    {
                        "node": "auth",
                        "title": "auth.py",
                        "quote": "TIMEOUT = 30",
                        "number": 1,
                        "place": "auth",
                        "lines": [3, 3],
                        "pages": None,
                    }
                ],
                "confidence": None,
                "verified": True,
                "cited": "30 seconds [1]",
                "earlier": [],
            }
        ],
        "notes": [],
        "closest": [],
        "wishes": [],
        "open_questions": [],
        "empty": "",
        "basis": BASIS,
        "ended": "answered",
        "usage": search.UsageOutput.model_validate(usage).as_json(),
        "run": "r1",
    }


@pytest.mark.parametrize(
    ("text", "shown"),
    [("plain", "plain"), ("a\tb\xa0c", "a b c"), ("\u202etxt", r"\u202etxt"), ("\udcff", r"\udcff")],
)
def test_visible_text_drives_no_terminal(text: str, shown: str) -> None:
    assert output.visible(text) == shown


def test_the_doctor_says_which_extras_would_outline_more(monkeypatch: pytest.MonkeyPatch) -> None:
    from metatree_agents.cli.commands import doctor

    with monkeypatch.context() as every:
        every.setattr(doctor, "find_spec", lambda name: name)
        assert "pip install" not in doctor._file_types()
    monkeypatch.setattr(doctor, "find_spec", lambda name: None)
    monkeypatch.setattr(
        "metatree_memory_tools.code.languages.code.missing", lambda: {"languages": ["go", "rust"]}
    )
    text = doctor._file_types()
    assert "`pip install 'metatree-memory[docs]'` to read PDF and HTML" in text
    assert (
        "`pip install 'metatree-memory[office]'` to read xlsx and odt and pptx and EPUB and notebooks" in text
    )
    assert "`pip install 'metatree-memory[languages]'` for outlines of go, rust, now plain text" in text


def test_an_answer_whose_words_are_in_no_source_is_marked_and_is_nothing_found(tree: Tree) -> None:
    invented = QuestionAnswer("q", "It is 42.", (), verified=False)
    result = SearchResult(answer="It is 42.", answers=(invented,), ended="answered")
    assert list(answer_lines(result, tree))[:2] == ["It is 42.", "(not in the source)"]
    assert exit_code(result) == 1
    both = (invented, QuestionAnswer("p", "30", (QUOTE,)))
    assert exit_code(SearchResult(answer="…", answers=both, ended="answered")) == 0
    assert "(not in the source: q)" in list(
        answer_lines(SearchResult(answer="…", answers=both, ended="answered"), tree)
    )


def test_how_a_question_was_read_is_said_before_the_answer(tree: Tree) -> None:
    foreign = QuestionNote("Wer?", "", "German", ("English", "French"))
    read_as = QuestionNote("Who suports it?", "Who supports it?")
    found = SearchResult(answer="", open_questions=("Wer?",), notes=(read_as, foreign), ended="exhausted")
    lines = list(answer_lines(found, tree))
    assert lines[:2] == [
        "Read as: Who supports it?",
        "The question is in German; the texts are in English and French",
    ]
    answered = SearchResult(answer="It is 4.", notes=(foreign,), ended="answered")
    assert "German" not in "\n".join(answer_lines(answered, tree))
