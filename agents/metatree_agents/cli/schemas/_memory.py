"""The JSON of commands about what is remembered."""

from __future__ import annotations

from pydantic import AliasChoices, Field

from metatree_agents.cli.schemas._model import Output


class SayingOutput(Output):
    """One time that something was said; the time is ISO 8601 in UTC, `source` null when it was not told.

    `export` is the file of somebody else that says so, null where it was said here.
    """

    who: str
    at: str
    source: str | None
    export: str | None = None


class MemoryOutput(Output):
    """A memory, with the node that it lies under and each time that it was said."""

    id: str
    title: str
    text: str
    parent: str
    said: list[SayingOutput]


class RememberOutput(Output):
    """`metatree remember --json`; `known` tells that the text was remembered before."""

    node: MemoryOutput
    why: str
    known: bool
    warnings: list[str]


class MemoriesOutput(Output):
    """`metatree memories --json`."""

    memories: list[MemoryOutput]


class FlagOutput(Output):
    """A flag: what a person says against a node for a question."""

    id: str
    node: str
    question: str
    why: str
    who: str
    source: str
    at: str


class FlagsOutput(Output):
    """`metatree memories --flags --json`."""

    flags: list[FlagOutput]


class LeftOutput(Output):
    """A place that still has words of what was forgotten: a file, or a table of one with what names the row."""

    place: str
    what: str


class ForgetOutput(Output):
    """`metatree forget --json`; `undo` holds what `metatree remember` needs to bring one memory back.

    `left_to_others` are memories that others said too. `planned` is what would be forgotten, with `--dry-run`. With
    `--verify`, `wiped` names the runs, boards and results of tools that were deleted since they quoted it, and `traces`
    the places that still have its words.
    """

    forgotten: list[str]
    planned: list[str]
    undo: dict[str, str | None]
    left_to_others: list[str]
    wiped: list[str]
    traces: list[LeftOutput]
    verified: bool


class ReplacedOutput(Output):
    """A text that a memory replaced, and when it ceased to hold."""

    text: str
    until: str


class AuditOutput(Output):
    """`metatree audit --json`: where a node comes from, and what it replaced.

    `stands_in` is the file with its lines, or the turn or memory that it was taken from; `wishes` are the standing
    wishes that it states; `holds` is false for a wish that a later one took back. `written` says who wrote the lines of
    a file and when, where git knows it.
    """

    id: str
    kind: str
    title: str
    text: str
    under: str
    said: list[SayingOutput]
    stands_in: str
    replaced: list[ReplacedOutput]
    wishes: list[str]
    holds: bool
    written: list[str]


class ExportOutput(Output):
    """`metatree export --json`; `counts` has the number of each kind of thing, `left_out` names tables."""

    file: str = Field(validation_alias=AliasChoices("file", "path"))
    bytes: int
    counts: dict[str, int]
    secrets_left_out: int = Field(validation_alias=AliasChoices("secrets_left_out", "secrets"))
    left_out: list[str]


class ConflictOutput(Output):
    """Something that the tree and the file say differently, and what was kept."""

    what: str
    id: str
    kept: str


class ImportOutput(Output):
    """`metatree import --json`.

    `merged` is false for an export of somebody else, of which texts alone were taken: `folder` is the id of the node
    that what is new lies below, null when nothing is new, and `left_out` counts what was left out.
    """

    added: dict[str, int]
    known: dict[str, int]
    conflicts: list[ConflictOutput]
    permissions_left_out: int
    wishes_left_out: int
    deletions_left_out: int
    merged: bool
    folder: str | None
    left_out: dict[str, int]
