"""Where a memory goes in a tree: beside what it is about, never where a rebuild of the sources would uproot it.

A memory goes to a folder, and below a file only when it names it: the evidence's best hit is nearly always inside a
file, and hanging there, a memory would move each time that the file is split.

Lost: the best hit itself; and a model that decides (the place must be explained without one).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from metatree._util.secret_text import masked
from metatree.errors import UserError
from metatree.node import Node
from metatree.protocols import Evidence
from metatree.trees.tree import ROOT, Tree

BRANCH: Final = "memories:"
"""Id of the branch of memories that belong to no other part of a tree."""
GROUP_KIND: Final = "memories"
"""Kind of that branch and of the groups in it."""
MEMORY_KIND: Final = "memory"

_SIMILAR = 0.5
"""Score from which another memory is on the same subject."""
_ABOUT = 0.6
"""Score that the best node must have before its folder is thought of."""
_SHARE = 0.6
"""Share of the evidence that one folder must hold; below, the text is about several parts, or about none."""
_LOOKED_AT = 12
_TRANSIENT = frozenset(
    (
        "file",
        "definition",
        "section",
        "page",
        "turn",
        "commit",
        "tool",
        "action",
        "import",
        "imported",
        MEMORY_KIND,
    )
)
"""Kinds whose nodes come and go with a source, or are things of their own: nothing hangs below them by itself."""
_MENTION = re.compile(
    # None begins behind a letter of its own: else a long word is gone through from each of its letters.
    r"(?<![\w.\-])[\w.\-]*(?:/[\w.\-]+)+|(?<![\w\-])[\w\-]+\.[A-Za-z]\w{0,9}\b"
    r"|\b[A-Za-z_]\w*(?:\.\w+)+|\b\w*[a-z0-9][A-Z]\w*|\b\w+_\w+"
)
_WORD = re.compile(r"[^\W_][\w'-]{2,}")
_PLAIN_WORDS = (
    "about after also always and another are because been before but can could does each ever every for from had has"
    " have her here him his how into its just like may more most much must never not now off only other our out over"
    " said same says she should since some such than that the their them then there these they this those too under"
    " until use used uses very was were what when where which while who why will with would you your"
)
_PLAIN = frozenset(_PLAIN_WORDS.split())


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a memory goes."""

    parent: str
    why: str
    """The reason, as the end of a sentence: `it names src/app.py`."""
    beside: str | None = None
    """A memory without a group, on the same subject, with which it makes one."""
    title: str = ""
    """Title of that group."""


def place_of(tree: Tree, text: str, *, under: str | None, evidence: Evidence | None) -> Placement:
    """Return where a text goes: where the caller says, what it names, beside its like, or into the branch of memories.

    Args:
        tree: the tree; nothing is written.
        text: what is remembered, with its title.
        under: the node that somebody chose.
        evidence: scores nodes for the text; None chooses the branch of memories unless the text names something.

    Raises:
        UnknownNode: `under` is not in the tree.
        UserError: `under` is a memory: nothing is kept below one.
    """
    if under is not None:
        node = tree.get(tree.resolve(under))
        if node.kind == MEMORY_KIND:
            raise UserError(
                f"{node.id!r} is a memory itself: name a node that holds others, or change it with `update`"
            )
        return Placement(node.id, "it was put there")
    hits = [] if evidence is None else _hits(tree, evidence, text)
    by_name = _mentioned_place(tree, text, hits)
    if by_name is not None:
        return by_name
    for node, score in hits:
        if node.kind == MEMORY_KIND and score >= _SIMILAR:
            return _place_beside(tree, node, text)
    return _place_by_topic(tree, hits) or Placement(BRANCH, "no one place in the tree stands out for it")


def _hits(tree: Tree, evidence: Evidence, text: str) -> list[tuple[Node, float]]:
    scored = evidence.score([text], k=_LOOKED_AT)
    return [(node, hit.score) for hit in scored if (node := tree.find(hit.node_id)) is not None]


def _mentioned_place(tree: Tree, text: str, hits: list[tuple[Node, float]]) -> Placement | None:
    """Return the file or folder that the text names, or the file of the one definition that it names."""
    mentions = list(dict.fromkeys(m.group().strip(".,;:") for m in _MENTION.finditer(text)))
    for mention in mentions:
        for candidate in (mention, mention.removeprefix("./").strip("/")):
            node = tree.find(candidate) if candidate and candidate != ROOT else None
            if node is not None and node.kind in ("file", "folder"):
                return Placement(node.id, f"it names {node.id}")
    for node, _ in hits:
        if node.kind in ("file", "folder") and any(_ends(node.id, mention) for mention in mentions):
            return Placement(node.id, f"it names {node.id}")
        name = node.id.rpartition("::")[2]
        if "::" in node.id and any(_ends(name, mention, mark=".") for mention in mentions):
            file = node.id.partition("::")[0]
            if file in tree:
                return Placement(file, f"it names {name}")
    return None


def _ends(name: str, mention: str, *, mark: str = "/") -> bool:
    return name == mention or name.endswith(mark + mention) or (mark == "." and mention.endswith(mark + name))


def _place_beside(tree: Tree, like: Node, text: str) -> Placement:
    parent = tree.parent(like) or ROOT
    why = f"{like.title!r} is there"
    if parent != BRANCH:
        return Placement(parent, why)
    shared = _shared_words(text, f"{like.title}\n{like.content or ''}")
    if not shared:
        return Placement(BRANCH, why)
    return Placement(BRANCH, f"{like.title!r} is on the same subject", like.id, ", ".join(shared))


def _place_by_topic(tree: Tree, hits: list[tuple[Node, float]]) -> Placement | None:
    """Return the branch that holds most of what the text is about, if one does."""
    if not hits or hits[0][1] < _ABOUT:
        return None
    weight: dict[str, float] = {}
    seen: set[str] = set()
    for node, score in hits:
        chain = [*tree.ancestors(node), node.id]
        nodes = [(i, n) for i in chain if (n := tree.find(i)) is not None]
        whole = next((i for i, n in nodes if n.kind in _TRANSIENT), node.id)
        if whole in seen:  # a file and what is in it speak once
            continue
        seen.add(whole)
        holder = next((i for i, n in reversed(nodes) if n.kind not in _TRANSIENT and not n.has_content), ROOT)
        weight[holder] = weight.get(holder, 0.0) + score
    holder, most = max(weight.items(), key=lambda pair: pair[1])
    if holder in (ROOT, BRANCH) or most < _SHARE * sum(weight.values()):
        return None
    return Placement(holder, f"what is most like it lies there ({hits[0][0].title})")


def _shared_words(text: str, other: str) -> list[str]:
    """Return up to three words that two texts share, as the first has them; none of what looks like a secret."""
    known = {_stem(word) for word in _words(masked(other)[0])}
    shared: dict[str, str] = {}
    for word in _words(masked(text)[0]):
        if _stem(word) in known:
            shared.setdefault(_stem(word), word)
    return list(shared.values())[:3]


def _words(text: str) -> Iterator[str]:
    return (word for word in _WORD.findall(text) if word.casefold() not in _PLAIN)


def _stem(word: str) -> str:
    folded = word.casefold()
    return next(
        (
            folded[: -len(end)]
            for end in ("ing", "ed", "es", "s")
            if folded.endswith(end) and len(folded) > 4 + len(end)
        ),
        folded,
    )
