"""Documents: the page of a known filing (FinanceBench), the passage among many papers (QASPER)."""

from __future__ import annotations

from benchmarks.retrieval.collection import Collection
from benchmarks.retrieval.dataset import Corpus, Options, Query, first_words, rows
from metatree import Node

_DESCRIBED = 30
"""Words of a page that its description repeats, as a builder without a model does."""


def _filings(options: Options, *, known: bool) -> Corpus:
    folder = options.data / "documents"
    pages = rows(folder / "financebench_pages.jsonl.gz")
    corpus = Corpus([], {}, [], accept=("page",))
    for page in pages:
        if page["doc"] not in corpus.scopes.values():
            name = page["doc"].replace("_", " ")
            corpus.nodes.append((Node(id=page["doc"], title=name, kind="document"), "."))
        corpus.scopes[page["id"]] = page["doc"]
        corpus.texts[page["id"]] = page["text"]
        title, about = f"page {page['page'] + 1}", first_words(page["text"][:1_000], _DESCRIBED)
        node = Node(id=page["id"], title=title, description=about, content=page["text"], kind="page")
        corpus.nodes.append((node, page["doc"]))
    for row in rows(folder / "financebench.jsonl"):
        corpus.queries.append(
            Query(row["id"], row["query"], frozenset(row["gold"]), row["doc"] if known else None)
        )
    return corpus


def _papers(options: Options) -> Corpus:
    """A paper is its title and abstract, its sections are nested as in the paper, its passages are the leaves."""
    folder = options.data / "documents"
    corpus = Corpus([], {}, [], accept=("passage",))
    known: set[str] = set()
    for row in rows(folder / "qasper_passages.jsonl"):
        above = f"paper{row['paper_idx']}"
        if above not in known:
            known.add(above)
            node = Node(id=above, title=row["title"], description=row["abstract"], kind="document")
            corpus.nodes.append((node, "."))
        for heading in row["section_path"]:
            place = f"{above}#{heading}"
            if place not in known:
                known.add(place)
                corpus.nodes.append((Node(id=place, title=heading, kind="section"), above))
            above = place
        number = sum(1 for _, parent in corpus.nodes if parent == above) + 1
        passage = Node(id=row["id"], title=f"passage {number}", content=row["text"], kind="passage")
        corpus.nodes.append((passage, above))
        corpus.texts[row["id"]] = " ".join([row["title"], *row["section_path"], row["text"]])
    for row in rows(folder / "qasper.jsonl"):
        corpus.queries.append(Query(row["id"], row["query"], frozenset(row["gold"])))
    return corpus


FINANCEBENCH = Collection(
    "financebench",
    "the page inside the known filing",
    lambda options: _filings(options, known=True),
    ("R@5", "R@10"),
    {"R@5": 0.55},
)
FINANCEBENCH_ALL = Collection(
    "financebench-all",
    "the page among the pages of all filings",
    lambda options: _filings(options, known=False),
    ("R@5", "R@10"),
    {},
)
QASPER = Collection("qasper", "the passage among all papers", _papers, ("R@5", "R@10"), {"R@5": 0.58})
