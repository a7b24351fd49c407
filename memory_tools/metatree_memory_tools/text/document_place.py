"""Where a node of a document stands, as a reader of the file finds it."""

from __future__ import annotations

from metatree.node import Node

_EXTRACTED = frozenset({"pdf", "docx", "html", "pptx", "xlsx", "epub", "odt", "notebook", "conversation"})
"""Types of sources whose text is taken out of the file: no reader of that finds a line by its number."""


SLIDES = (".pptx", ".pptm", ".ppsx")
"""How the names of presentations end."""


def page_word(path: str) -> str:
    """Return what a page of a document is called.

    Example:
        >>> page_word("a.pdf"), page_word("Plan.PPTX")
        ('page', 'slide')
    """
    return "slide" if path.lower().endswith(SLIDES) else "page"


def document_place(node: Node | None) -> tuple[str, tuple[int, int] | None] | None:
    """Return the file of a node of a document, with its pages where that has any; None where lines have numbers.

    Example:
        >>> from metatree.node import Source
        >>> pages = {"first_page": 3, "last_page": 3}
        >>> document_place(Node("a.pdf#x", "x", source=Source(type="pdf", path="a.pdf"), attributes=pages))
        ('a.pdf', (3, 3))
        >>> document_place(Node("a.md#x", "x", source=Source(type="text", path="a.md"))) is None
        True
    """
    if node is None or node.source is None or node.source.type not in _EXTRACTED or node.path is None:
        return None
    first, last = (node.attributes.get(name) for name in ("first_page", "last_page"))
    return node.path, (first, last) if isinstance(first, int) and isinstance(last, int) else None
