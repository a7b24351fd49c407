"""Nodes of an archive, and what it says of built nodes, into a tree."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from operator import itemgetter
from typing import Any, Final

from metatree._util.secret_text import redacted, without_secrets
from metatree.node import Node, Source, digest_of
from metatree.notes.archive._report import MergeConflict
from metatree.notes.archive._rows import Merge, scalar, text
from metatree.notes.notes import known_text, mentions, merge_mentions, note_text
from metatree.notes.placement import BRANCH as MEMORIES
from metatree.notes.placement import GROUP_KIND, MEMORY_KIND
from metatree.notes.wishes import BRANCH as WISHES
from metatree.notes.wishes import BRANCH_KIND as WISHES_KIND
from metatree.notes.wishes import KIND as WISH
from metatree.notes.wishes import check_wish
from metatree.trees.layer import APPENDED, ROOT
from metatree.trees.overlay import above

BRANCHES: Final = {MEMORIES: GROUP_KIND, WISHES: WISHES_KIND}
"""What what is remembered lies under; the kind of each."""


class NodeMerge(Merge):
    """Merges nodes, parents before children, then the words and places that were given to built ones."""

    def all(self, *, wishes: bool, deletions: bool) -> None:
        """Merge all; standing wishes, which go to agents with each answer, and what is hidden only when asked for."""
        self._nodes(wishes=wishes)
        self.each("overrides", self._override if deletions else self._shown)
        self.tree._overlay.undo_loops()

    def _nodes(self, *, wishes: bool) -> None:
        def taken(node: Node) -> Node | None:
            return node if node.kind != WISH or self._takes_wish(node, wishes) else None

        for node, parent, position in parents_first(self, taken):
            with self.sound("nodes", 0):
                self._take(node, parent, position)

    def _takes_wish(self, node: Node, wanted: bool) -> bool:
        check_wish(node)
        existing = self.tree.find(node.id)
        same = existing is not None and _contents(node) in (
            _contents(existing),
            _contents(_exported(existing)),
        )
        if wanted or same:
            return True
        self.report.wishes_left_out += 1
        return False

    def _take(self, node: Node, parent: str, position: int) -> None:
        tree = self.tree
        is_memory = node.kind == MEMORY_KIND and node.content is not None
        existing = tree.find(node.id)
        same = known_text(tree, node.content or "") if is_memory else None
        if (
            same is None
            and existing is not None
            and _contents(node) in (_contents(existing), _contents(_exported(existing)))
        ):
            same = existing  # an archive of this very tree has it without what looks like a secret
            known = mentions(_exported(existing))
            fresh = [mention for mention in mentions(node) if mention not in known]
            node = replace(node, provenance={**node.provenance, "said": fresh})
        if same is not None:
            merge_mentions(tree, same, node)
            self.report.count("nodes", new=False)
            return
        # An id of a branch that the user's own is put under is for such a branch alone.
        taken = existing is not None or (node.id in BRANCHES and node.kind != BRANCHES[node.id])
        if taken:
            other = f"{node.id}~{digest_of(node)[:8]}"
            if other in tree:
                self.report.count("nodes", new=False)
                return
            self.report.conflicts.append(
                MergeConflict("node", node.id, f"both: the one of the archive is {other}")
            )
            node = replace(node, id=other)
        place = next((i for i in chain([parent], above(parent)) if i in tree), ROOT)
        tree.add_imported(node, place)
        if is_memory:
            note_text(tree, node)
        if place != parent or position < APPENDED:
            now = self.layer.place(node.id)
            assert now is not None
            home = parent if place != parent else None
            self.layer.put(
                node.id, self.layer.next_seq(), place, position if position < APPENDED else now[1], home
            )
        self.report.count("nodes", new=True)

    def _shown(self, row: dict[str, Any]) -> None:
        """Merge what is said of a built node, and leave it where it can be found."""
        now = self.tree._overlay.override(text(row["id"]))
        if row["hidden"] and not (now is not None and now.hidden):
            self.report.deletions_left_out += 1
            row = {**row, "hidden": 0}
            if all(row[name] is None for name in ("parent", "title", "description")):
                return
        self._override(row)

    def _override(self, row: dict[str, Any]) -> None:
        if self.tree.index is self.tree.memory:
            self.report.conflicts.append(
                MergeConflict(
                    "override", str(row["id"]), "nothing: this tree was made by hand and has no such node"
                )
            )
            return
        names = ("parent", "position", "home", "hidden", "title", "description", "provenance", "basis")
        values = {name: scalar(row[name]) for name in names}
        now = self.store.row(f"SELECT {', '.join(names)} FROM override WHERE id = ?", (text(row["id"]),))
        if now is None:
            place = values["home"] or values["parent"]
            if place is not None and place not in self.tree:
                values["home"] = place
                values["parent"] = next((i for i in above(str(place)) if i in self.tree), ROOT)
            self._put_override(row["id"], values)
            self.report.count("overrides", new=True)
            return
        current = dict(zip(names, now, strict=True))
        missing = {n: v for n, v in values.items() if v is not None and current[n] is None and n in names[4:]}
        differing = [
            n
            for n in ("title", "description")
            if values[n] is not None and current[n] not in (None, values[n])
        ]
        if differing:
            what = f"the {' and '.join(differing)} that the tree has"
            self.report.conflicts.append(MergeConflict("override", row["id"], what))
        if missing:
            self._put_override(row["id"], missing)
        self.report.count("overrides", new=False)

    def _put_override(self, node_id: str, fields: Mapping[str, Any]) -> None:
        self.tree._overlay.put_override(self.layer.next_seq(), node_id, **fields)


def parents_first(merge: Merge, taken: Callable[[Node], Node | None]) -> Iterator[tuple[Node, str, int]]:
    """Yield the nodes of an archive with parent and position, parents before children.

    Args:
        merge: the import.
        taken: gives what is taken of a node, None for nothing. All of that is kept in memory.
    """
    by_parent: dict[str, list[tuple[Node, int]]] = {}
    ids: set[str] = set()
    for number, row in enumerate(merge.archive.rows("nodes"), start=1):
        with merge.sound("nodes", number):
            if (node := taken(_node(row))) is not None:
                by_parent.setdefault(row["home"] or row["parent"], []).append((node, row["position"]))
                ids.add(node.id)
    ready = [parent for parent in by_parent if parent not in ids]
    while ready:
        parent = ready.pop()
        for node, position in sorted(by_parent.pop(parent, ()), key=itemgetter(1)):
            yield node, parent, position
            ready.append(node.id)
    if by_parent:
        raise merge.archive.damaged("nodes", 0, f"{next(iter(by_parent))!r} lies below itself")


def _node(row: Mapping[str, Any]) -> Node:
    source = None
    if row["source_type"] is not None:
        parts = tuple((int(first), int(last)) for first, last in row["parts"] or ())
        source = Source(
            type=text(row["source_type"]),
            path=text(row["source_path"]),
            start_line=row["start_line"],
            end_line=row["end_line"],
            parts=parts,
        )
    if not isinstance(row["position"], int) or not isinstance(row["home"] or row["parent"], str):
        raise ValueError("it has no place")
    content = row["content"]
    return Node(
        text(row["id"]),
        text(row["title"]),
        text(row["description"]),
        None if content is None else text(content),
        text(row["kind"]),
        source,
        dict(row["provenance"] or {}),
        dict(row["attributes"] or {}),
    )


def _exported(node: Node) -> Node:
    """Return a node as an archive has it."""
    return replace(
        node,
        title=redacted(node.title)[0],
        description=redacted(node.description)[0],
        content=None if node.content is None else redacted(node.content)[0],
        attributes=without_secrets(node.attributes)[0],
        provenance=without_secrets(node.provenance)[0],
    )


def _contents(node: Node) -> tuple[Any, ...]:
    return (node.kind, node.title, node.description, node.content, node.source, dict(node.attributes))
