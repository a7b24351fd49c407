"""Find the row of a table that answers a question: a row says little without the names of its columns and its table."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from metatree_routers.embeddings.static import Embedder
from metatree_routers.query.parse import sections
from metatree_routers.query.terms import term_counts

SEPARATOR = " | "
MAX_CHARS = 400_000
MAX_ROWS = 20_000
_LEAST_OF_MANY = 0.6
"""Share of a question that one row of many has to say: a film's row does not say its budget for being named."""
_OF_ALL_ROWS = re.compile(
    r"\bhow many\b|\b(?:number|count|total|sum|average|mean|median|share|percentage) of\b"
    r"|\b(?:average|total|most|least|fewest)\b"
    r"|\b(?:larg|bigg|high|great|small|low|long|short|old|earli|lat|new|cheap|fast|slow|heavi|light|tall|young)(?:g|n|k)?est\b"
    r"|\b(?:first|last|maximum|minimum|max|min)\b",
    re.IGNORECASE,
)
_NAME = re.compile(r"(?<=\s)[A-Z][\w.-]*|\d[\w.-]*|\"[^\"]+\"")


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table, and how well it answers."""

    start: int
    end: int
    coverage: float
    """Share of the question's weight that is in the row, in [0, 1]."""
    cosine: float
    """Nearness in meaning; 0 without an embedder."""

    @property
    def score(self) -> float:
        """How sure it is that the row answers, in [0, 1].

        A logistic fit on questions over papers, encyclopedia articles and conversations: passages that answer them
        against passages drawn at random.
        """
        return 1.0 / (1.0 + math.exp(-(7.6 * self.coverage + 3.2 * self.cosine - 1.7)))


def is_table(text: str) -> bool:
    """Whether the first line names columns and most others are rows of cells between ` | `."""
    lines = [line for line in text[:20_000].split("\n") if line.strip()]
    return (
        len(lines) > 1 and SEPARATOR in lines[0] and 2 * sum(SEPARATOR in line for line in lines) > len(lines)
    )


def asks_of_all_rows(question: str) -> bool:
    """Whether a question asks for a number of rows, or for the largest, latest or average: no one row can answer it.

    Example:
        >>> [asks_of_all_rows(question) for question in ("How many are there?", "Which is the largest?", "Who is Ann?")]
        [True, True, False]
    """
    return bool(_OF_ALL_ROWS.search(question))


def _holds(text: str, name: str) -> bool:
    """Whether a text has a name by itself, and not in a longer one."""
    return re.search(rf"(?<![\w.]){re.escape(name)}(?![\w])", text) is not None


def best_row(
    text: str, question: str, *, called: str, embedder: Embedder | None = None, of_many: bool = False
) -> Row | None:
    """Return the row that answers best, None when no row has a word of the question.

    Where all rows are asked about, a row has to have the names and numbers of the question.

    Args:
        text: the names of the columns, then rows.
        question: the question.
        called: title and description of the table; like the names of the columns they are part of what each row says.
        embedder: for nearness in meaning.
        of_many: whether these are some rows of many. None of them answers a question about all, and one has to have
            the names and numbers of the question.

    Example:
        >>> text = "name | city\\nAnn | Oslo\\nBob | Bergen"
        >>> found = best_row(text, "Which customer lives in Bergen?", called="Table customer")
        >>> text[found.start : found.end]
        'Bob | Bergen'
    """
    text = text[:MAX_CHARS]
    weights = sections(question).term_weights()
    total = sum(weights.values())
    header = text.split("\n", 1)[0]
    around = weights.keys() & term_counts(f"{called}\n{header}").keys()
    terms = weights.keys() - around
    parts = sections(question)
    asked = parts.title if parts.is_long else question
    names = [name.strip('"?.,').lower() for name in _NAME.findall(asked)]
    if asks_of_all_rows(question) and (of_many or not names):
        return None
    known = f"{called}\n{header}".lower()
    names = [name for name in names if of_many or asks_of_all_rows(question)]
    names = [name for name in names if not _holds(known, name)]
    rows, start = list[tuple[float, int, int]](), 0
    for line in text.split("\n")[:MAX_ROWS]:
        end = start + len(line)
        matched = terms & term_counts(line).keys() if start else set()
        if names and not all(_holds(line.lower(), name) for name in names):
            matched = set()
        if SEPARATOR in line and matched:
            rows.append((math.fsum(weights[term] for term in matched | around) / total, start, end))
        start = end + 1
    if not rows:
        return None
    coverage, start, end = max(rows, key=lambda row: (row[0], -row[1]))
    if of_many and coverage < _LEAST_OF_MANY:
        return None
    cosine = 0.0
    if embedder is not None:
        vectors = embedder.embed([question, f"{called}\n{header}\n{text[start:end]}"])
        cosine = float(vectors[1] @ vectors[0])
    return Row(start, end, coverage, cosine)


def with_header(text: str, row: str) -> str:
    """Put the names of the columns above a row.

    Example:
        >>> with_header("name | city\\nAnn | Oslo", "Ann | Oslo")
        'name | city\\nAnn | Oslo'
    """
    return f"{text.split(chr(10), 1)[0]}\n{row}"
