"""Where the words of an answer stand."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import shorten
from typing import TYPE_CHECKING

from metatree_memory_tools.text.document_place import document_place, page_word
from metatree_memory_tools.text.readable import readable

from metatree.errors import MetatreeError
from metatree.trees.text import line_in_file

if TYPE_CHECKING:
    from metatree import Tree
    from metatree.result import ClosestPassage, QuestionAnswer, Quote

LEFT_OUT = "…"
_EARLIER_CHARS = 160
NOT_IN_SOURCE = "not in the source"
"""Said of an answer whose words, as a model gave them, no source has."""


def passage_place(tree: Tree, passage: ClosestPassage) -> str:
    """Return where a passage stands, as `file:12-20` or `file, page 3`; the node's id where no file is."""
    document = document_place(tree.find(passage.node))
    return (
        place_text(passage.place, passage.lines)
        if document is None
        else place_text(document[0], None, document[1])
    )


def source_place(tree: Tree, source: Quote) -> str:
    """Return where the words of a source stand, as `file:12-20` or `file, page 3`; the node's id where no file is."""
    if (document := document_place(tree.find(source.node))) is not None:
        return place_text(document[0], None, document[1])
    if source.place:
        return place_text(source.place, source.lines, source.pages)
    node = tree.find(source.node)
    if node is None or node.source is None or node.source.type != "text":
        return source.node
    return node.source.path


def readable_answer(answer: QuestionAnswer) -> str:
    """Return an answer with the numbers of its sources, and without the markup of what it quotes."""
    source = next((each for each in answer.sources if each.node), None)
    quotes = source is not None and (
        source.quote.strip() in answer.answer or answer.answer.strip() in source.quote
    )
    return readable(answer.cited or answer.answer, source.place if source is not None and quotes else "")


def earlier_lines(answer: QuestionAnswer, *, most: int = 1) -> Iterator[str]:
    """Yield what was said before and no longer holds, each in a short line with its day or version.

    Example:
        >>> from metatree.result import EarlierAnswer, QuestionAnswer
        >>> before = EarlierAnswer("a", "A", "2025-03-02", "The gate opens at nine.")
        >>> [*earlier_lines(QuestionAnswer("When?", "At ten.", (), earlier=(before,)))]
        ['Earlier (2025-03-02): The gate opens at nine.']
    """
    for said in answer.earlier[:most]:
        text = shorten(readable(said.quote, said.place), _EARLIER_CHARS, placeholder=f" {LEFT_OUT}")
        where = f", {place_text(said.place, said.lines)}" if said.place else ""
        yield f"Earlier ({said.at}{where}): {text}"


def place_text(place: str, lines: tuple[int, int] | None, pages: tuple[int, int] | None = None) -> str:
    """Return a place with its lines, pages or slides.

    Example:
        >>> place_text("a.py", (3, 3)), place_text("a.pdf", None, (2, 4)), place_text("a.pptx", None, (1, 1))
        ('a.py:3', 'a.pdf, pages 2-4', 'a.pptx, slide 1')
    """
    if lines is not None:
        return f"{place}:{_span(lines)}"
    if pages is None:
        return place
    return f"{place}, {page_word(place)}{'s' if pages[0] != pages[1] else ''} {_span(pages)}"


def _span(numbers: tuple[int, int]) -> str:
    first, last = numbers
    return str(first) if first == last else f"{first}-{last}"


def code_lines(tree: Tree, node_id: str, text: str) -> dict[int, int] | None:
    """Return the number in its file of each line of a text that is taken from a node; None when it is not.

    Args:
        text: lines of the node in their order; `…` stands in a line of its own where some are left out.

    Returns:
        Place of the line in the text, from 0 -> number in the file, from 1.
    """
    node = tree.find(node_id)
    if node is None or node.source is None or node.source.type != "text":
        return None
    try:
        there = tree.content(node).split("\n")
    except (MetatreeError, OSError):  # the file has changed or gone since it was quoted
        return None
    numbers: dict[int, int] = {}
    at = 0
    for number, line in enumerate(text.split("\n")):
        if line.strip() == LEFT_OUT:
            continue
        match = next((each for each in range(at, len(there)) if there[each].rstrip() == line.rstrip()), None)
        if match is None:
            return None
        numbers[number] = line_in_file(node.source, match + 1)
        at = match + 1
    return numbers
