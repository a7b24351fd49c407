"""The order of the tools that evidence brings up first: one after the other, each for what those before it leave.

Seven numbers of a tool, each as its distance from the mean of the candidates in standard deviations, are summed with
weights. From the second place on, two more are added: how much nearer than the tools before it a tool comes to some
step of the request, and to its words. So what does again what is there already falls behind what does the rest: five
servers that check an address fill no five places where the request has a second step. The weights are fitted to
requests by `python -m benchmarks.gateway.fit` (a softmax over the candidates that are left, at each place; half of the
requests; docs/benchmarks/gateway.md has what they give for the other half). With METATREE_EMBEDDING=minilm the
nearness to the request and to its steps is MiniLM's, under the same weights: those that are fitted to it give the same.

Source: maximal marginal relevance (Carbonell, Goldstein 1998), with the part of the request that is left in place of
the similarity of two texts, and weights that are fitted.

Lost: BM25 of the name and of the description by themselves, nearness of the name, of the first sentence, of the
arguments and of the server, nearness by static vectors that were fitted to 41,000 pairs of requests and tools of
other sets, requests without the sentence that says why somebody asks (none adds a point); how many tools the server
has (a server of 199 teaches that large ones are right); the length of the description (its sign changes with what is
counted), the share of the request that a tool or its server says; a place for what is near to a tool that is placed, of
its server or of another, what the evidence says of each step by itself (nothing beside the two).
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from metatree_memory_tools.mcp_server.source import KIND
from metatree_routers import TextEvidence
from metatree_routers.embeddings.choose import SLOW
from metatree_routers.embeddings.static import Embedder, cosines, static_embedder
from metatree_routers.evidence.signals.input_finders import finders
from metatree_routers.index.index import IndexSnapshot
from metatree_routers.index.node_texts import NodeTexts
from metatree_routers.index.vectors import MOST_VECTORS
from metatree_routers.query.parse import MAX_CHARS
from metatree_routers.query.terms import term_counts
from metatree_routers.query.wording import names_person, request_steps, request_words

from metatree import Node, Tree
from metatree.protocols import Scored

FEATURES: Final = ("evidence", "request", "step", "name", "server", "words", "named")
"""What the evidence says of a tool; its nearness to the request, and to the step nearest to it; how much of its name is
in the request, by rarity; what the evidence says of the best tool of its server; how near the words of the request,
by rarity, come to any word of it; how rare the name of its server is, where the request has all of it."""
WEIGHTS: Final = np.array([0.4, 0.2, 0.4, 0.25, 0.6, 0.15, 0.3])
GAINS: Final = np.array([0.6, 0.6])
"""Weights of how much nearer than the tools before it a tool comes to the steps of the request, and to its words."""
CANDIDATES: Final = 60
PLACED: Final = 10
"""So many tools have their places one after the other; those behind them have the order of their sums."""
_TAKING: Final = 3
"""So many of the best tools have what finds their input by name behind them."""
_UNSAID: Final = 0.05
"""Score of a tool for its nearness in meaning alone."""
_PERSON: Final = "person"
"""What a request does not say of somebody whom it names, and tools do ("search people", "credits of a person")."""
_MOST_WORDS: Final = 30
_LINE: Final = 200
_MOST_VECTORS: Final = 50_000
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[_\-./{}]+")
_TOKEN: Final = re.compile(r"[^\W_]+")
_ANY_SERVER: Final = frozenset(("api", "mcp", "server"))
_WORDS_UNIT: Final = 10.0
"""Of what is gained in words, so that its weight is of the size of the others."""
_WORD: Final = re.compile(r"[^\W\d_]{3,}")
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s|\n")

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Candidates:
    """What is known of the n tools that may be placed."""

    features: Floats
    """(n, 7) of each tool, in `FEATURES`: distances from the mean of all of them, in standard deviations."""
    steps: Floats
    """(n, s) the same of its nearness to each step of the request."""
    words: Floats
    """(n, w) how near it comes to each word of the request, times the share of that word by rarity."""

    def gains(self, placed: Sequence[int]) -> Floats:
        """Return (n, 2): how much nearer than those that are placed each tool comes to the steps, and to the words."""
        if not placed:
            return np.zeros((len(self.features), 2))
        steps = self.steps - np.maximum(self.steps[placed].max(axis=0), 0.0)
        words = self.words - self.words[placed].max(axis=0)
        return np.stack(
            [np.maximum(steps, 0.0).mean(axis=1), _WORDS_UNIT * np.maximum(words, 0.0).sum(axis=1)], axis=1
        )

    def order(self, weights: Floats, gains: Floats, most: int = PLACED) -> list[int]:
        """Return the numbers of the tools, the likeliest first."""
        sums = self.features @ weights
        placed: list[int] = []
        for _ in range(min(most, len(sums))):
            left = sums + self.gains(placed) @ gains
            left[placed] = -np.inf
            placed.append(int(left.argmax()))
        rest = set(placed)
        return placed + [at for at in np.argsort(-sums, kind="stable").tolist() if at not in rest]


class ToolEvidence(TextEvidence):
    """Evidence for a tree of tools."""

    def __init__(self, tree: Tree) -> None:
        super().__init__(tree)
        self._vectors: dict[str, npt.NDArray[np.float32]] = {}

    def rank(
        self,
        questions: Sequence[str],
        *,
        under: str | None = None,
        among: Collection[str] | None = None,
        k: int = 10,
    ) -> list[Scored]:
        """Score as `TextEvidence.rank` does; of the best tools, the order is that of the fitted sum."""
        questions = [f"{each} {_PERSON}" if names_person(each) else each for each in questions]
        found = super().rank(questions, under=under, among=among, k=max(k, CANDIDATES))
        if len(questions) != 1 or (self._embedding in SLOW and not self._keeps_vectors()):
            return found[:k]  # it would take longer than it is worth
        if not found and under in (None, ".") and among is None:
            found = self._nearest(questions[0])  # no tool has a word of the request
        tools = self.tools(found)
        if len(tools) < 2:
            return found[:k]
        own = {node.id: node for _, node in tools}
        order = self.candidates(questions[0], tools).order(WEIGHTS, GAINS)
        ids = self._with_finders(questions[0], [tools[at][1].id for at in order], own)
        ranked = iter([own[id_] for id_ in ids])
        return [
            Scored((node := next(ranked)).id, each.score, node.description[:_LINE])
            if each.node_id in own
            else each
            for each in found[:k]
        ]

    def _with_finders(self, request: str, ids: list[str], own: Collection[str]) -> list[str]:
        """Put what finds by name the input of one of the best tools behind the first that takes it."""

        def find(snapshot: IndexSnapshot) -> dict[str, str]:
            numbers = snapshot.numbers(ids[:_TAKING])
            texts, alive = NodeTexts(self._tree, snapshot).signatures, snapshot.table.alive
            found = finders(
                snapshot, [numbers[id_] for id_ in ids[:_TAKING]], request[:MAX_CHARS], texts, alive
            )
            names = snapshot.ids([*found, *(taking for taking, _ in found.values())])
            return {names[finder]: names[taking] for finder, (taking, _) in found.items()}

        for finder, taking in self.query(find).items():
            if finder in own and ids.index(finder) > ids.index(taking):
                ids.remove(finder)
                ids.insert(ids.index(taking) + 1, finder)
        return ids

    def _nearest(self, request: str) -> list[Scored]:
        """Return the tools that are nearest to a request in meaning, in a tree whose vectors are kept."""
        embedder = self._embedder() if self._embedder is not None else None
        if embedder is None or not self._keeps_vectors():
            return []
        asked = embedder.embed([request_words(request)])

        def find(snapshot: IndexSnapshot) -> list[Scored]:
            vectors, table = snapshot.vectors(), snapshot.table
            nodes = np.flatnonzero((table.of_kind({KIND}) & table.alive)[: len(vectors)])
            if not len(nodes):
                return []
            near = cosines(vectors[nodes], asked)[0]
            best = np.argsort(-near, kind="stable")[:CANDIDATES]
            ids = snapshot.ids(nodes[best].tolist())
            return [
                Scored(ids[int(nodes[at])], max(0.0, float(near[at])) * _UNSAID, "") for at in best.tolist()
            ]

        return self.query(find)

    def _keeps_vectors(self) -> bool:
        return len(self._tree) <= MOST_VECTORS

    def tools(self, found: Sequence[Scored]) -> list[tuple[Scored, Node]]:
        """Return the best tools among nodes that were found, with their nodes."""
        nodes = {node.id: node for node, _, _ in self._tree.texts([each.node_id for each in found])}
        tools = [(each, nodes[each.node_id]) for each in found if each.node_id in nodes]
        return [(scored, node) for scored, node in tools if node.kind == KIND][:CANDIDATES]

    def candidates(self, request: str, tools: Sequence[tuple[Scored, Node]]) -> Candidates:
        """Return what is known of these tools beside each other."""
        names = [_CAMEL.sub(" ", node.title).lower() for _, node in tools]
        texts = [f"{name} {node.description}" for name, (_, node) in zip(names, tools, strict=True)]
        evidence = np.array([scored.score for scored, _ in tools])
        best: dict[str, float] = {}
        servers = [scored.node_id.partition("/")[0] for scored, _ in tools]
        for server, score in zip(servers, evidence.tolist(), strict=True):
            best[server] = max(score, best.get(server, 0.0))
        wanted, named = term_counts(request).keys(), [term_counts(name).keys() for name in names]
        of_servers = {server: term_counts(_CAMEL.sub(" ", server)).keys() for server in best}
        frequencies, count = self.document_frequencies(
            {*wanted, *(term for terms in (*named, *of_servers.values()) for term in terms)}
        )
        unknown = math.log((count + 1) / 0.5)
        rarity = {term: math.log((count + 1) / (times + 0.5)) for term, times in frequencies.items()}
        weight = {term: max(0.0, rarity.get(term, unknown)) for name in named for term in name}
        shares = [
            sum(weight[term] for term in name if term in wanted) / (sum(map(weight.__getitem__, name)) or 1.0)
            for name in named
        ]
        asked = _tokens(request)
        called = {
            server: max((rarity.get(term, unknown) for term in terms), default=0.0)
            if _says(asked, _tokens(server))
            else 0.0
            for server, terms in of_servers.items()
        }
        near = self._near(request, texts, [node.id for _, node in tools])
        whole, steps, words = near[:, 0], near[:, 1:], self._near_words(request, texts, rarity, unknown)
        columns = (
            evidence,
            whole,
            steps.max(axis=1),
            np.array(shares),
            np.array([best[server] for server in servers]),
            words.sum(axis=1),
            np.array([called[server] for server in servers]),
        )
        return Candidates(np.stack([_spread(each) for each in columns], axis=1), _spread(steps), words)

    def _near(self, request: str, texts: Sequence[str], ids: Sequence[str]) -> Floats:
        """Return (n, 1 + s): how near each text is to a request, and to each of its steps."""
        asked = [request, *(request_steps(request) or [request_words(request)])]
        embedder = self._embedder() if self._embedder is not None else None
        if embedder is None:
            return np.zeros((len(texts), 2))
        queries = embedder.embed(asked)
        if self._embedding not in SLOW:
            return np.asarray(embedder.embed(list(texts)) @ queries.T, dtype=np.float64)

        def kept(snapshot: IndexSnapshot) -> Floats:
            vectors, numbers = snapshot.vectors(), snapshot.numbers(ids)
            return np.asarray(cosines(vectors[[numbers[id_] for id_ in ids]], queries).T, dtype=np.float64)

        return self.query(kept)

    def _near_words(
        self, request: str, texts: Sequence[str], rarity: dict[str, float], unknown: float
    ) -> Floats:
        """Return (n, w): how near each text comes to each word of a request, times the share of that word by rarity."""
        wanted = list(dict.fromkeys(_WORD.findall(request_words(request).lower())))
        embedder = static_embedder() if self._embedder is not None else None
        if embedder is None or not wanted:
            return np.zeros((len(texts), 1))
        weights = np.array([max(0.1, _rarity_of(word, rarity, unknown)) for word in wanted])
        asked = self._of_words(embedder, wanted)
        closest: list[npt.NDArray[np.floating]] = []
        for text in texts:
            own = list(dict.fromkeys(_WORD.findall(_first(text).lower())))[:_MOST_WORDS]
            closest.append(
                (asked @ self._of_words(embedder, own).T).max(axis=1) if own else np.zeros(len(wanted))
            )
        return np.asarray(np.array(closest) * weights / weights.sum(), dtype=np.float64)

    def _of_words(self, embedder: Embedder, words: Sequence[str]) -> npt.NDArray[np.float32]:
        known = self._vectors
        if len(known) > _MOST_VECTORS:
            known.clear()
        new = [word for word in words if word not in known]
        if new:
            known.update(zip(new, embedder.embed(new), strict=True))
        return np.stack([known[word] for word in words])


def _first(text: str) -> str:
    return _SENTENCE.split(text, maxsplit=1)[0][:300]


def _rarity_of(word: str, rarity: dict[str, float], unknown: float) -> float:
    return rarity.get(next(iter(term_counts(word)), word), unknown)


def _tokens(text: str) -> list[str]:
    return [token for token in _TOKEN.findall(_CAMEL.sub(" ", text).lower()) if token not in _ANY_SERVER]


def _says(tokens: Sequence[str], name: Sequence[str]) -> bool:
    """Say whether a name stands among the tokens, all of it and in its order."""
    return bool(name) and any(
        tokens[at : at + len(name)] == name for at in range(len(tokens) - len(name) + 1)
    )


def _spread(values: npt.NDArray[np.floating]) -> Floats:
    return np.asarray((values - values.mean(axis=0)) / (values.std(axis=0) + 1e-6), dtype=np.float64)
