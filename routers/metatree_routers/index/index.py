"""The text index of a tree: follows the tree's changes, and runs queries over what it has indexed.

A changed node goes to the next segment, and its record then names that segment, so what earlier segments say of it
is dead. A batch is prepared without a lock and written in one transaction, if nobody else has written in between; a
query looks at the generation before and after it has read, and reads again when it differs. So several threads and
processes may refresh and ask at once.

It is our own: a file's score is summed from its parts at query time, fields and words of a question have weights, and
what a term says of 30,000 nodes is one numpy array, not 30,000 rows. The core knows only `Evidence`, by entry point.
Lost: SQLite's FTS5 (3.40 cannot delete from a contentless table, and gives no weights to terms); bm25s (all in
memory, built again at every change).
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from metatree._util.process import cores
from metatree._util.secret_text import SHAPES_VERSION
from metatree._util.threads import check_cancelled
from metatree.node import Node
from metatree.notes.wishes import KIND as WISH
from metatree.storage.store import Store
from metatree.trees.content import shows_secrets
from metatree.trees.source_types import SourceRef
from metatree_routers.embeddings.static import Embedder
from metatree_routers.index._segment_process import MIN_NODES, ProcessLost, SegmentProcess
from metatree_routers.index.digit_density import digit_density
from metatree_routers.index.fields import NodeText
from metatree_routers.index.node_table import NodeTable
from metatree_routers.index.postings import Postings, SegmentBuilder
from metatree_routers.index.roles import role_of_node
from metatree_routers.index.store import ROOT_NUMBER, Batch, IndexDatabase, IndexStore, is_indexed, pages
from metatree_routers.index.vectors import NodeVectors, Progress
from metatree_routers.index.vocabulary import MOST_WORDS, Vocabulary

BATCH_TOKENS = 2_000_000
"""A segment is written when a batch has so many raw tokens; bounds the memory of a build to about 200 MB."""
BATCH_WORDS = 300_000
"""So many different words, too: nine megabytes of random ones took 600 MB."""
BATCH_NODES = 200_000

_LEAST_DEAD = 10_000
_PAGE = 1_000
_PAUSE_S = 0.05
"""How long it is waited for more of a tree that is growing."""

T = TypeVar("T")


class IndexedTree(Protocol):
    """What the index needs of a tree; `metatree.trees.tree.Tree` has it."""

    @property
    def index(self) -> IndexDatabase:
        """The store of what can be built again."""
        ...

    @property
    def sequence(self) -> int: ...

    def changes(self, since: int) -> Iterator[tuple[int, str, bool]]: ...
    def texts(self, ids: Iterable[str]) -> Iterator[tuple[Node, str | None, str]]: ...
    def nodes(self, ids: Iterable[str]) -> Iterator[Node]: ...
    def link_totals(self, nodes: Collection[str], kind: str) -> dict[str, int]: ...
    def sources(self) -> Sequence[SourceRef]: ...
    def __len__(self) -> int: ...


class TextIndex:
    """An inverted index of a tree's nodes.

    Args:
        tree: the tree; the index is kept in `tree.index`, where that can be written.
        embedder: gives what makes the vectors of nodes, asked when it is needed; None for words alone.
        embedding: its name; vectors of another one are made again.
        batch_tokens: a segment is written when a batch has so many raw tokens.
    """

    def __init__(
        self,
        tree: IndexedTree,
        *,
        embedder: Callable[[], Embedder | None] | None = None,
        embedding: str = "static",
        batch_tokens: int = BATCH_TOKENS,
    ) -> None:
        self._tree = tree
        self._batch_tokens = batch_tokens
        self._refreshing = threading.Lock()
        self._words: Vocabulary | None = None
        self.store = IndexStore(_database_of(tree))
        self.vectors = NodeVectors(tree, self.store, embedder, embedding)

    def refresh(self, progress: Progress | None = None) -> int:
        """Index what has changed since the last time; cheap when nothing has.

        Returns:
            How many nodes were indexed or removed.
        """
        done = 0
        with self._refreshing:
            self._clear_if_other()
            with self._helper() as helper:
                if helper is not None:
                    done = self._refresh_beside(helper, progress)
            while self.store.sequence() < self._tree.sequence:
                batch = Batch(self.store.generation(), self.store.sequence())
                self._prepare(batch, _Numbers(self.store), done, progress)
                if self.store.write(batch):
                    done += batch.count
                    self.store.merge()
            if done:
                self._rebuild_when_mostly_dead()
        return done

    def follow(self, growing: Callable[[], bool], progress: Progress | None = None) -> None:
        """Index what changes, waiting for more, until the tree has stopped growing and all of it is indexed.

        It ends before that when another writer was faster, or its own process is lost: `refresh` does the rest.

        Args:
            growing: whether more may come.
            progress: called as by `refresh`.
        """
        with (
            self._refreshing,
            contextlib.suppress(ProcessLost),
            contextlib.closing(SegmentProcess()) as helper,
        ):
            self._clear_if_other()
            self._refresh_beside(helper, progress, growing)

    def _clear_if_other(self) -> None:
        """Drop what is of another tree, or of texts in which less was masked: of those no word may stay."""
        if self.store.sequence() > self._tree.sequence:  # the tree was made anew in the same store
            self.store.clear()
        masking = f"{SHAPES_VERSION} {[each.mount for each in self._tree.sources() if shows_secrets(each)]}"
        if self.store.masking() != masking and not self._tree.index.read_only:
            if self.store.sequence():
                self.store.clear(overwrite=True)
            self.store.set_masking(masking)

    def _refresh_beside(
        self,
        helper: SegmentProcess,
        progress: Progress | None,
        growing: Callable[[], bool] | None = None,
    ) -> int:
        """Index with a process that makes the segments, each while the texts of the next batch are read here.

        Returns:
            How many nodes were indexed or removed: all of them, unless the process ended or another writer was faster.
        """
        done = read = 0
        numbers = _Numbers(self.store)
        generation, sequence = self.store.generation(), self.store.sequence()
        before: Batch | None = None
        while True:
            batch = None
            # Asked first: what came before it stopped growing is read.
            if (growing is not None and growing()) or sequence < self._tree.sequence:
                batch = Batch(generation, sequence)
                self._prepare(batch, numbers, read, progress, helper, growing)
                read += batch.count
                generation, sequence = generation + 1, batch.sequence
            if before is not None:
                try:
                    before.segment = helper.segment()
                except ProcessLost:
                    return done
                if not self.store.write(before):
                    return done
                done += before.count
            if batch is None:
                self.store.merge()
                return done
            before = batch

    @contextlib.contextmanager
    def _helper(self) -> Iterator[SegmentProcess | None]:
        """Start a process that makes the segments of the first index of a large tree, if there is a core for it."""
        helper = None
        if self.store.sequence() == 0 and len(self._tree) >= MIN_NODES and cores() > 1:
            with contextlib.suppress(ProcessLost):
                helper = SegmentProcess()
        try:
            yield helper
        finally:
            if helper is not None:
                helper.close()

    def forget(self) -> None:
        """Build the index anew, so that no word is left in it that only nodes had which are gone."""
        with self._refreshing:
            self._words = None
            self.store.clear(overwrite=True)
        self.refresh()

    def take_vocabulary(self) -> Vocabulary | None:
        """Give up the words that the last refresh met, if there was anything to do: they cost memory."""
        with self._refreshing:
            words, self._words = self._words, None
        return words

    def _rebuild_when_mostly_dead(self) -> None:
        if self.store.next_number() > 2 * len(self._tree) + _LEAST_DEAD:
            self.store.clear()
            while self.store.sequence() < self._tree.sequence:
                batch = Batch(self.store.generation(), self.store.sequence())
                self._prepare(batch, _Numbers(self.store), 0, None)
                self.store.write(batch)

    def _prepare(
        self,
        batch: Batch,
        numbers: _Numbers,
        done: int,
        progress: Progress | None,
        helper: SegmentProcess | None = None,
        growing: Callable[[], bool] | None = None,
    ) -> None:
        """Read the next changed nodes into a batch, up to the size of one; a helper is left to make the segment.

        Of a tree that is growing it waits for so many; a node that changes once more belongs to the next batch.
        """
        tree = self._tree
        end = tree.sequence
        changed: dict[int, bool] = {}
        seen: set[str] = set()
        numbers.fresh = batch.numbers
        builder = SegmentBuilder(self._vocabulary()) if helper is None else helper
        for page in pages(self._changes(batch.sequence, growing), _PAGE):
            ids = [id_ for _, id_, there in page if there]
            # A wish is offered beside what is found: what states it is in the index.
            texts = {
                node.id: (node, parent, content)
                for node, parent, content in tree.texts(ids)
                if node.kind != WISH
            }
            parents = (parent for _, parent, _ in texts.values() if parent is not None)
            numbers.look_up(chain((id_ for _, id_, _ in page), parents))
            for sequence, id_, _ in page:
                check_cancelled()
                full = (
                    builder.raw_tokens >= self._batch_tokens
                    or builder.new_words >= BATCH_WORDS
                    or len(builder) >= BATCH_NODES
                )
                if growing is not None and id_ in seen:  # it said something else before
                    full = True
                if full and sequence > batch.sequence:  # what has the same number belongs to one batch
                    break
                seen.add(id_)
                batch.sequence = sequence
                if id_ not in texts:
                    if numbers.has(id_):
                        changed[numbers.of(id_)] = False
                    continue
                number = numbers.of(id_)
                if not changed.get(number):
                    changed[number] = True
                    node, parent, content = texts[id_]
                    batch.parents[number] = (
                        -1 if number == ROOT_NUMBER or parent is None else numbers.of(parent)
                    )
                    batch.kinds[number] = node.kind
                    batch.roles[number] = role_of_node(node)
                    # The root stands for everything, so no word of its own speaks for it.
                    if share := digit_density(content):
                        batch.digit_density[number] = share
                    text = NodeText.of(node, content) if number != ROOT_NUMBER else NodeText("", "", "")
                    builder.add(
                        number, title=text.title, about=text.about, content=text.content, exact=text.exact
                    )
            else:
                if progress is not None:
                    progress(done + len(changed), max(len(tree), done + len(changed)))
                continue
            break
        else:
            batch.sequence = max(batch.sequence, end)
        batch.removed = [number for number, there in changed.items() if not there]
        if isinstance(builder, SegmentProcess):
            builder.end()
        else:
            batch.segment = builder.build()

    def _changes(self, since: int, growing: Callable[[], bool] | None) -> Iterator[tuple[int, str, bool]]:
        """Yield what changed, as `Tree.changes` does; of a tree that is growing, until it has stopped."""
        while True:
            for change in self._tree.changes(since):
                since = change[0]
                yield change
            if growing is None or not growing():
                return
            time.sleep(_PAUSE_S)

    def _vocabulary(self) -> Vocabulary:
        """Return the vocabulary of the batch before, unless it has grown large: most words come again."""
        if self._words is None or len(self._words) > MOST_WORDS:
            self._words = Vocabulary()
        return self._words

    def query(self, query: Callable[[IndexSnapshot], T]) -> T:
        """Run a query over one moment of the index."""
        return self.store.consistent(
            lambda generation, table: query(
                IndexSnapshot(self.store, table, generation, self.vectors.refresh)
            )
        )


def _database_of(tree: IndexedTree) -> IndexDatabase:
    """Return where the index is kept: in the tree, or in memory when that is behind and cannot be written."""
    database = tree.index
    if not database.read_only or (is_indexed(database) and IndexStore(database).sequence() == tree.sequence):
        return database
    return Store.open(":memory:")


class IndexSnapshot:
    """What a query reads from; valid only inside `TextIndex.query`."""

    def __init__(
        self,
        store: IndexStore,
        table: NodeTable,
        generation: int,
        vectors: Callable[[], npt.NDArray[np.int8]],
    ) -> None:
        self._store = store
        self.generation = generation
        self.table = table
        self.vectors = vectors
        """Gives the vectors of all nodes by number: (n, dimensions), shorter or longer than the table of nodes."""

    def postings(self, terms: Collection[str]) -> dict[str, Postings]:
        """Read the posting lists of these terms; terms that no node has are left out."""
        return self._store.postings(self.generation, self.table, terms)

    def terms(self, low: str, high: str) -> Iterator[str]:
        """Yield the terms from `low` up to `high`, some twice, and some that no living node has any more."""
        return self._store.terms(low, high)

    def ids(self, numbers: Any) -> dict[int, str]:
        """Return the ids of nodes by their numbers."""
        return self._store.ids(numbers)

    def numbers(self, ids: Collection[str]) -> dict[str, int]:
        """Return the numbers of nodes that are in the index."""
        return {
            id_: n
            for id_, n in self._store.numbers(ids).items()
            if n < len(self.table) and self.table.alive[n]
        }


class _Numbers:
    """Node numbers, known ones from the tables and fresh ones."""

    def __init__(self, store: IndexStore) -> None:
        self._store = store
        self.fresh: dict[str, int] = {}
        """Where those that are given out are noted."""
        self._next = store.next_number()
        self._known: dict[str, int] = {".": ROOT_NUMBER}
        self._absent: set[str] = set()

    def look_up(self, ids: Iterable[str]) -> None:
        """Read the numbers of many ids at once."""
        unknown = set(ids) - self._known.keys()
        numbers = self._store.numbers(unknown)
        self._known.update(numbers)
        self._absent = unknown - numbers.keys()

    def has(self, id_: str) -> bool:
        """Say whether a node has a number; those of `look_up` suffice."""
        return id_ in self._known

    def of(self, id_: str) -> int:
        number = self._known.get(id_)
        if number is None:
            number = None if id_ in self._absent else self._store.numbers([id_]).get(id_)
            if number is None:
                number = self.fresh[id_] = self._next
                self._next += 1
            self._known[id_] = number
        return number
