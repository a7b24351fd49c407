"""The `history` node below each file: its commits, read from the history tables when they are asked for.

Lost: a node for each commit (a commit touches three files, so 26,000 commits of django would be 120,000 nodes beside
40,000), and commits in the tables alone (no search would meet them). The node is a whole of its own for the index, so
that what commits say does not count for the file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from hashlib import blake2b

from metatree.node import Node, Source
from metatree.trees.history import history_state
from metatree.trees.history_text import SOURCE_TYPE, history_description
from metatree.trees.layer import APPENDED, Layer
from metatree.trees.source_types import SourceRef
from metatree.trees.sources import tree_path
from metatree_memory_tools.build._index_writer import IndexWriter
from metatree_memory_tools.node_ids import HISTORY_KIND, HISTORY_SUFFIX


def lay_history(source: SourceRef, layer: Layer) -> None:
    """Bring the `history` nodes of a source up to date with its files and its history.

    Nothing is done, and little is looked at, when neither has changed since the last time.
    """
    store = layer.store
    state = history_state(store, source.mount)
    key = f"history nodes:{source.mount}"
    stored = layer.fact(key)
    if state is None and stored is None:
        return
    now = None if state is None else [state.head, state.epoch, state.commits]
    if stored is not None and stored == [now, layer.last_seq()]:
        return
    writer = IndexWriter(layer, source.mount)
    with store.transaction():
        rows = store.rows(
            f"SELECT id, digest FROM node WHERE kind = ? AND {writer.within('id')}", (HISTORY_KIND,)
        )
        known: dict[str, str] = dict(rows)
        files = {
            row[0] for row in store.rows(f"SELECT id FROM node WHERE kind = 'file' AND {writer.within('id')}")
        }
        # A file may be called like the history of another one, and a folder.
        taken = {
            row[0]
            for row in store.rows(
                f"SELECT id FROM node WHERE substr(id, ?) = ? AND kind <> ? AND {writer.within('id')}",
                (-len(HISTORY_SUFFIX), HISTORY_SUFFIX, HISTORY_KIND),
            )
        }
        seq = layer.next_seq()
        fresh: list[tuple[int, Node, str | None, int]] = []
        for parent, node in _nodes(source, layer) if state is not None else ():
            if parent not in files or node.id in taken:
                continue
            before = known.pop(node.id, None)
            if before is None:
                fresh.append((seq, node, parent, APPENDED - 1))
                seq += 1
            elif before != node.digest:
                layer.rewrite(seq, node)
                seq += 1
        layer.insert(fresh)
        writer.erase(list(known))
        if state is None:
            store.execute("DELETE FROM meta WHERE key = ?", (key,))
        else:
            layer.set_fact(key, [now, layer.last_seq()])


def _nodes(source: SourceRef, layer: Layer) -> Iterator[tuple[str, Node]]:
    """Yield the history of each file that commits touched, after the file's id."""
    store = layer.store
    # Numbers alone, and those of a file at a time: a history has millions of changes.
    files = store.rows(
        "SELECT path, number FROM history_file WHERE source = ? ORDER BY path", (source.mount,)
    )
    commits = {
        number: (at, author, hash_, subject)
        for number, at, author, hash_, subject in store.rows(
            "SELECT number, at, author, hash, subject FROM history_commit WHERE source = ?", (source.mount,)
        )
    }
    for path, file in files:
        # A commit that renames a file on one line of development can touch it under two names.
        numbers = store.rows(
            "SELECT DISTINCT number FROM history_touch WHERE file = ? ORDER BY number DESC", (file,)
        )
        made = [commits[number] for (number,) in numbers if number in commits]
        if not made:
            continue
        parent = tree_path(source, path)
        (latest, _, last, subject), (earliest, _, first, _) = made[0], made[-1]
        authors = Counter(author for _, author, _, _ in made)
        description = history_description(len(made), earliest, latest, authors, subject)
        text = f"{description}\0{last}\0{first}"
        node = Node(
            parent + HISTORY_SUFFIX,
            "history",
            description,
            kind=HISTORY_KIND,
            source=Source(type=SOURCE_TYPE, path=parent),
            attributes={"commits": len(made)},
            digest=blake2b(text.encode("utf-8", "replace"), digest_size=16).hexdigest(),
        )
        yield parent, node
