"""Why a question found nothing in a tree: what was looked for, what was left out of the tree, which names are near."""

from __future__ import annotations

import difflib

from metatree import Tree

_NEAR = 5
_MOST_WORDS = 40
_TRIED = 5


def why_empty(tree: Tree, asked: str, under: str = "") -> str:
    """Say what was looked for, what was left out, and which names are near.

    Args:
        tree: the tree that was searched.
        asked: the question, or the name.
        under: what it was searched below; empty for all of it.
    """
    last = asked.strip().split()[-1:] or [""]
    words = {word.strip("`'\"?.,:()") for word in asked.split()[:_MOST_WORDS]} - {""}
    names = {
        id_.rpartition("::")[2].rpartition(".")[2] or id_: id_ for id_ in tree.ids(["definition", "file"])
    }
    near = [
        match
        for word in sorted(words, key=len, reverse=True)[:_TRIED]
        for match in difflib.get_close_matches(word, names, 2, 0.75)
    ]
    listed = ", ".join(names[match] for match in dict.fromkeys(near[:_NEAR]))
    where = f" below {under}" if under else ""
    what = asked.strip() if len(asked) < 80 else f"…{last[0][:60]}"
    hint = f"; nearest names: {listed}" if listed else "; no name is near: use words of the source"
    return f"nothing{where} was found for {what!r} in {len(tree)} nodes{left_out(tree)}{hint}"


def left_out(tree: Tree) -> str:
    """Say how many files are not in the tree; empty when all are."""
    count = tree.info()["omissions"]
    return f" ({count} file(s) were left out of the tree)" if count else ""
