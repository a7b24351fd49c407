"""Questions whose answer takes several encyclopedia passages (MuSiQue, HotpotQA)."""

from __future__ import annotations

from functools import partial

from benchmarks.retrieval.collection import Collection
from benchmarks.retrieval.dataset import Corpus, Options, Query, rows
from metatree import Node


def _pool(options: Options, name: str) -> Corpus:
    folder = options.data / "multihop"
    corpus = Corpus([], {}, [], accept=("document",))
    for row in rows(folder / f"{name}_passages.jsonl"):
        node = Node(id=row["id"], title=row["title"], content=row["text"], kind="document")
        corpus.nodes.append((node, "."))
        corpus.texts[row["id"]] = f"{row['title']} {row['text']}"
    for row in rows(folder / f"{name}.jsonl"):
        corpus.queries.append(Query(row["id"], row["query"], frozenset(row["gold"])))
    return corpus


MUSIQUE = Collection(
    "musique",
    "all passages of two to four hops",
    partial(_pool, name="musique100"),
    ("R@5", "R@10"),
    {"R@5": 0.62},
)
HOTPOT = Collection(
    "hotpot", "both passages of two hops", partial(_pool, name="hotpot100"), ("R@5", "R@10"), {"R@5": 0.85}
)
