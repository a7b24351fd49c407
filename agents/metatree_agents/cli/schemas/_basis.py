"""The JSON of what an answer stands on."""

from __future__ import annotations

from metatree_agents.cli.schemas._model import Output


class BasisOutput(Output):
    """What an answer stands on.

    `commit` and `dirty` are of the work tree of a single folder, null where git knows none; `indexed_at` is ISO 8601 in
    UTC; `changed_since` counts the files that are new, gone or changed since, and `stale` says whether anything is.
    """

    source: str
    commit: str | None
    dirty: bool | None
    indexed_at: str | None
    changed_since: int
    stale: bool
