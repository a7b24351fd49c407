"""Why a question found nothing in a tree: what was looked for, what was left out of the tree, which names are near."""

from __future__ import annotations

import difflib
from collections.abc import Collection

from metatree import Tree

_NEAR = 5
_MOST_WORDS = 40
_TRIED = 5
_MANY = 5_000
"""Names, all of which to compare takes a second."""


def why_empty(tree: Tree, asked: str, under: str = "") -> str:
    """Say what was looked for, what was left out, and which names are near.

    Args:
        tree: the tree that was searched.
        asked: the question, or the name.
        under: what it was searched below; empty for all of it.
    """
    if set(tree.info()["kinds"]) <= {"folder"}:
        return f"there is nothing to find: no file was read{left_out(tree)}"
    last = asked.strip().split()[-1:] or [""]
    words = _words(asked)
    listed = near_names(tree, asked)
    where = f" below {under}" if under else ""
    what = asked.strip() if len(asked) < 80 else f"…{last[0][:60]}"
    if listed:
        hint = f"nearest names: {listed}"
    elif words:
        hint = "no name is near: use words of the source"
    else:
        hint = "there is no word in it to look for"
    count = len(tree)
    nodes = f"{count} node{'' if count == 1 else 's'}"
    return f"nothing{where} was found for {what!r} in {nodes}{left_out(tree)}; {hint}"


def near_names(tree: Tree, asked: str) -> str:
    """Return the names of definitions and files that are spelled like words of a question, with commas between."""
    names = {
        id_.rpartition("::")[2].rpartition(".")[2] or id_: id_ for id_ in tree.ids(["definition", "file"])
    }
    words = {form for word in _words(asked) for form in (word, word.rpartition(".")[2])}
    near = [
        match
        for word in sorted(words, key=len, reverse=True)[:_TRIED]
        for match in difflib.get_close_matches(word, _alike(names, word), 2, 0.75)
    ]
    return ", ".join(names[match] for match in dict.fromkeys(near[:_NEAR]))


def _words(asked: str) -> set[str]:
    return {word.strip("`'\"?.,:()") for word in asked.split()[:_MOST_WORDS]} - {""}


def _alike(names: Collection[str], word: str) -> Collection[str]:
    """Return the names that are worth a look: of very many, those that begin alike."""
    if len(names) <= _MANY:
        return names
    return [name for name in names if name[:1].lower() == word[:1].lower()]


def left_out(tree: Tree) -> str:
    """Say how many files are not in the tree; empty when all are."""
    count = tree.info()["omissions"]
    files = "1 file was" if count == 1 else f"{count} files were"
    return f" ({files} left out of the tree: `metatree show --omitted`)" if count else ""
