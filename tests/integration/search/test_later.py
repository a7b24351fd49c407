"""Where two sources contradict, the later one answers and the earlier one is named with its day or version."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from metatree_agents.tools.locations import earlier_lines, place_text
from metatree_memory_tools import build_tree
from metatree_memory_tools.conversations import ConversationLog

from metatree import Node, SearchResult, Tree, search
from metatree.notes.notes import remember
from metatree.result import QuestionAnswer

pytestmark = pytest.mark.integration

FILLER = ("The soup is cooked on the stove.", "Birds sit in the old tree.", "Paint dries within an hour.")


def ask(tree: Tree, question: str) -> SearchResult:
    # Small trees say little of how rare a word is: what is asked here is which of two is claimed, not whether.
    return search([question], tree=tree, journal=":memory:", sure=0.02)


def one(tree: Tree, question: str) -> QuestionAnswer:
    (answer,) = ask(tree, question).answers
    return answer


def mail(folder: Path, letters: Iterable[tuple[str, str]]) -> Tree:
    """Build a tree of letters: (date, text)."""
    folder.mkdir()
    for number, (date, text) in enumerate(letters):
        stamp = f"Date: {date}\n" if date else ""
        (folder / f"{number}.eml").write_text(f"From: Ann <ann@x.org>\n{stamp}Subject: News\n\n{text}\n")
    for number, text in enumerate(FILLER):
        (folder / f"other{number}.md").write_text(text)
    return build_tree(folder)


OLD, NEW = "Mon, 03 Mar 2025 09:00:00 +0000", "Tue, 06 May 2025 09:00:00 +0000"
CASES = [
    (
        "What is the code of the garage door?",
        "The code of the garage door is 4711.",
        "The code of the garage door is 9902.",
        "9902",
    ),
    (
        "How many lamps are in the cellar?",
        "There are 12 lamps in the cellar.",
        "In the cellar we now have 15 lamps.",
        "15",
    ),
    (
        "When does the choir rehearse?",
        "The choir rehearses on Mondays.",
        "The choir rehearses on Thursdays now.",
        "Thursdays",
    ),
    (
        "Who repairs the boiler?",
        "The boiler is repaired by Bob Ray.",
        "The boiler is repaired by Ida Moss.",
        "Ida",
    ),
    (
        "Is the bridge closed for lorries?",
        "The bridge is closed for lorries.",
        "The bridge is not closed for lorries.",
        "not",
    ),
    (
        "What colour has the front gate?",
        "The front gate has the colour green.",
        "The front gate has the colour blue.",
        "blue",
    ),
    (
        "What is the budget of the summer party?",
        "The budget of the summer party is $900.",
        "The budget of the summer party rose to $1,250.",
        "1,250",
    ),
    (
        "When is the harbour meeting?",
        "The harbour meeting is on June 3.",
        "The harbour meeting was moved to June 17.",
        "17",
    ),
]


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize(("question", "before", "after", "value"), CASES)
def test_the_later_letter_answers_whatever_the_order(
    tmp_path: Path, question: str, before: str, after: str, value: str, order: int
) -> None:
    with mail(tmp_path / "mail", [(OLD, before), (NEW, after)][::order]) as tree:
        answer = one(tree, question)
    assert value in answer.answer and before not in answer.answer
    (said,) = answer.earlier
    assert said.at == "2025-03-03" and before in said.quote and said.place != answer.sources[0].place
    assert list(earlier_lines(answer)) == [
        f"Earlier (2025-03-03, {place_text(said.place, said.lines)}): {before}"
    ]


@pytest.mark.parametrize("question", [case[0] for case in CASES[:3]])
@pytest.mark.parametrize("dates", [(OLD, OLD), ("", ""), (OLD, ""), ("", NEW)])
def test_of_equal_and_missing_dates_none_is_later(
    tmp_path: Path, question: str, dates: tuple[str, str]
) -> None:
    case = next(case for case in CASES if case[0] == question)
    with mail(tmp_path / "mail", [(dates[0], case[1]), (dates[1], case[2])]) as tree:
        assert all(not answer.earlier for answer in ask(tree, question).answers)


@pytest.mark.parametrize(
    ("question", "one_text", "other"),
    [
        (
            "What is the code of the garage door?",
            "The code of the garage door is 4711.",
            "The code of the attic door is 9902.",
        ),
        (
            "How many lamps are in the cellar?",
            "There are 12 lamps in the cellar.",
            "There are 12 lamps in the cellar, all new.",
        ),
        (
            "How many lamps are in the cellar?",
            "There are 12 lamps in the cellar.",
            "In the cellar are 3 lamps and 12 chairs, or were: 12 lamps.",
        ),
        (
            "What is my favourite cake?",
            "My favourite cake is lemon.",
            "Is your favourite cake still lemon?",
        ),
    ],
)
def test_what_speaks_of_something_else_or_says_the_same_is_not_earlier(
    tmp_path: Path, question: str, one_text: str, other: str
) -> None:
    with mail(tmp_path / "mail", [(OLD, other), (NEW, one_text)]) as tree:
        assert all(not answer.earlier for answer in ask(tree, question).answers)


def chat(folder: Path, turns: Iterable[tuple[str, str, str]]) -> Tree:
    folder.mkdir()
    lines = [json.dumps({"speaker": who, "text": text, "timestamp": at}) for who, at, text in turns]
    (folder / "chat.jsonl").write_text("\n".join(lines))
    for number, text in enumerate(FILLER):
        (folder / f"other{number}.md").write_text(text)
    return build_tree(folder)


def test_in_a_chat_the_date_counts_and_not_the_place_in_the_file(tmp_path: Path) -> None:
    turns = [
        ("Ann", "2025-05-06T09:00", "The spare key is in box 7."),
        ("Bob", "2025-03-03T09:00", "The spare key is in box 4."),
    ]
    with chat(tmp_path / "chat", turns) as tree:
        answer = one(tree, "In which box is the spare key?")
    assert "box 7" in answer.answer and [said.at for said in answer.earlier] == ["2025-03-03"]


@pytest.mark.parametrize("order", [1, -1])
def test_turns_of_one_minute_follow_each_other(tmp_path: Path, order: int) -> None:
    turns = [
        ("Ann", "2025-05-06T09:00", "The spare key is in box 4."),
        ("Ann", "2025-05-06T09:00", "The spare key is in box 7."),
    ][::order]
    with chat(tmp_path / "chat", turns) as tree:
        answer = one(tree, "In which box is the spare key?")
    assert turns[1][2] in answer.answer and turns[0][2] in answer.earlier[0].quote


def test_what_two_say_of_themselves_is_no_contradiction(tmp_path: Path) -> None:
    turns = [
        ("Ann", "2025-03-03T09:00", "My locker has the number 4."),
        ("Bob", "2025-05-06T09:00", "My locker has the number 7."),
    ]
    with chat(tmp_path / "chat", turns) as tree:
        assert not one(tree, "What number has my locker?").earlier


def test_what_a_model_said_is_never_later(tmp_path: Path) -> None:
    turns = [
        ("user", "2025-03-03T09:00", "The tank holds 40 litres."),
        ("assistant", "2025-05-06T09:00", "The tank holds 55 litres."),
    ]
    with chat(tmp_path / "chat", turns) as tree:
        assert all(not a.earlier for a in ask(tree, "How many litres does the tank hold?").answers)


def document(folder: Path, **files: str) -> Tree:
    folder.mkdir()
    for name, text in files.items():
        (folder / f"{name}.md").write_text(text)
    for number, text in enumerate(FILLER):
        (folder / f"other{number}.md").write_text(text)
    return build_tree(folder)


@pytest.mark.parametrize(
    ("newer", "older", "shown"),
    [
        ("2.1.0 (2025-05-06)", "2.0.0 (2025-03-03)", "2025-03-03"),
        ("Version 2.10", "Version 2.9", "2.9"),
        ("May 6, 2025", "March 3, 2025", "2025-03-03"),
    ],
)
@pytest.mark.parametrize("order", [1, -1])
def test_in_a_changelog_the_later_release_answers(
    tmp_path: Path, newer: str, older: str, shown: str, order: int
) -> None:
    releases = [
        f"## {newer}\n\n### Changed\n\n- The default timeout of the pump is 30 seconds.\n",
        f"## {older}\n\n### Added\n\n- The default timeout of the pump is 10 seconds.\n",
    ][::order]
    with document(tmp_path / "docs", CHANGELOG="# Changes\n\n" + "\n".join(releases)) as tree:
        answer = one(tree, "What is the default timeout of the pump?")
    assert "30 seconds" in answer.answer and "10 seconds" not in answer.answer
    assert [(said.at, said.place) for said in answer.earlier] == [(shown, "CHANGELOG.md")]


def test_versions_of_two_files_cannot_be_compared(tmp_path: Path) -> None:
    texts = {
        "pump": "# Pump\n\n## 2.0\n\nThe default timeout of the pump is 30 seconds.\n\n## 1.0\n\nNew.\n",
        "old": "# Old\n\n## 1.5\n\nThe default timeout of the pump is 10 seconds.\n\n## 1.0\n\nNew.\n",
    }
    with document(tmp_path / "docs", **texts) as tree:
        assert not one(tree, "What is the default timeout of the pump?").earlier


def test_the_front_matter_of_a_document_dates_it(tmp_path: Path) -> None:
    texts = {
        "a": "---\ntitle: Rates\ndate: 2025-05-06\n---\n\n# Rates\n\nThe rent of the hall is 80 euros.\n",
        "b": "---\ntitle: Rates\ndate: 2024-01-01\n---\n\n# Rates\n\nThe rent of the hall is 65 euros.\n",
    }
    with document(tmp_path / "docs", **texts) as tree:
        answer = one(tree, "What is the rent of the hall?")
    assert "80 euros" in answer.answer and [said.at for said in answer.earlier] == ["2024-01-01"]


def test_a_day_to_come_is_no_date(tmp_path: Path) -> None:
    texts = {
        "a": "---\ndate: 2025-05-06\n---\n\n# Rates\n\nThe rent of the hall is 80 euros.\n",
        "b": "---\ndate: 2099-01-01\n---\n\n# Rates\n\nThe rent of the hall is 65 euros.\n",
    }
    with document(tmp_path / "docs", **texts) as tree:
        assert not one(tree, "What is the rent of the hall?").earlier


def test_no_file_is_later_than_what_the_tree_was_told(tmp_path: Path) -> None:
    """Whoever wrote it chose its date."""
    day = datetime(2025, 3, 3, tzinfo=UTC)
    for date, wins in (("2025-05-06", False), ("2024-05-06", True)):
        text = f"---\ndate: {date}\n---\n\n# Rates\n\nThe rent of the hall is 80 euros.\n"
        with document(tmp_path / date, a=text) as tree:
            remember(tree, "The rent of the hall is 65 euros.", who="ann", evidence=False, now=day.timestamp)
            answer = one(tree, "What is the rent of the hall?")
        assert [said.at for said in answer.earlier] == ([date] if wins else [])
        assert not wins or "65 euros" in answer.answer


def test_of_memories_the_one_said_last_answers() -> None:
    tree = Tree.create(":memory:")
    tree.add_many((Node(f"n{n}", f"Note {n}", content=text), ".") for n, text in enumerate(FILLER))
    day = datetime(2025, 3, 3, tzinfo=UTC)
    for text, after in (("The wifi password is on card 3.", 0), ("The wifi password is on card 8.", 60)):
        remember(tree, text, who="ann", evidence=False, now=(day + timedelta(days=after)).timestamp)
    question = "On which card is the wifi password?"
    assert "card 8" in one(tree, question).answer
    # Who says the first one again says that it holds again.
    remember(
        tree,
        "The wifi password is on card 3.",
        who="bob",
        evidence=False,
        now=(day + timedelta(days=90)).timestamp,
    )
    answer = one(tree, question)
    assert "card 3" in answer.answer and [said.at for said in answer.earlier] == ["2025-05-02"]


@settings(max_examples=15, deadline=None)
@given(days=st.lists(st.integers(0, 2_000), min_size=2, max_size=5, unique=True), seed=st.integers())
def test_the_latest_of_many_answers_in_whatever_order_they_came(days: list[int], seed: int) -> None:
    tree = Tree.create(":memory:")
    tree.add_many((Node(f"n{n}", f"Note {n}", content=text), ".") for n, text in enumerate(FILLER))
    log = ConversationLog(tree, "house")
    random.Random(seed).shuffle(days)
    for day in days:
        at = datetime(2020, 1, 1, tzinfo=UTC) + timedelta(days=day)
        log.say("Ann", f"The ladder costs {100 + day} euros.", at=at)
    answer = one(tree, "How many euros does the ladder cost?")
    assert f"{100 + max(days)} euros" in answer.answer
    shown = [said.at for said in answer.earlier]
    earlier = sorted(days)[:-1][::-1]
    assert (
        shown == [str((datetime(2020, 1, 1) + timedelta(days=day)).date()) for day in earlier][: len(shown)]
    )
    assert shown


def test_an_earlier_statement_that_is_gone_is_not_named(tmp_path: Path) -> None:
    with mail(tmp_path / "mail", [(OLD, CASES[0][1]), (NEW, CASES[0][2])]) as tree:
        assert one(tree, CASES[0][0]).earlier
        (tmp_path / "mail" / "0.eml").unlink()
        tree.refresh()
        assert not one(tree, CASES[0][0]).earlier
