"""The options of `metatree files` that a run was begun with, kept for `metatree resume`, which prints it alike."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from metatree.trees.layer import Layer

if TYPE_CHECKING:
    from metatree import Tree
    from metatree_agents.code import FileToEdit


@dataclass(frozen=True, slots=True)
class FilesOptions:
    """How a list of files to edit is cut."""

    k: int
    """How many files at most; 0 for those that fit nearly as well as the best."""
    own: str | None
    """The file that the issue was read from: it fits the issue best of all, and is not to be edited."""

    def cut(self, files: list[FileToEdit]) -> list[FileToEdit]:
        """Return the files to print."""
        from metatree_agents.code import nearly_best

        others = [file for file in files if file.place != self.own]
        return others[: self.k] if self.k else nearly_best(others)

    @property
    def most(self) -> int:
        """How many files are looked for: the one that the issue was read from is not printed."""
        from metatree_agents.code import MOST_AUTO

        return (self.k or MOST_AUTO) + (self.own is not None)


def save_options(tree: Tree, run_id: str, options: FilesOptions) -> None:
    """Keep what a new run was asked; of a run that exists already, what it was asked first.

    In a tree that can only be read nothing is kept, and no run can be taken up.
    """
    if tree.memory.read_only:
        return
    layer = Layer(tree.memory)
    with tree.memory.transaction():
        if layer.fact(_key(run_id)) is None:
            layer.set_fact(_key(run_id), asdict(options))


def load_options(tree: Tree, run_id: str) -> FilesOptions | None:
    """Return what a run of `metatree files` was asked; None for a run of another command."""
    stored = Layer(tree.memory).fact(_key(run_id))
    match stored:
        case {"k": int(k), "own": str() | None as own}:
            return FilesOptions(k, own)
        case _:  # nothing, or what an import made of it
            return None


def _key(run_id: str) -> str:
    return f"files:{run_id}"
