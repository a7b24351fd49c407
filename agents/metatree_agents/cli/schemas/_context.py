"""The JSON of the lines that an issue is about."""

from __future__ import annotations

from metatree_agents.cli.schemas._basis import BasisOutput
from metatree_agents.cli.schemas._model import Output


class ContextRangeOutput(Output):
    """Some lines of a file, counted from 1, both included; `kind` is `whole` or `outline`.

    `name` is the definition that they are, or are of; `reason` says why these; `source` is the folder that the path is
    relative to in a tree of several, and empty otherwise.
    """

    path: str
    start_line: int
    end_line: int
    name: str
    kind: str
    reason: str
    text: str
    node: str
    source: str


class LeftOutOutput(Output):
    """A definition that fits the issue and did not fit into the tokens; `tokens` is about what it takes."""

    path: str
    start_line: int
    end_line: int
    name: str
    tokens: int
    source: str


class ContextOutput(Output):
    """`metatree context --json`; `tokens` is what `ranges` take with their heads, and `counted_by` what counted them.

    `detail` says why nothing is given.
    """

    ranges: list[ContextRangeOutput]
    tokens: int
    budget: int
    counted_by: str
    left_out: list[LeftOutOutput]
    detail: str
    basis: BasisOutput
