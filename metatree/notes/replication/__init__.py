"""The memory layer of a tree on several machines: rows as changes, and conflicts of moves.

Imports the core alone.
"""

from metatree.notes.replication._change_schema import RowChange, is_well_formed
from metatree.notes.replication._changes import apply_changes, changes_since, flag_changes

__all__ = ["RowChange", "apply_changes", "changes_since", "flag_changes", "is_well_formed"]
