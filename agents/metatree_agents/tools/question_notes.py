"""How questions were read, in sentences."""

from __future__ import annotations

from collections.abc import Iterator

from metatree import SearchResult


def notes_of(result: SearchResult) -> Iterator[str]:
    """Yield how questions were read: with which words corrected; and of open ones, in a language that no text is in."""
    for note in result.notes:
        if note.read_as:
            yield f"Read as: {note.read_as}"
        if note.language and note.question in result.open_questions:
            languages = " and ".join(
                filter(None, (", ".join(note.tree_languages[:-1]), note.tree_languages[-1]))
            )
            yield f"The question is in {note.language}; the texts are in {languages}"
