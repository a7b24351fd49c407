"""What `metatree files` asked of a run, kept beside the journal, so that `metatree resume` prints it alike."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from metatree.trees.layer import Layer

if TYPE_CHECKING:
    from metatree import Tree
    from metatree_agents.code import FileToEdit


@dataclass(frozen=True, slots=True)
class FilesAsked:
    """How a list of files to edit is cut."""

    k: int
    """How many files at most."""
    own: str | None
    """The file that the issue was read from: it fits the issue best of all, and is not to be edited."""

    def cut(self, files: list[FileToEdit]) -> list[FileToEdit]:
        """Return the files to print."""
        return [file for file in files if file.place != self.own][: self.k]


def keep(tree: Tree, run_id: str, asked: FilesAsked) -> None:
    """Keep what a new run was asked; of a run that exists already, what it was asked first.

    In a tree that can only be read nothing is kept, and no run can be taken up.
    """
    if tree.memory.read_only:
        return
    layer = Layer(tree.memory)
    with tree.memory.transaction():
        if layer.fact(_key(run_id)) is None:
            layer.set_fact(_key(run_id), asdict(asked))


def kept(tree: Tree, run_id: str) -> FilesAsked | None:
    """Return what a run of `metatree files` was asked; None for a run of another command."""
    found = Layer(tree.memory).fact(_key(run_id))
    return None if found is None else FilesAsked(**found)


def _key(run_id: str) -> str:
    return f"files:{run_id}"
