"""The memory type for files of rows between commas or tabs: a text, as any, and a table that can be asked."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from metatree.trees.source_types import Outline, OutlinePart, SourceFile
from metatree_memory_tools.databases._delimited import MOST_BYTES, is_delimited
from metatree_memory_tools.databases._model import key_of
from metatree_memory_tools.databases._nodes import ROWS
from metatree_memory_tools.databases._show import column_text, table_text
from metatree_memory_tools.databases._sqlite_apart import read_table
from metatree_memory_tools.reading.own_process import ReadingFailed
from metatree_memory_tools.text.plain import PlainText
from metatree_memory_tools.text.text_files import TextFiles

if TYPE_CHECKING:
    from metatree.tools.tool import ToolGroup

_LIMIT_S = 30.0


class DelimitedFile(TextFiles):
    """A file of rows: its lines, as those of any text, below a table with its columns.

    Lost: sample rows, as databases have, instead of all lines, since a search by words finds no row then that is none.
    """

    name = "delimited"
    version = "1"
    answers_outside_tree = True

    @property
    def tools(self) -> tuple[ToolGroup, ...]:
        """The tools of texts, and those of databases."""
        from metatree_memory_tools.databases._tools import DATABASE_TOOLS

        return (*super().tools, DATABASE_TOOLS)

    def recognises(self, path: str, head: bytes) -> bool:
        """Whether the name ends as those of such files do."""
        return is_delimited(path)

    def outline(self, file: SourceFile) -> Outline:
        """Return the table with its columns and its lines; a file that is no table is a text."""
        plain = PlainText().outline(file)
        try:
            if len(file.data) > MOST_BYTES:
                raise ValueError(f"it is larger than {MOST_BYTES / 1e6:g} MB")
            table, rows, problem = read_table(file.path, file.text, _LIMIT_S)
        except (ValueError, ReadingFailed) as exc:
            return Outline(
                description=plain.description,
                parts=plain.parts,
                attributes=plain.attributes,
                summary=plain.summary,
                problem=f"no table: {exc}" if file.data.strip() else "",
            )
        columns = tuple(
            OutlinePart(
                id=f"#table/{key_of(column.name)}",
                title=column.name,
                description=column_text(table, column),
                kind="column",
                start_line=0,
                end_line=0,
            )
            for column in table.columns
        )
        last = len(file.lines)
        pieces = tuple(replace(piece, kind=ROWS, description="") for piece in plain.parts)
        whole = OutlinePart(id="#rows", title=f"{table.name}: rows", kind=ROWS, start_line=1, end_line=last)
        text = table_text(table)
        part = OutlinePart(
            id="#table",
            title=table.name,
            description=text,
            kind="table",
            start_line=1,
            end_line=last,
            parts=(*columns, *(pieces or (whole,))),
            attributes={"rows": rows, "rows_exact": True},
        )
        return Outline(
            description=text,
            parts=(part,),
            attributes={**plain.attributes, "tables": 1},
            summary=text,
            problem=problem,
        )
