"""Agents on top of metatree: which files to edit, and the command line."""

from metatree_agents.code import Definition, FileToEdit, files_to_edit

__all__ = ["Definition", "FileToEdit", "files_to_edit"]
