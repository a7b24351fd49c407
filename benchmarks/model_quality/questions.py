"""Questions of which the right section is known: some words of a section of this project's documentation each.

Words that stand in this section alone are left out, so that the words of a question point to several sections and the
text index is right in about two of three.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from metatree_memory_tools import build_tree

from metatree import Tree

DOCS = Path(__file__).parents[2] / "docs"
_WORD = re.compile(r"[a-z]{4,}")
_LEAST_WORDS = 15
_RARE, _COMMON = 3, 70
_WORDS_ASKED = 4


@dataclass(frozen=True)
class Question:
    """A question, and the section that it is about."""

    text: str
    section: str


def documentation(folder: Path) -> Tree:
    """Return the tree of the documentation, kept in a folder."""
    return build_tree(DOCS, out=folder / "docs.db")


def questions_of(tree: Tree, count: int, seed: int) -> list[Question]:
    """Return questions about different sections, in random order."""
    texts = {i: tree.content(i).lower() for i in tree.ids(["section"]) if tree.get(i).has_content}
    sections = Counter(word for text in texts.values() for word in set(_WORD.findall(text)))
    rng = random.Random(seed)
    made = []
    for section in sorted(texts):
        words = sorted(w for w in set(_WORD.findall(texts[section])) if _RARE <= sections[w] <= _COMMON)
        if len(words) >= _LEAST_WORDS:
            said = " ".join(rng.sample(words, _WORDS_ASKED))
            made.append(Question(f"Where is it about {said}?", section))
    rng.shuffle(made)
    return made[:count]
