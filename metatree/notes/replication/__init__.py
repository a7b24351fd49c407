"""Copies of a tree on other machines: its built layer as blocks of a file, its memory layer as changes of nodes."""

from metatree.notes.replication._change_schema import Change, is_well_formed
from metatree.notes.replication._changes import apply_changes, changes_since, flag_changes
from metatree.notes.replication.blocks import BLOCK, Assembly, digest_of_block, hashes_of, snapshot

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
