"""`sure`: how likely an answer must be right to be claimed, and what comes closest to what is not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from metatree_memory_tools import build_tree
from metatree_routers.passages.asked import read_question
from metatree_routers.passages.candidates import Text
from metatree_routers.passages.features import FEATURES, PassageCandidate, features
from metatree_routers.passages.ranking import joined, rank_passages

from metatree import Evidence, Node, Passage, Scored, SearchResult, Traits, Tree, UserError, search
from metatree.protocols import ABSTAINED
from metatree.searches._menu import MenuMaker

PAGES = {
    "storage": "The cache is kept in one file. Its largest size is 64 MB, and older entries leave it first.",
    "network": "Requests are tried three times. Between two tries it waits for two seconds.",
    "colours": "Warnings are printed in red, and errors in bold red.",
    "install": "Install it with pip. Python 3.11 or later is needed.",
}


@pytest.fixture
def tree() -> Tree:
    tree = Tree.create(":memory:")
    for name, text in PAGES.items():
        tree.add(Node(id=name, title=name.title(), content=text, kind="section"))
    return tree


def _ask(tree: Tree, question: str, sure: float) -> SearchResult:
    return search(question, tree=tree, sure=sure, journal=":memory:")


def test_all_is_claimed_at_0_and_next_to_nothing_at_1(tree: Tree) -> None:
    question = "What is the largest size of the cache?"
    claimed, closest = _ask(tree, question, 0.0), _ask(tree, question, 1.0)
    assert (claimed.ended, claimed.open_questions) == ("answered", ())
    assert "64 MB" in claimed.answer and claimed.answers[0].sources[0].node == "storage"
    confidence = claimed.answers[0].confidence
    assert confidence is not None and 0.0 < confidence < 1.0
    assert (closest.ended, closest.answer, closest.open_questions) == ("exhausted", "", (question,))
    first = closest.closest[0]
    assert (first.node, first.place, first.lines, first.question) == ("storage", "storage", (1, 1), question)
    assert first.quote in PAGES["storage"] and first.score == pytest.approx(confidence, abs=1e-3)


@pytest.mark.parametrize(
    ("question", "statement"),
    [
        ("Does the app support PostgreSQL?", "The app supports PostgreSQL."),
        ("Is tea hot?", "Tea is hot!"),
        ("Do you open on Sundays?", "We open on Sundays."),
    ],
)
def test_a_sentence_with_no_other_words_answers_yes(question: str, statement: str) -> None:
    def answer(text: str) -> str:
        tree = Tree.create(":memory:")
        tree.add(Node(id="note", title="Note", content=text, kind="section"))
        return search(question, tree=tree, journal=":memory:").answer

    assert (answer(statement), answer(question)) == (statement, "")


NOTES = {
    "shop": "We open at 9 on weekdays and at 10 on Saturdays.\n\nParcels are handed over at the side door.",
    "garden": "The roses are cut back in February. Ann waters the beds on Mondays.",
    "car": "The car is insured with Alba until 3 May 2027. The spare key is in the blue tin.",
}


@pytest.fixture
def notes() -> Tree:
    tree = Tree.create(":memory:")
    for name, text in NOTES.items():
        tree.add(Node(id=name, title=name.title(), content=text))
    return tree


@pytest.mark.parametrize(
    ("question", "note"),
    [
        ("When do we open?", "shop"),
        ("Where are parcels handed over?", "shop"),
        ("Where is the spare key?", "car"),
        ("Until when is the car insured?", "car"),
        ("When are the roses cut back?", "garden"),
    ],
)
def test_a_plain_question_to_a_few_notes_is_answered_at_the_default(
    notes: Tree, question: str, note: str
) -> None:
    found = search(question, tree=notes, journal=":memory:")
    assert found.ended == "answered" and found.answers[0].sources[0].node == note


@pytest.mark.parametrize(
    "question",
    ["When do we close?", "What colour is the car?", "How much is the insurance?", "Where do I park?"],
)
def test_a_few_notes_that_do_not_say_it_are_not_claimed_at_the_default(notes: Tree, question: str) -> None:
    assert not search(question, tree=notes, journal=":memory:").answers


REFUNDS = {
    "policy": "Refunds up to 100 euros are approved by Ann Miller.",
    "desk": "Bob Stone approves refunds over 100 euros.",
    "hours": "The desk opens at 9 and closes at 17.",
}


def test_two_answers_in_three_notes_are_no_reason_to_be_silent() -> None:
    with Tree.create(":memory:") as tree:
        for name, text in REFUNDS.items():
            tree.add(Node(id=name, title=name.title(), content=text))
        found = search("Who approves refunds?", tree=tree, journal=":memory:")
        assert found.ended == "answered" and found.answers[0].sources[0].node in ("policy", "desk")
        assert not search("Who approves trips?", tree=tree, journal=":memory:").answers


def test_what_is_not_in_the_code_is_not_claimed_from_code_with_its_names(tmp_path: Path) -> None:
    (tmp_path / "wait.py").write_text("def wait_for_server():\n    timeout = 30\n    return timeout\n")
    (tmp_path / "README.md").write_text("# Waiting\n\nIt waits.\n")
    with build_tree(str(tmp_path)) as tree:
        question = "Which disks made the author change wait_for_server?"
        assert not search(question, tree=tree, journal=":memory:").answers


def test_a_book_in_one_line_answers_with_some_of_its_sentences() -> None:
    said = "The lamp of the tower was lit by Ann Keeper in 1911. "
    other = "The ship was rebuilt in the yard of the town, and sailed again in the spring. "
    book = Node(id="book.txt", title="Book", content=other * 60 + said + other * 60)
    with Tree.create(":memory:") as tree:
        tree.add(book)
        found = search("Who lit the lamp of the tower?", tree=tree, journal=":memory:", sure=0.0)
        quote = found.answers[0].sources[0].quote
        assert said.strip() in quote and len(quote) < 2500 and quote.strip().endswith(".")
        assert quote in str(book.content)


CHANGES = """\
# Changes

## 2.0.0 (2019-09-07)

### Added

- Literals of arrays.

- Trigonometry in degrees.

## 1.0.0 (2016-02-01)

- Assignments may be nested.
"""


@pytest.mark.parametrize("name", ["CHANGELOG.md", "changelog"])
def test_the_day_of_a_change_is_shown_with_it(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(CHANGES)
    (tmp_path / "README.md").write_text("# Arrays\n\nLiterals of arrays are written in brackets: `[1, 2]`.\n")
    with build_tree(str(tmp_path)) as tree:
        found = search("When were literals of arrays added?", tree=tree, journal=":memory:", sure=0.0)
        assert "2019-09-07" in found.answer and "Literals of arrays." in found.answer


def test_a_number_beside_another_thing_is_less_likely_what_was_asked_for() -> None:
    asked = read_question("How many states may be on the stack?")
    said = (
        "There may be {} states on the stack of a lexer, and each is kept until it is popped by the {} rules."
    )
    texts = [
        Text(Node(id="states", title="Lexer"), said.format("20", "given"), 1.0),
        Text(Node(id="rules", title="Lexer"), said.format("more", "20"), 1.0),
    ]
    by_node = {
        text.node.id: rank_passages(asked, [text], dict.fromkeys(asked.weights, 1), 4, None)[0][1]
        for text in texts
    }
    assert by_node["rules"] < 0.8 * by_node["states"]


def test_the_threshold_is_the_confidence(tree: Tree) -> None:
    question = "How long does it wait between two tries?"
    confidence = _ask(tree, question, 0.0).answers[0].confidence
    assert confidence is not None
    assert _ask(tree, question, confidence - 0.01).ended == "answered"
    assert _ask(tree, question, confidence + 0.01).ended == "exhausted"


def test_a_question_that_stays_open_reads_a_few_nodes_and_ends_at_no_limit(tree: Tree) -> None:
    tree.add_many(
        (Node(id=f"n{n}", title=f"Note {n}", content=f"Who wants a company for town {n}?"), ".")
        for n in range(300)
    )
    found = _ask(tree, "Who founded the company, and in which town?", 1.0)
    assert found.ended == "exhausted" and not found.answers
    assert found.usage.reads <= 45 and found.usage.router_calls <= 45, "no more than there are candidates"


@pytest.mark.parametrize("sure", [-0.1, 1.1, float("nan")])
def test_what_is_no_likelihood_is_refused(tree: Tree, sure: float) -> None:
    with pytest.raises(UserError, match=r"sure=.*: use a number from 0 to 1"):
        _ask(tree, "Where?", sure)


def test_the_likelihood_falls_along_the_ranking() -> None:
    asked = read_question("What does a request wait for between two tries?")
    texts = [Text(Node(id=name, title=name), text) for name, text in PAGES.items()]
    ranked = rank_passages(asked, texts, {}, len(texts), None)
    scores = [score for _, score in ranked]
    assert ranked[0][0].node == "network"
    assert scores == sorted(scores, reverse=True) and all(0.0 <= score <= 1.0 for score in scores)


def test_a_file_that_a_program_made_in_one_line_is_no_passage() -> None:
    asked = read_question("What does a request wait for between two tries?")
    node = Node(id="searchindex.js", title="searchindex.js")
    index = "index({request:[0,1], wait:[2], tries:[3], between:[4], two:[5], " + "word:[7], " * 400 + "})"
    network = Text(Node(id="network", title="Network"), PAGES["network"])
    for content, found in ((index, {"network"}), (index[:70], {"network", "searchindex.js"})):
        ranked = rank_passages(asked, [Text(node, content, 1.0), network], {}, 2, None)
        assert {candidate.node for candidate, _ in ranked} == found


def test_a_book_in_one_line_is_half_as_likely_to_answer() -> None:
    asked = read_question("How long does it wait between two tries?")

    def likely(more: int) -> float:
        book = Text(Node(id="book", title="Book"), PAGES["network"][:-1] + " and so on" * more, 1.0)
        return rank_passages(asked, [book], {}, 1, None)[0][1]

    assert likely(600) == pytest.approx(likely(500) / 2, rel=0.05)


@pytest.mark.parametrize(("title", "answers"), [("Tries", False), ("Wait between two tries", True)])
def test_a_title_that_says_the_question_speaks_for_what_stands_below(title: str, answers: bool) -> None:
    asked = read_question("How long is the wait between two tries?")
    body = "It is two seconds, and four when the server is busy."
    row = features(asked, [_passage(title, body)], dict.fromkeys(asked.weights, 1.0), None)[0]
    assert bool(row[FEATURES.index("title_cover")] > 0.7) is answers


def test_what_has_none_of_the_kind_that_is_asked_for_is_told_from_a_question_for_no_kind() -> None:
    def missing(question: str, text: str) -> float:
        asked = read_question(question)
        row = features(asked, [_passage("n", text)], dict.fromkeys(asked.weights, 1.0), None)[0]
        return float(row[FEATURES.index("kind_missing")])

    assert missing("How many tries are made?", "Tries are made until one works.") == 1.0
    assert missing("How many tries are made?", "3 tries are made.") == missing("Tries?", "No.") == 0.0


def _passage(title: str, text: str) -> PassageCandidate:
    return PassageCandidate("n", title, "n", 0, 0, text.count("\n"), (), text, False, 1.0)


def test_the_one_line_of_a_long_text_that_answers_is_found_behind_many_short_texts(tree: Tree) -> None:
    tree.add_many(
        (Node(id=f"n{n}", title=f"Version {n}", content=f"Version {n} of the editor.", kind="section"), ".")
        for n in range(120)
    )
    words = "On a fine day somebody mended what somebody else had broken. "
    release = "Version 0.9.1 was released on 11 January 2013."
    long = "\n\n".join([words * 4] * 150 + [release] + [words * 4] * 150)
    tree.add(Node(id="log", title="Log", content=long, kind="section"))
    found = _ask(tree, "When was version 0.9.1 of the editor released?", 1.0)
    assert any(release in passage.quote for passage in found.closest)


class _Known(Evidence):
    """Evidence that finds every node, and knows how likely the passages of some answer."""

    traits = Traits(may_abstain=True, gives_passages=True)

    def __init__(self, **likely: float) -> None:
        self._likely = likely

    def score(self, questions: Sequence[str], **where: Any) -> list[Scored]:
        return [Scored(name, 0.9) for name in ("a", "a/x", "a/y", "b", "b/z")]

    def passages(self, question: str, **where: Any) -> list[Passage]:
        return [Passage(f"{n[0]}/{n[1]}", n, n, 0, (1, 1), p) for n, p in self._likely.items()]


@pytest.mark.parametrize("by_passages", [True, False])
def test_a_menu_scores_by_the_likeliest_passage_below_each_option(by_passages: bool) -> None:
    tree = Tree.create(":memory:")
    for name in ("a", "a/x", "a/y", "b", "b/z"):
        tree.add(Node(id=name, title=name, content=name if "/" in name else None), parent=name[:-2] or ".")
    menus = MenuMaker(tree, _Known(ax=0.3, ay=0.2, bz=0.01), accepts=None, by_passages=by_passages)
    at_root, at_b = (
        {option.id: option.score for option in menus.make(node, options, ("q",), {}, jumps=False).options}
        for node, options in ((".", ["a", "b"]), ("b", ["b/z"]))
    )
    if (
        by_passages
    ):  # what is next to unlikely says that it cannot answer, and other branches have no part in a menu
        assert at_root == {"a": 0.3, "b": 0.0}
        assert at_b == {"b/z": 0.0}
    else:
        assert (at_root, at_b) == ({"a": 0.9, "b": 0.9}, {"b/z": 0.9})


def test_passages_outside_of_where_a_search_is_are_not_in_its_ranking() -> None:
    tree = Tree.create(":memory:")
    for name in ("a", "a/x", "b", "b/z"):
        tree.add(Node(id=name, title=name, content=name if "/" in name else None), parent=name[:-2] or ".")
    menus = MenuMaker(tree, _Known(ax=0.3, bz=0.2), accepts=None, by_passages=True)
    assert [scored.node_id for scored in menus._ranking("b", ("q",), 10) if scored.score > ABSTAINED] == [
        "b/z"
    ]


def test_an_answer_and_a_closest_passage_go_on_to_what_their_colon_announces() -> None:
    steps = "\n".join(f"Note {n} is about cups and saucers." for n in range(11))
    commands = "\n".join(f"    kettle step{n}" for n in range(16))
    content = f"{steps}\nTo descale the kettle, run these commands:\n\n{commands}\n\nThen rest."
    tree = Tree.create(":memory:")
    tree.add(Node("care.md", "care.md", content=content))
    tree.add(Node("other.md", "other.md", content="Saucers are white."))
    for sure in (0.0, 1.0):
        result = search("How do I descale the kettle?", tree=tree, sure=sure)
        shown = result.answer if sure == 0.0 else result.closest[0].quote
        assert "To descale" in shown
        assert "kettle step15" in shown


def test_a_passage_goes_on_with_the_next_best_where_it_ends_and_not_with_one_far_away() -> None:
    lines = [f"line {n}" for n in range(60)]
    content = "\n".join(lines)

    def passage(first: int, last: int) -> PassageCandidate:
        text = "\n".join(lines[first : last + 1])
        return PassageCandidate("n", "n", "n", content.index(text), first, last, (), text, False, 1.0)

    of = Text(Node(id="n", title="n"), content)
    whole = joined([passage(10, 15), passage(17, 20)], of)
    assert (whole.first, whole.last, whole.text) == (10, 20, "\n".join(lines[10:21]))
    assert joined([passage(10, 15), passage(40, 45)], of) == passage(10, 15)
    assert joined([passage(10, 15), passage(16, 50)], of) == passage(10, 15), "too long together"


class _Overlapping(Evidence):
    """Evidence whose passages share lines, of one node and of a file with its section."""

    def score(self, questions: Sequence[str], **where: Any) -> list[Scored]:
        return []

    def passages(self, question: str, *, k: int = 3, **where: Any) -> list[Passage]:
        file, section = "page.md", "page.md#lamps"
        places = [(section, (1, 4)), (file, (3, 5)), (section, (4, 6)), (section, (7, 8)), (file, (1, 2))]
        places += [(section, (9, 9)), (section, (10, 10))]
        return [Passage(node, node, f"{lines}", 0, lines, 0.5) for node, lines in places][:k]


def test_no_two_of_the_closest_passages_share_lines_and_the_next_take_their_places(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("# Page\n\n# Lamps\n\n" + "A lamp.\n" * 20)
    with build_tree(tmp_path) as tree:
        found = search("Who pays?", tree=tree, evidence=_Overlapping(), sure=1.0, journal=":memory:")
    shown = [(passage.node, passage.place, passage.lines) for passage in found.closest]
    assert shown == [
        ("page.md#lamps", "page.md", (3, 6)),
        ("page.md#lamps", "page.md", (9, 10)),
        ("page.md", "page.md", (1, 2)),
    ]
