"""The embedded reader: quotes the passage that answers, or says that there is none, without a model.

It closes a question with a passage that has the word it turns on, or with the third part when the parts have all its
words that count between them. Which word that is comes from its shape and from the numbers of its tokens, so a reader
needs no index. The rule about halves the passages found in a wrong collection (see `USEFUL`), and loses up to one in
six of the right ones (more in a single paper, whose questions use other words). Words cannot tell a passage that
answers from one on the same subject; a model can.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from metatree._util.threads import off_loop
from metatree.node import Node
from metatree.notes.placement import MEMORY_KIND
from metatree.protocols import Answer, Passage, Reader, Reading, ReadRequest, Traits
from metatree_routers.embedded._excerpt import excerpt
from metatree_routers.embedded._passages import Quotation, best_passage
from metatree_routers.embedded._table_rows import best_row, is_table, with_header
from metatree_routers.embeddings.static import Embedder, static_embedder
from metatree_routers.passages.candidates import is_code_text
from metatree_routers.query.key_terms import NOTABLE, STRONG, KeyTerm, key_terms_of
from metatree_routers.query.parse import sections
from metatree_routers.query.terms import term_counts
from metatree_routers.query.wording import asking_terms

USEFUL = 0.78
"""A passage below this score does not answer. Of questions asked in a collection that answers them, three in four (of
several hops) to nine in ten find a passage above it in the best node; of questions asked in a collection on something
else, one in twenty to three in ten, before the words that a question turns on are asked for. So a quote says where to
look, and is no proof."""
COMPLETE = 0.93
"""A passage above this score closes the question; half of the answered questions have one at once."""
ENOUGH_PARTS = 3
"""So many parts close a question if they have all its words that count between them, and the last the one that it turns
on. Without, no more than these are given: further ones would not be clearer."""
SAME_QUESTION = 0.6
"""Share of common words, of all words of two questions, from which one is the other in other words."""
_MAX_RECALLED_CHARS = 4_000
_MOST_PASSAGES = 40

_DATABASE_KINDS = frozenset({"database", "schema", "table", "view", "rows"})
"""Nodes whose tables are some of many rows."""
# What is said of such a tool closes no question. Lost: leaving it unread; it is all there is on how to get something.
_TOOL_KINDS = frozenset({"api operation", "mcp tool"})
"""Nodes whose own text says what a call of a server would answer, and is no answer itself."""


class EmbeddedReader(Reader):
    """Finds the sentences, or the lines of code, that answer; the quote is the content's own words.

    A question is closed only by a passage that has the word it turns on, itself or in the title, path or description
    of its node; where names or words that are rare in any text are asked for, a passage without any is no part either.
    What is said of a server's tool closes no question, and is a part of an answer only as long as there is no other.

    Args:
        embeddings: whether static embeddings are used where they can be loaded.
        is_common: says which words are common in the tree (`Evidence.is_common`): no question turns on one of
            those. None goes by the shape of the words alone, and takes a project's name for rare.
        passages: ranks the passages of a text beside those of the tree (`Evidence.passages`). Where a request says how
            sure it wants to be, the likeliest one of what is read is the answer, with how likely it is right; but for
            tables, and for what is said of tools.
    """

    traits = Traits(any_loop=True)

    def __init__(
        self,
        *,
        embeddings: bool = True,
        is_common: Callable[[str], bool] | None = None,
        passages: Callable[..., list[Passage]] | None = None,
    ) -> None:
        self._embeddings = embeddings
        self._is_common = is_common
        self._passages = passages

    @off_loop
    def read(self, request: ReadRequest) -> Reading:
        """Return a passage for each question that has one here; `useful=False` when none has."""
        if request.asked_for:
            return _told(request)
        embedder: Embedder | None = static_embedder() if self._embeddings else None
        table = is_table(request.content)
        is_code = not table and is_code_text(request.node, request.content)
        answers = []
        for question in request.questions:
            if (recalled := _recalled_answer(request, question)) is not None:
                answers.append(recalled)
                continue
            if request.sure is not None and self._passages and not table and not _describes(request):
                answers += _likeliest(request, question, is_code, self._passages)
                continue
            if table:
                called = f"{request.node.title}\n{request.node.description}"
                of_many = request.node.kind in _DATABASE_KINDS or not request.node.has_content
                passage = best_row(
                    request.content, question, called=called, embedder=embedder, of_many=of_many
                )
            else:
                passage = best_passage(request.content, question, is_code=is_code, embedder=embedder)
            if passage is not None and passage.score >= USEFUL:
                answer = _answer(request, question, passage, is_code, self._words(question))
                if answer is not None and table:
                    answer = replace(answer, answer=with_header(request.content, answer.answer))
                if answer is not None:
                    answers.append(answer)
        return Reading(tuple(answers), useful=bool(answers))

    def _words(self, question: str) -> list[KeyTerm]:
        """Return the words that the question turns on, the heaviest first."""
        words = key_terms_of(question, embeddings=self._embeddings)
        common = self._is_common
        return [word for word in words if common is None or word.weight < NOTABLE or not common(word.text)]


_MOST_TOLD_CHARS = 4_000
_NOTHING = re.compile(
    r"\s*(?:no\b|none\b|nothing\b|not found\b|error\b|failed\b|cannot\b|there (?:is|are) no\b|\S+ is nowhere\b)",
    re.IGNORECASE,
)


def _told(request: ReadRequest) -> Reading:
    """Return what a tool gave that the question asks for, whole; that it found nothing is no answer."""
    text = request.content.strip()
    if not text or len(text) > _MOST_TOLD_CHARS or _NOTHING.match(text):
        return Reading(useful=False)
    return Reading(tuple(Answer(question, text, text) for question in request.questions))


# A short answer ("The red one") has no word of its question. Lost: the question in the text, which is then quoted.
def _recalled_answer(request: ReadRequest, question: str) -> Answer | None:
    """Return what a memory says whose title is this question, in other words perhaps: it was stored as its answer."""
    node, content = request.node, request.content.strip()
    if node.kind != MEMORY_KIND or not content or not node.title.rstrip().endswith("?"):
        return None
    question_terms, title_terms = (
        {*sections(text).term_weights()} - asking_terms() for text in (question, node.title)
    )
    if not question_terms or len(question_terms & title_terms) < SAME_QUESTION * len(
        question_terms | title_terms
    ):
        return None
    beginning = content[:_MAX_RECALLED_CHARS]
    return Answer(question, beginning, beginning, complete=True)


def _answer(
    request: ReadRequest, question: str, passage: Quotation, is_code: bool, words: Sequence[KeyTerm]
) -> Answer | None:
    quote = request.content[passage.start : passage.end]
    parts = [part for part in request.partial_answers if part.question == question]
    describes = _describes(request)
    if any(quote in part.quote for part in parts) or (describes and parts):
        return None
    missing = set(_missing_terms(request.node, quote, words))
    turning = words[0] if words and words[0].weight >= NOTABLE and words[0] in missing else None
    strong = {word for word in words if word.weight >= STRONG}
    if strong and strong <= missing:
        return None
    alone = passage.score >= COMPLETE
    complete = turning is None and not describes and (alone or _cover_all(parts, words, missing))
    if not complete and len(parts) >= ENOUGH_PARTS:
        return None
    text = quote if is_table(request.content) else _excerpt(request, quote, is_code)
    if complete and not alone:  # only all of them together answer
        text = "\n".join(dict.fromkeys([*(part.answer for part in parts), text]))
    return Answer(question, text, quote, complete)


def _likeliest(
    request: ReadRequest, question: str, is_code: bool, passages: Callable[..., list[Passage]]
) -> list[Answer]:
    """Return the likeliest passage of what is read, if there is one."""
    ranked = passages(question, k=_MOST_PASSAGES, text=(request.node, request.content))
    best = next((passage for passage in ranked if passage.node_id == request.node.id), None)
    if best is None:
        return []
    quote = best.text.strip("\n")
    text = _excerpt(request, quote, is_code)
    return [Answer(question, text, quote, complete=True, confidence=best.score)]


_DOCUMENTS = frozenset({".md", ".rst", ".txt", ".html", ".pdf", ".docx"})


def _excerpt(request: ReadRequest, quote: str, is_code: bool) -> str:
    """Return a quote as it is shown; a document that is full of code is a document."""
    suffix = PurePosixPath(request.node.path or "").suffix.lower()
    return excerpt(request.content, quote, is_code=is_code and suffix not in _DOCUMENTS)


def _describes(request: ReadRequest) -> bool:
    """Say whether what is read is what a server says of its tool."""
    return request.node.kind in _TOOL_KINDS and request.content == request.node.content


def _cover_all(parts: Sequence[Answer], words: Sequence[KeyTerm], missing: Collection[KeyTerm]) -> bool:
    """Whether enough parts have, between them and what is read now, every word that counts."""
    if len(parts) + 1 < ENOUGH_PARTS:
        return False
    counts = term_counts("\n".join(part.quote for part in parts))
    least = words[0].weight / 2 if words else 0.0
    return all(word.weight < least or word not in missing or word.is_in(counts) for word in words)


def _missing_terms(node: Node, quote: str, words: Sequence[KeyTerm]) -> list[KeyTerm]:
    """Return the words that neither the quote nor what the node is called has."""
    counts = term_counts(f"{node.title}\n{node.path or node.id}\n{node.description}\n{quote}")
    return [word for word in words if not word.is_in(counts)]
