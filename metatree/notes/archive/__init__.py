"""What cannot be built again, in one file: written from one tree, merged into another.

    from metatree.notes.archive import export_memory, import_memory

    export_memory(Tree.open("project"), "project.metatree")
    report = import_memory(Tree.open("elsewhere/project"), "project.metatree")

The file is a zip of JSON lines, one member for each kind of thing; docs/archive.md describes it.
"""

from metatree.notes.archive._merge import import_memory
from metatree.notes.archive._report import Imported, MergeConflict
from metatree.notes.archive._survey import ArchiveSurvey, survey_archive
from metatree.notes.archive._writer import Exported, export_memory

__all__ = [
    "ArchiveSurvey",
    "Exported",
    "Imported",
    "MergeConflict",
    "export_memory",
    "import_memory",
    "survey_archive",
]
