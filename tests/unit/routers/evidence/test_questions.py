"""What speaks for a node besides its own words: its place, its neighbours, its figures, and who names it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from metatree_routers.evidence.evidence import TextEvidence
from metatree_routers.evidence.signals.context import covered
from metatree_routers.index.ancestry import MOST_LEVELS
from metatree_routers.index.digit_density import digit_density
from metatree_routers.index.index import IndexSnapshot
from metatree_routers.index.title_mentions import title_term, title_terms_in
from metatree_routers.query.parse import sections
from metatree_routers.query.wording import without_asking

from metatree import search
from metatree.node import Node
from metatree.trees.tree import Tree
from tests.profiles import examples


def _tree(*rows: tuple[str, str, str, str, str]) -> Tree:
    """Make a tree of (id, parent, kind, title, content)."""
    tree = Tree.create()
    for id_, parent, kind, title, content in rows:
        tree.add(Node(id=id_, title=title, kind=kind, content=content or None), parent)
    return tree


def _order(tree: Tree, question: str, **where: object) -> list[str]:
    evidence = TextEvidence(tree, embeddings=False)
    return [scored.node_id for scored in evidence.rank([question], **where)]  # type: ignore[arg-type]


PAPERS = (
    ("p1", ".", "document", "Parsing Japanese verbs", ""),
    ("p1/a", "p1", "passage", "passage 1", "The corpus has seven million pairs."),
    ("p2", ".", "document", "Cooking with lemons", ""),
    ("p2/a", "p2", "passage", "passage 1", "The corpus has seven hundred pairs."),
)


def test_a_word_in_the_title_above_tells_two_passages_apart() -> None:
    assert _order(_tree(*PAPERS), "How big is the Japanese corpus?", among=["p1/a", "p2/a"])[0] == "p1/a"
    assert _order(_tree(*PAPERS), "How big is the lemon corpus?", among=["p1/a", "p2/a"])[0] == "p2/a"


def test_a_word_anywhere_in_the_group_counts_but_less_than_in_the_node() -> None:
    tree = _tree(
        ("g1", ".", "group", "One", ""),
        ("g1/a", "g1", "tool", "list stations", ""),
        ("g1/b", "g1", "tool", "weather of a city", ""),
        ("g2", ".", "group", "Two", ""),
        ("g2/a", "g2", "tool", "list players", ""),
    )
    assert _order(tree, "weather", among=["g1/a", "g1/b", "g2/a"]) == ["g1/b", "g1/a"]


def _talk(kind: str, above: str) -> Tree:
    filler = [(f"f{number}", ".", "note", "x", "other words are here") for number in range(9)]
    return _tree(
        *filler,
        ("s", ".", above, "s", ""),
        ("s/0", "s", kind, "x", "Good morning to everyone."),
        ("s/1", "s", kind, "x", "Which instrument do you play?"),
        ("s/2", "s", kind, "x", "The violin, since school."),
    )


@pytest.mark.parametrize(("above", "counts"), [("session", True), ("group", False)])
def test_a_short_answer_is_found_by_the_question_before_it_where_texts_follow_each_other(
    above: str, *, counts: bool
) -> None:
    tree = _talk("turn", above)
    evidence = TextEvidence(tree, embeddings=False)
    scores = {s.node_id: s.score for s in evidence.rank(["Which instrument?"], among=["s/0", "s/1", "s/2"])}
    assert max(scores, key=lambda id_: scores[id_]) == "s/1"
    assert (scores["s/2"] > scores["s/0"] * 0.99) and (scores["s/0"] > 0)
    levels = evidence.query(lambda reader: reader.table.ancestry)
    assert bool((levels.before >= 0).any()) is counts


@pytest.mark.parametrize(("said_in", "by_neighbour", "by_first"), [("s/1", 0.24, 0.24), ("s", 0.4, 0.4)])
def test_neighbours_and_titles_above_count_by_their_weights(
    said_in: str, by_neighbour: float, by_first: float
) -> None:
    """A word said for 0.8 in the turn between counts 0.3 of it, in the title above 0.5."""

    def check(reader: IndexSnapshot) -> None:
        numbers = reader.numbers(["s", "s/0", "s/1", "s/2"])
        own = np.zeros(len(reader.table), dtype=np.float32)
        own[numbers[said_in]] = 0.8
        result = covered(reader.table.ancestry, own, np.zeros_like(own), np.ones_like(own))
        assert result[numbers["s/2"]] == pytest.approx(by_neighbour)
        assert result[numbers["s/0"]] == pytest.approx(by_first)

    TextEvidence(_talk("turn", "session"), embeddings=False).query(check)


def test_where_an_amount_is_asked_for_a_table_comes_before_prose() -> None:
    prose = "The revenue of the year was good. " + "It is owed to all who work for this house. " * 20
    table = "Revenue of the year\n" + "\n".join(f"product {n}  {n * 7919}  {n * 104729}" for n in range(60))
    tree = _tree(
        ("d", ".", "document", "Report", ""),
        ("d/1", "d", "page", "1", prose),
        ("d/2", "d", "page", "2", table),
        *(
            (f"d/{n}", "d", "page", str(n), f"On the {n}. " + "Nothing is said here. " * 40)
            for n in range(3, 9)
        ),
    )
    pages = [f"d/{n}" for n in range(1, 9)]
    assert _order(tree, "What does it say of the revenue of the year?", among=pages)[0] == "d/1"
    assert _order(tree, "How much was the revenue of the year?", among=pages)[0] == "d/2"


def test_what_the_best_node_names_comes_behind_it() -> None:
    filler = [
        (f"f{n}", ".", "document", f"Town {n}", f"Town {n} is a small place near a river.") for n in range(9)
    ]
    tree = _tree(
        ("film", ".", "document", "The Long Night", "The Long Night was shot in Leland by Maria Perez Hall."),
        ("person", ".", "document", "Maria Perez Hall", "She was born in Lisbon and plays chess."),
        ("other", ".", "document", "Ana Pinto Reis", "She was born in Porto and plays chess."),
        *filler,
    )
    assert _order(tree, "Who made the film that was shot in Leland?")[:2] == ["film", "person"]


def test_below_a_start_nodes_compete_with_each_other_alone() -> None:
    filler = [(f"b/{n}", "b", "page", "x", "dividends dividends dividends") for n in range(300)]
    tree = _tree(
        ("a", ".", "document", "A", ""),
        ("a/1", "a", "page", "x", "dividends are paid at times, says the board of this company"),
        ("a/2", "a", "page", "x", "nothing here"),
        ("b", ".", "document", "B", ""),
        *filler,
    )
    everything = [f"b/{n}" for n in range(300)] + ["a/1", "a/2"]
    found_below = _order(tree, "dividends", under="a", among=everything)
    assert found_below[0] == "a/1"
    assert not any(id_.startswith("b") for id_ in found_below)
    result = search("dividends", "a", tree=tree, returns="nodes", accept=("page",), k=1)
    assert [(node.id, node.score > 0.9) for node in result.nodes] == [("a/1", True)]


def test_words_of_asking_weigh_little_unless_there_are_no_others() -> None:
    weights = without_asking(sections("Could you please tell me the exchange rate?").term_weights())
    assert weights["tell"] < 0.5 < weights["exchang"]
    assert without_asking({"tell": 3.0}) == {"tell": 3.0}


STATEMENTS = (
    ("d", ".", "document", "Report", ""),
    (
        "d/1",
        "d",
        "page",
        "1",
        "Balance sheet: assets 120,114 99,812; liabilities 81,000 75,315; equity 39,114; total 120,114",
    ),
    (
        "d/2",
        "d",
        "page",
        "2",
        "Operations: revenue 50,101 48,777; net earnings 4,112; taxes 901 888; per share 1.20 1.14",
    ),
    (
        "d/3",
        "d",
        "page",
        "3",
        "Cash 11,210 10,003; net income 4,112 3,900; dividends 1,200 1,100; share issue 310 290",
    ),
)
LETTER = ("d/4", "d", "page", "4", "A letter to our owners, who ask whether they are well.")


def test_a_figure_is_found_under_what_statements_call_it() -> None:
    tree = _tree(*STATEMENTS, LETTER)
    assert _order(tree, "Is the quick ratio healthy?")[0] == "d/1"
    assert "has what statements call it" in _why(tree, "Is the quick ratio healthy?", "d/1")


def test_finance_words_count_only_where_the_tree_has_statements() -> None:
    """Technical debt is no debt of a balance sheet, and a revenue is a word like others in code."""
    code = (
        ("c", ".", "file", "debt.md", "Pay the technical debt of the parser back first."),
        ("s", ".", "file", "sheet.py", "def balance(sheet): return total_assets(sheet) - liabilities(sheet)"),
        (
            "i",
            ".",
            "file",
            "income.py",
            "def income(statement): return net_sales(statement) - taxes(statement)",
        ),
    )
    for question in ("Where is the technical debt?", "What is the revenue of a parser?"):
        assert not {"s", "i"} & set(_order(_tree(*code), question)), question
        assert {"s", "i"} & set(_order(_tree(*code, *STATEMENTS), question)), question
    assert {"s", "i"}.isdisjoint(_order(_tree(*code, *STATEMENTS[:3]), "Where is the technical debt?")), (
        "two are too few"
    )


@pytest.mark.parametrize(
    ("title", "kind", "expected"),
    [
        ("Lilu (mythology)", "document", "~lilu"),
        ("The Long Night", "document", "~the long night"),
        ("passage 1", "document", None),
        ("Client", "definition", None),
        ("One two three four five six seven eight nine", "document", None),
    ],
)
def test_a_title_is_a_name_when_it_is_written_like_one(title: str, kind: str, expected: str | None) -> None:
    assert title_term(Node(id="a", title=title, kind=kind)) == expected


def test_names_in_a_text_begin_with_a_capital() -> None:
    result = set(title_terms_in("it was shot by Maria Perez Hall in 1986 Games"))
    assert "~maria perez hall" in result and "~1986 games" in result
    assert "~was shot" not in result and "~1986" not in result


@given(st.text(max_size=300))
def test_the_digit_density_is_a_byte(text: str) -> None:
    assert 0 <= digit_density(text) <= 255


def test_half_a_text_of_figures_is_the_most() -> None:
    assert (digit_density(""), digit_density("abc"), digit_density("12ab")) == (0, 0, 255)


@settings(max_examples=examples(30))
@given(st.lists(st.integers(min_value=0, max_value=30), min_size=1, max_size=30), st.integers(0, 100))
def test_what_is_above_and_below_is_that_of_the_tree(parents: list[int], chain: int) -> None:
    """Also below a chain that is longer than what is climbed one by one."""
    tree = Tree.create()
    for number in range(1, len(parents) + chain + 1):
        above = parents[number - 1] % number if number <= len(parents) else number - 1
        tree.add(Node(id=f"n{number}", title="word " * number, kind="note"), f"n{above}" if above else ".")

    def check(reader: IndexSnapshot) -> None:
        table, levels = reader.table, reader.table.ancestry
        values = np.linspace(0, 0.9, len(table), dtype=np.float32)
        below, above = levels.sums_below(values), levels.sums_above(values)
        products = levels.products_above(1 - values)
        numbers = reader.numbers([f"n{n}" for n in range(1, len(parents) + chain + 1)])
        for id_, number in numbers.items():
            inside = [numbers[node.id] for _, node in tree.walk(id_)]
            path = [numbers[one] for one in tree.ancestors(id_) if one != "."]
            assert sorted(levels.above(number)) == sorted(path)
            assert below[number] == pytest.approx(values[inside].sum(), rel=1e-4)
            assert above[number] == pytest.approx(values[path].sum(), rel=1e-4)
            assert products[number] == pytest.approx((1 - values[path]).prod(), rel=1e-4)
            alone = np.zeros(len(table), dtype=bool)
            alone[number] = True
            assert set(np.flatnonzero(levels.with_above(alone))) == {number, *path}
            nearest = table.nearest(np.arange(len(table), dtype=np.int32), [number])
            assert set(np.flatnonzero(nearest >= 0)) == set(inside)

    TextEvidence(tree, embeddings=False).query(check)


def test_a_chain_is_seen_down_to_a_bound_and_its_end_found_by_its_words() -> None:
    """Of its levels, each with all nodes, 20,000 took gigabytes."""
    tree, parent = Tree.create(), "."
    for name in (*map(str, range(MOST_LEVELS + 100)), "kettle"):
        parent = tree.add(Node(id=name, title=name, kind="note"), parent).id

    def check(reader: IndexSnapshot) -> None:
        assert np.count_nonzero(reader.table.alive) == MOST_LEVELS + 102
        assert len(reader.table.ancestry.by_depth) == MOST_LEVELS
        assert sum(map(len, reader.table.ancestry.by_depth)) == MOST_LEVELS

    evidence = TextEvidence(tree, embeddings=False)
    evidence.query(check)
    assert _order(tree, "kettle")[0] == "kettle"


# why a node was found


def _why(tree: Tree, question: str, node: str, under: str | None = None) -> str:
    return TextEvidence(tree, embeddings=False).why([question], node, under=under)


def test_a_reason_names_the_words_and_where_they_stand() -> None:
    reason = _why(_tree(*PAPERS), "How big is the Japanese corpus?", "p1/a")
    assert reason == "says “corpus”; in “Parsing Japanese verbs”, which says “Japanese”"
    assert _why(_tree(*PAPERS), "How big is the Japanese corpus?", "p2/a") == "says “corpus”"


def test_a_reason_names_neighbours_figures_and_what_named_the_node() -> None:
    talk = _talk("turn", "session")
    assert _why(talk, "Which instrument?", "s/2") == "next to a text that says “instrument”"
    table = _tree(
        ("t", ".", "page", "t", "Revenue 1234567 7654321"), ("u", ".", "page", "u", "Nothing else.")
    )
    assert _why(table, "How much revenue?", "t") == "says “revenue”; many figures"
    names = _tree(
        ("film", ".", "document", "The Long Night", "The Long Night was shot in Leland by Maria Perez Hall."),
        ("person", ".", "document", "Maria Perez Hall", "She was born in Lisbon."),
        *((f"f{n}", ".", "document", f"Town {n}", "A small place.") for n in range(5)),
    )
    assert _why(names, "What was shot in Leland?", "person") == "named in “The Long Night”"


def test_a_reason_of_a_branch_names_what_lies_below_it() -> None:
    assert _why(_tree(*PAPERS), "seven million pairs?", "p1").startswith("below it “passage 1”; says")


def test_there_is_no_reason_for_what_nothing_speaks_for() -> None:
    assert _why(_tree(*PAPERS), "xyzzy", "p1/a") == ""
    assert _why(_tree(*PAPERS), "corpus", "gone") == ""


def test_results_give_the_reason_with_the_line() -> None:
    result = search("Japanese corpus", tree=_tree(*PAPERS), returns="nodes", k=1)
    assert result.nodes[0].reason == (
        "says “corpus”; in “Parsing Japanese verbs”, which says “Japanese”: 'The corpus has seven million pairs.'"
    )
