"""Copies of a tree on other machines: its built layer as blocks of a file, its memory layer as changes of nodes."""

from metatree.copying.blocks import BLOCK, Assembly, digest_of_block, hashes_of, snapshot
from metatree.copying.change_form import Change, is_well_formed
from metatree.copying.changes import apply_changes, changes_since, flag_changes

__all__ = [
    "BLOCK",
    "Assembly",
    "Change",
    "apply_changes",
    "changes_since",
    "digest_of_block",
    "flag_changes",
    "hashes_of",
    "is_well_formed",
    "snapshot",
]
