"""Texts of others in lines of our own: nothing unseen, nothing that drives a terminal, no line break."""

from __future__ import annotations


def visible(text: str) -> str:
    """Return a text with blanks in the place of line breaks and tabs, and escapes in that of all else unseen.

    So a name can neither drive a terminal nor look like a line of its own, to a person or a model.

    Example:
        >>> print(visible("a" + chr(10) + "b" + chr(27) + "[2J"))
        a b\\x1b[2J
    """
    return text if text.isprintable() else "".join(c if c.isprintable() else escaped(c) for c in text)


def escaped(character: str) -> str:
    """Return what stands for a character that is not shown."""
    return " " if character.isspace() else character.encode("unicode_escape").decode("ascii")
