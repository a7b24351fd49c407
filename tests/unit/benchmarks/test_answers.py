"""The benchmark of answers: when one is right, the figures over many, and a run over a small collection."""

from __future__ import annotations

import gzip
import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks.answers import fit, report, verify
from benchmarks.answers.asking import BASELINE, OURS, ask, closest_of, confidence_of, rows
from benchmarks.answers.dataset import Nodes, Question, QuestionSet, cut
from benchmarks.answers.scoring import (
    Passed,
    Row,
    Share,
    area_under_risk,
    calibration_error,
    contains,
    coverage_at,
    curve,
    figures,
    is_right,
    silenced,
    threshold_for,
)
from benchmarks.answers.sets import HELD, OWN, SETS, load
from metatree import Node, SearchResult, Tree
from metatree.result import Ended, QuestionAnswer

COOKIES = Question("q", "s", "what", "Where are cookies kept?", True, pattern=r"in a\W+jar")
TWO = Question("q", "s", "several", "Which, and when?", True, pattern="red.*1990", parts=("red", "1990"))
GOLD = Question("q", "s", "paper", "How many?", True, gold=frozenset({"n1"}), answer="1,577 pairs")


def row(*, right: bool = False, answerable: bool = True, claimed: bool = True, **rest: Any) -> Row:
    """Make the row of an answer."""
    made = Row(
        set="own-a",
        id="q",
        kind="what",
        source="s",
        asked="s",
        system=OURS,
        question="?",
        answerable=answerable,
        claimed=claimed,
        text="",
        right=right,
    )
    return replace(made, **rest)


# when an answer is right


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("They are kept IN A\n   jar.", True),
        ("They are kept in a `jar`.", True),
        ("They are kept in a box.", False),
        ("", False),
    ],
)
def test_a_pattern_is_looked_for_without_case_line_breaks_and_markup(text: str, right: bool) -> None:
    assert is_right(COOKIES, [Passed(text)]) is right


def test_several_things_may_be_answered_in_several_texts_and_all_are_needed() -> None:
    assert is_right(TWO, [Passed("red"), Passed("in 1990")])
    assert is_right(TWO, [Passed("the red one, in 1990")])
    assert not is_right(TWO, [Passed("red"), Passed("blue")])


def test_without_a_pattern_a_gold_node_or_the_words_of_the_answer_are_right() -> None:
    assert is_right(GOLD, [Passed("whatever", ("n0", "n1"))])
    assert is_right(GOLD, [Passed("there were 1577 pairs", ("n2",))])
    assert not is_right(GOLD, [Passed("there were 15 pairs", ("n2",))])


@pytest.mark.parametrize("answer", ["", "No", "yes", "7", "it"])
def test_an_answer_that_any_text_holds_is_in_none(answer: str) -> None:
    assert not contains(f"{answer} is it", answer)


def test_words_count_as_wholes() -> None:
    assert contains("Two dogs, Max and Luna", "max and luna")
    assert not contains("Maximum", "max")


# figures


def test_a_claim_where_nothing_answers_counts_against_precision_and_not_against_coverage() -> None:
    found = figures([row(right=True), row(), row(claimed=False), row(answerable=False, right=True)])
    assert (found.precision, found.coverage, found.false) == (Share(1, 3), Share(1, 3), Share(1, 1))


def test_what_was_asked_of_a_wrong_collection_counts_there_alone() -> None:
    found = figures([row(right=True), row(answerable=False, asked="other")])
    assert (found.questions, found.precision, found.elsewhere) == (1, Share(1, 1), Share(1, 1))


def test_a_part_of_several_that_says_what_is_open_is_no_wrong_claim() -> None:
    found = figures([row(right=True), row(partial=True)])
    assert (found.precision, found.coverage) == (Share(1, 1), Share(1, 2))


def test_an_interval_is_that_of_wilson() -> None:
    low, high = Share(8, 10).interval
    assert (round(low, 3), round(high, 3)) == (0.490, 0.943)
    assert math.isnan(Share(0, 0).value)


def test_a_threshold_gives_the_most_coverage_that_keeps_the_precision() -> None:
    rows = [
        row(right=True, confidence=0.9),
        row(confidence=0.8),
        row(right=True, confidence=0.7),
        row(right=True, confidence=0.6),
    ]
    assert curve(rows) == [(0.25, 0), (0.25, 0.5), (0.5, pytest.approx(1 / 3)), (0.75, 0.25)]
    assert coverage_at(0.9, rows) == 0.25
    assert coverage_at(0.75, rows) == 0.75


def test_equal_and_missing_confidences_come_in_together() -> None:
    rows = [row(right=True), row(right=True), row()]
    assert len(curve(rows)) == 1
    assert curve(rows)[0] == pytest.approx((2 / 3, 1 / 3))
    assert coverage_at(0.9, rows) == 0


def test_calibration_compares_confidence_with_what_was_right() -> None:
    sure = [row(right=number < 5, confidence=0.9) for number in range(10)]
    assert calibration_error([replace(each, confidence=float(each.right)) for each in sure]) == 0
    # One claim a bin: each is off by .1 or by .9.
    assert calibration_error(sure) == pytest.approx(0.5)
    assert calibration_error([row(right=True)]) is None


def test_risk_counts_questions_without_a_claim_last_and_as_wrong() -> None:
    assert area_under_risk([row(right=True), row(claimed=False)]) == pytest.approx((0 + 1 / 2) / 2)
    first, last = row(right=True, confidence=0.9), row(confidence=0.1)
    assert area_under_risk([first, last]) < area_under_risk(
        [replace(first, confidence=0.1), replace(last, confidence=0.9)]
    )
    tied = [replace(first, confidence=None), replace(last, confidence=None)]
    assert area_under_risk(tied) == pytest.approx(0.5)


def test_a_threshold_for_a_coverage_silences_what_is_below_it() -> None:
    rows = [row(right=True, confidence=9), row(confidence=5), row(right=True, confidence=2)]
    threshold = threshold_for(1 / 3, rows)
    assert [each.claimed for each in silenced(rows, threshold, "x")] == [True, False, False]


# reports


def test_the_threshold_of_the_baseline_is_chosen_on_the_other_half() -> None:
    ours = [row(right=True, set=name, id=f"{name}{n}", claimed=n == 0) for name in "ab" for n in range(2)]
    scores = {"a": (9.0, 8.0), "b": (3.0, 2.0)}
    always = [
        row(right=True, set=name, id=f"{name}{n}", system=BASELINE, confidence=score)
        for name, both in scores.items()
        for n, score in enumerate(both)
    ]
    silent = report.systems([*ours, *always])[report.SILENT]
    # Half of a's claims are above 9, and none of b's; all of a's are above b's threshold of 3.
    assert {each.id: each.claimed for each in silent} == {"a0": True, "a1": True, "b0": False, "b1": False}


def test_what_changed_between_two_runs_is_listed() -> None:
    before = [row(id="q1"), row(id="q2", right=True), row(id="q3", answerable=False, claimed=False)]
    now = [row(id="q1", right=True), row(id="q2", right=True), row(id="q3", answerable=False)]
    lines = list(report.changes(before, now))
    assert lines[2:] == ["    2 of 3 changed", "silent → false  q3 what: ?", "wrong → right  q1 what: ?"]


def test_rows_come_back_from_a_file(tmp_path: Path) -> None:
    rows = [row(right=True, confidence=0.5), row(claimed=False, ended="limit")]
    report.append_rows(tmp_path / "rows", rows[:1])
    report.append_rows(tmp_path / "rows", rows[1:])
    assert report.read_rows(tmp_path / "rows") == rows
    assert [each.verdict for each in rows] == ["right", "limit"]


# asking


@dataclass(frozen=True)
class _Sure(QuestionAnswer):
    confidence: float = 0.0


@dataclass(frozen=True)
class _Coming(SearchResult):
    closest: tuple[Any, ...] = ()


def test_confidence_and_closest_passages_are_read_where_a_result_has_them() -> None:
    plain = SearchResult(answer="x", answers=(QuestionAnswer("q", "x", ()),))
    assert confidence_of(plain) is None
    assert closest_of(plain) == []
    sure = SearchResult(answer="x", answers=(_Sure("q", "x", (), True, 0.9), _Sure("p", "x", (), True, 0.6)))
    assert confidence_of(sure) == 0.6

    near = _Coming(
        answer="",
        closest=tuple(
            SimpleNamespace(question=q, node=f"n{n}", quote=f"{q} {n}") for q in ("a", "b") for n in range(4)
        ),
    )
    assert closest_of(near) == [Passed(f"{q} {n}", (f"n{n}",)) for q in ("a", "b") for n in range(3)]


def test_passages_have_twelve_lines_and_say_where_they_are_from() -> None:
    assert [(each.node, len(each.text.split("\n"))) for each in cut("a", "x\n" * 14)] == [("a", 12), ("a", 3)]
    assert list(cut("a", "\n\n")) == []


def test_a_question_is_asked_of_a_tree_and_judged() -> None:
    with Tree.create(":memory:", title="kitchen") as tree:
        tree.add(Node(id="jar", title="Cookies", content="Cookies are kept in a jar.", kind="page"), ".")
        made = ask("set", COOKIES, True, "s", tree)
        absent = ask("set", replace(COOKIES, text="Who is the king of Norway?"), False, "s", tree)
    assert (made.verdict, made.system, made.text) == ("right", OURS, "Cookies are kept in a jar.")
    assert made.shown and made.length == len(made.text)
    assert absent.verdict == "silent"


@pytest.mark.parametrize(
    ("ended", "verdict"), [("answered", "right"), ("exhausted", "right"), ("limit", "limit")]
)
def test_what_a_search_had_at_a_limit_is_no_claim_but_is_shown(
    ended: Ended, verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "They are in a jar."
    result = SearchResult(answer=text, answers=(QuestionAnswer("q", text, ()),), ended=ended)
    monkeypatch.setattr("benchmarks.answers.asking.search", lambda *_, **__: result)
    with Tree.create(":memory:") as tree:
        made = ask("set", COOKIES, True, "s", tree)
    assert (made.verdict, made.shown) == (verdict, True)


def test_the_wrong_source_is_the_one_that_is_named_or_the_next() -> None:
    sources = {name: Nodes(name, []) for name in "abc"}
    some = QuestionSet("set", [], sources, {"a": "c"})
    assert [some.other(name) for name in "abc"] == ["c", "c", "a"]


def _write(file: Path, rows: Sequence[dict[str, object]]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(row) + "\n" for row in rows)
    if file.suffix == ".gz":
        file.write_bytes(gzip.compress(text.encode()))
    else:
        file.write_text(text)


def test_adversarial_questions_are_answered_by_nothing_and_conversations_are_apart(tmp_path: Path) -> None:
    said: dict[str, object] = {
        "session": 1,
        "date": "May",
        "speaker": "Ann",
        "text": "I left.",
        "caption": None,
    }
    _write(
        tmp_path / "memory" / "locomo_turns.jsonl", [{"id": f"c{n}/1", "conv": f"c{n}"} | said for n in "12"]
    )
    asked: dict[str, object] = {"conv": "c1", "query": "Who left?", "gold": ["c1/1"]}
    _write(
        tmp_path / "memory" / "locomo.jsonl",
        [
            asked | {"id": "c1-q0", "category": "single-hop", "answer": "Ann"},
            asked | {"id": "c1-q1", "category": "adversarial", "answer": None},
        ],
    )
    found = load("locomo", tmp_path, tmp_path)
    assert [(each.answerable, sorted(each.gold)) for each in found.questions] == [
        (True, ["c1/1"]),
        (False, []),
    ]
    assert [passage.node for passage in found.sources["c1"].passages()] == ["c1/1"]
    assert found.other("c1") == "c2"


def test_the_wrong_filing_is_of_another_company(tmp_path: Path) -> None:
    names = ["ACME_2020", "ACME_2021", "ZINC_2020"]
    _write(
        tmp_path / "documents" / "financebench_pages.jsonl.gz",
        [{"id": f"{name}/p0", "doc": name, "page": 0, "text": "Sales"} for name in names],
    )
    _write(
        tmp_path / "documents" / "financebench.jsonl",
        [{"id": name, "doc": name, "query": "?", "answer": "1", "gold": [f"{name}/p0"]} for name in names],
    )
    found = load("financebench", tmp_path, tmp_path)
    assert [found.other(name) for name in names] == ["ZINC_2020", "ZINC_2020", "ACME_2020"]


@pytest.mark.parametrize("name", verify.names())
def test_a_question_is_of_a_named_source_has_the_fields_and_patterns_that_compile(name: str) -> None:
    asked = verify.questions(name)
    assert {row["source"] for row in asked} == {source["source"] for source in verify.sources(name)}
    assert len({row["id"] for row in asked}) == len(asked)
    for row in asked:
        assert row.keys() - {"parts"} == verify.FIELDS
        assert row["kind"] in verify.KINDS
        assert row["answerable"] == bool(row["pattern"]) == bool(row["gold"])
        for pattern in (row["pattern"], *row.get("parts", ())):
            re.compile(pattern)


def test_the_held_out_sets_share_no_package_with_the_others() -> None:
    held = {source["package"] for name in HELD for source in verify.sources(name.removeprefix("own-"))}
    given = {source["package"] for name in OWN for source in verify.sources(name.removeprefix("own-"))}
    assert not held & given


def test_the_held_out_set_is_asked_by_its_name_alone_and_never_fitted_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert set(HELD) <= set(SETS)
    assert not set(HELD) & set(OWN)
    monkeypatch.setattr(fit, "rows", lambda *_: pytest.fail("read a set"))
    for name in HELD:
        place = str(tmp_path)
        monkeypatch.setattr("sys.argv", ["fit", "--work", place, "--data", place, "--sets", name])
        with pytest.raises(SystemExit):
            fit.main()
        assert f"invalid choice: '{name}'" in capsys.readouterr().err


def test_each_source_is_asked_its_own_questions_and_those_of_another(tmp_path: Path) -> None:
    def page(text: str) -> Nodes:
        return Nodes("pages", [(Node(id="p", title="page", content=text, kind="page"), ".")])

    questions = [
        replace(COOKIES, id="q1", source="a"),
        replace(COOKIES, id="q2", source="b", answerable=False),
    ]
    some = QuestionSet(
        "set", questions, {"a": page("Cookies are kept in a jar."), "b": page("Bread is baked in an oven.")}
    )
    found = [each for name in "ab" for each in rows(some, name, tmp_path, wrong=True, limit=None)]
    assert [(each.id, each.asked, each.system, each.verdict) for each in found] == [
        ("q1", "a", OURS, "right"),
        ("q1", "a", BASELINE, "right"),
        ("q1", "b", OURS, "silent"),
        ("q1", "b", BASELINE, "silent"),
        ("q2", "b", OURS, "silent"),
        ("q2", "b", BASELINE, "silent"),
    ]
    assert len(list((tmp_path / "trees").iterdir())) == 2


def test_each_source_counts_the_same_in_a_fit() -> None:
    def row(source: str, own: str = "", *, is_small: bool = False) -> Any:
        return SimpleNamespace(source=source, own=own or source, is_small=is_small)

    given = [row("large")] * 30 + [row("small")] * 10 + [row("tiny"), row("small", "large")]
    weights = fit.weight_of_sources([*given, row("tiny", is_small=True)])
    assert weights["large"] * 30 == pytest.approx(weights["small"] * 10)
    assert weights["tiny"] == pytest.approx(weights["small"] * 10 / fit.LEAST_OF_SOURCE)
