"""A benchmark over one tree that is made of a corpus: searched by `search`, beside BM25 over the same texts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from metatree_routers import EmbeddedRouter, TextEvidence

from benchmarks.retrieval.baseline import BM25
from benchmarks.retrieval.dataset import BASELINE, BESIDE, OURS, Corpus, Notes, Options, Outcome, first_words
from benchmarks.retrieval.wrong import WrongRouter
from metatree import Limits, Node, Tree, search
from metatree.notes.wishes import MOST

K = 10


@dataclass(slots=True)
class Collection:
    """Implements `Benchmark`."""

    name: str
    about: str
    read: Callable[[Options], Corpus]
    metrics: Sequence[str]
    goals: Mapping[str, float]
    notes: Notes = field(default_factory=Notes)

    def outcomes(self, options: Options) -> Iterator[Outcome]:
        """Build the tree through the public API, search for each question, and yield what was ranked."""
        corpus = self.read(options)
        queries = [query for query in corpus.queries if query.gold][: options.limit]
        baselines: dict[str | None, BM25] = {}
        with Tree.create(":memory:", title=self.name) as tree:
            started = time.perf_counter()
            tree.add_many(_cut(corpus, options.words))
            built = time.perf_counter()
            evidence = TextEvidence(tree)
            evidence.refresh()
            self.notes = Notes(len(tree), built - started, time.perf_counter() - built)
            for query in queries:
                if query.under not in baselines:
                    baselines[query.under] = BM25(_part(corpus, query.under))
                router = WrongRouter(EmbeddedRouter(), options.wrong, query.id) if options.wrong else None
                started = time.perf_counter()
                found = search(
                    query.text,
                    query.under,
                    tree=tree,
                    returns="nodes",
                    k=K,
                    accept=corpus.accept,
                    router=router,
                    evidence=evidence,
                    limits=Limits(router_calls=200),
                    journal=":memory:",
                )
                seconds = time.perf_counter() - started
                ranked = {
                    BASELINE: baselines[query.under].rank(query.text, K + MOST),
                    OURS: [node.id for node in found.nodes],
                    BESIDE: [wish.source for wish in found.wishes],
                }
                yield Outcome(query.id, query.gold, ranked, seconds, found.usage.router_calls, query.groups)


def _part(corpus: Corpus, under: str | None) -> dict[str, str]:
    if under is None:
        return corpus.texts
    return {id_: text for id_, text in corpus.texts.items() if corpus.scopes[id_] == under}


def _cut(corpus: Corpus, words: int | None) -> Iterator[tuple[Node, str]]:
    """Yield the nodes, with descriptions of at most so many words."""
    for node, parent in corpus.nodes:
        if words is not None:
            node = replace(node, description=first_words(node.description, words))
        yield node, parent
