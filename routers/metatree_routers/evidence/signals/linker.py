"""Look up in the index what a question names: which nodes are meant, how surely, and why.

Nothing here knows a repository: a name counts the more the fewer files define it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from metatree_routers.index.fields import path_ends
from metatree_routers.index.index import Reader
from metatree_routers.index.postings import Postings
from metatree_routers.query.mentions import Clue

MAX_DEFINERS = 6
"""A name that more files define says nothing."""
_IN_PACKAGE = re.compile(r"@v?\d[\w.+-]*/[^/]+$")
"""Right below the folder of a package in a version, as Go unpacks it: `gin@v1.9.1/context.go`."""
_VERSIONED = re.compile(r"(?<=[^/])[-@]v?\d{1,9}(?:\.\d{1,9}){1,3}[^/]{0,40}(?=/)")
"""What a folder of an installed package has that the folder of its source has not: `axum-0.7.4/src/`, `gin@v1.9.1/`."""


@dataclass(frozen=True, slots=True)
class Pointer:
    """A node that a clue points to."""

    node: int
    strength: float
    """In (0, 1] before the clue's weight; 1 means that nothing else is meant."""
    reason: str
    clue: Clue


class Resolver:
    """Looks clues up in the index."""

    def __init__(self, reader: Reader, clues: Iterable[Clue]) -> None:
        self._reader = reader
        self._records = reader.records
        self._clues = list(clues)
        terms = {term for clue in self._clues for term in self._terms(clue)}
        self._postings: dict[str, Postings] = reader.postings(terms)

    def _terms(self, clue: Clue) -> Iterator[str]:
        if clue.kind in ("path", "frame", "link"):
            yield from _ends(clue.text)
            return
        if clue.kind == "import":
            yield from _class_files(clue.text)
        parts = clue.text.split(".")
        for start in range(len(parts)):
            yield "=" + ".".join(parts[start:])
            if start:
                yield "=" + ".".join(parts[:start])
        for end in range(1, len(parts) + 1):
            module = "/" + "/".join(parts[:end])
            yield module + ".py"
            yield module + "/__init__.py"

    def pointers(self) -> list[Pointer]:
        """Return what the clues point to, nothing for clues that say nothing about this tree."""
        found: list[Pointer] = []
        frame_seen = traced_seen = 0
        for clue in self._clues:
            if clue.kind == "frame":
                pointers = self._path(clue, "")
                if pointers:
                    strength = 0.5**frame_seen
                    frame_seen += 1
                    label = "named with a line"
                    if clue.traced:
                        label = (
                            "named in the traceback" if traced_seen else "innermost frame of the traceback"
                        )
                        traced_seen += 1
                    pointers = [Pointer(p.node, p.strength * strength, label, clue) for p in pointers]
            elif clue.kind == "path":
                pointers = self._path(clue, f"names `{clue.text}`")
            elif clue.kind == "link":
                pointers = self._path(clue, "is linked")
            else:
                pointers = self._name(clue)
            found += pointers
        return found

    def _nodes(self, term: str) -> list[int]:
        postings = self._postings.get(term)
        return [] if postings is None else [int(node) for node in postings["node"]]

    def _path(self, clue: Clue, reason: str) -> list[Pointer]:
        """The longest end of the path that a file has; a bare file name counts less, `__init__.py` not at all."""
        for end in _ends(clue.text):
            nodes = self._nodes(end)
            bare = end.count("/") == 1
            if nodes and len(nodes) <= MAX_DEFINERS and not (bare and end == "/__init__.py"):
                if clue.kind != "path" and bare and "/" in clue.text:
                    if not _IN_PACKAGE.search(clue.text):
                        return []  # a file of another package that has the same name
                    nodes = [node for node, id_ in self._reader.ids(nodes).items() if "/" not in id_]
                return [Pointer(node, (0.7 if bare else 1.0) / len(nodes), reason, clue) for node in nodes]
        return []

    def _name(self, clue: Clue) -> list[Pointer]:
        parts = clue.text.split(".")
        module, rest = self._module(parts)
        if module is not None:
            if not rest:
                return [Pointer(module, 1.0, f"is the module `{clue.text}`", clue)]
            inside = self._definers(rest, self._scope(module))
            return [
                Pointer(node, 1.0 / len(inside), f"defines `{clue.text}`", clue)
                for node in inside[:MAX_DEFINERS]
            ]
        if clue.kind == "import":
            nodes = [node for path in _class_files(clue.text) for node in self._nodes(path)]
            if len(nodes) > MAX_DEFINERS:
                return []
            return [Pointer(node, 1.0 / len(nodes), f"is `{clue.text}`", clue) for node in nodes]
        for start in range(len(parts)):
            name = ".".join(parts[start:])
            nodes = self._nodes("=" + name)
            homes = {int(self._records.home[node]) for node in nodes}
            if homes and len(homes) <= MAX_DEFINERS:
                return [Pointer(node, 1.0 / len(homes), f"defines `{name}`", clue) for node in nodes]
            if homes:
                return []
        if len(parts) > 1:  # the object may be made elsewhere: `Model.objects` points to `Model`
            for end in range(len(parts) - 1, 0, -1):
                nodes = self._nodes("=" + ".".join(parts[:end]))
                homes = {int(self._records.home[node]) for node in nodes}
                if homes and len(homes) <= MAX_DEFINERS:
                    name = ".".join(parts[:end])
                    return [Pointer(node, 0.7 / len(homes), f"defines `{name}`", clue) for node in nodes]
        return []

    def _module(self, parts: list[str]) -> tuple[int | None, list[str]]:
        """Find the file of the longest module that the name begins with; give the rest of the name as well."""
        for end in range(len(parts), 0, -1):
            path = "/" + "/".join(parts[:end])
            for term in (path + ".py", path + "/__init__.py"):
                nodes = self._nodes(term)
                if len(nodes) == 1 and (end > 1 or (len(parts) > 1 and term.endswith("__init__.py"))):
                    return nodes[0], parts[end:]
        return None, parts

    def _scope(self, module: int) -> int:
        """The folder of a package, or the file of a module."""
        ids = self._reader.ids([module])
        return int(self._records.parent[module]) if ids[module].endswith("__init__.py") else module

    def _definers(self, rest: list[str], scope: int) -> list[int]:
        for end in range(len(rest), 0, -1):
            nodes = self._nodes("=" + ".".join(rest[:end])) or self._nodes("=" + rest[end - 1])
            if nodes:
                inside = self._records.nearest(np.array(nodes, dtype=np.int32), [scope]) >= 0
                kept = [node for node, is_inside in zip(nodes, inside.tolist(), strict=True) if is_inside]
                if kept:
                    return kept
        return []


def by_home(reader: Reader, pointers: Iterable[Pointer]) -> dict[int, list[Pointer]]:
    """Sort pointers by the file they point into, strongest first."""
    homes: dict[int, list[Pointer]] = defaultdict(list)
    for pointer in pointers:
        homes[int(reader.records.home[pointer.node])].append(pointer)
    for found in homes.values():
        found.sort(key=lambda pointer: -pointer.strength * pointer.clue.weight)
    return dict(homes)


def _ends(path: str) -> list[str]:
    """The ends of a path, also without the version that a folder in it has; the longest first."""
    ends = dict.fromkeys(end for spelled in (path, _VERSIONED.sub("", path)) for end in path_ends(spelled))
    return sorted(ends, key=lambda end: -end.count("/"))


def _class_files(name: str) -> list[str]:
    """The ends of the paths that a class has where packages are folders, as in Java."""
    *_, longest = path_ends(name.replace(".", "/"))
    return [f"{longest}.{suffix}" for suffix in ("java", "kt", "scala", "groovy")]
