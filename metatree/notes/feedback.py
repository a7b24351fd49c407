"""Flags: what a person says against a node for a question, so that searches with questions like it rank it lower.

A flag is a small fact of the memory, with who said it, when and why. It lowers a node, never hides it: one person
halves what speaks for a node, all together leave a quarter, so nobody can make a text unfindable. It says nothing about
other questions. `forget` takes it back.

Lost: a weight of the node (harms other topics), a memory that says "not this" (found as a text like any other), hiding
(one user could make a text unfindable), and weights of persons (nobody knows them).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any, Final

from metatree.errors import UserError
from metatree.node import Node
from metatree.storage.store import Store
from metatree.storage.trust import IMPORTED_NODE
from metatree.trees.layer import Layer
from metatree.trees.tree import Tree

FLAG: Final = "flag:"
MOST_OF_ONE: Final = 500
"""Flags of one person that are kept, the latest."""
MOST: Final = 2_000
"""Flags of a tree that are kept, the latest: each question looks at all of them."""
LEAST: Final = 0.25
"""What is left of a node's score at least, whoever flags it."""
MAX_QUESTION: Final = 500
"""Characters of a question that are kept, and of who flagged and where."""


@dataclass(frozen=True, slots=True)
class Flag:
    """One person's word against one node, for questions like one."""

    id: str
    node: str
    question: str
    why: str
    """Such as `off topic` or `corrected`."""
    who: str
    source: str
    """Where it was said."""
    at: str
    """When, ISO 8601 in UTC."""

    def __str__(self) -> str:
        return f"flagged as {self.why} for “{self.question}” by {self.who} on {self.at[:10]}"


def flag(
    tree: Tree,
    node: str | Node,
    question: str,
    *,
    why: str = "off topic",
    who: str = "unknown",
    source: str = "",
    now: Callable[[], float] = time.time,
) -> Flag:
    """Let a node count less in searches with a question like this one; the same said again changes nothing.

    Raises:
        UnknownNode: it is not in the tree.
        UserError: there is no question.

    Example:
        >>> from metatree.testing.parts import tree_of
        >>> tree = tree_of({"a": "A lamp.", "b": "A bulb."})
        >>> made = flag(tree, "a", "Which bulb fits?", who="ann")
        >>> [(each.node, each.who) for each in flags(tree.memory)]
        [('a', 'ann')]
        >>> take_back(tree, made.id).node, list(flags(tree.memory))
        ('a', [])
    """
    node = tree.get(node)
    text = " ".join(question.split())[:MAX_QUESTION]
    if not text:
        raise UserError("a flag is for a question: say which")
    who = " ".join(who.split())[:MAX_QUESTION] or "unknown"
    digest = blake2b("\0".join((node.id, text.casefold(), who)).encode("utf-8", "replace"), digest_size=5)
    at = datetime.fromtimestamp(now(), UTC).isoformat(timespec="milliseconds")
    result = Flag(FLAG + digest.hexdigest(), node.id, text, why, who, source[:MAX_QUESTION], at)
    layer = Layer(tree.memory)
    with tree.memory.durable(), tree.memory.transaction():
        known = _flag_of(layer.fact(result.id))
        if known is not None:
            return known
        layer.set_fact(result.id, asdict(result))
        # Those of an export go first, whenever they are said to have been made, and in whose name they are.
        imported = {key.removeprefix(IMPORTED_NODE) for key in layer.fact_keys(IMPORTED_NODE + FLAG)}
        all_flags = sorted(flags(tree.memory), key=lambda each: (each.id not in imported, each.at))
        own = [each for each in all_flags if each.who == who]
        for each in (*own[:-MOST_OF_ONE], *all_flags[:-MOST]):
            layer.drop_fact(each.id)
            layer.forget_imported([each.id])
    return result


def flags(store: Store) -> list[Flag]:
    """Return the flags that a memory holds, in no order."""
    return [each for fact in Layer(store).facts(FLAG).values() if (each := _flag_of(fact)) is not None]


def _flag_of(fact: Any) -> Flag | None:
    """Return a flag as it was kept; None for what is none, as a memory of somebody else may have it."""
    names = {each.name for each in fields(Flag)}
    is_flag = (
        isinstance(fact, dict) and fact.keys() == names and all(isinstance(v, str) for v in fact.values())
    )
    return Flag(**fact) if is_flag else None


def flag_ids(store: Store) -> tuple[str, ...]:
    """Return the ids of the flags that a memory holds; what a flag says never changes."""
    return tuple(Layer(store).fact_keys(FLAG))


def take_back(tree: Tree, flag_id: str) -> Flag:
    """Remove a flag, and return it.

    Raises:
        UserError: there is none with this id.
    """
    layer = Layer(tree.memory)
    with tree.memory.durable(), tree.memory.transaction():
        fact = layer.fact(flag_id) if flag_id.startswith(FLAG) else None
        found = _flag_of(fact)
        if found is None:
            raise UserError(f"no flag {flag_id!r}: `metatree memories --flags` lists them")
        layer.drop_fact(flag_id)
    return found


def share_left(likeness: Iterable[tuple[str, float]]) -> float:
    """Return the share of a node's score that flags leave.

    Args:
        likeness: who flagged it, and how like the question theirs is, in [0, 1]; each person counts once.

    Example:
        >>> share_left([]), share_left([("ann", 1.0), ("ann", 1.0)]), share_left([("a", 1.0), ("b", 1.0)] * 9)
        (1.0, 0.5, 0.3333333333333333)
    """
    best: dict[str, float] = {}
    for who, like in likeness:
        best[who] = max(like, best.get(who, 0.0))
    return max(LEAST, 1.0 / (1.0 + sum(best.values())))
