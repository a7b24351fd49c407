"""The JSON of `metatree describe`."""

from __future__ import annotations

from metatree_agents.cli.schemas._model import Output


class EstimateOutput(Output):
    """What it would take: `requests` exactly, tokens about; `cost_usd` is null when no price is known."""

    nodes: int
    unchanged: int
    kept: int
    requests: int
    tokens_in: int
    tokens_out: int
    cost_usd: float | None


class DescribedOutput(Output):
    """What was done; `calls` count failed attempts too, `failed` has the reason for each node that got no words."""

    written: int
    unchanged: int
    kept: int
    calls: int
    tokens_in: int
    tokens_out: int
    cost_usd: float | None
    failed: dict[str, str]


class DescribeOutput(Output):
    """`metatree describe --json`; `described` is null with --dry-run, or when there was nothing to do."""

    model: str
    estimate: EstimateOutput
    described: DescribedOutput | None
