"""Which sources lie below which nodes of a tree, and what becomes of nodes when the list of sources changes.

Every id and path of a source begins with its mount when a tree has several, also in the table of files, so that one
index, one overlay and one builder serve all of them, and a source is known by the beginning of an id; one folder alone
has no mount. Lost: a tree for each source with a view over them (every search, index and count would have to know),
and a column for the source (an id would not say where it belongs).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from metatree.node import Node, digest_of
from metatree.storage.trust import is_marked, sign
from metatree.trees.layer import GAP, ROOT, Layer
from metatree.trees.source_types import SourceRef
from metatree_memory_tools.build._index_writer import IndexWriter
from metatree_memory_tools.git.log import drop_history
from metatree_memory_tools.text.descriptions import DESCRIPTION_CHARS, with_names

_TITLE_CHARS = 80


def arrange_sources(
    layer: Layer, known: Sequence[SourceRef], sources: Sequence[SourceRef], records: Sequence[dict[str, Any]]
) -> None:
    """Record the sources of a layer, and take out the nodes of those that are not among them any more.

    When a tree of one folder becomes one of several sources, or the other way round, the folder's nodes are built
    anew under other ids; these are recorded as renames, so that what was added below them follows.
    """
    if layer.fact("sources") == records:
        return
    with layer.store.transaction():
        now = {(source.type, source.location): source.mount for source in sources}
        for source in known:
            place = (source.type, source.location)
            if place not in now and not source.mount and sources and not sources[0].mount:
                continue  # the folder was renamed, and is compared with what is there
            if now.get(place) != source.mount:
                _take_out(layer, source, now.get(place))
        is_ours = is_marked(layer.store)  # METATREE_TRUST passes over marks, and gives none
        layer.set_fact("sources", list(records))
        if is_ours:
            sign(layer.store)


def _take_out(layer: Layer, source: SourceRef, new: str | None) -> None:
    """Take a source's nodes out; with `new` it comes back under that mount."""
    writer = IndexWriter(layer, source.mount)
    top = source.mount or ROOT
    ids = [node_id for node_id in layer.subtree(top) if node_id != ROOT]
    if new is not None:
        for _, below in layer.child_places(top):
            inner = below if not source.mount else below.removeprefix(source.mount + "/")
            writer.renamed(below, f"{new}/{inner}" if new else inner)
    writer.erase(ids)
    store = layer.store
    for table, column in (("file", "path"), ("omission", "path"), ("link", "source")):
        store.execute(f"DELETE FROM {table} WHERE {writer.within(column)}")
    drop_history(store, source=source.mount)
    names = ("building", "built_at", "readers", "fingerprint", "version", "note")
    end = f":{source.mount}" if source.mount else ""
    store.execute_many("DELETE FROM meta WHERE key = ?", [(name + end,) for name in names])


def describe_root(layer: Layer, sources: Sequence[SourceRef]) -> None:
    """Say on the root of several sources what they are, and put them into their order."""
    places = dict(layer.child_places(ROOT))
    wanted = {number * GAP: source.mount for number, source in enumerate(sources, start=1)}
    if places != wanted:
        with layer.store.transaction():
            layer.reposition(wanted.items())
    names = [source.mount for source in sources]
    title = ", ".join(names)
    if len(title) > _TITLE_CHARS:
        title = f"{title[: _TITLE_CHARS - 1]}…"
    text = with_names("", "Contains", names, DESCRIPTION_CHARS)
    node = Node(ROOT, title, text, kind="folder", attributes={"children": len(names)})
    current = layer.node(ROOT)
    digest = digest_of(node)
    if current is None or current.digest != digest:
        with layer.store.transaction():
            layer.rewrite(
                layer.next_seq(),
                Node(ROOT, title, text, kind="folder", attributes=node.attributes, digest=digest),
            )
