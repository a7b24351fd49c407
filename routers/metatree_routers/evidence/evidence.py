"""Evidence from words: scores nodes for questions by the text index, without a model.

Scores are comparable across questions as far as words go: the best node's score is the square root of the share of
the question's weight (rare words weigh more, unknown words most) that is found in it, and every other node's score
is its share of what speaks for the best one.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Literal, TypeVar, overload
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from metatree.errors import UnknownNode
from metatree.node import Node
from metatree.notes.wishes import standing
from metatree.protocols import ABSTAINED, EarlierStatement, Evidence, Passage, Scored, ToolSpec, Traits
from metatree.result import QuestionNote
from metatree.storage.store import Store
from metatree.trees.tree import Tree
from metatree_routers.embeddings.choose import SLOW, embedder_of, embedding_set
from metatree_routers.embeddings.static import static_embedder
from metatree_routers.evidence._asked_tools import asked_for
from metatree_routers.evidence._choose import LOOKED_AT, copies, shown_scores
from metatree_routers.evidence._explain_nodes import Explainer
from metatree_routers.evidence._misspelt import corrected, unknown_name
from metatree_routers.evidence._nearness import nearness
from metatree_routers.evidence._question import rank_question
from metatree_routers.evidence._ranking import (
    Ranking,
    in_order,
    rank,
    readable,
    readable_mask,
    together,
)
from metatree_routers.evidence._talk import rank_talk
from metatree_routers.evidence.signals.asker import is_of_talk
from metatree_routers.evidence.signals.feedback import Feedback, flag_clause, flagged_for, lowered
from metatree_routers.evidence.signals.named_commits import named_commits, names_of_commits
from metatree_routers.evidence.signals.rerank import Reranker
from metatree_routers.index.commits import CommitIndex, SimilarCommit
from metatree_routers.index.index import IndexedTree, IndexSnapshot, TextIndex
from metatree_routers.index.node_table import Ints, NodeTable
from metatree_routers.index.node_texts import NodeTexts
from metatree_routers.index.store import is_indexed
from metatree_routers.index.vectors import MOST_VECTORS, Progress
from metatree_routers.query.best_line import best_line
from metatree_routers.query.cover import cover_of
from metatree_routers.query.key_terms import key_terms_of, missing
from metatree_routers.query.languages import language_of, languages_of
from metatree_routers.query.names import name_parts
from metatree_routers.query.parse import MAX_CHARS, sections

if (
    TYPE_CHECKING
):  # what reads for an answer is loaded when that is asked for: `find` and `files` need none of it
    from metatree_routers.passages.candidates import Text
    from metatree_routers.passages.features import PassageCandidate

    RankedPassages = list[tuple[PassageCandidate, float]]
    SaidBefore = dict[PassageCandidate, tuple[EarlierStatement, ...]]
    # Contents by node, their candidates, what contradicts them, and those that were made whole statements.
    _KnownPassages = tuple[dict[str, Text], RankedPassages, SaidBefore, dict[PassageCandidate, Passage]]

_CACHED_SCORES = 6_000_000
"""Numbers kept by the cache of rankings, three for each node."""
_MOST_RANKINGS = 32
_MOST_FILE_RANKINGS = 4
_MOST_LINES = 4_096
_BLOCK = 512
_EAGER_LINES = 20
"""Up to so many results have their lines at once; of more, lines are computed in blocks when they are asked for."""
_LINE_BLOCK = 10
PASSAGE_NODES = 60
"""Contents in which the passages that may answer are looked for."""
_COVERING = 20
"""Of them, those that hold most of the question's words. BM25 puts a long text last that answers in one of its lines:
a changelog that says when a version was released."""
_COVERING_WORDS = 20_000
"""They have together, at most."""
_LOOKED_AT = 3
"""Nodes looked at for each of them: folders and files that have no content of their own come between."""
_LEAST_LEFT = 0.75
"""Of how likely a passage answers that was flagged: that changes the order, and does not say that nothing is found."""
_FOREIGN_SHARE = 0.5
"""Of how likely a passage answers, for a question in a language that no text is in: what they share is names.

Of 120 questions for an option, in the words of the German, French and Spanish pages of man, on 380 English pages, 15
had the right passage first; without this share four would be claimed at .5, two of them right."""
_SAMPLED_TEXTS = 60
"""Texts by which the languages of a tree are told."""

_languages: WeakKeyDictionary[NodeTable, tuple[str, ...]] = WeakKeyDictionary()
"""The languages of the texts of a tree, at one moment of its index."""

T = TypeVar("T")
_RankingKey = tuple[tuple[str, ...], int, int | None, tuple[str, ...], bool]
"""Questions, generation of the index, scope, ids of flags, whether nodes are listed."""


class _LateScored(Scored):
    """A scored node whose line is computed when it is asked for: of two hundred results, a menu shows ten."""

    __slots__ = ("_find",)
    _find: Callable[[], str]
    __hash__ = Scored.__hash__

    def __init__(self, node_id: str, score: float, find: Callable[[], str]) -> None:
        object.__setattr__(self, "node_id", node_id)
        object.__setattr__(self, "score", score)
        object.__setattr__(self, "_find", find)

    @property
    def line(self) -> str:
        text: str = self._find()
        return text

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Scored):
            return NotImplemented
        return (self.node_id, self.score, self.line) == (other.node_id, other.score, other.line)

    def __reduce__(self) -> tuple[type[Scored], tuple[str, float, str]]:
        return Scored, (self.node_id, self.score, self.line)


class TextEvidence(Evidence):
    """Scores nodes for questions by their words; implements `metatree.Evidence`. Threads may share it.

    The index follows the tree: each call first takes in what has changed, which is cheap when nothing has.

    Args:
        tree: the tree; the index is kept in its disposable store.
        embeddings: whether embeddings are used, those of the setting `embedding`; False for words alone.
        history: whether past commits are evidence for files, where the tree was built with its history.
        progress: called with (nodes done, nodes to do) while the index is built.
    """

    traits = Traits(may_abstain=True, gives_passages=True)

    def __init__(
        self,
        tree: IndexedTree,
        *,
        embeddings: bool = True,
        history: bool = True,
        progress: Progress | None = None,
    ) -> None:
        self._tree = tree
        self._embeddings = embeddings
        self._embedding = embedding_set() if embeddings else "none"
        self._embedder = embedder_of(self._embedding)
        self._progress = progress
        self._lock = threading.Lock()
        self._rankings: OrderedDict[_RankingKey, Ranking] = OrderedDict()
        self._file_rankings: OrderedDict[tuple[str, int, str], Ranking] = OrderedDict()
        self._passages: OrderedDict[tuple[str, str | None, int], _KnownPassages] = OrderedDict()
        self._nearness: tuple[tuple[str, tuple[str, ...]], list[float]] | None = None
        self._read_as: dict[tuple[str, int], str] = {}
        self._known_lines: dict[tuple[tuple[str, ...], str], str] = {}
        self.index = TextIndex(tree, embedder=self._embedder, embedding=self._embedding)
        self.commits = CommitIndex(tree.index) if history and isinstance(tree.index, Store) else None
        self._feedback = Feedback(tree.memory) if isinstance(tree, Tree) else None

    def score(
        self,
        questions: Sequence[str],
        *,
        under: str | None = None,
        among: Collection[str] | None = None,
        k: int = 10,
        exclude: Collection[str] = (),
    ) -> list[Scored]:
        """Return at most `k` nodes, best first, without those that nothing speaks for.

        Where no text of the tree has a word that every question turns on, all scores are at most `ABSTAINED`; not with
        `among`, which asks for the best of some nodes, whatever they say. Of more than 20 results, the `line` is
        computed when it is first looked at, as the tree is then.

        Args:
            under: only this node and what lies below it.
            among: only these nodes, each with the best score at or below it. With `under`, those below it compete with
                each other alone.
            exclude: leave these nodes out, and what lies below them.

        Raises:
            UnknownNode: `under` is not in the tree.
        """
        return self._score(questions, under, among, k, exclude, may_abstain=among is None)

    def rank(
        self,
        questions: Sequence[str],
        *,
        under: str | None = None,
        among: Collection[str] | None = None,
        k: int = 10,
    ) -> list[Scored]:
        """Score as `score` does, but never abstain: for showing the best nodes, whatever they say.

        In a tree of code, of each file the part that carries its evidence comes first, or the file itself where its
        parts share it; what else is in the file comes behind the best of others; and copies have one place.
        """
        return self._score(questions, under, among, k, (), may_abstain=False, shown=True)

    def _score(
        self,
        questions: Sequence[str],
        under: str | None,
        among: Collection[str] | None,
        k: int,
        exclude: Collection[str],
        *,
        may_abstain: bool,
        shown: bool = False,
    ) -> list[Scored]:
        cleaned = self._read(questions)

        def find(snapshot: IndexSnapshot) -> list[tuple[str, float, str]]:
            scope = None if among is None else _number(snapshot, under)
            ranking = self.ranking(snapshot, cleaned, scope, shown=shown)
            scored = (show if shown and ranking.code is not None else best)(snapshot, ranking)
            if may_abstain and self._abstains(ranking, cleaned):
                scored = [(number, score * ABSTAINED) for number, score in scored]
            source_nodes = ranking.source_nodes(snapshot.table, [number for number, _ in scored])
            ids = snapshot.ids({*(number for number, _ in scored), *source_nodes})
            return [
                (ids[number], score, ids[who])
                for (number, score), who in zip(scored, source_nodes, strict=True)
            ]

        def best(snapshot: IndexSnapshot, ranking: Ranking) -> list[tuple[int, float]]:
            if among is not None:
                numbers = np.array(sorted(snapshot.numbers(among).values()), dtype=np.int32)
                numbers = numbers[ranking.best_below[numbers] > 0]
                numbers = numbers[np.argsort(-ranking.best_below[numbers], kind="stable")]
                numbers = numbers[~_barred(snapshot, numbers, exclude)][:k]
                return [(int(number), float(ranking.best_below[number])) for number in numbers]
            chosen = islice(_in_order(snapshot, ranking.order, _number(snapshot, under), exclude), k)
            return [(number, float(ranking.scores[number])) for number in chosen]

        def show(snapshot: IndexSnapshot, ranking: Ranking) -> list[tuple[int, float]]:
            allowed = readable_mask(snapshot.table) | snapshot.table.of_kind({"file", "definition"})
            if among is not None:
                allowed = np.zeros(len(snapshot.table), dtype=bool)
                allowed[list(snapshot.numbers(among).values())] = True
            scores = shown_scores(snapshot.table, ranking, allowed)
            order = _in_order(snapshot, in_order(scores), _number(snapshot, under), exclude)
            chosen = list(islice(order, k + LOOKED_AT))
            ids = snapshot.ids(chosen)
            repeated = copies([ids[number] for number in chosen], self._texts_of)
            return [(n, float(scores[n])) for n in chosen if ids[n] not in repeated][:k]

        if not cleaned or k <= 0:
            return []
        scored = self.query(find)
        source_nodes = [source_node for _, _, source_node in scored]
        if len(scored) <= _EAGER_LINES:
            lines = self._lines(cleaned, set(source_nodes))
            return [
                Scored(id_, min(1.0, score), lines.get(source_node, "")) for id_, score, source_node in scored
            ]

        def line(at: int) -> str:
            first = at - at % _LINE_BLOCK
            return self._lines(cleaned, set(source_nodes[first : first + _LINE_BLOCK])).get(
                source_nodes[at], ""
            )

        return [
            _LateScored(id_, min(1.0, score), partial(line, at)) for at, (id_, score, _) in enumerate(scored)
        ]

    def why(self, questions: Sequence[str], node: str, *, under: str | None = None) -> str:
        """Say in a short sentence why a node was found; empty when nothing speaks for it.

        Args:
            under: the node below which alone nodes competed, if any.
        """
        return self.reasons(questions, [node], under=under).get(node, "")

    def reasons(
        self, questions: Sequence[str], nodes: Sequence[str], *, under: str | None = None
    ) -> dict[str, str]:
        """Say why each of these nodes was found, by one look at the index; see `why`."""
        cleaned = self._read(questions)

        def find(snapshot: IndexSnapshot) -> dict[str, str]:
            ranking = self.ranking(snapshot, cleaned, _number(snapshot, under), shown=True)
            texts = NodeTexts(self._tree, snapshot)
            known: dict[int, str] = {}

            def titles(numbers: Sequence[int]) -> dict[int, str]:
                new = [number for number in numbers if number not in known]
                known.update(zip(new, texts.titles(new), strict=True))
                return known

            ids = {number: node for node, number in snapshot.numbers(nodes).items()}
            explainer = Explainer(snapshot, ranking, cleaned, ids, titles, texts)
            flagged = flagged_for(self._feedback, cleaned)
            return {
                # people are shown the first clause
                node: "; ".join(filter(None, (flag_clause(flagged.get(node)), explainer.reason(number))))
                for number, node in ids.items()
            }

        return self.query(find) if cleaned and nodes else {}

    def missing(self, question: str) -> tuple[str, ...]:
        """Return the words that the question turns on and that no text of the tree has, if there are any."""
        cleaned = self._read([question])
        return (
            self.query(lambda snapshot: self._missing(self.ranking(snapshot, cleaned), cleaned[0]))
            if cleaned
            else ()
        )

    def asked_for(self, question: str, offers: Sequence[tuple[ToolSpec, Node]]) -> list[int]:
        """Return the numbers of the tools that a question asks for outright, the surest first."""
        return asked_for(question, offers)

    def note(self, question: str) -> QuestionNote | None:
        """Say which words were corrected, and whether the question is in a language that no text is in."""
        foreign = self._foreign(question)
        if foreign is not None:
            return QuestionNote(question, "", *foreign)
        read_as = self._corrected(question)
        if read_as != question:
            return QuestionNote(question, read_as)
        unknown = self.query(partial(unknown_name, question)) if name_parts(question) else ""
        return QuestionNote(question, unknown=unknown) if unknown else None

    def in_time(self, question: str) -> bool:
        """Whether a question wants what was said in the order of time."""
        cover = cover_of(question)
        return cover is not None and cover.in_time and self.query(is_of_talk)

    def near(self, question: str, texts: Sequence[str]) -> list[float]:
        """Say how near a question is in meaning to each of some short texts, in [0, 1]."""
        if (
            not texts
        ):  # as nearly always: no wish was made, and the embedder takes a tenth of a second to load
            return []
        key = (question, tuple(texts))
        known = self._nearness  # a ranking and what is offered beside it ask for the same
        if known is None or known[0] != key:
            found = nearness(question, texts, static_embedder() if self._embeddings else None)
            self._nearness = known = (key, found)
        return list(known[1])

    def _wishes(self, question: str, under: str | None) -> dict[str, float]:
        """Say how near the question is to the standing wishes that hold there, by the nodes that state them."""
        wishes = standing(self._tree, under) if isinstance(self._tree, Tree) else []
        near: dict[str, float] = {}
        for wish, how_near in zip(
            wishes, self.near(question, [wish.about or wish.text for wish in wishes]), strict=True
        ):
            near[wish.source] = max(how_near, near.get(wish.source, 0.0))
        return near

    def _foreign(self, question: str) -> tuple[str, tuple[str, ...]] | None:
        """Return the language of a question, and those of the texts when no text is in it; else None."""
        language = language_of(question)
        languages = () if language is None else self.query(self._languages)
        return (
            (language, languages)
            if language is not None and languages and language not in languages
            else None
        )

    def _languages(self, snapshot: IndexSnapshot) -> tuple[str, ...]:
        """Return the languages of some texts, taken evenly; the latest are remembered."""
        languages = _languages.get(snapshot.table)
        if languages is None:
            numbers = np.flatnonzero(snapshot.table.alive)
            sample = numbers[:: max(1, len(numbers) // _SAMPLED_TEXTS)].tolist()
            languages = languages_of(NodeTexts(self._tree, snapshot).contents(sample))
            _languages[snapshot.table] = languages
        return languages

    def _corrected(self, question: str) -> str:
        """Return a question as it is read: with words that are in no text corrected; the latest are remembered."""
        if not question.strip() or sections(question).is_long or self._foreign(question) is not None:
            return question
        embedder = static_embedder if self._embeddings else None

        def find(snapshot: IndexSnapshot) -> str:
            key = (question, snapshot.generation)
            with self._lock:
                known = self._read_as.get(key)
            if known is None:
                known = corrected(question, snapshot, NodeTexts(self._tree, snapshot), embedder)
                with self._lock:
                    if len(self._read_as) > _MOST_RANKINGS:
                        self._read_as.clear()
                    self._read_as[key] = known
            return known

        return self.query(find)

    def _read(self, questions: Sequence[str]) -> tuple[str, ...]:
        """Return questions as they are read."""
        return tuple(dict.fromkeys(map(self._corrected, _cleaned(questions))))

    def passages(
        self, question: str, *, under: str | None = None, k: int = 3, text: tuple[Node, str] | None = None
    ) -> list[Passage]:
        """Return at most `k` passages that may answer a question, the likeliest first; see `passages.ranking`.

        Args:
            under: only of this node and what lies below it.
            text: a node and a content: of this content too, which need not be the one in the tree.
        """
        if not question.strip() or k <= 0:
            return []
        from metatree_routers.passages.ranking import best_apart

        texts, ranked, said_before, widened = self._ranked_passages(self._corrected(question), under, text)
        share = _FOREIGN_SHARE if self._foreign(question) else 1.0
        flagged = {} if self._feedback is None else self._feedback.of(question)
        left = {node: max(each.left, _LEAST_LEFT) for node, each in flagged.items()}
        ranked = [(each, share * left.get(each.node, 1.0) * score) for each, score in ranked]
        ranked.sort(key=lambda pair: -pair[1])
        passages = best_apart(ranked, k, texts, widened)
        if ranked and (earlier := said_before.get(ranked[0][0])):
            passages[0] = replace(passages[0], earlier=earlier)
        return passages

    def _lineage(self, node: str) -> list[tuple[Node, str]]:
        """Return a node and those above it, the nearest first, each with its content."""
        lineage: list[tuple[Node, str]] = []
        at: str | None = node
        while at is not None:
            at, found = next(
                ((above, (each, text)) for each, above, text in self._tree.texts([at])), (None, None)
            )
            if found is not None:
                lineage.append(found)
        return lineage

    def _ranked_passages(
        self, question: str, under: str | None = None, text: tuple[Node, str] | None = None
    ) -> _KnownPassages:
        """Rank the passages of the best nodes for a question, and of another content; the latest are remembered.

        Returns:
            The contents by node; their passages; what was said before that contradicts the latest of them; and those of
            them that were made whole statements.
        """
        key = (question, under, self.query(lambda snapshot: snapshot.generation))
        with self._lock:
            known = self._passages.get(key)
        if known is None:
            texts = {each.node.id: each for each in self.texts(question, under=under)}
            known = (texts, *self._rank(question, texts.values()), {})
            with self._lock:
                self._passages[key] = known
                while len(self._passages) > _MOST_RANKINGS:
                    self._passages.popitem(last=False)
        if text is None:
            return known
        node, content = text
        texts = known[0]
        there = texts.get(node.id)
        if there is not None and there.content == content:
            return known
        from metatree_routers.passages.candidates import Text

        evidence = 0.0 if there is None else there.evidence
        texts = {**texts, node.id: Text(node, content, evidence)}
        return texts, *self._rank(question, texts.values()), {}

    def _rank(self, question: str, texts: Collection[Text]) -> tuple[RankedPassages, SaidBefore]:
        from metatree_routers.passages.asked import read_question
        from metatree_routers.passages.candidates import weigh
        from metatree_routers.passages.later import in_time
        from metatree_routers.passages.ranking import rank_passages

        asked = read_question(question, embeddings=self._embeddings)
        frequencies = self.document_frequencies(asked.weights)
        ranked = rank_passages(asked, texts, *frequencies, static_embedder() if self._embeddings else None)
        ranked, earlier = in_time(asked, weigh(asked, *frequencies), ranked, self._lineage)
        return ranked, {ranked[0][0]: earlier} if earlier else {}

    def texts(self, question: str, *, under: str | None = None) -> Iterator[Text]:
        """Yield the contents of the nodes that most speaks for, and of those that hold most of the question's words.

        Each has the evidence for it.
        """
        from metatree_routers.passages.candidates import Text
        from metatree_routers.passages.release import is_below_release, is_release

        scores = {
            scored.node_id: scored.score
            for scored in self._score(
                [question], under, None, _LOOKED_AT * PASSAGE_NODES, (), may_abstain=False
            )
        }
        covering = self._covering(self._corrected(question), under)
        wanted = dict.fromkeys([*scores, *covering])
        given = [each for each in self._tree.texts(list(wanted)) if each[2]]
        found = {node.id: (node, content) for node, _, content in given}
        best = [id_ for id_ in scores if id_ in found]
        first = dict.fromkeys(best[: PASSAGE_NODES - _COVERING])
        chosen = dict.fromkeys([*first, *(id_ for id_ in covering if id_ in found), *best])
        parents = {node.id: parent for node, parent, _ in given if parent and is_below_release(node)}
        titles = {node.id: node.title for node, _, _ in self._tree.texts(sorted(set(parents.values())))}
        for id_ in islice(chosen, PASSAGE_NODES):
            above = titles.get(parents.get(id_, ""), "")
            yield Text(*found[id_], scores.get(id_, 0.0), above if is_release(above) else "")

    def _covering(self, question: str, under: str | None) -> list[str]:
        """Return the nodes whose texts hold most of a question's words, by weight; of equals the shorter first."""
        from metatree_routers.passages.asked import read_question
        from metatree_routers.passages.candidates import weigh

        asked = read_question(question, embeddings=self._embeddings)
        weights = weigh(asked, *self.document_frequencies(asked.weights))

        def find(snapshot: IndexSnapshot) -> list[str]:
            table = snapshot.table
            lengths, covered = table.lengths[:, 2], np.zeros(len(table))
            for term, rows in snapshot.postings(weights).items():
                covered[rows["node"]] += weights[term]
            allowed = table.alive & (lengths > 0) & (lengths <= _COVERING_WORDS)
            nodes = np.flatnonzero(allowed & (covered > 0)).astype(np.int32)
            scope = _number(snapshot, under)
            if scope is not None:
                nodes = nodes[table.nearest(nodes, [scope]) >= 0]
            nodes = nodes[np.lexsort((lengths[nodes], -covered[nodes]))][:PASSAGE_NODES]
            nodes = nodes[np.cumsum(lengths[nodes]) <= _COVERING_WORDS]
            ids = snapshot.ids(nodes.tolist())
            return [ids[number] for number in nodes.tolist()]

        return self.query(find)

    def _texts_of(self, ids: Collection[str]) -> dict[str, str]:
        """Return the contents of nodes, of those without any their descriptions."""
        return {node.id: content or node.description for node, _, content in self._tree.texts(sorted(ids))}

    def document_frequencies(self, terms: Collection[str]) -> tuple[dict[str, int], int]:
        """Return in how many texts each of these terms is, and how many texts there are."""

        def find(snapshot: IndexSnapshot) -> tuple[dict[str, int], int]:
            return {
                term: len(list_) for term, list_ in snapshot.postings(terms).items()
            }, snapshot.table.n_texts

        return self.query(find)

    def _missing(self, ranking: Ranking, question: str) -> tuple[str, ...]:
        words = key_terms_of(question, embeddings=self._embeddings)
        return missing(words, lambda word: word.is_in(ranking.weights))

    def _abstains(self, ranking: Ranking, questions: tuple[str, ...]) -> bool:
        return all(self._missing(ranking, question) for question in questions)

    def below(
        self, questions: Sequence[str], nodes: Collection[str], *, k: int = 3, exclude: Collection[str] = ()
    ) -> dict[str, list[Scored]]:
        """Return, for each of these nodes, the best `k` at or below it that can be read; for hints.

        Nodes without evidence have an empty list. What lies below two of the nodes belongs to the nearer one.
        """
        cleaned = self._read(questions)
        hints: dict[str, list[Scored]] = {id_: [] for id_ in nodes}
        if not cleaned or k <= 0:
            return hints

        def find(snapshot: IndexSnapshot) -> dict[str, list[tuple[str, float]]]:
            ranking = self.ranking(snapshot, cleaned)
            numbers = snapshot.numbers(nodes)
            groups: dict[int, list[int]] = {number: [] for number in numbers.values()}
            wanted = sum(float(ranking.best_below[number]) > 0 for number in groups) * k
            for block in _blocks(readable(snapshot.table, ranking.order)):
                if not wanted:
                    break
                above = snapshot.table.nearest(block, groups)
                block, above = block[above >= 0], above[above >= 0]
                barred = _barred(snapshot, block, exclude)
                for number, group in zip(block[~barred].tolist(), above[~barred].tolist(), strict=True):
                    if len(groups[group]) < k:
                        groups[group].append(number)
                        wanted -= 1
            ids = snapshot.ids(number for group in groups.values() for number in group)
            return {
                id_: [(ids[n], float(ranking.scores[n])) for n in groups[number]]
                for id_, number in numbers.items()
            }

        groups = self.query(find)
        lines = self._lines(cleaned, {node for hits in groups.values() for node, _ in hits})
        for id_, hits in groups.items():
            hints[id_] = [Scored(node, min(1.0, score), lines.get(node, "")) for node, score in hits]
        return hints

    def ranking(
        self,
        snapshot: IndexSnapshot,
        questions: tuple[str, ...],
        scope: int | None = None,
        *,
        shown: bool = False,
    ) -> Ranking:
        """Return the ranking of all nodes for these questions; a few of the latest are remembered.

        Args:
            shown: whether nodes are to be listed, where a tree of code has its own ranking, or read for an answer.
            scope: number of the node below which alone nodes compete; a report is always ranked over all.
        """
        flagged = () if self._feedback is None else self._feedback.token()
        key = (questions, snapshot.generation, scope, flagged, shown)
        with self._lock:
            known = self._rankings.get(key)
            if known is not None:
                self._rankings.move_to_end(key)
                return known
        embedder = self._embedder
        if len(questions) > 1:
            ranking = together(
                [self.ranking(snapshot, (question,), scope, shown=shown) for question in questions]
            )
        elif sections(questions[0]).is_long:
            ranking = rank(snapshot, questions[0])
        else:
            texts = NodeTexts(self._tree, snapshot)

            def by_words(text: str) -> Ranking:
                return rank_question(snapshot, text, embedder, texts, scope, shown=shown)

            if is_of_talk(snapshot):
                under = None if scope is None else snapshot.ids([scope])[scope]
                wishes = partial(self._wishes, under=under) if shown else None
                ranking = rank_talk(snapshot, questions[0], by_words, texts, wishes, scope)
            else:
                ranking = by_words(questions[0])
        if len(questions) == 1 and self._feedback is not None and flagged:
            ranking = lowered(snapshot, ranking, self._feedback.of(questions[0]))
        with self._lock:
            self._rankings[key] = ranking
            most = max(2, _CACHED_SCORES // (3 * len(snapshot.table) + 1))
            while len(self._rankings) > min(most, _MOST_RANKINGS):
                self._rankings.popitem(last=False)
        return ranking

    def file_query(self, issue: str, query: Callable[[IndexSnapshot, Ranking], T]) -> T:
        """Run a query over the index and the ranking of whole files for an issue; the latest are remembered."""
        issue = issue[:MAX_CHARS].strip()  # a search asks with the stripped one
        token = self.commits.token() if self.commits is not None else ""
        similar: list[SimilarCommit] | None = None
        named: list[SimilarCommit] = []

        def find(snapshot: IndexSnapshot) -> T:
            nonlocal similar, named
            key = (issue, snapshot.generation, token)
            with self._lock:
                ranking = self._file_rankings.get(key)
            if ranking is None:
                if similar is None:
                    similar = []
                    if self.commits is not None and token:
                        parts = sections(issue)
                        similar = self.commits.similar(parts.term_weights())
                        named = named_commits(self.commits, names_of_commits(parts))
                history = self._tree.index if token and isinstance(self._tree.index, Store) else None
                # A slow embedder gained nothing on files, for a second and more (docs/benchmarks/retrieval-code.md).
                embedder = static_embedder if self._embedding in SLOW else self._embedder
                look = Reranker(NodeTexts(self._tree, snapshot), embedder, history)
                ranking = rank(snapshot, issue, similar=similar, named=named, look=look)
                with self._lock:
                    self._file_rankings[key] = ranking
                    while len(self._file_rankings) > _MOST_FILE_RANKINGS:
                        self._file_rankings.popitem(last=False)
            return query(snapshot, ranking)

        return self.query(find)

    def query(self, query: Callable[[IndexSnapshot], T]) -> T:
        """Bring the index up to date and run a query over one moment of it."""
        self._follow()
        return self.index.query(query)

    def _weights(self, snapshot: IndexSnapshot, questions: tuple[str, ...]) -> Mapping[str, float]:
        """Return the weights of the words of questions, which all rankings of them share."""
        with self._lock:
            known = (
                ranking
                for key, ranking in self._rankings.items()
                if key[:2] == (questions, snapshot.generation)
            )
            ranking = next(known, None)
        return (ranking or self.ranking(snapshot, questions)).weights

    def _lines(self, questions: tuple[str, ...], ids: Collection[str]) -> dict[str, str]:
        """Return the line of each node that matches best; of a node without content, of what it is called."""
        with self._lock:
            known = {
                id_: line for id_ in ids if (line := self._known_lines.get((questions, id_))) is not None
            }
        missing = sorted(set(ids) - known.keys())
        if missing:
            weights = self.index.query(lambda snapshot: self._weights(snapshot, questions))
            for node, _, content in self._tree.texts(missing):
                known[node.id] = best_line(content or f"{node.title}\n{node.description}", weights)
            with self._lock:
                self._known_lines.update({(questions, id_): known.get(id_, "") for id_ in missing})
                if len(self._known_lines) > _MOST_LINES:
                    self._known_lines.clear()
        return known

    def refresh(self) -> int:
        """Bring the index up to date, with vectors that take long; return how many nodes were indexed or removed."""
        changed = self._follow()
        if self._embedding in SLOW and len(self._tree) <= MOST_VECTORS:
            self.index.vectors.refresh(self._progress)
        return changed

    def _follow(self) -> int:
        """Bring the index of words, and that of commits, up to date."""
        changed = self.index.refresh(self._progress)
        words = self.index.take_vocabulary()
        if self.commits is not None:
            self.commits.refresh(words)  # what people say of code is mostly said in it
        if changed:
            with self._lock:
                self._known_lines.clear()
        return changed


def _cleaned(questions: Sequence[str]) -> tuple[str, ...]:
    texts = (questions,) if isinstance(questions, str) else tuple(questions)
    return tuple(dict.fromkeys(question[:MAX_CHARS] for question in texts if question.strip()))


def _number(snapshot: IndexSnapshot, id_: str | None) -> int | None:
    if id_ is None or id_ == ".":
        return None
    numbers = snapshot.numbers([id_])
    if id_ not in numbers:
        raise UnknownNode(id_)
    return numbers[id_]


def _in_order(
    snapshot: IndexSnapshot, order: Ints, under: int | None, exclude: Collection[str]
) -> Iterator[int]:
    for block in _blocks(order):
        if under is not None:
            block = block[snapshot.table.nearest(block, [under]) >= 0]
        yield from block[~_barred(snapshot, block, exclude)].tolist()


def _barred(snapshot: IndexSnapshot, nodes: Ints, exclude: Collection[str]) -> npt.NDArray[np.bool_]:
    """Say which of these nodes are excluded, or lie below one that is."""
    if not exclude or not len(nodes):
        return np.zeros(len(nodes), dtype=bool)
    numbers = snapshot.numbers(exclude)
    barred: npt.NDArray[np.bool_] = snapshot.table.nearest(nodes, numbers.values()) >= 0
    return barred


def _blocks(nodes: Ints) -> Iterator[Ints]:
    for start in range(0, len(nodes), _BLOCK):
        yield nodes[start : start + _BLOCK]


@overload
def text_evidence(tree: Tree, *, required: Literal[True] = ...) -> TextEvidence: ...
@overload
def text_evidence(tree: Tree, *, required: bool) -> TextEvidence | None: ...
def text_evidence(tree: Tree, *, required: bool = True) -> TextEvidence | None:
    """Return the evidence of a tree by its words; the entry point `metatree.evidence: text`.

    The index is built, or brought up to date, when it is first asked.

    Args:
        required: whether an index is built where there is none; if not, None says that there is none.
    """
    return TextEvidence(tree) if required or is_indexed(tree.index) else None
