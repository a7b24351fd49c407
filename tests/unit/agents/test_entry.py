"""Of a page of a document the entry is shown that answers."""

from __future__ import annotations

import pytest
from metatree_agents.cli.printing.answers import answer_lines
from metatree_agents.service.web._markdown import prose
from metatree_routers.query.entry import entry_of, entry_text

from metatree import Tree
from metatree.result import QuestionAnswer, Quote, SearchResult

TEXT = """Chapter 4: Lamps of the house 9
lamp make
int lamp_make (const lamp_kind * kind, lamp * [Function]
made, char * error)
kind: of which kind the lamp is to be, of those that the house has.
Makes a lamp of that kind, and hangs it into the hall, where it is seen at once.
Returns: LAMP_SUCCESS if the lamp was made, LAMP_NO_ROOM if there are too many of
them, LAMP_NO_KIND otherwise.
lamp delete
int lamp_delete (lamp * which) [Function]
which: pointer to the lamp that you want to delete, which is not lit then any more.
Deletes the lamp. At the end, which is set to NULL.
Returns: LAMP_SUCCESS if successful, LAMP_NOT_FOUND if there was no lamp, which is
NULL.
lamp delete2
int lamp_delete2 (lamp * which, unsigned flags) [Function]
Deletes the lamp with some flags. At the end, which is set to NULL.
Returns: LAMP_SUCCESS if successful."""
PAGE = TEXT.split("\n")


@pytest.mark.parametrize(
    ("question", "first", "last"),
    [
        ("What does lamp_delete do?", "lamp delete", "NULL."),
        ("What does lamp_delete2 take?", "lamp delete2", PAGE[-1]),
        ("Where does a lamp hang that is made?", "lamp make", "them, LAMP_NO_KIND otherwise."),
    ],
)
def test_an_entry_goes_from_its_heading_to_the_next_one(question: str, first: str, last: str) -> None:
    start, end = entry_of(question, PAGE)
    assert (PAGE[start], PAGE[end - 1]) == (first, last)


def test_a_short_text_is_its_own_entry_and_a_long_one_without_headings_is_cut_around_its_best_line() -> None:
    assert entry_of("lamp?", PAGE[:12]) == (0, 12)
    lines = [f"Line {number} says nothing at all, and ends here." for number in range(60)]
    lines[40] = "The bulb has nine watts, which is what it has."
    start, end = entry_of("How many watts has the bulb?", lines)
    assert start <= 40 < end <= start + 18


def test_the_page_shows_the_entry_and_folds_the_rest_with_the_entry_marked() -> None:
    shown = prose([TEXT], [TEXT], numbers=[1], question="What does lamp_delete do?", pages={0})
    above, _, folded = shown.partition("<details")
    assert (
        "int lamp_delete (" in above
        and "lamp_make" not in above
        and "Chapter" not in above
        and "[1]" in above
    )
    assert "<mark>lamp delete\n" in folded and "lamp_make" in folded.partition("<mark>")[0]
    assert "lamp_make" in prose([TEXT], [TEXT], numbers=[1], question="What does lamp_delete do?")


def test_the_command_line_prints_the_entry_and_all_with_verbose() -> None:
    source = Quote("m", "m", TEXT, 1, "m.pdf", None, (9, 9))
    answer = QuestionAnswer("What does lamp_delete do?", TEXT, (source,), cited=f"{TEXT} [1]")
    with Tree.create(":memory:") as tree:
        result = SearchResult(answer=TEXT, answers=(answer,), ended="answered")
        lines = list(answer_lines(result, tree))
        assert lines[0] == "…" and lines[1] == "lamp delete" and lines[7] == "… [1]"
        assert next(iter(answer_lines(result, tree, verbose=True))) == PAGE[0]
    assert entry_text("lamp?", "one line") == "one line"


LONGER = """\
Chapter 4: Function reference 9
asn1 array2tree
int asn1_array2tree (const asn1 static node * array) [Function]
array: specify the array that contains ASN.1 declarations
definitions: return the pointer to the structure created by ASN.1 declarations
Creates the structures needed to manage the ASN.1 definitions.
Returns: ASN1_SUCCESS if structure was created correctly.
asn1 delete structure
int asn1_delete_structure (asn1 node * structure) [Function]
structure: pointer to the structure that you want to delete.
Deletes the structure. At the end, structure is set to NULL.
Returns: ASN1_SUCCESS if successful, ASN1_ELEMENT_NOT_FOUND if structure was NULL.
asn1 delete element
int asn1_delete_element (asn1 node structure, const char * element_name) [Function]
element name: element's name you want to delete.
Returns: ASN1_SUCCESS if successful."""


def test_what_all_of_a_page_is_about_does_not_choose_its_entry() -> None:
    shown = entry_text("Which function deletes a structure of ASN.1?", LONGER)
    assert shown.startswith("…\nasn1 delete structure\n") and "array2tree" not in shown
    assert "delete_element" in entry_text("What does asn1_delete_element do?", LONGER)
