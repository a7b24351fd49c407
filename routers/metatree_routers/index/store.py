"""The tables of the text index: node numbers, records, segments and posting lists in one SQLite store.

All of it can be dropped and built again from the tree: `text_meta`; `text_node`, the number of each node;
`text_record`, what queries need of every node, as blobs of `CHUNK` records; `text_segment` and `text_posting`, the
posting lists in blocks (see `_posting_blocks`). Numbers are never given away again, so a record may name a parent that
is not indexed yet.
"""

from __future__ import annotations

import heapq
import json
import threading
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import groupby, islice
from typing import Any, Protocol, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from metatree.storage.schema import SQLITE
from metatree_routers.index._posting_blocks import MOST_HEAD_BYTES, lists_in, pack, places, terms_of, unpack
from metatree_routers.index._schema import TEXT
from metatree_routers.index.node_table import CHUNK, RECORD, NodeTable
from metatree_routers.index.postings import POSTING, Postings, Segment, decode

MAX_SEGMENTS = 8
ROOT_NUMBER = 0

VECTOR_CHUNK = 256
"""Vectors are stored in blobs of so many."""

_MERGE_PAGE = 64
_IN = 500
_MOST_FIRSTS = 4 * MAX_SEGMENTS
_MOST_RECENT = 400_000
"""Postings that are remembered: eight bytes each."""

_NOTHING: Postings = np.zeros(0, dtype=POSTING)

T = TypeVar("T")


def take_memory_anew(database: IndexDatabase) -> None:
    """Let an index that came from another machine index the memory layer of this one, whose changes have other numbers.

    What it says of the built layer stays.
    """
    if not database.rows("SELECT 1 FROM sqlite_master WHERE name = 'text_meta'"):
        return
    for key, value in database.rows("SELECT key, value FROM text_meta WHERE key IN ('sequence', 'vectors')"):
        built = json.loads(value) >> 32 << 32
        database.execute("UPDATE text_meta SET value = ? WHERE key = ?", (json.dumps(built), key))


class IndexDatabase(Protocol):
    """What the index needs of a store; `metatree.storage.store.Store` has it."""

    @property
    def read_only(self) -> bool: ...

    def rows(self, sql: str, parameters: Sequence[Any] = ...) -> list[tuple[Any, ...]]:
        """Run one statement and return all its rows."""
        ...

    def execute(self, sql: str, parameters: Sequence[Any] = ...) -> int:
        """Run one statement."""
        ...

    def execute_many(self, sql: str, parameters: Iterable[Sequence[Any]]) -> int:
        """Run one statement for each set of parameters."""
        ...

    def transaction(self) -> AbstractContextManager[None]:
        """Keep all statements of the block, or none of them."""
        ...


@dataclass(slots=True)
class Batch:
    """What one step of a refresh writes."""

    generation: int
    """The generation it was prepared from; it is written only on top of that one."""
    sequence: int
    """The tree's sequence number that the index has reached with it."""
    segment: Segment | None = None
    numbers: dict[str, int] = field(default_factory=dict)
    """Numbers of ids that had none."""
    parents: dict[int, int] = field(default_factory=dict)
    """Of the nodes in the segment."""
    kinds: dict[int, str] = field(default_factory=dict)
    """Of the nodes in the segment."""
    roles: dict[int, int] = field(default_factory=dict)
    """Of the nodes in the segment."""
    digit_density: dict[int, int] = field(default_factory=dict)
    """Of the nodes in the segment that have figures; see `digit_density`."""
    removed: list[int] = field(default_factory=list)

    @property
    def count(self) -> int:
        """How many nodes it indexes or removes."""
        return len(self.parents) + len(self.removed)


class _Known:
    """What was read of the tables of one database, for as long as that is open: each search has a store of its own."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.table: tuple[int, NodeTable] | None = None
        self.firsts: dict[tuple[int, int], list[str]] = {}
        self.postings = _Recent()


class _Recent:
    """The posting lists that were read last: each signal and each reason of a question asks for the same."""

    def __init__(self) -> None:
        self._generation = -1
        self._lists: OrderedDict[str, Postings] = OrderedDict()
        self._size = 0

    def of(self, generation: int, terms: Collection[str]) -> dict[str, Postings]:
        """Return what is remembered of these terms; an empty list for a term that no node has."""
        if generation != self._generation:
            return {}
        found = {term: self._lists[term] for term in terms if term in self._lists}
        for term in found:
            self._lists.move_to_end(term)
        return found

    def add(self, generation: int, lists: Mapping[str, Postings]) -> None:
        """Remember lists, and forget the oldest where they are too many."""
        if generation != self._generation:
            self._generation, self._size = generation, 0
            self._lists.clear()
        for term, postings in lists.items():
            if term not in self._lists:
                self._lists[term] = postings
                self._size += len(postings) + 1
        while self._size > _MOST_RECENT:
            _, oldest = self._lists.popitem(last=False)
            self._size -= len(oldest) + 1


_known: WeakKeyDictionary[IndexDatabase, _Known] = WeakKeyDictionary()


class IndexStore:
    """Reads and writes the tables; safe to share between threads and processes."""

    def __init__(self, database: IndexDatabase) -> None:
        self._db = database
        self._read = _known.setdefault(database, _Known())
        if not self._is_current():
            self._create()

    def _is_current(self) -> bool:
        if not self._db.rows("SELECT 1 FROM sqlite_master WHERE name = 'text_meta'"):
            return False
        return bool(self._meta("version", 0) == TEXT.version)

    def _create(self) -> None:
        with self._db.transaction():
            if self._is_current():  # another process was faster
                return
            for statement in TEXT.anew(SQLITE):
                self._db.execute(statement)
            self._set_meta(version=TEXT.version, generation=0, sequence=0, next_segment=0, kinds=[])
            self._db.execute("INSERT INTO text_node(number, id) VALUES (?, '.')", (ROOT_NUMBER,))

    def clear(self, *, overwrite: bool = False) -> None:
        """Drop everything, so that the next refresh builds the index again; `overwrite` leaves nothing in the file."""
        if overwrite:
            self._db.execute("PRAGMA secure_delete=ON")
        with self._db.transaction():
            generation = self.generation()
            self._db.execute("DROP TABLE text_meta")
            self._create()
            self._set_meta(generation=generation + 1)

    def _meta(self, key: str, default: Any = None) -> Any:
        rows = self._db.rows("SELECT value FROM text_meta WHERE key = ?", (key,))
        return json.loads(rows[0][0]) if rows else default

    def _set_meta(self, **values: Any) -> None:
        self._db.execute_many(
            "INSERT OR REPLACE INTO text_meta(key, value) VALUES (?, ?)",
            [(key, json.dumps(value)) for key, value in values.items()],
        )

    # reading

    def generation(self) -> int:
        """Return a number that changes with every write."""
        number: int = self._meta("generation", 0)
        return number

    def sequence(self) -> int:
        """Return the tree's sequence number that the index has reached."""
        number: int = self._meta("sequence", 0)
        return number

    def masking(self) -> str:
        """Return what `set_masking` was told; empty at first."""
        return str(self._meta("masking", ""))

    def set_masking(self, masking: str) -> None:
        """Keep what is masked in the texts of this index."""
        self._set_meta(masking=masking)

    def consistent(self, query: Callable[[int, NodeTable], T]) -> T:
        """Run a query that reads the tables; run it again when somebody has written meanwhile."""
        while True:
            generation = self.generation()
            result = query(generation, self._records_of(generation))
            if self.generation() == generation:
                return result

    def _records_of(self, generation: int) -> NodeTable:
        known = self._read
        with known.lock:
            if known.table is None or known.table[0] != generation:
                blobs = self._db.rows("SELECT data FROM text_record ORDER BY chunk")
                data = np.frombuffer(b"".join(blob for (blob,) in blobs), dtype=RECORD)
                known.table = (generation, NodeTable(data, tuple(self._meta("kinds", []))))
            return known.table[1]

    def postings(self, generation: int, table: NodeTable, terms: Collection[str]) -> dict[str, Postings]:
        """Read the posting lists of these terms, without dead postings; terms that no node has are left out.

        The latest are remembered: each reason of a question's results asks for the same.
        """
        wanted = sorted(set(terms))
        known = self._read
        with known.lock:
            found = known.postings.of(generation, wanted)
        if len(found) < len(wanted):
            unread = [term for term in wanted if term not in found]
            lists = dict.fromkeys(unread, _NOTHING) | self._read_postings(table, unread)
            with known.lock:
                known.postings.add(generation, lists)
            found.update(lists)
        return {term: found[term] for term in wanted if len(found[term])}

    def _read_postings(self, table: NodeTable, terms: Collection[str]) -> dict[str, Postings]:
        parts: dict[str, list[Postings]] = {}
        for segment, made in self._db.rows("SELECT segment, made FROM text_segment"):
            wanted = places(self._firsts_of(segment, made), terms)
            for page in pages(sorted(wanted), _IN):
                marks = ",".join("?" * len(page))
                sql = f"SELECT block, data FROM text_posting WHERE segment = ? AND block IN ({marks})"
                for block, packed in self._db.rows(sql, (segment, *page)):
                    for term, data in lists_in(packed, wanted[block]):
                        postings = _living(decode(data), table, segment)
                        if len(postings):
                            parts.setdefault(term, []).append(postings)
        return {term: lists[0] if len(lists) == 1 else np.concatenate(lists) for term, lists in parts.items()}

    def terms(self, low: str, high: str) -> Iterator[str]:
        """Yield the terms from `low` up to `high` of all segments, those without living postings too."""
        for segment, made in self._db.rows("SELECT segment, made FROM text_segment"):
            firsts = self._firsts_of(segment, made)
            start, end = max(0, bisect_right(firsts, low) - 1), bisect_left(firsts, high)
            sql = "SELECT substr(data, 1, ?) FROM text_posting WHERE segment = ? AND block >= ? AND block < ?"
            for (head,) in self._db.rows(sql, (MOST_HEAD_BYTES, segment, start, end)):
                yield from (term for term in terms_of(head) if low <= term < high)

    def _firsts_of(self, segment: int, made: int) -> list[str]:
        """Return the first terms of the blocks of a segment, which never change."""
        firsts = self._read.firsts
        known = firsts.get((segment, made))
        if known is None:
            rows = self._db.rows(
                "SELECT firsts FROM text_segment WHERE segment = ? AND made = ?", (segment, made)
            )
            known = json.loads(rows[0][0]) if rows else []
            if rows:
                with self._read.lock:
                    if len(firsts) > _MOST_FIRSTS:
                        firsts.clear()
                    firsts[segment, made] = known
        return known

    def ids(self, numbers: Iterable[int]) -> dict[int, str]:
        """Return the ids of these nodes."""
        result: dict[int, str] = {}
        for page in pages(sorted(map(int, numbers)), _IN):
            marks = ",".join("?" * len(page))
            result.update(self._db.rows(f"SELECT number, id FROM text_node WHERE number IN ({marks})", page))
        return result

    def numbers(self, ids: Iterable[str]) -> dict[str, int]:
        """Return the numbers of these nodes; ids without one are left out."""
        result: dict[str, int] = {}
        for page in pages(sorted(set(ids)), _IN):
            marks = ",".join("?" * len(page))
            result.update(self._db.rows(f"SELECT id, number FROM text_node WHERE id IN ({marks})", page))
        return result

    def vectors(self, embedding: str) -> tuple[int, npt.NDArray[np.int8]]:
        """Return the sequence number that the vectors of an embedding have reached, and all of them by number."""
        # One statement, so that all is of the same moment.
        rows = self._db.rows(
            "SELECT name.value, reached.value, v.chunk, v.data FROM text_meta name"
            " JOIN text_meta reached ON reached.key = 'vectors' LEFT JOIN text_vector v ON 1"
            " WHERE name.key = 'embedding'"
        )
        name, sequence = map(json.loads, rows[0][:2]) if rows else ("", 0)
        blobs = [(chunk, data) for _, _, chunk, data in rows if chunk is not None]
        if name != embedding or not blobs:
            return sequence if name == embedding else 0, np.zeros((0, 0), np.int8)
        chunks = {chunk: np.frombuffer(data, np.int8).reshape(VECTOR_CHUNK, -1) for chunk, data in blobs}
        empty = np.zeros_like(next(iter(chunks.values())))
        return sequence, np.concatenate([chunks.get(chunk, empty) for chunk in range(max(chunks) + 1)])

    def next_number(self) -> int:
        """Return the first number that no node has."""
        number: int = self._db.rows("SELECT coalesce(max(number), -1) + 1 FROM text_node")[0][0]
        return number

    # writing

    def write(self, batch: Batch) -> bool:
        """Write a batch; False, and nothing written, when another writer was faster."""
        with self._db.transaction():
            if self.generation() != batch.generation:
                return False
            self._db.execute_many("INSERT INTO text_node(id, number) VALUES (?, ?)", batch.numbers.items())
            segment = -1
            if batch.segment is not None and len(batch.segment.nodes):
                segment = self._add_segment(batch.segment.blocks())
            self._write_records(batch, segment)
            self._set_meta(generation=batch.generation + 1, sequence=batch.sequence)
            return True

    def _add_segment(self, blocks: Iterable[tuple[str, bytes]]) -> int:
        segment: int = self._meta("next_segment", 0)
        firsts: list[str] = []
        size = 0

        def rows() -> Iterator[tuple[int, int, bytes]]:
            nonlocal size
            for block, (first, data) in enumerate(blocks):
                firsts.append(first)
                size += len(data)
                yield segment, block, data

        self._db.execute_many("INSERT INTO text_posting(segment, block, data) VALUES (?, ?, ?)", rows())
        self._db.execute(
            "INSERT INTO text_segment(segment, made, bytes, firsts) VALUES (?, ?, ?, ?)",
            (segment, self.generation(), size, json.dumps(firsts)),
        )
        self._set_meta(next_segment=segment + 1)
        return segment

    def _write_records(self, batch: Batch, segment: int) -> None:
        kinds: list[str] = self._meta("kinds", [])
        kinds += [kind for kind in dict.fromkeys(batch.kinds.values()) if kind not in kinds]
        kind_number = {kind: min(number, 255) for number, kind in enumerate(kinds)}
        nodes = batch.segment.nodes if batch.segment is not None else np.zeros(0, np.int32)
        rows = np.zeros(len(nodes), dtype=RECORD)
        rows["segment"] = segment
        rows["parent"] = [batch.parents[number] for number in nodes.tolist()]
        rows["role"] = [batch.roles.get(number, 0) for number in nodes.tolist()]
        rows["digit_density"] = [batch.digit_density.get(number, 0) for number in nodes.tolist()]
        rows["kind"] = [kind_number[batch.kinds[number]] for number in nodes.tolist()]
        if batch.segment is not None:
            for column, (name, limit) in enumerate(
                (("title", 65_535), ("about", 65_535), ("content", 2**32 - 1))
            ):
                rows[name] = np.minimum(batch.segment.lengths[:, column], limit)
        self._change_records(nodes, rows, batch.removed, max(batch.numbers.values(), default=-1))
        self._set_meta(kinds=kinds[:256])

    def _change_records(
        self, nodes: npt.NDArray[np.int32], rows: Any, dropped: list[int], highest: int
    ) -> None:
        """Write rows at these numbers, empty those that are gone, and have a record for every number given out."""
        touched = {int(chunk) for chunk in np.unique(nodes // CHUNK)} | {
            number // CHUNK for number in dropped
        }
        last = self._db.rows("SELECT coalesce(max(chunk), -1) FROM text_record")[0][0]
        touched |= set(range(last + 1, max(highest, ROOT_NUMBER) // CHUNK + 1))
        order = np.argsort(nodes, kind="stable")
        nodes, rows = nodes[order], rows[order]
        removed = np.array(sorted(dropped), dtype=np.int64)
        for chunk in sorted(touched):
            stored = self._db.rows("SELECT data FROM text_record WHERE chunk = ?", (chunk,))
            data = np.frombuffer(stored[0][0], dtype=RECORD).copy() if stored else empty_records(CHUNK)
            first, end = np.searchsorted(nodes, [chunk * CHUNK, (chunk + 1) * CHUNK])
            data[nodes[first:end] - chunk * CHUNK] = rows[first:end]
            mine = removed[(removed >= chunk * CHUNK) & (removed < (chunk + 1) * CHUNK)] - chunk * CHUNK
            data["segment"][mine] = -1
            self._db.execute(
                "INSERT OR REPLACE INTO text_record(chunk, data) VALUES (?, ?)", (chunk, data.tobytes())
            )

    def write_vectors(
        self,
        generation: int,
        embedding: str,
        sequences: tuple[int, int],
        changed: npt.NDArray[np.int64],
        vectors: npt.NDArray[np.int8],
    ) -> bool:
        """Write vectors; False, and nothing written, when another writer was faster. A no-op where nothing can be kept.

        Args:
            generation: of the index whose numbers they are for.
            sequences: the sequence number of the vectors before, and with these.
            changed: numbers of the nodes whose vectors are new.
            vectors: those of all nodes, by number.
        """
        if self._db.read_only:
            return True
        with self._db.transaction():
            same = self._meta("embedding") == embedding
            known = self._meta("vectors", 0) if same else 0
            if (self.generation(), known) != (generation, sequences[0]):
                return False
            if not same:
                self._db.execute("DELETE FROM text_vector")
            for chunk in np.unique(changed // VECTOR_CHUNK).tolist():
                data = np.zeros((VECTOR_CHUNK, vectors.shape[1]), dtype=np.int8)
                mine = vectors[chunk * VECTOR_CHUNK :][:VECTOR_CHUNK]
                data[: len(mine)] = mine
                self._db.execute(
                    "INSERT OR REPLACE INTO text_vector(chunk, data) VALUES (?, ?)", (chunk, data.tobytes())
                )
            self._set_meta(embedding=embedding, vectors=sequences[1])
            return True

    def merge(self, *, most: int = MAX_SEGMENTS) -> bool:
        """Join the smaller segments when there are more than `most`; dead postings are dropped."""
        with self._db.transaction():
            segments = self._db.rows("SELECT segment, bytes FROM text_segment ORDER BY bytes, segment")
            if len(segments) <= most:
                return False
            joined = _to_merge(segments, most)
            generation = self.generation()
            blobs = self._db.rows("SELECT chunk, data FROM text_record ORDER BY chunk")
            data = np.frombuffer(b"".join(blob for _, blob in blobs), dtype=RECORD).copy()
            merged = self._add_segment(pack(self._merged_lists(joined, data["segment"].copy())))
            data["segment"][np.isin(data["segment"], joined)] = merged
            self._db.execute_many(
                "UPDATE text_record SET data = ? WHERE chunk = ?",
                [(data[i * CHUNK : (i + 1) * CHUNK].tobytes(), chunk) for i, (chunk, _) in enumerate(blobs)],
            )
            for segment in joined:
                self._db.execute("DELETE FROM text_posting WHERE segment = ?", (segment,))
                self._db.execute("DELETE FROM text_segment WHERE segment = ?", (segment,))
            self._set_meta(generation=generation + 1)
            return True

    def _merged_lists(
        self, segments: Sequence[int], owner: npt.NDArray[np.int32]
    ) -> Iterator[tuple[str, bytes]]:
        streams = [self._segment_lists(segment) for segment in segments]
        for term, group in groupby(
            heapq.merge(*streams, key=lambda entry: entry[0]), key=lambda entry: entry[0]
        ):
            remaining = []
            for _, segment, data in group:
                postings = decode(data)
                live = owner[postings["node"]] == segment
                remaining.append(data if live.all() else postings[live].tobytes())
            joined = b"".join(remaining)
            if joined:
                yield term, joined

    def _segment_lists(self, segment: int) -> Iterator[tuple[str, int, bytes]]:
        after = -1
        while True:
            rows = self._db.rows(
                "SELECT block, data FROM text_posting WHERE segment = ? AND block > ? ORDER BY block LIMIT ?",
                (segment, after, _MERGE_PAGE),
            )
            for _, packed in rows:
                for term, data in unpack(packed):
                    yield term, segment, data
            if len(rows) < _MERGE_PAGE:
                return
            after = rows[-1][0]

    def statistics(self) -> Mapping[str, int]:
        """Return how much there is: nodes, segments, bytes of posting lists."""
        segments, size = self._db.rows("SELECT count(*), coalesce(sum(bytes), 0) FROM text_segment")[0]
        return self.consistent(lambda _, table: {"nodes": table.n_texts, "segments": segments, "bytes": size})


def is_indexed(database: IndexDatabase) -> bool:
    """Say whether a store has an index of this version with something in it, without making one."""
    if not database.rows("SELECT 1 FROM sqlite_master WHERE name = 'text_meta'"):
        return False
    meta = dict(database.rows("SELECT key, value FROM text_meta WHERE key IN ('version', 'generation')"))
    return meta.get("version") == str(TEXT.version) and meta.get("generation", "0") != "0"


def _living(postings: Postings, table: NodeTable, segment: int) -> Postings:
    """Leave out what a later segment supersedes, and nodes that are gone."""
    postings = postings[postings["node"] < len(table)]
    live = (table.segment[postings["node"]] == segment) & table.alive[postings["node"]]
    return postings if live.all() else postings[live]


def empty_records(count: int) -> npt.NDArray[Any]:
    """Give records of numbers without a node."""
    data = np.zeros(count, dtype=RECORD)
    data["parent"] = data["segment"] = -1
    return data


def _to_merge(segments: Sequence[tuple[int, int]], most: int) -> list[int]:
    """Choose the small segments: a large one joins only when the smaller ones together have grown near to it."""
    joined: list[int] = []
    total = 0
    for number, (segment, size) in enumerate(segments):
        left = len(segments) - number
        if len(joined) > 1 and left + 1 <= max(most // 2, 1) and size > 2 * total:
            break
        joined.append(segment)
        total += size
    return joined


def pages(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Cut into lists of at most `size`."""
    iterator = iter(items)
    while page := list(islice(iterator, size)):
        yield page
