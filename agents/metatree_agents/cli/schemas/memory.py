"""The JSON that commands print about what is remembered, as types; docs/json.md is generated from them."""

from __future__ import annotations

from typing import TypedDict


class SayingShape(TypedDict):
    """One time that something was said; the time is ISO 8601 in UTC, `source` null when it was not told."""

    who: str
    at: str
    source: str | None


class MemoryShape(TypedDict):
    """A memory, with the node that it lies under and each time that it was said."""

    id: str
    title: str
    text: str
    parent: str
    said: list[SayingShape]


class RememberShape(TypedDict):
    """`metatree remember --json`; `known` tells that the text was remembered before."""

    node: MemoryShape
    why: str
    known: bool
    warnings: list[str]


class MemoriesShape(TypedDict):
    """`metatree memories --json`."""

    memories: list[MemoryShape]


class FlagShape(TypedDict):
    """A flag: what a person says against a node for a question."""

    id: str
    node: str
    question: str
    why: str
    who: str
    source: str
    at: str


class FlagsShape(TypedDict):
    """`metatree memories --flags --json`."""

    flags: list[FlagShape]


class ForgetShape(TypedDict):
    """`metatree forget --json`; `undo` holds what `metatree remember` needs to bring it back."""

    forgotten: list[str]
    undo: dict[str, str | None]


class ExportShape(TypedDict):
    """`metatree export --json`; `counts` has the number of each kind of thing, `left_out` names tables."""

    file: str
    bytes: int
    counts: dict[str, int]
    secrets_left_out: int
    left_out: list[str]


class ConflictShape(TypedDict):
    """Something that the tree and the file say differently, and what was kept."""

    what: str
    id: str
    kept: str


class ImportShape(TypedDict):
    """`metatree import --json`."""

    added: dict[str, int]
    known: dict[str, int]
    conflicts: list[ConflictShape]
    permissions_left_out: int
