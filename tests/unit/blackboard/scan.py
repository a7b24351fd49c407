"""What `find` has to find, by looking at every item."""

from __future__ import annotations

import math
import re
from typing import Unpack

from metatree import Blackboard
from metatree.blackboard import Item
from metatree.blackboard.items import Which


def scan(board: Blackboard, text: str, k: int = 10, **which: Unpack[Which]) -> list[Item]:
    """Return the items that hold the most telling words of a text, best first."""
    words = sorted(set(re.findall(r"\w+", text.casefold())))
    whole = " ".join(text.casefold().split())
    texts = [(item, item.json.casefold()) for item in board.items(**which)]
    holding = {word: sum(word in said for _, said in texts) for word in words}
    weights = {word: math.log(1 + len(texts) / max(1, holding[word])) for word in words}

    def weight(word: str, said: str) -> float:
        return weights[word] * (1.25 if word in re.findall(r"\w+", said) else 1.0)

    scored = [
        (
            sum(weight(word, said) for word in words if word in said) * (1.5 if whole in said else 1),
            item.number,
            item,
        )
        for item, said in texts
        if any(word in said for word in words)
    ]
    return [item for _, _, item in sorted(scored, key=lambda each: each[:2], reverse=True)[:k]]
