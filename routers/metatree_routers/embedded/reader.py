"""The embedded reader: quotes the passage that answers, with how likely it does, without a model.

What a passage says for itself is told by a small fitted model (`passages.ranking`), beside the other passages of the
tree. Lost: a rule about the word that a question turns on, and up to three parts that have all its words between them:
28 of a hundred claims of that were right, and 38 of a hundred questions that nothing answers were claimed
(docs/benchmarks/answers.md). Words cannot tell a passage that answers from one on the same subject; a model can.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from metatree._util.threads import off_loop
from metatree.notes.placement import MEMORY_KIND
from metatree.protocols import Answer, Passage, Reader, Reading, ReadRequest, Traits
from metatree_routers.embedded._excerpt import shown
from metatree_routers.embedded._particulars import lacks_particulars
from metatree_routers.embedded._table_rows import best_row, is_table, with_header
from metatree_routers.embeddings.static import Embedder, static_embedder
from metatree_routers.passages.asked import read_question
from metatree_routers.passages.candidates import Text
from metatree_routers.passages.ranking import best_apart, rank_passages
from metatree_routers.query.directives import without_bare_ends
from metatree_routers.query.parse import sections
from metatree_routers.query.wording import asking_terms

USEFUL = 0.78
"""A row below this score does not answer."""
ROWS_SURE = 0.94
"""How likely what a query of rows gave is right: 31 of 32 answers were, of 52 questions on the six tables of three
packages, and no question of 19 was answered that the tables do not answer (docs/benchmarks/answers.md)."""
SAME_QUESTION = 0.6
"""Share of common words, of all words of two questions, from which one is the other in other words."""
_MAX_RECALLED_CHARS = 4_000
_MOST_PASSAGES = 40

_DATABASE_KINDS = frozenset({"database", "schema", "table", "view", "rows"})
"""Nodes whose tables are some of many rows."""
# Lost: twelve lines of a file as a passage, of which eight of eleven questions that no row answers were claimed.
_LINES_OF_ROWS = "rows"
"""Nodes of rows between commas, which `look_up` answers from, or nothing does."""
_SAID = frozenset({"turn"})
"""Nodes of conversations, which mention much of which they say nothing."""
# What is said of such a tool closes no question. Lost: leaving it unread; it is all there is on how to get something.
_TOOL_KINDS = frozenset({"api operation", "mcp tool"})
"""Nodes whose own text says what a call of a server would answer, and is no answer itself."""


class EmbeddedReader(Reader):
    """Finds the lines that answer, and says how likely they do; the quote is the content's own words.

    What is said of a server's tool closes no question, and is a part of an answer only as long as there is no other.

    Args:
        embeddings: whether static embeddings are used where they can be loaded.
        passages: ranks the passages of a text beside those of the tree (`Evidence.passages`). None ranks them by
            themselves, and takes each word for as rare as the next.
    """

    traits = Traits(any_loop=True, by_passages=True)

    def __init__(
        self, *, embeddings: bool = True, passages: Callable[..., list[Passage]] | None = None
    ) -> None:
        self._embeddings = embeddings
        self._passages = passages

    @off_loop
    def read(self, request: ReadRequest) -> Reading:
        """Return a passage for each question that has one here; `useful=False` when none has."""
        if request.asked_for:
            return _told(request)
        embedder: Embedder | None = static_embedder() if self._embeddings else None
        answers, notes = list[Answer](), list[str]()
        for question in request.questions:
            if is_table(request.content):
                answer = _row(request, question, embedder)
            elif request.node.kind == _LINES_OF_ROWS:
                answer = None
            else:
                answer = _recalled_answer(request, question) or self._likeliest(request, question, embedder)
            if answer is not None and answer.confidence is not None and answer.confidence < request.sure:
                notes.append(f"what comes closest is right with a probability of {answer.confidence:.2f}")
            elif answer is not None:
                answers.append(answer)
        return Reading(tuple(answers), useful=bool(answers), notes="; ".join(notes) if not answers else "")

    def _likeliest(self, request: ReadRequest, question: str, embedder: Embedder | None) -> Answer | None:
        """Return the likeliest passage of what is read, if there is one."""
        describes = request.node.kind in _TOOL_KINDS and request.content == request.node.content
        if describes and any(part.question == question for part in request.partial_answers):
            return None
        ranked = self._ranked(request, question, embedder)
        best = next((passage for passage in ranked if passage.node_id == request.node.id), None)
        if best is None or (best is not ranked[0] and _is_outdated(best, ranked[0])):
            return None
        if request.node.kind in _SAID and lacks_particulars(question, best.text):
            return None
        quote = without_bare_ends(best.text).strip("\n")
        if not quote:
            return None
        return Answer(
            question,
            shown(request.node, request.content, quote, best.release),
            quote,
            complete=not describes,
            confidence=best.score,
            earlier=best.earlier,
        )

    def _ranked(self, request: ReadRequest, question: str, embedder: Embedder | None) -> Sequence[Passage]:
        node, content = request.node, request.content
        if self._passages is not None:
            return self._passages(question, k=_MOST_PASSAGES, text=(node, content))
        asked = read_question(question, embeddings=self._embeddings)
        texts = {node.id: Text(node, content, evidence=1.0)}
        return best_apart(rank_passages(asked, texts.values(), {}, 1, embedder), 1, texts, {})


def _is_outdated(passage: Passage, latest: Passage) -> bool:
    """Whether a later passage says otherwise."""
    return any(said.node_id == passage.node_id and said.text in passage.text for said in latest.earlier)


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
    # Only of rows is it known how often such an answer is right.
    confidence = ROWS_SURE if request.node.kind in _DATABASE_KINDS else None
    if confidence is not None and confidence < request.sure:
        return Reading(
            useful=False, notes=f"what the rows say is right with a probability of {confidence:.2f}"
        )
    return Reading(
        tuple(Answer(question, text, text, confidence=confidence) for question in request.questions)
    )


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


def _row(request: ReadRequest, question: str, embedder: Embedder | None) -> Answer | None:
    """Return the row of a table that answers, below the names of its columns."""
    called = f"{request.node.title}\n{request.node.description}"
    of_many = request.node.kind in _DATABASE_KINDS or not request.node.has_content
    row = best_row(request.content, question, called=called, embedder=embedder, of_many=of_many)
    if row is None or row.score < USEFUL:
        return None
    quote = request.content[row.start : row.end]
    # One of some rows is no surer than a query of all.
    return Answer(question, with_header(request.content, quote), quote, confidence=min(row.score, ROWS_SURE))
