"""What a search does when the tree is exhausted: a chain of fallbacks, the last of which may be a person."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from metatree.node import Node
from metatree.protocols import Answer
from metatree.trees.tree import ROOT, Tree


@dataclass(frozen=True, slots=True)
class FallbackRequest:
    """What a fallback gets."""

    questions: tuple[str, ...]
    context: str
    tree: Tree
    key: str
    """Idempotency key: the same when this fallback is run again after a crash."""


@dataclass(frozen=True, slots=True)
class FallbackResult:
    """What a fallback found: answers, or new nodes, which are added and searched."""

    answers: Sequence[Answer] = ()
    nodes: Sequence[Node] = ()
    parent: str = ROOT
    """Where the new nodes are added."""


Fallback = Callable[
    [FallbackRequest], "FallbackResult | Node | Awaitable[FallbackResult | Node | None] | None"
]
"""A function, also an async one. A node alone is added under the root; None is nothing found."""


class _AskPerson:
    """Put each open question to a person; the run waits for the answers, across restarts of the process."""

    def __repr__(self) -> str:
        return "ask_person"


ask_person: Final = _AskPerson()
"""The link of a fallback chain that puts open questions to a person; the run ends as `waiting` until `resume`."""
