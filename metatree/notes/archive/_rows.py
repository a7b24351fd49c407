"""Taking the rows of an archive into a tree one by one; a row that does not fit is damage."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from metatree.errors import BrokenStore, UntrustedStore, UserError
from metatree.notes.archive._reader import Archive
from metatree.notes.archive._report import Imported
from metatree.trees.layer import Layer
from metatree.trees.tree import Tree


class Merge:
    """A part of an import, which runs in a transaction of the tree's memory."""

    def __init__(self, tree: Tree, archive: Archive, report: Imported) -> None:
        self.tree = tree
        self.store = tree.memory
        self.layer = Layer(tree.memory)
        self.archive = archive
        self.report = report

    def each(self, name: str, take: Callable[[dict[str, Any]], None]) -> None:
        """Take the rows of a member one by one; a row that does not fit is damage."""
        for number, row in enumerate(self.archive.rows(name), start=1):
            with self.sound(name, number):
                take(row)

    @contextmanager
    def sound(self, name: str, number: int) -> Iterator[None]:
        """Turn what a row that does not fit raises into the error of a damaged archive.

        Args:
            name: the member.
            number: the line; 0 where it is not known.
        """
        try:
            yield
        except (BrokenStore, UntrustedStore):
            raise
        except (KeyError, TypeError, ValueError, AttributeError, UserError) as error:
            missing = f"{error} is missing" if isinstance(error, KeyError) else str(error)
            raise self.archive.damaged(name, number, missing) from error


def text(value: Any) -> str:
    """Return a value that must be a text; raises ValueError."""
    if not isinstance(value, str):
        raise ValueError(f"a text is expected, not {value!r}")
    return value


def scalar(value: Any) -> Any:
    """Return a value that SQLite can keep as it is; raises ValueError."""
    if value is not None and not isinstance(value, str | int | float | bytes):
        raise ValueError(f"a plain value is expected, not {type(value).__name__}")
    return value
