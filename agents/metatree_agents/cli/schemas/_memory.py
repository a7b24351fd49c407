"""The JSON of commands about what is remembered."""

from __future__ import annotations

from pydantic import AliasChoices, Field

from metatree_agents.cli.schemas._model import Output


class SayingOutput(Output):
    """One time that something was said; the time is ISO 8601 in UTC, `source` null when it was not told."""

    who: str
    at: str
    source: str | None


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


class ForgetOutput(Output):
    """`metatree forget --json`; `undo` holds what `metatree remember` needs to bring it back."""

    forgotten: list[str]
    undo: dict[str, str | None]


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
    """`metatree import --json`."""

    added: dict[str, int]
    known: dict[str, int]
    conflicts: list[ConflictOutput]
    permissions_left_out: int
