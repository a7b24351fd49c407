"""The embedded reader: quotes the passage that answers, or says that there is none, without a model."""

from __future__ import annotations

from pathlib import PurePosixPath

from metatree.node import Node
from metatree.protocols import Answer, Reading, ReadRequest
from metatree_routers.embedding import Embedder, static_embedder
from metatree_routers.passages import Passage, best_passage, looks_like_code

USEFUL = 0.78
"""A passage below this score does not answer. Of questions asked in a collection that answers them, nine in ten find
a passage above it in the best node; of questions asked in a collection on something else, one or two in ten."""
COMPLETE = 0.93
"""A passage above this score closes the question; half of the answered questions have one at once."""
ENOUGH_PARTS = 3
"""With so many parts, a question is closed: more quotes would not make it clearer."""

_PROSE_SUFFIXES = frozenset({".md", ".rst", ".txt", ".html", ".htm", ".pdf", ".adoc", ".tex", ""})
_CODE_KINDS = frozenset({"definition", "class", "function", "method", "code"})


class EmbeddedReader:
    """Finds the sentences, or the lines of code, that answer; the quote is the content's own words.

    Args:
        embeddings: whether static embeddings are used where they can be loaded.
    """

    def __init__(self, *, embeddings: bool = True) -> None:
        self._embeddings = embeddings

    async def read(self, request: ReadRequest) -> Reading:
        """Return a passage for each question that has one here; `useful=False` when none has."""
        embedder: Embedder | None = static_embedder() if self._embeddings else None
        is_code = _is_code(request.node, request.content)
        answers = []
        for question in request.questions:
            passage = best_passage(request.content, question, is_code=is_code, embedder=embedder)
            if passage is not None and passage.score >= USEFUL:
                answer = _answer(request, question, passage, is_code)
                if answer is not None:
                    answers.append(answer)
        return Reading(tuple(answers), useful=bool(answers))


def _answer(request: ReadRequest, question: str, passage: Passage, is_code: bool) -> Answer | None:
    quote = request.content[passage.start : passage.end]
    parts = [part for part in request.partial_answers if part.question == question]
    if any(quote in part.quote for part in parts):
        return None
    complete = passage.score >= COMPLETE or len(parts) + 1 >= ENOUGH_PARTS
    return Answer(
        question, _with_signature(request.content, passage, quote) if is_code else quote, quote, complete
    )


def _with_signature(content: str, passage: Passage, quote: str) -> str:
    """Put the first line of the code above lines from its middle."""
    first = content.lstrip("\n").split("\n", 1)[0].rstrip()
    return quote if first in quote else f"{first}\n    …\n{quote}"


def _is_code(node: Node, content: str) -> bool:
    if node.kind in _CODE_KINDS:
        return True
    suffix = PurePosixPath(node.path or node.title).suffix.lower()
    return suffix not in _PROSE_SUFFIXES or looks_like_code(content)
