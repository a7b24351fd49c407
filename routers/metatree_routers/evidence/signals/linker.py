"""Look up in the index what a question names: which nodes are meant, how surely, and why.

Nothing here knows a repository: a name counts the more the fewer files define it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from metatree_routers.evidence.signals.clause_words import quoted
from metatree_routers.index.fields import path_ends
from metatree_routers.index.index import IndexSnapshot
from metatree_routers.index.postings import Postings
from metatree_routers.query.mentions import Mention

MAX_DEFINERS = 6
"""A name that more files define says nothing."""
MAX_REASONS = 2
"""Names in a file that its reason repeats."""
_IN_PACKAGE = re.compile(r"@v?\d[\w.+-]*/[^/]+$")
"""Right below the folder of a package in a version, as Go unpacks it: `gin@v1.9.1/context.go`."""
_VERSIONED = re.compile(r"(?<=[^/])[-@]v?\d{1,9}(?:\.\d{1,9}){1,3}[^/]{0,40}(?=/)")
"""What a folder of an installed package has that the folder of its source has not: `axum-0.7.4/src/`, `gin@v1.9.1/`."""


@dataclass(frozen=True, slots=True)
class MentionMatch:
    """A node that a mention points to."""

    node: int
    strength: float
    """In (0, 1] before the mention's weight; 1 means that nothing else is meant."""
    reason: str
    mention: Mention


class Linker:
    """Looks mentions up in the index."""

    def __init__(self, snapshot: IndexSnapshot, mentions: Iterable[Mention]) -> None:
        self._snapshot = snapshot
        self._table = snapshot.table
        self._mentions = list(mentions)
        terms = {term for mention in self._mentions for term in self._terms(mention)}
        self._postings: dict[str, Postings] = snapshot.postings(terms)

    def _terms(self, mention: Mention) -> Iterator[str]:
        if mention.kind in ("path", "frame", "link"):
            yield from _ends(mention.text)
            return
        if mention.kind == "import":
            yield from _class_files(mention.text)
        parts = mention.text.split(".")
        for start in range(len(parts)):
            yield "=" + ".".join(parts[start:])
            if start:
                yield "=" + ".".join(parts[:start])
        for end in range(1, len(parts) + 1):
            module = "/" + "/".join(parts[:end])
            yield module + ".py"
            yield module + "/__init__.py"

    def matches(self) -> list[MentionMatch]:
        """Return what the mentions point to, nothing for mentions that say nothing about this tree."""
        results: list[MentionMatch] = []
        frame_seen = traced_seen = 0
        for mention in self._mentions:
            if mention.kind == "frame":
                matches = self._path(mention, "")
                if matches:
                    strength = 0.5**frame_seen
                    frame_seen += 1
                    label = "named with a line"
                    if mention.traced:
                        label = (
                            "named in the traceback" if traced_seen else "innermost frame of the traceback"
                        )
                        traced_seen += 1
                    matches = [MentionMatch(p.node, p.strength * strength, label, mention) for p in matches]
            elif mention.kind == "path":
                matches = self._path(mention, f"names `{mention.text}`")
            elif mention.kind == "link":
                matches = self._path(mention, "is linked")
            else:
                matches = self._name(mention)
            results += matches
        return results

    def _nodes(self, term: str) -> list[int]:
        postings = self._postings.get(term)
        return [] if postings is None else [int(node) for node in postings["node"]]

    def _path(self, mention: Mention, reason: str) -> list[MentionMatch]:
        """The longest end of the path that a file has; a bare file name counts less, `__init__.py` not at all."""
        for end in _ends(mention.text):
            nodes = self._nodes(end)
            bare = end.count("/") == 1
            if nodes and len(nodes) <= MAX_DEFINERS and not (bare and end == "/__init__.py"):
                if mention.kind != "path" and bare and "/" in mention.text:
                    if not _IN_PACKAGE.search(mention.text):
                        return []  # a file of another package that has the same name
                    nodes = [node for node, id_ in self._snapshot.ids(nodes).items() if "/" not in id_]
                return [
                    MentionMatch(node, (0.7 if bare else 1.0) / len(nodes), reason, mention) for node in nodes
                ]
        return []

    def _name(self, mention: Mention) -> list[MentionMatch]:
        parts = mention.text.split(".")
        module, rest = self._module(parts)
        if module is not None:
            if not rest:
                return [MentionMatch(module, 1.0, f"is the module `{mention.text}`", mention)]
            inside = self._definers(rest, self._scope(module))
            return [
                MentionMatch(node, 1.0 / len(inside), f"defines `{mention.text}`", mention)
                for node in inside[:MAX_DEFINERS]
            ]
        if mention.kind == "import":
            nodes = [node for path in _class_files(mention.text) for node in self._nodes(path)]
            if len(nodes) > MAX_DEFINERS:
                return []
            return [MentionMatch(node, 1.0 / len(nodes), f"is `{mention.text}`", mention) for node in nodes]
        for start in range(len(parts)):
            name = ".".join(parts[start:])
            nodes = self._nodes("=" + name)
            homes = {int(self._table.home[node]) for node in nodes}
            if homes and len(homes) <= MAX_DEFINERS:
                return [MentionMatch(node, 1.0 / len(homes), f"defines `{name}`", mention) for node in nodes]
            if homes:
                return []
        if len(parts) > 1:  # the object may be made elsewhere: `Model.objects` points to `Model`
            for end in range(len(parts) - 1, 0, -1):
                nodes = self._nodes("=" + ".".join(parts[:end]))
                homes = {int(self._table.home[node]) for node in nodes}
                if homes and len(homes) <= MAX_DEFINERS:
                    name = ".".join(parts[:end])
                    return [
                        MentionMatch(node, 0.7 / len(homes), f"defines `{name}`", mention) for node in nodes
                    ]
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
        ids = self._snapshot.ids([module])
        return int(self._table.parent[module]) if ids[module].endswith("__init__.py") else module

    def _definers(self, rest: list[str], scope: int) -> list[int]:
        for end in range(len(rest), 0, -1):
            nodes = self._nodes("=" + ".".join(rest[:end])) or self._nodes("=" + rest[end - 1])
            if nodes:
                inside = self._table.nearest(np.array(nodes, dtype=np.int32), [scope]) >= 0
                definers = [node for node, is_inside in zip(nodes, inside.tolist(), strict=True) if is_inside]
                if definers:
                    return definers
        return []


def clauses(matches: Sequence[MentionMatch]) -> Iterator[str]:
    """Say what the question names in the file of a node, given the strongest first."""
    if matches:
        yield f"the question names {quoted(matches[0].mention.text)}"


def file_clauses(matches: Sequence[MentionMatch]) -> list[str]:
    """Say what a report names in a file, given the strongest first."""
    return list(dict.fromkeys(match.reason for match in matches))[:MAX_REASONS]


def by_home(snapshot: IndexSnapshot, matches: Iterable[MentionMatch]) -> dict[int, list[MentionMatch]]:
    """Sort what mentions match by the file they point into, strongest first."""
    homes: dict[int, list[MentionMatch]] = defaultdict(list)
    for match in matches:
        homes[int(snapshot.table.home[match.node])].append(match)
    for of_home in homes.values():
        of_home.sort(key=lambda match: -match.strength * match.mention.weight)
    return dict(homes)


def _ends(path: str) -> list[str]:
    """The ends of a path, also without the version that a folder in it has; the longest first."""
    ends = dict.fromkeys(end for spelled in (path, _VERSIONED.sub("", path)) for end in path_ends(spelled))
    return sorted(ends, key=lambda end: -end.count("/"))


def _class_files(name: str) -> list[str]:
    """The ends of the paths that a class has where packages are folders, as in Java."""
    *_, longest = path_ends(name.replace(".", "/"))
    return [f"{longest}.{suffix}" for suffix in ("java", "kt", "scala", "groovy")]
