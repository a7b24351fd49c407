"""Graphs as functions from a node to those that follow it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


def reachable(first: Iterable[T], following: Callable[[T], Iterable[T]]) -> set[T]:
    """Return some nodes and all that follow them, at whatever distance."""
    nodes = set(first)
    waiting = list(nodes)
    while waiting:
        for node in following(waiting.pop()):
            if node not in nodes:
                nodes.add(node)
                waiting.append(node)
    return nodes
