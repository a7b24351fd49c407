"""Ids that a person may have meant by one that does not exist."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable

from metatree.trees.layer import Layer

_LIKELY = 300
"""How many candidates a layer may offer before they are ranked."""


def suggest(
    wrong: str, layers: Iterable[Layer], there: Callable[[str], bool], *, count: int = 3
) -> tuple[str, ...]:
    """Return up to `count` ids that resemble one that does not exist, best first.

    Candidates end in the same name, hold it, or lie beside where it would be; difflib ranks them.
    """
    wrong = wrong.strip()
    name = re.split(r"[/#:.]+(?=[^/#:.]*[\w)>])", wrong.rstrip("/"))[-1] or wrong
    base = wrong.rstrip("/").rpartition("/")[2] or wrong
    candidates: dict[str, None] = {}
    for layer in layers:
        for text in dict.fromkeys((base, name, name[: max(3, len(name) * 2 // 3)])):
            escaped = re.sub(r"([%_\\])", r"\\\1", text)
            rows = layer.store.rows(
                "SELECT id FROM node WHERE id LIKE ? ESCAPE '\\' LIMIT ?", (f"%{escaped}%", _LIKELY)
            )
            candidates.update((row[0], None) for row in rows)
        above, _, _ = wrong.rstrip("/").rpartition("/")
        candidates.update((node_id, None) for _, node_id in layer.child_places(above or ".")[:_LIKELY])
    candidates.pop(wrong, None)
    ranked = sorted(candidates, key=lambda candidate: -_likeness(wrong, base, candidate))
    good = (candidate for candidate in ranked if _likeness(wrong, base, candidate) > 0.5 and there(candidate))
    return tuple(candidate for _, candidate in zip(range(count), good, strict=False))


def _likeness(wrong: str, base: str, candidate: str) -> float:
    whole = difflib.SequenceMatcher(None, wrong.lower(), candidate.lower()).ratio()
    last = difflib.SequenceMatcher(None, base.lower(), candidate.rpartition("/")[2].lower()).ratio()
    return max(whole, last)
